//! Defects that kills of processes do not show, one by one.

use crate::{Checksum, Durability};

use super::disk::Hook;
use super::world::{Keys, LABEL, Scenario, World, content};
use crate::flush::Flusher;
use crate::medium::{Direct, Medium as _};
use crate::storage_target::Access;
use crate::{Ack, Pool, StoreError, Write};

/// Cuts of one moment: each leaves something else.
const CUTS: u64 = 40;

const MSYNC: Access = Access::Mapped { flusher: Flusher::Recorded, by_msync: true };
const FLUSHED: Access = Access::Mapped { flusher: Flusher::Recorded, by_msync: false };

fn world(access: Access, durability: Durability, nvme_bytes: u64) -> World {
    let scenario = Scenario { access, durability, targets: 1, nvme_bytes, checksum: Checksum::Crc32 };
    let mut world = World::empty(scenario, 7, 0);
    world.create();
    world.create_container();
    world
}

/// Cuts the power now, again and again, and looks at what is there.
fn at_each_cut(world: &World, look: impl Fn(&World)) {
    for seed in 0..CUTS {
        let mut after = World::after(&world.disk.cut(), world.scenario, seed, 0);
        let opened = Pool::open(&after.path(), &after.scenario.open());
        after.pool = Some(opened.unwrap_or_else(|error| panic!("cut {seed}: {error}")));
        assert_eq!(after.pool().findings(), [""; 0], "cut {seed}");
        look(&after);
    }
}

#[test]
fn a_pool_that_was_made_is_there() {
    for access in [MSYNC, FLUSHED, Access::Direct] {
        let world = world(access, Durability::Sync, 1 << 20);
        at_each_cut(&world, |after| assert!(after.pool().find_container(LABEL).is_some()));
    }
}

#[test]
fn msync_reaches_every_segment_that_a_commit_is_about() {
    let world = world(MSYNC, Durability::Sync, 0);
    let keys = Keys::of(0);
    let target = world.target_of(0);
    let mut early = target.reserve(&keys.place(world.container()), Write::Single, 40_000).expect("room");
    // The segment of the reservation is full long before it is filled and published.
    for number in 2..8 {
        world.write(1, number, 50_000, Ack::AsConfigured).expect("written");
    }
    // The first and the last of the commit lie elsewhere.
    world.write(2, 10, 100, Ack::Deferred).expect("written");
    early.copy_from_slice(&content(0, 1, 40_000));
    early.publish(Ack::Deferred).expect("published");
    world.write(3, 11, 100, Ack::Deferred).expect("written");
    target.commit().expect("committed");
    at_each_cut(&world, |after| {
        let found = [0, 1, 2, 3].map(|key| after.read(key, None));
        assert_eq!(found, [Some(1), Some(7), Some(10), Some(11)]);
    });
}

#[test]
fn values_in_a_mapped_data_file_are_durable_with_the_commit_and_with_the_close() {
    for durability in [Durability::Batch, Durability::None] {
        let mut world = world(MSYNC, durability, 2 << 20);
        world.write(0, 1, 30_000, Ack::AsConfigured).expect("written");
        match durability {
            Durability::Batch => world.target_of(0).commit().expect("committed"),
            _ => world.pool.take().expect("open").close().expect("closed"),
        }
        at_each_cut(&world, |after| assert_eq!(after.read(0, None), Some(1), "{durability:?}"));
    }
}

#[test]
fn a_sync_that_failed_breaks_the_target() {
    for access in [MSYNC, Access::Direct] {
        let mut world = world(access, Durability::Sync, 0);
        world.write(0, 1, 100, Ack::AsConfigured).expect("written");
        world.disk.fail_a_sync(0);
        assert_eq!(world.write(1, 2, 100, Ack::AsConfigured), Err(StoreError::System(libc::EIO)));
        // The kernel would say that all is well: what failed counts as written.
        let refused = |world: &World, ack| assert_eq!(world.write(2, 3, 100, ack), Err(StoreError::Broken));
        refused(&world, Ack::AsConfigured);
        refused(&world, Ack::Deferred);
        assert_eq!(world.read(0, None), Some(1), "acknowledged data can be read");
        assert!(world.pool.take().expect("open").close().is_err(), "{access:?}: it was not saved");
        at_each_cut(&world, |after| {
            assert_eq!((after.read(0, None), after.read(2, None)), (Some(1), None), "{access:?}");
            after.write(2, 4, 100, Ack::AsConfigured).expect("opened again, it works");
        });
    }
}

#[test]
fn the_cleaner_frees_no_segment_under_a_reader() {
    let world = world(Access::Direct, Durability::Sync, 0);
    // The first record of the first segment, which is read from the file once others were begun.
    world.write(0, 1, 900, Ack::AsConfigured).expect("written");
    for number in 2..8 {
        world.write(1, number, 50_000, Ack::AsConfigured).expect("written");
    }
    let (target, container) = (world.target_of(0).clone(), world.container());
    world.disk.at_next_read(Hook(Box::new(move || {
        let keys = Keys::of(0);
        let (place, data) = (keys.place(container), content(0, 9, 900));
        target.update(&place, Write::Single, &data, Ack::AsConfigured).expect("written");
        let freed = target.aggregate(container, None, true).expect("aggregated").segments_freed;
        assert!(freed > 0, "nothing was freed under the reader");
    })));
    assert_eq!(world.read(0, None), Some(1), "the reader began before");
    assert_eq!(world.read(0, None), Some(9));
    assert_eq!(world.target_of(0).take_findings(), [""; 0]);
}

#[test]
fn a_punch_outlasts_what_it_removed() {
    // Freed one by one, the segment of the punch may go before that of the value.
    for seed in 0..6 {
        let world = world(Access::Direct, Durability::Sync, 0);
        for number in 1..4 {
            world.write(0, number, 40_000, Ack::AsConfigured).expect("written");
        }
        let keys = Keys::of(0);
        let punched =
            world.target_of(0).punch(&keys.place(world.container()), crate::Punch::Akey, Ack::AsConfigured);
        punched.expect("punched");
        world.write(1, 5, 50_000, Ack::AsConfigured).expect("written");
        world.disk.cut_every(2 + seed);
        world.target_of(0).aggregate(world.container(), None, true).expect("aggregated");
        for image in world.disk.take_cuts() {
            let mut after = World::after(&image, world.scenario, seed, 0);
            after.pool = Some(Pool::open(&after.path(), &after.scenario.open()).expect("opens"));
            assert_eq!((after.read(0, None), after.read(1, None)), (None, Some(5)));
        }
    }
}

#[test]
fn buffered_writes_are_not_called_direct() {
    // A file of a file system that has no direct I/O.
    let buffered = Direct::new(std::path::Path::new("/proc/self/comm")).expect("opened");
    assert_eq!(buffered.durable_by(), "buffered writes and fdatasync");
}
