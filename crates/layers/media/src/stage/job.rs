//! The job of one phase: from its plan to drivers and sources of its workers.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use crate::plan::MediaPlan;
use driver::{Arena, PageSize};
use gpu::WorkerNotes;
use runner::{Job, Opener, WorkerSetup};
use workload::spec::Operation;

use super::ledgers::Check;
use crate::zoned::ZoneSet;
use crate::{DRIVERS, MediaClass, MediaSource, OpenRequest, Verifier};
use layer::memory::{Attached, WorkerMemory};

/// Parts of a job besides its plan.
#[derive(Default)]
pub struct JobSetup {
    /// Where blocks are verified.
    pub check: Option<Check>,
    /// It visits only what phases wrote.
    pub is_read_back: bool,
    /// Where it keeps to zones.
    pub zones: Option<Arc<ZoneSet>>,
    /// Notes of its workers about their devices.
    pub gpu_notes: WorkerNotes,
}

/// The runner's job for a plan.
pub fn job(plan: &MediaPlan, setup: JobSetup, interrupt: Arc<AtomicBool>) -> Job {
    let JobSetup { check, is_read_back, zones, gpu_notes } = setup;
    let (shared, images) = (Arc::new(plan.clone()), Arc::default());
    let written = check.as_ref().filter(|_| is_read_back).map(|check| check.ledger.written_blocks());
    let open = move |worker: u32| {
        let plan = Arc::clone(&shared);
        let needs = plan.worker_needs(worker);
        let pages = if plan.huge_pages { PageSize::Huge } else { needs.pages() };
        let arena = Arc::new(Arena::new(needs.depth, plan.block_size_bytes_max as usize, pages)?);
        let verifier = match &check {
            Some(check) => {
                let verifier = Verifier::new(&plan, Arc::clone(&check.ledger), check.accepts_foreign)?;
                Some(verifier.reading_back(is_read_back))
            }
            None => None,
        };
        let memory = WorkerMemory::take(&needs, &arena, &gpu_notes)?;
        let request = OpenRequest {
            targets: plan.targets.clone(),
            writes: plan.writes(),
            depth: plan.load.depth,
            options: plan.options.clone(),
            images: Arc::clone(&images),
            arena: Arc::clone(&arena),
            device: memory.request.clone(),
        };
        let opened = (driver::find(DRIVERS, &plan.engine)?.open)(&request)?;
        let Attached { driver, device, notes } = memory.attach(&needs, opened, &arena)?;
        let source =
            MediaSource::new(&plan, worker, arena, verifier, zones.as_deref())?.on_device(&plan, device);
        Ok(WorkerSetup { driver, source, notes, parts: Vec::new() })
    };
    Job {
        expected_operations: written.or_else(|| crate::operations_of(plan)),
        finishes: plan.end_fsync,
        ..Job::new(&plan.name, &plan.load, classes(plan), Opener::new(open), interrupt)
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
