//! Open files: the kernel's descriptor has position and flags, the file system the data.

use std::ffi::c_int;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use dfs::local::LocalFileSystem;
use dfs::{Errno, FileSystem, Handle, Inode, OpenFlags};

use crate::hooks::kernel;
use crate::{paths, state, views};

/// A file as the file system has it open.
pub(crate) struct Opened {
    pub(crate) file_system: Arc<dyn FileSystem>,
    pub(crate) inode: Inode,
    pub(crate) handle: Handle,
    /// The mount's process, where it does not see what is written.
    unseen_by: Option<Arc<LocalFileSystem>>,
}

impl Drop for Opened {
    fn drop(&mut self) {
        // The close that led here has told the error of its flush; nobody is left to tell one to.
        let _ = self.file_system.release(self.handle);
        self.file_system.forget(self.inode, 1);
    }
}

/// An open file, which several descriptors may lead to.
pub(crate) struct OpenFile {
    pub(crate) mount: usize,
    pub(crate) readable: bool,
    pub(crate) writable: bool,
    /// Whether each write goes to the end.
    append: AtomicBool,
    /// Whether it was written to since the last flush.
    written: AtomicBool,
    opened: Mutex<Option<Arc<Opened>>>,
    /// Held while the position is read and moved.
    position: Mutex<()>,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl OpenFile {
    /// A file of a mount whose descriptor has these flags; the file system opens it when it is used.
    pub(crate) fn new(mount: usize, flags: c_int) -> Self {
        let mode = flags & libc::O_ACCMODE;
        Self {
            mount,
            readable: mode != libc::O_WRONLY,
            writable: mode != libc::O_RDONLY,
            append: AtomicBool::new(flags & libc::O_APPEND != 0),
            written: AtomicBool::new(false),
            opened: Mutex::default(),
            position: Mutex::default(),
        }
    }

    /// The same file in a child of this process.
    pub(crate) fn reopened(&self) -> Self {
        let append = if self.append.load(Ordering::Relaxed) { libc::O_APPEND } else { 0 };
        let mode = match (self.readable, self.writable) {
            (true, true) => libc::O_RDWR,
            (false, true) => libc::O_WRONLY,
            _ => libc::O_RDONLY,
        };
        Self::new(self.mount, mode | append)
    }

    /// The file in the file system, opened by the path of the descriptor where it is not so far; none where that cannot be.
    pub(crate) fn opened(&self, descriptor: c_int) -> Option<Arc<Opened>> {
        let mut opened = locked(&self.opened);
        if opened.is_none() {
            *opened = self.open(descriptor).map(Arc::new);
        }
        opened.clone()
    }

    fn open(&self, descriptor: c_int) -> Option<Opened> {
        let path = paths::of_descriptor(descriptor)?;
        let (mount, parts) = views::inside(&path)?;
        if mount != self.mount {
            return None;
        }
        let ways = views::ways(mount)?;
        let (file_system, is_apart) = ways.data();
        let inode = referenced(&*file_system, &parts)?;
        let flags = OpenFlags {
            read: self.readable,
            write: self.writable,
            append: self.append.load(Ordering::Relaxed),
            ..OpenFlags::default()
        };
        // The name may lead to another file by now than the one that the descriptor is of.
        let is_same = kernel::facts(descriptor).map(|facts| facts.inode) == Some(inode.0);
        let opened = if is_same { file_system.open(inode, flags) } else { Err(Errno::STALE) };
        let unseen_by = is_apart.then(|| Arc::clone(&ways.process));
        match opened {
            Ok(handle) => Some(Opened { file_system, inode, handle, unseen_by }),
            Err(_) => {
                file_system.forget(inode, 1);
                None
            }
        }
    }

    /// Whether each write goes to the end.
    pub(crate) fn appends(&self) -> bool {
        self.append.load(Ordering::Relaxed)
    }

    /// Takes over flags that the descriptor was given (`F_SETFL`).
    pub(crate) fn set_flags(&self, flags: c_int) {
        let append = flags & libc::O_APPEND != 0;
        if self.append.swap(append, Ordering::Relaxed) != append {
            // The file system opens it anew, the other way.
            *locked(&self.opened) = None;
        }
    }

    pub(crate) fn note_written(&self) {
        self.written.store(true, Ordering::Relaxed);
    }

    /// Shows what was written to others.
    pub(crate) fn flush(&self) -> Result<(), Errno> {
        if !self.written.swap(false, Ordering::Relaxed) {
            return Ok(());
        }
        let opened = locked(&self.opened).clone();
        let Some(opened) = opened else { return Ok(()) };
        opened.file_system.flush(opened.handle)?;
        // Without the mount's process the kernel looks again when its times have passed.
        opened.unseen_by.as_ref().map_or(Ok(()), |process| process.note_changed(opened.inode).or(Ok(())))
    }

    /// Carries `work` out at the position of the descriptor, and moves it by what it gives; none where the descriptor has none.
    pub(crate) fn at_position(
        &self,
        descriptor: c_int,
        work: impl FnOnce(u64) -> Result<usize, Errno>,
    ) -> Option<Result<usize, Errno>> {
        let _held = locked(&self.position);
        // A descriptor that was closed behind the library's back may be something else by now, which has no position.
        let Ok(before) = u64::try_from(kernel::seek(descriptor, 0, libc::SEEK_CUR)) else {
            drop(state::remove(descriptor));
            return None;
        };
        let done = work(before);
        if let Ok(count) = done
            && count > 0
        {
            kernel::seek(descriptor, before as i64 + count as i64, libc::SEEK_SET);
        }
        Some(done)
    }
}

/// Inode of the file of these names, none of which is a symbolic link, with a reference.
fn referenced(file_system: &dyn FileSystem, names: &[Vec<u8>]) -> Option<Inode> {
    let mut here = Inode::ROOT;
    for name in names {
        let next = file_system.look_up(here, name);
        if here != Inode::ROOT {
            file_system.forget(here, 1);
        }
        here = next.ok()?.inode;
    }
    (here != Inode::ROOT).then_some(here)
}

/// Flushes every file that was written to.
pub(crate) fn flush_all() {
    let files: Vec<_> = state::read().files.values().cloned().collect();
    for file in files {
        // Its close, which is still to come, has nothing to tell then: what the file system refused, a sync tells.
        if file.flush().is_err() {
            file.note_written();
        }
    }
}
