//! What all connections of one endpoint share: the service, its buffers, and the counts.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::service::{Answer, BulkReply, Call, Memory, Service};
use crate::statistics;
use crate::wire::{BULK_HEADER_BYTES, BulkHeader, Header, flag, opcode};
use crate::{Budget, Limits, Seat};

use super::memory::{Buffer, Exhausted, Pool};

/// Counts since they were last published.
#[derive(Default)]
struct Tallies {
    rpcs: u64,
    received_bytes: u64,
    sent_bytes: u64,
    errors: u64,
}

/// Where the bulk of a reply lies until it is sent.
enum Source {
    Scratch(Buffer, usize),
    Shared(Arc<dyn Memory>, std::ops::Range<usize>),
}

/// A bulk reply on its way.
pub(super) struct Sending {
    header: [u8; BULK_HEADER_BYTES],
    source: Source,
    sent: usize,
}

impl Sending {
    /// What is left of header and bytes.
    pub(super) fn rest(&self) -> (&[u8], &[u8]) {
        let bytes = match &self.source {
            Source::Scratch(buffer, length) => &buffer.bytes()[..*length],
            Source::Shared(memory, range) => &memory.bytes()[range.clone()],
        };
        let header = self.sent.min(BULK_HEADER_BYTES);
        (&self.header[header..], &bytes[self.sent - header..])
    }

    /// Notes what was sent; whether that was the last of it.
    pub(super) fn advance(&mut self, bytes: usize) -> bool {
        self.sent += bytes;
        let (header, rest) = self.rest();
        header.is_empty() && rest.is_empty()
    }
}

/// A request's reply, but for what was put into [`Endpoint::inline`].
pub(super) struct Reply {
    pub(super) header: Header,
    pub(super) bulk: Option<Sending>,
}

/// See the module.
pub(super) struct Endpoint {
    pub(super) seat: Seat,
    /// Buffers for bulk of requests. What one client sent never lies in what another one gets.
    pub(super) requests: Pool,
    /// Buffers for bulk of replies.
    replies: Pool,
    /// Payload of the reply being made.
    pub(super) inline: Vec<u8>,
    /// Memory that is granted for it.
    inline_grant: Buffer,
    service: Box<dyn Service>,
    tallies: Tallies,
}

impl Endpoint {
    pub(super) fn new(seat: Seat, service: Box<dyn Service>) -> Self {
        Self {
            seat,
            service,
            requests: Pool::default(),
            replies: Pool::default(),
            inline: Vec::new(),
            inline_grant: Buffer::default(),
            tallies: Tallies::default(),
        }
    }

    pub(super) fn budget(&self) -> &Arc<Budget> {
        &self.seat.budget
    }

    pub(super) fn limits(&self) -> Limits {
        self.seat.limits
    }

    /// Carries out a request that has come whole.
    pub(super) fn answer(&mut self, request: &Header, inline: &[u8], bulk: &[u8]) -> Reply {
        self.inline.clear();
        let (status, bulk_reply) = match request.opcode {
            opcode::PING => (0, None),
            opcode::STATISTICS => {
                self.publish();
                self.inline = statistics::of_this_thread(&self.seat);
                (0, None)
            }
            _ => self.call(request, inline, bulk),
        };
        let mut reply = Reply { header: reply_to(request, status), bulk: bulk_reply };
        if self.inline.len() as u64 > request.reply_inline_bytes && status >= 0 {
            reply.header.status = -libc::EMSGSIZE;
        }
        if reply.header.status < 0 {
            self.inline.clear();
            self.put_back(reply.bulk.take());
        }
        reply.header.inline_bytes = self.inline.len() as u64;
        reply.header.bulk_bytes = reply.bulk.as_ref().map_or(0, |sending| sending.rest().1.len() as u64);
        // Asking for the counts leaves them as they are.
        if request.opcode != opcode::STATISTICS {
            self.tallies.rpcs += 1;
            self.tallies.received_bytes += (inline.len() + bulk.len()) as u64;
            self.tallies.sent_bytes += reply.header.inline_bytes + reply.header.bulk_bytes;
            self.tallies.errors += u64::from(reply.header.status < 0);
        }
        reply
    }

    fn call(&mut self, request: &Header, inline: &[u8], bulk: &[u8]) -> (i32, Option<Sending>) {
        let Ok(mut scratch) = self.buffers(request) else { return (-libc::ENOMEM, None) };
        let call = Call {
            opcode: request.opcode,
            flags: request.flags,
            sequence: request.sequence,
            seed: request.seed,
            inline,
            bulk,
            reply_inline_bytes: request.reply_inline_bytes,
            reply_bulk_bytes: request.reply_bulk_bytes,
        };
        let room = scratch.as_mut().map_or(&mut [][..], Buffer::bytes_mut);
        let room_bytes = room.len();
        let mut answer = Answer { inline: &mut self.inline, scratch: room, bulk: BulkReply::None };
        let status = self.service.call(&call, &mut answer);
        let bulk = answer.bulk;
        let header = |bytes: usize| {
            let mut header = [0; BULK_HEADER_BYTES];
            BulkHeader { slot: request.slot, bytes: bytes as u64 }.encode(&mut header);
            header
        };
        let fits = |bytes: usize| bytes as u64 <= request.reply_bulk_bytes;
        let sending = match bulk {
            BulkReply::None | BulkReply::Scratch(0) => None,
            BulkReply::Scratch(length) if length <= room_bytes && fits(length) => {
                let source = Source::Scratch(scratch.take().unwrap_or_default(), length);
                Some(Sending { header: header(length), source, sent: 0 })
            }
            BulkReply::Shared(_, range) if range.is_empty() => None,
            BulkReply::Shared(memory, range)
                if fits(range.len()) && memory.bytes().get(range.clone()).is_some() =>
            {
                let header = header(range.len());
                Some(Sending { header, source: Source::Shared(memory, range), sent: 0 })
            }
            BulkReply::Scratch(_) | BulkReply::Shared(..) => {
                self.pool_back(scratch);
                return (-libc::EMSGSIZE, None);
            }
        };
        self.pool_back(scratch);
        (status, sending)
    }

    /// The memory that the reply may take, granted before the service fills it.
    fn buffers(&mut self, request: &Header) -> Result<Option<Buffer>, Exhausted> {
        self.inline_grant.grow(request.reply_inline_bytes, &self.seat.budget)?;
        match request.reply_bulk_bytes {
            0 => Ok(None),
            bytes => {
                let taken = self.replies.take(bytes, &self.seat.budget);
                let taken = taken.or_else(|Exhausted| {
                    self.requests.clear();
                    self.replies.take(bytes, &self.seat.budget)
                });
                taken.map(Some)
            }
        }
    }

    /// A buffer for the bulk of a request.
    pub(super) fn request_buffer(&mut self, bytes: u64) -> Result<Buffer, Exhausted> {
        self.requests.take(bytes, &self.seat.budget).or_else(|Exhausted| {
            self.replies.clear();
            self.requests.take(bytes, &self.seat.budget)
        })
    }

    /// Gives what lies unused back to the engine: a client that has left keeps nothing from those of other endpoints.
    pub(super) fn give_back(&mut self) {
        self.requests.clear();
        self.replies.clear();
    }

    fn pool_back(&mut self, buffer: Option<Buffer>) {
        if let Some(buffer) = buffer {
            self.replies.put_back(buffer);
        }
    }

    /// Gives the buffer of a bulk reply back, sent or not.
    pub(super) fn put_back(&mut self, sending: Option<Sending>) {
        if let Some(Sending { source: Source::Scratch(buffer, _), .. }) = sending {
            self.replies.put_back(buffer);
        }
    }

    /// Shows others what was counted.
    pub(super) fn publish(&mut self) {
        let Tallies { rpcs, received_bytes, sent_bytes, errors } = std::mem::take(&mut self.tallies);
        if rpcs == 0 {
            return;
        }
        let counters = &self.seat.counters;
        counters.rpcs.fetch_add(rpcs, Ordering::Relaxed);
        counters.received_bytes.fetch_add(received_bytes, Ordering::Relaxed);
        counters.sent_bytes.fetch_add(sent_bytes, Ordering::Relaxed);
        if errors > 0 {
            counters.errors.fetch_add(errors, Ordering::Relaxed);
        }
    }
}

fn reply_to(request: &Header, status: i32) -> Header {
    Header {
        opcode: request.opcode,
        flags: request.flags & flag::VERIFY | flag::REPLY,
        slot: request.slot,
        status,
        tag: request.tag,
        sequence: request.sequence,
        seed: request.seed,
        ..Header::default()
    }
}
