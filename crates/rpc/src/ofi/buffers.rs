//! Memory for messages and bulk: pages of our own, registered where the provider wants it, within the engine's budget.
#![allow(unsafe_code)]

use std::ptr::NonNull;
use std::sync::Arc;

use driver::Error;
use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};

use crate::seat::{Budget, Grant};
use crate::share::Purse;

use super::port::{Port, Region};

/// Pages, all zero until written.
pub struct Pages {
    base: NonNull<u8>,
    bytes: usize,
}

// SAFETY: plain memory; who may touch it is said by its holder.
unsafe impl Send for Pages {}

impl Pages {
    /// Maps that many bytes, rounded up to whole pages; touches them where `populate`.
    pub fn new(bytes: usize, populate: bool) -> Result<Self, Error> {
        let bytes = bytes.max(1).next_multiple_of(4096);
        let extra = if populate { MapFlags::POPULATE } else { MapFlags::empty() };
        // SAFETY: a fresh anonymous mapping aliases nothing.
        let base = unsafe {
            let protection = ProtFlags::READ | ProtFlags::WRITE;
            mmap_anonymous(std::ptr::null_mut(), bytes, protection, MapFlags::PRIVATE | extra)
        }
        .map_err(|errno| Error::system("libfabric", "cannot map buffers", errno).with("bytes", bytes))?;
        let base = NonNull::new(base.cast()).expect("the kernel maps nothing at address 0 unasked");
        Ok(Self { base, bytes })
    }

    /// Where they begin.
    pub fn base(&self) -> *mut u8 {
        self.base.as_ptr()
    }

    /// How many bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours; ports that were told of it are dropped before.
        let unmapped = unsafe { munmap(self.base.as_ptr().cast(), self.bytes) };
        debug_assert!(unmapped.is_ok());
    }
}

/// A registered buffer.
pub struct Buffer {
    /// Its registration.
    pub region: Region,
    pages: Pages,
    _grant: Option<Grant>,
}

impl Buffer {
    /// A buffer of its own, outside any budget, that peers may read and write where `remote`.
    pub fn new(port: &mut Port, bytes: usize, remote: bool) -> Result<Self, Error> {
        let pages = Pages::new(bytes, remote || port.facts().needs_local)?;
        // SAFETY: the pages live as long as the buffer, whose holder drops the port first or unregisters it.
        let region = unsafe { port.register(pages.base(), pages.bytes(), remote) }?;
        Ok(Self { region, pages, _grant: None })
    }

    /// Memory that it takes.
    pub fn held_bytes(&self) -> u64 {
        self.pages.bytes() as u64
    }

    /// Its bytes.
    ///
    /// # Safety
    /// No operation of the port writes to it meanwhile, and no other reference to the same bytes is alive.
    #[allow(clippy::mut_from_ref)]
    pub unsafe fn bytes_mut(&self, offset: usize, bytes: usize) -> &mut [u8] {
        assert!(offset.checked_add(bytes).is_some_and(|end| end <= self.pages.bytes()));
        // SAFETY: inside the mapping by the assertion; exclusive by the caller's promise.
        unsafe { std::slice::from_raw_parts_mut(self.pages.base().add(offset), bytes) }
    }
}

/// Buffers for bulk, kept for the next request of about that size.
pub struct Pool {
    budget: Arc<Budget>,
    /// Free buffers by the logarithm of their size.
    free: Vec<Vec<Buffer>>,
}

impl Pool {
    /// An empty pool that takes its memory out of the budget.
    pub fn new(budget: Arc<Budget>) -> Self {
        Self { budget, free: (0..usize::BITS).map(|_| Vec::new()).collect() }
    }

    /// A buffer of at least that many bytes; none when the session may hold no more, the budget is used up, or the provider registers no more.
    pub(crate) fn take(&mut self, port: &mut Port, bytes: usize, purse: &Purse<'_>) -> Option<Buffer> {
        let size = bytes.max(4096).checked_next_power_of_two()?;
        if !purse.may_hold(size as u64) {
            return None;
        }
        if let Some(buffer) = self.free[size.trailing_zeros() as usize].pop() {
            self.budget.unkeep(buffer.held_bytes());
            return Some(buffer);
        }
        let grant = self.budget.take(size as u64).or_else(|| {
            self.shrink(port);
            self.budget.take(size as u64)
        })?;
        let mut buffer = Buffer::new_local(port, size)?;
        buffer._grant = Some(grant);
        Some(buffer)
    }

    /// Takes a buffer back: for the next request, where not too many wait for one already.
    pub fn give(&mut self, port: &mut Port, buffer: Buffer) {
        if self.budget.keep(buffer.held_bytes()) {
            self.free[buffer.pages.bytes().trailing_zeros() as usize].push(buffer);
        } else {
            port.unregister(&buffer.region);
        }
    }

    /// Gives all free memory back to the budget.
    pub fn shrink(&mut self, port: &mut Port) {
        for buffer in self.free.iter_mut().flat_map(std::mem::take) {
            self.budget.unkeep(buffer.held_bytes());
            port.unregister(&buffer.region);
        }
    }
}

impl Buffer {
    fn new_local(port: &mut Port, bytes: usize) -> Option<Self> {
        Self::new(port, bytes, false).ok()
    }
}
