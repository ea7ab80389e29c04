//! Checks of options that do not go together.

use workload::access::Pattern;
use workload::class_sizes::ClassSizes;
use workload::plan::{Amount, PlanError, check_depth, refuse};
use workload::spec::{Operation, Share, Spec};
use workload::target::{TargetKind, TargetPlan};

use super::MixPlan;
use super::resolve::EngineFacts;
use crate::spec;

/// Refuses options that mean nothing without another one, or beside it.
pub(super) fn check_pairs(spec: &Spec) -> Result<(), PlanError> {
    let own = spec::of(spec);
    let syncs = own.fsync.is_some() || own.end_fsync;
    let wrong = [
        (
            own.sizes.is_some() && own.size.is_some(),
            "--size and --sizes exclude each other: give one of them",
        ),
        (own.sync_call.is_some() && !syncs, "--sync-call requires --fsync or --end-fsync: add one of them"),
        (own.verify_run.is_some() && !spec.verify, "--verify-run requires --verify: add it"),
        (own.verify_pattern.is_some() && !spec.verify, "--verify-pattern requires --verify: add it"),
        (
            own.verify_pattern.is_some() && own.verify_interval.is_some(),
            "--verify-interval is for headers, and --verify-pattern blocks have none: give one of them",
        ),
        (own.verify_backlog.is_some() && !spec.verify, "--verify-backlog requires --verify: add it"),
        (own.verify_dump.is_some() && !spec.verify, "--verify-dump requires --verify: add it"),
        (own.no_read_back && !spec.verify, "--no-read-back requires --verify: add it"),
        (
            spec.control.ends_when_full
                && (own.operations != [Operation::Write]
                    || spec.verify
                    || spec.threads.unwrap_or(1) > 1
                    || spec.place.is_some()),
            "--end-when-full requires --op write with one thread on one host, without --verify",
        ),
    ];
    match wrong.into_iter().find(|(is_wrong, _)| *is_wrong) {
        Some((_, message)) => refuse(message.to_owned()),
        None => workload::plan::check_pairs(spec),
    }
}

pub(super) fn check_engine(
    spec: &Spec,
    operation: Operation,
    mix: MixPlan,
    engine: &EngineFacts,
) -> Result<(), PlanError> {
    let own = spec::of(spec);
    let instead = if engine.targetless { "" } else { ", or --engine io_uring or libaio" };
    check_depth(spec.depth.unwrap_or(1), engine.name, engine.asynchronous, engine.depth_max, instead)?;
    let needed = [
        (mix.read_percent > 0, "read"),
        (mix.write_percent > 0, "write"),
        (mix.discard_percent > 0, "discard"),
        (operation == Operation::Nop, "nop"),
        (own.fsync.is_some() || own.end_fsync, "sync"),
    ];
    match needed.iter().find(|(used, class)| *used && !engine.classes.contains(class)) {
        Some((_, class)) => refuse(format!(
            "engine {} has no {class}: it supports {}",
            engine.name,
            engine.classes.join(", ")
        )),
        None => Ok(()),
    }
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
            return refuse(format!("{} does not support direct I/O: leave out --direct", target.path));
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
            "--verify needs one writer per block, and blocks of several sizes can cross into the part of another thread: use --pattern fitted, or --threads 1"
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
            "--pattern fitted tracks at most {UNITS_MAX} parts of {}: use a smaller --size, larger blocks, or --pattern permutation",
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
