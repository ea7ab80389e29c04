//! Thousands of services with simulated jobs behind the real control channel, and what they cost the coordinator.
//!
//! `cargo test --profile quick -p fleet scale -- --nocapture` measures; `bench/fleet.py` does so for several numbers of hosts. The services are in
//! processes of their own, so that memory and processor time of this one are the coordinator's.

mod sessions;

use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use driver::Error;
use statistics::{
    ClassPoint, ClassTotals, Histogram, Merger, PhaseSamples, Series, Snapshot, SparseHistogram,
    WorkerSamples, WorkerSnapshot, by_origin,
};

use sessions::Host;

use super::{PATIENCE, SCHEMA};
use crate::server::Threads;
use crate::{
    Agent, ConnectRequest, ControlRequest, ControlServer, Description, Fleet, HostEnd, OnRefusal,
    OutcomeMessage, PlanMessage, Prepared, ProgressReport, RunPolicy, ServerOptions, SessionHost, StartGate,
};

/// Services of one process: three descriptors each.
const SERVICES_MAX: usize = 2500;
/// Workers of a host.
const WORKERS: usize = 4;
const SERVES: &str = "STRATA_SCALE_SERVES";

/// A number of the environment.
fn number(name: &str, default: usize) -> usize {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// Latencies as a drive has them, one of a few that are made once: services are many, and must not be busier than what they simulate.
fn latency(seed: u64) -> SparseHistogram {
    static ALL: LazyLock<Vec<SparseHistogram>> = LazyLock::new(|| (0..64).map(made_latency).collect());
    ALL[(seed % 64) as usize].clone()
}

/// 200 values over two powers of two, and a tail.
fn made_latency(seed: u64) -> SparseHistogram {
    let mut histogram = Histogram::new();
    let mut state = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
    for at in 0..200 {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let tail = if at % 50 == 0 { 8 } else { 1 };
        histogram.record_n((80_000 + (state >> 47) * 2) * tail, 5);
    }
    SparseHistogram::from(&histogram)
}

/// Samples of a host: four workers and a series of 60 intervals.
fn samples(host: u64) -> PhaseSamples {
    let mut series = Series::new(1_000_000_000, 512, 1);
    for at in 0..60 {
        let point = ClassPoint {
            operations: 1000,
            bytes: 4_096_000,
            latency: latency(host ^ at),
            ..ClassPoint::default()
        };
        series.add(at * 1_000_000_000, 0, &point);
    }
    series.finish(60_000_000_000);
    let worker = |worker| WorkerSamples {
        worker,
        finished_ns: 60_000_000_000,
        classes: vec![ClassTotals {
            class: "read".to_owned(),
            operations: 15_000,
            bytes: 61_440_000,
            latency: latency(host + worker as u64),
            ..ClassTotals::default()
        }],
        ..WorkerSamples::default()
    };
    PhaseSamples {
        classes: vec!["read".to_owned()],
        window_ns: Some(60_000_000_000),
        started_ns: 0,
        elapsed_ns: 60_000_000_000,
        workers: (0..WORKERS).map(worker).collect(),
        series,
        interrupted: None,
        process_cpu_user_ns: 1,
        process_cpu_system_ns: 1,
    }
}

struct Drive(u64);

impl Agent for Drive {
    fn describe(&self) -> Description {
        super::agent::description()
    }

    fn prepare(&self, _: PlanMessage, _: &Arc<AtomicBool>) -> Result<Box<dyn Prepared>, Error> {
        Ok(Box::new(Drive(self.0)))
    }

    fn host(&self) -> Option<Arc<dyn SessionHost>> {
        Some(Arc::new(Host(self.0)))
    }
}

/// Progress of a host at some second.
fn snapshot(host: u64, second: u64) -> Snapshot {
    let worker = WorkerSnapshot { operations: 250 * second, running: true, ..WorkerSnapshot::default() };
    Snapshot {
        phase: "read".to_owned(),
        classes: vec!["read".to_owned()],
        operations: 1000 * second,
        operations_per_second: vec![1000.0],
        bytes_per_second: vec![4_096_000.0],
        latency: latency(host ^ second),
        workers: vec![worker; WORKERS],
        ..Snapshot::default()
    }
}

impl Prepared for Drive {
    fn run(
        self: Box<Self>,
        gate: StartGate,
        observe: &mut dyn FnMut(ProgressReport),
        stop: Arc<AtomicBool>,
    ) -> Result<OutcomeMessage, Error> {
        gate.wait(Vec::new())?;
        let until = Instant::now() + Duration::from_secs(number("STRATA_SCALE_SECONDS", 2) as u64);
        for second in 0.. {
            if Instant::now() >= until || stop.load(Ordering::Relaxed) {
                break;
            }
            observe(ProgressReport::Running(snapshot(self.0, second)));
            std::thread::sleep(Duration::from_secs(1).min(until.saturating_duration_since(Instant::now())));
        }
        Ok(OutcomeMessage { samples: vec![samples(self.0)], ..OutcomeMessage::default() })
    }
}

/// Services until standard input ends: each says its address.
#[test]
fn serve() {
    let count = number(SERVES, 0);
    if count == 0 {
        // It was not started by the measurement.
        return;
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .max_blocking_threads(8)
        .enable_all()
        .build();
    let runtime = runtime.expect("a runtime");
    let servers: Vec<_> = (0..count)
        .map(|host| {
            let request = ControlRequest {
                listen: "127.0.0.1:0".to_owned(),
                secret: super::secret("the token of all"),
                tls: false,
                agent: Arc::new(Drive(host as u64)),
                log: Arc::new(|_: &str| {}),
            };
            let threads = Threads::Shared(runtime.handle().clone());
            ControlServer::start_on(threads, request, ServerOptions::default()).expect("it starts")
        })
        .collect();
    let addresses: Vec<_> = servers.iter().map(|server| server.address().to_string()).collect();
    println!("\nserving {}", addresses.join(","));
    std::io::stdout().flush().expect("a reader");
    let mut end = String::new();
    let _ = std::io::stdin().read_line(&mut end);
    // They would be stopped one by one.
    std::process::exit(0);
}

fn start_services(count: usize) -> (Vec<Child>, Vec<SocketAddr>) {
    let mut children = Vec::new();
    let mut addresses = Vec::new();
    for first in (0..count).step_by(SERVICES_MAX) {
        let mut child = Command::new(std::env::current_exe().expect("a name"))
            .args(["--exact", "tests::scale::serve", "--nocapture"])
            .env(SERVES, (count - first).min(SERVICES_MAX).to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("it starts");
        let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
        let line = lines
            .find_map(|line| line.ok()?.strip_prefix("serving ").map(str::to_owned))
            .expect("its addresses");
        // A test that takes a minute says so, and would end where nobody reads that.
        std::thread::spawn(move || lines.for_each(drop));
        addresses.extend(line.split(',').map(|address| address.parse::<SocketAddr>().expect("an address")));
        children.push(child);
    }
    (children, addresses)
}

/// Processor time of this process, and the most memory that it had.
fn own_cost() -> (Duration, u64) {
    (cpu_of("self"), memory("VmHWM:"))
}

/// Processor time of a process: its number, or `self`.
fn cpu_of(process: &str) -> Duration {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).expect("procfs");
    let fields: Vec<&str> = stat.rsplit(')').next().expect("fields").split_whitespace().collect();
    let ticks = |at: usize| fields[at].parse::<u64>().expect("ticks");
    Duration::from_millis((ticks(11) + ticks(12)) * 10)
}

/// Memory of this process, in bytes: a line of its status.
fn memory(name: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("procfs");
    let line = status.lines().find_map(|line| line.strip_prefix(name)).expect("a line");
    let kib: u64 = line.trim().trim_end_matches(" kB").parse().expect("kB");
    kib << 10
}

/// Bytes that came in on the loopback of this network namespace.
fn loopback_bytes() -> u64 {
    let text = std::fs::read_to_string("/proc/net/dev").unwrap_or_default();
    let line = text.lines().find_map(|line| line.trim().strip_prefix("lo:"));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}

#[test]
fn scale() {
    let count = number("STRATA_SCALE_HOSTS", 20);
    let (mut children, addresses) = start_services(count);
    let began = Instant::now();
    let fleet = Fleet::connect(ConnectRequest {
        hosts: addresses.into_iter().map(Into::into).collect(),
        secret: super::secret("the token of all"),
        tls: std::env::var_os("STRATA_SCALE_TLS").is_some(),
        timeout: 6 * PATIENCE,
    })
    .expect("the fleet's thread starts");
    let connected = began.elapsed();
    let failed = fleet.failures().map(|(_, error)| error.to_string()).next();
    assert_eq!((fleet.failures().count(), failed), (0, None));
    let mut plan = PlanMessage::new("scale", "simulated", SCHEMA, &()).expect("JSON");
    plan.progress_interval = Duration::from_millis(900);
    let plans = (0..count).map(|host| (host, plan.clone())).collect();
    let policy = RunPolicy {
        on_refusal: OnRefusal::StopAll,
        ready_timeout: 6 * PATIENCE,
        silence_timeout: 6 * PATIENCE,
        collect_timeout: 6 * PATIENCE,
    };
    let told = Instant::now();
    let (mut running, mut over) = (None, None);
    let mut observe = |hosts: &[crate::HostProgress]| {
        let at_work = hosts.iter().filter(|host| host.stage == crate::HostStage::Running).count();
        if running.is_none() && at_work == count {
            running = Some((told.elapsed(), Instant::now(), own_cost().0, loopback_bytes()));
        }
        if over.is_none() && running.is_some() && at_work < count {
            over = Some((Instant::now(), own_cost().0, loopback_bytes()));
        }
    };
    let ended = fleet.run(plans, &policy, &mut observe, &AtomicBool::new(false)).expect("hosts of the fleet");
    let collected = Instant::now();
    let (start, from, cpu_from, bytes_from) = running.expect("all ran at some time");
    let (until, cpu_until, bytes_until) = over.expect("they ended");
    let mut late: Vec<i64> = ended.iter().filter_map(|host| host.start_lateness_ns).collect();
    late.sort_unstable();
    let skew_ns = late[late.len() - 1] - late[0];
    let p99_ns = late[(late.len() - 1) * 99 / 100] - late[(late.len() - 1) / 2];
    let mut merger = Merger::new(0);
    for host in ended {
        let HostEnd::Finished(outcome) = host.end else { panic!("{:?}", host.end) };
        for mut samples in outcome.samples {
            samples.workers.iter_mut().for_each(|worker| worker.origin = Some(host.address.to_string()));
            merger.add(samples);
        }
    }
    let merged = merger.finish().expect("hosts");
    let merge = collected.elapsed();
    let rows = by_origin(&merged).len();
    let reported = collected.elapsed();
    assert_eq!((rows, merged.workers.len()), (count, WORKERS * count));
    let seconds = until.duration_since(from).as_secs_f64();
    println!(
        "\nscale hosts={count} connect_s={:.3} start_s={:.3} skew_ms={:.2} p99_late_ms={:.2} cpu_percent={:.1} \
         bytes_per_host_s={:.0} collect_s={:.3} merge_s={:.3} by_host_s={:.3} peak_mib={:.0}",
        connected.as_secs_f64(),
        start.as_secs_f64(),
        skew_ns as f64 / 1e6,
        p99_ns as f64 / 1e6,
        (cpu_until - cpu_from).as_secs_f64() / seconds * 100.0,
        (bytes_until - bytes_from) as f64 / seconds / count as f64,
        collected.duration_since(until).as_secs_f64(),
        merge.as_secs_f64(),
        (reported - merge).as_secs_f64(),
        own_cost().1 as f64 / f64::from(1 << 20),
    );
    for child in &mut children {
        drop(child.stdin.take());
        child.wait().expect("it ends");
    }
}
