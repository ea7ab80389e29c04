//! From a spec to phases of the network layer.

use std::sync::Arc;

use driver::Error;
use rpc::group::Group;
use workload::network::{EndpointPlan, Payload};
use workload::plan::{PhasePlan, expand_ladder, message_sizes, resolve_network};
use workload::random::derive_seed;
use workload::spec::Spec;

use super::Reach;
use crate::planning::Planned;

/// The phases of a spec, without their places in the run: one for each pair of message sizes, and for each step of a ladder. `number`
/// is that of the first phase in the run.
///
/// # Errors
/// A spec that asks for the impossible.
pub(crate) fn phases(spec: &Spec, reach: &Reach, number: usize, seed: u64) -> Result<Vec<Planned>, Error> {
    let mut phases = Vec::new();
    for step in expand_ladder(spec) {
        for sizes in message_sizes(&step) {
            let own = derive_seed(seed, &[(number + phases.len()) as u64]);
            phases.push(phase(&step, sizes, reach, own)?);
        }
    }
    Ok(phases)
}

/// One phase: the first stage of the first request, for the caller to place.
///
/// # Errors
/// A spec that asks for the impossible.
pub(crate) fn phase(
    spec: &Spec,
    sizes: (Payload, Payload),
    reach: &Reach,
    seed: u64,
) -> Result<Planned, Error> {
    let mut spec = spec.clone();
    if spec.cores.is_none() && spec.numa.is_none() && !reach.worker_cores.is_empty() {
        spec.cores = Some(reach.worker_cores.clone());
    }
    if spec.network.bind_device.is_none() {
        spec.network.bind_device.clone_from(&reach.bind_device);
    }
    let plan =
        resolve_network(&spec, sizes, &reach.facts, seed).map_err(|error| Error::usage("plan", error.0))?;
    // Masters have processors of their own.
    if plan.masters.is_empty() {
        runner::check_placement(&plan.load)?;
    }
    let capabilities = super::driver_of(&plan.engine)?.capabilities;
    Ok(Planned {
        access: Some(Arc::clone(&reach.access)),
        ..Planned::of(PhasePlan::new(plan), &capabilities)
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
