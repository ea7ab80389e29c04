//! Facts of a target that a plan needs, and files that runs made.

use std::borrow::Cow;
use std::path::Path;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use workload::target::TargetKind;

use crate::zoned::ZonedFacts;

/// Facts about a target that a plan is made from. Gathered by the layer, so that planning stays pure.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TargetFacts {
    /// Path or URL as the user gave it.
    pub path: String,
    /// Kind of the target (for a file to be created: `file`).
    pub kind: TargetKind,
    /// Whether it exists.
    pub exists: bool,
    /// Its size now, in bytes; 0 where it has none.
    pub size_bytes: u64,
    /// Bytes of it that are allocated on the medium; below `size_bytes` it is sparse.
    pub allocated_bytes: u64,
    /// Alignment that direct I/O needs of offsets and lengths, in bytes.
    pub direct_alignment_bytes: u64,
    /// Free space of the file system that it lies on, in bytes, where it lies on one.
    pub free_bytes: Option<u64>,
    /// Its zones, where it is a zoned block device.
    #[serde(default)]
    pub zoned: Option<ZonedFacts>,
}

impl TargetFacts {
    /// The name that its path stands for, for the system.
    pub fn place(&self) -> Cow<'_, Path> {
        units::path_of(&self.path)
    }
}
