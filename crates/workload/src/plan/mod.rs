//! The plan: every default resolved, nothing left to decide.

mod body;
mod checks;
mod course;
mod error;
mod load;
mod master;
mod media;
mod parse;
mod resolve;
#[cfg(test)]
mod tests;
mod zoned;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use crate::access::Pattern;
pub use body::{AnyPlan, LayerPlan, LoadKind, PhasePlan, PlanKind, Terms};
pub use checks::{check_depth, check_pairs};
pub use error::{Amount, PlanError, refuse};
pub use load::{UNLIMITED_TIME_NS, buffer_bytes_max, load};
pub use master::MasterPlan;
pub use media::{MediaPlan, MixPlan, VerifyBacklog};
pub use parse::{ContentChoice, parse_backlog, parse_content, parse_mix};
pub use resolve::{EngineFacts, content, default_engine, expand_ladder, resolve};

use crate::content::fill::{CHUNK_SIZE_BYTES_DEFAULT, DEDUP_POOL_CHUNKS};
use crate::content::{ContentError, ContentSpec, Filler};
use crate::spec::{CoresPolicy, OnError, Refill, Spacing, Warmup};

/// Data content of writes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ContentPlan {
    /// Content that is written.
    pub content: ContentChoice,
    /// Percent of each 4 KiB that compresses away.
    pub compress_percent: u8,
    /// Percent of 4 KiB chunks that are copies.
    pub dedupe_percent: u8,
    /// Different chunks that copies are copies of, where not the few that there are without being asked.
    #[serde(default)]
    pub dedupe_set_chunks: Option<u64>,
    /// Seed that those follow from, where they are the same in several phases.
    #[serde(default)]
    pub dedupe_set_seed: Option<u64>,
    /// When buffers are filled anew.
    pub refill: Refill,
}

impl ContentPlan {
    /// Filler of the buffers of `stream` (a worker) in a phase of this seed.
    ///
    /// # Errors
    /// As [`Filler::new`].
    pub fn filler(&self, seed: u64, stream: u64) -> Result<Filler, ContentError> {
        let spec = match &self.content {
            ContentChoice::Zero => ContentSpec::Zero,
            ContentChoice::Bytes(bytes) => ContentSpec::Pattern { bytes: bytes.clone() },
            ContentChoice::Random if self.compress_percent == 0 && self.dedupe_percent == 0 => {
                ContentSpec::Random
            }
            ContentChoice::Random => ContentSpec::Reducible {
                compressible_percent: self.compress_percent,
                dedupable_percent: self.dedupe_percent,
                chunk_size_bytes: CHUNK_SIZE_BYTES_DEFAULT,
            },
        };
        let chunks = self.dedupe_set_chunks.unwrap_or(DEDUP_POOL_CHUNKS);
        Ok(Filler::new(&spec, self.refill, seed, stream)?.with_copies_of(chunks, self.dedupe_set_seed))
    }
}

/// The open loop.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ArrivalPlan {
    /// Operations a second of all workers together.
    pub rate_per_second: f64,
    /// Their spacing.
    pub kind: Spacing,
}

/// When a phase ends. Whatever comes first; with no limit at all it ends after one pass over the range.
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
    /// Its operations go on for this long between two pauses, in nanoseconds, where fewer than [`ThinkPlan::blocks`] come before.
    #[serde(default)]
    pub after_ns: Option<u64>,
    /// Part of a pause in which its processor works, in nanoseconds; it sleeps for the rest.
    #[serde(default)]
    pub spin_ns: u64,
    /// Open loop: what was due in a pause comes after it at the rate; else all of it at its end.
    #[serde(default)]
    pub moves_arrivals: bool,
}

/// How the load is put on: all that the runner needs to know.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LoadPlan {
    /// Workers.
    pub threads: u32,
    /// Operations in flight for each worker.
    pub depth: u32,
    /// Most operations handed to the driver at once.
    pub batch: u32,
    /// Completions waited for before going on.
    pub batch_min: u32,
    /// Most completions collected at once.
    #[serde(default)]
    pub batch_max: u32,
    /// When the phase ends.
    pub limit: LimitPlan,
    /// How its warm-up ends.
    pub warmup: Warmup,
    /// Open loop, where asked for.
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
    /// When it is done, the phases that run at the same time end too.
    #[serde(default)]
    pub end_others: bool,
    /// Submission and completion are timed apart, and depths and batches counted.
    #[serde(default)]
    pub split_latency: bool,
    /// Processors that workers are pinned to; empty: not pinned.
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
