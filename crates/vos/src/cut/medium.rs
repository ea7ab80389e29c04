//! The medium of a file on a disk that loses what was not synced.

use std::path::Path;
use std::sync::Arc;

use super::disk::Disk;
use crate::error::StoreError;
use crate::flush::Flusher;
use crate::medium::Medium;
use crate::memory::Region;

/// A medium whose unsynced writes are kept apart.
#[derive(Debug)]
struct Lossy {
    inner: Arc<dyn Medium>,
    disk: Arc<Disk>,
    inode: usize,
}

/// Puts it over a medium, where the file lies on such a disk.
pub(crate) fn wrap(path: &Path, bytes: u64, inner: Arc<dyn Medium>) -> Arc<dyn Medium> {
    match super::disk_of(path) {
        None => inner,
        Some(disk) => {
            let inode = disk.adopt(path, inner.mapped(), bytes);
            Arc::new(Lossy { inner, disk, inode })
        }
    }
}

impl Medium for Lossy {
    fn mapped(&self) -> Option<&Arc<Region>> {
        self.inner.mapped()
    }

    fn flusher(&self) -> Flusher {
        self.inner.flusher()
    }

    fn allocate(&self, at: u64, bytes: u64) -> Result<(), StoreError> {
        self.inner.allocate(at, bytes)
    }

    fn free_bytes(&self) -> u64 {
        self.inner.free_bytes()
    }

    fn write(&self, bytes: &[u8], at: u64) -> Result<(), StoreError> {
        self.disk.event();
        self.disk.write(self.inode, at, bytes);
        self.inner.write(bytes, at)
    }

    fn read(&self, into: &mut [u8], at: u64) -> Result<(), StoreError> {
        self.disk.run_hook();
        self.inner.read(into, at)
    }

    fn sync(&self, at: u64, bytes: u64) -> Result<(), StoreError> {
        let is_done = self.disk.sync(self.inode, at as usize, bytes as usize);
        if is_done { Ok(()) } else { Err(StoreError::System(libc::EIO)) }
    }

    fn is_synced(&self) -> bool {
        self.inner.is_synced()
    }

    fn durable_by(&self) -> &'static str {
        self.inner.durable_by()
    }
}
