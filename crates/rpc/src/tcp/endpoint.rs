//! State that all connections of one endpoint share: the service, its buffers, and the counts.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use driver::{Clock as _, HostClock};

use crate::service::{Answer, BulkReply, BulkSink, Call, Inline, Memory, Service};
use crate::share::Purse;
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
    Shared(Arc<Memory>, std::ops::Range<usize>),
}

/// A bulk reply on its way.
pub(super) struct Sending {
    header: [u8; BULK_HEADER_BYTES],
    source: Source,
    sent: usize,
}

impl Sending {
    /// Rest of header and bytes.
    pub(super) fn rest(&self) -> (&[u8], &[u8]) {
        let bytes = match &self.source {
            Source::Scratch(buffer, length) => &buffer.bytes()[..*length],
            Source::Shared(memory, range) => &(**memory).as_ref()[range.clone()],
        };
        let header = self.sent.min(BULK_HEADER_BYTES);
        (&self.header[header..], &bytes[self.sent - header..])
    }

    /// Memory of the endpoint that it takes.
    pub(super) fn held_bytes(&self) -> u64 {
        match &self.source {
            Source::Scratch(buffer, _) => buffer.bytes().len() as u64,
            Source::Shared(..) => 0,
        }
    }

    /// Notes what was sent; whether that was the last of it.
    pub(super) fn advance(&mut self, bytes: usize) -> bool {
        self.sent += bytes;
        let (header, rest) = self.rest();
        header.is_empty() && rest.is_empty()
    }
}

/// A request's reply, but for its payload in the message, which is in the room that was given for it.
pub(super) struct Reply {
    pub(super) header: Header,
    pub(super) bulk: Option<Sending>,
}

/// Outcome of a call.
struct Outcome {
    status: i32,
    bulk: Option<Sending>,
    /// Payload in the message, and whether there was no room for all of it.
    inline_bytes: usize,
    is_over: bool,
}

impl Outcome {
    fn of(status: i32) -> Self {
        Self { status, bulk: None, inline_bytes: 0, is_over: false }
    }
}

/// See the module.
pub(super) struct Endpoint {
    pub(super) seat: Seat,
    /// Buffers for bulk of requests. What one client sent never lies in what another one gets.
    pub(super) requests: Pool,
    /// Buffers for bulk of replies.
    replies: Pool,
    service: Box<dyn Service>,
    /// The service leaves something to [`Endpoint::settle`].
    defers: bool,
    /// Status of the settling of this round: a failure concerns the replies of all sessions.
    settled: i32,
    /// A request of this round is timed ([`flag::TIMED`]).
    is_timed: bool,
    /// When changes were made durable last; only where that was timed.
    settling: Settling,
    tallies: Tallies,
}

/// When changes were made durable last, and how much of that was the wait for the storage.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Settling {
    pub(super) begin_ns: u64,
    pub(super) end_ns: u64,
    pub(super) storage_ns: u64,
}

impl Endpoint {
    pub(super) fn new(seat: Seat, mut service: Box<dyn Service>) -> Self {
        Self {
            seat,
            defers: service.defer(),
            settled: 0,
            is_timed: false,
            settling: Settling::default(),
            service,
            requests: Pool::default(),
            replies: Pool::default(),
            tallies: Tallies::default(),
        }
    }

    /// Connections of a client are closed.
    pub(super) fn leave(&self, peer: SocketAddr, connections: u64) {
        self.seat.budget.leave(peer.ip(), connections);
    }

    pub(super) fn budget(&self) -> &Arc<Budget> {
        &self.seat.budget
    }

    pub(super) fn limits(&self) -> Limits {
        self.seat.limits
    }

    /// Whether sessions may have replies that wait for [`Endpoint::settle`].
    #[inline]
    pub(super) fn defers(&self) -> bool {
        self.defers
    }

    /// Whether a reply made now has to wait for [`Endpoint::settle`].
    #[inline]
    pub(super) fn is_unsettled(&self) -> bool {
        self.defers && (self.settled != 0 || self.service.is_unsettled())
    }

    /// Has the service make durable what was changed. 0 or a negated errno, for all replies of this round that wait for it.
    pub(super) fn settle(&mut self) -> i32 {
        if self.service.is_unsettled() {
            let begin = self.is_timed.then(|| (HostClock::get().now_ns(), self.service.storage_wait_ns()));
            let status = self.service.settle();
            if let Some((begin_ns, waited_ns)) = begin {
                let storage_ns = self.service.storage_wait_ns().saturating_sub(waited_ns);
                self.settling = Settling { begin_ns, end_ns: HostClock::get().now_ns(), storage_ns };
            }
            self.settled = if self.settled == 0 { status } else { self.settled };
        }
        self.settled
    }

    /// A round is over: no reply waits.
    pub(super) fn end_round(&mut self) {
        self.settle();
        self.settled = 0;
        self.is_timed = false;
    }

    /// When changes were made durable last, by [`driver::HostClock`].
    #[inline]
    pub(super) fn settling(&self) -> Settling {
        self.settling
    }

    /// Time that this thread has waited for the storage of the service.
    #[inline]
    pub(super) fn storage_wait_ns(&self) -> u64 {
        self.service.storage_wait_ns()
    }

    /// Memory of the service for the bulk of a request.
    pub(super) fn sink(&mut self, request: &Header, inline: &[u8]) -> Option<Box<dyn BulkSink>> {
        let bytes = request.bulk_bytes as usize;
        let mut sink = self.service.sink(&call_of(request, inline, &[]), bytes)?;
        (sink.bytes_mut().len() == bytes).then_some(sink)
    }

    /// Carries out a request whose bulk has come into memory of the service.
    pub(super) fn finish(&mut self, request: &Header, sink: Box<dyn BulkSink>) -> Reply {
        self.is_timed |= request.flags & flag::TIMED != 0;
        let status = sink.finish();
        let reply = Reply { header: reply_to(request, status), bulk: None };
        self.tallies.rpcs += 1;
        self.tallies.received_bytes += request.inline_bytes + request.bulk_bytes;
        self.tallies.errors += u64::from(status < 0);
        reply
    }

    /// Carries out a request that has come whole. `room` is for the payload of the reply in the message.
    pub(super) fn answer(
        &mut self,
        request: &Header,
        inline: &[u8],
        bulk: &[u8],
        room: &mut [u8],
        purse: &Purse<'_>,
    ) -> Reply {
        self.is_timed |= request.flags & flag::TIMED != 0;
        let mut outcome = match request.opcode {
            opcode::PING => Outcome::of(0),
            opcode::STATISTICS => {
                self.publish();
                let mut out = Inline::new(room);
                out.extend_from_slice(&statistics::of_this_thread(&self.seat));
                Outcome { inline_bytes: out.len(), is_over: out.is_over(), ..Outcome::of(0) }
            }
            _ => self.call(request, inline, bulk, room, purse),
        };
        if outcome.is_over {
            outcome.inline_bytes = 0;
            if outcome.status >= 0 {
                outcome.status = -libc::EMSGSIZE;
            }
        }
        let mut reply = Reply { header: reply_to(request, outcome.status), bulk: outcome.bulk };
        if reply.header.status < 0 {
            self.put_back(reply.bulk.take());
        }
        reply.header.inline_bytes = outcome.inline_bytes as u64;
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

    fn call(
        &mut self,
        request: &Header,
        inline: &[u8],
        bulk: &[u8],
        out: &mut [u8],
        purse: &Purse<'_>,
    ) -> Outcome {
        let Ok(mut scratch) = self.buffers(request, purse) else { return Outcome::of(-libc::ENOMEM) };
        let call = call_of(request, inline, bulk);
        let room = scratch.as_mut().map_or(&mut [][..], Buffer::bytes_mut);
        let room_bytes = room.len();
        let mut answer = Answer { inline: Inline::new(out), scratch: room, bulk: BulkReply::None };
        let status = self.service.call(&call, &mut answer);
        let (inline_bytes, is_over) = (answer.inline.len(), answer.inline.is_over());
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
                if fits(range.len()) && (*memory).as_ref().get(range.clone()).is_some() =>
            {
                let header = header(range.len());
                Some(Sending { header, source: Source::Shared(memory, range), sent: 0 })
            }
            BulkReply::Scratch(_) | BulkReply::Shared(..) => {
                self.pool_back(scratch);
                return Outcome::of(-libc::EMSGSIZE);
            }
        };
        self.pool_back(scratch);
        Outcome { status, bulk: sending, inline_bytes, is_over }
    }

    /// The memory that the bulk of the reply may take, granted before the service fills it.
    fn buffers(&mut self, request: &Header, purse: &Purse<'_>) -> Result<Option<Buffer>, Exhausted> {
        match request.reply_bulk_bytes {
            0 => Ok(None),
            bytes => {
                let taken = self.replies.take(bytes, purse);
                let taken = taken.or_else(|Exhausted| {
                    self.requests.clear(&self.seat.budget);
                    self.replies.take(bytes, purse)
                });
                taken.map(Some)
            }
        }
    }

    /// A buffer for the bulk of a request.
    pub(super) fn request_buffer(&mut self, bytes: u64, purse: &Purse<'_>) -> Result<Buffer, Exhausted> {
        self.requests.take(bytes, purse).or_else(|Exhausted| {
            self.replies.clear(&self.seat.budget);
            self.requests.take(bytes, purse)
        })
    }

    /// Gives what lies unused back to the engine: a client that has left keeps nothing from those of other endpoints.
    pub(super) fn give_back(&mut self) {
        self.requests.clear(&self.seat.budget);
        self.replies.clear(&self.seat.budget);
    }

    /// Takes the buffer of a request back.
    pub(super) fn request_done(&mut self, buffer: Buffer) {
        self.requests.put_back(buffer, &self.seat.budget);
    }

    fn pool_back(&mut self, buffer: Option<Buffer>) {
        if let Some(buffer) = buffer {
            self.replies.put_back(buffer, &self.seat.budget);
        }
    }

    /// Gives the buffer of a bulk reply back, sent or not.
    pub(super) fn put_back(&mut self, sending: Option<Sending>) {
        if let Some(Sending { source: Source::Scratch(buffer, _), .. }) = sending {
            self.replies.put_back(buffer, &self.seat.budget);
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

fn call_of<'a>(request: &Header, inline: &'a [u8], bulk: &'a [u8]) -> Call<'a> {
    Call {
        opcode: request.opcode,
        flags: request.flags,
        sequence: request.sequence,
        seed: request.seed,
        inline,
        bulk,
        reply_inline_bytes: request.reply_inline_bytes,
        reply_bulk_bytes: request.reply_bulk_bytes,
    }
}

fn reply_to(request: &Header, status: i32) -> Header {
    Header {
        opcode: request.opcode,
        flags: request.flags & (flag::VERIFY | flag::TIMED) | flag::REPLY,
        slot: request.slot,
        status,
        tag: request.tag,
        sequence: request.sequence,
        seed: request.seed,
        ..Header::default()
    }
}
