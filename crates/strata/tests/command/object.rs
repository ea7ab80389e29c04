//! `strata object`: known answers from its records.

use serde_json::Value;

use crate::support::{Scratch, class, total};

fn operations(record: &Value, phase: usize) -> u64 {
    total(record, phase, "operations").as_u64().unwrap()
}

/// Names of the phases.
fn names(record: &Value) -> Vec<&str> {
    record["phases"].as_array().unwrap().iter().map(|phase| phase["plan"]["name"].as_str().unwrap()).collect()
}

fn notes(record: &Value, phase: usize) -> String {
    record["phases"][phase]["notes"].to_string()
}

#[test]
fn keys_are_put_got_and_removed_and_nothing_is_left() {
    let scratch = Scratch::new();
    let record = scratch.measured(
        "object vos:store --op put,get,stat,remove --dkeys 500 --value-size 1k --count 500 --verify --seed 5",
    );
    let done: Vec<(u64, u64)> =
        ["put", "get", "stat", "remove"].iter().map(|name| done(&record, name)).collect();
    assert_eq!(done, [(500, 500 << 10), (500, 500 << 10), (500, 0), (500, 0)]);
    let plan = &record["phases"][0]["plan"];
    assert_eq!((&plan["layer"], &plan["engine"]), (&"object".into(), &"vos".into()));
    assert_eq!((&plan["container"], &plan["class"]), (&"strata".into(), &"S1".into()));
    let store = &record["phases"][0]["observations"]["store"];
    assert_eq!(store["targets"], 1);
    assert!(!store["durable_by"].as_str().unwrap().is_empty(), "{store}");
    let used = |when: &str| {
        let space = &store[when];
        space["scm_bytes"].as_u64().unwrap() - space["scm_free_bytes"].as_u64().unwrap()
    };
    assert!(used("after") >= used("before") + (500 << 10), "{store}");
    assert_eq!(scratch.names(), ["record.json"], "the store was the run's own");
}

/// Operations and bytes of the phase that has this name.
fn done(record: &Value, name: &str) -> (u64, u64) {
    let at = names(record).iter().position(|known| *known == name).unwrap_or_else(|| panic!("no {name}"));
    class(record, at, name)
}

#[test]
fn what_is_kept_is_there_for_another_run() {
    let scratch = Scratch::new();
    let load = "--dkeys 300 --value-size 512:50,2k:50 --verify";
    scratch.measured(&format!("object vos:store --op put {load} --keep"));
    assert_eq!(scratch.names(), ["record.json", "store"]);
    let record = scratch.measured(&format!("object vos:store --op get {load} --no-fill --count 300"));
    assert_eq!((names(&record), operations(&record, 0)), (vec!["get"], 300));
    assert_eq!(total(&record, 0, "errors"), 0);
    assert_eq!(scratch.names(), ["record.json", "store"], "only what a run made is destroyed");
    let text = scratch.run("report record.json").stdout;
    for part in ["vos:store, container strata, checksum crc32", "300 single values", "durable by", "1 target"]
    {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn what_a_phase_reads_is_stored_before_it() {
    let scratch = Scratch::new();
    let record = scratch.measured("object vos:store --op get,get --dkeys 200 --count 100 --value-size 64");
    assert_eq!(names(&record), ["fill", "get", "get"], "once for both");
    assert_eq!((operations(&record, 0), record["phases"][0]["plan"]["is_fill"].clone()), (200, true.into()));
    assert_eq!((operations(&record, 1), record["phases"][0]["doubts"].clone()), (100, Value::Array(vec![])));
    let ended = scratch.run("object vos:store --op get --dkeys 200 --count 100 --no-fill");
    assert_eq!(ended.code, Some(2), "{}", ended.stderr);
    assert!(ended.stderr.contains("the directory contains no pool"), "{}", ended.stderr);
}

#[test]
fn without_a_target_a_store_in_memory_serves_and_is_gone() {
    let scratch = Scratch::new();
    let record = scratch.measured("object --op put --dkeys 100");
    assert_eq!(operations(&record, 0), 100);
    let target = record["phases"][0]["plan"]["target"].as_str().unwrap();
    let directory = target.strip_prefix("vos:").unwrap();
    assert!(!std::path::Path::new(directory).exists(), "{directory} is left");
    let notes = notes(&record, 0);
    assert!(notes.contains("no target was specified") && notes.contains(directory), "{notes}");
    if directory.starts_with("/dev/shm") {
        assert!(notes.contains("is in memory (tmpfs)"), "{notes}");
    }
}

#[test]
fn arrays_and_objects_with_dkeys_and_akeys() {
    let scratch = Scratch::new();
    let arrays = "--objects 2 --records 8 --value-size 64k --verify";
    let record = scratch.measured(&format!("object vos:store --op write,read,size {arrays} --count 16"));
    assert_eq!(done(&record, "write"), (16, 1 << 20));
    assert_eq!(done(&record, "read"), (16, 1 << 20));
    assert_eq!(done(&record, "size"), (16, 0));
    let keys = "--objects 2 --dkeys 4 --akeys 2 --records 4 --value array --value-size 100 --stride 128";
    let record = scratch.measured(&format!("object vos:store --op update,fetch,punch {keys}"));
    assert_eq!(done(&record, "update"), (64, 6400));
    assert_eq!(done(&record, "punch"), (64, 0));
    let maintenance =
        "object vos:store --op update,update,aggregate,query,iterate --dkeys 10 --count 40 --integer-dkeys";
    let record = scratch.measured(maintenance);
    assert!(names(&record).contains(&"aggregate") && names(&record).contains(&"iterate"));
}

#[test]
fn mixes_are_exact_and_sequences_say_records() {
    let scratch = Scratch::new();
    let record = scratch.measured("object vos:store --mix get=70,put=30 --dkeys 100 --count 1000 --seed 1");
    let at = names(&record).len() - 1;
    assert_eq!((class(&record, at, "get").0, class(&record, at, "put").0), (700, 300));
    let record = scratch
        .measured("object vos:store --sequence open-with-attr,read --objects 50 --records 1 --count 100");
    let at = names(&record).len() - 1;
    assert_eq!((class(&record, at, "open-with-attr").0, class(&record, at, "read").0), (50, 50));
    let text = scratch.run("report record.json").stdout;
    assert!(text.contains("records   ") && text.contains("with 2 operations each"), "{text}");
}

#[test]
fn a_short_read_counts_what_it_brought() {
    let scratch = Scratch::new();
    let record = scratch.measured(
        "object vos:store --op read --objects 10 --records 1 --value-size 4k --read-size 16k --count 10",
    );
    let at = names(&record).len() - 1;
    assert_eq!(class(&record, at, "read"), (10, 40 << 10));
    assert_eq!(record["phases"][at]["plan"]["short_read_bytes"], 16 << 10);
}

#[test]
fn durability_is_named() {
    let scratch = Scratch::new();
    for (durability, doubted) in [("none", true), ("batch", true), ("sync", false)] {
        let record =
            scratch.measured(&format!("object vos:store --op put --dkeys 100 --durability {durability}"));
        let doubts = record["phases"][0]["doubts"].to_string();
        assert_eq!(doubts.contains("not_durable"), doubted, "{durability}: {doubts}");
        assert_eq!(record["phases"][0]["plan"]["options"]["durability"], durability);
    }
}

#[test]
fn a_store_that_takes_its_space_while_it_runs_is_doubted() {
    let load = "--op put --dkeys 400 --value-size 1m --live none";
    for (more, grows) in [
        ("--scm 512m --allocate needed", true),
        ("--scm 512m", false),
        ("--scm 512m --allocate whole --time 300ms", false),
    ] {
        // In memory: a drive that stalls would take longer, and prove no more.
        let memory = tempfile::tempdir_in("/dev/shm").unwrap();
        let store = memory.path().join("store");
        let record = Scratch::new().measured(&format!("object vos:{} {load} {more}", store.display()));
        let phase = &record["phases"][0];
        let grown_bytes = phase["observations"]["store"]["after"]["grown_bytes"].as_u64().unwrap();
        let doubts = phase["doubts"].to_string();
        assert_eq!(doubts.contains("store_grew"), grows, "{more}: {grown_bytes}: {doubts}");
        assert_eq!(grown_bytes >= 64 << 20, grows, "{more}: {grown_bytes}");
    }
}

#[test]
fn the_null_driver_does_every_operation() {
    let scratch = Scratch::new();
    for operation in object::plan::OBJECT_OPERATIONS {
        let keys = if *operation == "query" { "--integer-dkeys" } else { "" };
        let record = scratch.measured(&format!("object null: --op {operation} --count 10 {keys}"));
        assert!(operations(&record, 0) <= 10 && operations(&record, 0) > 0, "{operation}");
    }
}

#[test]
fn ladders_and_saturation() {
    let scratch = Scratch::new();
    let record = scratch.measured("object vos:store --op get --dkeys 100 --count 200 --ladder depth=1,2,4");
    assert_eq!(names(&record).len(), 4, "one fill for all rungs: {:?}", names(&record));
    assert_eq!(record["ladder"]["phases"], serde_json::json!([1, 2, 3]));
    let text = scratch.run("report record.json").stdout;
    assert!(text.contains("over operations in flight"), "{text}");
    let record = scratch.measured("object null: --op get --time 10ms --saturate");
    assert!(record["ladder"]["phases"].as_array().unwrap().len() > 2);
    let record = scratch.measured("object vos:store --op put --dkeys 100 --ladder value-size=64,1k");
    let sizes: Vec<&Value> = record["phases"]
        .as_array()
        .unwrap()
        .iter()
        .map(|phase| &phase["plan"]["dataset"]["value_size"])
        .collect();
    assert_eq!(sizes, ["64", "1KiB"]);
}

#[test]
fn a_job_file_mixes_layers_and_runs_object_phases_together() {
    let scratch = Scratch::new();
    let job = "
        [[phase]]
        layer = 'object'
        targets = ['vos:store']
        op = 'put'
        dkeys = 100
        name = 'filling'
        [[phase]]
        layer = 'object'
        targets = ['vos:store']
        op = 'get'
        dkeys = 100
        count = 50
        name = 'readers'
        [[phase]]
        layer = 'object'
        targets = ['vos:store']
        op = 'put'
        dkeys = 50
        dkey_prefix = 'other-'
        concurrent = true
        name = 'writers'
        [[phase]]
        targets = ['null:']
        op = 'randread'
        count = 10
        name = 'blocks'
        [[phase]]
        layer = 'network'
        targets = ['null:']
        count = 10
        name = 'rpcs'
    ";
    std::fs::write(scratch.join("job.toml"), job).unwrap();
    let record = scratch.measured("run job.toml");
    assert_eq!(names(&record), ["filling", "readers", "writers", "blocks", "rpcs"]);
    let stages: Vec<_> =
        record["phases"].as_array().unwrap().iter().map(|phase| phase["stage"].as_u64().unwrap()).collect();
    assert_eq!(stages, [0, 1, 1, 2, 3]);
    let counts: Vec<u64> = (0..5).map(|phase| operations(&record, phase)).collect();
    assert_eq!(counts, [100, 50, 50, 10, 10]);
    assert_eq!(scratch.names(), ["job.toml", "record.json"]);
}

#[test]
fn tables_and_comparisons_take_it() {
    let scratch = Scratch::new();
    let words =
        "object vos:store --op put --dkeys 2000 --value-size 64 --threads 2 --csv table.csv --live none";
    scratch.measured(words);
    std::fs::rename(scratch.join("record.json"), scratch.join("a.json")).unwrap();
    scratch.measured(words);
    let mut reader = csv::Reader::from_path(scratch.join("table.csv")).unwrap();
    let headers = reader.headers().unwrap().clone();
    let row = reader.records().next().unwrap().unwrap();
    let field = |name: &str| row.get(headers.iter().position(|header| header == name).unwrap()).unwrap();
    assert_eq!((field("layer"), field("engine"), field("targets")), ("object", "vos", "vos:store"));
    assert_eq!((field("object_class"), field("dkeys"), field("durability")), ("S1", "2000", "sync"));
    let ended = scratch.run("compare a.json record.json");
    assert!(ended.code.is_some_and(|code| code < 2), "{}", ended.stderr);
    assert!(ended.stdout.contains("put"), "{}", ended.stdout);
    let live = scratch.run("object null: --op put --time 300ms --live-csv - --live none");
    assert!(live.stdout.lines().count() > 2, "{}", live.stdout);
}

#[test]
fn a_store_keeps_its_classes_over_several_targets() {
    let scratch = Scratch::new();
    let made = "object vos:store --store-targets 4 --dkeys 64 --value-size 8k --verify --scm 256m";
    for class in ["S1", "S2", "SX", "RP_2G2", "RP_3G1", "EC_2P1G1", "EC_2P2GX"] {
        let record = scratch.measured(&format!("{made} --op put,get --count 64 --class {class}"));
        assert_eq!(record["phases"][0]["plan"]["class"], class);
        assert_eq!(done(&record, "get"), (64, 64 * 8192), "{class}");
        assert_eq!(record["phases"][0]["observations"]["store"]["targets"], 4);
    }
}

/// Full to nine tenths, and no two free blocks side by side but by chance.
#[test]
fn a_store_that_is_fragmented_takes_a_larger_value() {
    let scratch = Scratch::new();
    let store = "object vos:store --scm 64m --nvme 8m --threshold 4k --seed 7";
    scratch.measured(&format!("{store} --op put --dkeys 2048 --value-size 4k --count 2048 --keep"));
    let gone = scratch.measured(&format!(
        "{store} --op remove,aggregate --dkeys 2048 --value-size 4k --pattern permutation --count 205 --no-fill --keep"
    ));
    assert_eq!(done(&gone, "remove").0, 205);
    let query = scratch.run("pool query vos:store --json").stdout;
    let info: Value = serde_json::from_str(&query).unwrap();
    let free_bytes = info["nvme_free_bytes"].as_u64().unwrap();
    assert_eq!(free_bytes, 205 * 4096, "{info}");
    // Larger than what is free in one piece, and as much as is free altogether: 14 blocks each.
    let large = "--dkeys 14 --value-size 55k --count 14 --container large --verify";
    let record = scratch.measured(&format!("{store} --op put,get {large} --keep"));
    assert_eq!((done(&record, "put").0, done(&record, "get").0), (14, 14));
    assert_eq!((total(&record, 0, "errors"), total(&record, 1, "errors")), (&0.into(), &0.into()));
    let again = scratch.measured(&format!("{store} --op get {large} --no-fill"));
    assert_eq!(done(&again, "get"), (14, 14 * (55 << 10)), "another process reads it");
}
