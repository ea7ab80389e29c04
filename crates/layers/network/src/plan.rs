//! The plan of a phase that measures RPCs: payloads, endpoints, who sends where.

mod body;
mod received;
mod resolve;

pub(crate) use received::check_received;
pub(crate) use resolve::{NetworkFacts, message_sizes, resolve_network, worker_endpoints};
use rpc::{EndpointPlan, InterfacePlan, Poll, SocketPlan};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::ByteSize;
use workload::plan::{LoadPlan, MasterPlan};
use workload::spec::Share;

/// How a payload travels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PayloadKind {
    /// No payload.
    #[default]
    Empty,
    /// Inline, in the message (an I/O vector).
    Iov,
    /// Separate from the message, to or from registered memory: RMA on a fabric, a separate stream on sockets.
    Bulk,
}

/// Payload of a request or a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default, Serialize, Deserialize, JsonSchema)]
pub struct Payload {
    /// How it travels.
    pub kind: PayloadKind,
    /// Its size in bytes; 0 when empty.
    pub size_bytes: u64,
}

impl Payload {
    /// Nothing.
    pub const EMPTY: Self = Self { kind: PayloadKind::Empty, size_bytes: 0 };

    /// Bytes that travel in the message itself.
    #[must_use]
    pub fn iov_bytes(self) -> u64 {
        if self.kind == PayloadKind::Iov { self.size_bytes } else { 0 }
    }

    /// Bytes that travel as bulk.
    #[must_use]
    pub fn bulk_bytes(self) -> u64 {
        if self.kind == PayloadKind::Bulk { self.size_bytes } else { 0 }
    }
}

impl std::fmt::Display for Payload {
    /// As message sizes are typed: `0`, `i2KiB`, `b1MiB`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.kind {
            PayloadKind::Empty => write!(f, "0"),
            PayloadKind::Iov => write!(f, "i{}", ByteSize(self.size_bytes)),
            PayloadKind::Bulk => write!(f, "b{}", ByteSize(self.size_bytes)),
        }
    }
}

/// Which endpoints a master sends to, if the masters are engines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Traffic {
    /// Every master to every endpoint, including itself.
    #[default]
    All,
    /// Every master to every endpoint on another rank: the full matrix of links.
    Matrix,
    /// Master k only to endpoint k.
    Pairs,
    /// Master k to endpoint k + 1, the last to the first.
    Ring,
    /// Every master only to the first endpoint.
    Incast,
}

/// In which order a worker sends to its endpoints.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EndpointOrder {
    /// One after the other.
    #[default]
    RoundRobin,
    /// Random, from the seed of the run.
    Random,
    /// Each slot of the queue always uses the same endpoint, so that a slow endpoint does not delay the others.
    Pinned,
}

/// One phase of the network layer, fully resolved.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NetworkPlan {
    /// Name in tables.
    pub name: String,
    /// Driver: `tcp`, `ofi` or `null`.
    pub engine: String,
    /// How endpoints are reached: `tcp`, `ofi+tcp`, `ofi+shm`, `ofi+verbs`, `null`.
    pub provider: String,
    /// Group of the endpoints, if it was used to find them.
    pub group: Option<String>,
    /// Endpoints of the RPCs.
    pub endpoints: Vec<EndpointPlan>,
    /// Engines that generate the load; empty: this process.
    pub masters: Vec<MasterPlan>,
    /// Which master sends to which endpoints.
    pub traffic: Traffic,
    /// In which order endpoints get their RPCs.
    pub order: EndpointOrder,
    /// Whether each worker has separate endpoints or uses all of them.
    pub share: Share,
    /// Payload of a request.
    pub request: Payload,
    /// Payload of a reply.
    pub reply: Payload,
    /// Connections from each worker to each of its endpoints.
    pub connections: u32,
    /// Maximum number of RPCs in flight per connection.
    pub pipeline: u32,
    /// Low address byte of the buffers, if set.
    pub align: Option<u8>,
    /// Payloads are checked on both sides.
    pub verify: bool,
    /// Memory of the payloads.
    #[serde(default, skip_serializing_if = "gpu::MemoryPlan::is_host")]
    pub memory: gpu::MemoryPlan,
    /// How workers wait for replies.
    pub poll: Poll,
    /// Timeout of one RPC, in nanoseconds.
    pub timeout_ns: u64,
    /// Sockets.
    pub socket: SocketPlan,
    /// The interface that the load uses, if known.
    pub interface: Option<InterfacePlan>,
    /// Load: threads, depth, rate and limits. `depth` is the number of RPCs in flight per worker.
    pub load: LoadPlan,
}

impl NetworkPlan {
    /// Bytes that one RPC moves, each counted once.
    #[must_use]
    pub fn rpc_bytes(&self) -> u64 {
        self.request.size_bytes + self.reply.size_bytes
    }

    /// Whether RPCs go over the loopback interface.
    #[must_use]
    pub fn is_loopback(&self) -> bool {
        self.interface.as_ref().is_some_and(|interface| interface.is_loopback)
    }
}
