//! A plan that another process resolved. It is believed as little as what is typed: whoever sent it may be of another mind, or broken.

use workload::plan::{PlanError, refuse};

use super::resolve::{check_memory, slots_bytes};
use super::{NetworkPlan, Payload, PayloadKind};
use crate::grammar::{ENDPOINTS_MAX, PAYLOAD_BYTES_MAX};

/// Threads that a plan may ask for, as the option says.
const THREADS_MAX: u32 = 4096;
/// Connections of a worker to one endpoint, as the option says.
const CONNECTIONS_MAX: u32 = 1024;
/// Depth and pipeline, as the options say.
const DEPTH_MAX: u32 = 65_536;
/// Processors or NUMA nodes in a list.
const PLACES_MAX: usize = 4096;

/// Checks a plan that came from elsewhere by the same limits that hold for one that is resolved here, before anything is allocated by
/// its numbers. `memory_bytes` is the memory of this machine, where it is known. The result is how much its buffers take, in bytes.
///
/// # Errors
/// The first number that cannot be, and what is accepted.
pub(crate) fn check_received(plan: &NetworkPlan, memory_bytes: Option<u64>) -> Result<u64, PlanError> {
    check_endpoints(plan)?;
    check_payload("request", plan.request)?;
    check_payload("reply", plan.reply)?;
    let load = &plan.load;
    let ranges = [
        ("threads", u64::from(load.threads), 1, THREADS_MAX.into()),
        ("depth", load.depth.into(), 1, DEPTH_MAX.into()),
        ("batch", load.batch.into(), 1, load.depth.into()),
        ("batch_min", load.batch_min.into(), 1, load.depth.into()),
        ("batch_max", load.batch_max.into(), load.batch_min.into(), load.depth.into()),
        ("connections", plan.connections.into(), 1, CONNECTIONS_MAX.into()),
        ("pipeline", plan.pipeline.into(), 1, DEPTH_MAX.into()),
        ("timeout_ns", plan.timeout_ns, 1, u64::MAX),
        ("interval_ns", load.interval_ns, 1, u64::MAX),
        ("number of CPUs", load.cores.len() as u64, 0, PLACES_MAX as u64),
        ("number of NUMA nodes", load.numa.len() as u64, 0, PLACES_MAX as u64),
    ];
    for (name, value, least, most) in ranges {
        if !(least..=most).contains(&value) {
            return refuse(format!("{name} {value} in a plan: accepted: {least} to {most}"));
        }
    }
    if let Some(arrivals) = load.arrivals
        && !(arrivals.rate_per_second.is_finite() && arrivals.rate_per_second > 0.0)
    {
        return refuse(format!("a rate of {}: accepted: more than 0", arrivals.rate_per_second));
    }
    check_memory(plan, memory_bytes)?;
    Ok(slots_bytes(plan).1)
}

fn check_endpoints(plan: &NetworkPlan) -> Result<(), PlanError> {
    let count = plan.endpoints.len();
    if count == 0 || count as u64 > ENDPOINTS_MAX || plan.masters.len() as u64 > ENDPOINTS_MAX {
        return refuse(format!(
            "{count} endpoints and {} masters: accepted: 1 to {ENDPOINTS_MAX} and up to {ENDPOINTS_MAX}",
            plan.masters.len()
        ));
    }
    let is_wrong = |endpoints: &[u32]| {
        endpoints.is_empty()
            || endpoints.len() as u64 > ENDPOINTS_MAX
            || endpoints.iter().any(|&endpoint| endpoint as usize >= count)
    };
    match plan.masters.iter().position(|master| is_wrong(&master.endpoints)) {
        Some(number) => refuse(format!("master {number} sends to no endpoints or too many of {count}")),
        None => Ok(()),
    }
}

fn check_payload(name: &str, payload: Payload) -> Result<(), PlanError> {
    if payload.size_bytes > PAYLOAD_BYTES_MAX {
        return refuse(format!(
            "a {name} of {} bytes: accepted: up to {PAYLOAD_BYTES_MAX}",
            payload.size_bytes
        ));
    }
    if payload.kind == PayloadKind::Empty && payload.size_bytes > 0 {
        return refuse(format!("an empty {name} of {} bytes: accepted: 0", payload.size_bytes));
    }
    Ok(())
}
