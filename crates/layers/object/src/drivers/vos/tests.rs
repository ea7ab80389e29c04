use std::path::Path;
use std::sync::Arc;

use vos::{ObjectClass, ObjectType};

use vos::erasure::{TAG_BYTES, cell_bytes};
use vos::model::ObjectId;
use vos::placement::Placement;
use vos::{
    Ack, ContainerProperties, KeyPath, OpenOptions, Pool, PoolOptions, Punch, Read, StoreError, Write,
};

use super::volume::{At, Volume};

const SHARDS: usize = 6;
const DATA: usize = 4;

fn volume(dir: &Path) -> (Pool, Volume) {
    let (pool, mut volumes) = volumes(dir, "EC_4P2G1", 1);
    (pool, volumes.remove(0))
}

/// So many workers of one class.
fn volumes(dir: &Path, class: &str, count: usize) -> (Pool, Vec<Volume>) {
    volumes_of(dir, class, count, (32 << 20, 0))
}

/// The same over targets of other sizes: log, and data file.
fn volumes_of(
    dir: &Path,
    class: &str,
    count: usize,
    (scm_bytes, nvme_bytes): (u64, u64),
) -> (Pool, Vec<Volume>) {
    let options = PoolOptions {
        targets: SHARDS as u32,
        scm_bytes: SHARDS as u64 * scm_bytes,
        nvme_bytes: SHARDS as u64 * nvme_bytes,
        threshold_bytes: 4096,
        open: OpenOptions::default(),
        uuid: None,
    };
    let pool = Pool::create(&dir.join("pool"), &options).expect("a pool");
    let container = pool.create_container("c", &ContainerProperties::default()).expect("a container");
    let class: ObjectClass = class.parse().expect("a class");
    let placement = Placement::new(class, SHARDS as u32).expect("enough targets");
    let mut plan = crate::fixture::plan(crate::plan::ObjectOp::Update);
    plan.dataset.value_size_bytes_max = 100_000;
    let locks = Arc::clone(pool.order());
    let one = || Volume::new(pool.targets().to_vec(), container, placement, &plan, Arc::clone(&locks));
    let volumes = (0..count).map(|_| one()).collect();
    (pool, volumes)
}

#[test]
fn copies_and_cells_are_written_in_one_order() {
    for class in ["RP_3G1", "EC_4P2G1"] {
        // In memory: no wait for a disk keeps the writers apart.
        let dir = tempfile::tempdir_in("/dev/shm").expect("a directory");
        let (_pool, mut volumes) = volumes(dir.path(), class, 3);
        for round in 0..1200 {
            let place = at(round % 7);
            let begin = std::sync::Barrier::new(volumes.len());
            std::thread::scope(|scope| {
                for (number, volume) in volumes.iter_mut().enumerate() {
                    let begin = &begin;
                    scope.spawn(move || {
                        let own = value(round * 10 + number as u64, 20_000);
                        begin.wait();
                        volume.write(&place, Write::Single, &own).expect("written");
                    });
                }
            });
            let shards = volumes[0].placement.group_size() as usize;
            let cells: Vec<Vec<u8>> =
                (0..shards).map(|shard| cell(&volumes[0], &place, shard, 20_000 * DATA)).collect();
            // Copies are the same; cells have the same tag.
            let marks: Vec<&[u8]> = cells.iter().map(|cell| &cell[cell.len() - TAG_BYTES..]).collect();
            assert!(
                marks.iter().all(|mark| *mark == marks[0]),
                "{class}: round {round}: the last update differs"
            );
        }
    }
}

fn value(seed: u64, bytes: usize) -> Vec<u8> {
    let mut value = vec![0; bytes];
    workload::content::Stream::new(seed, 0).fill(&mut value, 0, 0);
    value
}

fn at(object: u64) -> At<'static> {
    At { object: ObjectId { lo: object, hi: 0 }, dkey: b"blade-7", akey: b"akey--0" }
}

/// Content of a shard, tag and all.
fn cell(volume: &Volume, at: &At<'_>, shard: usize, bytes: usize) -> Vec<u8> {
    let mut cell = vec![0; cell_bytes(bytes, DATA) + TAG_BYTES];
    let target = &volume.targets[volume.shard(at, shard)];
    let found = target.fetch(&volume.place(at), Read::Single, None, &mut cell).expect("a cell");
    cell.truncate(found.bytes as usize);
    cell
}

/// An update that a crash cut off after some of its cells was never acknowledged: what is read then is one of the two values.
#[test]
fn an_update_that_was_cut_off_is_never_seen_in_part() {
    let dir = tempfile::tempdir().expect("a directory");
    let (_pool, mut volume) = volume(dir.path());
    for (before, after) in [(10_000, 10_000), (10_000, 3_000), (700, 20_000), (1, 64), (5_000, 0), (0, 5_000)]
    {
        let (old, new) = (value(1, before), value(2, after));
        let made = at(1000);
        volume.write(&made, Write::Single, &new).expect("written");
        for done in 0..=SHARDS {
            let place = at((before * 100 + done) as u64);
            volume.write(&place, Write::Single, &old).expect("written");
            for shard in 0..done {
                let cell = cell(&volume, &made, shard, after);
                let target = &volume.targets[volume.shard(&place, shard)];
                target
                    .update(&volume.place(&place), Write::Single, &cell, Ack::AsConfigured)
                    .expect("written");
            }
            let mut into = vec![0xee; 20_000];
            let found = volume.read(&place, Read::Single, &mut into).expect("one of the two");
            let found = &into[..found as usize];
            assert!(found == old || found == new, "{before} to {after}, {done} cells: {} bytes", found.len());
            assert!((done > 0 || found == old) && (done < SHARDS || found == new));
        }
    }
}

#[test]
fn as_many_cells_as_there_is_parity_may_be_lost() {
    let dir = tempfile::tempdir().expect("a directory");
    let (_pool, mut volume) = volume(dir.path());
    for (object, bytes) in (0..).zip([1, 100, 4096, 50_001]) {
        let (place, stored) = (at(object), value(object, bytes));
        volume.write(&place, Write::Single, &stored).expect("written");
        assert_eq!(volume.size_of(&place), Ok(bytes as u64));
        for lost in 0..3 {
            let mut into = vec![0; bytes];
            let found = volume.read(&place, Read::Single, &mut into);
            assert_eq!(found, Ok(bytes as u64), "{lost} lost");
            assert!(into == stored);
            let target = &volume.targets[volume.shard(&place, lost)];
            target.punch(&volume.place(&place), Punch::Akey, Ack::AsConfigured).expect("punched");
        }
        let mut into = vec![0; bytes];
        assert_eq!(volume.read(&place, Read::Single, &mut into), Err(StoreError::Damaged), "three lost");
    }
    let findings = volume.take_findings();
    assert!(findings[0].contains("dkey blade-7 akey akey--0: partly damaged"), "{findings:?}");
}

#[test]
fn a_value_that_does_not_fit_is_refused() {
    let dir = tempfile::tempdir().expect("a directory");
    let (_pool, mut volume) = volume(dir.path());
    for bytes in [101, 1000, 50_000] {
        volume.write(&at(1), Write::Single, &value(1, bytes)).expect("written");
        assert_eq!(volume.read(&at(1), Read::Single, &mut [0; 100]), Err(StoreError::BufferTooSmall));
    }
}

fn id(class: &str, number: u64) -> ObjectId {
    ObjectId::new(ObjectType::MultiHashed, class.parse().expect("a class"), number)
}

/// Writers that hold room on one target and wait for room on another never wait for each other in a circle, which the clock alone would end.
#[test]
fn a_full_store_says_so_without_waiting_for_a_clock() {
    const REFUSED: u32 = 12;
    for (class, sizes) in
        [("EC_4P2G1", (1 << 20, 0)), ("EC_4P2G1", (1 << 20, 2 << 20)), ("RP_3G1", (1 << 20, 0))]
    {
        let dir = tempfile::tempdir_in("/dev/shm").expect("a directory");
        let (pool, mut volumes) = volumes_of(dir.path(), class, 8, sizes);
        std::thread::scope(|scope| {
            for (number, volume) in (0u64..).zip(&mut volumes) {
                scope.spawn(move || {
                    let own = value(number, 60_000);
                    let (mut refused, mut record) = (0, 0u64);
                    while refused < REFUSED {
                        record += 1;
                        // Some are written over; the first shard of each object is on another target.
                        let key = if record.is_multiple_of(3) { record / 2 } else { record };
                        let (dkey, object) =
                            ((number << 32 | key).to_le_bytes(), id(class, key * 8 + number));
                        let write = if key.is_multiple_of(2) {
                            Write::Single
                        } else {
                            Write::Extent { offset_bytes: 500 }
                        };
                        match volume.write(&At { object, dkey: &dkey, akey: b"a" }, write, &own) {
                            Ok(()) => {}
                            Err(StoreError::ScmFull | StoreError::NvmeFull) => refused += 1,
                            Err(error) => panic!("{class}: {error}"),
                        }
                    }
                });
            }
        });
        let waits: Vec<u64> = pool.targets().iter().map(|target| target.timed_out_waits()).collect();
        assert_eq!(waits, [0; SHARDS], "{class} {sizes:?}: waits that the clock ended");
    }
}

/// Copies that found no room on one target are as they were on all.
#[test]
fn a_copy_that_one_target_has_no_room_for_changes_none() {
    let dir = tempfile::tempdir_in("/dev/shm").expect("a directory");
    let (pool, mut volumes) = volumes_of(dir.path(), "RP_3G1", 1, (1 << 20, 0));
    let volume = &mut volumes[0];
    let (place, old, new) = (at(1), value(1, 30_000), value(2, 30_000));
    volume.write(&place, Write::Single, &old).expect("written");
    // The copy that is written last has no room left.
    let full = pool.target(volume.shard(&place, 0));
    for bytes in [20_000, 500, 1] {
        for number in 0u64.. {
            let other = KeyPath {
                object: ObjectId { lo: 77, hi: 0 },
                dkey: &number.to_le_bytes(),
                ..volume.place(&place)
            };
            let other = KeyPath { akey: &[bytes as u8], ..other };
            if full.update(&other, Write::Single, &vec![1; bytes], Ack::AsConfigured).is_err() {
                break;
            }
        }
    }
    assert_eq!(volume.write(&place, Write::Single, &new), Err(StoreError::ScmFull));
    for shard in 0..3 {
        let target = pool.target(volume.shard(&place, shard));
        let mut into = vec![0; 30_000];
        target.fetch(&volume.place(&place), Read::Single, None, &mut into).expect("there");
        assert!(into == old, "copy {shard} has the new value");
    }
}
