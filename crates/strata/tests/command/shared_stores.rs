//! Stores in a directory for several processes of one machine: an engine of the run serves them.

use std::fs;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::hosts::await_that;
use crate::launchers::{MPIRUN, has, launch, output, text};
use crate::many_hosts::{LOST_WAIT, children, lives};
use crate::support::{Scratch, class, read_record, state_of};

/// A pool in each of these directories.
fn pools(names: &[&str]) -> Scratch {
    let scratch = Scratch::new();
    for name in names {
        assert_eq!(scratch.run(&format!("pool create vos:{name} --scm 256m")).code, Some(0));
    }
    scratch
}

/// Containers of a pool that are there: it can be opened, so no engine has it open any more.
fn containers(scratch: &Scratch, pool: &str) -> Vec<String> {
    let ended = scratch.run(&format!("pool query vos:{pool}"));
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let lines = ended.stdout.lines().filter(|line| line.starts_with("container "));
    lines.filter(|line| !line.contains("destroyed, not collected")).map(str::to_owned).collect()
}

const HAMMER: &str = "--steps 2 --size 8KiB --levels 2 --params 5 --writers 4 --readers 4";
const HAMMER_BYTES: u64 = 2 * 4 * 2 * 5 * 8192;

fn is_served(phase: &Value, store: &str) -> bool {
    let mut notes = phase["notes"].as_array().unwrap().iter().filter_map(Value::as_str);
    notes.any(|note| {
        note.starts_with(&format!(
            "{store} is served to the processes of this run by an engine at 127.0.0.1:"
        ))
    })
}

#[test]
fn processes_of_a_machine_use_one_store_by_an_engine() {
    let scratch = pools(&["a", "b"]);
    for (target, form, name) in
        [("vos:a", "engine://127.0.0.1:", "engine"), ("dfs+vos:b", "dfs+engine://127.0.0.1:", "dfs")]
    {
        let record = scratch.measured(&format!("app fdb-hammer {target} {HAMMER} --hosts local:2"));
        assert_eq!(class(&record, 1, "read").1, HAMMER_BYTES, "{target}");
        let plan = &record["phases"][1]["plan"];
        assert!(plan["target"].as_str().unwrap().starts_with(form) && plan["engine"] == name, "{plan}");
        assert!(plan["target_options"].as_array().is_none_or(Vec::is_empty), "{plan}");
        assert!(
            record["phases"].as_array().unwrap().iter().all(|phase| is_served(phase, target)),
            "{target}"
        );
    }
    assert_eq!(containers(&scratch, "a"), Vec::<String>::new());
    let left = containers(&scratch, "b");
    assert!(left.len() == 1 && left[0].contains("112 B in 3 values"), "the root alone: {left:?}");
    // One host opens it itself.
    let record = scratch.measured(&format!("app fdb-hammer vos:a {HAMMER} --hosts local:1"));
    assert_eq!(record["phases"][1]["plan"]["engine"], "vos");
}

#[test]
fn targets_side_by_side_and_phases_of_a_job_share_it_too() {
    let scratch = pools(&["a", "b"]);
    fs::create_dir(scratch.join("data")).unwrap();
    let record = scratch.measured(&format!(
        "app fdb-hammer --on ./data,vos:a,mine:dfs+vos:b {HAMMER} --passes 2 --hosts local:2"
    ));
    let beside = &record["phases"][0]["plan"]["beside"];
    assert_eq!(beside["labels"], serde_json::json!(["./data", "vos a", "mine"]), "{beside}");
    assert_eq!(record["phases"].as_array().unwrap().len(), 12);
    fs::write(
        scratch.join("two.toml"),
        "hosts = [\"local:2\"]\n[[phase]]\nlayer = \"filesystem\"\ntargets = [\"dfs+vos:b\"]\nop = \"write\"\nfiles = 4\nfile_size = \"64k\"\nblock_size = \"4k\"\nkeep = true\nverify = true\n\
         [[phase]]\nlayer = \"filesystem\"\ntargets = [\"dfs+vos:b\"]\nop = \"read\"\nfiles = 4\nfile_size = \"64k\"\nblock_size = \"4k\"\nverify = true\n",
    )
    .unwrap();
    let ended = scratch.run("run two.toml --json record.json");
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let record = read_record(&scratch.join("record.json"));
    let targets: Vec<&Value> =
        record["phases"].as_array().unwrap().iter().map(|phase| &phase["plan"]["targets"]).collect();
    assert!(targets.windows(2).all(|pair| pair[0] == pair[1]), "one engine for both: {targets:?}");
    assert_eq!(class(&record, 1, "read").1, 2 * 4 * 65536);
}

#[test]
fn what_cannot_be_served_is_refused() {
    let scratch = pools(&["a"]);
    for (words, told) in [
        ("app vpic vos:none --hosts local:2", "strata pool create vos:none"),
        ("app vpic dfs+vos:none --hosts local:2", "strata pool create vos:"),
        (
            "app vpic vos:a --hosts local:2 --target-options durability=batch",
            "durability requires a store that one process opens",
        ),
        ("fs dfs+vos:none --hosts local:2", "strata pool create vos:"),
    ] {
        let ended = scratch.run(words);
        assert!(ended.code == Some(2) && ended.stderr.contains(told), "{words}: {}", ended.stderr);
        assert_eq!(ended.stderr.lines().count(), 1, "{words}: {}", ended.stderr);
    }
    assert_eq!(containers(&scratch, "a"), Vec::<String>::new());
}

/// The engine among the processes of a run.
fn engine_of(run: u32) -> Pid {
    let is_engine = |process: &Pid| {
        let words = fs::read(format!("/proc/{}/cmdline", process.as_raw_nonzero())).unwrap_or_default();
        words.split(|byte| *byte == 0).any(|word| word == b"engine")
    };
    children(run).into_iter().find(is_engine).expect("an engine")
}

const LONG: &str = "app fdb-hammer TARGET --pattern B --steps 2000 --size 1KiB --levels 1 --params 1 --writers 2 --readers 2 \
                    --set compute=20ms --hosts local:2 --live-csv - --json record.json";

#[test]
fn what_a_killed_run_has_left_is_found_in_the_store() {
    for (target, store) in [("vos:a", "vos:"), ("dfs+vos:a", "dfs+vos:")] {
        let scratch = pools(&["a"]);
        let mut running = scratch.start(&LONG.replace("TARGET", target));
        running.await_row("fdb-hammer");
        let (run, processes) = (running.id(), children(running.id()));
        kill_process(Pid::from_raw(run as i32).unwrap(), Signal::KILL).unwrap();
        running.end();
        await_that("hosts and engine end", LOST_WAIT, || !processes.iter().any(|process| lives(*process)));
        // The engine ended when the hosts did: what they made may be there still, and stands in a list with the store's own name.
        let shown = scratch.run("clean");
        let place = format!("{store}{}", scratch.join("a").display());
        let is_listed = shown.stdout.contains(&place);
        assert!(
            is_listed || shown.stdout.contains("nothing is left"),
            "{target}: {} {}",
            shown.stdout,
            shown.stderr
        );
        let cleaned = scratch.run("clean --yes");
        assert_eq!(cleaned.code, Some(0), "{target}: {} {}", cleaned.stdout, cleaned.stderr);
        let left = containers(&scratch, "a");
        assert!(
            left.iter().all(|line| line.contains("dfs: 112 B in 3 values")),
            "{target}: {left:?} {} {}",
            shown.stdout,
            cleaned.stdout
        );
        let lists = state_of(scratch.path()).join("strata");
        let lists = fs::read_dir(lists).unwrap().flatten().map(|entry| entry.path());
        assert_eq!(lists.filter(|path| path.extension().is_some_and(|end| end == "json")).count(), 0);
    }
}

#[test]
fn an_engine_that_dies_ends_the_run_and_the_store_is_whole() {
    let scratch = pools(&["a"]);
    let mut running = scratch.start(&LONG.replace("TARGET", "vos:a"));
    running.await_row("fdb-hammer");
    kill_process(engine_of(running.id()), Signal::KILL).unwrap();
    let ended = running.end();
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    let record = read_record(&scratch.join("record.json"));
    assert_eq!(record["status"], "partial");
    // Nothing could be removed by way of the engine.
    let cleaned = scratch.run("clean --yes");
    assert_eq!(cleaned.code, Some(0), "{} {}", cleaned.stdout, cleaned.stderr);
    assert_eq!(containers(&scratch, "a"), Vec::<String>::new());
}

#[test]
fn an_interrupt_leaves_nothing() {
    let scratch = pools(&["a"]);
    let mut running = scratch.start(&LONG.replace("TARGET", "vos:a"));
    running.await_row("fdb-hammer");
    running.signal(Signal::INT);
    let ended = running.end();
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    assert_eq!(containers(&scratch, "a"), Vec::<String>::new());
    assert!(scratch.run("clean").stdout.contains("nothing is left"));
}

#[test]
fn ranks_of_mpirun_share_it() {
    if !has("shared stores", "mpirun.openmpi") {
        return;
    }
    let scratch = pools(&["a"]);
    let two = [MPIRUN, &["-np", "2"]].concat();
    for (words, phase) in [
        (format!("app fdb-hammer vos:a {HAMMER} --live none --json record.json"), 1),
        ("as --json record.json ior -w -r -R -t 64k -b 1m -o dfs+vos:a".to_owned(), 1),
    ] {
        let ended = output(launch(&scratch, &two, &words, &[]));
        assert_eq!(ended.status.code(), Some(0), "{words}: {}", text(&ended.stderr));
        let record = read_record(&scratch.join("record.json"));
        assert!(class(&record, phase, "read").0 > 0, "{words}");
    }
}
