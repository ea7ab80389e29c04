//! Choices that drivers and clients of several layers have.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A feature that a driver may not get from the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Feature {
    /// Used where the kernel grants it; the record names a fall-back.
    #[default]
    Auto,
    /// Demanded: the run is refused without it.
    On,
    /// Not used.
    Off,
}

/// How a thread waits for messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Poll {
    /// It asks again and again and never sleeps: lowest latency, one processor each.
    Spin,
    /// It asks again for a while, then sleeps in the kernel.
    #[default]
    Adaptive,
    /// It sleeps in the kernel until something comes.
    Block,
}
