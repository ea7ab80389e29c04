//! Options of a store: durability, checksums, how memory becomes durable, when space is taken.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// When an update counts as done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Durability {
    /// When it is in the store's memory; it is made durable when the store is closed, or sooner.
    None,
    /// When it is in the store's memory; it is made durable together with other updates, within 10 ms or 1 MiB.
    Batch,
    /// When it is durable. Updates in flight at the same time share a sync.
    #[default]
    Sync,
}

/// How mapped memory is made durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Flush {
    /// By the CPU on tmpfs and DAX, by system calls elsewhere.
    #[default]
    Auto,
    /// Cache lines are flushed and fenced (`clwb`, `clflushopt`, `clflush`); with `PMEM_NO_FLUSH=1` only fenced.
    Cpu,
    /// msync(2).
    Msync,
}

/// When a store in this process allocates space from the file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Allocation {
    /// Before a phase, the space that it is known to write; a background thread allocates the rest slightly ahead.
    #[default]
    Ahead,
    /// All of it, when the store is created or opened.
    Whole,
    /// By the update that needs it.
    Needed,
}

/// Checksum of a container's data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Checksum {
    /// None: damaged data is not detected.
    Off,
    /// 16 bits (CRC-16/T10-DIF).
    Crc16,
    /// 32 bits (CRC-32C).
    #[default]
    Crc32,
    /// 64 bits (CRC-64/XZ).
    Crc64,
    /// SHA-1.
    Sha1,
    /// SHA-256.
    Sha256,
    /// SHA-512.
    Sha512,
    /// Adler-32.
    Adler32,
}

/// Choices of an option, by the names that users type.
pub type Choices<T> = &'static [(&'static str, T)];

impl Durability {
    /// Choices of an option.
    pub const CHOICES: Choices<Self> = &[("none", Self::None), ("batch", Self::Batch), ("sync", Self::Sync)];
}

impl Flush {
    /// Choices of an option.
    pub const CHOICES: Choices<Self> = &[("auto", Self::Auto), ("cpu", Self::Cpu), ("msync", Self::Msync)];
}

impl Allocation {
    /// Choices of an option.
    pub const CHOICES: Choices<Self> =
        &[("ahead", Self::Ahead), ("whole", Self::Whole), ("needed", Self::Needed)];
}

impl Checksum {
    /// Choices of an option.
    pub const CHOICES: Choices<Self> = &[
        ("off", Self::Off),
        ("crc16", Self::Crc16),
        ("crc32", Self::Crc32),
        ("crc64", Self::Crc64),
        ("sha1", Self::Sha1),
        ("sha256", Self::Sha256),
        ("sha512", Self::Sha512),
        ("adler32", Self::Adler32),
    ];
}
