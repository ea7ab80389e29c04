//! fio's words for services that carry out jobs, each those of its own job files.

use std::fs;

use serde_json::Value;

use super::many_hosts::Service;
use super::support::{Ended, Scratch, read_record, total};

/// Two services on this machine, and job files.
struct Services {
    scratch: Scratch,
    services: [Service; 2],
}

impl Services {
    fn new() -> Self {
        let scratch = Scratch::new();
        fs::write(scratch.join("a.fio"), "[alpha]\nioengine=null\nsize=64m\nrw=read\n").unwrap();
        let two = "[global]\nioengine=null\nsize=32m\n[beta]\nrw=write\nbs=8k\n[gamma]\nrw=randread\n";
        fs::write(scratch.join("b.fio"), two).unwrap();
        let services = [(); 2].map(|()| Service::start(&scratch, &[]));
        Self { scratch, services }
    }

    /// Runs words in which `1` and `2` behind a `@` stand for the clients.
    fn run(&self, words: &str) -> Ended {
        let [one, two] = self.services.each_ref().map(|service| service.address.replace(':', ","));
        let words = words.replace("@1", &format!("--client={one}")).replace("@2", &format!("--client={two}"));
        self.scratch.run(&format!("as --json record.json fio {words}"))
    }

    /// The JSON of a run that must end well, and the record.
    fn results(&self, words: &str) -> (Value, Value) {
        let ended = self.run(&format!("--output-format=json {words}"));
        assert_eq!(ended.code, Some(0), "{words}: {}{}", ended.stdout, ended.stderr);
        (serde_json::from_str(&ended.stdout).unwrap(), read_record(&self.scratch.join("record.json")))
    }

    fn port(&self, number: usize) -> u64 {
        self.services[number].address.rsplit_once(':').unwrap().1.parse().unwrap()
    }
}

/// Name, port and operations (read, write) of each entry.
fn entries(root: &Value) -> Vec<(&str, u64, [u64; 2])> {
    let entry = |stats: &'_ Value| {
        let done = ["read", "write"].map(|way| stats[way]["total_ios"].as_u64().unwrap());
        (stats["port"].as_u64().unwrap(), done)
    };
    let stats = root["client_stats"].as_array().unwrap().iter();
    stats.map(|stats| (stats["jobname"].as_str().unwrap(), entry(stats).0, entry(stats).1)).collect()
}

#[test]
fn each_client_has_job_files_of_its_own() {
    let services = Services::new();
    let (root, record) = services.results("@1 a.fio @2 b.fio");
    let (one, two) = (services.port(0), services.port(1));
    let expected = [
        ("alpha", one, [16384, 0]),
        ("beta", two, [0, 4096]),
        ("gamma", two, [8192, 0]),
        ("All clients", two, [24576, 4096]),
    ];
    assert_eq!(entries(&root), expected);
    let stats = root["client_stats"].as_array().unwrap();
    assert!(stats.iter().all(|stats| stats["hostname"] == "127.0.0.1" && stats["error"] == 0));
    assert_eq!(stats[1]["job options"]["bs"], "8k");
    assert!(stats[3].get("job options").is_none());
    assert!(root.get("jobs").is_none());
    let global = root["global options"].as_array().unwrap();
    assert_eq!((global.len(), &global[0]["port"], &global[0]["size"]), (1, &two.into(), &"32m".into()));
    // As in fio, a direction of all lasted as long as the longest of its jobs.
    assert_eq!(stats[3]["write"]["runtime"], stats[1]["write"]["runtime"]);
    let phases = record["phases"].as_array().unwrap();
    let origins = phases.iter().map(|phase| {
        let worker = &phase["samples"]["workers"][0];
        (phase["plan"]["name"].as_str().unwrap(), worker["origin"].as_str().unwrap(), phase["stage"].as_u64())
    });
    let [first, second] = services.services.each_ref().map(|service| service.address.as_str());
    let expected = [("alpha", first, Some(0)), ("beta", second, Some(0)), ("gamma", second, Some(0))];
    assert_eq!(origins.collect::<Vec<_>>(), expected);
    assert_eq!(record["hosts"].as_array().unwrap().len(), 2);
}

#[test]
fn lines_of_a_client_begin_with_its_host() {
    let services = Services::new();
    let ended = services.run("@1 a.fio @2 b.fio");
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let text = &ended.stdout;
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    for line in [
        format!("hostname={host}, fio=fio-3.42"),
        format!("<{host}> alpha: (g=0): rw=read, bs=(R) 4096B-4096B"),
        format!("<{host}> gamma: (g=0): rw=randread"),
        format!("<{host}> Starting 1 thread\n<{host}> Starting 2 threads\n"),
        format!("<{host}> \nalpha: (groupid=0, jobs=1): err= 0: pid="),
        format!("<{host}> \nbeta: (groupid=0, jobs=1): err= 0: pid="),
        "All clients: (groupid=0, jobs=3): err= 0: pid=0: ".to_owned(),
    ] {
        assert!(text.contains(&line), "no {line:?} in {text}");
    }
    assert_eq!(text.matches("Run status group 0").count(), 2, "{text}");
    let terse = services.run("--output-format=terse @1 a.fio @2 b.fio").stdout;
    let names: Vec<_> = terse.lines().map(|line| line.split(';').nth(2).unwrap()).collect();
    assert_eq!(names, ["alpha", "beta", "gamma", "All clients"], "{terse}");
}

#[test]
fn one_client_alone_is_shown_without_a_sum() {
    let services = Services::new();
    let (root, _) = services.results("@1 a.fio");
    assert_eq!(entries(&root), [("alpha", services.port(0), [16384, 0])]);
    assert!(root["global options"].as_object().is_some_and(serde_json::Map::is_empty));
    let warned = services.run("--output-format=json @1 @2 a.fio");
    let root: Value = serde_json::from_str(&warned.stdout).unwrap();
    assert_eq!(entries(&root), [("alpha", services.port(1), [16384, 0])], "of the last client");
    assert!(root["strata"]["warnings"][0].as_str().unwrap().contains("has no job file and is ignored"));
}

#[test]
fn files_stages_and_logs_are_those_of_each_client() {
    let services = Services::new();
    let job = |name: &str, text: &str| fs::write(services.scratch.join(name), text).unwrap();
    job(
        "w.fio",
        "[global]\nsize=1m\nbs=64k\nfilename=one\n[w]\nrw=write\nverify=crc32c\nwrite_bw_log=bw\n[r]\nstonewall\nrw=read\n",
    );
    job("v.fio", "[v]\nfilename=two\nsize=1m\nbs=4k\nrw=randwrite\nwrite_bw_log=bw\n");
    let (root, record) = services.results("@1 w.fio @2 v.fio");
    let (one, two) = (services.port(0), services.port(1));
    let expected =
        [("w", one, [16, 16]), ("r", one, [16, 0]), ("v", two, [0, 256]), ("All clients", two, [32, 272])];
    assert_eq!(entries(&root), expected);
    let stages: Vec<_> = record["phases"].as_array().unwrap().iter().map(|phase| &phase["stage"]).collect();
    assert_eq!(stages, [0, 0, 1, 2], "written together, read back, read");
    let names = services.scratch.names();
    for name in [format!("bw_bw.1.log.127.0.0.1.{one}"), format!("bw_bw.1.log.127.0.0.1.{two}")] {
        assert!(names.contains(&name), "no {name} in {names:?}");
    }
    assert!(names.contains(&"one".to_owned()) && names.contains(&"two".to_owned()), "{names:?}");
}

#[test]
fn processes_of_this_machine_are_clients_too() {
    let services = Services::new();
    let (root, record) = services.results("--client=local:1 a.fio --client=local:1 b.fio");
    let hosts: Vec<_> = root["client_stats"]
        .as_array()
        .unwrap()
        .iter()
        .map(|stats| stats["hostname"].as_str().unwrap())
        .collect();
    assert_eq!(hosts, ["local:0", "local:1", "local:1", "local:1"]);
    assert_eq!(total(&record, 0, "operations"), 16384);
    fs::write(services.scratch.join("list"), "local:2\n").unwrap();
    let (root, _) = services.results("--client=list a.fio");
    let jobs = entries(&root);
    assert_eq!(jobs.iter().map(|(_, _, [reads, _])| *reads).collect::<Vec<_>>(), [16384, 16384, 32768]);
}

#[test]
fn a_client_that_is_lost_leaves_the_others_running() {
    let mut services = Services::new();
    let long = "[l]\nioengine=null\nsize=1g\nrw=read\nruntime=3\ntime_based\n[m]\nstonewall\nioengine=null\nsize=64k\n";
    fs::write(services.scratch.join("long.fio"), long).unwrap();
    let [one, two] = services.services.each_ref().map(|service| service.address.replace(':', ","));
    let words = format!(
        "as --live-csv live.csv fio --output-format=json --client={one} long.fio --client={two} long.fio"
    );
    let running = services.scratch.start(&words);
    // Rows come each tenth of a second from when the jobs run.
    let rows = services.scratch.join("live.csv");
    running.await_that(|| fs::read_to_string(&rows).is_ok_and(|text| text.lines().count() > 4));
    services.services[1].kill();
    let ended = running.end();
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    let root: Value = serde_json::from_str(&ended.stdout).unwrap();
    let stats = root["client_stats"].as_array().unwrap();
    let found: Vec<_> =
        stats.iter().map(|stats| (stats["jobname"].as_str().unwrap(), stats["error"] == 0)).collect();
    let expected = [("l", true), ("m", true), ("l", false), ("m", false), ("All clients", false)];
    assert_eq!(found, expected, "{}", ended.stdout);
    assert_eq!(stats[1]["read"]["total_ios"], 16);
    assert!(root["error"].as_str().unwrap().contains(&services.services[1].address), "{root}");
}

#[test]
fn what_a_service_does_not_allow_is_refused_with_its_remedy() {
    let services = Services::new();
    fs::write(
        services.scratch.join("out.fio"),
        "[o]\nfilename=/var/tmp/strata-not-allowed\nsize=1m\nrw=write\n",
    )
    .unwrap();
    let ended = services.run("--output-format=json @1 a.fio @2 out.fio");
    assert_eq!(ended.code, Some(2), "{}", ended.stderr);
    assert!(
        ended.stderr.contains("--root") && ended.stderr.contains(&services.services[1].address),
        "{}",
        ended.stderr
    );
    assert!(!std::path::Path::new("/var/tmp/strata-not-allowed").exists());
    let root: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert!(root["client_stats"].as_array().is_some_and(Vec::is_empty), "{root}");
    for (words, part) in [
        ("@1 a.fio --eta=never b.fio", "b.fio belongs to no client"),
        ("@1 a.fio --name=x", "--name: is not supported with --client"),
        ("@1 a.fio @1 b.fio", "is given twice"),
    ] {
        let ended = services.run(words);
        assert_eq!((ended.code, ended.stderr.lines().count()), (Some(2), 1), "{words}: {}", ended.stderr);
        assert!(ended.stderr.contains(part), "{words}: {}", ended.stderr);
    }
}
