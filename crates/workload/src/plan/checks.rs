//! Checks of options that do not go together.

use super::error::{Amount, PlanError, refuse};
use super::resolve::EngineFacts;
use super::{MixPlan, Pattern};
use crate::class_sizes::ClassSizes;
use crate::spec::{Operation, Share, Spec};
use crate::target::{TargetKind, TargetPlan};

/// Options that mean nothing without another one, or beside it.
pub fn check_pairs(spec: &Spec) -> Result<(), PlanError> {
    let syncs = spec.fsync.is_some() || spec.end_fsync == Some(true);
    let wrong = [
        (
            spec.sizes.is_some() && spec.size.is_some(),
            "--sizes gives each target its own size, --size all of them one: give one of them",
        ),
        (
            spec.sync_call.is_some() && !syncs,
            "--sync-call is the call of --fsync and --end-fsync: give one of them too",
        ),
        (
            spec.verify_run.is_some() && !spec.verify,
            "--verify-run is the number of verified blocks: give --verify too",
        ),
        (
            spec.verify_pattern.is_some() && !spec.verify,
            "--verify-pattern is what verified blocks hold: give --verify too",
        ),
        (
            spec.verify_pattern.is_some() && spec.verify_interval.is_some(),
            "--verify-interval parts headers, and blocks of --verify-pattern have none: give one of them",
        ),
        (
            spec.verify_backlog.is_some() && !spec.verify,
            "--verify-backlog reads back verified blocks: give --verify too",
        ),
        (spec.verify_dump.is_some() && !spec.verify, "--verify-dump keeps wrong blocks: give --verify too"),
        (
            spec.no_read_back && !spec.verify,
            "--no-read-back leaves out what --verify does after a write: give --verify too",
        ),
        (
            spec.control.flow.is_some() && spec.think_time.is_some(),
            "--flow holds a loop back by itself: leave out --think-time",
        ),
        (
            spec.control.ends_when_full
                && (spec.operations != [Operation::Write] || spec.verify || spec.threads.unwrap_or(1) > 1),
            "--end-when-full is for --op write alone, by one thread and without --verify",
        ),
        (
            spec.control.flow_group.is_some() && spec.control.flow.is_none(),
            "--flow-group is the group of a weight: give --flow too",
        ),
        (
            spec.control.latency_target.is_some()
                && (spec.rate.is_some() || spec.think_time.is_some() || spec.control.flow.is_some()),
            "--latency-target searches the depth of a closed loop: leave out --rate, --think-time and --flow",
        ),
        (
            spec.control.rate_cycle_ns.is_some()
                && spec.control.rate_min.is_none()
                && spec.control.rate_bytes_min.is_none(),
            "--rate-cycle is the time of --rate-min and --rate-bytes-min: give one of them too",
        ),
        (
            spec.cores_policy.is_some() && spec.cores.is_none(),
            "--cores-policy deals out the processors of --cores: give both",
        ),
    ];
    match wrong.into_iter().chain(wrong_pauses(spec)).find(|(is_wrong, _)| *is_wrong) {
        Some((_, message)) => refuse(message.to_owned()),
        None => Ok(()),
    }
}

/// Options of pauses that do not go together, and whether they were given so.
fn wrong_pauses(spec: &Spec) -> [(bool, &'static str); 4] {
    [
        (
            (spec.think_after.is_some() || spec.think_spin.is_some()) && spec.think_time.is_none(),
            "--think-after and --think-spin are of the pauses of --think-time: give it too",
        ),
        (
            spec.think_spin.zip(spec.think_time).is_some_and(|(spin, pause)| spin.ns() > pause.ns()),
            "--think-spin is a part of --think-time: use as much or less",
        ),
        (
            spec.no_catch_up && (spec.think_time.is_none() || spec.rate.is_none()),
            "--no-catch-up says what becomes of a --rate in the pauses of --think-time: give both",
        ),
        (
            spec.think_blocks.is_some() && spec.think_time.is_none(),
            "--think-blocks counts the operations between pauses: give --think-time too",
        ),
    ]
}

pub(super) fn check_engine(
    spec: &Spec,
    operation: Operation,
    mix: MixPlan,
    engine: &EngineFacts,
) -> Result<(), PlanError> {
    let instead = if engine.targetless { "" } else { ", or --engine io_uring or libaio" };
    check_depth(spec.depth.unwrap_or(1), engine.name, engine.asynchronous, engine.depth_max, instead)?;
    let needed = [
        (mix.read_percent > 0, "read"),
        (mix.write_percent > 0, "write"),
        (mix.discard_percent > 0, "discard"),
        (operation == Operation::Nop, "nop"),
        (spec.fsync.is_some() || spec.end_fsync == Some(true), "sync"),
    ];
    match needed.iter().find(|(used, class)| *used && !engine.classes.contains(class)) {
        Some((_, class)) => {
            refuse(format!("engine {} has no {class}: it does {}", engine.name, engine.classes.join(", ")))
        }
        None => Ok(()),
    }
}

/// Refuses a depth that an engine cannot have; `instead` is what would have it, besides threads.
///
/// # Errors
/// Such a depth, with what would have it.
pub fn check_depth(
    depth: u32,
    engine: &str,
    asynchronous: bool,
    depth_max: u32,
    instead: &str,
) -> Result<(), PlanError> {
    if depth > 1 && !asynchronous {
        return refuse(format!(
            "engine {engine} runs one operation at a time, so --depth {depth} cannot be: use --threads {depth}{instead}"
        ));
    }
    if depth > depth_max {
        return refuse(format!("engine {engine} takes a depth of at most {depth_max}, not {depth}"));
    }
    Ok(())
}

pub(super) fn check_direct(
    targets: &[TargetPlan],
    sizes: &ClassSizes,
    align_bytes: u64,
) -> Result<(), PlanError> {
    for target in targets {
        let need = target.direct_alignment_bytes;
        if matches!(target.kind, TargetKind::CharacterDevice) {
            continue;
        }
        if need == 0 {
            return refuse(format!("{} does not take direct I/O: leave out --direct", target.path));
        }
        let parts =
            [("block size", sizes.granularity()), ("offset", target.offset_bytes), ("--align", align_bytes)];
        if let Some((what, value)) = parts.iter().find(|(_, value)| !value.is_multiple_of(need)) {
            return refuse(format!(
                "{what} {} is not aligned for direct I/O on {}: use multiples of {need} bytes",
                Amount(*value),
                target.path
            ));
        }
    }
    Ok(())
}

/// Blocks of several sizes at random places reach into the part of the next worker, unless they fit between each other.
pub(super) fn check_one_writer(pattern: &Pattern, is_shared: bool) -> Result<(), PlanError> {
    if is_shared && pattern.is_random() && *pattern != Pattern::Fitted {
        return refuse(
            "--verify needs each block to have one writer, and blocks of several sizes reach into the part of another thread: use --pattern fitted, or --threads 1"
                .to_owned(),
        );
    }
    Ok(())
}

/// Refuses a map of visited bytes that is larger than 1 GiB.
pub(super) fn check_fitted(
    pattern: &Pattern,
    sizes: &ClassSizes,
    targets: &[TargetPlan],
) -> Result<(), PlanError> {
    const UNITS_MAX: u64 = 1 << 33;
    let bytes: u64 = targets.iter().map(|target| target.size_bytes).fold(0, u64::saturating_add);
    if *pattern == Pattern::Fitted && sizes.single().is_none() && bytes / sizes.granularity() > UNITS_MAX {
        return refuse(format!(
            "--pattern fitted follows at most {UNITS_MAX} parts of {}: use a smaller --size, larger blocks, or --pattern permutation",
            Amount(sizes.granularity())
        ));
    }
    Ok(())
}

pub(super) fn check_share(
    targets: &[TargetPlan],
    sizes: &ClassSizes,
    share: Share,
    threads: u32,
) -> Result<(), PlanError> {
    let blocks: u64 = targets.iter().map(|target| target.size_bytes / sizes.max()).sum();
    if share == Share::Partition
        && blocks < u64::from(threads)
        && !targets.iter().all(|t| t.kind == TargetKind::Memory)
    {
        return refuse(format!(
            "{threads} threads cannot share {blocks} blocks: use fewer threads, a larger --size, or --share whole"
        ));
    }
    Ok(())
}
