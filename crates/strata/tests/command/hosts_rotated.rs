//! Hosts that change places from phase to phase.

use std::fs;

use serde_json::Value;
use testkit::s3::{S3Options, S3Server};

use super::engines::Engine;
use super::launchers::{MPIRUN, has, launch, output, text};
use super::pool::target;
use super::support::{Scratch, class, read_record, total};

/// Hosts that each phase went on by.
fn rotated(record: &Value) -> Vec<u64> {
    let phases = record["phases"].as_array().unwrap().iter();
    phases.map(|phase| phase["plan"]["load"]["place"]["rotated"].as_u64().unwrap_or(0)).collect()
}

fn workers(record: &Value, phase: usize) -> &[Value] {
    record["phases"][phase]["samples"]["workers"].as_array().unwrap()
}

/// Operations of the workers of a phase, in the order of the hosts.
fn operations(record: &Value, phase: usize) -> Vec<u64> {
    let of = |worker: &Value| {
        let classes = worker["classes"].as_array().unwrap().iter();
        classes.map(|class| class["operations"].as_u64().unwrap()).sum()
    };
    workers(record, phase).iter().map(of).collect()
}

#[test]
fn parts_of_a_file_go_on_from_host_to_host() {
    let scratch = Scratch::new();
    // Seven blocks: the last host of three has three of them, and then the next one.
    let load = "media file -s 28k -b 4k --hosts local:3";
    let record = scratch.measured(&format!("{load} --op write,read,read,read --rotate-hosts 1"));
    assert_eq!(rotated(&record), [0, 1, 2, 0]);
    let parts: Vec<_> = (0..4).map(|phase| operations(&record, phase)).collect();
    assert_eq!(parts, [[2, 2, 3], [3, 2, 2], [2, 3, 2], [2, 2, 3]]);
    assert_eq!(scratch.names(), ["record.json"], "the first host has removed it");
    let text = scratch.run("report record.json").stdout;
    assert!(text.contains("3 hosts rotated by 2 x 1 thread"), "{text}");
    // Shares of what is for all hosts go on, too.
    let record = scratch.measured(&format!("{load} --op write,randread --count 10 --rotate-hosts 2"));
    assert_eq!((operations(&record, 0), operations(&record, 1)), (vec![4, 3, 3], vec![3, 3, 4]));

    let head = "layer = 'media'\ntargets = ['file']\nsize = '28k'\nblock-size = '4k'\nhosts = ['local:3']\n";
    let phases =
        "[[phase]]\nop = 'write'\n[[phase]]\nop = 'read'\n[[phase]]\nop = 'read'\nconcurrent = true\n";
    fs::write(scratch.join("job.toml"), format!("{head}rotate_hosts = 1\n{phases}")).unwrap();
    let record = scratch.measured("run job.toml");
    assert_eq!(rotated(&record), [0, 1, 1], "phases at the same time rotate together");
    fs::write(scratch.join("one.toml"), format!("{head}{phases}rotate_hosts = 1\n")).unwrap();
    let refused = scratch.run("run one.toml");
    assert_eq!(refused.code, Some(2));
    assert!(refused.stderr.contains("hosts are set for the whole run"), "{}", refused.stderr);
}

#[test]
fn files_are_read_by_another_host_than_wrote_them() {
    let scratch = Scratch::new();
    let load = "--dirs 1 --files 4 --file-size 12k --block-size 4k --verify --hosts local:3";
    for shape in ["", "--shared-tree", "--shape shared", "--shape private"] {
        let load = if shape.starts_with("--shape") {
            "--file-size 12k --block-size 4k --verify --hosts local:3"
        } else {
            load
        };
        let record =
            scratch.measured(&format!("fs tree --op write,read,write,read {load} {shape} --rotate-hosts 1"));
        assert_eq!(rotated(&record), [0, 1, 2, 0], "{shape}");
        assert_eq!(
            (class(&record, 0, "write"), class(&record, 1, "read")),
            (class(&record, 2, "write"), class(&record, 3, "read"))
        );
        assert!((0..4).all(|phase| *total(&record, phase, "errors") == 0), "{shape}");
        assert_eq!(scratch.names(), ["record.json"], "{shape}: whoever made it has removed it");
    }
    // Trees are made, filled, emptied and removed by whose turn it is.
    let phases = "--names mdtest --op tree-create,create,stat,stat,unlink,tree-remove --branch 2 --levels 1 --files 4 --file-size 0";
    for shape in ["", "--shared-tree"] {
        let kept = scratch.measured(&format!("fs tree {phases} {shape} --hosts local:3"));
        let record = scratch.measured(&format!("fs tree {phases} {shape} --hosts local:3 --rotate-hosts 2"));
        let count = |record: &Value| {
            (0..6).map(|phase| total(record, phase, "operations").as_u64()).collect::<Vec<_>>()
        };
        assert_eq!((count(&record), rotated(&record)), (count(&kept), vec![0, 2, 1, 0, 2, 1]), "{shape}");
        assert_eq!(scratch.names(), ["record.json"], "{shape}");
    }
    scratch.measured(&format!("fs tree --op write {load} --keep"));
    // Of the second host, which the first one reads after two turns of three.
    let damaged = scratch.join("tree/strata/w1/d1/f1.0");
    let mut bytes = fs::read(&damaged).unwrap();
    bytes[5000] ^= 1;
    fs::write(&damaged, bytes).unwrap();
    let (ended, record) =
        scratch.measure(&format!("fs tree --op stat,stat,read {load} --rotate-hosts 1 --on-error continue"));
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    let failed = workers(&record, 2).iter().filter(|worker| !worker["errors"].as_array().unwrap().is_empty());
    assert_eq!(failed.map(|worker| worker["origin"].as_str().unwrap()).collect::<Vec<_>>(), ["local:0"]);
}

#[test]
fn objects_are_read_by_another_host_than_stored_them() {
    let scratch = Scratch::new();
    let engine = Engine::start(scratch.path(), "--dir tank --pool fields --scm 128m --targets 2");
    let at = format!("{}/fields", target(&engine));
    let load = "--dkeys 300 --value-size 1k --verify --hosts local:3 --rotate-hosts 1";
    for scope in ["", "--object-scope private"] {
        let record =
            scratch.measured(&format!("object {at} --op put,get,put,get --count 300 {load} {scope}"));
        let turns = rotated(&record);
        let phases = turns.len();
        assert_eq!(turns, (0..phases as u64).map(|turn| turn % 3).collect::<Vec<_>>(), "{scope}: fills too");
        assert_eq!(class(&record, phases - 1, "get"), (300, 300 << 10), "{scope}");
        assert_eq!(total(&record, phases - 1, "errors"), &0, "{scope}");
    }
    let refused = scratch.run(&format!("object {at} --op put,get,put --containers private {load}"));
    assert_eq!(refused.code, Some(2));
    assert!(refused.stderr.contains("--containers private"), "{}", refused.stderr);

    let server = S3Server::start(S3Options { is_anonymous: true, ..S3Options::default() }).unwrap();
    let words = format!(
        "object s3://bucket --s3-endpoint {} --s3-signing none --op put,get,get --count 300 {load}",
        server.endpoint()
    );
    let record = scratch.measured(&words);
    let last = record["phases"].as_array().unwrap().len() - 1;
    assert_eq!((class(&record, last, "get").0, total(&record, last, "errors")), (300, &0.into()));
}

#[test]
fn what_hosts_cannot_take_over_is_refused() {
    let scratch = Scratch::new();
    for (words, expected) in [
        ("media null: --op randread,read --count 3 --hosts local:2 --rotate-hosts 2", "give 1 "),
        ("media null: --op randread,read --count 3 --hosts local:3 --rotate-hosts 3", "give 1 to 2"),
        ("media null: --op randread,read --count 3 --hosts local:1 --rotate-hosts 1", "two or more hosts"),
        ("media null: --op randread --count 3 --hosts local:2 --rotate-hosts 1", "such as --op write,read"),
        (
            "media null: --op randread --hosts local:2 --rotate-hosts 1 --saturate",
            "leave out --rotate-hosts or --saturate",
        ),
        (
            "media data -s 1m --op write,read --hosts local:2 --rotate-hosts 1 --host-targets own",
            "--host-targets shared",
        ),
        (
            "media data -s 1m -b 4k --op write,read --verify --hosts local:2 --rotate-hosts 1",
            "blocks that it wrote itself",
        ),
        ("media mem: -s 1m --op write,read --hosts local:2 --rotate-hosts 1", "memory is local to each host"),
        ("app vpic . --hosts local:2 --rotate-hosts 1", "application keep their parts"),
        ("media null: --op read,write --hosts local:2 --rotate-hosts 0", "from 1 to 65535"),
    ] {
        let refused = scratch.run(words);
        assert_eq!(refused.code, Some(2), "{words}: {}", refused.stderr);
        assert!(refused.stderr.contains(expected), "{words}: {}", refused.stderr);
        assert!(scratch.names().is_empty(), "{words}");
    }
    let server = Engine::start(scratch.path(), "--no-attach-info");
    let net = scratch
        .run(&format!("net --servers {} --count 9 --hosts local:2 --rotate-hosts 1", server.control()));
    assert_eq!(net.code, Some(2));
    assert!(net.stderr.contains("leaves no data for another host to read"), "{}", net.stderr);
}

#[test]
fn ranks_of_a_launcher_take_what_is_asked_of_hosts() {
    if !has("mpirun of hosts", "mpirun.openmpi") {
        return;
    }
    let scratch = Scratch::new();
    let three = [MPIRUN, &["-np", "3"]].concat();
    let words = "media file -s 20k -b 4k --op write,read --hosts-used 2 --rotate-hosts 1 --host-targets shared --json record.json";
    let ended = output(launch(&scratch, &three, words, &[]));
    assert_eq!(ended.status.code(), Some(0), "{}", text(&ended.stderr));
    let record = read_record(&scratch.join("record.json"));
    assert_eq!((rotated(&record), record["hosts"].as_array().unwrap().len()), (vec![0, 1], 2));
    assert_eq!((operations(&record, 0), operations(&record, 1)), (vec![2, 3], vec![3, 2]));
    for (words, expected) in
        [("--hosts-used 4", "give 1 to 3"), ("--fingerprint a=sha256:00", "no hosts are given")]
    {
        let ended =
            output(launch(&scratch, &three, &format!("media null: --op read --count 3 {words}"), &[]));
        assert!(text(&ended.stderr).contains(expected), "{words}: {}", text(&ended.stderr));
    }
}
