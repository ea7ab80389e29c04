//! The phases of media in a stage: files are made, caches and zones prepared, jobs built, devices and files watched.

mod around;
mod job;
mod ledgers;
mod observed;

use std::sync::Arc;

use crate::plan::MediaPlan;
use driver::Error;
use gpu::WorkerNotes;
use layer::observations::Observations;
use layer::{Part, Seen, StageContext, Tell};
use runner::{Job, Outcome};

use workload::target::TargetKind;

use crate::layout::{self, Manifest, Progress};
use crate::zoned::ZoneTables;
use crate::{cache, content, names};
use around::Schedulers;
use ledgers::{Check, Ledgers};
use observed::{Looked, PhaseWatch};

pub use job::{JobSetup, job};

/// A phase of a stage.
#[derive(Clone, Copy, Debug)]
pub struct MediaPhase<'a> {
    /// Its plan.
    pub plan: &'a MediaPlan,
    /// The user allows writes to what carries data.
    pub destroy_data: bool,
    /// It reads back what another phase wrote, and visits that alone.
    pub is_read_back: bool,
}

/// State of the media layer from the first phase of a run to its end: files that it made, blocks that it verifies, tables of zones.
pub struct MediaRun {
    /// Files that the run made.
    pub manifest: Manifest,
    ledgers: Ledgers,
    zones: ZoneTables,
}

impl MediaRun {
    /// Nothing is made yet. Verified blocks carry the number `run`, unless a plan names another.
    #[must_use]
    pub fn new(run: u64, manifest: Manifest) -> Self {
        Self { manifest, ledgers: Ledgers::new(run), zones: ZoneTables::default() }
    }

    /// Gets the phases of a stage ready: their files are made, the page cache and zones are prepared.
    ///
    /// # Errors
    /// When a phase cannot begin.
    pub fn begin_stage<'a>(
        &'a mut self,
        phases: &[MediaPhase<'a>],
        context: &StageContext<'_>,
    ) -> Result<Box<dyn Part + 'a>, Error> {
        let plans: Vec<&MediaPlan> = phases.iter().map(|phase| phase.plan).collect();
        let checks = self.ledgers.begin_stage(&plans)?;
        for (phase, check) in phases.iter().zip(&checks) {
            self.lay_out(phase, check.as_ref(), context)?;
        }
        for (number, plan) in plans.iter().enumerate() {
            // Once, however many phases share it.
            let is_like = |other: &&MediaPlan| (other.cache, &other.targets) == (plan.cache, &plan.targets);
            if !plans[..number].iter().any(is_like) {
                cache::prepare(&plan.targets, plan.cache, &context.interrupt)?;
            }
        }
        let zones = self.zones.begin_stage(&plans)?;
        let parts = phases.iter().zip(checks).zip(zones);
        let gpu_notes: Vec<WorkerNotes> = plans.iter().map(|plan| plan.gpu_notes()).collect();
        let jobs = parts.zip(&gpu_notes).map(|(((phase, check), zones), notes)| {
            let gpu_notes = notes.clone();
            let setup = JobSetup { check, is_read_back: phase.is_read_back, zones, gpu_notes };
            job(phase.plan, setup, Arc::clone(&context.interrupt))
        });
        let jobs = jobs.collect();
        Ok(Box::new(MediaPart {
            jobs,
            plans,
            gpu_notes,
            manifest: &mut self.manifest,
            schedulers: None,
            watches: Vec::new(),
            tell: context.tell,
        }))
    }

    /// Makes the files of a phase ([`crate::spec::Layout`]).
    fn lay_out(
        &mut self,
        phase: &MediaPhase<'_>,
        check: Option<&Check>,
        context: &StageContext<'_>,
    ) -> Result<(), Error> {
        let plan = phase.plan;
        if plan.load.is_guest() {
            return look_for(plan);
        }
        if let Some(needs) = names::needs(&plan.engine) {
            return names::prepare(&mut self.manifest, &plan.targets, needs);
        }
        let fill = content::layout_fill(plan, self.ledgers.run_of(plan))?;
        let name = format!("laying out {}", plan.targets.first().map_or("", |target| target.path.as_str()));
        let progress = |progress: Progress| {
            (context.progress)(&name, progress.written_bytes as f64 / progress.total_bytes.max(1) as f64);
        };
        let request = layout::Request {
            needs_data: plan.reads() || plan.operation.is_random(),
            layout: plan.layout,
            refill: false,
            destroy_data: phase.destroy_data,
            writes: plan.writes(),
            direct: true,
            grain_bytes: plan.block_size_bytes_max.max(plan.verify_interval_bytes.unwrap_or(1)),
            fill: &*fill,
            stop: &context.interrupt,
            progress: &progress,
        };
        let written = layout::prepare(&mut self.manifest, &plan.targets, &request)?;
        if let Some(check) = check.filter(|_| written >= plan.range_bytes()) {
            self.ledgers.laid_out(&check.ledger);
        }
        Ok(())
    }
}

/// Looks whether the files of a phase are there that another host has made.
fn look_for(plan: &MediaPlan) -> Result<(), Error> {
    let makes_files = names::needs(&plan.engine).is_none();
    let files = plan.targets.iter().filter(|target| target.kind == TargetKind::File && makes_files);
    files.into_iter().try_for_each(|target| {
        layout::check_existing(target).map_err(|error| {
            error.remedy("check that the hosts see the same files, or give --host-targets own")
        })
    })
}

/// Phases of media that are ready to run.
struct MediaPart<'a> {
    plans: Vec<&'a MediaPlan>,
    /// Notes of the workers of each about their devices.
    gpu_notes: Vec<WorkerNotes>,
    jobs: Vec<Job>,
    manifest: &'a mut Manifest,
    schedulers: Option<Schedulers>,
    watches: Vec<PhaseWatch>,
    tell: Tell,
}

impl<'a> MediaPart<'a> {
    /// Phases whose targets and devices no other host looks after.
    fn own(&self) -> Vec<&'a MediaPlan> {
        self.plans.iter().copied().filter(|plan| !plan.load.is_guest()).collect()
    }
}

impl Part for MediaPart<'_> {
    fn jobs(&mut self) -> Vec<Job> {
        std::mem::take(&mut self.jobs)
    }

    fn begin(&mut self) -> Result<(), Error> {
        let own = self.own();
        self.schedulers = Some(Schedulers::set(&own, self.tell)?);
        around::run(&own, true)?;
        // Looking at large files takes time of its own, so it comes before the times.
        let mut looked = Looked::default();
        let plans = self.plans.iter().zip(&self.gpu_notes);
        self.watches = plans.map(|(plan, notes)| PhaseWatch::begin(plan, notes, &mut looked)).collect();
        Ok(())
    }

    fn stop(&mut self) -> u64 {
        for plan in self.own() {
            if let Some(needs) = names::needs(&plan.engine) {
                names::adopt(self.manifest, &plan.targets, needs);
            }
        }
        self.schedulers = None;
        0
    }

    fn end(self: Box<Self>, outcomes: Vec<Outcome>, machine: &Observations) -> Vec<Seen> {
        let own = self.own();
        let observations = self.watches.into_iter().map(|watch| watch.end(machine));
        let mut seen: Vec<Seen> = outcomes.into_iter().zip(observations).collect();
        if let (Err(error), Some((outcome, _))) = (around::run(&own, false), seen.first_mut()) {
            outcome.failure.get_or_insert(error.to_string());
        }
        seen
    }
}
