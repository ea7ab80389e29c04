//! Known answers, on every ground.

use crate::{Checksum, Durability};

use super::support::{Fixture, GROUNDS, Ground, MIB, content};
use crate::model::Epoch;
use crate::{
    Ack, Anchor, ContainerProperties, KeyPath, Pool, PoolOptions, Punch, Read, StoreError, Target, Write,
};

const ALL_CHECKSUMS: [Checksum; 8] = [
    Checksum::Off,
    Checksum::Crc16,
    Checksum::Crc32,
    Checksum::Crc64,
    Checksum::Sha1,
    Checksum::Sha256,
    Checksum::Sha512,
    Checksum::Adler32,
];

fn put(target: &Target, place: &KeyPath<'_>, data: &[u8]) -> Epoch {
    target.update(place, Write::Single, data, Ack::AsConfigured).expect("updated")
}

fn get(target: &Target, place: &KeyPath<'_>, epoch: Option<Epoch>) -> Result<Vec<u8>, StoreError> {
    let mut buffer = vec![0xaa; 4 << 20];
    let found = target.fetch(place, Read::Single, epoch, &mut buffer)?;
    buffer.truncate(found.bytes as usize);
    Ok(buffer)
}

fn write_at(target: &Target, place: &KeyPath<'_>, offset_bytes: u64, data: &[u8]) -> Epoch {
    target.update(place, Write::Extent { offset_bytes }, data, Ack::AsConfigured).expect("written")
}

#[test]
fn values_of_all_sizes_come_back_after_every_kind_of_open() {
    for ground in GROUNDS {
        for (number, checksum) in ALL_CHECKSUMS.into_iter().enumerate() {
            let nvme_bytes = if number % 2 == 0 { 0 } else { 16 * MIB };
            let mut fixture = Fixture::new(ground, 32 * MIB, nvme_bytes, checksum);
            let sizes = [0, 1, 63, 64, 1000, 4096, 8191, 8192, 32768, 33000, 100_000, 1 << 20];
            for (number, bytes) in sizes.into_iter().enumerate() {
                let key = format!("blade-{number}");
                let place = fixture.place(1, key.as_bytes(), b"akey--0");
                put(fixture.target(), &place, &content(number as u64, bytes));
            }
            for opening in 0..3 {
                for (number, bytes) in sizes.into_iter().enumerate() {
                    let key = format!("blade-{number}");
                    let place = fixture.place(1, key.as_bytes(), b"akey--0");
                    let expected = content(number as u64, bytes);
                    assert_eq!(
                        get(fixture.target(), &place, None),
                        Ok(expected.clone()),
                        "{ground:?} {checksum:?}"
                    );
                    assert_eq!(fixture.target().size_of(&place, None), Ok(bytes as u64));
                    let lease = fixture.target().lease(&place, Read::Single, None, 4 << 20).expect("leased");
                    assert_eq!(lease.as_ref(), expected);
                    assert_eq!(lease.is_in_place(), ground != Ground::Disk);
                }
                assert_eq!(fixture.pool().findings(), [""; 0]);
                fixture.reopen(opening == 0);
            }
        }
    }
}

#[test]
fn versions_and_punches_are_seen_by_epoch() {
    for ground in GROUNDS {
        let mut fixture = Fixture::new(ground, 4 * MIB, 0, Checksum::Crc32);
        let place = fixture.place(1, b"d", b"a");
        let other = fixture.place(1, b"d", b"b");
        let target = fixture.target().clone();
        let first = put(&target, &place, b"one");
        let second = put(&target, &place, b"second");
        put(&target, &other, b"other");
        let punched = target.punch(&place, Punch::Akey, Ack::AsConfigured).expect("punched");
        assert_eq!(target.punch(&place, Punch::Akey, Ack::AsConfigured), Err(StoreError::NotFound));
        let third = put(&target, &place, b"third");
        let dkey_punched = target.punch(&place, Punch::Dkey, Ack::AsConfigured).expect("punched");
        let fourth = put(&target, &place, b"fourth");
        let object_punched = target.punch(&place, Punch::Object, Ack::AsConfigured).expect("punched");
        drop(target);
        let epochs = [first, second, punched, third, dkey_punched, fourth, object_punched];
        assert!(epochs.is_sorted_by(|one, other| one < other));
        for opening in 0..3 {
            let target = fixture.target();
            let expected: [Result<&[u8], StoreError>; 8] = [
                Err(StoreError::NotFound),
                Ok(b"one"),
                Ok(b"second"),
                Err(StoreError::NotFound),
                Ok(b"third"),
                Err(StoreError::NotFound),
                Ok(b"fourth"),
                Err(StoreError::NotFound),
            ];
            let epochs = [0, first, second, punched, third, dkey_punched, fourth, object_punched];
            for (epoch, expected) in epochs.into_iter().zip(expected) {
                assert_eq!(
                    get(target, &place, Some(epoch)),
                    expected.map(<[u8]>::to_vec),
                    "{ground:?} {epoch}"
                );
            }
            assert_eq!(get(target, &place, None), Err(StoreError::NotFound));
            assert_eq!(get(target, &other, Some(third)), Ok(b"other".to_vec()));
            assert_eq!(get(target, &other, Some(fourth)), Err(StoreError::NotFound));
            fixture.reopen(opening == 0);
        }
    }
}

#[test]
fn extents_overlay_and_holes_are_short() {
    for ground in GROUNDS {
        for nvme_bytes in [0, 8 * MIB] {
            let mut fixture = Fixture::new(ground, 32 * MIB, nvme_bytes, Checksum::Crc32);
            let chunk = 7u64.to_le_bytes();
            let place = KeyPath { dkey: &chunk, akey: b"", ..fixture.place(9, b"", b"") };
            let target = fixture.target().clone();
            let base = content(1, 200_000);
            let first = write_at(&target, &place, 1000, &base);
            let patch = content(2, 70_000);
            write_at(&target, &place, 50_000, &patch);
            write_at(&target, &place, 300_000, b"tail");
            let hole = Punch::Record { offset_bytes: 10_000, bytes: 5_000 };
            target.punch(&place, hole, Ack::AsConfigured).expect("punched");
            drop(target);
            let mut expected = vec![0; 300_004];
            expected[1000..201_000].copy_from_slice(&base);
            let before = expected.clone();
            expected[50_000..120_000].copy_from_slice(&patch);
            expected[10_000..15_000].fill(0);
            expected[300_000..].copy_from_slice(b"tail");
            for opening in 0..3 {
                let target = fixture.target();
                for (from, bytes) in
                    [(0, 300_004), (0, 400_000), (49_999, 2), (32_768, 65_536), (9_000, 7_000)]
                {
                    let mut buffer = vec![0xee; bytes];
                    let read = Read::Extent { offset_bytes: from as u64 };
                    let found = target.fetch(&place, read, None, &mut buffer).expect("read");
                    let end = expected.len().min(from + bytes);
                    assert_eq!(buffer[..end - from], expected[from..end]);
                    assert!(buffer[end - from..].iter().all(|&byte| byte == 0));
                    assert_eq!(found.end_bytes as usize, end - from);
                }
                let mut buffer = vec![0; 300_004];
                let read = Read::Extent { offset_bytes: 0 };
                let found = target.fetch(&place, read, Some(first), &mut buffer).expect("read");
                assert_eq!((found.bytes, found.end_bytes, &buffer), (200_000, 201_000, &before));
                let beyond = target.fetch(&place, Read::Extent { offset_bytes: 1 << 40 }, None, &mut buffer);
                assert_eq!(beyond.map(|found| found.bytes), Ok(0));
                assert_eq!(target.size_of(&place, None), Ok(300_004));
                let largest = target.largest(place.container, place.object, b"", None).expect("there");
                assert_eq!((largest.dkey, largest.end_bytes), (7, 300_004));
                let mut extents = Vec::new();
                let mut show = |found: &crate::FoundExtent| extents.push((found.offset_bytes, found.bytes));
                target.list_extents(&place, None, 0, 100, &mut show).expect("listed");
                let laid =
                    [(1000, 9000), (15_000, 35_000), (50_000, 70_000), (120_000, 81_000), (300_000, 4)];
                assert_eq!(extents, laid);
                assert_eq!(
                    target.update(&place, Write::Single, b"x", Ack::AsConfigured),
                    Err(StoreError::WrongKind)
                );
                assert_eq!(get(target, &place, None), Err(StoreError::WrongKind));
                fixture.reopen(opening == 0);
            }
        }
    }
}

#[test]
fn listings_are_whole_and_stable() {
    let mut fixture = Fixture::new(Ground::Memory, 8 * MIB, 0, Checksum::Crc32);
    for number in 0..500u64 {
        let dkey = format!("blade-{number}");
        for akey in 0..=number % 3 {
            put(
                fixture.target(),
                &fixture.place(1 + number % 2, dkey.as_bytes(), format!("akey--{akey}").as_bytes()),
                b"v",
            );
        }
    }
    for _ in 0..3 {
        let target = fixture.target();
        let mut listed = Vec::new();
        let mut anchor = Anchor::START;
        while !anchor.is_end() {
            let object = fixture.place(1, b"", b"").object;
            let mut show = |key: &[u8]| listed.push(String::from_utf8(key.to_vec()).expect("text"));
            target.list_dkeys(fixture.container, object, None, &mut anchor, 7, &mut show).expect("listed");
            anchor = Anchor::from_bytes(anchor.to_bytes());
            // Changes between two calls: what is there all the time is listed once.
            put(target, &fixture.place(1, format!("new-{}", listed.len()).as_bytes(), b"a"), b"v");
        }
        listed.retain(|key| key.starts_with("blade"));
        listed.sort();
        let mut expected: Vec<_> = (0..500).step_by(2).map(|number| format!("blade-{number}")).collect();
        expected.sort();
        assert_eq!(listed, expected);
        for (dkey, count) in [(0u64, 1), (4, 2), (2, 3)] {
            let key = format!("blade-{dkey}");
            let place = fixture.place(1, key.as_bytes(), b"");
            let (mut anchor, mut akeys) = (Anchor::START, Vec::new());
            while !anchor.is_end() {
                target
                    .list_akeys(&place, None, &mut anchor, 1, &mut |akey| akeys.push(akey.to_vec()))
                    .expect("listed");
            }
            akeys.sort();
            assert_eq!(
                akeys,
                (0..count).map(|akey| format!("akey--{akey}").into_bytes()).collect::<Vec<_>>()
            );
        }
        let mut objects = Vec::new();
        let mut anchor = Anchor::START;
        target
            .list_objects(fixture.container, None, &mut anchor, 10, &mut |id| objects.push(id.lo))
            .expect("listed");
        objects.sort_unstable();
        assert_eq!((objects, anchor.is_end()), (vec![1, 2], true));
        let counted =
            target.iterate(fixture.container, Some(fixture.place(2, b"", b"").object), None, true, true);
        let counted = counted.expect("visited");
        assert_eq!((counted.dkeys, counted.akeys, counted.records), (250, 500, 500));
        fixture.reopen(true);
    }
}

#[test]
fn snapshots_survive_aggregation_and_the_rest_goes() {
    for ground in GROUNDS {
        let mut fixture = Fixture::new(ground, 4 * MIB, 0, Checksum::Crc32);
        let place = fixture.place(1, b"d", b"a");
        let filler = fixture.place(1, b"filler", b"a");
        let early = put(fixture.target(), &place, b"early");
        put(fixture.target(), &place, b"kept");
        let snapshot = fixture.pool().snapshot(fixture.container).expect("a snapshot");
        put(fixture.target(), &place, b"late");
        let mut free_bytes = Vec::new();
        for round in 0..6 {
            for number in 0..20 {
                put(fixture.target(), &filler, &content(round * 100 + number, 50_000));
            }
            let done = fixture.target().aggregate(fixture.container, None, true).expect("aggregated");
            assert!(done.versions_dropped >= 19 && done.segments_freed > 0, "{ground:?} {done:?}");
            free_bytes.push(fixture.target().space().scm_free_bytes);
            assert_eq!(get(fixture.target(), &place, Some(snapshot)), Ok(b"kept".to_vec()));
            assert_eq!(get(fixture.target(), &place, None), Ok(b"late".to_vec()));
            assert_eq!(get(fixture.target(), &filler, None), Ok(content(round * 100 + 19, 50_000)));
            if round > 1 {
                assert_eq!(get(fixture.target(), &place, Some(early)), Err(StoreError::NotFound));
            }
            fixture.reopen(round % 2 == 0);
        }
        assert!(free_bytes.iter().all(|free| *free > 3 * MIB / 2), "{free_bytes:?}");
        fixture.pool().destroy_snapshot(fixture.container, snapshot).expect("destroyed");
        fixture.target().aggregate(fixture.container, None, true).expect("aggregated");
        assert_eq!(get(fixture.target(), &place, Some(snapshot)), Err(StoreError::NotFound));
    }
}

#[test]
fn a_full_log_keeps_what_it_took_and_comes_back() {
    for ground in GROUNDS {
        let mut fixture = Fixture::new(ground, 2 * MIB, 0, Checksum::Crc32);
        let mut count = 0u64;
        let error = loop {
            let place_key = count.to_le_bytes();
            let place = fixture.place(1, &place_key, b"a");
            match fixture.target().update(&place, Write::Single, &content(count, 10_000), Ack::AsConfigured) {
                Ok(_) => count += 1,
                Err(error) => break error,
            }
        };
        assert_eq!((error, error.errno()), (StoreError::ScmFull, libc::ENOSPC));
        assert!(count > 140, "{count}");
        fixture.reopen(false);
        for number in 0..count {
            let key = number.to_le_bytes();
            assert_eq!(
                get(fixture.target(), &fixture.place(1, &key, b"a"), None),
                Ok(content(number, 10_000))
            );
        }
        for number in 0..count / 2 {
            let key = number.to_le_bytes();
            fixture
                .target()
                .punch(&fixture.place(1, &key, b"a"), Punch::Dkey, Ack::AsConfigured)
                .expect("punched");
        }
        fixture.target().aggregate(fixture.container, None, true).expect("aggregated");
        let mut again = 0;
        while again < count / 3 {
            let key = (1_000_000 + again).to_le_bytes();
            put(fixture.target(), &fixture.place(1, &key, b"a"), &content(again, 10_000));
            again += 1;
        }
        fixture.reopen(false);
        for number in 0..count {
            let key = number.to_le_bytes();
            let expected =
                if number < count / 2 { Err(StoreError::NotFound) } else { Ok(content(number, 10_000)) };
            assert_eq!(
                get(fixture.target(), &fixture.place(1, &key, b"a"), None),
                expected,
                "{ground:?} {number}"
            );
        }
    }
}

#[test]
fn a_full_data_file_keeps_what_it_took_and_comes_back() {
    for ground in GROUNDS {
        let mut fixture = Fixture::new(ground, 4 * MIB, MIB, Checksum::Crc64);
        let mut count = 0u64;
        let error = loop {
            let key = count.to_le_bytes();
            let place = fixture.place(1, &key, b"a");
            match fixture.target().update(&place, Write::Single, &content(count, 20_000), Ack::AsConfigured) {
                Ok(_) => count += 1,
                Err(error) => break error,
            }
        };
        assert_eq!((error, count), (StoreError::NvmeFull, MIB / 20_480));
        for is_clean in [true, false] {
            fixture.reopen(is_clean);
            assert_eq!(fixture.target().space().nvme_free_bytes, MIB - count * 20_480);
            for number in 0..count {
                let key = number.to_le_bytes();
                assert_eq!(
                    get(fixture.target(), &fixture.place(1, &key, b"a"), None),
                    Ok(content(number, 20_000))
                );
            }
        }
        let place = fixture.place(1, b"", b"");
        fixture.target().punch(&place, Punch::Object, Ack::AsConfigured).expect("punched");
        let done = fixture.target().aggregate(fixture.container, None, true).expect("aggregated");
        assert_eq!((done.nvme_freed_bytes, fixture.target().space().nvme_free_bytes), (count * 20_000, MIB));
        for is_clean in [true, false] {
            put(fixture.target(), &fixture.place(2, b"x", b"a"), &content(7, 100_000));
            fixture.reopen(is_clean);
            assert_eq!(get(fixture.target(), &fixture.place(2, b"x", b"a"), None), Ok(content(7, 100_000)));
            let gone = get(fixture.target(), &fixture.place(1, &0u64.to_le_bytes(), b"a"), None);
            assert_eq!(gone, Err(StoreError::NotFound), "{ground:?}");
        }
    }
}

#[test]
fn reservations_are_seen_when_published() {
    for ground in GROUNDS {
        for (nvme_bytes, bytes) in [(0, 5000), (0, 100_000), (4 * MIB, 100_000)] {
            let mut fixture = Fixture::new(ground, 8 * MIB, nvme_bytes, Checksum::Crc32);
            let place = fixture.place(1, b"d", b"a");
            let mut room = fixture.target().reserve(&place, Write::Single, bytes).expect("room");
            room.copy_from_slice(&content(5, bytes));
            assert_eq!(get(fixture.target(), &place, None), Err(StoreError::NotFound));
            room.publish(Ack::AsConfigured).expect("published");
            drop(fixture.target().reserve(&place, Write::Single, bytes).expect("room"));
            let kept =
                fixture.target().reserve(&fixture.place(1, b"e", b"a"), Write::Single, bytes).expect("room");
            for is_clean in [false, true] {
                assert_eq!(get(fixture.target(), &place, None), Ok(content(5, bytes)));
                fixture.reopen(is_clean);
            }
            drop(kept);
            assert_eq!(get(fixture.target(), &fixture.place(1, b"e", b"a"), None), Err(StoreError::NotFound));
            assert_eq!(fixture.pool().findings(), [""; 0]);
        }
    }
}

#[test]
fn leases_pin_what_they_read() {
    let fixture = Fixture::new(Ground::Memory, 2 * MIB, 0, Checksum::Crc32);
    let place = fixture.place(1, b"d", b"a");
    put(fixture.target(), &place, &content(1, 50_000));
    let lease = fixture.target().lease(&place, Read::Single, None, 50_000).expect("leased");
    for round in 0..60 {
        put(fixture.target(), &place, &content(round + 10, 50_000));
        fixture.target().aggregate(fixture.container, None, true).expect("aggregated");
        assert_eq!(lease.as_ref(), content(1, 50_000), "{round}");
    }
    let before = fixture.target().space().scm_free_bytes;
    drop(lease);
    fixture.target().collect().expect("collected");
    assert!(fixture.target().space().scm_free_bytes > before);
}

#[test]
fn discards_stay_discarded() {
    for ground in GROUNDS {
        let mut fixture = Fixture::new(ground, 4 * MIB, 0, Checksum::Crc32);
        let place = fixture.place(1, b"d", b"a");
        let array = fixture.place(1, b"e", b"a");
        put(fixture.target(), &place, b"old");
        write_at(fixture.target(), &array, 0, b"old");
        let from = put(fixture.target(), &place, b"new");
        write_at(fixture.target(), &array, 1, b"new");
        let to = fixture.target().punch(&place, Punch::Dkey, Ack::AsConfigured).expect("punched");
        let done = fixture.target().discard(fixture.container, from..=to).expect("discarded");
        assert_eq!(done.versions_dropped, 3);
        for is_clean in [false, true, false] {
            assert_eq!(get(fixture.target(), &place, None), Ok(b"old".to_vec()), "{ground:?}");
            let mut buffer = [1; 4];
            fixture
                .target()
                .fetch(&array, Read::Extent { offset_bytes: 0 }, None, &mut buffer)
                .expect("read");
            assert_eq!(buffer, *b"old\0");
            fixture.reopen(is_clean);
        }
    }
}

#[test]
fn containers_are_apart_and_their_ids_are_given_once() {
    let mut fixture = Fixture::new(Ground::Memory, 4 * MIB, 0, Checksum::Crc32);
    let other = fixture.pool().create_container("other", &ContainerProperties::default()).expect("made");
    let place = fixture.place(1, b"d", b"a");
    let there = KeyPath { container: other, ..place };
    put(fixture.target(), &place, b"here");
    put(fixture.target(), &there, &content(3, 100_000));
    let error = fixture.pool().create_container("other", &ContainerProperties::default()).expect_err("taken");
    assert!(error.to_string().contains("label=other"), "{error}");
    let mut last = 0;
    for is_clean in [false, true, false] {
        let first = fixture.pool().allocate_ids(other, 10).expect("ids");
        assert!(first >= last, "{first} {last}");
        assert_eq!(fixture.pool().allocate_ids(other, 1), Ok(first + 10));
        last = first + 11;
        fixture.reopen(is_clean);
        assert_eq!(get(fixture.target(), &there, None), Ok(content(3, 100_000)));
    }
    fixture.pool().destroy_container("other").expect("destroyed");
    assert_eq!(get(fixture.target(), &there, None), Err(StoreError::NotFound));
    let before = fixture.target().space();
    fixture.reopen(false);
    fixture.target().collect().expect("collected");
    assert!(fixture.target().space().scm_free_bytes > before.scm_free_bytes);
    assert_eq!(get(fixture.target(), &place, None), Ok(b"here".to_vec()));
    let error = fixture.pool().destroy_container("other").expect_err("gone").to_string();
    assert!(error.contains("existing containers: strata"), "{error}");
}

#[test]
fn other_directories_and_versions_are_refused() {
    let scratch = Ground::Memory.scratch();
    let options = PoolOptions { scm_bytes: 2 * MIB, ..PoolOptions::default() };
    std::fs::write(scratch.path().join("thesis.tex"), b"x").expect("written");
    let error = Pool::create(scratch.path(), &options).expect_err("foreign").to_string();
    assert!(error.contains("contains other files") && error.contains("thesis.tex"), "{error}");
    let error = Pool::open(scratch.path(), &options.open).expect_err("none").to_string();
    assert!(error.contains("create one first"), "{error}");
    let dir = scratch.path().join("pool");
    let pool = Pool::create(&dir, &options).expect("made");
    assert!(Pool::exists(&dir));
    let error = Pool::open(&dir, &options.open).expect_err("open already").to_string();
    assert!(error.contains("open already"), "{error}");
    let error = Pool::create(&dir, &options).expect_err("there is one");
    assert_eq!(error.exit_code(), 2);
    pool.close().expect("closed");
    let superblock = dir.join("superblock");
    let good = std::fs::read(&superblock).expect("read");
    let mut other = good.clone();
    other[8] = 99;
    std::fs::write(&superblock, &other).expect("written");
    let error = Pool::open(&dir, &options.open).expect_err("another version").to_string();
    assert!(error.contains("version 99") && error.contains("version 2"), "{error}");
    let mut flipped = good.clone();
    flipped[41] ^= 1;
    std::fs::write(&superblock, &flipped).expect("written");
    let error = Pool::open(&dir, &options.open).expect_err("damaged").to_string();
    assert!(error.contains("checksum"), "{error}");
    std::fs::write(&superblock, &good).expect("written");
    Pool::destroy(&dir).expect("destroyed");
    assert!(!dir.exists() && scratch.path().join("thesis.tex").exists());
    for wrong in [PoolOptions { targets: 0, ..options }, PoolOptions { scm_bytes: 100, ..options }] {
        assert_eq!(Pool::create(&dir, &wrong).expect_err("refused").exit_code(), 2);
    }
}

#[test]
fn threads_share_a_target_and_its_syncs() {
    for ground in GROUNDS {
        for durability in [Durability::Sync, Durability::Batch, Durability::None] {
            let mut fixture = Fixture::new(ground, 16 * MIB, 0, Checksum::Crc32);
            let pool = fixture.pool.take().expect("open");
            pool.close().expect("closed");
            let pool = Pool::open(&fixture.path(), &fixture.ground.open(durability)).expect("opened");
            std::thread::scope(|scope| {
                for thread in 0..4u64 {
                    let (target, fixture) = (pool.target(0), &fixture);
                    scope.spawn(move || {
                        for number in 0..50 {
                            let key = (thread * 1000 + number).to_le_bytes();
                            let place = fixture.place(1, &key, b"a");
                            let bytes = if number % 10 == 0 { 40_000 } else { 500 };
                            let ack = if number % 3 == 0 { Ack::Deferred } else { Ack::AsConfigured };
                            target
                                .update(&place, Write::Single, &content(number, bytes), ack)
                                .expect("updated");
                            assert_eq!(get(target, &place, None), Ok(content(number, bytes)));
                        }
                        target.commit().expect("committed");
                    });
                }
            });
            fixture.pool = Some(pool);
            fixture.reopen(durability != Durability::Sync);
            for thread in 0..4u64 {
                for number in 0..50 {
                    let key = (thread * 1000 + number).to_le_bytes();
                    let bytes = if number % 10 == 0 { 40_000 } else { 500 };
                    assert_eq!(
                        get(fixture.target(), &fixture.place(1, &key, b"a"), None),
                        Ok(content(number, bytes))
                    );
                }
            }
        }
    }
}
