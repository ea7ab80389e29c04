//! Records of changes of several targets in a log that was read, and taking those back that are not whole.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use crate::Redundancy;

use super::discard::Epochs;
use super::{Discard, Target};
use crate::error::StoreError;
use crate::model::{Epoch, ObjectId};
use crate::transaction::Transaction;
use crate::types::ContainerId;

/// Whether an object has copies or parity.
pub(super) fn is_spread(object: ObjectId) -> bool {
    object.class().is_some_and(|class| class.redundancy != Redundancy::None)
}

/// A record of an object with copies or parity: a part of a change of several targets, or one that was made by itself, by a repair.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mark {
    pub(crate) transaction: Transaction,
    pub(crate) epoch: Epoch,
    pub(crate) location: u64,
    pub(crate) container: ContainerId,
    pub(crate) object: ObjectId,
    /// Hash of the dkey.
    pub(crate) dkey: u64,
    /// It removes the object as a whole.
    pub(crate) is_of_object: bool,
}

/// Records that a log has of changes of several targets.
#[derive(Debug, Default)]
pub(crate) struct Marks {
    pub(crate) all: Vec<Mark>,
    /// The log is damaged: records that it lacks may have been there.
    pub(crate) is_damaged: bool,
}

impl Target {
    /// Takes the records of these epochs out of the log, as a medium does that loses them.
    #[cfg(test)]
    pub(crate) fn lose(&self, container: ContainerId, epochs: RangeInclusive<Epoch>) {
        let all = self.census().references;
        for found in all.iter().filter(|found| found.container == container && epochs.contains(&found.epoch))
        {
            self.cut_record(found.location).expect("cut");
        }
    }

    /// Applies all discards to what the log brought back. Returns the latest epoch.
    pub(super) fn discard_again(&self) -> Result<Epoch, StoreError> {
        let (discards, epoch) = {
            let mut state = self.state.lock();
            state.discards.sort_unstable_by_key(|discard| discard.version.epoch());
            (state.discards.clone(), state.epoch)
        };
        let alone = self.stop_aggregating();
        for (container, ranges) in ranges_of(&discards) {
            self.sweep_epochs(container, Epochs::of(ranges), &alone)?;
        }
        let is_gone = |mark: &Mark| {
            let mut own = discards.iter().filter(|discard| discard.container == mark.container);
            own.any(|discard| (discard.first..=discard.last).contains(&mark.epoch))
        };
        if !discards.is_empty() {
            self.marks.lock().all.retain(|mark| !is_gone(mark));
        }
        Ok(epoch)
    }

    /// Takes what may not be whole.
    pub(crate) fn take_marks(&self) -> Marks {
        std::mem::take(&mut self.marks.lock())
    }

    /// Discards that the log remembers: container, and epochs.
    pub(crate) fn discards(&self) -> BTreeMap<ContainerId, Vec<RangeInclusive<Epoch>>> {
        ranges_of(&self.state.lock().discards)
    }

    /// Takes changes out of index and log, durably, as if they had never been.
    pub(crate) fn withdraw(&self, gone: &[Mark]) -> Result<(), StoreError> {
        let mut epochs: BTreeMap<ContainerId, Vec<RangeInclusive<Epoch>>> = BTreeMap::new();
        for mark in gone {
            epochs.entry(mark.container).or_default().push(mark.epoch..=mark.epoch);
        }
        let alone = self.stop_aggregating();
        for (container, ranges) in epochs {
            self.sweep_epochs(container, Epochs::of(ranges), &alone)?;
        }
        for mark in gone {
            self.withdraw_record(mark.location)?;
        }
        self.sync_log()
    }
}

/// Ranges of epochs of discards, by container.
fn ranges_of(discards: &[Discard]) -> BTreeMap<ContainerId, Vec<RangeInclusive<Epoch>>> {
    let mut all: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for discard in discards {
        all.entry(discard.container).or_default().push(discard.first..=discard.last);
    }
    all
}
