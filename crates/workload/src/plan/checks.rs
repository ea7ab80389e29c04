//! Checks of options that do not go together.

use super::error::{PlanError, refuse};
use crate::spec::Spec;

/// Refuses options that mean nothing without another one, or beside it.
///
/// # Errors
/// The first such pair, with what to do instead.
pub fn check_pairs(spec: &Spec) -> Result<(), PlanError> {
    let wrong = [
        (
            spec.control.flow.is_some() && spec.think_time.is_some(),
            "--flow already paces the load: leave out --think-time",
        ),
        (
            spec.control.flow_group.is_some() && spec.control.flow.is_none(),
            "--flow-group requires --flow: add it",
        ),
        (
            spec.control.latency_target.is_some()
                && (is_open_loop(spec) || spec.think_time.is_some() || spec.control.flow.is_some()),
            "--latency-target requires a closed loop: leave out --rate, --think-time and --flow",
        ),
        (
            spec.control.rate_cycle_ns.is_some()
                && spec.control.rate_min.is_none()
                && spec.control.rate_bytes_min.is_none(),
            "--rate-cycle requires --rate-min or --rate-bytes-min: add one of them",
        ),
        (spec.cores_policy.is_some() && spec.cores.is_none(), "--cores-policy requires --cores: add it"),
    ];
    match wrong.into_iter().chain(wrong_pauses(spec)).find(|(is_wrong, _)| *is_wrong) {
        Some((_, message)) => refuse(message.to_owned()),
        None => Ok(()),
    }
}

/// Whether the load is an open loop: operations start at a rate.
pub(super) fn is_open_loop(spec: &Spec) -> bool {
    spec.rate.is_some() || spec.rate_percent.is_some()
}

/// Options of pauses that do not go together, and whether they were given so.
fn wrong_pauses(spec: &Spec) -> [(bool, &'static str); 4] {
    [
        (
            (spec.think_after.is_some() || spec.think_spin.is_some()) && spec.think_time.is_none(),
            "--think-after and --think-spin require --think-time: add it",
        ),
        (
            spec.think_spin.zip(spec.think_time).is_some_and(|(spin, pause)| spin.ns() > pause.ns()),
            "--think-spin cannot be longer than --think-time: use a shorter --think-spin",
        ),
        (
            spec.no_catch_up && (spec.think_time.is_none() || !is_open_loop(spec)),
            "--no-catch-up requires --rate and --think-time: give both",
        ),
        (
            spec.think_blocks.is_some() && spec.think_time.is_none(),
            "--think-blocks requires --think-time: add it",
        ),
    ]
}

/// Refuses a depth that an engine cannot have; `instead` is what would have it, besides threads.
///
/// # Errors
/// Such a depth.
pub fn check_depth(
    depth: u32,
    engine: &str,
    asynchronous: bool,
    depth_max: u32,
    instead: &str,
) -> Result<(), PlanError> {
    if depth > 1 && !asynchronous {
        return refuse(format!(
            "engine {engine} runs one operation at a time and does not support --depth {depth}: use --threads {depth}{instead}"
        ));
    }
    if depth > depth_max {
        return refuse(format!("engine {engine} supports a depth of at most {depth_max}, not {depth}"));
    }
    Ok(())
}
