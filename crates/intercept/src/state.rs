//! Files and directories that are intercepted, in one table with one lock, and how it gets through a fork.

#![allow(unsafe_code)]

use std::cell::Cell;
use std::collections::BTreeMap;
use std::ffi::c_int;
use std::mem::{self, ManuallyDrop};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use crate::directories::OpenDirectory;
use crate::files::OpenFile;
use crate::paths::Directory;
use crate::views::Ways;
use crate::{enter, files};

/// Whether there is anything to intercept in this process.
pub(crate) static ACTIVE: AtomicBool = AtomicBool::new(false);
/// The process that the table is of. A child of `vfork` shares the table, and must not touch it.
static OWNER: AtomicI32 = AtomicI32::new(0);

/// Descriptors above that are not intercepted.
const DESCRIPTORS_MAX: usize = 1 << 18;
/// Which descriptors stand in the table, so that calls on all others take no lock.
static KNOWN: [AtomicU64; DESCRIPTORS_MAX / 64] = [const { AtomicU64::new(0) }; DESCRIPTORS_MAX / 64];

/// Connection to the file system of a mount.
#[derive(Default)]
pub(crate) enum Connection {
    /// Not tried so far.
    #[default]
    None,
    /// Open.
    Open(Arc<Ways>),
    /// It cannot be reached: calls go through the mount.
    Failed,
}

/// Everything that this library knows of the process.
pub(crate) struct State {
    pub(crate) files: BTreeMap<c_int, Arc<OpenFile>>,
    pub(crate) directories: BTreeMap<usize, Arc<Mutex<OpenDirectory>>>,
    /// By number of the mount.
    pub(crate) connections: BTreeMap<usize, Connection>,
    /// Directories that were found on the way to files, by mount and path in it.
    pub(crate) known_directories: BTreeMap<(usize, Vec<u8>), Arc<Directory>>,
}

static STATE: RwLock<State> = RwLock::new(State {
    files: BTreeMap::new(),
    directories: BTreeMap::new(),
    connections: BTreeMap::new(),
    known_directories: BTreeMap::new(),
});

/// The table, to look at.
pub(crate) fn read() -> RwLockReadGuard<'static, State> {
    STATE.read().unwrap_or_else(PoisonError::into_inner)
}

/// The table, to change.
pub(crate) fn write() -> RwLockWriteGuard<'static, State> {
    STATE.write().unwrap_or_else(PoisonError::into_inner)
}

/// Whether this process is the one that the table is of.
pub(crate) fn is_own_process() -> bool {
    // SAFETY: it has no arguments and cannot fail.
    let process = unsafe { libc::getpid() };
    process == OWNER.load(Ordering::Relaxed)
}

/// Whether a descriptor may stand in the table.
pub(crate) fn is_known(descriptor: c_int) -> bool {
    let Ok(number) = usize::try_from(descriptor) else { return false };
    number < DESCRIPTORS_MAX && KNOWN[number / 64].load(Ordering::Acquire) & (1 << (number % 64)) != 0
}

fn mark(descriptor: c_int, known: bool) {
    let Ok(number) = usize::try_from(descriptor) else { return };
    let bit = 1 << (number % 64);
    if known {
        KNOWN[number / 64].fetch_or(bit, Ordering::Release);
    } else {
        KNOWN[number / 64].fetch_and(!bit, Ordering::Release);
    }
}

/// The file behind a descriptor.
pub(crate) fn file(descriptor: c_int) -> Option<Arc<OpenFile>> {
    read().files.get(&descriptor).cloned()
}

/// Puts a file into the table. What stood there was closed behind the library's back.
pub(crate) fn insert(descriptor: c_int, file: Arc<OpenFile>) {
    if usize::try_from(descriptor).is_ok_and(|number| number < DESCRIPTORS_MAX) {
        let before = write().files.insert(descriptor, file);
        mark(descriptor, true);
        drop(before);
    }
}

/// Takes a file out of the table.
pub(crate) fn remove(descriptor: c_int) -> Option<Arc<OpenFile>> {
    if !is_known(descriptor) {
        return None;
    }
    mark(descriptor, false);
    write().files.remove(&descriptor)
}

/// Descriptors in the table from `first` to `last`.
pub(crate) fn descriptors(first: c_int, last: c_int) -> Vec<c_int> {
    if first > last {
        return Vec::new();
    }
    read().files.range(first..=last).map(|(descriptor, _)| *descriptor).collect()
}

/// Descriptors that lead to the same open file.
pub(crate) fn same_file(descriptor: c_int) -> Vec<c_int> {
    let state = read();
    let Some(file) = state.files.get(&descriptor) else { return Vec::new() };
    state
        .files
        .iter()
        .filter(|(_, other)| Arc::ptr_eq(file, other))
        .map(|(descriptor, _)| *descriptor)
        .collect()
}

thread_local! {
    /// The lock of the table while this thread forks.
    static FORKING: Cell<Option<ManuallyDrop<RwLockWriteGuard<'static, State>>>> = const { Cell::new(None) };
}

/// Begins: the table is that of this process, and gets through forks.
pub(crate) fn begin() {
    // SAFETY: getpid cannot fail; the handlers are functions of this library, which is never unloaded.
    unsafe {
        OWNER.store(libc::getpid(), Ordering::Relaxed);
        libc::pthread_atfork(Some(before_fork), Some(after_fork), Some(in_child));
    }
}

/// No other thread holds the lock while the process is copied, and the child finds what was written.
extern "C" fn before_fork() {
    if !ACTIVE.load(Ordering::Relaxed) || enter::is_inside() || !is_own_process() {
        return;
    }
    enter::apart(files::flush_all);
    FORKING.set(Some(ManuallyDrop::new(write())));
}

extern "C" fn after_fork() {
    drop(FORKING.take().map(ManuallyDrop::into_inner));
}

/// The child opens anew what it uses: connections, and threads behind them, are its parent's.
extern "C" fn in_child() {
    // SAFETY: it cannot fail.
    OWNER.store(unsafe { libc::getpid() }, Ordering::Relaxed);
    let Some(guard) = FORKING.take() else {
        // A handler of a signal has forked in the middle of a call: the table may be half changed.
        ACTIVE.store(false, Ordering::Relaxed);
        return;
    };
    let mut state = ManuallyDrop::into_inner(guard);
    // What the parent holds is given back by the parent: nothing of it is dropped here.
    mem::forget(mem::take(&mut state.connections));
    mem::forget(mem::take(&mut state.known_directories));
    for file in state.files.values_mut() {
        let new = Arc::new(file.reopened());
        mem::forget(mem::replace(file, new));
    }
    for directory in state.directories.values_mut() {
        // Another thread of the parent may have been reading it.
        let new = directory.try_lock().map_or_else(|_| OpenDirectory::lost(), |open| open.reopened());
        mem::forget(mem::replace(directory, Arc::new(Mutex::new(new))));
    }
}
