//! How much of a file lies in the page cache.
#![allow(unsafe_code)]

use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::fs::{Access, AtFlags, StatxAttributes, StatxFlags};

/// Number of the system call cachestat (Linux 6.5), the same on all architectures.
const CACHESTAT: libc::c_long = 451;
/// Range that one mincore call covers, in bytes.
const WINDOW_BYTES: u64 = 1 << 30;

/// `OVERLAYFS_SUPER_MAGIC` and `FUSE_SUPER_MAGIC` of linux/magic.h.
const OVERLAY: u64 = 0x794C_7630;
const FUSE: u64 = 0x6573_5546;

#[repr(C)]
struct Range {
    offset: u64,
    length: u64,
}

#[repr(C)]
#[derive(Default)]
struct Cachestat {
    cached: u64,
    dirty: u64,
    writeback: u64,
    evicted: u64,
    recently_evicted: u64,
}

/// The share (0 to 1) of the pages of `offset_bytes..offset_bytes + length_bytes` that lie in the page cache.
///
/// `None` when the file cannot be opened, the range is empty, or the kernel does not say. A file of FUSE is also cached by
/// the program that serves it, which cannot be seen: there, no page at all is `None` too.
#[must_use]
pub fn resident_fraction(path: &Path, offset_bytes: u64, length_bytes: u64) -> Option<f64> {
    let file = File::open(path).ok()?;
    let end = offset_bytes.checked_add(length_bytes)?;
    let page = rustix::param::page_size() as u64;
    let pages = end.div_ceil(page) - offset_bytes / page;
    if length_bytes == 0 {
        return None;
    }
    let cachestat = || by_cachestat(&file, offset_bytes, length_bytes);
    let mincore = || by_mincore(path, &file, offset_bytes, end, page);
    let resident = match filesystem_of(&file) {
        // Pages belong to the file below. cachestat asks the overlay's own, which has none; a mapping is one of the file below.
        Some(OVERLAY) => mincore(),
        Some(FUSE) => cachestat().max(mincore()).filter(|&resident| resident > 0),
        _ => cachestat().or_else(mincore),
    }?;
    Some((resident as f64 / pages as f64).min(1.0))
}

/// Whether a file is mapped past the page cache (DAX): reads and writes of it are copies from and to the medium. `None`
/// where the kernel does not say (before Linux 5.8).
#[must_use]
pub fn is_dax(path: &Path) -> Option<bool> {
    let found = rustix::fs::statx(rustix::fs::CWD, path, AtFlags::empty(), StatxFlags::BASIC_STATS).ok()?;
    let told = StatxAttributes::from_bits_retain(found.stx_attributes_mask.bits());
    told.contains(StatxAttributes::DAX).then(|| found.stx_attributes.contains(StatxAttributes::DAX))
}

/// Number of the type of the file system that a file lies on.
fn filesystem_of(file: &File) -> Option<u64> {
    rustix::fs::fstatfs(file).ok().map(|space| space.f_type as u64)
}

/// Whether the kernel tells mincore(2) the truth: to others than owners and writers it says that all pages are there.
fn is_told_truth(path: &Path, file: &File) -> bool {
    let user = rustix::process::geteuid();
    let is_owner = file.metadata().is_ok_and(|metadata| metadata.uid() == user.as_raw());
    user.is_root() || is_owner || rustix::fs::access(path, Access::WRITE_OK).is_ok()
}

fn by_cachestat(file: &File, offset: u64, length: u64) -> Option<u64> {
    let range = Range { offset, length };
    let mut found = Cachestat::default();
    // SAFETY: the kernel reads one range and writes one cachestat, both of its own layout and alive over the
    // call.
    let result = unsafe { libc::syscall(CACHESTAT, file.as_raw_fd(), &raw const range, &raw mut found, 0) };
    (result == 0).then_some(found.cached)
}

fn by_mincore(path: &Path, file: &File, offset: u64, end: u64, page: u64) -> Option<u64> {
    if !is_told_truth(path, file) {
        return None;
    }
    let mut states = Vec::new();
    let mut resident = 0;
    let mut at = offset / page * page;
    while at < end {
        let length = (end - at).min(WINDOW_BYTES);
        states.resize(length.div_ceil(page) as usize, 0u8);
        mincore(file, at, length as usize, &mut states)?;
        resident += states.iter().filter(|&&state| state & 1 == 1).count() as u64;
        at += length;
    }
    Some(resident)
}

/// `states` has one byte a page of the range.
fn mincore(file: &File, offset: u64, length: usize, states: &mut [u8]) -> Option<()> {
    let offset = libc::off_t::try_from(offset).ok()?;
    // SAFETY: a new mapping at an address of the kernel's choice; its pages are never touched.
    let address = unsafe {
        libc::mmap(std::ptr::null_mut(), length, libc::PROT_NONE, libc::MAP_SHARED, file.as_raw_fd(), offset)
    };
    if address == libc::MAP_FAILED {
        return None;
    }
    // SAFETY: the range is the mapping just made; `states` has room for one byte a page of it.
    let result = unsafe { libc::mincore(address, length, states.as_mut_ptr()) };
    // SAFETY: the mapping just made; nothing refers to it.
    unsafe { libc::munmap(address, length) };
    (result == 0).then_some(())
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn half_written_file_is_half_resident() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(&vec![1; 1 << 20]).unwrap();
        file.as_file().set_len(2 << 20).unwrap();
        assert_eq!(resident_fraction(file.path(), 0, 1 << 20), Some(1.0));
        assert_eq!(resident_fraction(file.path(), 0, 2 << 20), Some(0.5));
        assert_eq!(resident_fraction(file.path(), 1 << 20, 1 << 20), Some(0.0));
        assert_eq!(resident_fraction(file.path(), 4095, 2), Some(1.0));
        assert_eq!(resident_fraction(file.path(), 0, 0), None);
        assert_eq!(resident_fraction(file.path(), u64::MAX, 2), None);
        assert_eq!(resident_fraction(Path::new("/nonexistent"), 0, 1), None);
    }

    #[test]
    fn a_plain_file_is_no_dax() {
        let file = tempfile::NamedTempFile::new().unwrap();
        assert_ne!(is_dax(file.path()), Some(true), "no drive of a test machine is mapped so");
        assert_eq!(is_dax(Path::new("/nonexistent")), None);
    }

    #[test]
    fn mincore_agrees() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(&vec![1; 1 << 20]).unwrap();
        file.as_file().set_len(3 << 20).unwrap();
        let page = rustix::param::page_size() as u64;
        assert_eq!(by_mincore(file.path(), file.as_file(), 0, 3 << 20, page), Some((1 << 20) / page));
        assert_eq!(by_mincore(file.path(), file.as_file(), 1 << 20, 3 << 20, page), Some(0));
    }
}
