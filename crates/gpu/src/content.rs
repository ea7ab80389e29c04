//! Content of blocks that is made and checked on the device: the same bytes as the host's, without a copy.
#![allow(unsafe_code)]

use std::ffi::{CString, c_void};
use std::sync::Arc;

use driver::{Error, ErrorKind};

use crate::cuda::{DevicePointer, Handle};
use crate::device::Context;
use crate::memory::Stream;

/// The kernels as text that the driver compiles; made of [`KERNEL_SOURCE`] by `scripts/kernels.sh`.
pub const KERNELS: &str = include_str!("../kernels/content.ptx");
/// Their source.
pub const KERNEL_SOURCE: &str = include_str!("../kernels/content.cu");

/// Bytes of a lane: what one thread makes at a time.
const LANE_BYTES: u64 = 16;
/// Threads of a block, and most blocks of a launch: enough for the memory of any device.
const THREADS: u32 = 256;
const BLOCKS_MAX: u64 = 1024;
/// Result of a check that found nothing.
const NOTHING_WRONG: u64 = u64::MAX;

/// Terms of a block, in the order of the kernel's structure.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct BlockTerms {
    /// Five round keys of 16 bytes, low half first.
    pub keys: [u64; 10],
    /// Generation of the data; of a block under headers its sequence.
    pub generation: u64,
    /// Offset in the target, in bytes.
    pub position: u64,
    /// Length in bytes.
    pub length_bytes: u64,
    /// Bytes under one header; 0: none.
    pub interval_bytes: u64,
    /// Run of the header.
    pub run: u64,
    /// Target of the header.
    pub target: u64,
}

impl BlockTerms {
    /// Terms of a block of `length_bytes`, by round keys of the stream of its data.
    #[must_use]
    pub fn of_stream(keys: [u128; 5], generation: u64, position: u64, length_bytes: u64) -> Self {
        let halves = |at: usize| (keys[at / 2] >> (64 * (at % 2))) as u64;
        Self { keys: std::array::from_fn(halves), generation, position, length_bytes, ..Self::default() }
    }

    /// Whether the kernels make such a block: they make whole lanes.
    #[must_use]
    pub fn fit(&self) -> bool {
        [self.position, self.length_bytes, self.interval_bytes].iter().all(|bytes| bytes % LANE_BYTES == 0)
    }
}

/// The kernels of one worker on its device.
#[derive(Debug)]
pub struct ContentKernels {
    module: Handle,
    function: Handle,
    context: Arc<Context>,
    stream: Stream,
    /// Where on the device a check leaves what it found.
    found: DevicePointer,
}

// SAFETY: used by one thread at a time, which has made the context its own.
unsafe impl Send for ContentKernels {}

impl ContentKernels {
    /// Has the driver compile them for the device.
    ///
    /// # Errors
    /// When it cannot.
    pub fn new(context: &Arc<Context>) -> Result<Self, Error> {
        let stream = Stream::new(context)?;
        let api = context.api;
        let text = CString::new(KERNELS)
            .map_err(|_| Error::new(ErrorKind::Run, "gpu", "the text of the kernels contains a zero byte"))?;
        let mut module = std::ptr::null_mut();
        // SAFETY: a place for the handle, and text that ends with a zero.
        let code = unsafe { (api.cuModuleLoadData)(&raw mut module, text.as_ptr().cast::<c_void>()) };
        api.check(code, "the driver rejected the kernels that make and check content")?;
        let mut kernels =
            Self { module, function: std::ptr::null_mut(), context: Arc::clone(context), stream, found: 0 };
        // SAFETY: places for a handle and an address, the name of a function of the module.
        unsafe {
            let code =
                (api.cuModuleGetFunction)(&raw mut kernels.function, module, c"strata_content".as_ptr());
            api.check(code, "the kernels lack a function")?;
            let code = (api.cuMemAlloc_v2)(&raw mut kernels.found, size_of::<u64>());
            api.check(code, "cannot allocate memory of the device")?;
        }
        Ok(kernels)
    }

    /// Makes a block at an address of the device, and waits for it.
    ///
    /// # Safety
    /// The device has a buffer of that length there, which nobody else uses now.
    ///
    /// # Errors
    /// When the kernel fails.
    ///
    /// # Panics
    /// When the terms are not whole lanes ([`BlockTerms::fit`]).
    pub unsafe fn fill(&mut self, address: u64, terms: &BlockTerms) -> Result<(), Error> {
        // SAFETY: by the caller's promise.
        unsafe { self.start(address, terms, 0) }?;
        self.stream.wait()
    }

    /// Compares a block at an address of the device with what it should be: the offset in bytes of the first lane that differs.
    ///
    /// # Safety
    /// As for [`ContentKernels::fill`].
    ///
    /// # Errors
    /// When the kernel fails.
    ///
    /// # Panics
    /// As for [`ContentKernels::fill`].
    pub unsafe fn check(&mut self, address: u64, terms: &BlockTerms) -> Result<Option<u64>, Error> {
        let mut found = NOTHING_WRONG;
        // SAFETY: eight bytes on both sides, and by the caller's promise.
        unsafe {
            self.stream.copy_in(self.found, (&raw const found).cast(), size_of::<u64>())?;
            self.start(address, terms, self.found)?;
            self.stream.copy_out((&raw mut found).cast(), self.found, size_of::<u64>())?;
        }
        self.stream.wait()?;
        Ok((found != NOTHING_WRONG).then_some(found))
    }

    unsafe fn start(&mut self, address: u64, terms: &BlockTerms, found: DevicePointer) -> Result<(), Error> {
        assert!(terms.fit(), "a block of whole lanes");
        let (mut address, mut terms, mut found) = (address, *terms, found);
        let lanes = terms.length_bytes / LANE_BYTES;
        let blocks = lanes.div_ceil(u64::from(THREADS)).clamp(1, BLOCKS_MAX) as u32;
        let mut arguments: [*mut c_void; 3] =
            [(&raw mut address).cast(), (&raw mut terms).cast(), (&raw mut found).cast()];
        // SAFETY: the arguments of the function; the library reads them before it returns.
        unsafe { self.stream.launch(self.function, [blocks, THREADS], &mut arguments) }
    }
}

impl Drop for ContentKernels {
    fn drop(&mut self) {
        if self.context.enter().is_ok() {
            // SAFETY: memory and a module of ours, whose work has been waited for.
            unsafe {
                (self.context.api.cuMemFree_v2)(self.found);
                (self.context.api.cuModuleUnload)(self.module);
            }
        }
    }
}
