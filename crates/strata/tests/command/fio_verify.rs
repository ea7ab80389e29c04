//! fio's verification and access patterns: what is written is checked as fio checks it, and never said to be right where it is not.

use std::fs;
use std::time::Duration;

use testkit::{SlowFile, SlowKind};

use crate::fio_shape::served;
use crate::support::{Ended, Scratch, skipped, tool};

/// Kind, offset and length, in sectors of 512 bytes, of the operations of a job on a FUSE file.
fn visited(size_kib: u64, words: &str) -> Option<Vec<(char, u64, u64)>> {
    let sectors = served(size_kib, words)?.into_iter().filter(|(_, _, size_bytes)| size_bytes % 512 == 0);
    Some(sectors.map(|(kind, offset, size)| (kind, offset / 512, size / 512)).collect())
}

/// Bytes that a job read and wrote, by its JSON.
fn moved(ended: &Ended) -> (u64, u64, u64) {
    let json: serde_json::Value = serde_json::from_str(&ended.stdout).unwrap();
    let bytes = |direction: &str| json["jobs"][0][direction]["io_bytes"].as_u64().unwrap();
    (bytes("read"), bytes("write"), bytes("trim"))
}

fn damage(scratch: &Scratch, name: &str, offset: usize) {
    let mut bytes = fs::read(scratch.join(name)).unwrap();
    bytes[offset] ^= 0x55;
    fs::write(scratch.join(name), bytes).unwrap();
}

#[test]
fn blocks_of_several_sizes_are_read_back_as_they_were_written() {
    let name = "blocks_of_several_sizes_are_read_back_as_they_were_written";
    for words in [
        "--rw=randwrite --bssplit=512/50:12k/50 --size=256k --verify=md5",
        "--rw=write --bsrange=1k-16k --size=256k --verify=crc32c",
    ] {
        let Some(served) = visited(256, words) else {
            return skipped(name, "FUSE cannot be mounted here");
        };
        let of = |wanted: char| {
            let parts =
                served.iter().filter(|(kind, ..)| *kind == wanted).map(|(_, at, length)| (*at, *length));
            let mut parts: Vec<_> = parts.collect();
            parts.sort_unstable();
            parts
        };
        assert_eq!(of('w'), of('r'), "{words}");
        assert_eq!(of('w').iter().map(|(_, length)| length).sum::<u64>(), 512, "{words}");
        assert!(of('w').windows(2).all(|pair| pair[0].0 + pair[0].1 == pair[1].0), "{words}: each byte once");
    }
}

#[test]
fn mixes_of_sizes_are_checked_and_never_written_blocks_are_not() {
    let scratch = Scratch::new();
    for words in [
        "--rw=randrw --bssplit=512/30:4k/70 --ioengine=libaio --iodepth=16",
        "--rw=rw --bs=4k,16k",
        "--rw=randrw --bsrange=512-8k --norandommap",
        "--rw=randwrite --bsrange=4k-64k --loops=3 --ioengine=io_uring --iodepth=128",
    ] {
        let ended = scratch.run(&format!(
            "as fio --output-format=json --name=m --size=1m --verify=crc32c --filename=m {words}"
        ));
        assert_eq!(ended.code, Some(0), "{words}: {}", ended.stderr);
        fs::remove_file(scratch.join("m")).unwrap();
    }
    // What a job wrote is checked by another, in blocks of other sizes that fit.
    let write =
        "as fio --name=w --filename=f --rw=write --bsrange=1k-4k --size=64k --verify=md5 --do_verify=0";
    assert_eq!(scratch.run(write).code, Some(0));
    let read = "as fio --name=r --filename=f --rw=randread --bssplit=1k/50:8k/50 --size=64k --verify=md5";
    assert_eq!(scratch.run(read).code, Some(0));
    damage(&scratch, "f", 40_000);
    assert_eq!(scratch.run(read).code, Some(1));
}

#[test]
fn a_backlog_is_read_while_the_job_writes() {
    let words = "--rw=write --bs=4k --size=40k --verify=md5 --verify_backlog=4";
    let Some(served) = visited(40, words) else {
        return skipped("a_backlog_is_read_while_the_job_writes", "FUSE cannot be mounted here");
    };
    let kinds: String = served.iter().map(|(kind, ..)| *kind).collect();
    assert_eq!(kinds, "wwwwrrrrwwwwrrrrwwrr");
    let scratch = Scratch::new();
    let job = "as fio --output-format=json --name=b --bs=4k --size=512k --verify=md5";
    for (words, expected) in [
        ("--rw=randwrite --verify_backlog=32 --ioengine=libaio --iodepth=8", (512 << 10, 512 << 10, 0)),
        ("--rw=write --verify_backlog=8 --verify_backlog_batch=2", (512 << 10, 512 << 10, 0)),
        // What is not read when the job has ended is not read after it.
        ("--rw=write --verify_backlog=8 --do_verify=0 --io_size=64k", (32 << 10, 64 << 10, 0)),
        ("--rw=write --verify_backlog=100 --number_ios=50", (200 << 10, 200 << 10, 0)),
    ] {
        let ended = scratch.run(&format!("{job} {words}"));
        assert_eq!(ended.code, Some(0), "{words}: {}", ended.stderr);
        assert_eq!(moved(&ended), expected, "{words}");
    }
}

#[test]
fn a_fatal_mismatch_ends_the_job_and_others_are_counted() {
    let scratch = Scratch::new();
    let write = "as fio --name=w --filename=f --rw=write --bs=4k --size=64k --verify=md5 --do_verify=0";
    assert_eq!(scratch.run(write).code, Some(0));
    let good = fs::read(scratch.join("f")).unwrap();
    damage(&scratch, "f", 8192 + 100);
    damage(&scratch, "f", 32768);
    let check = |words: &str| {
        let ended = scratch.run(&format!(
            "as fio --output-format=json --name=r --filename=f --rw=read --bs=4k --size=64k --verify=md5 {words}"
        ));
        assert_eq!(ended.code, Some(1), "{}", ended.stderr);
        moved(&ended).0 >> 12
    };
    assert_eq!(check(""), 14, "two of 16 are wrong");
    assert_eq!(check("--verify_fatal=1"), 2, "it ends at the third");
    check("--verify_dump=1");
    assert_eq!(fs::read(scratch.join("f.8192.expected")).unwrap(), good[8192..12288]);
    let received = fs::read(scratch.join("f.8192.received")).unwrap();
    assert_eq!(received, fs::read(scratch.join("f")).unwrap()[8192..12288]);
    assert!(scratch.join("f.32768.expected").exists() && scratch.names().len() == 5, "{:?}", scratch.names());
    // Nothing that is there is written over.
    fs::write(scratch.join("f.8192.expected"), "mine").unwrap();
    check("--verify_dump=1");
    assert_eq!(fs::read(scratch.join("f.8192.expected")).unwrap(), b"mine");
}

#[test]
fn patterns_are_those_of_fio() {
    let Some(fio) = tool(&["fio", "--version"]).map(|_| "fio") else {
        return skipped("patterns_are_those_of_fio", "fio is not installed");
    };
    let scratch = Scratch::new();
    fs::write(scratch.join("bytes"), (0..4096u32).map(|at| (at * 7) as u8).collect::<Vec<_>>()).unwrap();
    let theirs = |words: &str| {
        let mut command = std::process::Command::new(fio);
        command.args(words.split(' ')).current_dir(scratch.path());
        command.output().unwrap().status.success()
    };
    for pattern in ["0xdeadbeef", "0xabc%o", "\"abcd\"-12%o0x01"] {
        let words = format!(
            "--name=p --filename=p --bs=4k --size=64k --verify=pattern --verify_pattern={pattern} --rw"
        );
        let ours = |rw: &str| scratch.run(&format!("as fio {words}={rw}")).code;
        assert_eq!(ours("randwrite --do_verify=0"), Some(0), "{pattern}");
        assert!(theirs(&format!("{words}=read")), "{pattern}: fio does not read what strata wrote");
        fs::remove_file(scratch.join("p")).unwrap();
        assert!(theirs(&format!("{words}=write --do_verify=0")), "{pattern}");
        assert_eq!(ours("read"), Some(0), "{pattern}: strata does not read what fio wrote");
        damage(&scratch, "p", 20_000);
        assert_eq!(ours("read"), Some(1), "{pattern}");
        fs::remove_file(scratch.join("p")).unwrap();
        assert_eq!(ours("read"), Some(1), "{pattern}: a file that is gone");
    }
    let zeros = scratch.run("as fio --name=z --size=4k --rw=write --verify=pattern --verify_pattern=0x00");
    assert!(zeros.code == Some(2) && zeros.stderr.contains("cannot detect lost blocks"), "{}", zeros.stderr);
    let file = "as fio --name=q --filename=q --bs=4k --size=16k --rw=write --buffer_pattern='bytes'";
    assert_eq!(scratch.run(file).code, Some(0));
    let (bytes, written) = (fs::read(scratch.join("bytes")).unwrap(), fs::read(scratch.join("q")).unwrap());
    assert!(written.chunks(4096).all(|block| block == bytes) && written.len() == 16 << 10);
    let read =
        "as fio --name=q --filename=q --bs=4k --size=16k --rw=read --verify=pattern --verify_pattern='bytes'";
    assert_eq!(scratch.run(read).code, Some(0));
}

#[test]
fn a_trim_is_followed_by_its_write() {
    let scratch = Scratch::new();
    for words in [
        "--rw=trimwrite --bs=4k --size=256k",
        "--rw=randtrimwrite --bsrange=512-4k --size=256k --ioengine=null --iodepth=1",
        "--rw=randtrimwrite --bs=8k --size=256k --ioengine=libaio --iodepth=8",
        "--rw=trimwrite --bs=4k --size=128k --loops=2",
    ] {
        let log = "--write_bw_log=t --log_offset=1 --per_job_logs=0";
        let ended = scratch.run(&format!("as fio --output-format=json --name=t {words} {log}"));
        assert_eq!(ended.code, Some(0), "{words}: {}", ended.stderr);
        assert_eq!(moved(&ended), (0, 256 << 10, 256 << 10), "{words}");
        // Time, rate, direction, bytes, offset: each write is of what was trimmed before.
        let lines = fs::read_to_string(scratch.join("t_bw.log")).unwrap();
        let mut open: Vec<(String, String)> = Vec::new();
        for line in lines.lines() {
            let columns: Vec<&str> = line.split(", ").collect();
            let block = (columns[3].to_owned(), columns[4].to_owned());
            match columns[2] {
                "2" => open.push(block),
                _ => {
                    let at = open.iter().position(|trimmed| *trimmed == block);
                    open.remove(at.unwrap_or_else(|| panic!("{words}: {line}")));
                }
            }
        }
        assert!(open.is_empty() && !lines.is_empty(), "{words}: {open:?}");
        fs::remove_file(scratch.join("t_bw.log")).unwrap();
    }
}

#[test]
fn operations_that_share_bytes_wait_for_each_other() {
    let name = "operations_that_share_bytes_wait_for_each_other";
    let directory = tempfile::tempdir().unwrap();
    let Ok(file) = SlowFile::mount(directory.path(), 32 << 10, 0, |_| Duration::from_millis(2)) else {
        return skipped(name, "FUSE cannot be mounted here");
    };
    let path = file.path().to_str().unwrap().to_owned();
    let scratch = Scratch::new();
    let words = "--rw=randwrite --bsrange=4k-16k --norandommap --io_size=1m --iodepth=8 --ioengine=io_uring";
    let ended = scratch.run(&format!(
        "as --destroy-data fio --name=x --filename={path} --size=32k --direct=1 --invalidate=0 {words} --serialize_overlap=1"
    ));
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let served: Vec<_> =
        file.served().into_iter().filter(|served| matches!(served.arrival.kind, SlowKind::Write)).collect();
    assert!(served.len() >= 60);
    for (number, one) in served.iter().enumerate() {
        for other in &served[number + 1..] {
            let [first, second] = [one.arrival, other.arrival];
            let shares = first.offset_bytes < second.offset_bytes + second.size_bytes
                && second.offset_bytes < first.offset_bytes + first.size_bytes;
            let at_once = first.at < second.at + other.latency && second.at < first.at + one.latency;
            assert!(!(shares && at_once), "{first:?} {second:?}");
        }
    }
}

#[test]
fn only_what_the_job_writes_is_checked_where_that_is_not_all() {
    let scratch = Scratch::new();
    // A third of the blocks is not hit by as many random writes as there are blocks; which ones follows from the seed.
    let words = "as fio --name=x --size=256k --rw=randwrite --bs=4k --norandommap --verify=crc32c --output-format=json";
    assert_eq!(scratch.run(&format!("{words} --do_verify=0")).code, Some(0));
    let check = || scratch.run(&format!("{words} --verify_only=1"));
    let ended = check();
    assert_eq!((ended.code, moved(&ended).0), (Some(0), 256 << 10), "{}", ended.stderr);
    let bytes = fs::read(scratch.join("x.0.0")).unwrap();
    let written: Vec<usize> =
        (0..64).filter(|block| bytes[block << 12..(block + 1) << 12] != [0; 4096]).collect();
    assert!(written.len() < 64, "some are left out: {written:?}");
    damage(&scratch, "x.0.0", (written[0] << 12) + 100);
    assert_eq!(check().code, Some(1));
}

#[test]
fn a_file_of_state_says_how_far_a_check_goes() {
    let scratch = Scratch::new();
    let words = "as fio --name=a/b --filename=f --size=256k --bs=4k --ioengine=libaio --iodepth=4 --verify=crc32c --output-format=json";
    let load = "--verify_only=1 --verify_state_load=1";
    let state = "local-a.b-0-verify.state";
    for rw in ["randwrite", "write"] {
        let run = |more: &str| scratch.run(&format!("{words} --rw={rw} {more}"));
        let ended = run(load);
        assert_eq!(ended.code, Some(2), "{}", ended.stderr);
        assert!(
            ended.stderr.contains(state) && ended.stderr.contains("verify_state_save=1"),
            "{}",
            ended.stderr
        );
        let ended = run("--do_verify=0 --number_ios=40 --verify_state_save=1");
        assert_eq!((ended.code, moved(&ended).1), (Some(0), 40 << 12), "{}", ended.stderr);
        assert_eq!(scratch.names(), ["f", state]);
        let bytes = fs::read(scratch.join(state)).unwrap();
        assert_eq!((bytes.len(), bytes[0], bytes[32]), (24 + 144 + 4 * 8, 7, 40), "version and writes");
        let ended = run(load);
        assert_eq!((ended.code, moved(&ended).0), (Some(0), 40 << 12), "{}", ended.stderr);
        assert_eq!(
            run("--verify_only=1").code,
            Some(1),
            "without it all blocks of the range are to be there"
        );
        fs::write(scratch.join(state), &bytes[..100]).unwrap();
        let ended = run(load);
        assert!(ended.code == Some(2) && ended.stderr.contains("76 bytes of state"), "{}", ended.stderr);
        fs::create_dir(scratch.join("aux")).unwrap();
        assert_eq!(run("--aux-path=aux --do_verify=0 --verify_state_save=1").code, Some(0));
        let ended = run(&format!("--aux-path=aux {load}"));
        assert_eq!((ended.code, moved(&ended).0), (Some(0), 256 << 10), "all of it: {}", ended.stderr);
        assert!(scratch.join("aux").join(state).exists());
        // Of writes that nothing made durable none counts.
        let ended =
            run("--do_verify=0 --verify_state_save=1 --verify_policy=fsynced --fsync=16 --number_ios=40");
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        assert_eq!(fs::read(scratch.join(state)).unwrap()[32], 32);
        fs::remove_dir_all(scratch.join("aux")).unwrap();
        scratch.names().into_iter().for_each(|name| fs::remove_file(scratch.join(&name)).unwrap());
    }
}
