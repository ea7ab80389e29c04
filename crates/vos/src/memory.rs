//! Memory of the log: a file that is mapped, or a buffer.
#![allow(unsafe_code)]

use std::os::fd::AsFd;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::io::Errno;
use rustix::mm::{Advice, MapFlags, MsyncFlags, ProtFlags, madvise, mmap, mmap_anonymous, msync, munmap};

/// Advice that populates pages for writing (`MADV_POPULATE_WRITE`, Linux 5.14).
const POPULATE_WRITE: i32 = 23;
/// Advice that puts a huge page in the place of small ones (`MADV_COLLAPSE`, Linux 6.1), on tmpfs whatever `shmem_enabled` says but `deny`.
const COLLAPSE: i32 = 25;
/// Page that memory is advised and synced in.
const PAGE_BYTES: usize = 4096;
/// Page that mappings of files are aligned to.
const HUGE_PAGE_BYTES: usize = 2 << 20;

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
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // MAP_SYNC is for DAX; others refuse it.
        let synced = MapFlags::SHARED_VALIDATE | MapFlags::SYNC;
        // SAFETY: a fresh mapping of a page that is given back at once.
        let is_dax = unsafe {
            mmap(std::ptr::null_mut(), PAGE_BYTES, protection, synced, &file, 0)
                .and_then(|page| munmap(page, PAGE_BYTES))
                .is_ok()
        };
        let flags = if is_dax { synced } else { MapFlags::SHARED };
        // Where the mapping goes: the kernel aligns mappings for huge pages where it is told to use them itself, and there alone.
        let length = bytes.next_multiple_of(PAGE_BYTES);
        let (nothing, reserved) = (ProtFlags::empty(), MapFlags::PRIVATE | MapFlags::NORESERVE);
        // SAFETY: a fresh anonymous mapping aliases nothing.
        let spare =
            unsafe { mmap_anonymous(std::ptr::null_mut(), length + HUGE_PAGE_BYTES, nothing, reserved)? };
        let before = spare.align_offset(HUGE_PAGE_BYTES);
        // SAFETY: less than a huge page into a mapping that is longer by one; what is replaced was just made and nothing refers to it. The
        // pool's lock keeps the file to this process.
        let address =
            unsafe { mmap(spare.byte_add(before), bytes, protection, flags | MapFlags::FIXED, &file, 0) };
        for (at, bytes) in [(0, before), (before + length, HUGE_PAGE_BYTES - before)] {
            if bytes > 0 {
                // SAFETY: the parts of our own mapping around the file's.
                let _ = unsafe { munmap(spare.byte_add(at), bytes) };
            }
        }
        let address = address?;
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

    /// A part of memory that has one owner.
    #[inline]
    pub(super) fn bytes_mut(&mut self, at: usize, length: usize) -> &mut [u8] {
        // SAFETY: who has the region alone has every part of it alone.
        unsafe { self.shared_mut(at, length) }
    }

    /// A part of memory that is shared.
    ///
    /// # Safety
    /// Nobody else reads or writes the part while the reference lives: it is a record, or room for one, that the caller has reserved and not
    /// published (see the type).
    #[inline]
    #[allow(clippy::mut_from_ref)]
    pub(super) unsafe fn shared_mut(&self, at: usize, length: usize) -> &mut [u8] {
        assert!(at <= self.bytes && length <= self.bytes - at);
        // SAFETY: inside the mapping; nobody else's, as the caller promises.
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
        self.collapse(from, to);
        let result = self.advise(from, to - from, POPULATE_WRITE);
        match result {
            0 => Ok(()),
            _ => match std::io::Error::last_os_error().raw_os_error() {
                // Older kernels do not know it: pages come as they are touched.
                Some(libc::EINVAL) | None => Ok(()),
                Some(errno) => Err(Errno::from_raw_os_error(errno)),
            },
        }
    }

    /// Puts huge pages behind the part of a range that they fit, where the kernel can: a value is then found and copied with fewer walks of
    /// the page table. Elsewhere nothing changes.
    fn collapse(&self, from: usize, to: usize) {
        let (from, to) = (from.next_multiple_of(HUGE_PAGE_BYTES), to / HUGE_PAGE_BYTES * HUGE_PAGE_BYTES);
        // What has no page at all is not collapsed.
        let has_first = |at| self.advise(at, PAGE_BYTES, POPULATE_WRITE) == 0;
        if from < to && (from..to).step_by(HUGE_PAGE_BYTES).all(has_first) {
            self.advise(from, to - from, COLLAPSE);
        }
    }

    /// madvise(2) that populates or collapses; its answer.
    fn advise(&self, at: usize, length: usize, advice: i32) -> i32 {
        assert!(at <= self.bytes && length <= self.bytes.next_multiple_of(PAGE_BYTES) - at);
        // SAFETY: pages of our own mapping, whose content these do not change.
        unsafe { libc::madvise(self.at(at).cast(), length, advice) }
    }

    /// Asks for huge pages behind anonymous memory.
    pub(super) fn advise_huge(&self) {
        // SAFETY: advice on our own mapping.
        let _ = unsafe { madvise(self.base.as_ptr().cast(), self.bytes, Advice::LinuxHugepage) };
    }

    /// Unmaps the pages of a file for now: they are mapped again when they are touched, with what the file has.
    pub(super) fn let_go(&self) -> Result<(), Errno> {
        // SAFETY: pages of our own mapping of a file, shared: what was stored stays the file's.
        unsafe { madvise(self.base.as_ptr().cast(), self.bytes, Advice::LinuxDontNeed) }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mappings_lie_at_huge_pages_and_populating_changes_no_content() {
        let bytes = 9 * HUGE_PAGE_BYTES / 2 + 3 * PAGE_BYTES;
        let content = |at: usize| ((at / 8 * 31) >> 4) as u8;
        for scratch in ["/dev/shm".into(), std::env::temp_dir()] {
            let mut file = tempfile::tempfile_in(&scratch).expect("a file");
            let whole: Vec<u8> = (0..bytes).map(content).collect();
            // The pages of a half, the rest is a hole.
            std::io::Write::write_all(&mut file, &whole[..bytes / 2]).expect("written");
            file.set_len(bytes as u64).expect("longer");
            let mut region = Region::of_file(&file, bytes).expect("mapped");
            assert!((region.at(0) as usize).is_multiple_of(HUGE_PAGE_BYTES));
            // From within a page to within another.
            region.populate(100, bytes - 5000).expect("populated");
            region.populate(0, bytes).expect("populated again");
            assert!(region.bytes(0, bytes / 2) == &whole[..bytes / 2], "{scratch:?}");
            assert!(region.bytes(bytes / 2, bytes - bytes / 2).iter().all(|byte| *byte == 0), "{scratch:?}");
            region.bytes_mut(bytes / 2, bytes - bytes / 2).copy_from_slice(&whole[bytes / 2..]);
            drop(region);
            let again = Region::of_file(&file, bytes).expect("mapped");
            assert!(again.bytes(0, bytes) == whole, "{scratch:?}");
        }
    }

    /// The rules of the type, as a log keeps them: a record is written by the thread that reserved it, told of when it is whole, and read by
    /// others while the records beside it are written. Miri watches (`make miri`).
    #[test]
    fn records_are_read_while_others_are_written_beside_them() {
        const RECORDS: usize = 16;
        const RECORD_BYTES: usize = 192;
        let region = Region::anonymous(RECORDS * RECORD_BYTES).expect("memory");
        let (published, told) = std::sync::mpsc::channel();
        std::thread::scope(|scope| {
            for writer in 0..2 {
                let (region, published) = (&region, published.clone());
                scope.spawn(move || {
                    for number in (writer..RECORDS).step_by(2) {
                        let at = number * RECORD_BYTES;
                        // SAFETY: each record has one writer, and is told of when it is written.
                        unsafe { region.shared_mut(at + 4, RECORD_BYTES - 4) }.fill(number as u8);
                        region.store_release(at, number as u32);
                        published.send(number).expect("somebody reads");
                    }
                });
            }
            drop(published);
            for number in told {
                let record = region.bytes(number * RECORD_BYTES, RECORD_BYTES);
                assert_eq!(record[..4], (number as u32).to_ne_bytes());
                assert!(record[4..].iter().all(|byte| *byte == number as u8));
            }
        });
        let mut region = region;
        region.bytes_mut(0, RECORD_BYTES).fill(0xff);
        assert_eq!(
            (region.bytes(0, 4), region.bytes(RECORD_BYTES, 4)),
            (&[0xff; 4][..], &1u32.to_ne_bytes()[..])
        );
    }
}
