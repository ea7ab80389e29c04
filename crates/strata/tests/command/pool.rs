//! `strata pool`, `strata container` and `strata engine --pool`.

use serde_json::Value;

use crate::engines::Engine;
use crate::support::{Ended, Scratch, class};

fn json(scratch: &Scratch, words: &str) -> Value {
    let ended = scratch.run(&format!("{words} --json"));
    assert_eq!(ended.code, Some(0), "{words}: {}", ended.stderr);
    serde_json::from_str(&ended.stdout).unwrap_or_else(|error| panic!("{words}: {error}: {}", ended.stdout))
}

fn refused(scratch: &Scratch, words: &str, expected: &str) {
    let ended = scratch.run(words);
    assert_ne!(ended.code, Some(0), "{words}");
    assert_eq!((ended.stderr.lines().count(), ended.stdout.as_str()), (1, ""), "{words}: {ended:?}");
    assert!(ended.stderr.contains(expected), "{words}: {}", ended.stderr);
}

#[test]
fn a_pool_is_made_shown_and_destroyed_by_name() {
    let scratch = Scratch::new();
    assert_eq!(scratch.run("pool list vos:tank").stdout, "no pool\n");
    let made = json(&scratch, "pool create vos:tank --scm 64m --nvme 32m --store-targets 2");
    assert_eq!((&made["targets"], &made["containers"]), (&2.into(), &0.into()), "{made}");
    assert!(
        made["scm_bytes"].as_u64().unwrap() <= 64 << 20 && made["nvme_bytes"].as_u64().unwrap() > 0,
        "{made}"
    );
    refused(&scratch, "pool create vos:tank", "pool");
    let again = json(&scratch, "pool query vos:tank");
    assert_eq!(again["uuid"], made["uuid"]);
    let text = scratch.run("pool query vos:tank").stdout;
    for word in ["uuid", "targets     2", "SCM", "NVMe", "durable by"] {
        assert!(text.contains(word), "{word}: {text}");
    }
    let info = json(&scratch, "container create vos:tank fields --checksum crc64");
    assert_eq!((&info["label"], &info["checksum"]), (&"fields".into(), &"crc64".into()));
    refused(&scratch, "container create vos:tank fields", "fields");
    refused(&scratch, "container query vos:tank none", "fields");
    assert_eq!(json(&scratch, "container list vos:tank").as_array().map(Vec::len), Some(1));
    // Nothing is destroyed that this command did not make, unless it is said.
    refused(&scratch, "container destroy vos:tank fields", "--destroy-data");
    refused(&scratch, "pool destroy vos:tank", "--destroy-data");
    refused(&scratch, "container destroy vos:tank other --destroy-data", "fields");
    assert_eq!(
        scratch.run("container destroy vos:tank fields --destroy-data").stdout,
        "destroyed container fields\n"
    );
    assert_eq!(scratch.run("container list vos:tank").stdout, "no container\n");
    assert_eq!(scratch.run("pool destroy vos:tank").code, Some(0), "an empty one goes by its name");
    assert!(scratch.names().is_empty(), "{:?}", scratch.names());
}

#[test]
fn a_pool_that_runs_made_things_in() {
    let scratch = Scratch::new();
    json(&scratch, "pool create vos:tank --scm 128m");
    scratch.measured("object vos:tank --op put --dkeys 100 --container mine --keep");
    scratch.measured("object vos:tank --op put --dkeys 100 --container passing");
    let labels = json(&scratch, "container list vos:tank");
    let labels: Vec<_> =
        labels.as_array().unwrap().iter().map(|info| info["label"].as_str().unwrap()).collect();
    assert_eq!(labels, ["mine"], "what a run makes it takes along");
    refused(&scratch, "pool destroy vos:tank", "--destroy-data");
    assert_eq!(scratch.run("pool destroy vos:tank --destroy-data").code, Some(0));
    assert_eq!(scratch.names(), ["record.json"]);
}

#[test]
fn space_is_shown_by_container() {
    let scratch = Scratch::new();
    json(&scratch, "pool create vos:tank --scm 64m --nvme 32m --store-targets 2");
    let load = "--op put --dkeys 100 --keep";
    scratch.measured(&format!("object vos:tank {load} --container small --value-size 1000"));
    scratch.measured(&format!("object vos:tank {load} --container large --value-size 20000"));
    let shown = |at: &str, label: &str| {
        let pool = json(&scratch, &format!("pool query {at}"));
        let all = pool["usage"]["containers"].as_array().unwrap();
        all.iter().find(|own| own["label"] == label).cloned().unwrap_or_else(|| panic!("{label}: {pool}"))
    };
    let small = shown("vos:tank", "small");
    assert_eq!((&small["values"], &small["value_bytes"]), (&100.into(), &100_000.into()), "{small}");
    assert!(small["overhead_bytes"].as_u64() > Some(6000) && small["keys"] == 100, "{small}");
    assert_eq!(shown("vos:tank", "large")["value_bytes"], 2_000_000);
    // What a snapshot alone shows, and what nobody sees.
    assert_eq!(scratch.run("container snapshot vos:tank small").code, Some(0));
    scratch.measured(&format!("object vos:tank {load} --container small --value-size 1000 --destroy-data"));
    scratch.measured(&format!("object vos:tank {load} --container large --value-size 20000 --destroy-data"));
    let (small, large) = (shown("vos:tank", "small"), shown("vos:tank", "large"));
    assert_eq!(
        (&small["value_bytes"], &small["snapshot_bytes"]),
        (&100_000.into(), &100_000.into()),
        "{small}"
    );
    assert_eq!(
        (&large["value_bytes"], &large["reclaimable_bytes"]),
        (&2_000_000.into(), &2_000_000.into()),
        "{large}"
    );
    let text = scratch.run("pool query vos:tank").stdout;
    for word in ["container   small: ", "for snapshots only", "dead        ", "free        SCM "] {
        assert!(text.contains(word), "{word}: {text}");
    }
    let engine = Engine::start(scratch.path(), "--dir tank --pool fields");
    assert_eq!(shown(&format!("{}/fields", target(&engine)), "small"), small, "an engine tells the same");
}

#[test]
fn bad_words() {
    let scratch = Scratch::new();
    for (words, expected) in [
        ("pool query vos:none", "the directory contains no pool"),
        ("pool destroy vos:none --destroy-data", "the directory contains no pool"),
        ("pool query s3:bucket", "accepted: vos:DIR and engine://HOST:PORT"),
        ("pool create vos:tank --scm 1zz", "--scm"),
        ("pool query engine://127.0.0.1:1/tank", "127.0.0.1:1"),
        ("pool create engine://h", "engine://HOST:PORT"),
        ("container create vos:none fields", "the directory contains no pool"),
    ] {
        refused(&scratch, words, expected);
    }
    assert!(scratch.names().is_empty(), "{:?}", scratch.names());
}

/// The target of an engine's pools.
pub(crate) fn target(engine: &Engine) -> String {
    engine.uri().replacen("tcp://", "engine://", 1)
}

fn ok(ended: &Ended) {
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
}

#[test]
fn an_engine_serves_its_pool() {
    let scratch = Scratch::new();
    let engine = Engine::start(scratch.path(), "--dir tank --pool fields --scm 128m --targets 2");
    assert!(engine.line.contains(", pool fields in tank (durable by "), "{}", engine.line);
    let at = target(&engine);
    let pools = json(&scratch, &format!("pool list {at}"));
    assert_eq!((&pools[0]["name"], &pools[0]["targets"]), (&"fields".into(), &2.into()), "{pools}");
    refused(&scratch, &format!("pool query {at}"), "the engine has fields");
    refused(&scratch, &format!("pool query {at}/other"), "other");
    refused(&scratch, &format!("pool create {at}/other"), "strata engine --dir DIR --pool LABEL");
    json(&scratch, &format!("container create {at}/fields/kept --checksum off"));
    assert_eq!(json(&scratch, &format!("container query {at}/fields/kept"))["checksum"], "off");
    refused(&scratch, &format!("container query {at}/fields/kept other"), "names a different container");

    let load = "--dkeys 200 --value-size 4k --verify --depth 8";
    let record = scratch.measured(&format!("object {at}/fields --op put,get {load} --count 200"));
    let phases = record["phases"].as_array().unwrap();
    assert_eq!(class(&record, phases.len() - 1, "get"), (200, 200 << 12));
    assert_eq!(record["phases"][0]["plan"]["engine"], "engine");
    assert!(record["phases"][0]["doubts"].to_string().contains("loopback"), "no link is measured");
    let labels = json(&scratch, &format!("container list {at}/fields"));
    assert_eq!(labels.as_array().map(Vec::len), Some(1), "the run's own is gone: {labels}");
    ok(&scratch.run(&format!("container destroy {at}/fields kept --destroy-data")));
    refused(&scratch, &format!("object {at}/none --op put --dkeys 10"), "none");
    refused(&scratch, "pool query vos:tank", "");
    drop(engine);
    ok(&scratch.run("pool query vos:tank"));
}

#[test]
fn options_of_a_pool_need_one() {
    let scratch = Scratch::new();
    refused(&scratch, "engine --path . --scm 64m", "--scm requires an engine that serves a pool");
    refused(&scratch, "engine --path . --durability none", "add --dir DIR or --pool LABEL");
    json(&scratch, "pool create vos:tank --scm 64m --store-targets 2");
    refused(
        &scratch,
        "engine --path . --dir tank --scm 128m",
        "the existing pool is smaller (asked=128MiB, has=64MiB)",
    );
    refused(&scratch, "engine --path . --dir tank --targets 3", "pool_targets=2");
    assert_eq!(scratch.names(), ["tank"]);
}
