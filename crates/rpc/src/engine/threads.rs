//! The service threads: started together, ended together.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use driver::Error;
use host::topology;

use super::{EngineRequest, STOP_WAIT, transport};
use crate::inbox::{Inbox, InboxSender, inbox};
use crate::seat::{Budget, Log, Seat};
use crate::service::Counters;
use crate::service::Limits;
use crate::tags::TagRole;

/// How long all endpoints together may take to open.
const OPEN_WAIT: Duration = Duration::from_secs(30);
/// How often an endpoint that opens is looked at.
const OPEN_LOOK: Duration = Duration::from_millis(2);

/// Facts of an endpoint that the acceptor needs.
pub(super) struct Endpoint {
    /// Memory of the engine, and what its clients leave to each other.
    pub(super) budget: Arc<Budget>,
    pub(super) sender: InboxSender,
    pub(super) counters: Arc<Counters>,
    pub(super) fabric_name: Arc<OnceLock<Vec<u8>>>,
    /// False once its thread has ended.
    pub(super) is_alive: Arc<AtomicBool>,
}

/// The threads of an engine.
pub(super) struct Crew {
    members: Vec<(String, JoinHandle<()>)>,
    ended: (Sender<usize>, Receiver<usize>),
}

impl Crew {
    /// Starts the service threads, and returns when all of them serve.
    ///
    /// # Errors
    /// When a thread, a pin or an endpoint cannot be had; those that run already are ended.
    pub(super) fn start(
        request: &EngineRequest,
        log: &Log,
        stop: &Arc<AtomicBool>,
    ) -> Result<(Self, Vec<Endpoint>), Error> {
        check_cores(&request.cores)?;
        let mut crew = Self { members: Vec::new(), ended: channel() };
        let mut endpoints = Vec::new();
        let result = crew
            .spawn_all(request, log, stop, &mut endpoints)
            .and_then(|ready| await_ready(request, &ready, &endpoints));
        match result {
            Ok(()) => Ok((crew, endpoints)),
            Err(error) => {
                stop.store(true, Ordering::SeqCst);
                endpoints.iter().for_each(|endpoint| endpoint.sender.ring());
                crew.join(STOP_WAIT);
                Err(error)
            }
        }
    }

    fn spawn_all(
        &mut self,
        request: &EngineRequest,
        log: &Log,
        stop: &Arc<AtomicBool>,
        endpoints: &mut Vec<Endpoint>,
    ) -> Result<Receiver<Result<(), Error>>, Error> {
        let (sender, ready) = channel();
        let Limits { memory_bytes_max, connections_max, .. } = request.limits;
        let budget = Budget::shared(memory_bytes_max, connections_max);
        for tag in 0..request.tags.tags() {
            let (inbox_sender, inbox) = inbox()?;
            let seat = Seat {
                rank: request.rank,
                tag,
                poll: request.poll,
                limits: request.limits,
                budget: Arc::clone(&budget),
                counters: Arc::default(),
                stop: Arc::clone(stop),
                log: Arc::clone(log),
                fabric_name: Arc::default(),
            };
            let is_alive = Arc::new(AtomicBool::new(true));
            endpoints.push(Endpoint {
                budget: Arc::clone(&budget),
                sender: inbox_sender,
                counters: Arc::clone(&seat.counters),
                fabric_name: Arc::clone(&seat.fabric_name),
                is_alive: Arc::clone(&is_alive),
            });
            let core = (!request.cores.is_empty()).then(|| request.cores[tag as usize % request.cores.len()]);
            let leave = Leave { is_alive, seat: seat.clone() };
            let (request, sender) = (request.clone(), sender.clone());
            self.spawn(&thread_name(tag, request.tags.role(tag)), move || {
                let _leave = leave;
                work(&request, core, seat, inbox, &sender);
            })?;
        }
        Ok(ready)
    }

    /// Starts a thread of the engine.
    ///
    /// # Errors
    /// When the system gives none.
    pub(super) fn spawn(&mut self, name: &str, work: impl FnOnce() + Send + 'static) -> Result<(), Error> {
        let notice = Notice { number: self.members.len(), ended: self.ended.0.clone() };
        let body = move || {
            let _notice = notice;
            work();
        };
        let handle = std::thread::Builder::new()
            .name(name.to_owned())
            .spawn(body)
            .map_err(|error| Error::system("engine", "cannot start a thread", error).with("thread", name))?;
        self.members.push((name.to_owned(), handle));
        Ok(())
    }

    /// Waits for all threads to end; returns the names of those that have not within `wait`.
    pub(super) fn join(self, wait: Duration) -> Vec<String> {
        let end = Instant::now() + wait;
        let mut left: Vec<_> = self.members.into_iter().map(Some).collect();
        while left.iter().any(Option::is_some) {
            let Ok(number) = self.ended.1.recv_timeout(end.saturating_duration_since(Instant::now())) else {
                break;
            };
            if let Some((_, handle)) = left.get_mut(number).and_then(Option::take) {
                // A panic was told when it happened.
                let _ = handle.join();
            }
        }
        left.into_iter().flatten().map(|(name, _)| name).collect()
    }
}

/// Says that a thread has ended, however it did.
struct Notice {
    number: usize,
    ended: Sender<usize>,
}

impl Drop for Notice {
    fn drop(&mut self) {
        let _ = self.ended.send(self.number);
    }
}

/// Says that an endpoint serves no more.
struct Leave {
    is_alive: Arc<AtomicBool>,
    seat: Seat,
}

impl Drop for Leave {
    fn drop(&mut self) {
        self.is_alive.store(false, Ordering::SeqCst);
        if !self.seat.stop.load(Ordering::SeqCst) {
            let how = if std::thread::panicking() { "by a panic" } else { "early" };
            (self.seat.log)(&format!("tag {} has ended {how}: it takes no more connections", self.seat.tag));
        }
    }
}

fn work(
    request: &EngineRequest,
    core: Option<u32>,
    seat: Seat,
    inbox: Inbox,
    ready: &Sender<Result<(), Error>>,
) {
    let pinned = core.map_or(Ok(()), pin);
    let is_pinned = pinned.is_ok();
    let service = is_pinned.then(|| (request.service)(seat.tag));
    // Nobody listens any more when the start was given up.
    if ready.send(pinned).is_ok()
        && let Some(service) = service
    {
        transport::serve(request, seat, inbox, service);
    }
}

fn await_ready(
    request: &EngineRequest,
    ready: &Receiver<Result<(), Error>>,
    endpoints: &[Endpoint],
) -> Result<(), Error> {
    let end = Instant::now() + OPEN_WAIT;
    let late = || {
        Error::new(driver::ErrorKind::System, "engine", "an endpoint did not open")
            .with("provider", &request.provider)
            .with("seconds", OPEN_WAIT.as_secs())
    };
    for _ in endpoints {
        match ready.recv_timeout(end.saturating_duration_since(Instant::now())) {
            Ok(result) => result?,
            Err(RecvTimeoutError::Timeout) => return Err(late()),
            Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    let is_open = |endpoint: &Endpoint| {
        !transport::has_fabric_names(&request.provider) || endpoint.fabric_name.get().is_some()
    };
    loop {
        if let Some(tag) = endpoints.iter().position(|endpoint| !endpoint.is_alive.load(Ordering::SeqCst)) {
            return Err(Error::new(
                driver::ErrorKind::System,
                "engine",
                "an endpoint ended before it served",
            )
            .with("tag", tag)
            .with("provider", &request.provider)
            .remedy("see the previous lines for the reason"));
        }
        if endpoints.iter().all(is_open) {
            return Ok(());
        }
        if Instant::now() >= end {
            return Err(late());
        }
        std::thread::sleep(OPEN_LOOK);
    }
}

/// As long as the kernel shows: 15 characters.
fn thread_name(tag: u32, role: Option<TagRole>) -> String {
    let role = match role {
        Some(TagRole::Metadata) => "metadata".to_owned(),
        Some(TagRole::Monitoring) => "monitor".to_owned(),
        Some(TagRole::Target(number)) => format!("target{number}"),
        Some(TagRole::Helper(number)) => format!("help{number}"),
        None => String::new(),
    };
    format!("tag{tag}-{role}")
}

fn check_cores(cores: &[u32]) -> Result<(), Error> {
    if cores.is_empty() {
        return Ok(());
    }
    let allowed = topology::current_affinity()
        .map_err(|error| Error::system("engine", "cannot query the CPUs of this process", error))?;
    let Some(core) = cores.iter().find(|core| !allowed.contains(core)) else { return Ok(()) };
    let all: Vec<_> = allowed.iter().map(u32::to_string).collect();
    Err(Error::usage("engine", format!("this process may not use CPU {core}"))
        .remedy(format!("accepted: {}", all.join(", "))))
}

fn pin(core: u32) -> Result<(), Error> {
    topology::pin_current_thread(core).map_err(|error| {
        Error::system("engine", "cannot pin a service thread", error).with("processor", core)
    })
}
