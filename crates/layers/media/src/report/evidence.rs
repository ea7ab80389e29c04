//! Evidence on files and devices, for the doubts about them.

use host::TargetEnvironment;
use report::doubts::Evidence;
use workload::plan::MediaPlan;
use workload::target::{TargetKind, TargetPlan};

use super::place;

/// Questions about the targets of a phase.
pub(super) trait StorageEvidence<'a> {
    /// Targets that are files, devices or images.
    fn targets(&self) -> impl Iterator<Item = &'a TargetPlan>;

    /// Facts about the place of a target, where known.
    fn place_of(&self, target: &TargetPlan) -> Option<&'a TargetEnvironment>;

    /// Whether it measures files or devices, and not strata, its own memory or a sink of the kernel.
    fn on_storage(&self) -> bool {
        self.targets().next().is_some()
    }

    /// Whether any of them is more than memory that looks like a file or a device.
    fn on_drives(&self) -> bool {
        self.targets().any(|target| self.place_of(target).and_then(place::memory_behind).is_none())
    }

    /// Whether every file is mapped past the page cache.
    fn is_dax(&self) -> bool;

    /// Whether operations go through the page cache of a drive's file system.
    fn through_page_cache(&self) -> bool;
}

impl<'a> StorageEvidence<'a> for Evidence<'a> {
    fn targets(&self) -> impl Iterator<Item = &'a TargetPlan> {
        self.plan.targets().iter().filter(|target| target.kind.is_storage())
    }

    fn place_of(&self, target: &TargetPlan) -> Option<&'a TargetEnvironment> {
        self.environment.targets.iter().find(|place| place.path.as_os_str() == target.path.as_str())
    }

    fn is_dax(&self) -> bool {
        self.observations.range.dax_fraction.is_some_and(|dax| dax >= 1.0)
    }

    fn through_page_cache(&self) -> bool {
        let is_past_it = self.targets().all(|target| target.kind == TargetKind::Image);
        let is_direct = self.plan.of().is_none_or(|plan: &MediaPlan| plan.options.direct);
        !is_past_it && self.on_drives() && !self.is_dax() && !is_direct
    }
}
