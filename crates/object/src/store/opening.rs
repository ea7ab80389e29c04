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
use super::target::{Access, ContainerState, Purpose, Target, TargetSetup};

/// Targets of a pool, and what they share.
pub(super) struct Opened {
    pub(super) targets: Vec<Arc<Target>>,
    /// Counter of epochs, beyond all that was ever given.
    pub(super) epochs: Arc<AtomicU64>,
    /// Calls the keeper.
    pub(super) bell: Arc<Bell>,
}

/// What the first target of a pool is opened with; the others share it but for number and directory.
pub(super) fn setup_of(
    dir: &Path,
    superblock: &Superblock,
    options: &OpenOptions,
    access: Access,
    containers: &Table,
) -> TargetSetup {
    let last = containers.rows.iter().filter_map(|row| row.snapshots.last()).max();
    let epochs = Arc::new(AtomicU64::new(last.copied().unwrap_or(0)));
    let states: BTreeMap<_, _> = containers
        .rows
        .iter()
        .map(|row| (row.id, ContainerState { checksum: row.checksum, snapshots: row.snapshots.clone() }))
        .collect();
    TargetSetup {
        number: 0,
        targets: superblock.targets,
        dir: target_dir(dir, 0),
        uuid: superblock.uuid,
        segment_bytes: superblock.segment_bytes,
        segments: superblock.segments,
        nvme_bytes: superblock.nvme_bytes,
        threshold_bytes: superblock.threshold_bytes,
        durability: options.durability,
        access,
        epochs,
        containers: states,
        is_new: false,
        purpose: Purpose::Use,
        bell: Arc::new(Bell::default()),
    }
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
    let first = TargetSetup { is_new, ..setup_of(dir, superblock, options, access, containers) };
    let targets = (0..superblock.targets)
        .map(|number| Target::open(&TargetSetup { number, dir: target_dir(dir, number), ..first.clone() }));
    let targets: Vec<Arc<Target>> = targets.collect::<Result<_, _>>()?;
    Target::introduce(&targets);
    Ok(Opened { targets, epochs: first.epochs, bell: first.bell })
}
