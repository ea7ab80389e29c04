//! Plans of media: targets are probed, the driver chosen, the spec resolved, and what cannot be refused before anything is touched.

use std::collections::HashSet;

use crate::plan::{EngineFacts, MediaPlan, default_engine, resolve};
use crate::spec::{self, CachePolicy, Layout, MediaSpec};
use crate::target::TargetFacts;
use driver::{Capabilities, Error, Registration};
use workload::plan::PlanError;
use workload::spec::{Operation, Spec};
use workload::target::{TargetKind, TargetPlan};

use crate::{DRIVERS, MediaOperation, OpenRequest};

/// Remedy where blocks are checked that are not there.
const WRITE_FIRST: &str =
    "write the blocks first: --op write --verify --keep with the same --size and --block-size";

fn usage(error: PlanError) -> Error {
    Error::usage("plan", error.0)
}

/// Facts that planning must know of a driver.
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

/// Why two phases that run at the same time cannot share a range; none when they can.
fn conflict(one: &MediaPlan, other: &MediaPlan) -> Option<&'static str> {
    let verifies = one.verify_interval_bytes.is_some() || other.verify_interval_bytes.is_some();
    // A block that one phase writes while another one checks it would be neither the old nor the new one.
    if verifies && (one.writes() || other.writes()) {
        return Some("--verify needs one writer per block and no concurrent access to it");
    }
    let caches = [one.cache, other.cache];
    (caches.contains(&CachePolicy::Drop) && caches.contains(&CachePolicy::Warm))
        .then_some("--cache drop and --cache warm on one range cancel each other")
}

/// Refuses phases that share a range and must not.
///
/// # Errors
/// Bad usage that names both.
pub fn check_shared_ranges(plans: &[&MediaPlan]) -> Result<(), Error> {
    for (number, one) in plans.iter().enumerate() {
        for other in &plans[number + 1..] {
            let Some(reason) = conflict(one, other) else { continue };
            if let Some(path) = crate::overlap(&one.targets, &other.targets) {
                return Err(Error::usage("plan", reason)
                    .with("path", path)
                    .with("phases", format!("{}, {}", one.name, other.name))
                    .remedy("give phases that run at the same time separate ranges (--offset, --size)"));
            }
        }
    }
    Ok(())
}

/// Checks the phases of a run against each other, each with the number of its stage: blocks that are verified must be those that were written, and
/// files that are not made must be there.
///
/// # Errors
/// Bad usage, and files that are missing or too short.
pub fn check_together(plans: &[(usize, &MediaPlan)]) -> Result<(), Error> {
    check_verified_blocks(plans)?;
    check_existing(plans)
}

/// Why hosts keep their parts of a phase, in a run that writes or does not; none where they may take over each other's.
pub(crate) fn keeps_part(plan: &MediaPlan, is_written: bool) -> Option<&'static str> {
    let has_memory = plan.targets.iter().any(|target| target.kind == TargetKind::Memory);
    let is_verified = plan.verify_interval_bytes.is_some();
    let kept = [
        (has_memory, "memory is local to each host"),
        (plan.zoned.is_some(), "a host only knows the contents of its own zones (--zones)"),
        (
            is_verified && is_written,
            "a host only knows the blocks that it wrote itself (--verify); a later run that only reads can verify all blocks",
        ),
    ];
    kept.into_iter().find_map(|(keeps, why)| keeps.then_some(why))
}

/// A block is checked as a whole, so a phase that reads must read the blocks that the phase before it wrote to the same target.
fn check_verified_blocks(plans: &[(usize, &MediaPlan)]) -> Result<(), Error> {
    let plans = plans.iter().map(|(_, plan)| *plan);
    let verified: Vec<&MediaPlan> = plans.filter(|plan| plan.verify_interval_bytes.is_some()).collect();
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
                "--verify requires the same block size for writing and reading",
            )
            .with("phase", &reader.name)
            .remedy("use one --block-size for all phases"));
        }
    }
    Ok(())
}

/// Blocks that a phase checks must be there: now, or written by a phase before it.
fn check_existing(plans: &[(usize, &MediaPlan)]) -> Result<(), Error> {
    for (stage, plan) in plans.iter().filter(|(_, plan)| plan.layout == Layout::Existing) {
        let earlier = plans.iter().filter(|(other, plan)| other < stage && plan.layout != Layout::Existing);
        let earlier: Vec<&MediaPlan> = earlier.map(|(_, plan)| *plan).collect();
        let is_made = |target: &TargetPlan| {
            let end = target.offset_bytes + target.size_bytes;
            let mut made = earlier.iter().flat_map(|plan| &plan.targets);
            made.any(|made| {
                made.offset_bytes + made.size_bytes >= end
                    && crate::overlap(std::slice::from_ref(made), std::slice::from_ref(target)).is_some()
            })
        };
        let verifies = plan.verify_interval_bytes.is_some();
        for target in plan.targets.iter().filter(|target| target.kind == TargetKind::File) {
            if !is_made(target) {
                let found = crate::layout::check_existing(target);
                found.map_err(|error| if verifies { error.remedy(WRITE_FIRST) } else { error })?;
            }
        }
    }
    Ok(())
}

/// Whether what a phase writes is read back after it.
#[must_use]
pub fn reads_back(spec: &Spec, plan: &MediaPlan) -> bool {
    spec.verify && !spec::of(spec).no_read_back && plan.mix.write_percent > 0
}

/// One sequential pass over all that was written, in the blocks that were written, with no limit but the range.
///
/// # Errors
/// As for [`plan_phase`].
pub fn plan_read_back(spec: &Spec, written: &MediaPlan, seed: u64) -> Result<Phase, Error> {
    let mut back = Spec {
        name: Some("verify".to_owned()),
        block_size: Some(back_size(written)),
        pattern: None,
        rate: None,
        arrivals: None,
        time: None,
        count: None,
        bytes: None,
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
    let own = spec::of_mut(&mut back);
    *own = MediaSpec {
        operations: vec![Operation::Read],
        gap: None,
        run: None,
        random_percent: None,
        own_positions: false,
        zones: None,
        zoned: None,
        visit: None,
        mix: None,
        fsync: None,
        end_fsync: false,
        sync_call: None,
        align: None,
        ..own.clone()
    };
    let (mut plan, capabilities) = plan_phase(&back, Operation::Read, seed)?;
    plan.verify_grain_bytes = written.verify_grain_bytes;
    plan.verify_interval_bytes = written.verify_interval_bytes;
    plan.course = None;
    Ok((plan, capabilities))
}

/// The size of the blocks that are read back; those of several sizes are read as they were written, up to the largest.
fn back_size(written: &MediaPlan) -> String {
    match written.verify_grain_bytes {
        Some(_) => units::ByteSize(written.block_size_bytes_max).to_string(),
        None => written.block_size.clone(),
    }
}

/// A phase that is planned, with the capabilities of its driver.
pub type Phase = (MediaPlan, Capabilities);

/// Plans one phase.
///
/// # Errors
/// Bad usage, targets that cannot be probed, and data that would be destroyed without leave.
pub fn plan_phase(spec: &Spec, operation: Operation, seed: u64) -> Result<Phase, Error> {
    let own = spec::of(spec);
    if spec.targets.is_empty() {
        return Err(Error::usage("plan", "no target")
            .remedy("give a file, a block device, rbd:POOL/IMAGE, null: or mem:"));
    }
    let can_create = own.size.is_some() || own.sizes.is_some() || spec.control.ends_when_full;
    let needs = own.engine.as_deref().and_then(crate::names::needs);
    let mut facts: Vec<TargetFacts> = Vec::with_capacity(spec.targets.len());
    let mut known = HashSet::new();
    for path in &spec.targets {
        if !known.insert(path) {
            return Err(Error::usage("plan", "a target is given twice").with("target", path));
        }
        let found = match needs {
            Some(needs) => crate::names::probe(path, needs, spec.destroy_data),
            None => crate::probe::probe(path, can_create),
        };
        let is_lost = !can_create && spec.verify && !units::path_of(path).exists();
        facts.push(found.map_err(|error| if is_lost { error.remedy(WRITE_FIRST) } else { error })?);
    }
    if facts.iter().any(|target| target.kind != facts[0].kind) && facts.iter().any(is_without_path) {
        return Err(Error::usage("plan", "null: and mem: cannot be combined with other targets"));
    }
    let name = match &own.engine {
        Some(name) => name.as_str(),
        None => default_engine(spec, &facts, crate::io_uring_is_available()),
    };
    let registration = driver::find(DRIVERS, name)?;
    let engine = facts_of(registration);
    check_target_engine(&facts, &engine)?;
    let has_program = own.options.program.as_ref().is_some_and(|program| !program.path.is_empty());
    if engine.name == "exec" && !has_program {
        return Err(Error::usage("plan", "engine exec requires a program to run").remedy("give --program"));
    }
    let plan = resolve(spec, operation, &facts, &engine, seed).map_err(usage)?;
    crate::check_plan(&plan)?;
    runner::check_placement(&plan.load)?;
    if plan.writes() {
        facts.iter().try_for_each(|target| crate::safety::check_writable(target, spec.destroy_data))?;
        crate::zoned::check_consent(&plan, spec.destroy_data)?;
    }
    Ok((plan, registration.capabilities))
}

/// Engines that measure memory.
const OF_MEMORY: [&str; 3] = ["mem", "gpu_copy", "gpu_mem"];

/// Whether a target lies nowhere.
fn is_without_path(target: &TargetFacts) -> bool {
    matches!(target.kind, TargetKind::Null | TargetKind::Memory)
}

/// `null:` goes with any engine that can pass operations through without a target; `mem:` and images with their own alone.
///
/// # Errors
/// Bad usage: one that does not.
fn check_target_engine(facts: &[TargetFacts], engine: &EngineFacts) -> Result<(), Error> {
    let wrong = |message: String| Err(Error::usage("plan", message));
    match facts[0].kind {
        TargetKind::Memory if !OF_MEMORY.contains(&engine.name) => wrong(format!(
            "mem: is measured by engine mem (gpu_copy and gpu_mem with --memory gpu), not by {}: leave out --engine",
            engine.name
        )),
        TargetKind::Null if !["null", "cpu", "exec"].contains(&engine.name) => wrong(format!(
            "null: is measured by engine null, not by {}: leave out --engine, or give /dev/null",
            engine.name
        )),
        TargetKind::Image if engine.name != "rbd" => wrong(format!(
            "an image of Ceph is measured by engine rbd, not by {}: leave out --engine, or rbd map it and give its device",
            engine.name
        )),
        kind if engine.name == "rbd" && kind != TargetKind::Image => {
            wrong("engine rbd measures images of Ceph: give rbd:POOL/IMAGE".to_owned())
        }
        TargetKind::File | TargetKind::BlockDevice | TargetKind::CharacterDevice
            if OF_MEMORY.contains(&engine.name) =>
        {
            wrong(format!("engine {} measures memory: give the target mem:", engine.name))
        }
        kind if ["cpu", "exec"].contains(&engine.name) && kind != TargetKind::Null => {
            wrong(format!("engine {} uses no target: give null:", engine.name))
        }
        _ => Ok(()),
    }
}
