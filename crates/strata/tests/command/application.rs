//! Applications on every kind of target: what is written is read back and checked, and nothing is left behind.

use std::fs;

use serde_json::Value;
use testkit::s3::{S3Options, S3Server};

use crate::engines::Engine;
use crate::support::{Scratch, class, read_record};

const FDB: &str = "--steps 3 --size 8KiB --levels 2 --params 5 --writers 2 --readers 3";
/// Fields of the load above.
const FIELDS: u64 = 3 * 2 * 2 * 5;

/// Both patterns and both indexes on a target; the record of the last.
fn archive(scratch: &Scratch, target: &str, more: &str) -> Value {
    let mut record = Value::Null;
    for (pattern, index) in [("A", "shared"), ("B", "process")] {
        record = scratch
            .measured(&format!("app fdb-hammer {target} {FDB} --pattern {pattern} --index {index} {more}"));
        let reading = if pattern == "A" { 1 } else { 0 };
        assert_eq!(class(&record, 0, "write"), (FIELDS, FIELDS * 8192), "{target}");
        assert_eq!(class(&record, 0, "put").0, FIELDS, "{target}");
        assert_eq!(class(&record, reading, "read"), (FIELDS, FIELDS * 8192), "{target}");
        assert_eq!(class(&record, reading, "get").0, FIELDS, "{target}");
        assert_eq!(record["phases"].as_array().unwrap().len(), reading + 1);
        assert_eq!(record["phases"][0]["plan"]["layer"], "application");
    }
    record
}

#[test]
fn fields_are_archived_and_retrieved_on_files() {
    let scratch = Scratch::new();
    fs::create_dir(scratch.join("data")).unwrap();
    fs::write(scratch.join("data/others"), "stays").unwrap();
    archive(&scratch, "data", "");
    archive(&scratch, "data", "--target-options direct=true");
    assert_eq!(crate::support::names_in(&scratch.join("data")), ["others"]);
    archive(&scratch, "null:", "");
}

#[test]
fn fields_are_archived_and_retrieved_on_an_embedded_store_and_files_over_it() {
    let scratch = Scratch::new();
    let record = archive(&scratch, "vos:store", "");
    assert_eq!(record["phases"][0]["plan"]["engine"], "vos");
    assert!(class(&record, 0, "allocate-ids").0 >= 2 && class(&record, 0, "open-container").0 >= 2);
    assert!(!scratch.join("store").exists(), "the run made it");
    assert_eq!(scratch.run("pool create vos:pool --scm 64m").code, Some(0));
    archive(&scratch, "dfs+vos:pool", "");
    archive(&scratch, "vos:pool", "--target-options container=fields,durability=batch");
    assert!(scratch.join("pool").exists(), "it was there before");
}

#[test]
fn fields_are_archived_and_retrieved_behind_an_engine() {
    let scratch = Scratch::new();
    let words = "--no-attach-info --interface lo --pool tank --dir pool --scm 128m --nvme 256m --listen";
    let engine = Engine::start_words(scratch.path(), &format!("engine {words} 127.0.0.1:0"));
    let address = engine.uri().strip_prefix("tcp://").unwrap().to_owned();
    archive(&scratch, &format!("engine://{address}/tank/fields"), "");
    archive(&scratch, &format!("dfs+engine://{address}/tank/files"), "");
}

#[test]
fn fields_are_objects_of_a_bucket() {
    let (scratch, options) = (Scratch::new(), S3Options::default());
    let server = S3Server::start(S3Options::default()).unwrap();
    server.store().create_bucket("fields");
    let keys =
        [("AWS_ACCESS_KEY_ID", options.access.clone()), ("AWS_SECRET_ACCESS_KEY", options.secret.clone())];
    let words = format!(
        "app fdb-hammer s3://fields {FDB} --target-options s3-endpoint={} --json record.json",
        server.endpoint()
    );
    let ended = scratch.start_in(&words, &keys).end();
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let record = read_record(&scratch.join("record.json"));
    assert_eq!(class(&record, 0, "write").0, FIELDS);
    assert_eq!(class(&record, 1, "read").0, FIELDS);
    assert!(server.store().keys("fields").is_empty(), "what the run put is removed");
    // Parts of one object cannot be written there.
    let refused = scratch
        .start_in(&words.replace("fdb-hammer s3://fields", "vpic s3://fields").replace(FDB, ""), &keys)
        .end();
    assert_eq!(refused.code, Some(2), "{}", refused.stderr);
    assert!(refused.stderr.contains("s3 writes whole objects"), "{}", refused.stderr);
    // An object for each variable can.
    for (app, values, written) in [("vpic", "ranks=2", 2), ("bd-cats", "writers=3,ranks=2", 3)] {
        let set = format!("--set files=variable,steps=2,particles=10000,compute=1ms,{values}");
        let words = words.replace("fdb-hammer", app).replace(FDB, &set);
        let ended = scratch.start_in(&words, &keys).end();
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        let record = read_record(&scratch.join("record.json"));
        assert_eq!(class(&record, 0, "write"), (written * 2 * 8, written * 2 * 8 * 10000 * 4), "{app}");
        let read = if app == "vpic" { 2 * 8 } else { written * 2 * 8 };
        assert_eq!(class(&record, 1, "read"), (read, read * 10000 * 4), "{app}");
        assert!(server.store().keys("fields").is_empty());
    }
}

#[test]
fn other_applications_run_on_files_and_objects() {
    let scratch = Scratch::new();
    fs::create_dir(scratch.join("data")).unwrap();
    let small = "--set compute=1ms,transfer=64KiB";
    for files in ["rank", "one"] {
        let record = scratch
            .measured(&format!("app checkpoint data --size 300KiB --steps 3 --set files={files} {small}"));
        assert_eq!(
            class(&record, 0, "write"),
            (2 * 3 * 5, 2 * 3 * 300 * 1024),
            "five transfers, the last a short one"
        );
        assert_eq!(class(&record, 0, "rename").0, if files == "one" { 3 } else { 6 });
        assert_eq!(class(&record, 1, "read").1, 2 * 300 * 1024, "the last checkpoint");
        let words = format!(
            "app checkpoint vos:store --size 300KiB --steps 3 --set files={files},names=direct {small}"
        );
        assert_eq!(class(&scratch.measured(&words), 1, "read").1, 2 * 300 * 1024);
    }
    for target in ["data", "vos:store"] {
        let words = "--steps 2 --set particles=10000,compute=1ms,transfer=16KiB";
        let record = scratch.measured(&format!("app vpic {target} {words}"));
        assert_eq!(class(&record, 0, "write").1, 2 * 2 * 8 * 40_000);
        let record = scratch.measured(&format!("app bd-cats {target} {words},ranks=3"));
        assert_eq!(class(&record, 1, "read").1, 2 * 2 * 8 * 40_000, "all of both checkpoints");
        let words = format!(
            "app cosmic-tagger {target} --set samples=100,batch=5,batches=20,loaders=2,step=1ms --profile"
        );
        let record = scratch.measured(&words);
        assert_eq!(class(&record, 1, "read").0, 2 * 5 * 20, "two epochs");
        let bytes = class(&record, 0, "write").1;
        assert_eq!(class(&record, 1, "read").1, 2 * bytes, "each sample once in each epoch");
        assert_eq!(class(&record, 1, "compute").0, 20);
        let seen = &record["phases"][1]["observations"]["utilisation"];
        let (rate, waits) =
            (seen["samples_per_second"].as_f64().unwrap(), seen["waiting_fraction"].as_f64().unwrap());
        assert!(seen["steps"] == 20 && seen["compute_ns"].as_f64().unwrap() >= 20.0 * 1e6, "{seen}");
        let (time_ns, epoch_ns) = (seen["time_ns"].as_f64().unwrap(), seen["epoch_ns"].as_f64().unwrap());
        assert!((rate - 200.0 * 1e9 / time_ns).abs() < 1e-6 * rate, "200 samples in all steps: {seen}");
        assert!((epoch_ns - time_ns / 2.0).abs() <= 1.0 && (0.0..1.0).contains(&waits), "{seen}");
    }
    assert!(crate::support::names_in(&scratch.join("data")).is_empty());
}

#[test]
fn a_profile_adds_up_to_the_time_of_the_processes() {
    let scratch = Scratch::new();
    fs::create_dir(scratch.join("data")).unwrap();
    let words = format!("app fdb-hammer data {FDB} --pattern B --set compute=20ms --profile");
    let ended = scratch.run(&format!("{words} --json record.json"));
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(ended.stdout.contains("where the time goes") && ended.stdout.contains("readers: 3 processes"));
    let record = read_record(&scratch.join("record.json"));
    let groups = record["phases"][0]["observations"]["profile"]["groups"].as_array().unwrap();
    let names: Vec<&Value> = groups.iter().map(|group| &group["name"]).collect();
    assert_eq!(names, ["writers", "readers"]);
    for group in groups {
        let parts = group["parts"].as_array().unwrap();
        let sum: u64 = parts.iter().map(|part| part["time_ns"].as_u64().unwrap()).sum();
        assert_eq!(sum, group["wall_ns"].as_u64().unwrap(), "{group}");
    }
    let part = |group: usize, name: &str| {
        let parts = groups[group]["parts"].as_array().unwrap();
        parts.iter().find(|part| part["name"] == name).unwrap_or_else(|| panic!("no {name}")).clone()
    };
    assert_eq!(part(0, "compute")["calls"], 2 * 3);
    assert!(part(0, "compute")["time_ns"].as_u64().unwrap() >= 2 * 3 * 20_000_000);
    assert!(part(1, "wait")["time_ns"].as_u64().unwrap() > 0);
    assert_eq!(scratch.run("report record.json --svg charts").code, Some(0));
    let charts = crate::support::names_in(&scratch.join("charts"));
    for kind in ["profile", "profile-over-time"] {
        assert!(charts.iter().any(|name| name.contains(&format!("{kind}."))), "{kind}: {charts:?}");
    }
    let plain = scratch.measured(&format!("app fdb-hammer data {FDB}"));
    assert_eq!(plain["phases"][0]["observations"]["profile"], Value::Null);
}

#[test]
fn applications_are_listed_shown_and_taken_from_files_and_jobs() {
    let scratch = Scratch::new();
    fs::create_dir(scratch.join("data")).unwrap();
    let listed = scratch.run("app list").stdout;
    for name in ["fdb-hammer", "checkpoint", "vpic", "bd-cats", "cosmic-tagger", "database"] {
        assert!(listed.lines().any(|line| line.starts_with(name)), "{name}: {listed}");
        let text = scratch.run(&format!("app show {name}")).stdout;
        assert!(text.contains("parameters") && text.contains("stage "), "{text}");
    }
    let description = scratch.run("app show fdb-hammer --toml").stdout;
    fs::write(scratch.join("mine.toml"), description.replace("\"fdb-hammer\"", "\"mine\"")).unwrap();
    let record = scratch.measured(&format!("app mine.toml data {FDB}"));
    assert_eq!(record["phases"][0]["plan"]["application"], "mine");
    let job = "[[phase]]\nlayer = 'application'\napp = 'fdb-hammer'\ntargets = ['data']\nsteps = 2\nset = ['size=4KiB', 'levels=1,params=1']\n";
    fs::write(scratch.join("job.toml"), job).unwrap();
    let record = scratch.measured("run job.toml");
    assert_eq!(class(&record, 0, "write"), (4, 4 * 4096));
}

#[test]
fn two_applications_of_a_job_share_a_directory() {
    let scratch = Scratch::new();
    std::fs::create_dir(scratch.join("data")).unwrap();
    let phase = |app: &str, set: &str| {
        format!("[[phase]]\nlayer = 'application'\napp = '{app}'\ntargets = ['data']\nset = [{set}]\n")
    };
    let job = phase("fdb-hammer", "'size=4KiB','steps=1','levels=1','params=1'")
        + &phase("vpic", "'particles=100','ranks=1','steps=1','compute=1ms'");
    std::fs::write(scratch.join("job.toml"), job).unwrap();
    let record = scratch.measured("run job.toml");
    let names: Vec<_> = record["phases"]
        .as_array()
        .unwrap()
        .iter()
        .map(|phase| phase["plan"]["application"].clone())
        .collect();
    assert_eq!(names, ["fdb-hammer", "fdb-hammer", "vpic", "vpic"]);
    assert!(std::fs::read_dir(scratch.join("data")).unwrap().next().is_none(), "all of it is removed");
}
