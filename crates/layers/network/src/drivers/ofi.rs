//! `ofi`: RPCs over libfabric, bulk by RMA from and to the worker's buffers.
//!
//! Memory that an RPC has named to an engine may be written to as long as that engine can: an RPC that times out, or whose engine is lost, is
//! reported at once, but its memory is set apart until its late reply has come, or until the driver is closed. Later RPCs of the slot
//! use other memory, and their bulk is copied. What stands for a slot's memory is a *ticket*; its number is what the engine knows the RPC by.

mod device;
mod links;
mod opening;
mod replies;
mod sending;
mod tickets;

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use driver::{
    Arena, Capabilities, Completions, Driver, Error, ErrorKind, Operation, Registration, Submitted, Wait,
};
use rpc::Poll;

use crate::{OpenRequest, Payload, Rpc, SlotLayout};
use device::DeviceSlots;
use links::{Link, Peer};
use rpc::ofi::buffers::Buffer;
use rpc::ofi::port::{EVENTS, Event, NO_CONTEXT, Port, Region};
use rpc::ofi::watch::{Watch, farewell};
use sending::Sent;
use tickets::Tickets;

/// The table line.
pub(super) const REGISTRATION: Registration<Rpc, OpenRequest> = Registration {
    name: "ofi",
    summary: "libfabric: reliable datagrams and RMA over tcp, shm, verbs, cxi and its other providers",
    capabilities: Capabilities {
        classes: Rpc::CLASSES,
        asynchronous: true,
        depth_max: DEPTH_MAX,
        targetless: false,
        direct: false,
        options: &[],
    },
    open: opening::open,
};

const DEPTH_MAX: u32 = 65_536;
/// How often connections and timeouts are looked at.
const TICK: Duration = Duration::from_millis(1);
/// Rounds between two looks at the clock.
const ROUNDS: u32 = 64;
/// How long an adaptive driver asks again before it sleeps.
const SPIN: Duration = Duration::from_micros(100);
/// Longest sleep: timeouts are looked at after it.
const SLEEP: Duration = Duration::from_millis(10);
/// Sleeps where the provider has nothing to sleep on: first and longest.
const NAP_FIRST: Duration = Duration::from_micros(10);
const NAP_LAST: Duration = Duration::from_micros(200);

/// Settings that all RPCs of a phase have in common.
#[derive(Clone, Copy)]
struct Shape {
    request: Payload,
    reply: Payload,
    layout: SlotLayout,
    verify: bool,
    seed: u32,
    depth: usize,
    pipeline: u32,
    timeout: Duration,
}

/// Fields are dropped in their order: the port goes before the memory that it was told of.
struct Ofi {
    port: Port,
    shape: Shape,
    poll: Poll,
    arena: Arc<Arena>,
    region: Region,
    /// Buffers on a device that bulk lies in.
    device: Option<DeviceSlots>,
    links: Vec<Link>,
    tickets: Tickets,
    receives: Buffer,
    receive_count: u32,
    receive_bytes: usize,
    unposted: Vec<u32>,
    sends: Buffer,
    send_bytes: usize,
    free_sends: Vec<u32>,
    /// Message sent from each send buffer.
    sent: Vec<Sent>,
    /// Completions that found no room.
    ready: VecDeque<(u32, i64)>,
    /// RPCs to endpoints that are lost: slot, errno, and when they are told.
    failing: VecDeque<(u32, i32, Instant)>,
    watch: Watch,
    rounds: u32,
    ticked: Instant,
    interrupt: Arc<AtomicBool>,
}

impl Driver<Rpc> for Ofi {
    fn submit(&mut self, batch: &[Rpc], _done: &mut Completions) -> Result<Submitted, Error> {
        let mut accepted = 0;
        for rpc in batch {
            if !self.send_rpc(rpc) {
                break;
            }
            accepted += 1;
        }
        Ok(Submitted { accepted })
    }

    fn reap(&mut self, wait: Wait, done: &mut Completions) -> Result<(), Error> {
        let (count, deadline) = wait.deadline();
        let enough = done.len() + count;
        let mut idle = Idle::default();
        let mut events = [Event { context: NO_CONTEXT, error: 0, length: 0 }; EVENTS];
        loop {
            let found = self.collect(&mut events, done)?;
            if done.len() >= enough || done.room() == 0 || self.is_idle() {
                return Ok(());
            }
            self.rounds = self.rounds.wrapping_add(1);
            if found {
                idle = Idle::default();
            }
            if self.poll == Poll::Block && !found || self.rounds.is_multiple_of(ROUNDS) {
                let now = Instant::now();
                if deadline.is_some_and(|deadline| now >= deadline) || self.interrupt.load(Ordering::Relaxed)
                {
                    return Ok(());
                }
                let woken = done.len();
                self.tick(now, done);
                if !found && done.len() == woken {
                    self.rest(now, deadline, &mut idle);
                }
            } else if !found {
                std::hint::spin_loop();
            }
        }
    }
}

/// How long nothing has come.
struct Idle {
    since: Option<Instant>,
    nap: Duration,
}

impl Default for Idle {
    fn default() -> Self {
        Self { since: None, nap: NAP_FIRST }
    }
}

impl Ofi {
    /// Pushes what has completed, as far as there is room. Whether anything has.
    #[inline]
    fn collect(&mut self, events: &mut [Event; EVENTS], done: &mut Completions) -> Result<bool, Error> {
        while done.room() > 0
            && let Some((slot, result)) = self.ready.pop_front()
        {
            done.push(slot, result);
        }
        let count = self.port.poll(events).map_err(|errno| {
            let source = std::io::Error::from_raw_os_error(errno);
            Error::system("libfabric", "the completion queue failed", source)
        })?;
        for event in &events[..count] {
            self.handle(*event, done);
        }
        if !self.unposted.is_empty() {
            self.repost();
        }
        if !self.failing.is_empty() {
            self.fail_due(Instant::now(), done);
        }
        Ok(count > 0)
    }

    #[inline]
    fn handle(&mut self, event: Event, done: &mut Completions) {
        if event.context < self.receive_count {
            self.received(event.context, event, done);
        } else if event.context != NO_CONTEXT {
            self.left(event.context - self.receive_count, event.error, done);
        }
    }

    /// RPCs that were taken and not handed back.
    #[inline]
    fn in_flight(&self) -> usize {
        self.tickets.flying() + self.ready.len() + self.failing.len()
    }

    /// Nothing is in flight and nothing is to be told.
    fn is_idle(&self) -> bool {
        self.in_flight() == 0
    }

    /// Hands a completion over.
    #[inline]
    fn complete(&mut self, slot: u32, result: i64, done: &mut Completions) {
        if done.room() > 0 { done.push(slot, result) } else { self.ready.push_back((slot, result)) }
    }

    /// Looks at connections and timeouts, at most once a [`TICK`].
    fn tick(&mut self, now: Instant, done: &mut Completions) {
        if now.duration_since(self.ticked) < TICK {
            return;
        }
        self.ticked = now;
        self.expire(now, done);
        if self.watch.wait(Duration::ZERO) > 0 {
            self.look_at_links(done);
        }
    }

    /// Spins, sleeps or naps, as it is to.
    fn rest(&mut self, now: Instant, deadline: Option<Instant>, idle: &mut Idle) {
        let since = *idle.since.get_or_insert(now);
        let spins = match self.poll {
            Poll::Spin => true,
            Poll::Adaptive => now.duration_since(since) < SPIN,
            Poll::Block => false,
        };
        if spins || !self.unposted.is_empty() {
            return;
        }
        let mut longest =
            deadline.map_or(SLEEP, |deadline| SLEEP.min(deadline.saturating_duration_since(now)));
        if !self.failing.is_empty() {
            longest = longest.min(links::PAUSE);
        }
        if self.port.wait().is_none() {
            self.watch.wait(idle.nap.min(longest));
            idle.nap = (idle.nap * 2).min(NAP_LAST);
        } else if self.port.may_sleep() {
            self.watch.wait(longest);
        }
    }
}

impl Drop for Ofi {
    /// Over shared memory an engine writes by the addresses of this process, whatever is closed here: memory that it may still
    /// write to is never given back.
    fn drop(&mut self) {
        if !self.port.facts().is_shared_memory {
            return;
        }
        let mut events = [Event { context: NO_CONTEXT, error: 0, length: 0 }; EVENTS];
        let (port, links) = (&mut self.port, &self.links);
        let alive = links.iter().filter_map(|link| match &link.peer {
            Peer::Alive { stream, .. } => Some(stream),
            Peer::Lost(_) => None,
        });
        let all_left = farewell(alive, || {
            // What completes now is of no interest; a broken queue makes no progress, and the wait is bounded.
            let _ = port.poll(&mut events);
        });
        let is_lost = |link: u32| matches!(links[link as usize].peer, Peer::Lost(_));
        if self.tickets.any_named(|link| !all_left || is_lost(link)) {
            std::mem::forget(Arc::clone(&self.arena));
            self.device.iter().for_each(DeviceSlots::leak);
            self.tickets.leak();
        }
        if !all_left && links.iter().any(|link| link.is_own_process) {
            port.abandon();
        }
    }
}

/// A refusal of the plan.
fn refused(message: &str) -> Error {
    Error::new(ErrorKind::Usage, "ofi", message)
}
