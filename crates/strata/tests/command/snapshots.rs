//! Reading at a snapshot: what was true then, whatever was written, removed or damaged since.

use std::path::Path;

use serde_json::Value;

use crate::acknowledged::flip;
use crate::engines::Engine;
use crate::pool::target;
use crate::support::{Scratch, total};

/// Operations that store and read values, and how many there are: keys, extents under akeys, and arrays.
const KINDS: &[(&str, &str, &str, u64)] = &[
    ("put", "get", "dkeys = 24\nvalue_size = '3000'", 24),
    (
        "update",
        "fetch",
        "dkeys = 3\nakeys = 2\nrecords = 4\nvalue = 'array'\nvalue_size = '3000'\nconstant_akey = true",
        24,
    ),
    ("write", "read", "objects = 2\nrecords = 6\nvalue_size = '40k'\nchunk_size = '64k'", 12),
];

/// Runs phases of a job on a target; the record.
fn job(scratch: &Scratch, target: &str, container: &str, common: &str, phases: &[String]) -> Value {
    let mut text = format!(
        "layer = 'object'\ntargets = ['{target}']\ncontainer = '{container}'\nkeep = true\nverify = true\n{common}\n"
    );
    phases.iter().for_each(|phase| text += &format!("[[phase]]\n{phase}\n"));
    std::fs::write(scratch.join("job.toml"), text).unwrap();
    let (ended, record) = scratch.measure("run job.toml");
    assert_eq!(ended.code, Some(0), "{target} {common} {phases:?}: {}", ended.stderr);
    record
}

fn snapshot(scratch: &Scratch, words: &str) -> u64 {
    let ended = scratch.run(&format!("container snapshot {words} --json"));
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    serde_json::from_str::<Value>(&ended.stdout).unwrap()["epoch"].as_u64().unwrap()
}

fn pool_of(scratch: &Scratch) {
    assert_eq!(scratch.run("pool create vos:tank --scm 384m --store-targets 3").code, Some(0));
}

/// Every kind of value in every redundancy, on one target: written, frozen, written over, and read as it was.
fn all_kinds(scratch: &Scratch, target: &str) {
    for class in ["S1", "RP_2G1", "EC_2P1GX"] {
        for (stores, reads, load, values) in KINDS {
            let container = format!("{stores}.{}", class.to_lowercase());
            let common = format!("class = '{class}'\n{load}");
            let store = format!("op = '{stores}'");
            job(scratch, target, &container, &common, std::slice::from_ref(&store));
            let epoch = snapshot(scratch, &format!("{target} {container}"));
            // A value of the run itself would be newer than the snapshot, and --verify says so.
            let then = format!("op = '{reads}'\nsnapshot = {epoch}\ncount = {values}");
            let now = format!("op = '{reads}'\nno_fill = true\ncount = {values}");
            let record = job(scratch, target, &container, &common, &[store, then, now]);
            assert_eq!(record["phases"].as_array().unwrap().len(), 3, "nothing is stored before a snapshot");
            assert_eq!(record["phases"][1]["plan"]["snapshot"], epoch, "{target}");
            assert!(record["phases"][2]["plan"]["snapshot"].is_null());
            for phase in [1, 2] {
                assert_eq!(total(&record, phase, "operations"), *values, "{target} {class} {reads}");
            }
        }
    }
}

#[test]
fn what_was_there_is_read_in_process() {
    let scratch = Scratch::new();
    pool_of(&scratch);
    all_kinds(&scratch, "vos:tank");
}

#[test]
fn what_was_there_is_read_behind_an_engine() {
    let scratch = Scratch::new();
    pool_of(&scratch);
    let engine = Engine::start(scratch.path(), "--dir tank --pool fields");
    all_kinds(&scratch, &format!("{}/fields", target(&engine)));
}

#[test]
fn what_was_removed_since_is_listed_and_has_its_size() {
    let scratch = Scratch::new();
    pool_of(&scratch);
    let run = |words: &str| scratch.measured(&format!("object vos:tank {words}"));
    run("--op put --dkeys 30 --value-size 3000 --container keys --keep");
    run("--op write --objects 4 --value-size 64k --records 3 --container arrays --keep");
    run("--op update --integer-dkeys --dkeys 9 --container dkeys --keep");
    let [keys, arrays, dkeys] =
        ["keys", "arrays", "dkeys"].map(|label| snapshot(&scratch, &format!("vos:tank {label}")));
    run("--op remove --dkeys 30 --no-fill --container keys --keep");
    run("--op destroy --objects 4 --value-size 64k --records 3 --no-fill --container arrays --keep");
    run("--op punch --punch object --integer-dkeys --dkeys 9 --no-fill --container dkeys --keep");
    let engine = Engine::start(scratch.path(), "--dir tank --pool fields");
    let remote = format!("{}/fields", target(&engine));
    let loads = [
        ("list,stat,get", keys, "--dkeys 30 --value-size 3000 --container keys"),
        ("size,read", arrays, "--objects 4 --value-size 64k --records 3 --container arrays"),
        ("query,iterate,fetch", dkeys, "--integer-dkeys --dkeys 9 --container dkeys"),
    ];
    for (operations, epoch, load) in loads {
        let ended = scratch
            .run(&format!("object {remote} --op {operations} {load} --count 12 --keep --snapshot {epoch}"));
        assert_eq!(ended.code, Some(0), "{operations}: {}", ended.stderr);
        assert!(ended.stdout.contains(&format!("at snapshot {epoch}")), "{}", ended.stdout);
        let (now, _) =
            scratch.measure(&format!("object {remote} --op {operations} {load} --count 12 --keep --no-fill"));
        assert_eq!(now.code, Some(1), "{operations}: it is gone: {now:?}");
    }
    drop(engine);
    for (operations, epoch, load) in loads {
        run(&format!("--op {operations} {load} --count 12 --keep --snapshot {epoch:#x}"));
        // Aggregation leaves what a snapshot shows, and takes it when that is destroyed.
        let label = load.rsplit(' ').next().unwrap();
        run(&format!("--op aggregate,collect --container {label} --keep"));
        run(&format!("--op {operations} {load} --count 12 --keep --snapshot {epoch}"));
        let destroy = format!("container snapshot vos:tank {label} --destroy {epoch} --destroy-data");
        assert_eq!(scratch.run(&destroy).code, Some(0));
        let gone =
            scratch.run(&format!("object vos:tank --op {operations} {load} --count 12 --snapshot {epoch}"));
        assert_eq!(gone.code, Some(2), "{gone:?}");
    }
}

/// Where the key stands in a log.
fn places_of(log: &Path, key: &[u8]) -> Vec<u64> {
    let bytes = std::fs::read(log).unwrap();
    let is_key = |at: &usize| bytes[*at..].starts_with(key);
    (0..bytes.len() - key.len()).step_by(8).filter(is_key).map(|at| at as u64).collect()
}

#[test]
fn what_is_damaged_in_it_is_made_up_for() {
    for class in ["RP_2G1", "EC_2P1G1"] {
        let scratch = Scratch::new();
        pool_of(&scratch);
        let load = format!("--dkeys 24 --value-size 3000 --container c --class {class} --keep");
        scratch.measured(&format!("object vos:tank --op put --verify {load}"));
        let log = scratch.join("tank/target.0/log");
        let older = places_of(&log, b"blade-");
        assert!(older.len() >= 8, "{class}: {older:?}");
        let epoch = snapshot(&scratch, "vos:tank c");
        scratch.measured(&format!("object vos:tank --op put --verify {load}"));
        older.iter().for_each(|at| flip(&log, at + 900));
        let then = format!("--op get --verify --count 24 {load} --snapshot {epoch}");
        let repaired = |record: &Value| record.to_string().contains("values_repaired");
        assert!(repaired(&scratch.measured(&format!("object vos:tank {then}"))), "{class}");
        let engine = Engine::start(scratch.path(), "--dir tank --pool fields");
        let at = format!("{}/fields", target(&engine));
        assert!(repaired(&scratch.measured(&format!("object {at} {then}"))), "{class}");
    }
}

#[test]
fn what_cannot_be_read_so_is_refused() {
    let scratch = Scratch::new();
    pool_of(&scratch);
    scratch.measured("object vos:tank --op put --dkeys 10 --container c --containers private --threads 2 --value-size 9 --keep");
    let [first, second] = ["c.0", "c.1"].map(|label| snapshot(&scratch, &format!("vos:tank {label}")));
    let engine = Engine::start(scratch.path(), "--dir tank --pool fields");
    let at = format!("{}/fields", target(&engine));
    let refused = |words: &str, expected: &[&str]| {
        let ended = scratch.run(&format!("object {words}"));
        assert_eq!((ended.code, ended.stderr.lines().count()), (Some(2), 1), "{words}: {ended:?}");
        expected.iter().for_each(|text| assert!(ended.stderr.contains(text), "{words}: {}", ended.stderr));
    };
    let s3 = "--s3-endpoint http://127.0.0.1:9";
    let at_second = format!("has no snapshot with epoch {}", second + 1);
    let named = format!("existing snapshots: {first}");
    for (words, expected) in [
        (format!("{at} --op put --snapshot {first} --container c.0"), &["put changes the store"][..]),
        (format!("{at} --op get,remove --snapshot {first} --container c.0"), &["remove changes the store"]),
        (format!("{at} --mix get=90,put=10 --snapshot {first}"), &["put changes the store"]),
        (format!("{at} --op aggregate --snapshot {first}"), &["aggregate changes the store"]),
        (format!("{at} --op open-container --snapshot {first}"), &["open-container does not read a version"]),
        (
            format!("{at} --op get --container c.0 --snapshot {}", second + 1),
            &[&at_second, "container=c.0", &named],
        ),
        (
            format!("{at} --op get --containers private --container c --threads 2 --snapshot {first}"),
            &["container=c.1", &format!("existing snapshots: {second}")],
        ),
        (format!("{at} --op get --container none --snapshot 1"), &["has no container"]),
        (format!("{at} --op get --snapshot 0"), &["use an epoch as reported by the store"]),
        (format!("s3://b --op get {s3} --snapshot 3"), &["use vos:, engine:// or daos://"]),
        ("rados://p --op get --snapshot 3".to_owned(), &["use vos:, engine:// or daos://"]),
        ("null: --op get --snapshot 3".to_owned(), &["use vos:, engine:// or daos://"]),
    ] {
        refused(&words, expected);
    }
    drop(engine);
    refused(
        &format!("vos:tank --op get --container c.1 --snapshot {first}"),
        &["has no snapshot with epoch"],
    );
    assert_eq!(scratch.run("container create vos:tank bare").code, Some(0));
    refused(
        "vos:tank --op get --container bare --snapshot 1",
        &["the container has no snapshots: strata container snapshot TARGET LABEL creates one"],
    );
    refused("vos:tank --op get --container none --snapshot 1", &["the pool has no container"]);
    refused("vos:nowhere --op get --snapshot 1", &["the directory contains no pool"]);
    assert!(!scratch.join("nowhere").exists(), "nothing is made to be read");
}
