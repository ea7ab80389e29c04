//! Words of the network layer: payloads, polling, endpoints, and the plan of a phase that measures RPCs.

mod body;
mod grammar;
mod spec;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::ByteSize;

pub use grammar::{
    BULK_FROM_BYTES, ENDPOINTS_MAX, MESSAGE_SIZES_MAX, PAYLOAD_BYTES_MAX, add_masters, message_sizes_text,
    parse_endpoints, parse_message_sizes,
};
pub use spec::{EngineSpec, NetworkSpec, RankTag};

use crate::plan::{LoadPlan, MasterPlan};

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

/// How a thread waits for messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Poll {
    /// It asks again and again and never sleeps: lowest latency, one processor each.
    Spin,
    /// It asks again for a while, then sleeps in the kernel.
    #[default]
    Adaptive,
    /// It sleeps in the kernel until something comes.
    Block,
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

/// One endpoint of an engine.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub struct EndpointPlan {
    /// Rank of the engine in its group.
    pub rank: u32,
    /// Tag: which of the engine's service threads.
    pub tag: u32,
    /// Address of the rank, as a URI: `tcp://10.0.0.1:31416`, `ofi+tcp://...`; for libfabric the rank's own name of this tag.
    pub uri: String,
    /// Label of the endpoint: `0:2`, or `node01:1611`.
    pub label: String,
}

/// Sockets of the `tcp` driver.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct SocketPlan {
    /// `SO_SNDBUF` in bytes; the kernel's own sizing when none.
    pub send_buffer_bytes: Option<u64>,
    /// `SO_RCVBUF` in bytes; the kernel's own sizing when none.
    pub receive_buffer_bytes: Option<u64>,
    /// `TCP_NODELAY`: small messages leave at once.
    pub no_delay: bool,
    /// `MSG_ZEROCOPY` for bulk: on, off, or where it pays (auto: not over loopback, and from 32 KiB on).
    pub zero_copy: crate::engine::Feature,
    /// Device that sockets are bound to (`SO_BINDTODEVICE`).
    pub device: Option<String>,
    /// Address that sockets are bound to.
    pub source: Option<String>,
}

/// The interface that a load goes through.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct InterfacePlan {
    /// Its name, such as `eth0`.
    pub name: String,
    /// The fabric's own name for it, such as `mlx5_0`; the same as `name` for sockets.
    pub domain: String,
    /// Its NUMA node; none where the machine does not say.
    pub numa_node: Option<u32>,
    /// Nominal speed in bits a second; none for loopback and virtual links.
    pub speed_bits_per_second: Option<u64>,
    /// Largest packet in bytes.
    pub mtu_bytes: Option<u64>,
    /// Whether it is loopback.
    pub is_loopback: bool,
    /// Why it was chosen, in words.
    pub chosen: String,
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
    pub share: crate::spec::Share,
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
