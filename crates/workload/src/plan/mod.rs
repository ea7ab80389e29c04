//! The plan: every default resolved, nothing left to decide.

mod checks;
mod course;
mod error;
mod load;
mod network;
mod object;
mod parse;
mod resolve;
#[cfg(test)]
mod tests;
mod zoned;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use crate::access::Pattern;
pub use error::PlanError;
pub use network::{
    NetworkFacts, buffer_bytes_max, check_received, message_sizes, resolve_network, worker_endpoints,
};
pub use object::{
    ObjectFacts, ObjectPhase, fill_phases, needs_fill, object_options, object_phases, resolve_object,
};
pub use parse::{ContentChoice, parse_backlog, parse_content, parse_mix};
pub use resolve::{EngineFacts, default_engine, expand_ladder, resolve};

use crate::content::fill::{CHUNK_SIZE_BYTES_DEFAULT, DEDUP_POOL_CHUNKS};
use crate::content::{ContentError, ContentSpec, Filler, RepeatedBytes};
use crate::engine::EngineOptions;
pub use crate::network::NetworkPlan;
pub use crate::object::ObjectPlan;
use crate::replay::ReplayPlan;
use crate::spec::{
    CachePolicy, CoresPolicy, Layout, OnError, Operation, Refill, Share, Spacing, Spec, Warmup,
};
use crate::target::TargetPlan;

/// Data content of writes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ContentPlan {
    /// What is written.
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
    /// What fills the buffers of `stream` (a worker) in a phase of this seed.
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
    /// What happens after a failed operation.
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
    /// What controls it while it runs.
    #[serde(default)]
    pub control: crate::control::Control,
    /// Seed of the phase.
    pub seed: u64,
}

/// One phase of the media layer, fully resolved.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MediaPlan {
    /// Name in tables.
    pub name: String,
    /// Driver.
    pub engine: String,
    /// Options of the driver.
    pub options: EngineOptions,
    /// Ranges that it works on.
    pub targets: Vec<TargetPlan>,
    /// What it does.
    pub operation: Operation,
    /// Percent of reads, writes and discards; they add up to 100.
    pub mix: MixPlan,
    /// Order of positions.
    pub pattern: Pattern,
    /// How the range is gone over, where more is asked for than a pattern of blocks.
    #[serde(default)]
    pub course: Option<crate::course::CoursePlan>,
    /// The zones that it keeps to, where it does.
    #[serde(default)]
    pub zoned: Option<crate::zoned::ZonedPlan>,
    /// Block sizes, as typed (`4KiB`, `4KiB:70,64KiB:30`, `read=4KiB,write=64KiB`).
    pub block_size: String,
    /// Largest block in bytes.
    pub block_size_bytes_max: u64,
    /// Random positions are multiples of this, in bytes.
    pub align_bytes: u64,
    /// How workers share the range.
    pub share: Share,
    /// Data content of writes.
    pub content: ContentPlan,
    /// Bytes under one verification header, where blocks are verified.
    pub verify_interval_bytes: Option<u64>,
    /// A worker makes its writes durable after this many.
    pub fsync_every: Option<u64>,
    /// A worker makes its writes durable at its end.
    pub end_fsync: bool,
    /// Number that verified blocks carry, where it was given.
    #[serde(default)]
    pub verify_run: Option<u64>,
    /// Bytes that all verified blocks are multiples of, where they are of several sizes.
    #[serde(default)]
    pub verify_grain_bytes: Option<u64>,
    /// What verified blocks hold instead of headers and data of their own.
    #[serde(default)]
    pub verify_pattern: Option<RepeatedBytes>,
    /// Verified blocks are read back while the phase writes.
    #[serde(default)]
    pub verify_backlog: Option<VerifyBacklog>,
    /// Directory that wrong blocks are kept in.
    #[serde(default)]
    pub verify_dump: Option<String>,
    /// The operations of a log, in place of drawn ones.
    #[serde(default)]
    pub replay: Option<ReplayPlan>,
    /// An operation waits for those of its worker that it shares bytes with.
    #[serde(default)]
    pub serialize_overlap: bool,
    /// How files that are not there are made.
    #[serde(default)]
    pub layout: Layout,
    /// Page cache of the targets before the phase.
    pub cache: CachePolicy,
    /// Buffers on huge pages.
    pub huge_pages: bool,
    /// How the load is put on.
    pub load: LoadPlan,
}

/// How blocks are read back while a phase writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct VerifyBacklog {
    /// Blocks that a worker writes before it reads.
    pub blocks: u64,
    /// Blocks that it reads then.
    pub batch: u64,
}

/// Shares of the classes in percent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MixPlan {
    /// Reads.
    pub read_percent: u8,
    /// Writes.
    pub write_percent: u8,
    /// Discards.
    pub discard_percent: u8,
}

/// One phase, fully resolved: a plan of the layer that it measures.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "layer", rename_all = "snake_case")]
#[allow(clippy::large_enum_variant, reason = "a run has a few, and they stand on the heap with their phases")]
pub enum PhasePlan {
    /// Files, devices, memory.
    Media(MediaPlan),
    /// RPCs.
    Network(NetworkPlan),
    /// Objects.
    Object(ObjectPlan),
}

/// What all layers' plans have.
macro_rules! of_every_layer {
    ($($(#[$doc:meta])* $name:ident: $type:ty,)*) => {
        impl PhasePlan {
            $($(#[$doc])*
            #[must_use]
            pub fn $name(&self) -> &$type {
                match self {
                    Self::Media(plan) => &plan.$name,
                    Self::Network(plan) => &plan.$name,
                    Self::Object(plan) => &plan.$name,
                }
            })*
        }
    };
}

of_every_layer! {
    /// Name in tables.
    name: String,
    /// Driver.
    engine: String,
    /// How the load is put on.
    load: LoadPlan,
}

impl PhasePlan {
    /// Layer that it measures.
    #[must_use]
    pub fn layer(&self) -> &'static str {
        match self {
            Self::Media(_) => "media",
            Self::Network(_) => "network",
            Self::Object(_) => "object",
        }
    }

    /// The plan, where it measures media.
    #[must_use]
    pub fn media(&self) -> Option<&MediaPlan> {
        if let Self::Media(plan) = self { Some(plan) } else { None }
    }

    /// The plan, where it measures the network.
    #[must_use]
    pub fn network(&self) -> Option<&NetworkPlan> {
        if let Self::Network(plan) = self { Some(plan) } else { None }
    }

    /// The plan, where it measures objects.
    #[must_use]
    pub fn object(&self) -> Option<&ObjectPlan> {
        if let Self::Object(plan) = self { Some(plan) } else { None }
    }

    /// Ranges that it works on; none of other layers than media.
    #[must_use]
    pub fn targets(&self) -> &[TargetPlan] {
        self.media().map_or(&[], |plan| &plan.targets)
    }

    /// What one operation moves, in words: the block size as typed, or the payloads of request and reply.
    #[must_use]
    pub fn operation_size(&self) -> String {
        match self {
            Self::Media(plan) => plan.block_size.clone(),
            Self::Network(plan) => format!("{} {}", plan.request, plan.reply),
            Self::Object(plan) => plan.dataset.value_size.clone(),
        }
    }

    /// Most bytes that one operation moves.
    #[must_use]
    pub fn operation_bytes_max(&self) -> u64 {
        match self {
            Self::Media(plan) => plan.block_size_bytes_max,
            Self::Network(plan) => plan.rpc_bytes(),
            Self::Object(plan) => plan.dataset.value_size_bytes_max,
        }
    }

    /// The name of what it does, as users type it.
    #[must_use]
    pub fn operation_name(&self) -> &'static str {
        match self {
            Self::Media(plan) => plan.operation.name(),
            Self::Network(_) => "rpc",
            Self::Object(plan) if !plan.sequence.is_empty() => "sequence",
            Self::Object(plan) if plan.mix.len() > 1 => "mix",
            Self::Object(plan) => plan.mix.first().map_or("", |share| share.operation.name()),
        }
    }

    /// How the load is put on, to change it.
    pub fn load_mut(&mut self) -> &mut LoadPlan {
        match self {
            Self::Media(plan) => &mut plan.load,
            Self::Network(plan) => &mut plan.load,
            Self::Object(plan) => &mut plan.load,
        }
    }

    /// Puts another number of operations in flight for each worker, at least as many as the batches that `spec` asks for. All else is as
    /// in a plan of `spec` with that depth: what it says of batches and pipelines holds, what it leaves open follows the depth.
    pub fn set_depth(&mut self, depth: u32, spec: &Spec) {
        if let Self::Network(plan) = self
            && spec.network.pipeline.is_none()
        {
            plan.pipeline = depth;
        }
        let batch = match self {
            Self::Media(plan) => resolve::default_batch(depth, plan.options.direct, &plan.targets),
            Self::Network(_) | Self::Object(_) => depth,
        };
        let load = self.load_mut();
        load.depth = depth;
        load.batch = spec.batch.unwrap_or(batch);
        load.batch_max = spec.batch_max.unwrap_or(depth);
    }

    /// The name, to change it.
    pub fn name_mut(&mut self) -> &mut String {
        match self {
            Self::Media(plan) => &mut plan.name,
            Self::Network(plan) => &mut plan.name,
            Self::Object(plan) => &mut plan.name,
        }
    }

    /// The plan, to change it, where it measures media.
    pub fn media_mut(&mut self) -> Option<&mut MediaPlan> {
        if let Self::Media(plan) = self { Some(plan) } else { None }
    }
}

impl MediaPlan {
    /// Whether it changes its targets.
    #[must_use]
    pub fn writes(&self) -> bool {
        self.mix.write_percent > 0 || self.mix.discard_percent > 0
    }

    /// Whether it reads what must have been written before.
    #[must_use]
    pub fn reads(&self) -> bool {
        self.mix.read_percent > 0
    }

    /// Bytes that verification follows as one: a block, or what blocks of several sizes are multiples of.
    #[must_use]
    pub fn verify_grain_bytes(&self) -> u64 {
        self.verify_grain_bytes.unwrap_or(self.block_size_bytes_max)
    }

    /// Bytes of all ranges together.
    #[must_use]
    pub fn range_bytes(&self) -> u64 {
        self.targets.iter().map(|target| target.size_bytes).sum()
    }
}
