//! Observations of this machine around the phases of a stage, whatever they measure.

use driver::{Clock, HostClock};
use host::activity::{self, CpuTimes, Usage};
use host::block::{self, DeviceNumber};
use host::control_group::{ControlGroups, CpuThrottling, IoLimit};
use runner::Outcome;

use crate::observations::{IoLimitActivity, Observations};

/// Shortest phase over which the machine's own accounting says anything. Over one of less than a second it is off by a tick or two; a stack
/// takes the mean over passes.
const MACHINE_SPAN_NS_MIN: u64 = 100_000_000;

/// The machine and this process just before a stage.
pub struct MachineWatch {
    machine: Option<CpuTimes>,
    process: Usage,
    fetched_bytes: Option<u64>,
    groups: ControlGroups,
    throttling: Vec<CpuThrottling>,
    io_limits: Vec<IoLimit>,
    begun_ns: u64,
}

impl MachineWatch {
    /// Begins just before the stage.
    pub fn begin() -> Self {
        let groups = ControlGroups::of_process();
        Self {
            throttling: groups.cpu_throttling(),
            io_limits: groups.io_limits(),
            groups,
            fetched_bytes: activity::fetched_bytes(),
            machine: CpuTimes::read(),
            process: Usage::of_process(),
            begun_ns: HostClock::get().now_ns(),
        }
    }

    /// Ends just after it; `outcomes` are those of its phases. Of `beside_cpu_ns` it is known that they were used on this machine for
    /// the load, by other processes.
    pub fn end(self, outcomes: &[Outcome], beside_cpu_ns: u64) -> Observations {
        let elapsed_ns = HostClock::get().now_ns() - self.begun_ns;
        let process = Usage::of_process().since(&self.process);
        // The kernel counts the machine's time in ticks of up to 10 ms: too coarse for a short phase.
        let machine = self.machine.zip(CpuTimes::read()).filter(|_| elapsed_ns >= MACHINE_SPAN_NS_MIN);
        let machine = machine.map(|(before, after)| after.since(&before));
        let processors = |ns: u64| ns as f64 / elapsed_ns.max(1) as f64;
        let busy = machine.map(|machine| processors(machine.busy_ns()));
        let own = processors(process.cpu_ns() + beside_cpu_ns);
        let kernel_worker_cpu_ns = match outcomes {
            [outcome] => kernel_worker_cpu_ns(outcome),
            _ => None,
        };
        Observations {
            machine_cpus_busy: busy,
            other_cpus_busy: busy.map(|busy| (busy - own).max(0.0)),
            other_cpus_user: machine.map(|machine| {
                (processors(machine.user_ns) - processors(process.user_ns + beside_cpu_ns)).max(0.0)
            }),
            stolen_cpus: machine.map(|machine| processors(machine.steal_ns)),
            context_switches: process.voluntary_switches + process.involuntary_switches,
            major_faults: process.major_faults,
            minor_faults: process.minor_faults,
            kernel_worker_cpu_ns,
            process_fetched_bytes: self
                .fetched_bytes
                .zip(activity::fetched_bytes())
                .map(|(before, after)| after.saturating_sub(before)),
            cpu_throttling: self.groups.cpu_throttling_since(&self.throttling),
            io_limits: self.io_limits_used(elapsed_ns),
            ..Observations::default()
        }
    }

    /// The limits that held all along, with what was counted against each.
    fn io_limits_used(&self, elapsed_ns: u64) -> Vec<IoLimitActivity> {
        let is_same = |now: &IoLimit, before: &IoLimit| {
            (&now.group, now.device, now.kind, now.limit_per_second)
                == (&before.group, before.device, before.kind, before.limit_per_second)
        };
        let now = self.groups.io_limits();
        let used = now.iter().filter_map(|now| {
            let before = self.io_limits.iter().find(|before| is_same(now, before))?;
            let counted = now.counted.saturating_sub(before.counted);
            Some(IoLimitActivity {
                device: disk_of(now.device),
                kind: now.kind,
                limit_per_second: now.limit_per_second,
                reached_per_second: counted as f64 * 1e9 / elapsed_ns.max(1) as f64,
            })
        });
        used.collect()
    }
}

/// The name of a disk; its number where sysfs has none.
fn disk_of(number: DeviceNumber) -> String {
    block::name(number).unwrap_or_else(|| number.to_string())
}

/// CPU time of the process that no thread of strata's own used: that of threads which the kernel made in it.
fn kernel_worker_cpu_ns(outcome: &Outcome) -> Option<u64> {
    let samples = &outcome.samples;
    // A worker that was given up told nothing of its time.
    if samples.workers.iter().any(|worker| worker.failure.is_some()) {
        return None;
    }
    let workers: u64 = samples.workers.iter().map(|worker| worker.cpu_user_ns + worker.cpu_system_ns).sum();
    let process = samples.process_cpu_user_ns + samples.process_cpu_system_ns;
    Some(process.saturating_sub(workers + outcome.coordinator_cpu_ns))
}
