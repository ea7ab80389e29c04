//! Array objects.

use std::sync::Arc;

use libc::ENOENT;
use object::Backend;
use object::plan::ObjectOp::{self, Create, Destroy, Open, OpenWithAttr, Read, Size, Write};
use object::plan::ValueKind;
use vos::ObjectType;
use workload::random::Random;

use super::harness::{Entry, keepers};
use super::rig::{ROOM_BYTES, Rig, array, errno, pattern, plan_of};

fn open(entry: &Entry, backend: &Arc<dyn Backend>, object_type: ObjectType) -> Rig {
    // What keeps its attributes is opened by these alone.
    let all = match object_type {
        ObjectType::Array => vec![Write, Read, Create, Open, Size, Destroy],
        _ => vec![Write, Read, OpenWithAttr, Size, Destroy],
    };
    let operations: Vec<ObjectOp> = all.into_iter().filter(|&operation| entry.can(&[operation])).collect();
    Rig::open(backend, &plan_of(entry, &operations, object_type, ValueKind::Array))
}

#[test]
fn transfers_over_chunks_come_back() {
    for entry in keepers(&[Write, Read]) {
        let Some(stand) = entry.start() else { continue };
        let backend = stand.connect();
        let mut rig = open(&entry, &backend, ObjectType::ArrayByte);
        let sizes = [1, 100, 9_999, 10_000, 10_001, 65_537, 1 << 20, ROOM_BYTES];
        for (object, &size) in (1..).zip(&sizes) {
            for offset in [0, 1, 9_999, 123_456] {
                let value = pattern(offset, size);
                assert_eq!(
                    rig.store(Write, array(object, offset), &value),
                    size as i64,
                    "{}: {size}",
                    entry.name
                );
                let (result, found) = rig.load(Read, array(object, offset), size);
                assert_eq!(result, size as i64, "{}: {size} at {offset}", entry.name);
                assert!(found == value, "{}: {size} bytes at {offset} came back changed", entry.name);
            }
        }
    }
}

/// An array in memory: what a store must show.
struct Model {
    bytes: Vec<u8>,
    end: usize,
}

#[test]
fn random_transfers_agree_with_an_array_in_memory() {
    for entry in keepers(&[Write, Read]) {
        let Some(stand) = entry.start() else { continue };
        let backend = stand.connect();
        let mut rig = open(&entry, &backend, ObjectType::ArrayByte);
        let mut random = Random::new(11);
        let mut model = Model { bytes: vec![0; 100_000], end: 0 };
        for turn in 0..300 {
            let from = random.below(80_000) as usize;
            let size = 1 + random.below(if turn % 3 == 0 { 19_000 } else { 600 }) as usize;
            if random.below(2) == 0 {
                let value = pattern(turn, size);
                assert_eq!(rig.store(Write, array(1, from as u64), &value), size as i64, "{}", entry.name);
                model.bytes[from..from + size].copy_from_slice(&value);
                model.end = model.end.max(from + size);
                continue;
            }
            let (result, found) = rig.load(Read, array(1, from as u64), size);
            // Up to where the array ends there is something, or a hole of zeros before something.
            let most = model.end.saturating_sub(from).min(size);
            let count = usize::try_from(result).unwrap_or_else(|_| panic!("{}: {result}", entry.name));
            assert!(count <= most, "{}: turn {turn}: {count} of {most} bytes", entry.name);
            assert!(
                found == model.bytes[from..from + count],
                "{}: turn {turn}, {size} at {from}",
                entry.name
            );
            let rest = &model.bytes[from + count..from + most];
            assert!(
                rest.iter().all(|&byte| byte == 0),
                "{}: turn {turn}: stored bytes were left out",
                entry.name
            );
        }
        if entry.can(&[Size]) {
            assert_eq!(rig.run(Size, array(1, 0), 0), model.end as i64, "{}", entry.name);
        }
    }
}

#[test]
fn reads_end_where_the_array_ends() {
    for entry in keepers(&[Write, Read]) {
        let Some(stand) = entry.start() else { continue };
        let backend = stand.connect();
        let mut rig = open(&entry, &backend, ObjectType::ArrayByte);
        let value = pattern(1, 25_000);
        assert_eq!(rig.store(Write, array(1, 0), &value), 25_000, "{}", entry.name);
        let (result, found) = rig.load(Read, array(1, 0), 1 << 20);
        assert!(result == 25_000 && found == value, "{}: {result}", entry.name);
        assert_eq!(rig.load(Read, array(1, 24_000), 9_000).0, 1_000, "{}", entry.name);
        assert_eq!(rig.load(Read, array(1, 25_000), 1_000).0, 0, "{}", entry.name);
        // A hole before the end reads as zeros.
        assert_eq!(rig.store(Write, array(1, 60_000), b"end"), 3, "{}", entry.name);
        let (result, found) = rig.load(Read, array(1, 24_990), 40_000);
        assert_eq!(result, 60_003 - 24_990, "{}", entry.name);
        assert!(
            found[..10] == value[24_990..]
                && found[10..].starts_with(&[0; 1000])
                && found.ends_with(b"\0end")
        );
    }
}

#[test]
fn arrays_are_created_opened_and_destroyed() {
    for entry in keepers(&[Create, Open, Size, Write, Destroy]) {
        let Some(stand) = entry.start() else { continue };
        let backend = stand.connect();
        let mut rig = open(&entry, &backend, ObjectType::Array);
        assert_eq!(rig.run(Open, array(1, 0), 0), errno(ENOENT), "{}", entry.name);
        assert!(rig.run(Create, array(1, 0), 0) >= 0, "{}", entry.name);
        assert!(rig.run(Open, array(1, 0), 0) >= 0, "{}", entry.name);
        assert_eq!(rig.run(Size, array(1, 0), 0), 0, "{}", entry.name);
        for end in [5_i64, 9_999, 10_000, 10_001, 34_567] {
            assert_eq!(rig.store(Write, array(1, end as u64 - 5), b"12345"), 5, "{}", entry.name);
            assert_eq!(rig.run(Size, array(1, 0), 0), end, "{}", entry.name);
        }
        assert!(rig.run(Destroy, array(1, 0), 0) >= 0, "{}", entry.name);
        assert_eq!(rig.run(Open, array(1, 0), 0), errno(ENOENT), "{}", entry.name);
        assert_eq!(rig.load(Read, array(1, 0), 100).0.max(0), 0, "{}", entry.name);
    }
}

#[test]
fn arrays_without_attributes_open_without_asking_for_them() {
    for entry in keepers(&[OpenWithAttr, Write]) {
        let Some(stand) = entry.start() else { continue };
        let mut rig = open(&entry, &stand.connect(), ObjectType::ArrayByte);
        assert!(rig.run(OpenWithAttr, array(7, 0), 0) >= 0, "{}", entry.name);
    }
}

#[test]
fn arrays_that_are_opened_each_time_must_be_there() {
    for entry in keepers(&[Create, Write, Read])
        .filter(|entry| entry.registration.capabilities.options.contains(&"reopen"))
    {
        let Some(stand) = entry.start() else { continue };
        let backend = stand.connect();
        let mut plan = plan_of(&entry, &[Create, Write, Read], ObjectType::Array, ValueKind::Array);
        plan.keeps_handles = false;
        let mut rig = Rig::open(&backend, &plan);
        assert_eq!(rig.store(Write, array(1, 0), b"value"), errno(ENOENT), "{}", entry.name);
        assert!(rig.run(Create, array(1, 0), 0) >= 0, "{}", entry.name);
        assert_eq!(rig.store(Write, array(1, 0), b"value"), 5, "{}", entry.name);
        assert_eq!(rig.load(Read, array(1, 0), 5), (5, b"value".to_vec()), "{}", entry.name);
    }
}
