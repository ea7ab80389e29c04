//! The buffers of one worker: one aligned region, cut into one buffer a slot.
#![allow(unsafe_code)]

use std::ptr::NonNull;

#[cfg(not(miri))]
use rustix::mm::{Advice, madvise};
use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};
use rustix::process::{Resource, getrlimit};

use crate::{Error, ErrorKind};

/// Pages that back the buffers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PageSize {
    /// The system's base pages.
    Base,
    /// Explicit huge pages of 2 MiB (`vm.nr_hugepages` must provide them).
    Huge,
    /// Huge pages where the kernel gives them of itself (transparent huge pages), else base pages: copies look up fewer addresses.
    Transparent,
}

/// Length of a huge page.
const HUGE_PAGE_BYTES: usize = 2 << 20;

/// Buffers of one worker. A buffer belongs to the source while its slot is free, and to the driver (or the kernel) from
/// submit to completion; neither touches it outside its turn. The region is page aligned and stays mapped until the arena,
/// shared by `Arc` between the two, is dropped.
#[derive(Debug)]
pub struct Arena {
    base: NonNull<u8>,
    /// Where the mapping begins, and its length: the buffers may begin later.
    mapped: NonNull<u8>,
    mapped_bytes: usize,
    slot_bytes: usize,
    slots: u32,
}

// SAFETY: the arena is plain memory; who may touch which slot is fixed by the slot protocol in the type's documentation,
// and a worker's source and driver live on one thread.
unsafe impl Send for Arena {}
// SAFETY: as for Send.
unsafe impl Sync for Arena {}

impl Arena {
    /// Maps and touches `slots` buffers of `slot_bytes` each (rounded up to whole pages).
    ///
    /// # Errors
    /// When the memory cannot be had, naming huge pages as the cause where they were asked for.
    pub fn new(slots: u32, slot_bytes: usize, pages: PageSize) -> Result<Self, Error> {
        let slot_bytes = slot_bytes.max(1).next_multiple_of(4096);
        let (page, extra) = match pages {
            PageSize::Base => (4096, MapFlags::empty()),
            PageSize::Huge => (HUGE_PAGE_BYTES, MapFlags::HUGETLB),
            PageSize::Transparent => (HUGE_PAGE_BYTES, MapFlags::empty()),
        };
        let is_transparent = pages == PageSize::Transparent;
        let mapped_bytes = slot_bytes
            .checked_mul(slots as usize)
            .and_then(|bytes| bytes.checked_next_multiple_of(page))
            // Room to begin at a whole huge page.
            .and_then(|bytes| bytes.checked_add(if is_transparent { page } else { 0 }))
            .ok_or_else(|| {
                Error::usage("buffers", "queue depth times block size does not fit into memory")
            })?;
        // Miri has no pages to populate.
        // Those that are to become huge pages are advised first.
        let populate = if cfg!(miri) || is_transparent { MapFlags::empty() } else { MapFlags::POPULATE };
        // SAFETY: a fresh anonymous mapping aliases nothing.
        let address = unsafe {
            mmap_anonymous(
                std::ptr::null_mut(),
                mapped_bytes,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::PRIVATE | populate | extra,
            )
        }
        .map_err(|errno| {
            let mut error =
                Error::system("buffers", "cannot map the buffers", errno).with("bytes", mapped_bytes);
            // A shell, or `strata service --memory-max`, has set it.
            if let Some(limit) = getrlimit(Resource::Data).current {
                error = error.with("memory_bytes_max", limit);
            }
            match pages {
                PageSize::Base | PageSize::Transparent => {
                    error.remedy("use a smaller block size or queue depth")
                }
                PageSize::Huge => {
                    error.remedy("reserve huge pages (sysctl vm.nr_hugepages) or leave out --huge-pages")
                }
            }
        })?;
        let mapped = NonNull::new(address.cast::<u8>()).ok_or_else(|| {
            Error::new(ErrorKind::System, "buffers", "the kernel mapped the buffers at address 0")
        })?;
        let mut arena = Self { base: mapped, mapped, mapped_bytes, slot_bytes, slots };
        if is_transparent {
            arena.prefer_huge_pages();
        }
        Ok(arena)
    }

    /// Begins at a whole huge page, asks for huge pages, and touches all of them.
    fn prefer_huge_pages(&mut self) {
        let skip = self.mapped.as_ptr().align_offset(HUGE_PAGE_BYTES);
        // SAFETY: there is a huge page more than the buffers need.
        self.base = unsafe { self.mapped.add(skip) };
        let bytes = self.mapped_bytes - HUGE_PAGE_BYTES;
        #[cfg(not(miri))]
        // SAFETY: a part of the mapping of this value, which nobody uses yet; advice that is not taken changes nothing.
        let _ = unsafe { madvise(self.base.as_ptr().cast(), bytes, Advice::LinuxHugepage) };
        // SAFETY: as above.
        unsafe { self.base.as_ptr().write_bytes(0, bytes) };
    }

    /// Number of buffers.
    #[must_use]
    pub fn slots(&self) -> u32 {
        self.slots
    }

    /// Room of one buffer in bytes.
    #[must_use]
    pub fn slot_bytes(&self) -> usize {
        self.slot_bytes
    }

    /// Address of the buffer of `slot`, for system calls.
    ///
    /// # Panics
    /// When there is no such slot.
    #[inline]
    #[must_use]
    pub fn slot_ptr(&self, slot: u32) -> *mut u8 {
        assert!(slot < self.slots);
        // SAFETY: slot < slots, so the offset stays inside the mapping.
        unsafe { self.base.as_ptr().add(slot as usize * self.slot_bytes) }
    }

    /// The whole region, for registering it with a target.
    #[must_use]
    pub fn region(&self) -> (*mut u8, usize) {
        (self.base.as_ptr(), self.slot_bytes * self.slots as usize)
    }

    /// The first `length` bytes of the buffer of `slot`.
    ///
    /// # Safety
    /// The caller holds the slot's turn (see the type's documentation) and keeps no other reference to the same slot.
    ///
    /// # Panics
    /// When there is no such slot or it is shorter than `length`.
    #[inline]
    #[must_use]
    #[allow(clippy::mut_from_ref)]
    pub unsafe fn slot_mut(&self, slot: u32, length: usize) -> &mut [u8] {
        assert!(length <= self.slot_bytes);
        // SAFETY: inside the mapping by the two assertions; exclusive by the caller's promise.
        unsafe { std::slice::from_raw_parts_mut(self.slot_ptr(slot), length) }
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, and no driver is left: they hold the arena by Arc.
        let unmapped = unsafe { munmap(self.mapped.as_ptr().cast(), self.mapped_bytes) };
        debug_assert!(unmapped.is_ok());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_aligned_and_apart() {
        let arena = Arena::new(3, 5000, PageSize::Base).expect("memory");
        assert_eq!(arena.slot_bytes(), 8192);
        assert_eq!(arena.slot_ptr(0) as usize % 4096, 0);
        assert_eq!(arena.slot_ptr(2) as usize - arena.slot_ptr(0) as usize, 16384);
        // SAFETY: one reference at a time, no driver.
        unsafe { arena.slot_mut(1, 5000).fill(7) };
        // SAFETY: as above.
        assert!(unsafe { arena.slot_mut(2, 8192) }.iter().all(|&byte| byte == 0));
    }

    #[test]
    fn buffers_on_transparent_huge_pages_begin_at_one() {
        let arena = Arena::new(3, 1 << 20, PageSize::Transparent).expect("memory");
        assert_eq!(arena.slot_ptr(0) as usize % HUGE_PAGE_BYTES, 0);
        for slot in 0..3 {
            // SAFETY: one reference at a time, no driver.
            unsafe { arena.slot_mut(slot, 1 << 20).fill(slot as u8) };
        }
    }

    #[test]
    fn too_much_memory_is_an_error() {
        assert!(Arena::new(u32::MAX, usize::MAX / 4, PageSize::Base).is_err());
    }
}
