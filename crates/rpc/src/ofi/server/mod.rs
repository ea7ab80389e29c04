//! The service thread of one tag: one port, many RPCs in flight, none of them waited for.

mod answer;
mod clients;
mod operations;
mod parking;
mod waiting;

use std::collections::VecDeque;
use std::sync::atomic::Ordering;
use std::time::Instant;

use driver::Error;

use super::buffers::{Buffer, Pool};
use super::frame::PREFIX_BYTES_MAX;
use super::port::{EVENTS, Event, NO_CONTEXT, PeerAddress, Port};
use super::provider::FabricSettings;
use super::watch::{Life, farewell, life};
use crate::inbox::{Accepted, Inbox, Role};
use crate::seat::Seat;
use crate::service::Service;
use clients::{Client, Clients};
use operations::Operation;
use waiting::Waiting;

/// RPCs with bulk in flight at most; further ones wait with their clients.
const OPERATIONS: usize = if cfg!(test) { 64 } else { 1024 };
/// Memory for receives that an endpoint aims at, in bytes; half of that for replies.
const RECEIVES_BYTES: usize = 32 << 20;
/// Lines about the same kind of nuisance: the first, and then one in so many.
const LOG_EVERY: u64 = 1000;

/// A reply that could not be sent at once. Its memory is the engine's budget's.
struct Pending {
    client: u32,
    message: Vec<u8>,
    /// When it was first seen waiting.
    since: Option<Instant>,
    grant: crate::seat::Grant,
}

/// The endpoint of one tag on a fabric. It is opened first, so that a provider that is missing is told at once; [`Listener::serve`] does the work.
pub struct Listener {
    seat: Seat,
    port: Port,
    clients: Clients,
    /// One buffer a receive; `message_bytes` each.
    receives: Buffer,
    receive_count: usize,
    /// One buffer a reply in flight.
    replies: Buffer,
    free_replies: Vec<u32>,
    /// Whose reply is in each of them.
    reply_clients: Vec<u32>,
    /// When each was first seen in the provider's hands; none while it is free.
    reply_since: Vec<Option<Instant>>,
    message_bytes: usize,
    operations: Vec<Operation>,
    free_operations: Vec<u32>,
    /// Operations whose transfer the provider would not take yet.
    retries: VecDeque<u32>,
    /// Clients with requests that wait until earlier ones have ended, each once; they take turns.
    waiting: VecDeque<u32>,
    /// Whether any request has ended since they were looked at.
    has_finished: bool,
    /// Receives that the provider would not take back yet.
    unposted: VecDeque<u32>,
    pending: VecDeque<Pending>,
    /// Buffers for bulk of requests. What one client sent never lies in what another one gets.
    requests: Pool,
    /// Buffers for bulk of replies.
    answers: Pool,
    inline: Vec<u8>,
    /// Where a message is put together that is copied away when sent.
    compose: Vec<u8>,
    nuisances: u64,
    _grant: crate::seat::Grant,
}

impl Listener {
    /// Opens the endpoint and puts its name into the seat.
    ///
    /// # Errors
    /// When libfabric or the provider is not there, or the engine's memory does not suffice.
    pub fn open(seat: Seat, settings: &FabricSettings) -> Result<Self, Error> {
        let message_bytes = (PREFIX_BYTES_MAX + seat.limits.inline_bytes_max as usize).next_multiple_of(4096);
        let waits = seat.poll != crate::Poll::Spin;
        let receive_count = (RECEIVES_BYTES / message_bytes).clamp(16, 256);
        let reply_count = (RECEIVES_BYTES / 2 / message_bytes).clamp(16, 128);
        let mut port = Port::open(settings, receive_count + reply_count + OPERATIONS, waits)?;
        let receive_count = receive_count.min(port.facts().receives_max);
        let bytes = (receive_count + reply_count) * message_bytes;
        let grant = seat.budget.set_aside(bytes as u64).ok_or_else(|| {
            Error::usage("engine", "the engine's memory is too small for the buffers of an endpoint")
                .with("tag", seat.tag)
                .with("bytes", bytes)
                .remedy("allow more memory, smaller messages, or fewer targets and helpers")
        })?;
        let receives = Buffer::new(&mut port, receive_count * message_bytes, false)?;
        let replies = Buffer::new(&mut port, reply_count * message_bytes, false)?;
        let mut listener = Self {
            clients: Clients::default(),
            receives,
            receive_count,
            replies,
            free_replies: (0..reply_count as u32).rev().collect(),
            reply_clients: vec![0; reply_count],
            reply_since: vec![None; reply_count],
            message_bytes,
            operations: Vec::new(),
            free_operations: Vec::new(),
            retries: VecDeque::new(),
            waiting: VecDeque::new(),
            has_finished: false,
            unposted: (0..receive_count as u32).collect(),
            pending: VecDeque::new(),
            requests: Pool::new(seat.budget.clone()),
            answers: Pool::new(seat.budget.clone()),
            inline: Vec::new(),
            compose: Vec::new(),
            nuisances: 0,
            _grant: grant,
            port,
            seat,
        };
        listener.repost();
        let name = listener.port.name()?;
        // A seat that has a name already keeps it: it is the same endpoint's.
        let _ = listener.seat.fabric_name.set(name);
        Ok(listener)
    }

    /// How the thread waits, in words, where that is not what was asked for.
    #[must_use]
    pub fn note(&self) -> Option<String> {
        let facts = self.port.facts();
        (self.seat.poll != crate::Poll::Spin && self.port.wait().is_none())
            .then(|| format!("{} cannot block on an event: it is polled with short sleeps", facts.provider))
    }

    /// Serves until the seat says stop.
    pub fn serve(mut self, inbox: &Inbox, service: &mut dyn Service) {
        let mut waiting = Waiting::new(self.seat.poll);
        let mut events = [Event { context: NO_CONTEXT, error: 0, length: 0 }; EVENTS];
        self.attend(inbox, &mut waiting);
        while !self.seat.stop.load(Ordering::Relaxed) {
            let count = match self.port.poll(&mut events) {
                Ok(count) => count,
                Err(errno) => {
                    self.log(&format!("the completion queue failed: errno {errno}; the endpoint ends"));
                    break;
                }
            };
            for event in &events[..count] {
                self.handle(*event, service);
            }
            let moved = self.retry(service);
            if count > 0 || moved {
                if waiting.worked() {
                    self.attend(inbox, &mut waiting);
                }
            } else {
                let can_sleep = self.is_calm();
                if waiting.idle(&mut self.port, self.clients.is_empty(), can_sleep) {
                    self.attend(inbox, &mut waiting);
                }
            }
        }
        self.leave();
    }

    /// Nothing waits to be offered to the provider again.
    fn is_calm(&self) -> bool {
        self.pending.is_empty() && self.retries.is_empty() && self.unposted.is_empty()
    }

    fn handle(&mut self, event: Event, service: &mut dyn Service) {
        let (receives, replies) = (self.receive_count as u32, self.reply_clients.len() as u32);
        match event.context {
            NO_CONTEXT => self.nuisance(&format!("an operation failed: errno {}", event.error)),
            receive if receive < receives => self.received(receive, event, service),
            reply if reply < receives + replies => self.replied(reply - receives, event.error),
            operation => self.transferred(operation - receives - replies, event.error, service),
        }
    }

    /// Gives receives back to the provider.
    fn repost(&mut self) {
        while let Some(receive) = self.unposted.pop_front() {
            let offset = receive as usize * self.message_bytes;
            if operations::post_receive(&mut self.port, &self.receives, offset, self.message_bytes, receive)
                .is_err()
            {
                self.unposted.push_front(receive);
                return;
            }
        }
    }

    /// Looks after new clients, dead ones, and operations that stall.
    fn attend(&mut self, inbox: &Inbox, waiting: &mut Waiting) {
        inbox.quiet();
        while let Some(accepted) = inbox.take() {
            self.admit(accepted);
        }
        let living: Vec<u32> = self.clients.living().map(|(index, _)| index).collect();
        for index in living {
            match self.clients.get(index).map(|client| life(&client.stream)) {
                Some(Life::Gone) => self.drop_client(index),
                Some(Life::Talks) => self.cut(index, "it sent data when it must be silent"),
                _ => {}
            }
        }
        self.stalled();
        waiting.watch(inbox, self.clients.living().map(|(_, descriptor)| descriptor));
    }

    fn admit(&mut self, accepted: Accepted) {
        if accepted.role != Role::Fabric {
            return self.nuisance(&format!("{}: not a fabric connection", accepted.peer));
        }
        let address = match self.port.insert(&accepted.fabric_name) {
            Ok(address) => address,
            Err(errno) => {
                self.seat.counters.closed_hostile.fetch_add(1, Ordering::Relaxed);
                let cause = std::io::Error::from_raw_os_error(errno);
                self.seat.budget.leave(accepted.peer.ip(), 1);
                return self.log(&format!("{}: rejected: its fabric name: {cause}", accepted.peer));
            }
        };
        let is_own_process = self.port.is_own_process(&accepted.fabric_name);
        let client = Client::new(accepted.stream, accepted.peer, accepted.session, address, is_own_process);
        if self.clients.add(client).is_some() {
            self.seat.counters.connections.fetch_add(1, Ordering::Relaxed);
        } else {
            self.remove(address);
            self.seat.budget.leave(accepted.peer.ip(), 1);
            self.log(&format!("{}: rejected: its session is in use", accepted.peer));
        }
    }

    /// The client has left.
    fn drop_client(&mut self, index: u32) {
        if self.clients.cut(index) {
            self.seat.counters.connections.fetch_sub(1, Ordering::Relaxed);
            if let Some(peer) = self.clients.get(index).map(|client| client.peer) {
                self.seat.budget.leave(peer.ip(), 1);
            }
        }
        self.drop_pending(index);
        self.waiting.retain(|client| *client != index);
        if let Some(client) = self.clients.get(index) {
            let bytes = client.parked.drain(..).map(|parked| parked.grant.bytes()).sum();
            client.give_back(&self.seat.budget, bytes);
        }
        self.forget(index);
        if self.clients.is_empty() {
            // Those of other endpoints need it.
            self.requests.shrink(&mut self.port);
            self.answers.shrink(&mut self.port);
        }
    }

    /// The client is cut off for what it did.
    fn cut(&mut self, index: u32, why: &str) {
        if let Some(peer) = self.clients.get(index).map(|client| client.peer) {
            self.seat.counters.closed_hostile.fetch_add(1, Ordering::Relaxed);
            self.log(&format!("{peer}: disconnected: {why}"));
        }
        self.drop_client(index);
    }

    /// Removes a client whose last operation has ended.
    fn forget(&mut self, index: u32) {
        if let Some(mut client) = self.clients.reap(index) {
            client.close(&self.seat.budget);
            self.remove(client.address);
        }
    }

    fn remove(&mut self, address: PeerAddress) {
        if !self.clients.any_at(address) {
            self.port.remove(address);
        }
    }

    fn log(&self, line: &str) {
        (self.seat.log)(&format!("tag {}: {line}", self.seat.tag));
    }

    /// Something that anyone on the fabric can cause: told now and then.
    fn nuisance(&mut self, line: &str) {
        if self.nuisances.is_multiple_of(LOG_EVERY) {
            self.log(line);
        }
        self.nuisances += 1;
    }

    /// The end. Fields are dropped in their order: the port goes before the memory that it was told of.
    fn leave(mut self) {
        let living = self.clients.living().count() as u64;
        self.seat.counters.connections.fetch_sub(living, Ordering::Relaxed);
        self.clients.peers().for_each(|peer| self.seat.budget.leave(peer.ip(), 1));
        let mut events = [Event { context: NO_CONTEXT, error: 0, length: 0 }; EVENTS];
        let (port, streams) = (&mut self.port, self.clients.of_own_process());
        let progress = || {
            // What completes now is of no interest; a broken queue makes no progress, and the wait is bounded.
            let _ = port.poll(&mut events);
        };
        if !farewell(streams, progress) {
            self.port.abandon();
        }
    }
}

#[cfg(test)]
mod tests;
