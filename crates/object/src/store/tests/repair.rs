//! Updates of erasure-coded values that were cut off between two cells.

use tempfile::TempDir;
use workload::object::{Checksum, ObjectClass, ObjectType};

use super::support::{Ground, MIB, content};
use crate::erasure::{TAG_BYTES, Tag};
use crate::model::ObjectId;
use crate::placement::Placement;
use crate::store::{
    Ack, ContainerId, ContainerProperties, OpenOptions, Place, Pool, PoolOptions, Punch, Read, StoreError,
    Write,
};

const SHARDS: usize = 5;
const CELL_BYTES: usize = 640;

/// A pool for `EC_4P1`, with a group of shards for one object.
struct Coded {
    dir: TempDir,
    pool: Option<Pool>,
    container: ContainerId,
    object: ObjectId,
    placement: Placement,
}

impl Coded {
    fn new() -> Self {
        let dir = Ground::Memory.scratch();
        let options = PoolOptions { scm_bytes: 20 * MIB, targets: SHARDS as u32, ..PoolOptions::default() };
        let pool = Pool::create(&dir.path().join("pool"), &options).expect("a pool");
        let properties = ContainerProperties { checksum: Checksum::Crc32, maker: None };
        let container = pool.create_container("strata", &properties).expect("a container");
        let class: ObjectClass = "EC_4P1G1".parse().expect("a class");
        let object = ObjectId::new(ObjectType::MultiHashed, class, 1);
        let placement = Placement::new(class, SHARDS as u32).expect("enough targets");
        Self { dir, pool: Some(pool), container, object, placement }
    }

    fn pool(&self) -> &Pool {
        self.pool.as_ref().expect("open")
    }

    fn number(&self, shard: usize) -> usize {
        self.placement.target(self.object, 0, shard as u32) as usize
    }

    fn place<'a>(&self, dkey: &'a str) -> Place<'a> {
        Place { container: self.container, object: self.object, dkey: dkey.as_bytes(), akey: b"a" }
    }

    /// Writes cells of update `stamp` to the first shards.
    fn write(&self, dkey: &str, stamp: u64, shards: usize) {
        self.write_as(dkey, stamp, shards, Ack::AsConfigured);
    }

    fn write_as(&self, dkey: &str, stamp: u64, shards: usize, ack: Ack) {
        for shard in 0..shards {
            let mut cell = content(stamp * 8 + shard as u64, CELL_BYTES);
            cell.extend(Tag { value_bytes: 4 * CELL_BYTES as u64, stamp }.encode());
            let target = self.pool().target(self.number(shard));
            target.update(&self.place(dkey), Write::Single, &cell, ack).expect("written");
        }
    }

    /// Which update the cell of each shard is of; 0: there is none.
    fn stamps(&self, dkey: &str) -> [u64; SHARDS] {
        std::array::from_fn(|shard| {
            let mut cell = [0; CELL_BYTES + TAG_BYTES];
            let target = self.pool().target(self.number(shard));
            match target.fetch(&self.place(dkey), Read::Single, None, &mut cell) {
                Ok(_) => {
                    let (cell, tag) = Tag::split(&cell).expect("a tag");
                    assert_eq!(cell, content(tag.stamp * 8 + shard as u64, CELL_BYTES));
                    tag.stamp
                }
                Err(StoreError::NotFound) => 0,
                Err(error) => panic!("shard {shard}: {error}"),
            }
        })
    }

    /// The update before the latest change of each shard; 0: nothing is left of it.
    fn before(&self, dkey: &str) -> [u64; SHARDS] {
        std::array::from_fn(|shard| {
            let target = self.pool().target(self.number(shard));
            let mut cell = [0; CELL_BYTES + TAG_BYTES];
            let mut read = |epoch| target.fetch(&self.place(dkey), Read::Single, epoch, &mut cell).ok();
            let latest = read(None).map_or(self.pool().epoch() + 1, |found| found.epoch);
            let earlier = (1..latest).rev().find_map(|epoch| read(Some(epoch)));
            earlier.and_then(|_| Tag::split(&cell)).map_or(0, |(_, tag)| tag.stamp)
        })
    }

    fn reopen(&mut self, is_clean: bool) {
        let pool = self.pool.take().expect("open");
        if is_clean {
            pool.close().expect("closed");
        } else {
            drop(pool);
        }
        let options = OpenOptions::default();
        self.pool = Some(Pool::open(&self.dir.path().join("pool"), &options).expect("opens again"));
    }

    fn aggregate(&self) {
        for target in self.pool().targets() {
            target.aggregate(self.container, None, true).expect("aggregated");
        }
    }
}

#[test]
fn too_few_cells_are_taken_back_and_enough_of_them_stay() {
    for cells in 0..=SHARDS {
        let mut coded = Coded::new();
        coded.write("kept", 1, SHARDS);
        coded.write("torn", 2, SHARDS);
        coded.write("torn", 3, cells);
        coded.reopen(false);
        let expected =
            if cells < 4 { [2; SHARDS] } else { std::array::from_fn(|at| 2 + u64::from(at < cells)) };
        assert_eq!((coded.stamps("kept"), coded.stamps("torn")), ([1; SHARDS], expected), "{cells} cells");
        let taken_back = "1 updates of erasure-coded values were cut off, and taken back";
        let findings: &[&str] = if (1..4).contains(&cells) { &[taken_back] } else { &[] };
        assert_eq!(coded.pool().findings(), findings, "{cells} cells");
        // What was taken back stays so, and is not missed when old versions go.
        coded.aggregate();
        coded.reopen(false);
        assert_eq!((coded.stamps("kept"), coded.stamps("torn")), ([1; SHARDS], expected), "{cells} cells");
        assert_eq!(coded.pool().findings(), [""; 0]);
        coded.write("torn", 4, SHARDS);
        assert_eq!(coded.stamps("torn"), [4; SHARDS]);
    }
}

#[test]
fn a_first_update_and_several_that_were_cut_off() {
    let mut coded = Coded::new();
    coded.write("first", 1, 2);
    coded.write("twice", 2, SHARDS);
    coded.write("twice", 3, 2);
    coded.write("twice", 4, 3);
    coded.reopen(false);
    assert_eq!((coded.stamps("first"), coded.stamps("twice")), ([0; SHARDS], [2; SHARDS]));
    assert_eq!(coded.pool().findings(), ["3 updates of erasure-coded values were cut off, and taken back"]);
}

#[test]
fn what_was_closed_is_left_as_it_was() {
    let mut coded = Coded::new();
    coded.write("torn", 1, SHARDS);
    coded.write("torn", 2, 3);
    coded.reopen(true);
    assert_eq!((coded.stamps("torn"), coded.pool().findings().len()), ([2, 2, 2, 1, 1], 0));
    // Aggregation leaves the value before, and a kill takes the rest back.
    coded.aggregate();
    coded.reopen(false);
    assert_eq!((coded.stamps("torn"), coded.pool().findings().len()), ([1; SHARDS], 1));
}

#[test]
fn aggregation_leaves_what_an_update_that_was_cut_off_has_not_replaced() {
    for punches in [false, true] {
        for reached in 1..SHARDS {
            let mut coded = Coded::new();
            coded.write("torn", 1, SHARDS);
            coded.write("torn", 2, SHARDS);
            // A client dies after some of the cells; the store goes on, and aggregates more than once.
            if punches {
                for shard in 0..reached {
                    let target = coded.pool().target(coded.number(shard));
                    target.punch(&coded.place("torn"), Punch::Akey, Ack::AsConfigured).expect("punched");
                }
            } else {
                coded.write("torn", 3, reached);
            }
            coded.aggregate();
            coded.aggregate();
            let epochs = coded.before("torn");
            let behind: Vec<u64> = epochs.into_iter().take(reached).collect();
            assert_eq!(behind, vec![2; reached], "{reached} cells, punched: {punches}");
            // What is replaced everywhere goes.
            coded.write("torn", 4, SHARDS);
            coded.aggregate();
            assert_eq!((coded.stamps("torn"), coded.before("torn")), ([4; SHARDS], [0; SHARDS]));
            coded.reopen(false);
            assert_eq!(coded.stamps("torn"), [4; SHARDS]);
        }
    }
}

#[test]
fn an_acknowledged_value_is_read_after_aggregation_and_a_kill() {
    let mut coded = Coded::new();
    coded.write("torn", 1, SHARDS);
    coded.write("torn", 2, 2);
    coded.aggregate();
    coded.reopen(false);
    assert_eq!(coded.stamps("torn"), [1; SHARDS], "the update that was cut off is taken back");
}

/// What is in the log of one target may be lost on another, as long as it waits for a commit there.
#[test]
fn aggregation_leaves_what_the_other_shards_may_go_back_to() {
    let mut coded = Coded::new();
    coded.write("key", 1, SHARDS);
    coded.write_as("key", 2, SHARDS, Ack::Deferred);
    for shard in 0..2 {
        let target = coded.pool().target(coded.number(shard));
        target.aggregate(coded.container, None, true).expect("aggregated");
    }
    coded.reopen(false);
    let stamps = coded.stamps("key");
    let most = [1, 2].map(|stamp| stamps.iter().filter(|&&own| own == stamp).count()).into_iter().max();
    assert!(most >= Some(4), "neither value is whole: {stamps:?}");
}
