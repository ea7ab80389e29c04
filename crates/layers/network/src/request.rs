//! Request that a driver of this layer is opened with.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use driver::{Arena, Error, Secret};
use layer::memory::DeviceRequest;
use rpc::{EndpointPlan, Poll, SocketPlan};

use crate::Payload;

/// Where the two payloads of an RPC lie in the buffer of its slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlotLayout {
    /// Where the payload of the request begins, in bytes.
    pub request_offset_bytes: usize,
    /// Where the payload of the reply goes, in bytes.
    pub reply_offset_bytes: usize,
    /// Size of the whole buffer, in bytes.
    pub slot_bytes: usize,
}

impl SlotLayout {
    /// The layout for two payloads. Each begins at a page, or where its address ends with the byte `align`.
    #[must_use]
    pub fn new(request: Payload, reply: Payload, align: Option<u8>) -> Self {
        let shift = usize::from(align.unwrap_or(0));
        let request_offset_bytes = shift;
        let end = request_offset_bytes + request.size_bytes as usize;
        let reply_offset_bytes = end.next_multiple_of(4096) + shift;
        let slot_bytes = (reply_offset_bytes + reply.size_bytes as usize).next_multiple_of(4096).max(4096);
        Self { request_offset_bytes, reply_offset_bytes, slot_bytes }
    }
}

/// Request that the driver of one worker is opened with. The endpoints are those of this worker: [`crate::Rpc::endpoint`] counts in them.
#[derive(Clone)]
pub struct OpenRequest {
    /// Endpoints to connect to. All are connected before the driver is handed over; one that cannot be reached fails only its
    /// own RPCs, by its cause, as long as another one can.
    pub endpoints: Vec<EndpointPlan>,
    /// Payload of a request.
    pub request: Payload,
    /// Payload of a reply.
    pub reply: Payload,
    /// Where they lie in a slot's buffer.
    pub layout: SlotLayout,
    /// Connections to each endpoint.
    pub connections: u32,
    /// RPCs in flight on one connection at most; the rest of a batch is busy.
    pub pipeline: u32,
    /// RPCs in flight on all of them at most.
    pub depth: u32,
    /// How to wait for replies.
    pub poll: Poll,
    /// Longest wait for one RPC, and for a connection, in nanoseconds.
    pub timeout_ns: u64,
    /// Sockets.
    pub socket: SocketPlan,
    /// Domain of the fabric (`OFI_DOMAIN`), for `ofi`; the provider's first when none.
    pub domain: Option<String>,
    /// Whether the engine checks and makes payloads by their number.
    pub verify: bool,
    /// Seed of the payloads that are checked.
    pub seed: u32,
    /// Buffers.
    pub arena: Arc<Arena>,
    /// Buffers on a device that bulk lies in, in place of those.
    pub device: Option<DeviceRequest>,
    /// The shared secret, where engines demand one.
    pub secret: Option<Secret>,
    /// Set from outside: waits for connections end.
    pub interrupt: Arc<AtomicBool>,
}

impl OpenRequest {
    /// Whether a driver that has `depth_max` can be opened with this, and its slots hold what the layout says.
    ///
    /// # Errors
    /// Bad usage, in a line that says what is accepted.
    pub(crate) fn check(&self, depth_max: u32) -> Result<(), Error> {
        let refuse = |message: String, remedy: String| Err(Error::usage("open", message).remedy(remedy));
        if self.depth == 0 || self.depth > depth_max {
            return refuse(
                format!("a depth of {} is not possible", self.depth),
                format!("use 1 to {depth_max}"),
            );
        }
        if self.connections == 0 || self.pipeline == 0 {
            let message =
                "an endpoint needs at least one connection, and a connection at least one RPC".to_owned();
            return refuse(message, "use 1 or more connections and a pipeline of 1 or more".to_owned());
        }
        if self.endpoints.is_empty() {
            return refuse("no endpoint is specified".to_owned(), "specify one, such as 0:2".to_owned());
        }
        if self.timeout_ns == 0 {
            return refuse("the time-out must not be 0".to_owned(), "use 1 ms or more".to_owned());
        }
        let request_end = self.layout.request_offset_bytes as u64 + self.request.size_bytes;
        let reply_end = self.layout.reply_offset_bytes as u64 + self.reply.size_bytes;
        let room = self.layout.slot_bytes.min(self.arena.slot_bytes()) as u64;
        if request_end.max(reply_end) > room || self.arena.slots() < self.depth {
            return refuse(
                format!("the buffers are too small: {room} bytes for {}", request_end.max(reply_end)),
                "allocate them with SlotLayout, one per slot".to_owned(),
            );
        }
        Ok(())
    }
}
