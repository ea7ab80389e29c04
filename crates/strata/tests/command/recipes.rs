//! `strata object recipes`: what users are told, measured.

use serde_json::Value;
use testkit::s3::{S3Options, S3Server};

use crate::support::{Scratch, read_record};

fn recipes(record: &Value) -> &[Value] {
    record["recipes"]["recipes"].as_array().unwrap()
}

/// Whether its phases ran. On a machine that is busy with other things a short phase may complete nothing.
fn was_tested(found: &Value) -> bool {
    match found["reason"].as_str() {
        None => found["factor"]["factor"].as_f64().is_some_and(|factor| factor > 0.0),
        Some(reason) => reason.contains("completed no operation"),
    }
}

fn recipe<'a>(record: &'a Value, name: &str) -> &'a Value {
    recipes(record).iter().find(|recipe| recipe["name"] == name).unwrap_or_else(|| panic!("no {name}"))
}

#[test]
fn all_run_on_an_embedded_store_and_nothing_is_left() {
    let scratch = Scratch::new();
    let record = scratch.measured(
        "object recipes vos:store --rounds 2 --time 60ms --scm 256m --durability none --seed 3 --live none",
    );
    assert_eq!(recipes(&record).len(), 12);
    for found in recipes(&record) {
        if found["name"] == "object-class" {
            assert_eq!(
                (&found["finding"], &found["reason"]),
                (&"not_tested".into(), &"the store has only one target".into())
            );
            continue;
        }
        assert_eq!(found["pairs"].as_array().unwrap().len(), 2, "{found}");
        assert!(was_tested(found), "{found}");
        for side in [0, 1] {
            let phase = usize::try_from(found["pairs"][0][side].as_u64().unwrap()).unwrap();
            let name = record["phases"][phase]["plan"]["name"].as_str().unwrap();
            let words = if side == 0 { "without 1" } else { "with 1" };
            assert_eq!(name, format!("{} {words}", found["name"].as_str().unwrap()));
        }
    }
    assert_eq!(scratch.names(), ["record.json"]);
    let text = scratch.run("report record.json").stdout;
    for part in ["recipes on vos:store", "index-kv", "untested  object-class: the store has only one target"]
    {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(!text.contains("filled "), "{text}");
}

#[test]
fn a_block_of_ids_costs_as_much_as_one() {
    let scratch = Scratch::new();
    let record =
        scratch.measured("object recipes vos:store --only ids-in-blocks --rounds 6 --time 50ms --live none");
    let found = recipe(&record, "ids-in-blocks");
    let factor = &found["factor"];
    assert!(factor["factor"].as_f64().unwrap() > 20.0, "{found}");
    assert!(factor["low"].as_f64().unwrap() > 1.0, "{found}");
    assert_eq!(found["finding"], "matters", "{found}");
    let rounds: Vec<bool> =
        found["pairs"].as_array().unwrap().iter().map(|pair| pair[0].as_u64() < pair[1].as_u64()).collect();
    assert_eq!(rounds.len(), 6);
}

#[test]
fn classes_are_compared_where_there_are_targets() {
    let scratch = Scratch::new();
    let record = scratch.measured(
        "object recipes vos:store --only object-class --rounds 2 --time 100ms --scm 256m --store-targets 2 --live none",
    );
    assert!(recipe(&record, "object-class")["factor"]["factor"].is_f64());
}

#[test]
fn what_cannot_be_tested_says_why() {
    let scratch = Scratch::new();
    let (ended, record) = scratch.measure("object recipes null: --rounds 2 --time 20ms --live none");
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let found = recipe(&record, "object-class");
    assert_eq!(found["finding"], "not_tested");
    assert!(found["reason"].as_str().unwrap().contains("--class"), "{found}");
    for (words, expected) in [
        ("object recipes vos:store --only nothing", "one of index-kv, container-handle"),
        ("object recipes vos:store --rounds 1", "--rounds"),
        ("object recipes vos:store --time 0", "--time"),
        ("object recipes vos:store --value-size 4k", "--value-size"),
        ("object recipes nowhere:", "is not a target of the object layer"),
    ] {
        let ended = scratch.run(words);
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""), "{words}: {}", ended.stderr);
        assert!(ended.stderr.contains(expected), "{words}: {}", ended.stderr);
    }
    assert_eq!(scratch.names(), ["record.json"]);
    assert_eq!(read_record(&scratch.join("record.json"))["status"], "complete");
}

#[test]
fn on_a_cluster() {
    let Some(node) = testkit::ceph_node(env!("CARGO_TARGET_TMPDIR")) else {
        return crate::support::skipped(
            "on_a_cluster",
            "no Ceph: install ceph-mon, ceph-osd, ceph-common and radosgw",
        );
    };
    let scratch = Scratch::new();
    let conf = node.conf.display().to_string();
    let names =
        ["index-kv", "container-handle", "open-with-attr", "get-not-list", "value-size", "ids-in-blocks"];
    let words = format!("--only {} --rounds 2 --time 200ms --live none", names.join(","));
    let (ended, record) =
        scratch.measure(&format!("object recipes rados://strata --rados-conf {conf} {words}"));
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    for name in &names[..5] {
        assert!(was_tested(recipe(&record, name)), "{}", recipe(&record, name));
    }
    let found = recipe(&record, "ids-in-blocks");
    assert!(found["reason"].as_str().unwrap().contains("rados does not support allocate-ids"), "{found}");
}

#[test]
fn on_a_bucket() {
    use std::os::unix::fs::PermissionsExt as _;

    let (scratch, keys) = (Scratch::new(), S3Options::default());
    std::fs::write(scratch.join("keys"), format!("{}\n{}\n", keys.access, keys.secret)).unwrap();
    std::fs::set_permissions(scratch.join("keys"), std::fs::Permissions::from_mode(0o600)).unwrap();
    let server = S3Server::start(keys).unwrap();
    let at = format!("s3://mine --s3-endpoint {} --s3-key-file keys", server.endpoint());
    let (ended, record) = scratch.measure(&format!("object recipes {at} --rounds 2 --time 60ms --live none"));
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    // Both sides of each: the objects of one are not those of the other.
    for name in ["index-kv", "get-not-list", "value-size"] {
        assert!(was_tested(recipe(&record, name)), "{}", recipe(&record, name));
    }
    assert_eq!(server.store().keys("mine"), [""; 0], "nothing is left");
}

#[test]
fn on_an_engine() {
    let scratch = Scratch::new();
    let engine =
        crate::engines::Engine::start(scratch.path(), "--dir tank --pool fields --scm 512m --targets 2");
    let target = engine.uri().replacen("tcp://", "engine://", 1);
    // A drive that others write to may take longer for a sync than operations usually may.
    let words = "--rounds 2 --time 150ms --timeout 10m --live none";
    let record = scratch.measured(&format!("object recipes {target}/fields {words}"));
    let tested = recipes(&record).iter().filter(|found| found["factor"]["factor"].is_f64()).count();
    assert!(tested >= 10, "{}", record["recipes"]);
    assert!(recipes(&record).iter().all(was_tested), "{}", record["recipes"]);
}
