//! Facts that only the management library of the driver (libnvidia-ml) knows: clocks that are held back, and other processes on a device.
//! It is asked where it is there; without it nothing is said.
#![allow(unsafe_code)]
#![allow(non_snake_case, reason = "names of the library")]

use std::ffi::{CString, c_char, c_int, c_uint, c_void};

use driver::foreign::{self, ClientLibrary};

/// The library.
const LIBNVML: ClientLibrary = ClientLibrary {
    layer: "gpu",
    name: "libnvidia-ml.so.1",
    variable: "STRATA_LIBNVML",
    package: "the driver of the GPU (libnvidia-ml1, or nvidia-driver-libs)",
};

/// Most processes that are asked for.
const PROCESSES_MAX: usize = 64;
/// Answer where there are more.
const INSUFFICIENT_SIZE: c_int = 7;

/// Reasons for lower clocks that are no fault: the device has nothing to do, or the user has set them
/// (nvml.h, `nvmlClocksEventReason*`).
const REASONS: [(u64, &str); 6] = [
    (0x0000_0004, "power cap"),
    (0x0000_0008, "hardware slowdown"),
    (0x0000_0020, "temperature (software)"),
    (0x0000_0040, "temperature (hardware)"),
    (0x0000_0080, "power brake"),
    (0x0000_0010, "held to another device's"),
];

/// `nvmlProcessInfo_t`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Process {
    pid: c_uint,
    memory_bytes: u64,
    gpu_instance: c_uint,
    compute_instance: c_uint,
}

foreign::functions! {
    /// Functions of libnvidia-ml, by the names of its header (nvml.h).
    Api of LIBNVML {
        nvmlInit_v2: fn() -> c_int;
        nvmlDeviceGetHandleByPciBusId_v2: fn(*const c_char, *mut *mut c_void) -> c_int;
        nvmlDeviceGetCurrentClocksThrottleReasons: fn(*mut c_void, *mut u64) -> c_int;
        nvmlDeviceGetComputeRunningProcesses_v3: fn(*mut c_void, *mut c_uint, *mut Process) -> c_int;
    }
}

/// State of a device now, as the library says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct State {
    /// Why its clocks are held back.
    pub(crate) held_back_by: Vec<&'static str>,
    /// Processes on it besides this one.
    pub(crate) other_processes: usize,
}

/// The state of the device at a place on PCIe; none where it cannot be told.
pub(crate) fn state(pci_address: &str) -> Option<State> {
    let api = Api::get().ok()?;
    let address = CString::new(pci_address).ok()?;
    let mut device = std::ptr::null_mut();
    let (mut reasons, mut count) = (0, PROCESSES_MAX as c_uint);
    let mut processes = [Process::default(); PROCESSES_MAX];
    // SAFETY: places for what each function gives, as many as it is told; starting the library twice is counted.
    unsafe {
        if (api.nvmlInit_v2)() != 0
            || (api.nvmlDeviceGetHandleByPciBusId_v2)(address.as_ptr(), &raw mut device) != 0
            || (api.nvmlDeviceGetCurrentClocksThrottleReasons)(device, &raw mut reasons) != 0
        {
            return None;
        }
        match (api.nvmlDeviceGetComputeRunningProcesses_v3)(device, &raw mut count, processes.as_mut_ptr()) {
            0 => {}
            INSUFFICIENT_SIZE => count = PROCESSES_MAX as c_uint,
            _ => return None,
        }
    }
    let own = std::process::id();
    let listed = &processes[..(count as usize).min(PROCESSES_MAX)];
    Some(State {
        held_back_by: REASONS.iter().filter(|(bit, _)| reasons & bit != 0).map(|(_, name)| *name).collect(),
        other_processes: listed.iter().filter(|process| process.pid != own).count(),
    })
}
