//! Memory of the log: a file that is mapped, or a buffer.
#![allow(unsafe_code)]

use std::os::fd::AsFd;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::io::Errno;
use rustix::mm::{Advice, MapFlags, MsyncFlags, ProtFlags, madvise, mmap, mmap_anonymous, msync, munmap};

/// Advice that populates pages for writing (`MADV_POPULATE_WRITE`, Linux 5.14).
const POPULATE_WRITE: i32 = 23;
/// Page that memory is advised and synced in.
const PAGE_BYTES: usize = 4096;

/// A mapping. The log decides who may touch which part of it: a record is written by the thread that reserved it, is never changed once
/// it is published, and its segment is used again only when nothing pins it. That is what makes the references below sound.
#[derive(Debug)]
pub(super) struct Region {
    base: NonNull<u8>,
    bytes: usize,
}

// SAFETY: plain memory; the log's rules above say who touches what.
unsafe impl Send for Region {}
// SAFETY: as for Send.
unsafe impl Sync for Region {}

impl Region {
    /// Maps a file, shared.
    pub(super) fn of_file(file: impl AsFd, bytes: usize) -> Result<Self, Errno> {
        let flags = MapFlags::SHARED_VALIDATE | MapFlags::SYNC;
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a fresh mapping of a file that the pool's lock keeps to this process. MAP_SYNC is for DAX; others refuse it.
        let address =
            unsafe { mmap(std::ptr::null_mut(), bytes, protection, flags, &file, 0) }.or_else(|_| {
                // SAFETY: as above.
                unsafe { mmap(std::ptr::null_mut(), bytes, protection, MapFlags::SHARED, &file, 0) }
            })?;
        let region = Self { base: NonNull::new(address.cast()).ok_or(Errno::FAULT)?, bytes };
        // SAFETY: advice on our own mapping; refused where there are no huge pages, which is no loss.
        let _ = unsafe { madvise(address, bytes, Advice::LinuxHugepage) };
        Ok(region)
    }

    /// Fresh memory, page aligned.
    pub(super) fn anonymous(bytes: usize) -> Result<Self, Errno> {
        let bytes = bytes.max(1).next_multiple_of(PAGE_BYTES);
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a fresh anonymous mapping aliases nothing.
        let address = unsafe { mmap_anonymous(std::ptr::null_mut(), bytes, protection, MapFlags::PRIVATE)? };
        Ok(Self { base: NonNull::new(address.cast()).ok_or(Errno::FAULT)?, bytes })
    }

    /// Size in bytes.
    pub(super) fn len(&self) -> usize {
        self.bytes
    }

    /// Address of a byte.
    #[inline]
    pub(super) fn at(&self, at: usize) -> *mut u8 {
        assert!(at <= self.bytes);
        // SAFETY: inside the mapping, or one past its end.
        unsafe { self.base.as_ptr().add(at) }
    }

    /// A part that nobody writes while the reference lives (see the type).
    #[inline]
    pub(super) fn bytes(&self, at: usize, length: usize) -> &[u8] {
        assert!(at <= self.bytes && length <= self.bytes - at);
        // SAFETY: inside the mapping; not written meanwhile by the rules of the type.
        unsafe { std::slice::from_raw_parts(self.at(at), length) }
    }

    /// A part that nobody else touches while the reference lives (see the type).
    #[inline]
    #[allow(clippy::mut_from_ref)]
    pub(super) fn bytes_mut(&self, at: usize, length: usize) -> &mut [u8] {
        assert!(at <= self.bytes && length <= self.bytes - at);
        // SAFETY: inside the mapping; nobody else's by the rules of the type.
        unsafe { std::slice::from_raw_parts_mut(self.at(at), length) }
    }

    /// Stores a word after everything before it; `at` is a multiple of 4.
    #[inline]
    pub(super) fn store_release(&self, at: usize, value: u32) {
        assert!(at.is_multiple_of(4) && at + 4 <= self.bytes);
        // SAFETY: inside the mapping and aligned; an atomic has the layout of its integer.
        unsafe { &*self.at(at).cast::<AtomicU32>() }.store(value, Ordering::Release);
    }

    /// Makes pages present, for writing. An error says that memory (or the file system) is full.
    pub(super) fn populate(&self, at: usize, length: usize) -> Result<(), Errno> {
        let from = at / PAGE_BYTES * PAGE_BYTES;
        let to = (at + length).next_multiple_of(PAGE_BYTES).min(self.bytes.next_multiple_of(PAGE_BYTES));
        // SAFETY: populating pages of our own mapping changes no content.
        let result = unsafe { libc::madvise(self.at(from).cast(), to - from, POPULATE_WRITE) };
        match result {
            0 => Ok(()),
            _ => match std::io::Error::last_os_error().raw_os_error() {
                // Older kernels do not know it: pages come as they are touched.
                Some(libc::EINVAL) | None => Ok(()),
                Some(errno) => Err(Errno::from_raw_os_error(errno)),
            },
        }
    }

    /// Asks for huge pages behind anonymous memory.
    pub(super) fn advise_huge(&self) {
        // SAFETY: advice on our own mapping.
        let _ = unsafe { madvise(self.base.as_ptr().cast(), self.bytes, Advice::LinuxHugepage) };
    }

    /// msync(2) of the pages around a range.
    pub(super) fn msync(&self, at: usize, length: usize) -> Result<(), Errno> {
        let from = at / PAGE_BYTES * PAGE_BYTES;
        // SAFETY: a range of our own mapping.
        unsafe { msync(self.at(from).cast(), at + length - from, MsyncFlags::SYNC) }
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours; who refers to it holds the region by Arc.
        let unmapped = unsafe { munmap(self.base.as_ptr().cast(), self.bytes) };
        debug_assert!(unmapped.is_ok());
    }
}
