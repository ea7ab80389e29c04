//! `strata wal`: logs of databases beside what these need; what is refused, what is left.

use std::fs;

use rustix::process::Signal;
use serde_json::Value;

use crate::support::{Mounted, NO_ROOT, Scratch, assert_partial, names_in, read_record, skipped};

fn scratch() -> Scratch {
    let scratch = Scratch::new();
    fs::create_dir(scratch.join("db")).unwrap();
    scratch
}

fn figure<'a>(record: &'a Value, key: &str) -> &'a Value {
    let figures = record["preset"]["figures"].as_array().unwrap();
    figures.iter().find(|figure| figure["key"] == key).unwrap_or_else(|| panic!("no {key}"))
}

#[test]
fn every_log_is_measured_beside_what_its_database_needs() {
    let scratch = scratch();
    let record = scratch.measured("wal db --commits 30 --rounds 2 --live none");
    for key in ["etcd light load", "etcd heavy load", "postgresql", "sqlite", "rocksdb"] {
        let figure = figure(&record, key);
        assert!(figure["value"].as_f64().unwrap() > 0.0, "{figure}");
        let rounds = figure["rounds"].as_array().unwrap();
        assert_eq!(rounds.len(), 2, "{figure}");
        for at in rounds {
            let phase = &record["phases"][usize::try_from(at.as_u64().unwrap()).unwrap()];
            let name = key.split(' ').next().unwrap();
            assert_eq!(phase["plan"]["name"], format!("{name} run"));
            assert_eq!(phase["observations"]["commits"]["commits"], 30, "{name}");
        }
    }
    assert_eq!(figure(&record, "etcd heavy load")["stated"], 500.0);
    assert_eq!(figure(&record, "postgresql")["stated"], Value::Null);
    let p99 = figure(&record, "etcd p99");
    assert!(p99["value"].is_null() && p99["reason"].as_str().unwrap().contains("--commits"), "{p99}");
    assert_eq!(record["preset"]["verdict"].as_array().unwrap().len(), 4);
    assert!(names_in(&scratch.join("db")).is_empty());
    let text = scratch.run("report record.json").stdout;
    for part in ["wal db", "needed", "not stated", "no published requirement", "rule of thumb"] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn clients_commit_together_beside_a_file_of_the_database() {
    let scratch = scratch();
    fs::write(scratch.join("db/pg_control"), "theirs").unwrap();
    let record = scratch.measured(
        "wal db/pg_control --only postgresql,sqlite --clients 4 --commits 300 --rounds 2 --live none",
    );
    let commits = |key: &str| {
        let at = figure(&record, key)["rounds"][0].as_u64().unwrap();
        record["phases"][usize::try_from(at).unwrap()]["observations"]["commits"]["commits"].clone()
    };
    assert_eq!((commits("postgresql"), commits("sqlite")), (1200.into(), 300.into()));
    assert!(figure(&record, "postgresql p99")["value"].as_f64().unwrap() > 0.0);
    assert_eq!(names_in(&scratch.join("db")), ["pg_control"]);
    assert_eq!(fs::read_to_string(scratch.join("db/pg_control")).unwrap(), "theirs");
}

#[test]
fn what_cannot_be_is_refused_and_nothing_is_made() {
    let scratch = scratch();
    let cases = [
        ("wal", "<DIR|FILE>"),
        ("wal db --only oracle", "etcd, postgresql, sqlite, rocksdb"),
        ("wal db --commits 0", "1 to 1000000"),
        ("wal db --rounds 1", "2 to 100"),
        ("wal db --clients 0", "1 to 1024"),
        ("wal none", "none"),
        ("wal tcp://127.0.0.1:1", "target"),
    ];
    for (words, accepted) in cases {
        let ended = scratch.run(words);
        assert_eq!(ended.code, Some(2), "{words}: {}{}", ended.stdout, ended.stderr);
        assert!(ended.stderr.contains(accepted), "{words}: {}", ended.stderr);
        assert_eq!(ended.stderr.trim_end().lines().count(), 1, "{words}: {}", ended.stderr);
    }
    assert_eq!(scratch.names(), ["db"]);
    assert!(names_in(&scratch.join("db")).is_empty());
}

#[test]
fn an_interrupted_measurement_keeps_what_it_has_and_leaves_nothing() {
    let scratch = scratch();
    let running = scratch.start("wal db --only etcd,sqlite --commits 100000 --live none --json record.json");
    running.await_that(|| {
        let text = fs::read_to_string(scratch.join("record.json")).unwrap_or_default();
        text.contains("\"etcd load\"")
    });
    running.signal(Signal::INT);
    let ended = running.end();
    let record = read_record(&scratch.join("record.json"));
    assert_partial(&scratch, &ended, &record, "interrupted");
    assert!(figure(&record, "sqlite")["value"].is_null());
    assert!(record["preset"]["verdict"].to_string().contains("sqlite: not measured"));
    assert!(names_in(&scratch.join("db")).is_empty());
}

#[test]
fn a_full_file_system_is_told() {
    let scratch = Scratch::new();
    let Some(mounted) = Mounted::tmpfs("4m") else {
        return skipped("wal", NO_ROOT);
    };
    let ended = scratch.run(&format!("wal {} --only etcd --commits 100", mounted.path().display()));
    assert_eq!(ended.code, Some(2), "{}{}", ended.stdout, ended.stderr);
    assert!(ended.stderr.contains("4 MiB free"), "{}", ended.stderr);
    assert!(names_in(mounted.path()).is_empty());
}
