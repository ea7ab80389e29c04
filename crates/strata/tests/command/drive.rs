//! `strata drive`: the phases of SNIA's test, the data sheet beside the results, what is refused, what is left.

use std::fs;

use rustix::process::Signal;
use serde_json::Value;

use crate::support::{Loop, Mounted, NO_ROOT, Scratch, assert_partial, class, read_record, skipped};

const KEYS: [&str; 8] = [
    "seq_write",
    "seq_read",
    "rand_write",
    "rand_read",
    "write_latency",
    "write_p99_99",
    "read_latency",
    "read_p99_99",
];
const SHORT: &str = "--size 16m --round 40ms --threads 2 --live none";

fn figure<'a>(record: &'a Value, key: &str) -> &'a Value {
    let figures = record["preset"]["figures"].as_array().unwrap();
    figures.iter().find(|figure| figure["key"] == key).unwrap_or_else(|| panic!("no {key}"))
}

fn names(record: &Value) -> Vec<&str> {
    let phases = record["phases"].as_array().unwrap();
    phases.iter().map(|phase| phase["plan"]["name"].as_str().unwrap()).collect()
}

fn warnings(record: &Value) -> String {
    record["preset"]["warnings"].to_string()
}

#[test]
fn a_file_is_preconditioned_and_measured_in_rounds() {
    let scratch = Scratch::new();
    let record = scratch.measured(&format!(
        "drive data {SHORT} --rounds-max 6 --spec seq_read=1kB/s,rand_read=900G,read_latency=100s,rand_write=1"
    ));
    assert_eq!(names(&record)[0], "precondition");
    // Twice the range, in order.
    assert_eq!(class(&record, 0, "write").1, 2 * (16 << 20));
    let keys: Vec<&str> = record["preset"]["figures"]
        .as_array()
        .unwrap()
        .iter()
        .map(|figure| figure["key"].as_str().unwrap())
        .collect();
    assert_eq!(keys, KEYS);
    for key in ["seq_write", "rand_write", "write_latency"] {
        let figure = figure(&record, key);
        let rounds = figure["rounds"].as_array().unwrap().len();
        assert!((5..=6).contains(&rounds), "{figure}");
        assert_eq!(figure["window"].as_array().unwrap().len(), 5, "{figure}");
        assert_eq!(figure["steady"]["rounds"], rounds, "{figure}");
        let is_steady = figure["steady"]["is_steady"].as_bool().unwrap();
        assert_eq!(!is_steady, warnings(&record).contains(&format!("{key}: no steady state in 6 rounds")));
    }
    assert_eq!(figure(&record, "seq_read")["rounds"].as_array().unwrap().len(), 5);
    assert_eq!(figure(&record, "seq_read")["steady"], Value::Null);
    for (key, finding) in
        [("seq_read", "better"), ("rand_read", "worse"), ("read_latency", "better"), ("rand_write", "better")]
    {
        assert_eq!(figure(&record, key)["finding"], finding, "{}", figure(&record, key));
    }
    assert_eq!(figure(&record, "seq_write")["finding"], Value::Null);
    assert_eq!(figure(&record, "seq_read")["stated"], 1000.0);
    let p99_99 = figure(&record, "write_p99_99");
    assert!(p99_99["value"].is_null() && p99_99["reason"].as_str().unwrap().contains("--round"), "{p99_99}");
    assert!(record["preset"]["verdict"][0].as_str().unwrap().starts_with("3 of 4 data sheet values are met"));
    assert_eq!(scratch.names(), ["record.json"]);
    let text = scratch.run("report record.json").stdout;
    for part in [
        "drive data",
        "purge",
        "SNIA PTS",
        "not stated",
        "below (better)",
        "worse than the data sheet: rand_read",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn a_quick_look_says_that_it_skips_preconditioning() {
    let scratch = Scratch::new();
    let sheet = "seq_write = \"1GB/s\"\nrand_write = 100000\n";
    fs::write(scratch.join("sheet.toml"), sheet).unwrap();
    let record = scratch.measured(&format!("drive data {SHORT} --quick --spec sheet.toml"));
    assert_eq!(names(&record).len(), 6 * 5);
    assert!(!names(&record).contains(&"precondition"));
    assert!(warnings(&record).contains("no preconditioning"), "{}", warnings(&record));
    assert_eq!(figure(&record, "rand_write")["stated"], 100_000.0);
    assert_eq!(figure(&record, "rand_write")["steady"], Value::Null);
    assert!(record["preset"]["verdict"][0].as_str().unwrap().ends_with("without preconditioning"));
}

#[test]
fn without_a_data_sheet_the_results_stand_alone() {
    let scratch = Scratch::new();
    let ended = scratch.run(&format!("drive data {SHORT} --quick --keep"));
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(ended.stdout.contains("no data sheet to compare with: give one with --spec"), "{}", ended.stdout);
    assert_eq!(fs::metadata(scratch.join("data")).unwrap().len(), 16 << 20);
}

#[test]
fn a_device_with_a_file_system_needs_leave() {
    let scratch = Scratch::new();
    let Some(device) = Loop::new(scratch.path(), 32 << 20) else {
        return skipped("drive", NO_ROOT);
    };
    let name = &device.device;
    let made = std::process::Command::new("mkfs.ext4").args(["-q", name]).status();
    if !made.is_ok_and(|status| status.success()) {
        return skipped("drive", "there is no mkfs.ext4 here");
    }
    let before = fs::read(&device.backing).unwrap();
    let ended = scratch.run(&format!("drive {name} --quick --round 20ms"));
    assert_eq!(ended.code, Some(2), "{}", ended.stderr);
    assert!(ended.stderr.contains("--destroy-data"), "{}", ended.stderr);
    assert_eq!(fs::read(&device.backing).unwrap(), before);
    let record = scratch
        .measured(&format!("drive {name} --destroy-data --size 16m --round 20ms --rounds-max 5 --live none"));
    assert_eq!(class(&record, 0, "write").1, 2 * (16 << 20));
    assert!(warnings(&record).contains("16 MiB of 32 MiB were used"), "{}", warnings(&record));
}

#[test]
fn what_cannot_be_is_refused_and_nothing_is_made() {
    let scratch = Scratch::new();
    let cases = [
        ("drive", "<DEVICE|FILE>"),
        ("drive data", "give --size to create it"),
        ("drive data --size 16m --spec seq_raed=1GB/s", "seq_read"),
        ("drive data --size 16m --spec seq_read=7000", "7000MB/s"),
        ("drive data --size 16m --spec read_latency=70", "70us"),
        ("drive data --size 16m --spec none.toml", "give a TOML file"),
        ("drive data --size 16m --quick --rounds-max 9", "leave out one of them"),
        ("drive data --size 16m --rounds-max 4", "5 to 1000"),
        ("drive data --size 16m --round 0", "more than 0"),
        ("drive data --size 16m --depth 0", "1 to 65536"),
        ("drive data --size 1000", "block"),
        ("drive mem: --size 16m", "mem:"),
        ("drive . --size 16m", "directory"),
        ("drive /dev/strata-none --size 16m", "/dev"),
    ];
    for (words, accepted) in cases {
        let ended = scratch.run(words);
        assert_eq!(ended.code, Some(2), "{words}: {}{}", ended.stdout, ended.stderr);
        assert!(ended.stderr.contains(accepted), "{words}: {}", ended.stderr);
        assert_eq!(ended.stderr.trim_end().lines().count(), 1, "{words}: {}", ended.stderr);
    }
    fs::write(scratch.join("theirs"), vec![7; 1 << 20]).unwrap();
    let ended = scratch.run("drive theirs --quick --round 20ms");
    assert_eq!(ended.code, Some(2), "{}", ended.stderr);
    assert_eq!(scratch.names(), ["theirs"]);
    assert_eq!(fs::read(scratch.join("theirs")).unwrap(), vec![7; 1 << 20]);
}

#[test]
fn an_interrupted_test_keeps_what_it_measured() {
    let scratch = Scratch::new();
    let running = scratch
        .start("drive data --size 16m --round 300ms --spec rand_read=1M --live none --json record.json");
    running.await_that(|| {
        let text = fs::read_to_string(scratch.join("record.json")).unwrap_or_default();
        text.contains("\"seq_write 2\"")
    });
    running.signal(Signal::INT);
    let ended = running.end();
    let record = read_record(&scratch.join("record.json"));
    assert_partial(&scratch, &ended, &record, "interrupted");
    assert!(figure(&record, "seq_write")["value"].as_f64().unwrap() > 0.0);
    assert!(figure(&record, "rand_read")["value"].is_null());
    let verdict = record["preset"]["verdict"].to_string();
    assert!(verdict.contains("not measured: rand_read"), "{verdict}");
}

#[test]
fn a_full_file_system_fails_the_test_and_nothing_is_left() {
    let scratch = Scratch::new();
    let Some(mounted) = Mounted::tmpfs("8m") else {
        return skipped("drive", NO_ROOT);
    };
    let file = mounted.path().join("data");
    let ended = scratch.run(&format!("drive {} {SHORT}", file.display()));
    assert_eq!(ended.code, Some(1), "{}{}", ended.stdout, ended.stderr);
    assert!(ended.stderr.contains("space"), "{}", ended.stderr);
    assert!(!file.exists());
}
