//! Discards of a whole pool.

use super::storage_target::Epochs;
use super::{Aggregated, ContainerId, Pool, StoreError};
use crate::model::Epoch;

impl Pool {
    /// Drops all versions and punches of a container from `first` on, up to now or to `last`, an epoch of a snapshot, as if they had never
    /// been: on all targets the same. It is noted on all of them before anything goes; what a failure cuts off is carried out by the next open.
    ///
    /// # Errors
    /// As [`Target::discard`](super::Target::discard); [`StoreError::Broken`] where a target takes nothing any more.
    pub fn discard(
        &self,
        container: ContainerId,
        first: Epoch,
        last: Option<Epoch>,
    ) -> Result<Aggregated, StoreError> {
        let last = last.filter(|last| *last < self.epoch()).unwrap_or_else(|| {
            // Nothing is half changed at it.
            let _turns = self.order().all();
            self.epoch()
        });
        self.targets().iter().try_for_each(|target| target.settle_up_to(container, last))?;
        let alone: Vec<_> = self.targets().iter().map(|target| target.stop_aggregating()).collect();
        let own = || self.targets().iter().zip(&alone);
        own().try_for_each(|(target, alone)| target.note_discard(container, first..=last, alone))?;
        let mut done = Aggregated::default();
        for (target, alone) in own() {
            done += target.sweep_epochs(container, Epochs::of([first..=last]), alone)?;
        }
        Ok(done)
    }
}
