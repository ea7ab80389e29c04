//! From a spec to phases.

use std::any::Any;
use std::sync::Arc;

use driver::Error;
use layer::Phase;
use workload::plan::{PhasePlan, PlanError};
use workload::spec::Spec;

use super::Store;
use crate::plan::{
    ObjectPhase, ObjectPlan, ObjectSpec, fill_phases, needs_fill, object_phases, resolve_object,
};

/// A plan that cannot be, as the command says it.
pub fn usage(error: PlanError) -> Error {
    Error::usage("plan", error.0)
}

/// The phase of a spec that runs at the same time as others.
///
/// # Errors
/// Nothing to do, or several phases.
pub fn only_phase(spec: &Spec) -> Result<ObjectPhase, Error> {
    let mut phases = object_phases(spec).map_err(usage)?;
    match (phases.pop(), phases.len()) {
        (Some(phase), 0) => Ok(phase),
        _ => {
            Err(Error::usage("plan", "a phase that runs at the same time as another must have one operation"))
        }
    }
}

/// Whether the target of a spec names the container too.
pub fn names_container(spec: &Spec) -> bool {
    let target = spec.targets.first().map_or("", String::as_str);
    let parts = match target.split_once("://") {
        Some((scheme, rest)) if scheme.starts_with("engine") => rest.split('/').nth(2),
        Some(("daos", rest)) => rest.split('/').nth(1),
        _ => None,
    };
    parts.is_some_and(|label| !label.is_empty())
}

/// One phase.
///
/// # Errors
/// A spec that asks for the impossible.
pub fn one(spec: &Spec, phase: &ObjectPhase, store: &Arc<Store>, seed: u64) -> Result<Phase, Error> {
    let mut plan = resolve_object(spec, phase, &store.facts(), seed).map_err(usage)?;
    store.settle(spec, &mut plan);
    runner::check_placement(&plan.load)?;
    crate::check_plan(&plan)?;
    store.check(&plan)?;
    let capabilities = crate::backend::driver_of(&plan.target)?.capabilities;
    let own = ObjectSpec::of(spec);
    Ok(Phase {
        state: Some(Arc::clone(store) as Arc<dyn Any + Send + Sync>),
        // A climb fills its steps itself: each may need more than the one before.
        fills: !own.no_fill && own.snapshot.is_none() && store.facts().engine != "null",
        ..Phase::new(PhasePlan::new(plan), &capabilities)
    })
}

/// The phases that store what a phase needs and none of the `earlier` ones has stored.
#[must_use]
pub fn fills(planned: &Phase, earlier: &[ObjectPlan]) -> Vec<Phase> {
    let Some(plan) = planned.plan.of::<ObjectPlan>().filter(|plan| needs_fill(plan, earlier)) else {
        return Vec::new();
    };
    let fills = fill_phases(plan).into_iter();
    fills.map(|fill| Phase { plan: PhasePlan::new(fill), ..planned.clone() }).collect()
}
