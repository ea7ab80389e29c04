//! Descriptions of pools and containers, as people and remote clients get them.

use crate::Checksum;

/// Space of a pool.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct PoolInfo {
    /// Label, or directory.
    pub name: String,
    /// UUID.
    pub uuid: String,
    /// Targets.
    pub targets: u32,
    /// Mapped memory (or log), in bytes.
    pub scm_bytes: u64,
    /// Of it free, in bytes.
    pub scm_free_bytes: u64,
    /// Data file, in bytes.
    pub nvme_bytes: u64,
    /// Of it free, in bytes.
    pub nvme_free_bytes: u64,
    /// Memory that the index takes, in bytes.
    pub index_bytes: u64,
    /// Taken from the file system since space was last prepared for a phase, or since the pool was opened, in bytes.
    #[serde(default)]
    pub grown_bytes: u64,
    /// Keys (akeys) in the index.
    #[serde(default)]
    pub keys: u64,
    /// Containers.
    pub containers: u32,
    /// Largest value that a target takes, in bytes; 0 where it is not told.
    #[serde(default)]
    pub value_bytes_max: u64,
}

/// A container.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct ContainerInfo {
    /// Label.
    pub label: String,
    /// UUID.
    pub uuid: String,
    /// Checksum of its data.
    pub checksum: Checksum,
    /// Its snapshots.
    pub snapshots: Vec<u64>,
    /// Latest epoch.
    pub epoch: u64,
}
