//! The embedded versioning object store: pools of targets, each a log of segments with an index in memory.
//!
//! A [`Pool`] is a directory. Its [`Target`]s hold values of containers under object, dkey and akey; each update has an epoch of its
//! own, and what it replaced can be read until it is aggregated. A target is shared by threads and locks itself.
//!
//! Space: log and data file are sparse, and take their space from the file system segment by segment (chunk by chunk) a little ahead
//! of the updates, so a pool may be larger than what its file system has free; an update that finds the file system full fails as one
//! of a full pool does, and what was acknowledged stays readable. Segments that were freed keep their space.
//!
//! Reclaim: when free segments run low, or an update finds no room, versions that neither the latest epoch nor a snapshot sees are
//! dropped and the emptiest segments are cleaned. Readers of old epochs without a snapshot lose them then.

mod access;
mod batch;
mod check;
mod checksum;
mod claiming;
pub mod claims;
pub mod coded;
mod conditional;
mod containers;
mod copy;
#[cfg(test)]
mod cut;
mod data;
mod discarding;
pub mod erasure;
mod error;
mod extents;
mod files;
mod flush;
mod index;
mod info;
mod keeper;
mod log;
mod making;
mod medium;
mod memory;
pub mod model;
mod observed;
mod opening;
mod order;
pub mod placement;
mod pool;
mod record;
mod repair;
mod segment;
mod settled;
mod storage_target;
mod superblock;
mod table;
#[cfg(test)]
mod tests;
mod transaction;
mod types;
mod usage;
mod waits;
mod words;

pub use check::{CheckReport, Finding, FindingKind, RepairReport};
pub use conditional::{Action, Condition, Step};
pub use error::StoreError;
pub use info::{ContainerInfo, PoolInfo};
pub use making::{Layout, Standing};
pub use model::{Groups, ObjectClass, ObjectType, Redundancy};
pub use order::{Held, Order};
pub use pool::{ContainerFacts, OpenOptions, Pool, PoolOptions};
pub use storage_target::{Lease, Reservation, Target};
pub use superblock::PoolUuid;
pub use transaction::{Change, change, punch_all, update_all};
pub use types::{
    Ack, Aggregated, Anchor, ContainerId, ContainerProperties, ContainerUsage, Fetched, FoundExtent,
    Iterated, KeyPath, Largest, PoolUsage, Punch, Read, SpaceInfo, Write,
};
pub use waits::storage_wait_ns;
pub use words::{Allocation, Checksum, Choices, Durability, Flush};

/// Version of the format on disk. A store of another one is refused.
pub const FORMAT_VERSION: u32 = 2;
