//! Identity of a file: by what it is known again, whatever its name leads to by then.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::time::UNIX_EPOCH;

use serde::{Deserialize, Serialize};

/// Extended attribute that a run marks what it makes with; its value is the number of the run.
pub const MARK: &str = "user.strata.created";

/// A file or directory that a run made, or is about to make, as its manifest names it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MadeFile {
    /// Absolute path, as [`units::label_of`] writes it.
    pub path: String,
    /// By what it is known again; none: it was about to be made, under a name that was free.
    pub identity: Option<FileIdentity>,
}

/// By what a file is known again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileIdentity {
    /// Number of its device.
    pub device: u64,
    /// Number of its inode.
    pub inode: u64,
    /// When it was made, in nanoseconds since 1970, where the file system keeps it: inodes are given again.
    pub born_ns: Option<u64>,
}

/// Identity of a file from its attributes.
#[must_use]
pub fn identity_of(metadata: &Metadata) -> FileIdentity {
    let born = metadata.created().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    let born_ns = born.and_then(|since| u64::try_from(since.as_nanos()).ok());
    FileIdentity { device: metadata.dev(), inode: metadata.ino(), born_ns }
}
