//! Pools for tests: on tmpfs (mapped) and in the system's temporary directory (direct I/O, where that is a disk).

use std::path::{Path, PathBuf};

use crate::{Checksum, Durability, Flush};
use tempfile::TempDir;
pub(super) use testkit::content;

use crate::model::ObjectId;
use crate::{ContainerId, ContainerProperties, KeyPath, OpenOptions, Pool, PoolOptions};

pub(super) const MIB: u64 = 1 << 20;

/// Where a pool lies in a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ground {
    Memory,
    Disk,
    Msync,
}

pub(super) const GROUNDS: [Ground; 3] = [Ground::Memory, Ground::Disk, Ground::Msync];

impl Ground {
    /// A scratch directory there.
    pub(super) fn scratch(self) -> TempDir {
        let made = match self {
            Self::Memory => tempfile::tempdir_in("/dev/shm"),
            // Beside the build: on a disk, where the temporary directory may be tmpfs.
            Self::Disk | Self::Msync => {
                let own = std::env::current_exe().expect("a path");
                tempfile::tempdir_in(own.parent().expect("a directory"))
            }
        };
        made.expect("a scratch directory")
    }

    pub(super) fn open(self, durability: Durability) -> OpenOptions {
        let flush = if self == Self::Msync { Flush::Msync } else { Flush::Auto };
        OpenOptions { durability, flush, ..OpenOptions::default() }
    }

    pub(super) fn options(self, scm_bytes: u64, nvme_bytes: u64) -> PoolOptions {
        PoolOptions {
            scm_bytes,
            nvme_bytes,
            threshold_bytes: 8192,
            open: self.open(Durability::Sync),
            ..PoolOptions::default()
        }
    }
}

/// A pool with one container.
pub(super) struct Fixture {
    pub(super) dir: TempDir,
    pub(super) ground: Ground,
    pub(super) pool: Option<Pool>,
    pub(super) container: ContainerId,
}

impl Fixture {
    pub(super) fn new(ground: Ground, scm_bytes: u64, nvme_bytes: u64, checksum: Checksum) -> Self {
        Self::in_dir(ground.scratch(), ground, scm_bytes, nvme_bytes, checksum)
    }

    /// In a scratch directory that is there.
    pub(super) fn in_dir(
        dir: TempDir,
        ground: Ground,
        scm_bytes: u64,
        nvme_bytes: u64,
        checksum: Checksum,
    ) -> Self {
        let pool =
            Pool::create(&pool_dir(dir.path()), &ground.options(scm_bytes, nvme_bytes)).expect("a pool");
        let container = pool
            .create_container("strata", &ContainerProperties { checksum, maker: None })
            .expect("a container");
        Self { dir, ground, pool: Some(pool), container }
    }

    pub(super) fn pool(&self) -> &Pool {
        self.pool.as_ref().expect("open")
    }

    pub(super) fn target(&self) -> &std::sync::Arc<crate::Target> {
        self.pool().target(0)
    }

    pub(super) fn path(&self) -> PathBuf {
        pool_dir(self.dir.path())
    }

    /// As after a clean stop, or as after a kill.
    pub(super) fn reopen(&mut self, is_clean: bool) {
        let pool = self.pool.take().expect("open");
        if is_clean {
            pool.close().expect("closed");
        } else {
            drop(pool);
        }
        self.pool = Some(Pool::open(&self.path(), &self.ground.open(Durability::Sync)).expect("opens again"));
    }

    pub(super) fn place<'a>(&self, object: u64, dkey: &'a [u8], akey: &'a [u8]) -> KeyPath<'a> {
        KeyPath { container: self.container, object: ObjectId { lo: object, hi: 0 }, dkey, akey }
    }
}

fn pool_dir(dir: &Path) -> PathBuf {
    dir.join("pool")
}
