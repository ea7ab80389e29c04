//! The plan of a phase of the file-system layer.

use layer::CacheBefore;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::{ByteSize, clean, count, counted};
use workload::plan::{ContentPlan, LayerPlan, LoadKind, LoadPlan, Terms};

use crate::doors::AccessPath;
use crate::names::root_of;
use crate::phases::{FsOp, Over};
use crate::set::{FileSet, Naming, Shape};

/// Order of blocks or items.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum OffsetOrder {
    /// Ascending.
    #[default]
    Sequential,
    /// Descending.
    Backward,
    /// Random, each once.
    Random,
    /// Random, with repetitions.
    RandomRepeats,
}

/// Rank whose items a worker works on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RankShift {
    /// Its own rank plus this number.
    By(u32),
    /// A random order of the ranks, each once.
    Random,
}

/// How names are passed to the system.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PathForm {
    /// Relative to the descriptor of their directory.
    #[default]
    Relative,
    /// By the full path.
    Full,
}

/// Blocks of a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Geometry {
    /// Bytes of one read or write; the last of a file in a tree may be shorter.
    pub block_size_bytes: u64,
    /// Bytes of a file in a tree; otherwise bytes per rank in each segment.
    pub file_size_bytes: u64,
    /// Segments.
    pub segments: u64,
    /// Order of the blocks.
    pub order: OffsetOrder,
}

impl Geometry {
    /// Blocks that a rank has in a segment, or that a file in a tree has.
    #[must_use]
    pub fn blocks_per_segment(&self) -> u64 {
        self.file_size_bytes.div_ceil(self.block_size_bytes.max(1))
    }

    /// Blocks of a file in a tree, or of a rank.
    #[must_use]
    pub fn blocks(&self) -> u64 {
        self.blocks_per_segment() * self.segments
    }

    /// First byte and length of a block. In a shared file, segments hold the parts of all ranks one behind the other (IOR's rule).
    #[inline]
    #[must_use]
    pub fn place(&self, set: &FileSet, rank: u32, block: u64) -> (u64, u32) {
        let (segment, block) = (block / self.blocks_per_segment(), block % self.blocks_per_segment());
        let within = block * self.block_size_bytes;
        let length = self.block_size_bytes.min(self.file_size_bytes - within) as u32;
        let part = match set.shape {
            Shape::Shared => segment * u64::from(set.ranks) + u64::from(rank),
            Shape::Private | Shape::Tree => segment,
        };
        (part * self.file_size_bytes + within, length)
    }
}

/// Conditions of a search.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FindPlan {
    /// Pattern of the names.
    pub name: Option<String>,
    /// Size of the files in bytes.
    pub size_bytes: Option<u64>,
    /// Files modified after this file.
    pub newer: Option<String>,
}

fn one() -> u64 {
    1
}

fn is_one(number: &u64) -> bool {
    *number == 1
}

/// One phase of the file-system layer, fully resolved.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FsPlan {
    /// Name in tables.
    pub name: String,
    /// Driver: `posix`.
    pub engine: String,
    /// Directories or files, as given by the user; rank r uses target r modulo their number.
    pub targets: Vec<String>,
    /// Operation.
    pub operation: FsOp,
    /// Memory of the block buffers.
    #[serde(default, skip_serializing_if = "gpu::MemoryPlan::is_host")]
    pub memory: gpu::MemoryPlan,
    /// The file set.
    pub set: FileSet,
    /// Blocks of its files.
    pub geometry: Geometry,
    /// Blocks that a worker moves, if not the whole file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transfers: Option<u64>,
    /// Order of the items of a rank.
    pub item_order: OffsetOrder,
    /// Passes of each worker over its items.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub item_passes: u64,
    /// Rank whose items a worker works on.
    pub rank_shift: RankShift,
    /// How names are passed to the system.
    pub paths: PathForm,
    /// Bypasses the page cache (O_DIRECT).
    pub direct: bool,
    /// Number of writes to a file after which it is made durable.
    pub fsync_every: Option<u64>,
    /// A file is made durable before it is closed.
    pub end_fsync: bool,
    /// Files are truncated to 0 bytes before they are written.
    pub truncate_first: bool,
    /// Files get their length when they are opened for writing.
    #[serde(default)]
    pub truncate_to_size: bool,
    /// Removing a missing name is not an error.
    #[serde(default)]
    pub ignore_missing: bool,
    /// Existing files are removed before they are written.
    #[serde(default)]
    pub replace: bool,
    /// Workers wait for each other after opening and before closing their files.
    #[serde(default)]
    pub barriers: bool,
    /// Workers end with a sync of the file system.
    #[serde(default)]
    pub phase_sync: bool,
    /// Creating an existing file is an error (O_EXCL).
    pub exclusive: bool,
    /// The space of a file is allocated before it is written.
    pub preallocate: bool,
    /// Blocks identify their owner and offset, and are checked.
    pub verify: bool,
    /// Run number in the blocks that this run writes.
    pub verify_run: u64,
    /// Run number required in blocks that are read; none: any.
    #[serde(default)]
    pub verify_expects: Option<u64>,
    /// Files of the run are kept after a failure.
    #[serde(default)]
    pub keep_on_error: bool,
    /// Page cache before the phase.
    pub cache: CacheBefore,
    /// Stonewall with wear-out, in nanoseconds: then each worker continues until it has done as much as the fastest worker.
    pub wear_out_ns: Option<u64>,
    /// Conditions of a search.
    pub find: FindPlan,
    /// Content of writes.
    pub content: ContentPlan,
    /// Access path to the file system over objects, if several are compared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub door: Option<AccessPath>,
    /// That file system.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub door_target: Option<String>,
    /// Turn of the door, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub door_turn: Option<u32>,
    /// It only creates files that other phases need.
    #[serde(default)]
    pub is_fill: bool,
    /// How the load is generated.
    pub load: LoadPlan,
}

impl FsPlan {
    /// Blocks of a rank's file that a worker moves.
    #[must_use]
    pub fn blocks_to_move(&self) -> u64 {
        self.transfers.unwrap_or_else(|| self.geometry.blocks())
    }

    /// Target of a rank.
    #[must_use]
    pub fn target(&self, rank: u32) -> &str {
        &self.targets[rank as usize % self.targets.len()]
    }

    /// Directory of a target that names are relative to: the target itself, or the one that files without a tree lie in.
    #[must_use]
    pub fn root<'a>(&self, target: &'a str) -> &'a str {
        match self.set.shape {
            Shape::Tree => target,
            Shape::Private | Shape::Shared => match root_of(target) {
                "" => ".",
                root => root,
            },
        }
    }

    /// Bytes of a whole file: of a shared one, the parts of all ranks.
    #[must_use]
    pub fn whole_file_bytes(&self, rank: u32, item: u64) -> u64 {
        if let Some(tree) = &self.set.listed {
            return tree.part(rank, item).map_or(0, |part| part.whole_bytes);
        }
        let ranks = if self.set.shape == Shape::Shared { u64::from(self.set.ranks) } else { 1 };
        self.geometry.file_size_bytes * self.geometry.segments * ranks
    }

    /// Blocks of a file in a tree, or of a rank's part of it.
    #[must_use]
    pub fn blocks_of(&self, rank: u32, item: u64) -> u64 {
        match &self.set.listed {
            Some(tree) => {
                let part = tree.part(rank, item).map_or(0, |part| part.length_bytes);
                part.div_ceil(self.geometry.block_size_bytes.max(1))
            }
            None => self.geometry.blocks(),
        }
    }

    /// Blocks that the ranks have in their items that the workers of this host work on.
    #[must_use]
    pub fn blocks_here(&self) -> u64 {
        let of_rank = |rank| (0..self.set.items_of(rank, true)).map(move |item| self.blocks_of(rank, item));
        self.ranks_here().flat_map(of_rank).fold(0, u64::saturating_add)
    }

    /// First byte and length of a block of an item.
    #[inline]
    #[must_use]
    pub fn place(&self, rank: u32, item: u64, block: u64) -> (u64, u32) {
        match self.set.listed.as_ref().and_then(|tree| tree.part(rank, item)) {
            Some(part) => {
                let within = block * self.geometry.block_size_bytes;
                let length = self.geometry.block_size_bytes.min(part.length_bytes - within);
                (part.from_bytes + within, length as u32)
            }
            None => self.geometry.place(&self.set, rank, block),
        }
    }

    /// Ranks whose items the workers of this host work on, in the order of the workers.
    pub fn ranks_here(&self) -> impl Iterator<Item = u32> + '_ {
        (0..self.load.threads).map(|worker| self.rank_of(self.load.worker(worker)))
    }

    /// Whether other hosts of the run see the same targets.
    #[must_use]
    pub fn has_guests(&self) -> bool {
        self.load.has_guests()
    }

    /// Whether all that this plan works on is there once all of `made` is: what workers have does not depend on how many there are, but in a file
    /// of several segments that all share.
    #[must_use]
    pub(crate) fn is_within(&self, made: &Self) -> bool {
        self.targets == made.targets && (self.set == made.set || self.is_in_set(&made.set))
    }

    /// The same of a file set at these targets that has more ranks.
    pub(crate) fn is_in_set(&self, made: &FileSet) -> bool {
        let is_apart = self.set.shape != Shape::Shared || self.geometry.segments == 1;
        is_apart && self.set.is_within(made)
    }

    /// Rank whose items the worker of this number, of all hosts that share the targets, works on.
    #[must_use]
    pub fn rank_of(&self, worker: u32) -> u32 {
        match self.rank_shift {
            RankShift::By(by) => ((u64::from(worker) + u64::from(by)) % u64::from(self.set.ranks)) as u32,
            RankShift::Random => {
                let mut ranks: Vec<u32> = (0..self.set.ranks).collect();
                let mut random =
                    units::random::Random::new(units::random::derive_seed(self.load.seed, &[77]));
                for at in (1..ranks.len()).rev() {
                    ranks.swap(at, random.below(at as u64 + 1) as usize);
                }
                ranks[worker as usize]
            }
        }
    }

    /// The data set in words: `2 workers x 3 directories x 1000 files of 4KiB`.
    #[must_use]
    pub fn data_words(&self) -> String {
        let set = &self.set;
        let size = ByteSize(self.geometry.file_size_bytes);
        let ranks = counted(u64::from(set.ranks), "worker");
        if let Some(tree) = &set.listed {
            let files = counted(tree.files, "file");
            let (bytes, file) = (ByteSize(tree.bytes), clean(&tree.file));
            return format!(
                "{ranks}, {files} with {bytes} in total, {} directories, from {file}",
                count(tree.directories)
            );
        }
        match set.shape {
            Shape::Tree => {
                let noun =
                    if self.operation.phase().over == Over::Directories { "directories" } else { "files" };
                let holders = if set.holders() == 1 {
                    "1 directory".to_owned()
                } else {
                    format!("{} directories", count(set.holders()))
                };
                let of = if self.operation.moves_data() { format!(" of {size}") } else { String::new() };
                format!("{ranks}, {} {noun}{of} each, in {holders}", count(set.items))
            }
            Shape::Private | Shape::Shared => {
                let file = if set.shape == Shape::Private { "a file each" } else { "one file" };
                let segments = if self.geometry.segments == 1 {
                    String::new()
                } else {
                    format!(" in each of {} segments", count(self.geometry.segments))
                };
                format!("{ranks}, {file}, {size} per worker{segments}")
            }
        }
    }
}

const TERMS: Terms =
    Terms { size: "block size", size_column: "block", size_points: "block sizes", ..Terms::COMMON };

impl LayerPlan for FsPlan {
    workload::plan_parts!("filesystem");

    fn operation_name(&self) -> &'static str {
        self.operation.name()
    }

    fn operation_size(&self) -> String {
        if self.operation.moves_data() {
            ByteSize(self.geometry.block_size_bytes).to_string()
        } else {
            "0".to_owned()
        }
    }

    fn operation_bytes_max(&self) -> u64 {
        if self.operation.moves_data() { self.geometry.block_size_bytes } else { 0 }
    }

    fn operation_words(&self) -> String {
        let size = if self.operation.moves_data() {
            format!("{} ", ByteSize(self.geometry.block_size_bytes))
        } else {
            String::new()
        };
        format!("{size}{}; {}", self.operation.name(), self.data_words())
    }

    fn manner(&self) -> Vec<String> {
        let flags = [
            (self.direct, "direct"),
            (self.end_fsync, "fsync at the end of each file"),
            (self.verify, "verified"),
            (self.barriers, "barriers after opening and before closing"),
            (self.phase_sync, "file system synced at the end"),
            (self.set.shared_tree && self.set.shape == Shape::Tree, "shared tree"),
            (self.paths == PathForm::Full, "full paths"),
            (self.cache == CacheBefore::Drop, "cache dropped"),
            (self.set.naming == Naming::Mdtest, "mdtest names"),
            (self.set.naming == Naming::Elbencho, "elbencho names"),
            (self.has_guests(), "files shared by the hosts"),
            (self.load.place.is_some() && !self.has_guests(), "separate files on each host"),
        ];
        let mut words = vec![clean(&self.engine).into_owned()];
        words.extend(self.door.map(|door| format!("door {}", door.name())));
        words.extend(flags.into_iter().filter(|(is_on, _)| *is_on).map(|(_, word)| word.to_owned()));
        words.extend(self.memory.words().filter(|_| self.operation.moves_data()));
        match self.rank_shift {
            RankShift::By(0) => {}
            RankShift::By(by) => words.push(format!("items of rank + {by}")),
            RankShift::Random => words.push("ranks in random order".to_owned()),
        }
        words
    }

    fn fields(&self) -> Vec<(&'static str, String)> {
        let Some(door) = self.door else { return Vec::new() };
        let turn = self.door_turn.map_or_else(String::new, |turn| turn.to_string());
        vec![("door", door.name().to_owned()), ("door_turn", turn)]
    }

    fn target_names(&self) -> Vec<&str> {
        self.targets.iter().map(String::as_str).collect()
    }

    fn terms(&self) -> &'static Terms {
        &TERMS
    }

    fn is_fill(&self) -> bool {
        self.is_fill
    }

    fn stops_to_sync(&self) -> bool {
        self.end_fsync || self.fsync_every.is_some() || self.phase_sync
    }

    fn is_synced_at_end(&self) -> bool {
        (self.end_fsync || self.phase_sync) && !self.direct
    }

    fn load_kind(&self) -> Option<LoadKind> {
        let is_random = matches!(self.geometry.order, OffsetOrder::Random | OffsetOrder::RandomRepeats);
        match (self.operation, is_random) {
            (FsOp::Read, false) => Some(LoadKind::SequentialRead),
            (FsOp::Read, true) => Some(LoadKind::RandomRead),
            (FsOp::Write, false) => Some(LoadKind::SequentialWrite),
            (FsOp::Write, true) => Some(LoadKind::RandomWrite),
            _ => None,
        }
    }
}
