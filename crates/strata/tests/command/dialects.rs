//! Other tools' command lines, as those who type them meet them.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Output};

use rustix::process::Signal;
use serde_json::Value;

use crate::support::{Ended, Scratch, read_record};

/// Runs the binary under another name, with strata's own options in the environment.
fn linked(scratch: &Scratch, name: &str, own: &str, words: &[&str]) -> Output {
    let link = scratch.join(name);
    if !link.exists() {
        symlink(env!("CARGO_BIN_EXE_strata"), &link).unwrap();
    }
    Command::new(link).args(words).current_dir(scratch.path()).env("STRATA_OPTIONS", own).output().unwrap()
}

fn json(ended: &Ended) -> Value {
    serde_json::from_str(&ended.stdout).unwrap_or_else(|error| panic!("{error}: {}", ended.stdout))
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// A file of zeros that carries data, as another program would leave it.
fn foreign_file(path: &Path, bytes: usize) {
    fs::write(path, vec![7; bytes]).unwrap();
}

#[test]
fn a_script_that_reads_fios_json_reads_ours() {
    let scratch = Scratch::new();
    let words = "as --json record.json fio --name=reader --filename=data --size=4m --rw=randread --bs=4k --ioengine=libaio \
                 --iodepth=4 --direct=1 --runtime=1 --time_based --output-format=json --output=fio.json";
    let ended = scratch.run(words);
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), ""), "{}", ended.stderr);
    let shown: Value = serde_json::from_str(&fs::read_to_string(scratch.join("fio.json")).unwrap()).unwrap();
    let record = read_record(&scratch.join("record.json"));
    let total = &record["phases"][0]["summary"]["total"];
    let read = &shown["jobs"][0]["read"];
    assert_eq!(read["total_ios"], total["operations"]);
    assert_eq!(read["io_bytes"], total["bytes"]);
    let ours = total["operations_per_second"].as_f64().unwrap();
    let theirs = read["iops"].as_f64().unwrap();
    assert!((theirs / ours - 1.0).abs() < 0.01, "{theirs} {ours}");
    assert!(read["clat_ns"]["percentile"]["99.000000"].as_u64().unwrap() > 0);
    // What was in flight when time was up is in the latencies, and in no count.
    let timed = read["slat_ns"]["N"].as_u64().unwrap();
    assert_eq!(read["clat_ns"]["N"], timed, "{read}");
    let in_flight = timed - total["operations"].as_u64().unwrap();
    assert!(in_flight <= 4, "{read}");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/examples/fio_json.py");
    let printed = Command::new("python3").arg(script).arg(scratch.join("fio.json")).output().unwrap();
    assert!(printed.status.success(), "{}", text(&printed.stderr));
    let printed = text(&printed.stdout);
    assert!(printed.contains("reader") && printed.contains("read"), "{printed}");
}

#[test]
fn a_link_named_fio_runs_a_job_file() {
    let scratch = Scratch::new();
    let job = "; two groups\n[global]\nbs=4k\nsize=1m\ndirect=1\n\n[writer]\nrw=write\n\n[reader]\nstonewall\nrw=randread\nnumjobs=2\n\
               group_reporting\n";
    fs::write(scratch.join("job.fio"), job).unwrap();
    let output = linked(&scratch, "fio", "--json record.json", &["job.fio"]);
    let (shown, said) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(0), "{said}");
    for line in ["writer: (groupid=0, jobs=1)", "reader: (groupid=1, jobs=2)", "Run status group 1"] {
        assert!(shown.contains(line), "{line}: {shown}");
    }
    // fio leaves its files, and names them so.
    assert_eq!(
        scratch.names(),
        ["fio", "job.fio", "reader.0.0", "reader.1.0", "record.json", "writer.0.0"],
        "{said}"
    );
    let record = read_record(&scratch.join("record.json"));
    let phases = record["phases"].as_array().unwrap();
    assert_eq!(phases.iter().map(|phase| phase["stage"].as_u64().unwrap()).collect::<Vec<_>>(), [0, 1]);
    let refused = linked(&scratch, "fio", "--no-such-option", &["job.fio"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(text(&refused.stderr).contains("STRATA_OPTIONS"), "{}", text(&refused.stderr));
}

/// LU-4198: what was asked for there, over smaller files and for a shorter time.
#[test]
fn the_job_of_lu_4198_runs() {
    let scratch = Scratch::new();
    fs::create_dir(scratch.join("fio.out")).unwrap();
    let job = "[randread]\nioengine=sync\n;ioengine=libaio\nrw=randread\nblocksize=4096\niodepth=32\ndirect=1\nsize=64k\n\
               runtime=1\nnumjobs=128\ngroup_reporting\ndirectory=fio.out\nfilename_format=f.$jobnum.$filenum\n";
    fs::write(scratch.join("job"), job).unwrap();
    let ended = scratch.run("as fio job");
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(
        ended.stdout.contains("note: iodepth=32 is 1")
            || ended.stdout.contains("note: randread: iodepth=32 is 1"),
        "a depth that the engine cannot have is told: {}",
        ended.stdout
    );
    assert_eq!(ended.stderr, "", "what fio would not say there is in the results");
    assert!(ended.stdout.contains("(groupid=0, jobs=128)"), "{}", ended.stdout);
    let made = crate::support::names_in(&scratch.join("fio.out"));
    assert_eq!((made.len(), made[0].as_str()), (128, "f.0.0"));
}

#[test]
fn failed_operations_are_no_operations_and_the_json_stays_whole() {
    let scratch = Scratch::new();
    let line = "as fio --name=full --filename=/dev/full --rw=write --bs=4k --size=64k --output-format=json";
    for rest in ["", " --continue_on_error=all"] {
        let ended = scratch.run(&format!("{line}{rest}"));
        assert_eq!(ended.code, Some(1), "{}", ended.stderr);
        let job = &json(&ended)["jobs"][0];
        assert_eq!((&job["error"], &job["write"]["total_ios"]), (&28.into(), &0.into()), "{job}");
        assert_eq!(job["write"]["iops"], 0.0);
    }
    // Nothing could be run: still an object, with the reason.
    let ended =
        scratch.run("as fio --name=x --filename=no/such/place --rw=read --size=1m --output-format=json");
    assert_eq!(ended.code, Some(2), "{}", ended.stderr);
    assert!(json(&ended)["error"].as_str().unwrap().contains("no such directory"), "{}", ended.stdout);
    let ended = scratch.run("as fio --name=x --filename=x --rw=raed --size=1m --output-format=json");
    assert_eq!(ended.code, Some(2), "{}", ended.stderr);
    assert!(json(&ended)["error"].as_str().unwrap().contains("raed"), "{}", ended.stdout);
}

#[test]
fn an_interrupted_run_shows_what_it_has() {
    let scratch = Scratch::new();
    let mut running = scratch.start(
        "as --live-csv - fio --name=long --filename=data --size=1m --rw=randread --runtime=100 --time_based \
         --output-format=json --output=fio.json",
    );
    running.await_row("long");
    running.signal(Signal::INT);
    let ended = running.end();
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    let shown: Value = serde_json::from_str(&fs::read_to_string(scratch.join("fio.json")).unwrap()).unwrap();
    assert!(shown["jobs"][0]["read"]["total_ios"].as_u64().unwrap() > 0);
}

#[test]
fn values_that_the_tools_take_although_they_are_wrong_are_refused() {
    let scratch = Scratch::new();
    let lines = [
        ("fio --name=x --filename=x --size=1m --rw=randrw --rwmixread=150", "rwmixread", "0 to 100"),
        ("fio --name=x --filename=x --size=1m --rw=read --iodepth=0", "iodepth", "1 or more"),
        ("fio --name=x --filename=x --size=1m --rw=read --ioengine=rbd", "pool", "requires it"),
        ("fio --name=x --filename=x --size=1m --rw=read --iodeph=3", "iodeph", "iodepth"),
        ("fio --name=x --filename=x --size=1zzm --rw=read", "size", "1zzm"),
        ("fio --client=host --name=x --rw=read --size=1m", "--client", "put it into the job file"),
        ("elbencho -w --rwmixpct 150 -s 1m x", "rwmixpct", "0 to 100"),
        ("elbencho -w -s 1zzm x", "1zzm", "size"),
        ("elbencho -w -t -1 -s 1m x", "threads", "1 to"),
        ("elbencho -w --iodepth 0 -s 1m x", "iodepth", "1 to"),
        ("elbencho -s 1m x", "phase", "-w"),
        ("elbencho --netbench --servers a -b 4k", "clients", "elbencho --service"),
        ("spdk_nvme_perf -q 0 -o 4096 -w read -t 1 x", "-q", "1"),
        ("spdk_nvme_perf -q 1 -o 4096 -w reed -t 1 x", "reed", "randread"),
        ("spdk_nvme_perf -q 1 -o 4096 -w randrw -M 101 -t 1 x", "rwmixread", "0 to 100"),
        ("elbencho-chart -x a -y b results.csv", "results.csv", "No such file"),
        ("fi0 --name=x", "fi0", "one of fio"),
    ];
    for (line, named, accepted) in lines {
        let ended = scratch.run(&format!("as {line}"));
        assert_eq!(ended.code, Some(2), "{line}: {}", ended.stderr);
        let said = ended.stderr.lines().last().unwrap_or_default();
        assert!(
            said.starts_with("strata: ") && said.contains(named) && said.contains(accepted),
            "{line}: {said}"
        );
    }
    assert!(scratch.names().is_empty(), "nothing was touched: {:?}", scratch.names());
}

#[test]
fn a_fault_in_a_job_file_is_told_by_file_line_section_and_key() {
    let scratch = Scratch::new();
    fs::write(scratch.join("bad.fio"), "[global]\nrw=read\n\n[one]\nsize=1m\nbs=4q\n").unwrap();
    let ended = scratch.run("as fio bad.fio");
    assert_eq!(ended.code, Some(2));
    for part in ["bad.fio", "6", "one", "bs", "4q"] {
        assert!(ended.stderr.contains(part), "{part}: {}", ended.stderr);
    }
}

#[test]
fn data_of_others_is_safe_from_every_dialect() {
    let scratch = Scratch::new();
    foreign_file(&scratch.join("precious"), 1 << 20);
    let lines = [
        "fio --name=x --filename=precious --rw=write --bs=64k",
        "elbencho -w -b 64k -s 1m precious",
        "spdk_nvme_perf -q 1 -o 4096 -w randwrite -t 1 -c 0x1 -r precious",
    ];
    for line in lines {
        let ended = scratch.run(&format!("as {line}"));
        assert_eq!(ended.code, Some(2), "{line}: {}", ended.stderr);
        let name = line.split(' ').next().unwrap();
        let remedy = format!("strata as --destroy-data {name} ... overwrites it");
        assert!(ended.stderr.contains(&remedy), "{line}: {}", ended.stderr);
    }
    assert_eq!(fs::read(scratch.join("precious")).unwrap(), vec![7; 1 << 20]);
    let ended = scratch.run(&format!("as --destroy-data {}", lines[0]));
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert_ne!(fs::read(scratch.join("precious")).unwrap(), vec![7; 1 << 20]);
}

#[test]
fn the_lines_of_the_seeds_run() {
    let scratch = Scratch::new();
    foreign_file(&scratch.join("drive"), 4 << 20);
    for line in [
        "spdk_nvme_perf -q 16 -o 1048576 -w read -c 0xff -t 1 -r drive",
        "spdk_nvme_perf -q 16 -o 4096 -w read -c 0xff -t 1 -r drive",
        "elbencho -w -s 4m myfile1 myfile2",
        "elbencho -r -t 4 -b 4k --lat --direct --rand --timelimit 10 myfile1 myfile2",
        "elbencho --csvfile results.csv -t 4 -r -b 4k myfile1 --timelimit 10 --rand",
        "elbencho --csvfile results.csv -t 4 -r -b 64k myfile1 --timelimit 10 --rand",
    ] {
        let ended = scratch.run(&format!("as {line}"));
        assert_eq!(ended.code, Some(0), "{line}: {}", ended.stderr);
        let heading = if line.starts_with("spdk") { "Device Information" } else { "FIRST DONE   LAST DONE" };
        assert!(ended.stdout.contains(heading), "{line}: {}", ended.stdout);
    }
    let rows = fs::read_to_string(scratch.join("results.csv")).unwrap();
    assert_eq!(rows.lines().count(), 3, "a heading, and a row a run: {rows}");
    let chart = ["-x", "block size", "-y", "MiB/s [last]", "-Y", "IOPS [last]", "results.csv"];
    for extra in [&[][..], &["--bars"]] {
        let ended = scratch.run_words(&[&["as", "elbencho-chart"][..], extra, &chart[..]].concat());
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        assert!(fs::read_to_string(scratch.join("results.svg")).unwrap().contains("</svg>"));
    }
}

#[test]
fn verified_blocks_of_another_salt_are_found() {
    let scratch = Scratch::new();
    for (line, code) in [
        ("-w --verify 1 -s 1m -b 4k data", 0),
        ("-r --verify 1 -b 4k data", 0),
        ("-r --verify 2 -b 4k data", 1),
    ] {
        let ended = scratch.run(&format!("as elbencho {line}"));
        assert_eq!(ended.code, Some(code), "{line}: {} {}", ended.stdout, ended.stderr);
    }
}

#[test]
fn an_output_file_that_cannot_be_written_is_refused_before_the_run() {
    let scratch = Scratch::new();
    let ended = scratch.run("as fio --name=x --filename=x --rw=write --size=1m --output=no/such/place");
    assert_eq!(ended.code, Some(2), "{}", ended.stderr);
    assert!(ended.stderr.contains("no/such/place"), "{}", ended.stderr);
    assert!(scratch.names().is_empty());
    let ended = scratch.run("as --json - fio --name=x --filename=x --rw=write --size=1m");
    assert_eq!(ended.code, Some(2), "{}", ended.stderr);
}

#[test]
fn end_fsync_goes_with_a_runtime() {
    let scratch = Scratch::new();
    let ended = scratch.run(
        "as fio --name=random-write --ioengine=psync --rw=randwrite --bs=4k --size=1m --numjobs=1 --iodepth=1 --runtime=1 \
         --time_based --end_fsync=1 --output-format=json",
    );
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert_eq!(json(&ended)["jobs"][0]["sync"]["total_ios"], 1, "{}", ended.stdout);
}

#[test]
fn output_does_not_go_over_a_target() {
    let scratch = Scratch::new();
    foreign_file(&scratch.join("precious"), 1 << 20);
    for line in [
        "fio --name=x --filename=precious --rw=read --output=precious",
        "elbencho -r -b 64k --resfile ./precious precious",
    ] {
        let ended = scratch.run(&format!("as {line}"));
        assert_eq!(ended.code, Some(2), "{line}: {}", ended.stderr);
        assert!(ended.stderr.contains("give another file"), "{line}: {}", ended.stderr);
    }
    assert_eq!(fs::read(scratch.join("precious")).unwrap(), vec![7; 1 << 20]);
}

#[test]
fn what_a_tool_shows_outlives_the_full_screen() {
    let scratch = Scratch::new();
    foreign_file(&scratch.join("data"), 1 << 20);
    let strata = env!("CARGO_BIN_EXE_strata");
    let line = format!("{strata} as --live full elbencho -r -b 64k --infloop --timelimit 1 data");
    let shown = Command::new("script")
        .args(["-q", "-e", "-c", &format!("stty rows 30 cols 100; {line}"), "/dev/null"])
        .env("TERM", "xterm-256color")
        .current_dir(scratch.path())
        .stdin(std::process::Stdio::null())
        .output()
        .expect("a terminal (script, of Debian's bsdutils)");
    let text = String::from_utf8_lossy(&shown.stdout).into_owned();
    let (screen, after) = text.rsplit_once("\u{1b}[?1049l").expect("the full screen was left");
    assert!(after.contains("READ ") && after.contains("OPERATION"), "{after}");
    assert!(!screen.contains("Throughput MiB/s"), "{screen}");
}
