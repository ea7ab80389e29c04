//! `strata app --try`: the first remedy for the largest part of the time, in turns with the load as it was.

use std::fs;

use rustix::process::Signal;
use serde_json::Value;

use crate::support::{Scratch, class, names_in, read_record};

/// An application that syncs each write, with a remedy that has it sync none but the last.
const SYNCING: &str = "format = 1\nname = 'syncing'\nversion = '1'\nsummary = 'Syncs'\n\
    [parameters]\nevery = { default = 1, min = 1, help = 'Writes for one sync' }\nsize = { default = '4KiB', help = 'Bytes' }\n\
    [[remedy]]\npart = 'sync'\nset = 'every=every * 200'\n\
    [[set]]\nname = 'x'\nkind = 'array'\nlayout = 'process'\nsize = 'size'\n\
    [[group]]\nname = 'writers'\nstage = 'write'\nprocesses = 1\niterations = 1\n\
    [[group.step]]\nname = 'w'\nitems = 200\nbegin = ['create x']\neach = ['write x', 'sync x every every']\nend = ['close x']\n";

/// A directory on a disk, whose syncs take time.
fn scratch() -> (Scratch, tempfile::TempDir) {
    let scratch = Scratch::new();
    fs::write(scratch.join("syncing.toml"), SYNCING).unwrap();
    (scratch, tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap())
}

fn sides(record: &Value) -> Vec<(String, u64, u64)> {
    let turns =
        record["phases"].as_array().unwrap().iter().filter(|phase| phase["plan"]["beside"].is_object());
    let side = |phase: &Value| {
        let beside = &phase["plan"]["beside"];
        let at = beside["at"].as_u64().unwrap();
        (beside["labels"][at as usize].as_str().unwrap().to_owned(), at, beside["pass"].as_u64().unwrap())
    };
    turns.map(side).collect()
}

#[test]
fn the_remedy_for_the_largest_part_runs_in_turns_with_the_load_as_it_was() {
    let (scratch, disk) = scratch();
    let target = disk.path().display().to_string();
    let ended = scratch.run(&format!("app ./syncing.toml {target} --try --passes 4 --json record.json"));
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let record = read_record(&scratch.join("record.json"));
    let expected: Vec<_> = (1..=4)
        .flat_map(|pass| [("unchanged".to_owned(), 0, pass), ("every=200".to_owned(), 1, pass)])
        .collect();
    assert_eq!(sides(&record), expected, "in turns, behind the first run");
    let remedy = &record["phases"][1]["plan"]["beside"]["remedy"];
    assert_eq!(
        (&remedy["part"], &remedy["set"], &remedy["group"]),
        (&"sync".into(), &"every=200".into(), &"writers".into())
    );
    assert!(remedy["share_fraction"].as_f64().unwrap() > 0.05, "{remedy}");
    assert!(record["phases"][0]["observations"]["profile"].is_object(), "the first run is broken down");
    for (phase, syncs) in [(0, 200), (1, 200), (2, 1), (8, 1)] {
        assert_eq!(class(&record, phase, "sync").0, syncs, "phase {phase}");
        assert_eq!(class(&record, phase, "write"), (200, 200 * 4096), "the same data");
        let plan = &record["phases"][phase]["plan"];
        assert_eq!(plan["content_seed"], record["phases"][0]["plan"]["content_seed"]);
    }
    for text in [ended.stdout, scratch.run("report record.json").stdout] {
        assert!(
            text.contains("test of the first remedy\n") && text.contains("every=200: sync takes "),
            "{text}"
        );
        // A sync for each of 200 writes takes many times as long as one, on any disk.
        assert!(text.contains("syncing write: faster with every=200, "), "{text}");
    }
    assert_eq!(names_in(disk.path()), Vec::<String>::new());
}

/// Calls of a class in all phases of a record.
fn calls(record: &Value, name: &str) -> u64 {
    let phases = record["phases"].as_array().unwrap().iter();
    let classes = phases.flat_map(|phase| phase["summary"]["classes"].as_array().unwrap());
    classes.filter(|class| class["class"] == name).map(|class| class["operations"].as_u64().unwrap()).sum()
}

#[test]
fn habits_of_fdb_hammer_cost_the_calls_that_they_say() {
    let scratch = Scratch::new();
    let small = "--steps 2 --size 4KiB --levels 2 --params 5 --writers 3 --readers 2";
    for (pattern, processes) in [("A", 2), ("B", 1)] {
        let run = |set: &str| {
            let record = scratch
                .measured(&format!("app fdb-hammer vos:store {small} --pattern {pattern} --set {set}"));
            ["open-container", "stat", "list", "get"].map(|name| calls(&record, name))
        };
        assert_eq!(run("container=process"), [3 + 2, 0, 0, 60], "{pattern}");
        // Of pattern A the readers come when the writers are gone.
        assert_eq!(run("container=shared,sizes=asked"), [processes, 60, 0, 60], "{pattern}");
        assert_eq!(run("lookup=list"), [3 + 2, 0, 2 * 2, 60], "{pattern}");
    }
    let ended = scratch.run("app fdb-hammer vos:store --set sizes=guessed");
    assert!(ended.code == Some(2) && ended.stderr.contains("known"), "{}", ended.stderr);
}

#[test]
fn remedies_are_those_of_the_application_and_never_what_was_run() {
    let scratch = Scratch::new();
    let small = "--steps 2 --size 4KiB --levels 2 --params 5 --passes 2 --set container=shared";
    let record = scratch.measured(&format!("app fdb-hammer vos:store {small} --try"));
    assert_eq!(sides(&record).last().unwrap().0, "index=process");
    assert_eq!(record["phases"].as_array().unwrap().len(), 2 + 2 * 2 * 2);
    assert!(!scratch.join("store").exists());
    let ended = scratch
        .run(&format!("app fdb-hammer vos:store {small} --index process --set ids=1 --try --json two.json"));
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let two = read_record(&scratch.join("two.json"));
    for (label, ..) in sides(&two) {
        assert!(["unchanged", "ids=10"].contains(&label.as_str()), "{label}");
    }
    if sides(&two).is_empty() {
        assert!(
            ended.stdout.contains("no part with 5 % of the time or more has a remedy"),
            "{}",
            ended.stdout
        );
    }
}

#[test]
fn what_has_no_remedy_and_what_does_not_go_with_it_is_refused() {
    let (scratch, _disk) = scratch();
    fs::create_dir(scratch.join("data")).unwrap();
    fs::write(scratch.join("bad.toml"), SYNCING.replace("part = 'sync'", "part = 'fsync'")).unwrap();
    for (words, said) in [
        ("database data --try", "has no remedy for this load"),
        ("fdb-hammer data --try --keep", "--try conflicts with --keep"),
        ("fdb-hammer data --try --hosts local:2", "--try conflicts with --hosts"),
        ("fdb-hammer --try --on ./data,vos:s", "--on conflicts with --try"),
        ("dlio data --try --accelerators max", "--try conflicts with accelerators=max"),
        ("fdb-hammer data --passes 3", "--on TARGET,TARGET or --try"),
        ("./bad.toml data", "one of open-container"),
    ] {
        let ended = scratch.run(&format!("app {words}"));
        assert_eq!(ended.code, Some(2), "{words}: {}", ended.stderr);
        assert!(
            ended.stderr.contains(said) && ended.stderr.lines().count() == 1,
            "{words}: {}",
            ended.stderr
        );
    }
    assert_eq!(names_in(&scratch.join("data")), Vec::<String>::new());
}

#[test]
fn an_interrupt_between_the_turns_leaves_nothing() {
    let (scratch, disk) = scratch();
    let target = disk.path().display().to_string();
    let running = scratch.start(&format!("app ./syncing.toml {target} --try --passes 50 --json record.json"));
    running.await_that(|| {
        fs::read_to_string(scratch.join("record.json")).unwrap_or_default().contains("with every=200")
    });
    running.signal(Signal::INT);
    let ended = running.end();
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    let record = read_record(&scratch.join("record.json"));
    assert_eq!(record["status"], "partial");
    assert!((2..101).contains(&record["phases"].as_array().unwrap().len()));
    assert_eq!(names_in(disk.path()), Vec::<String>::new());
}
