//! A pool on a disk that loses what was not synced, and what its keys hold.

use std::path::PathBuf;
use std::sync::Arc;

use tempfile::TempDir;
use workload::object::{Checksum, Durability};

use super::disk::{Dice, Disk};
use super::image::Image;
use super::promises::{Promises, Value};
use crate::model::{Epoch, ObjectId};
use crate::store::flush::Flusher;
use crate::store::target::Access;
use crate::store::{
    Ack, ContainerId, ContainerProperties, OpenOptions, Place, Pool, PoolOptions, Read, StoreError, Target,
    Write,
};

/// Keys with single values; the rest are parts of arrays.
pub(super) const SINGLES: u32 = 18;
pub(super) const KEYS: u32 = 26;
/// Bytes of a part of an array.
pub(super) const PART_BYTES: usize = 3000;
const PARTS: u32 = 4;
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
        let targets = 1 + dice.below(2) as u32;
        let nvme_bytes = u64::from(targets) * dice.below(2) * (2 << 20);
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

    /// What a cut left, not opened yet.
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
        let (bytes, write) = match key.checked_sub(SINGLES) {
            None => (bytes, Write::Single),
            Some(part) => {
                let offset_bytes = u64::from(part % PARTS) * PART_BYTES as u64;
                (PART_BYTES, Write::Extent { offset_bytes })
            }
        };
        let data = content(key, number, bytes);
        let keys = Keys::of(key);
        self.target_of(key).update(&keys.place(self.container()), write, &data, ack)
    }

    /// The value of a key; what is torn or damaged is a failure.
    pub(super) fn read(&self, key: u32, epoch: Option<Epoch>) -> Value {
        let mut buffer = vec![0; 64 << 10];
        let (read, room) = match key.checked_sub(SINGLES) {
            None => (Read::Single, buffer.len()),
            Some(part) => {
                let offset_bytes = u64::from(part % PARTS) * PART_BYTES as u64;
                (Read::Extent { offset_bytes }, PART_BYTES)
            }
        };
        let (keys, target) = (Keys::of(key), self.target_of(key));
        let found = match target.fetch(&keys.place(self.container()), read, epoch, &mut buffer[..room]) {
            Err(StoreError::NotFound) => return None,
            Ok(found) if found.bytes == 0 => return None,
            Ok(found) => found,
            Err(error) => panic!("key {key} at {epoch:?}: {error}: {:?}", target.take_findings()),
        };
        let value = &buffer[..found.bytes as usize];
        let number = u64::from_le_bytes(*value.first_chunk().expect("a number"));
        assert!(value == content(key, number, value.len()), "key {key} at {epoch:?} is torn");
        Some(number)
    }

    /// Checks all that was promised of a pool that is open.
    pub(super) fn check(&self, promises: &Promises) {
        assert_eq!(self.pool().findings(), [""; 0], "damage was found where there is none");
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
        for key in 0..KEYS {
            let value = self.read(key, None);
            assert!(promises.allows(key, value), "key {key} has {value:?} against {}", promises.of(key));
        }
        let snapshots = self.pool().snapshots(self.container()).expect("snapshots");
        for (epoch, seen) in &promises.snapshots {
            assert!(snapshots.contains(epoch), "snapshot {epoch} is gone");
            for (key, value) in seen {
                assert_eq!(self.read(*key, Some(*epoch)), *value, "key {key} in snapshot {epoch}");
            }
        }
    }
}

/// Where a key lies.
pub(super) struct Keys {
    object: ObjectId,
    dkey: [u8; 8],
    akey: [u8; 1],
}

impl Keys {
    pub(super) fn of(key: u32) -> Self {
        let (object, dkey, akey) = match key.checked_sub(SINGLES) {
            None => (1 + u64::from(key % 2), key / 4, key as u8),
            Some(part) => (7, 100 + part / PARTS, b'x'),
        };
        // Keys of one object and dkey are on one target.
        Self { object: ObjectId { lo: object, hi: 0 }, dkey: u64::from(dkey).to_le_bytes(), akey: [akey] }
    }

    pub(super) fn place(&self, container: ContainerId) -> Place<'_> {
        Place { container, object: self.object, dkey: &self.dkey, akey: &self.akey }
    }
}
