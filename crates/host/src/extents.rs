//! Which parts of a file hold written data, and which are holes or allocated but never written.
#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::path::Path;

use rustix::fs::SeekFrom;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `FS_IOC_FIEMAP`: `_IOWR('f', 11, struct fiemap)` of linux/fs.h.
const FS_IOC_FIEMAP: u32 = 0xC020_660B;
/// Write delayed data out first: until then it has no extents.
const FIEMAP_FLAG_SYNC: u32 = 1;
const FIEMAP_EXTENT_LAST: u32 = 1;
const FIEMAP_EXTENT_ENCODED: u32 = 0x8;
const FIEMAP_EXTENT_DATA_ENCRYPTED: u32 = 0x80;
const FIEMAP_EXTENT_UNWRITTEN: u32 = 0x800;
const FIEMAP_EXTENT_SHARED: u32 = 0x2000;
/// Extents asked for in one call.
const BATCH: usize = 256;

/// How the bytes of a range are backed. The first three sum up to its length.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Extents {
    /// Allocated and written, in bytes.
    pub allocated_bytes: u64,
    /// Allocated, never written, in bytes: a read makes zeros of it without the device.
    pub unwritten_bytes: u64,
    /// Not allocated, in bytes: as above.
    pub hole_bytes: u64,
    /// Of what is written, in bytes: stored compressed, so that the device holds fewer.
    #[serde(default)]
    pub encoded_bytes: u64,
    /// Of what is written, in bytes: stored on blocks that other parts or files have too (reflinks, snapshots).
    #[serde(default)]
    pub shared_bytes: u64,
}

/// How a stretch of a file is backed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backing {
    /// Allocated and written.
    Written,
    /// The same, but the device holds other bytes, or holds them for others too.
    Altered {
        /// Compressed.
        is_encoded: bool,
        /// On blocks of others too.
        is_shared: bool,
    },
    /// Allocated, never written.
    Unwritten,
    /// Not allocated. Beyond the end of the file too.
    Hole,
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
struct FiemapExtent {
    logical: u64,
    physical: u64,
    length: u64,
    reserved64: [u64; 2],
    flags: u32,
    reserved: [u32; 3],
}

#[repr(C)]
struct Fiemap {
    start: u64,
    length: u64,
    flags: u32,
    mapped_extents: u32,
    extent_count: u32,
    reserved: u32,
    extents: [FiemapExtent; BATCH],
}

/// How the bytes of `range` of the file at `path` are backed.
///
/// Where the file system has no FIEMAP (tmpfs, ZFS, network file systems), SEEK_HOLE answers, and then
/// nothing counts as unwritten.
///
/// # Errors
/// The kernel's, when the file cannot be opened or asked.
pub fn extents(path: &Path, range: Range<u64>) -> io::Result<Extents> {
    let mut sum = Extents::default();
    walk(&File::open(path)?, range, &mut |part, backing| {
        let length = part.end - part.start;
        match backing {
            Backing::Written => sum.allocated_bytes += length,
            Backing::Altered { is_encoded, is_shared } => {
                sum.allocated_bytes += length;
                sum.encoded_bytes += if is_encoded { length } else { 0 };
                sum.shared_bytes += if is_shared { length } else { 0 };
            }
            Backing::Unwritten => sum.unwritten_bytes += length,
            Backing::Hole => sum.hole_bytes += length,
        }
    })?;
    Ok(sum)
}

/// Calls `visit` for the stretches of `range` in order, without gaps; neighbours may be of the same sort.
///
/// # Errors
/// The kernel's, when the file cannot be asked.
pub fn walk(file: &File, range: Range<u64>, visit: &mut dyn FnMut(Range<u64>, Backing)) -> io::Result<()> {
    if range.is_empty() {
        return Ok(());
    }
    match walk_fiemap(file, range.clone(), visit) {
        // EACCES, EPERM: some network file systems and sandboxes.
        Err(error)
            if matches!(
                error.raw_os_error(),
                Some(libc::EOPNOTSUPP | libc::ENOTTY | libc::EACCES | libc::EPERM)
            ) =>
        {
            walk_seek(file, range, visit)
        }
        result => result,
    }
}

/// Fails before the first visit or not at all where FIEMAP is not supported.
fn walk_fiemap(file: &File, range: Range<u64>, visit: &mut dyn FnMut(Range<u64>, Backing)) -> io::Result<()> {
    let size = file.metadata()?.len();
    let mut map = Box::new(Fiemap {
        start: 0,
        length: 0,
        flags: FIEMAP_FLAG_SYNC,
        mapped_extents: 0,
        extent_count: BATCH as u32,
        reserved: 0,
        extents: [FiemapExtent::default(); BATCH],
    });
    let mut at = range.start;
    while at < range.end.min(size) {
        (map.start, map.length, map.mapped_extents) = (at, range.end - at, 0);
        // SAFETY: the kernel reads and writes one fiemap with room for `extent_count` extents; `map` is that
        // and outlives the call.
        if unsafe { libc::ioctl(file.as_raw_fd(), FS_IOC_FIEMAP as libc::Ioctl, &raw mut *map) } != 0 {
            return Err(io::Error::last_os_error());
        }
        let found = &map.extents[..(map.mapped_extents as usize).min(BATCH)];
        let before = at;
        let mut last = found.is_empty();
        for extent in found {
            let start = extent.logical.clamp(at, range.end);
            let end = extent.logical.saturating_add(extent.length).clamp(start, range.end);
            emit(at..start, Backing::Hole, visit);
            emit(start..end, backing_of(extent.flags), visit);
            at = end;
            last |= extent.flags & FIEMAP_EXTENT_LAST != 0;
        }
        if last || at == before {
            break;
        }
    }
    emit(at..range.end, Backing::Hole, visit);
    Ok(())
}

fn backing_of(flags: u32) -> Backing {
    let has = |flag| flags & flag != 0;
    // Encrypted data count as encoded too, but are as long as they were.
    let is_encoded = has(FIEMAP_EXTENT_ENCODED) && !has(FIEMAP_EXTENT_DATA_ENCRYPTED);
    let is_shared = has(FIEMAP_EXTENT_SHARED);
    match () {
        () if has(FIEMAP_EXTENT_UNWRITTEN) => Backing::Unwritten,
        () if is_encoded || is_shared => Backing::Altered { is_encoded, is_shared },
        () => Backing::Written,
    }
}

fn walk_seek(file: &File, range: Range<u64>, visit: &mut dyn FnMut(Range<u64>, Backing)) -> io::Result<()> {
    let mut at = range.start;
    while at < range.end {
        let data = match rustix::fs::seek(file, SeekFrom::Data(at)) {
            Ok(data) => data.clamp(at, range.end),
            // No data from here to the end of the file.
            Err(rustix::io::Errno::NXIO) => range.end,
            Err(error) => return Err(error.into()),
        };
        emit(at..data, Backing::Hole, visit);
        if data == range.end {
            break;
        }
        at = rustix::fs::seek(file, SeekFrom::Hole(data))?.clamp(data, range.end);
        emit(data..at, Backing::Written, visit);
        if at == data {
            return Err(io::Error::other("the file changed while its extents were read"));
        }
    }
    Ok(())
}

fn emit(part: Range<u64>, backing: Backing, visit: &mut dyn FnMut(Range<u64>, Backing)) {
    if !part.is_empty() {
        visit(part, backing);
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::FileExt;

    use rustix::fs::FallocateFlags;

    use super::*;

    const MIB: u64 = 1 << 20;

    fn patchy(file: &File) {
        file.set_len(8 * MIB).unwrap();
        file.write_all_at(&vec![1; MIB as usize], MIB).unwrap();
        file.write_all_at(&vec![1; MIB as usize], 4 * MIB).unwrap();
    }

    #[test]
    fn holes_are_found() {
        let file = tempfile::NamedTempFile::new().unwrap();
        patchy(file.as_file());
        let found = extents(file.path(), 0..8 * MIB).unwrap();
        assert_eq!(found, Extents { allocated_bytes: 2 * MIB, hole_bytes: 6 * MIB, ..Extents::default() });
        let found = extents(file.path(), MIB / 2..MIB + MIB / 2).unwrap();
        assert_eq!(found, Extents { allocated_bytes: MIB / 2, hole_bytes: MIB / 2, ..Extents::default() });
        let found = extents(file.path(), 7 * MIB..10 * MIB).unwrap();
        assert_eq!(found, Extents { hole_bytes: 3 * MIB, ..Extents::default() });
        assert_eq!(extents(file.path(), 5..5).unwrap(), Extents::default());
        assert!(extents(Path::new("/nonexistent"), 0..1).is_err());
    }

    #[test]
    fn seek_agrees_and_leaves_no_gaps() {
        let file = tempfile::NamedTempFile::new().unwrap();
        patchy(file.as_file());
        for walker in [walk_seek, walk_fiemap] {
            let (mut at, mut written) = (0, 0);
            let result = walker(file.as_file(), 0..9 * MIB, &mut |part, backing| {
                assert_eq!(part.start, at);
                at = part.end;
                written += if backing == Backing::Written { part.end - part.start } else { 0 };
            });
            if result.as_ref().is_err_and(|error| error.raw_os_error() == Some(libc::EOPNOTSUPP)) {
                continue;
            }
            result.unwrap();
            assert_eq!((at, written), (9 * MIB, 2 * MIB));
        }
    }

    #[test]
    fn preallocated_space_is_unwritten_or_unknown() {
        let file = tempfile::NamedTempFile::new().unwrap();
        if rustix::fs::fallocate(file.as_file(), FallocateFlags::empty(), 0, 4 * MIB).is_err() {
            return;
        }
        file.as_file().write_all_at(&vec![1; MIB as usize], 0).unwrap();
        let mut supported = true;
        walk_fiemap(file.as_file(), 0..MIB, &mut |_, _| {}).unwrap_or_else(|_| supported = false);
        if supported {
            let found = extents(file.path(), 0..4 * MIB).unwrap();
            assert_eq!(
                found,
                Extents { allocated_bytes: MIB, unwritten_bytes: 3 * MIB, ..Extents::default() }
            );
        }
    }

    #[test]
    fn flags_known_answers() {
        let altered = |is_encoded, is_shared| Backing::Altered { is_encoded, is_shared };
        assert_eq!(backing_of(0), Backing::Written);
        assert_eq!(backing_of(FIEMAP_EXTENT_LAST), Backing::Written);
        assert_eq!(backing_of(FIEMAP_EXTENT_ENCODED), altered(true, false));
        assert_eq!(backing_of(FIEMAP_EXTENT_ENCODED | FIEMAP_EXTENT_DATA_ENCRYPTED), Backing::Written);
        assert_eq!(backing_of(FIEMAP_EXTENT_SHARED | FIEMAP_EXTENT_LAST), altered(false, true));
        assert_eq!(backing_of(FIEMAP_EXTENT_UNWRITTEN | FIEMAP_EXTENT_SHARED), Backing::Unwritten);
    }

    #[test]
    fn more_extents_than_one_batch() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let count = 2 * BATCH as u64 + 7;
        for index in 0..count {
            file.as_file().write_all_at(&[1; 4096], index * 65_536).unwrap();
        }
        let length = (count - 1) * 65_536 + 4096;
        let found = extents(file.path(), 0..length).unwrap();
        assert_eq!(found.allocated_bytes, count * 4096);
        assert_eq!(found.hole_bytes, length - count * 4096);
    }
}
