//! Arguments and results of operations of the store.

use crate::Checksum;

use crate::model::{Epoch, ObjectId};

/// Number of a container in its pool. Never given twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
pub struct ContainerId(pub u32);

/// Properties that a container is made with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ContainerProperties {
    /// Checksum of its data.
    pub checksum: Checksum,
    /// The run that makes it, which may end it ([`super::Pool::end_run`]); none: it is a person's.
    pub maker: Option<u64>,
}

/// Where a value lies. Keys are at most 65535 bytes, and may be empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyPath<'a> {
    /// Container.
    pub container: ContainerId,
    /// Object.
    pub object: ObjectId,
    /// Distribution key.
    pub dkey: &'a [u8],
    /// Attribute key.
    pub akey: &'a [u8],
}

/// Value that an update writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Write {
    /// The single value of the akey, as a whole.
    Single,
    /// Records of one byte from here on.
    Extent {
        /// First byte under the akey.
        offset_bytes: u64,
    },
}

/// Range that a fetch reads: as many bytes as its buffer has, or the single value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Read {
    /// The single value of the akey. The buffer must hold it whole.
    Single,
    /// Bytes from here on.
    Extent {
        /// First byte under the akey.
        offset_bytes: u64,
    },
}

/// When a change is acknowledged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ack {
    /// As the pool was opened ([`super::OpenOptions::durability`]).
    #[default]
    AsConfigured,
    /// At the next [`super::Target::commit`]: changes of a batch share a sync. Readers see it at once.
    Deferred,
}

/// Scope of a punch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Punch {
    /// Bytes of an array (they become a hole).
    Record {
        /// First byte.
        offset_bytes: u64,
        /// Bytes.
        bytes: u64,
    },
    /// The akey with its single value or all its records.
    Akey,
    /// The dkey with all its akeys; [`KeyPath::akey`] is not looked at.
    Dkey,
    /// The object with all its dkeys; [`KeyPath::dkey`] and [`KeyPath::akey`] are not looked at.
    Object,
}

/// Result of a fetch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fetched {
    /// Single value: its size. Extent: bytes that are stored; the rest of the buffer (holes) is zero.
    pub bytes: u64,
    /// Extent: where in the buffer the last stored byte ends: what a short read returns. Single value: its size.
    pub end_bytes: u64,
    /// Latest epoch among what was read.
    pub epoch: Epoch,
}

/// Largest integer dkey of an object, and the end of the array under it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Largest {
    /// The largest of its dkeys that have 8 bytes, as a little-endian number.
    pub dkey: u64,
    /// End of the records under the akey asked for, in bytes; 0 where there are none.
    pub end_bytes: u64,
}

/// An extent that a listing found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FoundExtent {
    /// First byte.
    pub offset_bytes: u64,
    /// Bytes.
    pub bytes: u64,
    /// Epoch of the update.
    pub epoch: Epoch,
}

/// Result of an iteration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Iterated {
    /// Objects.
    pub objects: u64,
    /// Dkeys.
    pub dkeys: u64,
    /// Akeys.
    pub akeys: u64,
    /// Single values and extents.
    pub records: u64,
}

/// Result of an aggregation, a discard or a collection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Aggregated {
    /// Versions that were dropped.
    pub versions_dropped: u64,
    /// Bytes of live records that were moved out of segments, to free them.
    pub moved_bytes: u64,
    /// Segments of the log that were freed.
    pub segments_freed: u64,
    /// Bytes of the data file that were freed.
    pub nvme_freed_bytes: u64,
}

impl std::ops::AddAssign for Aggregated {
    fn add_assign(&mut self, other: Self) {
        self.versions_dropped += other.versions_dropped;
        self.moved_bytes += other.moved_bytes;
        self.segments_freed += other.segments_freed;
        self.nvme_freed_bytes += other.nvme_freed_bytes;
    }
}

/// Space of a target or of a pool, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SpaceInfo {
    /// Log.
    pub scm_bytes: u64,
    /// Of it free: segments that hold nothing, and the rest of the one being written.
    pub scm_free_bytes: u64,
    /// Data file.
    pub nvme_bytes: u64,
    /// Of it free.
    pub nvme_free_bytes: u64,
    /// Memory of the index.
    pub index_bytes: u64,
    /// Keys (akeys) in the index.
    pub keys: u64,
    /// Taken from the file system since space was last prepared for a phase ([`Pool::stock`](super::Pool::stock)), or since it was opened.
    pub grown_bytes: u64,
}

/// Space of a container of a pool, in all targets together: of replicated and erasure-coded objects every copy and cell.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct ContainerUsage {
    /// Label; none of one that was destroyed, whose space was not collected yet.
    pub label: Option<String>,
    /// Number.
    pub number: u32,
    /// Objects (of each target).
    pub objects: u64,
    /// Keys (akeys).
    pub keys: u64,
    /// Values and parts of arrays of the latest epoch.
    pub values: u64,
    /// Their bytes.
    pub value_bytes: u64,
    /// Bytes of values that snapshots alone show.
    pub snapshot_bytes: u64,
    /// Bytes of values that nobody sees any more: aggregation (of a destroyed container: collection) frees them.
    pub reclaimable_bytes: u64,
    /// Bytes of log beside the values: headers, keys, checksums, punches.
    pub overhead_bytes: u64,
}

/// Space of a pool.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct PoolUsage {
    /// By container.
    pub containers: Vec<ContainerUsage>,
    /// Bytes of log that nothing refers to any more: cleaning gives them back.
    pub dead_bytes: u64,
}

/// Where a listing stands. Stable: keys that are there from the first call to the last are listed exactly once, whatever is added or
/// removed between.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Anchor {
    pub(super) hash: u64,
    pub(super) ties: u32,
    pub(super) is_end: bool,
}

impl Anchor {
    /// Before the first key.
    pub const START: Self = Self { hash: 0, ties: 0, is_end: false };

    /// Before the keys whose hash ([`Anchor::hash_of`]) is not below this one: listings come in the order of hashes.
    #[must_use]
    pub const fn from_hash(hash: u64) -> Self {
        Self { hash, ties: 0, is_end: false }
    }

    /// Hash that a dkey is listed by.
    #[must_use]
    pub fn hash_of(dkey: &[u8]) -> u64 {
        crate::index::Hashes::of(dkey, &[]).dkey
    }

    /// Whether everything has been listed.
    #[must_use]
    pub fn is_end(&self) -> bool {
        self.is_end
    }

    /// For the wire.
    #[must_use]
    pub fn to_bytes(self) -> [u8; 16] {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&self.hash.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.ties.to_le_bytes());
        bytes[12] = u8::from(self.is_end);
        bytes
    }

    /// From the wire. Any bytes make an anchor.
    #[must_use]
    pub fn from_bytes(bytes: [u8; 16]) -> Self {
        let hash = u64::from_le_bytes([
            bytes[0], bytes[1], bytes[2], bytes[3], bytes[4], bytes[5], bytes[6], bytes[7],
        ]);
        let ties = u32::from_le_bytes([bytes[8], bytes[9], bytes[10], bytes[11]]);
        Self { hash, ties, is_end: bytes[12] != 0 }
    }
}
