//! From specs to phases: probes the targets, chooses engines, resolves, and refuses before anything is touched.

use driver::{Error, Registration};
use media::{DRIVERS, MediaOperation, OpenRequest};
use workload::plan::{EngineFacts, PhasePlan, PlanError, default_engine, expand_ladder, resolve};
use workload::random::derive_seed;
use workload::spec::{LadderDimension, Operation, Spec};
use workload::target::TargetFacts;

/// A phase that is ready to run.
#[derive(Clone, Debug)]
pub(crate) struct Planned {
    pub(crate) plan: PhasePlan,
    /// The user allows writes to what carries data.
    pub(crate) destroy_data: bool,
}

/// The phases of a run.
pub(crate) struct Programme {
    pub(crate) phases: Vec<Planned>,
    /// What a ladder climbs; its phases are all phases of the run.
    pub(crate) ladder: Option<LadderDimension>,
    /// Whether it climbs to saturation from its only phase.
    pub(crate) saturate: bool,
    /// Files that the run creates stay.
    pub(crate) keep: bool,
}

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
    let mut programme = Programme { phases: Vec::new(), ladder: None, saturate: false, keep: false };
    let is_alone = specs.len() == 1 && specs[0].operations.len() == 1;
    for spec in specs {
        if spec.operations.is_empty() {
            return Err(Error::usage("plan", "no operation").remedy(
                "give --op: read, write, randread, randwrite, readwrite, randrw, discard, randdiscard or nop",
            ));
        }
        if (spec.ladder.is_some() || spec.saturate) && !is_alone {
            return Err(Error::usage("plan", "a ladder climbs one operation in one phase")
                .remedy("give one --op, and make other phases runs of their own"));
        }
        if spec.ladder.is_some() && spec.saturate {
            return Err(Error::usage("plan", "--saturate climbs by itself").remedy("leave out --ladder"));
        }
        programme.ladder = spec.ladder.as_ref().map(|ladder| ladder.dimension);
        programme.keep |= spec.keep;
        programme.saturate = spec.saturate;
        for step in expand_ladder(spec) {
            plan_step(&step, seed, &mut programme.phases)?;
        }
    }
    check_verified_blocks(&programme.phases)?;
    Ok(programme)
}

/// A block is checked as a whole, so a phase that reads must read the blocks that the phase before it wrote to the same target.
fn check_verified_blocks(phases: &[Planned]) -> Result<(), Error> {
    let verified: Vec<&PhasePlan> = phases
        .iter()
        .map(|planned| &planned.plan)
        .filter(|plan| plan.verify_interval_bytes.is_some())
        .collect();
    for (number, reader) in verified.iter().enumerate().filter(|(_, plan)| !plan.writes()) {
        let shares = |writer: &&&PhasePlan| {
            writer.writes()
                && writer
                    .targets
                    .iter()
                    .any(|target| reader.targets.iter().any(|own| own.path == target.path))
        };
        let written = verified[..number].iter().rev().find(shares);
        if written.is_some_and(|writer| writer.block_size_bytes_max != reader.block_size_bytes_max) {
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

/// Plans the operations of one spec, and the reading back of what is written for verification.
fn plan_step(spec: &Spec, seed: u64, phases: &mut Vec<Planned>) -> Result<(), Error> {
    for (number, operation) in spec.operations.iter().enumerate() {
        let planned = plan_phase(spec, *operation, derive_seed(seed, &[phases.len() as u64]))?;
        let writes = planned.plan.mix.write_percent > 0;
        let block_size = planned.plan.block_size.clone();
        phases.push(planned);
        let reads_next =
            matches!(spec.operations.get(number + 1), Some(Operation::Read | Operation::RandRead));
        if spec.verify && writes && !reads_next {
            phases.push(plan_read_back(spec, block_size, derive_seed(seed, &[phases.len() as u64]))?);
        }
    }
    Ok(())
}

/// One sequential pass over all that was written, in the blocks that were written, with no limit but the range.
fn plan_read_back(spec: &Spec, block_size: String, seed: u64) -> Result<Planned, Error> {
    let back = Spec {
        name: Some("verify".to_owned()),
        operations: vec![Operation::Read],
        block_size: Some(block_size),
        pattern: None,
        mix: None,
        rate: None,
        arrivals: None,
        time: None,
        count: None,
        bytes: None,
        fsync: None,
        end_fsync: None,
        align: None,
        ..spec.clone()
    };
    plan_phase(&back, Operation::Read, seed)
}

/// Plans one phase.
pub(crate) fn plan_phase(spec: &Spec, operation: Operation, seed: u64) -> Result<Planned, Error> {
    if spec.targets.is_empty() {
        return Err(Error::usage("plan", "no target").remedy("give a file, a block device, null: or mem:"));
    }
    let can_create = spec.size.is_some();
    let mut facts: Vec<TargetFacts> = Vec::with_capacity(spec.targets.len());
    for path in &spec.targets {
        if facts.iter().any(|known| known.path == *path) {
            return Err(Error::usage("plan", "a target is given twice").with("target", path));
        }
        facts.push(media::probe::probe(path, can_create)?);
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
    let plan = resolve(spec, operation, &facts, &engine, seed).map_err(usage)?;
    media::check_plan(&plan)?;
    runner::check_placement(&plan.load)?;
    if plan.writes() {
        facts.iter().try_for_each(|target| media::safety::check_writable(target, spec.destroy_data))?;
    }
    Ok(Planned { plan, destroy_data: spec.destroy_data })
}

fn is_without_path(target: &TargetFacts) -> bool {
    use workload::target::TargetKind::{Memory, Null};
    matches!(target.kind, Null | Memory)
}

/// `null:` goes with any engine that can pass operations through without a target; `mem:` with its own alone.
fn check_target_engine(facts: &[TargetFacts], engine: &EngineFacts) -> Result<(), Error> {
    use workload::target::TargetKind;
    let wrong = |message: String| Err(Error::usage("plan", message));
    match facts[0].kind {
        TargetKind::Memory if engine.name != "mem" => {
            wrong(format!("mem: is measured by engine mem, not by {}: leave out --engine", engine.name))
        }
        TargetKind::Null if engine.name != "null" => wrong(format!(
            "null: is measured by engine null, not by {}: leave out --engine, or give /dev/null",
            engine.name
        )),
        TargetKind::File | TargetKind::BlockDevice | TargetKind::CharacterDevice if engine.name == "mem" => {
            wrong("engine mem measures memory: give the target mem:".to_owned())
        }
        _ => Ok(()),
    }
}
