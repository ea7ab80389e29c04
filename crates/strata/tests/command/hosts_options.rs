//! Hosts that have options of their own (`--host-options`).

use std::fs;

use serde_json::Value;

use super::engines::Engine;
use super::hosts_files::said;
use super::hosts_objects::last;
use super::many_hosts::{Service, token};
use super::pool::target;
use super::support::{Scratch, class, total};

/// Operations of each worker of a phase, by its host.
fn workers(record: &Value, phase: usize) -> Vec<(&str, u64)> {
    let workers = record["phases"][phase]["samples"]["workers"].as_array().unwrap().iter();
    let of = |worker: &'_ Value| {
        let classes = worker["classes"].as_array().unwrap().iter();
        classes.map(|class| class["operations"].as_u64().unwrap()).sum()
    };
    workers.map(|worker| (worker["origin"].as_str().unwrap(), of(worker))).collect()
}

fn has_no_errors(record: &Value) -> bool {
    (0..record["phases"].as_array().unwrap().len()).all(|phase| *total(record, phase, "errors") == 0)
}

#[test]
fn hosts_of_different_sizes_divide_a_file_by_their_workers() {
    let scratch = Scratch::new();
    let load = "media file -s 4m -b 64k -t 1 --hosts local:2 --keep --seed 3 --host-options rank:1:threads=3";
    let record = scratch.measured(&format!("{load} --op write,read"));
    let each = [("local:0", 16), ("local:1", 16), ("local:1", 16), ("local:1", 16)];
    for phase in 0..2 {
        assert_eq!(workers(&record, phase), each);
        assert_eq!(total(&record, phase, "errors"), 0);
        let place = &record["phases"][phase]["plan"]["load"]["place"];
        assert_eq!((&place["workers"], &place["targets"]), (&4.into(), &"shared".into()));
    }
    assert_eq!(record["hosts"][1]["options"], serde_json::json!([["threads", "3"]]));
    assert!(record["hosts"][0]["options"].is_null());
    let text = said(&scratch);
    assert!(text.contains("2 hosts with 4 threads"), "{text}");
    assert!(text.contains("local:1: threads=3"), "{text}");
    // Every block was written once, by one of them: the same bytes as of one process with as many threads.
    let whole = fs::read(scratch.join("file")).unwrap();
    assert!(whole.chunks(64 << 10).all(|block| block.iter().any(|byte| *byte != 0)));
    // Amounts for all are divided by workers too.
    let counted = scratch.measured(&format!("{load} --count 8 --op read"));
    assert_eq!(
        workers(&counted, 0).iter().filter(|(host, _)| *host == "local:0").map(|(_, of)| of).sum::<u64>(),
        2
    );
    assert_eq!(total(&counted, 0, "operations"), 8);
}

#[test]
fn files_and_objects_of_all_workers_are_made_read_and_removed() {
    let scratch = Scratch::new();
    let options = "-t 2 --hosts local:3 --host-options rank:0:threads=1 --host-options rank:2:threads=4";
    let record = scratch.measured(&format!("fs tree --op create,stat,unlink --files 5 {options}"));
    for (phase, name) in ["create", "stat", "unlink"].into_iter().enumerate() {
        assert_eq!(class(&record, phase, name).0, 35, "5 files of each of 7 workers");
        assert_eq!(total(&record, phase, "errors"), 0);
    }
    let engine = Engine::start(scratch.path(), "--dir tank --pool fields --scm 128m --targets 2");
    let at = target(&engine);
    let load = "--op put,get --dkeys 70 --value-size 1k --verify --seed 5 --rank-shift 1";
    let record = scratch.measured(&format!("object {at}/fields {load} --count 70 {options}"));
    assert_eq!((class(&record, 0, "put").0, class(&record, last(&record, "get"), "get").0), (70, 70));
    assert_eq!(workers(&record, 0).len(), 7);
    assert!(has_no_errors(&record));
    // Fewer values than workers: each is stored once before it is read.
    let load = "--op get --dkeys 3 --value-size 1k --count 6 --share whole";
    let record = scratch.measured(&format!("object {at}/fields/few {load} {options}"));
    assert!(has_no_errors(&record));
    assert_eq!(class(&record, last(&record, "get"), "get").0, 6);
}

#[test]
fn each_host_has_its_own_path() {
    let scratch = Scratch::new();
    let token = token(&scratch);
    let services = [(); 2].map(|()| Service::start(&scratch, &["--token-file", &token, "--root", "."]));
    let [one, two] = services.each_ref().map(|service| &service.address);
    let record = scratch.measured(&format!(
        "media first --op write -s 1m -b 64k --keep --hosts {one},{two} --host-targets own --token-file {token} --host-options {two}:target=second,nice=1",
    ));
    assert_eq!(total(&record, 0, "operations"), 32, "each host has done all of it");
    for name in ["first", "second"] {
        assert_eq!(fs::metadata(scratch.join(name)).unwrap().len(), 1 << 20, "{name}");
    }
    assert_eq!(record["hosts"][1]["options"], serde_json::json!([["target", "second"], ["nice", "1"]]));
}

#[test]
fn what_hosts_cannot_have_is_refused_before_anything_is_touched() {
    let scratch = Scratch::new();
    let load = "media file -s 1m --hosts local:2 --op";
    for (more, expected) in [
        ("write --host-options threads=2", "HOSTS:NAME=VALUE"),
        ("write --host-options rank:1:block-size=4k", "threads, cores"),
        ("write --host-options rank:2:threads=2", "ranks are 0 to 1"),
        ("write --host-options local:1:threads=2", "rank:1"),
        ("write --host-options node7:threads=2", "is not in --hosts"),
        ("write --host-options rank:1:threads=0", "threads"),
        ("write,read --host-options rank:1:threads=2 --rotate-hosts 1", "--rotate-hosts"),
        ("write --host-options rank:1:threads=2 --ladder depth=1,2", "--ladder"),
    ] {
        let ended = scratch.run(&format!("{load} {more}"));
        assert_eq!(ended.code, Some(2), "{more}: {}", ended.stderr);
        assert!(ended.stderr.contains(expected), "{more}: {}", ended.stderr);
        assert!(scratch.names().is_empty(), "{more}");
    }
    let alone = scratch.run("media file --op write -s 1m --host-options rank:1:threads=2");
    assert_eq!((alone.code, scratch.names().len()), (Some(2), 0));
    assert!(alone.stderr.contains("--host-options requires hosts"), "{}", alone.stderr);
}
