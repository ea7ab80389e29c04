//! Aggregation, discard and collection: which versions go.

use std::cell::Cell;

use super::clean::Effort;
use super::discard::Epochs;
use super::fetch::Part;
use super::{Discard, State, Target};
use crate::error::StoreError;
use crate::extents::{Change, ExtentVersion};
use crate::index::{Hashes, Spot, last_punch};
use crate::model::{Epoch, ObjectId};
use crate::table::{Entry, Tag, Version};
use crate::types::{Aggregated, Anchor, ContainerId};

/// Dkeys that are looked through before others have the lock.
const BATCH: usize = 256;

/// Which versions go.
#[derive(Clone, Debug)]
pub(super) enum Policy {
    /// Those that nobody can see any more.
    Unseen {
        upto: Epoch,
        snapshots: Vec<Epoch>,
        /// Dead records in the log are not earlier than this: a punch before it shadows nothing there.
        safe: Cell<Epoch>,
    },
    /// Those of these epochs.
    Epochs(Epochs),
    /// All: the container is gone.
    All,
}

impl Policy {
    /// Whether what was written at `epoch` and removed at `end` was seen between by a snapshot, or may yet be.
    fn is_seen(&self, epoch: Epoch, end: Epoch) -> bool {
        match self {
            Self::Unseen { upto, snapshots, .. } => {
                end > *upto || snapshots.iter().any(|snapshot| (epoch..end).contains(snapshot))
            }
            Self::Epochs(epochs) => !epochs.contains(epoch),
            Self::All => false,
        }
    }

    /// Whether a punch may go, when nothing older is left of what it removed.
    fn can_forget(&self, punch: Epoch) -> bool {
        match self {
            Self::Unseen { upto, safe, .. } => punch <= *upto && punch < safe.get(),
            Self::Epochs(epochs) => epochs.contains(punch),
            Self::All => true,
        }
    }
}

/// Outcome of a sweep so far.
#[derive(Debug, Default)]
pub(super) struct Swept {
    done: Aggregated,
    /// Records of versions that are gone from the index, and may hold room in the data file.
    dropped: Vec<Part>,
}

impl Target {
    /// Drops versions up to `upto` (none: all so far) that are neither the latest nor seen by a snapshot, then frees segments and
    /// extents. `is_full`: also segments with few dead bytes are cleaned. Reads and updates go on meanwhile.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] where there is no such container; [`StoreError`] of reads and writes.
    pub fn aggregate(
        &self,
        container: ContainerId,
        upto: Option<Epoch>,
        is_full: bool,
    ) -> Result<Aggregated, StoreError> {
        let _alone = self.aggregating.lock();
        let effort = if is_full { Effort::Full } else { Effort::Usual };
        let mut done = self.drop_unseen(container, upto)?;
        done += self.clean(effort)?;
        // Punches whose records are gone from the log now can be forgotten too.
        let again = self.drop_unseen(container, upto)?;
        if again.versions_dropped > 0 {
            done += again;
            done += self.clean(effort)?;
        }
        Ok(done)
    }

    /// Drops what is not seen any more by the latest epoch and by snapshots.
    pub(super) fn drop_unseen(
        &self,
        container: ContainerId,
        upto: Option<Epoch>,
    ) -> Result<Aggregated, StoreError> {
        // What replaced a version is durable before the version goes: a failure would leave neither.
        let upto = upto.unwrap_or(Epoch::MAX).min(self.state.lock().epoch);
        self.harden()?;
        // Copies, cells and parity are one: nothing goes for what may be taken back on all targets.
        let upto = self.settle_peers(container).map_or(upto, |settled| upto.min(settled));
        let policy = {
            let mut state = self.state.lock();
            state.admit_change(container)?;
            let safe = state.log.segments.iter().map(|segment| segment.dead_epoch_min).min();
            let safe = safe.unwrap_or(Epoch::MAX);
            let held = |discard: &Discard| discard.container == container && discard.last < safe;
            let gone: Vec<Discard> = state.discards.iter().filter(|discard| held(discard)).copied().collect();
            state.discards.retain(|discard| !held(discard));
            for discard in gone {
                state.log.drop_room(discard.version.location(), discard.version.lines());
            }
            let snapshots = state.containers.get(&container).map(|own| own.snapshots.clone());
            Policy::Unseen { upto, snapshots: snapshots.unwrap_or_default(), safe: Cell::new(safe) }
        };
        self.sweep(container, &policy)
    }

    /// Gives back the space of what is dead already: of containers destroyed, of versions dropped, of reservations abandoned.
    ///
    /// # Errors
    /// [`StoreError`] of reads and writes.
    pub fn collect(&self) -> Result<Aggregated, StoreError> {
        let _alone = self.aggregating.lock();
        let destroyed = self.state.lock().destroyed();
        let mut done = self.sweep_destroyed(destroyed)?;
        done += self.clean(Effort::Full)?;
        Ok(done)
    }

    /// Drops all that destroyed containers held.
    pub(super) fn sweep_destroyed(&self, destroyed: Vec<ContainerId>) -> Result<Aggregated, StoreError> {
        let mut done = Aggregated::default();
        for container in destroyed {
            done += self.sweep(container, &Policy::All)?;
        }
        Ok(done)
    }

    /// Looks through all of a container.
    pub(super) fn sweep(&self, container: ContainerId, policy: &Policy) -> Result<Aggregated, StoreError> {
        let mut swept = Swept::default();
        let objects: Vec<ObjectId> = {
            let state = self.state.lock();
            let own = state.index.containers.get(container.0 as usize);
            own.map_or_else(Vec::new, |objects| {
                objects.table.iter().map(|entry| state.index.objects.get(entry.node_number()).id).collect()
            })
        };
        for object in objects {
            let mut anchor = Anchor::START;
            while !anchor.is_end {
                let mut guard = self.state.lock();
                let state = &mut *guard;
                let Some(object) = state.index.object(container, object) else { break };
                let node = state.index.objects.get(object);
                let mut position = node.dkeys.position(&anchor);
                let mut batch = Vec::with_capacity(BATCH);
                while batch.len() < BATCH {
                    let Some((place, entry)) = node.dkeys.next(position) else {
                        anchor.is_end = true;
                        break;
                    };
                    batch.push((entry.hash, entry.extra()));
                    anchor.pass(entry);
                    position = place + 1;
                }
                for (dkey, extra) in batch {
                    self.sweep_dkey(state, object, Hashes { dkey, extra, akey: 0 }, policy, &mut swept);
                }
                if anchor.is_end {
                    self.sweep_object(state, object, policy, &mut swept);
                }
                drop(guard);
                self.free_extents_of(&mut swept);
            }
        }
        Ok(swept.done)
    }

    /// Gives back what versions that were dropped held in the data file. Their records tell where that is: they are read while others have
    /// the lock, and are still there, because nothing is cleaned before the sweep has ended.
    pub(super) fn free_extents_of(&self, swept: &mut Swept) {
        let Some(file) = &self.data else { return };
        let mut freed = Vec::with_capacity(swept.dropped.len());
        for part in swept.dropped.drain(..) {
            let extents = self.with_record(&part, |record| {
                let header = self.header_of(record, &part)?;
                Ok(header.is_external().then(|| (header.spread(record), u64::from(header.bytes))))
            });
            freed.extend(extents.ok().flatten());
        }
        let mut state = self.state.lock();
        for (spread, bytes) in freed {
            state.extents.give_spread(&spread, bytes, file);
            swept.done.nvme_freed_bytes += bytes;
        }
    }

    pub(super) fn sweep_dkey(
        &self,
        state: &mut State,
        object: u32,
        hashes: Hashes,
        policy: &Policy,
        swept: &mut Swept,
    ) {
        let Some(at) = state.index.dkey(object, &hashes) else { return };
        let entry = *state.index.objects.get(object).dkeys.get(at);
        let mut punches = state.index.objects.get(object).punches.clone();
        if entry.tag() != Tag::Dkey {
            self.sweep_akey(state, Spot::Direct { object, at }, &punches, policy, swept);
            return;
        }
        let dkey = entry.node_number();
        let own = state.index.dkeys.get(dkey).punches.clone();
        punches.extend_from_slice(&own);
        let akeys: Vec<u64> = state.index.dkeys.get(dkey).akeys.iter().map(|akey| akey.hash).collect();
        for akey in akeys {
            if let Some(at) = state.index.dkeys.get(dkey).akeys.find(akey, |_| true) {
                self.sweep_akey(state, Spot::Nested { dkey, at }, &punches, policy, swept);
            }
        }
        let node = state.index.dkeys.get(dkey);
        let oldest = node.akeys.iter().filter_map(|akey| state.index.oldest(akey)).min();
        let kept = self.sweep_punches(state, own, oldest, policy, swept);
        state.index.dkeys.get_mut(dkey).punches = kept;
        let node = state.index.dkeys.get(dkey);
        if node.akeys.len() == 0 && node.punches.is_empty() {
            state.index.dkeys.remove(dkey);
            state.index.objects.get_mut(object).dkeys.remove(at);
        }
    }

    pub(super) fn sweep_object(&self, state: &mut State, object: u32, policy: &Policy, swept: &mut Swept) {
        let node = state.index.objects.get(object);
        if !node.punches.is_empty() {
            let oldest = node.dkeys.iter().filter_map(|dkey| state.index.oldest(dkey)).min();
            let own = node.punches.clone();
            let kept = self.sweep_punches(state, own, oldest, policy, swept);
            state.index.objects.get_mut(object).punches = kept;
        }
        let node = state.index.objects.get_mut(object);
        if node.dkeys.len() == 0 && node.punches.is_empty() {
            state.index.remove_object(object);
        } else if matches!(policy, Policy::Epochs(_)) {
            node.largest = None;
        }
    }

    /// Drops punches that remove nothing any more.
    fn sweep_punches(
        &self,
        state: &mut State,
        punches: Vec<Version>,
        oldest: Option<Epoch>,
        policy: &Policy,
        swept: &mut Swept,
    ) -> Vec<Version> {
        let is_range = matches!(policy, Policy::Epochs(_));
        let (gone, kept) = punches.into_iter().partition::<Vec<_>, _>(|punch| {
            let is_idle = is_range || oldest.is_none_or(|oldest| oldest > punch.epoch());
            is_idle && policy.can_forget(punch.epoch())
        });
        gone.into_iter().for_each(|punch| self.drop_version(state, punch, policy, swept));
        kept
    }

    fn sweep_akey(
        &self,
        state: &mut State,
        spot: Spot,
        punches: &[Version],
        policy: &Policy,
        swept: &mut Swept,
    ) {
        let entry = *state.index.entry(spot);
        match entry.tag() {
            Tag::Extents => self.sweep_extents(state, spot, &entry, punches, policy, swept),
            // The usual case: one version that stays.
            Tag::One if punches.is_empty() && matches!(policy, Policy::Unseen { .. }) => {}
            _ => self.sweep_versions(state, spot, &entry, punches, policy, swept),
        }
    }

    fn sweep_versions(
        &self,
        state: &mut State,
        spot: Spot,
        entry: &Entry,
        punches: &[Version],
        policy: &Policy,
        swept: &mut Swept,
    ) {
        let versions: Vec<Version> = state.index.versions(entry).collect();
        let mut kept: Vec<Version> = Vec::with_capacity(versions.len());
        let mut dropped = Vec::new();
        // The end of the time in which a version is seen: the next one, or the first punch above it.
        let mut end = Epoch::MAX;
        for version in &versions {
            let punch =
                punches.iter().map(|punch| punch.epoch()).filter(|epoch| *epoch > version.epoch()).min();
            let end_of_this = end.min(punch.unwrap_or(Epoch::MAX));
            end = version.epoch();
            if policy.is_seen(version.epoch(), end_of_this) {
                kept.push(*version);
            } else {
                dropped.push(*version);
            }
        }
        let mut is_changed = !dropped.is_empty();
        for version in dropped {
            // A punch that was overtaken still shadows what lies dead in the log, as does what overtook it: that is kept.
            self.drop_version(state, version, policy, swept);
        }
        if !matches!(policy, Policy::Epochs(_)) {
            // Only now: what was just dropped lies dead in the log, and a punch of it must outlast it there.
            while let Some(last) =
                kept.last().copied().filter(|last| last.is_tombstone() && policy.can_forget(last.epoch()))
            {
                self.drop_version(state, last, policy, swept);
                kept.pop();
                is_changed = true;
            }
        }
        if !is_changed {
            return;
        }
        state.index.set_versions(spot, &kept);
    }

    fn sweep_extents(
        &self,
        state: &mut State,
        spot: Spot,
        entry: &Entry,
        punches: &[Version],
        policy: &Policy,
        swept: &mut Swept,
    ) {
        let node = state.index.extents.get(entry.node_number());
        let seen = match policy {
            Policy::Unseen { upto, snapshots, .. } => {
                let mut seen: Vec<Epoch> = Vec::new();
                for view in snapshots.iter().filter(|snapshot| *snapshot < upto).chain([upto]) {
                    let floor = last_punch(punches, *view);
                    let pieces = node.pieces_at(*view);
                    seen.extend(pieces.values().map(|piece| piece.epoch).filter(|epoch| *epoch > floor));
                }
                seen.sort_unstable();
                seen
            }
            _ => Vec::new(),
        };
        let mut is_older_kept = false;
        let mut gone: Vec<ExtentVersion> = Vec::new();
        for version in &node.history {
            let is_kept = match (policy, version.change) {
                (Policy::Unseen { upto, .. }, Change::Data) => {
                    version.epoch > *upto || seen.binary_search(&version.epoch).is_ok()
                }
                (Policy::Unseen { .. }, _) => is_older_kept || !policy.can_forget(version.epoch),
                (Policy::Epochs(epochs), _) => !epochs.contains(version.epoch),
                (Policy::All, _) => false,
            };
            is_older_kept |= is_kept;
            if !is_kept {
                if let (Policy::Unseen { safe, .. }, Change::Data) = (policy, version.change) {
                    // Dead in the log from here on: a punch of it must outlast it there.
                    safe.set(safe.get().min(version.epoch));
                }
                gone.push(*version);
            }
        }
        if gone.is_empty() {
            return;
        }
        let is_gone =
            |version: &ExtentVersion| gone.binary_search_by_key(&version.epoch, |other| other.epoch).is_ok();
        state.index.extents.get_mut(entry.node_number()).retain(|version| !is_gone(version));
        for version in &gone {
            let lines = version.lines as usize;
            let is_punch = version.change != Change::Data;
            let version = Version::new(version.epoch, version.location, lines, is_punch);
            self.drop_version(state, version, policy, swept);
        }
        if state.index.extents.get(entry.node_number()).history.is_empty() {
            state.index.extents.remove(entry.node_number());
            state.index.remove_spot(spot);
        }
    }

    /// A version is gone from the index: its room is dead, and what it held in the data file is free when the lock has been released.
    fn drop_version(&self, state: &mut State, version: Version, policy: &Policy, swept: &mut Swept) {
        swept.done.versions_dropped += 1;
        if self.data.is_some() && !version.is_tombstone() {
            swept.dropped.push(state.part_in_memory(version, self.mapped.is_some()));
        }
        // A punch that comes back with the log is harmless, unless it was discarded.
        if version.is_tombstone() && !matches!(policy, Policy::Epochs(_)) {
            state.log.drop_room(version.location(), version.lines());
            return;
        }
        if let Policy::Unseen { safe, .. } = policy {
            safe.set(safe.get().min(version.epoch()));
        }
        state.log.drop_record(version.location(), version.lines(), version.epoch());
    }
}
