//! Doubts about who did the work: strata, or the kernel's workers, instead of the target.

use crate::plan::MediaPlan;
use report::doubts::Evidence;
use statistics::{PhaseSamples, WorkerSamples};
use units::percent;

use super::evidence::targets;

/// Share of its time that a worker may compute in user mode, where only strata runs.
const WORKER_USER_SHARE_MAX: f64 = 0.9;
/// Share of the process's CPU time that worker threads of the kernel may take.
const KERNEL_WORKER_SHARE_MAX: f64 = 0.1;
/// Processors that they may keep busy: below it they are what opening and closing of files leaves.
const KERNEL_WORKER_CPUS_MAX: f64 = 0.05;
/// Share of its time that a worker may be on its processor while it keeps a device's queue filled; above it, it never
/// waits, so the device does.
const WORKER_BUSY_SHARE_MAX: f64 = 0.95;

pub(super) fn client_saturated(evidence: &Evidence<'_>) -> Option<String> {
    let plan = evidence.plan.of::<MediaPlan>()?;
    let options = &plan.options;
    targets(evidence).next()?;
    if let Some(told) = evidence.tool_took() {
        let fill: u64 = evidence.samples.workers.iter().map(|worker| worker.fill_ns + worker.verify_ns).sum();
        let all: u64 = evidence.samples.workers.iter().map(|worker| worker.tool_ns).sum();
        let most = if fill * 2 > all { ", most of it filling and verifying buffers" } else { "" };
        return Some(format!("{told}{most}"));
    }
    // An open loop may wait on its processor for the next arrival; mmap copies in user mode.
    let closed = plan.load.arrivals.is_none();
    let user = highest_share(evidence.samples, |worker| worker.cpu_user_ns);
    if closed && plan.engine != "mmap" && user > WORKER_USER_SHARE_MAX {
        return Some(format!("a worker used a CPU in user mode for {} of its time", percent(user)));
    }
    let busy = highest_share(evidence.samples, |worker| worker.cpu_user_ns + worker.cpu_system_ns);
    let polls = options.iopoll || options.hipri;
    let queues = options.direct && plan.load.depth > 1;
    (closed && queues && !polls && busy > WORKER_BUSY_SHARE_MAX).then(|| {
        format!("a worker used its CPU for {} of its time: the device waited for strata", percent(busy))
    })
}

/// io_uring hands what it cannot start without waiting to threads of the kernel (io-wq): buffered writes of many file
/// systems, reads that miss the page cache there, fsync. The depth then is a number of threads, and their CPU time is
/// the process's.
pub(super) fn kernel_workers(evidence: &Evidence<'_>) -> Option<String> {
    // A thread that polls for submissions was asked for, and cannot be told apart.
    if evidence.plan.engine() != "io_uring"
        || evidence.plan.of::<MediaPlan>().is_none_or(|plan| plan.options.sqpoll)
    {
        return None;
    }
    let samples = evidence.samples;
    let all_ns = samples.process_cpu_user_ns + samples.process_cpu_system_ns;
    let workers_ns = evidence.observations.kernel_worker_cpu_ns?;
    let share = workers_ns as f64 / all_ns.max(1) as f64;
    let cpus = workers_ns as f64 / samples.elapsed_ns.max(1) as f64;
    (share > KERNEL_WORKER_SHARE_MAX && cpus > KERNEL_WORKER_CPUS_MAX).then(|| {
        format!(
            "kernel worker threads used {} of the CPU time: io_uring passed operations to them; the CPU results include them",
            percent(share.min(1.0))
        )
    })
}

fn highest_share(samples: &PhaseSamples, time_ns: fn(&WorkerSamples) -> u64) -> f64 {
    let share = |worker: &WorkerSamples| {
        let length_ns = worker.finished_ns.saturating_sub(worker.started_ns);
        if length_ns == 0 { 0.0 } else { time_ns(worker) as f64 / length_ns as f64 }
    };
    samples.workers.iter().map(share).fold(0.0, f64::max)
}
