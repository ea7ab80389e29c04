//! From a spec to phases.

use std::any::Any;
use std::sync::Arc;

use driver::Error;
use layer::{Phase, Planning};
use rpc::EndpointPlan;
use rpc::group::Group;
use workload::plan::{PhasePlan, expand_ladder};
use workload::spec::Spec;

use super::reach::Reach;
use crate::plan::{message_sizes, resolve_network};
use crate::{NetworkSpec, Payload};

/// The phases of a spec: one for each pair of message sizes, and for each step of a ladder.
///
/// # Errors
/// A spec that asks for the impossible.
pub(super) fn phases(spec: &Spec, reach: &Reach, planning: &Planning<'_>) -> Result<Vec<Phase>, Error> {
    let mut phases = Vec::new();
    for step in expand_ladder(spec) {
        for sizes in message_sizes(&step) {
            phases.push(phase(&step, sizes, reach, planning.seed_of(phases.len()))?);
        }
    }
    Ok(phases)
}

fn phase(spec: &Spec, sizes: (Payload, Payload), reach: &Reach, seed: u64) -> Result<Phase, Error> {
    let mut spec = spec.clone();
    if spec.cores.is_none() && spec.numa.is_none() && !reach.worker_cores.is_empty() {
        spec.cores = Some(reach.worker_cores.clone());
    }
    if reach.bind_device.is_some() {
        let bound = &mut spec.own.get_mut::<NetworkSpec>().bind_device;
        *bound = bound.take().or_else(|| reach.bind_device.clone());
    }
    let plan =
        resolve_network(&spec, sizes, &reach.facts, seed).map_err(|error| Error::usage("plan", error.0))?;
    // Masters have processors of their own.
    if plan.masters.is_empty() {
        runner::check_placement(&plan.load)?;
    }
    let capabilities = super::driver_of(&plan.engine)?.capabilities;
    Ok(Phase {
        control: reach.control.clone(),
        state: Some(Arc::clone(&reach.access) as Arc<dyn Any + Send + Sync>),
        ..Phase::new(PhasePlan::new(plan), &capabilities)
    })
}

/// Tag of an engine's first target.
pub(super) const FIRST_TARGET: u32 = 2;

/// Every target of every rank; the first tag of ranks that do not say what they have.
pub(super) fn targets_of(group: &Group) -> Result<Vec<EndpointPlan>, Error> {
    let mut endpoints = Vec::new();
    for (&number, rank) in &group.ranks {
        let tags = match rank.targets {
            Some(targets) if targets > 0 => FIRST_TARGET..FIRST_TARGET + targets,
            _ => 0..1,
        };
        for tag in tags {
            endpoints.push(group.endpoint(number, tag)?);
        }
    }
    Ok(endpoints)
}
