//! `strata as mdtest` on real directories: lines of IO500, scaled down.

use std::collections::BTreeMap;
use std::fs;

use crate::support::{Ended, Scratch, read_record};

#[track_caller]
fn good(ended: &Ended) {
    assert_eq!(ended.code, Some(0), "{}\n{}", ended.stdout, ended.stderr);
}

/// Rates of the first table: the mean of each row.
fn rates(shown: &str) -> BTreeMap<String, f64> {
    let table = shown.split("SUMMARY rate (in ops/sec)").nth(1).expect("a table");
    let lines = table.lines().skip(3).take_while(|line| line.starts_with("   "));
    let row = |line: &str| {
        let (name, figures) = line.split_at(26);
        let mean = figures.split_whitespace().nth(2).expect("three figures").parse().expect("a number");
        (name.trim().to_owned(), mean)
    };
    lines.map(row).collect()
}

#[test]
fn all_phases_run_and_leave_nothing() {
    let scratch = Scratch::new();
    let ended = scratch
        .run("as --json record.json mdtest --tasks 2 -n 20 -b 2 -z 1 -i 2 -N 1 -w 100 -e 100 -X -P -d md");
    good(&ended);
    let rates = rates(&ended.stdout);
    assert_eq!(rates.len(), 10, "{rates:?}");
    assert!(rates.values().all(|rate| *rate > 0.0), "{}", ended.stdout);
    assert!(ended.stdout.contains("2 tasks, 36 files/directories"), "{}", ended.stdout);
    assert!(ended.stdout.contains("SUMMARY time (in ms/op): (of 2 iterations)"), "{}", ended.stdout);
    assert_eq!(scratch.names(), ["record.json"]);
    let record = read_record(&scratch.join("record.json"));
    let phases = record["phases"].as_array().unwrap();
    assert_eq!(phases.len(), 20);
    let stats = phases.iter().find(|phase| phase["plan"]["operation"] == "stat").unwrap();
    assert_eq!(stats["summary"]["total"]["operations"], 36);
    assert_eq!(stats["plan"]["rank_shift"]["by"], 1);
}

#[test]
fn phases_in_runs_of_their_own_work_on_what_the_creation_made() {
    let scratch = Scratch::new();
    let line = "as --json record.json mdtest --tasks 2 -n 1000000 -u -L -F -P -N 1 -x status -d md";
    let created = scratch.run(&format!("{line} -C -Y -W 1"));
    good(&created);
    let each: u64 = fs::read_to_string(scratch.join("status")).unwrap().trim().parse().unwrap();
    assert!((1..1_000_000).contains(&each), "{each}");
    let made = |rank: u32| {
        fs::read_dir(scratch.join(&format!("md/test-dir.0-0/mdtest_tree.{rank}.0"))).unwrap().count()
    };
    assert_eq!((made(0) as u64, made(1) as u64), (each, each));
    for (phase, row) in [("-T", "File stat"), ("-r", "File removal")] {
        let ended = scratch.run(&format!("{line} {phase}"));
        good(&ended);
        assert!(rates(&ended.stdout)[row] > 0.0, "{}", ended.stdout);
        let record = read_record(&scratch.join("record.json"));
        assert_eq!(record["phases"][0]["summary"]["total"]["operations"], 2 * each);
    }
    assert_eq!(fs::read_dir(scratch.join("md")).unwrap().count(), 0, "the tree is gone");
}

#[test]
fn small_files_are_checked_and_failures_are_no_operations() {
    let scratch = Scratch::new();
    let line = "as mdtest --tasks 2 -n 50 -t -w 3901 -e 3901 -P -N 1 -F -d md";
    good(&scratch.run(&format!("{line} -C -Y")));
    good(&scratch.run(&format!("{line} -E -X")));
    let tree = scratch.join("md/test-dir.0-0/mdtest_tree.0");
    let mut bytes = fs::read(tree.join("file.mdtest.1.3")).unwrap();
    assert_eq!(bytes.len(), 3901);
    bytes[3900] ^= 1;
    fs::write(tree.join("file.mdtest.1.3"), bytes).unwrap();
    fs::remove_file(tree.join("file.mdtest.0.7")).unwrap();
    let ended = scratch.run(&format!("{line} -T -E -X"));
    assert_eq!(ended.code, Some(1), "{}", ended.stdout);
    for part in [
        "ERROR: verifying the data on read (1 errors)!",
        "File read, iteration 0: 1 read: corrupt",
        "File read, iteration 0: 1 open: No such file or directory",
        "File stat, iteration 0: 1 stat: No such file or directory",
    ] {
        assert!(ended.stdout.contains(part), "{part}: {}", ended.stdout);
    }
    let ended = scratch.run(&format!("{line} -r"));
    assert_eq!(ended.code, Some(1), "one is missing");
    assert!(!tree.exists());
}

#[test]
fn trees_have_the_names_of_the_tool_and_those_of_others_stay() {
    let scratch = Scratch::new();
    good(&scratch.run("as mdtest --tasks 2 -I 3 -z 2 -b 2 -L -C -d md"));
    let leaf = scratch.join("md/test-dir.0-0/mdtest_tree.0/mdtest_tree.1/mdtest_tree.3");
    let names = crate::support::names_in(&leaf);
    let of = |kind: &str, rank: u32| {
        (9..12).map(move |item| format!("{kind}.mdtest.{rank}.{item}")).collect::<Vec<_>>()
    };
    let mut wanted = [of("dir", 0), of("dir", 1), of("file", 0), of("file", 1)].concat();
    wanted.sort();
    assert_eq!(names, wanted);
    good(&scratch.run("as mdtest --tasks 2 -I 3 -z 2 -b 2 -L -r -d md"));

    fs::create_dir_all(scratch.join("other/test-dir.0-0/mdtest_tree.0")).unwrap();
    fs::write(scratch.join("other/test-dir.0-0/mdtest_tree.0/file.mdtest.0.0"), "precious").unwrap();
    good(&scratch.run("as mdtest -n 1 -F -T -d other"));
    let refused = scratch.run("as mdtest -n 1 -F -r -d other");
    assert_ne!(refused.code, Some(0));
    assert!(refused.stderr.contains("strata as --destroy-data mdtest"), "{}", refused.stderr);
    assert!(scratch.join("other/test-dir.0-0/mdtest_tree.0/file.mdtest.0.0").exists());
    let missing = scratch.run("as mdtest -n 1 -F -r -d nothing");
    assert_eq!(missing.code, Some(2));
    assert!(missing.stderr.contains("create one with -C"), "{}", missing.stderr);
}

#[test]
fn tasks_from_first_to_last_have_a_table_each() {
    let scratch = Scratch::new();
    let ended = scratch.run("as mdtest --tasks 3 -f 1 -l 3 -s 2 -n 6 -k -R --random-seed 4 -d md");
    good(&ended);
    assert_eq!(ended.stdout.matches("SUMMARY rate").count(), 2, "{}", ended.stdout);
    assert!(ended.stdout.contains("1 tasks, 6 files") && ended.stdout.contains("3 tasks, 18 files"));
    let refused = scratch.start_in("as mdtest -n 1", &[("PMI_SIZE", "2".to_owned())]).end();
    assert_eq!(refused.code, Some(2));
    assert!(refused.stderr.contains("give --tasks 2"), "{}", refused.stderr);
}
