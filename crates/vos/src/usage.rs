//! Space of a pool by container.

use std::collections::BTreeMap;

use super::storage_target::Held;
use super::types::{ContainerId, ContainerUsage, PoolUsage};
use super::{Pool, StoreError};

impl Pool {
    /// Makes durable what was stored, and has what is read next come from the files of the pool: nothing is left in memory but what is stored there
    /// alone (tmpfs, persistent memory). Not beside a measured loop.
    ///
    /// # Errors
    /// [`StoreError::System`] or [`StoreError::Broken`].
    pub fn drop_cache(&self) -> Result<(), StoreError> {
        self.targets().iter().try_for_each(|target| target.drop_cache())
    }

    /// Space of the pool, by container. Goes through the whole index, and reads logs that are not mapped: not beside a measured loop.
    ///
    /// # Errors
    /// [`StoreError`] of reads.
    pub fn usage(&self) -> Result<PoolUsage, StoreError> {
        let mut all: BTreeMap<ContainerId, Held> = BTreeMap::new();
        let mut usage = PoolUsage::default();
        for target in self.targets() {
            let own = target.usage()?;
            usage.dead_bytes += own.dead_bytes;
            for (container, held) in own.containers {
                *all.entry(container).or_default() += held;
            }
        }
        let facts = self.containers();
        for own in &facts {
            all.entry(own.id).or_default();
        }
        usage.containers = all
            .into_iter()
            .map(|(id, held)| ContainerUsage {
                label: facts.iter().find(|own| own.id == id).map(|own| own.label.clone()),
                number: id.0,
                objects: held.objects,
                keys: held.keys,
                values: held.values,
                value_bytes: held.value_bytes,
                snapshot_bytes: held.snapshot_bytes,
                reclaimable_bytes: held.unseen_bytes,
                overhead_bytes: held.overhead_bytes,
            })
            .collect();
        Ok(usage)
    }
}
