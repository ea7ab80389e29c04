//! Opening the targets of a pool.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use driver::{Error, ErrorKind};

use super::containers::Table;
use super::keeper::Bell;
use super::order::Order;
use super::settled::Settled;
use super::storage_target::{Access, ContainerState, Purpose, Target, TargetSetup};
use super::superblock::{Superblock, target_dir};
use super::{OpenOptions, files, repair};
use crate::model::Epoch;

/// Said where the mark of what is whole is missing or damaged.
pub(super) const LOST_MARK: &str = "the file that records up to where copies and cells are complete is missing or damaged: interrupted updates were not rolled back";

/// Targets of a pool, and what they share.
pub(super) struct Opened {
    pub(super) targets: Vec<Arc<Target>>,
    /// Counter of epochs, beyond all that was ever given.
    pub(super) epochs: Arc<AtomicU64>,
    /// Calls the keeper.
    pub(super) bell: Arc<Bell>,
    /// The order of changes of several targets.
    pub(super) order: Arc<Order>,
    /// Up to where they are whole.
    pub(super) settled: Arc<Settled>,
    /// Changes that a failure had cut off, and that were taken back.
    pub(super) taken_back: u64,
    /// Findings on files of the pool.
    pub(super) findings: Vec<String>,
}

/// Setup of the first target of a pool; the others share it but for number and directory.
pub(super) fn setup_of(
    dir: &Path,
    superblock: &Superblock,
    options: &OpenOptions,
    access: Access,
    containers: &Table,
    settled: Option<Epoch>,
) -> TargetSetup {
    let last = containers.rows.iter().filter_map(|row| row.snapshots.last()).max();
    // Numbers of changes that were counted as whole are never given again.
    let epochs = Arc::new(AtomicU64::new(last.copied().max(settled).unwrap_or(0)));
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
        allocation: options.allocation,
        access,
        epochs,
        containers: states,
        is_new: false,
        settled: settled.unwrap_or(Epoch::MAX),
        purpose: Purpose::Use,
        bell: Arc::new(Bell::default()),
    }
}

/// Opens all targets. After a failure, what it cut off is taken back.
pub(super) fn open_targets(
    dir: &Path,
    superblock: &Superblock,
    options: &OpenOptions,
    access: Access,
    containers: &Table,
    is_new: bool,
) -> Result<Opened, Error> {
    let (settled, said) = Settled::open(dir)?;
    let mut findings = Vec::new();
    if said.is_none() {
        findings.push(LOST_MARK.to_owned());
    }
    let first = TargetSetup { is_new, ..setup_of(dir, superblock, options, access, containers, said) };
    let targets = open_alike(&first)?;
    let is_recovered = targets.iter().any(|target| target.is_recovered());
    let taken_back = if is_recovered { take_back(dir, &targets, first.settled)? } else { 0 };
    let now = first.epochs.load(Ordering::Relaxed);
    // All that is there is whole.
    if (is_recovered || said.is_none()) && settled.advance(now) < now && said.is_none() {
        let what = "the completeness mark cannot be written";
        return Err(Error::new(ErrorKind::System, "pool", what).with("path", dir.display()));
    }
    let (order, settled) = (Arc::new(Order::new(Arc::clone(&first.epochs))), Arc::new(settled));
    Target::introduce(&targets, &order, &settled);
    Ok(Opened { targets, epochs: first.epochs, bell: first.bell, order, settled, taken_back, findings })
}

/// Opens all targets from their indexes, or all of them from their logs: where one was not closed, all logs tell what is whole.
fn open_alike(first: &TargetSetup) -> Result<Vec<Arc<Target>>, Error> {
    let dir = files::directory_of(&first.dir);
    let open = || {
        let setup = |number| TargetSetup { number, dir: target_dir(dir, number), ..first.clone() };
        (0..first.targets).map(|number| Target::open(&setup(number))).collect::<Result<Vec<_>, _>>()
    };
    let targets = open()?;
    let recovered = targets.iter().filter(|target| target.is_recovered()).count();
    if recovered == 0 || recovered == targets.len() || first.is_new {
        return Ok(targets);
    }
    // Opening has taken the indexes away.
    drop(targets);
    open()
}

fn take_back(dir: &Path, targets: &[Arc<Target>], settled: Epoch) -> Result<u64, Error> {
    let targets: Vec<Option<Arc<Target>>> = targets.iter().cloned().map(Some).collect();
    repair::take_back(&targets, settled).map_err(|error| {
        let message = format!("cannot roll back interrupted updates: {error}");
        Error::new(ErrorKind::Run, "pool", message).with("path", dir.display())
    })
}
