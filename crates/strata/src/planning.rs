//! From specs to phases: probes the targets, chooses engines, resolves, and refuses before anything is touched.

use std::collections::HashSet;
use std::sync::Arc;

use driver::{Error, Registration};
use media::{DRIVERS, MediaOperation, OpenRequest};
use workload::plan::{
    EngineFacts, MediaPlan, PhasePlan, PlanError, default_engine, expand_ladder, message_sizes, resolve,
};
use workload::random::derive_seed;
use workload::spec::{CachePolicy, LadderDimension, Layer, Layout, Operation, Spec};
use workload::target::{TargetFacts, TargetKind, TargetPlan};

use crate::net::run::Access;
use crate::net::{Reaches, resolve as network};
use crate::objects::{self, Store, Stores};
use crate::target_engine::{check_target_engine, is_without_path};

/// A phase that is ready to run.
#[derive(Clone, Debug)]
pub(crate) struct Planned {
    pub(crate) plan: PhasePlan,
    /// The user allows writes to what carries data.
    pub(crate) destroy_data: bool,
    /// Phases of the same stage run at the same time.
    pub(crate) stage: usize,
    /// The spec that it carries out.
    pub(crate) request: usize,
    /// Whether it reads back what another phase of the same request wrote.
    pub(crate) is_read_back: bool,
    /// What a phase of the network layer needs besides its plan.
    pub(crate) access: Option<Arc<Access>>,
    /// The store of a phase of the object layer.
    pub(crate) store: Option<Arc<Store>>,
    /// What it needs may be stored before it.
    pub(crate) fills: bool,
}

impl Planned {
    /// The first stage of the first request, for the caller to place.
    pub(crate) fn of(plan: PhasePlan) -> Self {
        Self {
            plan,
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
    /// What a ladder climbs; its phases are all phases of the run.
    pub(crate) ladder: Option<LadderDimension>,
    /// What climbs to saturation from its only phase.
    pub(crate) saturate: Option<Box<Spec>>,
    /// Files that the run creates stay.
    pub(crate) keep: bool,
    /// The object stores of all phases.
    pub(crate) stores: Stores,
}

/// What is to be done where blocks are checked that are not there.
const WRITE_FIRST: &str =
    "write the blocks first: --op write --verify --keep with the same --size and --block-size";

fn usage(error: PlanError) -> Error {
    Error::usage("plan", error.0)
}

/// What planning must know of a driver.
fn facts_of(registration: &Registration<MediaOperation, OpenRequest>) -> EngineFacts {
    let capabilities = &registration.capabilities;
    EngineFacts {
        name: registration.name,
        classes: capabilities.classes,
        asynchronous: capabilities.asynchronous,
        depth_max: capabilities.depth_max,
        targetless: capabilities.targetless,
        direct: capabilities.direct,
        options: capabilities.options,
    }
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
        if spec.layer == Layer::Media && spec.operations.is_empty() {
            return Err(Error::usage("plan", "no operation").remedy(
                "give --op: read, write, randread, randwrite, readwrite, randrw, discard, randdiscard or nop",
            ));
        }
        if (spec.ladder.is_some() || spec.saturate) && !(specs.len() == 1 && is_one_operation(spec)) {
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
            [spec] if spec.layer == Layer::Network => planner.network(spec, request)?,
            [spec] if spec.layer == Layer::Object => planner.object(spec, request)?,
            [spec] => expand_ladder(spec).iter().try_for_each(|step| planner.step(step, request))?,
            _ => planner.stage(stage, request)?,
        }
        request += stage.len();
    }
    check_verified_blocks(&planner.phases)?;
    check_existing(&planner.phases)?;
    programme.phases = planner.phases;
    programme.stores = planner.stores;
    Ok(programme)
}

/// Whether a spec asks for one operation, or one pair of message sizes.
fn is_one_operation(spec: &Spec) -> bool {
    match spec.layer {
        Layer::Media => spec.operations.len() == 1,
        Layer::Network => spec.network.message_sizes.len() <= 1,
        Layer::Object => spec.object.operations.len() <= 1,
    }
}

/// What is planned so far.
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

    /// Plans the one phase of a spec that runs at the same time as others.
    fn one(&mut self, spec: &Spec) -> Result<Planned, Error> {
        match spec.layer {
            Layer::Media => plan_phase(spec, spec.operations[0], self.next_seed()),
            Layer::Network => {
                let reach = self.reaches.find(spec)?;
                network::phase(spec, message_sizes(spec)[0], &reach, self.next_seed())
            }
            Layer::Object => {
                let phase = objects::plan::only_phase(spec)?;
                objects::plan::one(spec, &phase, self.stores.of(spec)?, self.next_seed())
            }
        }
    }

    /// Plans specs that run at the same time; what is written for verification is read back after all of them, at the same
    /// time too.
    fn stage(&mut self, specs: &[Spec], request: usize) -> Result<(), Error> {
        for (number, spec) in specs.iter().enumerate().filter(|(_, spec)| spec.layer == Layer::Object) {
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
        check_shared_ranges(&self.phases[first..])?;
        for (number, spec) in specs.iter().enumerate() {
            let written = self.phases[first + number].plan.media().filter(|plan| reads_back(spec, plan));
            if let Some(written) = written {
                let back = plan_read_back(spec, written, self.next_seed())?;
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
                let back = plan_read_back(spec, &written, self.next_seed())?;
                self.phases.push(Planned { stage: self.next_stage(), request, ..back });
            }
        }
        Ok(())
    }
}

/// What phases that run at the same time must be.
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
        if stage.iter().any(|spec| spec.layer != stage[0].layer) {
            return Err(Error::usage("plan", "phases that run at the same time measure one layer")
                .remedy("leave out concurrent where the layer changes"));
        }
        for (number, spec) in stage.iter().enumerate() {
            if spec.end_others && is_alone {
                return Err(Error::usage(
                    "plan",
                    "--end-others ends the phases that run at the same time: there are none",
                )
                .remedy("give concurrent = true to the phase after it in a job file, or leave it out"));
            }
            let phase = || spec.name.clone().unwrap_or_else(|| format!("number {} of its stage", number + 1));
            if !is_alone && !is_one_operation(spec) {
                return Err(Error::usage(
                    "plan",
                    if spec.layer == Layer::Network {
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

/// Why two phases that run at the same time cannot share a range; none when they can.
fn conflict(one: &MediaPlan, other: &MediaPlan) -> Option<&'static str> {
    let verifies = one.verify_interval_bytes.is_some() || other.verify_interval_bytes.is_some();
    // A block that one phase writes while another one checks it would be neither the old nor the new one.
    if verifies && (one.writes() || other.writes()) {
        return Some("--verify needs each block to have one writer and nobody else at it");
    }
    let caches = [one.cache, other.cache];
    (caches.contains(&CachePolicy::Drop) && caches.contains(&CachePolicy::Warm))
        .then_some("--cache drop and --cache warm of one range undo each other")
}

/// Refuses phases that share a range and must not.
fn check_shared_ranges(stage: &[Planned]) -> Result<(), Error> {
    let plans: Vec<&MediaPlan> = stage.iter().filter_map(|planned| planned.plan.media()).collect();
    for (number, one) in plans.iter().enumerate() {
        for other in &plans[number + 1..] {
            let Some(reason) = conflict(one, other) else { continue };
            if let Some(path) = media::overlap(&one.targets, &other.targets) {
                return Err(Error::usage("plan", reason)
                    .with("path", path)
                    .with("phases", format!("{}, {}", one.name, other.name))
                    .remedy("give phases that run at the same time ranges of their own (--offset, --size)"));
            }
        }
    }
    Ok(())
}

/// A block is checked as a whole, so a phase that reads must read the blocks that the phase before it wrote to the same target.
fn check_verified_blocks(phases: &[Planned]) -> Result<(), Error> {
    let verified: Vec<&MediaPlan> = phases
        .iter()
        .filter_map(|planned| planned.plan.media())
        .filter(|plan| plan.verify_interval_bytes.is_some())
        .collect();
    for (number, reader) in verified.iter().enumerate().filter(|(_, plan)| !plan.writes()) {
        let shares = |writer: &&&MediaPlan| {
            writer.writes()
                && writer
                    .targets
                    .iter()
                    .any(|target| reader.targets.iter().any(|own| own.path == target.path))
        };
        let written = verified[..number].iter().rev().find(shares);
        if written.is_some_and(|writer| writer.verify_grain_bytes() != reader.verify_grain_bytes()) {
            return Err(Error::usage(
                "plan",
                "--verify reads the blocks that were written, so their sizes must be the same",
            )
            .with("phase", &reader.name)
            .remedy("give --block-size for all phases"));
        }
    }
    Ok(())
}

/// What a phase checks must be there: now, or written by a phase before it.
fn check_existing(phases: &[Planned]) -> Result<(), Error> {
    for planned in phases {
        let Some(plan) = planned.plan.media().filter(|plan| plan.layout == Layout::Existing) else {
            continue;
        };
        let earlier = phases.iter().filter(|other| other.stage < planned.stage);
        let earlier: Vec<&MediaPlan> = earlier
            .filter_map(|other| other.plan.media())
            .filter(|plan| plan.layout != Layout::Existing)
            .collect();
        let is_made = |target: &TargetPlan| {
            let end = target.offset_bytes + target.size_bytes;
            let mut made = earlier.iter().flat_map(|plan| &plan.targets);
            made.any(|made| {
                made.offset_bytes + made.size_bytes >= end
                    && media::overlap(std::slice::from_ref(made), std::slice::from_ref(target)).is_some()
            })
        };
        let verifies = plan.verify_interval_bytes.is_some();
        for target in plan.targets.iter().filter(|target| target.kind == TargetKind::File) {
            if !is_made(target) {
                let found = media::layout::check_existing(target);
                found.map_err(|error| if verifies { error.remedy(WRITE_FIRST) } else { error })?;
            }
        }
    }
    Ok(())
}

fn reads_back(spec: &Spec, plan: &MediaPlan) -> bool {
    spec.verify && !spec.no_read_back && plan.mix.write_percent > 0
}

/// One sequential pass over all that was written, in the blocks that were written, with no limit but the range.
fn plan_read_back(spec: &Spec, written: &MediaPlan, seed: u64) -> Result<Planned, Error> {
    let back = Spec {
        name: Some("verify".to_owned()),
        operations: vec![Operation::Read],
        block_size: Some(back_size(written)),
        pattern: None,
        gap: None,
        run: None,
        random_percent: None,
        own_positions: false,
        zones: None,
        zoned: None,
        visit: None,
        mix: None,
        rate: None,
        arrivals: None,
        time: None,
        count: None,
        bytes: None,
        fsync: None,
        end_fsync: None,
        sync_call: None,
        align: None,
        think_time: None,
        think_blocks: None,
        think_after: None,
        think_spin: None,
        no_catch_up: false,
        start_delay: None,
        end_others: false,
        control: workload::control::Control {
            on_mismatch: spec.control.on_mismatch,
            ..workload::control::Control::default()
        },
        ..spec.clone()
    };
    let mut planned = plan_phase(&back, Operation::Read, seed)?;
    if let PhasePlan::Media(plan) = &mut planned.plan {
        plan.verify_grain_bytes = written.verify_grain_bytes;
        plan.verify_interval_bytes = written.verify_interval_bytes;
        plan.course = None;
    }
    Ok(Planned { is_read_back: true, ..planned })
}

/// The size of the blocks that are read back; those of several sizes are read as they were written, up to the largest.
fn back_size(written: &MediaPlan) -> String {
    match written.verify_grain_bytes {
        Some(_) => units::ByteSize(written.block_size_bytes_max).to_string(),
        None => written.block_size.clone(),
    }
}

/// Plans one phase: the first stage of the first request, for the caller to place.
pub(crate) fn plan_phase(spec: &Spec, operation: Operation, seed: u64) -> Result<Planned, Error> {
    if spec.targets.is_empty() {
        return Err(Error::usage("plan", "no target")
            .remedy("give a file, a block device, rbd:POOL/IMAGE, null: or mem:"));
    }
    let can_create = spec.size.is_some() || spec.sizes.is_some() || spec.control.ends_when_full;
    let needs = spec.engine.as_deref().and_then(media::names::needs);
    let mut facts: Vec<TargetFacts> = Vec::with_capacity(spec.targets.len());
    let mut known = HashSet::new();
    for path in &spec.targets {
        if !known.insert(path) {
            return Err(Error::usage("plan", "a target is given twice").with("target", path));
        }
        let found = match needs {
            Some(needs) => media::names::probe(path, needs, spec.destroy_data),
            None => media::probe::probe(path, can_create),
        };
        let is_lost = !can_create && spec.verify && !units::path_of(path).exists();
        facts.push(found.map_err(|error| if is_lost { error.remedy(WRITE_FIRST) } else { error })?);
    }
    if facts.iter().any(|target| target.kind != facts[0].kind) && facts.iter().any(is_without_path) {
        return Err(Error::usage("plan", "null: and mem: do not go together with other targets"));
    }
    let name = match &spec.engine {
        Some(name) => name.as_str(),
        None => default_engine(spec, &facts, media::io_uring_is_available()),
    };
    let registration = driver::find(DRIVERS, name)?;
    let engine = facts_of(registration);
    check_target_engine(&facts, &engine)?;
    let has_program = spec.program.as_ref().is_some_and(|program| !program.path.is_empty());
    if engine.name == "exec" && !has_program {
        return Err(Error::usage("plan", "engine exec needs a program to run").remedy("give --program"));
    }
    let plan = resolve(spec, operation, &facts, &engine, seed).map_err(usage)?;
    media::check_plan(&plan)?;
    runner::check_placement(&plan.load)?;
    if plan.writes() {
        facts.iter().try_for_each(|target| media::safety::check_writable(target, spec.destroy_data))?;
        media::zoned::check_consent(&plan, spec.destroy_data)?;
    }
    Ok(Planned { destroy_data: spec.destroy_data, ..Planned::of(PhasePlan::Media(plan)) })
}
