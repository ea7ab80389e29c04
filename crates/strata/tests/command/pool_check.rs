//! `strata pool check`: what it finds, what it mends, and that it changes nothing unless it is told to.

use std::collections::BTreeMap;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use rustix::process::Signal;
use serde_json::Value;

use crate::engines::Engine;
use crate::pool::target;
use crate::support::Scratch;

fn check(scratch: &Scratch, words: &str, code: i32) -> Value {
    let ended = scratch.run(&format!("pool check vos:tank --json {words}"));
    assert_eq!(ended.code, Some(code), "{words}: {} {}", ended.stdout, ended.stderr);
    serde_json::from_str(&ended.stdout).unwrap_or_else(|error| panic!("{error}: {}", ended.stdout))
}

/// All files below a directory, with what they hold.
fn content(dir: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut all = BTreeMap::new();
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            all.extend(content(&path));
        } else {
            all.insert(path.clone(), std::fs::read(&path).unwrap());
        }
    }
    all
}

/// Flips a bit of a file where a key stands, `beyond` bytes behind it.
fn flip(path: &Path, key: &[u8], beyond: usize) {
    let bytes = std::fs::read(path).unwrap();
    let at = bytes.windows(key.len()).position(|window| window == key).expect("the key is there") + beyond;
    let file = std::fs::OpenOptions::new().write(true).open(path).unwrap();
    file.write_all_at(&[bytes[at] ^ 0x10], at as u64).unwrap();
}

/// A pool in memory with some values, closed.
fn filled(options: &str, load: &str) -> Scratch {
    let scratch = Scratch::new();
    let made = scratch.run(&format!("pool create vos:tank --scm 64m {options}"));
    assert_eq!(made.code, Some(0), "{}", made.stderr);
    scratch.measured(&format!("object vos:tank --op put --dkeys 40 --container mine --keep {load}"));
    scratch
}

/// Where a key of a filled pool stands: the log of a target that has it.
fn log_with(scratch: &Scratch, key: &[u8]) -> Vec<PathBuf> {
    let logs = (0..8).map(|target| scratch.join(&format!("tank/target.{target}/log")));
    let has = |path: &PathBuf| {
        std::fs::read(path).is_ok_and(|bytes| bytes.windows(key.len()).any(|window| window == key))
    };
    logs.filter(has).collect()
}

/// The dkey of a value in the log of the first target.
fn some_key(scratch: &Scratch) -> Vec<u8> {
    let bytes = std::fs::read(scratch.join("tank/target.0/log")).unwrap();
    // Kind 1 is a single value; lengths of its keys follow.
    let is_value = |line: &&[u8]| line[4] == 1 && line[6] > 1 && line[7] == 0 && line[..4] != [0; 4];
    let (number, head) =
        bytes.chunks(64).enumerate().skip(1).find(|(_, line)| is_value(line)).expect("a value");
    bytes[(number + 1) * 64..][..usize::from(head[6])].to_vec()
}

#[test]
fn a_check_changes_nothing_and_finds_a_flipped_byte() {
    let scratch = filled("", "--value-size 3000");
    let before = content(&scratch.join("tank"));
    let clean = check(&scratch, "", 0);
    assert_eq!(
        (&clean["findings"], &clean["is_closed"]),
        (&Value::Array(Vec::new()), &true.into()),
        "{clean}"
    );
    assert!(
        clean["records"].as_u64() >= Some(40) && clean["verified_bytes"].as_u64() >= Some(120_000),
        "{clean}"
    );
    let text = scratch.run("pool check vos:tank").stdout;
    assert!(text.contains("result      clean"), "{text}");
    assert_eq!(content(&scratch.join("tank")), before, "a check changed a file");

    let key = some_key(&scratch);
    flip(&scratch.join("tank/target.0/log"), &key, 1000);
    let before = content(&scratch.join("tank"));
    let found = check(&scratch, "", 1);
    let findings = found["findings"].as_array().unwrap();
    assert_eq!(findings.len(), 1, "{found}");
    assert_eq!(
        (&findings[0]["kind"], &findings[0]["can_repair"]),
        (&"value".into(), &false.into()),
        "{found}"
    );
    assert_eq!(findings[0]["dkey"], key.escape_ascii().to_string(), "{found}");
    assert_eq!(content(&scratch.join("tank")), before, "a check changed a file");
    // What nothing mends stays, and is said again.
    let repair = check(&scratch, "--repair", 1);
    assert_eq!(repair["after"]["findings"].as_array().map(Vec::len), Some(1), "{repair}");
    let text = scratch.run("pool check vos:tank");
    assert_eq!(text.code, Some(1));
    assert!(text.stdout.contains("write it again, or remove it"), "{}", text.stdout);
}

#[test]
fn a_replicated_value_is_repaired_from_its_copy() {
    let scratch = filled("--store-targets 2", "--value-size 3000 --class RP_2G1 --verify");
    let key = some_key(&scratch);
    let logs = log_with(&scratch, &key);
    assert_eq!(logs.len(), 2, "a copy on each target");
    flip(&logs[0], &key, 1000);
    let found = check(&scratch, "", 1);
    let findings = found["findings"].as_array().unwrap();
    assert_eq!(findings.len(), 1, "{found}");
    assert_eq!(findings[0]["can_repair"], true, "{found}");
    assert!(findings[0]["plan"].as_str().unwrap().contains("from the copy on target"), "{found}");
    let repair = check(&scratch, "--repair", 0);
    assert_eq!(repair["after"]["findings"].as_array().map(Vec::len), Some(0), "{repair}");
    check(&scratch, "", 0);
    // Damage of the other copy afterwards: the mended one serves.
    flip(&logs[1], &key, 1000);
    let record = scratch.measured("object vos:tank --op get --dkeys 40 --container mine --keep --no-fill --verify --value-size 3000 --class RP_2G1");
    assert_eq!(record["phases"][0]["plan"]["verify"], true, "every byte was compared");
    let ended = scratch.run("pool check vos:tank --repair");
    assert_eq!(ended.code, Some(0), "{}", ended.stdout);
    assert!(ended.stdout.contains("checked again\nresult      clean"), "{}", ended.stdout);
}

#[test]
fn a_coded_value_is_repaired_from_its_other_cells() {
    for shard in 0..3 {
        let scratch = filled("--store-targets 3", "--value-size 3000 --class EC_2P1G1");
        let key = some_key(&scratch);
        let logs = log_with(&scratch, &key);
        assert_eq!(logs.len(), 3, "a cell on each target");
        flip(&logs[shard], &key, 400);
        let found = check(&scratch, "", 1);
        assert_eq!(found["findings"][0]["can_repair"], true, "{found}");
        check(&scratch, "--repair", 0);
        check(&scratch, "", 0);
    }
}

#[test]
fn a_pool_that_is_open_is_not_checked_and_an_engine_names_the_way() {
    let scratch = filled("", "");
    let engine = Engine::start(scratch.path(), "--dir tank --pool fields");
    let ended = scratch.run("pool check vos:tank");
    assert_ne!(ended.code, Some(0));
    assert!(ended.stderr.contains("the pool is open already"), "{}", ended.stderr);
    let ended = scratch.run(&format!("pool check {}/fields", target(&engine)));
    assert_eq!(ended.code, Some(2));
    assert!(ended.stderr.contains("strata pool check vos:DIR"), "{}", ended.stderr);
    drop(engine);
    check(&scratch, "", 0);
    for (words, expected) in [("vos:none", "contains no pool"), ("s3://bucket", "accepted: vos:DIR")] {
        let ended = scratch.run(&format!("pool check {words}"));
        assert_eq!(ended.code, Some(2), "{words}: {}", ended.stderr);
        assert!(ended.stderr.contains(expected), "{words}: {}", ended.stderr);
    }
}

#[test]
fn a_pool_whose_run_was_killed_is_clean() {
    for class in ["S1", "RP_2G1", "EC_2P1G1"] {
        let scratch = Scratch::new();
        assert_eq!(scratch.run("pool create vos:tank --scm 256m --store-targets 3").code, Some(0));
        let load = "--dkeys 2000 --value-size 512 --container mine --keep --time 60s --threads 2";
        let words = format!("object vos:tank --op put {load} --class {class} --durability sync --live-csv -");
        let mut running = scratch.start(&words);
        running.await_row("put");
        running.signal(Signal::KILL);
        running.end();
        // An update that was cut off between two copies or cells is taken back when the pool is opened, to be looked at, too.
        let report = check(&scratch, "", 0);
        assert_eq!(report["findings"], serde_json::json!([]), "{class}: {report}");
    }
}

/// Parts of stripes are written over while the engine is killed: parity fits the data, and all that was acknowledged is there.
#[test]
fn an_engine_that_is_killed_leaves_no_stripe_half_written() {
    for class in ["EC_2P1G1", "RP_3G1"] {
        let scratch = Scratch::new();
        for round in 0..4 {
            let engine = Engine::start(scratch.path(), "--dir tank --pool fields --scm 192m --targets 3");
            let load = "--op write --records 64 --value-size 3000 --depth 8 --threads 2 --keep --time 60s";
            let at = format!("{}/fields", target(&engine));
            let words = format!(
                "object {at} {load} --class {class} --destroy-data --acknowledged said.{round} --live-csv -"
            );
            let mut running = scratch.start(&words);
            running.await_row("write");
            let said = scratch.join(&format!("said.{round}"));
            while std::fs::metadata(&said).map_or(0, |facts| facts.len()) < 60_000 {
                std::thread::yield_now();
            }
            engine.signal(Signal::KILL);
            let _ = engine.end();
            running.end();
            let report = check(&scratch, "", 0);
            assert_eq!(report["findings"], serde_json::json!([]), "{class}: {report}");
            let ended = scratch.run(&format!("object audit said.{round} vos:tank --json"));
            assert_eq!(ended.code, Some(0), "{class}: {} {}", ended.stdout, ended.stderr);
        }
    }
}
