//! What an endpoint does with a request. Measuring is one service; a store is another.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

/// A request that has arrived whole.
#[derive(Clone, Copy, Debug)]
pub struct Call<'a> {
    /// What is asked for ([`crate::wire::opcode`]).
    pub opcode: u16,
    /// Flags of the request ([`crate::wire::flag`]).
    pub flags: u16,
    /// Number that the client gave it.
    pub sequence: u64,
    /// What payloads that are checked are made from.
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
pub trait Memory: Send + Sync {
    /// The bytes.
    fn bytes(&self) -> &[u8];
}

/// Bulk of a reply.
#[derive(Clone, Default)]
pub enum BulkReply {
    /// None.
    #[default]
    None,
    /// The first so many bytes of the endpoint's own buffer ([`Answer::scratch`]).
    Scratch(usize),
    /// A part of somebody's memory.
    Shared(Arc<dyn Memory>, Range<usize>),
}

/// Where a service puts its answer. Made once an endpoint and used again for every request.
pub struct Answer<'a> {
    /// Payload that goes in the message. Empty when the service is called; its capacity stays.
    pub inline: &'a mut Vec<u8>,
    /// The endpoint's own buffer, registered with the fabric, as large as the request's `reply_bulk_bytes` (at least). What earlier
    /// replies left is in it, but nothing that a client sent: a service whose replies are secret clears what it has not filled.
    pub scratch: &'a mut [u8],
    /// What goes as bulk.
    pub bulk: BulkReply,
}

/// What an endpoint does with requests. One a service thread, never shared.
pub trait Service: Send {
    /// Carries out a request. The result is 0 or a negated errno, which the client gets as the completion of its RPC.
    fn call(&mut self, call: &Call<'_>, answer: &mut Answer<'_>) -> i32;
}

/// What an endpoint counts. Read by others while it works.
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

/// What an engine bears at most. Beyond a limit the connection or request is refused, with a line in the log; nobody else is harmed.
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
