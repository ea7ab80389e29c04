//! Space: taken as it is needed, and given back by itself.
#![allow(unsafe_code)]

use std::os::unix::fs::MetadataExt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::{Allocation, Checksum, Durability};
use parking_lot::Mutex;

use super::support::{Fixture, GROUNDS, Ground, MIB, content};
use crate::model::ObjectId;
use crate::{Ack, ContainerProperties, KeyPath, Pool, PoolOptions, Punch, Read, StoreError, Write};

/// Bytes that the file system gave to a file.
fn taken_bytes(fixture: &Fixture, name: &str) -> u64 {
    let file = std::fs::metadata(fixture.path().join("target.0").join(name)).expect("a file");
    file.blocks() * 512
}

fn get(fixture: &Fixture, place: &KeyPath<'_>, bytes: usize) -> Result<Vec<u8>, StoreError> {
    let mut buffer = vec![0; bytes];
    fixture.target().fetch(place, Read::Single, None, &mut buffer).map(|found| {
        buffer.truncate(found.bytes as usize);
        buffer
    })
}

#[test]
fn a_pool_is_as_large_as_what_it_holds() {
    for ground in GROUNDS {
        let mut fixture = Fixture::new(ground, 64 << 30, 64 << 30, Checksum::Crc32);
        fixture.reopen(false);
        assert_eq!(fixture.target().space().scm_bytes, 64 << 30);
        for number in 0..40u64 {
            let key = number.to_le_bytes();
            let bytes = if number % 2 == 0 { 100_000 } else { 4000 };
            let place = fixture.place(1, &key, b"a");
            fixture
                .target()
                .update(&place, Write::Single, &content(number, bytes), Ack::AsConfigured)
                .expect("written");
        }
        for is_clean in [false, true] {
            fixture.reopen(is_clean);
            for number in 0..40u64 {
                let key = number.to_le_bytes();
                let bytes = if number % 2 == 0 { 100_000 } else { 4000 };
                let found = get(&fixture, &fixture.place(1, &key, b"a"), 200_000);
                assert_eq!(found, Ok(content(number, bytes)), "{ground:?}");
            }
        }
        // A few segments and chunks.
        assert!(taken_bytes(&fixture, "log") <= 512 * MIB, "{ground:?} {}", taken_bytes(&fixture, "log"));
        assert!(taken_bytes(&fixture, "data") <= 32 * MIB, "{ground:?} {}", taken_bytes(&fixture, "data"));
    }
}

/// Overwrites `keys` values until `total` bytes are written, by threads; each has keys of its own. Returns the last version of each.
fn overwrite(
    fixture: &Fixture,
    keys: u64,
    bytes: usize,
    total: u64,
    threads: u64,
    ack: Ack,
) -> Vec<AtomicU64> {
    let last: Vec<AtomicU64> = (0..keys).map(|_| AtomicU64::new(0)).collect();
    let rounds = total / (keys * bytes as u64);
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let last = &last;
            scope.spawn(move || {
                for round in 1..=rounds {
                    for number in (thread..keys).step_by(threads as usize) {
                        // Some are written more often than others.
                        if number % 5 != 0 && (number + round) % 3 == 0 {
                            continue;
                        }
                        let key = number.to_le_bytes();
                        let place = fixture.place(1, &key, b"a");
                        let value = content(number << 32 | round, bytes);
                        let done = fixture.target().update(&place, Write::Single, &value, ack);
                        done.unwrap_or_else(|error| {
                            panic!("{error}: round {round} key {number} {:?}", fixture.target().space())
                        });
                        last[number as usize].store(round, Ordering::Relaxed);
                    }
                }
                fixture.target().commit().expect("committed");
            });
        }
    });
    last
}

fn check(fixture: &Fixture, last: &[AtomicU64], bytes: usize) {
    for (number, round) in last.iter().enumerate() {
        let key = (number as u64).to_le_bytes();
        let expected = content((number as u64) << 32 | round.load(Ordering::Relaxed), bytes);
        assert_eq!(get(fixture, &fixture.place(1, &key, b"a"), bytes), Ok(expected), "{number}");
    }
}

#[test]
fn overwriting_goes_on_for_ever() {
    for ground in [Ground::Memory, Ground::Disk] {
        for (threads, ack, durability) in [
            (1, Ack::AsConfigured, Durability::None),
            (4, Ack::Deferred, Durability::Sync),
            (4, Ack::AsConfigured, Durability::Batch),
        ] {
            // The log, and the data file.
            for (nvme_bytes, bytes, keys) in [(0, 4000, 500), (4 * MIB, 20_000, 100), (0, 100_000, 24)] {
                let mut fixture = Fixture::new(ground, 8 * MIB, nvme_bytes, Checksum::Crc32);
                let pool = fixture.pool.take().expect("open");
                pool.close().expect("closed");
                let pool = Pool::open(&fixture.path(), &ground.open(durability)).expect("opened");
                fixture.pool = Some(pool);
                let total = 20 * if nvme_bytes > 0 { nvme_bytes } else { 8 * MIB };
                let last = overwrite(&fixture, keys, bytes, total, threads, ack);
                check(&fixture, &last, bytes);
                for is_clean in [true, false] {
                    fixture.reopen(is_clean);
                    check(&fixture, &last, bytes);
                    assert_eq!(fixture.pool().findings(), [""; 0]);
                }
            }
        }
    }
}

/// Dead records share every segment with records that others fill, and they take their time.
#[test]
fn an_update_waits_for_those_that_are_being_filled() {
    let fixture = Fixture::new(Ground::Memory, 2 * MIB, 0, Checksum::Crc32);
    let target = fixture.target();
    let place = fixture.place(1, b"d", b"a");
    let (filling, done, is_over) = (Mutex::new(Vec::new()), AtomicU64::new(0), AtomicBool::new(false));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            // They end when the updates have stood still for longer than one waits where nobody is at it.
            let (mut seen, mut since) = (0, Instant::now());
            while !is_over.load(Ordering::Relaxed) {
                let now = done.load(Ordering::Relaxed);
                if now != seen {
                    (seen, since) = (now, Instant::now());
                } else if since.elapsed() > Duration::from_millis(1500) {
                    filling.lock().clear();
                }
                std::thread::sleep(Duration::from_millis(5));
            }
        });
        // More than the log takes.
        for number in 0..60u64 {
            let other = number.to_le_bytes();
            let room = target.reserve(&fixture.place(2, &other, b"a"), Write::Single, 1000);
            let written = room.and_then(|room| {
                filling.lock().push(room);
                target.update(&place, Write::Single, &content(number, 50_000), Ack::AsConfigured)
            });
            is_over.store(written.is_err() || number == 59, Ordering::Relaxed);
            written.unwrap_or_else(|error| panic!("{error}: {number} {:?}", target.space()));
            done.fetch_add(1, Ordering::Relaxed);
        }
    });
}

#[test]
fn what_snapshots_see_is_not_given_back() {
    for ground in [Ground::Memory, Ground::Disk] {
        let fixture = Fixture::new(ground, 4 * MIB, 0, Checksum::Crc32);
        let place = fixture.place(1, b"d", b"a");
        let target = fixture.target();
        let update = |number| target.update(&place, Write::Single, &content(number, 50_000), Ack::Deferred);
        update(0).expect("written");
        let snapshot = fixture.pool().snapshot(fixture.container).expect("a snapshot");
        for number in 1..400 {
            update(number).expect("written");
        }
        let mut buffer = vec![0; 50_000];
        target.fetch(&place, Read::Single, Some(snapshot), &mut buffer).expect("still there");
        assert_eq!(buffer, content(0, 50_000));
        // A snapshot of each: the log fills up, and comes back when they go.
        let mut snapshots = Vec::new();
        let error = (0..400).find_map(|number| {
            snapshots.push(fixture.pool().snapshot(fixture.container).expect("a snapshot"));
            update(number).err()
        });
        assert_eq!(error, Some(StoreError::ScmFull));
        for epoch in snapshots {
            fixture.pool().destroy_snapshot(fixture.container, epoch).expect("destroyed");
        }
        for number in 0..200 {
            update(number).expect("written");
        }
    }
}

#[test]
fn punched_and_destroyed_make_room() {
    for ground in [Ground::Memory, Ground::Disk] {
        let fixture = Fixture::new(ground, 4 * MIB, 0, Checksum::Crc32);
        let fill = |object| {
            let mut count = 0u64;
            loop {
                let key = count.to_le_bytes();
                let place = fixture.place(object, &key, b"a");
                match fixture.target().update(&place, Write::Single, &content(count, 20_000), Ack::Deferred) {
                    Ok(_) => count += 1,
                    Err(error) => {
                        assert_eq!(error, StoreError::ScmFull);
                        return count;
                    }
                }
            }
        };
        let first = fill(1);
        assert!(first > 100, "{first}");
        for object in 2..6 {
            let place = fixture.place(object - 1, b"", b"");
            fixture.target().punch(&place, Punch::Object, Ack::AsConfigured).expect("punched");
            let again = fill(object);
            assert!(again + 20 >= first, "{ground:?}: {first} values at first, {again} later");
        }
    }
}

#[test]
fn a_segment_that_a_lease_holds_comes_back_with_it() {
    let fixture = Fixture::new(Ground::Memory, 2 * MIB, 0, Checksum::Crc32);
    let place = fixture.place(1, b"d", b"a");
    let update = |number| {
        let value = content(number, 50_000);
        fixture.target().update(&place, Write::Single, &value, Ack::AsConfigured).map(|_| value)
    };
    let mut leases = Vec::new();
    let error = (0..200).find_map(|number| match update(number) {
        Ok(value) => {
            let lease = fixture.target().lease(&place, Read::Single, None, 50_000).expect("leased");
            leases.push((lease, value));
            None
        }
        Err(error) => Some(error),
    });
    assert_eq!(error, Some(StoreError::ScmFull));
    assert!(leases.iter().all(|(lease, value)| lease.as_ref() == value));
    leases.clear();
    for number in 0..200 {
        update(number).expect("nobody reads any more");
    }
}

#[test]
fn small_pools_are_made_at_once() {
    for ground in GROUNDS {
        let scratch = ground.scratch();
        let options = PoolOptions { targets: 4, ..ground.options(4 * MIB, 0) };
        let pool = Pool::create(&scratch.path().join("pool"), &options).expect("made");
        assert_eq!(pool.space().scm_free_bytes, 4 * MIB);
        pool.close().expect("closed");
    }
}

/// Page faults of this thread so far.
fn faults() -> i64 {
    // SAFETY: plain numbers, filled in by the call.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: a place for the answer.
    assert_eq!(unsafe { libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage) }, 0);
    usage.ru_minflt
}

#[test]
fn a_stocked_pool_is_written_without_page_faults() {
    const BYTES: u64 = 80 * MIB;
    const VALUE_BYTES: usize = 64 << 10;
    let fixture = Fixture::new(Ground::Memory, 256 * MIB, 0, Checksum::Off);
    fixture.pool().stock(BYTES, 0, &AtomicBool::new(false));
    let value = content(1, VALUE_BYTES);
    let (before, taken) = (faults(), taken_bytes(&fixture, "log"));
    for number in 0..BYTES / VALUE_BYTES as u64 {
        let key = number.to_le_bytes();
        let place = fixture.place(1, &key, b"a");
        fixture.target().update(&place, Write::Single, &value, Ack::AsConfigured).expect("written");
    }
    let (faulted, pages) = (faults() - before, BYTES / 4096);
    assert!(faulted < pages as i64 / 20, "{faulted} page faults for {pages} pages");
    // Nobody else took space meanwhile either.
    assert_eq!(taken_bytes(&fixture, "log"), taken);
}

#[test]
fn stocking_ends_when_told() {
    let fixture = Fixture::new(Ground::Memory, 256 * MIB, 0, Checksum::Off);
    fixture.pool().stock(0, 0, &AtomicBool::new(false));
    let taken = taken_bytes(&fixture, "log");
    fixture.pool().stock(64 * MIB, 0, &AtomicBool::new(true));
    assert_eq!(taken_bytes(&fixture, "log"), taken);
    fixture.pool().stock(64 * MIB, 0, &AtomicBool::new(false));
    assert!(taken_bytes(&fixture, "log") >= taken + 64 * MIB);
}

/// Fills the data file with values of two blocks, and frees one of ten. Which are left.
pub(super) fn fragment(fixture: &Fixture) -> Vec<u64> {
    let target = fixture.target();
    let written = |number: &u64| {
        let value = content(*number, 8192);
        let done = target.update(
            &fixture.place(1, &number.to_le_bytes(), b"a"),
            Write::Single,
            &value,
            Ack::Deferred,
        );
        assert!(done.is_ok() || done == Err(StoreError::NvmeFull), "{done:?}");
        done.is_ok()
    };
    let written: Vec<u64> = (0..10_000).take_while(written).collect();
    assert_eq!(target.space().nvme_free_bytes, 0);
    let (gone, kept): (Vec<u64>, Vec<u64>) = written.iter().partition(|number| *number % 10 == 3);
    for number in gone {
        let key = number.to_le_bytes();
        target.punch(&fixture.place(1, &key, b"a"), Punch::Akey, Ack::Deferred).expect("punched");
    }
    target.aggregate(fixture.container, None, true).expect("aggregated");
    kept
}

#[test]
fn a_fragmented_data_file_takes_large_values() {
    const BYTES: usize = 55_000;
    for (ground, checksum) in
        [(Ground::Memory, Checksum::Crc32), (Ground::Disk, Checksum::Crc64), (Ground::Msync, Checksum::Off)]
    {
        let mut fixture = Fixture::new(ground, 8 * MIB, 8 * MIB, checksum);
        let kept = fragment(&fixture);
        let target = fixture.target().clone();
        let free_bytes = target.space().nvme_free_bytes;
        assert!(free_bytes > 700_000 && free_bytes < MIB, "{free_bytes}");
        let update = |key: &[u8], number| {
            target.update(
                &fixture.place(2, key, b"a"),
                Write::Single,
                &content(number, BYTES),
                Ack::AsConfigured,
            )
        };
        update(b"one", 1).expect("room in pieces");
        let array = fixture.place(3, b"array", b"a");
        let write = Write::Extent { offset_bytes: 1000 };
        target.update(&array, write, &content(2, BYTES), Ack::Deferred).expect("room in pieces");
        let reserved = fixture.place(2, b"reserved", b"a");
        let mut room = target.reserve(&reserved, Write::Single, BYTES).expect("room in pieces");
        room.copy_from_slice(&content(3, BYTES));
        room.publish(Ack::AsConfigured).expect("published");
        // One that is given up gives all its pieces back.
        let before = target.space().nvme_free_bytes;
        drop(target.reserve(&fixture.place(2, b"given up", b"a"), Write::Single, BYTES).expect("room"));
        assert_eq!(target.space().nvme_free_bytes, before);
        // As do versions that were overwritten: far more than there is room for at a time.
        for number in 0..60 {
            update(b"over", number).expect("what it replaced makes room");
        }
        drop(target);
        for is_clean in [true, false] {
            fixture.reopen(is_clean);
            assert_eq!(fixture.pool().findings(), [""; 0]);
            let single = |key: &[u8]| get(&fixture, &fixture.place(2, key, b"a"), BYTES);
            assert_eq!(single(b"one"), Ok(content(1, BYTES)), "{ground:?}");
            assert_eq!(single(b"reserved"), Ok(content(3, BYTES)), "{ground:?}");
            assert_eq!(single(b"over"), Ok(content(59, BYTES)), "{ground:?}");
            let lease = fixture.target().lease(&fixture.place(2, b"one", b"a"), Read::Single, None, BYTES);
            assert_eq!(lease.expect("leased").as_ref(), content(1, BYTES));
            // Parts of it, across pieces and checksums.
            for (from, bytes) in [(0, BYTES), (8191, 2), (20_000, 30_000), (32_768, 22_232), (54_999, 1)] {
                let mut part = vec![0; bytes];
                let read = Read::Extent { offset_bytes: 1000 + from as u64 };
                let array = fixture.place(3, b"array", b"a");
                fixture.target().fetch(&array, read, None, &mut part).expect("read");
                assert_eq!(part, content(2, BYTES)[from..from + bytes], "{ground:?}: {from}");
            }
            for number in &kept {
                let found = get(&fixture, &fixture.place(1, &number.to_le_bytes(), b"a"), 8192);
                assert_eq!(found, Ok(content(*number, 8192)), "{ground:?}");
            }
        }
        // Everything comes back.
        for object in [1, 2, 3] {
            fixture
                .target()
                .punch(&fixture.place(object, b"", b""), Punch::Object, Ack::Deferred)
                .expect("punched");
        }
        fixture.target().aggregate(fixture.container, None, true).expect("aggregated");
        assert_eq!(fixture.target().space().nvme_free_bytes, 8 * MIB, "{ground:?}");
    }
}

#[test]
fn space_is_taken_when_it_is_told() {
    for ground in [Ground::Memory, Ground::Disk] {
        for allocation in [Allocation::Whole, Allocation::Needed] {
            let scratch = ground.scratch();
            let mut options = ground.options(64 * MIB, 32 * MIB);
            options.open.allocation = allocation;
            let dir = scratch.path().join("pool");
            let pool = Pool::create(&dir, &options).expect("made");
            pool.stock(32 * MIB, 16 * MIB, &AtomicBool::new(false));
            let taken = |name: &str| {
                std::fs::metadata(dir.join("target.0").join(name)).expect("a file").blocks() * 512
            };
            match allocation {
                Allocation::Whole => {
                    assert!(taken("log") >= 64 * MIB && taken("data") >= 32 * MIB, "{ground:?}");
                }
                _ => assert!(taken("log") < 32 * MIB && taken("data") == 0, "{ground:?}"),
            }
            let id = pool.create_container("strata", &ContainerProperties::default()).expect("a container");
            for number in 0..200u64 {
                let key = number.to_le_bytes();
                let object = ObjectId { lo: 1, hi: 0 };
                let place = KeyPath { container: id, object, dkey: &key, akey: b"a" };
                let value = content(number, if number % 2 == 0 { 5000 } else { 100_000 });
                let target = pool.target(0);
                target.update(&place, Write::Single, &value, Ack::Deferred).expect("written");
                let mut buffer = vec![0; value.len()];
                target.fetch(&place, Read::Single, None, &mut buffer).expect("read");
                assert!(buffer == value, "{ground:?}: {number}");
            }
            pool.close().expect("closed");
        }
    }
}
