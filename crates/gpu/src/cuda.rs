//! The functions in use of libcuda, the driver of NVIDIA's GPUs, and its errors.
#![allow(unsafe_code)]
#![allow(non_snake_case, reason = "names of the library")]

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};

use driver::foreign::{self, ClientLibrary};
use driver::{Error, ErrorKind};

/// The library: it comes with the driver of the device.
pub(crate) const LIBCUDA: ClientLibrary = ClientLibrary {
    layer: "gpu",
    name: "libcuda.so.1",
    variable: "STRATA_LIBCUDA",
    package: "the driver of the GPU (libcuda1, or nvidia-driver-libs)",
};

/// Address in the memory of a device.
pub(crate) type DevicePointer = u64;
/// Handles of the library.
pub(crate) type Handle = *mut c_void;

/// A stream that does not wait for work of the default stream, nor that for it.
pub(crate) const STREAM_NON_BLOCKING: c_uint = 1;
/// Events without times cost less.
pub(crate) const EVENT_DISABLE_TIMING: c_uint = 2;
/// Memory of the host that any context may use.
pub(crate) const HOST_REGISTER_PORTABLE: c_uint = 1;
/// An event or a stream whose work is not done yet.
pub(crate) const NOT_READY: c_int = 600;

/// `CUdevice_attribute`: bus, device and domain of its place on PCIe; engines that copy while kernels run.
pub(crate) const ATTRIBUTE_PCI_BUS: c_int = 33;
pub(crate) const ATTRIBUTE_PCI_DEVICE: c_int = 34;
pub(crate) const ATTRIBUTE_PCI_DOMAIN: c_int = 50;

foreign::functions! {
    /// Functions of libcuda, by the names of its header (cuda.h).
    Api of LIBCUDA {
        cuInit: fn(c_uint) -> c_int;
        cuDriverGetVersion: fn(*mut c_int) -> c_int;
        cuGetErrorName: fn(c_int, *mut *const c_char) -> c_int;
        cuDeviceGetCount: fn(*mut c_int) -> c_int;
        cuDeviceGet: fn(*mut c_int, c_int) -> c_int;
        cuDeviceGetName: fn(*mut c_char, c_int, c_int) -> c_int;
        cuDeviceGetAttribute: fn(*mut c_int, c_int, c_int) -> c_int;
        cuDeviceTotalMem_v2: fn(*mut usize, c_int) -> c_int;
        cuDeviceCanAccessPeer: fn(*mut c_int, c_int, c_int) -> c_int;
        cuDevicePrimaryCtxRetain: fn(*mut Handle, c_int) -> c_int;
        cuDevicePrimaryCtxRelease_v2: fn(c_int) -> c_int;
        cuCtxSetCurrent: fn(Handle) -> c_int;
        cuMemAlloc_v2: fn(*mut DevicePointer, usize) -> c_int;
        cuMemFree_v2: fn(DevicePointer) -> c_int;
        cuMemHostRegister_v2: fn(*mut c_void, usize, c_uint) -> c_int;
        cuMemHostUnregister: fn(*mut c_void) -> c_int;
        cuMemcpyHtoDAsync_v2: fn(DevicePointer, *const c_void, usize, Handle) -> c_int;
        cuMemcpyDtoHAsync_v2: fn(*mut c_void, DevicePointer, usize, Handle) -> c_int;
        cuMemcpyDtoDAsync_v2: fn(DevicePointer, DevicePointer, usize, Handle) -> c_int;
        cuMemsetD8Async: fn(DevicePointer, u8, usize, Handle) -> c_int;
        cuStreamCreate: fn(*mut Handle, c_uint) -> c_int;
        cuStreamQuery: fn(Handle) -> c_int;
        cuStreamSynchronize: fn(Handle) -> c_int;
        cuStreamDestroy_v2: fn(Handle) -> c_int;
        cuEventCreate: fn(*mut Handle, c_uint) -> c_int;
        cuEventRecord: fn(Handle, Handle) -> c_int;
        cuEventQuery: fn(Handle) -> c_int;
        cuEventSynchronize: fn(Handle) -> c_int;
        cuEventDestroy_v2: fn(Handle) -> c_int;
        cuModuleLoadData: fn(*mut Handle, *const c_void) -> c_int;
        cuModuleGetFunction: fn(*mut Handle, Handle, *const c_char) -> c_int;
        cuModuleUnload: fn(Handle) -> c_int;
        cuLaunchKernel: fn(
            Handle,
            c_uint,
            c_uint,
            c_uint,
            c_uint,
            c_uint,
            c_uint,
            c_uint,
            Handle,
            *mut *mut c_void,
            *mut *mut c_void
        ) -> c_int;
    }
}

impl Api {
    /// The library, ready for use.
    ///
    /// # Errors
    /// When it is not there, or finds no device that works.
    pub(crate) fn ready() -> Result<&'static Self, Error> {
        let api = Self::get()?;
        // SAFETY: no argument but flags, which must be 0. May be called more than once.
        api.check(unsafe { (api.cuInit)(0) }, "cannot start the driver of the GPU")?;
        Ok(api)
    }

    /// Name of one of its errors, as in its header: `CUDA_ERROR_OUT_OF_MEMORY`.
    fn name_of(&self, code: c_int) -> String {
        let mut name = std::ptr::null();
        // SAFETY: a place for a pointer to a string that is the library's for good.
        let told = unsafe { (self.cuGetErrorName)(code, &raw mut name) };
        if told != 0 || name.is_null() {
            return format!("error {code}");
        }
        // SAFETY: the library gives a string that ends with a zero.
        unsafe { CStr::from_ptr(name) }.to_string_lossy().into_owned()
    }

    /// Turns a code into an error: `message` with the code's name and what can be done.
    pub(crate) fn check(&self, code: c_int, message: &str) -> Result<(), Error> {
        if code == 0 {
            return Ok(());
        }
        let error = Error::new(ErrorKind::System, "gpu", message).with("code", self.name_of(code));
        Err(match remedy(code) {
            Some(remedy) => error.remedy(remedy),
            None => error,
        })
    }
}

/// Remedy of an error of the library (cuda.h, `CUresult`).
fn remedy(code: c_int) -> Option<&'static str> {
    Some(match code {
        2 => {
            "use a smaller block size, queue depth or number of threads, or stop other processes on the device (nvidia-smi)"
        }
        3 | 100 => "check that nvidia-smi lists a device, and that this process may open /dev/nvidia*",
        34 => "the library is a stub for linking: remove its folder from LD_LIBRARY_PATH",
        46 => "another process uses the device exclusively, or its compute mode forbids it: nvidia-smi -c 0",
        712 => "the buffers are registered already: do not give the same memory to two devices",
        719 | 700 | 710 => "the device has failed: see the kernel's log (dmesg) for its Xid",
        802 => "the system's fabric manager is not ready: see nvidia-fabricmanager",
        803 => {
            "the driver in the kernel and the library are of different versions: restart, or reinstall them"
        }
        _ => return None,
    })
}
