//! The plan: every default resolved, nothing left to decide.

mod body;
mod checks;
mod content;
mod error;
mod load;
mod master;
mod place;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use crate::access::Pattern;
pub use body::{AnyPlan, LayerPlan, LoadKind, PhasePlan, PlanKind, Terms};
pub use checks::{check_depth, check_pairs};
pub use content::{ContentChoice, ContentPlan, content, parse_content};
pub use error::{Amount, PlanError, refuse};
pub use load::{UNLIMITED_TIME_NS, buffer_bytes_max, expand_ladder, load};
pub use master::MasterPlan;
pub use place::{HostPlace, HostTargets, ServedStore};

use crate::spec::{CoresPolicy, OnError, Spacing, Warmup};

/// The open loop.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ArrivalPlan {
    /// Operations per second of all workers together.
    pub rate_per_second: f64,
    /// Their spacing.
    pub kind: Spacing,
}

/// When a phase ends: at the first limit that is reached; without limits after one pass over the range.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LimitPlan {
    /// Length of the measured window in nanoseconds.
    pub time_ns: Option<u64>,
    /// Operations of all workers together.
    pub operations: Option<u64>,
    /// Bytes of all workers together.
    pub bytes: Option<u64>,
}

/// Pauses of a worker.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ThinkPlan {
    /// Length of a pause in nanoseconds.
    pub pause_ns: u64,
    /// Operations of a worker between two pauses.
    pub blocks: u64,
    /// Time between two pauses in nanoseconds, unless [`ThinkPlan::blocks`] operations complete before.
    #[serde(default)]
    pub after_ns: Option<u64>,
    /// Part of a pause in which the worker busy-waits, in nanoseconds; it sleeps for the rest.
    #[serde(default)]
    pub spin_ns: u64,
    /// Open loop: operations that became due in a pause are issued at the rate after it; otherwise all at its end.
    #[serde(default)]
    pub moves_arrivals: bool,
}

/// How the load is generated: all input of the runner.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LoadPlan {
    /// Workers; of each host if several hosts execute the load.
    pub threads: u32,
    /// The hosts that execute it together; none for a single process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<HostPlace>,
    /// Operations in flight for each worker.
    pub depth: u32,
    /// Maximum operations submitted to the driver at once.
    pub batch: u32,
    /// Minimum completions to wait for before continuing.
    pub batch_min: u32,
    /// Maximum completions collected at once.
    #[serde(default)]
    pub batch_max: u32,
    /// When the phase ends.
    pub limit: LimitPlan,
    /// How its warm-up ends.
    pub warmup: Warmup,
    /// Open loop; none for a closed loop.
    pub arrivals: Option<ArrivalPlan>,
    /// Length of the series' intervals in nanoseconds.
    pub interval_ns: u64,
    /// Action after a failed operation.
    pub on_error: OnError,
    /// Pauses between operations.
    #[serde(default)]
    pub think: Option<ThinkPlan>,
    /// The window opens this long after the phases that run together could begin, in nanoseconds.
    #[serde(default)]
    pub start_delay_ns: u64,
    /// When this phase ends, the phases that run at the same time end too.
    #[serde(default)]
    pub end_others: bool,
    /// Submission and completion are measured separately, and depths and batches are counted.
    #[serde(default)]
    pub split_latency: bool,
    /// The time of each worker is broken down.
    #[serde(default)]
    pub profile: bool,
    /// CPUs that workers are pinned to; empty: not pinned.
    pub cores: Vec<u32>,
    /// Which of `cores` a worker may run on.
    #[serde(default)]
    pub cores_policy: CoresPolicy,
    /// NUMA nodes that workers are pinned to, round robin; empty: not pinned.
    pub numa: Vec<u32>,
    /// When operations are due, in nanoseconds from the start; in place of drawn arrivals. It stands in no record.
    #[serde(skip)]
    #[schemars(skip)]
    pub schedule: Option<std::sync::Arc<[u64]>>,
    /// Control of the load while it runs.
    #[serde(default)]
    pub control: crate::control::Control,
    /// Seed of the phase.
    pub seed: u64,
}
