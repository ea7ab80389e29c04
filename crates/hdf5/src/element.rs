//! Types of elements.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Type of the elements of a dataset, little-endian.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[repr(u8)]
pub enum ElementType {
    /// IEEE 754, 4 bytes.
    Float32,
    /// IEEE 754, 8 bytes.
    Float64,
    /// Signed, 4 bytes.
    Int32,
    /// Signed, 8 bytes.
    Int64,
    /// A byte.
    Uint8,
    /// Unsigned, 8 bytes.
    Uint64,
}

impl ElementType {
    /// Names of the types.
    pub const NAMES: &'static [(&'static str, Self)] = &[
        ("float32", Self::Float32),
        ("float64", Self::Float64),
        ("int32", Self::Int32),
        ("int64", Self::Int64),
        ("uint8", Self::Uint8),
        ("uint64", Self::Uint64),
    ];

    /// Bytes of an element.
    #[must_use]
    pub fn bytes(self) -> u64 {
        match self {
            Self::Uint8 => 1,
            Self::Float32 | Self::Int32 => 4,
            Self::Float64 | Self::Int64 | Self::Uint64 => 8,
        }
    }
}
