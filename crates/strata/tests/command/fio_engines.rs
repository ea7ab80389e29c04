//! Engines of fio that move no data: names of files and directories, time of a processor, other programs.

use std::fs;

use serde_json::Value;

use crate::support::{Ended, Scratch};

fn json(ended: &Ended) -> Value {
    let start = ended.stdout.find('{').unwrap_or(0);
    serde_json::from_str(&ended.stdout[start..]).unwrap_or_else(|error| panic!("{error}: {}", ended.stdout))
}

#[test]
fn the_null_engine_has_a_submission_latency_where_it_queues() {
    let scratch = Scratch::new();
    let read = |depth: u32| {
        let words =
            "as fio --name=x --ioengine=null --size=16m --rw=read --bs=4k --output-format=json,normal";
        let ended = scratch.run(&format!("{words} --iodepth={depth}"));
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        assert_eq!(ended.stdout.contains("    slat ("), depth > 1, "{}", ended.stdout);
        let end = ended.stdout.find("\n}\n").unwrap() + 2;
        let start = ended.stdout.find('{').unwrap();
        let root: Value = serde_json::from_str(&ended.stdout[start..end]).unwrap();
        let figure = |name: &str, of: &str| root["jobs"][0]["read"][name][of].as_f64().unwrap();
        ["slat_ns", "clat_ns", "lat_ns"].map(|name| (figure(name, "N"), figure(name, "mean")))
    };
    let [(slat, _), (clat, clat_ns), (lat, lat_ns)] = read(1);
    assert_eq!((slat, clat, lat, clat_ns), (0.0, 4096.0, 4096.0, lat_ns));
    let [(slat, slat_ns), (clat, clat_ns), (lat, lat_ns)] = read(8);
    assert_eq!((slat, clat, lat), (4096.0, 4096.0, 4096.0));
    assert!(slat_ns > 0.0 && (slat_ns + clat_ns - lat_ns).abs() < 1e-3, "{slat_ns} {clat_ns} {lat_ns}");
}

#[test]
fn files_and_directories_are_made_looked_at_and_removed() {
    let scratch = Scratch::new();
    let run = |engine: &str, way: &str, more: &str| {
        let ended = scratch.run(&format!(
            "as fio --name={engine} --ioengine={engine} --nrfiles=5 --numjobs=2 --filesize=4k --thread --output-format=json{more}"
        ));
        assert_eq!(ended.code, Some(0), "{engine}: {}", ended.stderr);
        let done = json(&ended);
        let done: u64 =
            done["jobs"].as_array().unwrap().iter().map(|job| job[way]["total_ios"].as_u64().unwrap()).sum();
        assert_eq!(done, 10, "{engine}");
    };
    run("filecreate", "write", "");
    let names = scratch.names();
    assert_eq!((names.len(), names[0].as_str()), (10, "filecreate.0.0"));
    assert!(names.iter().all(|name| fs::metadata(scratch.join(name)).unwrap().len() == 0));
    run("dircreate", "write", "");
    assert!(scratch.join("dircreate.1.4").is_dir());
    run("dirstat", "read", "");
    assert!(scratch.join("dirstat.0.0").is_dir(), "fio leaves what it made for the job");
    run("dirdelete", "write", "");
    assert!(scratch.names().iter().all(|name| !name.starts_with("dirdelete")), "{:?}", scratch.names());
    // What a run made goes with it where it is asked to; what was there stays.
    let kept = scratch.names().len();
    for engine in ["filecreate", "dircreate", "dirstat"] {
        run(
            engine,
            if engine == "dirstat" { "read" } else { "write" },
            " --unlink=1 --filename_format=gone.$jobname.$jobnum.$filenum",
        );
    }
    assert_eq!(scratch.names().len(), kept, "{:?}", scratch.names());
}

#[test]
fn names_of_others_are_neither_made_nor_removed() {
    let scratch = Scratch::new();
    fs::create_dir(scratch.join("mine")).unwrap();
    fs::write(scratch.join("file"), "precious").unwrap();
    for (engine, name, expected) in [
        ("dirdelete", "mine", "the directory was not created by this run"),
        ("dircreate", "mine", "is there already"),
        ("filecreate", "file", "is there already"),
        ("dirstat", "file", "is no directory"),
    ] {
        let ended =
            scratch.run(&format!("as fio --name=x --filename={name} --filesize=4k --ioengine={engine}"));
        assert_eq!(ended.code, Some(2), "{engine}: {}", ended.stdout);
        assert!(ended.stderr.contains(expected), "{engine}: {}", ended.stderr);
    }
    assert_eq!(
        (scratch.names().len(), fs::read_to_string(scratch.join("file")).unwrap()),
        (2, "precious".to_owned())
    );
}

#[test]
fn a_processor_is_kept_busy_for_a_share_of_the_time() {
    let scratch = Scratch::new();
    let words = "as --json record.json fio --name=x --ioengine=cpuio --runtime=1 --time_based --cpuchunks=10000 --output-format=json";
    for mode in ["noop", "qsort"] {
        let ended = scratch.run(&format!("{words} --cpuload=50 --cpumode={mode}"));
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        let job = &json(&ended)["jobs"][0];
        // 20 ms a turn; a machine that is busy does fewer, and none does more.
        let done = job["read"]["total_ios"].as_u64().unwrap();
        assert!((1..=50).contains(&done), "{mode}: {done}");
        let record = crate::support::read_record(&scratch.join("record.json"));
        let worker = &record["phases"][0]["samples"]["workers"][0];
        let busy_ns = worker["cpu_user_ns"].as_u64().unwrap() + worker["cpu_system_ns"].as_u64().unwrap();
        assert!(busy_ns < 800_000_000, "half of the time it sleeps: {busy_ns}");
        assert_eq!(record["phases"][0]["plan"]["options"]["burn"]["sorts"], mode == "qsort");
        assert_eq!(
            record["phases"][0]["plan"]["load"]["think"]["pause_ns"], 10_000_000,
            "{}",
            record["phases"][0]["plan"]["load"]
        );
    }
    for (more, expected) in [
        ("", "cpuload: engine cpuio requires it"),
        (" --cpuload=101", "cpuload: "),
        (" --cpuload=5 --cpumode=x", "cpumode: "),
    ] {
        let ended = scratch.run(&format!("{words}{more}"));
        assert!(ended.code == Some(2) && ended.stderr.contains(expected), "{more}: {}", ended.stderr);
    }
    let ended = scratch.run("as fio --name=x --ioengine=cpuio --cpuload=50");
    assert!(ended.code == Some(2) && ended.stderr.contains("runtime: engine cpuio"), "{}", ended.stderr);
}

#[test]
fn a_program_runs_beside_a_job_and_is_ended_with_its_time() {
    let scratch = Scratch::new();
    fs::write(scratch.join("say.sh"), "echo \"$1 $2\"\necho wrong >&2\nexit $3\n").unwrap();
    let fio = |words: &str| scratch.run(&format!("as fio --ioengine=exec --output-format=json {words}"));
    let words = [
        "as",
        "fio",
        "--ioengine=exec",
        "--name=say",
        "--runtime=7",
        "--program=/bin/sh",
        "--arguments=say.sh %n %r 0",
    ];
    let ended = scratch.run_words(&words);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert_eq!(fs::read_to_string(scratch.join("say.stdout")).unwrap(), "say 7\n");
    assert_eq!(fs::read_to_string(scratch.join("say.stderr")).unwrap(), "wrong\n");
    // Told to end by SIGTERM after a second: no failure.
    let begun = std::time::Instant::now();
    let ended = fio("--name=sleep --program=/bin/sleep --arguments=100 --runtime=1 --std_redirect=0");
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(begun.elapsed() >= std::time::Duration::from_secs(1) && begun.elapsed().as_secs() < 90);
    assert!(!scratch.join("sleep.stdout").exists());
    let ended = fio("--name=x --program=/no/such/program");
    assert!(ended.code == Some(1) && ended.stderr.contains("No such file"), "{}", ended.stderr);
    let words = ["as", "fio", "--ioengine=exec", "--name=x", "--program=/bin/sh", "--arguments=say.sh a b 3"];
    assert_eq!(scratch.run_words(&words).code, Some(1), "a program that fails fails the job");
    let ended = fio("--name=x");
    assert!(
        ended.code == Some(2) && ended.stderr.contains("program: engine exec requires it"),
        "{}",
        ended.stderr
    );
}
