//! `tcp`: RPCs over sockets, many in flight on each connection; bulk on a stream of its own.

mod connection;
mod open;
mod outgoing;
mod slots;
mod zero_copy;

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use driver::{
    Capabilities, Clock, Completions, Driver, Error, HostClock, Operation, Registration, Submitted, Tally,
    Wait,
};
use workload::network::Poll;

use crate::tcp::ADAPTIVE_SPIN_NS;
use crate::{OpenRequest, Rpc};

use connection::{Common, Connection};

const NAME: &str = "tcp";

const CAPABILITIES: Capabilities = Capabilities {
    classes: Rpc::CLASSES,
    asynchronous: true,
    depth_max: 65_536,
    targetless: false,
    direct: false,
    options: &["zero-copy", "send-buffer", "receive-buffer", "no-delay", "bind-device", "bind-address"],
};

/// The table line.
pub(super) const REGISTRATION: Registration<Rpc, OpenRequest> = Registration {
    name: NAME,
    summary: "TCP sockets, pipelined; bulk on a stream of its own",
    capabilities: CAPABILITIES,
    open: open::open,
};

/// Up to so many connections are asked one after the other; from there on the poller says which are ready.
const DIRECT_MAX: usize = 8;
/// How long an RPC to an endpoint that is gone takes to fail, so that a closed loop does not fail millions of them a second.
const FAILURE_NS: u64 = 100_000;
const INVALID: i64 = -(libc::EINVAL as i64);

/// One endpoint and its connections.
struct Endpoint {
    /// Its connections that are alive, as indexes.
    alive: Vec<u32>,
    next: usize,
    /// Why it cannot be reached, once no connection is left.
    errno: i32,
}

/// See the module.
struct Tcp {
    common: Common,
    connections: Vec<Connection>,
    /// Whether each connection can still be used.
    is_alive: Vec<bool>,
    endpoints: Vec<Endpoint>,
    /// RPCs to endpoints that are gone: when they fail, by what.
    failing: VecDeque<(u64, u32, i64)>,
    /// Connections with frames to be sent.
    dirty: Vec<u32>,
    depth: u32,
    in_flight: u32,
    pipeline: u32,
    poll: Poll,
    timeout_ns: u64,
    /// No RPC is over its time before this.
    next_timeout_ns: u64,
    last_moved_ns: u64,
    /// Whether replies bring bulk.
    has_bulk_reply: bool,
    clock: HostClock,
    interrupt: Arc<AtomicBool>,
    /// When RPCs in flight are given up; never before the run is interrupted.
    give_up_ns: u64,
    parts: Vec<usize>,
}

/// Time that RPCs in flight get when the run is interrupted, nanoseconds.
const INTERRUPTED_NS: u64 = 1_000_000_000;
/// Longest sleep without a look at the interrupt, nanoseconds.
const LOOK_NS: u64 = 100_000_000;

impl Tcp {
    /// A connection of the endpoint with room; none when its pipelines are full.
    #[inline]
    fn pick(&mut self, endpoint: usize) -> Option<u32> {
        let endpoint = &mut self.endpoints[endpoint];
        for _ in 0..endpoint.alive.len() {
            if endpoint.next >= endpoint.alive.len() {
                endpoint.next = 0;
            }
            let index = endpoint.alive[endpoint.next];
            endpoint.next += 1;
            if self.connections[index as usize].in_flight < self.pipeline {
                return Some(index);
            }
        }
        None
    }

    /// Takes one RPC; false when there is no room for it.
    #[inline]
    fn take(&mut self, rpc: &Rpc, now_ns: u64, done: &mut Completions) -> bool {
        let endpoint = rpc.endpoint as usize;
        if endpoint >= self.endpoints.len() || rpc.slot as usize >= self.common.slots.count() {
            done.push(rpc.slot, INVALID);
            return true;
        }
        if self.endpoints[endpoint].alive.is_empty() {
            let result = -i64::from(self.endpoints[endpoint].errno);
            self.failing.push_back((now_ns + FAILURE_NS, rpc.slot, result));
            self.in_flight += 1;
            return true;
        }
        let Some(index) = self.pick(endpoint) else { return false };
        self.common.slots.start(rpc.slot, index, rpc.sequence, now_ns);
        self.in_flight += 1;
        let connection = &mut self.connections[index as usize];
        connection.in_flight += 1;
        connection.enqueue(rpc, &mut self.common);
        if !connection.is_dirty {
            connection.is_dirty = true;
            self.dirty.push(index);
        }
        true
    }

    /// Sends the frames of the batch, each connection's with one call.
    #[inline]
    fn send_dirty(&mut self) {
        while let Some(index) = self.dirty.pop() {
            let connection = &mut self.connections[index as usize];
            connection.is_dirty = false;
            if let Err(errno) = connection.flush(&mut self.common) {
                self.lose(index, errno);
            }
        }
    }

    /// Completes all RPCs of a connection by `errno` and closes it.
    #[cold]
    fn lose(&mut self, index: u32, errno: i32) {
        if !std::mem::replace(&mut self.is_alive[index as usize], false) {
            return;
        }
        let connection = &mut self.connections[index as usize];
        connection.close(&self.common.poller);
        connection.in_flight = 0;
        self.common.slots.fail(index, -i64::from(errno));
        let endpoint = &mut self.endpoints[connection.endpoint];
        endpoint.alive.retain(|&alive| alive != index);
        endpoint.errno = errno;
    }

    #[inline]
    fn visit(&mut self, index: usize, streams: [bool; 2]) -> bool {
        if !self.is_alive[index] {
            return false;
        }
        match self.connections[index].progress(streams, &mut self.common) {
            Ok(moved) => moved,
            Err(errno) => {
                self.lose(index as u32, errno);
                true
            }
        }
    }

    /// Whether asking every connection is cheaper than asking the poller. A full socket is never asked: each try would hold its lock
    /// against those who make room in it.
    #[inline]
    fn may_ask_directly(&self) -> bool {
        self.connections.len() <= DIRECT_MAX && !self.connections.iter().any(Connection::is_blocked)
    }

    /// Asks every connection, without waiting.
    #[inline]
    fn ask_all(&mut self) -> bool {
        let mut moved = false;
        for index in 0..self.connections.len() {
            if self.connections[index].in_flight > 0 {
                moved |= self.visit(index, [true, self.has_bulk_reply]);
            }
        }
        moved
    }

    /// Asks those that are ready, and waits for one at most so long. None when a signal came.
    fn ask_ready(&mut self, timeout_ns: Option<u64>) -> Result<Option<bool>, Error> {
        let count = match self.common.poller.wait(timeout_ns) {
            Ok(count) => count,
            Err(error) if error.raw_os_error() == Some(libc::EINTR) => return Ok(None),
            Err(error) => return Err(Error::system("reap", "epoll_wait failed", error)),
        };
        let mut moved = false;
        for at in 0..count {
            let ready = self.common.poller.ready(at);
            let is_bulk = ready.token % 2 == 1;
            let streams = [ready.read && !is_bulk, ready.read && is_bulk];
            moved |= self.visit((ready.token / 2) as usize, streams);
        }
        Ok(Some(moved))
    }

    /// Fails what is due to fail: RPCs to endpoints that are gone, and those that took too long.
    #[inline]
    fn look_at_the_clock(&mut self, now_ns: u64) {
        while let Some(&(due_ns, slot, result)) = self.failing.front() {
            if due_ns > now_ns {
                break;
            }
            self.failing.pop_front();
            self.common.slots.finish(slot, result);
        }
        if now_ns >= self.next_timeout_ns {
            self.expire(now_ns);
        }
    }

    #[cold]
    fn expire(&mut self, now_ns: u64) {
        let limit_ns = now_ns.saturating_sub(self.timeout_ns);
        loop {
            match self.common.slots.oldest(limit_ns) {
                Ok(connection) => self.lose(connection, libc::ETIMEDOUT),
                Err(oldest_ns) => {
                    let begin_ns = oldest_ns.unwrap_or(now_ns);
                    self.next_timeout_ns = begin_ns.saturating_add(self.timeout_ns).max(now_ns + 1);
                    return;
                }
            }
        }
    }

    /// Moves completions out, and makes room in the pipelines. How many.
    #[inline]
    fn hand_over(&mut self, done: &mut Completions) {
        for index in self.common.slots.freed.drain(..) {
            let connection = &mut self.connections[index as usize];
            connection.in_flight = connection.in_flight.saturating_sub(1);
        }
        self.in_flight -= self.common.slots.hand_over(done);
    }

    /// The longest sleep that misses nothing.
    fn sleep_ns(&self, now_ns: u64, deadline_ns: u64) -> u64 {
        let failing_ns = self.failing.front().map_or(u64::MAX, |first| first.0);
        let until_ns = deadline_ns.min(self.next_timeout_ns).min(failing_ns);
        until_ns.saturating_sub(now_ns).clamp(1, LOOK_NS)
    }

    /// Whether the run was interrupted just now. What is in flight some time later will not come: it is given up.
    #[cold]
    fn look_at_the_interrupt(&mut self, now_ns: u64) -> bool {
        let is_news = self.give_up_ns == u64::MAX;
        if is_news {
            self.give_up_ns = now_ns.saturating_add(INTERRUPTED_NS);
        } else if now_ns >= self.give_up_ns {
            for index in 0..self.connections.len() as u32 {
                self.lose(index, libc::ECANCELED);
            }
        }
        is_news
    }

    #[inline]
    fn spins(&self, now_ns: u64, begin_ns: u64) -> bool {
        match self.poll {
            Poll::Spin => true,
            Poll::Adaptive => now_ns.saturating_sub(self.last_moved_ns.max(begin_ns)) < ADAPTIVE_SPIN_NS,
            Poll::Block => false,
        }
    }
}

impl Driver<Rpc> for Tcp {
    fn submit(&mut self, batch: &[Rpc], done: &mut Completions) -> Result<Submitted, Error> {
        let now_ns = self.clock.now_ns();
        let room = (self.depth - self.in_flight) as usize;
        let mut accepted = 0;
        for rpc in &batch[..batch.len().min(room)] {
            if !self.take(rpc, now_ns, done) {
                break;
            }
            accepted += 1;
        }
        self.send_dirty();
        Ok(Submitted { accepted })
    }

    fn reap(&mut self, wait: Wait, done: &mut Completions) -> Result<(), Error> {
        if self.in_flight == 0 {
            return Ok(());
        }
        let mut now_ns = self.clock.now_ns();
        let (count, deadline_ns) = match wait {
            // Nothing to wait for is no wait.
            Wait::None | Wait::AtLeast(0) | Wait::Timeout { count: 0, .. } => (0, 0),
            Wait::AtLeast(count) => (count, u64::MAX),
            Wait::Timeout { count, timeout_ns } => (count, now_ns.saturating_add(timeout_ns)),
        };
        let wanted = done.len() + (count.min(self.in_flight) as usize).min(done.room());
        let begin_ns = now_ns;
        self.hand_over(done);
        if count > 0 && done.len() >= wanted {
            return Ok(());
        }
        loop {
            let is_last = now_ns >= deadline_ns;
            let spins = is_last || self.spins(now_ns, begin_ns);
            let moved = if spins && self.may_ask_directly() {
                Some(self.ask_all())
            } else {
                let timeout_ns = if spins { 0 } else { self.sleep_ns(now_ns, deadline_ns) };
                self.ask_ready(Some(timeout_ns))?
            };
            now_ns = self.clock.now_ns();
            if moved == Some(true) {
                self.last_moved_ns = now_ns;
            }
            self.look_at_the_clock(now_ns);
            let is_news = self.interrupt.load(Ordering::Relaxed) && self.look_at_the_interrupt(now_ns);
            self.hand_over(done);
            if done.len() >= wanted || is_last || is_news || moved.is_none() {
                return Ok(());
            }
        }
    }

    fn tallies(&mut self) -> Vec<Tally> {
        self.parts.iter().flat_map(|&part| self.tallies_of(part)).collect()
    }
}

impl Tcp {
    /// Sums of counts and means of the rest, over the streams of one endpoint.
    fn tallies_of(&self, part: usize) -> Vec<Tally> {
        let own = || self.connections.iter().filter(move |connection| connection.endpoint == part);
        let states: Vec<_> = own().flat_map(Connection::states).collect();
        if states.is_empty() {
            return Vec::new();
        }
        let sum = |value: fn(&crate::socket::TcpState) -> u64| states.iter().map(value).sum::<u64>() as f64;
        let mean = |value| sum(value) / states.len() as f64;
        let mut tallies = vec![
            ("tcp_retransmits", sum(|state| state.retransmits)),
            ("tcp_round_trip_ns", mean(|state| state.round_trip_ns)),
            ("tcp_round_trip_variance_ns", mean(|state| state.round_trip_variance_ns)),
            ("tcp_congestion_window_bytes", mean(|state| state.congestion_window_bytes)),
            ("tcp_congestion_window_packets", mean(|state| state.congestion_window_packets)),
            ("tcp_connections", states.len() as f64),
        ];
        let counts: Vec<_> = own().filter_map(Connection::zero_copy_counts).collect();
        if !counts.is_empty() {
            tallies.push(("zero_copy_sends", counts.iter().map(|count| count.sends).sum::<u64>() as f64));
            tallies.push(("zero_copy_copied", counts.iter().map(|count| count.copied).sum::<u64>() as f64));
        }
        tallies.into_iter().map(|(name, value)| Tally { part, name, value }).collect()
    }
}
