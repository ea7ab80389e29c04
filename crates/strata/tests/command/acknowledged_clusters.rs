//! `--acknowledged` and `strata object audit` on S3 and RADOS: loads that are killed, and what became of objects since.

use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

use rustix::process::Signal;
use serde_json::Value;
use testkit::s3::{S3Options, S3Server};

use crate::acknowledged::{audit, count};
use crate::support::Scratch;

const LOAD: &str = "--threads 2 --depth 4 --time 100s --keep --live-csv -";

/// Runs a load until `bytes` of acknowledgements are in a file and `between` comes back, and ends it with a signal.
fn ended_by(
    signal: Signal,
    scratch: &Scratch,
    (words, file): (&str, &str),
    bytes: u64,
    between: impl FnOnce(),
) {
    let mut running = scratch.start(&format!("object {words} {LOAD} --acknowledged {file}"));
    running.await_row("");
    while std::fs::metadata(scratch.join(file)).map_or(0, |facts| facts.len()) < bytes {
        std::thread::yield_now();
    }
    between();
    running.signal(signal);
    running.end();
}

/// Early content, once other content has replaced it: updates that came later are acknowledged when the run ends in order.
fn replaced(read: impl Fn() -> Vec<u8>) -> Vec<u8> {
    let early = read();
    while read() == early {
        std::thread::yield_now();
    }
    early
}

/// Nothing that was acknowledged is lost or older.
fn all_there(scratch: &Scratch, words: &str) -> Value {
    let report = audit(scratch, words, 0);
    let good = count(&report, "current") + count(&report, "newer");
    assert_eq!(report["values"].as_u64(), Some(good), "{report}");
    report
}

/// A value with one wrong bit.
fn damaged(mut value: Vec<u8>) -> Vec<u8> {
    let middle = value.len() / 2;
    value[middle] ^= 1;
    value
}

/// Counts of (lost, older, damaged).
fn wrong(report: &Value) -> (u64, u64, u64) {
    (count(report, "lost"), count(report, "older"), count(report, "damaged"))
}

#[test]
fn a_bucket_keeps_what_it_acknowledged_or_the_audit_tells() {
    let (scratch, server) = (Scratch::new(), S3Server::start(S3Options::default()).unwrap());
    let keys = S3Options::default();
    std::fs::write(scratch.join("keys"), format!("{}\n{}\n", keys.access, keys.secret)).unwrap();
    std::fs::set_permissions(scratch.join("keys"), std::fs::Permissions::from_mode(0o600)).unwrap();
    let at = format!("s3://mine/x/ --s3-endpoint {} --s3-key-file keys", server.endpoint());
    let (store, words) = (server.store(), "said --s3-key-file keys");
    let load = format!("{at} --op put --dkeys 20 --value-size 3000");
    ended_by(Signal::KILL, &scratch, (&load, "killed"), 40_000, || ());
    all_there(&scratch, "killed --s3-key-file keys");
    let mut early = Vec::new();
    let again = format!("{load} --destroy-data");
    ended_by(Signal::INT, &scratch, (&again, "said"), 40_000, || {
        early = replaced(|| store.data("mine", &store.keys("mine")[0]).unwrap());
    });
    all_there(&scratch, words);
    let names = store.keys("mine");
    assert_eq!(names.len(), 20, "{names:?}");
    // An old copy, a wrong bit, an end that is missing, zeros, and two that are gone.
    store.insert("mine", &names[0], early);
    store.insert("mine", &names[1], damaged(store.data("mine", &names[1]).unwrap()));
    store.insert("mine", &names[2], store.data("mine", &names[2]).unwrap()[..999].to_vec());
    store.insert("mine", &names[3], vec![0; 3000]);
    store.delete("mine", &names[4]);
    store.delete("mine", &names[5]);
    let report = audit(&scratch, words, 1);
    assert_eq!(wrong(&report), (3, 1, 2), "{report}");
    let text = scratch.run(&format!("object audit {words}"));
    assert!(text.code == Some(1) && text.stdout.contains("older version: object"), "{text:?}");
    // Where nobody answers that is an error, and no verdict.
    drop(server);
    let gone = scratch.run(&format!("object audit {words}"));
    assert!(gone.code == Some(1) && gone.stdout.is_empty(), "{gone:?}");
    let unsigned = scratch.run("object audit said");
    assert!(unsigned.code == Some(2) && unsigned.stderr.contains("AWS_ACCESS_KEY_ID"), "{unsigned:?}");
}

#[test]
fn uploads_in_parts_count_when_they_are_complete() {
    let (scratch, server) = (Scratch::new(), S3Server::start(S3Options::default()).unwrap());
    let keys = S3Options::default();
    std::fs::write(scratch.join("keys"), format!("{}\n{}\n", keys.access, keys.secret)).unwrap();
    std::fs::set_permissions(scratch.join("keys"), std::fs::Permissions::from_mode(0o600)).unwrap();
    let at = format!("s3://mine/x/ --s3-endpoint {} --s3-key-file keys", server.endpoint());
    let load = "--op put --dkeys 3 --value-size 6m --s3-part-size 5m";
    ended_by(Signal::KILL, &scratch, (&format!("{at} {load}"), "said"), 4000, || ());
    all_there(&scratch, "said --s3-key-file keys");
}

#[test]
fn a_ceph_pool_keeps_what_it_acknowledged_or_the_audit_tells() {
    let Some(node) = testkit::ceph_node(env!("CARGO_TARGET_TMPDIR")) else { return };
    let conf = node.conf.display().to_string();
    let loads = [
        ("put", "--dkeys 20 --value-size 3000"),
        ("update", "--dkeys 5 --akeys 2 --value-size 700"),
        ("update", "--dkeys 3 --records 4 --value array --value-size 3000"),
        // Each record lies in two or three chunks: what the kill cut off is there in some of them.
        ("write", "--objects 2 --records 6 --value-size 40k --chunk-size 24k"),
    ];
    for (number, (stores, load)) in loads.into_iter().enumerate() {
        let scratch = Scratch::new();
        let container = format!("audited-{number}-{}", std::process::id());
        let rados = |words: &[&str]| {
            let common = ["--conf", &conf, "-p", "strata", "-N", &container];
            let output = Command::new("rados").args(common).args(words).current_dir(scratch.path()).output();
            let output = output.unwrap();
            assert!(output.status.success(), "{words:?}: {output:?}");
            output.stdout
        };
        let names = || {
            let all = String::from_utf8(rados(&["ls"])).unwrap();
            let mut names: Vec<String> = all.lines().map(str::to_owned).collect();
            names.retain(|name| name != "strata.container");
            names.sort();
            names
        };
        let put = |name: &str, bytes: &[u8]| {
            std::fs::write(scratch.join("value"), bytes).unwrap();
            rados(&["put", name, "value"]);
        };
        let load = format!("rados://strata/{container} --rados-conf {conf} --op {stores} {load}");
        ended_by(Signal::KILL, &scratch, (&load, "killed"), 40_000, || ());
        all_there(&scratch, "killed");
        let mut early = (String::new(), Vec::new());
        if matches!(stores, "put" | "write") {
            let again = format!("{load} --destroy-data");
            ended_by(Signal::INT, &scratch, (&again, "said"), 40_000, || {
                // The first one of an array keeps its size, and no data.
                early.0 = names().pop().unwrap();
                early.1 = replaced(|| rados(&["get", &early.0, "-"]));
            });
            all_there(&scratch, "said");
        }
        let all = names();
        if stores == "put" {
            put(&early.0, &early.1);
            put(&all[0], &damaged(rados(&["get", &all[0], "-"])));
            put(&all[1], &rados(&["get", &all[1], "-"])[..999]);
            rados(&["rm", &all[2]]);
            let report = audit(&scratch, "said", 1);
            assert_eq!(wrong(&report), (1, 1, 2), "{report}");
        }
        if stores == "write" {
            // A chunk as it was then: the records in it are older, in part or as a whole.
            put(&early.0, &early.1);
            let report = audit(&scratch, "said", 1);
            assert!(wrong(&report).1 > 0 && wrong(&report).2 == 0, "{report}");
            assert!(report["examples"][0]["what"].as_str().unwrap().contains("but write"), "{report}");
        }
        for name in names() {
            rados(&["rm", &name]);
        }
        rados(&["rm", "strata.container"]);
    }
}
