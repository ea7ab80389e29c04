//! Servers looked at while they serve: what they have counted, and how fast they count, for live views.
//!
//! ```no_run
//! # use std::time::Duration;
//! # use rpc::watch::{ServerWatch, WatchRequest, WatchedServer};
//! # use rpc::SocketPlan;
//! # fn watch(servers: Vec<WatchedServer>) -> Result<(), driver::Error> {
//! let watch = ServerWatch::start(WatchRequest::new(servers, SocketPlan::default(), None))?;
//! watch.begin_phase();
//! for server in watch.latest() {
//!     println!("{}: {} RPCs/s", server.label, server.rpcs_per_second);
//! }
//! watch.stop();
//! # Ok(()) }
//! ```
//!
//! One thread keeps a connection to each endpoint and asks it every half second ([`crate::wire::opcode::STATISTICS`]). It waits for nobody:
//! a server that is silent or gone holds up neither the others nor whoever asks for the latest. Each endpoint answers between two
//! RPCs; the RPCs that are counted do not contain the questions.

mod conversation;
mod tally;
mod watcher;

use std::io::PipeWriter;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use driver::{Error, Secret};
use watcher::Watcher;

use crate::{EndpointPlan, SocketPlan};

/// A server: the endpoints of one engine that are driven.
#[derive(Clone, Debug)]
pub struct WatchedServer {
    /// Label of the server: `node01:1611`, or `0`.
    pub label: String,
    /// Its endpoints. Each is asked over a connection of its own, because each is a thread with counters of its own.
    pub endpoints: Vec<EndpointPlan>,
}

/// Whom to watch, and how.
#[derive(Clone, Debug)]
pub struct WatchRequest {
    /// The servers.
    pub servers: Vec<WatchedServer>,
    /// Options of the sockets.
    pub socket: SocketPlan,
    /// The shared secret, where the engines demand one.
    pub secret: Option<Secret>,
    /// Time between two questions to an endpoint.
    pub interval: Duration,
    /// How long an endpoint may take to let the watch in, or to answer, until it counts as failed. It is tried again after as long.
    pub timeout: Duration,
}

impl WatchRequest {
    /// Every half second, with a patience of two seconds.
    #[must_use]
    pub fn new(servers: Vec<WatchedServer>, socket: SocketPlan, secret: Option<Secret>) -> Self {
        let (interval, timeout) = (Duration::from_millis(500), Duration::from_secs(2));
        Self { servers, socket, secret, interval, timeout }
    }
}

/// A server as its endpoints last told, added up. Rates are those between their two latest answers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ServerReading {
    /// Label of the server.
    pub label: String,
    /// Requests answered since the phase began.
    pub rpcs: u64,
    /// Payload bytes received since then.
    pub received_bytes: u64,
    /// Payload bytes sent since then.
    pub sent_bytes: u64,
    /// Requests answered with an error since then.
    pub errors: u64,
    /// Connections of others that are open.
    pub connections: u64,
    /// Requests answered a second.
    pub rpcs_per_second: f64,
    /// Payload bytes received a second.
    pub received_bytes_per_second: f64,
    /// Payload bytes sent a second.
    pub sent_bytes_per_second: f64,
    /// Processors that the service threads of its endpoints keep busy; a thread that spins keeps one busy. None until an endpoint has
    /// answered twice.
    pub cpus_used: Option<f64>,
    /// Why endpoints cannot be looked at, one line: `Connection refused`, `1 of 4 endpoints: Connection reset by peer`.
    pub failure: Option<String>,
}

/// Latest readings that the watching thread hands over.
#[derive(Debug, Default)]
struct Latest {
    /// One a server; none where there is nothing to tell.
    readings: Vec<Option<ServerReading>>,
    /// Phases begun.
    phase: u64,
}

/// State that the watch shares with its threads.
#[derive(Debug, Default)]
struct Shared {
    latest: Mutex<Latest>,
    stop: AtomicBool,
}

impl Shared {
    fn latest(&self) -> MutexGuard<'_, Latest> {
        self.latest.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Watches servers until it is stopped or dropped.
#[derive(Debug)]
pub struct ServerWatch {
    shared: Arc<Shared>,
    /// Closing it wakes the thread.
    wake: Option<PipeWriter>,
    thread: Option<JoinHandle<()>>,
}

impl ServerWatch {
    /// Starts to watch. Returns at once: connections come about in the background.
    ///
    /// # Errors
    /// When no thread or pipe can be had, or when the interval or the timeout is zero.
    pub fn start(request: WatchRequest) -> Result<Self, Error> {
        if request.interval.is_zero() || request.timeout.is_zero() {
            return Err(Error::usage("watch", "interval and timeout must be greater than 0"));
        }
        let failed = |source| Error::system("watch", "cannot watch the servers", source);
        let (reader, writer) = std::io::pipe().map_err(failed)?;
        let shared = Arc::new(Shared::default());
        let watcher = Watcher::new(request, Arc::clone(&shared), reader);
        let thread = std::thread::Builder::new()
            .name("watch".to_owned())
            .spawn(move || watcher.run())
            .map_err(failed)?;
        Ok(Self { shared, wake: Some(writer), thread: Some(thread) })
    }

    /// Counts from now on, that is from the latest answer of each endpoint; rates go on.
    pub fn begin_phase(&self) {
        let mut latest = self.shared.latest();
        latest.phase += 1;
        for reading in latest.readings.iter_mut().flatten() {
            (reading.rpcs, reading.received_bytes, reading.sent_bytes, reading.errors) = (0, 0, 0, 0);
        }
    }

    /// The servers in the order of the request, as they last told. A server that has neither answered nor failed yet is left out, as is
    /// one whose endpoints are on a fabric alone: these take no questions over sockets. Waits for no server.
    #[must_use]
    pub fn latest(&self) -> Vec<ServerReading> {
        self.shared.latest().readings.iter().flatten().cloned().collect()
    }

    /// Closes the connections and ends the threads.
    pub fn stop(self) {
        drop(self);
    }
}

impl Drop for ServerWatch {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::SeqCst);
        drop(self.wake.take());
        if let Some(thread) = self.thread.take() {
            // A watch that panicked has nothing to give back.
            let _ = thread.join();
        }
    }
}
