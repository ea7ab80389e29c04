//! One phase of the media layer: from its plan to a job for the runner, and what is seen around it.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use driver::{Arena, PageSize};
use host::block::DeviceNumber;
use host::traffic::{self, Traffic};
use media::zoned::ZoneSet;
use media::{DRIVERS, MediaClass, MediaOperation, MediaSource, OpenRequest, Verifier};
use report::record::{DeviceActivity, Observations};
use runner::{Job, Outcome, Station};
use workload::plan::MediaPlan;
use workload::spec::Operation;

use crate::ledgers::Check;
use crate::target_watch::{Looked, PhaseWatch};
use crate::watch::MachineWatch;

/// The runner's job for a plan; `check` where blocks are verified, `zones` where it keeps to zones. A read-back visits only what phases wrote.
pub(crate) fn job(
    plan: &MediaPlan,
    check: Option<Check>,
    is_read_back: bool,
    zones: Option<Arc<ZoneSet>>,
    interrupt: Arc<AtomicBool>,
) -> Job<MediaOperation, MediaSource> {
    let (shared, images) = (Arc::new(plan.clone()), Arc::default());
    let written = check.as_ref().filter(|_| is_read_back).map(|check| check.ledger.written_blocks());
    let open = move |worker: u32| {
        let plan = Arc::clone(&shared);
        let pages = if plan.huge_pages { PageSize::Huge } else { PageSize::Base };
        let arena = Arc::new(Arena::new(plan.load.depth, plan.block_size_bytes_max as usize, pages)?);
        let verifier = match &check {
            Some(check) => {
                let verifier = Verifier::new(&plan, Arc::clone(&check.ledger), check.accepts_foreign)?;
                Some(verifier.reading_back(is_read_back))
            }
            None => None,
        };
        let request = OpenRequest {
            targets: plan.targets.clone(),
            writes: plan.writes(),
            depth: plan.load.depth,
            options: plan.options.clone(),
            images: Arc::clone(&images),
            arena: Arc::clone(&arena),
        };
        let opened = (driver::find(DRIVERS, &plan.engine)?.open)(&request)?;
        let source = MediaSource::new(&plan, worker, arena, verifier, zones.as_deref())?;
        Ok(Station { driver: opened.driver, source, notes: opened.notes, parts: Vec::new() })
    };
    Job {
        name: plan.name.clone(),
        load: plan.load.clone(),
        classes: classes(plan),
        expected_operations: written.or_else(|| media::operations_of(plan)),
        finishes: plan.end_fsync,
        grace_ns: runner::GRACE_NS,
        open: Arc::new(open),
        interrupt,
    }
}

/// Classes that the plan's operations can be of.
fn classes(plan: &MediaPlan) -> Vec<usize> {
    let replays_syncs = plan.replay.as_ref().is_some_and(|replay| {
        replay.steps.iter().any(|step| step.class == workload::replay::ReplayClass::Sync)
    });
    let syncs = plan.fsync_every.is_some() || plan.end_fsync || replays_syncs;
    let used = [
        (plan.mix.read_percent > 0 || plan.verify_backlog.is_some(), MediaClass::Read),
        (plan.mix.write_percent > 0, MediaClass::Write),
        (plan.mix.discard_percent > 0, MediaClass::Discard),
        (syncs, MediaClass::Sync),
        (plan.operation == Operation::Nop, MediaClass::Nop),
        (plan.zoned.is_some() && plan.mix.write_percent > 0, MediaClass::Reset),
        (plan.zoned.is_some() && plan.mix.write_percent > 0, MediaClass::Finish),
    ];
    used.into_iter().filter(|(used, _)| *used).map(|(_, class)| class as usize).collect()
}

/// Watches the machine around the phases of a stage.
pub(crate) struct Watch {
    phases: Vec<PhaseWatch>,
    machine: MachineWatch,
}

impl Watch {
    /// Begins just before the stage.
    pub(crate) fn begin(plans: &[&MediaPlan]) -> Self {
        // Looking at large files takes time of its own, so it comes before the times.
        let mut looked = Looked::default();
        let phases = plans.iter().map(|plan| PhaseWatch::begin(plan, &mut looked)).collect();
        Self { phases, machine: MachineWatch::begin() }
    }

    /// Ends just after it; what was seen around each phase, in their order. Figures of the machine and the process are
    /// those of the whole stage.
    pub(crate) fn end(self, outcomes: &[Outcome]) -> Vec<Observations> {
        let common = self.machine.end(outcomes, 0);
        self.phases.into_iter().map(|phase| phase.end(&common)).collect()
    }
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
