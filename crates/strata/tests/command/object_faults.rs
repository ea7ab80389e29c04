//! Object stores that are full, damaged, of another version, or whose engine is killed.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::engines::Engine;
use crate::support::{Scratch, assert_partial, total};

/// Every file below a directory.
fn files(directory: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

/// Changes every place in the files of a store where these bytes stand; how many there were.
fn damage(store: &Path, bytes: &[u8]) -> usize {
    let mut found = 0;
    for file in files(store) {
        let mut content = std::fs::read(&file).unwrap();
        let places: Vec<usize> = content
            .windows(bytes.len())
            .enumerate()
            .filter(|(_, part)| *part == bytes)
            .map(|(at, _)| at)
            .collect();
        for at in &places {
            content[*at] ^= 0x40;
        }
        if !places.is_empty() {
            std::fs::write(&file, content).unwrap();
        }
        found += places.len();
    }
    found
}

#[test]
fn damaged_data_is_named_and_never_returned() {
    let scratch = Scratch::new();
    let load = "--dkeys 50 --value-size 4k --content 0x737472617461206f626a656374206c61";
    scratch.measured(&format!("object vos:store --op put {load} --keep"));
    assert!(damage(&scratch.join("store"), b"strata object lastrata object la") > 0);
    let (ended, record) = scratch
        .measure(&format!("object vos:store --op get {load} --no-fill --count 50 --on-error continue"));
    assert_partial(&scratch, &ended, &record, "get failed");
    let notes = record["phases"][0]["notes"].to_string();
    assert!(notes.contains("checksum") && notes.contains("dkey blade-"), "{notes}");
    assert_eq!(total(&record, 0, "operations"), 0, "nothing damaged was taken for data");
}

#[test]
fn a_full_log_ends_the_phase_and_keeps_what_was_measured() {
    let scratch = Scratch::new();
    let (ended, record) =
        scratch.measure("object vos:store --op put --dkeys 100000 --value-size 4k --scm 16m --keep");
    assert_partial(&scratch, &ended, &record, "No space left on device");
    let stored = total(&record, 0, "operations").as_u64().unwrap();
    assert!(stored > 1000 && stored < 4096, "{stored}");
    // What was acknowledged is there.
    let record = scratch.measured(&format!(
        "object vos:store --op get --dkeys 100000 --value-size 4k --no-fill --count {stored}"
    ));
    assert_eq!(total(&record, 0, "errors"), 0);
}

#[test]
fn a_full_data_file_ends_the_phase() {
    let scratch = Scratch::new();
    let (ended, record) =
        scratch.measure("object vos:store --op write --records 1000 --value-size 1m --scm 64m --nvme 32m");
    assert_partial(&scratch, &ended, &record, "No space left on device");
    let stored = total(&record, 0, "operations").as_u64().unwrap();
    assert!((8..=96).contains(&stored), "{stored}");
    assert_eq!(scratch.names(), ["record.json"]);
}

#[test]
fn a_store_of_another_version_is_refused() {
    let scratch = Scratch::new();
    scratch.measured("object vos:store --op put --dkeys 10 --keep");
    let superblock = scratch.join("store/superblock");
    let mut bytes = std::fs::read(&superblock).unwrap();
    // The version follows the magic number.
    bytes[8] = 99;
    std::fs::write(&superblock, bytes).unwrap();
    for words in ["object vos:store --op get --dkeys 10 --count 10", "pool query vos:store"] {
        let ended = scratch.run(words);
        assert_eq!(ended.code, Some(2), "{words}");
        assert!(ended.stderr.contains("format version 99"), "{words}: {}", ended.stderr);
    }
}

#[test]
fn words_that_a_store_cannot_follow() {
    let scratch = Scratch::new();
    for (words, expected) in [
        ("object vos:store --op fry", "--op"),
        ("object vos:store", "no operation is specified: use --op"),
        ("object nowhere: --op put", "is not a target of the object layer"),
        ("object vos: --op put", "vos: requires a directory"),
        ("object vos:store --op put --class RP_3G1", "class RP_3G1 needs 3 targets, but the store has 1"),
        ("object vos:store --op put --class EC_3P1", "--class"),
        ("object vos:store --op put --block-size 4k", "--value-size"),
        ("object vos:store --op put --depth 100000", "depth"),
        ("object null: --op put --scm 1g", "--scm"),
        ("object vos:store --op put --dkeys 0", "--dkeys"),
        ("object vos:store null: --op put", "unexpected value 'null:'"),
        ("media data --op read --dkeys 4", "it only for the object layer"),
    ] {
        let ended = scratch.run(words);
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""), "{words}: {}", ended.stderr);
        assert!(ended.stderr.contains(expected), "{words}: {}", ended.stderr);
        assert_eq!(ended.stderr.lines().count(), 1, "{words}: {}", ended.stderr);
    }
    assert!(scratch.names().is_empty(), "{:?}", scratch.names());
}

/// Longest wait for an engine that was killed to serve again.
const AGAIN: Duration = Duration::from_secs(30);

#[test]
fn an_engine_that_is_killed_loses_nothing_acknowledged() {
    let scratch = Scratch::new();
    let start = |listen: &str| {
        Engine::start(scratch.path(), &format!("--dir tank --pool fields --scm 512m --listen {listen}"))
    };
    let engine = start("127.0.0.1:0");
    let at = engine.uri().replacen("tcp://", "", 1);
    let target = format!("engine://{at}/fields");
    let load = "--dkeys 1000000 --value-size 1k --verify --seed 9";
    let mut running = scratch.start(&format!(
        "object {target} --op put {load} --depth 4 --keep --on-error stop --timeout 5s --live-csv - --json record.json"
    ));
    // The engine makes room before its first put.
    let has_put =
        |row: &str| row.split(',').nth(7).and_then(|operations| operations.parse().ok()) > Some(0_u64);
    while !has_put(&running.await_row("put")) {}
    engine.signal(rustix::process::Signal::KILL);
    engine.end();
    let ended = running.end();
    let record = crate::support::read_record(&scratch.join("record.json"));
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    assert_eq!(record["status"], "partial");
    let told = format!("{} {}", record["failure"], record["phases"][0]["notes"]);
    assert!(told.contains(&at) || told.contains("endpoint") || told.contains("Connection"), "{told}");
    let stored = total(&record, 0, "operations").as_u64().unwrap();
    assert!(stored > 0);

    let since = Instant::now();
    let again = start(&at);
    assert!(since.elapsed() < AGAIN);
    assert!(again.line.contains(&at), "{}", again.line);
    // Workers go through keys in order: all that was acknowledged is among the first.
    let record = scratch.measured(&format!("object {target} --op get {load} --no-fill --count {stored}"));
    assert_eq!(
        (total(&record, 0, "operations").as_u64(), total(&record, 0, "errors").as_u64()),
        (Some(stored), Some(0))
    );
}

/// An engine that stands still for longer than the time-out is named with what helps; its connections are opened again within the phase.
#[test]
fn an_engine_that_is_late_is_named_and_connected_to_again() {
    let scratch = Scratch::new();
    let engine = Engine::start(scratch.path(), "--dir tank --pool fields --scm 512m --listen 127.0.0.1:0");
    let at = engine.uri().replacen("tcp://", "", 1);
    let mut running = scratch.start(&format!(
        "object engine://{at}/fields --op put --dkeys 1000 --value-size 1k --time 60s --depth 2 --keep \
         --on-error continue --timeout 1s --interval 100ms --live-csv - --json record.json"
    ));
    let field =
        |row: &str, at: usize| row.split(',').nth(at).and_then(|field| field.parse().ok()).unwrap_or(0_u64);
    while field(&running.await_row("put"), 7) == 0 {}
    engine.signal(rustix::process::Signal::STOP);
    // Longer than the time-out, whatever the machine is busy with: no more rows with operations, for long.
    std::thread::sleep(Duration::from_secs(4));
    engine.signal(rustix::process::Signal::CONT);
    let before = field(&running.await_row("put"), 7);
    while field(&running.await_row("put"), 7) <= before + 100 {}
    running.signal(rustix::process::Signal::INT);
    let ended = running.end();
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    let record = crate::support::read_record(&scratch.join("record.json"));
    let samples = &record["phases"][0]["samples"];
    let errors = samples["workers"][0]["errors"].to_string();
    let place = format!("tcp://{at}#");
    for expected in [&*place, "did not answer within 1s", "--timeout", "os error 110"] {
        assert!(errors.contains(expected), "{expected}: {errors}");
    }
    let tallies = samples["workers"][0]["tallies"].to_string();
    assert!(tallies.contains("sessions_reopened"), "{tallies}");
    let shown = scratch.run("report record.json").stdout;
    assert!(shown.contains("sessions reopened"), "{shown}");
}
