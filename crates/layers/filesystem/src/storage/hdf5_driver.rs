//! Sets whose objects are HDF5 files: the workers of this process share one handle of each file that is open.
#![allow(unsafe_code)]

use std::collections::{HashMap, HashSet};
use std::ffi::CString;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};

use driver::{Arena, Completions, Driver, Error, Submitted};
use hdf5::{Access, Failure, File, Hdf5, MemorySpace, Ranks, Way};
use layer::storage::{DatasetPlace, StorageCall, StorageOperation, StorageSet, Transfers};
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
    way: Way,
    /// The ranks that have its files open together, and whether they make transfers together.
    together: Option<(&'static Ranks, bool)>,
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
    pub(super) fn new(top: &Path, set: &StorageSet, ranks: Option<&'static Ranks>) -> Result<Self, Error> {
        let name = |text: &str| {
            CString::new(text).map_err(|_| Error::usage("files", "the name of a dataset contains a NUL byte"))
        };
        let each = set.object_bytes / set.datasets.len().max(1) as u64;
        let datasets = set.datasets.iter().map(|dataset| {
            let element = dataset.element;
            Ok(hdf5::Dataset { name: name(&dataset.name)?, element, elements: each / element.bytes() })
        });
        let library = Hdf5::get()?;
        let together = ranks.zip(set.parallel.map(|transfers| transfers == Transfers::Collective));
        let way = match together {
            Some((ranks, is_collective)) => library.together(ranks, is_collective)?,
            None => library.alone(),
        };
        Ok(Self {
            way,
            together,
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

    /// The file of an object for one more worker. The first one opens it, or makes it where the call says so and no worker has before.
    fn take(&self, call: &StorageOperation, interrupt: &AtomicBool) -> Result<Arc<File>, Failure> {
        let (object, creates) = (call.object, call.call == StorageCall::Create);
        let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(held) = files.open.get_mut(&object) {
            held.holders += 1;
            return Ok(Arc::clone(&held.file));
        }
        let ending = if creates && self.is_renamed { ASIDE } else { b"" };
        let path = self.directory.join(format!("{object}{}", String::from_utf8_lossy(ending)));
        let is_new = creates && !files.made.contains(&object);
        let (group, datasets) = (self.group.as_c_str(), &self.datasets[..]);
        let open = || match is_new {
            true => File::create(self.way, &path, group, datasets),
            false => {
                let access = if creates || self.is_updated { Access::Write } else { Access::Read };
                File::open(self.way, &path, access, (group, datasets))
            }
        };
        let file = self.jointly(said(call, 0), interrupt, open)?;
        if is_new {
            files.made.insert(object);
        }
        let file = Arc::new(file);
        files.open.insert(object, Held { file: Arc::clone(&file), holders: 1 });
        Ok(file)
    }

    /// Makes a call that all ranks must make, once all are about to; `said` tells it from others.
    fn jointly<T>(
        &self,
        said: u64,
        interrupt: &AtomicBool,
        call: impl FnOnce() -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let Some((ranks, _)) = self.together else { return call() };
        ranks.agree(said, interrupt)?;
        let result = call();
        // All have the same files open afterwards, or nobody does anything any more: a file that a rank has opened then stays as it is.
        match ranks.agree(u64::from(result.is_ok()), interrupt) {
            Ok(()) => result,
            Err(other) => result.and(Err(other)),
        }
    }

    /// Waits for the other ranks where they make transfers together.
    #[inline]
    fn await_transfer(&self, said: u64, interrupt: &AtomicBool) -> Result<(), Failure> {
        match self.together {
            Some((ranks, true)) => ranks.agree(said, interrupt),
            _ => Ok(()),
        }
    }

    /// Gives the file of a call back; the last worker closes it.
    fn give_back(
        &self,
        call: &StorageOperation,
        open: Opened,
        interrupt: &AtomicBool,
    ) -> Result<(), Failure> {
        let last = self.taken_back(open);
        last.map_or(Ok(()), |file| self.jointly(said(call, 0), interrupt, || file.close()))
    }

    /// A file that no worker has open any more.
    fn taken_back(&self, Opened { object, file }: Opened) -> Option<File> {
        let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        drop(file);
        let held = files.open.get_mut(&object)?;
        held.holders -= 1;
        if held.holders > 0 {
            return None;
        }
        files.open.remove(&object).and_then(|held| Arc::into_inner(held.file))
    }
}

/// A call as ranks tell it to each other before they make it.
fn said(call: &StorageOperation, dataset: usize) -> u64 {
    (call.call as u64 + 1) << 56
        | u64::from(call.set) << 48
        | (dataset as u64 & 0xffff) << 32
        | call.object & 0xffff_ffff
}

/// The end of a worker that has so many files open.
fn said_end(open: usize) -> u64 {
    (open as u64).min(hdf5::ENDED_MAX)
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
    interrupt: Arc<AtomicBool>,
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
        interrupt: &Arc<AtomicBool>,
    ) -> Result<Self, Error> {
        let open = sets.iter().map(|_| None).collect();
        let (sets, arena, interrupt) = (Arc::clone(sets), Arc::clone(arena), Arc::clone(interrupt));
        Ok(Self { files, sets, open, memory: MemorySpace::new()?, arena, interrupt, failure: None })
    }
}

/// File and buffers of a worker for a call.
struct Hands<'a> {
    open: &'a mut Option<Opened>,
    memory: &'a mut MemorySpace,
    arena: &'a Arena,
    interrupt: &'a AtomicBool,
}

impl Hands<'_> {
    /// Carries a call out.
    #[inline]
    fn carry_out(self, set: &Hdf5Set, call: &StorageOperation) -> Result<u64, Failure> {
        use StorageCall as Call;
        let Self { open, memory, arena, interrupt } = self;
        let closed = || Failure::new(Errno::BADF.raw_os_error(), "the file is not open");
        match call.call {
            Call::Create | Call::Open => {
                if let Some(before) = open.take() {
                    set.give_back(call, before, interrupt)?;
                }
                let file = set.take(call, interrupt)?;
                *open = Some(Opened { object: call.object, file });
                Ok(0)
            }
            Call::Close => {
                let open = open.take().ok_or_else(closed)?;
                set.give_back(call, open, interrupt).map(|()| 0)
            }
            Call::Sync => {
                let file = &open.as_ref().ok_or_else(closed)?.file;
                set.jointly(said(call, 0), interrupt, || file.sync(set.data_sync)).map(|()| 0)
            }
            _ => {
                let file = &open.as_ref().ok_or_else(closed)?.file;
                let place = DatasetPlace::of(call.offset_bytes, set.object_bytes, set.datasets.len());
                let element = set.datasets.get(place.dataset).map_or(1, |dataset| dataset.element.bytes());
                let first = place.offset_bytes / element;
                set.await_transfer(said(call, place.dataset), interrupt)?;
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
        let Self { files, sets, open, memory, arena, interrupt, failure } = self;
        let at = usize::from(call.set);
        let Some(set) = sets.get(at).and_then(Option::as_ref).filter(|_| is_own) else {
            *failure = None;
            return files.submit(batch, done);
        };
        let hands = Hands { open: &mut open[at], memory, arena, interrupt };
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
        let ranks = self.sets.iter().flatten().find_map(|set| set.together).map(|(ranks, _)| ranks);
        let count = self.open.iter().flatten().count();
        // The other ranks learn that this worker makes no more calls, and whether all have the same files open then.
        let is_same = ranks.is_none_or(|ranks| ranks.agree(said_end(count), &self.interrupt).is_ok());
        for (open, set) in self.open.iter_mut().zip(self.sets.iter()) {
            let (Some(open), Some(set)) = (open.take(), set) else { continue };
            let Some(file) = set.taken_back(open) else { continue };
            if is_same || set.together.is_none() {
                // The worker was stopped: what it left open is closed for the others.
                let _ = file.close();
            } else {
                file.abandon();
            }
        }
    }
}
