//! From a spec to phases of the object layer.

use std::sync::Arc;

use driver::Error;
use workload::object::ObjectPlan;
use workload::plan::{
    ObjectPhase, PhasePlan, PlanError, expand_ladder, fill_phases, needs_fill, object_phases, resolve_object,
};
use workload::random::derive_seed;
use workload::spec::Spec;

use super::{Store, Stores};
use crate::planning::Planned;
use crate::session::Session;

/// A plan that cannot be, as the command says it.
pub(crate) fn usage(error: PlanError) -> Error {
    Error::usage("plan", error.0)
}

/// The phases of a spec, without their places in the run, each after what must be stored before it. `before` are the phases of the run so
/// far.
///
/// # Errors
/// A spec that asks for the impossible.
pub(crate) fn phases(
    spec: &Spec,
    stores: &Stores,
    before: &[Planned],
    seed: u64,
) -> Result<Vec<Planned>, Error> {
    let store = stores.of(spec)?;
    let mut phases: Vec<Planned> = Vec::new();
    for step in expand_ladder(spec) {
        for phase in object_phases(&step).map_err(usage)? {
            let number = before.len() + phases.len();
            let planned = one(&step, &phase, store, derive_seed(seed, &[number as u64]))?;
            if planned.fills {
                let earlier: Vec<ObjectPlan> = before.iter().chain(&phases).filter_map(plan_of).collect();
                phases.extend(fills(&planned, &earlier));
            }
            phases.push(planned);
        }
    }
    Ok(phases)
}

/// The phase of a spec that runs at the same time as others.
///
/// # Errors
/// Nothing to do, or several phases.
pub(crate) fn only_phase(spec: &Spec) -> Result<ObjectPhase, Error> {
    let mut phases = object_phases(spec).map_err(usage)?;
    match (phases.pop(), phases.len()) {
        (Some(phase), 0) => Ok(phase),
        _ => Err(Error::usage("plan", "a phase that runs at the same time as another has one operation")),
    }
}

/// Whether the target of a spec names the container too.
pub(crate) fn names_container(spec: &Spec) -> bool {
    let target = spec.targets.first().map_or("", String::as_str);
    let parts = match target.split_once("://") {
        Some((scheme, rest)) if scheme.starts_with("engine") => rest.split('/').nth(2),
        Some(("daos", rest)) => rest.split('/').nth(1),
        _ => None,
    };
    parts.is_some_and(|label| !label.is_empty())
}

/// One phase: the first stage of the first request, for the caller to place.
///
/// # Errors
/// A spec that asks for the impossible.
pub(crate) fn one(spec: &Spec, phase: &ObjectPhase, store: &Arc<Store>, seed: u64) -> Result<Planned, Error> {
    let mut plan = resolve_object(spec, phase, &store.facts(), seed).map_err(usage)?;
    store.settle(spec, &mut plan);
    runner::check_placement(&plan.load)?;
    object::check_plan(&plan)?;
    store.check(&plan)?;
    let capabilities = object::backend::driver_of(&plan.target)?.capabilities;
    Ok(Planned {
        store: Some(Arc::clone(store)),
        // A climb fills its steps itself: each may need more than the one before.
        fills: !spec.object.no_fill && spec.object.snapshot.is_none() && store.facts().engine != "null",
        ..Planned::of(PhasePlan::new(plan), &capabilities)
    })
}

/// Runs the phases that store what a phase needs and no phase of the run has stored.
///
/// # Errors
/// When one of them failed.
pub(crate) fn run_fills(session: &mut Session, planned: &Planned) -> Result<(), Error> {
    let earlier: Vec<ObjectPlan> =
        session.record.phases.iter().filter_map(|phase| phase.plan.object().cloned()).collect();
    for fill in fills(planned, &earlier) {
        let at = session.run_phase(&fill)?;
        if let Some(failure) = session.record.phases[at].failure.clone() {
            return Err(Error::new(driver::ErrorKind::Run, "fill", failure));
        }
    }
    Ok(())
}

/// The plan of a phase that measures objects.
pub(crate) fn plan_of(planned: &Planned) -> Option<ObjectPlan> {
    planned.plan.object().cloned()
}

/// The phases that store what a phase needs and none of the `earlier` ones has stored.
pub(crate) fn fills(planned: &Planned, earlier: &[ObjectPlan]) -> Vec<Planned> {
    let Some(plan) = planned.plan.object().filter(|plan| needs_fill(plan, earlier)) else {
        return Vec::new();
    };
    let fills = fill_phases(plan).into_iter();
    fills.map(|fill| Planned { plan: PhasePlan::new(fill), ..planned.clone() }).collect()
}
