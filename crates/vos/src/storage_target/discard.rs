//! Discards: versions that go as if they had never been.

use std::ops::RangeInclusive;
use std::sync::atomic::Ordering;

use crate::Checksum;
use parking_lot::MutexGuard;

use super::aggregate::{Policy, Swept};
use super::room::{Lack, Reclaimed};
use super::{Discard, Target};
use crate::error::StoreError;
use crate::index::Hashes;
use crate::log::Need;
use crate::model::{Epoch, ObjectId};
use crate::record::{Header, Kind};
use crate::table::Version;
use crate::types::{Ack, Aggregated, ContainerId, KeyPath};

/// Ranges of epochs.
#[derive(Clone, Debug, Default)]
pub(crate) struct Epochs(Vec<(Epoch, Epoch)>);

impl Epochs {
    pub(crate) fn of(ranges: impl IntoIterator<Item = RangeInclusive<Epoch>>) -> Self {
        let mut all: Vec<_> = ranges.into_iter().map(RangeInclusive::into_inner).collect();
        all.sort_unstable();
        all.dedup_by(|later, kept| {
            let is_joined = later.0 <= kept.1;
            if is_joined {
                kept.1 = kept.1.max(later.1);
            }
            is_joined
        });
        Self(all)
    }

    pub(super) fn contains(&self, epoch: Epoch) -> bool {
        let behind = self.0.partition_point(|(first, _)| *first <= epoch);
        behind.checked_sub(1).is_some_and(|at| epoch <= self.0[at].1)
    }
}

/// Nobody else aggregates a target.
pub(crate) struct Alone<'a> {
    _held: MutexGuard<'a, Reclaimed>,
}

impl Target {
    /// Drops all versions and punches of a container whose epochs lie in the range, as if they had never been.
    ///
    /// # Errors
    /// As [`Target::aggregate`].
    pub fn discard(
        &self,
        container: ContainerId,
        epochs: RangeInclusive<Epoch>,
    ) -> Result<Aggregated, StoreError> {
        let alone = self.stop_aggregating();
        self.note_discard(container, epochs.clone(), &alone)?;
        self.sweep_epochs(container, Epochs::of([epochs]), &alone)
    }

    /// Keeps others from aggregating.
    pub(crate) fn stop_aggregating(&self) -> Alone<'_> {
        Alone { _held: self.aggregating.lock() }
    }

    /// Notes in the log that what has these epochs goes: it does not come back with the log.
    pub(crate) fn note_discard(
        &self,
        container: ContainerId,
        epochs: RangeInclusive<Epoch>,
        _alone: &Alone<'_>,
    ) -> Result<(), StoreError> {
        let place = KeyPath { container, object: ObjectId::default(), dkey: &[], akey: &[] };
        let blank = Header::new(Kind::Discard, &place, Checksum::Off, 0, *epochs.start());
        let lack = Lack::Log { lines: blank.lines(), need: Need::Punch };
        let appended = self.with_supply(lack, || {
            let mut guard = self.state.lock();
            let state = &mut *guard;
            state.admit_change(container)?;
            // Later epochs are not discarded: they are given after this.
            let last = (*epochs.end()).min(self.epochs.load(Ordering::Relaxed));
            let mut header = blank;
            let location = self.take(state, header.lines(), Need::Punch)?;
            let record = self.begin(&mut state.log, &header, &place, location);
            let at = header.keys_end();
            record[at..at + 8].copy_from_slice(&last.to_le_bytes());
            let epoch = self.next_epoch(state);
            self.complete(&mut state.log, &mut header, location, epoch, Ack::AsConfigured)?;
            let version = Version::new(epoch, location, header.lines(), true);
            state.discards.push(Discard { container, first: *epochs.start(), last, version });
            Ok(state.log.appended)
        })?;
        self.settle(Ack::AsConfigured, appended)
    }

    /// Drops what a discard was noted of.
    pub(crate) fn sweep_epochs(
        &self,
        container: ContainerId,
        epochs: Epochs,
        _alone: &Alone<'_>,
    ) -> Result<Aggregated, StoreError> {
        self.sweep(container, &Policy::Epochs(epochs))
    }

    /// Carries out a discard that other targets have noted, where there is anything left of it.
    pub(crate) fn finish_discard(
        &self,
        container: ContainerId,
        epochs: RangeInclusive<Epoch>,
    ) -> Result<(), StoreError> {
        let alone = self.stop_aggregating();
        let done = self.sweep_epochs(container, Epochs::of([epochs.clone()]), &alone)?;
        if done.versions_dropped > 0 { self.note_discard(container, epochs, &alone) } else { Ok(()) }
    }

    /// Takes back a change that was published at this epoch, as if it had never been. Others may have seen it.
    ///
    /// # Errors
    /// As [`Target::discard`].
    pub(crate) fn take_back(&self, place: &KeyPath<'_>, epoch: Epoch) -> Result<(), StoreError> {
        let alone = self.stop_aggregating();
        self.note_discard(place.container, epoch..=epoch, &alone)?;
        let policy = Policy::Epochs(Epochs::of([epoch..=epoch]));
        let mut swept = Swept::default();
        {
            let mut guard = self.state.lock();
            let state = &mut *guard;
            let Some(object) = state.index.object(place.container, place.object) else { return Ok(()) };
            self.sweep_dkey(state, object, Hashes::of(place.dkey, place.akey), &policy, &mut swept);
            self.sweep_object(state, object, &policy, &mut swept);
        }
        self.free_extents_of(&mut swept);
        Ok(())
    }
}
