//! Bits that flip and files that are cut: reported by name, never returned as data, and nothing else suffers.

use std::os::unix::fs::FileExt as _;
use std::path::Path;

use crate::Checksum;

use super::support::{Fixture, Ground, MIB, content};
use crate::{Ack, Pool, Read, StoreError, Write};

/// Flips a bit of the first place in a file where `pattern` stands, `beyond` bytes behind it.
pub(super) fn flip(path: &Path, pattern: &[u8], beyond: i64) {
    let bytes = std::fs::read(path).expect("read");
    let at = bytes.windows(pattern.len()).position(|window| window == pattern).expect("there");
    let at = (at as i64 + beyond) as usize;
    let file = std::fs::OpenOptions::new().write(true).open(path).expect("opened");
    file.write_all_at(&[bytes[at] ^ 0x20], at as u64).expect("written");
}

fn keys() -> [Vec<u8>; 3] {
    [b"blade-before".to_vec(), b"blade-struck".to_vec(), b"blade-behind".to_vec()]
}

fn filled(ground: Ground, nvme_bytes: u64) -> Fixture {
    let fixture = Fixture::new(ground, 4 * MIB, nvme_bytes, Checksum::Crc32);
    for (number, key) in keys().iter().enumerate() {
        let place = fixture.place(3, key, b"akey--0");
        let data = content(number as u64, 9000);
        fixture.target().update(&place, Write::Single, &data, Ack::AsConfigured).expect("updated");
    }
    fixture
}

fn fetch(fixture: &Fixture, number: usize) -> Result<(), StoreError> {
    let mut buffer = vec![0; 9000];
    let key = &keys()[number];
    let place = fixture.place(3, key, b"akey--0");
    let found = fixture.target().fetch(&place, Read::Single, None, &mut buffer)?;
    assert_eq!((found.bytes, buffer), (9000, content(number as u64, 9000)));
    Ok(())
}

/// Data, extension and header fields of the record in the middle, by their distance from its dkey.
const PLACES: [(&str, i64); 5] = [
    ("data", 5000),
    ("checksum of the data", -64 + 56),
    ("epoch", -64 + 48),
    ("commit word", -64 + 60),
    ("object", -64 + 16),
];

#[test]
fn flipped_bits_are_found_and_named() {
    for ground in [Ground::Memory, Ground::Disk] {
        for (what, beyond) in PLACES {
            for is_clean in [true, false] {
                let mut fixture = filled(ground, 0);
                let log = fixture.path().join("target.0").join("log");
                let pool = fixture.pool.take().expect("open");
                if is_clean {
                    pool.close().expect("closed");
                } else {
                    drop(pool);
                }
                flip(&log, b"blade-struck", beyond);
                fixture.pool =
                    Some(Pool::open(&fixture.path(), &ground.open(Default::default())).expect("opens"));
                assert_eq!(
                    (fetch(&fixture, 0), fetch(&fixture, 2)),
                    (Ok(()), Ok(())),
                    "{ground:?} {what} {is_clean}"
                );
                let found = fetch(&fixture, 1);
                let mut lines = fixture.pool().findings().to_vec();
                lines.extend(fixture.target().take_findings());
                if what == "object" && !is_clean {
                    // Nothing tells whose it was: the part of the log is named.
                    assert_eq!(found, Err(StoreError::NotFound));
                    assert!(lines.iter().any(|line| line.contains("of the log are damaged")), "{lines:?}");
                } else {
                    assert_eq!(found, Err(StoreError::Damaged), "{ground:?} {what} {is_clean}");
                    assert_eq!(found.map_err(StoreError::errno), Err(libc::EBADMSG));
                    let named = |line: &String| line.contains("object 0.3 dkey blade-struck akey akey--0");
                    assert!(lines.iter().any(named), "{lines:?}");
                }
            }
        }
    }
}

#[test]
fn a_damaged_data_file_is_found() {
    for ground in [Ground::Memory, Ground::Disk] {
        let mut fixture = filled(ground, MIB);
        fixture.pool.take().expect("open").close().expect("closed");
        flip(&fixture.path().join("target.0").join("data"), &content(1, 9000)[..64], 3000);
        fixture.pool = Some(Pool::open(&fixture.path(), &ground.open(Default::default())).expect("opens"));
        assert_eq!(
            (fetch(&fixture, 0), fetch(&fixture, 1), fetch(&fixture, 2)),
            (Ok(()), Err(StoreError::Damaged), Ok(()))
        );
        assert!(fixture.target().take_findings()[0].contains("dkey blade-struck"));
        assert!(
            fixture
                .target()
                .lease(&fixture.place(3, b"blade-struck", b"akey--0"), Read::Single, None, 9000)
                .is_err()
        );
    }
}

#[test]
fn a_damaged_index_is_made_anew() {
    let mut fixture = filled(Ground::Memory, 0);
    fixture.pool.take().expect("open").close().expect("closed");
    let index = fixture.path().join("target.0").join("index");
    let length = std::fs::metadata(&index).expect("there").len();
    for at in [0, 9, 40, length / 2, length - 1] {
        flip_at(&index, at);
        fixture.pool = Some(Pool::open(&fixture.path(), &Default::default()).expect("opens"));
        assert!(fixture.pool().findings()[0].contains("its index does not match"));
        assert_eq!((fetch(&fixture, 0), fetch(&fixture, 1), fetch(&fixture, 2)), (Ok(()), Ok(()), Ok(())));
        fixture.pool.take().expect("open").close().expect("closed");
    }
    std::fs::OpenOptions::new()
        .write(true)
        .open(&index)
        .and_then(|file| file.set_len(length / 2))
        .expect("cut");
    fixture.pool = Some(Pool::open(&fixture.path(), &Default::default()).expect("opens"));
    assert_eq!((fetch(&fixture, 0), fetch(&fixture, 1), fetch(&fixture, 2)), (Ok(()), Ok(()), Ok(())));
}

fn flip_at(path: &Path, at: u64) {
    let file = std::fs::OpenOptions::new().read(true).write(true).open(path).expect("opened");
    let mut byte = [0];
    file.read_exact_at(&mut byte, at).expect("read");
    file.write_all_at(&[byte[0] ^ 1], at).expect("written");
}

/// The end of the log as a power failure leaves it: some of the last blocks did not arrive. What was not acknowledged goes, and stays gone.
#[test]
fn torn_tails_are_cut() {
    let mut fixture = filled(Ground::Disk, 0);
    let (known, torn) = (fixture.place(3, b"known", b"a"), fixture.place(3, b"torn", b"a"));
    let target = fixture.target().clone();
    target.update(&known, Write::Single, &content(8, 3000), Ack::AsConfigured).expect("updated");
    target.update(&torn, Write::Single, &content(9, 12_000), Ack::Deferred).expect("updated");
    target.commit().expect("committed");
    drop(target);
    drop(fixture.pool.take());
    // It was acknowledged by the commit; what follows is as if it had not been.
    flip(&fixture.path().join("target.0").join("log"), &content(9, 12_000)[8000..8064], 0);
    for number in 0..3 {
        fixture.pool =
            Some(Pool::open(&fixture.path(), &Ground::Disk.open(Default::default())).expect("opens"));
        assert_eq!(fixture.pool().findings(), [""; 0]);
        let mut buffer = vec![0; 20_000];
        let torn = fixture.place(3, b"torn", b"a");
        let found = fixture.target().fetch(&torn, Read::Single, None, &mut buffer);
        assert_eq!(found, Err(StoreError::NotFound), "opening {number}");
        assert_eq!((fetch(&fixture, 0), fetch(&fixture, 1), fetch(&fixture, 2)), (Ok(()), Ok(()), Ok(())));
        let known = fixture.place(3, b"known", b"a");
        assert_eq!(fixture.target().size_of(&known, None), Ok(3000));
        let fresh = fixture.place(4, b"fresh", b"a");
        fixture
            .target()
            .update(&fresh, Write::Single, &content(number, 5000), Ack::AsConfigured)
            .expect("updated");
        drop(fixture.pool.take());
    }
}

/// Fills segments until one is begun, and tears the first record of it, whose epoch does not arrive. `behind`: so many updates follow it
/// first. What is found of it, and what is said, with each opening.
fn torn_head(behind: u64) -> Vec<(Result<u64, StoreError>, usize)> {
    let mut fixture = Fixture::new(Ground::Disk, 4 * MIB, 0, Checksum::Crc32);
    let target = fixture.target().clone();
    let used = || target.census().segments.iter().filter(|segment| !segment.is_free).count();
    let key = |number: u64| format!("head-of-segment-{number:08}").into_bytes();
    let update = |number: u64| {
        let key = key(number);
        let place = fixture.place(3, &key, b"a");
        target.update(&place, Write::Single, &content(number, 3000), Ack::Deferred).expect("updated");
    };
    let mut head = 0;
    update(head);
    let before = used();
    while used() == before {
        target.commit().expect("committed");
        head += 1;
        update(head);
    }
    target.commit().expect("committed");
    for number in 0..behind {
        update(head + 1 + number);
        target.commit().expect("committed");
    }
    drop(target);
    drop(fixture.pool.take());
    let log = fixture.path().join("target.0").join("log");
    let bytes = std::fs::read(&log).expect("read");
    let at = bytes.windows(24).position(|window| window == key(head)).expect("there") - 64 + 48;
    let file = std::fs::OpenOptions::new().write(true).open(&log).expect("opened");
    file.write_all_at(&[0; 8], at as u64).expect("written");
    let open = |_| {
        let pool = Pool::open(&fixture.path(), &Ground::Disk.open(Default::default())).expect("opens");
        let key = key(head);
        let place = fixture.place(3, &key, b"a");
        let mut buffer = vec![0; 4000];
        let found = pool.target(0).fetch(&place, Read::Single, None, &mut buffer).map(|found| found.bytes);
        (found, pool.findings().len())
    };
    (0..2).map(open).collect()
}

/// Without an epoch before it in its segment, only what stands behind it tells whether it was durable.
#[test]
fn a_record_that_was_torn_at_the_head_of_a_segment_is_no_damage() {
    assert_eq!(torn_head(0), [(Err(StoreError::NotFound), 0); 2], "nothing tells that it was ever durable");
    for (found, _) in torn_head(3) {
        assert_eq!(found, Err(StoreError::Damaged), "what follows it was");
    }
}
