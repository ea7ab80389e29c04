//! Files and directories that several hosts work on together.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::support::{Scratch, assert_partial, class, read_record, total};

/// Names below a directory, with the sizes of files.
fn names_below(at: &Path, below: &str, to: &mut BTreeMap<String, u64>) {
    for entry in fs::read_dir(at).unwrap() {
        let entry = entry.unwrap();
        let name = format!("{below}/{}", entry.file_name().to_str().unwrap());
        if entry.file_type().unwrap().is_dir() {
            names_below(&entry.path(), &name, to);
        }
        to.insert(name, entry.metadata().map(|found| if found.is_dir() { 0 } else { found.len() }).unwrap());
    }
}

fn tree(scratch: &Scratch, directory: &str) -> BTreeMap<String, u64> {
    let mut names = BTreeMap::new();
    names_below(&scratch.join(directory), "", &mut names);
    names
}

fn files(record: &Value, phase: usize) -> &Value {
    &record["phases"][phase]["observations"]["files"]
}

/// The report of the last run, without its line breaks.
pub(crate) fn said(scratch: &Scratch) -> String {
    let text = scratch.run("report record.json").stdout;
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn four_hosts_make_and_read_the_files_that_four_threads_do() {
    let scratch = Scratch::new();
    let load =
        "--op write,read --dirs 2 --files 5 --file-size 12k --block-size 4k --rank-shift 1 --verify --keep";
    scratch.measured(&format!("fs threads -t 4 {load}"));
    let record = scratch.measured(&format!("fs hosts --hosts local:4 {load}"));
    assert_eq!(tree(&scratch, "hosts"), tree(&scratch, "threads"));
    assert_eq!(class(&record, 0, "write"), (120, 120 << 12));
    assert_eq!(class(&record, 1, "read"), (120, 120 << 12), "each host reads what the next one has written");
    assert_eq!((files(&record, 0)["items"].as_u64(), total(&record, 1, "errors")), (Some(40), &0.into()));
    let plan = &record["phases"][0]["plan"];
    assert_eq!((&plan["set"]["ranks"], &plan["load"]["place"]["targets"]), (&4.into(), &"shared".into()));
    let text = said(&scratch);
    assert!(text.contains("files shared by the hosts"), "{text}");
    // A block that the second host wrote, and the first one reads.
    let damaged = scratch.join("hosts/strata/w1/d1/f1.0");
    let mut bytes = fs::read(&damaged).unwrap();
    bytes[5000] ^= 1;
    fs::write(&damaged, bytes).unwrap();
    let again = "fs hosts --hosts local:4 --op read --dirs 2 --files 5 --file-size 12k --block-size 4k --rank-shift 1 --verify --keep";
    let (ended, record) = scratch.measure(&format!("{again} --on-error continue"));
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    assert!(
        ended.stderr.contains("f1.0, offset 5000") || record.to_string().contains("f1.0, offset 5000"),
        "{}",
        ended.stderr
    );
    let workers = record["phases"][0]["samples"]["workers"].as_array().unwrap();
    let failed: Vec<_> =
        workers.iter().filter(|worker| !worker["errors"].as_array().unwrap().is_empty()).collect();
    assert_eq!((failed.len(), &failed[0]["origin"]), (1, &"local:0".into()));
}

#[test]
fn one_file_is_written_by_all_hosts_between_barriers() {
    let scratch = Scratch::new();
    let load = "--shape shared --op write,read --file-size 32k --block-size 8k --segments 3 --barriers --rank-shift 1 --verify --end-fsync";
    let record = scratch.measured(&format!("fs data --hosts local:3 {load}"));
    assert_eq!(class(&record, 0, "write"), (36, 36 << 13));
    assert_eq!(class(&record, 1, "read"), (36, 36 << 13));
    assert_eq!(scratch.names(), ["record.json"], "the host that made it has removed it");
    scratch.measured(&format!("fs data --hosts local:3 {load} --keep"));
    assert_eq!(fs::metadata(scratch.join("data")).unwrap().len(), 3 * 3 * (32 << 10));
}

#[test]
fn phases_of_mdtest_over_hosts_leave_nothing() {
    let scratch = Scratch::new();
    let load = "--names mdtest --op tree-create,mkdir,dir-stat,rmdir,create,stat,read,unlink,tree-remove --branch 2 --levels 1 --files 4 --file-size 0 --rank-shift 1";
    for more in ["", "--shared-tree"] {
        let threads = scratch.measured(&format!("fs tree -t 3 {load} {more}"));
        let hosts = scratch.measured(&format!("fs tree --hosts local:3 {load} {more}"));
        let operations = |record: &Value| -> Vec<(String, u64)> {
            let phases = record["phases"].as_array().unwrap().iter().enumerate();
            phases
                .map(|(number, phase)| {
                    let name = phase["plan"]["name"].as_str().unwrap().to_owned();
                    (name, total(record, number, "operations").as_u64().unwrap())
                })
                .collect()
        };
        assert_eq!(operations(&hosts), operations(&threads), "{more}");
        assert_eq!(scratch.names(), ["record.json"], "{more}");
    }
}

#[test]
fn a_search_lists_each_directory_once() {
    let scratch = Scratch::new();
    let load = "--op create,find --branch 3 --levels 3 --files 2 --find-name *1* --keep";
    let threads = scratch.measured(&format!("fs tree -t 2 {load}"));
    fs::remove_dir_all(scratch.join("tree")).unwrap();
    let hosts = scratch.measured(&format!("fs tree --hosts local:2 {load}"));
    assert_eq!(files(&hosts, 1)["found"], files(&threads, 1)["found"]);
    assert_eq!(class(&hosts, 1, "readdir").0, class(&threads, 1, "readdir").0);
    assert!(files(&hosts, 1)["found"]["matched"].as_u64() > Some(0));
}

#[test]
fn at_a_stonewall_all_hosts_go_on_to_the_most() {
    let scratch = Scratch::new();
    let load = "--op create,stat --files 1000000 --time 200ms --wear-out --keep";
    let record = scratch.measured(&format!("fs tree --hosts local:4 {load}"));
    let wall = &files(&record, 0)["stonewall"];
    let most = wall["items_max"].as_u64().unwrap();
    assert!(most > 0 && wall["items_min"].as_u64().unwrap() <= most, "{wall}");
    assert_eq!(files(&record, 0)["items"].as_u64(), Some(4 * most), "{wall}");
    let made = tree(&scratch, "tree").keys().filter(|name| name.contains("/f")).count() as u64;
    assert_eq!(made, 4 * most);
    assert_eq!(total(&record, 1, "errors"), &0);
}

/// Processes that a process has started.
fn children(of: u32) -> Vec<Pid> {
    let listed = fs::read_to_string(format!("/proc/{of}/task/{of}/children")).unwrap_or_default();
    listed.split_whitespace().filter_map(|pid| Pid::from_raw(pid.parse().ok()?)).collect()
}

#[test]
fn a_stonewall_ends_without_a_host_that_is_dead() {
    let scratch = Scratch::new();
    let words = "fs tree --hosts local:3 --op create --files 1000000 --time 3s --wear-out --on-host-failure continue \
                 --live-csv - --json record.json";
    let mut running = scratch.start(words);
    while !running.await_row("create").contains("local:2,client,1") {}
    kill_process(children(running.id())[2], Signal::KILL).unwrap();
    let ended = running.end();
    let record = read_record(&scratch.join("record.json"));
    assert_partial(&scratch, &ended, &record, "host local:2: ");
    let most = files(&record, 0)["stonewall"]["items_max"].as_u64().unwrap();
    assert_eq!(files(&record, 0)["items"].as_u64(), Some(2 * most), "the two that are left made as many");
    assert_eq!(scratch.names(), ["record.json"], "the first host removes what the dead one has left");
}

#[test]
fn hosts_with_directories_of_their_own_do_the_whole_load_each() {
    let scratch = Scratch::new();
    let load = "--op stat --files 4 --no-fill";
    scratch.measured("fs tree --op create --files 4 -t 2 --keep");
    let own = scratch.measured(&format!("fs tree -t 2 --hosts local:2 --host-targets own {load}"));
    assert_eq!((class(&own, 0, "stat").0, &own["phases"][0]["plan"]["set"]["ranks"]), (16, &2.into()));
    let text = said(&scratch);
    assert!(text.contains("separate files on each host"), "{text}");
    let shared = scratch.measured(&format!("fs tree -t 1 --hosts local:2 {load}"));
    assert_eq!(class(&shared, 0, "stat").0, 8);
}
