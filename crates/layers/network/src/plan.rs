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
    /// Nothing is carried.
    #[default]
    Empty,
    /// Inline, in the message (an I/O vector).
    Iov,
    /// Apart from the message, to or from registered memory: RMA where the fabric has it, a stream of its own on sockets.
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

/// Which endpoints a master sends to, when masters are engines themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Traffic {
    /// Every master to every endpoint, itself included where it is one.
    #[default]
    All,
    /// Every master to every endpoint on another rank: the full matrix of links.
    Matrix,
    /// Master k to endpoint k alone.
    Pairs,
    /// Master k to endpoint k + 1, the last to the first.
    Ring,
    /// Every master to the first endpoint alone.
    Incast,
}

/// In which order a worker turns to its endpoints.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EndpointOrder {
    /// One after the other.
    #[default]
    RoundRobin,
    /// Drawn, with the seed of the run.
    Random,
    /// Each slot of the queue stays with one endpoint, so that a slow one does not hold up the others.
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
    /// Group of the endpoints, where they were looked up by it.
    pub group: Option<String>,
    /// Where RPCs go.
    pub endpoints: Vec<EndpointPlan>,
    /// Who drives; this process when empty.
    pub masters: Vec<MasterPlan>,
    /// Which master sends where.
    pub traffic: Traffic,
    /// In which order endpoints get their RPCs.
    pub order: EndpointOrder,
    /// Whether each worker has endpoints of its own or uses all of them.
    pub share: Share,
    /// Payload of a request.
    pub request: Payload,
    /// Payload of a reply.
    pub reply: Payload,
    /// Connections from each worker to each of its endpoints.
    pub connections: u32,
    /// RPCs in flight on one connection at most.
    pub pipeline: u32,
    /// Low address byte of the buffers, where it was given.
    pub align: Option<u8>,
    /// Payloads are checked on both sides.
    pub verify: bool,
    /// Memory that payloads lie in.
    #[serde(default, skip_serializing_if = "gpu::MemoryPlan::is_host")]
    pub memory: gpu::MemoryPlan,
    /// How workers wait for replies.
    pub poll: Poll,
    /// Longest wait for one RPC, in nanoseconds.
    pub timeout_ns: u64,
    /// Sockets.
    pub socket: SocketPlan,
    /// The interface that the load goes through, where it could be told.
    pub interface: Option<InterfacePlan>,
    /// How the load is put on. `depth` is RPCs in flight for each worker.
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
