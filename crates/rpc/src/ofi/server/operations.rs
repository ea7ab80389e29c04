//! From a message to its call: bulk is read from the client's memory first, and written back after.
#![allow(unsafe_code)]

use std::sync::atomic::Ordering;
use std::time::Instant;

use crate::ofi::buffers::Buffer;
use crate::ofi::frame::Frame;
use crate::ofi::port::{Event, PeerAddress, Port, Remote};
use crate::service::Service;
use crate::wire::flag;

use super::clients::Slot;
use super::{Listener, OPERATIONS};

/// Stage of an operation: the event that it waits for.
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
    /// Payload of the request beside the bulk.
    inline: Vec<u8>,
    /// Memory that is counted for its client.
    held_bytes: u64,
    /// When it was first seen waiting.
    since: Option<Instant>,
}

impl Operation {
    fn new() -> Self {
        Self {
            client: 0,
            stage: Stage::Free,
            is_posted: false,
            frame: Frame { header: crate::wire::Header::default(), memory: None, session: [0; 16] },
            request: None,
            reply: None,
            reply_bytes: 0,
            message: Vec::new(),
            inline: Vec::new(),
            held_bytes: 0,
            since: None,
        }
    }
}

/// Bulk of both directions.
pub(super) fn bulk_bytes(frame: &Frame) -> u64 {
    frame.header.bulk_bytes + frame.header.reply_bulk_bytes
}

/// Memory for payload that an operation keeps for the next one.
const KEPT_BYTES_MAX: usize = 4096;

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
        self.start(client, &frame, &message[at..], service);
        self.release(receive);
    }

    /// Whether a request makes sense; a client that sends others is cut off.
    fn judge(&self, frame: &Frame) -> Result<(), &'static str> {
        let header = &frame.header;
        if header.flags & flag::REPLY != 0 {
            return Err("a reply arrived where requests are served");
        }
        if header.flags & flag::TIMED != 0 {
            return Err("a request for times, which only socket endpoints report");
        }
        if header.tag != self.seat.tag {
            return Err("a request for another tag");
        }
        let [source, target] = match (frame.memory, header.bulk_bytes | header.reply_bulk_bytes) {
            (None, 0) => return Ok(()),
            (None, _) => return Err("a request with bulk that specifies no memory"),
            (Some(memory), _) => memory,
        };
        if source.bytes < header.bulk_bytes || target.bytes < header.reply_bulk_bytes {
            return Err("a request with more bulk than its memory");
        }
        let ends = |remote: Remote| remote.address.checked_add(remote.bytes).is_some();
        if ends(source) && ends(target) {
            Ok(())
        } else {
            Err("a request whose memory exceeds the address space")
        }
    }

    /// The status of a request that goes beyond the limits.
    fn refusal(&mut self, frame: &Frame) -> Option<i32> {
        let (header, limits) = (&frame.header, &self.seat.limits);
        let inline_max = u64::from(limits.inline_bytes_max);
        let largest_bulk = header.bulk_bytes.max(header.reply_bulk_bytes);
        if header.inline_bytes > inline_max || header.reply_inline_bytes > inline_max {
            let line = format!("a request was rejected: it needs more than {inline_max} bytes in a message");
            self.nuisance(&line);
            return Some(-libc::EMSGSIZE);
        }
        if largest_bulk > limits.bulk_bytes_max {
            let line = format!(
                "a request was rejected: {largest_bulk} bytes of bulk, but at most {} are allowed",
                limits.bulk_bytes_max
            );
            self.nuisance(&line);
            return Some(-libc::EMSGSIZE);
        }
        None
    }

    /// The buffers of an RPC, counted for its client; false where it may hold no more now.
    fn supply(&mut self, index: u32) -> bool {
        let operation = &mut self.operations[index as usize];
        let header = &operation.frame.header;
        let (reads, writes) = (header.bulk_bytes as usize, header.reply_bulk_bytes as usize);
        let (budget, port) = (&self.seat.budget, &mut self.port);
        let Some(client) = self.clients.get(operation.client) else { return false };
        let mut held = operation.inline.len() as u64;
        if reads > 0 {
            operation.request = self.requests.take(port, reads, &client.purse(budget, held));
            held += operation.request.as_ref().map_or(0, Buffer::held_bytes);
        }
        if writes > 0 && (reads == 0 || operation.request.is_some()) {
            operation.reply = self.answers.take(port, writes, &client.purse(budget, held));
            held += operation.reply.as_ref().map_or(0, Buffer::held_bytes);
        }
        operation.held_bytes = held;
        client.hold(held);
        (reads == 0 || operation.request.is_some()) && (writes == 0 || operation.reply.is_some())
    }

    /// Begins an RPC. False when it has to wait until its client gives memory back.
    pub(super) fn begin(
        &mut self,
        client: u32,
        frame: &Frame,
        inline: &[u8],
        service: &mut dyn Service,
    ) -> bool {
        let is_at_work = self.clients.get(client).is_some_and(|client| client.transferring_bytes > 0);
        let Some(index) = self.free_operation() else { return false };
        let operation = &mut self.operations[index as usize];
        (operation.client, operation.frame, operation.stage) = (client, *frame, Stage::Reading);
        (operation.since, operation.is_posted) = (None, false);
        operation.inline.extend_from_slice(inline);
        self.clients.take_slot(client, Slot::Operation);
        if let Some(client) = self.clients.get(client) {
            client.outstanding += 1;
            client.transferring_bytes += bulk_bytes(frame);
        }
        if !self.supply(index) {
            if !is_at_work {
                self.refuse_for_memory(client, frame);
            }
            // Nothing was given back by it that others wait for.
            let has_finished = self.has_finished;
            self.finish(index);
            self.has_finished = has_finished;
            return !is_at_work;
        }
        if frame.header.bulk_bytes > 0 {
            self.post(index, service);
        } else {
            self.call(index, service);
        }
        true
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
        let inline = std::mem::take(&mut operation.inline);
        let bulk_bytes = frame.header.bulk_bytes as usize;
        // SAFETY: the read has completed, and the write has not begun.
        let bulk: &[u8] = request.as_ref().map_or(&[], |buffer| unsafe { buffer.bytes_mut(0, bulk_bytes) });
        let outcome = self.consult(&frame, &inline, bulk, reply.as_ref(), service);
        self.operations[index as usize].inline = inline;
        if let Some(buffer) = request {
            self.give_request(index, buffer);
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

    /// The bulk of a request is not needed any more: its buffer serves the next one.
    fn give_request(&mut self, index: u32, buffer: Buffer) {
        let (operation, bytes) = (&mut self.operations[index as usize], buffer.held_bytes());
        operation.held_bytes -= bytes;
        if let Some(client) = self.clients.get(operation.client) {
            client.give_back(&self.seat.budget, bytes);
        }
        self.requests.give(&mut self.port, buffer);
    }

    /// The operation has ended, one way or the other; what it holds is given back.
    pub(super) fn finish(&mut self, index: u32) {
        let operation = &mut self.operations[index as usize];
        if operation.stage == Stage::Free || operation.is_posted {
            return;
        }
        operation.stage = Stage::Free;
        let client = operation.client;
        let bytes = bulk_bytes(&operation.frame);
        let (request, reply) = (operation.request.take(), operation.reply.take());
        for kept in [&mut operation.inline, &mut operation.message] {
            kept.clear();
            kept.shrink_to(KEPT_BYTES_MAX);
        }
        let held_bytes = std::mem::take(&mut operation.held_bytes);
        request.into_iter().for_each(|buffer| self.requests.give(&mut self.port, buffer));
        reply.into_iter().for_each(|buffer| self.answers.give(&mut self.port, buffer));
        self.clients.give_slot(client, Slot::Operation);
        self.free_operations.push(index);
        if let Some(client) = self.clients.get(client) {
            client.transferring_bytes -= bytes;
            client.give_back(&self.seat.budget, held_bytes);
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
        if self.is_calm() && self.waiting.is_empty() {
            return false;
        }
        let before = self.backlog();
        self.resend();
        for _ in 0..self.retries.len() {
            let Some(index) = self.retries.pop_front() else { break };
            self.post(index, service);
        }
        self.repost();
        if std::mem::take(&mut self.has_finished) {
            self.unpark(service);
        }
        before != self.backlog()
    }

    /// Number of waiting operations, by reason.
    fn backlog(&self) -> [usize; 4] {
        [self.pending.len(), self.retries.len(), self.unposted.len(), self.waiting.len()]
    }

    /// Cuts off clients whose memory does not answer. Their operations keep their buffers until the provider lets go of them.
    pub(super) fn stalled(&mut self) {
        let limit = std::time::Duration::from_nanos(self.seat.limits.stall_ns_max);
        let now = Instant::now();
        for index in 0..self.operations.len() {
            let operation = &mut self.operations[index];
            if operation.stage == Stage::Free {
                continue;
            }
            let client = operation.client;
            if now.duration_since(*operation.since.get_or_insert(now)) > limit
                && self.clients.is_alive(client)
            {
                self.cut(client, "a transfer from or to its memory does not complete");
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
