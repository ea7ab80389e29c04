//! Settings of fio's command line around its jobs: commands, schedulers, file systems that are filled, messages, packed logs.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use crate::support::{Loop, Mounted, Scratch, skipped};

#[test]
fn commands_run_before_and_after_a_job() {
    let scratch = Scratch::new();
    let words = |before: &str| {
        let run = format!("--exec_prerun={before}");
        let all = [
            "as",
            "fio",
            "--name=x",
            "--size=16k",
            "--rw=write",
            "--exec_postrun=wc -c <x.0.0; echo done",
            "--output-format=json",
        ];
        scratch.run_words(&[&all[..], &[&run]].concat())
    };
    let ended = words("echo before; ls x.0.0 >&2");
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert_eq!(fs::read_to_string(scratch.join("x.prerun.txt")).unwrap(), "before\nx.0.0\n");
    assert_eq!(fs::read_to_string(scratch.join("x.postrun.txt")).unwrap(), "16384\ndone\n");
    fs::remove_file(scratch.join("x.postrun.txt")).unwrap();
    let ended = words("exit 3");
    assert_eq!(ended.code, Some(1), "{}", ended.stdout);
    assert!(ended.stderr.contains("the command failed (exit status: 3)"), "{}", ended.stderr);
    assert!(!scratch.join("x.postrun.txt").exists(), "nothing ran");
}

#[test]
fn a_scheduler_is_chosen_while_a_job_runs_and_brought_back() {
    let scratch = Scratch::new();
    let words = "as fio --name=x --rw=read --bs=4k --size=16k --ioscheduler=";
    let ended = scratch.run(&format!("{words}no-such-scheduler"));
    assert_eq!(ended.code, Some(2), "{}", ended.stdout);
    if let Some(mount) = Mounted::tmpfs("1m") {
        let file = mount.path().join("file");
        let ended = scratch.run(&format!("{words}none --filename={}", file.display()));
        assert!(
            ended.code == Some(2) && ended.stderr.contains("no block device with an I/O scheduler"),
            "{}",
            ended.stderr
        );
    }
    let test = "a_scheduler_is_chosen_while_a_job_runs_and_brought_back";
    let Some(device) = Loop::new(scratch.path(), 1 << 20) else { return skipped(test, "no loop device") };
    let name = Path::new(&device.device).file_name().unwrap().to_str().unwrap().to_owned();
    let file = format!("/sys/block/{name}/queue/scheduler");
    let chosen = || {
        let text = fs::read_to_string(&file).unwrap();
        text.split(['[', ']']).nth(1).unwrap_or("").to_owned()
    };
    let before = chosen();
    let all = fs::read_to_string(&file).unwrap();
    let Some(other) = all.split_whitespace().find(|word| !word.contains('[')) else {
        return skipped(test, "the device has one scheduler");
    };
    let command = format!("--exec_postrun=cat {file}");
    let (target, scheduler) = (format!("--filename={}", device.device), format!("--ioscheduler={other}"));
    let ended = scratch.run_words(&[
        "as",
        "fio",
        "--name=x",
        "--rw=read",
        "--size=16k",
        &target,
        &scheduler,
        &format!("--exec_prerun=cat {file}"),
        &command,
    ]);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(fs::read_to_string(scratch.join("x.prerun.txt")).unwrap().contains(&format!("[{other}]")));
    assert!(fs::read_to_string(scratch.join("x.postrun.txt")).unwrap().contains(&format!("[{before}]")));
    assert_eq!(chosen(), before);
}

#[test]
fn a_file_system_is_filled_and_that_is_no_failure() {
    let scratch = Scratch::new();
    let Some(mount) = Mounted::tmpfs("4m") else {
        return skipped("a_file_system_is_filled_and_that_is_no_failure", "no tmpfs can be mounted");
    };
    let words = format!(
        "as fio --name=x --directory={} --bs=64k --fill_device=1 --output-format=json",
        mount.path().display()
    );
    let ended = scratch.run(&format!("{words} --rw=write --unlink=1"));
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let start = ended.stdout.find('{').unwrap();
    let done: serde_json::Value = serde_json::from_str(&ended.stdout[start..]).unwrap();
    let job = &done["jobs"][0];
    assert_eq!(job["error"], 0, "{job}");
    let written = job["write"]["io_bytes"].as_u64().unwrap();
    assert!((3 << 20..=4 << 20).contains(&written), "{written}");
    for refused in ["--rw=randwrite", "--rw=write --nrfiles=2", "--rw=write --verify=crc32c"] {
        let ended = scratch.run(&format!("{words} {refused}"));
        assert!(
            ended.code == Some(2) && ended.stderr.contains("fill_device: "),
            "{refused}: {}",
            ended.stderr
        );
    }
    // Without it the same is a failure.
    let ended = scratch.run(&words.replace("--fill_device=1", "--size=8m --rw=write --fallocate=none"));
    assert_eq!(ended.code, Some(1), "{}", ended.stdout);
}

#[test]
fn messages_tell_what_was_read_what_runs_and_the_seed() {
    let scratch = Scratch::new();
    let words = "as fio --name=x --ioengine=null --filesize=32k --rw=randread --output=out";
    let seed = |more: &str| {
        let ended = scratch.run(&format!("{words} --debug=random,parse,job{more}"));
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        let text = fs::read_to_string(scratch.join("out")).unwrap();
        assert!(text.contains(" [x] ioengine=null\n") && text.contains("number=1, clones=1"), "{text}");
        let line = text.lines().find(|line| line.contains("rand_seeds[0]=")).unwrap().to_owned();
        line.rsplit('=').next().unwrap().parse::<u64>().unwrap()
    };
    assert_eq!(seed(""), seed(""));
    assert_eq!(seed(" --randseed=12345"), 12345);
    assert_ne!(seed(" --randrepeat=0"), seed(" --randrepeat=0"));
    let ended = scratch.run(&format!("{words} --debug=mutex"));
    assert!(
        ended.code == Some(2) && ended.stderr.contains("use parse, job, random or io"),
        "{}",
        ended.stderr
    );
}

#[test]
fn operations_are_told_one_by_one() {
    let scratch = Scratch::new();
    let ended = scratch.run("as fio --name=x --size=64k --rw=randrw --bs=4k --debug=io --output-format=json");
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let lines: Vec<&str> = ended.stdout.lines().filter(|line| line.contains(" complete: io_u ")).collect();
    assert!(lines.iter().all(|line| line.starts_with("io ") && line.ends_with(",file=x.0.0")), "{lines:?}");
    let field = |line: &str, name: &str| {
        let text = line.split(name).nth(1).unwrap().split(',').next().unwrap();
        u64::from_str_radix(text.trim_start_matches("0x"), 16).unwrap()
    };
    assert!(lines.iter().all(|line| field(line, ",len=") == 4096), "{lines:?}");
    let places: BTreeSet<u64> = lines.iter().map(|line| field(line, "off=")).collect();
    assert_eq!(places, (0..16).map(|block| block << 12).collect(), "each block has its position once");
    let start = ended.stdout.find("\n{").unwrap();
    let done: serde_json::Value = serde_json::from_str(&ended.stdout[start..]).unwrap();
    let writes = lines.iter().filter(|line| line.contains(",ddir=1,")).count() as u64;
    assert_eq!(done["jobs"][0]["write"]["total_ios"], writes);
}

#[test]
fn idle_time_of_the_machine_stands_in_the_results() {
    let scratch = Scratch::new();
    let words = "as fio --name=x --ioengine=null --size=1g --rw=read --rate_iops=100 --runtime=1 --time_based --output-format=normal,json";
    let ended = scratch.run(&format!("{words} --idle-prof=system"));
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(ended.stdout.contains("\nCPU idleness:\n  system: "), "{}", ended.stdout);
    let text = ended.stdout.split("\"cpu_idleness\"").nth(1).unwrap();
    let idle: f64 =
        text.split(':').nth(2).unwrap().split(['}', '\n']).next().unwrap().trim().parse().unwrap();
    assert!((0.0..=100.0).contains(&idle), "{idle}");
    let ended = scratch.run(&format!("{words} --idle-prof=percpu"));
    assert!(ended.code == Some(2) && ended.stderr.contains("percpu is not supported"), "{}", ended.stderr);
}

#[test]
fn packed_logs_are_read_back() {
    let scratch = Scratch::new();
    let words = "as fio --name=x --ioengine=null --size=1m --bs=4k --rw=write --write_bw_log=x --per_job_logs=0 --log_offset=1 --log_compression=10k";
    assert_eq!(scratch.run(words).code, Some(0));
    assert_eq!(scratch.run(&format!("{words} --log_store_compressed=1")).code, Some(0));
    let plain = fs::read_to_string(scratch.join("x_bw.log")).unwrap();
    let packed = fs::read(scratch.join("x_bw.log.fz")).unwrap();
    assert!(packed.len() < plain.len() && packed[..2] == [0x1f, 0x8b], "a gzip file");
    let ended = scratch.run("as fio --inflate-log=x_bw.log.fz");
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let places = |text: &str| -> Vec<String> {
        text.lines().map(|line| line.split(", ").nth(4).unwrap().to_owned()).collect()
    };
    assert_eq!(places(&ended.stdout).len(), 256);
    assert_eq!(places(&ended.stdout), places(&plain));
    let ended = scratch.run("as fio --inflate-log=x_bw.log");
    assert!(ended.code == Some(2) && ended.stderr.contains("--inflate-log: x_bw.log: "), "{}", ended.stderr);
}

#[test]
fn positions_follow_a_sequence() {
    let scratch = Scratch::new();
    let words = "as fio --name=x --ioengine=null --rw=randread --bs=4096 --size=48k --io_size=24k --write_iops_log=x --log_offset=1 \
                 --random_distribution=sequence:2,0,1";
    let blocks = |more: &str| -> Vec<u64> {
        let ended = scratch.run(&format!("{words}{more}"));
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        let text = fs::read_to_string(scratch.join("x_iops.1.log")).unwrap();
        text.lines().map(|line| line.split(", ").nth(4).unwrap().parse::<u64>().unwrap() / 4096).collect()
    };
    assert_eq!(blocks(""), [2, 0, 1, 2, 0, 1]);
    assert_eq!(blocks(" --random_sequence_stride=1"), [2, 0, 1, 5, 3, 4]);
    let ended = scratch.run(&words.replace("sequence:2,0,1", "sequence:12"));
    assert!(ended.code == Some(2) && ended.stderr.contains("numbers below 12"), "{}", ended.stderr);
    let ended = scratch.run(&words.replace("sequence:2,0,1", "zipf:1.2 --random_sequence_stride=1"));
    assert!(
        ended.code == Some(2)
            && ended.stderr.contains("random_sequence_stride: requires random_distribution=sequence"),
        "{}",
        ended.stderr
    );
}
