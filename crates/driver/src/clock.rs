//! The clock of the measuring loop: the time-stamp counter where it is stable, the kernel's monotonic clock elsewhere.
#![allow(unsafe_code)]

use std::sync::OnceLock;

use serde::{Deserialize, Serialize};

/// A source of nanoseconds that never runs backwards. Workers are generic over it, so that tests can bring a virtual one.
pub trait Clock: Clone + Send + Sync {
    /// Nanoseconds since some fixed start.
    fn now_ns(&self) -> u64;

    /// Lets `ns` nanoseconds go by with the thread asleep, or a little more.
    fn sleep_ns(&self, ns: u64) {
        std::thread::sleep(std::time::Duration::from_nanos(ns));
    }

    /// One turn of a loop that spins until `at_ns`: returns long before it on a real clock, at it on a virtual one.
    #[inline]
    fn spin_until(&self, _at_ns: u64) {
        std::hint::spin_loop();
    }

    /// Called by a worker that finds no empty interval buffer, because its collector is late. True when it has waited for the
    /// collector and should look again: only virtual time can stand still for that.
    fn await_collector(&self) -> bool {
        false
    }
}

/// Which counter the clock reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ClockSource {
    /// The processor's time-stamp counter, about 10 ns a read.
    TimeStampCounter,
    /// `clock_gettime(CLOCK_MONOTONIC)`, about 25 ns a read.
    Monotonic,
}

/// Shortest span over which the counter is calibrated: at 25 ns of reading jitter it leaves an error of about 5 ppm.
const CALIBRATION_NS: u64 = 5_000_000;
/// Fraction bits of the tick length.
const SHIFT: u32 = 32;

/// The clock of this machine, calibrated once a process.
#[derive(Clone, Copy, Debug)]
pub struct HostClock {
    source: ClockSource,
    base_ticks: u64,
    base_ns: u64,
    ns_per_tick_shifted: u64,
}

impl HostClock {
    /// The process's clock. The first call calibrates it: 5 ms.
    #[must_use]
    pub fn get() -> Self {
        static CLOCK: OnceLock<HostClock> = OnceLock::new();
        *CLOCK.get_or_init(|| if counter_is_stable() { Self::calibrated() } else { Self::monotonic() })
    }

    /// A clock on the kernel's monotonic clock alone.
    #[must_use]
    pub fn monotonic() -> Self {
        Self {
            source: ClockSource::Monotonic,
            base_ticks: 0,
            base_ns: monotonic_ns(),
            ns_per_tick_shifted: 0,
        }
    }

    fn calibrated() -> Self {
        let (start_ticks, start_ns) = paired_reading();
        let (end_ticks, end_ns) = loop {
            let reading = paired_reading();
            if reading.1 - start_ns >= CALIBRATION_NS {
                break reading;
            }
        };
        let ns_per_tick = (end_ns - start_ns) as f64 / (end_ticks - start_ticks).max(1) as f64;
        Self {
            source: ClockSource::TimeStampCounter,
            base_ticks: start_ticks,
            base_ns: start_ns,
            ns_per_tick_shifted: (ns_per_tick * (1u64 << SHIFT) as f64) as u64,
        }
    }

    /// The counter in use.
    #[must_use]
    pub fn source(&self) -> ClockSource {
        self.source
    }

    /// Drift of this clock against the kernel's since calibration, in parts per million. The kernel's clock is itself
    /// disciplined by NTP, so some tens are normal; hundreds mean that latencies are off by as much.
    #[must_use]
    pub fn drift_ppm(&self) -> f64 {
        let kernel_ns = monotonic_ns() - self.base_ns;
        if kernel_ns < CALIBRATION_NS {
            return 0.0;
        }
        (self.now_ns() as f64 - kernel_ns as f64) / kernel_ns as f64 * 1e6
    }
}

impl Clock for HostClock {
    #[inline]
    fn now_ns(&self) -> u64 {
        match self.source {
            ClockSource::TimeStampCounter => {
                let ticks = read_counter().wrapping_sub(self.base_ticks);
                ((u128::from(ticks) * u128::from(self.ns_per_tick_shifted)) >> SHIFT) as u64
            }
            ClockSource::Monotonic => monotonic_ns() - self.base_ns,
        }
    }
}

fn monotonic_ns() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// Counter and kernel clock as close together as eight tries bring them.
fn paired_reading() -> (u64, u64) {
    (0..8)
        .map(|_| {
            let before = read_counter();
            let ns = monotonic_ns();
            let after = read_counter();
            (after.wrapping_sub(before), before.wrapping_add(after.wrapping_sub(before) / 2), ns)
        })
        .min()
        .map_or((0, 0), |(_, ticks, ns)| (ticks, ns))
}

#[cfg(target_arch = "x86_64")]
#[inline]
fn read_counter() -> u64 {
    // SAFETY: RDTSC has no preconditions; the kernel leaves it enabled in user mode.
    unsafe { core::arch::x86_64::_rdtsc() }
}

#[cfg(target_arch = "aarch64")]
#[inline]
fn read_counter() -> u64 {
    let ticks: u64;
    // SAFETY: the virtual counter is readable from user mode on Linux.
    unsafe { core::arch::asm!("mrs {}, cntvct_el0", out(reg) ticks, options(nomem, nostack)) };
    ticks
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
#[inline]
fn read_counter() -> u64 {
    monotonic_ns()
}

/// The kernel watches the counters of all cores and leaves its own use of them when they disagree: its choice is ours.
fn counter_is_stable() -> bool {
    let current = std::fs::read_to_string("/sys/devices/system/clocksource/clocksource0/current_clocksource");
    match current.as_deref().map(str::trim) {
        Ok("tsc" | "arch_sys_counter") => true,
        // A guest on kvm-clock still reads a constant counter when the processor says so.
        Ok("kvm-clock") => std::fs::read_to_string("/proc/cpuinfo")
            .is_ok_and(|text| text.contains("constant_tsc") && text.contains("nonstop_tsc")),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agrees_with_the_kernel() {
        for clock in [HostClock::get(), HostClock::monotonic()] {
            let (ours, kernels) = (clock.now_ns(), monotonic_ns());
            let mut last = ours;
            while monotonic_ns() - kernels < 50_000_000 {
                let now = clock.now_ns();
                assert!(now >= last, "ran backwards");
                last = now;
            }
            let (ours, kernels) = ((clock.now_ns() - ours) as f64, (monotonic_ns() - kernels) as f64);
            assert!((ours / kernels - 1.0).abs() < 0.01, "{ours} against {kernels}");
        }
    }
}
