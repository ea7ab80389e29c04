//! vos_perf's words on stores in memory, and daos_perf's on a store behind an engine.

use std::path::PathBuf;

use crate::engines::Engine;
use crate::pool::target;
use crate::support::{Ended, Scratch, read_record};

/// A directory in memory, where there is one: stores there are as fast as they are where people measure.
fn place() -> tempfile::TempDir {
    let shared = PathBuf::from("/dev/shm");
    if shared.is_dir() { tempfile::tempdir_in(shared).unwrap() } else { tempfile::tempdir().unwrap() }
}

fn vos_perf(scratch: &Scratch, words: &[&str], tests: &str) -> Ended {
    scratch.run_words(&[&["as", "--json", "record.json", "vos_perf"], words, &["-R", tests]].concat())
}

/// The number behind `name` in the block of a test.
fn figure(shown: &str, test: &str, name: &str) -> f64 {
    let block =
        shown.split(&format!("{test} successfully completed:")).nth(1).unwrap_or_else(|| panic!("{shown}"));
    let line =
        block.lines().find(|line| line.trim_start().starts_with(name)).unwrap_or_else(|| panic!("{block}"));
    let value = line.split(':').nth(1).and_then(|text| text.split_whitespace().next()).unwrap_or_default();
    value.parse().unwrap_or_else(|_| panic!("{line}"))
}

#[test]
fn the_line_of_the_guide_runs_as_written_and_leaves_nothing() {
    let (scratch, place) = (Scratch::new(), place());
    let file = place.path().join("vos");
    let words =
        ["-f", file.to_str().unwrap(), "-P", "64M", "-d", "2000", "-a", "1", "-n", "1", "-s", "4K", "-z"];
    let ended = vos_perf(&scratch, &words, "U;p F;p");
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let shown = &ended.stdout;
    assert!(shown.starts_with("Using compatible version\nTest :\n\tVOS storage\nPool :\n\t"), "{shown}");
    assert!(shown.contains(&format!("\tVOS file      : {}0\n", file.display())), "{shown}");
    assert!(shown.ends_with("Completed test=FETCH\n"), "{shown}");
    for test in ["UPDATE", "FETCH"] {
        let (seconds, rate) = (figure(shown, test, "duration"), figure(shown, test, "rate"));
        assert!((seconds * rate / 2000.0 - 1.0).abs() < 0.02, "{shown}");
        assert!(figure(shown, test, "p50") <= figure(shown, test, "p99"), "{shown}");
        assert!(figure(shown, test, "bandwith ") > 0.0, "{shown}");
    }
    let guide = vos_perf(&scratch, &[&words[..], &["--text-of", "2.0"]].concat(), "U;p F;p");
    let shown_there = &guide.stdout;
    assert!(shown_there.starts_with("Test :\n\tVOS (storage only)\nPool :\n\t"), "{shown_there}");
    assert!(figure(shown_there, "FETCH", "bandwidth ") > 0.0, "{shown_there}");
    assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 0, "the store is removed");
    let record = read_record(&scratch.join("record.json"));
    let phases = record["phases"].as_array().unwrap();
    let operations: Vec<_> =
        phases.iter().map(|phase| phase["summary"]["total"]["operations"].as_u64()).collect();
    assert_eq!(operations, [Some(2000), Some(2000)]);
}

#[test]
fn the_pages_of_the_store_come_before_the_phases() {
    let (scratch, place) = (Scratch::new(), place());
    if !place.path().starts_with("/dev/shm") {
        return crate::support::skipped(
            "the_pages_of_the_store_come_before_the_phases",
            "there is no /dev/shm",
        );
    }
    let file = place.path().join("vos");
    let words =
        ["-f", file.to_str().unwrap(), "-P", "1G", "-d", "40000", "-a", "1", "-n", "1", "-s", "4K", "-z"];
    let ended = vos_perf(&scratch, &words, "U;p F;p");
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let record = read_record(&scratch.join("record.json"));
    let phases = record["phases"].as_array().unwrap();
    let faults: Vec<_> =
        phases.iter().map(|phase| phase["observations"]["minor_faults"].as_u64().unwrap()).collect();
    // Each value fills a page of the log. What is left are pages of the index, and what strata counts in.
    assert!(faults.iter().sum::<u64>() < 40_000 / 2, "{faults:?}");
}

#[test]
fn the_whole_of_the_store_is_allocated_when_it_is_made_and_nothing_is_summed_unless_asked_for() {
    use std::os::unix::fs::MetadataExt as _;
    for (more, checksum) in [(&[][..], "off"), (&["--checksum", "crc64"], "crc64")] {
        let (scratch, place) = (Scratch::new(), place());
        let head = ["-D", place.path().to_str().unwrap(), "-P", "64M", "-N", "32M", "-d", "10", "--keep"];
        let ended = vos_perf(&scratch, &[&head, more].concat(), "U;p F;p V;p");
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        for (name, bytes) in [("log", 64u64 << 20), ("data", 32 << 20)] {
            let file = place.path().join("vos_perf0.pmem/target.0").join(name);
            let taken = file.metadata().unwrap().blocks() * 512;
            assert!(taken >= bytes, "{name}: {taken}");
        }
        let options = &read_record(&scratch.join("record.json"))["phases"][0]["plan"]["options"];
        assert_eq!((&options["checksum"], &options["allocation"]), (&checksum.into(), &"whole".into()));
    }
}

#[test]
fn every_test_runs_on_arrays() {
    let (scratch, place) = (Scratch::new(), place());
    let words = [
        "-D",
        place.path().to_str().unwrap(),
        "-P",
        "256M",
        "-o",
        "2",
        "-d",
        "16",
        "-n",
        "4",
        "-s",
        "8k",
        "-AR",
        "-iI",
        "-G",
        "7",
    ];
    let tests = "U;p U;o=4k;s=4k;p V;o=4k;s=4k;p F;O=1;d=4;n=2;p;i=3 Q;p I;p A;p G;p P;d;p D;p";
    let ended = vos_perf(&scratch, &words, tests);
    assert_eq!(ended.code, Some(0), "{}\n{}", ended.stderr, ended.stdout);
    for test in [
        "UPDATE",
        "VERIFY",
        "FETCH",
        "QUERY",
        "ITERATE",
        "AGGREGATE",
        "GARBAGE COLLECTION",
        "PUNCH",
        "DISCARD",
    ] {
        assert!(
            ended.stdout.contains(&format!("{test} successfully completed:\n")),
            "{test}: {}",
            ended.stdout
        );
    }
    assert!(
        ended.stdout.contains("Running FETCH test (iteration=3, objects=1, dkeys=4, recx=2)\n"),
        "{}",
        ended.stdout
    );
}

#[test]
fn processes_have_stores_of_their_own() {
    let (scratch, place) = (Scratch::new(), place());
    let words = [
        "-D",
        place.path().to_str().unwrap(),
        "-P",
        "64M",
        "--procs",
        "2",
        "-d",
        "100",
        "-a",
        "1",
        "-n",
        "1",
    ];
    let ended = vos_perf(&scratch, &words, "U;p V;p");
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(ended.stdout.contains("\tobj_per_cont  : 1 x 2 (procs)\n"), "{}", ended.stdout);
    let record = read_record(&scratch.join("record.json"));
    assert_eq!(record["phases"].as_array().map(Vec::len), Some(4));
    assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 0);
}

#[test]
fn a_store_that_is_kept_is_checked_by_a_later_run() {
    let (scratch, place) = (Scratch::new(), place());
    let own = "a3b7ff28-56ff-4974-9283-62990dd770ad";
    let words = [
        "-D",
        place.path().to_str().unwrap(),
        "-P",
        "64M",
        "-d",
        "100",
        "-a",
        "1",
        "-n",
        "1",
        "-s",
        "4k",
        "-X",
        own,
    ];
    let ended = vos_perf(&scratch, &[&words[..], &["--keep"]].concat(), "U");
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(place.path().join("vos_perf0.pmem").is_dir());
    assert_eq!(vos_perf(&scratch, &words, "U").code, Some(2), "what is there is not overwritten");
    let ended = vos_perf(&scratch, &[&words[..], &["-u", own]].concat(), "V;p");
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(ended.stdout.contains(&format!("Pool :\n\t{own}\n")), "{}", ended.stdout);
    let ended = vos_perf(
        &scratch,
        &[
            "-D",
            place.path().to_str().unwrap(),
            "-d",
            "200",
            "-a",
            "1",
            "-n",
            "1",
            "-s",
            "4k",
            "-X",
            own,
            "-u",
            own,
        ],
        "V;p",
    );
    assert_eq!(ended.code, Some(1), "the second half was never written");
    assert!(
        ended.stdout.ends_with("VERIFY failed\n") && ended.stderr.contains("Failed: "),
        "{}",
        ended.stdout
    );
}

#[test]
fn a_full_store_fails_its_test() {
    let (scratch, place) = (Scratch::new(), place());
    let words =
        ["-D", place.path().to_str().unwrap(), "-P", "32M", "-d", "64", "-a", "1", "-n", "1", "-s", "1M"];
    let ended = vos_perf(&scratch, &words, "U;p F;p");
    assert_eq!(ended.code, Some(1), "{}", ended.stdout);
    assert!(ended.stdout.ends_with("UPDATE failed\n"), "{}", ended.stdout);
    assert!(ended.stderr.contains("Failed: update failed: "), "{}", ended.stderr);
}

#[test]
fn questions_need_somebody_to_answer_them() {
    let ended = Scratch::new().run("as daos_perf --target null: -w -R U");
    assert_eq!(ended.code, Some(2), "{}", ended.stderr);
    assert!(ended.stderr.contains("-w/--wait requires a terminal"), "{}", ended.stderr);
}

#[test]
fn what_a_store_without_memory_brings_back_is_no_verified_value() {
    let ended =
        Scratch::new().run_words(&["as", "daos_perf", "--target", "null:", "-d", "10", "-R", "U;p F;p V;p"]);
    assert_eq!(ended.code, Some(1), "{}", ended.stdout);
    assert!(
        ended.stdout.contains("FETCH successfully completed:") && ended.stdout.ends_with("VERIFY failed\n"),
        "{}",
        ended.stdout
    );
}

#[test]
fn daos_perf_runs_on_an_engine() {
    let scratch = Scratch::new();
    let engine = Engine::start(scratch.path(), "--dir tank --pool p --scm 512m --targets 2");
    let at = format!("{}/p/c", target(&engine));
    let run = |words: &str, tests: &str| {
        let words = format!("as --json record.json daos_perf --target {at} {words} -R");
        let words: Vec<_> = words.split_whitespace().chain([tests]).collect();
        scratch.run_words(&words)
    };
    let small = "-C 16 -d 300 -a 2 -n 1 -s 4k";
    let ended = run(small, "U;p F;p V O;p P;d;p");
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let shown = &ended.stdout;
    let head = "Using compatible version\nTest :\n\tDAOS LARGE (full stack, non-replica)\n";
    assert!(shown.starts_with(head), "{shown}");
    assert!(shown.contains(&format!("Pool :\n\t{at}\n")), "{shown}");
    assert!(shown.contains("\tcredits       : 16 (sync I/O for -ve)\n"), "{shown}");
    assert!(shown.contains("Completed test=VERIFY\n"), "{shown}");
    for (test, operations) in [("UPDATE", 600.0), ("FETCH", 600.0), ("PUNCH", 300.0)] {
        let (seconds, rate) = (figure(shown, test, "duration"), figure(shown, test, "rate"));
        assert!((seconds * rate / operations - 1.0).abs() < 0.02, "{test}: {shown}");
    }
    let large = run("--procs 2 -c R2S -d 20 -a 1 -n 2 -s 1M --array", "U;p F;p V");
    assert_eq!(large.code, Some(0), "{}", large.stderr);
    assert!(large.stdout.contains("\tobj_per_cont  : 1 x 2 (procs)\n"), "{}", large.stdout);
    let echo = run(&format!("-T echo {small}"), "U;p F;p");
    assert_eq!(echo.code, Some(0), "{}", echo.stderr);
    let refused = run(&format!("-T echo {small}"), "P");
    assert_eq!(refused.code, Some(2), "{}", refused.stdout);
    assert!(refused.stderr.contains("P: -T echo stores no data"), "{}", refused.stderr);
    drop(engine);
    let gone = run(small, "U;p");
    assert_eq!((gone.code, gone.stderr.trim_end().lines().count()), (Some(1), 1), "{}", gone.stderr);
}
