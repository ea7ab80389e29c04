//! Media as a layer: from a spec to phases, and the state of a run.

use std::path::PathBuf;
use std::sync::Arc;

use crate::plan::MediaPlan;
use driver::{Error, ErrorKind};
use layer::{
    DriverEntry, LayerRun, Leftovers, MadeFile, Measured, Part, Phase, Planning, RunContext, StageContext,
    settle_host_targets,
};
use units::path_of;
use workload::layers::LayerDef;
use workload::plan::{HostTargets, PhasePlan, expand_ladder};
use workload::spec::{Operation, Spec};
use workload::target::TargetKind;

use crate::layout::{self, Manifest};
use crate::leftovers::{Files, JOURNAL_KEY};
use crate::planning::{
    self, check_shared_ranges, check_together, keeps_part, plan_phase, plan_read_back, reads_back,
};
use crate::spec;
use crate::{DRIVERS, MediaPhase, MediaRun};

/// Files, devices, memory.
#[derive(Debug)]
pub struct Media;

impl Measured for Media {
    fn definition(&self) -> &'static LayerDef {
        crate::LAYER.definition()
    }

    fn drivers(&self) -> Vec<DriverEntry> {
        DRIVERS.iter().map(DriverEntry::of).collect()
    }

    fn check(&self, spec: &Spec) -> Result<(), Error> {
        if spec::of(spec).operations.is_empty() {
            return Err(Error::usage("plan", "no operation").remedy(
                "give --op: read, write, randread, randwrite, readwrite, randrw, discard, randdiscard or nop",
            ));
        }
        Ok(())
    }

    fn paths(&self, spec: &Spec) -> Vec<PathBuf> {
        spec.targets.iter().map(|target| path_of(target).into_owned()).collect()
    }

    fn stack_rows(&self, request: &layer::StackRequest<'_>) -> Vec<layer::StackRowSpec> {
        crate::stack::rows(request)
    }

    fn leftovers(&self) -> Vec<&'static dyn Leftovers> {
        vec![&Files]
    }

    fn options_title(&self) -> String {
        "Options of a load (`strata media`, `strata run`)".to_owned()
    }

    fn is_available(&self, driver: &str) -> bool {
        driver != "io_uring" || crate::io_uring_is_available()
    }

    fn is_image(&self, target: &str) -> bool {
        crate::rbd::is_image(target)
    }

    fn device_bytes(&self, target: &str) -> Option<Result<u64, Error>> {
        Some(crate::probe::probe(target, false).map(|facts| facts.size_bytes))
    }

    fn commands(&self) -> Vec<layer::Command> {
        vec![crate::drive::command()]
    }

    fn begin(&self, context: &RunContext) -> Box<dyn LayerRun> {
        Box::new(RunOfMedia { context: context.clone(), state: None })
    }
}

/// Media during a run. Its state begins with the first stage: by then the run has its number.
struct RunOfMedia {
    context: RunContext,
    state: Option<MediaRun>,
}

/// The files of a run in the list of all that it makes.
struct FileJournal(Arc<dyn layer::Journal>);

impl layout::Journal for FileJournal {
    fn note(&self, made: &[MadeFile]) -> Result<(), Error> {
        let made = serde_json::to_value(made).map_err(|error| {
            Error::new(ErrorKind::Run, "manifest", format!("the files of this run cannot be listed: {error}"))
        })?;
        self.0.note(JOURNAL_KEY, made)
    }
}

impl RunOfMedia {
    fn state(&mut self) -> &mut MediaRun {
        let RunContext { journal, keep, .. } = &self.context;
        self.state.get_or_insert_with(|| {
            let run = journal.run();
            let mut manifest = Manifest::new(format!("{run:016x}"), *keep);
            manifest.keep_in(Arc::new(FileJournal(Arc::clone(journal))));
            MediaRun::new(run, manifest)
        })
    }
}

/// The plans of media among plans of this layer.
fn of_media<'a>(plans: &[&'a PhasePlan]) -> Vec<&'a MediaPlan> {
    plans.iter().filter_map(|plan| plan.of()).collect()
}

/// Targets that lie somewhere on this machine.
fn paths_of(spec: &Spec) -> Vec<PathBuf> {
    let targets = spec
        .targets
        .iter()
        .filter(|target| !matches!(target.as_str(), "null:" | "mem:") && !crate::rbd::is_image(target));
    targets.map(|target| path_of(target).into_owned()).collect()
}

fn phase(spec: &Spec, (plan, capabilities): planning::Phase) -> Phase {
    Phase { destroy_data: spec.destroy_data, ..Phase::new(PhasePlan::new(plan), &capabilities) }
}

fn read_back(spec: &Spec, written: &MediaPlan, seed: u64) -> Result<Phase, Error> {
    Ok(Phase { is_read_back: true, ..phase(spec, plan_read_back(spec, written, seed)?) })
}

impl LayerRun for RunOfMedia {
    /// The operations of each step of a ladder, and the reading back of what is written for verification.
    fn phases(&mut self, spec: &Spec, planning: &Planning<'_>) -> Result<Vec<Phase>, Error> {
        let mut phases = Vec::new();
        let mut spec = spec.clone();
        let paths = paths_of(&spec);
        settle_host_targets(&mut spec, &paths);
        for step in expand_ladder(&spec) {
            let operations = &spec::of(&step).operations;
            for (number, operation) in operations.iter().enumerate() {
                let planned = plan_phase(&step, *operation, planning.seed_of(phases.len()))?;
                let written = reads_back(&step, &planned.0).then(|| planned.0.clone());
                phases.push(phase(&step, planned));
                let next = operations.get(number + 1);
                let reads_next = matches!(next, Some(Operation::Read | Operation::RandRead));
                if let Some(written) = written.filter(|_| !reads_next) {
                    phases.push(read_back(&step, &written, planning.seed_of(phases.len()))?);
                }
            }
        }
        Ok(phases)
    }

    fn read_back(&mut self, spec: &Spec, written: &Phase, seed: u64) -> Result<Option<Phase>, Error> {
        let written = written.plan.of::<MediaPlan>().filter(|plan| reads_back(spec, plan));
        let mut spec = spec.clone();
        let paths = paths_of(&spec);
        settle_host_targets(&mut spec, &paths);
        written.map(|plan| read_back(&spec, plan, seed)).transpose()
    }

    fn check_stage(&self, plans: &[&PhasePlan]) -> Result<(), Error> {
        check_shared_ranges(&of_media(plans))
    }

    fn check_run(&self, plans: &[(usize, &PhasePlan)]) -> Result<(), Error> {
        let plans = plans.iter().filter_map(|(stage, plan)| Some((*stage, plan.of()?)));
        check_together(&plans.collect::<Vec<_>>())
    }

    fn keeps_parts(&self, plan: &PhasePlan, all: &[&PhasePlan]) -> Option<String> {
        let is_written = all.iter().filter_map(|plan| plan.of()).any(MediaPlan::writes);
        keeps_part(plan.of()?, is_written).map(str::to_owned)
    }

    fn keeps_hosts(&self, plan: &PhasePlan, all: &[&PhasePlan]) -> Option<String> {
        let is_written = all.iter().filter_map(|plan| plan.of()).any(MediaPlan::writes);
        // A host that has all of a target to itself has no part of it that others know of.
        let is_own = plan.load().place.is_some_and(|place| place.targets == HostTargets::Own);
        let plan: &MediaPlan = plan.of()?;
        let is_memory = plan.targets.iter().all(|target| target.kind == TargetKind::Memory);
        keeps_part(plan, is_written).filter(|_| is_written && !(is_own && is_memory)).map(str::to_owned)
    }

    fn part<'a>(
        &'a mut self,
        phases: Vec<&'a Phase>,
        _done: &[&PhasePlan],
        context: &StageContext<'_>,
    ) -> Result<Box<dyn Part + 'a>, Error> {
        let phase = |phase: &&'a Phase| {
            let Phase { plan, destroy_data, is_read_back, .. } = *phase;
            Some(MediaPhase { plan: plan.of()?, destroy_data: *destroy_data, is_read_back: *is_read_back })
        };
        let phases: Vec<MediaPhase<'a>> = phases.iter().filter_map(phase).collect();
        self.state().begin_stage(&phases, context)
    }

    fn end(&mut self) -> Result<(), Error> {
        match &mut self.state {
            Some(state) if !self.context.keep => state.manifest.remove_all(),
            _ => Ok(()),
        }
    }
}
