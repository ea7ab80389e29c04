//! A pool on a disk that loses what was not synced, and what its keys hold.

use std::path::PathBuf;
use std::sync::Arc;

use crate::{Checksum, Durability};
use tempfile::TempDir;

use super::disk::{Dice, Disk};
use super::image::Image;
use super::promises::{Promises, Value};
use super::spread::Spread;
use crate::flush::Flusher;
use crate::model::{Epoch, ObjectId};
use crate::storage_target::Access;
use crate::{
    Ack, ContainerId, ContainerProperties, KeyPath, OpenOptions, Pool, PoolOptions, Punch, Read, StoreError,
    Target, Write,
};

/// Keys of one target with single values; the rest are parts of arrays.
pub(super) const SINGLES: u32 = 18;
/// Keys of one target, then those with copies, then those with cells.
const PLAIN: u32 = 26;
const COPIED: u32 = PLAIN + 5;
const CODED: u32 = COPIED + 8;
/// Of those with copies or cells, so many have single values.
const SPREAD_SINGLES: u32 = 3;
/// Bytes of a part of an array.
pub(super) const PART_BYTES: usize = 3000;
pub(super) const PARTS: u32 = 4;
pub(super) const LABEL: &str = "strata";

/// How a pool is made and opened.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scenario {
    pub(super) access: Access,
    pub(super) durability: Durability,
    pub(super) targets: u32,
    pub(super) nvme_bytes: u64,
    pub(super) checksum: Checksum,
}

impl Scenario {
    pub(super) fn of(dice: &mut Dice) -> Self {
        let access = match dice.below(3) {
            0 => Access::Mapped { flusher: Flusher::Recorded, by_msync: false },
            1 => Access::Mapped { flusher: Flusher::Recorded, by_msync: true },
            _ => Access::Direct,
        };
        let durability = match dice.below(4) {
            0 => Durability::Batch,
            1 => Durability::None,
            _ => Durability::Sync,
        };
        let targets = 1 + dice.below(3) as u32;
        // The small one is soon full of holes, and values lie in pieces.
        let nvme_bytes = u64::from(targets) * [0, 2 << 20, 160 << 10][dice.below(3) as usize];
        // What has no checksum shows no tear where nothing orders it.
        let is_off = durability != Durability::None && dice.one_in(6);
        let checksum = if is_off { Checksum::Off } else { Checksum::Crc32 };
        Self { access, durability, targets, nvme_bytes, checksum }
    }

    pub(super) fn open(&self) -> OpenOptions {
        OpenOptions { durability: self.durability, ..OpenOptions::default() }
    }

    pub(super) fn options(&self) -> PoolOptions {
        PoolOptions {
            targets: self.targets,
            scm_bytes: u64::from(self.targets) << 20,
            nvme_bytes: self.nvme_bytes,
            threshold_bytes: 8192,
            open: self.open(),
            uuid: None,
        }
    }
}

/// The bytes of a value.
pub(super) fn content(key: u32, number: u64, bytes: usize) -> Vec<u8> {
    let mut data = number.to_le_bytes().to_vec();
    let mut dice = Dice::new(number << 8 | u64::from(key));
    while data.len() < bytes {
        data.extend_from_slice(&dice.below(u64::MAX).to_le_bytes());
    }
    data.truncate(bytes.max(8));
    data
}

/// A directory, its disk, and the pool while it is open.
pub(super) struct World {
    /// Dropped before the directory goes.
    pub(super) pool: Option<Pool>,
    pub(super) disk: Arc<Disk>,
    pub(super) dir: TempDir,
    pub(super) scenario: Scenario,
}

impl World {
    /// An empty directory.
    pub(super) fn empty(scenario: Scenario, seed: u64, every: u64) -> Self {
        let dir = tempfile::tempdir_in("/dev/shm").expect("a directory");
        let disk = Disk::new(dir.path(), scenario.access, seed, every);
        Self { pool: None, disk, dir, scenario }
    }

    /// A world of the files that a cut left, not opened yet.
    pub(super) fn after(image: &Image, scenario: Scenario, seed: u64, every: u64) -> Self {
        let dir = tempfile::tempdir_in("/dev/shm").expect("a directory");
        image.lay_down(dir.path());
        let disk = Disk::of_image(dir.path(), scenario.access, seed, every, image);
        Self { pool: None, disk, dir, scenario }
    }

    pub(super) fn path(&self) -> PathBuf {
        self.dir.path().join("pool")
    }

    pub(super) fn pool(&self) -> &Pool {
        self.pool.as_ref().expect("open")
    }

    pub(super) fn container(&self) -> ContainerId {
        self.pool().find_container(LABEL).expect("the container").id
    }

    pub(super) fn create(&mut self) {
        self.pool = Some(Pool::create(&self.path(), &self.scenario.options()).expect("a pool"));
    }

    pub(super) fn create_container(&self) {
        let properties = ContainerProperties { checksum: self.scenario.checksum, maker: None };
        self.pool().create_container(LABEL, &properties).expect("a container");
    }

    pub(super) fn target_of(&self, key: u32) -> &Arc<Target> {
        self.pool().target((key % self.scenario.targets) as usize)
    }

    /// Writes a value.
    pub(super) fn write(&self, key: u32, number: u64, bytes: usize, ack: Ack) -> Result<Epoch, StoreError> {
        let (bytes, write) = match part_of(key) {
            None => (bytes, Write::Single),
            Some(part) => {
                let offset_bytes = u64::from(part % PARTS) * PART_BYTES as u64;
                (PART_BYTES, Write::Extent { offset_bytes })
            }
        };
        let data = content(key, number, bytes);
        let keys = Keys::of(key);
        if let Some(spread) = spread_of(key) {
            return self.write_spread((&keys, spread), write, &data, ack).map(|()| 0);
        }
        self.target_of(key).update(&keys.place(self.container()), write, &data, ack)
    }

    /// The value of a key; what is torn or damaged is a failure.
    pub(super) fn read(&self, key: u32, epoch: Option<Epoch>) -> Value {
        let mut buffer = vec![0; 64 << 10];
        let (read, room) = match part_of(key) {
            None => (Read::Single, buffer.len()),
            Some(part) => {
                let offset_bytes = u64::from(part % PARTS) * PART_BYTES as u64;
                (Read::Extent { offset_bytes }, PART_BYTES)
            }
        };
        let keys = Keys::of(key);
        if let Some(spread) = spread_of(key) {
            return self.read_spread(key, (&keys, spread), read, room, epoch);
        }
        let found =
            self.target_of(key).fetch(&keys.place(self.container()), read, epoch, &mut buffer[..room]);
        number_of(key, found.map(|found| found.bytes), &buffer)
    }

    /// Keys that there are enough targets for.
    pub(super) fn keys(&self) -> std::ops::Range<u32> {
        0..match self.scenario.targets {
            1 => PLAIN,
            2 => COPIED,
            _ => CODED,
        }
    }

    /// Removes a single value.
    pub(super) fn punch(&self, key: u32) -> Result<(), StoreError> {
        let keys = Keys::of(key);
        match spread_of(key) {
            Some(spread) => self.punch_spread(&keys, spread),
            None => {
                let place = keys.place(self.container());
                self.target_of(key).punch(&place, Punch::Akey, Ack::AsConfigured).map(drop)
            }
        }
    }

    /// Checks all that was promised of a pool that is open.
    pub(super) fn check(&self, promises: &Promises) {
        let is_damage =
            |line: &&String| !line.ends_with("interrupted updates of several targets were rolled back");
        let damage: Vec<_> = self.pool().findings().iter().filter(is_damage).collect();
        assert_eq!(damage, [""; 0], "undamaged data was reported as damaged");
        let labels: Vec<String> = self.pool().containers().into_iter().map(|facts| facts.label).collect();
        for label in &promises.others {
            assert!(labels.contains(label) || promises.unsure.contains(label), "container {label} is gone");
        }
        for label in labels.iter().filter(|label| *label != LABEL) {
            let is_known = promises.others.contains(label) || promises.unsure.contains(label);
            assert!(is_known, "container {label} is back");
        }
        if !promises.has_container {
            return;
        }
        for key in self.keys() {
            if part_of(key).is_some() && spread_of(key) == Some(Spread::Coded) {
                self.check_parity(key, &Keys::of(key));
            }
            let value = self.read(key, None);
            assert!(promises.allows(key, value), "key {key} has {value:?} against {}", promises.of(key));
        }
        let snapshots = self.pool().snapshots(self.container()).expect("snapshots");
        for (epoch, seen) in &promises.snapshots {
            assert!(snapshots.contains(epoch), "snapshot {epoch} is gone");
            // Cells are read at the latest epoch alone.
            for (key, value) in seen.iter().filter(|(key, _)| spread_of(**key) != Some(Spread::Coded)) {
                assert_eq!(self.read(*key, Some(*epoch)), *value, "key {key} in snapshot {epoch}");
            }
        }
    }
}

/// Which part of an array a key is.
pub(super) fn part_of(key: u32) -> Option<u32> {
    match key {
        0..PLAIN => key.checked_sub(SINGLES),
        PLAIN..COPIED => (key - PLAIN).checked_sub(SPREAD_SINGLES),
        _ => (key - COPIED).checked_sub(SPREAD_SINGLES),
    }
}

/// How a key lies on several targets.
fn spread_of(key: u32) -> Option<Spread> {
    match key {
        0..PLAIN => None,
        PLAIN..COPIED => Some(Spread::Copied),
        _ => Some(Spread::Coded),
    }
}

/// The number of a value that was read; what is torn or damaged is a failure.
pub(super) fn number_of(key: u32, found: Result<u64, StoreError>, buffer: &[u8]) -> Value {
    let bytes = match found {
        Err(StoreError::NotFound) | Ok(0) => return None,
        Ok(bytes) => bytes as usize,
        Err(error) => panic!("key {key}: {error}"),
    };
    let value = &buffer[..bytes];
    let number = u64::from_le_bytes(*value.first_chunk().expect("a number"));
    assert!(value == content(key, number, value.len()), "key {key} is torn");
    Some(number)
}

/// Where a key lies.
pub(super) struct Keys {
    pub(super) object: ObjectId,
    pub(super) dkey: [u8; 8],
    akey: [u8; 1],
}

impl Keys {
    pub(super) fn of(key: u32) -> Self {
        let (object, dkey, akey) = match part_of(key) {
            None => (1 + u64::from(key % 2), key / 4, key as u8),
            Some(part) => (7, 100 + part / PARTS, b'x'),
        };
        // Keys of one object and dkey are on the same targets.
        let object = spread_of(key).map_or(ObjectId { lo: object, hi: 0 }, |spread| spread.object(object));
        Self { object, dkey: u64::from(dkey).to_le_bytes(), akey: [akey] }
    }

    pub(super) fn place(&self, container: ContainerId) -> KeyPath<'_> {
        KeyPath { container, object: self.object, dkey: &self.dkey, akey: &self.akey }
    }
}
