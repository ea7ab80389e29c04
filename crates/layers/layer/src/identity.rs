//! Identity of a file: by what it is known again, whatever its name leads to by then.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::time::UNIX_EPOCH;

use workload::target::FileIdentity;

/// Extended attribute that a run marks what it makes with; its value is the number of the run.
pub const MARK: &str = "user.strata.created";

/// Identity of a file from its attributes.
#[must_use]
pub fn identity_of(metadata: &Metadata) -> FileIdentity {
    let born = metadata.created().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    let born_ns = born.and_then(|since| u64::try_from(since.as_nanos()).ok());
    FileIdentity { device: metadata.dev(), inode: metadata.ino(), born_ns }
}
