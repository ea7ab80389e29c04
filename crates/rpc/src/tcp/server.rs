//! The loop of a service thread.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::sync::atomic::Ordering;

use driver::{Clock, HostClock};

use super::ending::Ending;
use super::endpoint::Endpoint;
use super::places::Places;
use super::poller::{Interest, Poller};
use super::session::Session;
use crate::Poll;
use crate::inbox::{Accepted, Inbox, Role};

/// How long an adaptive thread asks again after the last message before it sleeps, in nanoseconds.
pub(crate) const ADAPTIVE_SPIN_NS: u64 = 50_000;
/// Up to so many sessions are asked one after the other; from there on the poller says which are ready.
const DIRECT_MAX: usize = 8;
/// How often the inbox is looked at while the thread does not sleep, in nanoseconds.
const INBOX_NS: u64 = 100_000;
/// Longest span between looks for stalled sessions, in nanoseconds.
const TICK_NS_MAX: u64 = 1_000_000_000;
/// Number of the inbox with the poller.
const BELL: u64 = u64::MAX;
/// Streams for bulk that wait for their session, at most.
const UNPAIRED_MAX: usize = 64;

/// See the module.
pub(super) struct Server {
    endpoint: Endpoint,
    inbox: Inbox,
    poller: Poller,
    clock: HostClock,
    sessions: Vec<Option<Box<Session>>>,
    places: Places,
    open: usize,
    /// Streams for bulk whose messages have not come yet, and since when they wait.
    unpaired: Vec<(Accepted, u64)>,
    tick_ns: u64,
    next_tick_ns: u64,
    next_inbox_ns: u64,
    last_moved_ns: u64,
    /// Whether a session must be looked at even if nothing comes.
    watches: bool,
    again: bool,
    /// A socket is full. It is not asked: each try would hold its lock against those who make room in it.
    is_blocked: bool,
}

impl Server {
    pub(super) fn new(endpoint: Endpoint, inbox: Inbox) -> io::Result<Self> {
        let poller = Poller::new()?;
        poller.add(inbox.as_fd(), BELL, Interest::READ)?;
        let tick_ns = (endpoint.limits().stall_ns_max / 4).clamp(1_000_000, TICK_NS_MAX);
        Ok(Self {
            endpoint,
            inbox,
            poller,
            clock: HostClock::get(),
            sessions: Vec::new(),
            places: Places::default(),
            open: 0,
            unpaired: Vec::new(),
            tick_ns,
            next_tick_ns: 0,
            next_inbox_ns: 0,
            last_moved_ns: 0,
            watches: false,
            again: false,
            is_blocked: false,
        })
    }

    /// Serves until the engine stops.
    pub(super) fn run(&mut self) {
        while !self.endpoint.seat.stop.load(Ordering::Acquire) {
            let now_ns = self.clock.now_ns();
            let is_awake = self.is_awake(now_ns);
            let moved = if is_awake && self.open <= DIRECT_MAX && !self.is_blocked {
                let is_due = now_ns >= self.next_inbox_ns;
                if is_due {
                    self.next_inbox_ns = now_ns + INBOX_NS;
                }
                let taken = is_due && self.take_in();
                self.visit_all() || taken
            } else {
                self.wait_and_visit(now_ns, is_awake)
            };
            if moved && self.endpoint.defers() {
                self.settle();
            }
            if moved {
                self.last_moved_ns = self.clock.now_ns();
            }
            if self.watches && now_ns >= self.next_tick_ns {
                self.tick(now_ns);
            }
        }
        for index in 0..self.sessions.len() {
            self.close(index, &Ending::Gone);
        }
    }

    fn is_awake(&self, now_ns: u64) -> bool {
        if self.again {
            return true;
        }
        self.open > 0
            && match self.endpoint.seat.poll {
                Poll::Spin => true,
                Poll::Adaptive => now_ns.saturating_sub(self.last_moved_ns) < ADAPTIVE_SPIN_NS,
                Poll::Block => false,
            }
    }

    fn visit_all(&mut self) -> bool {
        (self.again, self.is_blocked) = (false, false);
        let mut moved = false;
        for index in 0..self.sessions.len() {
            moved |= self.visit(index, [false; 2]);
        }
        moved
    }

    /// Visits those that are ready, and waits for one where the thread may sleep.
    fn wait_and_visit(&mut self, now_ns: u64, is_awake: bool) -> bool {
        let timeout_ns = match (is_awake, self.watches) {
            (true, _) => Some(0),
            (false, true) => Some(self.next_tick_ns.saturating_sub(now_ns).max(1)),
            (false, false) => None,
        };
        let Ok(count) = self.poller.wait(timeout_ns) else { return false };
        let unfinished = std::mem::take(&mut self.again);
        let mut moved = false;
        for at in 0..count {
            let ready = self.poller.ready(at);
            if ready.token == BELL {
                moved |= self.take_in();
                continue;
            }
            // A session that ended in this batch may have given its place to one that has just come.
            let Some((index, stream)) = self.places.of(ready.token) else { continue };
            let mut reported = [false; 2];
            reported[stream] = ready.read;
            let visited = self.visit(index, reported);
            if ready.failed && !visited {
                self.close(index, &Ending::Gone);
            }
            moved |= visited;
        }
        // Those with work left were not reported when nothing new came over them.
        if unfinished {
            moved |= self.visit_all();
        }
        if self.is_blocked {
            self.is_blocked = self.sessions.iter().flatten().any(|session| session.awaits_room());
        }
        moved
    }

    /// Settles the changes of this round once, for the replies of all sessions.
    fn settle(&mut self) {
        let now_ns = self.clock.now_ns();
        for index in 0..self.sessions.len() {
            let Some(session) = self.sessions[index].as_mut().filter(|session| session.awaits_settling())
            else {
                continue;
            };
            let sent = session.send_settled(&mut self.endpoint);
            let must = session.note(now_ns, false);
            let watched = session.watch(&self.poller, self.places.number(index), [false; 2]);
            self.is_blocked |= session.awaits_room();
            match (sent, watched) {
                (Err(ending), _) => self.close(index, &ending),
                (_, Err(_)) => self.close(index, &Ending::Refused("the kernel cannot watch it")),
                _ if must => self.watch_from(now_ns),
                _ => {}
            }
        }
        self.endpoint.end_round();
    }

    fn visit(&mut self, index: usize, reported: [bool; 2]) -> bool {
        let Some(Some(session)) = self.sessions.get_mut(index) else { return false };
        let turn = session.turn(&mut self.endpoint);
        let ending = match turn {
            Ok(turn) => {
                if turn.moved || self.watches {
                    let now_ns = self.clock.now_ns();
                    if session.note(now_ns, turn.again) && !self.watches {
                        self.watches = true;
                        self.next_tick_ns = now_ns + self.tick_ns;
                    }
                }
                self.again |= turn.again;
                match session.watch(&self.poller, self.places.number(index), reported) {
                    Ok(()) => {
                        self.is_blocked |= session.awaits_room();
                        return turn.moved;
                    }
                    Err(_) => Ending::Refused("the kernel cannot watch it"),
                }
            }
            Err(ending) => ending,
        };
        self.close(index, &ending);
        true
    }

    /// Takes the connections that have come. Whether something was carried out that had waited for one: a stream for bulk may come with all of
    /// its bytes.
    fn take_in(&mut self) -> bool {
        self.inbox.quiet();
        let mut moved = false;
        while let Some(accepted) = self.inbox.take() {
            self.endpoint.seat.counters.connections.fetch_add(1, Ordering::SeqCst);
            match accepted.role {
                Role::Messages => moved |= self.open_session(accepted),
                Role::Bulk => moved |= self.attach(accepted, None),
                Role::Fabric => self.refuse(accepted.peer, "this endpoint does not use a fabric"),
            }
        }
        moved
    }

    fn open_session(&mut self, accepted: Accepted) -> bool {
        if self.sessions.iter().flatten().any(|session| session.id == accepted.session) {
            self.refuse(accepted.peer, "a session with its name already exists");
            return false;
        }
        let Accepted { session: id, peer, stream, .. } = accepted;
        let session = match Session::new(id, peer, stream, &self.endpoint) {
            Ok(session) => session,
            Err(ending) => {
                self.refuse(peer, ending.to_string());
                return false;
            }
        };
        let index = self.sessions.iter().position(Option::is_none).unwrap_or_else(|| {
            self.sessions.push(None);
            self.sessions.len() - 1
        });
        self.places.renew(index);
        if session.watch_messages(&self.poller, self.places.number(index)).is_err() {
            self.refuse(peer, "the kernel cannot watch it");
            return false;
        }
        self.sessions[index] = Some(Box::new(session));
        self.open += 1;
        // It begins awake: the first message is on its way.
        self.last_moved_ns = self.clock.now_ns();
        if let Some(at) = self.unpaired.iter().position(|(accepted, _)| accepted.session == id) {
            let (accepted, since_ns) = self.unpaired.swap_remove(at);
            return self.attach(accepted, Some(since_ns));
        }
        false
    }

    fn attach(&mut self, accepted: Accepted, since_ns: Option<u64>) -> bool {
        let mut each = self.sessions.iter_mut().enumerate();
        let found =
            each.find_map(|(index, slot)| Some((index, slot.as_mut().filter(|s| s.id == accepted.session)?)));
        let Some((index, session)) = found else {
            if self.unpaired.len() >= UNPAIRED_MAX {
                self.refuse(accepted.peer, "too many streams for bulk wait for their messages");
                return false;
            }
            let now_ns = self.clock.now_ns();
            self.unpaired.push((accepted, since_ns.unwrap_or(now_ns)));
            self.watch_from(now_ns);
            return false;
        };
        let peer = accepted.peer;
        match session.attach(accepted.stream, &self.poller, self.places.number(index)) {
            Ok(()) => {
                let moved = self.visit(index, [false; 2]);
                self.watch_from(self.clock.now_ns());
                moved
            }
            Err(why) => {
                self.refuse(peer, why);
                false
            }
        }
    }

    fn watch_from(&mut self, now_ns: u64) {
        if !self.watches {
            self.watches = true;
            self.next_tick_ns = now_ns + self.tick_ns;
        }
    }

    /// Looks for sessions that take too long. What this thread was late for it is the endpoint's doing, not theirs.
    fn tick(&mut self, now_ns: u64) {
        let away_ns = now_ns.saturating_sub(self.next_tick_ns);
        self.next_tick_ns = now_ns + self.tick_ns;
        let stall_ns_max = self.endpoint.limits().stall_ns_max;
        let mut watches = false;
        for index in 0..self.sessions.len() {
            let Some(session) = &mut self.sessions[index] else { continue };
            session.pardon(away_ns);
            match session.check_stall(now_ns, stall_ns_max) {
                Ok(again) => watches |= again,
                Err(ending) => self.close(index, &ending),
            }
        }
        for at in (0..self.unpaired.len()).rev() {
            self.unpaired[at].1 = self.unpaired[at].1.saturating_add(away_ns);
            if now_ns.saturating_sub(self.unpaired[at].1) > stall_ns_max {
                let (accepted, _) = self.unpaired.swap_remove(at);
                self.refuse(accepted.peer, "a bulk stream without messages");
            }
        }
        self.watches = watches || !self.unpaired.is_empty();
    }

    fn close(&mut self, index: usize, ending: &Ending) {
        let Some(session) = self.sessions[index].take() else { return };
        self.open -= 1;
        let counters = &self.endpoint.seat.counters;
        counters.connections.fetch_sub(session.streams(), Ordering::SeqCst);
        self.endpoint.leave(session.peer, session.streams());
        if matches!(ending, Ending::Hostile(_)) {
            counters.closed_hostile.fetch_add(1, Ordering::Relaxed);
        }
        if !matches!(ending, Ending::Gone) {
            self.log_closed(session.peer, ending);
        }
        session.close(&mut self.endpoint);
        self.endpoint.give_back();
        self.endpoint.publish();
    }

    /// A connection that was taken in and is dropped now.
    fn refuse(&self, peer: SocketAddr, why: impl fmt::Display) {
        self.endpoint.seat.counters.connections.fetch_sub(1, Ordering::SeqCst);
        self.endpoint.leave(peer, 1);
        self.log_closed(peer, why);
    }

    fn log_closed(&self, peer: SocketAddr, why: impl fmt::Display) {
        let seat = &self.endpoint.seat;
        (seat.log)(&format!("rank {} tag {}: closed the connection of {peer}: {why}", seat.rank, seat.tag));
    }
}
