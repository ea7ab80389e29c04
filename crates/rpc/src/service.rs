//! Service of an endpoint: it carries out requests. Measuring is one service; a store is another.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

/// A request that has arrived whole.
#[derive(Clone, Copy, Debug)]
pub struct Call<'a> {
    /// Opcode ([`crate::wire::opcode`]).
    pub opcode: u16,
    /// Flags of the request ([`crate::wire::flag`]).
    pub flags: u16,
    /// Number that the client gave it.
    pub sequence: u64,
    /// Seed of the payloads that are checked.
    pub seed: u32,
    /// Payload that came in the message.
    pub inline: &'a [u8],
    /// Payload that came as bulk.
    pub bulk: &'a [u8],
    /// Most that the reply may carry in the message, in bytes; for a measurement, what it shall carry.
    pub reply_inline_bytes: u64,
    /// Size of the client's memory for a bulk reply, in bytes; for a measurement, what it shall get.
    pub reply_bulk_bytes: u64,
}

/// Memory that a bulk reply is sent from without a copy, such as a page of a store. It stays as it is until the transport has let
/// go of it.
pub type Memory = dyn AsRef<[u8]> + Send + Sync;

/// Bulk of a reply.
#[derive(Clone, Default)]
pub enum BulkReply {
    /// None.
    #[default]
    None,
    /// The first so many bytes of the endpoint's own buffer ([`Answer::scratch`]).
    Scratch(usize),
    /// A part of somebody's memory.
    Shared(Arc<Memory>, Range<usize>),
}

/// Memory of a service that the bulk of a request is received into: a place in a store, so that no copy follows. It is dropped where the
/// bulk does not come whole.
pub trait BulkSink: Send {
    /// The bytes: as many as the request's bulk.
    fn bytes_mut(&mut self) -> &mut [u8];

    /// The bulk has come whole: carries the request out. The result is that of [`Service::call`]; the reply has no payload.
    fn finish(self: Box<Self>) -> i32;
}

/// Payload of a reply that goes in the message: written in place, to where it is sent from. The room is what the request grants.
#[derive(Debug)]
pub struct Inline<'a> {
    room: &'a mut [u8],
    length: usize,
    is_over: bool,
}

impl<'a> Inline<'a> {
    /// Empty, with this room. What is in the room does not matter.
    #[must_use]
    pub fn new(room: &'a mut [u8]) -> Self {
        Self { room, length: 0, is_over: false }
    }

    /// Bytes so far.
    #[inline]
    #[must_use]
    pub fn len(&self) -> usize {
        self.length
    }

    /// Whether there are none.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Bytes that still fit.
    #[inline]
    #[must_use]
    pub fn room_bytes(&self) -> usize {
        self.room.len() - self.length
    }

    /// Whether more was added than fits. The reply is an error then, unless the service clears it.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.is_over
    }

    /// Bytes written so far.
    #[must_use]
    pub fn as_mut_slice(&mut self) -> &mut [u8] {
        &mut self.room[..self.length]
    }

    /// Adds bytes, all or, where they do not fit, none.
    #[inline]
    pub fn extend_from_slice(&mut self, bytes: &[u8]) {
        if let Some(place) = self.add(bytes.len()) {
            place.copy_from_slice(bytes);
        }
    }

    /// Adds so many bytes and returns them to be filled, every one: what an earlier reply left is in them. None where they do not fit.
    #[inline]
    pub fn add(&mut self, bytes: usize) -> Option<&mut [u8]> {
        if bytes > self.room_bytes() {
            self.is_over = true;
            return None;
        }
        let from = self.length;
        self.length += bytes;
        Some(&mut self.room[from..self.length])
    }

    /// Keeps the first so many bytes.
    #[inline]
    pub fn truncate(&mut self, bytes: usize) {
        self.length = self.length.min(bytes);
    }

    /// Forgets everything.
    #[inline]
    pub fn clear(&mut self) {
        (self.length, self.is_over) = (0, false);
    }
}

impl std::io::Write for Inline<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.extend_from_slice(bytes);
        if self.is_over { Err(std::io::ErrorKind::StorageFull.into()) } else { Ok(bytes.len()) }
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Where a service puts its answer.
pub struct Answer<'a> {
    /// Payload that goes in the message. Empty when the service is called.
    pub inline: Inline<'a>,
    /// The endpoint's own buffer, registered with the fabric, as large as the request's `reply_bulk_bytes` (at least). What earlier
    /// replies left is in it, but nothing that a client sent: a service whose replies are secret clears what it has not filled.
    pub scratch: &'a mut [u8],
    /// Payload that goes as bulk.
    pub bulk: BulkReply,
}

/// Service that carries out the requests of an endpoint. One a service thread, never shared.
pub trait Service: Send {
    /// Carries out a request. The result is 0 or a negated errno, which the client gets as the completion of its RPC. Beside an error the payload
    /// in the message, where there is some and the client has room for it, says more; bulk is dropped.
    fn call(&mut self, call: &Call<'_>, answer: &mut Answer<'_>) -> i32;

    /// Memory for the bulk of a request whose message has come: `bulk_bytes` of it, or none, and then the bulk comes into a buffer of the endpoint
    /// and with [`Service::call`]. [`Call::bulk`] is empty here.
    fn sink(&mut self, _call: &Call<'_>, _bulk_bytes: usize) -> Option<Box<dyn BulkSink>> {
        None
    }

    /// Called once, by a transport that calls [`Service::settle`] before it sends replies. Whether the service will make use of that: what
    /// requests change is then made durable for many of them at once.
    fn defer(&mut self) -> bool {
        false
    }

    /// Whether something was changed that [`Service::settle`] has to make durable. Asked after each request where [`Service::defer`] said so.
    fn is_unsettled(&self) -> bool {
        false
    }

    /// Time that the thread which calls has waited for the storage of the service so far, in nanoseconds; differences of two count. Asked for requests
    /// that are timed alone ([`crate::wire::flag::TIMED`]), the first time before anything is to be counted.
    fn storage_wait_ns(&self) -> u64 {
        0
    }

    /// Makes durable what requests have changed since the last call. The result is 0, or a negated errno that becomes the status of their
    /// replies.
    fn settle(&mut self) -> i32 {
        0
    }
}

/// Counters of an endpoint. Read by others while it works.
#[derive(Debug, Default)]
pub struct Counters {
    /// Requests answered.
    pub rpcs: AtomicU64,
    /// Payload bytes received.
    pub received_bytes: AtomicU64,
    /// Payload bytes sent.
    pub sent_bytes: AtomicU64,
    /// Requests answered with an error.
    pub errors: AtomicU64,
    /// Connections closed for what came over them.
    pub closed_hostile: AtomicU64,
    /// Connections open now.
    pub connections: AtomicU64,
}

/// Limits of an engine. Beyond a limit the connection or request is refused, with a line in the log; nobody else is harmed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Largest payload in a message, in bytes.
    pub inline_bytes_max: u32,
    /// Largest bulk transfer, in bytes.
    pub bulk_bytes_max: u64,
    /// Connections of the whole engine.
    pub connections_max: u32,
    /// Buffers of the whole engine, in bytes.
    pub memory_bytes_max: u64,
    /// Longest time that a message may take to come or a reply to be read, and again for each MiB of it, in nanoseconds.
    pub stall_ns_max: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            inline_bytes_max: 1 << 20,
            bulk_bytes_max: 256 << 20,
            connections_max: 4096,
            memory_bytes_max: 4 << 30,
            stall_ns_max: 30_000_000_000,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    #[test]
    fn what_does_not_fit_is_not_added_and_told() {
        let mut room = [0xee; 8];
        let mut inline = Inline::new(&mut room);
        inline.extend_from_slice(b"abc");
        inline.add(2).expect("fits").copy_from_slice(b"de");
        assert_eq!((inline.room_bytes(), inline.is_over()), (3, false));
        assert_eq!(inline.as_mut_slice(), b"abcde");
        assert!(inline.write_all(b"1234").is_err() && inline.is_over());
        assert_eq!(inline.len(), 5);
        inline.clear();
        assert!(inline.is_empty() && !inline.is_over());
        inline.extend_from_slice(b"12345678");
        inline.truncate(2);
        assert!(inline.as_mut_slice() == b"12" && !inline.is_over());
    }
}
