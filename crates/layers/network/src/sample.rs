//! Records of the network layer, for tests.
#![allow(missing_docs, reason = "the names say it; nothing but tests uses this")]

use report::record::{LinkActivity, Observations, PhaseRecord, Record, ServerActivity};
use report::sample::{self, DRIVE, INTERVAL_NS, INTERVALS, Shape, latencies, load, phase_of, record};
use rpc::{EndpointPlan, InterfacePlan, Poll, SocketPlan};
use statistics::{
    CauseCount, ClassPoint, ClassTotals, ErrorCount, PartTotals, PhaseSamples, Series, SparseHistogram,
    TallySample, WarmUp, WorkerSamples, summarise,
};
use workload::plan::{MasterPlan, PhasePlan};
use workload::spec::Share;

use crate::{EndpointOrder, NetworkPlan, Payload, PayloadKind, Traffic};

/// One pair of a phase of the tests.
#[derive(Clone, Copy)]
pub struct Pair {
    /// Number of the master, or of this process's worker.
    pub master: usize,
    /// Number of the endpoint.
    pub endpoint: usize,
    pub operations_per_second: u64,
    pub latency_ns: u64,
    pub refused: u64,
}

pub const EMPTY: Payload = Payload::EMPTY;
pub const MIB: Payload = Payload { kind: PayloadKind::Bulk, size_bytes: 1 << 20 };

/// Endpoints of target 2 of this many ranks.
pub fn endpoints(ranks: u32) -> Vec<EndpointPlan> {
    let one = |rank| EndpointPlan {
        rank,
        tag: 2,
        uri: format!("tcp://10.0.0.{}:31416", rank + 1),
        label: format!("{rank}:2"),
    };
    (0..ranks).map(one).collect()
}

/// An interface of 100 Gbit/s on NUMA node 1.
pub fn interface() -> InterfacePlan {
    InterfacePlan {
        name: "eth0".to_owned(),
        domain: "mlx5_0".to_owned(),
        numa_node: Some(1),
        speed_bits_per_second: Some(100_000_000_000),
        mtu_bytes: Some(9000),
        is_loopback: false,
        chosen: "on the NUMA node of the workers".to_owned(),
    }
}

/// Loopback.
pub fn loopback() -> InterfacePlan {
    InterfacePlan {
        name: "lo".to_owned(),
        domain: "lo".to_owned(),
        numa_node: None,
        speed_bits_per_second: None,
        mtu_bytes: Some(65_536),
        is_loopback: true,
        chosen: "the engine listens there".to_owned(),
    }
}

pub fn network_plan(request: Payload, reply: Payload, ranks: u32) -> NetworkPlan {
    NetworkPlan {
        name: "rpc".to_owned(),
        engine: "tcp".to_owned(),
        provider: "tcp".to_owned(),
        group: Some("daos_server".to_owned()),
        endpoints: endpoints(ranks),
        masters: vec![],
        traffic: Traffic::All,
        order: EndpointOrder::RoundRobin,
        share: Share::Whole,
        request,
        reply,
        connections: 1,
        pipeline: 16,
        align: None,
        memory: gpu::MemoryPlan::Host,
        verify: false,
        poll: Poll::Adaptive,
        timeout_ns: 60_000_000_000,
        socket: SocketPlan { no_delay: true, ..SocketPlan::default() },
        interface: Some(interface()),
        load: load(&Shape { threads: 1, depth: 16, ..DRIVE }),
    }
}

fn part(pair: &Pair, bytes: u64) -> PartTotals {
    let operations = pair.operations_per_second * INTERVALS * INTERVAL_NS / 1_000_000_000;
    let refused = CauseCount { cause: "Connection refused".to_owned(), count: pair.refused };
    PartTotals {
        part: pair.endpoint,
        operations,
        bytes: operations * bytes,
        errors: pair.refused,
        causes: if pair.refused > 0 { vec![refused] } else { vec![] },
        latency: latencies(operations, pair.latency_ns),
    }
}

fn tallies(parts: &[PartTotals]) -> Vec<TallySample> {
    let of = |part: usize| {
        [
            ("tcp_retransmits", 3.0),
            ("tcp_round_trip_ns", 31_000.0),
            ("tcp_congestion_window_packets", 10.0),
            ("tcp_congestion_window_bytes", 655_360.0),
            ("tcp_connections", 1.0),
        ]
        .map(|(name, value)| TallySample { part, name: name.to_owned(), value })
    };
    parts.iter().flat_map(|part| of(part.part)).collect()
}

fn worker(number: usize, origin: Option<String>, parts: Vec<PartTotals>) -> WorkerSamples {
    let mut total = ClassTotals { class: "rpc".to_owned(), ..ClassTotals::default() };
    let mut errors: Vec<ErrorCount> = vec![];
    for part in &parts {
        total.operations += part.operations;
        total.bytes += part.bytes;
        total.errors += part.errors;
        total.latency.merge(&part.latency);
        errors.extend(part.causes.iter().map(|cause| ErrorCount {
            is_ignored: false,
            class: "rpc".to_owned(),
            cause: cause.cause.clone(),
            errno: Some(111),
            count: cause.count,
            first_at_ns: 1_000_000_000,
        }));
    }
    WorkerSamples {
        worker: number,
        origin,
        started_ns: 1000,
        finished_ns: INTERVALS * INTERVAL_NS,
        cpu_user_ns: total.operations * 500,
        cpu_system_ns: total.operations * 1500,
        tool_ns: total.operations * 60,
        tallies: tallies(&parts),
        classes: vec![total],
        errors,
        parts,
        ..WorkerSamples::default()
    }
}

fn samples(workers: Vec<WorkerSamples>) -> PhaseSamples {
    let mut series = Series::new(INTERVAL_NS, Series::CAPACITY_DEFAULT, 1);
    for worker in &workers {
        let done = &worker.classes[0];
        for interval in 0..INTERVALS {
            // Every deviation is made good by the next interval.
            let share = |all: u64| all / INTERVALS;
            let wave = if interval % 2 == 0 { 100 - interval % 7 } else { 100 + (interval - 1) % 7 };
            let operations = share(done.operations) * wave / 100;
            let bytes = operations * done.bytes.checked_div(done.operations).unwrap_or(0);
            let mean_ns = done.latency.buckets().next().map_or(1, |bucket| bucket.midpoint_ns() * 10 / 8);
            let latency: SparseHistogram = latencies(operations, mean_ns);
            let errors = if interval == 10 { done.errors } else { 0 };
            series.add(
                interval * INTERVAL_NS,
                0,
                &ClassPoint { operations, bytes, errors, latency, ..ClassPoint::default() },
            );
        }
    }
    series.finish(INTERVALS * INTERVAL_NS);
    PhaseSamples {
        classes: vec!["rpc".to_owned()],
        window_ns: Some(INTERVALS * INTERVAL_NS),
        started_ns: 0,
        elapsed_ns: INTERVALS * INTERVAL_NS,
        process_cpu_user_ns: workers.iter().map(|worker| worker.cpu_user_ns).sum(),
        process_cpu_system_ns: workers.iter().map(|worker| worker.cpu_system_ns).sum(),
        workers,
        series,
        interrupted: None,
    }
}

fn servers(plan: &NetworkPlan, workers: &[WorkerSamples]) -> Vec<ServerActivity> {
    let server = |(at, endpoint): (usize, &EndpointPlan)| {
        let parts = workers.iter().flat_map(|worker| &worker.parts).filter(|part| part.part == at);
        let rpcs = parts.map(|part| part.operations).sum::<u64>();
        ServerActivity {
            label: endpoint.label.clone(),
            rpcs,
            received_bytes: rpcs * plan.request.size_bytes,
            sent_bytes: rpcs * plan.reply.size_bytes,
            cpu_user_ns: rpcs * 400,
            cpu_system_ns: rpcs * 1200,
            poll: Some(plan.poll),
            ..ServerActivity::default()
        }
    };
    plan.endpoints.iter().enumerate().map(server).collect()
}

/// A phase of this plan whose pairs did this.
pub fn network_phase(plan: NetworkPlan, pairs: &[Pair]) -> PhaseRecord {
    let count = pairs.iter().map(|pair| pair.master + 1).max().unwrap_or(0);
    let bytes = plan.rpc_bytes();
    let worker_of = |number: usize| {
        let own = pairs.iter().filter(|pair| pair.master == number);
        let origin = plan.masters.get(number).map(|master| master.label.clone());
        worker(number, origin, own.map(|pair| part(pair, bytes)).collect())
    };
    let workers: Vec<_> = (0..count).map(worker_of).collect();
    let moved = |size: u64| size * workers.iter().map(WorkerSamples::operations).sum::<u64>();
    let link = LinkActivity {
        interface: "eth0".to_owned(),
        mtu_bytes: Some(9000),
        path_mtu_bytes: Some(9000),
        sent_bytes: moved(plan.request.size_bytes) + 1_000_000,
        received_bytes: moved(plan.reply.size_bytes) + 1_000_000,
        ..LinkActivity::default()
    };
    let is_loopback = plan.interface.as_ref().is_some_and(|interface| interface.is_loopback);
    let observations = Observations {
        machine_cpus_busy: Some(1.1),
        other_cpus_busy: Some(0.05),
        other_cpus_user: Some(0.05),
        servers: servers(&plan, &workers),
        links: if is_loopback || !plan.masters.is_empty() { vec![] } else { vec![link] },
        tcp_retransmitted_segments: Some(3),
        tcp_sent_segments: Some(10_000_000),
        ..Observations::default()
    };
    let samples = samples(workers);
    let summary = summarise(&samples, WarmUp::Auto);
    PhaseRecord { samples, summary, observations, ..phase_of(PhasePlan::new(plan), &DRIVE) }
}

fn network_record(phases: Vec<PhaseRecord>) -> Record {
    let command_line = ["strata", "net", "--group", "daos_server"].map(str::to_owned).to_vec();
    let mut made = Record { command_line, ..record(phases) };
    made.environment.targets.clear();
    made
}

/// This process and two endpoints, 1 MiB there and nothing back: 2000/s and 1800/s.
pub fn two_endpoints() -> Record {
    let pair = |endpoint, operations_per_second, latency_ns| Pair {
        master: 0,
        endpoint,
        operations_per_second,
        latency_ns,
        refused: 0,
    };
    let plan = network_plan(MIB, EMPTY, 2);
    network_record(vec![network_phase(plan, &[pair(0, 2000, 4_000_000), pair(1, 1800, 4_400_000)])])
}

/// As [`two_endpoints`], but the second endpoint refused after a while.
pub fn failing_endpoint() -> Record {
    let good =
        Pair { master: 0, endpoint: 0, operations_per_second: 2000, latency_ns: 4_000_000, refused: 0 };
    let bad = Pair { endpoint: 1, operations_per_second: 100, refused: 7, ..good };
    let mut record = network_record(vec![network_phase(network_plan(MIB, EMPTY, 2), &[good, bad])]);
    record.status = report::record::Status::Partial;
    record
}

/// Every rank of a group against every rank, itself included: 1 MiB there. `slow` takes this many times as long.
pub fn matrix(ranks: usize, slow: &[(usize, usize, u64)]) -> Record {
    let mut plan = network_plan(MIB, EMPTY, ranks as u32);
    let master = |rank: usize| MasterPlan {
        label: format!("{rank}:0"),
        control: format!("10.0.0.{}:40000", rank + 1),
        rank: Some(rank as u32),
        tag: Some(0),
        endpoints: (0..ranks as u32).collect(),
    };
    plan.name = "matrix".to_owned();
    plan.masters = (0..ranks).map(master).collect();
    plan.order = EndpointOrder::Pinned;
    let pair = |at: usize| {
        let (master, endpoint) = (at / ranks, at % ranks);
        let slow = slow.iter().find(|one| (one.0, one.1) == (master, endpoint));
        let times = slow.map_or(1, |slow| slow.2);
        // A few percent of noise that is the same in every run.
        let noise = 100 + (at as u64 * 7919) % 9;
        Pair {
            master,
            endpoint,
            operations_per_second: 100_000 / noise / times,
            latency_ns: 40_000 * noise * times,
            refused: 0,
        }
    };
    let pairs: Vec<Pair> = (0..ranks * ranks).map(pair).collect();
    network_record(vec![network_phase(plan, &pairs)])
}

/// Empty RPCs of more and more in flight against one endpoint.
pub fn in_flight_ladder(depths: &[u32], unloaded_ns: f64, rate_max: f64) -> Record {
    let plan =
        |shape: &Shape| PhasePlan::new(NetworkPlan { load: load(shape), ..network_plan(EMPTY, EMPTY, 1) });
    let mut record = sample::ladder_of(plan, depths, unloaded_ns, rate_max);
    for phase in &mut record.phases {
        for class in phase.summary.classes.iter_mut().chain([&mut phase.summary.total]) {
            (class.bytes, class.bytes_per_second, class.bandwidth) = (0, 0.0, None);
        }
    }
    Record { ladder: record.ladder, ..network_record(record.phases) }
}
