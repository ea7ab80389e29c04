//! One stage of the network layer: jobs for the runner, what is seen around them, and their outcomes.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};

use driver::{Arena, Error, PageSize, Secret};
use layer::observations::{LinkActivity, Observations};
use layer::{Part, Seen};
use network::{OpenRequest, Rpc, RpcClass, RpcSource, SlotLayout, payload_seed};
use runner::{GRACE_NS, Job, Opener, Outcome, WorkerSetup};
use statistics::Snapshot;
use workload::network::NetworkPlan;
use workload::plan::worker_endpoints;
use workload::random::derive_seed;

use super::link::LinkWatch;
use super::local::LocalEngine;
use super::servers::ServerWatch;
use super::{masters, servers, sync};

/// Secrets and settings that a phase needs besides its plan: secrets stand in no record.
#[derive(Debug, Default)]
pub(crate) struct Access {
    /// The shared secret.
    pub(crate) secret: Option<Secret>,
    /// TLS for control on loopback too.
    pub(crate) tls: bool,
    /// Domain of the fabric.
    pub(crate) domain: Option<String>,
    /// Endpoints are asked for a sign of life before the first phase.
    pub(crate) is_asked_first: bool,
    /// Notes for the user on the way to the endpoints.
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
) -> Job {
    let (shared, access, flag) = (Arc::new(plan.clone()), Arc::clone(access), Arc::clone(&interrupt));
    let open = Opener::new(move |worker| setup(&shared, master, worker, &access, &flag));
    Job {
        grace_ns: GRACE_NS.max(plan.timeout_ns.saturating_add(5_000_000_000)),
        ..Job::new(&plan.name, &plan.load, vec![RpcClass::Rpc as usize], open, interrupt)
    }
}

fn setup(
    plan: &NetworkPlan,
    master: Option<usize>,
    worker: u32,
    access: &Access,
    interrupt: &Arc<AtomicBool>,
) -> Result<WorkerSetup<Rpc, RpcSource>, Error> {
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
        secret: access.secret.clone(),
        interrupt: Arc::clone(interrupt),
    };
    let opened = (super::driver_of(&plan.engine)?.open)(&request)?;
    let source = RpcSource::new(&request, plan.order, seed, worker)?;
    let parts = indexes.into_iter().map(|index| index as usize).collect();
    Ok(WorkerSetup { driver: opened.driver, source, notes: opened.notes, parts })
}

/// A phase with what it needs.
pub(crate) type Ready<'a> = (&'a NetworkPlan, &'a Arc<Access>);

/// Phases of the network that are ready to run.
pub(crate) struct NetworkPart<'a> {
    stage: Vec<Ready<'a>>,
    interrupt: Arc<AtomicBool>,
    servers: Option<ServerWatch>,
    links: Vec<Option<LinkWatch>>,
    /// Activity of the links of each phase, of this machine or of those that drive.
    activities: Vec<Vec<LinkActivity>>,
    seen: servers::Seen,
}

impl<'a> NetworkPart<'a> {
    /// Gets the phases of a stage ready: endpoints are asked for a sign of life before the first of them.
    ///
    /// # Errors
    /// When a phase cannot begin.
    pub(crate) fn new(stage: Vec<Ready<'a>>, interrupt: &Arc<AtomicBool>) -> Result<Self, Error> {
        for (plan, access) in &stage {
            if access.is_asked_first {
                sync::ask_first(plan, access, interrupt)?;
            }
        }
        Ok(Self {
            stage,
            interrupt: Arc::clone(interrupt),
            servers: None,
            links: Vec::new(),
            activities: Vec::new(),
            seen: servers::Seen::default(),
        })
    }
}

impl Part for NetworkPart<'_> {
    fn jobs(&mut self) -> Vec<Job> {
        self.links = self.stage.iter().map(|(plan, _)| LinkWatch::begin(plan, None)).collect();
        let jobs =
            self.stage.iter().map(|(plan, access)| job(plan, None, access, Arc::clone(&self.interrupt)));
        jobs.collect()
    }

    fn is_driven_elsewhere(&self) -> bool {
        self.stage.iter().any(|(plan, _)| !plan.masters.is_empty())
    }

    fn drive(&mut self, observe: &mut dyn FnMut(&Snapshot)) -> Result<Vec<Outcome>, Error> {
        let (outcomes, links) = masters::run(&self.stage, &self.interrupt, observe)?.into_iter().unzip();
        self.activities = links;
        Ok(outcomes)
    }

    fn begin(&mut self) -> Result<(), Error> {
        self.servers = Some(ServerWatch::begin(&self.stage));
        Ok(())
    }

    fn stop(&mut self) -> u64 {
        for link in std::mem::take(&mut self.links) {
            self.activities.push(link.and_then(LinkWatch::end).into_iter().collect());
        }
        self.seen = self.servers.take().map(|watch| watch.end(&self.stage)).unwrap_or_default();
        self.seen.local_cpu_ns
    }

    fn end(self: Box<Self>, mut outcomes: Vec<Outcome>, machine: &Observations) -> Vec<Seen> {
        for (outcome, (_, access)) in outcomes.iter_mut().zip(&self.stage) {
            let silent = access.silent.get().into_iter().flatten();
            let notes: Vec<String> = access.notes.iter().chain(silent).cloned().collect();
            outcome.notes.splice(0..0, notes);
        }
        let segments = self.seen.segments.filter(|_| !self.is_driven_elsewhere());
        let outcomes = outcomes.into_iter().zip(self.activities).zip(&self.stage);
        let seen = outcomes.map(|((outcome, links), (plan, _))| {
            let observations = Observations {
                servers: self.seen.of(plan),
                tcp_retransmitted_segments: segments.map(|(again, _)| again),
                tcp_sent_segments: segments.map(|(_, sent)| sent),
                links,
                ..machine.clone()
            };
            (outcome, observations)
        });
        seen.collect()
    }
}
