//! Targets of a phase as evidence: files, devices and images, and their places.

use crate::plan::MediaPlan;
use host::TargetEnvironment;
use report::doubts::Evidence;
use workload::target::{TargetKind, TargetPlan};

use super::place;

/// Targets that are storage, and not strata, its own memory or a sink of the kernel.
pub(super) fn targets<'a>(evidence: &Evidence<'a>) -> impl Iterator<Item = &'a TargetPlan> {
    evidence.plan.targets().iter().filter(|target| target.kind.is_storage())
}

/// Facts about the place of a target, where known.
pub(super) fn place_of<'a>(evidence: &Evidence<'a>, target: &TargetPlan) -> Option<&'a TargetEnvironment> {
    evidence.environment.targets.iter().find(|place| place.path.as_os_str() == target.path.as_str())
}

/// Whether any target is more than memory that looks like a file or a device.
pub(super) fn on_drives(evidence: &Evidence<'_>) -> bool {
    targets(evidence).any(|target| place_of(evidence, target).and_then(place::memory_behind).is_none())
}

/// Whether operations go through the page cache of a drive's file system.
pub(super) fn through_page_cache(evidence: &Evidence<'_>) -> bool {
    let is_past_it = targets(evidence).all(|target| target.kind == TargetKind::Image);
    let is_direct = evidence.plan.of().is_none_or(|plan: &MediaPlan| plan.options.direct);
    !is_past_it && on_drives(evidence) && !is_dax(evidence) && !is_direct
}

/// Whether every file is mapped past the page cache.
pub(super) fn is_dax(evidence: &Evidence<'_>) -> bool {
    evidence.observations.range.dax_fraction.is_some_and(|dax| dax >= 1.0)
}
