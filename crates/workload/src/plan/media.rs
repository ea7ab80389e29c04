//! The plan of a phase on media: files, devices, memory.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::clean;

use super::body::{LayerPlan, LoadKind, Terms};
use super::{ContentPlan, LoadPlan, resolve};
use crate::access::Pattern;
use crate::content::RepeatedBytes;
use crate::engine::{EngineOptions, SyncMode};
use crate::replay::ReplayPlan;
use crate::spec::{CachePolicy, Layout, Operation, Share};
use crate::target::{TargetKind, TargetPlan};

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
    /// Pattern that verified blocks hold instead of headers and data of their own.
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

/// Terms of media.
const TERMS: Terms = Terms {
    operations: "operations",
    depth: "depth",
    depth_column: "depth",
    depth_points: "queue depths",
    size: "block size",
    size_column: "block",
    size_points: "block sizes",
};

impl LayerPlan for MediaPlan {
    crate::plan_parts!("media");

    fn operation_name(&self) -> &'static str {
        self.operation.name()
    }

    fn operation_size(&self) -> String {
        self.block_size.clone()
    }

    fn operation_bytes_max(&self) -> u64 {
        self.block_size_bytes_max
    }

    fn operation_words(&self) -> String {
        let order = match &self.pattern {
            _ if self.operation == Operation::Nop => return "no-ops".to_owned(),
            Pattern::Sequential => "sequential",
            Pattern::Backward => "backward",
            Pattern::Strided { .. } => "strided",
            _ => "random",
        };
        let mix = [
            (self.mix.read_percent, "reads"),
            (self.mix.write_percent, "writes"),
            (self.mix.discard_percent, "discards"),
        ];
        let used: Vec<_> = mix.iter().filter(|(percent, _)| *percent > 0).collect();
        let what = match used.as_slice() {
            [(_, class)] => format!(" {class}"),
            several => several.iter().map(|(percent, class)| format!(", {percent}% {class}")).collect(),
        };
        let course = self.course.as_ref().map(ToString::to_string).filter(|words| !words.is_empty());
        let course = course.map_or_else(String::new, |words| format!(", {words}"));
        let zones = self.zoned.as_ref().map_or_else(String::new, |zones| format!(", {zones}"));
        // A zone is discarded as a whole.
        let size = match &self.zoned {
            Some(_) if self.mix.discard_percent == 100 => "zone",
            _ => &clean(&self.block_size),
        };
        format!("{size} {order}{what}{course}{zones}")
    }

    fn manner(&self) -> Vec<String> {
        let options = &self.options;
        let flags = [
            (options.direct, "direct"),
            (options.sync == SyncMode::Dsync, "O_DSYNC"),
            (options.sync == SyncMode::Sync, "O_SYNC"),
            (options.sqpoll, "sqpoll"),
            (options.iopoll, "iopoll"),
            (options.hipri, "hipri"),
            (options.nowait, "nowait"),
            (options.rwf_dsync, "RWF_DSYNC"),
            (options.dontcache, "dontcache"),
            (options.map_sync, "MAP_SYNC"),
            (self.huge_pages, "huge pages"),
            (self.verify_interval_bytes.is_some(), "verified"),
            (self.end_fsync, "fsync at the end"),
        ];
        let mut words = vec![clean(&self.engine).into_owned()];
        words.extend(flags.iter().filter(|(on, _)| *on).map(|(_, word)| (*word).to_owned()));
        words.extend(self.fsync_every.map(|every| format!("fsync every {every}")));
        if !matches!(self.pattern, Pattern::Sequential | Pattern::Backward | Pattern::Permutation) {
            words.push(self.pattern.to_string());
        }
        words
    }

    fn target_names(&self) -> Vec<&str> {
        self.targets.iter().map(|target| target.path.as_str()).collect()
    }

    fn terms(&self) -> &'static Terms {
        &TERMS
    }

    fn depth_words(&self) -> String {
        format!("depth {}", self.load.depth)
    }

    fn fields(&self) -> Vec<(&'static str, String)> {
        vec![("direct", self.options.direct.to_string()), ("pattern", self.pattern.to_string())]
    }

    fn targets(&self) -> &[TargetPlan] {
        &self.targets
    }

    fn is_busy_on_purpose(&self) -> bool {
        self.targets.iter().all(|target| matches!(target.kind, TargetKind::Memory | TargetKind::Null))
    }

    fn stops_to_sync(&self) -> bool {
        self.end_fsync || self.fsync_every.is_some()
    }

    fn load_kind(&self) -> Option<LoadKind> {
        match self.operation {
            Operation::Read => Some(LoadKind::SequentialRead),
            Operation::Write => Some(LoadKind::SequentialWrite),
            Operation::RandRead => Some(LoadKind::RandomRead),
            Operation::RandWrite => Some(LoadKind::RandomWrite),
            _ => None,
        }
    }

    fn batch(&self, depth: u32) -> u32 {
        resolve::default_batch(depth, self.options.direct, &self.targets)
    }
}
