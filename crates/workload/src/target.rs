//! Targets of a phase: files, devices, and what stands for them.

use std::borrow::Cow;
use std::path::Path;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Kind of a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TargetKind {
    /// A regular file.
    File,
    /// A block device.
    BlockDevice,
    /// A character device such as /dev/null or /dev/zero.
    CharacterDevice,
    /// `null:`: nothing at all.
    Null,
    /// `mem:`: the worker's own memory.
    Memory,
    /// `rbd:POOL/IMAGE`: an image of Ceph's block device, through its library.
    Image,
    /// The name of a file or directory that an engine makes, looks at or removes.
    Name,
}

impl TargetKind {
    /// Whether it is a file or a block device of this machine.
    #[must_use]
    pub fn is_local_storage(self) -> bool {
        matches!(self, Self::File | Self::BlockDevice)
    }

    /// Whether it is storage, local or not: neither memory nor a sink of the kernel.
    #[must_use]
    pub fn is_storage(self) -> bool {
        self.is_local_storage() || self == Self::Image
    }
}

/// The part of a target that a phase works on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TargetPlan {
    /// Path or URL.
    pub path: String,
    /// Kind of the target.
    pub kind: TargetKind,
    /// Where the range begins, in bytes.
    pub offset_bytes: u64,
    /// Length of the range in bytes.
    pub size_bytes: u64,
    /// Alignment that direct I/O needs, in bytes.
    pub direct_alignment_bytes: u64,
}

impl TargetPlan {
    /// The name that its path stands for, for the system.
    pub fn place(&self) -> Cow<'_, Path> {
        units::path_of(&self.path)
    }
}
