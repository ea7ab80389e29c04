//! From a message to its call: bulk is read from the client's memory first, and written back after.
#![allow(unsafe_code)]

use std::sync::atomic::Ordering;
use std::time::Instant;

use crate::ofi::buffers::Buffer;
use crate::ofi::frame::Frame;
use crate::ofi::port::{Event, PeerAddress, Port, Remote};
use crate::service::Service;
use crate::wire::flag;

use super::{Listener, OPERATIONS};

/// What an operation waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// Nothing: it is free.
    Free,
    /// The bulk of the request.
    Reading,
    /// The bulk of the reply has been written. Where messages overtake writes, the reply is sent after that.
    Writing {
        /// Whether the reply has been sent already.
        replied: bool,
    },
}

/// One RPC with bulk.
pub(super) struct Operation {
    pub(super) client: u32,
    pub(super) stage: Stage,
    /// Whether it has its buffers.
    is_admitted: bool,
    /// Whether the provider has its transfer.
    pub(super) is_posted: bool,
    pub(super) frame: Frame,
    /// Bulk of the request.
    pub(super) request: Option<Buffer>,
    /// Bulk of the reply, and how much of it.
    pub(super) reply: Option<Buffer>,
    pub(super) reply_bytes: u64,
    /// The message of the reply, while it waits for the bulk to arrive.
    pub(super) message: Vec<u8>,
    /// The receive whose payload it still needs.
    receive: Option<(u32, usize, usize)>,
    /// When it was first seen waiting.
    since: Option<Instant>,
}

impl Operation {
    fn new() -> Self {
        Self {
            client: 0,
            stage: Stage::Free,
            is_admitted: false,
            is_posted: false,
            frame: Frame { header: crate::wire::Header::default(), memory: None, session: [0; 16] },
            request: None,
            reply: None,
            reply_bytes: 0,
            message: Vec::new(),
            receive: None,
            since: None,
        }
    }

    /// Bulk of both directions.
    fn bulk_bytes(&self) -> u64 {
        self.frame.header.bulk_bytes + self.frame.header.reply_bulk_bytes
    }
}

/// Bulk of one client that is on its way at a time, in bytes; a single transfer may be larger. More in flight makes nothing faster: it
/// only spreads over more memory than the caches hold.
const TRANSFERS_BYTES: u64 = 4 << 20;

/// Posts a receive; its buffer is in nobody's hands until the event comes.
pub(super) fn post_receive(
    port: &mut Port,
    buffer: &Buffer,
    offset: usize,
    bytes: usize,
    receive: u32,
) -> Result<(), i32> {
    // SAFETY: each receive has a part of the buffer, which is dropped after the port; the part is looked at only after its event.
    unsafe { port.receive(&buffer.region, offset, bytes, receive) }
}

impl Listener {
    /// A message has come.
    pub(super) fn received(&mut self, receive: u32, event: Event, service: &mut dyn Service) {
        if event.error != 0 {
            if event.error != libc::ECANCELED {
                let cause = std::io::Error::from_raw_os_error(event.error);
                self.nuisance(&format!("a message was lost: {cause}"));
            }
            return self.release(receive);
        }
        self.message(receive, event.length.min(self.message_bytes), service);
    }

    /// Gives a receive back to the provider.
    fn release(&mut self, receive: u32) {
        let offset = receive as usize * self.message_bytes;
        if post_receive(&mut self.port, &self.receives, offset, self.message_bytes, receive).is_err() {
            self.unposted.push_back(receive);
        }
    }

    fn message(&mut self, receive: u32, length: usize, service: &mut dyn Service) {
        let base = receive as usize * self.message_bytes;
        // SAFETY: the receive has completed and is not posted again before the last use of these bytes.
        let message: &[u8] =
            unsafe { std::slice::from_raw_parts(self.receives.region.base().add(base), length) };
        let (frame, at) = match Frame::decode(message) {
            Ok(decoded) => decoded,
            Err(broken) => {
                // Without a session nobody can be blamed, and so nobody is cut off.
                self.seat.counters.closed_hostile.fetch_add(1, Ordering::Relaxed);
                self.nuisance(&format!("a message of {length} bytes was dropped: {broken}"));
                return self.release(receive);
            }
        };
        let Some(client) = self.clients.find(&frame.session) else {
            self.nuisance("a message without a known session was dropped");
            return self.release(receive);
        };
        if let Err(why) = self.judge(&frame) {
            self.release(receive);
            return self.cut(client, why);
        }
        if let Some(status) = self.refusal(&frame) {
            self.seat.counters.errors.fetch_add(1, Ordering::Relaxed);
            self.reply(client, &frame, status, 0, &[]);
            return self.release(receive);
        }
        if frame.header.bulk_bytes == 0 && frame.header.reply_bulk_bytes == 0 {
            self.answer_message(client, &frame, &message[at..], service);
            return self.release(receive);
        }
        self.start(receive, length, at, client, frame, service);
    }

    /// Whether a request makes sense; a client that sends others is cut off.
    fn judge(&self, frame: &Frame) -> Result<(), &'static str> {
        let header = &frame.header;
        if header.flags & flag::REPLY != 0 {
            return Err("a reply where requests are served");
        }
        if header.tag != self.seat.tag {
            return Err("a request for another tag");
        }
        let [source, target] = match (frame.memory, header.bulk_bytes | header.reply_bulk_bytes) {
            (None, 0) => return Ok(()),
            (None, _) => return Err("a request with bulk that names no memory"),
            (Some(memory), _) => memory,
        };
        if source.bytes < header.bulk_bytes || target.bytes < header.reply_bulk_bytes {
            return Err("a request with more bulk than the memory that it names");
        }
        let ends = |remote: Remote| remote.address.checked_add(remote.bytes).is_some();
        if ends(source) && ends(target) {
            Ok(())
        } else {
            Err("a request that names memory beyond all addresses")
        }
    }

    /// The status of a request that goes beyond the limits.
    fn refusal(&mut self, frame: &Frame) -> Option<i32> {
        let (header, limits) = (&frame.header, &self.seat.limits);
        let inline_max = u64::from(limits.inline_bytes_max);
        let largest_bulk = header.bulk_bytes.max(header.reply_bulk_bytes);
        if header.inline_bytes > inline_max || header.reply_inline_bytes > inline_max {
            let line =
                format!("a request was refused: it asks for more than {inline_max} bytes in a message");
            self.nuisance(&line);
            return Some(-libc::EMSGSIZE);
        }
        if largest_bulk > limits.bulk_bytes_max {
            let line = format!(
                "a request was refused: {largest_bulk} bytes of bulk, where {} are allowed",
                limits.bulk_bytes_max
            );
            self.nuisance(&line);
            return Some(-libc::EMSGSIZE);
        }
        None
    }

    /// Begins an RPC with bulk.
    fn start(
        &mut self,
        receive: u32,
        length: usize,
        at: usize,
        client: u32,
        frame: Frame,
        service: &mut dyn Service,
    ) {
        let Some(index) = self.free_operation() else { return self.deferred.push_back((receive, length)) };
        let operation = &mut self.operations[index as usize];
        operation.client = client;
        operation.frame = frame;
        operation.since = None;
        operation.receive = (frame.header.inline_bytes > 0).then_some((receive, at, length));
        operation.stage = Stage::Reading;
        (operation.is_posted, operation.is_admitted) = (false, false);
        if operation.receive.is_none() {
            self.release(receive);
        }
        if let Some(client) = self.clients.get(client) {
            client.outstanding += 1;
        }
        if self.waiting.is_empty() && self.has_room(index) {
            self.begin(index, service);
        } else {
            self.waiting.push_back(index);
        }
    }

    /// Whether the client of an operation has room for its transfers.
    fn has_room(&mut self, index: u32) -> bool {
        let operation = &self.operations[index as usize];
        let bytes = operation.bulk_bytes();
        self.clients.get(operation.client).is_none_or(|client| {
            client.transferring_bytes == 0 || client.transferring_bytes + bytes <= TRANSFERS_BYTES
        })
    }

    /// Gives an operation its buffers, and begins.
    fn begin(&mut self, index: u32, service: &mut dyn Service) {
        let operation = &mut self.operations[index as usize];
        let (client, frame, bytes) = (operation.client, operation.frame, operation.bulk_bytes());
        let (reads, writes) = (frame.header.bulk_bytes as usize, frame.header.reply_bulk_bytes as usize);
        if !self.clients.is_alive(client) {
            return self.finish(index);
        }
        let request = (reads > 0).then(|| self.requests.take(&mut self.port, reads));
        let reply = (writes > 0).then(|| self.answers.take(&mut self.port, writes));
        if matches!(request, Some(None)) || matches!(reply, Some(None)) {
            request.flatten().into_iter().for_each(|buffer| self.requests.give(buffer));
            reply.flatten().into_iter().for_each(|buffer| self.answers.give(buffer));
            self.nuisance("a request was refused: the engine's memory for buffers is used up");
            self.seat.counters.errors.fetch_add(1, Ordering::Relaxed);
            self.reply(client, &frame, -libc::ENOMEM, 0, &[]);
            return self.finish(index);
        }
        let operation = &mut self.operations[index as usize];
        operation.request = request.flatten();
        operation.reply = reply.flatten();
        operation.is_admitted = true;
        if let Some(client) = self.clients.get(client) {
            client.transferring_bytes += bytes;
        }
        if reads > 0 { self.post(index, service) } else { self.call(index, service) }
    }

    fn free_operation(&mut self) -> Option<u32> {
        if let Some(index) = self.free_operations.pop() {
            return Some(index);
        }
        (self.operations.len() < OPERATIONS).then(|| {
            self.operations.push(Operation::new());
            self.operations.len() as u32 - 1
        })
    }

    /// Hands the transfer of an operation to the provider, or puts it off.
    pub(super) fn post(&mut self, index: u32, service: &mut dyn Service) {
        let Some(address) = self.address_of(index) else { return self.finish(index) };
        let context = self.receive_count as u32 + self.reply_clients.len() as u32 + index;
        let operation = &mut self.operations[index as usize];
        let memory = operation.frame.memory.unwrap_or_default();
        // SAFETY: the buffers belong to the operation until its event comes, and to the port's owner until the port is dropped.
        let posted = unsafe {
            match (&operation.stage, &operation.request, &operation.reply) {
                (Stage::Reading, Some(buffer), _) => {
                    let from = Remote { bytes: operation.frame.header.bulk_bytes, ..memory[0] };
                    self.port.read(&buffer.region, from, address, context)
                }
                (Stage::Writing { .. }, _, Some(buffer)) => {
                    let to = Remote { bytes: operation.reply_bytes, ..memory[1] };
                    self.port.write(&buffer.region, to, address, context)
                }
                _ => Err(libc::EINVAL),
            }
        };
        match posted {
            Ok(()) => operation.is_posted = true,
            Err(libc::EAGAIN) => self.retries.push_back(index),
            Err(error) => self.transferred(index, error, service),
        }
    }

    fn address_of(&mut self, index: u32) -> Option<PeerAddress> {
        let client = self.operations[index as usize].client;
        self.clients.get(client).filter(|client| !client.is_gone).map(|client| client.address)
    }

    /// The transfer of an operation has ended.
    pub(super) fn transferred(&mut self, index: u32, error: i32, service: &mut dyn Service) {
        let Some(operation) = self.operations.get_mut(index as usize) else { return };
        operation.is_posted = false;
        let (client, stage) = (operation.client, operation.stage);
        if stage == Stage::Free {
            return;
        }
        if !self.clients.is_alive(client) {
            return self.finish(index);
        }
        if error != 0 {
            let cause = std::io::Error::from_raw_os_error(error);
            let deed = if stage == Stage::Reading { "read" } else { "written" };
            self.cut(client, &format!("its memory cannot be {deed}: {cause}"));
            return self.finish(index);
        }
        match stage {
            Stage::Reading => self.call(index, service),
            Stage::Writing { replied } => {
                if !replied {
                    let message = std::mem::take(&mut self.operations[index as usize].message);
                    self.send(client, &message);
                    self.operations[index as usize].message = message;
                }
                self.finish(index);
            }
            Stage::Free => {}
        }
    }

    /// Calls the service for an operation whose request is whole.
    fn call(&mut self, index: u32, service: &mut dyn Service) {
        let operation = &mut self.operations[index as usize];
        let (frame, client) = (operation.frame, operation.client);
        let (request, reply) = (operation.request.take(), operation.reply.take());
        let receive = operation.receive.take();
        let bulk_bytes = frame.header.bulk_bytes as usize;
        // SAFETY: the read has completed, and the write has not begun.
        let bulk: &[u8] = request.as_ref().map_or(&[], |buffer| unsafe { buffer.bytes_mut(0, bulk_bytes) });
        let inline: &[u8] = receive.map_or(&[], |(receive, at, length)| {
            let base = receive as usize * self.message_bytes;
            // SAFETY: the receive is held until it is released below.
            unsafe { std::slice::from_raw_parts(self.receives.region.base().add(base + at), length - at) }
        });
        let outcome = self.consult(&frame, inline, bulk, reply.as_ref(), service);
        if let Some((receive, ..)) = receive {
            self.release(receive);
        }
        if let Some(buffer) = request {
            self.requests.give(buffer);
        }
        let operation = &mut self.operations[index as usize];
        operation.reply = reply;
        operation.reply_bytes = outcome.bulk_bytes;
        if outcome.bulk_bytes == 0 {
            self.reply_outcome(client, &frame, &outcome);
            return self.finish(index);
        }
        let replied = self.port.facts().is_ordered;
        let operation = &mut self.operations[index as usize];
        operation.stage = Stage::Writing { replied };
        if !replied {
            let mut message = std::mem::take(&mut operation.message);
            self.compose_reply(&frame, &outcome, &mut message);
            self.operations[index as usize].message = message;
            return self.post(index, service);
        }
        self.post(index, service);
        // The provider may have put the write off: then the reply must not overtake it.
        let operation = &mut self.operations[index as usize];
        if operation.is_posted {
            self.reply_outcome(client, &frame, &outcome);
        } else if operation.stage != Stage::Free {
            operation.stage = Stage::Writing { replied: false };
            let mut message = std::mem::take(&mut operation.message);
            self.compose_reply(&frame, &outcome, &mut message);
            self.operations[index as usize].message = message;
        }
    }

    /// The operation has ended, one way or the other; what it holds is given back.
    pub(super) fn finish(&mut self, index: u32) {
        let operation = &mut self.operations[index as usize];
        if operation.stage == Stage::Free || operation.is_posted {
            return;
        }
        operation.stage = Stage::Free;
        let client = operation.client;
        let bytes = if operation.is_admitted { operation.bulk_bytes() } else { 0 };
        let (request, reply) = (operation.request.take(), operation.reply.take());
        let receive = operation.receive.take();
        request.into_iter().for_each(|buffer| self.requests.give(buffer));
        reply.into_iter().for_each(|buffer| self.answers.give(buffer));
        if let Some((receive, ..)) = receive {
            self.release(receive);
        }
        self.free_operations.push(index);
        if let Some(client) = self.clients.get(client) {
            client.transferring_bytes -= bytes;
        }
        self.has_finished = true;
        self.ended(client);
    }

    /// One operation of a client less.
    pub(super) fn ended(&mut self, client: u32) {
        if let Some(entry) = self.clients.get(client) {
            entry.outstanding = entry.outstanding.saturating_sub(1);
            if entry.is_gone {
                self.forget(client);
            }
        }
    }

    /// Offers again what the provider would not take. Whether anything moved.
    pub(super) fn retry(&mut self, service: &mut dyn Service) -> bool {
        if self.is_calm() && self.deferred.is_empty() && self.waiting.is_empty() {
            return false;
        }
        let before = self.backlog();
        self.resend();
        for _ in 0..self.retries.len() {
            let Some(index) = self.retries.pop_front() else { break };
            self.post(index, service);
        }
        self.repost();
        while !self.deferred.is_empty()
            && (!self.free_operations.is_empty() || self.operations.len() < OPERATIONS)
        {
            let Some((receive, length)) = self.deferred.pop_front() else { break };
            self.message(receive, length, service);
        }
        if std::mem::take(&mut self.has_finished) {
            for _ in 0..self.waiting.len() {
                let Some(index) = self.waiting.pop_front() else { break };
                if self.has_room(index) {
                    self.begin(index, service);
                } else {
                    self.waiting.push_back(index);
                }
            }
        }
        before != self.backlog()
    }

    /// What waits, by reason.
    fn backlog(&self) -> [usize; 5] {
        [self.pending.len(), self.retries.len(), self.unposted.len(), self.deferred.len(), self.waiting.len()]
    }

    /// Cuts off clients whose memory does not answer. Their operations keep their buffers until the provider lets go of them.
    pub(super) fn stalled(&mut self) {
        let limit = std::time::Duration::from_nanos(self.seat.limits.stall_ns_max);
        let now = Instant::now();
        for index in 0..self.operations.len() {
            let operation = &mut self.operations[index];
            if operation.stage == Stage::Free || !operation.is_admitted {
                continue;
            }
            let client = operation.client;
            if now.duration_since(*operation.since.get_or_insert(now)) > limit
                && self.clients.is_alive(client)
            {
                self.cut(client, "a transfer from or to its memory does not end");
            }
        }
        self.unread(now, limit);
    }

    /// Cuts off clients that do not take their replies.
    fn unread(&mut self, now: Instant, limit: std::time::Duration) {
        let is_late = |since: &mut Option<Instant>| now.duration_since(*since.get_or_insert(now)) > limit;
        let mut late: Vec<u32> = Vec::new();
        for pending in &mut self.pending {
            if is_late(&mut pending.since) {
                late.push(pending.client);
            }
        }
        let mut is_free = vec![false; self.reply_clients.len()];
        self.free_replies.iter().for_each(|&reply| is_free[reply as usize] = true);
        for (reply, since) in self.reply_since.iter_mut().enumerate().filter(|(reply, _)| !is_free[*reply]) {
            if is_late(since) {
                late.push(self.reply_clients[reply]);
            }
        }
        late.sort_unstable();
        late.dedup();
        for client in late {
            if self.clients.is_alive(client) {
                self.cut(client, "it does not take its replies");
            }
        }
    }
}
