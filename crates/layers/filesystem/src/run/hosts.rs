//! Phases of a run that are not all of the same hosts: what one of them works on another has made.

use std::sync::Arc;

use workload::plan::{HostPlace, LimitPlan, PhasePlan};
use workload::spec::Spec;

use super::Key;
use crate::plan::{FsPlan, RankShift};
use crate::progress::Progress;

/// Whether a plan of a spec works on what other hosts have made, or other plans may on what it makes.
pub(super) fn reads_others(plan: &FsPlan, spec: &Spec) -> bool {
    plan.rank_shift != RankShift::By(0)
        || spec.rotate_hosts.is_some()
        || plan.load.place.is_some_and(HostPlace::is_subset)
}

/// The progress of what a plan works on, where it is known: that of its own set, or of one that holds it.
pub(super) fn progress_of(known: &[(Key, Arc<Progress>)], plan: &FsPlan) -> Option<Arc<Progress>> {
    let of_targets = || known.iter().filter(|((targets, _), _)| *targets == plan.targets);
    let own = of_targets().find(|((_, set), _)| *set == plan.set);
    // Which worker has how much of a list depends on how many there are.
    let is_held = |set| plan.set.listed.is_none() && plan.is_in_set(set);
    let found = own.or_else(|| of_targets().find(|((_, set), _)| is_held(set)));
    found.map(|(_, progress)| Arc::clone(progress))
}

/// Why a phase cannot be of more hosts than one of the plans before it: it works on what that has made, as far as that came.
pub(super) fn keeps(plan: &PhasePlan, all: &[&PhasePlan]) -> Option<String> {
    let own: &FsPlan = plan.of()?;
    let before = all.iter().take_while(|other| !std::ptr::eq(**other, plan));
    let hosts = |plan: &FsPlan| plan.load.place.map_or(1, |place| place.hosts);
    let is_limited = |made: &FsPlan| made.load.limit != LimitPlan::default() || made.wear_out_ns.is_some();
    let is_short = |made: &&FsPlan| {
        made.operation.makes() && is_limited(made) && own.is_within(made) && hosts(own) > hosts(made)
    };
    let made = before.filter_map(|plan| plan.of::<FsPlan>()).find(is_short)?;
    (!own.operation.makes() && own.has_guests()).then(|| {
        format!(
            "{} creates as many files as its limit allows, and hosts that do not take part do not know the number",
            made.name
        )
    })
}
