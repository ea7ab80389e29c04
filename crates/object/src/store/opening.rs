//! Opening the targets of a pool.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use driver::Error;

use super::OpenOptions;
use super::containers::Table;
use super::keeper::Bell;
use super::superblock::{Superblock, target_dir};
use super::target::{Access, ContainerState, Target, TargetSetup};

/// Targets of a pool, and what they share.
pub(super) struct Opened {
    pub(super) targets: Vec<Arc<Target>>,
    /// Counter of epochs, beyond all that was ever given.
    pub(super) epochs: Arc<AtomicU64>,
    /// Calls the keeper.
    pub(super) bell: Arc<Bell>,
}

/// Opens all targets.
pub(super) fn open_targets(
    dir: &Path,
    superblock: &Superblock,
    options: &OpenOptions,
    access: Access,
    containers: &Table,
    is_new: bool,
) -> Result<Opened, Error> {
    let last = containers.rows.iter().filter_map(|row| row.snapshots.last()).max();
    let epochs = Arc::new(AtomicU64::new(last.copied().unwrap_or(0)));
    let bell = Arc::new(Bell::default());
    let states: BTreeMap<_, _> = containers
        .rows
        .iter()
        .map(|row| (row.id, ContainerState { checksum: row.checksum, snapshots: row.snapshots.clone() }))
        .collect();
    let targets = (0..superblock.targets).map(|number| {
        Target::open(&TargetSetup {
            number,
            targets: superblock.targets,
            dir: target_dir(dir, number),
            uuid: superblock.uuid,
            segment_bytes: superblock.segment_bytes,
            segments: superblock.segments,
            nvme_bytes: superblock.nvme_bytes,
            threshold_bytes: superblock.threshold_bytes,
            durability: options.durability,
            access,
            epochs: epochs.clone(),
            containers: states.clone(),
            is_new,
            bell: bell.clone(),
        })
    });
    let targets: Vec<Arc<Target>> = targets.collect::<Result<_, _>>()?;
    Target::introduce(&targets);
    Ok(Opened { targets, epochs, bell })
}
