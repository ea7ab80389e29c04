//! fio's logs of operations: written so that fio replays them, and replayed as they say.

use std::fs;
use std::time::Duration;

use testkit::{SlowFile, SlowKind};

use crate::support::{Ended, Scratch, skipped, tool};

/// Operations that a job did: reads, writes and trims.
fn counts(text: &str) -> [u64; 3] {
    let json: serde_json::Value =
        serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"));
    ["read", "write", "trim"].map(|direction| json["jobs"][0][direction]["total_ios"].as_u64().unwrap())
}

fn good(ended: Ended) -> Ended {
    assert_eq!(ended.code, Some(0), "{} {}", ended.stderr, ended.stdout);
    ended
}

/// The operations of a log: file, action, offset and length.
fn lines(text: &str) -> Vec<String> {
    let operations = text.lines().filter(|line| line.split(' ').count() == 5 && !line.starts_with("fio"));
    operations.map(|line| line.split_once(' ').unwrap().1.to_owned()).collect()
}

#[test]
fn fio_replays_what_strata_logged_and_the_reverse() {
    if tool(&["fio", "--version"]).is_none() {
        return skipped("fio_replays_what_strata_logged_and_the_reverse", "fio is not installed");
    }
    let scratch = Scratch::new();
    let theirs = |words: &str| {
        let mut command = std::process::Command::new("fio");
        let done = command.args(words.split(' ')).current_dir(scratch.path()).output().unwrap();
        assert!(done.status.success(), "{words}: {}", String::from_utf8_lossy(&done.stderr));
        String::from_utf8(done.stdout).unwrap()
    };
    let job = "--output-format=json --name=j --filename=a:b --rw=randrw --bssplit=4k/50:8k/50 --size=256k";
    let ours = good(scratch.run(&format!("as fio {job} --write_iolog=ours.log")));
    let text = fs::read_to_string(scratch.join("ours.log")).unwrap();
    assert!(text.starts_with("fio version 3 iolog\n0 a add\n0 b add\n"), "{text}");
    assert_eq!(lines(&text).len() as u64, counts(&ours.stdout).iter().sum::<u64>());
    let replay = "--output-format=json --name=r --replay_no_stall=1 --ioengine=psync --read_iolog";
    assert_eq!(counts(&theirs(&format!("{replay}=ours.log"))), counts(&ours.stdout));
    let written = theirs(&format!("{job} --write_iolog=theirs.log"));
    let replayed = good(scratch.run(&format!("as fio {replay}=theirs.log --write_iolog=again.log")));
    assert_eq!(counts(&replayed.stdout), counts(&written));
    let [first, again] =
        ["theirs.log", "again.log"].map(|name| lines(&fs::read_to_string(scratch.join(name)).unwrap()));
    assert_eq!(first, again, "the same operations in the same order");
}

#[test]
fn a_log_is_replayed_as_the_job_says() {
    let directory = tempfile::tempdir().unwrap();
    let Ok(file) = SlowFile::mount(directory.path(), 1 << 20, 0, |_| Duration::ZERO) else {
        return skipped("a_log_is_replayed_as_the_job_says", "FUSE cannot be mounted here");
    };
    let path = file.path().to_str().unwrap().to_owned();
    let scratch = Scratch::new();
    let log = "fio version 3 iolog\n0 gone add\n0 gone open\n5 gone read 8192 4096\n300005 gone write 40960 8192\n300009 gone read 16384 512\n300009 gone sync 0 0\n300010 gone close\n";
    fs::write(scratch.join("log"), log).unwrap();
    let mut seen = 0;
    let mut run = |words: &str| {
        good(scratch.run(&format!(
            "as --destroy-data fio --name=r --read_iolog=log --replay_redirect={path} --direct=1 --invalidate=0 {words}"
        )));
        let served: Vec<_> = file.served().into_iter().map(|served| served.arrival).skip(seen).collect();
        seen += served.len();
        served
    };
    let served = run("");
    let kinds: Vec<_> = served.iter().map(|at| (at.kind, at.offset_bytes, at.size_bytes)).collect();
    let first = served.iter().position(|at| at.offset_bytes == 8192 && at.size_bytes == 4096).unwrap();
    let expected =
        [(SlowKind::Read, 8192, 4096), (SlowKind::Write, 40960, 8192), (SlowKind::Read, 16384, 512)];
    assert_eq!(kinds[first..first + 3], expected, "{kinds:?}");
    assert!(kinds[first..].iter().any(|(kind, ..)| *kind == SlowKind::Sync), "{kinds:?}");
    assert!(served[first + 1].at - served[first].at >= Duration::from_millis(290), "the log's times");
    let served = run("--replay_time_scale=50");
    let first = served.iter().position(|at| at.offset_bytes == 8192 && at.size_bytes == 4096).unwrap();
    assert!(served[first + 1].at - served[first].at >= Duration::from_millis(590), "half the pace");
    let served = run("--replay_no_stall=1 --replay_skip=write,sync --replay_scale=3 --replay_align=1k");
    assert!(served.iter().all(|at| at.kind == SlowKind::Read), "{served:?}");
    for (offset, size) in [(2048, 4096), (5120, 512)] {
        assert!(served.iter().any(|at| (at.offset_bytes, at.size_bytes) == (offset, size)), "{served:?}");
    }
}

#[test]
fn logs_that_cannot_be_replayed_are_refused() {
    let scratch = Scratch::new();
    fs::write(scratch.join("log"), "fio version 2 iolog\nf add\nf open\nf read 0 4096\n").unwrap();
    fs::write(scratch.join("bad"), "fio version 3 iolog\n1 f add\n2 f erase 0 4096\n").unwrap();
    fs::write(scratch.join("trace"), "\u{7}blktrace").unwrap();
    for (words, expected) in [
        ("--read_iolog=gone", "read_iolog: gone: "),
        ("--read_iolog=bad", "line 3 of bad"),
        ("--read_iolog=trace", "binary blktrace files are not supported"),
        ("--read_iolog=log --replay_skip=read", "contains no operation to replay"),
        ("--read_iolog=log --replay_skip=erase", "replay_skip: "),
        ("--read_iolog=log --replay_align=3k", "a power of 2"),
        ("--read_iolog=log --rate_iops=5", "rate_iops: is not supported with read_iolog"),
        ("--read_iolog=log --verify=md5", "verify: is not supported with read_iolog"),
        ("--rw=read --size=1m --replay_scale=2", "replay_scale: requires read_iolog"),
    ] {
        let ended = scratch.run(&format!("as fio --name=r {words}"));
        assert!(ended.code == Some(2) && ended.stderr.contains(expected), "{words}: {}", ended.stderr);
    }
    // What a log only reads is not made.
    let ended = scratch.run("as fio --name=r --read_iolog=log");
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    assert_eq!(scratch.names().len(), 3);
    // Nothing is behind a null device, and a trim may be long.
    let log = "fio version 3 iolog\n30 /dev/null add\n31 /dev/null open\n32 /dev/null trim 0 2147483648\n40 /dev/null write 0 4096\n";
    fs::write(scratch.join("trims"), log).unwrap();
    let ended = good(
        scratch.run("as fio --output-format=json --name=r --read_iolog=trims --ioengine=null --iodepth=16"),
    );
    assert_eq!(counts(&ended.stdout), [0, 1, 1]);
}
