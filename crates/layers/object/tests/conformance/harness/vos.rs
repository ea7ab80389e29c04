//! A pool in a directory of its own.

use std::path::Path;

use super::{Harness, Stand};

/// Shared memory.
pub(super) const MEMORY: &str = "/dev/shm";
/// A file system on a disk: that of the build's own files.
pub(super) const DISK: &str = env!("CARGO_TARGET_TMPDIR");

/// Log, and data files, of a pool: as much as the suite stores, since all of it is touched when a pool is made.
pub(super) fn pool_bytes(targets: u32) -> u64 {
    u64::from(targets) * if targets > 1 { 16 << 20 } else { 64 << 20 }
}

pub(super) struct Vos {
    pub(super) name: &'static str,
    pub(super) base: &'static str,
    pub(super) targets: u32,
    pub(super) class: &'static str,
}

impl Harness for Vos {
    fn name(&self) -> &'static str {
        self.name
    }

    fn driver(&self) -> &'static str {
        "vos"
    }

    fn class(&self) -> &'static str {
        self.class
    }

    fn start(&self) -> Result<Stand, String> {
        if !Path::new(self.base).is_dir() {
            return Err(format!("there is no {}", self.base));
        }
        let dir = tempfile::tempdir_in(self.base).map_err(|error| format!("{}: {error}", self.base))?;
        let mut stand = Stand::new(format!("vos:{}", dir.path().join("pool").display()), dir);
        stand.options.targets = self.targets;
        let bytes = pool_bytes(self.targets);
        (stand.options.scm_bytes, stand.options.nvme_bytes) = (bytes, bytes);
        Ok(stand)
    }
}
