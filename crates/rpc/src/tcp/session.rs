//! One client's connection: its stream of messages, and its stream of bulk where it has one.

mod stall;
mod times;

use std::cell::Cell;
use std::io::{IoSlice, IoSliceMut};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::AsFd;

use rustix::io::Errno;
use rustix::net::SendFlags;

use crate::service::BulkSink;
use crate::share::{Purse, recount};
use crate::wire::{BULK_HEADER_BYTES, BulkHeader, HEADER_BYTES, Header};

use super::ending::{Ending, check, hostile};
use super::endpoint::{Endpoint, Sending};
use super::memory::{Buffer, Exhausted, Input, Output};
use super::pace::Pace;
use super::poller::{Interest, Poller};
use times::Times;

/// Replies that wait to be sent, in bytes, beyond which no further request is carried out.
const OUTPUT_BYTES_MAX: usize = 256 << 10;
/// Replies that are sent together, in bytes: with more of them the client would idle meanwhile.
const TOGETHER_BYTES: usize = 32 << 10;
/// Requests and replies of so many bytes are worth another look for more of them before the replies are sent: a call that sends less
/// costs less than the wait.
const GATHERED_BYTES: usize = 4 << 10;
/// Requests from which on their replies are sent before others are looked for.
const TOGETHER_MAX: u32 = 16;
/// Bulk that one turn moves before others get theirs, in bytes.
const TURN_BYTES: u64 = 1 << 20;
/// First size of a buffer for requests.
const INPUT_BYTES: u64 = 64 << 10;

/// Result of one turn.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Turn {
    /// Bytes moved.
    pub(super) moved: bool,
    /// There is more to do without anything to wait for.
    pub(super) again: bool,
}

/// Where the bulk of a request goes.
enum Room {
    Buffer(Buffer),
    BulkSink(Box<dyn BulkSink>),
}

/// Bulk of a request, as far as it has come.
struct Incoming {
    header: [u8; BULK_HEADER_BYTES],
    room: Room,
    got: usize,
}

/// See the module.
pub(super) struct Session {
    pub(super) id: [u8; 16],
    pub(super) peer: SocketAddr,
    messages: TcpStream,
    bulk: Option<TcpStream>,
    input: Input,
    /// Memory counted for it against its client's share.
    counted: Cell<u64>,
    output: Output,
    /// The last so many bytes of it wait until the service has settled what it changed.
    unsettled_bytes: usize,
    incoming: Option<Incoming>,
    sending: Option<Sending>,
    /// A request waits for its bulk, or for the stream that brings it.
    awaits_bulk: bool,
    /// A request waits until replies have left.
    held_up: bool,
    /// Bytes that this turn moved, and whether a request became whole in it.
    received_bytes: u64,
    sent_bytes: u64,
    is_whole: bool,
    receiving: Pace,
    leaving: Pace,
    orphan_since_ns: u64,
    watched: [Interest; 2],
    times: Times,
}

impl Session {
    pub(super) fn new(
        id: [u8; 16],
        peer: SocketAddr,
        messages: TcpStream,
        endpoint: &Endpoint,
    ) -> Result<Self, Ending> {
        let mut input = Input::default();
        let counted = Cell::new(0);
        input.grow(INPUT_BYTES, &Purse::new(endpoint.budget(), peer.ip(), 0, &counted))?;
        Ok(Self {
            id,
            peer,
            messages,
            bulk: None,
            input,
            counted,
            output: Output::default(),
            unsettled_bytes: 0,
            incoming: None,
            sending: None,
            awaits_bulk: false,
            held_up: false,
            received_bytes: 0,
            sent_bytes: 0,
            is_whole: false,
            receiving: Pace::default(),
            leaving: Pace::default(),
            orphan_since_ns: 0,
            watched: [Interest::READ; 2],
            times: Times::default(),
        })
    }

    /// Has the poller watch the messages, by a number; bulk has the next.
    pub(super) fn watch_messages(&self, poller: &Poller, number: u64) -> std::io::Result<()> {
        poller.add(&self.messages, number, Interest::READ)
    }

    /// Takes the stream for bulk.
    pub(super) fn attach(
        &mut self,
        bulk: TcpStream,
        poller: &Poller,
        number: u64,
    ) -> Result<(), &'static str> {
        if self.bulk.is_some() {
            return Err("its session already has a bulk stream");
        }
        if poller.add(&bulk, number + 1, Interest::READ).is_err() {
            return Err("the kernel cannot watch it");
        }
        self.bulk = Some(bulk);
        Ok(())
    }

    /// Streams that it holds open.
    pub(super) fn streams(&self) -> u64 {
        1 + u64::from(self.bulk.is_some())
    }

    /// Gives its buffers back to the endpoint.
    pub(super) fn close(self, endpoint: &mut Endpoint) {
        recount(endpoint.budget(), self.peer.ip(), 0, &self.counted);
        endpoint.put_back(self.sending);
        if let Some(Incoming { room: Room::Buffer(buffer), .. }) = self.incoming {
            endpoint.request_done(buffer);
        }
    }

    /// Memory of the endpoint that it holds.
    fn held_bytes(&self) -> u64 {
        let incoming = match &self.incoming {
            Some(Incoming { room: Room::Buffer(buffer), .. }) => buffer.bytes().len() as u64,
            _ => 0,
        };
        let sending = self.sending.as_ref().map_or(0, Sending::held_bytes);
        self.input.held_bytes() + self.output.held_bytes() + incoming + sending
    }

    /// Purse by which it asks for memory of the endpoint.
    fn purse(&self, endpoint: &Endpoint) -> Purse<'_> {
        Purse::new(endpoint.budget(), self.peer.ip(), self.held_bytes(), &self.counted)
    }

    /// Counts what it holds now.
    fn recount(&self, endpoint: &Endpoint) {
        if self.counted.get() > 0 {
            recount(endpoint.budget(), self.peer.ip(), self.held_bytes(), &self.counted);
        }
    }

    /// Reads what is there, carries out what has come whole, and sends what it can.
    pub(super) fn turn(&mut self, endpoint: &mut Endpoint) -> Result<Turn, Ending> {
        (self.received_bytes, self.sent_bytes, self.is_whole) = (0, 0, false);
        self.flush(endpoint)?;
        self.fill()?;
        (self.awaits_bulk, self.held_up) = (false, false);
        let again = self.carry_out_all(endpoint)?;
        endpoint.publish();
        // What waits to be settled is settled once for all sessions.
        if !self.awaits_settling() {
            self.flush(endpoint)?;
        }
        self.recount(endpoint);
        let again = (again || self.held_up) && (self.awaits_settling() || !self.is_blocked());
        Ok(Turn { moved: self.received_bytes + self.sent_bytes > 0, again })
    }

    /// Carries out what has come, and what comes meanwhile from a client that sends several at a time: their replies leave together, which
    /// costs the kernel less than one by one. Whether it stopped for others' sake.
    fn carry_out_all(&mut self, endpoint: &mut Endpoint) -> Result<bool, Ending> {
        let (mut moved_bytes, mut count, mut is_full) = (0, 0, false);
        loop {
            let before = count;
            while let Some(header) = self.next_request(endpoint)? {
                let unread = self.input.unread().len();
                self.times.turns_to(&header, unread, &self.messages);
                if header.bulk_bytes > 0 && !self.receive_bulk(&header, endpoint)? {
                    self.awaits_bulk = true;
                    return Ok(false);
                }
                self.carry_out(&header, endpoint)?;
                self.is_whole = true;
                count += 1;
                moved_bytes += header.bulk_bytes + header.reply_bulk_bytes;
                if moved_bytes >= TURN_BYTES {
                    return Ok(true);
                }
                let is_early = self.output.pending().len() >= TOGETHER_BYTES && !self.awaits_settling();
                if is_early && !is_full && !self.input.unread().is_empty() {
                    self.flush(endpoint)?;
                    is_full = !self.output.pending().is_empty();
                }
            }
            let pending = self.output.pending().len();
            let is_enough = count >= TOGETHER_MAX || pending >= TOGETHER_BYTES;
            let is_small = self.received_bytes as usize + pending < GATHERED_BYTES;
            if count < 2 || count == before || is_enough || is_small || self.held_up || self.awaits_bulk {
                return Ok(false);
            }
            if let Err(ending) = self.fill() {
                // The client is done sending, and may still read.
                self.flush(endpoint)?;
                return Err(ending);
            }
        }
    }

    /// Whether replies wait until the service has settled what it changed.
    #[inline]
    pub(super) fn awaits_settling(&self) -> bool {
        self.unsettled_bytes > 0
    }

    /// Sends them.
    pub(super) fn send_settled(&mut self, endpoint: &mut Endpoint) -> Result<(), Ending> {
        self.flush(endpoint)?;
        self.recount(endpoint);
        Ok(())
    }

    /// Has the service settle what it changed, and tells those that wait for it when it cannot.
    fn settle(&mut self, endpoint: &mut Endpoint) -> Result<(), Ending> {
        let status = endpoint.settle();
        let mut replies = self.output.last_mut(std::mem::take(&mut self.unsettled_bytes));
        while let (true, Some(head)) = (status != 0, replies.first_chunk_mut::<HEADER_BYTES>()) {
            let mut header = Header::decode(head).map_err(|malformed| hostile(malformed.to_string()))?;
            header.status = if header.status == 0 { status } else { header.status };
            header.encode(head);
            replies = &mut replies[HEADER_BYTES + header.inline_bytes as usize..];
        }
        Ok(())
    }

    /// Whether replies must leave before another request is carried out.
    fn is_blocked(&self) -> bool {
        self.sending.is_some() || self.output.pending().len() >= OUTPUT_BYTES_MAX
    }

    /// Whether a socket is full, so that asking it again says nothing.
    pub(super) fn awaits_room(&self) -> bool {
        self.watched.iter().any(|interest| interest.write)
    }

    /// The next request whose message has come whole and may be carried out; not consumed.
    fn next_request(&mut self, endpoint: &mut Endpoint) -> Result<Option<Header>, Ending> {
        let Some(bytes) = self.input.unread().first_chunk::<HEADER_BYTES>() else { return Ok(None) };
        let header = Header::decode(bytes).map_err(|malformed| hostile(malformed.to_string()))?;
        check(&header, endpoint)?;
        let whole = HEADER_BYTES as u64 + header.inline_bytes;
        if (self.input.unread().len() as u64) < whole {
            let held = self.held_bytes();
            let purse = Purse::new(endpoint.budget(), self.peer.ip(), held, &self.counted);
            self.input.grow(whole, &purse)?;
            return Ok(None);
        }
        if self.is_blocked() {
            self.flush(endpoint)?;
            if self.is_blocked() {
                self.held_up = true;
                return Ok(None);
            }
        }
        if header.reply_bulk_bytes > 0 && self.bulk.is_none() {
            self.awaits_bulk = true;
            return Ok(None);
        }
        Ok(Some(header))
    }

    /// Receives the bulk of a request straight into a buffer. Whether it is whole.
    fn receive_bulk(&mut self, header: &Header, endpoint: &mut Endpoint) -> Result<bool, Ending> {
        let Some(bulk) = &self.bulk else { return Ok(false) };
        let length = header.bulk_bytes as usize;
        if self.incoming.is_none() {
            let inline = &self.input.unread()[HEADER_BYTES..][..header.inline_bytes as usize];
            let room = match endpoint.sink(header, inline) {
                Some(sink) => Room::BulkSink(sink),
                None => {
                    let purse = self.purse(endpoint);
                    Room::Buffer(endpoint.request_buffer(header.bulk_bytes, &purse)?)
                }
            };
            self.times.has_room();
            self.incoming = Some(Incoming { header: [0; BULK_HEADER_BYTES], room, got: 0 });
        }
        let Some(incoming) = &mut self.incoming else { return Ok(false) };
        let whole = BULK_HEADER_BYTES + length;
        while incoming.got < whole {
            let head = incoming.got.min(BULK_HEADER_BYTES);
            let memory = match &mut incoming.room {
                Room::Buffer(buffer) => buffer.bytes_mut(),
                Room::BulkSink(sink) => sink.bytes_mut(),
            };
            let payload = &mut memory[incoming.got - head..length];
            let result = if head == BULK_HEADER_BYTES {
                rustix::io::read(bulk, payload)
            } else {
                let mut parts = [IoSliceMut::new(&mut incoming.header[head..]), IoSliceMut::new(payload)];
                rustix::io::readv(bulk, &mut parts)
            };
            match result {
                Ok(0) => return Err(hostile("it was closed during a bulk transfer")),
                Ok(bytes) => {
                    incoming.got += bytes;
                    self.received_bytes += bytes as u64;
                }
                Err(Errno::AGAIN) => return Ok(false),
                Err(Errno::INTR) => continue,
                Err(_) => return Err(Ending::Gone),
            }
            if head < BULK_HEADER_BYTES && incoming.got >= BULK_HEADER_BYTES {
                let said = BulkHeader::decode(&incoming.header).map_err(|bad| hostile(bad.to_string()))?;
                if said != (BulkHeader { slot: header.slot, bytes: header.bulk_bytes }) {
                    return Err(hostile("a bulk transfer does not match its request"));
                }
            }
        }
        // A session at work often has bulk waiting; what counts is bulk that nobody takes.
        self.orphan_since_ns = 0;
        Ok(true)
    }

    /// Carries out a request that has come whole and puts its reply where it will be sent from.
    fn carry_out(&mut self, header: &Header, endpoint: &mut Endpoint) -> Result<(), Ending> {
        // The room for the reply first: it may be refused.
        let inline_max = header.reply_inline_bytes;
        let held = self.held_bytes();
        let purse = Purse::new(endpoint.budget(), self.peer.ip(), held, &self.counted);
        self.output.reserve(HEADER_BYTES as u64 + inline_max, &purse)?;
        let (head, room) = self
            .output
            .room(HEADER_BYTES + inline_max as usize)
            .split_first_chunk_mut::<HEADER_BYTES>()
            .ok_or(Exhausted)?;
        let whole = HEADER_BYTES + header.inline_bytes as usize;
        let inline = &self.input.unread()[HEADER_BYTES..whole];
        self.times.begins(header.bulk_bytes > 0, endpoint);
        let reply = match self.incoming.take().map(|incoming| incoming.room) {
            None => endpoint.answer(header, inline, &[], room, &purse),
            Some(Room::BulkSink(sink)) => endpoint.finish(header, sink),
            Some(Room::Buffer(buffer)) => {
                let bulk = &buffer.bytes()[..header.bulk_bytes as usize];
                let reply = endpoint.answer(header, inline, bulk, room, &purse);
                endpoint.request_done(buffer);
                reply
            }
        };
        reply.header.encode(head);
        let bytes = HEADER_BYTES + reply.header.inline_bytes as usize;
        self.output.add(bytes);
        self.input.consume(whole);
        self.times.ends((whole, bytes), &mut self.output, endpoint);
        if endpoint.is_unsettled() {
            self.unsettled_bytes += bytes;
        }
        if reply.bulk.is_some() {
            self.sending = reply.bulk;
            if self.awaits_settling() {
                self.settle(endpoint)?;
            }
            self.times.last_leaves(bytes, &mut self.output, endpoint.settling());
            self.send_bulk(endpoint)?;
        }
        Ok(())
    }

    /// Sends what the sockets take.
    fn flush(&mut self, endpoint: &mut Endpoint) -> Result<(), Ending> {
        if self.awaits_settling() {
            self.settle(endpoint)?;
        }
        if self.sending.is_some() {
            self.send_bulk(endpoint)?;
        }
        self.times.leave(&mut self.output, endpoint.settling());
        while !self.output.pending().is_empty() {
            let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
            match rustix::net::send(&self.messages, self.output.pending(), flags) {
                Ok(bytes) => {
                    let is_full = bytes < self.output.pending().len();
                    self.output.sent(bytes);
                    self.sent_bytes += bytes as u64;
                    if is_full {
                        break;
                    }
                }
                Err(Errno::AGAIN) => break,
                Err(Errno::INTR) => {}
                Err(_) => return Err(Ending::Gone),
            }
        }
        Ok(())
    }

    fn send_bulk(&mut self, endpoint: &mut Endpoint) -> Result<(), Ending> {
        let (Some(stream), Some(sending)) = (&self.bulk, &mut self.sending) else { return Ok(()) };
        loop {
            let (header, bytes) = sending.rest();
            // The process ignores SIGPIPE, as every Rust program does.
            let result = if header.is_empty() {
                rustix::net::send(stream, bytes, SendFlags::DONTWAIT | SendFlags::NOSIGNAL)
            } else {
                rustix::io::writev(stream, &[IoSlice::new(header), IoSlice::new(bytes)])
            };
            match result {
                Ok(count) => {
                    self.sent_bytes += count as u64;
                    let is_full = count < header.len() + bytes.len();
                    if sending.advance(count) {
                        endpoint.put_back(self.sending.take());
                        return Ok(());
                    }
                    if is_full {
                        return Ok(());
                    }
                }
                Err(Errno::AGAIN) => return Ok(()),
                Err(Errno::INTR) => {}
                Err(_) => return Err(Ending::Gone),
            }
        }
    }

    /// Has the poller watch for what is wanted now. `reported` are the streams that were reported readable just now: only those
    /// are no longer watched when nothing is to be read, so that the usual turn needs no system call.
    pub(super) fn watch(&mut self, poller: &Poller, number: u64, reported: [bool; 2]) -> std::io::Result<()> {
        let wanted = [self.input.has_room(), self.awaits_bulk];
        let writes = [!self.output.pending().is_empty() && !self.awaits_settling(), self.sending.is_some()];
        for stream in 0..2 {
            let before = self.watched[stream];
            let read = wanted[stream] || (before.read && !reported[stream]);
            let interest = Interest { read, write: writes[stream] };
            if interest == before {
                continue;
            }
            let fd = match (stream, &self.bulk) {
                (0, _) => self.messages.as_fd(),
                (_, Some(bulk)) => bulk.as_fd(),
                (_, None) => continue,
            };
            poller.modify(fd, number + stream as u64, interest)?;
            self.watched[stream] = interest;
        }
        Ok(())
    }
}
