//! Space of stores in this process: what a phase will write is known before it, and is got ready then, so that no page of the store comes into
//! being while the phase is measured.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use dfs::{ExpectedChanges, FileSystem};

use crate::operation::FsClass;
use crate::phases::{FsOp, Over};
use crate::plan::FsPlan;
use crate::set::Shape;

/// Changes that the workers of this process make in all its targets together, at most; none for a phase that ends after a time alone, of which nobody knows how far
/// it comes.
pub(crate) fn expected(plan: &FsPlan) -> Option<ExpectedChanges> {
    let phase = plan.operation.phase();
    let limit = &plan.load.limit;
    let is_open = limit.time_ns.is_some() && (limit.bytes, limit.operations) == (None, None);
    if is_open || plan.wear_out_ns.is_some() || !phase.changes {
        return None;
    }
    let set = &plan.set;
    let (items, blocks) = match (phase.over, set.shape) {
        (Over::Nodes | Over::NodesReversed, _) => {
            (u64::from(set.trees()).saturating_mul(set.counted_nodes()), 0)
        }
        (_, Shape::Private | Shape::Shared) => {
            let ranks = u64::from(plan.load.threads);
            (ranks, ranks.saturating_mul(plan.blocks_to_move()))
        }
        (_, Shape::Tree) => {
            let of = |rank| set.items_of(rank, plan.operation.moves_data());
            (plan.ranks_here().map(of).fold(0, u64::saturating_add), plan.blocks_here())
        }
    };
    let changing = phase.calls.iter().filter(|(class, _)| changes_name(*class)).count() as u64;
    let operations_max = limit.operations.unwrap_or(u64::MAX);
    let blocks = if plan.operation == FsOp::Write { blocks.min(operations_max) } else { 0 };
    let write_bytes = plan.geometry.block_size_bytes.min(plan.geometry.file_size_bytes.max(1));
    Some(ExpectedChanges {
        names: items.saturating_mul(changing).min(operations_max),
        writes: blocks,
        write_bytes,
        written_bytes: blocks.saturating_mul(write_bytes).min(limit.bytes.unwrap_or(u64::MAX)),
    })
}

/// Whether a call stores something about a name. The close of a file that was written does: its time.
fn changes_name(class: FsClass) -> bool {
    !matches!(
        class,
        FsClass::Open
            | FsClass::Read
            | FsClass::Write
            | FsClass::Stat
            | FsClass::Readdir
            | FsClass::Readlink
            | FsClass::Getxattr
            | FsClass::Fsync
            | FsClass::Syncfs
    )
}

/// Gets the space ready that a phase takes, in each of its stores.
pub(crate) fn stock(plan: &FsPlan, stores: &[Arc<dyn FileSystem>], stop: &AtomicBool) {
    let count = stores.len().max(1) as u64;
    // A phase that is not known to write anything takes its space as it goes; what it took is counted from here on.
    let all = expected(plan).unwrap_or_default();
    let share = ExpectedChanges {
        names: all.names.div_ceil(count),
        writes: all.writes.div_ceil(count),
        write_bytes: all.write_bytes,
        written_bytes: all.written_bytes.div_ceil(count),
    };
    stores.iter().for_each(|store| store.stock(&share, stop));
}

/// Bytes that the stores of a phase took while it ran; none where that is not known of all of them.
pub(crate) fn grown_bytes(stores: &[Arc<dyn FileSystem>]) -> Option<u64> {
    if stores.is_empty() {
        return None;
    }
    stores.iter().map(|store| store.grown_bytes()).sum()
}
