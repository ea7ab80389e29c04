//! From what was typed to RPCs: the plan of a phase of the network layer.

use gpu::GpuPath;
use rpc::{EndpointPlan, InterfacePlan, Poll, SocketPlan};
use units::ByteSize;
use workload::engine::Feature;
use workload::plan::{
    Amount, MasterPlan, PlanError, UNLIMITED_TIME_NS, buffer_bytes_max, check_depth, check_pairs, load,
    refuse,
};
use workload::spec::{OnError, Share, Spec};

use super::{EndpointOrder, NetworkPlan, Payload, Traffic};
use crate::spec;

/// RPCs in flight of all workers of a master together, where nothing is said (self_test's own).
const INFLIGHT: u32 = 16;
/// Longest wait for one RPC where nothing is said. CaRT waits 60 s; half of that still tells a slow server from a dead one.
const TIMEOUT_NS: u64 = 30_000_000_000;
/// Pairs of a worker and one of its endpoints in one process: each has a histogram.
const PARTS_MAX: u64 = 16_384;
/// Buffers of a slot begin at pages.
const PAGE_BYTES: u64 = 4096;

/// Facts of the network that planning needs.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct NetworkFacts {
    /// How endpoints are reached: `tcp`, `ofi+tcp`, `ofi+shm`, `null`, ...
    pub provider: String,
    /// Name of the driver: `tcp`, `ofi` or `null`.
    pub engine: String,
    /// Whether the driver takes a depth above 1.
    pub asynchronous: bool,
    /// Its largest depth.
    pub depth_max: u32,
    /// Where RPCs go.
    pub endpoints: Vec<EndpointPlan>,
    /// Who drives, without their lists of endpoints; this process when empty.
    pub masters: Vec<MasterPlan>,
    /// The interface that the load goes through, where it could be told.
    pub interface: Option<InterfacePlan>,
    /// Group of the endpoints, where they were looked up by it.
    pub group: Option<String>,
    /// Memory of the machine that drives, in bytes, where it is known: buffers get at most half of it.
    pub memory_bytes: Option<u64>,
}

/// The message sizes of a spec, one phase each; an empty RPC where none are given.
#[must_use]
pub(crate) fn message_sizes(spec: &Spec) -> Vec<(Payload, Payload)> {
    let own = spec::of(spec);
    if own.message_sizes.is_empty() {
        return vec![(Payload::EMPTY, Payload::EMPTY)];
    }
    own.message_sizes.clone()
}

/// Endpoints of one worker, as indexes into those of the plan. `master` is the index of the master that it works for; none where this
/// process drives.
///
/// With [`Share::Whole`] it has all of its master's. With [`Share::Partition`] they are dealt out: worker w of n has those with
/// the places w, w + n, ...; where there are fewer endpoints than workers, worker w has that with place w modulo their number, as
/// connections are dealt out to servers.
#[must_use]
pub(crate) fn worker_endpoints(plan: &NetworkPlan, master: Option<usize>, worker: u32) -> Vec<u32> {
    deal(plan, master, plan.load.worker(worker))
}

/// The same of the worker with this number among those of all hosts that share the endpoints.
fn deal(plan: &NetworkPlan, master: Option<usize>, worker: u32) -> Vec<u32> {
    let of_master = master.and_then(|master| plan.masters.get(master));
    let all: Vec<u32> = match of_master {
        Some(master) => master.endpoints.clone(),
        None => (0..plan.endpoints.len() as u32).collect(),
    };
    let (worker, threads) = (worker as usize, plan.load.workers().max(1) as usize);
    match plan.share {
        Share::Whole => all,
        Share::Partition if all.is_empty() => all,
        Share::Partition if all.len() < threads => vec![all[worker % all.len()]],
        Share::Partition => all.into_iter().skip(worker).step_by(threads).collect(),
    }
}

/// Resolves one pair of message sizes (request and reply) into a phase.
///
/// Limits, the rate and the number in flight hold for each master; without masters, for this process.
///
/// # Errors
/// Whatever the request asks for that cannot be.
pub(crate) fn resolve_network(
    spec: &Spec,
    (request, reply): (Payload, Payload),
    facts: &NetworkFacts,
    seed: u64,
) -> Result<NetworkPlan, PlanError> {
    if facts.endpoints.is_empty() {
        return refuse(
            "no endpoint: use tcp://HOST:PORT, loopback: or null:, or --endpoint RANKS:TAGS of a group"
                .to_owned(),
        );
    }
    check_words(spec, request, reply)?;
    let own = spec::of(spec);
    let share = spec.share.unwrap_or(Share::Whole);
    let mut plan = NetworkPlan {
        name: spec.name.clone().unwrap_or_else(|| format!("{request} {reply}")),
        engine: facts.engine.clone(),
        provider: facts.provider.clone(),
        group: facts.group.clone(),
        endpoints: facts.endpoints.clone(),
        masters: directed(facts, own.traffic)?,
        traffic: own.traffic.unwrap_or_default(),
        order: EndpointOrder::default(),
        share,
        request,
        reply,
        connections: own.connections.unwrap_or(1),
        pipeline: 0,
        align: own.buffer_align,
        verify: spec.verify,
        memory: own.memory.plan(None).map_err(PlanError)?,
        poll: own.poll.unwrap_or(Poll::Adaptive),
        timeout_ns: own.timeout.map_or(TIMEOUT_NS, |timeout| timeout.ns()),
        socket: sockets(spec),
        interface: facts.interface.clone(),
        // Its depth depends on the endpoints of a worker, and they on its threads.
        load: load(spec, u32::MAX, Some(UNLIMITED_TIME_NS), seed)?,
    };
    let depth = depth(spec, &mut plan)?;
    check_depth(depth, &plan.engine, facts.asynchronous, facts.depth_max, "")?;
    plan.load = load(spec, depth, Some(UNLIMITED_TIME_NS), seed)?;
    // One endpoint that fails is counted, and the others go on.
    plan.load.on_error = spec.on_error.unwrap_or(OnError::Continue);
    plan.pipeline = pipeline(spec, &plan)?;
    if !plan.memory.is_host() && !plan.masters.is_empty() {
        return refuse(
            "--memory applies to payloads of this process: leave out --master, or --memory".to_owned(),
        );
    }
    check_path(&plan)?;
    check_memory(&plan, facts.memory_bytes)?;
    Ok(plan)
}

/// Refuses RDMA from and to a device of what does not go by it.
fn check_path(plan: &NetworkPlan) -> Result<(), PlanError> {
    if plan.memory.gpu().is_none_or(|gpu| gpu.path != GpuPath::Rdma) {
        return Ok(());
    }
    if plan.engine != "ofi" {
        return refuse(format!(
            "--gpu-path rdma requires a fabric, but {} is not one: use --provider ofi+verbs or another ofi+NAME, or --gpu-path staged",
            plan.provider
        ));
    }
    match [plan.request, plan.reply].iter().find(|payload| payload.iov_bytes() > 0) {
        Some(payload) => refuse(format!(
            "{payload} travels in the message, but --gpu-path rdma moves only bulk: use b{}, or --gpu-path staged",
            ByteSize(payload.size_bytes)
        )),
        None => Ok(()),
    }
}

/// Options that mean nothing here, or not beside each other.
fn check_words(spec: &Spec, request: Payload, reply: Payload) -> Result<(), PlanError> {
    check_pairs(spec)?;
    let own = spec::of(spec);
    let said = [spec.depth.is_some(), own.inflight.is_some(), own.inflight_per_endpoint.is_some()];
    let climbs_depth = spec.saturate && said[1..].contains(&true);
    let wrong = [
        (
            spec.block_size.is_some(),
            "--block-size and its ladder are for media: use several --message-sizes, each is a phase",
        ),
        (
            said.iter().filter(|&&said| said).count() > 1,
            "--depth, --inflight and --inflight-per-endpoint exclude each other: use one of them",
        ),
        (climbs_depth, "--saturate raises the depth of each worker: set its start with --depth"),
        (
            own.inflight_per_endpoint.is_some()
                && own.order.is_some_and(|order| order != EndpointOrder::Pinned),
            "--inflight-per-endpoint keeps that many RPCs with each endpoint: leave out --order, or use --order pinned",
        ),
        (
            spec.bytes.is_some() && request.size_bytes + reply.size_bytes == 0,
            "--bytes never ends a phase of empty RPCs: use --count or --time",
        ),
        (
            own.traffic.is_some_and(|traffic| traffic != Traffic::All)
                && own.masters.is_empty()
                && spec.clients.is_empty(),
            "--traffic requires --master or --clients: add one of them, or leave it out to send from this host to all",
        ),
    ];
    match wrong.iter().find(|(is_wrong, _)| *is_wrong) {
        Some((_, message)) => refuse((*message).to_owned()),
        None => Ok(()),
    }
}

fn sockets(spec: &Spec) -> SocketPlan {
    let own = spec::of(spec);
    SocketPlan {
        send_buffer_bytes: own.send_buffer.map(|size| size.0),
        receive_buffer_bytes: own.receive_buffer.map(|size| size.0),
        no_delay: own.no_delay.unwrap_or(true),
        zero_copy: own.zero_copy.unwrap_or(Feature::Auto),
        device: own.bind_device.clone(),
        source: own.bind_address.clone(),
    }
}

/// The masters with the endpoints that each sends to.
fn directed(facts: &NetworkFacts, traffic: Option<Traffic>) -> Result<Vec<MasterPlan>, PlanError> {
    let (traffic, endpoints) = (traffic.unwrap_or_default(), &facts.endpoints);
    let count = endpoints.len();
    if matches!(traffic, Traffic::Pairs | Traffic::Ring)
        && !facts.masters.is_empty()
        && facts.masters.len() != count
    {
        let name = if traffic == Traffic::Pairs { "pairs" } else { "ring" };
        return refuse(format!(
            "--traffic {name} requires one endpoint per master, not {count} for {}: use as many of both",
            facts.masters.len()
        ));
    }
    if traffic == Traffic::Ring && facts.masters.len() == 1 {
        return refuse("--traffic ring requires 2 masters or more: use --traffic pairs".to_owned());
    }
    let direct = |(number, master): (usize, &MasterPlan)| {
        let chosen: Vec<u32> = match traffic {
            Traffic::All => (0..count as u32).collect(),
            Traffic::Matrix => {
                let others = (0u32..).zip(endpoints).filter(|(_, endpoint)| !is_at(master, endpoint));
                others.map(|(at, _)| at).collect()
            }
            Traffic::Pairs => vec![number as u32],
            Traffic::Ring => vec![((number + 1) % count) as u32],
            Traffic::Incast => vec![0],
        };
        if chosen.is_empty() {
            return refuse(format!(
                "master {} has no endpoint on another rank: add one, or use --traffic all",
                master.label
            ));
        }
        Ok(MasterPlan { endpoints: chosen, ..master.clone() })
    };
    facts.masters.iter().enumerate().map(direct).collect()
}

/// Whether an endpoint is on the master's own rank.
fn is_at(master: &MasterPlan, endpoint: &EndpointPlan) -> bool {
    match master.rank {
        Some(rank) => rank == endpoint.rank,
        None => master.label == endpoint.label,
    }
}

/// RPCs in flight for each worker; settles the order of endpoints too.
fn depth(spec: &Spec, plan: &mut NetworkPlan) -> Result<u32, PlanError> {
    let (own, threads) = (spec::of(spec), plan.load.threads);
    let most = endpoints_per_worker(plan).1;
    if let Some(each) = own.inflight_per_endpoint {
        plan.order = EndpointOrder::Pinned;
        let count = even_endpoints(plan, "--inflight-per-endpoint")?;
        return match each.checked_mul(count) {
            Some(depth) => Ok(depth),
            None => {
                refuse(format!("--inflight-per-endpoint {each} is too large for {count} endpoints: use less"))
            }
        };
    }
    plan.order = own.order.unwrap_or_default();
    let depth = match (spec.depth, own.inflight) {
        (Some(depth), _) => depth,
        (None, Some(inflight)) if inflight % threads == 0 => inflight / threads,
        (None, Some(inflight)) => {
            let below = inflight / threads * threads;
            let accepted = if below == 0 { String::new() } else { format!("{below} or ") };
            return refuse(format!(
                "--inflight {inflight} cannot be divided among {threads} threads: use {accepted}{}, or --depth for each",
                u64::from(below) + u64::from(threads)
            ));
        }
        (None, None) if spec.saturate && plan.order != EndpointOrder::Pinned => 1,
        (None, None) if plan.order == EndpointOrder::Pinned => {
            INFLIGHT.div_ceil(threads).next_multiple_of(most)
        }
        (None, None) => INFLIGHT.div_ceil(threads),
    };
    if plan.order == EndpointOrder::Pinned {
        let count = even_endpoints(plan, "--order pinned")?;
        if depth % count != 0 {
            return refuse(format!(
                "--order pinned gives each of {count} endpoints the same share of what a worker has in flight, not of {depth}: use a depth of {}",
                depth.next_multiple_of(count)
            ));
        }
    }
    Ok(depth)
}

/// Fewest and most endpoints that a worker has.
fn endpoints_per_worker(plan: &NetworkPlan) -> (u32, u32) {
    let masters: Vec<Option<usize>> =
        if plan.masters.is_empty() { vec![None] } else { (0..plan.masters.len()).map(Some).collect() };
    let counts = masters.iter().flat_map(|&master| {
        // Dealt out in turn, the first worker has the most and the last one the fewest.
        [0, plan.load.workers() - 1].map(|worker| deal(plan, master, worker).len() as u32)
    });
    counts.fold((u32::MAX, 1), |(least, most), count| (least.min(count), most.max(count)))
}

/// Endpoints of each worker, where all have the same number.
fn even_endpoints(plan: &NetworkPlan, option: &str) -> Result<u32, PlanError> {
    let (least, most) = endpoints_per_worker(plan);
    if least == most {
        return Ok(most);
    }
    refuse(format!(
        "{option} requires the same number of endpoints per worker, not {least} for one and {most} for another: \
         use another number of --threads, --share whole, or --depth"
    ))
}

/// RPCs in flight on one connection at most.
fn pipeline(spec: &Spec, plan: &NetworkPlan) -> Result<u32, PlanError> {
    let depth = plan.load.depth;
    let Some(pipeline) = spec::of(spec).pipeline else { return Ok(depth) };
    let connections = u64::from(endpoints_per_worker(plan).0) * u64::from(plan.connections);
    let room = u64::from(pipeline) * connections;
    if room < u64::from(depth) {
        return refuse(format!(
            "--pipeline {pipeline} allows {room} RPCs in flight on {connections} connections of a worker, not \
             {depth}: use --depth {room}, a longer pipeline or more --connections"
        ));
    }
    Ok(pipeline)
}

pub(super) fn check_memory(plan: &NetworkPlan, memory_bytes: Option<u64>) -> Result<(), PlanError> {
    let threads = u64::from(plan.load.threads);
    let parts = threads * u64::from(endpoints_per_worker(plan).1);
    if parts > PARTS_MAX {
        return refuse(format!(
            "{parts} pairs of a worker and an endpoint are too many: use {PARTS_MAX} or fewer, or --share partition"
        ));
    }
    let slots = threads * u64::from(plan.load.depth);
    let (slot_bytes, bytes) = slots_bytes(plan);
    let accepted = buffer_bytes_max(memory_bytes);
    if bytes > accepted {
        return refuse(format!(
            "{slots} RPCs in flight with {} each need {} of buffers: use {} or fewer in flight, or smaller --message-sizes",
            Amount(slot_bytes),
            ByteSize(bytes).human(),
            accepted / slot_bytes
        ));
    }
    Ok(())
}

/// Buffers of one RPC and of all that are in flight in one process, in bytes.
pub(super) fn slots_bytes(plan: &NetworkPlan) -> (u64, u64) {
    let pages = |bytes: u64| bytes.checked_next_multiple_of(PAGE_BYTES).unwrap_or(u64::MAX);
    let slot_bytes = pages(plan.request.size_bytes).saturating_add(pages(plan.reply.size_bytes));
    let slot_bytes = slot_bytes.max(PAGE_BYTES);
    let slots = u64::from(plan.load.threads) * u64::from(plan.load.depth);
    (slot_bytes, slots.saturating_mul(slot_bytes))
}

#[cfg(test)]
mod tests;
