//! One stage of the network layer: jobs for the runner, what is seen around them, and their outcomes.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};

use driver::{Arena, Error, ErrorKind};
use gpu::{GpuPath, GpuWatch, WorkerNotes};
use layer::masters::{self, Driven};
use layer::memory::{Attached, WorkerMemory};
use layer::observations::{LinkActivity, Observations};
use layer::server::LocalEngine;
use layer::{Control, Part, Phase, Seen, StageContext};
use runner::{GRACE_NS, Job, Opener, Outcome, WorkerSetup};
use statistics::Snapshot;
use workload::random::derive_seed;

use super::link::LinkWatch;
use super::monitor::Monitor;
use super::servers::{self, ServerWatch};
use super::sync;
use crate::plan::worker_endpoints;
use crate::{NetworkPlan, OpenRequest, Rpc, RpcClass, RpcSource, SlotLayout, payload_seed};

/// State of the way to the endpoints of a phase.
#[derive(Debug, Default)]
pub(super) struct Access {
    /// Endpoints are asked for a sign of life before the first phase.
    pub(super) is_asked_first: bool,
    /// Notes for the user on the way to the endpoints.
    pub(super) notes: Vec<String>,
    /// The engine that the run started itself; it ends with this.
    pub(super) engine: Option<LocalEngine>,
    /// Endpoints that gave no sign of life, once they were asked.
    pub(super) silent: OnceLock<Vec<String>>,
}

/// The runner's job for a plan, as this process drives it: alone, or as one of the plan's masters.
fn job(
    plan: &NetworkPlan,
    master: Option<usize>,
    control: &Control,
    (gpu_notes, interrupt): (&WorkerNotes, Arc<AtomicBool>),
) -> Job {
    let (shared, control, flag) = (Arc::new(plan.clone()), control.clone(), Arc::clone(&interrupt));
    let gpu_notes = gpu_notes.clone();
    let open = Opener::new(move |worker| setup(&shared, master, worker, &control, (&gpu_notes, &flag)));
    Job {
        grace_ns: GRACE_NS.max(plan.timeout_ns.saturating_add(5_000_000_000)),
        ..Job::new(&plan.name, &plan.load, vec![RpcClass::Rpc as usize], open, interrupt)
    }
}

fn setup(
    plan: &NetworkPlan,
    master: Option<usize>,
    worker: u32,
    control: &Control,
    (gpu_notes, interrupt): (&WorkerNotes, &Arc<AtomicBool>),
) -> Result<WorkerSetup<Rpc, RpcSource>, Error> {
    let layout = SlotLayout::new(plan.request, plan.reply, plan.align);
    let needs = plan.worker_needs(worker);
    let arena = Arc::new(Arena::new(needs.depth, layout.slot_bytes, needs.pages())?);
    let memory = WorkerMemory::take(&needs, &arena, gpu_notes)?;
    let indexes = worker_endpoints(plan, master, worker);
    let number = plan.load.worker_of_all(worker);
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
        domain: control.domain.clone(),
        verify: plan.verify,
        seed: payload_seed(seed, number),
        arena: Arc::clone(&arena),
        device: memory.request.clone().filter(|device| device.plan.path == GpuPath::Rdma),
        secret: control.secret.clone(),
        interrupt: Arc::clone(interrupt),
    };
    let opened = (super::driver_of(&plan.engine)?.open)(&request)?;
    let source = RpcSource::new(&request, plan.order, seed, number)?;
    let parts = indexes.into_iter().map(|index| index as usize).collect();
    let Attached { driver, device, notes } =
        memory.attach_exchange(&needs, opened, &arena, plan.exchange(layout))?;
    Ok(WorkerSetup { driver, source: source.on_device(device), notes, parts })
}

/// A phase with its plan and its state.
pub(super) struct Ready<'a> {
    phase: &'a Phase,
    /// Its plan.
    pub(super) plan: &'a NetworkPlan,
    /// State of the way to its endpoints.
    pub(super) access: Arc<Access>,
    /// Notes of its workers about their devices.
    gpu_notes: WorkerNotes,
}

impl<'a> Ready<'a> {
    fn of(phase: &'a Phase) -> Result<Self, Error> {
        let (plan, access) = (plan_of(phase)?, phase.state().unwrap_or_default());
        Ok(Self { phase, plan, access, gpu_notes: WorkerNotes::default() })
    }

    /// Secrets of the way there.
    pub(super) fn control(&self) -> &Control {
        &self.phase.control
    }
}

fn plan_of(phase: &Phase) -> Result<&NetworkPlan, Error> {
    phase.plan.of().ok_or_else(|| Error::new(ErrorKind::Run, "stage", "a phase has a plan of another layer"))
}

/// Phases of the network that are ready to run.
pub(super) struct NetworkPart<'a> {
    stage: Vec<Ready<'a>>,
    interrupt: Arc<AtomicBool>,
    servers: Option<ServerWatch>,
    links: Vec<Option<LinkWatch>>,
    /// Devices that payloads of each phase lie on.
    gpus: Vec<Option<GpuWatch>>,
    /// Activity of the links of each phase, of this machine or of those that drive.
    activities: Vec<Vec<LinkActivity>>,
    seen: servers::Seen,
}

impl<'a> NetworkPart<'a> {
    /// Gets the phases of a stage ready: endpoints are asked for a sign of life before the first of them.
    ///
    /// # Errors
    /// When a phase cannot begin.
    pub(super) fn new(phases: &[&'a Phase], context: &StageContext<'_>) -> Result<Self, Error> {
        let stage = phases.iter().map(|phase| Ready::of(phase)).collect::<Result<Vec<_>, Error>>()?;
        for ready in stage.iter().filter(|ready| ready.access.is_asked_first) {
            sync::ask_first(ready, context)?;
        }
        Ok(Self {
            stage,
            interrupt: Arc::clone(&context.interrupt),
            servers: None,
            links: Vec::new(),
            gpus: Vec::new(),
            activities: Vec::new(),
            seen: servers::Seen::default(),
        })
    }
}

impl Part for NetworkPart<'_> {
    fn jobs(&mut self) -> Vec<Job> {
        self.links = self.stage.iter().map(|ready| LinkWatch::begin(ready.plan, None)).collect();
        let watch = |ready: &Ready<'_>| ready.plan.memory.gpu().and_then(|gpu| GpuWatch::begin(&gpu.devices));
        self.gpus = self.stage.iter().map(watch).collect();
        let job = |ready: &Ready<'_>| {
            job(ready.plan, None, ready.control(), (&ready.gpu_notes, Arc::clone(&self.interrupt)))
        };
        self.stage.iter().map(job).collect()
    }

    fn is_driven_elsewhere(&self) -> bool {
        self.stage.iter().any(|ready| !ready.plan.masters.is_empty())
    }

    fn drive(&mut self, observe: &mut dyn FnMut(&Snapshot)) -> Result<Vec<Outcome>, Error> {
        let driven = self.stage.iter();
        let driven = driven.map(|ready| Driven { phase: ready.phase, timeout_ns: ready.plan.timeout_ns });
        let stage: Vec<Driven<'_>> = driven.collect();
        let monitor = Monitor::begin(&self.stage);
        let outcomes = masters::drive(&stage, &|| monitor.hosts(), &self.interrupt, observe)?;
        let (outcomes, links) = outcomes.into_iter().unzip();
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
        for (outcome, Ready { access, .. }) in outcomes.iter_mut().zip(&self.stage) {
            let silent = access.silent.get().into_iter().flatten();
            let notes: Vec<String> = access.notes.iter().chain(silent).cloned().collect();
            outcome.notes.splice(0..0, notes);
        }
        let segments = self.seen.segments.filter(|_| !self.is_driven_elsewhere());
        let outcomes = outcomes.into_iter().zip(self.activities).zip(&self.stage);
        let mut gpus = self.gpus.into_iter();
        let seen = outcomes.map(|((outcome, links), ready)| {
            let observations = Observations {
                servers: self.seen.of(ready.plan),
                tcp_retransmitted_segments: segments.map(|(again, _)| again),
                tcp_sent_segments: segments.map(|(_, sent)| sent),
                links,
                gpu: gpus.next().flatten().map(|watch| watch.end(&ready.gpu_notes)),
                ..machine.clone()
            };
            (outcome, observations)
        });
        seen.collect()
    }
}

/// Phases that this process drives for another one: it watches its own interface alone.
pub(super) struct MasterPart {
    jobs: Vec<Job>,
    links: Vec<Option<LinkWatch>>,
}

impl MasterPart {
    /// Gets the phases ready, each for the master of its number.
    ///
    /// # Errors
    /// Plans of another layer.
    pub(super) fn new(phases: &[(&Phase, usize)], context: &StageContext<'_>) -> Result<Self, Error> {
        let (mut jobs, mut links) = (Vec::new(), Vec::new());
        for (phase, master) in phases {
            let plan = plan_of(phase)?;
            links.push(LinkWatch::begin(plan, Some(*master)));
            let with = (&WorkerNotes::default(), Arc::clone(&context.interrupt));
            jobs.push(job(plan, Some(*master), &phase.control, with));
        }
        Ok(Self { jobs, links })
    }
}

impl Part for MasterPart {
    fn jobs(&mut self) -> Vec<Job> {
        std::mem::take(&mut self.jobs)
    }

    fn begin(&mut self) -> Result<(), Error> {
        Ok(())
    }

    fn stop(&mut self) -> u64 {
        0
    }

    fn end(self: Box<Self>, outcomes: Vec<Outcome>, machine: &Observations) -> Vec<Seen> {
        let links = self.links.into_iter().map(|link| link.and_then(LinkWatch::end).into_iter().collect());
        let seen = outcomes.into_iter().zip(links);
        seen.map(|(outcome, links)| (outcome, Observations { links, ..machine.clone() })).collect()
    }
}
