//! Work that moves no data: other programs, and time of a processor.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A program that engine exec runs; one operation is one run of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Program {
    /// Its path, or its name to be looked for in the directories of `PATH`.
    pub path: String,
    /// Its arguments, parted by white space; no shell reads them.
    pub arguments: String,
    /// Its output goes to this name with `.stdout` and `.stderr` behind it; none: to where strata's own goes.
    pub output: Option<String>,
    /// It is told to end (SIGTERM) after this time, in nanoseconds; none: it ends by itself.
    pub time_ns: Option<u64>,
    /// It is killed this long after it was told to end, in nanoseconds; none: 1 s.
    pub grace_ns: Option<u64>,
}

/// How engine cpu keeps a processor busy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Burn {
    /// How long an operation takes, in nanoseconds; 0: 50 ms.
    pub chunk_ns: u64,
    /// Numbers are sorted; else it turns round and round.
    pub sorts: bool,
}
