//! Options of the drivers, resolved.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use workload::control::PriorityShare;
use workload::engine::Feature;

use crate::program::{Burn, Program};

/// When a write counts as done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SyncMode {
    /// When the system call returns.
    #[default]
    None,
    /// When its data is durable (`O_DSYNC`).
    Dsync,
    /// When its data and metadata are durable (`O_SYNC`).
    Sync,
}

/// The call that makes writes durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SyncCall {
    /// Data, and only the metadata that reading it needs (fdatasync(2)).
    #[default]
    Fdatasync,
    /// Data and all metadata (fsync(2)).
    Fsync,
}

/// Operation of the memory engine on a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MemoryOperation {
    /// Reads copy from the region to the buffer, writes the other way.
    #[default]
    Copy,
    /// Writes store a constant to the region.
    Fill,
    /// Reads load every byte of the region and keep only a sum.
    Read,
}

/// Advice to the kernel on the order of access (posix_fadvise(2)).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Advice {
    /// Nothing.
    #[default]
    None,
    /// In order: it reads further ahead.
    Sequential,
    /// At random: it reads nothing ahead.
    Random,
    /// Once: what was read need not stay in the page cache.
    NoReuse,
}

/// Resolved options of a media driver. An option that the chosen driver does not honour has been refused before.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EngineOptions {
    /// `O_DIRECT`: bypasses the page cache.
    pub direct: bool,
    /// When a write counts as done.
    pub sync: SyncMode,
    /// The call that makes writes durable after the fact.
    #[serde(default)]
    pub sync_call: SyncCall,
    /// io_uring: file descriptors registered with the ring.
    pub register_files: Feature,
    /// io_uring: buffers registered with the ring.
    pub register_buffers: Feature,
    /// io_uring: `IORING_SETUP_SINGLE_ISSUER` and `IORING_SETUP_DEFER_TASKRUN`.
    pub defer_taskrun: Feature,
    /// io_uring: a kernel thread polls for submissions (`IORING_SETUP_SQPOLL`).
    pub sqpoll: bool,
    /// io_uring: CPU of that kernel thread.
    pub sqpoll_core: Option<u32>,
    /// io_uring: polls for completions (`IORING_SETUP_IOPOLL`); requires a device with poll queues and `direct`.
    pub iopoll: bool,
    /// pvsync2: `RWF_HIPRI`, polled completion.
    pub hipri: bool,
    /// pvsync2: `RWF_NOWAIT`, fail with EAGAIN instead of waiting.
    pub nowait: bool,
    /// pvsync2: `RWF_DSYNC` with every write.
    pub rwf_dsync: bool,
    /// pvsync2: `RWF_DONTCACHE`, uses the page cache but drops the data afterwards (Linux 6.14).
    pub dontcache: bool,
    /// mmap: `MAP_SYNC`, durable by CPU flush alone; needs DAX.
    pub map_sync: bool,
    /// mem: operation on memory.
    pub memory_operation: MemoryOperation,
    /// libaio and io_uring: priorities of shares of the operations.
    #[serde(default)]
    pub operation_priorities: Vec<PriorityShare>,
    /// io_uring: a kernel thread executes every Nth operation.
    #[serde(default)]
    pub force_async: Option<u32>,
    /// Advice to the kernel on the order of access.
    #[serde(default)]
    pub advice: Advice,
    /// exec: the program to run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<Program>,
    /// cpu: how the CPU is kept busy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub burn: Option<Burn>,
}
