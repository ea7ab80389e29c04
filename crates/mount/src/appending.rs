//! Files that were opened to be appended to. A program may take that back (`F_SETFL`), which each write says and no call of its own.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use dfs::{Errno, FileSystem, Handle, Inode, OpenFlags};

/// Handles that append, each with the one for writes that do not, where there were some.
#[derive(Default)]
pub(crate) struct Appending {
    handles: Mutex<HashMap<u64, Option<Handle>>>,
    /// Number of them, so that other writes take no lock.
    count: AtomicUsize,
}

impl Appending {
    fn lock(&self) -> MutexGuard<'_, HashMap<u64, Option<Handle>>> {
        self.handles.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_empty(&self) -> bool {
        self.count.load(Ordering::Acquire) == 0
    }

    /// Notes a handle that appends.
    pub(crate) fn note(&self, handle: Handle) {
        self.lock().insert(handle.0, None);
        self.count.fetch_add(1, Ordering::Release);
    }

    /// The handle for a write that does not append.
    pub(crate) fn plain(
        &self,
        file_system: &dyn FileSystem,
        inode: Inode,
        handle: Handle,
    ) -> Result<Handle, Errno> {
        if self.is_empty() {
            return Ok(handle);
        }
        let mut handles = self.lock();
        let Some(plain) = handles.get_mut(&handle.0) else { return Ok(handle) };
        if let Some(plain) = plain {
            return Ok(*plain);
        }
        let opened = file_system.open(inode, OpenFlags { write: true, ..OpenFlags::default() })?;
        *plain = Some(opened);
        Ok(opened)
    }

    /// The other handle of a file that is flushed.
    pub(crate) fn other(&self, handle: Handle) -> Option<Handle> {
        if self.is_empty() { None } else { self.lock().get(&handle.0).copied().flatten() }
    }

    /// Forgets a handle that is closed; its other one is to be closed too.
    pub(crate) fn forget(&self, handle: Handle) -> Option<Handle> {
        if self.is_empty() {
            return None;
        }
        let removed = self.lock().remove(&handle.0)?;
        self.count.fetch_sub(1, Ordering::Release);
        removed
    }
}
