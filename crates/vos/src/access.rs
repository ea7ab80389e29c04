//! How the files of a pool can be written where they lie.

use std::path::Path;

use crate::Flush;
use driver::{Error, ErrorKind};
use rustix::fs::{AtFlags, CWD, StatxFlags};

use super::flush::Flusher;
use super::storage_target::{Access, file_error};

pub(super) const TMPFS_MAGIC: i64 = 0x0102_1994;
const RAMFS_MAGIC: i64 = 0x8584_58f6;
const HUGETLBFS_MAGIC: i64 = 0x9584_58f6;
/// `STATX_ATTR_DAX`.
const ATTRIBUTE_DAX: u64 = 0x0020_0000;

/// Decides it: on tmpfs and DAX the files are mapped, elsewhere written by direct I/O, unless msync was asked for.
pub(super) fn access_of(dir: &Path, flush: Flush) -> Result<Access, Error> {
    #[cfg(test)]
    if let Some(disk) = super::cut::disk_of(dir) {
        return Ok(disk.access());
    }
    let failed = |errno| file_error("cannot examine the file system", dir, errno);
    let kind = rustix::fs::statfs(dir).map_err(failed)?.f_type as i64;
    let is_memory = [TMPFS_MAGIC, RAMFS_MAGIC, HUGETLBFS_MAGIC].contains(&kind);
    let attributes =
        rustix::fs::statx(CWD, dir, AtFlags::empty(), StatxFlags::BASIC_STATS).map_err(failed)?;
    let is_dax = attributes.stx_attributes.bits() & ATTRIBUTE_DAX != 0;
    let no_flush = std::env::var_os("PMEM_NO_FLUSH").is_some_and(|value| value == "1");
    let flusher = if no_flush { Flusher::Fence } else { Flusher::of_processor() };
    match (flush, is_memory || is_dax) {
        (Flush::Auto | Flush::Cpu, true) => Ok(Access::Mapped { flusher, by_msync: false }),
        (Flush::Msync, _) => Ok(Access::Mapped { flusher, by_msync: true }),
        (Flush::Auto, false) => Ok(Access::Direct),
        (Flush::Cpu, false) => {
            let what =
                "CPU flushes do not make data durable on this file system: it is neither tmpfs nor DAX";
            Err(Error::new(ErrorKind::Usage, "pool", what)
                .with("path", dir.display())
                .remedy("use --flush auto or msync, or a directory on tmpfs or DAX"))
        }
    }
}
