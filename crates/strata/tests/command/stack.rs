//! `strata stack`: every layer of this machine, and nothing left behind.

use crate::support::{Scratch, names_in, parse_record, state_of, total};

#[test]
fn every_layer_is_measured() {
    let scratch = Scratch::new();
    let ended = scratch.run("stack --quick --size 64m --dir . --json - --out results --seed 3");
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert_eq!(scratch.names(), ["results"], "left something behind");
    let record = parse_record(&ended.stdout);
    assert_eq!((&record["status"], &record["seed"]), (&"complete".into(), &3.into()));
    let rows = record["stack"]["rows"].as_array().unwrap();
    let layers: Vec<_> = rows.iter().map(|row| row["layer"].as_str().unwrap()).collect();
    // Load by load, the lowest layer first; the floor is the same for all loads and stands once.
    let storage = ["memory", "media", "file"];
    let stores = ["object", "engine"];
    let beside = ["memory", "media", "file", "network"];
    let expected: Vec<_> = [
        &["null"][..],
        &beside,
        &beside,
        &storage,
        &storage,
        &["network"],
        &stores,
        &stores,
        &stores,
        &stores,
    ]
    .concat();
    assert_eq!(layers, expected);
    for row in rows {
        // Not every file system takes direct I/O, and a row says so.
        if row["layer"] == "media" && row["missing"].is_string() {
            continue;
        }
        assert!(row["missing"].is_null(), "{row}");
        let phase = usize::try_from(row["phase"].as_u64().unwrap()).unwrap();
        // A row is measured for a part of a second. On a busy machine a drive may complete nothing in it: then that is told.
        let completes = total(&record, phase, "operations_per_second").as_f64().unwrap() > 0.0;
        let doubts = record["phases"][phase]["doubts"].to_string();
        assert!(completes || doubts.contains("nothing completed in the window"), "{row}: {doubts}");
        assert_eq!(total(&record, phase, "errors"), 0, "{row}");
        // Its file holds data before the first write of it.
        assert!(!doubts.contains("unwritten_extents"), "{row}: {doubts}");
        let plan = &record["phases"][phase]["plan"];
        if stores.iter().any(|layer| row["layer"] == *layer) {
            let engine = if row["layer"] == "object" { "vos" } else { "engine" };
            assert_eq!((&plan["layer"], &plan["engine"]), (&"object".into(), &engine.into()), "{row}");
        } else if row["layer"] == "network" {
            assert_eq!((&plan["layer"], &plan["provider"]), (&"network".into(), &"tcp".into()), "{row}");
        } else {
            assert_eq!(plan["options"]["direct"], row["layer"] == "media", "{row}");
        }
    }
    let text = scratch.run("report results/record.json");
    assert_eq!(text.code, Some(0));
    for word in [
        "null",
        "memory",
        "media",
        "file",
        "network",
        "1 MiB sequential read",
        "4 KiB random write",
        "empty RPC",
        "4 KiB KV put",
        "1 MiB array read",
        "over the network",
    ] {
        assert!(text.stdout.contains(word), "{word}: {}", text.stdout);
    }
}

#[test]
fn an_interrupt_leaves_the_rows_done() {
    let scratch = Scratch::new();
    let mut running = scratch.start("stack --size 64m --dir . --live-csv - --out results");
    running.await_row("memory: 1 MiB sequential read");
    running.signal(rustix::process::Signal::INT);
    let ended = running.end();
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    assert_eq!(scratch.names(), ["results"], "left something behind");
    let record = crate::support::read_record(&scratch.join("results/record.json"));
    assert_eq!((&record["status"], &record["failure"]), (&"partial".into(), &"interrupted".into()));
    let rows = record["stack"]["rows"].as_array().unwrap();
    let measured = rows.iter().filter(|row| row["phase"].is_u64()).count();
    assert_eq!((rows.len(), measured), (24, record["phases"].as_array().unwrap().len()));
    assert_eq!(scratch.run("report results/record.json").code, Some(0));
}

/// Manifests of runs that are under way, or were killed.
fn manifests(scratch: &Scratch) -> Vec<String> {
    let state = state_of(scratch.path()).join("strata");
    let mut names = if state.exists() { names_in(&state) } else { Vec::new() };
    names.retain(|name| name.ends_with(".json"));
    names
}

#[test]
fn a_kill_at_any_moment_leaves_nothing_that_clean_does_not_know() {
    let has = |scratch: &Scratch, suffix: &str, file: &str| {
        let of_engine = scratch.names().into_iter().find(|name| name.ends_with(suffix));
        of_engine.is_some_and(|name| scratch.join(&name).join(file).exists())
    };
    // The moments in their order: the manifest, the engine's pool from its directory to its end, and a load.
    let moments: [&dyn Fn(&Scratch) -> bool; 5] = [
        &|scratch| !manifests(scratch).is_empty(),
        &|scratch| has(scratch, "-engine", ""),
        &|scratch| has(scratch, "-engine", "superblock.partial") || has(scratch, "-engine", "superblock"),
        &|scratch| has(scratch, "-engine", "superblock"),
        &|scratch| has(scratch, "-object", "superblock"),
    ];
    for (number, is_come) in moments.iter().enumerate() {
        let scratch = Scratch::new();
        let running = scratch.start("stack --quick --size 64m --dir . --seed 3");
        while !is_come(&scratch) {
            std::thread::yield_now();
        }
        running.signal(rustix::process::Signal::KILL);
        running.end();
        let left = scratch.names();
        assert_eq!(manifests(&scratch).len(), 1, "moment {number}: nothing is made before: {left:?}");
        loop {
            let ended = scratch.run("clean --yes");
            if ended.code == Some(0) {
                break;
            }
            // The engine ends when it sees that nobody is there any more, and has its pool open until then.
            assert!(ended.stderr.contains("the pool is open already"), "moment {number}: {ended:?} {left:?}");
        }
        assert_eq!(scratch.names(), [""; 0], "moment {number}");
        assert_eq!(manifests(&scratch), [""; 0], "moment {number}");
    }
}
