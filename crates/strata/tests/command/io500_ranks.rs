//! IO500 as ranks: the processes that mpirun has started carry the phases out together, and rank 0 writes the results.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Output, Stdio};
use std::time::Duration;

use rustix::process::{Signal, kill_process};
use serde_json::Value;

use crate::hosts::await_that;
use crate::io500::{PHASES, TINY};
use crate::launchers::{MPIRUN, has, launch, output, process_with, text};
use crate::support::{Scratch, names_in, read_record, state_of};

/// Longest wait for what a test waits for.
const WAIT: Duration = Duration::from_secs(30);

/// A run directory with a configuration. None, and a line that says so, where mpirun is not installed.
fn scratch(test: &str, ini: &str) -> Option<Scratch> {
    if !has(test, "mpirun.openmpi") {
        return None;
    }
    let scratch = Scratch::new();
    fs::write(scratch.join("run.ini"), format!("[debug]\nstonewall-time = 1\n{ini}")).unwrap();
    fs::create_dir(scratch.join("data")).unwrap();
    Some(scratch)
}

fn ranks(scratch: &Scratch, count: &str, words: &str) -> Output {
    output(launch(scratch, &[MPIRUN, &["-np", count]].concat(), words, &[]))
}

const RUN: &str = "suite io500 data --ini run.ini --results results --live none";

fn phase<'a>(record: &'a Value, name: &str) -> &'a Value {
    let phases = record["phases"].as_array().unwrap();
    phases.iter().find(|phase| phase["plan"]["name"] == name).unwrap_or_else(|| panic!("{name}"))
}

/// Operations of a class by rank.
fn counts(phase: &Value, class: &str) -> Vec<u64> {
    let of = |worker: &Value| {
        let classes = worker["classes"].as_array().unwrap();
        classes.iter().find(|found| found["class"] == class).unwrap()["operations"].as_u64().unwrap()
    };
    phase["samples"]["workers"].as_array().unwrap().iter().map(of).collect()
}

/// Asserts that nothing is left of a run, nor on the lists of what runs made.
fn assert_nothing_left(scratch: &Scratch) {
    assert_eq!(names_in(&scratch.join("data")), Vec::<String>::new());
    let lists = names_in(&state_of(scratch.path()).join("strata"));
    assert!(lists.iter().all(|name| !name.ends_with(".json")), "{lists:?}");
}

#[test]
fn all_phases_are_of_all_ranks() {
    // All is made before the stonewall, on whatever the test runs; random reads go on until then.
    let ini = format!("{TINY}[ior-rnd4K-easy-read]\nrun = FALSE\n");
    let Some(scratch) = scratch("io500", &ini) else { return };
    let ended = ranks(&scratch, "3", &format!("{RUN} --stonewall 3600"));
    let shown = text(&ended.stdout);
    assert_eq!(ended.status.code(), Some(0), "{shown}{}", text(&ended.stderr));
    assert_eq!(shown.matches("IO500 version").count(), 1, "{shown}");
    let record = read_record(&scratch.join("results/record.json"));
    let hosts: Vec<&Value> = record["hosts"].as_array().unwrap().iter().map(|host| &host["name"]).collect();
    assert_eq!(hosts, ["rank 0", "rank 1", "rank 2"]);
    for (name, class, each) in [
        ("ior-easy-write", "write", 16),
        ("mdtest-easy-write", "create", 300),
        ("ior-hard-write", "write", 20),
        ("ior-easy-read", "read", 16),
        ("mdtest-easy-stat", "stat", 300),
        ("ior-hard-read", "read", 20),
        ("mdtest-hard-stat", "stat", 300),
        ("mdtest-easy-delete", "unlink", 300),
        ("mdtest-hard-read", "read", 300),
        ("mdtest-hard-delete", "unlink", 300),
    ] {
        assert_eq!(counts(phase(&record, name), class), [each; 3], "{name}");
    }
    // By the rank after the one that wrote it, which is another process.
    let read = phase(&record, "ior-easy-read");
    assert_eq!((&read["plan"]["rank_shift"]["by"], &read["plan"]["load"]["threads"]), (&1.into(), &1.into()));
    assert_eq!(read["plan"]["load"]["place"]["hosts"], 3);
    // Each directory and file is seen once, by whichever rank: 3 directories, 4 for trees, 4 and 1800 files.
    let found = &phase(&record, "find")["observations"]["files"]["found"];
    assert_eq!(found["entries"], 1814, "{found}");
    let result = fs::read_to_string(scratch.join("results/result.txt")).unwrap();
    assert!(result.contains("procs           = 3\n") && result.contains("--threads 1 "), "{result}");
    for phase in PHASES.iter().filter(|phase| !["timestamp", "find", "ior-rnd4K-easy-read"].contains(*phase))
    {
        let rows = fs::read_to_string(scratch.join(&format!("results/{phase}.csv"))).unwrap();
        assert_eq!(rows.lines().count(), 1 + 3, "{phase}");
    }
    assert!(!scratch.join("results/state.json").exists());
    assert_nothing_left(&scratch);
}

#[test]
fn the_fastest_rank_of_all_processes_says_how_much_each_makes() {
    // Files for more than the stonewall, on whatever the test runs.
    let ini = "[ior-easy]\ntransferSize = 64k\nblockSize = 1m\n[ior-hard]\nrun = FALSE\n[mdtest-easy]\nn = 1000000\n\
               [mdtest-hard]\nrun = FALSE\n[find]\nnproc = 1\n";
    let Some(scratch) = scratch("io500 stonewall", &format!("{ini}[global]\ndatadir = data\n")) else {
        return;
    };
    let ended = ranks(&scratch, "2", "as io500 run.ini --ranks 2 --results results");
    assert_eq!(ended.status.code(), Some(0), "{}{}", text(&ended.stdout), text(&ended.stderr));
    let record = read_record(&scratch.join("results/record.json"));
    let made = counts(phase(&record, "mdtest-easy-write"), "create");
    assert!(made.len() == 4 && made[0] > 0 && made.iter().all(|count| *count == made[0]), "{made:?}");
    // Each process knows how much those of the other have made.
    assert_eq!(counts(phase(&record, "mdtest-easy-stat"), "stat"), made);
    assert_eq!(counts(phase(&record, "mdtest-easy-delete"), "unlink"), made);
    // Random reads go over all that was written, in blocks of another size.
    let written: u64 = counts(phase(&record, "ior-easy-write"), "write").iter().sum();
    let random = &phase(&record, "ior-rnd4K-easy-read")["observations"]["files"];
    assert!(written > 0 && random["items"] == written * 16, "{written} {random}");
    let find = phase(&record, "find");
    assert_eq!(
        (&find["plan"]["load"]["place"]["hosts"], &find["plan"]["load"]["place"]["run_hosts"]),
        (&1.into(), &2.into())
    );
    assert_eq!(record["suite"]["ranks"], 4);
    assert_nothing_left(&scratch);
}

#[test]
fn what_is_not_as_written_is_found_by_another_rank() {
    let script = "#!/bin/sh\nf=$(ls data/*/ior-easy/ior_file_easy.00000001)\nprintf x | dd of=$f bs=1 seek=70000 conv=notrunc 2>/dev/null\n\
                  echo MATCHED 3/1000\n";
    let Some(scratch) =
        scratch("io500 verification", &format!("[find]\nexternal-script = ./spoil.sh\n{TINY}"))
    else {
        return;
    };
    fs::write(scratch.join("spoil.sh"), script).unwrap();
    fs::set_permissions(scratch.join("spoil.sh"), fs::Permissions::from_mode(0o755)).unwrap();
    let ended = ranks(&scratch, "2", RUN);
    assert_eq!(ended.status.code(), Some(1), "{}", text(&ended.stdout));
    let record = read_record(&scratch.join("results/record.json"));
    let phases = record["suite"]["phases"].as_array().unwrap();
    let read = phases.iter().find(|phase| phase["name"] == "ior-easy-read").unwrap();
    assert!(read["invalid"].to_string().contains("not as written"), "{read}");
    assert_nothing_left(&scratch);
}

/// Work for longer than any test waits.
const LONG: &str = "[ior-easy]\ntransferSize = 64k\nblockSize = 1m\n[ior-hard]\nsegmentCount = 20\n[mdtest-easy]\nn = 200\n\
                    [mdtest-hard]\nn = 100000000\n";

/// A run in its phase of files in one directory, which takes as long as it is let.
fn started(scratch: &Scratch) -> Child {
    let words = format!("{RUN} --stonewall 3600");
    let mut command = launch(scratch, &[MPIRUN, &["-np", "2"]].concat(), &words, &[]);
    let running = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    await_that("files in one directory", WAIT, || {
        let directories = fs::read_dir(scratch.join("data")).unwrap().flatten();
        let mut trees = directories.map(|entry| entry.path().join("mdtest-hard/test-dir.0-0/mdtest_tree.0"));
        trees.any(|tree| fs::read_dir(tree).is_ok_and(|mut files| files.next().is_some()))
    });
    running
}

#[test]
fn an_interrupted_run_of_ranks_leaves_nothing_to_go_on_with() {
    let Some(scratch) = scratch("io500 interrupted", LONG) else { return };
    let running = started(&scratch);
    let leader = process_with("OMPI_COMM_WORLD_RANK=0", scratch.path()).unwrap();
    kill_process(leader, Signal::INT).unwrap();
    let ended = running.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(1), "{}", text(&ended.stderr));
    let record = read_record(&scratch.join("results/record.json"));
    assert_eq!((&record["status"], &record["failure"]), (&"partial".into(), &"interrupted".into()));
    let invalid = record["suite"]["invalid"].to_string();
    assert!(invalid.contains("the run ended before or in mdtest-hard-write"), "{invalid}");
    assert!(!text(&ended.stderr).contains("--resume") && !scratch.join("results/state.json").exists());
    assert_nothing_left(&scratch);
    let refused = ranks(&scratch, "2", "as io500 --resume results");
    assert_eq!(refused.status.code(), Some(2));
    assert!(text(&refused.stderr).contains("a launcher has started 2 processes, which begin a run anew"));
}

#[test]
fn what_a_killed_rank_has_made_is_cleaned_by_the_record() {
    let Some(scratch) = scratch("io500 killed", LONG) else { return };
    let running = started(&scratch);
    let rank = process_with("OMPI_COMM_WORLD_RANK=1", scratch.path()).unwrap();
    kill_process(rank, Signal::KILL).unwrap();
    let ended = running.wait_with_output().unwrap();
    assert_ne!(ended.status.code(), Some(0), "{}", text(&ended.stderr));
    // Rank 0 and its process may take a moment for theirs.
    await_that("all is removed", WAIT, || {
        scratch.run("clean --yes results/record.json").code == Some(0)
            && names_in(&scratch.join("data")).is_empty()
    });
    assert_nothing_left(&scratch);
}
