//! Mismatches that a check can find.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A block that is not what it should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Mismatch {
    /// The run whose blocks were expected; `None` if any would do.
    pub run: Option<u64>,
    /// The target that was read.
    pub target: u64,
    /// Where the block was read from, in bytes from the start of the target.
    pub offset: u64,
    /// Where in the block the fault begins, in bytes.
    pub at_byte: u64,
    /// Fault there.
    pub fault: Fault,
}

/// The kinds of fault that verification tells apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "fault", rename_all = "snake_case")]
pub enum Fault {
    /// All zero: never written, or discarded.
    Unwritten,
    /// Bytes that no known cause explains. With a damaged header, the first byte that differs from the header that
    /// explains most of the interval.
    Corrupt,
    /// Data of this run and target that belongs elsewhere.
    Misplaced {
        /// Where it belongs, in bytes.
        found_offset: u64,
    },
    /// Data of another target.
    Swapped {
        /// The target it belongs to.
        found_target: u64,
    },
    /// A whole block of an older write: the newer one was lost.
    Stale {
        /// The sequence found.
        found_sequence: u64,
        /// The sequence, or the oldest sequence, expected.
        expected: u64,
    },
    /// A whole block of a newer write than was ever expected.
    Newer {
        /// The sequence found.
        found_sequence: u64,
        /// The sequence expected.
        expected: u64,
    },
    /// Data of another run.
    ForeignRun {
        /// The run it belongs to.
        found_run: u64,
    },
    /// Up to `at_byte` the block is of one write and from there on of another.
    Torn {
        /// Sequence of the part before; `None` if it was never written.
        head_sequence: Option<u64>,
        /// Sequence of the part after; `None` if it was never written.
        tail_sequence: Option<u64>,
    },
    /// Written with another verify interval.
    OtherInterval {
        /// The interval it was written with, in bytes.
        found_interval_bytes: u32,
    },
}

/// A sequence, or the absence of any.
struct Part(Option<u64>);

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(sequence) => write!(f, "sequence {sequence}"),
            None => write!(f, "never written"),
        }
    }
}

impl Fault {
    /// One word for it: faults are counted by it.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Unwritten => "unwritten",
            Self::Corrupt => "corrupt",
            Self::Misplaced { .. } => "misplaced",
            Self::Swapped { .. } => "swapped",
            Self::Stale { .. } => "stale",
            Self::Newer { .. } => "newer",
            Self::ForeignRun { .. } => "foreign_run",
            Self::Torn { .. } => "torn",
            Self::OtherInterval { .. } => "other_interval",
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Fault::Unwritten => write!(f, "unwritten: all zero"),
            Fault::Corrupt => write!(f, "corrupt"),
            Fault::Misplaced { found_offset } => write!(f, "misplaced: belongs at offset {found_offset}"),
            Fault::Swapped { found_target } => write!(f, "swapped: belongs to target {found_target}"),
            Fault::Stale { found_sequence, expected } => {
                write!(f, "stale: sequence {found_sequence}, expected {expected}")
            }
            Fault::Newer { found_sequence, expected } => {
                write!(f, "newer: sequence {found_sequence}, expected {expected}")
            }
            Fault::ForeignRun { found_run } => write!(f, "foreign: written by run {found_run:#018x}"),
            Fault::Torn { head_sequence, tail_sequence } => {
                write!(f, "torn: {} before, {} from there on", Part(head_sequence), Part(tail_sequence))
            }
            Fault::OtherInterval { found_interval_bytes } => {
                write!(f, "written with a verify interval of {found_interval_bytes} bytes")
            }
        }
    }
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "target {} block at offset {}", self.target, self.offset)?;
        if let Some(run) = self.run {
            write!(f, " of run {run:#018x}")?;
        }
        write!(f, ": at byte {}: {}", self.at_byte, self.fault)
    }
}

impl std::error::Error for Mismatch {}
