//! Space: taken as it is needed, and given back by itself.
#![allow(unsafe_code)]

use std::os::unix::fs::MetadataExt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use workload::object::{Checksum, Durability};

use super::support::{Fixture, GROUNDS, Ground, MIB, content};
use crate::store::{Ack, Place, Pool, PoolOptions, Punch, Read, StoreError, Write};

/// Bytes that the file system gave to a file.
fn taken_bytes(fixture: &Fixture, name: &str) -> u64 {
    let file = std::fs::metadata(fixture.path().join("target.0").join(name)).expect("a file");
    file.blocks() * 512
}

fn get(fixture: &Fixture, place: &Place<'_>, bytes: usize) -> Result<Vec<u8>, StoreError> {
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

/// What is dead shares every segment with records that others fill, and they take their time.
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
    fixture.pool().stock(BYTES, &AtomicBool::new(false));
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
    fixture.pool().stock(0, &AtomicBool::new(false));
    let taken = taken_bytes(&fixture, "log");
    fixture.pool().stock(64 * MIB, &AtomicBool::new(true));
    assert_eq!(taken_bytes(&fixture, "log"), taken);
    fixture.pool().stock(64 * MIB, &AtomicBool::new(false));
    assert!(taken_bytes(&fixture, "log") >= taken + 64 * MIB);
}
