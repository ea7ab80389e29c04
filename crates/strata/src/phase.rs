//! One phase of the media layer: from its plan to a job for the runner, and what is seen around it.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use driver::{Arena, PageSize};
use host::block::DeviceNumber;
use host::traffic::{self, Traffic};
use media::{DRIVERS, MediaClass, MediaOperation, MediaSource, OpenRequest, Verifier};
use report::record::{DeviceActivity, Observations};
use runner::{Job, Outcome, Station};
use workload::plan::MediaPlan;
use workload::spec::Operation;
use workload::target::{TargetKind, TargetPlan};

use crate::ledgers::Check;
use crate::watch::MachineWatch;

/// The runner's job for a plan; `check` where blocks are verified.
pub(crate) fn job(
    plan: &MediaPlan,
    check: Option<Check>,
    interrupt: Arc<AtomicBool>,
) -> Job<MediaOperation, MediaSource> {
    let shared = Arc::new(plan.clone());
    let open = move |worker: u32| {
        let plan = Arc::clone(&shared);
        let pages = if plan.huge_pages { PageSize::Huge } else { PageSize::Base };
        let arena = Arc::new(Arena::new(plan.load.depth, plan.block_size_bytes_max as usize, pages)?);
        let verifier = match &check {
            Some(check) => Some(Verifier::new(&plan, Arc::clone(&check.ledger), check.accepts_foreign)?),
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
        Ok(Station { driver: opened.driver, source, notes: opened.notes, parts: Vec::new() })
    };
    Job {
        name: plan.name.clone(),
        load: plan.load.clone(),
        classes: classes(plan),
        expected_operations: expected_operations(plan),
        finishes: plan.end_fsync,
        grace_ns: runner::GRACE_NS,
        open: Arc::new(open),
        interrupt,
    }
}

/// Classes that the plan's operations can be of.
fn classes(plan: &MediaPlan) -> Vec<usize> {
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

fn expected_operations(plan: &MediaPlan) -> Option<u64> {
    let limit = &plan.load.limit;
    let is_one_pass = limit.time_ns.is_none() && limit.operations.is_none() && limit.bytes.is_none();
    is_one_pass.then(|| plan.range_bytes() / plan.align_bytes)
}

fn is_stored(target: &&TargetPlan) -> bool {
    matches!(target.kind, TargetKind::File | TargetKind::BlockDevice)
}

/// Watches the machine around the phases of a stage.
pub(crate) struct Watch {
    phases: Vec<PhaseWatch>,
    machine: MachineWatch,
}

/// What is seen of one phase's targets.
struct PhaseWatch {
    cached_before_fraction: Option<f64>,
    unwritten_fraction: Option<f64>,
    devices: Option<Vec<(DeviceNumber, Traffic)>>,
}

impl PhaseWatch {
    fn begin(plan: &MediaPlan, cached: &mut Looked, unwritten: &mut Looked) -> Self {
        let reads_cache = plan.reads() && !plan.options.direct;
        Self {
            cached_before_fraction: if reads_cache { cached.over_range(plan) } else { None },
            unwritten_fraction: if plan.reads() { unwritten.over_range(plan) } else { None },
            devices: devices(plan),
        }
    }

    /// What each device did since; none when that cannot be told of all of them.
    fn activity(&self) -> Option<Vec<DeviceActivity>> {
        self.devices.as_ref()?.iter().map(|(device, before)| activity(*device, before)).collect()
    }
}

impl Watch {
    /// Begins just before the stage.
    pub(crate) fn begin(plans: &[&MediaPlan]) -> Self {
        // Looking at large files takes time of its own, so it comes before the times.
        let (mut cached, mut unwritten) = (Looked::new(cached_fraction), Looked::new(unwritten_fraction));
        let phases = plans.iter().map(|plan| PhaseWatch::begin(plan, &mut cached, &mut unwritten)).collect();
        Self { phases, machine: MachineWatch::begin() }
    }

    /// Ends just after it; what was seen around each phase, in their order. Figures of the machine and the process are
    /// those of the whole stage.
    pub(crate) fn end(self, outcomes: &[Outcome]) -> Vec<Observations> {
        let common = self.machine.end(outcomes, 0);
        let see = |phase: PhaseWatch| {
            let activity = phase.activity();
            let moved = |part: fn(&DeviceActivity) -> u64| Some(activity.as_ref()?.iter().map(part).sum());
            Observations {
                cached_before_fraction: phase.cached_before_fraction,
                unwritten_fraction: phase.unwritten_fraction,
                device_read_bytes: moved(|device| device.read_bytes),
                device_written_bytes: moved(|device| device.written_bytes),
                devices: activity.unwrap_or_default(),
                ..common.clone()
            }
        };
        self.phases.into_iter().map(see).collect()
    }
}

/// A fraction of ranges; each range is looked at once, however many phases of a stage share it.
struct Looked {
    fraction: fn(&TargetPlan) -> Option<f64>,
    known: Vec<(TargetPlan, Option<f64>)>,
}

impl Looked {
    fn new(fraction: fn(&TargetPlan) -> Option<f64>) -> Self {
        Self { fraction, known: Vec::new() }
    }

    fn of(&mut self, target: &TargetPlan) -> Option<f64> {
        if let Some((_, fraction)) = self.known.iter().find(|(known, _)| known == target) {
            return *fraction;
        }
        let fraction = (self.fraction)(target);
        self.known.push((target.clone(), fraction));
        fraction
    }

    /// Mean over the stored targets, weighted by their sizes.
    fn over_range(&mut self, plan: &MediaPlan) -> Option<f64> {
        let mut weighted = 0.0;
        let mut bytes = 0;
        for target in plan.targets.iter().filter(is_stored) {
            weighted += self.of(target)? * target.size_bytes as f64;
            bytes += target.size_bytes;
        }
        (bytes > 0).then(|| weighted / bytes as f64)
    }
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

/// The devices under the targets, each once, with what they did so far; none where that cannot be told.
fn devices(plan: &MediaPlan) -> Option<Vec<(DeviceNumber, Traffic)>> {
    let mut devices: Vec<(DeviceNumber, Traffic)> = Vec::new();
    for target in plan.targets.iter().filter(is_stored) {
        let device = traffic::device_of(Path::new(&target.path))?;
        if !devices.iter().any(|(known, _)| *known == device) {
            devices.push((device, Traffic::read(device)?));
        }
    }
    (!devices.is_empty()).then_some(devices)
}

/// What a device did since an earlier reading; none when that cannot be told.
pub(crate) fn activity(device: DeviceNumber, before: &Traffic) -> Option<DeviceActivity> {
    let done = Traffic::read(device)?.since(before);
    Some(DeviceActivity {
        name: traffic::name_of(device)?,
        reads: done.reads,
        reads_merged: done.reads_merged,
        read_bytes: done.read_bytes,
        read_ns: done.read_ns,
        writes: done.writes,
        writes_merged: done.writes_merged,
        written_bytes: done.written_bytes,
        write_ns: done.write_ns,
        busy_ns: done.busy_ns,
        queue_ns: done.queue_ns,
    })
}
