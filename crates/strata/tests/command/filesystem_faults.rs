//! Faults under loads on files: a clear line each, what was measured is kept, and nothing is left.

use std::fs::{self, File};
use std::process::Command;

use crate::support::{
    Ended, Loop, Mounted, NO_ROOT, Scratch, assert_partial, class, names_in, read_record, skipped, state_of,
    tool,
};

/// Runs the command under another one, as `setpriv` or a shell is; how it ended.
fn run_under(scratch: &Scratch, program: &[&str], words: &str) -> Ended {
    let mut command = Command::new(program[0]);
    let output = command
        .args(&program[1..])
        .arg(env!("CARGO_BIN_EXE_strata"))
        .args(words.split_whitespace())
        .current_dir(scratch.path())
        .env("XDG_STATE_HOME", state_of(scratch.path()))
        .output()
        .unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    Ended { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
}

#[test]
fn each_phase_on_a_full_disk() {
    let Some(disk) = Mounted::tmpfs("1m") else { return skipped("each_phase_on_a_full_disk", NO_ROOT) };
    tool(&["mount", "-o", "remount,nr_inodes=40", disk.path().to_str().unwrap()]).unwrap();
    let scratch = Scratch::new();
    let target = disk.path().join("t");
    for (phase, options) in [
        ("tree-create", "--branch 10 --levels 3"),
        ("create", "--files 100"),
        ("mknod", "--files 100"),
        ("mkdir", "--files 100"),
        ("write", "--files 100"),
        ("write", "--shape private --file-size 4m"),
        ("write", "--shape private --file-size 4m --engine io_uring --depth 4"),
        ("write", "--shape private --file-size 4m --preallocate"),
    ] {
        let words = format!("fs {} --op {phase} {options}", target.display());
        let (ended, record) = scratch.measure(&words);
        assert_partial(&scratch, &ended, &record, "No space left on device");
        assert!(names_in(disk.path()).is_empty(), "{words}");
    }
}

#[test]
fn a_block_that_fits_in_part_says_why() {
    let test = "a_block_that_fits_in_part_says_why";
    let Some(disk) = Mounted::tmpfs("1m") else { return skipped(test, NO_ROOT) };
    let scratch = Scratch::new();
    let target = disk.path().join("t");
    for words in [
        format!("fs {} --op write --shape private --file-size 1400k --block-size 700k", target.display()),
        format!("fs {} --op write --files 2 --file-size 700k --block-size 700k -e libc", target.display()),
        format!("media {} --op write -s 1400k -b 700k --layout sparse -e psync", target.display()),
        format!("media {} --op write -s 1400k -b 700k --layout sparse -e pvsync2", target.display()),
    ] {
        let (ended, record) = scratch.measure(&words);
        assert_partial(&scratch, &ended, &record, "No space left on device");
        assert!(!ended.stderr.contains("short"), "{words}: {}", ended.stderr);
        assert!(names_in(disk.path()).is_empty(), "{words}");
    }
}

#[test]
fn a_quota_that_is_used_up() {
    let options = "usrquota,usrquota_block_hardlimit=1m";
    let Some(disk) = Mounted::new(&["-t", "tmpfs", "-o", options, "none"]) else {
        return skipped("a_quota_that_is_used_up", "no mount with quotas (tmpfs, usrquota) here");
    };
    let scratch = Scratch::new();
    // Root is bound by quotas without this capability only.
    let words = format!(
        "fs {} --op write --files 100 --file-size 64k --json record.json",
        disk.path().join("t").display()
    );
    let ended = run_under(&scratch, &["setpriv", "--bounding-set=-sys_resource"], &words);
    assert_partial(&scratch, &ended, &read_record(&scratch.join("record.json")), "quota exceeded");
    assert!(names_in(disk.path()).is_empty());
}

#[test]
fn a_file_system_that_is_read_only() {
    let Some(disk) = Mounted::tmpfs("4m") else { return skipped("a_file_system_that_is_read_only", NO_ROOT) };
    let scratch = Scratch::new();
    let target = disk.path().join("t").display().to_string();
    scratch.measured(&format!("fs {target} --op write --files 3 --keep"));
    tool(&["mount", "-o", "remount,ro", disk.path().to_str().unwrap()]).unwrap();
    for words in [format!("fs {target} --op write --files 3"), format!("fs {target}2 --op create")] {
        let (ended, record) = scratch.measure(&words);
        assert_partial(&scratch, &ended, &record, "Read-only file system");
    }
    let record = scratch.measured(&format!("fs {target} --op read,stat --no-fill --files 3"));
    assert_eq!(class(&record, 1, "stat").0, 3);
}

#[test]
fn a_path_that_is_removed_in_the_middle() {
    let scratch = Scratch::new();
    let words = "fs t --op create --paths full --files 100000000 --time 60s --live-csv - --json record.json";
    let mut running = scratch.start(words);
    running.await_row("create");
    fs::rename(scratch.join("t/strata"), scratch.join("t/gone")).unwrap();
    let ended = running.end();
    assert_partial(&scratch, &ended, &read_record(&scratch.join("record.json")), "No such file or directory");
    assert_eq!(names_in(&scratch.join("t")), ["gone"], "others moved it: it is not removed, and named");
}

#[test]
fn a_disk_that_breaks_under_the_files() {
    let scratch = Scratch::new();
    let test = "a_disk_that_breaks_under_the_files";
    let Some(device) = Loop::new(scratch.path(), 32 << 20) else { return skipped(test, NO_ROOT) };
    if tool(&["mkfs.ext4", "-q", &device.device]).is_none() {
        return skipped(test, "no mkfs.ext4");
    }
    let Some(disk) = Mounted::new(&[&device.device]) else { return skipped(test, NO_ROOT) };
    let target = disk.path().join("data").display().to_string();
    let shape = "--shape private --file-size 8m --block-size 64k";
    scratch.measured(&format!("fs {target} --op write --end-fsync --verify --keep {shape}"));
    File::create(&device.backing).unwrap();
    let words = format!("fs {target} --op read --no-fill --cache drop --verify {shape}");
    let (ended, record) = scratch.measure(&words);
    assert_partial(&scratch, &ended, &record, "Input/output error");
}

#[test]
fn more_open_files_than_are_allowed() {
    let scratch = Scratch::new();
    let shell = ["sh", "-c", "ulimit -n 48 && exec \"$0\" \"$@\""];
    let words = "fs data --shape private --threads 64 --file-size 64k --op write --json record.json";
    let ended = run_under(&scratch, &shell, words);
    assert_partial(&scratch, &ended, &read_record(&scratch.join("record.json")), "Too many open files");
    assert_eq!(scratch.names(), ["record.json"]);
}

#[test]
fn a_name_that_is_too_long() {
    let scratch = Scratch::new();
    let name = "x".repeat(300);
    for words in [format!("fs {name}"), format!("fs data --shape private --file-suffix .{name} --op write")] {
        let (ended, record) = scratch.measure(&words);
        assert_partial(&scratch, &ended, &record, "File name too long");
        assert_eq!(scratch.names(), ["record.json"], "{words}");
    }
}
