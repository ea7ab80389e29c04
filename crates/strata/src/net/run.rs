//! One stage of the network layer: jobs for the runner, what is seen around them, and their outcomes.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};
use std::time::SystemTime;

use driver::{Arena, Error, HostClock, PageSize};
use network::{OpenRequest, Rpc, RpcClass, RpcSource, SlotLayout, payload_seed};
use report::record::{LinkActivity, Observations};
use runner::{GRACE_NS, Job, Outcome, Station};
use statistics::Snapshot;
use workload::network::NetworkPlan;
use workload::plan::worker_endpoints;
use workload::random::derive_seed;

use super::link::LinkWatch;
use super::local::LocalEngine;
use super::servers::ServerWatch;
use super::{masters, sync};
use crate::secret::Secrets;
use crate::watch::MachineWatch;

/// What a phase needs besides its plan: secrets stand in no record.
#[derive(Debug, Default)]
pub(crate) struct Access {
    /// The shared secret.
    pub(crate) secrets: Option<Secrets>,
    /// TLS for control on loopback too.
    pub(crate) tls: bool,
    /// Domain of the fabric.
    pub(crate) domain: Option<String>,
    /// Endpoints are asked for a sign of life before the first phase.
    pub(crate) is_asked_first: bool,
    /// What a person should know of the way to the endpoints.
    pub(crate) notes: Vec<String>,
    /// The engine that the run started itself; it ends with this.
    pub(crate) engine: Option<LocalEngine>,
    /// Endpoints that gave no sign of life, once they were asked.
    pub(crate) silent: OnceLock<Vec<String>>,
}

/// The runner's job for a plan, as this process drives it: alone, or as one of the plan's masters.
pub(crate) fn job(
    plan: &NetworkPlan,
    master: Option<usize>,
    access: &Arc<Access>,
    interrupt: Arc<AtomicBool>,
) -> Job<Rpc, RpcSource> {
    let (shared, access, flag) = (Arc::new(plan.clone()), Arc::clone(access), Arc::clone(&interrupt));
    Job {
        name: plan.name.clone(),
        load: plan.load.clone(),
        classes: vec![RpcClass::Rpc as usize],
        expected_operations: None,
        finishes: false,
        grace_ns: GRACE_NS.max(plan.timeout_ns.saturating_add(5_000_000_000)),
        open: Arc::new(move |worker| station(&shared, master, worker, &access, &flag)),
        interrupt,
    }
}

fn station(
    plan: &NetworkPlan,
    master: Option<usize>,
    worker: u32,
    access: &Access,
    interrupt: &Arc<AtomicBool>,
) -> Result<Station<Rpc, RpcSource>, Error> {
    let layout = SlotLayout::new(plan.request, plan.reply, plan.align);
    let arena = Arc::new(Arena::new(plan.load.depth, layout.slot_bytes, PageSize::Base)?);
    let indexes = worker_endpoints(plan, master, worker);
    // Masters draw and fill apart from each other.
    let seed = master.map_or(plan.load.seed, |master| derive_seed(plan.load.seed, &[master as u64]));
    let request = OpenRequest {
        endpoints: indexes.iter().map(|&index| plan.endpoints[index as usize].clone()).collect(),
        request: plan.request,
        reply: plan.reply,
        layout,
        connections: plan.connections,
        pipeline: plan.pipeline,
        depth: plan.load.depth,
        poll: plan.poll,
        timeout_ns: plan.timeout_ns,
        socket: plan.socket.clone(),
        domain: access.domain.clone(),
        verify: plan.verify,
        seed: payload_seed(seed, worker),
        arena,
        token: access.secrets.as_ref().map(|secrets| secrets.token.clone()),
        interrupt: Arc::clone(interrupt),
    };
    let opened = (super::driver_of(&plan.engine)?.open)(&request)?;
    let source = RpcSource::new(&request, plan.order, seed, worker)?;
    let parts = indexes.into_iter().map(|index| index as usize).collect();
    Ok(Station { driver: opened.driver, source, notes: opened.notes, parts })
}

/// A phase with what it needs.
pub(crate) type Ready<'a> = (&'a NetworkPlan, &'a Arc<Access>);

/// Runs phases at the same time; when they began, and what came of each.
///
/// # Errors
/// When they could not begin.
pub(crate) fn run(
    stage: &[Ready<'_>],
    interrupt: &Arc<AtomicBool>,
    observe: &mut dyn FnMut(&Snapshot),
) -> Result<(SystemTime, Vec<(Outcome, Observations)>), Error> {
    for (plan, access) in stage {
        if access.is_asked_first {
            sync::ask_first(plan, access, interrupt)?;
        }
    }
    let servers = ServerWatch::begin(stage);
    let machine = MachineWatch::begin();
    let begun = SystemTime::now();
    let is_driven_here = stage.iter().all(|(plan, _)| plan.masters.is_empty());
    let watches: Vec<_> = stage.iter().map(|(plan, _)| LinkWatch::begin(plan, None)).collect();
    let mut links: Vec<Vec<LinkActivity>> = Vec::new();
    let mut outcomes = if is_driven_here {
        let jobs = stage.iter().map(|(plan, access)| job(plan, None, access, Arc::clone(interrupt)));
        runner::run_together(jobs.collect(), HostClock::get(), observe)?
    } else {
        let (outcomes, seen) = masters::run(stage, interrupt, observe)?.into_iter().unzip();
        links = seen;
        outcomes
    };
    if is_driven_here {
        links =
            watches.into_iter().map(|watch| watch.and_then(LinkWatch::end).into_iter().collect()).collect();
    }
    for (outcome, (_, access)) in outcomes.iter_mut().zip(stage) {
        let silent = access.silent.get().into_iter().flatten();
        let notes: Vec<String> = access.notes.iter().chain(silent).cloned().collect();
        outcome.notes.splice(0..0, notes);
    }
    let seen = servers.end();
    let common =
        if is_driven_here { machine.end(&outcomes, seen.local_cpu_ns) } else { Observations::default() };
    let outcomes = outcomes.into_iter().zip(links).zip(stage).map(|((outcome, links), (plan, _))| {
        let segments = seen.segments.filter(|_| is_driven_here);
        let observations = Observations {
            servers: seen.of(plan),
            tcp_retransmitted_segments: segments.map(|(again, _)| again),
            tcp_sent_segments: segments.map(|(_, sent)| sent),
            links,
            ..common.clone()
        };
        (outcome, observations)
    });
    Ok((begun, outcomes.collect()))
}
