//! Targets that may be written, on real loop devices.

mod scratch;

use driver::ErrorKind;
use media::probe::probe;
use media::safety::check_writable;
use media::target::TargetFacts;
use scratch::{Loop, Mounted, run, skipped};
use workload::target::TargetKind;

const MIB: u64 = 1 << 20;

/// The refusal's text, which must be of the kind that exits with 2 and touches nothing.
fn refusal(path: &str, destroy_data: bool) -> Option<String> {
    let error = check_writable(&probe(path, false).unwrap(), destroy_data).err()?;
    assert_eq!((error.kind(), error.exit_code()), (ErrorKind::Unsafe, 2), "{error}");
    let line = error.to_string();
    assert!(!line.contains('\n') && line.contains(path), "{line}");
    Some(line)
}

#[test]
fn a_blank_device_is_free() {
    let Some(device) = Loop::new(64 * MIB) else { return skipped("a_blank_device_is_free") };
    let facts = probe(&device.device, false).unwrap();
    assert_eq!((facts.kind, facts.size_bytes), (TargetKind::BlockDevice, 64 * MIB));
    assert!(facts.direct_alignment_bytes >= 512 && facts.direct_alignment_bytes.is_power_of_two());
    assert_eq!(refusal(&device.device, false), None);
    assert_eq!(refusal(&device.device, true), None);
}

#[test]
fn whatever_carries_something_is_refused() {
    let formats: &[(&[&str], &str)] = &[
        (&["mkfs.ext4", "-q", "-F"], "file system (ext2, ext3 or ext4)"),
        (&["mkswap"], "contains swap"),
        (&["mkfs.xfs", "-q"], "file system (xfs)"),
        (&["mkfs.vfat"], "file system (vfat)"),
        (&["mkfs.btrfs", "-q"], "file system (btrfs)"),
        (&["mkfs.f2fs", "-q"], "file system (f2fs)"),
        (&["pvcreate", "-q"], "an LVM physical volume"),
    ];
    for (command, expected) in formats {
        let Some(device) = Loop::new(512 * MIB) else {
            return skipped("whatever_carries_something_is_refused");
        };
        if run(&[command, &[device.device.as_str()][..]].concat()).is_none() {
            skipped(command[0]);
            continue;
        }
        let line = refusal(&device.device, false).unwrap_or_else(|| panic!("{command:?} not recognised"));
        assert!(line.contains(expected) && line.contains("--destroy-data"), "{line}");
        assert_eq!(refusal(&device.device, true), None, "{command:?}");
    }
}

#[test]
fn partition_tables_are_refused() {
    for (label, script) in
        [("gpt", "label: gpt\nsize=10M\n"), ("gpt", "label: gpt\n"), ("dos", "label: dos\nsize=10M\n")]
    {
        let Some(device) = Loop::new(64 * MIB) else { return skipped("partition_tables_are_refused") };
        let command = format!("printf '{script}' | sfdisk -q {}", device.device);
        if run(&["sh", "-c", &command]).is_none() {
            return skipped("sfdisk");
        }
        let line = refusal(&device.device, false).unwrap();
        assert!(line.contains("has a partition table"), "{label}: {line}");
        assert_eq!(refusal(&device.device, true), None);
    }
}

#[test]
fn what_is_mounted_is_refused() {
    let Some(device) = Loop::new(64 * MIB) else { return skipped("what_is_mounted_is_refused") };
    run(&["mkfs.ext4", "-q", "-F", &device.device]).unwrap();
    let Some(mounted) = Mounted::new(&[&device.device]) else { return skipped("what_is_mounted_is_refused") };
    let line = refusal(&device.device, false).unwrap();
    let expected = format!("is mounted at {} (ext4)", mounted.path().display());
    assert!(line.contains(&expected), "{line}");
    assert_eq!(refusal(&device.device, true), None);
}

#[test]
fn a_mounted_partition_covers_the_disk() {
    let Some(device) = Loop::new(64 * MIB) else { return skipped("a_mounted_partition_covers_the_disk") };
    // Told to the kernel, not written: not every kernel reads every sort of table.
    let script = format!("addpart {0} 1 2048 100000 && mkfs.ext4 -q -F {0}p1", device.device);
    if run(&["sh", "-c", &script]).is_none() {
        return skipped("a_mounted_partition_covers_the_disk");
    }
    let partition = format!("{}p1", device.device);
    let mounted = Mounted::new(&[&partition]).unwrap();
    let expected = format!("is mounted at {}", mounted.path().display());
    for path in [&device.device, &partition] {
        assert!(refusal(path, false).unwrap().contains(&expected), "{path}");
    }
}

#[test]
fn a_loop_device_over_the_device_covers_it_both_ways() {
    let Some(lower) = Loop::new(64 * MIB) else { return skipped("a_loop_device_over_the_device") };
    let upper = Loop::over(&lower.device).unwrap();
    assert!(refusal(&lower.device, false).unwrap().contains("is part of loop"));
    run(&["mkfs.ext4", "-q", "-F", &upper.device]).unwrap();
    let mounted = Mounted::new(&[&upper.device]).unwrap();
    for path in [&lower.device, &upper.device] {
        assert!(refusal(path, false).unwrap().contains("is mounted at"), "{path}");
    }
    drop(mounted);
}

#[test]
fn active_swap_is_refused_in_any_case() {
    let Some(device) = Loop::new(MIB) else { return skipped("active_swap_is_refused_in_any_case") };
    run(&["mkswap", &device.device]).unwrap();
    if run(&["swapon", &device.device]).is_none() {
        return skipped("active_swap_is_refused_in_any_case");
    }
    let lines = [false, true].map(|destroy_data| refusal(&device.device, destroy_data));
    run(&["swapoff", &device.device]).unwrap();
    for line in lines {
        assert!(line.unwrap().contains("is in use as swap"));
    }
}

#[test]
fn the_device_of_the_system_is_refused_in_any_case() {
    let mounts = host::mounts::mounts();
    let root = host::mounts::mount_of(&mounts, "/".as_ref()).unwrap();
    let path = host::block::name(root.device).map(|name| format!("/dev/{name}"));
    let Some(path) = path.filter(|path| std::path::Path::new(path).exists()) else {
        return skipped("the_device_of_the_system_is_refused_in_any_case");
    };
    // Not probed: containers may see the device without being let in.
    let facts = TargetFacts {
        path,
        kind: TargetKind::BlockDevice,
        exists: true,
        size_bytes: 0,
        allocated_bytes: 0,
        direct_alignment_bytes: 512,
        free_bytes: None,
        zoned: None,
    };
    for destroy_data in [false, true] {
        let error = check_writable(&facts, destroy_data).unwrap_err();
        assert_eq!((error.kind(), error.exit_code()), (ErrorKind::Unsafe, 2));
        assert!(error.to_string().contains("the system runs from it"), "{error}");
    }
}

#[test]
fn files_of_others_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("data");
    let text = path.to_str().unwrap();
    assert!(check_writable(&probe(text, true).unwrap(), false).is_ok(), "to be created");
    std::fs::write(&path, b"").unwrap();
    assert_eq!(refusal(text, false), None, "empty");
    std::fs::write(&path, b"thesis").unwrap();
    assert!(refusal(text, false).unwrap().contains("data that strata did not write"));
    assert_eq!(refusal(text, true), None);
    let name = layer::MARK;
    if rustix::fs::setxattr(&path, name, b"run", rustix::fs::XattrFlags::empty()).is_ok() {
        assert_eq!(refusal(text, false), None, "marked");
    }
    assert_eq!(std::fs::read(&path).unwrap(), b"thesis");
}

#[test]
fn character_devices() {
    for harmless in ["/dev/null", "/dev/zero", "/dev/full"] {
        assert_eq!(refusal(harmless, false), None);
    }
    assert!(check_writable(&probe("null:", false).unwrap(), false).is_ok());
    assert!(check_writable(&probe("mem:", false).unwrap(), false).is_ok());
    if std::path::Path::new("/dev/mem").exists() {
        assert!(refusal("/dev/mem", true).unwrap().contains("the memory of this machine"));
    }
    if std::path::Path::new("/dev/ptmx").exists() {
        assert!(refusal("/dev/ptmx", false).unwrap().contains("--destroy-data"));
        assert_eq!(refusal("/dev/ptmx", true), None);
    }
}
