//! Observations of devices, control groups and the places of files around a phase.

use host::control_group::IoLimitKind;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Counters of a block device during a phase, from the kernel (Documentation/block/stat.rst), for all users of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DeviceActivity {
    /// Its name, such as `nvme0n1`.
    pub name: String,
    /// Reads that completed.
    pub reads: u64,
    /// Reads merged with others in its queue.
    pub reads_merged: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Time of all reads together, nanoseconds.
    pub read_ns: u64,
    /// Writes that completed.
    pub writes: u64,
    /// Writes merged with others in its queue.
    pub writes_merged: u64,
    /// Bytes written.
    pub written_bytes: u64,
    /// Time of all writes together, nanoseconds.
    pub write_ns: u64,
    /// Time in which something was in flight, nanoseconds.
    pub busy_ns: u64,
    /// Time that requests spent in its queue, all together, nanoseconds.
    pub queue_ns: u64,
}

/// State of the files and devices of a phase before it, each a share of the range from 0 to 1; none where it could not be told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RangeFacts {
    /// Stored compressed by the file system.
    pub encoded_fraction: Option<f64>,
    /// On blocks that other files or parts have too: reflinks, snapshots.
    pub shared_fraction: Option<f64>,
    /// In files that are mapped past the page cache (DAX).
    pub dax_fraction: Option<f64>,
}

/// State of this machine in a part of a phase, for events that a chart over time shows.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TimelinePoint {
    /// Begin of the part, from the start of the phase, in nanoseconds.
    pub start_ns: u64,
    /// End of the part, from the start of the phase, in nanoseconds.
    pub end_ns: u64,
    /// CPUs that programs of others used in user mode; none if unknown. The kernel counts in ticks of up to 10 ms.
    pub other_cpus_user: Option<f64>,
    /// Segments that this machine retransmitted over TCP; none if unknown.
    pub tcp_retransmitted_segments: Option<u64>,
}

/// Traffic of all drives and network interfaces of this machine during a phase, for all their users.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MachineTraffic {
    /// Bytes that drives read.
    pub drives_read_bytes: u64,
    /// Bytes that drives wrote.
    pub drives_written_bytes: u64,
    /// Bytes that interfaces received, loopback among them.
    pub network_received_bytes: u64,
    /// Bytes that interfaces sent, loopback among them.
    pub network_sent_bytes: u64,
}

/// A limit that a control group of this process sets on a device, and how far the group's processes used it in a phase.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct IoLimitActivity {
    /// The device, such as `sda`.
    pub device: String,
    /// Quantity that is limited, each second.
    pub kind: IoLimitKind,
    /// The limit, each second.
    pub limit_per_second: u64,
    /// Rate counted against it, each second of the phase.
    pub reached_per_second: f64,
}
