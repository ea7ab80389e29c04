//! Doors: one load by the library, by a mount and by that mount with interception, side by side, and what is left by a run that was killed.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::process::Signal;
use serde_json::Value;

use crate::support::{Scratch, class, csv_rows, skipped};

const NO_MOUNT: &str = "mounting needs root and /dev/fuse";

/// A directory with a pool; none where nothing can be mounted.
fn scratch() -> Option<Scratch> {
    if !rustix::process::geteuid().is_root() || !Path::new("/dev/fuse").exists() {
        return None;
    }
    let scratch = Scratch::new();
    assert_eq!(scratch.run("pool create vos:pool --scm 128m").code, Some(0));
    fs::create_dir(scratch.join("tmp")).unwrap();
    Some(scratch)
}

/// The interception library of this build, where it is built.
fn library() -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_BIN_EXE_strata")).parent().unwrap();
    let places = [folder.join("libstrata_intercept.so"), folder.join("deps/libstrata_intercept.so")];
    places.into_iter().find(|place| place.is_file())
}

fn environment(scratch: &Scratch) -> Vec<(&'static str, String)> {
    let library = library().unwrap_or_default();
    vec![
        ("TMPDIR", scratch.join("tmp").display().to_string()),
        ("XDG_RUNTIME_DIR", scratch.join("tmp").display().to_string()),
        ("STRATA_INTERCEPT", library.display().to_string()),
    ]
}

fn doors(record: &Value) -> Vec<(String, u64)> {
    let plan = |phase: &Value| {
        (phase["plan"]["door"].as_str().unwrap().to_owned(), phase["plan"]["door_turn"].as_u64().unwrap())
    };
    record["phases"].as_array().unwrap().iter().map(plan).collect()
}

/// Mounts of doors that stand below a directory.
fn mounts(scratch: &Scratch) -> usize {
    let place = scratch.join("tmp").display().to_string();
    fs::read_to_string("/proc/self/mounts").unwrap().lines().filter(|line| line.contains(&place)).count()
}

fn measured(scratch: &Scratch, words: &str) -> (String, Value) {
    let ended = scratch.start_in(&format!("{words} --json record.json"), &environment(scratch)).end();
    assert_eq!(ended.code, Some(0), "{words}: {}", ended.stderr);
    let record = crate::support::read_record(&scratch.join("record.json"));
    assert!(fs::read_dir(scratch.join("tmp")).unwrap().next().is_none(), "{words}: nothing is left");
    assert_eq!(mounts(scratch), 0, "{words}");
    (ended.stdout, record)
}

#[test]
fn all_doors_take_turns_and_stand_side_by_side() {
    let test = "all_doors_take_turns_and_stand_side_by_side";
    let Some(scratch) = scratch() else { return skipped(test, NO_MOUNT) };
    if library().is_none() {
        return skipped(test, "the interception library is not built: cargo build -p intercept");
    }
    let words =
        "fs dfs+vos:pool --door all --door-turns 2 --files 20 --file-size 6000 --block-size 4k --verify";
    let (shown, record) = measured(&scratch, &format!("{words} --op create,write,read,readdir --threads 2"));
    let turn = |turn: u64| {
        ["library", "mount", "intercept"].map(|door| (0..4).map(move |_| (door.to_owned(), turn)))
    };
    let expected: Vec<_> = [turn(1), turn(2)].into_iter().flatten().flatten().collect();
    assert_eq!(doors(&record), expected);
    for at in 0..24 {
        assert_eq!(record["phases"][at]["plan"]["door_target"], "dfs+vos:pool");
        if at % 4 == 2 {
            assert_eq!(class(&record, at, "read"), (80, 40 * 6000), "phase {at}");
        }
    }
    assert!(shown.contains("doors of dfs+vos:pool") && shown.contains("2 turns of each door"), "{shown}");
    let row = shown.lines().find(|line| line.starts_with("write ")).unwrap();
    assert_eq!((row.matches("/s").count(), row.matches(" to ").count()), (3, 2), "{row}");
    assert!(!shown.contains("\nlibrary write\n"), "no block for each phase: {shown}");
    let again = scratch.run("report record.json");
    assert!(again.stdout.contains("doors of dfs+vos:pool"), "{}", again.stdout);
    let csv = scratch.run("report --csv record.json").stdout;
    let is_last = |row: &BTreeMap<&str, &str>| (row["door"], row["door_turn"]) == ("intercept", "2");
    assert!(csv_rows(&csv).iter().any(is_last), "{csv}");
}

#[test]
fn files_of_any_shape_go_through_each_door() {
    let Some(scratch) = scratch() else {
        return skipped("files_of_any_shape_go_through_each_door", NO_MOUNT);
    };
    let doors =
        if library().is_some() { vec!["library", "mount", "intercept"] } else { vec!["library", "mount"] };
    for door in doors {
        for shape in ["--shape private", "--shape shared --segments 3"] {
            let words = format!(
                "fs dfs+vos:pool --door {door} {shape} --threads 2 --file-size 64k --block-size 8k --verify --rank-shift 1"
            );
            let (_, record) = measured(&scratch, &words);
            let segments = if shape.contains("segments") { 3 } else { 1 };
            assert_eq!(class(&record, 1, "read"), (16 * segments, segments * (128 << 10)), "{words}");
        }
    }
    // A later run by the library finds nothing of them.
    let ended = scratch.run("fs dfs+vos:pool --op unlink --no-fill");
    assert!(ended.stderr.contains("no tree exists"), "{}", ended.stderr);
}

#[test]
fn what_a_killed_run_has_left_is_unmounted_and_cleaned() {
    let Some(scratch) = scratch() else {
        return skipped("what_a_killed_run_has_left_is_unmounted_and_cleaned", NO_MOUNT);
    };
    let environment = environment(&scratch);
    let words = "fs dfs+vos:pool --door mount --op create --files 1000000 --time 60s --live-csv -";
    for signal in [Signal::INT, Signal::KILL] {
        let mut running = scratch.start_in(words, &environment);
        running.await_row("mount create");
        assert_eq!(mounts(&scratch), 1);
        running.signal(signal);
        let ended = running.end();
        assert_eq!(ended.code, (signal == Signal::INT).then_some(1), "{}", ended.stderr);
        while mounts(&scratch) > 0 {
            std::thread::sleep(Duration::from_millis(10));
        }
    }
    // The pool is given back when the mount's process has ended.
    let mut cleaned = scratch.run("clean --yes");
    while cleaned.stderr.contains("in use") || cleaned.stderr.contains("open") {
        cleaned = scratch.run("clean --yes");
    }
    assert_eq!(cleaned.code, Some(0), "{}", cleaned.stderr);
    assert!(cleaned.stdout.contains("dfs+vos:pool: removed "), "{}", cleaned.stdout);
    // The next run removes the directory that was mounted on, and the folder of the socket.
    measured(&scratch, "fs dfs+vos:pool --door mount --files 3");
}

#[test]
fn doors_are_refused_where_they_cannot_be() {
    let scratch = Scratch::new();
    assert_eq!(scratch.run("pool create vos:pool --scm 64m").code, Some(0));
    for (words, told) in [
        ("fs t --door all", "dfs+vos:DIR"),
        ("fs dfs+vos:pool dfs+vos:other --door library", "use one target"),
        ("fs dfs+vos:pool --door mount --engine posix", "--engine"),
        ("fs dfs+vos:pool --door window", "intercept"),
        ("fs dfs+vos:pool --door-turns 2", "--door all"),
        ("fs dfs+vos:pool --door all --depth 4", "--threads"),
        ("fs dfs+vos:pool --door all --saturate", "--saturate"),
        ("fs dfs+vos:pool --door mount --op link", "no hard links"),
    ] {
        let ended = scratch.run(words);
        assert_eq!(ended.code, Some(2), "{words}: {}", ended.stderr);
        assert!(ended.stderr.contains(told), "{words}: {}", ended.stderr);
    }
    if Path::new("/dev/fuse").exists() {
        let words = "fs dfs+vos:pool --door intercept";
        let ended = scratch.start_in(words, &[("STRATA_INTERCEPT", "/nowhere/lib.so".to_owned())]).end();
        assert_ne!(ended.code, Some(0));
        assert!(ended.stderr.contains("looked_for=/nowhere/lib.so"), "{}", ended.stderr);
    }
    assert_eq!(scratch.names(), ["pool"]);
}
