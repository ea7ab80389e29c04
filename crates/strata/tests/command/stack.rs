//! `strata stack`: every layer of this machine, and nothing left behind.

use serde_json::Value;

use crate::support::{Mounted, NO_ROOT, Scratch, names_in, parse_record, skipped, state_of, total};

/// Rows of the record, as (layer, load).
fn rows(record: &Value) -> Vec<(&str, &str)> {
    let rows = record["stack"]["rows"].as_array().unwrap().iter();
    rows.map(|row| (row["layer"].as_str().unwrap(), row["load"].as_str().unwrap())).collect()
}

#[test]
fn every_layer_is_measured_in_passes_over_all_of_them() {
    let scratch = Scratch::new();
    let ended = scratch.run("stack --quick --passes 2 --size 64m --dir . --json - --out results --seed 3");
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert_eq!(scratch.names(), ["results"], "left something behind");
    let record = parse_record(&ended.stdout);
    assert_eq!((&record["status"], &record["seed"]), (&"complete".into(), &3.into()));
    let found = rows(&record);
    for layer in ["memory", "media", "file", "network", "object", "engine", "dfs", "mount"] {
        for load in ["write 1 MiB", "read 1 MiB", "write 4 KiB", "read 4 KiB"] {
            assert_eq!(found.iter().filter(|row| **row == (layer, load)).count(), 1, "{layer} {load}");
        }
    }
    for layer in ["file", "dfs", "mount"] {
        for load in ["create", "stat", "remove"] {
            assert!(found.contains(&(layer, load)), "{layer} {load}");
        }
    }
    assert_eq!(found.iter().filter(|(layer, _)| *layer == "null").count(), 1, "the floor stands once");
    let mut order: Vec<(u64, u64)> = Vec::new();
    for row in record["stack"]["rows"].as_array().unwrap() {
        // Not every file system takes direct I/O, and not every machine FUSE: a row says so.
        if ["media", "mount"].contains(&row["layer"].as_str().unwrap()) && row["missing"].is_string() {
            continue;
        }
        assert!(row["missing"].is_null(), "{row}");
        let passes = row["passes"].as_array().unwrap();
        assert_eq!(passes.len(), 2, "{row}");
        order.extend(passes.iter().map(|of| (of["phase"].as_u64().unwrap(), of["pass"].as_u64().unwrap())));
        for pass in passes {
            let phase = usize::try_from(pass["phase"].as_u64().unwrap()).unwrap();
            assert_eq!(total(&record, phase, "errors"), 0, "{row}");
            let doubts = record["phases"][phase]["doubts"].to_string();
            assert!(!doubts.contains("less than 1 s") && !doubts.contains("not_steady"), "{row}: {doubts}");
            assert!(!doubts.contains("unwritten_extents"), "{row}: {doubts}");
        }
    }
    order.sort_unstable();
    assert!(order.is_sorted_by_key(|(_, pass)| *pass), "one pass over all rows after the other");
    assert!(record["stack"]["verdict"]["sentence"].is_string());
    let text = scratch.run("report results/record.json");
    assert_eq!(text.code, Some(0));
    assert!(text.stdout.lines().count() <= 35, "{}", text.stdout);
    let full = scratch.run("report results/record.json --full");
    assert!(full.stdout.contains("CPU/op") && full.stdout.contains("verdict"), "{}", full.stdout);
    let warned = scratch.run("report results/record.json --warnings");
    assert!(warned.stdout.contains("warning   debug_build"), "{}", warned.stdout);
    // The page has the layers first, and what only stored data for them nowhere.
    let page = scratch.run("report results/record.json --html -").stdout;
    let (head, charts) = page.split_once("<summary>All passes</summary>").expect("passes are folded up");
    assert!(head.contains("<h1>Storage stack of ") && head.contains("<table class=\"stack\">"), "{head}");
    let (table, charts) = charts.split_once("</details>").unwrap();
    assert!(table.contains("<td>file: write 1 MiB</td>") && !table.contains("<td>fill</td>"), "{table}");
    let sections: Vec<&str> =
        charts.split("<h2>").skip(1).filter_map(|section| section.split("</h2>").next()).collect();
    let loads = ["write 1 MiB", "read 1 MiB", "write 4 KiB", "read 4 KiB", "create", "stat", "remove"];
    assert_eq!(sections, loads);
}

#[test]
fn what_the_user_names_is_refused_before_anything_is_made() {
    let scratch = Scratch::new();
    for (words, expected) in [
        ("--stack-object vos:x", "engine://..., s3://..., rados://... or daos://..."),
        ("--stack-object s3://b --stack-object-options x", "NAME=VALUE"),
        ("--stack-object s3://b --stack-object-options nothing=1", "nothing"),
        ("--device ./none", "the block device does not exist"),
        ("--passes 1", "2 to 50"),
    ] {
        let ended = scratch.run(&format!("stack --quick --size 64m {words}"));
        assert_eq!(ended.code, Some(2), "{words}: {}", ended.stderr);
        assert!(ended.stderr.contains(expected), "{words}: {}", ended.stderr);
        assert_eq!(scratch.names(), [""; 0], "{words}");
    }
}

#[test]
fn an_interrupt_leaves_the_rows_done() {
    let scratch = Scratch::new();
    let mut running = scratch.start("stack --size 64m --dir . --live-csv - --out results");
    // A phase of the drive lasts for several rows; one of memory may end between two.
    running.await_row("media: write 1 MiB");
    running.signal(rustix::process::Signal::INT);
    let ended = running.end();
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    assert_eq!(scratch.names(), ["results"], "left something behind");
    let record = crate::support::read_record(&scratch.join("results/record.json"));
    assert_eq!((&record["status"], &record["failure"]), (&"partial".into(), &"interrupted".into()));
    let phases = record["stack"]["rows"].as_array().unwrap().iter();
    let measured: usize = phases.map(|row| row["passes"].as_array().unwrap().len()).sum();
    assert_eq!(measured, record["phases"].as_array().unwrap().len());
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
fn too_little_space_is_told_before_anything_is_made_and_after_wrong_devices() {
    let scratch = Scratch::new();
    let Some(small) = Mounted::tmpfs("16m") else {
        return skipped("too_little_space_is_told_before_anything_is_made_and_after_wrong_devices", NO_ROOT);
    };
    let words = format!("stack --quick --size 64m --dir {}", small.path().display());
    let ended = scratch.run(&words);
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    assert!(ended.stderr.contains("not enough space") && ended.stderr.contains("--dir"), "{}", ended.stderr);
    let ended = scratch.run(&format!("{words} --device missing"));
    assert!(
        ended.code == Some(2) && ended.stderr.contains("the block device does not exist"),
        "{}",
        ended.stderr
    );
    assert!(names_in(small.path()).is_empty());
}

#[test]
fn a_kill_at_any_moment_leaves_nothing_that_clean_does_not_know() {
    let has = |scratch: &Scratch, suffix: &str, file: &str| {
        let of_engine = scratch.names().into_iter().find(|name| name.ends_with(suffix));
        of_engine.is_some_and(|name| scratch.join(&name).join(file).exists())
    };
    // The moments in their order: the manifest, the engine's pool from its directory to its end, and a load.
    let moments: [&dyn Fn(&Scratch) -> bool; 6] = [
        &|scratch| !manifests(scratch).is_empty(),
        &|scratch| has(scratch, "-engine", ""),
        &|scratch| has(scratch, "-engine", "superblock.partial") || has(scratch, "-engine", "superblock"),
        &|scratch| has(scratch, "-engine", "superblock"),
        &|scratch| has(scratch, "-mount", "."),
        &|scratch| has(scratch, "-object", "superblock"),
    ];
    for (number, is_come) in moments.iter().enumerate() {
        let scratch = Scratch::new();
        let running = scratch.start("stack --quick --size 64m --dir . --seed 3");
        running.await_that(|| is_come(&scratch));
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
