//! Options of the stores, resolved.

use layer::CacheBefore;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use vos::{Allocation, Checksum, Durability, Flush};

/// Position of the bucket in an S3 request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Addressing {
    /// First part of the path: `http://host/bucket/key`.
    #[default]
    Path,
    /// First part of the host name: `http://bucket.host/key`.
    VirtualHost,
}

/// Parts of an S3 request that are signed (signature version 4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Signing {
    /// Headers and the SHA-256 of the payload.
    #[default]
    Payload,
    /// Only headers (`UNSIGNED-PAYLOAD`).
    Headers,
    /// Nothing: anonymous access.
    None,
}

/// Options of the drivers, resolved. Options that the driver does not support have been rejected before.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ObjectOptions {
    /// Size of mapped memory (or of the log) of a store, in bytes.
    pub scm_bytes: u64,
    /// Size of the data file of a store, in bytes; 0: no data file.
    pub nvme_bytes: u64,
    /// Values from this size on go to the data file, in bytes.
    pub threshold_bytes: u64,
    /// Targets of a store in this process.
    pub targets: u32,
    /// When an update counts as done.
    pub durability: Durability,
    /// How mapped memory is made durable.
    pub flush: Flush,
    /// When the store allocates its space.
    pub allocation: Allocation,
    /// Checksum of new containers.
    pub checksum: Checksum,
    /// Memory of the store before a phase.
    #[serde(skip_serializing_if = "CacheBefore::is_keep")]
    pub cache: CacheBefore,
    /// No staging buffer between the worker's buffers and the store (or the network).
    pub zero_copy: bool,
    /// How often a request is retried after an answer that asks for a retry (S3: 500, 503).
    pub retries: u32,
    /// Timeout of one operation, in nanoseconds.
    pub timeout_ns: u64,
    /// S3: `http://host:port` of the servers; workers are distributed over them.
    pub s3_endpoints: Vec<String>,
    /// S3: region.
    pub s3_region: String,
    /// S3: position of the bucket.
    pub s3_addressing: Addressing,
    /// S3: what is signed.
    pub s3_signing: Signing,
    /// S3: objects from this size on are uploaded in parts of this size, in bytes; 0: never.
    pub s3_part_size_bytes: u64,
    /// Ceph: configuration file.
    pub rados_conf: Option<String>,
    /// Ceph: user (`client.admin`).
    pub rados_user: Option<String>,
    /// DAOS: system name.
    pub daos_system: Option<String>,
}
