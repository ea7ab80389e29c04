//! A client of endpoints over sockets: requests of any service, many in flight on each connection; bulk on a stream of its own.
//!
//! Memory of the caller ([`Stretch`]) holds requests and takes replies: it is the channel's from [`Channel::start`] until the request is
//! done. A request that fails on this side (its endpoint is gone, it took too long) is done with a negated errno like any other, and
//! its connection with it, so that nothing comes late. One that took too long has its connection opened again; one that broke has not.
//! Nothing is allocated between opening and closing, but where a connection is lost.

mod call;
mod connection;
mod memory;
mod open;
mod outgoing;
mod recovery;
mod slots;
mod state;
mod zero_copy;

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use driver::{Arena, Clock, Completions, Error, HostClock, Secret, Wait};

use crate::tcp::ADAPTIVE_SPIN_NS;
use crate::{EndpointPlan, Poll, SocketPlan};
pub use call::{Caller, Replied};
use connection::{Common, Connection, Retired};
pub use memory::Stretch;
use recovery::Recovery;
use slots::Expected;

/// Most requests in flight of one channel.
pub const DEPTH_MAX: u32 = 65_536;
/// Up to so many connections are asked one after the other; from there on the poller says which are ready.
const DIRECT_MAX: usize = 8;
/// How long a request to an endpoint that is gone takes to fail, so that a closed loop does not fail millions of them a second.
const FAILURE_NS: u64 = 100_000;
/// Time that requests in flight get when the run is interrupted, nanoseconds.
const INTERRUPTED_NS: u64 = 1_000_000_000;
/// Longest sleep without a look at the interrupt, nanoseconds.
const LOOK_NS: u64 = 100_000_000;

/// An endpoint to connect to.
#[derive(Clone, Debug)]
pub struct EndpointRequest {
    /// Where it is.
    pub plan: EndpointPlan,
    /// Whether it gets or sends bulk; without it no stream for it is opened.
    pub has_bulk: bool,
}

/// Arguments of a channel.
#[derive(Clone)]
pub struct ChannelRequest {
    /// Endpoints to connect to. All are connected when the channel is handed over; one that cannot be reached fails only its own requests, by
    /// its cause, as long as another one can.
    pub endpoints: Vec<EndpointRequest>,
    /// Connections to each endpoint.
    pub connections: u32,
    /// Requests in flight on one connection at most; there is no room for more.
    pub pipeline: u32,
    /// Requests in flight on all of them at most.
    pub depth: u32,
    /// Numbers that requests in flight are known by: below this.
    pub slots: u32,
    /// Bytes that requests carry in their messages and that are copied there, at most (to size buffers).
    pub copied_bytes: usize,
    /// Largest bulk of a request, in bytes; 0: none has any.
    pub bulk_bytes_max: u64,
    /// Memory that stretches lie in.
    pub regions: Vec<Arc<Arena>>,
    /// How to wait for replies.
    pub poll: Poll,
    /// Longest wait for one request, and for a connection, in nanoseconds.
    pub timeout_ns: u64,
    /// Sockets.
    pub socket: SocketPlan,
    /// The shared secret, where engines demand one.
    pub secret: Option<Secret>,
    /// Set from outside: waits end.
    pub interrupt: Arc<AtomicBool>,
}

/// One request.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// Number that it is known by, in use by no other one in flight.
    pub slot: u32,
    /// Index of the endpoint in [`ChannelRequest::endpoints`].
    pub endpoint: u32,
    /// Opcode ([`crate::wire::opcode`]).
    pub opcode: u16,
    /// Flags ([`crate::wire::flag`]).
    pub flags: u16,
    /// Number that tells it from earlier ones of its slot.
    pub sequence: u64,
    /// See [`crate::wire::Header::seed`].
    pub seed: u32,
    /// First bytes of the payload in the message. Copied.
    pub head: &'a [u8],
    /// The rest of that payload.
    pub inline: Stretch,
    /// Payload that goes as bulk.
    pub bulk: Stretch,
    /// Where the payload of the reply goes, whether it comes in the message or as bulk.
    pub reply: Stretch,
    /// Most that it may be in the message, in bytes; at most the length of `reply`.
    pub reply_inline_bytes: u64,
    /// Most that it may be as bulk, in bytes; at most the length of `reply`.
    pub reply_bulk_bytes: u64,
}

/// A request that is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Done {
    /// Its number.
    pub slot: u32,
    /// 0, or a negated errno: the endpoint's, or that of its connection.
    pub status: i32,
    /// Payload bytes that came in the message.
    pub inline_bytes: u64,
    /// Payload bytes that came as bulk.
    pub bulk_bytes: u64,
}

/// Result of starting a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Started {
    /// It will be done, or fail.
    Taken,
    /// All pipelines to its endpoint are full.
    Busy,
    /// There is no such endpoint, slot or memory, or no stream for its bulk. It was not taken.
    Invalid,
}

/// Result of a poll of the sockets.
#[derive(Clone, Copy, Debug)]
pub struct Step {
    /// The time after it, in nanoseconds.
    pub now_ns: u64,
    /// A wait is to end: its deadline has passed, a signal came, or the run was interrupted just now.
    pub ends_wait: bool,
}

/// One endpoint and its connections.
struct Endpoint {
    /// Its connections that are alive, as indexes.
    alive: Vec<u32>,
    next: usize,
    /// Why it cannot be reached, once no connection is left.
    errno: i32,
    /// How long its requests take to fail then.
    wait_ns: u64,
}

/// See the module.
pub struct Channel {
    common: Common,
    connections: Vec<Connection>,
    /// Whether each connection can still be used.
    is_alive: Vec<bool>,
    endpoints: Vec<Endpoint>,
    /// Requests to endpoints that are gone: when they fail, by what.
    failing: VecDeque<(u64, u32, i32)>,
    /// Connections with frames to be sent.
    dirty: Vec<u32>,
    in_flight: u32,
    pipeline: u32,
    poll: Poll,
    timeout_ns: u64,
    /// No request is over its time before this.
    next_timeout_ns: u64,
    last_moved_ns: u64,
    clock: HostClock,
    interrupt: Arc<AtomicBool>,
    /// When requests in flight are given up; never before the run is interrupted.
    give_up_ns: u64,
    recovery: Recovery,
    /// Connections in whose places there are others.
    retired: Vec<Retired>,
}

impl Channel {
    /// Connects to all endpoints. With the channel come lines about those that cannot be reached.
    ///
    /// # Errors
    /// When none can be reached, or when the system lacks what was asked for.
    pub fn open(request: &ChannelRequest) -> Result<(Self, Vec<String>), Error> {
        open::open(request)
    }

    /// The time, in nanoseconds, by the clock that steps tell.
    #[inline]
    #[must_use]
    pub fn now_ns(&self) -> u64 {
        self.clock.now_ns()
    }

    /// Requests in flight, and those that are done and not yet popped.
    #[inline]
    #[must_use]
    pub fn in_flight(&self) -> u32 {
        self.in_flight
    }

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

    /// Takes a request. It is sent with the next [`Channel::flush`].
    #[inline]
    pub fn start(&mut self, request: &Request<'_>, now_ns: u64) -> Started {
        let index = request.endpoint as usize;
        let Some(endpoint) = self.endpoints.get(index) else { return Started::Invalid };
        if request.slot as usize >= self.common.slots.count() {
            return Started::Invalid;
        }
        if endpoint.alive.is_empty() {
            self.failing.push_back((now_ns + endpoint.wait_ns, request.slot, endpoint.errno));
            self.in_flight += 1;
            return Started::Taken;
        }
        let regions = &self.common.regions;
        let (Some(inline), Some(bulk), Some(window)) =
            (regions.window(&request.inline), regions.window(&request.bulk), regions.window(&request.reply))
        else {
            return Started::Invalid;
        };
        let (inline_bytes_max, bulk_bytes_max) = (request.reply_inline_bytes, request.reply_bulk_bytes);
        if inline_bytes_max.max(bulk_bytes_max) > window.length() as u64 {
            return Started::Invalid;
        }
        let Some(index) = self.pick(index) else { return Started::Busy };
        let connection = &mut self.connections[index as usize];
        if bulk.length() as u64 + bulk_bytes_max > 0 && !connection.has_bulk() {
            return Started::Invalid;
        }
        let expected = Expected { opcode: request.opcode, inline_bytes_max, bulk_bytes_max, window };
        self.common.slots.start(request.slot, index, request.sequence, now_ns, expected);
        self.in_flight += 1;
        connection.in_flight += 1;
        connection.awaits_bulk += u32::from(bulk_bytes_max > 0);
        connection.enqueue(request, inline, bulk, &mut self.common.slots);
        if !connection.is_dirty {
            connection.is_dirty = true;
            self.dirty.push(index);
        }
        if connection.is_early()
            && let Err(errno) = connection.flush(&mut self.common)
        {
            self.lose(index, errno);
        }
        Started::Taken
    }

    /// Sends what was started, each connection's with one call.
    #[inline]
    pub fn flush(&mut self) {
        while let Some(index) = self.dirty.pop() {
            let connection = &mut self.connections[index as usize];
            connection.is_dirty = false;
            if let Err(errno) = connection.flush(&mut self.common) {
                self.lose(index, errno);
            }
        }
    }

    /// The next request that is done; its slot is free.
    #[inline]
    pub fn pop(&mut self) -> Option<Done> {
        for freed in self.common.slots.freed.drain(..) {
            let connection = &mut self.connections[freed.connection as usize];
            connection.in_flight = connection.in_flight.saturating_sub(1);
            let bulk = u32::from(freed.had_bulk);
            connection.awaits_bulk = connection.awaits_bulk.saturating_sub(bulk);
        }
        let done = self.common.slots.pop();
        self.in_flight -= u32::from(done.is_some());
        done
    }

    /// Moves what can be moved, and waits until `deadline_ns` at most for something to move; not at all where that has passed. `begin_ns` is when
    /// the caller began to wait.
    ///
    /// # Errors
    /// When the kernel fails the wait.
    #[inline]
    pub fn step(&mut self, now_ns: u64, begin_ns: u64, deadline_ns: u64) -> Result<Step, Error> {
        let is_last = now_ns >= deadline_ns;
        let spins = is_last || self.spins(now_ns, begin_ns);
        let moved = if spins && self.may_ask_directly() {
            Some(self.ask_all())
        } else {
            let timeout_ns = if spins { 0 } else { self.sleep_ns(now_ns, deadline_ns) };
            self.ask_ready(Some(timeout_ns))?
        };
        let now_ns = self.clock.now_ns();
        if moved == Some(true) {
            self.last_moved_ns = now_ns;
        }
        self.look_at_the_clock(now_ns);
        let is_news = self.interrupt.load(Ordering::Relaxed) && self.look_at_the_interrupt(now_ns);
        Ok(Step { now_ns, ends_wait: is_last || is_news || moved.is_none() })
    }

    /// Completes all requests of a connection by `errno` and closes it.
    #[cold]
    fn lose(&mut self, index: u32, errno: i32) {
        if !std::mem::replace(&mut self.is_alive[index as usize], false) {
            return;
        }
        let connection = &mut self.connections[index as usize];
        let place = connection.endpoint;
        let referred = connection.close(&mut self.common);
        (connection.in_flight, connection.awaits_bulk) = (0, 0);
        self.common.slots.fail(index, errno, &referred);
        let endpoint = &mut self.endpoints[place];
        endpoint.alive.retain(|&alive| alive != index);
        endpoint.errno = errno;
        let (is_late, now_ns) = (errno == libc::ETIMEDOUT, self.clock.now_ns());
        if self.recovery.note(index, place, referred, is_late, now_ns) {
            self.wait_for(place);
        }
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
            let connection = &self.connections[index];
            if connection.in_flight > 0 {
                moved |= self.visit(index, [true, connection.awaits_bulk > 0]);
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

    /// Fails what is due to fail: requests to endpoints that are gone, and those that took too long.
    #[inline]
    fn look_at_the_clock(&mut self, now_ns: u64) {
        while let Some(&(due_ns, slot, errno)) = self.failing.front() {
            if due_ns > now_ns {
                break;
            }
            self.failing.pop_front();
            self.common.slots.finish(slot, errno);
        }
        if now_ns >= self.next_timeout_ns {
            self.expire(now_ns);
        }
        if !self.recovery.is_idle() {
            self.recover(now_ns);
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

    /// The longest sleep that misses nothing.
    fn sleep_ns(&self, now_ns: u64, deadline_ns: u64) -> u64 {
        let failing_ns = self.failing.front().map_or(u64::MAX, |first| first.0);
        let until_ns = deadline_ns.min(self.next_timeout_ns).min(failing_ns);
        let longest_ns = if self.recovery.is_idle() { LOOK_NS } else { recovery::LOOK_NS };
        until_ns.saturating_sub(now_ns).clamp(1, longest_ns)
    }

    /// Whether the run was interrupted just now. What is in flight some time later will not come: it is given up.
    #[cold]
    fn look_at_the_interrupt(&mut self, now_ns: u64) -> bool {
        let is_news = self.give_up_ns == u64::MAX;
        if is_news {
            self.recovery.stop();
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

/// A driver whose operations travel over a channel.
pub trait Reaper {
    /// The channel.
    fn channel(&mut self) -> &mut Channel;

    /// Operations in flight.
    fn in_flight(&self) -> u32;

    /// Hands over what has completed, as far as `done` has room.
    fn hand_over(&mut self, done: &mut Completions);
}

/// [`driver::Driver::reap`] of a driver over a channel.
///
/// # Errors
/// When the kernel fails the wait.
#[inline]
pub fn reap(driver: &mut impl Reaper, wait: Wait, done: &mut Completions) -> Result<(), Error> {
    let in_flight = driver.in_flight();
    if in_flight == 0 {
        return Ok(());
    }
    let mut now_ns = driver.channel().now_ns();
    let (count, deadline_ns) = wait.deadline_ns(now_ns);
    let wanted = done.len() + (count.min(in_flight) as usize).min(done.room());
    let begin_ns = now_ns;
    driver.hand_over(done);
    if count > 0 && done.len() >= wanted {
        return Ok(());
    }
    loop {
        let step = driver.channel().step(now_ns, begin_ns, deadline_ns)?;
        now_ns = step.now_ns;
        driver.hand_over(done);
        if done.len() >= wanted || step.ends_wait {
            return Ok(());
        }
    }
}
