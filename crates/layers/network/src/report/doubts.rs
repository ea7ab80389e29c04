//! Doubts about whether a network was measured, and which part of it.

#[cfg(test)]
mod tests;

use report::doubts::{Evidence, Kind, LOOPBACK};
use rpc::Poll;
use statistics::{by_part, tally};
use units::human::human_bytes;
use units::{count, counted, human_ns, percent};
use workload::plan::LayerPlan;

use crate::NetworkPlan;

/// Share of its time that a thread may be on its processor; above it, the network waits for it.
const THREAD_BUSY_SHARE_MAX: f64 = 0.95;
/// Time between two RPCs of a thread, nanoseconds, from which on one that polls adaptively would have slept if it had waited.
const ADAPTIVE_PAUSE_NS_MIN: f64 = 100_000.0;
/// Share of the segments that may be sent again: TCP halves its window each time (Mathis et al., 1997: throughput falls with the square
/// root of this share).
const RETRANSMITTED_SHARE_MAX: f64 = 0.001;
/// Retransmits that are worth a word.
const RETRANSMITS_MIN: f64 = 10.0;
/// Headers of a segment of TCP over IPv4 with time stamps, bytes.
const SEGMENT_HEADER_BYTES: u64 = 52;
/// Payload of an RPC from which on counters of an interface can be compared with what was moved: headers count little then, bytes.
const LARGE_RPC_BYTES: u64 = 64 << 10;
/// Share by which the interface may have moved more: headers, acknowledgements, warm-up.
const OTHER_TRAFFIC_SHARE_MAX: f64 = 0.15;
/// Bytes that it may have moved besides in any case.
const OTHER_TRAFFIC_BYTES_MIN: u64 = 16 << 20;
/// RPCs of an endpoint from which on its latency is compared with that of others.
const ENDPOINT_RPCS_MIN: u64 = 100;
/// Mean latency of the slowest endpoint over that of the others.
const ENDPOINT_FACTOR_MAX: f64 = 2.0;

/// Kinds of doubts of the network layer.
pub(super) const KINDS: &[Kind] = &[
    Kind { look: loopback, ..LOOPBACK },
    Kind {
        rank: 260,
        name: "cpu_bound",
        look: cpu_bound,
        remedy: "use more threads on dedicated cores (-t, --cores), more endpoints, or larger payloads",
    },
    Kind {
        rank: 270,
        name: "remote_numa",
        look: remote_numa,
        remedy: "choose the interface on the workers' node (--interface; `strata net scan`), or pin them (--numa)",
    },
    Kind {
        rank: 280,
        name: "mtu_mismatch",
        look: mtu_mismatch,
        remedy: "set the same MTU on both sides and on every switch between them (ip link set DEV mtu N)",
    },
    Kind {
        rank: 290,
        name: "retransmits",
        look: retransmits,
        remedy: "check for drops (`ethtool -S DEV`, `ip -s link`), duplex, cables and full switch queues",
    },
    Kind {
        rank: 300,
        name: "link_shared",
        look: link_shared,
        remedy: "stop other users of the interface (see `ip -s link`), and measure again",
    },
    Kind {
        rank: 310,
        name: "uneven_endpoints",
        look: uneven_endpoints,
        remedy: "use --order pinned, so that it does not delay the others, and check that host",
    },
];

/// The plan, where a network is measured and not strata itself.
fn plan_of<'a>(evidence: &Evidence<'a>) -> Option<&'a NetworkPlan> {
    evidence.plan.of::<NetworkPlan>().filter(|plan| plan.engine != "null")
}

fn loopback(evidence: &Evidence<'_>) -> Option<String> {
    let plan = plan_of(evidence)?;
    if plan.provider == "ofi+shm" {
        return Some(
            "the provider shm copies through memory of this machine: no link is measured".to_owned(),
        );
    }
    let interface = plan.interface.as_ref().filter(|interface| interface.is_loopback)?;
    Some(format!("RPCs use {}: this tested loopback (a kernel memory copy), not a link", interface.name))
}

/// Whether time on the processor says that a thread had work: one that polls is always there.
fn is_work(poll: Poll, rpcs: u64, elapsed_ns: u64) -> bool {
    match poll {
        Poll::Spin => false,
        Poll::Block => true,
        Poll::Adaptive => elapsed_ns as f64 / rpcs.max(1) as f64 >= ADAPTIVE_PAUSE_NS_MIN,
    }
}

fn cpu_bound(evidence: &Evidence<'_>) -> Option<String> {
    let plan = plan_of(evidence)?;
    let samples = evidence.samples;
    if let Some(told) = evidence.tool_took() {
        return Some(told);
    }
    // An open loop may wait on its processor for the next arrival.
    let closed = plan.load.arrivals.is_none();
    for worker in samples.workers.iter().filter(|_| closed) {
        let length_ns = worker.finished_ns.saturating_sub(worker.started_ns);
        let busy = (worker.cpu_user_ns + worker.cpu_system_ns) as f64 / length_ns.max(1) as f64;
        if busy > THREAD_BUSY_SHARE_MAX && is_work(plan.poll, worker.operations(), length_ns) {
            let busy = percent(busy.min(1.0));
            return Some(format!("a worker used {busy} of a CPU: the network waited for it"));
        }
    }
    for server in &evidence.observations.servers {
        let busy = (server.cpu_user_ns + server.cpu_system_ns) as f64 / samples.elapsed_ns.max(1) as f64;
        let works = server.poll.is_some_and(|poll| is_work(poll, server.rpcs, samples.elapsed_ns));
        if busy > THREAD_BUSY_SHARE_MAX && works {
            let busy = percent(busy.min(1.0));
            let label = &server.label;
            return Some(format!("the thread of endpoint {label} used {busy} of a CPU"));
        }
    }
    crowded(evidence, plan)
}

/// More threads that work than the machine of both sides has processors: they wait for each other.
fn crowded(evidence: &Evidence<'_>, plan: &NetworkPlan) -> Option<String> {
    let cores = evidence.logical_cores()?;
    let busy = evidence.observations.machine_cpus_busy?;
    let threads = evidence.stage_threads + plan.local_endpoints();
    (plan.is_loopback()
        && plan.masters.is_empty()
        && threads as f64 > cores
        && busy > THREAD_BUSY_SHARE_MAX * cores)
        .then(|| {
            let workers = counted(evidence.stage_threads, "worker");
            let endpoints = counted(plan.local_endpoints(), "service thread");
            format!("{workers} and {endpoints} share {}", counted(cores as u64, "processor"))
        })
}

fn remote_numa(evidence: &Evidence<'_>) -> Option<String> {
    let plan = plan_of(evidence).filter(|plan| plan.masters.is_empty())?;
    let interface = plan.interface.as_ref()?;
    let node = interface.numa_node?;
    let nodes = &evidence.environment.numa_nodes;
    if nodes.len() < 2 {
        return None;
    }
    let node_of = |core: usize| {
        nodes.iter().find(|node| node.cores.iter().any(|own| *own as usize == core)).map(|node| node.node)
    };
    let pinned: Vec<u32> =
        evidence.samples.workers.iter().filter_map(|worker| node_of(worker.core?)).collect();
    let away = pinned.iter().filter(|own| **own != node).count();
    let first = pinned.iter().find(|own| **own != node)?;
    Some(format!(
        "{} is on NUMA node {node}, but {away} of {} on node {first}: data crosses NUMA nodes",
        interface.name,
        counted(evidence.samples.workers.len() as u64, "worker")
    ))
}

fn mtu_mismatch(evidence: &Evidence<'_>) -> Option<String> {
    let plan = plan_of(evidence).filter(|plan| !plan.is_loopback())?;
    let links = &evidence.observations.links;
    let own = links.iter().find(|link| link.owner.is_none());
    let own_mtu = plan.interface.as_ref().and_then(|interface| interface.mtu_bytes);
    let own_mtu = own_mtu.or_else(|| own?.mtu_bytes);
    if let (Some(mtu), Some(path)) = (own_mtu, own.and_then(|link| link.path_mtu_bytes))
        && path < mtu
    {
        return Some(format!(
            "packets of only {path} bytes reach the other side, but the interface would send {mtu}"
        ));
    }
    let of = |name: Option<&str>| name.map_or_else(|| "this machine".to_owned(), str::to_owned);
    let known: Vec<(String, u64)> = match own_mtu.filter(|_| plan.masters.is_empty()) {
        Some(mtu) => vec![(of(None), mtu)],
        None => vec![],
    };
    let others = links.iter().filter(|link| link.owner.is_some());
    let others = others.filter_map(|link| Some((of(link.owner.as_deref()), link.mtu_bytes?)));
    let all: Vec<(String, u64)> = known.into_iter().chain(others).collect();
    let (first, rest) = all.split_first()?;
    let other = rest.iter().find(|other| other.1 != first.1)?;
    Some(format!("the MTU is {} bytes at {} but {} at {}", first.1, first.0, other.1, other.0))
}

fn retransmits(evidence: &Evidence<'_>) -> Option<String> {
    let plan = plan_of(evidence)?;
    let (own, _) = tally(evidence.samples, "tcp_retransmits", None)?;
    if own < RETRANSMITS_MIN {
        return None;
    }
    let payload = plan.interface.as_ref().and_then(|interface| interface.mtu_bytes).unwrap_or(1500);
    let payload = payload.saturating_sub(SEGMENT_HEADER_BYTES).max(1);
    // Segmentation offload hides how many segments left: as few as can be.
    let rpcs = evidence.summary.last_done.operations;
    let segments = rpcs.saturating_mul(plan.request.size_bytes.div_ceil(payload).max(1));
    let share = own / segments.max(1) as f64;
    (share > RETRANSMITTED_SHARE_MAX).then(|| {
        format!(
            "{} segments were retransmitted, {} of the load's segments",
            count(own as u64),
            percent(share.min(1.0))
        )
    })
}

/// More went through the interface than this load moved.
fn link_shared(evidence: &Evidence<'_>) -> Option<String> {
    let plan = plan_of(evidence).filter(|plan| plan.masters.is_empty())?;
    let counts_match = evidence.counts_match() && plan.rpc_bytes() >= LARGE_RPC_BYTES;
    let link = evidence.observations.links.iter().find(|link| link.owner.is_none());
    let link = link.filter(|_| counts_match && !plan.is_loopback())?;
    let rpcs = evidence.summary.last_done.operations + evidence.summary.drained_operations;
    let moved = rpcs.saturating_mul(plan.rpc_bytes());
    let seen = link.sent_bytes.saturating_add(link.received_bytes);
    let limit = (moved as f64 * OTHER_TRAFFIC_SHARE_MAX) as u64 + OTHER_TRAFFIC_BYTES_MIN;
    let others = seen.saturating_sub(moved);
    (others > limit).then(|| {
        let (others, moved) = (human_bytes(others as f64), human_bytes(moved as f64));
        format!("{} moved {others} in addition to the {moved} of this load", link.interface)
    })
}

/// One endpoint is far slower: a worker that takes them in turn is as slow everywhere.
fn uneven_endpoints(evidence: &Evidence<'_>) -> Option<String> {
    // Where masters drive, the matrix tells hosts from links.
    let plan = plan_of(evidence).filter(|plan| plan.masters.is_empty())?;
    let parts = by_part(evidence.samples);
    let enough = parts.iter().filter(|part| part.figures.operations >= ENDPOINT_RPCS_MIN);
    let mut means: Vec<(f64, usize)> =
        enough.filter_map(|part| Some((part.figures.latency.as_ref()?.mean_ns, part.part))).collect();
    means.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
    let (slowest, others) = means.split_last()?;
    let middle = others.get(others.len() / 2)?.0;
    (slowest.0 > ENDPOINT_FACTOR_MAX * middle).then(|| {
        let label = plan.endpoints.get(slowest.1).map_or("?", |endpoint| endpoint.label.as_str());
        format!(
            "endpoint {label} takes {} on average, but the others {}",
            human_ns(slowest.0),
            human_ns(middle)
        )
    })
}
