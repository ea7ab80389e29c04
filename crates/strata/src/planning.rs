//! From specs to phases: probes the targets, chooses engines, resolves, and refuses before anything is touched.

use driver::{Error, Registration};
use media::{DRIVERS, MediaOperation, OpenRequest};
use workload::plan::{EngineFacts, PhasePlan, PlanError, default_engine, expand_ladder, resolve};
use workload::random::derive_seed;
use workload::spec::{CachePolicy, LadderDimension, Operation, Spec};
use workload::target::TargetFacts;

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
    check_concurrent(specs)?;
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
    }
    let mut request = 0;
    for stage in specs.chunk_by(|_, next| next.concurrent) {
        match stage {
            [spec] => expand_ladder(spec)
                .iter()
                .try_for_each(|step| plan_step(step, request, seed, &mut programme.phases))?,
            _ => plan_stage(stage, request, seed, &mut programme.phases)?,
        }
        request += stage.len();
    }
    check_verified_blocks(&programme.phases)?;
    Ok(programme)
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
        for (number, spec) in stage.iter().enumerate() {
            if spec.end_others && is_alone {
                return Err(Error::usage(
                    "plan",
                    "--end-others ends the phases that run at the same time: there are none",
                )
                .remedy("give concurrent = true to the phase after it in a job file, or leave it out"));
            }
            let phase = || spec.name.clone().unwrap_or_else(|| format!("number {} of its stage", number + 1));
            if !is_alone && spec.operations.len() > 1 {
                return Err(Error::usage(
                    "plan",
                    "a phase that runs at the same time as another has one operation",
                )
                .with("phase", phase())
                .remedy("give one op, and a phase for each of the others"));
            }
        }
    }
    Ok(())
}

/// Plans specs that run at the same time; what is written for verification is read back after all of them, at the same
/// time too.
fn plan_stage(specs: &[Spec], request: usize, seed: u64, phases: &mut Vec<Planned>) -> Result<(), Error> {
    let (first, stage) = (phases.len(), next_stage(phases));
    let seed_of = |phases: &[Planned]| derive_seed(seed, &[phases.len() as u64]);
    for (number, spec) in specs.iter().enumerate() {
        let planned = plan_phase(spec, spec.operations[0], seed_of(phases))?;
        phases.push(Planned { stage, request: request + number, ..planned });
    }
    check_shared_ranges(&phases[first..])?;
    for (number, spec) in specs.iter().enumerate() {
        let written = &phases[first + number];
        if reads_back(spec, &written.plan) {
            let back = plan_read_back(spec, written.plan.block_size.clone(), seed_of(phases))?;
            phases.push(Planned { stage: stage + 1, request: request + number, ..back });
        }
    }
    Ok(())
}

/// Why two phases that run at the same time cannot share a range; none when they can.
fn conflict(one: &PhasePlan, other: &PhasePlan) -> Option<&'static str> {
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
    for (number, one) in stage.iter().map(|planned| &planned.plan).enumerate() {
        for other in stage[number + 1..].iter().map(|planned| &planned.plan) {
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

/// Number of the stage after those of these phases.
fn next_stage(phases: &[Planned]) -> usize {
    phases.last().map_or(0, |planned| planned.stage + 1)
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

/// Plans the operations of one spec, one stage each, and the reading back of what is written for verification.
fn plan_step(spec: &Spec, request: usize, seed: u64, phases: &mut Vec<Planned>) -> Result<(), Error> {
    for (number, operation) in spec.operations.iter().enumerate() {
        let planned = plan_phase(spec, *operation, derive_seed(seed, &[phases.len() as u64]))?;
        let reads_back = reads_back(spec, &planned.plan);
        let block_size = planned.plan.block_size.clone();
        phases.push(Planned { stage: next_stage(phases), request, ..planned });
        let reads_next =
            matches!(spec.operations.get(number + 1), Some(Operation::Read | Operation::RandRead));
        if reads_back && !reads_next {
            let back = plan_read_back(spec, block_size, derive_seed(seed, &[phases.len() as u64]))?;
            phases.push(Planned { stage: next_stage(phases), request, ..back });
        }
    }
    Ok(())
}

fn reads_back(spec: &Spec, plan: &PhasePlan) -> bool {
    spec.verify && !spec.no_read_back && plan.mix.write_percent > 0
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
        sync_call: None,
        align: None,
        think_time: None,
        think_blocks: None,
        start_delay: None,
        end_others: false,
        ..spec.clone()
    };
    let planned = plan_phase(&back, Operation::Read, seed)?;
    Ok(Planned { is_read_back: true, ..planned })
}

/// Plans one phase: the first stage of the first request, for the caller to place.
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
    Ok(Planned { plan, destroy_data: spec.destroy_data, stage: 0, request: 0, is_read_back: false })
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
