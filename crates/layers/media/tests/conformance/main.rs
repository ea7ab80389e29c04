//! One suite for every driver of the media layer, gated by what the driver says it can do.

mod devices;
mod events;
mod gpu;
mod images;
mod options;
mod support;

use std::path::Path;

use driver::{Completions, Operation, Wait};
use media::engine::{EngineOptions, SyncCall};
use media::{DRIVERS, MediaClass, MediaOperation};
use support::{
    BLOCK, Entry, Rig, Scratch, carries, of_this_machine, on_files, operation, pattern, plan, plan_for, skip,
    storing,
};
use workload::target::TargetKind;

const BLOCK_BYTES: usize = BLOCK as usize;
const FULL: i64 = BLOCK as i64;

fn errno(number: i32) -> i64 {
    -i64::from(number)
}

#[test]
fn every_driver_file_is_registered() {
    let names = DRIVERS.iter().map(|entry| entry.name);
    testkit::assert_every_driver_file_is_registered(env!("CARGO_MANIFEST_DIR"), names);
}

#[test]
fn what_is_registered_makes_sense() {
    for entry in DRIVERS {
        let capabilities = &entry.capabilities;
        assert!(!entry.summary.is_empty() && !entry.summary.contains('\n'), "{}", entry.name);
        assert!(capabilities.classes.iter().all(|class| MediaOperation::CLASSES.contains(class)));
        let carries_one = ["read", "write", "nop"].iter().any(|class| carries(entry, class));
        assert!(carries_one, "{}", entry.name);
        assert!(capabilities.depth_max >= 1);
        assert!(capabilities.asynchronous || capabilities.depth_max == 1, "{}", entry.name);
    }
}

#[test]
fn what_is_written_lies_in_the_file_and_is_read_back() {
    const BLOCKS: usize = 24;
    for entry in storing() {
        let scratch = Scratch::with(&[0; BLOCKS * BLOCK_BYTES]);
        let mut rig = Rig::on(entry, &scratch.file, (BLOCKS * BLOCK_BYTES) as u64);
        let mut expected = vec![0; BLOCKS * BLOCK_BYTES];
        // 7 and 24 have no common factor: every block once, out of order.
        for round in 0..BLOCKS / rig.depth as usize {
            let mut operations = Vec::new();
            for slot in 0..rig.depth {
                let block = (round * rig.depth as usize + slot as usize) * 7 % BLOCKS;
                let data = pattern(block as u64, BLOCK_BYTES);
                rig.fill(slot, &data);
                expected[block * BLOCK_BYTES..][..BLOCK_BYTES].copy_from_slice(&data);
                let offset = (block * BLOCK_BYTES) as u64;
                operations.push(MediaOperation { slot, ..operation(MediaClass::Write, offset) });
            }
            assert!(rig.run_all(&operations).iter().all(|done| done.result == FULL), "{}", entry.name);
        }
        for block in 0..BLOCKS {
            let offset = block * BLOCK_BYTES;
            assert_eq!(rig.run(operation(MediaClass::Read, offset as u64)), FULL, "{}", entry.name);
            assert!(rig.bytes(0, BLOCK_BYTES) == expected[offset..][..BLOCK_BYTES], "{} {block}", entry.name);
        }
        // An odd range in the middle.
        let odd = MediaOperation { offset: 5001, length: 777, ..operation(MediaClass::Read, 0) };
        assert_eq!(rig.run(odd), 777, "{}", entry.name);
        assert!(rig.bytes(0, 777) == expected[5001..5778], "{}", entry.name);
        if !entry.capabilities.targetless {
            assert!(scratch.content() == expected, "{}", entry.name);
        }
    }
}

#[test]
fn a_range_begins_where_it_was_put() {
    for entry in storing() {
        let scratch = Scratch::with(&pattern(1, 8 * BLOCK_BYTES));
        let mut target = plan_for(entry, &scratch.file, 2 * u64::from(BLOCK));
        target.offset_bytes = 3 * u64::from(BLOCK) + 100;
        let mut rig = Rig::open(entry, vec![target], true, EngineOptions::default()).expect("open");
        rig.write_and_read_back(entry.name, 3 * u64::from(BLOCK) + 100, 2);
        if !entry.capabilities.targetless {
            let mut expected = pattern(1, 8 * BLOCK_BYTES);
            expected[3 * BLOCK_BYTES + 100..][..BLOCK_BYTES].copy_from_slice(&pattern(2, BLOCK_BYTES));
            assert!(scratch.content() == expected, "{}", entry.name);
        }
    }
}

#[test]
fn several_targets_are_kept_apart() {
    for entry in storing() {
        let files = [0, 1, 2].map(|_| Scratch::with(&[0; 2 * BLOCK_BYTES]));
        let targets =
            files.iter().map(|scratch| plan_for(entry, &scratch.file, 2 * u64::from(BLOCK))).collect();
        let mut rig = Rig::open(entry, targets, true, EngineOptions::default()).expect("open");
        for target in 0..3_u16 {
            rig.fill(0, &pattern(u64::from(target), BLOCK_BYTES));
            let write = MediaOperation { target, ..operation(MediaClass::Write, u64::from(BLOCK)) };
            assert_eq!(rig.run(write), FULL, "{}", entry.name);
        }
        for target in 0..3_u16 {
            let read = MediaOperation { target, ..operation(MediaClass::Read, u64::from(BLOCK)) };
            assert_eq!(rig.run(read), FULL, "{}", entry.name);
            assert!(rig.bytes(0, BLOCK_BYTES) == pattern(u64::from(target), BLOCK_BYTES), "{}", entry.name);
        }
        assert_eq!(
            rig.run(MediaOperation { target: 3, ..operation(MediaClass::Read, 0) }),
            errno(libc::EINVAL)
        );
    }
}

#[test]
fn the_end_of_a_file_cuts_reads_short() {
    for entry in on_files() {
        let scratch = Scratch::with(&pattern(1, BLOCK_BYTES + 1000));
        let mut rig = Rig::on(entry, &scratch.file, 4 * u64::from(BLOCK));
        assert_eq!(rig.run(operation(MediaClass::Read, u64::from(BLOCK))), 1000, "{}", entry.name);
        assert!(rig.bytes(0, 1000) == pattern(1, BLOCK_BYTES + 1000)[BLOCK_BYTES..], "{}", entry.name);
        assert_eq!(rig.run(operation(MediaClass::Read, 2 * u64::from(BLOCK))), 0, "{}", entry.name);
        let empty = Scratch::with(&[]);
        let mut rig = Rig::on(entry, &empty.file, u64::from(BLOCK));
        assert_eq!(rig.run(operation(MediaClass::Read, 0)), 0, "{}", entry.name);
    }
}

#[test]
fn character_devices_work_or_are_refused() {
    for entry in on_files() {
        let device = |path: &str| {
            let target = plan(Path::new(path), TargetKind::CharacterDevice, 1 << 20);
            Rig::open(entry, vec![target], true, EngineOptions::default())
        };
        if entry.name == "mmap" {
            let error = device("/dev/null").err().expect("a mapping needs a size");
            assert_eq!(error.exit_code(), 2, "{error}");
            continue;
        }
        let mut null = device("/dev/null").expect("open");
        assert_eq!(null.run(operation(MediaClass::Write, 8192)), FULL, "{}", entry.name);
        assert_eq!(null.run(operation(MediaClass::Read, 0)), 0, "{}", entry.name);
        let mut zero = device("/dev/zero").expect("open");
        zero.fill(0, &[7; BLOCK_BYTES]);
        assert_eq!(zero.run(operation(MediaClass::Read, 4096)), FULL, "{}", entry.name);
        assert!(zero.bytes(0, BLOCK_BYTES).iter().all(|&byte| byte == 0), "{}", entry.name);
        let mut full = device("/dev/full").expect("open");
        // The kernel's /dev/full has no asynchronous write.
        let expected = if entry.name == "libaio" { libc::EINVAL } else { libc::ENOSPC };
        assert_eq!(full.run(operation(MediaClass::Write, 0)), errno(expected), "{}", entry.name);
    }
}

#[test]
fn a_target_opened_for_reading_is_not_written() {
    for entry in on_files() {
        let scratch = Scratch::with(&pattern(1, BLOCK_BYTES));
        let target = plan_for(entry, &scratch.file, u64::from(BLOCK));
        let mut rig = Rig::open(entry, vec![target], false, EngineOptions::default()).expect("open");
        assert_eq!(rig.run(operation(MediaClass::Write, 0)), errno(libc::EBADF), "{}", entry.name);
        assert_eq!(rig.run(operation(MediaClass::Read, 0)), FULL, "{}", entry.name);
        if carries(entry, "discard") {
            assert_eq!(rig.run(operation(MediaClass::Discard, 0)), errno(libc::EBADF), "{}", entry.name);
        }
        assert!(scratch.content() == pattern(1, BLOCK_BYTES), "{}", entry.name);
    }
}

#[test]
fn no_more_than_the_depth_is_in_flight() {
    for entry in of_this_machine() {
        let scratch = Scratch::with(&pattern(1, 32 * BLOCK_BYTES));
        let mut rig = Rig::on(entry, &scratch.file, 32 * u64::from(BLOCK));
        let batch: Vec<_> = (0..2 * rig.depth)
            .map(|slot| MediaOperation {
                slot,
                ..operation(MediaClass::Read, u64::from(slot) * u64::from(BLOCK))
            })
            .collect();
        let submitted = rig.driver.submit(&batch, &mut rig.done).expect("submit");
        assert!(submitted.accepted <= batch.len() && submitted.accepted > 0, "{}", entry.name);
        assert!(submitted.accepted - rig.done.len() <= rig.depth as usize, "{}", entry.name);
        let first = submitted.accepted as u32 - rig.done.len() as u32;
        rig.driver.reap(Wait::AtLeast(first), &mut rig.done).expect("reap");
        assert_eq!(rig.done.len(), submitted.accepted, "{}: completions", entry.name);
        // The busy tail, offered again.
        let mut slots: Vec<_> = rig.done.as_slice().iter().map(|done| done.slot).collect();
        slots.extend(rig.run_all(&batch[submitted.accepted..]).iter().map(|done| done.slot));
        slots.sort_unstable();
        assert_eq!(slots, (0..2 * rig.depth).collect::<Vec<_>>(), "{}: each slot once", entry.name);
    }
}

#[test]
fn an_empty_batch_is_accepted() {
    for entry in of_this_machine() {
        let scratch = Scratch::with(&[0; BLOCK_BYTES]);
        let mut rig = Rig::on(entry, &scratch.file, u64::from(BLOCK));
        assert_eq!(rig.driver.submit(&[], &mut rig.done).expect("submit").accepted, 0);
        assert!(rig.done.is_empty());
    }
}

#[test]
fn every_operation_completes_exactly_once() {
    for entry in of_this_machine().filter(|entry| carries(entry, "read") && carries(entry, "write")) {
        completes_each_once(entry, EngineOptions::default());
        // A kernel thread takes entries at its own pace, so that a ring can be full.
        if entry.capabilities.options.contains(&"sqpoll") {
            completes_each_once(entry, EngineOptions { sqpoll: true, ..EngineOptions::default() });
        }
    }
}

fn completes_each_once(entry: &Entry, options: EngineOptions) {
    let scratch = Scratch::with(&pattern(1, 16 * BLOCK_BYTES));
    let target = plan_for(entry, &scratch.file, 16 * u64::from(BLOCK));
    let mut rig = Rig::open(entry, vec![target], true, options).expect("open");
    let mut free: Vec<u32> = (0..rig.depth).collect();
    let (mut started, mut finished) = (0_u64, 0_u64);
    while finished < 5_000 {
        // One to depth operations at a time, so that batches of all sizes overlap.
        let count = (started as usize % rig.depth as usize + 1).min(free.len());
        let batch: Vec<_> = free
            .drain(..count)
            .enumerate()
            .map(|(index, slot)| {
                let number = started + index as u64;
                let class = if number.is_multiple_of(3) { MediaClass::Write } else { MediaClass::Read };
                MediaOperation { slot, ..operation(class, number % 16 * u64::from(BLOCK)) }
            })
            .collect();
        rig.done.clear();
        let accepted = rig.driver.submit(&batch, &mut rig.done).expect("submit").accepted;
        free.extend(batch[accepted..].iter().map(|operation| operation.slot));
        started += accepted as u64;
        let wait = if finished.is_multiple_of(2) { Wait::None } else { Wait::AtLeast(1) };
        rig.driver.reap(wait, &mut rig.done).expect("reap");
        for done in rig.done.as_slice() {
            assert_eq!(done.result, FULL, "{}", entry.name);
            assert!(!free.contains(&done.slot), "{}: slot {} twice", entry.name, done.slot);
            free.push(done.slot);
        }
        finished += rig.done.len() as u64;
        assert!(finished <= started, "{}", entry.name);
    }
}

#[test]
fn reap_brings_no_more_than_there_is_room_for() {
    for entry in of_this_machine().filter(|entry| entry.capabilities.asynchronous) {
        let scratch = Scratch::with(&pattern(1, 8 * BLOCK_BYTES));
        let mut rig = Rig::on(entry, &scratch.file, 8 * u64::from(BLOCK));
        let batch: Vec<_> = (0..rig.depth)
            .map(|slot| MediaOperation {
                slot,
                ..operation(MediaClass::Read, u64::from(slot % 8) * u64::from(BLOCK))
            })
            .collect();
        let mut accepted = 0;
        let mut slots = Vec::new();
        let mut done = Completions::with_depth(rig.depth).limited_to(2);
        while slots.len() < batch.len() {
            done.clear();
            if accepted < batch.len() {
                accepted += rig.driver.submit(&batch[accepted..], &mut done).expect("submit").accepted;
            }
            // What completes as it is submitted needs no reaping.
            if done.is_empty() {
                rig.driver.reap(Wait::AtLeast(1), &mut done).expect("reap");
                assert!((1..=2).contains(&done.len()), "{}: {} at once", entry.name, done.len());
            }
            slots.extend(done.as_slice().iter().map(|done| done.slot));
        }
        slots.sort_unstable();
        assert_eq!(slots, (0..rig.depth).collect::<Vec<_>>(), "{}: each slot once", entry.name);
    }
}

#[test]
fn with_nothing_in_flight_reap_returns_at_once() {
    for entry in of_this_machine() {
        let scratch = Scratch::with(&[0; BLOCK_BYTES]);
        let mut rig = Rig::on(entry, &scratch.file, u64::from(BLOCK));
        let hour = Wait::Timeout { count: 1, timeout_ns: 3_600_000_000_000 };
        for wait in [Wait::None, Wait::AtLeast(1), hour] {
            rig.driver.reap(wait, &mut rig.done).expect("reap");
            assert!(rig.done.is_empty(), "{}", entry.name);
        }
        // More than is in flight is as much as is in flight.
        assert_eq!(
            rig.driver.submit(&[operation(MediaClass::Read, 0)], &mut rig.done).expect("submit").accepted,
            1
        );
        rig.driver.reap(Wait::AtLeast(100), &mut rig.done).expect("reap");
        assert_eq!(rig.done.len(), 1, "{}", entry.name);
        rig.done.clear();
        rig.driver.reap(hour, &mut rig.done).expect("reap");
        assert!(rig.done.is_empty(), "{}", entry.name);
    }
}

#[test]
fn sync_after_write_succeeds() {
    for entry in on_files().filter(|entry| carries(entry, "sync")) {
        for sync_call in [SyncCall::Fdatasync, SyncCall::Fsync] {
            let scratch = Scratch::with(&[0; BLOCK_BYTES]);
            let options = EngineOptions { sync_call, ..EngineOptions::default() };
            let target = plan_for(entry, &scratch.file, u64::from(BLOCK));
            let mut rig = Rig::open(entry, vec![target], true, options).expect("open");
            assert_eq!(rig.run(operation(MediaClass::Write, 0)), FULL, "{}", entry.name);
            assert_eq!(rig.run(operation(MediaClass::Sync, 0)), 0, "{}: {sync_call:?}", entry.name);
        }
    }
}

#[test]
fn a_discarded_range_of_a_file_reads_zero() {
    for entry in on_files().filter(|entry| carries(entry, "discard")) {
        let scratch = Scratch::with(&pattern(1, 4 * BLOCK_BYTES));
        let mut rig = Rig::on(entry, &scratch.file, 4 * u64::from(BLOCK));
        assert_eq!(rig.run(operation(MediaClass::Discard, u64::from(BLOCK))), FULL, "{}", entry.name);
        let mut expected = pattern(1, 4 * BLOCK_BYTES);
        expected[BLOCK_BYTES..2 * BLOCK_BYTES].fill(0);
        assert!(scratch.content() == expected, "{}", entry.name);
    }
}

#[test]
fn classes_that_a_driver_lacks_are_refused() {
    for entry in of_this_machine() {
        let scratch = Scratch::with(&pattern(1, BLOCK_BYTES));
        let mut rig = Rig::on(entry, &scratch.file, u64::from(BLOCK));
        for class in [MediaClass::Discard, MediaClass::Sync, MediaClass::Nop] {
            if !carries(entry, MediaOperation::CLASSES[class as usize]) {
                assert_eq!(rig.run(operation(class, 0)), errno(libc::EOPNOTSUPP), "{}", entry.name);
            } else if class == MediaClass::Nop && entry.name != "exec" {
                // Without a program that fails.
                assert_eq!(rig.run(operation(class, 0)), 0, "{}", entry.name);
            }
        }
    }
}

#[test]
fn no_operation_leaves_its_buffer() {
    for entry in storing() {
        let scratch = Scratch::with(&pattern(1, 4 * BLOCK_BYTES));
        let mut rig = Rig::on(entry, &scratch.file, 4 * u64::from(BLOCK));
        for class in [MediaClass::Read, MediaClass::Write] {
            let long = MediaOperation { length: BLOCK + 1, ..operation(class, 0) };
            assert_eq!(rig.run(long), errno(libc::EINVAL), "{}", entry.name);
            let slotless = MediaOperation { slot: 999, ..operation(class, 0) };
            assert_eq!(rig.run(slotless), errno(libc::EINVAL), "{}", entry.name);
        }
    }
}

#[test]
fn direct_io_reads_what_it_wrote() {
    for entry in on_files().filter(|entry| entry.capabilities.direct) {
        let scratch = Scratch::with(&[0; 8 * BLOCK_BYTES]);
        let options = EngineOptions { direct: true, ..EngineOptions::default() };
        let target = plan_for(entry, &scratch.file, 8 * u64::from(BLOCK));
        let mut rig = match Rig::open(entry, vec![target], true, options) {
            Ok(rig) => rig,
            Err(error) if error.errno() == Some(libc::EINVAL) => {
                assert!(error.to_string().contains("--direct"), "{error}");
                skip("direct I/O", "the file system of the temporary directory has none");
                continue;
            }
            Err(error) => panic!("{}: {error}", entry.name),
        };
        for block in 0..8 {
            rig.write_and_read_back(entry.name, block * u64::from(BLOCK), block);
        }
        for (block, bytes) in scratch.content().chunks(BLOCK_BYTES).enumerate() {
            assert!(bytes == pattern(block as u64, BLOCK_BYTES), "{}", entry.name);
        }
        // Many at once, and dropped with operations in flight.
        let batch: Vec<_> = (0..rig.depth)
            .map(|slot| MediaOperation {
                slot,
                ..operation(MediaClass::Read, u64::from(slot) * u64::from(BLOCK))
            })
            .collect();
        assert!(rig.run_all(&batch).iter().all(|done| done.result == FULL), "{}", entry.name);
        rig.done.clear();
        assert!(rig.driver.submit(&batch, &mut rig.done).expect("submit").accepted > 0);
        rig.driver.reap(Wait::None, &mut rig.done).expect("reap");
    }
}

#[test]
fn a_refused_open_names_the_cause() {
    let scratch = Scratch::with(&[0; BLOCK_BYTES]);
    let missing = scratch.directory.path().join("missing");
    let open = |entry: &Entry, target, writes| {
        Rig::open(entry, vec![target], writes, EngineOptions::default()).err().expect("a refusal")
    };
    for entry in on_files() {
        for writes in [false, true] {
            let error = open(entry, plan(&missing, TargetKind::File, 4096), writes);
            assert_eq!(error.errno(), Some(libc::ENOENT), "{}: {error}", entry.name);
            assert!(error.to_string().contains(missing.to_str().expect("plain")), "{error}");
            let error = open(entry, plan(scratch.directory.path(), TargetKind::File, 4096), writes);
            assert_eq!(error.errno(), Some(libc::EISDIR), "{}: {error}", entry.name);
        }
        assert!(!missing.exists(), "{} created a file", entry.name);
        for (name, kind) in [("null:", TargetKind::Null), ("mem:", TargetKind::Memory)] {
            let error = open(entry, plan(Path::new(name), kind, 4096), true);
            assert_eq!(error.exit_code(), 2, "{}: {error}", entry.name);
        }
    }
    let memory = driver::find(DRIVERS, "mem").expect("mem");
    assert_eq!(open(memory, plan(&scratch.file, TargetKind::File, 4096), true).exit_code(), 2);
    let endless = plan(Path::new("mem:"), TargetKind::Memory, u64::MAX);
    assert!(open(memory, endless, true).to_string().contains("not enough free memory"));
}

#[test]
fn a_file_that_is_cut_while_open_is_no_crash() {
    for entry in on_files() {
        let scratch = Scratch::with(&pattern(1, 4 * BLOCK_BYTES));
        let mut rig = Rig::on(entry, &scratch.file, 4 * u64::from(BLOCK));
        assert_eq!(rig.run(operation(MediaClass::Read, 3 * u64::from(BLOCK))), FULL);
        let file = std::fs::OpenOptions::new().write(true).open(&scratch.file).expect("the file");
        file.set_len(u64::from(BLOCK)).expect("cut");
        let gone = if entry.name == "mmap" { errno(libc::EIO) } else { 0 };
        // Twice: the first failure must not leave an empty page behind that the second reads.
        for _ in 0..2 {
            assert_eq!(rig.run(operation(MediaClass::Read, 3 * u64::from(BLOCK))), gone, "{}", entry.name);
        }
        assert_eq!(rig.run(operation(MediaClass::Read, 0)), FULL, "{}", entry.name);
        assert!(rig.bytes(0, BLOCK_BYTES) == pattern(1, BLOCK_BYTES), "{}", entry.name);
        file.set_len(4 * u64::from(BLOCK)).expect("longer again");
        rig.write_and_read_back(entry.name, 3 * u64::from(BLOCK), 9);
        assert!(scratch.content()[3 * BLOCK_BYTES..] == pattern(9, BLOCK_BYTES), "{}", entry.name);
    }
}
