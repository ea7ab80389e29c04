//! One connection to an engine, for one request at a time.
#![allow(unsafe_code)]

use std::sync::Arc;

use driver::{Arena, Error, PageSize, Secret};
use object_service::wire::Request;
use object_service::{INLINE_BYTES_MAX, Location};
use rpc::client::{Channel, ChannelRequest, Done, EndpointRequest, Request as Sent, Started, Stretch};
use rpc::{Poll, SocketPlan};

/// Longest part of a request before the value, in bytes: two keys and an anchor.
const HEAD_BYTES_MAX: usize = 1024;
/// Memory of requests, and of replies.
const OUT: u32 = 0;
const IN: u32 = 1;
/// Bytes of a value or a reply at most.
pub(super) const VALUE_BYTES_MAX: usize = 1 << 20;

/// Arguments of a connection.
pub(super) struct Opening<'a> {
    pub(super) location: &'a Location,
    /// Targets of the engine; tag 0 is the endpoint of this number.
    pub(super) targets: u32,
    pub(super) secret: Option<&'a Secret>,
    pub(super) timeout_ns: u64,
}

/// See the module.
pub(super) struct Client {
    channel: Channel,
    arena: Arc<Arena>,
    sequence: u64,
}

/// Payload of a request behind its head.
#[derive(Clone, Copy)]
pub(super) enum Payload<'a> {
    Nothing,
    /// In the message.
    Inline(&'a [u8]),
    /// A value: as large as it is, in the message or as bulk.
    Value(&'a [u8]),
}

/// Place of a reply, and how it may come.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Reply {
    /// None but a status.
    Nothing,
    /// In the message, so many bytes at most.
    Inline(usize),
    /// A value of so many bytes at most, in the message or as bulk.
    Value(usize),
}

impl Client {
    pub(super) fn open(opening: &Opening<'_>) -> Result<Self, Error> {
        let endpoint = |tag, has_bulk| EndpointRequest { plan: opening.location.endpoint(tag), has_bulk };
        let mut endpoints: Vec<_> = (0..opening.targets).map(|target| endpoint(2 + target, true)).collect();
        endpoints.push(endpoint(0, false));
        let arena = Arc::new(Arena::new(2, VALUE_BYTES_MAX, PageSize::Base)?);
        let (channel, _) = Channel::open(&ChannelRequest {
            endpoints,
            connections: 1,
            pipeline: 1,
            depth: 1,
            slots: 1,
            copied_bytes: HEAD_BYTES_MAX + INLINE_BYTES_MAX,
            bulk_bytes_max: VALUE_BYTES_MAX as u64,
            regions: vec![Arc::clone(&arena)],
            poll: Poll::Adaptive,
            timeout_ns: opening.timeout_ns,
            socket: SocketPlan { no_delay: true, ..SocketPlan::default() },
            secret: opening.secret.cloned(),
            interrupt: Arc::default(),
        })?;
        Ok(Self { channel, arena, sequence: 0 })
    }

    /// Sends a request and waits for its reply, which `take` is shown. The error is an errno, the engine's or that of the connection, which
    /// is to be dropped then ([`is_lost`]).
    pub(super) fn call<R>(
        &mut self,
        (endpoint, opcode): (u32, u16),
        request: &Request<'_>,
        payload: Payload<'_>,
        reply: Reply,
        take: impl FnOnce(&[u8]) -> R,
    ) -> Result<R, i32> {
        let mut head = [0; HEAD_BYTES_MAX];
        let end = request.encode(&mut head).ok_or(libc::ENAMETOOLONG)?;
        let (inline, bulk) = self.load(payload)?;
        let (inline_max, bulk_max) = match reply {
            Reply::Nothing => (0, 0),
            Reply::Inline(bytes) => (bytes, 0),
            Reply::Value(bytes) if bytes <= INLINE_BYTES_MAX => (bytes, 0),
            Reply::Value(bytes) => (INLINE_BYTES_MAX, bytes),
        };
        let length_bytes = inline_max.max(bulk_max).min(VALUE_BYTES_MAX);
        self.sequence += 1;
        let sent = Sent {
            slot: 0,
            endpoint,
            opcode,
            flags: 0,
            sequence: self.sequence,
            seed: 0,
            head: &head[..end],
            inline,
            bulk,
            reply: Stretch { region: 0, slot: IN, offset_bytes: 0, length_bytes },
            reply_inline_bytes: inline_max as u64,
            reply_bulk_bytes: bulk_max as u64,
        };
        let done = self.exchange(&sent)?;
        if done.status != 0 {
            return Err(done.status.saturating_neg());
        }
        let length = (done.inline_bytes.max(done.bulk_bytes) as usize).min(length_bytes);
        // SAFETY: nothing is in flight, so the slot's turn is ours, and `take` keeps no reference.
        Ok(take(unsafe { self.arena.slot_mut(IN, length) }))
    }

    /// Puts the payload where it is sent from: in the message, and as bulk.
    fn load(&self, payload: Payload<'_>) -> Result<(Stretch, Stretch), i32> {
        let (bytes, is_bulk) = match payload {
            Payload::Nothing => return Ok((Stretch::default(), Stretch::default())),
            Payload::Inline(bytes) => (bytes, false),
            Payload::Value(bytes) => (bytes, bytes.len() > INLINE_BYTES_MAX),
        };
        if bytes.len() > VALUE_BYTES_MAX {
            return Err(libc::EFBIG);
        }
        // SAFETY: nothing is in flight, so the slot's turn is ours.
        unsafe { self.arena.slot_mut(OUT, bytes.len()) }.copy_from_slice(bytes);
        let stretch = Stretch { region: 0, slot: OUT, offset_bytes: 0, length_bytes: bytes.len() };
        Ok(if is_bulk { (Stretch::default(), stretch) } else { (stretch, Stretch::default()) })
    }

    fn exchange(&mut self, sent: &Sent<'_>) -> Result<Done, i32> {
        let begin_ns = self.channel.now_ns();
        match self.channel.start(sent, begin_ns) {
            Started::Taken => {}
            Started::Busy | Started::Invalid => return Err(libc::ECONNRESET),
        }
        self.channel.flush();
        let mut now_ns = begin_ns;
        loop {
            if let Some(done) = self.channel.pop() {
                return Ok(done);
            }
            let step = self.channel.step(now_ns, begin_ns, u64::MAX).map_err(|_| libc::ECONNRESET)?;
            now_ns = step.now_ns;
        }
    }
}

/// Whether an errno says that the connection is gone.
pub(super) fn is_lost(errno: i32) -> bool {
    matches!(
        errno,
        libc::ECONNRESET
            | libc::EPIPE
            | libc::ECONNREFUSED
            | libc::ECONNABORTED
            | libc::ENOTCONN
            | libc::ETIMEDOUT
            | libc::EHOSTUNREACH
            | libc::ENETUNREACH
            | libc::EPROTO
            | libc::ECANCELED
            | libc::ESHUTDOWN
    )
}
