//! Faults: exit 1, the cause in one line, and a record of what was measured until then.

use std::fs::{self, File, OpenOptions};

use crate::support::{Loop, Mounted, NO_ROOT, Scratch, assert_partial, read_record, skipped, tool, total};

/// How operating systems say that there is no space left, on files and on a device over one.
const FULL: &str = "No space left on device";
const BROKEN: &str = "Input/output error";

#[test]
fn a_device_that_is_full() {
    let scratch = Scratch::new();
    for engine in ["psync", "pvsync2"] {
        let (ended, record) =
            scratch.measure(&format!("media /dev/full --op write -b 4k --count 10 --engine {engine}"));
        assert_partial(&scratch, &ended, &record, &format!("write failed: {FULL}"));
        assert_eq!(total(&record, 0, "operations"), 0);
    }
    let words = "media /dev/full --op write -b 4k --count 10 --on-error continue";
    let (ended, record) = scratch.measure(words);
    assert_partial(
        &scratch,
        &ended,
        &record,
        "10 operations failed in phase write: write failed: No space left",
    );
    assert_eq!(total(&record, 0, "errors"), 10);
}

#[test]
fn a_disk_without_room_for_the_file() {
    let Some(disk) = Mounted::tmpfs("8m") else {
        return skipped("a_disk_without_room_for_the_file", NO_ROOT);
    };
    let scratch = Scratch::new();
    let (ended, record) = scratch.measure(&format!("media {}/file --op write -s 16m", disk.path().display()));
    assert_partial(&scratch, &ended, &record, "not enough free space for the files");
    assert!(ended.stderr.contains("needed=16 MiB, free=8 MiB"), "{}", ended.stderr);
    assert_eq!(fs::read_dir(disk.path()).unwrap().count(), 0, "left something behind");
}

#[test]
fn a_disk_that_others_fill_between_the_phases() {
    let Some(disk) = Mounted::tmpfs("8m") else {
        return skipped("a_disk_that_others_fill_between_the_phases", NO_ROOT);
    };
    let scratch = Scratch::new();
    let place = disk.path().display();
    let job = format!(
        "[[phase]]\nname = 'first'\ntargets = ['{place}/a']\nsize = '1m'\nop = 'read'\ntime = '1s'\n\
         [[phase]]\ntargets = ['{place}/b']\nsize = '6m'\nop = 'write'\n"
    );
    fs::write(scratch.join("job.toml"), job).unwrap();
    let mut running = scratch.start("run job.toml --live-csv - --json record.json");
    running.await_row("first");
    fs::write(disk.path().join("ballast"), vec![1; 4 << 20]).unwrap();
    let ended = running.end();
    let record = read_record(&scratch.join("record.json"));
    assert_partial(&scratch, &ended, &record, "not enough free space for the files");
    assert_eq!(record["phases"].as_array().unwrap().len(), 1);
    assert!(total(&record, 0, "operations").as_u64().unwrap() > 0, "the first phase is whole");
    assert!(record["phases"][0]["failure"].is_null());
    assert_eq!(crate::support::names_in(disk.path()), ["ballast"]);
}

#[test]
fn a_thin_device_that_runs_full_in_the_middle() {
    let Some(disk) = Mounted::tmpfs("8m") else {
        return skipped("a_thin_device_that_runs_full_in_the_middle", NO_ROOT);
    };
    let Some(device) = Loop::new(disk.path(), 16 << 20) else {
        return skipped("a_thin_device_that_runs_full_in_the_middle", NO_ROOT);
    };
    let scratch = Scratch::new();
    let (ended, record) = scratch.measure(&format!("media {} --op write -b 64k --direct", device.device));
    // Older kernels call it an I/O error.
    let cause = if ended.stderr.contains(FULL) { FULL } else { BROKEN };
    assert_partial(&scratch, &ended, &record, &format!("write failed: {cause}"));
    let written = total(&record, 0, "bytes").as_u64().unwrap();
    assert!((4 << 20..=8 << 20).contains(&written), "{written}");
}

#[test]
fn targets_that_cannot_be_written() {
    let scratch = Scratch::new();
    let Some(device) = Loop::new(scratch.path(), 64 << 20) else {
        return skipped("targets_that_cannot_be_written", NO_ROOT);
    };
    if tool(&["mkfs.ext4", "-q", "-F", &device.device]).is_none() {
        return skipped("targets_that_cannot_be_written", "no mkfs.ext4");
    }
    let Some(disk) = Mounted::new(&[&device.device]) else {
        return skipped("targets_that_cannot_be_written", NO_ROOT);
    };
    fs::write(disk.path().join("data"), vec![3; 1 << 20]).unwrap();
    tool(&["mount", "-o", "remount,ro", disk.path().to_str().unwrap()]).unwrap();
    let place = disk.path().display();
    for words in [
        format!("media {place}/new --op write -s 1m"),
        format!("media {place}/data --op write --destroy-data"),
        format!("media {place}/data --op randrw --destroy-data --engine mmap"),
    ] {
        let (ended, record) = scratch.measure(&words);
        assert_partial(&scratch, &ended, &record, "Read-only file system");
    }
    scratch.measured(&format!("media {place}/data --op read"));
    drop(disk);
    let Some(locked) = Loop::over(&device.backing, &["--read-only"]) else {
        return skipped("targets_that_cannot_be_written", "no read-only loop device");
    };
    let (ended, record) = scratch.measure(&format!("media {} --op write --destroy-data", locked.device));
    assert_partial(&scratch, &ended, &record, "it is read-only");
    scratch.measured(&format!("media {} --op read --count 1", locked.device));
}

#[test]
fn a_device_whose_second_half_is_broken() {
    let scratch = Scratch::new();
    let Some(device) = Loop::new(scratch.path(), 16 << 20) else {
        return skipped("a_device_whose_second_half_is_broken", NO_ROOT);
    };
    File::create(&device.backing).unwrap().set_len(8 << 20).unwrap();
    for (engine, _) in crate::loads::engines(&scratch) {
        let words = format!("media {} --op read -b 64k --cache drop --engine {engine}", device.device);
        let (ended, record) = scratch.measure(&words);
        assert_partial(&scratch, &ended, &record, &format!("read failed: {BROKEN}"));
        assert_eq!(total(&record, 0, "bytes"), 8 << 20, "{engine}: everything before the fault counts");
        let error = &record["phases"][0]["samples"]["workers"][0]["errors"][0];
        assert_eq!((&error["errno"], &error["count"]), (&5.into(), &1.into()), "{engine}");
    }
    let words = format!("media {} --op read -b 64k --direct --on-error continue", device.device);
    let (ended, record) = scratch.measure(&words);
    assert_partial(&scratch, &ended, &record, "128 operations failed in phase read");
    assert_eq!((total(&record, 0, "operations"), total(&record, 0, "errors")), (&128.into(), &128.into()));
}

#[test]
fn a_device_that_breaks_during_the_run() {
    let scratch = Scratch::new();
    let Some(device) = Loop::new(scratch.path(), 16 << 20) else {
        return skipped("a_device_that_breaks_during_the_run", NO_ROOT);
    };
    let words = "--op read -b 64k --direct --time 60s --live-csv - --json record.json";
    let mut running = scratch.start(&format!("media {} {words}", device.device));
    running.await_row("read");
    OpenOptions::new().write(true).open(&device.backing).unwrap().set_len(8 << 20).unwrap();
    let ended = running.end();
    let record = read_record(&scratch.join("record.json"));
    assert_partial(&scratch, &ended, &record, &format!("read failed: {BROKEN}"));
    assert!(total(&record, 0, "operations").as_u64().unwrap() > 0);
}

#[test]
fn a_file_that_is_cut_during_the_run() {
    for engine in ["psync", "mmap"] {
        let scratch = Scratch::new();
        let words = "media file -s 16m --op read -b 64k --time 60s --live-csv - --json record.json";
        let mut running = scratch.start(&format!("{words} --engine {engine}"));
        running.await_row("read");
        OpenOptions::new().write(true).open(scratch.join("file")).unwrap().set_len(1 << 20).unwrap();
        let ended = running.end();
        let record = read_record(&scratch.join("record.json"));
        let cause = if engine == "mmap" { BROKEN } else { "short: 0 of 65536 bytes" };
        assert_partial(&scratch, &ended, &record, &format!("read failed: {cause}"));
        assert_eq!(scratch.names(), ["record.json"], "{engine}: the file was the run's own");
    }
}

#[test]
fn a_file_that_is_deleted_during_the_run() {
    for operation in ["randread", "randwrite"] {
        let scratch = Scratch::new();
        let words = "media file -s 4m --time 500ms --live-csv - --json record.json";
        let mut running = scratch.start(&format!("{words} --op {operation}"));
        running.await_row(operation);
        fs::remove_file(scratch.join("file")).unwrap();
        // Someone else's by now: the run must leave it alone.
        fs::write(scratch.join("file"), "another").unwrap();
        let ended = running.end();
        assert_eq!(ended.code, Some(0), "the open file is still there: {}", ended.stderr);
        let record = read_record(&scratch.join("record.json"));
        assert_eq!((&record["status"], total(&record, 0, "errors")), (&"complete".into(), &0.into()));
        assert_eq!(fs::read(scratch.join("file")).unwrap(), b"another");
    }
}

#[test]
fn a_directory_that_is_gone_before_the_next_phase() {
    let scratch = Scratch::new();
    let job = "targets = ['sub/file']\nsize = '4m'\n[[phase]]\nop = 'randread'\ntime = '1s'\n[[phase]]\nop = 'read'\n";
    fs::write(scratch.join("job.toml"), job).unwrap();
    fs::create_dir(scratch.join("sub")).unwrap();
    let mut running = scratch.start("run job.toml --live-csv - --json record.json");
    running.await_row("randread");
    fs::remove_dir_all(scratch.join("sub")).unwrap();
    let ended = running.end();
    let record = read_record(&scratch.join("record.json"));
    assert_partial(&scratch, &ended, &record, "(path=sub/file): No such file or directory");
    assert_eq!(record["phases"].as_array().unwrap().len(), 1);
}

#[test]
fn outputs_that_go_away() {
    let scratch = Scratch::new();
    fs::create_dir(scratch.join("results")).unwrap();
    let words = "media null: --op randread --time 300ms --live-csv - --json results/record.json";
    let mut running = scratch.start(words);
    running.await_row("randread");
    fs::remove_dir_all(scratch.join("results")).unwrap();
    let ended = running.end();
    assert_eq!(ended.code, Some(1));
    let last = ended.stderr.lines().last().unwrap();
    assert!(last.contains("cannot write (path=results/record.json)"), "{}", ended.stderr);
    assert!(ended.stdout.contains("bandwidth"), "what was measured is shown: {}", ended.stdout);
}
