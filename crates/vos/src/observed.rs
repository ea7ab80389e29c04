//! A file that is looked at and never changed: what is written to it stays in memory, where it is read back.

use std::collections::BTreeMap;
use std::fs::File;
use std::sync::Arc;

use parking_lot::Mutex;

use super::error::StoreError;
use super::flush::Flusher;
use super::medium::{BLOCK_BYTES, Medium, read_all};
use super::memory::Region;

/// See the module. Read by system calls: a hole that is touched in a mapping of tmpfs would take a page.
#[derive(Debug)]
pub(super) struct Observed {
    file: File,
    /// Blocks that were written, by their offset.
    written: Mutex<BTreeMap<u64, Vec<u8>>>,
}

impl Observed {
    /// Of a file that is open for reading.
    pub(super) fn new(file: File) -> Self {
        Self { file, written: Mutex::default() }
    }
}

impl Medium for Observed {
    fn mapped(&self) -> Option<&Arc<Region>> {
        None
    }

    fn flusher(&self) -> Flusher {
        Flusher::Nothing
    }

    fn allocate(&self, _at: u64, _bytes: u64) -> Result<(), StoreError> {
        Ok(())
    }

    fn free_bytes(&self) -> u64 {
        0
    }

    fn write(&self, bytes: &[u8], at: u64) -> Result<(), StoreError> {
        let mut written = self.written.lock();
        for (number, block) in bytes.chunks(BLOCK_BYTES).enumerate() {
            written.insert(at + (number * BLOCK_BYTES) as u64, block.to_vec());
        }
        Ok(())
    }

    fn read(&self, into: &mut [u8], at: u64) -> Result<(), StoreError> {
        read_all(&self.file, into, at)?;
        let end = at + into.len() as u64;
        for (from, block) in self.written.lock().range(at..end) {
            let from = (from - at) as usize;
            let length = block.len().min(into.len() - from);
            into[from..from + length].copy_from_slice(&block[..length]);
        }
        Ok(())
    }

    fn sync(&self, _at: u64, _bytes: u64) -> Result<(), StoreError> {
        Ok(())
    }

    fn is_synced(&self) -> bool {
        false
    }

    fn durable_by(&self) -> &'static str {
        "nothing: the pool is open for reading only"
    }
}
