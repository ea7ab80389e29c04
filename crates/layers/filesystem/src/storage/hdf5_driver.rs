//! Sets whose objects are HDF5 files: the workers of this process share one handle of each file that is open.
#![allow(unsafe_code)]

use std::collections::{HashMap, HashSet};
use std::ffi::CString;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use driver::{Arena, Completions, Driver, Error, Submitted};
use hdf5::{Access, Failure, File, Hdf5, MemorySpace};
use layer::storage::{DatasetPlace, StorageCall, StorageOperation, StorageSet};
use rustix::io::Errno;

use super::driver::{ASIDE, FilesDriver};
use crate::drivers::Posix;

/// A file that workers have open.
struct Held {
    file: Arc<File>,
    holders: u32,
}

/// Files of a set that are open, and those that this process has made.
#[derive(Default)]
struct Files {
    open: HashMap<u64, Held>,
    made: HashSet<u64>,
}

/// A set of HDF5 files.
pub(super) struct Hdf5Set {
    library: &'static Hdf5,
    directory: PathBuf,
    group: CString,
    datasets: Vec<hdf5::Dataset>,
    object_bytes: u64,
    is_renamed: bool,
    is_updated: bool,
    data_sync: bool,
    files: Mutex<Files>,
}

impl Hdf5Set {
    /// The set below `top`; nothing is opened.
    ///
    /// # Errors
    /// When the library is missing.
    pub(super) fn new(top: &Path, set: &StorageSet) -> Result<Self, Error> {
        let name = |text: &str| {
            CString::new(text).map_err(|_| Error::usage("files", "the name of a dataset has a NUL"))
        };
        let each = set.object_bytes / set.datasets.len().max(1) as u64;
        let datasets = set.datasets.iter().map(|dataset| {
            let element = dataset.element;
            Ok(hdf5::Dataset { name: name(&dataset.name)?, element, elements: each / element.bytes() })
        });
        Ok(Self {
            library: Hdf5::get()?,
            directory: top.join(&set.name),
            group: name(&set.name)?,
            datasets: datasets.collect::<Result<_, Error>>()?,
            object_bytes: set.object_bytes,
            is_renamed: set.is_renamed,
            is_updated: set.is_updated,
            data_sync: set.data_sync,
            files: Mutex::default(),
        })
    }

    /// The file of an object for one more worker. The first one opens it, or makes it where `creates` says so and no worker has before.
    fn take(&self, object: u64, creates: bool) -> Result<Arc<File>, Failure> {
        let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(held) = files.open.get_mut(&object) {
            held.holders += 1;
            return Ok(Arc::clone(&held.file));
        }
        let ending = if creates && self.is_renamed { ASIDE } else { b"" };
        let path = self.directory.join(format!("{object}{}", String::from_utf8_lossy(ending)));
        let is_new = creates && !files.made.contains(&object);
        let (group, datasets) = (self.group.as_c_str(), &self.datasets[..]);
        let file = match is_new {
            true => File::create(self.library, &path, group, datasets)?,
            false => {
                let access = if creates || self.is_updated { Access::Write } else { Access::Read };
                File::open(self.library, &path, access, (group, datasets))?
            }
        };
        if is_new {
            files.made.insert(object);
        }
        let file = Arc::new(file);
        files.open.insert(object, Held { file: Arc::clone(&file), holders: 1 });
        Ok(file)
    }

    /// Gives it back; the last worker closes it.
    fn give_back(&self, object: u64, file: Arc<File>) -> Result<(), Failure> {
        let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        drop(file);
        let Some(held) = files.open.get_mut(&object) else { return Ok(()) };
        held.holders -= 1;
        if held.holders > 0 {
            return Ok(());
        }
        let last = files.open.remove(&object).and_then(|held| Arc::into_inner(held.file));
        last.map_or(Ok(()), File::close)
    }
}

/// An object that a worker has open.
struct Opened {
    object: u64,
    file: Arc<File>,
}

/// Driver of one worker: calls on HDF5 files by the library, all others as on other files.
pub(super) struct Hdf5Driver {
    files: FilesDriver<Posix>,
    sets: Arc<Vec<Option<Hdf5Set>>>,
    open: Vec<Option<Opened>>,
    memory: MemorySpace,
    arena: Arc<Arena>,
    /// The call that failed last.
    failure: Option<Failure>,
}

impl Hdf5Driver {
    /// A driver beside one of files.
    ///
    /// # Errors
    /// When the library is missing.
    pub(super) fn new(
        files: FilesDriver<Posix>,
        sets: &Arc<Vec<Option<Hdf5Set>>>,
        arena: &Arc<Arena>,
    ) -> Result<Self, Error> {
        let open = sets.iter().map(|_| None).collect();
        let (sets, arena) = (Arc::clone(sets), Arc::clone(arena));
        Ok(Self { files, sets, open, memory: MemorySpace::new()?, arena, failure: None })
    }
}

/// File and buffers of a worker for a call.
struct Hands<'a> {
    open: &'a mut Option<Opened>,
    memory: &'a mut MemorySpace,
    arena: &'a Arena,
}

impl Hands<'_> {
    /// Carries a call out.
    #[inline]
    fn carry_out(self, set: &Hdf5Set, call: &StorageOperation) -> Result<u64, Failure> {
        use StorageCall as Call;
        let Self { open, memory, arena } = self;
        let closed = || Failure::new(Errno::BADF.raw_os_error(), "the file is not open");
        match call.call {
            Call::Create | Call::Open => {
                if let Some(before) = open.take() {
                    set.give_back(before.object, before.file)?;
                }
                let file = set.take(call.object, call.call == Call::Create)?;
                *open = Some(Opened { object: call.object, file });
                Ok(0)
            }
            Call::Close => {
                let open = open.take().ok_or_else(closed)?;
                set.give_back(open.object, open.file).map(|()| 0)
            }
            Call::Sync => open.as_ref().ok_or_else(closed)?.file.sync(set.data_sync).map(|()| 0),
            _ => {
                let file = &open.as_ref().ok_or_else(closed)?.file;
                let place = DatasetPlace::of(call.offset_bytes, set.object_bytes, set.datasets.len());
                let element = set.datasets.get(place.dataset).map_or(1, |dataset| dataset.element.bytes());
                let first = place.offset_bytes / element;
                // SAFETY: the slot is the driver's from submit to completion, which is this call.
                let buffer = unsafe { arena.slot_mut(call.slot, call.length_bytes as usize) };
                match call.call {
                    Call::Write => file.write(memory, place.dataset, first, buffer)?,
                    _ => file.read(memory, place.dataset, first, buffer)?,
                }
                Ok(call.length_bytes)
            }
        }
    }
}

impl Driver<StorageOperation> for Hdf5Driver {
    #[inline]
    fn submit(&mut self, batch: &[StorageOperation], done: &mut Completions) -> Result<Submitted, Error> {
        use StorageCall as Call;
        let Some(call) = batch.first() else { return Ok(Submitted { accepted: 0 }) };
        let is_own = matches!(
            call.call,
            Call::Create | Call::Open | Call::Write | Call::Read | Call::Sync | Call::Close
        );
        let Self { files, sets, open, memory, arena, failure } = self;
        let at = usize::from(call.set);
        let Some(set) = sets.get(at).and_then(Option::as_ref).filter(|_| is_own) else {
            *failure = None;
            return files.submit(batch, done);
        };
        let hands = Hands { open: &mut open[at], memory, arena };
        let result = match hands.carry_out(set, call) {
            Ok(count) => count as i64,
            Err(failed) => {
                let errno = i64::from(failed.errno.max(1));
                *failure = Some(failed);
                -errno
            }
        };
        done.push(call.slot, result);
        Ok(Submitted { accepted: 1 })
    }

    fn cause(&self, slot: u32, result: i64) -> Option<String> {
        match &self.failure {
            Some(failure) => Some(failure.text.clone()),
            None => self.files.cause(slot, result),
        }
    }
}

impl Drop for Hdf5Driver {
    fn drop(&mut self) {
        for (open, set) in self.open.iter_mut().zip(self.sets.iter()) {
            if let (Some(open), Some(set)) = (open.take(), set) {
                // The worker has failed or was stopped: what it left open is closed for the others.
                let _ = set.give_back(open.object, open.file);
            }
        }
    }
}
