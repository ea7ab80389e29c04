//! Work that moves no data: other programs, and time of a processor.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A program that engine exec runs; one operation is one run of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Program {
    /// Its path, or its name, which is searched in the directories of `PATH`.
    pub path: String,
    /// Its arguments, separated by white space and not interpreted by a shell.
    pub arguments: String,
    /// Prefix of the output files `.stdout` and `.stderr`; none: its output goes where strata's output goes.
    pub output: Option<String>,
    /// Time after which it gets SIGTERM, in nanoseconds; none: no limit.
    pub time_ns: Option<u64>,
    /// Time from SIGTERM until it is killed, in nanoseconds; none: 1 s.
    pub grace_ns: Option<u64>,
}

/// How engine cpu keeps a CPU busy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Burn {
    /// How long an operation takes, in nanoseconds; 0: 50 ms.
    pub chunk_ns: u64,
    /// Sorts numbers; otherwise spins in a loop.
    pub sorts: bool,
}
