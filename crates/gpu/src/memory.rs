//! Memory of one device, memory of the host that it reaches, and the order in which it works.
#![allow(unsafe_code)]

use std::ffi::{c_int, c_uint, c_void};
use std::sync::Arc;
use std::time::Instant;

use driver::{Arena, Error, ErrorKind};

use crate::cuda::{
    Api, DevicePointer, EVENT_DISABLE_TIMING, HOST_REGISTER_PORTABLE, Handle, NOT_READY, STREAM_NON_BLOCKING,
};
use crate::device::Context;

/// Buffers of one worker on a device: one a slot, as those of its [`Arena`]. A buffer belongs to whoever has the slot's turn.
#[derive(Debug)]
pub struct DeviceBuffers {
    context: Arc<Context>,
    /// Where the memory begins; the buffers may begin later.
    taken: DevicePointer,
    base: DevicePointer,
    slot_bytes: usize,
    slots: u32,
}

/// Buffers begin at multiples of this: what GPUDirect Storage maps as one.
const ALIGNMENT_BYTES: usize = 64 << 10;

impl DeviceBuffers {
    /// Takes memory of the device for `slots` buffers of `slot_bytes` each.
    ///
    /// # Errors
    /// When it cannot be had.
    pub fn new(context: &Arc<Context>, slots: u32, slot_bytes: usize) -> Result<Self, Error> {
        let slot_bytes = slot_bytes.max(1).next_multiple_of(ALIGNMENT_BYTES);
        let bytes = slot_bytes
            .checked_mul(slots as usize)
            .ok_or_else(|| Error::usage("gpu", "queue depth times block size does not fit into memory"))?;
        context.enter()?;
        let mut taken = 0;
        // Room to begin at a whole page of the device.
        let bytes = bytes.saturating_add(ALIGNMENT_BYTES);
        // SAFETY: a place for the address; the context is current.
        let code = unsafe { (context.api.cuMemAlloc_v2)(&raw mut taken, bytes) };
        context
            .api
            .check(code, "cannot allocate memory of the device")
            .map_err(|error| error.with("device", context.number()).with("bytes", bytes))?;
        let base = taken.next_multiple_of(ALIGNMENT_BYTES as u64);
        Ok(Self { context: Arc::clone(context), taken, base, slot_bytes, slots })
    }

    /// The device.
    #[must_use]
    pub fn context(&self) -> &Arc<Context> {
        &self.context
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

    /// Address of the buffer of `slot` on the device.
    ///
    /// # Panics
    /// When there is no such slot.
    #[inline]
    #[must_use]
    pub fn slot_address(&self, slot: u32) -> u64 {
        assert!(slot < self.slots);
        self.base + u64::from(slot) * self.slot_bytes as u64
    }

    /// The whole region, for registering it.
    #[must_use]
    pub fn region(&self) -> (u64, usize) {
        (self.base, self.slot_bytes * self.slots as usize)
    }
}

impl Drop for DeviceBuffers {
    fn drop(&mut self) {
        if self.context.enter().is_ok() {
            // SAFETY: memory of ours that no driver uses any more: they hold it by Arc.
            unsafe { (self.context.api.cuMemFree_v2)(self.taken) };
        }
    }
}

/// Buffers of the host that are registered with the driver of the GPU, until this is dropped.
#[derive(Debug)]
pub struct Pinned {
    context: Arc<Context>,
    address: *mut u8,
    /// Keeps the memory where it is, where it is an arena's.
    kept: Option<Arc<Arena>>,
}

// SAFETY: registering is about the process, not about a thread.
unsafe impl Send for Pinned {}

impl Pinned {
    /// Registers the buffers of `arena`.
    ///
    /// # Errors
    /// When the driver refuses; memory that may be locked (`ulimit -l`) has no part in it.
    pub fn new(context: &Arc<Context>, arena: &Arc<Arena>) -> Result<Self, Error> {
        let (address, bytes) = arena.region();
        // SAFETY: the region stays mapped as long as the arena, which the result keeps.
        let mut pinned = unsafe { Self::of_region(context, address, bytes) }?;
        pinned.kept = Some(Arc::clone(arena));
        Ok(pinned)
    }

    /// Registers a region of whole pages.
    ///
    /// # Safety
    /// It stays mapped as long as the result.
    ///
    /// # Errors
    /// As for [`Pinned::new`].
    pub unsafe fn of_region(context: &Arc<Context>, address: *mut u8, bytes: usize) -> Result<Self, Error> {
        context.enter()?;
        // SAFETY: by the caller's promise.
        let code = unsafe {
            (context.api.cuMemHostRegister_v2)(address.cast::<c_void>(), bytes, HOST_REGISTER_PORTABLE)
        };
        context
            .api
            .check(code, "cannot register the buffers of the host")
            .map_err(|error| error.with("device", context.number()).with("bytes", bytes))?;
        Ok(Self { context: Arc::clone(context), address, kept: None })
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        if self.context.enter().is_ok() {
            // SAFETY: registered by us, and still mapped.
            unsafe { (self.context.api.cuMemHostUnregister)(self.address.cast()) };
        }
    }
}

/// Work of one thread on a device, done in order. It belongs to the thread that made it.
#[derive(Debug)]
pub struct Stream {
    context: Arc<Context>,
    handle: Handle,
}

// SAFETY: streams may be used by any thread, one at a time; `&mut self` sees to that.
unsafe impl Send for Stream {}

impl Stream {
    /// A stream of its own: it waits for none of the others. The device's context becomes the current one of this thread.
    ///
    /// # Errors
    /// When the driver refuses.
    pub fn new(context: &Arc<Context>) -> Result<Self, Error> {
        context.enter()?;
        let mut handle = std::ptr::null_mut();
        // SAFETY: a place for the handle.
        let code = unsafe { (context.api.cuStreamCreate)(&raw mut handle, STREAM_NON_BLOCKING) };
        context.api.check(code, "cannot create a stream of the device")?;
        Ok(Self { context: Arc::clone(context), handle })
    }

    pub(crate) fn api(&self) -> &'static Api {
        self.context.api
    }

    fn check(&self, code: c_int, message: &str) -> Result<(), Error> {
        if code == 0 {
            return Ok(());
        }
        self.failed(code, message)
    }

    #[cold]
    fn failed(&self, code: c_int, message: &str) -> Result<(), Error> {
        self.api().check(code, message).map_err(|error| error.with("device", self.context.number()))
    }

    /// Begins a copy of `bytes` from the host to the device.
    ///
    /// # Safety
    /// `from` has so many bytes, and nobody writes them before the copy is done; `to` is a buffer of the device with room for them.
    ///
    /// # Errors
    /// When the driver refuses, or an earlier copy has failed.
    #[inline]
    pub unsafe fn copy_in(&mut self, to: u64, from: *const u8, bytes: usize) -> Result<(), Error> {
        // SAFETY: by the caller's promise.
        let code = unsafe { (self.api().cuMemcpyHtoDAsync_v2)(to, from.cast(), bytes, self.handle) };
        self.check(code, "a copy to the device failed")
    }

    /// Begins a copy of `bytes` from the device to the host.
    ///
    /// # Safety
    /// As for [`Stream::copy_in`], the other way.
    ///
    /// # Errors
    /// As for [`Stream::copy_in`].
    #[inline]
    pub unsafe fn copy_out(&mut self, to: *mut u8, from: u64, bytes: usize) -> Result<(), Error> {
        // SAFETY: by the caller's promise.
        let code = unsafe { (self.api().cuMemcpyDtoHAsync_v2)(to.cast(), from, bytes, self.handle) };
        self.check(code, "a copy from the device failed")
    }

    /// Begins a copy of `bytes` within the device.
    ///
    /// # Safety
    /// Both are buffers of the device of that length, which nobody else uses before the copy is done.
    ///
    /// # Errors
    /// As for [`Stream::copy_in`].
    #[inline]
    pub unsafe fn copy_within(&mut self, to: u64, from: u64, bytes: usize) -> Result<(), Error> {
        // SAFETY: by the caller's promise.
        let code = unsafe { (self.api().cuMemcpyDtoDAsync_v2)(to, from, bytes, self.handle) };
        self.check(code, "a copy within the device failed")
    }

    /// Begins to set `bytes` of the device to `value`.
    ///
    /// # Safety
    /// A buffer of the device with room for them, which nobody else uses before it is done.
    ///
    /// # Errors
    /// As for [`Stream::copy_in`].
    pub unsafe fn fill(&mut self, to: u64, value: u8, bytes: usize) -> Result<(), Error> {
        // SAFETY: by the caller's promise.
        let code = unsafe { (self.api().cuMemsetD8Async)(to, value, bytes, self.handle) };
        self.check(code, "cannot set memory of the device")
    }

    /// Waits for all that was begun.
    ///
    /// # Errors
    /// When something of it failed.
    #[inline]
    pub fn wait(&mut self) -> Result<(), Error> {
        // SAFETY: a stream of ours.
        let code = unsafe { (self.api().cuStreamSynchronize)(self.handle) };
        self.check(code, "work on the device failed")
    }

    /// Whether all that was begun is done.
    ///
    /// # Errors
    /// When something of it failed.
    #[inline]
    pub(crate) fn is_done(&mut self) -> Result<bool, Error> {
        // SAFETY: a stream of ours.
        match unsafe { (self.api().cuStreamQuery)(self.handle) } {
            NOT_READY => Ok(false),
            code => self.check(code, "work on the device failed").map(|()| true),
        }
    }

    /// For libraries that put their own work into it.
    pub(crate) fn handle(&self) -> Handle {
        self.handle
    }

    /// Starts `function` on `blocks` of `threads`, with addresses of its arguments.
    ///
    /// # Safety
    /// The arguments are those of the function, and the buffers that they name are its own until it is done.
    ///
    /// # Errors
    /// When the driver refuses.
    pub(crate) unsafe fn launch(
        &mut self,
        function: Handle,
        [blocks, threads]: [c_uint; 2],
        arguments: &mut [*mut c_void],
    ) -> Result<(), Error> {
        // SAFETY: by the caller's promise; sizes of one dimension, no shared memory.
        let code = unsafe {
            (self.api().cuLaunchKernel)(
                function,
                blocks,
                1,
                1,
                threads,
                1,
                1,
                0,
                self.handle,
                arguments.as_mut_ptr(),
                std::ptr::null_mut(),
            )
        };
        self.check(code, "cannot start a kernel")
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        if self.context.enter().is_ok() {
            // SAFETY: a stream of ours; the driver keeps it until its work is done.
            unsafe { (self.api().cuStreamDestroy_v2)(self.handle) };
        }
    }
}

/// A point in the work of a stream.
#[derive(Debug)]
pub(crate) struct Event {
    context: Arc<Context>,
    handle: Handle,
}

// SAFETY: as for Stream.
unsafe impl Send for Event {}

impl Event {
    pub(crate) fn new(context: &Arc<Context>) -> Result<Self, Error> {
        context.enter()?;
        let mut handle = std::ptr::null_mut();
        // SAFETY: a place for the handle.
        let code = unsafe { (context.api.cuEventCreate)(&raw mut handle, EVENT_DISABLE_TIMING) };
        context.api.check(code, "cannot create an event of the device")?;
        Ok(Self { context: Arc::clone(context), handle })
    }

    /// Notes all that `stream` has begun so far.
    #[inline]
    pub(crate) fn record(&mut self, stream: &mut Stream) -> Result<(), Error> {
        // SAFETY: an event and a stream of ours.
        let code = unsafe { (stream.api().cuEventRecord)(self.handle, stream.handle) };
        stream.check(code, "cannot record an event of the device")
    }

    /// Whether that is done.
    #[inline]
    pub(crate) fn is_done(&mut self) -> Result<bool, Error> {
        // SAFETY: an event of ours.
        match unsafe { (self.context.api.cuEventQuery)(self.handle) } {
            0 => Ok(true),
            NOT_READY => Ok(false),
            code => self.context.api.check(code, "work on the device failed").map(|()| true),
        }
    }

    /// Waits until it is, or until `deadline`. Whether it is.
    #[inline]
    pub(crate) fn wait_until(&mut self, deadline: Option<Instant>) -> Result<bool, Error> {
        let Some(deadline) = deadline else {
            // SAFETY: an event of ours.
            let code = unsafe { (self.context.api.cuEventSynchronize)(self.handle) };
            return self.context.api.check(code, "work on the device failed").map(|()| true);
        };
        while !self.is_done()? {
            if Instant::now() >= deadline {
                return Ok(false);
            }
            std::hint::spin_loop();
        }
        Ok(true)
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        if self.context.enter().is_ok() {
            // SAFETY: an event of ours.
            unsafe { (self.context.api.cuEventDestroy_v2)(self.handle) };
        }
    }
}

/// Checks that buffers of a device and of the host fit each other.
///
/// # Errors
/// When those of the device are fewer or smaller.
pub(crate) fn check_fit(buffers: &DeviceBuffers, arena: &Arena) -> Result<(), Error> {
    if buffers.slots() >= arena.slots() && buffers.slot_bytes() >= arena.slot_bytes() {
        return Ok(());
    }
    Err(Error::new(ErrorKind::Run, "gpu", "the buffers of the device are smaller than those of the host"))
}
