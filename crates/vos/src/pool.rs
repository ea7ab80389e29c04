//! A pool: a directory with a superblock, a table of containers, and targets.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::{Allocation, Checksum, Durability, Flush};
use driver::{Error, ErrorKind};
use parking_lot::Mutex;

use super::access::access_of;
use super::batch::Committer;
use super::containers::{Row, Table};
use super::files;
use super::keeper::Keeper;
use super::making::{keep_back, remove_pool};
use super::opening::{Opened, open_targets};
use super::order::{Held, Order};
use super::settled::Settled;
use super::storage_target::{ContainerState, INDEX_FILE, value_bytes_max};
use super::superblock::{self, Lock, PoolUuid, Superblock, target_dir};
use super::{ContainerId, ContainerProperties, SpaceInfo, StoreError, Target};
use crate::claims::Claims;
use crate::info::{ContainerInfo, PoolInfo};
use crate::model::Epoch;

/// Options that a pool is opened with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OpenOptions {
    /// When an update counts as done.
    pub durability: Durability,
    /// How mapped memory is made durable.
    pub flush: Flush,
    /// When it takes its space from the file system.
    pub allocation: Allocation,
}

/// Options that a pool is made with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolOptions {
    /// Targets.
    pub targets: u32,
    /// Log of all targets together, in bytes.
    pub scm_bytes: u64,
    /// Data files of all targets together, in bytes; 0: none.
    pub nvme_bytes: u64,
    /// Values from this size on go to the data file, where there is one.
    pub threshold_bytes: u64,
    /// How it is opened then.
    pub open: OpenOptions,
    /// Its UUID; none: one is drawn.
    pub uuid: Option<PoolUuid>,
}

impl Default for PoolOptions {
    /// One target with 2 GiB of log and no data file; a threshold of 4 KiB.
    fn default() -> Self {
        Self {
            targets: 1,
            scm_bytes: 2 << 30,
            nvme_bytes: 0,
            threshold_bytes: 4096,
            open: OpenOptions::default(),
            uuid: None,
        }
    }
}

impl PoolOptions {
    /// Largest value that a target of such a pool takes, in bytes.
    ///
    /// # Errors
    /// Bad usage: no pool can be so.
    pub fn value_bytes_max(&self) -> Result<u64, Error> {
        let superblock = Superblock::plan(self)?;
        Ok(value_bytes_max(superblock.segment_bytes, superblock.nvme_bytes))
    }
}

/// Facts of a container of a pool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContainerFacts {
    /// Its number.
    pub id: ContainerId,
    /// Label, unique in the pool.
    pub label: String,
    /// UUID.
    pub uuid: String,
    /// Checksum of its data.
    pub checksum: Checksum,
    /// Its snapshots, oldest first.
    pub snapshots: Vec<Epoch>,
    /// Latest epoch of the pool.
    pub epoch: Epoch,
}

impl From<ContainerFacts> for ContainerInfo {
    fn from(facts: ContainerFacts) -> Self {
        let ContainerFacts { id: _, label, uuid, checksum, snapshots, epoch } = facts;
        Self { label, uuid, checksum, snapshots, epoch }
    }
}

/// A pool that is open in this process. No other process can open it meanwhile. Dropped without [`Pool::close`] it is as after a kill:
/// the next open reads the log. Targets that others hold longer than the pool must not be used any more: nothing keeps another process
/// out then.
#[derive(Debug)]
pub struct Pool {
    dir: PathBuf,
    superblock: Superblock,
    targets: Vec<Arc<Target>>,
    pub(super) containers: Mutex<Table>,
    epochs: Arc<AtomicU64>,
    opening_findings: Vec<String>,
    /// Commits at times, with `Durability::Batch`.
    committer: Option<Committer>,
    keeper: Option<Keeper>,
    order: Arc<Order>,
    settled: Arc<Settled>,
    /// Its lock keeps other processes out.
    lock: Lock,
}

impl Pool {
    /// Opens the pool in `dir`.
    ///
    /// # Errors
    /// There is none, it is of another version, another process has it open, it cannot be read.
    pub fn open(dir: &Path, options: &OpenOptions) -> Result<Self, Error> {
        let (superblock, lock) = Superblock::read(dir)?;
        Self::open_locked(dir, superblock, lock, options)
    }

    /// Opens a pool whose lock is held.
    pub(super) fn open_locked(
        dir: &Path,
        superblock: Superblock,
        lock: Lock,
        options: &OpenOptions,
    ) -> Result<Self, Error> {
        let access = access_of(dir, options.flush)?;
        let containers = Table::read(dir)?;
        let opened = open_targets(dir, &superblock, options, access, &containers, false)?;
        Self::assemble(dir, superblock, opened, containers, lock, options)
    }

    /// Of targets that were opened.
    pub(super) fn assemble(
        dir: &Path,
        superblock: Superblock,
        opened: Opened,
        containers: Table,
        lock: Lock,
        options: &OpenOptions,
    ) -> Result<Self, Error> {
        let Opened { targets, epochs, bell, order, settled, taken_back, findings } = opened;
        let mut opening_findings = findings;
        opening_findings.extend(targets.iter().flat_map(|target| target.take_findings()));
        if taken_back > 0 {
            opening_findings
                .push(format!("{taken_back} interrupted updates of several targets were rolled back"));
        }
        // What could not be kept back is kept back when there is space again.
        let _ = keep_back(dir);
        let commits = options.durability == Durability::Batch && has_threads(dir);
        let committer = commits.then(|| Committer::start(&targets)).transpose()?;
        let keeper = has_threads(dir).then(|| Keeper::start(&targets, bell)).transpose()?;
        Ok(Self {
            dir: dir.to_path_buf(),
            superblock,
            targets,
            containers: Mutex::new(containers),
            epochs,
            opening_findings,
            committer,
            keeper,
            order,
            settled,
            lock,
        })
    }

    /// The order of changes that go to several targets.
    pub fn order(&self) -> &Arc<Order> {
        &self.order
    }

    /// Its targets.
    #[must_use]
    pub fn targets(&self) -> &[Arc<Target>] {
        &self.targets
    }

    /// One target.
    ///
    /// # Panics
    /// When there is no such target.
    #[must_use]
    pub fn target(&self, number: usize) -> &Arc<Target> {
        &self.targets[number]
    }

    /// Its UUID.
    #[must_use]
    pub fn uuid(&self) -> String {
        self.superblock.uuid_text()
    }

    /// Space (see [`Pool::space`]) and containers. Not for a measured loop.
    #[must_use]
    pub fn info(&self) -> PoolInfo {
        let space = self.space();
        PoolInfo {
            name: self.dir.display().to_string(),
            uuid: self.uuid(),
            targets: self.superblock.targets,
            scm_bytes: space.scm_bytes,
            scm_free_bytes: space.scm_free_bytes,
            nvme_bytes: space.nvme_bytes,
            nvme_free_bytes: space.nvme_free_bytes,
            index_bytes: space.index_bytes,
            grown_bytes: space.grown_bytes,
            keys: space.keys,
            containers: self.containers.lock().rows.len() as u32,
            value_bytes_max: self.targets.first().map_or(0, |target| target.value_bytes_max()),
        }
    }

    /// Space of all targets. The files take their space from the file system as they are filled: what is free here is what the pool may
    /// grow to, and the file system may have less. An update that it has no space for fails as one of a full pool does.
    #[must_use]
    pub fn space(&self) -> SpaceInfo {
        self.targets.iter().map(|target| target.space()).fold(SpaceInfo::default(), |all, one| SpaceInfo {
            scm_bytes: all.scm_bytes + one.scm_bytes,
            scm_free_bytes: all.scm_free_bytes + one.scm_free_bytes,
            nvme_bytes: all.nvme_bytes + one.nvme_bytes,
            nvme_free_bytes: all.nvme_free_bytes + one.nvme_free_bytes,
            index_bytes: all.index_bytes + one.index_bytes,
            keys: all.keys + one.keys,
            grown_bytes: all.grown_bytes + one.grown_bytes,
        })
    }

    /// Waits until the pool has space ready to be written, of `log_bytes` more of its logs than are kept ready at all times, and of
    /// `data_bytes` of its data files, dealt out evenly to its targets: until as much was written, no page comes into being and nobody works beside the caller. `stop` ends it early. Not for a
    /// measured loop.
    pub fn stock(&self, log_bytes: u64, data_bytes: u64, stop: &AtomicBool) {
        let share = |bytes: u64| bytes.div_ceil(u64::from(self.superblock.targets.max(1)));
        self.targets.iter().for_each(|target| target.stock(share(log_bytes), share(data_bytes), stop));
    }

    /// Whether values of this size, in bytes, go to the data file.
    #[must_use]
    pub fn is_external(&self, bytes: u64) -> bool {
        self.targets.first().is_some_and(|target| target.is_external(bytes as usize))
    }

    /// How updates are made durable, in words, for records.
    #[must_use]
    pub fn durable_by(&self) -> String {
        self.targets.first().map_or_else(String::new, |target| target.durable_by().to_string())
    }

    /// Damaged parts of logs that opening left out. A line each, 16 a target at most.
    #[must_use]
    pub fn findings(&self) -> &[String] {
        &self.opening_findings
    }

    /// Makes a container.
    ///
    /// # Errors
    /// The label is taken or empty, the table cannot be written.
    pub fn create_container(
        &self,
        label: &str,
        properties: &ContainerProperties,
    ) -> Result<ContainerId, Error> {
        if label.is_empty() {
            return Err(
                Error::usage("container", "a container needs a label").remedy("specify one, such as strata")
            );
        }
        let mut table = self.containers.lock();
        if table.rows.iter().any(|row| row.label == label) {
            return Err(Error::usage("container", "a container with this label already exists")
                .with("label", label)
                .remedy("open it, destroy it first, or use another label"));
        }
        let before = table.clone();
        let id = ContainerId(table.next);
        table.next += 1;
        table.rows.push(Row {
            id,
            label: label.to_string(),
            uuid: superblock::uuid_text(&superblock::random_uuid()?),
            checksum: properties.checksum,
            snapshots: Vec::new(),
            maker: properties.maker,
            claims: Claims::default(),
            ids_end: 1,
            next_id: 1,
        });
        table.write_or_error().inspect_err(|_| *table = before)?;
        for target in &self.targets {
            target.set_container(id, ContainerState { checksum: properties.checksum, snapshots: Vec::new() });
        }
        Ok(id)
    }

    /// The container of a label. Reads a table in memory: cheap enough to be measured.
    #[must_use]
    pub fn find_container(&self, label: &str) -> Option<ContainerFacts> {
        let epoch = self.epoch();
        self.containers.lock().rows.iter().find(|row| row.label == label).map(|row| facts(row, epoch))
    }

    /// All containers, by label.
    #[must_use]
    pub fn containers(&self) -> Vec<ContainerFacts> {
        let epoch = self.epoch();
        let mut all: Vec<_> = self.containers.lock().rows.iter().map(|row| facts(row, epoch)).collect();
        all.sort_unstable_by(|one, other| one.label.cmp(&other.label));
        all
    }

    /// Destroys a container: it is gone at once, its space comes back with the next [`Target::collect`].
    ///
    /// # Errors
    /// There is none of that label, the table cannot be written.
    pub fn destroy_container(&self, label: &str) -> Result<(), Error> {
        let mut table = self.containers.lock();
        let Some(at) = table.rows.iter().position(|row| row.label == label) else {
            let known: Vec<_> = table.rows.iter().map(|row| row.label.as_str()).collect();
            return Err(Error::new(ErrorKind::Run, "container", "the pool has no container with this label")
                .with("label", label)
                .remedy(format!(
                    "existing containers: {}",
                    if known.is_empty() { "none".into() } else { known.join(", ") }
                )));
        };
        self.destroy_row(&mut table, at)
    }

    /// Destroys the container at a place of the table.
    pub(super) fn destroy_row(&self, table: &mut Table, at: usize) -> Result<(), Error> {
        let row = table.rows.remove(at);
        if let Err(error) = table.write_or_error() {
            table.rows.insert(at, row);
            return Err(error);
        }
        self.targets.iter().for_each(|target| target.remove_container(row.id));
        Ok(())
    }

    /// Removes the pool with all that is in it, without letting another process in before. What holds its targets must not use them any
    /// more.
    ///
    /// # Errors
    /// Files that cannot be removed.
    pub fn destroy_open(mut self) -> Result<(), Error> {
        drop(self.keeper.take());
        if let Some(committer) = self.committer.take() {
            committer.stop();
        }
        remove_pool(&self.dir)
    }

    /// Takes `count` object ids (the user's 64 bits) that are given to nobody else, ever; returns the first.
    ///
    /// # Errors
    /// [`StoreError::NotFound`], or the table cannot be written.
    pub fn allocate_ids(&self, container: ContainerId, count: u64) -> Result<u64, StoreError> {
        let mut table = self.containers.lock();
        let (first, is_beyond) = table.take_ids(container, count).ok_or(StoreError::NotFound)?;
        if is_beyond {
            table.write().map_err(as_store_error)?;
        }
        Ok(first)
    }

    /// Makes a snapshot: what is seen at the epoch returned stays until the snapshot is destroyed.
    ///
    /// # Errors
    /// [`StoreError::NotFound`], or the table cannot be written.
    pub fn snapshot(&self, container: ContainerId) -> Result<Epoch, StoreError> {
        let mut table = self.containers.lock();
        table.row(container).ok_or(StoreError::NotFound)?;
        // No value is half changed at it.
        let _turns = self.order.all();
        let epoch = Target::with_stopped(&self.targets, || self.epochs.fetch_add(1, Ordering::Relaxed) + 1);
        let row = table.row(container).ok_or(StoreError::NotFound)?;
        row.snapshots.push(epoch);
        if let Err(error) = table.write() {
            table.row(container).map(|row| row.snapshots.pop());
            return Err(as_store_error(error));
        }
        self.tell_snapshots(&mut table, container);
        Ok(epoch)
    }

    /// Snapshots of a container, oldest first.
    ///
    /// # Errors
    /// [`StoreError::NotFound`].
    pub fn snapshots(&self, container: ContainerId) -> Result<Vec<Epoch>, StoreError> {
        Ok(self.containers.lock().row(container).ok_or(StoreError::NotFound)?.snapshots.clone())
    }

    /// Destroys a snapshot.
    ///
    /// # Errors
    /// [`StoreError::NotFound`], or the table cannot be written.
    pub fn destroy_snapshot(&self, container: ContainerId, epoch: Epoch) -> Result<(), StoreError> {
        let mut table = self.containers.lock();
        let row = table.row(container).ok_or(StoreError::NotFound)?;
        let at = row.snapshots.binary_search(&epoch).map_err(|_| StoreError::NotFound)?;
        row.snapshots.remove(at);
        table.write().map_err(as_store_error)?;
        self.tell_snapshots(&mut table, container);
        Ok(())
    }

    fn tell_snapshots(&self, table: &mut Table, container: ContainerId) {
        if let Some(row) = table.row(container) {
            for target in &self.targets {
                let state = ContainerState { checksum: row.checksum, snapshots: row.snapshots.clone() };
                target.set_container(container, state);
            }
        }
    }

    /// The latest epoch given.
    #[must_use]
    pub fn epoch(&self) -> Epoch {
        self.epochs.load(Ordering::Relaxed)
    }

    /// Makes everything durable and writes the index down, so that the next open is quick. Targets that others still hold take no more
    /// changes.
    ///
    /// # Errors
    /// Data that could not be written.
    pub fn close(self) -> Result<(), Error> {
        self.close_locked().map(drop)
    }

    /// As [`Pool::close`]; the pool stays locked.
    pub(super) fn close_locked(mut self) -> Result<Lock, Error> {
        drop(self.keeper.take());
        if let Some(committer) = self.committer.take() {
            committer.stop();
        }
        let mut table = self.containers.lock();
        // Nothing is half changed then; what could be neither made nor taken back is found by those who read the logs.
        let turns = self.order.all();
        let is_whole = turns.iter().all(Held::has_ended);
        table.settle_ids();
        match table.write() {
            // Ids that were given to nobody are lost, and nothing else.
            Err(error) if files::is_full(&error) => {}
            written => written.map_err(|error| table.failure(error))?,
        }
        for (number, target) in self.targets.iter().enumerate() {
            target.close(&target_dir(&self.dir, number as u32).join(INDEX_FILE), is_whole)?;
        }
        drop(turns);
        // All is durable, and nothing under way: the next failure has less to look through.
        self.settled.advance(self.order.ended());
        drop(table);
        Ok(self.lock)
    }
}

/// Tests that cut the power do what the pool's threads do, at moments that follow from a seed.
fn has_threads(_dir: &Path) -> bool {
    #[cfg(test)]
    if super::cut::disk_of(_dir).is_some() {
        return false;
    }
    true
}

fn as_store_error(error: std::io::Error) -> StoreError {
    StoreError::System(error.raw_os_error().unwrap_or(libc::EIO))
}

fn facts(row: &Row, epoch: Epoch) -> ContainerFacts {
    ContainerFacts {
        id: row.id,
        label: row.label.clone(),
        uuid: row.uuid.clone(),
        checksum: row.checksum,
        snapshots: row.snapshots.clone(),
        epoch,
    }
}
