//! Databases on several hosts: each has a log of its own, commits on it in groups, and recovers it.

use std::fs;

use rustix::process::{Signal, kill_process};
use serde_json::Value;

use crate::database::{SMALL, calls, check, is_whole, paused, scratch};
use crate::hosts::await_that;
use crate::launchers::{MPIRUN, has, launch, output, text};
use crate::many_hosts::{LOST_WAIT, children, lives};
use crate::support::{assert_partial, class, names_in, read_record};

/// Clients of each host, as the plan of the run has them.
fn clients(record: &Value) -> Vec<u64> {
    let sets = record["phases"][1]["plan"]["sets"].as_array().unwrap();
    let log = sets.iter().find(|set| set["name"] == "wal").unwrap();
    log["log"]["clients"].as_array().unwrap().iter().map(|count| count.as_u64().unwrap()).collect()
}

#[test]
fn each_host_with_clients_has_a_log() {
    let scratch = scratch();
    for (more, commits, hosts) in [
        ("wal=rocksdb --hosts local:2", 120, vec![2, 1]),
        ("wal=etcd,clients=4 --hosts local:2", 160, vec![2, 2]),
        ("wal=own,record=100,segment=500 --hosts local:4", 120, vec![2, 1, 0, 0]),
        ("wal=sqlite --hosts local:2", 40, vec![1, 0]),
        ("wal=rocksdb,files=page --hosts local:2", 120, vec![2, 1]),
    ] {
        let record = scratch.measured(&format!("app database data {SMALL},{more}"));
        check(&record, commits, true);
        let logs = hosts.iter().filter(|clients| **clients > 0).count();
        for phase in [1, 2] {
            assert_eq!(record["phases"][phase]["observations"]["commits"]["logs"], logs, "{more}");
        }
        assert_eq!(clients(&record), hosts, "{more}");
        // A segment of 64000000 bytes is 62 calls: one of each log.
        assert_eq!(calls(&record, 0, "allocate"), if more.contains("etcd") { 124 } else { 0 }, "{more}");
        assert!(names_in(&scratch.join("data")).is_empty(), "{more}");
    }
    let ended = scratch.run(&format!("app database data {SMALL} --hosts local:2"));
    for part in ["2 logs, one per host with clients", "recovered 120 records"] {
        assert!(ended.stdout.contains(part), "{part}: {}{}", ended.stdout, ended.stderr);
    }
}

#[test]
fn processes_of_mpirun_have_logs_of_their_own() {
    if !has("databases", "mpirun.openmpi") {
        return;
    }
    let scratch = scratch();
    let four = [MPIRUN, &["-np", "4"]].concat();
    let words = format!("app database data {SMALL},clients=8 --live none --json record.json");
    let ended = output(launch(&scratch, &four, &words, &[]));
    assert_eq!(ended.status.code(), Some(0), "{}", text(&ended.stderr));
    let record = read_record(&scratch.join("record.json"));
    assert_eq!((clients(&record), class(&record, 2, "recover").0), (vec![2; 4], 320));
    assert_eq!(record["phases"][1]["observations"]["commits"]["logs"], 4);
    assert!(names_in(&scratch.join("data")).is_empty());
}

#[test]
fn records_of_the_log_of_one_host_are_named() {
    /// A change of the logs of both hosts.
    type Damage = fn(&mut Vec<u8>, &mut Vec<u8>);
    let damages: [(&str, Damage); 3] = [
        ("byte 100 of the record", |_, second| second[512 * 3 + 100] ^= 1),
        ("twice", |_, second| second.copy_within(512..1024, 512 * 5)),
        ("belongs to the log of another host", |first, second| second[..512].copy_from_slice(&first[..512])),
    ];
    for (told, damage) in damages {
        let scratch = scratch();
        let (running, logs) = paused(&scratch, " --hosts local:2", |logs| {
            is_whole(&logs.join("0"), 20) && is_whole(&logs.join("1"), 20)
        });
        let read = |name| fs::read(logs.join(name)).unwrap();
        let (mut first, mut second) = (read("0"), read("1"));
        damage(&mut first, &mut second);
        fs::write(logs.join("1"), second).unwrap();
        let ended = running.end();
        let record = read_record(&scratch.join("record.json"));
        assert_partial(&scratch, &ended, &record, told);
        let failure = record["failure"].as_str().unwrap();
        assert!(failure.contains("log of host 1, segment 1, byte "), "{failure}");
        assert!(names_in(&scratch.join("data")).is_empty());
    }
}

/// Clients that commit for long.
const LONG: &str = "app database data --steps 1000 --set wal=own,record=64,interval=1000,clients=2,pages=16,dirty=4 \
                    --hosts local:2 --live-csv - --json record.json";

#[test]
fn a_host_that_is_killed_leaves_nobody_waiting_and_nothing_behind() {
    let scratch = scratch();
    let mut running = scratch.start(LONG);
    running.await_row("database run");
    let hosts = children(running.id());
    kill_process(hosts[1], Signal::KILL).unwrap();
    let ended = running.end();
    assert_partial(&scratch, &ended, &read_record(&scratch.join("record.json")), "host local:1: ");
    await_that("hosts end", LOST_WAIT, || !hosts.iter().any(|host| lives(*host)));
    assert!(names_in(&scratch.join("data")).is_empty(), "the first host made it");
}

#[test]
fn an_interrupt_ends_commits_on_all_hosts() {
    let scratch = scratch();
    let mut running = scratch.start(LONG);
    running.await_row("database run");
    running.signal(Signal::INT);
    let ended = running.end();
    assert_partial(&scratch, &ended, &read_record(&scratch.join("record.json")), "interrupted");
    assert!(names_in(&scratch.join("data")).is_empty());
}

#[test]
fn a_load_that_is_cut_short_is_recovered_by_each_host_as_far_as_it_came() {
    let scratch = scratch();
    let record = scratch.measured(
        "app database data --time 300ms --steps 1000 --set interval=1000,clients=2,pages=16,wal=own,record=64 --hosts local:2",
    );
    let seen = &record["phases"][1]["observations"]["commits"];
    let (commits, found) = (seen["commits"].as_u64().unwrap(), class(&record, 2, "recover").0);
    assert!(commits > 0 && commits <= found && found < 2_000_000, "{commits} {found}");
}
