//! Calls of the service, and the replies.
#![allow(unsafe_code)]

use std::collections::VecDeque;
use std::sync::atomic::Ordering;

use crate::ofi::buffers::Buffer;
use crate::ofi::frame::{Frame, PREFIX_BYTES_MAX};
use crate::service::{Answer, BulkReply, Call, Inline, Service};
use crate::wire::{flag, opcode};

use super::clients::Slot;
use super::{Listener, Pending};

/// Outcome of a call. Its payload for the message is in the listener.
pub(super) struct Outcome {
    status: i32,
    /// Bytes of bulk, which are in the reply's buffer.
    pub(super) bulk_bytes: u64,
}

impl Listener {
    /// A request without bulk: answered on the spot.
    pub(super) fn answer_message(
        &mut self,
        client: u32,
        frame: &Frame,
        inline: &[u8],
        service: &mut dyn Service,
    ) {
        let outcome = self.consult(frame, inline, &[], None, service);
        self.reply_outcome(client, frame, &outcome);
    }

    /// Asks the service, or answers what every endpoint answers itself.
    pub(super) fn consult(
        &mut self,
        frame: &Frame,
        inline: &[u8],
        bulk: &[u8],
        reply: Option<&Buffer>,
        service: &mut dyn Service,
    ) -> Outcome {
        let header = &frame.header;
        let mut memory = std::mem::take(&mut self.inline);
        memory.clear();
        memory.resize(header.reply_inline_bytes as usize, 0);
        let (mut length, mut is_over) = (0, false);
        let mut given = BulkReply::None;
        let room = if reply.is_some() { header.reply_bulk_bytes as usize } else { 0 };
        // SAFETY: the write of the reply begins after the call.
        let scratch: &mut [u8] = reply.map_or(&mut [], |buffer| unsafe { buffer.bytes_mut(0, room) });
        let mut status = match header.opcode {
            opcode::PING => 0,
            opcode::STATISTICS => {
                let mut out = Inline::new(&mut memory);
                out.extend_from_slice(&crate::statistics::of_this_thread(&self.seat));
                (length, is_over) = (out.len(), out.is_over());
                0
            }
            _ => {
                let call = Call {
                    opcode: header.opcode,
                    flags: header.flags,
                    sequence: header.sequence,
                    seed: header.seed,
                    inline,
                    bulk,
                    reply_inline_bytes: header.reply_inline_bytes,
                    reply_bulk_bytes: header.reply_bulk_bytes,
                };
                let inline = Inline::new(&mut memory);
                let mut answer = Answer { inline, scratch, bulk: BulkReply::None };
                let status = service.call(&call, &mut answer);
                (length, is_over) = (answer.inline.len(), answer.inline.is_over());
                given = answer.bulk;
                status
            }
        };
        let bulk_bytes = self.gather(given, reply, room).unwrap_or_else(|| {
            status = -libc::EOVERFLOW;
            0
        });
        if is_over && status >= 0 {
            status = -libc::EMSGSIZE;
        }
        memory.truncate(if is_over { 0 } else { length });
        self.inline = memory;
        if status != 0 {
            self.seat.counters.errors.fetch_add(1, Ordering::Relaxed);
        }
        let counters = &self.seat.counters;
        counters.rpcs.fetch_add(1, Ordering::Relaxed);
        counters.received_bytes.fetch_add((inline.len() + bulk.len()) as u64, Ordering::Relaxed);
        Outcome { status, bulk_bytes: if status == 0 { bulk_bytes } else { 0 } }
    }

    /// Brings the bulk of a reply into its buffer. Shared memory is copied: it is not registered, and to register it for one transfer costs
    /// more than the copy. None when there is more than the client has room for.
    fn gather(&self, given: BulkReply, reply: Option<&Buffer>, room: usize) -> Option<u64> {
        match given {
            BulkReply::None => Some(0),
            BulkReply::Scratch(bytes) => (bytes <= room).then_some(bytes as u64),
            BulkReply::Shared(memory, range) => {
                let from = (*memory).as_ref().get(range)?;
                if from.is_empty() {
                    return Some(0);
                }
                let buffer = reply.filter(|_| from.len() <= room)?;
                // SAFETY: the write of the reply begins after this; the scratch is in nobody's hands any more.
                unsafe { buffer.bytes_mut(0, from.len()) }.copy_from_slice(from);
                Some(from.len() as u64)
            }
        }
    }

    /// The reply to an outcome, whose payload is in `inline`.
    pub(super) fn reply_outcome(&mut self, client: u32, frame: &Frame, outcome: &Outcome) {
        let inline = std::mem::take(&mut self.inline);
        self.reply(client, frame, outcome.status, outcome.bulk_bytes, &inline);
        self.inline = inline;
    }

    /// Puts a reply together that is sent later.
    pub(super) fn compose_reply(&mut self, frame: &Frame, outcome: &Outcome, message: &mut Vec<u8>) {
        let (prefix, length) = prefix_of(frame, outcome.status, outcome.bulk_bytes, self.inline.len());
        message.clear();
        message.extend_from_slice(&prefix[..length]);
        message.extend_from_slice(&self.inline);
        self.count_sent(outcome.bulk_bytes);
    }

    fn count_sent(&self, bulk_bytes: u64) {
        let bytes = bulk_bytes + self.inline.len() as u64;
        self.seat.counters.sent_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Replies to a request.
    pub(super) fn reply(&mut self, client: u32, frame: &Frame, status: i32, bulk_bytes: u64, inline: &[u8]) {
        let (prefix, length) = prefix_of(frame, status, bulk_bytes, inline.len());
        let bytes = bulk_bytes + inline.len() as u64;
        self.seat.counters.sent_bytes.fetch_add(bytes, Ordering::Relaxed);
        let mut message = std::mem::take(&mut self.compose);
        message.clear();
        message.extend_from_slice(&prefix[..length]);
        message.extend_from_slice(inline);
        self.send(client, &message);
        self.compose = message;
    }

    /// Sends a message, or keeps it until the provider takes it.
    pub(super) fn send(&mut self, client: u32, message: &[u8]) {
        let waits = self.pending.iter().any(|pending| pending.client == client);
        if !waits && self.try_send(client, message) {
            return;
        }
        let bytes = message.len() as u64;
        let Some(entry) = self.clients.get(client) else { return };
        match entry.take(&self.seat.budget, bytes) {
            Some(grant) => {
                let message = message.to_vec();
                self.pending.push_back(Pending { client, message, since: None, grant });
            }
            None => self.cut(
                client,
                "it does not take its replies, and they exceed its share of the engine's memory",
            ),
        }
    }

    /// A reply that was kept has been sent, or is not wanted any more.
    fn unhold(&mut self, pending: &Pending) {
        if let Some(client) = self.clients.get(pending.client) {
            client.give_back(&self.seat.budget, pending.grant.bytes());
        }
    }

    /// Forgets the replies that wait for a client.
    pub(super) fn drop_pending(&mut self, client: u32) {
        let all = std::mem::take(&mut self.pending);
        let (gone, kept): (VecDeque<_>, _) = all.into_iter().partition(|pending| pending.client == client);
        self.pending = kept;
        gone.iter().for_each(|pending| self.unhold(pending));
    }

    /// Sends what had to wait. A client that takes nothing holds up nobody else.
    pub(super) fn resend(&mut self) {
        let mut full: Vec<u32> = Vec::new();
        for pending in std::mem::take(&mut self.pending) {
            if full.contains(&pending.client) {
                self.pending.push_back(pending);
            } else if self.try_send(pending.client, &pending.message) {
                self.unhold(&pending);
            } else {
                full.push(pending.client);
                self.pending.push_back(pending);
            }
        }
    }

    /// False when the provider wants to be asked again.
    fn try_send(&mut self, client: u32, message: &[u8]) -> bool {
        let Some(entry) = self.clients.get(client).filter(|entry| !entry.is_gone) else {
            return true;
        };
        let address = entry.address;
        if message.len() <= self.port.facts().inject_bytes {
            return match self.port.inject(message, address) {
                Ok(()) => true,
                Err(errno) => self.refused(client, errno),
            };
        }
        let (free, all) = (self.free_replies.len(), self.reply_clients.len());
        if !self.clients.may_take(client, Slot::Reply, free, all) {
            return false;
        }
        let Some(reply) = self.free_replies.pop() else { return false };
        let offset = reply as usize * self.message_bytes;
        let context = self.receive_count as u32 + reply;
        // SAFETY: the reply's part of the buffer is in nobody's hands while it is free, and the provider's until its event comes.
        let sent = unsafe {
            self.replies.bytes_mut(offset, message.len()).copy_from_slice(message);
            self.port.send(&self.replies.region, offset, message.len(), address, context)
        };
        match sent {
            Ok(()) => {
                self.reply_clients[reply as usize] = client;
                self.reply_since[reply as usize] = None;
                self.clients.take_slot(client, Slot::Reply);
                if let Some(entry) = self.clients.get(client) {
                    entry.outstanding += 1;
                }
                true
            }
            Err(errno) => {
                self.free_replies.push(reply);
                self.refused(client, errno)
            }
        }
    }

    fn refused(&mut self, client: u32, errno: i32) -> bool {
        if errno == libc::EAGAIN {
            return false;
        }
        let cause = std::io::Error::from_raw_os_error(errno);
        self.lose(client, &format!("nothing can be sent to it: {cause}"));
        true
    }

    /// A reply has left, or could not.
    pub(super) fn replied(&mut self, reply: u32, error: i32) {
        let Some(&client) = self.reply_clients.get(reply as usize) else { return };
        self.free_replies.push(reply);
        self.clients.give_slot(client, Slot::Reply);
        if error != 0 && self.clients.is_alive(client) {
            let cause = std::io::Error::from_raw_os_error(error);
            self.lose(client, &format!("a reply did not reach it: {cause}"));
        }
        self.ended(client);
    }

    /// The client cannot be reached any more; that is no hostility.
    fn lose(&mut self, client: u32, why: &str) {
        if let Some(peer) = self.clients.get(client).map(|entry| entry.peer) {
            self.log(&format!("{peer}: lost: {why}"));
        }
        self.drop_client(client);
    }
}

/// Prefix of a reply's payload.
fn prefix_of(frame: &Frame, status: i32, bulk_bytes: u64, inline: usize) -> ([u8; PREFIX_BYTES_MAX], usize) {
    let mut header = frame.header;
    header.flags = header.flags & flag::VERIFY | flag::REPLY;
    header.status = status;
    header.bulk_bytes = bulk_bytes;
    header.inline_bytes = inline as u64;
    let mut prefix = [0; PREFIX_BYTES_MAX];
    let length = Frame { header, memory: None, session: frame.session }.encode(&mut prefix);
    (prefix, length)
}
