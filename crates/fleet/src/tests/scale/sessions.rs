//! The same with sessions, as runs of `--hosts` have them: planning, a stage, results in parts, and the end.

use std::net::SocketAddr;
use std::process::Child;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use driver::Error;
use serde_json::{Value, json};
use statistics::{Merger, PhaseSamples, by_origin, join_hosts, merge};

use super::{
    PATIENCE, SCHEMA, WORKERS, cpu_of, loopback_bytes, memory, number, own_cost, samples, snapshot,
    start_services,
};
use crate::clock::unix_ns;
use crate::{
    ConnectRequest, Fleet, HostMeetings, HostSession, ProgressReport, SessionHost, SessionLink,
    SessionProgress, SessionRequest, SessionTerms, Sessions, StageOutcome, StagePart, StageRequest,
    StageTasks, report_interval,
};

/// A simulated host of runs.
pub(super) struct Host(pub(super) u64);

struct Part {
    host: u64,
    stop: Arc<AtomicBool>,
}

impl SessionHost for Host {
    fn what(&self, _: &SessionRequest) -> String {
        "simulated".to_owned()
    }

    fn begin(
        &self,
        _: &SessionRequest,
        _: SocketAddr,
        stop: &Arc<AtomicBool>,
        _: &Arc<HostMeetings>,
    ) -> Result<Box<dyn HostSession>, Error> {
        Ok(Box::new(Part { host: self.0, stop: Arc::clone(stop) }))
    }
}

impl HostSession for Part {
    /// As large as the plan of a phase.
    fn planned(&self) -> Value {
        json!([{ "plan": { "name": "read", "options": "x".repeat(4096) } }])
    }

    fn stage(&mut self, _: Value, link: &SessionLink) -> Result<(), Error> {
        let (delay_ns, late_ns) = link.start(Vec::new())?;
        let scheduled_ns = unix_ns() + delay_ns - late_ns;
        std::thread::sleep(Duration::from_nanos(delay_ns));
        let lateness_ns = i128::from(unix_ns()) - i128::from(scheduled_ns);
        let until = Instant::now() + Duration::from_secs(number("STRATA_SCALE_SECONDS", 2) as u64);
        for second in 1.. {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() || self.stop.load(Ordering::Relaxed) {
                break;
            }
            link.progress(&ProgressReport::Running(snapshot(self.host, second)));
            std::thread::sleep(Duration::from_millis(1001).min(left));
        }
        // As large as the observations of a host.
        let details = json!({ "lateness_ns": lateness_ns as i64, "late_ns": late_ns, "observations": "x".repeat(2048) });
        StagePart::split(0, samples(self.host), details).into_iter().try_for_each(|part| link.part(part))
    }

    fn end(&mut self) -> Vec<String> {
        Vec::new()
    }
}

/// Resources that the coordinator and all services have used so far.
#[derive(Clone, Copy)]
struct Used {
    at_unix_ns: u64,
    own: Duration,
    services: Duration,
    bytes: u64,
}

impl Used {
    fn now(children: &[Child]) -> Self {
        Self {
            at_unix_ns: unix_ns(),
            own: own_cost().0,
            services: children.iter().map(|child| cpu_of(&child.id().to_string())).sum(),
            bytes: loopback_bytes(),
        }
    }
}

/// A stage, and what had been used at moments when all were at work.
fn stage(sessions: &mut Sessions, children: &[Child], labels: &[String]) -> (StageOutcome, Vec<Used>) {
    let request = StageRequest { tasks: StageTasks::Common(json!([{ "phase": 0 }])), first_alone: false };
    let mut used = Vec::new();
    let mut observe = |hosts: &[SessionProgress<'_>]| {
        if hosts.iter().all(|host| host.report.is_some() && !host.has_ended) {
            used.push(Used::now(children));
        }
        let reports: Vec<_> = hosts.iter().map(|host| host.labelled(&labels[host.host])).collect();
        std::hint::black_box(join_hosts(&reports, Vec::new()));
    };
    let outcome = sessions.stage(&request, &mut observe, &AtomicBool::new(false)).expect("hosts are left");
    (outcome, used)
}

fn begin(addresses: Vec<SocketAddr>) -> (Sessions, f64, f64) {
    let count = addresses.len();
    let since = Instant::now();
    let fleet = Fleet::connect(ConnectRequest {
        hosts: addresses.into_iter().map(Into::into).collect(),
        secret: super::super::secret("the token of all"),
        tls: std::env::var_os("STRATA_SCALE_TLS").is_some(),
        timeout: 6 * PATIENCE,
    })
    .expect("the fleet's thread starts");
    let connected = since.elapsed();
    let failed = fleet.failures().map(|(_, error)| error.to_string()).next();
    assert_eq!((fleet.failures().count(), failed), (0, None));
    let since = Instant::now();
    let request = |rank: usize| SessionRequest {
        schema_version: SCHEMA,
        run: 1,
        seed: 1,
        started_at: "2026-01-01T00:00:00Z".to_owned(),
        specs: vec![b' '; 1024],
        rank: rank as u32,
        hosts: count as u32,
        leader: "the measurement".to_owned(),
        lease: Duration::from_secs(10),
        progress_interval: report_interval(count),
    };
    let mut sessions = Sessions::begin(fleet, SessionTerms { goes_on: false }, &request);
    let plans = sessions.plans(&AtomicBool::new(false)).expect("all plan");
    assert_eq!(plans.len(), count);
    (sessions, connected.as_secs_f64(), since.elapsed().as_secs_f64())
}

/// The merged results are those that the hosts measured.
fn check(merged: &PhaseSamples, count: usize) {
    if count > 100 {
        return;
    }
    let measured: Vec<PhaseSamples> = (0..count).map(|host| samples(host as u64)).collect();
    let mut whole = merge(&measured.iter().collect::<Vec<_>>()).expect("hosts");
    for (worker, known) in whole.workers.iter_mut().zip(&merged.workers) {
        worker.origin.clone_from(&known.origin);
    }
    assert_eq!(*merged, whole);
}

#[test]
fn scale_of_sessions() {
    let count = number("STRATA_SCALE_HOSTS", 20);
    let (mut children, addresses) = start_services(count);
    let labels: Vec<String> = addresses.iter().map(ToString::to_string).collect();
    let (mut sessions, connect_s, plan_s) = begin(addresses);
    let connected_mib = memory("VmRSS:") as f64 / f64::from(1 << 20);
    let (told_ns, told_cpu) = (unix_ns(), own_cost().0);
    let (outcome, used) = stage(&mut sessions, &children, &labels);
    let start_ns = outcome.start_unix_ns.expect("it began");
    let end_ns = start_ns + number("STRATA_SCALE_SECONDS", 2) as u64 * 1_000_000_000;
    let collect_s = unix_ns().saturating_sub(end_ns) as f64 / 1e9;
    let running = *used.first().unwrap_or(&Used::now(&children));
    let over = *used.iter().rfind(|used| used.at_unix_ns < end_ns).unwrap_or(&running);
    let since = Instant::now();
    let (mut late, mut told_late_ns) = (Vec::<i64>::new(), 0);
    let mut merger = Merger::new(0);
    for (end, label) in outcome.hosts.into_iter().zip(&labels) {
        assert_eq!(end.failure, None, "{label}");
        for (_, mut samples, details) in end.phases {
            late.extend(details["lateness_ns"].as_i64());
            told_late_ns = told_late_ns.max(details["late_ns"].as_u64().unwrap_or(0));
            samples.workers.iter_mut().for_each(|worker| worker.origin = Some(label.clone()));
            merger.add(samples);
        }
    }
    let merged = merger.finish().expect("hosts");
    check(&merged, count);
    let merge_s = since.elapsed().as_secs_f64();
    let since = Instant::now();
    assert_eq!((by_origin(&merged).len(), merged.workers.len(), late.len()), (count, WORKERS * count, count));
    let by_host_s = since.elapsed().as_secs_f64();
    let since = Instant::now();
    sessions.end(&AtomicBool::new(false));
    let end_s = since.elapsed().as_secs_f64();
    late.sort_unstable();
    let at = |share: usize| late[(late.len() - 1) * share / 100];
    // Without two looks at all of them at work these figures are no numbers.
    let seconds = (over.at_unix_ns - running.at_unix_ns) as f64 / 1e9;
    println!(
        "\nscale hosts={count} connect_s={connect_s:.3} plan_s={plan_s:.3} start_s={:.3} start_cpu_s={:.2} skew_ms={:.2} p99_late_ms={:.2} told_late_ms={:.2} \
         cpu_percent={:.1} services_cpu_percent={:.1} bytes_per_host_s={:.0} collect_s={collect_s:.3} merge_s={merge_s:.3} \
         by_host_s={by_host_s:.3} end_s={end_s:.3} cpu_s={:.2} connected_mib={connected_mib:.0} peak_mib={:.0}",
        (start_ns - told_ns) as f64 / 1e9,
        (running.own - told_cpu).as_secs_f64(),
        (at(100) - at(0)) as f64 / 1e6,
        (at(99) - at(50)) as f64 / 1e6,
        told_late_ns as f64 / 1e6,
        (over.own - running.own).as_secs_f64() / seconds * 100.0,
        (over.services - running.services).as_secs_f64() / seconds * 100.0,
        (over.bytes - running.bytes) as f64 / seconds / count as f64,
        own_cost().0.as_secs_f64(),
        own_cost().1 as f64 / f64::from(1 << 20),
    );
    for child in &mut children {
        drop(child.stdin.take());
        child.wait().expect("it ends");
    }
}
