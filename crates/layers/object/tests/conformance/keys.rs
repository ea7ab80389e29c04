//! Key-value objects.

use libc::{EIO, ENOENT};
use object::Backend;
use object::plan::ObjectOp::{Get, List, Put, Remove, Stat};
use object::plan::ValueKind;
use std::sync::Arc;
use vos::ObjectType;

use super::harness::{Entry, keepers};
use super::rig::{ROOM_BYTES, Rig, errno, key, pattern, plan_of};

fn open(entry: &Entry, backend: &Arc<dyn Backend>) -> Rig {
    let mut operations = vec![Put, Get];
    operations.extend([Remove, List, Stat].into_iter().filter(|&operation| entry.can(&[operation])));
    Rig::open(backend, &plan_of(entry, &operations, ObjectType::KvHashed, ValueKind::Single))
}

#[test]
fn values_of_any_size_come_back() {
    for entry in keepers(&[Put, Get]) {
        let Some(stand) = entry.start() else { continue };
        let backend = stand.connect();
        let mut rig = open(&entry, &backend);
        for size in [0, 1, 7, 64, 511, 4095, 4096, 4097, 65_536, 70_001, 1 << 20, ROOM_BYTES] {
            // To DAOS a value of no bytes is none.
            if size == 0 && entry.registration.name == "daos" {
                continue;
            }
            let (what, value) = (key(1, &format!("size-{size}")), pattern(size as u64, size));
            assert_eq!(rig.store(Put, what, &value), size as i64, "{}: {size}", entry.name);
            let (result, found) = rig.load(Get, what, size);
            assert_eq!(result, size as i64, "{}: {size}", entry.name);
            assert!(found == value, "{}: {size} bytes came back changed", entry.name);
            if entry.can(&[Stat]) {
                assert_eq!(rig.run(Stat, what, 0), size as i64, "{}: {size}", entry.name);
            }
            // A buffer that is larger gets what there is.
            if size + 100 <= ROOM_BYTES {
                assert_eq!(rig.load(Get, what, size + 100), (size as i64, value), "{}: {size}", entry.name);
            }
        }
    }
}

#[test]
fn the_last_put_is_what_is_got() {
    for entry in keepers(&[Put, Get]) {
        let Some(stand) = entry.start() else { continue };
        let backend = stand.connect();
        let mut rig = open(&entry, &backend);
        let what = key(1, "again");
        for (turn, size) in (0..).zip([100, 5000, 3, 70_000, 5000]) {
            let value = pattern(turn, size);
            assert_eq!(rig.store(Put, what, &value), size as i64, "{}", entry.name);
            assert_eq!(rig.load(Get, what, 100_000), (size as i64, value), "{}", entry.name);
        }
    }
}

#[test]
fn keys_of_objects_are_apart() {
    for entry in keepers(&[Put, Get]) {
        let Some(stand) = entry.start() else { continue };
        let backend = stand.connect();
        let mut rig = open(&entry, &backend);
        let names = ["a", "b", "a/b", "a-", "blade-1", "blade-10"];
        for (object, name) in (1..4).flat_map(|object| names.map(|name| (object, name))) {
            let value = format!("{object} {name}");
            assert_eq!(
                rig.store(Put, key(object, name), value.as_bytes()),
                value.len() as i64,
                "{}",
                entry.name
            );
        }
        for (object, name) in (1..4).flat_map(|object| names.map(|name| (object, name))) {
            let value = format!("{object} {name}").into_bytes();
            assert_eq!(rig.load(Get, key(object, name), 100), (value.len() as i64, value), "{}", entry.name);
        }
    }
}

#[test]
fn what_is_not_there_is_not_found() {
    for entry in keepers(&[Put, Get]) {
        let Some(stand) = entry.start() else { continue };
        let backend = stand.connect();
        let mut rig = open(&entry, &backend);
        assert_eq!(rig.load(Get, key(1, "none"), 100).0, errno(ENOENT), "{}", entry.name);
        assert_eq!(rig.store(Put, key(1, "some"), b"value"), 5, "{}", entry.name);
        assert_eq!(rig.load(Get, key(1, "none"), 100).0, errno(ENOENT), "{}", entry.name);
        assert_eq!(rig.load(Get, key(2, "some"), 100).0, errno(ENOENT), "{}", entry.name);
        if entry.can(&[Stat]) {
            assert_eq!(rig.run(Stat, key(1, "none"), 0), errno(ENOENT), "{}", entry.name);
        }
        if entry.can(&[Remove]) {
            // Some stores do not say that there was nothing.
            let removed = rig.run(Remove, key(1, "none"), 0);
            assert!(removed >= 0 || removed == errno(ENOENT), "{}: {removed}", entry.name);
            assert!(rig.run(Remove, key(1, "some"), 0) >= 0, "{}", entry.name);
            assert_eq!(rig.load(Get, key(1, "some"), 100).0, errno(ENOENT), "{}", entry.name);
            assert_eq!(rig.store(Put, key(1, "some"), b"again"), 5, "{}", entry.name);
            assert_eq!(rig.load(Get, key(1, "some"), 100).1, b"again", "{}", entry.name);
        }
        assert_ne!(ENOENT, EIO);
    }
}

#[test]
fn a_list_goes_on_where_the_last_one_ended_and_begins_anew() {
    for entry in keepers(&[Put, List]) {
        let Some(stand) = entry.start() else { continue };
        let backend = stand.connect();
        let mut rig = open(&entry, &backend);
        let max = i64::from(rig.plan.list_max);
        let count = 3 * max + 5;
        for name in 0..count {
            assert_eq!(rig.store(Put, key(1, &format!("key-{name}")), b"value"), 5, "{}", entry.name);
            assert_eq!(rig.store(Put, key(2, &format!("other-{name}")), b"value"), 5, "{}", entry.name);
        }
        for turn in 0..2 {
            let lists: Vec<_> = (0..4).map(|_| rig.run(List, key(1, ""), 0)).collect();
            assert_eq!(lists, [max, max, max, 5], "{}: turn {turn}", entry.name);
        }
        if entry.can(&[Remove]) {
            assert!(rig.run(Remove, key(1, "key-7"), 0) >= 0, "{}", entry.name);
            let listed: i64 = (0..4).map(|_| rig.run(List, key(1, ""), 0)).sum();
            assert_eq!(listed, count - 1, "{}", entry.name);
        }
    }
}
