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

/// Policies that hold clocks back and are faults (nvml.h, `nvmlPerfPolicyType_t`): not those of a device that has nothing to do, nor clocks that the user has set.
const POLICIES: [(c_uint, &str); 4] =
    [(0, "power cap"), (1, "temperature"), (3, "board limit"), (5, "reliability")];
/// Reasons for lower clocks now, of devices that do not add up times (nvml.h, `nvmlClocksEventReason*`).
const REASONS: [(u64, &str); 6] = [
    (0x0000_0004, "power cap"),
    (0x0000_0008, "hardware slowdown"),
    (0x0000_0020, "temperature (software)"),
    (0x0000_0040, "temperature (hardware)"),
    (0x0000_0080, "power brake"),
    (0x0000_0010, "tied to the clocks of another device"),
];
/// Least part of a phase that is told.
const SHARE_MIN: f64 = 0.01;

/// `nvmlViolationTime_t`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct ViolationTime {
    reference_us: u64,
    violation_ns: u64,
}

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
        nvmlDeviceGetViolationStatus: fn(*mut c_void, c_uint, *mut ViolationTime) -> c_int;
        nvmlDeviceGetComputeRunningProcesses_v3: fn(*mut c_void, *mut c_uint, *mut Process) -> c_int;
    }
}

/// How long, or whether, the clocks of a device have been held back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum HeldBack {
    /// Nanoseconds by policy, since the driver was loaded.
    Times([u64; POLICIES.len()]),
    /// Reasons now, as bits: the device adds up no times.
    Now(u64),
}

impl HeldBack {
    /// Why clocks were held back since `earlier`, and for which part of `elapsed_ns`.
    pub(crate) fn since(&self, earlier: &Self, elapsed_ns: u64) -> Vec<String> {
        match (earlier, self) {
            (Self::Times(before), Self::Times(after)) => {
                let times = before.iter().zip(after).map(|(before, after)| after.saturating_sub(*before));
                let shares = times.map(|time_ns| (time_ns as f64 / elapsed_ns.max(1) as f64).min(1.0));
                let told = POLICIES.iter().zip(shares).filter(|(_, share)| *share >= SHARE_MIN);
                told.map(|((_, name), share)| format!("{name} ({})", units::percent(share))).collect()
            }
            (_, Self::Now(bits)) => REASONS
                .iter()
                .filter(|(bit, _)| bits & bit != 0)
                .map(|(_, name)| (*name).to_owned())
                .collect(),
            _ => Vec::new(),
        }
    }
}

/// The device at a place on PCIe; none where the library does not know it.
fn device(api: &Api, pci_address: &str) -> Option<*mut c_void> {
    let address = CString::new(pci_address).ok()?;
    let mut device = std::ptr::null_mut();
    // SAFETY: a place for the handle; starting the library twice is counted.
    let is_found = unsafe {
        (api.nvmlInit_v2)() == 0
            && (api.nvmlDeviceGetHandleByPciBusId_v2)(address.as_ptr(), &raw mut device) == 0
    };
    is_found.then_some(device)
}

/// How long the clocks of a device have been held back; none where it cannot be told.
pub(crate) fn held_back(pci_address: &str) -> Option<HeldBack> {
    let api = Api::get().ok()?;
    let device = device(api, pci_address)?;
    let mut times = [0; POLICIES.len()];
    let mut counts = false;
    for (at, (policy, _)) in POLICIES.iter().enumerate() {
        let mut time = ViolationTime::default();
        // SAFETY: a place for both times.
        if unsafe { (api.nvmlDeviceGetViolationStatus)(device, *policy, &raw mut time) } == 0 {
            times[at] = time.violation_ns;
            counts = true;
        }
    }
    if counts {
        return Some(HeldBack::Times(times));
    }
    let mut reasons = 0;
    // SAFETY: a place for the bits.
    let code = unsafe { (api.nvmlDeviceGetCurrentClocksThrottleReasons)(device, &raw mut reasons) };
    (code == 0).then_some(HeldBack::Now(reasons))
}

/// Processes on a device besides this one; none where it cannot be told.
pub(crate) fn other_processes(pci_address: &str) -> Option<usize> {
    let api = Api::get().ok()?;
    let device = device(api, pci_address)?;
    let mut count = PROCESSES_MAX as c_uint;
    let mut processes = [Process::default(); PROCESSES_MAX];
    // SAFETY: places for as many as it is told.
    match unsafe {
        (api.nvmlDeviceGetComputeRunningProcesses_v3)(device, &raw mut count, processes.as_mut_ptr())
    } {
        0 => {}
        INSUFFICIENT_SIZE => count = PROCESSES_MAX as c_uint,
        _ => return None,
    }
    let own = std::process::id();
    let listed = &processes[..(count as usize).min(PROCESSES_MAX)];
    Some(listed.iter().filter(|process| process.pid != own).count())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_shares_of_the_phase() {
        let before = HeldBack::Times([100, 7, 0, 0]);
        let after = HeldBack::Times([100 + 500_000_000, 7, 0, 1]);
        assert_eq!(after.since(&before, 1_000_000_000), ["power cap (50.0%)"]);
        assert!(before.since(&before, 1_000_000_000).is_empty());
        assert_eq!(HeldBack::Now(0x48).since(&before, 1), ["hardware slowdown", "temperature (hardware)"]);
    }
}
