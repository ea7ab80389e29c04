//! From specs to phases: probes the targets, chooses engines, resolves, and refuses before anything is touched.

use std::sync::Arc;

use driver::{Capabilities, Error};
use media::planning::{Phase, check_shared_ranges, plan_read_back, reads_back};
use workload::plan::{PhasePlan, expand_ladder, message_sizes};
use workload::random::derive_seed;
use workload::spec::{LadderDimension, Layer, Operation, Spec};

use crate::net::run::Access;
use crate::net::{Reaches, resolve as network};
use crate::objects::{self, Store, Stores};

/// A phase that is ready to run.
#[derive(Clone, Debug)]
pub(crate) struct Planned {
    pub(crate) plan: PhasePlan,
    /// Largest queue depth of its driver.
    pub(crate) depth_max: u32,
    /// The user allows writes to what carries data.
    pub(crate) destroy_data: bool,
    /// Phases of the same stage run at the same time.
    pub(crate) stage: usize,
    /// The spec that it carries out.
    pub(crate) request: usize,
    /// Whether it reads back what another phase of the same request wrote.
    pub(crate) is_read_back: bool,
    /// Secrets and endpoint state of a phase of the network layer, besides its plan.
    pub(crate) access: Option<Arc<Access>>,
    /// The store of a phase of the object layer.
    pub(crate) store: Option<Arc<Store>>,
    /// Data that it reads may be stored before it.
    pub(crate) fills: bool,
}

impl Planned {
    /// The first stage of the first request, for the caller to place.
    pub(crate) fn of(plan: PhasePlan, capabilities: &Capabilities) -> Self {
        Self {
            plan,
            depth_max: if capabilities.asynchronous { capabilities.depth_max } else { 1 },
            destroy_data: false,
            stage: 0,
            request: 0,
            is_read_back: false,
            access: None,
            store: None,
            fills: false,
        }
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
    /// The object stores of all phases.
    pub(crate) stores: Stores,
}

/// Plans everything that the specs ask for.
pub(crate) fn plan(specs: &[Spec], seed: u64) -> Result<Programme, Error> {
    let mut programme = Programme {
        phases: Vec::new(),
        ladder: None,
        saturate: None,
        keep: false,
        stores: Stores::default(),
    };
    check_concurrent(specs)?;
    for spec in specs {
        if spec.layer == Layer::MEDIA && spec.operations.is_empty() {
            return Err(Error::usage("plan", "no operation").remedy(
                "give --op: read, write, randread, randwrite, readwrite, randrw, discard, randdiscard or nop",
            ));
        }
        if (spec.ladder.is_some() || spec.saturate) && !(specs.len() == 1 && (spec.layer.is_one_phase)(spec))
        {
            return Err(Error::usage("plan", "a ladder climbs one operation in one phase").remedy(
                "give one --op or one pair of --message-sizes, and make other phases runs of their own",
            ));
        }
        if spec.ladder.is_some() && spec.saturate {
            return Err(Error::usage("plan", "--saturate climbs by itself").remedy("leave out --ladder"));
        }
        programme.ladder = spec.ladder.as_ref().map(|ladder| ladder.dimension);
        programme.keep |= spec.keep;
        programme.saturate = spec.saturate.then(|| Box::new(spec.clone()));
    }
    let (stores, specs) = Stores::default().find(specs, programme.keep)?;
    let mut planner = Planner { seed, reaches: Reaches::default(), stores, phases: Vec::new() };
    let mut request = 0;
    for stage in specs.chunk_by(|_, next| next.concurrent) {
        match stage {
            [spec] if spec.layer == Layer::NETWORK => planner.network(spec, request)?,
            [spec] if spec.layer == Layer::OBJECT => planner.object(spec, request)?,
            [spec] if spec.layer == Layer::MEDIA => {
                expand_ladder(spec).iter().try_for_each(|step| planner.step(step, request))?;
            }
            [spec] => {
                for planned in planner.measured(spec)? {
                    planner.phases.push(Planned { stage: planner.next_stage(), request, ..planned });
                }
            }
            _ => planner.stage(stage, request)?,
        }
        request += stage.len();
    }
    let on_media = planner.phases.iter().filter_map(|planned| Some((planned.stage, planned.plan.media()?)));
    media::planning::check_together(&on_media.collect::<Vec<_>>())?;
    programme.phases = planner.phases;
    programme.stores = planner.stores;
    Ok(programme)
}

/// State of the planning: phases that are planned so far.
struct Planner {
    seed: u64,
    /// Engines that were found, and those that the run started.
    reaches: Reaches,
    stores: Stores,
    phases: Vec<Planned>,
}

impl Planner {
    /// Seed of the next phase.
    fn next_seed(&self) -> u64 {
        derive_seed(self.seed, &[self.phases.len() as u64])
    }

    /// Number of the stage after those so far.
    fn next_stage(&self) -> usize {
        self.phases.last().map_or(0, |planned| planned.stage + 1)
    }

    /// Plans a spec of the network layer, one stage a phase.
    fn network(&mut self, spec: &Spec, request: usize) -> Result<(), Error> {
        let reach = self.reaches.find(spec)?;
        for planned in network::phases(spec, &reach, self.phases.len(), self.seed)? {
            self.phases.push(Planned { stage: self.next_stage(), request, ..planned });
        }
        Ok(())
    }

    /// Plans a spec of the object layer, one stage a phase.
    fn object(&mut self, spec: &Spec, request: usize) -> Result<(), Error> {
        for planned in objects::plan::phases(spec, &self.stores, &self.phases, self.seed)? {
            self.phases.push(Planned { stage: self.next_stage(), request, ..planned });
        }
        Ok(())
    }

    /// Plans a spec of a layer that brings its own planning, one step of a ladder after the other.
    fn measured(&self, spec: &Spec) -> Result<Vec<Planned>, Error> {
        let name = spec.layer.name;
        let layer = layer::find(name).ok_or_else(|| {
            Error::usage("plan", "this build does not measure the layer").with("layer", name)
        })?;
        let mut number = self.phases.len() as u64;
        let mut seed = || {
            number += 1;
            derive_seed(self.seed, &[number - 1])
        };
        let mut phases = Vec::new();
        for step in expand_ladder(spec) {
            for (plan, capabilities) in layer.phases(&step, &mut seed)? {
                runner::check_placement(plan.load())?;
                phases.push(Planned::of(plan, &capabilities));
            }
        }
        Ok(phases)
    }

    /// Plans the one phase of a spec that runs at the same time as others.
    fn one(&mut self, spec: &Spec) -> Result<Planned, Error> {
        match spec.layer.name {
            "media" => plan_phase(spec, spec.operations[0], self.next_seed()),
            "network" => {
                let reach = self.reaches.find(spec)?;
                network::phase(spec, message_sizes(spec)[0], &reach, self.next_seed())
            }
            "object" => {
                let phase = objects::plan::only_phase(spec)?;
                objects::plan::one(spec, &phase, self.stores.of(spec)?, self.next_seed())
            }
            _ => {
                let mut phases = self.measured(spec)?;
                match (phases.pop(), phases.len()) {
                    (Some(planned), 0) => Ok(planned),
                    _ => Err(Error::usage(
                        "plan",
                        "a phase that runs at the same time as another has one operation",
                    )),
                }
            }
        }
    }

    /// Plans specs that run at the same time; what is written for verification is read back after all of them, at the same
    /// time too.
    fn stage(&mut self, specs: &[Spec], request: usize) -> Result<(), Error> {
        for (number, spec) in specs.iter().enumerate().filter(|(_, spec)| spec.layer == Layer::OBJECT) {
            let planned = self.one(spec)?;
            let earlier: Vec<_> = self.phases.iter().filter_map(objects::plan::plan_of).collect();
            let fills = if planned.fills { objects::plan::fills(&planned, &earlier) } else { Vec::new() };
            for fill in fills {
                self.phases.push(Planned { stage: self.next_stage(), request: request + number, ..fill });
            }
        }
        let (first, stage) = (self.phases.len(), self.next_stage());
        for (number, spec) in specs.iter().enumerate() {
            let planned = self.one(spec)?;
            self.phases.push(Planned { stage, request: request + number, ..planned });
        }
        check_drivers(&self.phases[first..])?;
        let on_media: Vec<_> =
            self.phases[first..].iter().filter_map(|planned| planned.plan.media()).collect();
        check_shared_ranges(&on_media)?;
        for (number, spec) in specs.iter().enumerate() {
            let written = self.phases[first + number].plan.media().filter(|plan| reads_back(spec, plan));
            if let Some(written) = written {
                let back = read_back(spec, plan_read_back(spec, written, self.next_seed())?);
                self.phases.push(Planned { stage: stage + 1, request: request + number, ..back });
            }
        }
        Ok(())
    }

    /// Plans the operations of one spec, one stage each, and the reading back of what is written for verification.
    fn step(&mut self, spec: &Spec, request: usize) -> Result<(), Error> {
        for (number, operation) in spec.operations.iter().enumerate() {
            let planned = plan_phase(spec, *operation, self.next_seed())?;
            let written = planned.plan.media().filter(|plan| reads_back(spec, plan)).cloned();
            self.phases.push(Planned { stage: self.next_stage(), request, ..planned });
            let reads_next =
                matches!(spec.operations.get(number + 1), Some(Operation::Read | Operation::RandRead));
            if let Some(written) = written.filter(|_| !reads_next) {
                let back = read_back(spec, plan_read_back(spec, &written, self.next_seed())?);
                self.phases.push(Planned { stage: self.next_stage(), request, ..back });
            }
        }
        Ok(())
    }
}

/// Checks the rules for phases that run at the same time.
fn check_concurrent(specs: &[Spec]) -> Result<(), Error> {
    if specs.first().is_some_and(|spec| spec.concurrent) {
        return Err(Error::usage(
            "plan",
            "--concurrent: there is no phase before it to run at the same time with",
        )
        .remedy("give it to a later phase of a job file (concurrent = true)"));
    }
    for stage in specs.chunk_by(|_, next| next.concurrent) {
        let is_alone = stage.len() == 1;
        for (number, spec) in stage.iter().enumerate() {
            if spec.end_others && is_alone {
                return Err(Error::usage(
                    "plan",
                    "--end-others ends the phases that run at the same time: there are none",
                )
                .remedy("give concurrent = true to the phase after it in a job file, or leave it out"));
            }
            let phase = || spec.name.clone().unwrap_or_else(|| format!("number {} of its stage", number + 1));
            if !is_alone && !(spec.layer.is_one_phase)(spec) {
                return Err(Error::usage(
                    "plan",
                    if spec.layer == Layer::NETWORK {
                        "a phase that runs at the same time as another has one pair of message sizes"
                    } else {
                        "a phase that runs at the same time as another has one operation"
                    },
                )
                .with("phase", phase())
                .remedy("give one op, and a phase for each of the others"));
            }
        }
    }
    Ok(())
}

/// Refuses phases that this process drives at the same time as others that it does not: they could not begin together.
fn check_drivers(stage: &[Planned]) -> Result<(), Error> {
    let is_elsewhere = |planned: &&Planned| planned.plan.is_driven_elsewhere();
    let Some(elsewhere) = stage.iter().find(is_elsewhere) else { return Ok(()) };
    match stage.iter().find(|planned| !is_elsewhere(planned)) {
        None => Ok(()),
        Some(here) => {
            Err(Error::usage("plan", "phases at the same time are all driven from here, or all by masters")
                .with("here", here.plan.name())
                .with("masters", elsewhere.plan.name())
                .remedy("give all of them --master or --clients, or none; or leave out concurrent"))
        }
    }
}

/// Plans one phase of media: the first stage of the first request, for the caller to place.
///
/// # Errors
/// As for [`media::planning::plan_phase`].
pub(crate) fn plan_phase(spec: &Spec, operation: Operation, seed: u64) -> Result<Planned, Error> {
    Ok(on_media(spec, media::planning::plan_phase(spec, operation, seed)?))
}

fn on_media(spec: &Spec, (plan, capabilities): Phase) -> Planned {
    Planned { destroy_data: spec.destroy_data, ..Planned::of(PhasePlan::new(plan), &capabilities) }
}

fn read_back(spec: &Spec, phase: Phase) -> Planned {
    Planned { is_read_back: true, ..on_media(spec, phase) }
}
