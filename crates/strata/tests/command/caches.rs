//! `--cache drop` where a store has a drive below it: what it has in memory of its log is read from the drive.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::doubts::on_a_drive;
use crate::engines::Engine;
use crate::support::{Scratch, skipped};

/// Bytes that a process has fetched from drives.
fn fetched_bytes(process: u32) -> u64 {
    let text = fs::read_to_string(format!("/proc/{process}/io")).expect("its I/O");
    let line = text.lines().find_map(|line| line.strip_prefix("read_bytes: ")).expect("a line");
    line.parse().expect("a number")
}

/// Bytes that the last phase fetched from drives.
fn fetched_in(record: &Value) -> u64 {
    let phase = record["phases"].as_array().unwrap().last().unwrap();
    assert_eq!(phase["failure"], Value::Null, "{phase}");
    phase["observations"]["process_fetched_bytes"].as_u64().expect("they are counted")
}

#[test]
fn stores_in_process_read_from_the_drive() {
    let Some(scratch) = on_a_drive("stores_in_process_read_from_the_drive") else { return };
    let object =
        "object vos:pool --op get --dkeys 256 --value-size 4k --count 256 --pattern permutation --scm 64m";
    for (cache, expected) in [("keep", 0..1), ("drop", 256 * 4096..u64::MAX)] {
        let record = scratch.measured(&format!("{object} --cache {cache}"));
        assert!(expected.contains(&fetched_in(&record)), "{cache}: {}", fetched_in(&record));
    }
    assert_eq!(scratch.run("pool create vos:files --scm 64m").code, Some(0));
    let files = "fs dfs+vos:files --op write,read --shape private --block-size 64k --file-size 1m";
    for (cache, expected) in [("keep", 0..1), ("drop", 1 << 20..u64::MAX)] {
        let record = scratch.measured(&format!("{files} --cache {cache}"));
        assert!(expected.contains(&fetched_in(&record)), "{cache}: {}", fetched_in(&record));
    }
}

#[test]
fn stores_behind_engines_and_mounts_read_from_the_drive() {
    let test = "stores_behind_engines_and_mounts_read_from_the_drive";
    let Some(scratch) = on_a_drive(test) else { return };
    let words = "--no-attach-info --interface lo --pool tank --dir pool --scm 64m --listen 127.0.0.1:0";
    let engine = Engine::start_words(scratch.path(), &format!("engine {words}"));
    let address = engine.uri().strip_prefix("tcp://").unwrap().to_owned();
    let fetches = |words: &str| {
        let before = fetched_bytes(engine.id());
        let ended = scratch.run(words);
        assert_eq!(ended.code, Some(0), "{words}: {}", ended.stderr);
        fetched_bytes(engine.id()) - before
    };
    let object = format!(
        "object engine://{address}/tank --op get --dkeys 256 --value-size 4k --count 256 --pattern permutation"
    );
    // Pages of the program may be fetched, but no values.
    assert!(fetches(&format!("{object} --cache keep")) < 64 * 4096);
    assert!(fetches(&format!("{object} --cache drop")) >= 256 * 4096);
    let files =
        format!("fs dfs+engine://{address}/tank/files --op write,read --shape private --block-size 64k");
    assert_eq!(fetches(&format!("{files} --file-size 1m --cache keep")), 0);
    assert!(fetches(&format!("{files} --file-size 1m --cache drop")) >= 1 << 20);

    if !rustix::process::geteuid().is_root() || !Path::new("/dev/fuse").exists() {
        return skipped(test, "mounting needs root and /dev/fuse");
    }
    let directory = scratch.join("mount");
    fs::create_dir(&directory).unwrap();
    let mut mount = scratch.start(&format!("mount dfs+engine://{address}/tank/files mount"));
    mount.await_row("mounted ");
    let files = "fs mount/data --op write,read --shape private --block-size 64k --file-size 1m";
    assert_eq!(fetches(&format!("{files} --cache keep")), 0);
    assert!(fetches(&format!("{files} --cache drop")) >= 1 << 20);
    let set = |value: &[u8]| {
        rustix::fs::setxattr(&directory, "user.strata.cache", value, rustix::fs::XattrFlags::empty())
    };
    assert_eq!(set(b"drop"), Ok(()));
    assert_eq!(set(b"keep"), Err(rustix::io::Errno::INVAL));
    assert!(Command::new("umount").arg(&directory).status().unwrap().success());
    assert_eq!(mount.end().code, Some(0));
}

#[test]
fn what_cannot_be_dropped_is_refused() {
    let scratch = Scratch::new();
    for (words, expected) in [
        ("object s3://bucket --s3-endpoint http://127.0.0.1:1 --op get --cache drop", "cache"),
        ("object vos:pool --op get --cache cold", "keep, drop"),
        ("fs dfs+daos://pool/container --op read --cache drop", "DAOS clients cannot drop"),
    ] {
        let ended = scratch.run(words);
        assert_eq!(ended.code, Some(2), "{words}: {}", ended.stderr);
        assert!(ended.stderr.contains(expected), "{words}: {}", ended.stderr);
    }
}
