//! From specs to phases, by the layer of each, and refusals before anything is touched.

use std::collections::BTreeSet;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use driver::Error;
use layer::{Hosts, Journal, Phase, Planning, RunContext, Runs, Seed};
use workload::options;
use workload::plan::PhasePlan;
use workload::spec::{LadderDimension, Spec};

use crate::manifest::Manifest;
use crate::output;
use crate::{rotation, subsets};

/// A phase that is ready to run, with its place in the run.
#[derive(Clone, Debug)]
pub(crate) struct Planned {
    pub(crate) phase: Phase,
    /// Phases of the same stage run at the same time.
    pub(crate) stage: usize,
    /// The spec that it carries out.
    pub(crate) request: usize,
    /// Its number among all phases that were planned.
    pub(crate) number: usize,
}

impl Planned {
    /// The first stage of the first request, for the caller to place.
    pub(crate) fn of(phase: Phase) -> Self {
        Self { phase, stage: 0, request: 0, number: 0 }
    }
}

impl Deref for Planned {
    type Target = Phase;

    fn deref(&self) -> &Phase {
        &self.phase
    }
}

/// The phases of a run.
pub(crate) struct Programme {
    pub(crate) phases: Vec<Planned>,
    /// Dimension that a ladder climbs; its phases are all phases of the run.
    pub(crate) ladder: Option<LadderDimension>,
    /// Spec that climbs to saturation from its only phase.
    pub(crate) saturate: Option<Box<Spec>>,
    /// Files that the run creates stay.
    pub(crate) keep: bool,
}

/// The layers of a run, and the list of what it makes.
pub(crate) struct Layers {
    pub(crate) runs: Runs,
    pub(crate) manifest: Arc<Manifest>,
}

impl Layers {
    /// No layer so far. With `keep` what the run makes stays.
    pub(crate) fn new(keep: bool) -> Self {
        Self::until(keep, &Arc::default(), None)
    }

    /// The same, whose waits end when `interrupt` is raised, and which know the other hosts where there are any.
    fn until(keep: bool, interrupt: &Arc<AtomicBool>, hosts: Option<Hosts>) -> Self {
        let manifest = Arc::<Manifest>::default();
        let context = RunContext { interrupt: Arc::clone(interrupt), hosts, ..context(&manifest, keep) };
        Self { runs: Runs::new(context), manifest }
    }
}

/// Surroundings of a run that notes in this manifest what it makes.
pub(crate) fn context(manifest: &Arc<Manifest>, keep: bool) -> RunContext {
    let journal: Arc<dyn Journal> = Arc::<Manifest>::clone(manifest);
    let interrupt = Arc::new(AtomicBool::new(false));
    let tell = |line: std::fmt::Arguments<'_>| output::tell(line);
    RunContext { journal, interrupt, keep, tell, hosts: None }
}

/// Plans everything that the specs ask for.
pub(crate) fn plan(specs: &[Spec], seed: u64) -> Result<(Programme, Layers), Error> {
    plan_until(specs, seed, &Arc::default(), None)
}

/// The same; waits of the layers end when `interrupt` is raised, and `hosts` carry the run out together.
pub(crate) fn plan_until(
    specs: &[Spec],
    seed: u64,
    interrupt: &Arc<AtomicBool>,
    hosts: Option<Hosts>,
) -> Result<(Programme, Layers), Error> {
    let mut programme = outline(specs)?;
    specs.iter().try_for_each(check_hosts)?;
    let mut specs = specs.to_vec();
    let mut layers = Layers::until(programme.keep, interrupt, hosts);
    find(&mut specs, &mut layers.runs)?;
    let mut planner = Planner { seed, runs: &mut layers.runs, phases: Vec::new() };
    let mut request = 0;
    for stage in specs.chunk_by(|_, next| next.concurrent) {
        match stage {
            [spec] => {
                for phase in planner.phases_of(spec)? {
                    let stage = planner.next_stage();
                    planner.phases.push(Planned { phase, stage, request, number: 0 });
                }
            }
            _ => planner.stage(stage, request)?,
        }
        request += stage.len();
    }
    rotation::rotate(&specs, &mut planner.phases, planner.runs)?;
    subsets::check(&planner.phases, planner.runs)?;
    planner.check()?;
    programme.phases = planner.phases;
    programme.phases.iter_mut().enumerate().for_each(|(number, planned)| planned.number = number);
    Ok((programme, layers))
}

/// The programme without its phases.
///
/// # Errors
/// Specs that do not go together.
pub(crate) fn outline(specs: &[Spec]) -> Result<Programme, Error> {
    let mut programme = Programme { phases: Vec::new(), ladder: None, saturate: None, keep: false };
    check_concurrent(specs)?;
    specs.iter().try_for_each(check_way)?;
    for spec in specs {
        layer::find(spec.layer.name)?.check(spec)?;
        if (spec.ladder.is_some() || spec.saturate) && !(specs.len() == 1 && (spec.layer.is_one_phase)(spec))
        {
            return Err(Error::usage("plan", "a ladder requires one operation in one phase")
                .remedy("give one --op or one pair of --message-sizes, and run other phases separately"));
        }
        if spec.ladder.is_some() && spec.saturate {
            return Err(Error::usage("plan", "--saturate chooses its own steps").remedy("leave out --ladder"));
        }
        programme.ladder = spec.ladder.as_ref().map(|ladder| ladder.dimension);
        programme.keep |= spec.keep;
        programme.saturate = spec.saturate.then(|| Box::new(spec.clone()));
    }
    Ok(programme)
}

/// Has each layer look at all of its specs, and give those without a target one.
fn find(specs: &mut [Spec], runs: &mut Runs) -> Result<(), Error> {
    let names: BTreeSet<&str> = specs.iter().map(|spec| spec.layer.name).collect();
    for name in names {
        let mut own: Vec<&mut Spec> = specs.iter_mut().filter(|spec| spec.layer.name == name).collect();
        runs.of(name)?.find(&mut own)?;
    }
    Ok(())
}

/// State of the planning: phases that are planned so far.
struct Planner<'a> {
    seed: u64,
    runs: &'a mut Runs,
    phases: Vec<Planned>,
}

impl Planner<'_> {
    /// Number of the stage after those so far.
    fn next_stage(&self) -> usize {
        self.phases.last().map_or(0, |planned| planned.stage + 1)
    }

    /// Plans the phases of a spec, without their places.
    fn phases_of(&mut self, spec: &Spec) -> Result<Vec<Phase>, Error> {
        let before: Vec<&PhasePlan> = self.phases.iter().map(|planned| &planned.plan).collect();
        let planning = Planning { before: &before, number: before.len(), seed: Seed::OfRun(self.seed) };
        let phases = self.runs.of(spec.layer.name)?.phases(spec, &planning)?;
        // Masters have processors of their own.
        let here = phases.iter().filter(|phase| !phase.plan.is_driven_elsewhere());
        here.map(|phase| &phase.plan).try_for_each(|plan| runner::check_placement(plan.load()))?;
        Ok(phases)
    }

    /// Plans specs that run at the same time: what stores for them comes before all of them; what is written for verification is read back after all
    /// of them, at the same time too.
    fn stage(&mut self, specs: &[Spec], request: usize) -> Result<(), Error> {
        for (number, spec) in specs.iter().enumerate() {
            let fills = self.phases_of(spec)?.into_iter().filter(|phase| phase.plan.is_fill());
            for phase in fills.collect::<Vec<_>>() {
                let stage = self.next_stage();
                self.phases.push(Planned { phase, stage, request: request + number, number: 0 });
            }
        }
        let (first, stage) = (self.phases.len(), self.next_stage());
        for (number, spec) in specs.iter().enumerate() {
            let mut phases = self.phases_of(spec)?;
            phases.retain(|phase| !phase.is_read_back);
            let (Some(phase), true) = (phases.pop(), phases.is_empty()) else {
                return Err(Error::usage("plan", "a concurrent phase has one operation"));
            };
            self.phases.push(Planned { phase, stage, request: request + number, number: 0 });
        }
        check_drivers(&self.phases[first..])?;
        for (name, run) in self.runs.all() {
            run.check_stage(&plans_of(name, &self.phases[first..]))?;
        }
        for (number, spec) in specs.iter().enumerate() {
            let seed = workload::random::derive_seed(self.seed, &[self.phases.len() as u64]);
            let written = &self.phases[first + number].phase;
            let back = self.runs.of(spec.layer.name)?.read_back(spec, written, seed)?;
            self.phases.extend(back.map(|phase| Planned {
                phase,
                stage: stage + 1,
                request: request + number,
                number: 0,
            }));
        }
        Ok(())
    }

    /// Checks all phases of each layer against each other.
    fn check(&mut self) -> Result<(), Error> {
        for (name, run) in self.runs.all() {
            let own = self.phases.iter().filter(|planned| planned.plan.layer() == name);
            let plans: Vec<_> = own.map(|planned| (planned.stage, &planned.phase.plan)).collect();
            run.check_run(&plans)?;
        }
        Ok(())
    }
}

/// The plans of a layer among phases.
pub(crate) fn plans_of<'a>(name: &str, phases: &'a [Planned]) -> Vec<&'a PhasePlan> {
    phases.iter().map(|planned| &planned.phase.plan).filter(|plan| plan.layer() == name).collect()
}

/// Refuses options of the way to hosts where none are named: those that a launcher has started have a way of their own.
pub(crate) fn check_way(spec: &Spec) -> Result<(), Error> {
    let of_hosts = |name: &str| !options::has_own(spec.layer, name);
    refuse_without_hosts(
        spec,
        &[
            ("--fingerprint", !spec.fingerprints.is_empty()),
            ("--token-file", spec.token_file.is_some() && of_hosts("token-file")),
            ("--tls", spec.tls && of_hosts("tls")),
        ],
    )
}

/// Refuses options of hosts where there are none.
pub(crate) fn check_hosts(spec: &Spec) -> Result<(), Error> {
    refuse_without_hosts(
        spec,
        &[
            ("--hosts-used", spec.hosts_used.is_some()),
            ("--host-options", !spec.host_options.is_empty()),
            ("--host-targets", spec.host_targets.is_some()),
            ("--rotate-hosts", spec.rotate_hosts.is_some()),
            ("--on-host-failure", spec.on_host_failure.is_some()),
        ],
    )
}

fn refuse_without_hosts(spec: &Spec, given: &[(&str, bool)]) -> Result<(), Error> {
    let has_hosts = !spec.hosts.is_empty() || spec.place.is_some();
    match given.iter().find(|(_, is_given)| *is_given && !has_hosts) {
        None => Ok(()),
        Some((option, _)) => {
            Err(Error::usage("plan", format!("{option} requires hosts, but no hosts are given"))
                .remedy("give --hosts too, or leave it out"))
        }
    }
}

/// Checks the rules for phases that run at the same time.
fn check_concurrent(specs: &[Spec]) -> Result<(), Error> {
    if specs.first().is_some_and(|spec| spec.concurrent) {
        return Err(Error::usage("plan", "--concurrent: no phase before it to run together with")
            .remedy("give it to a later phase of a job file (concurrent = true)"));
    }
    for stage in specs.chunk_by(|_, next| next.concurrent) {
        let is_alone = stage.len() == 1;
        for (number, spec) in stage.iter().enumerate() {
            if spec.end_others && is_alone {
                return Err(Error::usage("plan", "--end-others ends concurrent phases, but none exist")
                    .remedy("give concurrent = true to the phase after it in a job file, or leave it out"));
            }
            let phase = || spec.name.clone().unwrap_or_else(|| format!("number {} of its stage", number + 1));
            if !is_alone && !(spec.layer.is_one_phase)(spec) {
                return Err(Error::usage("plan", format!("a concurrent phase has {}", spec.layer.one_phase))
                    .with("phase", phase())
                    .remedy("give one op, and put the others into separate phases"));
            }
        }
    }
    Ok(())
}

/// Refuses phases that this process drives at the same time as others that it does not: they could not begin together.
fn check_drivers(stage: &[Planned]) -> Result<(), Error> {
    let is_elsewhere = |planned: &&Planned| planned.phase.plan.is_driven_elsewhere();
    let Some(elsewhere) = stage.iter().find(is_elsewhere) else { return Ok(()) };
    match stage.iter().find(|planned| !is_elsewhere(planned)) {
        None => Ok(()),
        Some(here) => Err(Error::usage(
            "plan",
            "concurrent phases are either all driven by this process or all by masters",
        )
        .with("here", here.phase.plan.name())
        .with("masters", elsewhere.phase.plan.name())
        .remedy("give all of them --master or --clients, or none of them; or leave out concurrent")),
    }
}
