//! Options of the layer, as typed.

use std::sync::LazyLock;

use layer::CacheBefore;
use units::ByteSize;
use workload::spec::Spec;

use crate::doors::AccessPath;
use crate::phases::FsOp;
use crate::plan::{OffsetOrder, PathForm, RankShift};
use crate::set::{Naming, Shape};

/// Options of a load on files and directories; `None` means: not said. `of` finds it in a spec.
#[derive(Clone, Debug, Default, PartialEq)]
#[allow(
    missing_docs,
    reason = "each field is the option of the same name, documented in the table of options"
)]
pub struct FsSpec {
    /// `--op`: one phase each.
    pub operations: Vec<FsOp>,
    pub shape: Option<Shape>,
    pub memory: gpu::MemorySpec,
    pub names: Option<Naming>,
    pub dirs: Option<u64>,
    pub files: Option<u64>,
    pub items: Option<u64>,
    pub branch: Option<u64>,
    pub levels: Option<u32>,
    pub leaves_only: bool,
    pub shared_tree: bool,
    pub unique_directories: bool,
    pub tree_file: Option<String>,
    pub tree_scan: Option<String>,
    pub tree_round_up: Option<ByteSize>,
    pub share_size: Option<ByteSize>,
    pub file_size: Option<ByteSize>,
    pub segments: Option<u64>,
    pub transfers: Option<u64>,
    pub order: Option<OffsetOrder>,
    pub item_order: Option<OffsetOrder>,
    pub item_passes: Option<u64>,
    pub rank_shift: Option<RankShift>,
    pub wear_out: bool,
    pub verify_run: Option<u64>,
    pub engine: Option<String>,
    pub direct: bool,
    pub fsync: Option<u64>,
    pub end_fsync: bool,
    pub cache: Option<CacheBefore>,
    pub paths: Option<PathForm>,
    pub truncate_first: bool,
    pub truncate_to_size: bool,
    pub ignore_missing: bool,
    pub replace: bool,
    pub file_suffix: Option<String>,
    pub barriers: bool,
    pub phase_sync: bool,
    pub keep_on_error: bool,
    pub exclusive: bool,
    pub preallocate: bool,
    pub no_fill: bool,
    pub find_name: Option<String>,
    pub find_size: Option<ByteSize>,
    pub find_newer: Option<String>,
    pub door: Option<Vec<AccessPath>>,
    pub door_turns: Option<u32>,
}

/// Options of the layer in a spec.
#[must_use]
pub(crate) fn of(spec: &Spec) -> &FsSpec {
    static NOTHING_SAID: LazyLock<FsSpec> = LazyLock::new(FsSpec::default);
    spec.own.get().unwrap_or(&NOTHING_SAID)
}
