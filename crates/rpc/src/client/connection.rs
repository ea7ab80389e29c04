//! One connection to an endpoint: its messages, and its bulk where any is moved.
#![allow(unsafe_code)]

use std::io::{self, IoSliceMut};
use std::net::TcpStream;
use std::os::fd::AsFd;

use rustix::io::Errno;
use rustix::net::RecvFlags;

use crate::socket::{self, TcpState};
use crate::tcp::poller::{Interest, Poller};
use crate::wire::{BULK_HEADER_BYTES, BulkHeader, HEADER_BYTES, Header, ServerTimes, flag};

use super::Request;
use super::memory::{Regions, Window};
use super::open::Streams;
use super::outgoing::Outgoing;
use super::slots::Slots;
use super::zero_copy;

/// Payloads in messages up to this size are copied behind their headers; larger ones are sent from where they lie.
pub(super) const COPY_BYTES_MAX: usize = 2 << 10;
/// Messages that wait to be sent, in bytes, from which on they are sent before the batch is complete: the endpoint begins with them
/// meanwhile.
const EARLY_BYTES: usize = 32 << 10;
/// Buffer for replies, in bytes.
const INPUT_BYTES: usize = 128 << 10;

/// State that all connections of a channel share.
pub(super) struct Common {
    pub(super) regions: Regions,
    pub(super) slots: Slots,
    pub(super) poller: Poller,
}

/// The rest of a reply's payload, which goes straight to its slot.
struct Rest {
    slot: u32,
    header: Header,
    at: usize,
}

/// A bulk reply on its way in.
#[derive(Default)]
struct BulkIn {
    header: [u8; BULK_HEADER_BYTES],
    got: usize,
    told: Option<BulkHeader>,
}

struct BulkStream {
    socket: TcpStream,
    outgoing: Outgoing,
    incoming: BulkIn,
    watched: Interest,
}

/// See the module.
pub(super) struct Connection {
    index: u32,
    pub(super) endpoint: usize,
    pub(super) in_flight: u32,
    /// Requests in flight whose replies may bring bulk.
    pub(super) awaits_bulk: u32,
    /// Frames of the batch being submitted wait to be sent.
    pub(super) is_dirty: bool,
    messages: TcpStream,
    outgoing: Outgoing,
    watched: Interest,
    bulk: Option<BulkStream>,
    /// Tag of the endpoint.
    tag: u32,
    input: Vec<u8>,
    start: usize,
    end: usize,
    rest: Option<Rest>,
    /// Kernel's state of its streams when it was closed.
    last_states: Vec<TcpState>,
    /// Counts of its bulk stream, where that was closed for good.
    retired_counts: Option<zero_copy::Counts>,
}

/// Record of a connection that another one has replaced.
pub(super) struct Retired {
    pub(super) endpoint: usize,
    pub(super) states: Vec<TcpState>,
    pub(super) counts: Option<zero_copy::Counts>,
}

impl Connection {
    pub(super) fn new(
        index: u32,
        endpoint: usize,
        tag: u32,
        streams: Streams,
        poller: &Poller,
    ) -> io::Result<Self> {
        let Streams { messages, bulk } = streams;
        poller.add(&messages.0, u64::from(index) * 2, Interest::READ)?;
        if let Some((socket, _)) = &bulk {
            poller.add(socket, u64::from(index) * 2 + 1, Interest::READ)?;
        }
        let bulk = bulk.map(|(socket, outgoing)| BulkStream {
            socket,
            outgoing,
            incoming: BulkIn::default(),
            watched: Interest::READ,
        });
        Ok(Self {
            index,
            endpoint,
            in_flight: 0,
            awaits_bulk: 0,
            is_dirty: false,
            messages: messages.0,
            outgoing: messages.1,
            watched: Interest::READ,
            bulk,
            tag,
            input: vec![0; INPUT_BYTES],
            start: 0,
            end: 0,
            rest: None,
            last_states: Vec::new(),
            retired_counts: None,
        })
    }

    /// Whether it can move bulk.
    pub(super) fn has_bulk(&self) -> bool {
        self.bulk.is_some()
    }

    /// Puts the frames of a request behind those that wait to be sent.
    #[inline]
    pub(super) fn enqueue(
        &mut self,
        request: &Request<'_>,
        inline: Window,
        bulk_out: Window,
        slots: &mut Slots,
    ) {
        let header = Header {
            opcode: request.opcode,
            flags: request.flags,
            slot: request.slot,
            status: 0,
            tag: self.tag,
            inline_bytes: (request.head.len() + inline.length()) as u64,
            bulk_bytes: bulk_out.length() as u64,
            reply_inline_bytes: request.reply_inline_bytes,
            reply_bulk_bytes: request.reply_bulk_bytes,
            sequence: request.sequence,
            seed: request.seed,
        };
        let mut encoded = [0; HEADER_BYTES];
        header.encode(&mut encoded);
        self.outgoing.push(&encoded);
        if !request.head.is_empty() {
            self.outgoing.push(request.head);
        }
        match inline.length() {
            0 => {}
            1..=COPY_BYTES_MAX => self.outgoing.push(inline.bytes()),
            _ => self.outgoing.push_slot(request.slot, inline, slots),
        }
        if let (Some(bulk), 1..) = (&mut self.bulk, bulk_out.length()) {
            let mut encoded = [0; BULK_HEADER_BYTES];
            BulkHeader { slot: request.slot, bytes: header.bulk_bytes }.encode(&mut encoded);
            bulk.outgoing.push(&encoded);
            bulk.outgoing.push_slot(request.slot, bulk_out, slots);
        }
    }

    /// Sends what waits, as far as the sockets take it. Whether they took something.
    #[inline]
    pub(super) fn flush(&mut self, common: &mut Common) -> Result<bool, i32> {
        let mut moved = false;
        if !self.outgoing.is_empty() {
            moved |= self.outgoing.send(&self.messages, &mut common.slots)?;
            self.watch_messages(common)?;
        }
        if let Some(bulk) = &mut self.bulk {
            if !bulk.outgoing.is_empty() {
                moved |= bulk.outgoing.send(&bulk.socket, &mut common.slots)?;
            }
            moved |= bulk.outgoing.acknowledge(&bulk.socket, &mut common.slots);
            let interest = Interest { read: true, write: !bulk.outgoing.is_empty() };
            if interest != bulk.watched {
                bulk.watched = interest;
                let token = u64::from(self.index) * 2 + 1;
                common.poller.modify(bulk.socket.as_fd(), token, interest).map_err(errno)?;
            }
        }
        Ok(moved)
    }

    /// Whether so many messages wait that they are to be sent now.
    #[inline]
    pub(super) fn is_early(&self) -> bool {
        self.outgoing.bytes() >= EARLY_BYTES && !self.is_blocked()
    }

    /// Whether a socket is full, so that asking it again says nothing.
    #[inline]
    pub(super) fn is_blocked(&self) -> bool {
        self.watched.write || self.bulk.as_ref().is_some_and(|bulk| bulk.watched.write)
    }

    #[inline]
    fn watch_messages(&mut self, common: &Common) -> Result<(), i32> {
        let interest = Interest { read: true, write: !self.outgoing.is_empty() };
        if interest != self.watched {
            self.watched = interest;
            common.poller.modify(&self.messages, u64::from(self.index) * 2, interest).map_err(errno)?;
        }
        Ok(())
    }

    /// Sends what waits and reads what has come: messages, bulk or both. Whether anything moved.
    #[inline]
    pub(super) fn progress(&mut self, streams: [bool; 2], common: &mut Common) -> Result<bool, i32> {
        let mut moved = self.flush(common)?;
        if streams[0] {
            moved |= self.receive(common)?;
        }
        if streams[1] {
            moved |= self.receive_bulk(common)?;
        }
        Ok(moved)
    }

    #[inline]
    fn receive(&mut self, common: &mut Common) -> Result<bool, i32> {
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
        } else if self.start > 0 && self.input.len() - self.end < self.input.len() / 2 {
            self.input.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
        }
        let room = &mut self.input[self.end..];
        let result = match &self.rest {
            None => rustix::net::recv(&self.messages, room, RecvFlags::DONTWAIT).map(|(bytes, _)| bytes),
            Some(rest) => {
                let window = common.slots.window(rest.slot);
                // SAFETY: the reply of the slot is coming in: its turn is the channel's, and nothing else refers to where the reply goes.
                let payload = unsafe { window.part_mut(rest.at, rest.header.inline_bytes as usize) };
                rustix::io::readv(&self.messages, &mut [IoSliceMut::new(payload), IoSliceMut::new(room)])
            }
        };
        match result {
            Ok(0) => Err(libc::ECONNRESET),
            Ok(bytes) => {
                let direct = self.take_rest(bytes, common)?;
                self.end += bytes - direct;
                self.take_frames(common)?;
                Ok(true)
            }
            Err(Errno::AGAIN | Errno::INTR) => Ok(false),
            Err(errno) => Err(errno.raw_os_error()),
        }
    }

    /// Notes that the first of `bytes` bytes went straight to their slot. How many.
    fn take_rest(&mut self, bytes: usize, common: &mut Common) -> Result<usize, i32> {
        let Some(rest) = &mut self.rest else { return Ok(0) };
        let length = rest.header.inline_bytes as usize;
        let taken = bytes.min(length - rest.at);
        rest.at += taken;
        if rest.at == length {
            let header = rest.header;
            self.rest = None;
            settle(&header, common)?;
        }
        Ok(taken)
    }

    /// Takes the replies that have come, the last one perhaps in part.
    #[inline]
    fn take_frames(&mut self, common: &mut Common) -> Result<(), i32> {
        while let Some(bytes) = self.input[self.start..self.end].first_chunk::<HEADER_BYTES>() {
            let header = Header::decode(bytes).map_err(|_| libc::EPROTO)?;
            let expected = common.slots.expected_by(header.slot, self.index, header.sequence);
            let expected = expected.ok_or(libc::EPROTO)?;
            if header.flags & flag::REPLY == 0
                || header.opcode != expected.opcode
                || header.inline_bytes > expected.inline_bytes_max
                || header.bulk_bytes > expected.bulk_bytes_max
                || header.status > 0
            {
                return Err(libc::EPROTO);
            }
            self.start += HEADER_BYTES;
            let length = header.inline_bytes as usize;
            let present = length.min(self.end - self.start);
            if present > 0 {
                let came = &self.input[self.start..self.start + present];
                // SAFETY: the reply of the slot is coming in: its turn is the channel's, and nothing else refers to where the reply goes.
                let payload = unsafe { expected.window.part_mut(0, present) };
                payload.copy_from_slice(came);
                self.start += present;
            }
            if present < length {
                self.rest = Some(Rest { slot: header.slot, header, at: present });
                return Ok(());
            }
            settle(&header, common)?;
        }
        Ok(())
    }

    /// Receives bulk straight into the slots that it is for.
    fn receive_bulk(&mut self, common: &mut Common) -> Result<bool, i32> {
        let Some(BulkStream { socket, incoming, .. }) = &mut self.bulk else { return Ok(false) };
        let socket = &*socket;
        let mut moved = false;
        loop {
            let result = match incoming.told {
                None => rustix::net::recv(socket, &mut incoming.header[incoming.got..], RecvFlags::DONTWAIT)
                    .map(|(bytes, _)| bytes),
                Some(told) => {
                    let window = common.slots.window(told.slot);
                    // SAFETY: the reply of the slot is coming in: its turn is the channel's, and nothing else refers to where the reply goes.
                    let payload = unsafe { window.part_mut(incoming.got, told.bytes as usize) };
                    rustix::net::recv(socket, payload, RecvFlags::DONTWAIT).map(|(bytes, _)| bytes)
                }
            };
            match result {
                Ok(0) => return Err(libc::ECONNRESET),
                Ok(bytes) => incoming.got += bytes,
                Err(Errno::AGAIN) => return Ok(moved),
                Err(Errno::INTR) => continue,
                Err(errno) => return Err(errno.raw_os_error()),
            }
            moved = true;
            match incoming.told {
                None if incoming.got == BULK_HEADER_BYTES => {
                    let told = BulkHeader::decode(&incoming.header).map_err(|_| libc::EPROTO)?;
                    let expected = common.slots.expected_on(told.slot, self.index);
                    let bytes_max = expected.map_or(0, |expected| expected.bulk_bytes_max);
                    let fits = told.bytes > 0 && told.bytes <= bytes_max;
                    if !fits || !common.slots.bulk_begins(told.slot, told.bytes) {
                        return Err(libc::EPROTO);
                    }
                    (incoming.told, incoming.got) = (Some(told), 0);
                }
                Some(told) if incoming.got as u64 == told.bytes => {
                    (incoming.told, incoming.got) = (None, 0);
                    common.slots.bulk_ends(told.slot);
                    return Ok(true);
                }
                _ => {}
            }
        }
    }

    /// Closes it to the peer, and tells the slots whose memory the kernel still refers to, as often as it does. The sockets stay for what the
    /// kernel says about them.
    pub(super) fn close(&mut self, common: &mut Common) -> Vec<u32> {
        self.last_states = self.states().collect();
        let poller = &common.poller;
        let leave = |socket: &TcpStream, outgoing: &mut Outgoing| {
            // A socket that was never connected, or whose peer was faster, is shut down already.
            let _ = socket.shutdown(std::net::Shutdown::Both);
            let removed = poller.remove(socket);
            debug_assert!(removed.is_ok(), "it was watched");
            outgoing.clear();
        };
        leave(&self.messages, &mut self.outgoing);
        self.watched = Interest::default();
        let Some(bulk) = &mut self.bulk else { return Vec::new() };
        leave(&bulk.socket, &mut bulk.outgoing);
        bulk.watched = Interest::default();
        bulk.outgoing.disown(&bulk.socket, &mut common.slots)
    }

    /// Closes the stream of bulk for good: the kernel keeps nothing that waits to be sent.
    pub(super) fn close_bulk(&mut self) {
        self.retired_counts = self.zero_copy_counts();
        self.bulk = None;
    }

    /// Record that is left of it. Its sockets are closed.
    pub(super) fn into_retired(self) -> Retired {
        Retired { endpoint: self.endpoint, counts: self.zero_copy_counts(), states: self.last_states }
    }

    /// Reads what the kernel has let go of since it was closed. Whether that is everything.
    pub(super) fn is_let_go(&mut self, slots: &mut Slots) -> bool {
        self.bulk.as_mut().is_none_or(|bulk| {
            bulk.outgoing.acknowledge(&bulk.socket, slots);
            bulk.outgoing.is_disowned()
        })
    }

    /// Kernel's states of its streams.
    pub(super) fn states(&self) -> impl Iterator<Item = TcpState> {
        let is_open = self.last_states.is_empty();
        let bulk = self.bulk.as_ref().map(|bulk| &bulk.socket);
        let own = std::iter::once(&self.messages).chain(bulk).filter(move |_| is_open);
        own.filter_map(|socket| socket::state(socket).ok()).chain(self.last_states.iter().copied())
    }

    pub(super) fn zero_copy_counts(&self) -> Option<zero_copy::Counts> {
        self.bulk.as_ref().and_then(|bulk| bulk.outgoing.zero_copy_counts()).or(self.retired_counts)
    }
}

/// A reply has come whole.
#[inline]
fn settle(header: &Header, common: &mut Common) -> Result<(), i32> {
    let Header { slot, status, inline_bytes, bulk_bytes, .. } = *header;
    if let Some(times) = ServerTimes::of(header) {
        common.slots.note_times(slot, times);
    }
    if common.slots.reply(slot, status, inline_bytes, bulk_bytes) { Ok(()) } else { Err(libc::EPROTO) }
}

fn errno(error: io::Error) -> i32 {
    error.raw_os_error().unwrap_or(libc::EIO)
}
