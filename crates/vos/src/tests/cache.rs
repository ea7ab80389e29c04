//! Reads after the cache was dropped: from the files, what is stored later from memory again.

use std::path::Path;

use rustix::io::{Errno, ReadWriteFlags};

use crate::access::TMPFS_MAGIC;
use crate::{Ack, Checksum, Durability, Read, StoreError, Write};

use super::damage::flip;
use super::support::{Fixture, Ground, MIB, content};

const KEYS: [&[u8]; 2] = [b"kestrel-one", b"kestrel-two"];

fn store(fixture: &Fixture, number: usize) {
    let place = fixture.place(7, KEYS[number], b"akey--0");
    let data = content(number as u64, 3000);
    fixture.target().update(&place, Write::Single, &data, Ack::AsConfigured).expect("updated");
}

fn fetch(fixture: &Fixture, number: usize) -> Result<(), StoreError> {
    let mut buffer = vec![0; 3000];
    let place = fixture.place(7, KEYS[number], b"akey--0");
    fixture.target().fetch(&place, Read::Single, None, &mut buffer)?;
    assert_eq!(buffer, content(number as u64, 3000));
    Ok(())
}

/// Whether the page cache holds the first page of a file.
fn is_cached(path: &Path) -> bool {
    let file = std::fs::File::open(path).expect("opened");
    let mut page = [0; 4096];
    let read =
        rustix::io::preadv2(&file, &mut [std::io::IoSliceMut::new(&mut page)], 0, ReadWriteFlags::NOWAIT);
    read != Err(Errno::AGAIN)
}

fn is_memory(path: &Path) -> bool {
    rustix::fs::statfs(path).expect("a file system").f_type == TMPFS_MAGIC
}

/// A file is damaged behind the back of a store that has it in memory: who reads tells where from.
#[test]
fn what_is_durable_is_read_from_the_file_and_what_comes_later_from_memory() {
    for durability in [Durability::Sync, Durability::None] {
        let mut fixture = Fixture::new(Ground::Disk, 4 * MIB, 0, Checksum::Crc32);
        fixture.pool = None;
        fixture.pool =
            Some(crate::Pool::open(&fixture.path(), &Ground::Disk.open(durability)).expect("opened"));
        let log = fixture.path().join("target.0").join("log");
        store(&fixture, 0);
        fixture.pool().drop_cache().expect("dropped");
        assert_eq!(fetch(&fixture, 0), Ok(()), "{durability:?}");
        flip(&log, KEYS[0], 1000);
        assert_eq!(fetch(&fixture, 0), Err(StoreError::Damaged), "{durability:?}");

        store(&fixture, 1);
        fixture.target().commit().expect("committed");
        if durability == Durability::Sync {
            flip(&log, KEYS[1], 1000);
        }
        assert_eq!(fetch(&fixture, 1), Ok(()), "it is in memory, {durability:?}");
        fixture.pool().drop_cache().expect("dropped");
        let expected = if durability == Durability::Sync { Err(StoreError::Damaged) } else { Ok(()) };
        assert_eq!(fetch(&fixture, 1), expected, "{durability:?}");
    }
}

#[test]
fn pages_of_a_mapped_file_are_given_up() {
    let fixture = Fixture::new(Ground::Msync, 4 * MIB, 0, Checksum::Crc32);
    let log = fixture.path().join("target.0").join("log");
    store(&fixture, 0);
    assert!(is_cached(&log));
    fixture.pool().drop_cache().expect("dropped");
    assert!(!is_cached(&log) || is_memory(&log));
    store(&fixture, 1);
    assert_eq!((fetch(&fixture, 0), fetch(&fixture, 1)), (Ok(()), Ok(())));
}

/// Memory that is the medium has nothing to give up.
#[test]
fn a_store_in_memory_stays_as_it_is() {
    let fixture = Fixture::new(Ground::Memory, 4 * MIB, MIB, Checksum::Crc32);
    store(&fixture, 0);
    fixture.pool().drop_cache().expect("dropped");
    assert_eq!(fetch(&fixture, 0), Ok(()));
}

/// Bytes that this thread has had drives read.
fn fetched_bytes() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/io").expect("its I/O");
    let line = text.lines().find_map(|line| line.strip_prefix("read_bytes: ")).expect("a line");
    line.parse().expect("a number")
}

/// A part of a long record needs its head and the chunks around the part.
#[test]
fn parts_of_long_records_are_read_without_the_rest() {
    const LONG: usize = 1 << 20;
    for checksum in [Checksum::Crc32, Checksum::Sha512, Checksum::Off] {
        let fixture = Fixture::new(Ground::Disk, 64 * MIB, 0, checksum);
        let log = fixture.path().join("target.0").join("log");
        let place = fixture.place(9, b"kestrel-long", b"akey--0");
        let data = content(3, LONG);
        // A short one before it has the long one begin anywhere in a block.
        for bytes in [100, LONG] {
            let write = Write::Extent { offset_bytes: 0 };
            fixture.target().update(&place, write, &data[..bytes], Ack::AsConfigured).expect("updated");
        }
        fixture.pool().drop_cache().expect("dropped");
        let fetch = |from: usize, bytes: usize| {
            let mut into = vec![0; bytes];
            let read = Read::Extent { offset_bytes: from as u64 };
            let before = fetched_bytes();
            let found = fixture.target().fetch(&place, read, None, &mut into)?;
            assert_eq!(found.end_bytes, bytes as u64);
            assert!(into == data[from..from + bytes], "{checksum:?} {from} {bytes}");
            Ok(fetched_bytes() - before)
        };
        let parts = [(0, 1), (0, 4096), (32768, 32768), (65535, 2), (500_000, 4096), (LONG - 1, 1)];
        for (from, bytes) in parts {
            let fetched = fetch(from, bytes).expect("read");
            assert!(fetched <= 96 << 10, "{checksum:?} {from} {bytes}: {fetched} bytes were read");
        }
        fetch(100, LONG - 200).expect("nearly all of it");
        flip(&log, b"kestrel-long", 600_000);
        fetch(0, 4096).expect("the damage is elsewhere");
        if checksum != Checksum::Off {
            let damaged = fetch(600_000, 4096);
            assert_eq!(damaged, Err(StoreError::Damaged), "{checksum:?}");
        }
    }
}
