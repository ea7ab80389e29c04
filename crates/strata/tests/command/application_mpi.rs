//! Parallel HDF5: ranks of Open MPI that share the files of an application, with what is refused and what goes wrong.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::hosts::await_that;
use crate::launchers::{MPIRUN, has, launch, output, text};
use crate::support::{Mounted, Scratch, class, names_in, read_record, skipped, tool};

/// A small load of three ranks: 2 checkpoints of 1.5 MiB.
const SMALL: &str = "--steps 2 --set particles=16384,ranks=3,compute=1ms,transfer=16KiB";
/// Bytes of a variable in a checkpoint of it.
const VARIABLE_BYTES: usize = 3 * 16384 * 4;
const VARIABLES: [&str; 8] = ["x", "y", "z", "px", "py", "pz", "id1", "id2"];
/// Longest wait for what a test waits for.
const WAIT: Duration = Duration::from_secs(20);

/// A run directory with a directory for data. None, and a line that says so, where parallel HDF5 is not installed.
fn with_ranks(test: &str) -> Option<Scratch> {
    if !has(test, "mpirun.openmpi") {
        return None;
    }
    let scratch = Scratch::new();
    fs::create_dir(scratch.join("data")).unwrap();
    let ended = ranks(&scratch, 2, "app vpic data --format hdf5 --set particles=2,ranks=2,steps=1,compute=0");
    if text(&ended.stderr).contains(".so.103 is missing") {
        skipped(test, "libhdf5-openmpi-103-1 is not installed");
        return None;
    }
    assert_eq!(ended.status.code(), Some(0), "{}", text(&ended.stderr));
    Some(scratch)
}

fn ranks(scratch: &Scratch, count: u32, words: &str) -> Output {
    output(launch(scratch, &[MPIRUN, &["-np", &count.to_string()]].concat(), words, &[]))
}

/// The record of a run of three ranks that must be good.
fn good(scratch: &Scratch, words: &str) -> Value {
    let ended = ranks(scratch, 3, &format!("{words} --json record.json"));
    assert_eq!(ended.status.code(), Some(0), "{words}: {}", text(&ended.stderr));
    read_record(&scratch.join("record.json"))
}

#[test]
fn ranks_write_one_file_with_the_bytes_of_the_raw_file() {
    let Some(scratch) = with_ranks("ranks_write_one_file") else { return };
    let mut found = Vec::new();
    for (name, words) in [
        ("raw", "--format raw"),
        ("collective", ""),
        ("independent", "--format hdf5 --set transfers=independent"),
    ] {
        fs::create_dir(scratch.join(name)).unwrap();
        let record = good(&scratch, &format!("app vpic {name} {SMALL} {words} --seed 5 --keep"));
        assert_eq!(class(&record, 0, "write"), (3 * 2 * 8 * 4, 2 * 8 * VARIABLE_BYTES as u64));
        assert_eq!((class(&record, 0, "create").0, class(&record, 0, "close").0), (6, 6));
        assert_eq!(class(&record, 1, "read").1, 8 * VARIABLE_BYTES as u64);
        assert_eq!(record["hosts"].as_array().unwrap().len(), 3);
        let plan = &record["phases"][0]["plan"];
        let library = plan["hdf5_library"].as_str().unwrap_or("none");
        assert_eq!(library.contains("parallel over 3 ranks of MPI"), name != "raw", "{library}");
        assert_eq!(plan["sets"][0]["parallel"].as_str().unwrap_or("raw"), name);
        let top = names_in(&scratch.join(name)).remove(0);
        found.push(scratch.join(name).join(top).join("particles"));
    }
    if tool(&["h5dump", "--version"]).is_none() {
        return skipped("ranks_write_one_file", "hdf5-tools is not installed");
    }
    for checkpoint in ["0", "1"] {
        let raw = fs::read(found[0].join(checkpoint)).unwrap();
        assert_eq!(raw.len(), 8 * VARIABLE_BYTES);
        for file in &found[1..] {
            assert_eq!(datasets(&scratch, &file.join(checkpoint)), raw, "{}", file.display());
        }
    }
}

/// Bytes of all variables of a file, as h5dump has them.
fn datasets(scratch: &Scratch, file: &Path) -> Vec<u8> {
    let (file, out) = (file.display().to_string(), scratch.join("out").display().to_string());
    let mut bytes = Vec::new();
    for name in VARIABLES {
        tool(&["h5dump", "-d", &format!("/particles/{name}"), "-b", "FILE", "-o", &out, &file]).unwrap();
        bytes.extend(fs::read(&out).unwrap());
    }
    bytes
}

#[test]
fn ranks_read_together_and_each_by_itself() {
    let Some(scratch) = with_ranks("ranks_read_together") else { return };
    for transfers in ["collective", "independent"] {
        let words = format!("app bd-cats data {SMALL},writers=3,transfers={transfers} --profile");
        let record = good(&scratch, &words);
        assert_eq!(class(&record, 1, "read").1, 2 * 8 * VARIABLE_BYTES as u64);
        assert_eq!(record["phases"][1]["plan"]["sets"][0]["parallel"], transfers);
    }
    // Files of ranks are no shared ones: MPI is not in it.
    let record = good(&scratch, &format!("app vpic data {SMALL},files=rank --format hdf5"));
    let plan = &record["phases"][0]["plan"];
    assert!(plan["sets"][0]["parallel"].is_null() && !plan["parameters"].to_string().contains("transfers"));
    assert!(names_in(&scratch.join("data")).is_empty());
}

#[test]
fn what_ranks_cannot_share_is_refused_or_raw() {
    let Some(scratch) = with_ranks("what_ranks_cannot_share") else { return };
    let refused = |ended: &Output, said: &str| {
        let errors = text(&ended.stderr);
        assert_eq!(ended.status.code(), Some(2), "{errors}");
        assert!(errors.contains(said), "{said}: {errors}");
        assert_eq!(errors.lines().filter(|line| line.starts_with("strata:")).count(), 1, "{errors}");
    };
    let two = "--steps 2 --set particles=1000,ranks=2,compute=0";
    refused(&ranks(&scratch, 3, &format!("app vpic data {two} --format hdf5")), "--set ranks=3");
    let record = good(&scratch, &format!("app vpic data {two}"));
    assert_eq!(record["phases"][0]["plan"]["sets"][0]["format"], "raw");
    assert!(record["phases"][0]["notes"].to_string().contains("2 processes on 3 MPI ranks"));
    let three = format!("app vpic data {SMALL},transfers=collective");
    refused(&ranks(&scratch, 3, &format!("{three} --format raw")), "omit --set transfers");
    refused(&ranks(&scratch, 3, &format!("{three},files=rank")), "omit --set transfers");
    assert!(scratch.run(&three).stderr.contains("omit --set transfers"));
    for (variable, absent, package) in [
        ("STRATA_LIBHDF5", "libhdf5_serial.so.103", "install libhdf5-openmpi-103-1"),
        ("STRATA_LIBMPI", "libstrata-absent.so", "install libopenmpi3"),
    ] {
        let words = format!("app vpic data {SMALL} --format hdf5");
        let launcher = [MPIRUN, &["-np", "3"]].concat();
        let ended = output(launch(&scratch, &launcher, &words, &[(variable, absent.to_owned())]));
        refused(&ended, package);
    }
    assert!(names_in(&scratch.join("data")).is_empty());
}

/// A run of three ranks that goes on while a test does something to it.
struct Going {
    child: Child,
}

impl Going {
    fn start(scratch: &Scratch, target: &str, set: &str) -> Self {
        let words = format!("app vpic {target} --format hdf5 --set ranks=3,{set} --json record.json");
        let mut command = launch(scratch, &[MPIRUN, &["-np", "3"]].concat(), &words, &[]);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        Self { child: command.spawn().unwrap() }
    }

    /// The processes of a rank: that of the launcher, and those that it has started.
    fn of_rank(rank: u32, scratch: &Scratch) -> Vec<Pid> {
        let is_own = |process: &i32| {
            let read = |name: &str| fs::read(format!("/proc/{process}/{name}")).unwrap_or_default();
            let has = |variable: String| {
                read("environ").split(|byte| *byte == 0).any(|one| one == variable.as_bytes())
            };
            read("comm").starts_with(b"strata")
                && has(format!("OMPI_COMM_WORLD_RANK={rank}"))
                && has(format!("XDG_RUNTIME_DIR={}", scratch.join("meeting").display()))
        };
        let all = fs::read_dir("/proc").unwrap().flatten();
        let all = all.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
        all.filter(is_own).filter_map(Pid::from_raw).collect()
    }

    /// Waits until no rank has a file open that all have written: they compute then.
    fn await_closed(scratch: &Scratch, file: &Path) {
        let has_open = |process: Pid| {
            let opened = fs::read_dir(format!("/proc/{}/fd", process.as_raw_nonzero())).into_iter().flatten();
            opened.flatten().any(|one| fs::read_link(one.path()).is_ok_and(|to| to == file))
        };
        let is_written = || fs::metadata(file).is_ok_and(|file| file.len() >= 8 * VARIABLE_BYTES as u64);
        let is_open = || (0..3).flat_map(|rank| Self::of_rank(rank, scratch)).any(has_open);
        await_that(&format!("{} is closed", file.display()), WAIT, || is_written() && !is_open());
    }

    /// The process of mpirun itself: timeout(1) above it signals its child twice.
    fn mpirun(&self) -> Pid {
        let above = self.child.id();
        let children = fs::read_to_string(format!("/proc/{above}/task/{above}/children")).unwrap();
        children.split_whitespace().next().and_then(|child| Pid::from_raw(child.parse().ok()?)).unwrap()
    }

    fn end(self) -> (Output, Duration) {
        let begun = Instant::now();
        (self.child.wait_with_output().unwrap(), begun.elapsed())
    }
}

/// Waits until there is the file of a checkpoint, and names it.
fn await_file(data: &Path, checkpoint: &str) -> PathBuf {
    let until = Instant::now() + WAIT;
    let found = || {
        let top = names_in(data).into_iter().find(|name| name.starts_with("strata-app-"))?;
        Some(data.join(top).join("particles").join(checkpoint)).filter(|file| file.exists())
    };
    loop {
        if let Some(file) = found() {
            return file;
        }
        assert!(Instant::now() < until, "checkpoint {checkpoint} was not written");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_rank_that_is_killed_ends_the_run() {
    let Some(scratch) = with_ranks("a_rank_that_is_killed") else { return };
    // While all compute, and in the calls of MPI that all make, where the others wait for it until mpirun kills them.
    for compute in ["10s", "0"] {
        let computes = compute != "0";
        let set = format!("steps=1000,particles=16384,compute={compute},transfer=16KiB");
        let going = Going::start(&scratch, "data", &set);
        let file = await_file(&scratch.join("data"), "0");
        if computes {
            Going::await_closed(&scratch, &file);
        }
        let processes = Going::of_rank(2, &scratch);
        assert_eq!(processes.len(), 1);
        kill_process(processes[0], Signal::KILL).unwrap();
        let (ended, took) = going.end();
        assert_ne!(ended.status.code(), Some(0), "{}", text(&ended.stderr));
        assert!(took < WAIT, "{took:?}");
        let record = read_record(&scratch.join("record.json"));
        assert_eq!(record["status"], "partial", "{compute}: {}", record["failure"]);
        let said = record["failure"].as_str().unwrap();
        assert!(said.contains("rank 2") || (!computes && said == "interrupted"), "{said}");
        if computes {
            assert!(names_in(&scratch.join("data")).is_empty(), "the first rank has removed it");
        }
        // The process that rank 0 has started may outlive it for a moment, and cleans up itself then.
        let until = Instant::now() + WAIT;
        loop {
            let cleaned = scratch.run("clean --yes");
            assert_eq!(cleaned.code, Some(0), "{}", cleaned.stderr);
            if names_in(&scratch.join("data")).is_empty() {
                break;
            }
            assert!(Instant::now() < until, "{}{}", cleaned.stdout, cleaned.stderr);
            std::thread::sleep(Duration::from_millis(100));
        }
    }
}

#[test]
fn an_interrupt_and_a_full_target_end_all_ranks() {
    let Some(scratch) = with_ranks("an_interrupt_and_a_full_target") else { return };
    // The first rank alone; mpirun, which passes the signal on and kills all that is left a second later, or as soon as one has ended; and
    // mpirun twice, which ends at once then, without a word to its ranks.
    for (whom, signals) in [("rank", 1), ("mpirun", 1), ("mpirun twice", 2)] {
        let going = Going::start(&scratch, "data", "steps=9,particles=16384,compute=1s");
        await_file(&scratch.join("data"), "1");
        let leaders = Going::of_rank(0, &scratch);
        let leader = *leaders.iter().min_by_key(|process| process.as_raw_nonzero()).unwrap();
        let signalled = if whom == "rank" { leader } else { going.mpirun() };
        for _ in 0..signals {
            kill_process(signalled, Signal::INT).unwrap();
            // Two that come at the same time are one.
            std::thread::sleep(Duration::from_millis(100));
        }
        let (ended, took) = going.end();
        assert!(ended.status.code() == Some(1) && took < WAIT, "{whom}: {took:?}: {}", text(&ended.stderr));
        let record = || read_record(&scratch.join("record.json"));
        if signals > 1 {
            // It does not wait for its ranks.
            await_that("the record is written", WAIT, || record()["status"] != "running");
        }
        let record = record();
        let said = (record["status"].as_str(), record["failure"].as_str());
        assert_eq!(said, (Some("partial"), Some("interrupted")), "{whom}: {took:?}: {}", text(&ended.stderr));
        // The process that rank 0 has started removes them, and may outlive mpirun for a moment.
        await_that("nothing is left", WAIT, || names_in(&scratch.join("data")).is_empty());
    }
    let Some(small) = Mounted::tmpfs("16m") else { return };
    let target = small.path().display().to_string();
    let going = Going::start(&scratch, &target, "steps=6,particles=16384,compute=1s,transfers=independent");
    // OMPIO does not come back where room ends in a call that all make: it shall end between two checkpoints.
    Going::await_closed(&scratch, &await_file(small.path(), "0"));
    fs::write(small.path().join("others"), vec![0; 16 << 20]).unwrap_err();
    let (ended, took) = going.end();
    assert!(ended.status.code() == Some(1) && took < WAIT, "{took:?}: {}", text(&ended.stderr));
    let record = read_record(&scratch.join("record.json"));
    assert_eq!(record["status"], "partial");
    // The cause, not what the other ranks say of it.
    assert!(record["failure"].as_str().unwrap().contains("of HDF5: "), "{}", record["failure"]);
    assert_eq!(names_in(small.path()), ["others"]);
}

#[test]
fn processes_of_another_mpi_are_told_which_one_is_needed() {
    if !has("another MPI", "mpiexec.hydra") {
        return;
    }
    let scratch = Scratch::new();
    fs::create_dir(scratch.join("data")).unwrap();
    let mut command: Command =
        launch(&scratch, &["mpiexec.hydra", "-n", "3"], &format!("app vpic data {SMALL} --format hdf5"), &[]);
    let ended = command.output().unwrap();
    assert_eq!(ended.status.code(), Some(2), "{}", text(&ended.stderr));
    let errors = text(&ended.stderr);
    let is_told = errors.contains("Open MPI's mpirun") || errors.contains("libhdf5_serial.so.103 is missing");
    assert!(is_told && errors.contains("--format raw"), "{errors}");
}
