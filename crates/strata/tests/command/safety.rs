//! Safety: data of others is neither written nor deleted.

use std::fs;

use crate::support::{Loop, Mounted, NO_ROOT, Scratch, skipped, tool};

const WRITING: [&str; 6] = ["write", "randwrite", "readwrite", "randrw --mix 99", "discard", "randdiscard"];

/// A run that is refused for safety: exit 2, one line that says why and what would allow it.
fn assert_unsafe(scratch: &Scratch, words: &str, expected: &str) {
    let ended = scratch.run(words);
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""), "{words}: {}", ended.stderr);
    assert_eq!(ended.stderr.lines().count(), 1, "{words}: {}", ended.stderr);
    assert!(
        ended.stderr.contains(expected) && ended.stderr.contains("--destroy-data"),
        "{words}: {}",
        ended.stderr
    );
}

#[test]
fn files_of_others_are_not_written() {
    let scratch = Scratch::new();
    let data = vec![9; 1 << 20];
    fs::write(scratch.join("data"), &data).unwrap();
    for operation in WRITING {
        assert_unsafe(
            &scratch,
            &format!("media data -b 4k --op {operation}"),
            "data that strata did not write",
        );
        assert_unsafe(&scratch, &format!("media new data -s 1m -b 4k --op {operation}"), "did not write");
    }
    assert!(fs::read(scratch.join("data")).unwrap() == data);
    assert_eq!(scratch.names(), ["data"]);
    scratch.measured("media data --op randread -b 4k");
    assert!(fs::read(scratch.join("data")).unwrap() == data, "reading changed it");
    scratch.measured("media data --op write -b 4k --destroy-data --content zero");
    assert!(fs::read(scratch.join("data")).unwrap() == vec![0; 1 << 20], "overwritten, and still there");
}

#[test]
fn only_files_of_the_run_are_deleted() {
    let scratch = Scratch::new();
    fs::write(scratch.join("neighbour"), "mine").unwrap();
    fs::write(scratch.join("read"), vec![1; 1 << 20]).unwrap();
    scratch.measured("media read new -s 1m --op read");
    assert_eq!(scratch.names(), ["neighbour", "read", "record.json"]);
    scratch.measured("media kept -s 1m --op write --keep");
    scratch.measured("media kept new --op write -s 1m");
    scratch.measured("media kept --op randwrite -s 2m");
    assert_eq!(scratch.names(), ["kept", "neighbour", "read", "record.json"]);
    assert_eq!(fs::read(scratch.join("neighbour")).unwrap(), b"mine");
}

/// Whether the content of the device is as it was after these refusals.
fn assert_device_refused(scratch: &Scratch, device: &Loop, expected: &str) {
    let before = fs::read(&device.backing).unwrap();
    for operation in WRITING {
        assert_unsafe(scratch, &format!("media {} -b 4k --op {operation}", device.device), expected);
    }
    let words =
        format!("stack --quick --size 64m --dir {} --device {}", scratch.path().display(), device.device);
    assert_unsafe(scratch, &words, expected);
    assert!(fs::read(&device.backing).unwrap() == before, "{expected}: the device was written");
    scratch.measured(&format!("media {} -b 4k --op read --count 10", device.device));
}

#[test]
fn devices_with_a_file_system_are_not_written() {
    let scratch = Scratch::new();
    let Some(device) = Loop::new(scratch.path(), 64 << 20) else {
        return skipped("devices_with_a_file_system_are_not_written", NO_ROOT);
    };
    if tool(&["mkfs.ext4", "-q", "-F", &device.device]).is_none() {
        return skipped("devices_with_a_file_system_are_not_written", "no mkfs.ext4");
    }
    assert_device_refused(&scratch, &device, "file system");
    let Some(mounted) = Mounted::new(&[&device.device]) else {
        return skipped("devices_with_a_file_system_are_not_written", NO_ROOT);
    };
    assert_device_refused(&scratch, &device, "is mounted at");
    drop(mounted);
    scratch.measured(&format!("media {} -b 64k --op write --destroy-data", device.device));
}

#[test]
fn devices_with_partitions_are_not_written() {
    let scratch = Scratch::new();
    let Some(device) = Loop::new(scratch.path(), 64 << 20) else {
        return skipped("devices_with_partitions_are_not_written", NO_ROOT);
    };
    let script = format!("printf 'label: gpt\\nsize=10M\\n' | sfdisk -q {}", device.device);
    if tool(&["sh", "-c", &script]).is_none() {
        return skipped("devices_with_partitions_are_not_written", "no sfdisk");
    }
    assert_device_refused(&scratch, &device, "partition table");
}

#[test]
fn blank_devices_are_free() {
    let scratch = Scratch::new();
    let Some(device) = Loop::new(scratch.path(), 16 << 20) else {
        return skipped("blank_devices_are_free", NO_ROOT);
    };
    let record =
        scratch.measured(&format!("media {} --op write,randread -b 64k --direct --verify", device.device));
    assert_eq!(record["phases"][1]["summary"]["total"]["bytes"], 16 << 20);
    assert!(tool(&["losetup", &device.device]).is_some(), "the device is still there");
    // Another output would destroy what is on it.
    let ended = scratch.run(&format!("media null: --op read --count 1 --json {}", device.device));
    assert_eq!(ended.code, Some(2), "{}", ended.stderr);
    assert!(ended.stderr.contains("a block device"), "{}", ended.stderr);
}
