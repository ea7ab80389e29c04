//! One phase of the media layer: from its plan to a job for the runner, and what is seen around it.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use driver::{Arena, Clock, HostClock, PageSize};
use host::activity::{CpuTimes, Usage};
use media::{DRIVERS, Ledger, MediaClass, MediaOperation, MediaSource, OpenRequest, Verifier};
use report::record::Observations;
use runner::{Job, Station};
use workload::plan::PhasePlan;
use workload::spec::Operation;
use workload::target::{TargetKind, TargetPlan};

/// The runner's job for a plan. `ledger` where blocks are verified; with `accepts_foreign`, blocks of other runs are
/// checked against themselves.
pub(crate) fn job(
    plan: &PhasePlan,
    ledger: Option<Arc<Ledger>>,
    accepts_foreign: bool,
    interrupt: Arc<AtomicBool>,
) -> Job<MediaOperation, MediaSource> {
    let shared = Arc::new(plan.clone());
    let open = move |worker: u32| {
        let plan = Arc::clone(&shared);
        let pages = if plan.huge_pages { PageSize::Huge } else { PageSize::Base };
        let arena = Arc::new(Arena::new(plan.load.depth, plan.block_size_bytes_max as usize, pages)?);
        let verifier = match &ledger {
            Some(ledger) => Some(Verifier::new(&plan, Arc::clone(ledger), accepts_foreign)?),
            None => None,
        };
        let request = OpenRequest {
            targets: plan.targets.clone(),
            writes: plan.writes(),
            depth: plan.load.depth,
            options: plan.options.clone(),
            arena: Arc::clone(&arena),
        };
        let opened = (driver::find(DRIVERS, &plan.engine)?.open)(&request)?;
        let source = MediaSource::new(&plan, worker, arena, verifier)?;
        Ok(Station { driver: opened.driver, source, notes: opened.notes })
    };
    Job {
        name: plan.name.clone(),
        load: plan.load.clone(),
        classes: classes(plan),
        expected_operations: expected_operations(plan),
        open: Arc::new(open),
        interrupt,
    }
}

/// Classes that the plan's operations can be of.
fn classes(plan: &PhasePlan) -> Vec<usize> {
    let syncs = plan.fsync_every.is_some() || plan.end_fsync;
    let used = [
        (plan.mix.read_percent > 0, MediaClass::Read),
        (plan.mix.write_percent > 0, MediaClass::Write),
        (plan.mix.discard_percent > 0, MediaClass::Discard),
        (syncs, MediaClass::Sync),
        (plan.operation == Operation::Nop, MediaClass::Nop),
    ];
    used.into_iter().filter(|(used, _)| *used).map(|(_, class)| class as usize).collect()
}

fn expected_operations(plan: &PhasePlan) -> Option<u64> {
    let limit = &plan.load.limit;
    let is_one_pass = limit.time_ns.is_none() && limit.operations.is_none() && limit.bytes.is_none();
    is_one_pass.then(|| plan.range_bytes() / plan.align_bytes)
}

fn is_stored(target: &&TargetPlan) -> bool {
    matches!(target.kind, TargetKind::File | TargetKind::BlockDevice)
}

/// Shortest phase over which the machine's own accounting says anything.
const MACHINE_SPAN_NS_MIN: u64 = 400_000_000;

/// Watches the machine around a phase.
pub(crate) struct Watch {
    begun_ns: u64,
    machine: Option<CpuTimes>,
    process: Usage,
    device: Option<host::traffic::Traffic>,
    cached_before_fraction: Option<f64>,
    unwritten_fraction: Option<f64>,
}

impl Watch {
    /// Begins just before the phase.
    pub(crate) fn begin(plan: &PhasePlan) -> Self {
        let reads_cache = plan.reads() && !plan.options.direct;
        Self {
            cached_before_fraction: if reads_cache { over_range(plan, cached_fraction) } else { None },
            unwritten_fraction: if plan.reads() { over_range(plan, unwritten_fraction) } else { None },
            device: traffic(plan),
            machine: CpuTimes::read(),
            process: Usage::of_process(),
            begun_ns: HostClock::get().now_ns(),
        }
    }

    /// Ends just after it.
    pub(crate) fn end(self, plan: &PhasePlan) -> Observations {
        let elapsed_ns = HostClock::get().now_ns() - self.begun_ns;
        let process = Usage::of_process().since(&self.process);
        // The kernel counts the machine's time in ticks of up to 10 ms: too coarse for a short phase.
        let machine = self.machine.zip(CpuTimes::read()).filter(|_| elapsed_ns >= MACHINE_SPAN_NS_MIN);
        let busy = machine.map(|(before, after)| after.since(&before).busy_ns() as f64 / elapsed_ns as f64);
        let ours = process.cpu_ns() as f64 / elapsed_ns.max(1) as f64;
        let moved = match (self.device, traffic(plan)) {
            (Some(before), Some(after)) => Some(after.since(&before)),
            _ => None,
        };
        Observations {
            machine_cpus_busy: busy,
            other_cpus_busy: busy.map(|busy| (busy - ours).max(0.0)),
            cached_before_fraction: self.cached_before_fraction,
            unwritten_fraction: self.unwritten_fraction,
            device_read_bytes: moved.map(|moved| moved.read_bytes),
            device_written_bytes: moved.map(|moved| moved.written_bytes),
            context_switches: process.voluntary_switches + process.involuntary_switches,
        }
    }
}

/// Mean of a fraction over the stored targets, weighted by their sizes.
fn over_range(plan: &PhasePlan, fraction: fn(&TargetPlan) -> Option<f64>) -> Option<f64> {
    let mut weighted = 0.0;
    let mut bytes = 0;
    for target in plan.targets.iter().filter(is_stored) {
        weighted += fraction(target)? * target.size_bytes as f64;
        bytes += target.size_bytes;
    }
    (bytes > 0).then(|| weighted / bytes as f64)
}

fn cached_fraction(target: &TargetPlan) -> Option<f64> {
    host::page_cache::resident_fraction(Path::new(&target.path), target.offset_bytes, target.size_bytes)
}

fn unwritten_fraction(target: &TargetPlan) -> Option<f64> {
    if target.kind != TargetKind::File {
        return None;
    }
    let range = target.offset_bytes..target.offset_bytes + target.size_bytes;
    let extents = host::extents::extents(Path::new(&target.path), range).ok()?;
    Some((extents.unwritten_bytes + extents.hole_bytes) as f64 / target.size_bytes.max(1) as f64)
}

/// What the devices under the targets have moved so far; each device once.
fn traffic(plan: &PhasePlan) -> Option<host::traffic::Traffic> {
    let mut devices = Vec::new();
    for target in plan.targets.iter().filter(is_stored) {
        let device = host::traffic::device_of(Path::new(&target.path))?;
        if !devices.contains(&device) {
            devices.push(device);
        }
    }
    if devices.is_empty() {
        return None;
    }
    devices.into_iter().map(host::traffic::Traffic::read).sum()
}
