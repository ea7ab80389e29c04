//! One rank of a group: its acceptor, and a service thread for each tag.
//!
//! ```text
//! client --TCP--> acceptor --handshake--> inbox of the tag --> service thread: messages, bulk, Service::call
//! ```
//!
//! The acceptor is one thread that waits for nobody: a connection in its handshake is a small state ([`crate::handshake`]). A service thread is
//! pinned where the request says so, and serves one tag until the engine stops.

mod acceptor;
mod listen;
mod log;
mod threads;
mod transport;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use driver::{Error, ErrorKind, Secret};

use crate::address::{Address, Provider};
use crate::group::{self, Publication, Rank};
use crate::seat::Log;
use crate::service::{Counters, Limits, Service};
use crate::tags::{TagMap, TagRole};
use crate::{Poll, SocketPlan};
use acceptor::{Acceptor, AcceptorState};
use threads::Crew;

/// How long a stop waits for the threads.
const STOP_WAIT: Duration = Duration::from_secs(5);

/// Makes the service of a tag, on the thread that serves it.
pub type ServiceFactory = Arc<dyn Fn(u32) -> Box<dyn Service> + Send + Sync>;

/// Arguments of an engine.
#[derive(Clone)]
pub struct EngineRequest {
    /// Its rank in the group.
    pub rank: u32,
    /// Its group.
    pub group: String,
    /// How its endpoints are reached.
    pub provider: Provider,
    /// Its tags.
    pub tags: TagMap,
    /// Where it listens; port 0 lets the kernel choose. The first address is the one that others are told.
    pub listen: Vec<SocketAddr>,
    /// Name or IP address that others are told instead of the first one in `listen`; the host's name where that is a wildcard and this none.
    pub advertise: Option<String>,
    /// Processors that service threads are pinned to, in turn; none are pinned when empty.
    pub cores: Vec<u32>,
    /// How service threads wait.
    pub poll: Poll,
    /// Limits of the engine.
    pub limits: Limits,
    /// Options of its sockets. The source address is where it listens, so none is taken here.
    pub socket: SocketPlan,
    /// The shared secret. Demanded of every client when there is one; needed beyond loopback.
    pub secret: Option<Secret>,
    /// Directory of the attach-info file; the engine stands in none when none.
    pub attach_info_dir: Option<PathBuf>,
    /// Control address that the file tells, `host:port`.
    pub control: Option<String>,
    /// Interface of the fabric (`OFI_INTERFACE`), for `ofi`.
    pub interface: Option<String>,
    /// Domain of the fabric (`OFI_DOMAIN`), for `ofi`.
    pub domain: Option<String>,
    /// Factory of the services of the tags.
    pub service: ServiceFactory,
    /// Where it says what happened. Others are held to 20 lines a second.
    pub log: Log,
}

impl EngineRequest {
    /// Rank 0 of `daos_server` on an ephemeral loopback port, with 1 target, unpinned, in no attach-info file.
    #[must_use]
    pub fn new(service: ServiceFactory, log: Log) -> Self {
        Self {
            rank: 0,
            group: "daos_server".to_owned(),
            provider: Provider::Tcp,
            tags: TagMap::default(),
            listen: vec![SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0)],
            advertise: None,
            cores: Vec::new(),
            poll: Poll::default(),
            limits: Limits::default(),
            socket: SocketPlan { no_delay: true, ..SocketPlan::default() },
            secret: None,
            attach_info_dir: None,
            control: None,
            interface: None,
            domain: None,
            service,
            log,
        }
    }

    fn check(&self) -> Result<(), Error> {
        group::check_name(&self.group)?;
        if self.rank == u32::MAX {
            return Err(Error::usage("engine", format!("{} is not a rank", self.rank))
                .remedy(format!("accepted: 0-{}", u32::MAX - 1)));
        }
        if self.listen.is_empty() {
            return Err(Error::usage("engine", "there is no address to listen on"));
        }
        if self.limits.connections_max == 0 {
            return Err(Error::usage("engine", "an engine needs at least one connection")
                .remedy("use a limit of 1 connection or more"));
        }
        if self.socket.source.is_some() {
            return Err(Error::usage("engine", "an engine has no source address")
                .remedy("set its listen address instead"));
        }
        if let Some(word) = self.control.iter().find(|word| word.contains(char::is_whitespace)) {
            return Err(Error::usage("engine", format!("{word:?} is not a control address")));
        }
        transport::check(&self.provider)?;
        self.check_secret()
    }

    /// Whoever reaches an engine uses its processors and its memory.
    fn check_secret(&self) -> Result<(), Error> {
        if self.secret.is_some() {
            return Ok(());
        }
        let beyond = self.listen.iter().find(|address| !address.ip().to_canonical().is_loopback());
        let place = match (beyond, transport::fabric_beyond_loopback(self)) {
            (Some(address), _) => address.to_string(),
            (None, Some(fabric)) => fabric,
            (None, None) => return Ok(()),
        };
        let message = format!(
            "a token is required beyond loopback, but this engine would listen on {place} without one"
        );
        Err(Error::new(ErrorKind::Unsafe, "engine", message)
            .remedy("use a token of 16 bytes or more for it and its clients, or listen on 127.0.0.1"))
    }
}

/// An engine that serves. Stops when dropped.
pub struct Engine {
    rank: u32,
    uri: String,
    tags: TagMap,
    counters: Vec<Arc<Counters>>,
    log: Log,
    running: Mutex<Option<Running>>,
}

/// Parts of a running engine that a stop takes apart.
struct Running {
    publication: Option<Publication>,
    stop: Arc<AtomicBool>,
    state: Arc<AcceptorState>,
    crew: Crew,
}

impl Engine {
    /// Starts an engine. All its endpoints serve, and the attach-info file tells of it, when this returns.
    ///
    /// # Errors
    /// When the request cannot be, when an address cannot be listened at, when no thread or pin can be had, or when the rank is
    /// already served.
    pub fn start(request: EngineRequest) -> Result<Self, Error> {
        request.check()?;
        let log = log::limited(Arc::clone(&request.log));
        let listeners = listen::listen(&request.listen, &request.socket)?;
        let uri = advertised(&request, listeners[0].1.port())?;
        let stop = Arc::new(AtomicBool::new(false));
        // Nothing fails any more between the threads' start and the engine that ends them.
        let bell = AcceptorState::bell()?;
        let (crew, endpoints) = Crew::start(&request, &log, &stop)?;
        let counters: Vec<_> = endpoints.iter().map(|endpoint| Arc::clone(&endpoint.counters)).collect();
        let state = AcceptorState::new(&request, endpoints, bell, Arc::clone(&stop), log);
        let state = Arc::new(state);
        let running = Running { publication: None, stop, state: Arc::clone(&state), crew };
        let engine = Self {
            rank: request.rank,
            uri,
            tags: request.tags,
            counters,
            log: Arc::clone(&request.log),
            running: Mutex::new(Some(running)),
        };
        let acceptor = Acceptor::new(state, listeners.into_iter().map(|(listener, _)| listener).collect());
        engine.with_running(|running| running.crew.spawn("acceptor", move || acceptor.run()))?;
        engine.publish(&request)?;
        Ok(engine)
    }

    fn with_running(&self, work: impl FnOnce(&mut Running) -> Result<(), Error>) -> Result<(), Error> {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        running.as_mut().map_or(Ok(()), work)
    }

    fn publish(&self, request: &EngineRequest) -> Result<(), Error> {
        let Some(dir) = &request.attach_info_dir else { return Ok(()) };
        let entry = Rank {
            uri: self.uri.clone(),
            control: request.control.clone(),
            tags: Some(self.tags.tags()),
            targets: Some(self.tags.targets()),
            helpers: Some(self.tags.helpers()),
            pid: Some(std::process::id()),
            provider: Some(request.provider.to_string()),
            others: Vec::new(),
        };
        let publication = group::publish(dir, &request.group, self.rank, entry)?;
        if let Some(uri) = publication.replaced() {
            (self.log)(&format!("rank {} took the place of {uri}, which no longer answers", self.rank));
        }
        self.with_running(|running| {
            running.publication = Some(publication);
            Ok(())
        })
    }

    /// Where it is, as the attach-info file says: `tcp://127.0.0.1:31416`.
    #[must_use]
    pub fn uri(&self) -> &str {
        &self.uri
    }

    /// Its rank.
    #[must_use]
    pub fn rank(&self) -> u32 {
        self.rank
    }

    /// Its tags.
    #[must_use]
    pub fn tags(&self) -> TagMap {
        self.tags
    }

    /// Role of a tag; none where there is no such tag.
    #[must_use]
    pub fn tag_name(&self, tag: u32) -> Option<TagRole> {
        self.tags.role(tag)
    }

    /// Counters of a tag; none where there is no such tag.
    #[must_use]
    pub fn counters(&self, tag: u32) -> Option<&Counters> {
        self.counters.get(tag as usize).map(Arc::as_ref)
    }

    /// Leaves the group, closes the connections and ends the threads; waits 5 seconds for them at most. A second call does nothing.
    pub fn stop(&self) {
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(Running { publication, stop, state, crew }) = running else { return };
        // First nobody finds it any more.
        if let Some(mut publication) = publication
            && let Err(error) = publication.withdraw()
        {
            (self.log)(&error.to_string());
        }
        stop.store(true, Ordering::SeqCst);
        state.ring();
        let late = crew.join(STOP_WAIT);
        if !late.is_empty() {
            (self.log)(&format!("abandoned after 5 s: {}", late.join(", ")));
        }
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        self.stop();
    }
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Engine").field("rank", &self.rank).field("uri", &self.uri).finish_non_exhaustive()
    }
}

/// The address that others are told.
fn advertised(request: &EngineRequest, port: u16) -> Result<String, Error> {
    let ip = request.listen[0].ip();
    let host = match &request.advertise {
        Some(host) => host.trim_start_matches('[').trim_end_matches(']').to_owned(),
        None if ip.is_unspecified() => rustix::system::uname().nodename().to_string_lossy().into_owned(),
        None => match request.listen[0] {
            // A link's own addresses mean nothing without the link.
            SocketAddr::V6(v6) if v6.scope_id() != 0 => format!("{}%{}", v6.ip(), v6.scope_id()),
            address => address.ip().to_string(),
        },
    };
    let uri = Address { provider: request.provider.clone(), host, port }.to_string();
    Address::parse(&uri).map_err(|error| {
        error.with("advertise", request.advertise.as_deref().unwrap_or("the host's name"))
    })?;
    Ok(uri)
}
