//! Applications whose processes are on several hosts: they share one target, wait for each other, and are told of as one.

use std::collections::BTreeSet;
use std::fs;

use rustix::process::{Signal, kill_process};
use serde_json::Value;

use crate::engines::Engine;
use crate::hosts::await_that;
use crate::launchers::{MPIRUN, has, launch, output, text};
use crate::many_hosts::{LOST_WAIT, children, lives};
use crate::support::{Scratch, assert_partial, class, names_in, read_record};

/// Applications of which each host reads what others wrote, their words, and the class and bytes of all that is read in the last stage.
const SHARED: [(&str, &str, u64); 4] = [
    (
        "fdb-hammer",
        "--pattern B --steps 3 --size 8KiB --levels 2 --params 5 --writers 4 --readers 2",
        3 * 4 * 2 * 5 * 8192,
    ),
    ("bd-cats", "--set writers=2,ranks=4,steps=2,particles=3000,compute=1ms", 2 * 2 * 8 * 3000 * 4),
    ("cosmic-tagger", "--set samples=64,batch=4,loaders=3,batches=5,size=5000,step=1ms", 5 * 3 * 4 * 5000),
    ("checkpoint", "--set ranks=4,steps=2,size=300000,files=one,names=direct,compute=1ms", 4 * 300_000),
];

fn scratch() -> Scratch {
    let scratch = Scratch::new();
    fs::create_dir(scratch.join("data")).unwrap();
    scratch
}

/// Hosts that had a part in a phase.
fn origins(phase: &Value) -> BTreeSet<&str> {
    phase["samples"]["workers"]
        .as_array()
        .unwrap()
        .iter()
        .map(|worker| worker["origin"].as_str().unwrap())
        .collect()
}

fn last(record: &Value) -> usize {
    record["phases"].as_array().unwrap().len() - 1
}

#[test]
fn processes_of_several_hosts_share_files_and_wait_for_each_other() {
    let scratch = scratch();
    for (name, words, bytes) in SHARED {
        let record = scratch.measured(&format!("app {name} data {words} --hosts local:2 --profile"));
        let phase = &record["phases"][last(&record)];
        assert_eq!(class(&record, last(&record), "read").1, bytes, "{name}");
        assert_eq!(origins(phase), BTreeSet::from(["local:0", "local:1"]), "{name}");
        // The breakdown is of the processes of both.
        let groups = phase["plan"]["groups"].as_array().unwrap();
        let told = phase["observations"]["profile"]["groups"].as_array().unwrap();
        for group in groups {
            let same = told.iter().find(|told| told["name"] == group["name"]).expect("the group is told of");
            assert_eq!(same["processes"], group["processes"], "{name} {}", group["name"]);
            let parts = same["parts"].as_array().unwrap().iter();
            let sum: u64 = parts.map(|part| part["time_ns"].as_u64().unwrap()).sum();
            assert_eq!(sum, same["wall_ns"].as_u64().unwrap(), "{name} {}", group["name"]);
        }
        assert_eq!(names_in(&scratch.join("data")), Vec::<String>::new(), "{name}");
    }
}

#[test]
fn processes_of_several_hosts_share_objects_and_files_behind_an_engine() {
    let scratch = scratch();
    let words = "--no-attach-info --interface lo --pool tank --dir pool --scm 128m --nvme 256m --listen";
    let engine = Engine::start_words(scratch.path(), &format!("engine {words} 127.0.0.1:0"));
    let address = engine.uri().strip_prefix("tcp://").unwrap().to_owned();
    for (name, words, bytes) in SHARED {
        for target in
            [format!("engine://{address}/tank/objects"), format!("dfs+engine://{address}/tank/files")]
        {
            let record = scratch.measured(&format!("app {name} {target} {words} --hosts local:2"));
            assert_eq!(class(&record, last(&record), "read").1, bytes, "{name} {target}");
        }
    }
    let pool = scratch.run(&format!("pool query engine://{address}/tank"));
    let left = pool
        .stdout
        .lines()
        .filter(|line| line.starts_with("container ") && !line.contains("destroyed, not collected"));
    let left: Vec<&str> = left.collect();
    // A file system stays, with its root and superblock alone.
    assert!(left.len() == 1 && left[0].contains("files: 112 B in 3 values"), "{}", pool.stdout);
}

#[test]
fn accelerators_of_several_hosts_are_in_step() {
    let scratch = scratch();
    let small = "dataset.num_files_train=24,dataset.record_length_bytes=20000,dataset.record_length_bytes_stdev=0,reader.batch_size=2,\
                 reader.read_threads=2,train.epochs=1,train.computation_time=0.01,metric.au=0.001";
    let record = scratch.measured(&format!("app dlio data --accelerators 4 --set {small} --hosts local:2"));
    let seen = &record["phases"][1]["observations"]["utilisation"];
    // 24 samples are 3 steps of 2 for each of 4; the first is left out.
    assert_eq!((&seen["accelerators"], &seen["steps"]), (&4.into(), &2.into()), "{seen}");
    assert_eq!((class(&record, 1, "read").0, class(&record, 1, "compute").0), (24, 12));
    let (compute, time) = (seen["compute_ns"].as_f64().unwrap(), seen["time_ns"].as_f64().unwrap());
    assert!(compute >= 8.0 * 10e6 && compute <= time, "{seen}");
    let refused = scratch.run("app dlio data --accelerators max --hosts local:2");
    assert!(refused.code == Some(2) && refused.stderr.contains("set the number"), "{}", refused.stderr);
}

#[test]
fn a_stage_with_fewer_processes_than_hosts_leaves_the_last_idle() {
    let scratch = scratch();
    let record = scratch.measured("app cosmic-tagger data --set samples=16,batch=2,loaders=2,batches=2,size=100,step=1ms --hosts local:4");
    assert_eq!(class(&record, 0, "write").0, 16);
    assert_eq!(class(&record, 1, "read").0, 2 * 2 * 2);
    assert_eq!(origins(&record["phases"][1]).len(), 4);
}

#[test]
fn what_hosts_cannot_share_is_refused() {
    let scratch = scratch();
    for (words, told) in [
        ("app vpic data --hosts local:2 --host-targets own", "--host-targets shared"),
        ("app vpik data --hosts local:2", "vpic"),
    ] {
        let ended = scratch.run(words);
        assert!(ended.code == Some(2) && ended.stderr.contains(told), "{words}: {}", ended.stderr);
        assert_eq!(names_in(&scratch.join("data")), Vec::<String>::new(), "{words}");
    }
}

/// Writers and readers that wait for each other for long.
const LONG: &str = "app fdb-hammer data --pattern B --steps 2000 --size 1KiB --levels 1 --params 1 --writers 2 --readers 2 \
                    --set compute=20ms --hosts local:2 --live-csv - --json record.json";

#[test]
fn a_host_that_is_killed_leaves_nobody_waiting() {
    let scratch = scratch();
    let mut running = scratch.start(LONG);
    running.await_row("fdb-hammer");
    let hosts = children(running.id());
    kill_process(hosts[1], Signal::KILL).unwrap();
    let ended = running.end();
    let record = read_record(&scratch.join("record.json"));
    assert_partial(&scratch, &ended, &record, "host local:1: ");
    await_that("hosts end", LOST_WAIT, || !hosts.iter().any(|host| lives(*host)));
    assert_eq!(names_in(&scratch.join("data")), Vec::<String>::new(), "the first host made it");
}

#[test]
fn an_interrupt_ends_waits_between_hosts() {
    let scratch = scratch();
    let mut running = scratch.start(LONG);
    running.await_row("fdb-hammer");
    running.signal(Signal::INT);
    let ended = running.end();
    assert_partial(&scratch, &ended, &read_record(&scratch.join("record.json")), "interrupted");
    assert_eq!(names_in(&scratch.join("data")), Vec::<String>::new());
}

#[test]
fn processes_of_mpirun_run_applications_by_name_and_by_path() {
    if !has("applications", "mpirun.openmpi") {
        return;
    }
    let scratch = scratch();
    let four = [MPIRUN, &["-np", "4"]].concat();
    let text_of = scratch.run("app show bd-cats --toml").stdout;
    fs::write(scratch.join("mine.toml"), text_of.replace("name = \"bd-cats\"", "name = \"mine\"")).unwrap();
    let set = "--set writers=2,ranks=4,steps=2,particles=3000,compute=1ms --live none --json record.json";
    for name in ["bd-cats", "mine.toml"] {
        let ended = output(launch(&scratch, &four, &format!("app {name} data {set}"), &[]));
        assert_eq!(ended.status.code(), Some(0), "{}", text(&ended.stderr));
        let record = read_record(&scratch.join("record.json"));
        assert_eq!(class(&record, 1, "read").1, 2 * 2 * 8 * 3000 * 4);
        assert_eq!(origins(&record["phases"][1]).len(), 4);
        assert_eq!(names_in(&scratch.join("data")), Vec::<String>::new());
    }
    fs::write(
        scratch.join("small.yaml"),
        "workflow:\n  train: True\ndataset:\n  num_files_train: 16\n  record_length_bytes: 3000\nreader:\n  batch_size: 2\n  read_threads: 1\ntrain:\n  epochs: 1\n  computation_time: 0.001\n",
    )
    .unwrap();
    let words = "app dlio data --workload small.yaml --accelerators 4 --live none --json record.json";
    let ended = output(launch(&scratch, &four, words, &[]));
    assert_eq!(ended.status.code(), Some(0), "{}", text(&ended.stderr));
    assert_eq!(class(&read_record(&scratch.join("record.json")), 1, "read").0, 16);
}
