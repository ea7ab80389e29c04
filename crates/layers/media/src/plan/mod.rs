//! The plan of a phase on media: files, devices, memory.

mod body;
mod checks;
mod course;
mod parse;
mod resolve;
#[cfg(test)]
mod tests;
mod zoned;

pub use parse::{parse_backlog, parse_mix};
pub use resolve::{EngineFacts, default_engine, resolve};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use workload::access::Pattern;
use workload::content::RepeatedBytes;
use workload::plan::{ContentPlan, LoadPlan};
use workload::replay::ReplayPlan;
use workload::spec::{Operation, Share};
use workload::target::TargetPlan;

use crate::course::CoursePlan;
use crate::engine::EngineOptions;
use crate::spec::{CachePolicy, Layout};
use crate::zoned::ZonedPlan;

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
    /// Operation of the phase.
    pub operation: Operation,
    /// Percent of reads, writes and discards; they add up to 100.
    pub mix: MixPlan,
    /// Order of positions.
    pub pattern: Pattern,
    /// How the range is covered, if more than a pattern of blocks is requested.
    #[serde(default)]
    pub course: Option<CoursePlan>,
    /// The zones that the phase follows; none without `--zones zbd`.
    #[serde(default)]
    pub zoned: Option<ZonedPlan>,
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
    /// Bytes per verification header, if blocks are verified.
    pub verify_interval_bytes: Option<u64>,
    /// A worker makes its writes durable after this many.
    pub fsync_every: Option<u64>,
    /// A worker makes its writes durable at its end.
    pub end_fsync: bool,
    /// Run number in verified blocks, if given.
    #[serde(default)]
    pub verify_run: Option<u64>,
    /// Unit in bytes that all verified blocks are multiples of, if they have several sizes.
    #[serde(default)]
    pub verify_grain_bytes: Option<u64>,
    /// Pattern of verified blocks, instead of strata's headers and data.
    #[serde(default)]
    pub verify_pattern: Option<RepeatedBytes>,
    /// Verified blocks are read back while the phase writes.
    #[serde(default)]
    pub verify_backlog: Option<VerifyBacklog>,
    /// Directory for wrong blocks.
    #[serde(default)]
    pub verify_dump: Option<String>,
    /// The operations of a log, instead of generated ones.
    #[serde(default)]
    pub replay: Option<ReplayPlan>,
    /// An operation waits for operations in flight of its worker that overlap it.
    #[serde(default)]
    pub serialize_overlap: bool,
    /// How missing files are prepared.
    #[serde(default)]
    pub layout: Layout,
    /// Page cache of the targets before the phase.
    pub cache: CachePolicy,
    /// Buffers on huge pages.
    pub huge_pages: bool,
    /// Memory of the buffers.
    #[serde(default, skip_serializing_if = "gpu::MemoryPlan::is_host")]
    pub memory: gpu::MemoryPlan,
    /// How the load is generated.
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
