//! Making and opening a target.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use crate::{Allocation, Durability};
use driver::{Error, ErrorKind};
use parking_lot::{Condvar, Mutex};

use super::room::Lack;
use super::{ContainerState, State, Target, loose, room};
use crate::data::{Allocator, DataFile};
use crate::error::StoreError;
use crate::files;
use crate::flush::Flusher;
use crate::index::Index;
use crate::keeper::Bell;
use crate::log::{Log, Need, Segment};
use crate::medium::{Direct, Mapped, Medium};
use crate::model::Epoch;
use crate::observed::Observed;
use crate::record::LINE_BYTES;
use crate::types::ContainerId;

/// Names of a target's files.
pub(crate) const LOG_FILE: &str = "log";
pub(crate) const DATA_FILE: &str = "data";
pub(crate) const INDEX_FILE: &str = "index";

/// How the files of a pool are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    Mapped { flusher: Flusher, by_msync: bool },
    Direct,
}

/// Purpose of opening a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// To be used.
    Use,
    /// To be examined: its files are not changed, and what opening would write stays in memory.
    Look,
    /// As [`Purpose::Look`], from its log although there is an index.
    LookAtLog,
}

/// Options that a target is opened with.
#[derive(Clone, Debug)]
pub(crate) struct TargetSetup {
    pub(crate) number: u32,
    /// Targets of the pool.
    pub(crate) targets: u32,
    pub(crate) dir: PathBuf,
    pub(crate) uuid: [u8; 16],
    pub(crate) segment_bytes: u64,
    pub(crate) segments: u32,
    pub(crate) nvme_bytes: u64,
    pub(crate) threshold_bytes: u64,
    pub(crate) durability: Durability,
    pub(crate) allocation: Allocation,
    pub(crate) access: Access,
    pub(crate) epochs: Arc<AtomicU64>,
    pub(crate) containers: BTreeMap<ContainerId, ContainerState>,
    pub(crate) is_new: bool,
    /// Changes of several targets up to this epoch are whole, whatever the log still has of them.
    pub(crate) settled: Epoch,
    pub(crate) purpose: Purpose,
    /// Calls the pool's keeper.
    pub(crate) bell: Arc<Bell>,
}

/// An error of a file, in one line.
pub(crate) fn file_error(what: &'static str, path: &Path, source: impl Into<std::io::Error>) -> Error {
    let source = source.into();
    let is_full = source.raw_os_error() == Some(libc::ENOSPC);
    let error = Error::system("pool", what, source).with("path", path.display());
    if is_full { error.remedy("reduce --scm or --nvme, or free space on this file system") } else { error }
}

impl TargetSetup {
    fn log_bytes(&self) -> u64 {
        self.segment_bytes * u64::from(self.segments)
    }

    fn open_file(&self, name: &str, bytes: u64) -> Result<(Arc<dyn Medium>, PathBuf), Error> {
        let path = self.dir.join(name);
        if self.purpose != Purpose::Use {
            return Ok((Arc::new(self.observe(&path, bytes)?), path));
        }
        let file = open_or_make(&path, self.is_new)?;
        if self.is_new {
            // Its size alone: space is taken as it is needed.
            let sized = file.set_len(bytes).and_then(|()| files::sync(&file, &path));
            sized.map_err(|error| file_error("cannot set the size of the file", &path, error))?;
        } else {
            check_size(&file, &path, bytes)?;
        }
        let failed = |errno| file_error("cannot map or open the file", &path, errno);
        let medium: Arc<dyn Medium> = match self.access {
            Access::Mapped { flusher, by_msync } => {
                let flusher = if self.durability == Durability::None { Flusher::Nothing } else { flusher };
                Arc::new(Mapped::new(file, bytes, flusher, by_msync).map_err(failed)?)
            }
            Access::Direct => Arc::new(Direct::new(&path).map_err(failed)?),
        };
        #[cfg(test)]
        let medium = crate::cut::wrap(&path, bytes, crate::tests::outside::wrap(&path, medium));
        Ok((medium, path))
    }

    fn observe(&self, path: &Path, bytes: u64) -> Result<Observed, Error> {
        let file = File::open(path).map_err(|error| file_error("cannot open the file", path, error))?;
        check_size(&file, path, bytes)?;
        Ok(Observed::new(file))
    }

    /// Whether what is published in the log follows what is durable: then a process that was killed leaves nothing torn.
    pub(super) fn is_ordered(&self) -> bool {
        matches!(self.access, Access::Mapped { .. })
    }
}

/// Refuses a file of another size than its pool was made with.
fn check_size(file: &File, path: &Path, bytes: u64) -> Result<(), Error> {
    let found = file.metadata().map_err(|error| file_error("cannot examine the file", path, error))?.len();
    if found == bytes {
        return Ok(());
    }
    Err(Error::new(ErrorKind::Run, "pool", "the file does not have the size that its pool was created with")
        .with("path", path.display())
        .with("bytes", bytes)
        .with("found_bytes", found)
        .remedy("the pool is damaged: restore it, or destroy it and create a new one"))
}

fn open_or_make(path: &Path, is_new: bool) -> Result<File, Error> {
    let opened =
        if is_new { files::make(path) } else { OpenOptions::new().read(true).write(true).open(path) };
    opened.map_err(|error| file_error("cannot open the file", path, error))
}

impl Target {
    /// Opens a target: from its checkpoint where there is one, from its log else.
    pub(crate) fn open(setup: &TargetSetup) -> Result<Arc<Self>, Error> {
        let (medium, log_path) = setup.open_file(LOG_FILE, setup.log_bytes())?;
        let failed = |error: StoreError| match error {
            StoreError::System(errno) => file_error(
                "cannot read or write the log",
                &log_path,
                std::io::Error::from_raw_os_error(errno),
            ),
            StoreError::ScmFull => {
                file_error("cannot write the log", &log_path, std::io::Error::from_raw_os_error(libc::ENOSPC))
            }
            other => {
                let path = log_path.display();
                Error::new(ErrorKind::Run, "pool", format!("cannot read the log: {other}")).with("path", path)
            }
        };
        let data = match setup.nvme_bytes {
            0 => None,
            bytes => {
                let (medium, _) = setup.open_file(DATA_FILE, bytes)?;
                Some(Arc::new(DataFile::new(medium, bytes, setup.threshold_bytes)))
            }
        };
        let segments = (0..setup.segments).map(|_| Segment::free(false)).collect();
        let mut target = Self::assemble(setup, medium, data, segments);
        if setup.is_new {
            // A file system that has no space at all says so now.
            let least = Lack::Log { lines: 1, need: Need::Clean };
            if !target.supply(least, 0).map_err(failed)? {
                return Err(failed(StoreError::ScmFull));
            }
            if setup.allocation != Allocation::Needed {
                target.prepare_ahead();
            }
            target.mark(setup)?;
            files::sync_directory(&setup.dir)
                .map_err(|error| file_error("cannot sync the directory", &setup.dir, error))?;
        } else {
            let path = setup.dir.join(INDEX_FILE);
            let is_loaded = setup.purpose != Purpose::LookAtLog && target.load_checkpoint(&path, setup)?;
            if !is_loaded {
                let marked = loose::read(&setup.dir)?;
                let newest = target.recover(setup, marked).map_err(failed)?;
                target.is_recovered = true;
                target.epochs.fetch_max(newest, Ordering::Relaxed);
                target.mark(setup)?;
            }
            target.epochs.fetch_max(target.state.lock().epoch, Ordering::Relaxed);
        }
        if setup.allocation == Allocation::Whole {
            target.allocate_whole().map_err(|error| match error {
                StoreError::ScmFull | StoreError::NvmeFull => {
                    let full = std::io::Error::from_raw_os_error(libc::ENOSPC);
                    file_error("cannot allocate the whole store", &setup.dir, full)
                }
                error => failed(error),
            })?;
        }
        Ok(Arc::new(target))
    }

    /// A log of these segments.
    pub(super) fn new_log(&self, setup: &TargetSetup, segments: Vec<Segment>) -> Log {
        let values = (self.data.clone(), self.is_loose());
        Log::new(self.medium.clone(), setup.segment_bytes, segments, setup.uuid, values)
    }

    fn assemble(
        setup: &TargetSetup,
        medium: Arc<dyn Medium>,
        data: Option<Arc<DataFile>>,
        segments: Vec<Segment>,
    ) -> Self {
        let is_loose = medium.mapped().is_some() && setup.durability == Durability::None;
        let log =
            Log::new(medium.clone(), setup.segment_bytes, segments, setup.uuid, (data.clone(), is_loose));
        let state = State {
            log,
            index: Index::default(),
            containers: setup.containers.clone(),
            last: None,
            extents: Allocator::new(setup.nvme_bytes),
            draining: 0,
            claims: 0,
            discards: Vec::new(),
            gaps: Vec::new(),
            epoch: 0,
            is_closed: false,
        };
        Self {
            number: setup.number,
            durability: setup.durability,
            mapped: medium.mapped().cloned(),
            flusher: medium.flusher(),
            segment_lines: (setup.segment_bytes as usize / LINE_BYTES) as u32,
            epochs: setup.epochs.clone(),
            state: Mutex::new(state),
            pins: (0..setup.segments).map(|_| AtomicU32::new(0)).collect(),
            syncing: Mutex::default(),
            synced: Condvar::new(),
            committing: AtomicU32::new(0),
            durable: AtomicU64::new(0),
            durable_epoch: AtomicU64::new(0),
            data,
            preparing: Mutex::new(()),
            aggregating: Mutex::default(),
            changes: AtomicU64::new(0),
            bell: setup.bell.clone(),
            peers: OnceLock::new(),
            ahead_segments: room::ahead_segments(setup, medium.mapped().is_some()),
            allocation: setup.allocation,
            grown_bytes: AtomicU64::new(0),
            has_spare_processor: room::has_spare_processor(medium.mapped().is_some()),
            medium,
            findings: Mutex::default(),
            is_broken: AtomicBool::new(false),
            timed_out_waits: AtomicU64::new(0),
            marks: Mutex::default(),
            is_recovered: false,
        }
    }
}
