//! Databases: logs with group commit, pages at random, checkpoints and recovery, on every kind of target; damage; what cannot be.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use testkit::s3::{S3Options, S3Server};

use crate::engines::Engine;
use crate::support::{Running, Scratch, assert_partial, class, names_in, read_record};

pub(crate) const SMALL: &str = "--steps 2 --set interval=20,clients=3,pages=64,reads=30,dirty=10,readers=2";

pub(crate) fn scratch() -> Scratch {
    let scratch = Scratch::new();
    fs::create_dir(scratch.join("data")).unwrap();
    scratch
}

/// Calls of a phase by class; none where it has none.
pub(crate) fn calls(record: &Value, phase: usize, name: &str) -> u64 {
    let classes = record["phases"][phase]["samples"]["classes"].as_array().unwrap();
    if classes.iter().any(|class| class == name) { class(record, phase, name).0 } else { 0 }
}

/// A database with so many commits, with syncs or without.
pub(crate) fn check(record: &Value, commits: u64, has_syncs: bool) {
    let seen = &record["phases"][1]["observations"]["commits"];
    assert_eq!((seen["commits"].as_u64(), seen["checkpoints"].as_u64()), (Some(commits), Some(2)), "{seen}");
    assert_eq!((class(record, 1, "append").0, class(record, 1, "commit").0), (commits, commits));
    assert_eq!((class(record, 1, "read").0, class(record, 1, "update").0), (2 * 2 * 30, 2 * 10));
    let (syncs, most) = (seen["syncs"].as_u64().unwrap(), seen["commits_per_sync_max"].as_u64().unwrap());
    if has_syncs {
        assert!((1..=commits).contains(&syncs) && (1..=3).contains(&most), "{seen}");
        let each = seen["commits_per_sync"].as_f64().unwrap();
        assert!((each - commits as f64 / syncs as f64).abs() < 1e-9, "{seen}");
    } else {
        assert_eq!((syncs, &seen["commits_per_sync"]), (0, &Value::Null));
    }
    assert_eq!(record["phases"][2]["observations"]["commits"]["recovered_records"], commits);
    let places = seen["objects"].as_u64().unwrap_or(commits);
    assert_eq!((class(record, 2, "recover").0, class(record, 2, "read").0), (places, 64));
}

#[test]
fn every_log_is_written_and_recovered_on_files() {
    let scratch = scratch();
    for (wal, commits, zeros) in [
        ("postgresql", 120, 16),
        ("sqlite", 40, 0),
        ("rocksdb", 120, 0),
        ("etcd", 120, 62),
        ("own,record=100,segment=500", 120, 0),
    ] {
        let record = scratch.measured(&format!("app database data {SMALL},wal={wal}"));
        check(&record, commits, true);
        assert_eq!(calls(&record, 0, "allocate"), zeros, "{wal}");
        assert_eq!(record["phases"][1]["plan"]["name"], "database run");
    }
    let record = scratch.measured(&format!("app database data {SMALL} --target-options direct=true"));
    check(&record, 120, true);
    let ended = scratch.run(&format!("app database data {SMALL}"));
    for part in
        ["120 commits in ", " per sync", "2 checkpoints", "recovered 120 records; no acknowledged commit"]
    {
        assert!(ended.stdout.contains(part), "{part}: {}{}", ended.stdout, ended.stderr);
    }
    assert!(names_in(&scratch.join("data")).is_empty());
}

#[test]
fn a_database_runs_on_objects_and_files_over_them() {
    let scratch = scratch();
    assert_eq!(scratch.run("pool create vos:pool --scm 256m").code, Some(0));
    let small = format!("{SMALL},wal=own,record=1000,segment=10000");
    check(&scratch.measured(&format!("app database dfs+vos:pool {small}")), 120, true);
    check(&scratch.measured(&format!("app database vos:pool {small}")), 120, false);
    let record = scratch.measured(&format!("app database null: {small}"));
    assert_eq!(record["phases"][1]["observations"]["commits"]["commits"], 120);
    let words = "--no-attach-info --interface lo --pool tank --dir served --scm 128m --nvme 256m --listen";
    let engine = Engine::start_words(scratch.path(), &format!("engine {words} 127.0.0.1:0"));
    let address = engine.uri().strip_prefix("tcp://").unwrap().to_owned();
    check(&scratch.measured(&format!("app database engine://{address}/tank/objects {small}")), 120, false);
    check(&scratch.measured(&format!("app database dfs+engine://{address}/tank/files {small}")), 120, true);
}

#[test]
fn a_load_that_is_cut_short_is_recovered_as_far_as_it_came() {
    let scratch = scratch();
    let record = scratch.measured(
        "app database data --time 300ms --steps 1000 --set interval=1000,clients=2,pages=16,wal=own,record=64",
    );
    let seen = &record["phases"][1]["observations"]["commits"];
    let (commits, found) = (seen["commits"].as_u64().unwrap(), class(&record, 2, "recover").0);
    assert!(commits > 0 && commits <= found && found < 2_000_000, "{commits} {found}");
}

#[test]
fn what_cannot_be_is_refused_before_anything_is_made() {
    let scratch = scratch();
    for (more, told) in [
        ("--set wal=oracle", "postgresql, sqlite, rocksdb, etcd"),
        ("--set wal=own,record=8", "at least 16 bytes"),
        ("--set wal=own,record=4KiB,segment=1KiB", "segments that hold at least one record"),
        ("--set wal=sqlite --target-options direct=true", "items of the set wal must be multiples of 4096"),
        ("--set interval=100000000", "at most 268435456 records"),
        ("--set files=page,wal=own,record=1MiB,interval=1000,clients=2000", "a transfer of 1 byte to 1GiB"),
    ] {
        let ended = scratch.run(&format!("app database data {more}"));
        assert_eq!(ended.code, Some(2), "{more}: {}", ended.stderr);
        assert!(ended.stderr.contains(told), "{more}: {}", ended.stderr);
        assert!(names_in(&scratch.join("data")).is_empty(), "{more}");
    }
    let (server, options) = (S3Server::start(S3Options::default()).unwrap(), S3Options::default());
    server.store().create_bucket("pages");
    let keys =
        [("AWS_ACCESS_KEY_ID", options.access.clone()), ("AWS_SECRET_ACCESS_KEY", options.secret.clone())];
    let words = format!("app database s3://pages --target-options s3-endpoint={}", server.endpoint());
    let ended = scratch.start_in(&words, &keys).end();
    for told in ["s3 writes whole objects", "database: --set files=page"] {
        assert!(ended.code == Some(2) && ended.stderr.contains(told), "{}", ended.stderr);
    }
}

/// The logs of a run whose second interval begins after a pause, once the first is written.
pub(crate) fn paused(
    scratch: &Scratch,
    more: &str,
    is_written: impl Fn(&Path) -> bool,
) -> (Running, PathBuf) {
    let description = scratch.run("app show database --toml").stdout;
    let steps = "items = \"interval\"\neach = [\"append wal\", \"commit wal\"]";
    assert!(description.contains(steps));
    let slow = description.replace(steps, &format!("{steps}\ncompute = \"1500ms\"\nend = [\"compute\"]"));
    fs::write(scratch.join("slow.toml"), slow).unwrap();
    let words = format!(
        "app slow.toml data --steps 1 --set interval=20,clients=2,pages=8,reads=8,dirty=8,wal=own,record=512{more} --json record.json"
    );
    let running = scratch.start(&words);
    let data = scratch.join("data");
    let log = running.await_some(|| {
        let top = names_in(&data).into_iter().find(|name| name.starts_with("strata-app-"))?;
        let logs = data.join(top).join("wal");
        is_written(&logs).then_some(logs)
    });
    (running, log)
}

/// Whether a log has so many records of 512 bytes: the record at the last place is not the last one that is written.
pub(crate) fn is_whole(log: &Path, records: usize) -> bool {
    let is_written = |record: &[u8]| record.iter().any(|byte| *byte != 0);
    fs::read(log).is_ok_and(|bytes| bytes.len() == records * 512 && bytes.chunks(512).all(is_written))
}

/// A change of the bytes of a log.
type Damage = fn(&mut Vec<u8>);

#[test]
fn records_that_are_damaged_or_lost_are_named() {
    let damages: [(&str, Damage); 3] = [
        ("byte 100 of the record", |bytes| bytes[512 * 3 + 100] ^= 1),
        ("twice", |bytes| bytes.copy_within(512..1024, 512 * 5)),
        ("only 40 records exist", |bytes| bytes[512..1024].fill(0xff)),
    ];
    for (told, damage) in damages {
        let scratch = scratch();
        let (running, logs) = paused(&scratch, "", |logs| is_whole(&logs.join("0"), 40));
        let log = logs.join("0");
        let mut bytes = fs::read(&log).unwrap();
        damage(&mut bytes);
        fs::write(&log, bytes).unwrap();
        let ended = running.end();
        let record = read_record(&scratch.join("record.json"));
        assert_partial(&scratch, &ended, &record, told);
        assert!(record["failure"].as_str().unwrap().contains("segment 0, byte "), "{}", record["failure"]);
        assert!(names_in(&scratch.join("data")).is_empty());
    }
}
