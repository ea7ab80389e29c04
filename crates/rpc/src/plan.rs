//! Words of plans about endpoints: where they are, their sockets, and the interface that leads there.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use workload::engine::Feature;

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
    /// `SO_SNDBUF` in bytes; none: sized by the kernel.
    pub send_buffer_bytes: Option<u64>,
    /// `SO_RCVBUF` in bytes; none: sized by the kernel.
    pub receive_buffer_bytes: Option<u64>,
    /// `TCP_NODELAY`: small messages are sent at once.
    pub no_delay: bool,
    /// `MSG_ZEROCOPY` for bulk: on, off, or where it helps (auto: not over loopback, and from 32 KiB on).
    pub zero_copy: Feature,
    /// Device that sockets are bound to (`SO_BINDTODEVICE`).
    pub device: Option<String>,
    /// Address that sockets are bound to.
    pub source: Option<String>,
}

/// The interface that a load uses.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct InterfacePlan {
    /// Its name, such as `eth0`.
    pub name: String,
    /// The fabric's name of the interface, such as `mlx5_0`; the same as `name` for sockets.
    pub domain: String,
    /// Its NUMA node; none if unknown.
    pub numa_node: Option<u32>,
    /// Nominal speed in bits per second; none for loopback and virtual links.
    pub speed_bits_per_second: Option<u64>,
    /// Largest packet in bytes.
    pub mtu_bytes: Option<u64>,
    /// Whether it is loopback.
    pub is_loopback: bool,
    /// Why it was chosen, in words.
    pub chosen: String,
}
