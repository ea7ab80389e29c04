//! Events of drivers, and two drivers as one.

use std::os::fd::BorrowedFd;
use std::time::Duration;

use driver::{Completions, Driver, Either, Joined, Wait};
use media::engine::EngineOptions;
use media::{DRIVERS, MediaClass, MediaOperation};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use testkit::SlowFile;
use workload::target::TargetKind;

use super::support::{
    BLOCK, Entry, Rig, Scratch, carries, of_this_machine, operation, pattern, plan, plan_for, skip,
};

const BLOCKS: u64 = 16;
const FULL: i64 = BLOCK as i64;

fn entry(name: &str) -> &'static Entry {
    DRIVERS.iter().find(|entry| entry.name == name).expect("there is such a driver")
}

/// Whether it becomes readable within a minute.
fn becomes_readable(event: BorrowedFd<'_>) -> bool {
    let mut events = [PollFd::from_borrowed_fd(event, PollFlags::IN)];
    let longest = Timespec { tv_sec: 60, tv_nsec: 0 };
    poll(&mut events, Some(&longest)).expect("polled") == 1
}

#[test]
fn an_event_is_readable_while_a_completion_waits() {
    let mut with_event = Vec::new();
    for entry in of_this_machine().filter(|entry| carries(entry, "read")) {
        let scratch = Scratch::with(&pattern(1, BLOCKS as usize * BLOCK as usize));
        let target = plan_for(entry, &scratch.file, BLOCKS * u64::from(BLOCK));
        let mut rig = Rig::open(entry, vec![target], false, EngineOptions::default()).expect("open");
        if rig.driver.event().expect("an event, or none").is_none() {
            continue;
        }
        with_event.push(entry.name);
        for number in 0..100 {
            let slot = number as u32 % rig.depth;
            let read = operation(MediaClass::Read, number % BLOCKS * u64::from(BLOCK));
            rig.done.clear();
            rig.driver.submit(&[MediaOperation { slot, ..read }], &mut rig.done).expect("submit");
            rig.driver.reap(Wait::None, &mut rig.done).expect("reap");
            while rig.done.is_empty() {
                let event = rig.driver.event().expect("an event").expect("it stays");
                assert!(becomes_readable(event), "{}", entry.name);
                rig.driver.reap(Wait::None, &mut rig.done).expect("reap");
            }
            assert_eq!(rig.done.as_slice()[0].slot, slot, "{}", entry.name);
        }
    }
    assert!(with_event.contains(&"libaio"), "{with_event:?}");
}

/// The drivers of two rigs as one, for as many operations as both take together.
fn joined(first: Rig, second: Rig) -> (Joined<MediaOperation, MediaOperation>, u32) {
    let depth = first.depth.min(second.depth);
    (Joined::new(first.driver, second.driver, depth).expect("joined"), depth)
}

#[test]
fn two_drivers_as_one_complete_every_operation_once() {
    for (first, second) in
        [("libaio", "libaio"), ("libaio", "psync"), ("psync", "mmap"), ("io_uring", "libaio")]
    {
        if [first, second].contains(&"io_uring") && !media::io_uring_is_available() {
            skip("two drivers as one", "io_uring is not available");
            continue;
        }
        let scratch = Scratch::with(&pattern(1, BLOCKS as usize * BLOCK as usize));
        let rig = |name: &str| Rig::on(entry(name), &scratch.file, BLOCKS * u64::from(BLOCK));
        let (one, other) = (rig(first), rig(second));
        let _buffers = (one.arena.clone(), other.arena.clone());
        let (mut driver, depth) = joined(one, other);
        let mut done = Completions::with_depth(2 * depth);
        let mut free: Vec<u32> = (0..depth).collect();
        let (mut started, mut finished) = (0_u64, 0_u64);
        while finished < 2_000 {
            let count = (started as usize % depth as usize + 1).min(free.len());
            let batch: Vec<_> = free
                .drain(..count)
                .enumerate()
                .map(|(index, slot)| {
                    let number = started + index as u64;
                    let read = operation(MediaClass::Read, number % BLOCKS * u64::from(BLOCK));
                    let read = MediaOperation { slot, ..read };
                    if number.is_multiple_of(3) { Either::First(read) } else { Either::Second(read) }
                })
                .collect();
            done.clear();
            let accepted = driver.submit(&batch, &mut done).expect("submit").accepted;
            free.extend(batch[accepted..].iter().map(driver::Operation::slot));
            started += accepted as u64;
            let wait = if finished.is_multiple_of(2) { Wait::None } else { Wait::AtLeast(1) };
            driver.reap(wait, &mut done).expect("reap");
            for completion in done.as_slice() {
                assert_eq!(completion.result, FULL, "{first} and {second}");
                assert!(!free.contains(&completion.slot), "slot {} twice", completion.slot);
                free.push(completion.slot);
            }
            finished += done.len() as u64;
            assert!(finished <= started, "{first} and {second}");
        }
    }
}

#[test]
fn a_driver_that_hangs_does_not_hold_up_the_other() {
    if !media::io_uring_is_available() {
        return skip("a driver that hangs", "io_uring is not available");
    }
    let directory = tempfile::tempdir().expect("a directory");
    let size_bytes = BLOCKS * u64::from(BLOCK);
    let slow = match SlowFile::mount(directory.path(), size_bytes, 0, |_| Duration::from_secs(3600)) {
        Ok(slow) => slow,
        Err(error) => return skip("a driver that hangs", &format!("FUSE cannot be mounted here: {error}")),
    };
    let scratch = Scratch::with(&pattern(1, size_bytes as usize));
    let hanging = plan(slow.path(), TargetKind::File, size_bytes);
    let hanging = Rig::open(entry("io_uring"), vec![hanging], false, EngineOptions::default()).expect("open");
    let quick = Rig::on(entry("libaio"), &scratch.file, size_bytes);
    let _buffers = (hanging.arena.clone(), quick.arena.clone());
    let (mut driver, depth) = joined(hanging, quick);
    let mut done = Completions::with_depth(2 * depth);
    let read = |slot: u32| MediaOperation { slot, ..operation(MediaClass::Read, 0) };
    driver.submit(&[Either::First(read(0))], &mut done).expect("submit");
    // All of these come while the first hangs.
    for _ in 0..20 {
        done.clear();
        driver.submit(&[Either::Second(read(1))], &mut done).expect("submit");
        driver.reap(Wait::AtLeast(1), &mut done).expect("reap");
        assert_eq!(done.as_slice().iter().map(|completion| completion.slot).collect::<Vec<_>>(), [1]);
    }
    slow.release();
    done.clear();
    driver.reap(Wait::AtLeast(1), &mut done).expect("reap");
    assert_eq!((done.as_slice()[0].slot, done.as_slice()[0].result), (0, FULL));
}
