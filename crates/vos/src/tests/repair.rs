//! Changes of several targets that were cut off between two of them.

use crate::{Checksum, ObjectClass, ObjectType};
use tempfile::TempDir;

use super::support::{Ground, MIB, content};
use crate::coded::{Coded as Coder, Group};
use crate::erasure::{TAG_BYTES, Tag};
use crate::model::ObjectId;
use crate::placement::Placement;
use crate::{
    Ack, ContainerId, ContainerProperties, Held, KeyPath, OpenOptions, Pool, PoolOptions, Punch, Read,
    StoreError, Write, update_all,
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

    fn place<'a>(&self, dkey: &'a str) -> KeyPath<'a> {
        KeyPath { container: self.container, object: self.object, dkey: dkey.as_bytes(), akey: b"a" }
    }

    /// Updates a value; fewer cells than all: it is cut off after them.
    fn write(&self, dkey: &str, stamp: u64, cells: usize) {
        let order = self.pool().order();
        let turn = order.of(self.object, dkey.as_bytes());
        self.write_in(&turn, dkey, stamp, cells, Ack::AsConfigured);
        if cells == SHARDS {
            turn.end();
        }
    }

    /// The same, and the medium lost the other cells.
    fn write_and_lose(&self, dkey: &str, stamp: u64, cells: usize) {
        let turn = self.pool().order().of(self.object, dkey.as_bytes());
        self.write_in(&turn, dkey, stamp, cells, Ack::AsConfigured);
        turn.end();
    }

    fn write_in(&self, turn: &Held<'_>, dkey: &str, stamp: u64, cells: usize, ack: Ack) {
        let transaction = turn.begin(SHARDS).expect("begun");
        for shard in 0..cells {
            let mut cell = content(stamp * 8 + shard as u64, CELL_BYTES);
            cell.extend(Tag { value_bytes: 4 * CELL_BYTES as u64, stamp }.encode());
            let target = self.pool().target(self.number(shard));
            let written = target.update_in(&self.place(dkey), Write::Single, &cell, ack, transaction);
            written.expect("written");
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
fn what_was_cut_off_is_taken_back_however_much_of_it_there_is() {
    for cells in 0..=SHARDS {
        let mut coded = Coded::new();
        coded.write("kept", 1, SHARDS);
        coded.write("torn", 2, SHARDS);
        coded.write("torn", 3, cells);
        coded.reopen(false);
        let expected = [if cells < SHARDS { 2 } else { 3 }; SHARDS];
        assert_eq!((coded.stamps("kept"), coded.stamps("torn")), ([1; SHARDS], expected), "{cells} cells");
        let taken_back = "1 interrupted updates of several targets were rolled back";
        let findings: &[&str] = if (1..SHARDS).contains(&cells) { &[taken_back] } else { &[] };
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
    coded.write_and_lose("twice", 3, 2);
    coded.write("twice", 4, 3);
    coded.reopen(false);
    assert_eq!((coded.stamps("first"), coded.stamps("twice")), ([0; SHARDS], [2; SHARDS]));
    assert_eq!(coded.pool().findings(), ["3 interrupted updates of several targets were rolled back"]);
}

/// Parity of a later update counts on the cells of the earlier one.
#[test]
fn what_was_built_on_it_goes_with_it() {
    let mut coded = Coded::new();
    for dkey in ["one", "other"] {
        coded.write(dkey, 1, SHARDS);
    }
    coded.write_and_lose("one", 2, 3);
    coded.write("one", 3, SHARDS);
    coded.write("other", 4, SHARDS);
    coded.reopen(false);
    assert_eq!((coded.stamps("one"), coded.stamps("other")), ([1; SHARDS], [4; SHARDS]));
    coded.reopen(false);
    assert_eq!((coded.stamps("one"), coded.stamps("other")), ([1; SHARDS], [4; SHARDS]));
    assert_eq!(coded.pool().findings(), [""; 0]);
}

#[test]
fn what_could_be_neither_made_nor_taken_back_is_not_kept_by_a_close() {
    let mut coded = Coded::new();
    coded.write("torn", 1, SHARDS);
    coded.write("torn", 2, 3);
    // Nothing is built on it meanwhile.
    let turn = coded.pool().order().of(coded.object, b"torn");
    assert_eq!(turn.begin(SHARDS), Err(StoreError::Broken));
    drop(turn);
    coded.aggregate();
    coded.reopen(true);
    assert_eq!((coded.stamps("torn"), coded.pool().findings().len()), ([1; SHARDS], 1));
}

#[test]
fn aggregation_passes_no_epoch_at_which_a_value_is_not_whole() {
    for punches in [false, true] {
        for reached in 1..SHARDS {
            let mut coded = Coded::new();
            for stamp in [1, 2] {
                coded.write("torn", stamp, SHARDS);
                coded.write("whole", stamp, SHARDS);
            }
            // It is cut off after some of the cells, and the store is aggregated more than once before it is killed.
            if punches {
                let turn = coded.pool().order().of(coded.object, b"torn");
                let transaction = turn.begin(SHARDS).expect("begun");
                for shard in 0..reached {
                    let target = coded.pool().target(coded.number(shard));
                    let place = coded.place("torn");
                    target.punch_in(&place, Punch::Akey, Ack::AsConfigured, transaction).expect("punched");
                }
            } else {
                coded.write("torn", 3, reached);
            }
            coded.aggregate();
            coded.aggregate();
            let behind: Vec<u64> = coded.before("torn").into_iter().take(reached).collect();
            assert_eq!(behind, vec![2; reached], "{reached} cells, punched: {punches}");
            // What was replaced everywhere before it is gone.
            assert_eq!((coded.stamps("whole"), coded.before("whole")), ([2; SHARDS], [0; SHARDS]));
            coded.reopen(false);
            assert_eq!((coded.stamps("torn"), coded.stamps("whole")), ([2; SHARDS], [2; SHARDS]));
        }
    }
}

/// Records in the log of one target may be lost on another, as long as they wait for a commit there.
#[test]
fn aggregation_leaves_what_the_other_shards_may_go_back_to() {
    let mut coded = Coded::new();
    coded.write("key", 1, SHARDS);
    let turn = coded.pool().order().of(coded.object, b"key");
    coded.write_in(&turn, "key", 2, SHARDS, Ack::Deferred);
    turn.end();
    drop(turn);
    for shard in 0..2 {
        let target = coded.pool().target(coded.number(shard));
        target.aggregate(coded.container, None, true).expect("aggregated");
    }
    coded.reopen(false);
    let stamps = coded.stamps("key");
    assert!(stamps == [1; SHARDS] || stamps == [2; SHARDS], "neither value is whole: {stamps:?}");
}

/// A cell that is missing because a log is damaged is no reason to take back what was acknowledged.
#[test]
fn damage_is_no_cut() {
    use std::os::unix::fs::FileExt as _;
    let mut coded = Coded::new();
    coded.write("key", 1, SHARDS);
    coded.write("key", 2, SHARDS);
    coded.write("after", 3, SHARDS);
    drop(coded.pool.take());
    let log = coded.dir.path().join("pool").join(format!("target.{}", coded.number(1))).join("log");
    let file = std::fs::OpenOptions::new().read(true).write(true).open(log).expect("a log");
    let mut bytes = vec![0; file.metadata().expect("there").len() as usize];
    file.read_exact_at(&mut bytes, 0).expect("read");
    let cell = content(2 * 8 + 1, CELL_BYTES);
    let at = bytes.windows(64).position(|window| window == &cell[..64]).expect("its cell");
    // The header of the record, and with it all of it.
    let record = at / 64 * 64;
    let from =
        (0..4).map(|lines| record - lines * 64).find(|at| bytes[at + 4] == 1 && bytes[*at..at + 4] != [0; 4]);
    file.write_all_at(&[0xee; 64], from.expect("a header") as u64).expect("written");
    let pool = Pool::open(&coded.dir.path().join("pool"), &OpenOptions::default()).expect("opens");
    assert!(pool.findings().iter().all(|line| !line.contains("rolled back")), "{:?}", pool.findings());
    assert!(pool.findings().iter().any(|line| line.contains("damaged")), "{:?}", pool.findings());
    coded.pool = Some(pool);
    let mut expected = [2; SHARDS];
    expected[1] = 1;
    assert_eq!((coded.stamps("key"), coded.stamps("after")), (expected, [3; SHARDS]));
}

#[test]
fn copies_that_a_kill_cut_off_are_the_same_again() {
    let mut coded = Coded::new();
    let class: ObjectClass = "RP_3G1".parse().expect("a class");
    let object = ObjectId::new(ObjectType::MultiHashed, class, 2);
    let placement = Placement::new(class, SHARDS as u32).expect("enough targets");
    let numbers: Vec<usize> = (0..3).map(|shard| placement.target(object, 0, shard) as usize).collect();
    let place = KeyPath { container: coded.container, object, dkey: b"d", akey: b"a" };
    let write = Write::Extent { offset_bytes: 0 };
    for cells in 1..3 {
        let pool = coded.pool();
        let targets: Vec<_> = numbers.iter().map(|number| pool.target(*number)).collect();
        let turn = pool.order().of(object, b"d");
        update_all(&turn, place, &targets, (write, &content(1, 5000)), Ack::AsConfigured).expect("written");
        let transaction = turn.begin(3).expect("begun");
        for target in &targets[..cells] {
            let part = (Write::Extent { offset_bytes: 1000 }, content(2, 2000));
            target.update_in(&place, part.0, &part.1, Ack::AsConfigured, transaction).expect("written");
        }
        drop(turn);
        let report = {
            drop(coded.pool.take());
            Pool::check(&coded.dir.path().join("pool")).expect("examined")
        };
        assert!(
            report.is_clean() && report.notes.iter().any(|note| note.contains("interrupted by")),
            "{report:#?}"
        );
        coded.pool =
            Some(Pool::open(&coded.dir.path().join("pool"), &OpenOptions::default()).expect("opens"));
        for number in &numbers {
            let mut into = vec![0; 5000];
            let read = Read::Extent { offset_bytes: 0 };
            coded.pool().target(*number).fetch(&place, read, None, &mut into).expect("there");
            assert!(into == content(1, 5000), "{cells} copies, target {number}");
        }
    }
}

/// One that some targets have noted is carried out on all.
#[test]
fn a_discard_that_was_cut_off_is_finished() {
    let mut coded = Coded::new();
    coded.write("key", 1, SHARDS);
    let epoch = coded.pool().snapshot(coded.container).expect("a snapshot");
    coded.pool().destroy_snapshot(coded.container, epoch).expect("destroyed");
    coded.write("key", 2, SHARDS);
    let last = coded.pool().epoch();
    coded.write("later", 3, SHARDS);
    for target in coded.pool().targets().iter().take(2) {
        target.settle_up_to(coded.container, last).expect("settled");
        target.discard(coded.container, epoch..=last).expect("noted");
    }
    coded.reopen(false);
    for _ in 0..2 {
        assert_eq!((coded.stamps("key"), coded.stamps("later")), ([1; SHARDS], [3; SHARDS]));
        assert_eq!(coded.pool().findings(), [""; 0]);
        coded.aggregate();
        coded.reopen(false);
    }
}

/// Parity that was computed from a part of a stripe which the medium lost altogether fits nothing.
#[test]
fn what_was_computed_from_something_lost_goes_too() {
    let mut coded = Coded::new();
    let place = KeyPath { dkey: b"array", ..coded.place("") };
    let pool = coded.pool();
    let placement = coded.placement;
    let group = Group::of(pool, &placement, place, Ack::AsConfigured, None);
    let mut coder = Coder::new(4, 1, 0);
    let write = |coder: &mut Coder, offset_bytes, seed| {
        coder.write(&group, Write::Extent { offset_bytes }, &content(seed, 700)).expect("written");
        pool.epoch()
    };
    write(&mut coder, 0, 1);
    let before = pool.epoch();
    let lost = before + 1..=write(&mut coder, 1200, 2);
    write(&mut coder, 2400, 3);
    write(&mut coder, 3300, 4);
    // All of its records, as if they had never been.
    for target in pool.targets() {
        target.lose(coded.container, lost.clone());
    }
    coded.reopen(false);
    assert_eq!(coded.pool().findings(), ["2 interrupted updates of several targets were rolled back"]);
    coded.pool.take().expect("open").close().expect("closed");
    let report = Pool::check(&coded.dir.path().join("pool")).expect("examined");
    assert!(report.is_clean(), "{report:#?}");
}
