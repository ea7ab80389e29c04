//! One target: a log, its index, and what is done to them.

mod aggregate;
mod census;
mod checkpoint;
mod clean;
mod discard;
mod fetch;
mod lease;
mod list;
mod loose;
mod marks;
mod open;
mod punch;
mod reading;
mod recover;
mod reserve;
mod room;
mod scan;
mod settling;
mod sync;
mod update;
mod usage;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use crate::{Allocation, Checksum, Durability};
use driver::Findings;
use parking_lot::{Condvar, Mutex};

pub(super) use census::{Census, Reference, Seen, SegmentFacts, Sort};
pub(super) use checkpoint::is_whole;
pub(super) use discard::Epochs;
pub use lease::Lease;
pub(super) use loose::mark_is_damaged;
pub(super) use marks::{Mark, Marks};
pub(super) use open::{Access, INDEX_FILE, LOG_FILE, Purpose, TargetSetup, file_error};
pub use reserve::Reservation;
pub(super) use scan::{Committed, scan as scan_records};
use settling::Peers;
pub(super) use usage::Held;

use super::data::{Allocator, DataFile};
use super::error::StoreError;
use super::flush::Flusher;
use super::index::Index;
use super::keeper::Bell;
use super::log::{Log, When};
use super::medium::Medium;
use super::memory::Region;
use super::record::{Header, LINE_BYTES};
use super::table::Version;
use super::types::{Ack, ContainerId, KeyPath, SpaceInfo};
use crate::model::Epoch;

/// A store of its own: what is spread over targets is spread by the caller. Shared by threads; locks itself, briefly.
#[derive(Debug)]
pub struct Target {
    number: u32,
    durability: Durability,
    medium: Arc<dyn Medium>,
    mapped: Option<Arc<Region>>,
    flusher: Flusher,
    segment_lines: u32,
    /// Epochs of the pool.
    epochs: Arc<AtomicU64>,
    state: Mutex<State>,
    /// Readers of a segment outside the lock.
    pins: Box<[AtomicU32]>,
    /// One thread syncs for all.
    syncing: Mutex<sync::Syncing>,
    synced: Condvar,
    /// Threads that wait for a sync, with the one that does it.
    committing: AtomicU32,
    /// Bytes of the log that are durable, of those ever appended.
    durable: AtomicU64,
    /// All epochs up to this one are durable.
    durable_epoch: AtomicU64,
    data: Option<Arc<DataFile>>,
    /// Held while a free segment gets its space without the lock.
    preparing: Mutex<()>,
    /// One thread aggregates or reclaims.
    aggregating: Mutex<room::Reclaimed>,
    /// Changes that may make room, other than updates.
    changes: AtomicU64,
    bell: Arc<Bell>,
    /// All targets of the pool, with this one.
    peers: OnceLock<Arc<Peers>>,
    ahead_segments: usize,
    allocation: Allocation,
    /// Bytes that the log has taken from the file system since its space was last prepared for a phase.
    grown_bytes: AtomicU64,
    /// The keeper works beside those who write, and not in their place.
    has_spare_processor: bool,
    findings: Mutex<Findings>,
    is_broken: AtomicBool,
    /// How often an update ended its wait for room by the clock.
    timed_out_waits: AtomicU64,
    /// Parts of changes of several targets that the log brought back, and that may not be whole.
    marks: Mutex<Marks>,
    /// It was opened by reading its log: the last process did not close it.
    is_recovered: bool,
}

/// A container, as its targets know it.
#[derive(Clone, Debug, Default)]
pub(super) struct ContainerState {
    pub(super) checksum: Checksum,
    pub(super) snapshots: Vec<Epoch>,
}

/// A discard that has to be remembered, because the log may still hold what it discarded.
#[derive(Clone, Copy, Debug)]
struct Discard {
    container: ContainerId,
    first: Epoch,
    last: Epoch,
    version: Version,
}

/// State that the lock protects.
#[derive(Debug)]
struct State {
    log: Log,
    index: Index,
    containers: BTreeMap<ContainerId, ContainerState>,
    /// The container that was looked up last.
    last: Option<(ContainerId, Checksum)>,
    extents: Allocator,
    /// Segments that are free but for their readers.
    draining: usize,
    /// Rooms that were taken and neither published nor given back.
    claims: u32,
    discards: Vec<Discard>,
    /// Damaged parts of the log that were left out when it was read: segment, first line, lines.
    gaps: Vec<(u32, u32, u32)>,
    /// Latest epoch of this target.
    epoch: Epoch,
    /// Closed: no more changes.
    is_closed: bool,
}

impl State {
    /// Checksum of a container that is there.
    #[inline]
    fn admit(&mut self, container: ContainerId) -> Result<Checksum, StoreError> {
        match self.last {
            Some((last, checksum)) if last == container => Ok(checksum),
            _ => {
                let checksum = self.containers.get(&container).ok_or(StoreError::NotFound)?.checksum;
                self.last = Some((container, checksum));
                Ok(checksum)
            }
        }
    }

    /// As [`State::admit`], for changes.
    #[inline]
    fn admit_change(&mut self, container: ContainerId) -> Result<Checksum, StoreError> {
        if self.is_closed || self.log.is_broken {
            return Err(StoreError::Broken);
        }
        self.admit(container)
    }
}

impl Target {
    /// Whether the last process that had it open did not close it.
    pub(super) fn is_recovered(&self) -> bool {
        self.is_recovered
    }

    /// An epoch of its own for a change. The lock is held.
    #[inline]
    fn next_epoch(&self, state: &mut State) -> Epoch {
        let epoch = self.epochs.fetch_add(1, Ordering::Relaxed) + 1;
        state.epoch = epoch;
        epoch
    }

    /// Checksum of a record of a container: buffered logs need one to tell a torn record.
    #[inline]
    fn record_checksum(&self, checksum: Checksum) -> Checksum {
        if checksum == Checksum::Off && self.mapped.is_none() { Checksum::Crc32 } else { checksum }
    }

    #[inline]
    fn when(&self, ack: Ack) -> When {
        match (self.durability, ack) {
            (Durability::None, _) => When::Unordered,
            (Durability::Sync, Ack::AsConfigured) => When::Now,
            _ => When::Later,
        }
    }

    /// Writes header and keys into fresh room for a record.
    #[inline]
    fn begin<'a>(
        &self,
        log: &'a mut Log,
        header: &Header,
        place: &KeyPath<'_>,
        location: u64,
    ) -> &'a mut [u8] {
        let sequence = log.sequence_of(location);
        let record = log.record_mut(location, header.lines());
        header.write(record, place.dkey, place.akey, sequence);
        record
    }

    /// Seals and commits a record whose checksums and data are in place.
    #[inline]
    fn complete(
        &self,
        log: &mut Log,
        header: &mut Header,
        location: u64,
        epoch: Epoch,
        ack: Ack,
    ) -> Result<(), StoreError> {
        let lines = header.lines();
        header.epoch = epoch;
        if self.mapped.is_none() {
            let lag = epoch - self.durable_epoch.load(Ordering::Relaxed).min(epoch);
            header.lag = lag.min(u64::from(u16::MAX)) as u16;
        }
        let record = log.record_mut(location, lines);
        let commit = header.seal(record);
        let head = header.data_at().min(record.len());
        self.flusher.flush(&record[..head]);
        log.finish(location, lines, commit, self.when(ack))
    }

    /// Notes damage, by its place.
    fn note_damage(&self, place: &KeyPath<'_>, what: &str) -> StoreError {
        self.findings.lock().add(|| {
            format!(
                "target {} container {} object {} dkey {} akey {}: {what}",
                self.number,
                place.container.0,
                place.object,
                place.dkey.escape_ascii(),
                place.akey.escape_ascii()
            )
        });
        StoreError::Damaged
    }

    /// Notes something else that is wrong.
    fn note(&self, what: String) {
        self.findings.lock().add(|| what);
    }

    /// How often an update ended its wait for room by the clock, and not because there can be none.
    #[must_use]
    pub fn timed_out_waits(&self) -> u64 {
        self.timed_out_waits.load(Ordering::Relaxed)
    }

    /// Findings since the last call, 16 at most: damaged data by object, dkey and akey.
    #[must_use]
    pub fn take_findings(&self) -> Vec<String> {
        self.findings.lock().take()
    }

    /// Largest value that an update takes, in bytes.
    #[must_use]
    pub fn value_bytes_max(&self) -> u64 {
        let segment_bytes = u64::from(self.segment_lines) * LINE_BYTES as u64;
        value_bytes_max(segment_bytes, self.data.as_ref().map_or(0, |data| data.bytes))
    }

    /// Its space. Counts the memory of the index: not for a measured loop.
    #[must_use]
    pub fn space(&self) -> SpaceInfo {
        let state = self.state.lock();
        SpaceInfo {
            scm_bytes: state.log.segments.len() as u64 * u64::from(self.segment_lines) * LINE_BYTES as u64,
            scm_free_bytes: state.log.free_bytes(),
            nvme_bytes: self.data.as_ref().map_or(0, |data| data.bytes),
            nvme_free_bytes: state.extents.free_bytes(),
            index_bytes: state.index.memory_bytes() as u64,
            keys: state.index.keys,
            grown_bytes: self.grown_bytes.load(Ordering::Relaxed)
                + self.data.as_ref().map_or(0, |data| data.grown_bytes.load(Ordering::Relaxed)),
        }
    }

    /// Whether each update waits for a sync of its own, so that it pays to defer and commit many at once.
    #[must_use]
    pub fn syncs_each_update(&self) -> bool {
        self.durability == Durability::Sync && self.medium.is_synced()
    }

    /// How updates are made durable, in words, for records: `CPU flush (clwb)`, `direct I/O and fdatasync`, ...
    #[must_use]
    pub fn durable_by(&self) -> &str {
        match self.durability {
            Durability::None => "nothing until the store is closed",
            _ => self.medium.durable_by(),
        }
    }

    /// Makes a container known.
    pub(super) fn set_container(&self, id: ContainerId, container: ContainerState) {
        let mut state = self.state.lock();
        state.last = None;
        state.containers.insert(id, container);
        self.changes.fetch_add(1, Ordering::Relaxed);
    }

    /// Forgets a container; what it held is dead.
    pub(super) fn remove_container(&self, id: ContainerId) {
        let mut state = self.state.lock();
        state.last = None;
        state.containers.remove(&id);
        self.changes.fetch_add(1, Ordering::Relaxed);
    }

    /// Whether another thread gets the lock in this time.
    #[cfg(test)]
    pub(super) fn can_be_locked_within(&self, patience: std::time::Duration) -> bool {
        self.state.try_lock_for(patience).is_some()
    }

    /// Keeps changes out while `work` runs: a snapshot is one moment of all targets.
    pub(super) fn with_stopped<R>(targets: &[Arc<Self>], work: impl FnOnce() -> R) -> R {
        match targets.split_first() {
            None => work(),
            Some((first, rest)) => {
                let _held = first.state.lock();
                Self::with_stopped(rest, work)
            }
        }
    }
}

/// Largest value of a target with segments and a data file (0: none) of these sizes, in bytes.
pub(super) fn value_bytes_max(segment_bytes: u64, nvme_bytes: u64) -> u64 {
    // Header, the longest keys and the widest checksums have to fit beside it.
    let inline = (segment_bytes - segment_bytes / 256).saturating_sub(2 * LINE_BYTES as u64 + 256);
    nvme_bytes.min(u64::from(u32::MAX)).max(inline)
}
