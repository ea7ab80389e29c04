//! The drivers of the media layer on devices: loop devices (with root and losetup) and a terminal.
#![allow(unsafe_code)]

use std::fs::File;
use std::io::Write;
use std::os::fd::FromRawFd;
use std::path::Path;
use std::time::Instant;

use crate::support::{BLOCK, LoopDevice, Rig, Scratch, carries, on_files, operation, pattern, plan, skip};
use driver::{Completion, Wait};
use media::engine::EngineOptions;
use media::{DRIVERS, MediaClass, MediaOperation};
use workload::target::TargetKind;

const FULL: i64 = BLOCK as i64;

/// The settings to run a driver with on a block device.
fn settings(direct_too: bool) -> Vec<EngineOptions> {
    let buffered = EngineOptions::default();
    let direct = EngineOptions { direct: true, ..EngineOptions::default() };
    if direct_too { vec![buffered, direct] } else { vec![buffered] }
}

#[test]
fn a_block_device_is_written_read_synced_and_discarded() {
    const BYTES: u64 = 1 << 20;
    for entry in on_files() {
        for options in settings(entry.capabilities.direct) {
            let scratch = Scratch::with(&pattern(1, BYTES as usize));
            let Some(device) = LoopDevice::attach(&scratch.file) else {
                return skip("block device", "no loop device can be had here");
            };
            let target = plan(&device.path, TargetKind::BlockDevice, BYTES);
            let mut rig = Rig::open(entry, vec![target], true, options).expect("open");
            rig.write_and_read_back(entry.name, BYTES - u64::from(BLOCK), 7);
            assert_eq!(rig.run(operation(MediaClass::Read, BYTES)), 0, "{}: past the end", entry.name);
            let beyond = rig.run(operation(MediaClass::Write, BYTES));
            assert_eq!(beyond, -i64::from(libc::ENOSPC), "{}: past the end", entry.name);
            if carries(entry, "sync") {
                assert_eq!(rig.run(operation(MediaClass::Sync, 0)), 0, "{}", entry.name);
                assert!(scratch.content()[BYTES as usize - BLOCK as usize..] == pattern(7, BLOCK as usize));
            }
            if carries(entry, "discard") {
                let discard = MediaOperation { length: 65_536, ..operation(MediaClass::Discard, 65_536) };
                assert_eq!(rig.run(discard), 65_536, "{}", entry.name);
                rig.fill(0, &[7; BLOCK as usize]);
                assert_eq!(rig.run(operation(MediaClass::Read, 65_536)), FULL, "{}", entry.name);
                assert!(rig.bytes(0, BLOCK as usize).iter().all(|&byte| byte == 0), "{}", entry.name);
                assert_eq!(rig.run(operation(MediaClass::Read, 131_072)), FULL, "{}", entry.name);
                let after = &pattern(1, BYTES as usize)[131_072..][..BLOCK as usize];
                assert!(rig.bytes(0, BLOCK as usize) == after, "{}: discarded too much", entry.name);
            }
        }
    }
}

#[test]
fn an_error_of_the_medium_is_a_completion() {
    const BYTES: u64 = 1 << 20;
    for entry in on_files() {
        for options in settings(entry.capabilities.direct) {
            let scratch = Scratch::with(&pattern(1, BYTES as usize));
            let Some(device) = LoopDevice::attach(&scratch.file) else {
                return skip("error of the medium", "no loop device can be had here");
            };
            let file = std::fs::OpenOptions::new().write(true).open(&scratch.file).expect("the file");
            let target = plan(&device.path, TargetKind::BlockDevice, BYTES);
            let mut rig = Rig::open(entry, vec![target], false, options).expect("open");
            file.set_len(BYTES / 2).expect("cut");
            for _ in 0..2 {
                let result = rig.run(operation(MediaClass::Read, BYTES * 3 / 4));
                assert_eq!(result, -i64::from(libc::EIO), "{}", entry.name);
            }
            assert_eq!(rig.run(operation(MediaClass::Read, u64::from(BLOCK))), FULL, "{}", entry.name);
            assert!(
                rig.bytes(0, BLOCK as usize)
                    == pattern(1, BYTES as usize)[BLOCK as usize..][..BLOCK as usize]
            );
        }
    }
}

/// A pseudo-terminal, its two ends and the path of the far one, which gives no byte before one is put into the near one.
fn terminal() -> Option<(File, File, String)> {
    let (mut near, mut far) = (0, 0);
    let mut name = [0_u8; 64];
    // SAFETY: two descriptors and a name of at most 64 bytes ("/dev/pts/N") are written; nothing else is handed over.
    let opened = unsafe {
        libc::openpty(
            &mut near,
            &mut far,
            name.as_mut_ptr().cast(),
            std::ptr::null_mut(),
            std::ptr::null_mut(),
        )
    };
    if opened != 0 {
        return None;
    }
    // SAFETY: descriptors that openpty has just made and that nobody else holds.
    let (near, far) = unsafe { (File::from_raw_fd(near), File::from_raw_fd(far)) };
    let name = std::ffi::CStr::from_bytes_until_nul(&name).ok()?.to_str().ok()?.to_owned();
    Some((near, far, name))
}

#[test]
fn a_wait_ends_with_its_time_and_without_completions() {
    let Some((mut near, _far, path)) = terminal() else {
        return skip("waiting", "no terminal can be had here");
    };
    // libaio reads a terminal inside io_submit: only a ring leaves the read in flight.
    let entry = driver::find(DRIVERS, "io_uring").expect("io_uring");
    for options in [EngineOptions::default(), EngineOptions { sqpoll: true, ..EngineOptions::default() }] {
        let target = plan(Path::new(&path), TargetKind::CharacterDevice, 1 << 20);
        let mut rig = Rig::open(entry, vec![target], true, options).expect("open");
        let read = operation(MediaClass::Read, 0);
        assert_eq!(rig.driver.submit(&[read], &mut rig.done).expect("submit").accepted, 1);
        for _ in 0..3 {
            rig.driver.reap(Wait::None, &mut rig.done).expect("reap");
        }
        let begin = Instant::now();
        let wait = Wait::Timeout { count: 1, timeout_ns: 2_000_000 };
        rig.driver.reap(wait, &mut rig.done).expect("reap");
        assert!(begin.elapsed().as_nanos() >= 2_000_000);
        assert!(rig.done.is_empty());
        near.write_all(b"abc\n").expect("a line");
        rig.driver.reap(Wait::AtLeast(1), &mut rig.done).expect("reap");
        assert_eq!(rig.done.as_slice(), [Completion { slot: 0, result: 4 }]);
        assert_eq!(rig.bytes(0, 4), b"abc\n");
    }
}
