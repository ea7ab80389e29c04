//! The acceptor: takes connections, sees them through the handshake, and hands them to their tag.

use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use driver::{Error, Secret};
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};

use super::threads::Endpoint;
use super::{EngineRequest, transport};
use crate::address::Provider;
use crate::handshake::{Hello, Pending, RefusalCode, ServedEngine, Step, group_label};
use crate::inbox::{Accepted, Role};
use crate::seat::Log;
use crate::share::Shares;
use crate::{SocketPlan, socket};

/// Connections in the middle of their handshake; one more sends the oldest away.
pub(super) const PENDING_MAX: usize = 256;
/// Longest handshake.
const HANDSHAKE_WAIT: Duration = Duration::from_secs(5);
/// Connections that are accepted in a row before others are looked at.
const ACCEPT_MAX: usize = 64;
/// How long nobody is accepted when the system has no descriptor or memory for more.
const PAUSE: Duration = Duration::from_millis(100);

/// State that the acceptor and the engine share, and what wakes the acceptor.
pub(super) struct AcceptorState {
    rank: u32,
    group: u64,
    provider: Provider,
    secret: Option<Secret>,
    socket: SocketPlan,
    connections_max: u32,
    endpoints: Vec<Endpoint>,
    stop: Arc<AtomicBool>,
    bell: OwnedFd,
    log: Log,
}

impl AcceptorState {
    pub(super) fn new(
        request: &EngineRequest,
        endpoints: Vec<Endpoint>,
        bell: OwnedFd,
        stop: Arc<AtomicBool>,
        log: Log,
    ) -> Self {
        Self {
            rank: request.rank,
            group: group_label(&request.group),
            provider: request.provider.clone(),
            secret: request.secret.clone(),
            // Device and source are the listener's.
            socket: SocketPlan { device: None, source: None, ..request.socket.clone() },
            connections_max: request.limits.connections_max,
            endpoints,
            stop,
            bell,
            log,
        }
    }

    /// Descriptor that wakes the acceptor.
    pub(super) fn bell() -> Result<OwnedFd, Error> {
        eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)
            .map_err(|error| Error::system("engine", "cannot create a descriptor", error))
    }

    /// Wakes the acceptor and every service thread.
    pub(super) fn ring(&self) {
        // A counter that is full rings as well.
        let _ = rustix::io::write(&self.bell, &1u64.to_ne_bytes());
        self.endpoints.iter().for_each(|endpoint| endpoint.sender.ring());
    }

    fn has_room(&self, client: IpAddr) -> bool {
        if self.shares().is_some_and(|shares| !shares.admits(client)) {
            return false;
        }
        let alive = self.endpoints.iter().filter(|endpoint| endpoint.is_alive.load(Ordering::Relaxed));
        let open: u64 = alive.map(|endpoint| endpoint.sender.connections(&endpoint.counters)).sum();
        open < u64::from(self.connections_max)
    }

    fn shares(&self) -> Option<&Shares> {
        self.endpoints.first().and_then(|endpoint| endpoint.budget.shares())
    }

    fn fabric_name(&self, tag: u32) -> Option<Vec<u8>> {
        let endpoint = self.endpoints.get(tag as usize)?;
        let is_alive = endpoint.is_alive.load(Ordering::Relaxed);
        is_alive.then(|| endpoint.fabric_name.get().cloned().unwrap_or_default())
    }

    fn advance(&self, pending: &mut Pending) -> Step {
        let peer = pending.peer.ip();
        pending.advance(&ServedEngine {
            rank: self.rank,
            group: self.group,
            secret: self.secret.as_ref(),
            tags: self.endpoints.len() as u32,
            serves: &|role: Role| transport::serves(&self.provider, role),
            fabric_name: &|tag| self.fabric_name(tag),
            has_room: &|| self.has_room(peer),
        })
    }

    fn enter(&self, pending: Pending, hello: Hello) {
        let Pending { stream, peer, .. } = pending;
        let Hello { role, session, fabric_name, tag, .. } = hello;
        if let Some(endpoint) = self.endpoints.get(tag as usize) {
            if let Some(shares) = self.shares() {
                shares.enter(peer.ip());
            }
            endpoint.sender.send(Accepted { role, stream, session, peer, fabric_name });
        }
    }

    fn say(&self, peer: SocketAddr, what: &str) {
        (self.log)(&format!("connection from {peer}: {what}"));
    }
}

/// The thread that accepts connections.
pub(super) struct Acceptor {
    state: Arc<AcceptorState>,
    listeners: Vec<TcpListener>,
    pending: Vec<Pending>,
    paused_until: Option<Instant>,
}

/// Descriptors that a wait found ready.
struct Ready {
    listeners: Vec<bool>,
    pending: Vec<bool>,
}

impl Acceptor {
    pub(super) fn new(state: Arc<AcceptorState>, listeners: Vec<TcpListener>) -> Self {
        Self { state, listeners, pending: Vec::new(), paused_until: None }
    }

    /// Serves until the engine stops.
    pub(super) fn run(mut self) {
        while !self.state.stop.load(Ordering::SeqCst) {
            let ready = match self.wait() {
                Ok(ready) => ready,
                Err(errno) => {
                    (self.state.log)(&format!("the acceptor cannot wait: {errno}"));
                    std::thread::sleep(PAUSE);
                    continue;
                }
            };
            self.advance(&ready.pending);
            self.expire();
            for (index, _) in ready.listeners.iter().enumerate().filter(|(_, is_ready)| **is_ready) {
                self.accept(index);
            }
        }
        for pending in &self.pending {
            pending.refuse(RefusalCode::Stopping, "the engine is stopping");
        }
    }

    fn wait(&mut self) -> Result<Ready, rustix::io::Errno> {
        let now = Instant::now();
        if self.paused_until.is_some_and(|until| until <= now) {
            self.paused_until = None;
        }
        let listeners: &[TcpListener] = if self.paused_until.is_some() { &[] } else { &self.listeners };
        let mut fds = vec![PollFd::new(&self.state.bell, PollFlags::IN)];
        fds.extend(listeners.iter().map(|listener| PollFd::new(listener, PollFlags::IN)));
        fds.extend(self.pending.iter().map(|pending| PollFd::new(&pending.stream, PollFlags::IN)));
        let next = self.pending.iter().map(|pending| pending.deadline).chain(self.paused_until).min();
        let span = next.map(|next| {
            // Rounded up, or the last of it would be waited for again and again.
            let left = next.saturating_duration_since(now) + Duration::from_millis(1);
            Timespec { tv_sec: left.as_secs() as i64, tv_nsec: i64::from(left.subsec_nanos()) }
        });
        match poll(&mut fds, span.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
        let mut ready = fds[1..].iter().map(|fd| !fd.revents().is_empty());
        let listeners = ready.by_ref().take(listeners.len()).collect();
        Ok(Ready { listeners, pending: ready.collect() })
    }

    fn advance(&mut self, ready: &[bool]) {
        // From the last on: what is swapped into a place was looked at already.
        for index in (0..ready.len()).rev().filter(|&index| ready[index]) {
            self.step(index);
        }
    }

    /// One connection goes on as far as it can.
    fn step(&mut self, index: usize) {
        match self.state.advance(&mut self.pending[index]) {
            Step::Wait => {}
            Step::Enter(hello) => {
                let pending = self.pending.swap_remove(index);
                self.state.enter(pending, hello);
            }
            Step::Close(what) => {
                let pending = self.pending.swap_remove(index);
                if let Some(what) = what {
                    self.state.say(pending.peer, &what);
                }
            }
        }
    }

    fn expire(&mut self) {
        let now = Instant::now();
        for index in (0..self.pending.len()).rev() {
            if self.pending[index].deadline <= now {
                let pending = self.pending.swap_remove(index);
                pending.refuse(RefusalCode::Busy, "the handshake took too long");
                self.state.say(pending.peer, "closed: the handshake took too long");
            }
        }
    }

    fn accept(&mut self, listener: usize) {
        for _ in 0..ACCEPT_MAX {
            match self.listeners[listener].accept() {
                Ok((stream, peer)) => self.admit(stream, peer),
                Err(error) => match error.raw_os_error() {
                    Some(libc::EAGAIN) => return,
                    // The client was gone before it was accepted, or a signal came (accept(2)).
                    Some(libc::ECONNABORTED | libc::EINTR) => {}
                    _ => {
                        (self.state.log)(&format!("cannot accept a connection: {error}"));
                        self.paused_until = Some(Instant::now() + PAUSE);
                        return;
                    }
                },
            }
        }
    }

    fn admit(&mut self, stream: TcpStream, peer: SocketAddr) {
        if let Err(error) = socket::apply(&stream, &self.state.socket) {
            self.state.say(peer, &format!("closed: its socket options cannot be set: {error}"));
            return;
        }
        if self.pending.len() >= PENDING_MAX {
            self.send_oldest_away();
        }
        self.pending.push(Pending::new(stream, peer, Instant::now() + HANDSHAKE_WAIT));
        // What it has to say is often there already.
        self.step(self.pending.len() - 1);
    }

    fn send_oldest_away(&mut self) {
        let oldest = self.pending.iter().enumerate().min_by_key(|(_, pending)| pending.deadline);
        if let Some((index, _)) = oldest {
            let pending = self.pending.swap_remove(index);
            pending.refuse(RefusalCode::Busy, "too many other connections are in their handshake");
            self.state.say(pending.peer, "closed: too many other connections are in their handshake");
        }
    }
}
