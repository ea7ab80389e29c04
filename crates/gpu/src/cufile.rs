//! GPUDirect Storage: files that are read and written to and from memory of a device, by libcufile.
#![allow(unsafe_code)]
#![allow(non_snake_case, reason = "names of the library")]

mod codes;
mod queued;
mod transport;

use std::ffi::{c_int, c_void};
use std::os::fd::{AsRawFd, BorrowedFd};
use std::sync::Arc;

use driver::foreign::{self, ClientLibrary};
use driver::{Error, ErrorKind};
use parking_lot::Mutex;

use crate::memory::DeviceBuffers;
pub use queued::{Batches, Queue, Request, Streams};
pub use transport::{Counters, Transport};

/// The library.
const LIBCUFILE: ClientLibrary = ClientLibrary {
    layer: "gpu",
    name: "libcufile.so.0",
    variable: "STRATA_LIBCUFILE",
    package: "GPUDirect Storage (gds-tools, or libcufile of the CUDA toolkit)",
};

/// `CUfileError_t`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
struct Status {
    code: c_int,
    cuda_code: c_int,
}

/// `CUfileDescr_t` of a file descriptor.
#[repr(C)]
struct Description {
    kind: c_int,
    handle: DescriptorHandle,
    operations: *const c_void,
}

#[repr(C)]
union DescriptorHandle {
    descriptor: c_int,
    handle: *mut c_void,
}

/// `CUfileDrvProps_t`, with room for what later versions add.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
struct Properties {
    nvfs_major: u32,
    nvfs_minor: u32,
    poll_threshold: usize,
    direct_io_max: usize,
    status_flags: u32,
    control_flags: u32,
    flags: u32,
    device_cache_max: u32,
    buffer_cache: u32,
    pinned_max: u32,
    batch_max: u32,
    batch_timeout_max: u32,
    room: [u64; 16],
}

/// `CU_FILE_HANDLE_TYPE_OPAQUE_FD`.
const OPAQUE_DESCRIPTOR: c_int = 1;

foreign::functions! {
    /// Functions of libcufile, by the names of its header (cufile.h).
    Api of LIBCUFILE {
        cuFileDriverOpen: fn() -> Status;
        cuFileDriverGetProperties: fn(*mut Properties) -> Status;
        cuFileHandleRegister: fn(*mut *mut c_void, *mut Description) -> Status;
        cuFileHandleDeregister: fn(*mut c_void);
        cuFileBufRegister: fn(*const c_void, usize, c_int) -> Status;
        cuFileBufDeregister: fn(*const c_void) -> Status;
        cuFileRead: fn(*mut c_void, *mut c_void, usize, i64, i64) -> isize;
        cuFileWrite: fn(*mut c_void, *const c_void, usize, i64, i64) -> isize;
    }
}

/// One caller at a time sets something up: where two threads fail to register a file at once, the library ends the process with a C++
/// exception (seen with libcufile 1.15).
static SETTING_UP: Mutex<()> = Mutex::new(());

/// The library with its driver open. It stays so until the process ends: closing it while others use it fails their requests.
#[derive(Debug)]
pub struct CuFile {
    api: &'static Api,
    properties: Properties,
}

impl CuFile {
    /// Requests that begin and end on multiples of this go to the device directly; the library copies others through buffers of its own.
    pub const PAGE_BYTES: u64 = 4096;

    /// Opens the driver, once a process.
    ///
    /// # Errors
    /// When the library is missing, or refuses.
    pub fn open() -> Result<&'static Self, Error> {
        static OPEN: std::sync::OnceLock<CuFile> = std::sync::OnceLock::new();
        let _alone = SETTING_UP.lock();
        if let Some(open) = OPEN.get() {
            return Ok(open);
        }
        let api = Api::get()?;
        // SAFETY: no argument.
        let status = unsafe { (api.cuFileDriverOpen)() };
        if status.code != codes::ALREADY_OPEN {
            check(status, "cannot open the driver of GPUDirect Storage")?;
        }
        let mut properties = Properties::default();
        // SAFETY: a place for the properties with room for more than the header of today says.
        let status = unsafe { (api.cuFileDriverGetProperties)(&raw mut properties) };
        check(status, "cannot read the properties of GPUDirect Storage")?;
        Ok(OPEN.get_or_init(|| Self { api, properties }))
    }

    /// Whether requests can go past the memory of the host at all, and why not.
    #[must_use]
    pub fn transport(&self) -> Transport {
        Transport::of((self.properties.nvfs_major, self.properties.nvfs_minor), self.properties.flags)
    }

    /// Registers a file; it must stay open as long.
    ///
    /// # Errors
    /// When its file system or the flags that it was opened with are not taken.
    pub fn register_file(&'static self, file: BorrowedFd<'_>) -> Result<RegisteredFile, Error> {
        let _alone = SETTING_UP.lock();
        let mut description = Description {
            kind: OPAQUE_DESCRIPTOR,
            handle: DescriptorHandle { descriptor: file.as_raw_fd() },
            operations: std::ptr::null(),
        };
        let mut handle = std::ptr::null_mut();
        // SAFETY: places for the handle and of the description, which the library copies.
        let status = unsafe { (self.api.cuFileHandleRegister)(&raw mut handle, &raw mut description) };
        check(status, "GPUDirect Storage rejected the file")?;
        Ok(RegisteredFile { api: self.api, handle })
    }

    /// Registers the buffers of a worker, so that they are not mapped for each request.
    ///
    /// # Errors
    /// When the device has no room to map them (BAR1).
    pub fn register_buffers(&'static self, buffers: &Arc<DeviceBuffers>) -> Result<RegisteredBuffers, Error> {
        let _alone = SETTING_UP.lock();
        buffers.context().enter()?;
        self.register(buffers, std::iter::once(buffers.region()))
    }

    /// The same with each buffer as a region of its own, as requests on streams name them.
    ///
    /// # Errors
    /// As for [`CuFile::register_buffers`].
    pub fn register_each_buffer(
        &'static self,
        buffers: &Arc<DeviceBuffers>,
    ) -> Result<RegisteredBuffers, Error> {
        let _alone = SETTING_UP.lock();
        buffers.context().enter()?;
        let slots = (0..buffers.slots()).map(|slot| (buffers.slot_address(slot), buffers.slot_bytes()));
        self.register(buffers, slots)
    }

    fn register(
        &'static self,
        buffers: &Arc<DeviceBuffers>,
        regions: impl Iterator<Item = (u64, usize)>,
    ) -> Result<RegisteredBuffers, Error> {
        let mut registered =
            Registration { api: self.api, buffers: Arc::clone(buffers), regions: Vec::new() };
        for (base, bytes) in regions {
            // SAFETY: memory of the device that stays as long as the buffers, which the result keeps.
            let status = unsafe { (self.api.cuFileBufRegister)(base as *const c_void, bytes, 0) };
            check(status, "GPUDirect Storage rejected the buffers")
                .map_err(|error| error.with("bytes", bytes))?;
            registered.regions.push(base);
        }
        Ok(RegisteredBuffers { kept: Some(registered) })
    }
}

/// A file that the library knows, until this is dropped.
#[derive(Debug)]
pub struct RegisteredFile {
    api: &'static Api,
    handle: *mut c_void,
}

// SAFETY: handles may be used by several threads at once.
unsafe impl Send for RegisteredFile {}

impl RegisteredFile {
    /// Reads `bytes` at `offset` of the file to the buffer of `slot`: the number of bytes, or a negated errno.
    ///
    /// # Panics
    /// When the buffer has no room for them.
    #[inline]
    #[must_use]
    pub fn read(&self, buffers: &DeviceBuffers, slot: u32, bytes: usize, offset: u64) -> i64 {
        let (base, at) = address(buffers, slot, bytes);
        // SAFETY: within memory of the device that is the slot's.
        let result =
            unsafe { (self.api.cuFileRead)(self.handle, base as *mut c_void, bytes, offset as i64, at) };
        outcome(result)
    }

    /// Writes the other way.
    ///
    /// # Panics
    /// As for [`RegisteredFile::read`].
    #[inline]
    #[must_use]
    pub fn write(&self, buffers: &DeviceBuffers, slot: u32, bytes: usize, offset: u64) -> i64 {
        let (base, at) = address(buffers, slot, bytes);
        // SAFETY: as above.
        let result =
            unsafe { (self.api.cuFileWrite)(self.handle, base as *const c_void, bytes, offset as i64, at) };
        outcome(result)
    }
}

impl Drop for RegisteredFile {
    fn drop(&mut self) {
        let _alone = SETTING_UP.lock();
        // SAFETY: a handle of ours, of which no request is under way.
        unsafe { (self.api.cuFileHandleDeregister)(self.handle) };
    }
}

/// Buffers that the library knows, until this is dropped.
#[derive(Debug)]
pub struct RegisteredBuffers {
    kept: Option<Registration>,
}

impl Drop for RegisteredBuffers {
    fn drop(&mut self) {
        let _alone = SETTING_UP.lock();
        drop(self.kept.take());
    }
}

/// Regions that the library knows. Dropped by who sets up alone.
#[derive(Debug)]
struct Registration {
    api: &'static Api,
    buffers: Arc<DeviceBuffers>,
    regions: Vec<u64>,
}

impl Drop for Registration {
    fn drop(&mut self) {
        if self.buffers.context().enter().is_ok() {
            for base in &self.regions {
                // SAFETY: registered by us, and still there.
                unsafe { (self.api.cuFileBufDeregister)(*base as *const c_void) };
            }
        }
    }
}

/// Address of the whole region, and the distance of the slot from it: the library finds registered buffers by their first byte.
#[inline]
fn address(buffers: &DeviceBuffers, slot: u32, bytes: usize) -> (u64, i64) {
    assert!(bytes <= buffers.slot_bytes());
    let base = buffers.region().0;
    (base, (buffers.slot_address(slot) - base) as i64)
}

/// Result of a request: errors of the library beyond errno are input/output errors, whose name [`code_name`] tells.
#[inline]
fn outcome(result: isize) -> i64 {
    match result {
        0.. => result as i64,
        -1 => -i64::from(std::io::Error::last_os_error().raw_os_error().unwrap_or(5)),
        _ => codes::as_errno(result),
    }
}

fn check(status: Status, message: &str) -> Result<(), Error> {
    if status.code == 0 {
        return Ok(());
    }
    let mut error =
        Error::new(ErrorKind::Unsupported, "gpu", message).with("code", codes::name_of(status.code));
    if status.cuda_code != 0 {
        error = error.with("cuda_code", status.cuda_code);
    }
    Err(match codes::remedy(status.code) {
        Some(remedy) => error.remedy(remedy),
        None => error,
    })
}
