//! A plan of media as a plan of any layer.

use units::clean;
use workload::access::Pattern;
use workload::plan::{LayerPlan, LoadKind, Terms};
use workload::spec::Operation;
use workload::target::{TargetKind, TargetPlan};

use super::{MediaPlan, resolve};
use crate::engine::SyncMode;

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
    workload::plan_parts!("media");

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
        words.extend(self.memory.words());
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

    fn is_synced_at_end(&self) -> bool {
        self.end_fsync && !self.options.direct
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
