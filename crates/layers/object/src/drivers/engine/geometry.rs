//! How many requests an operation becomes at most, and the memory that they need.

use driver::Error;
use rpc::client::DEPTH_MAX;

use crate::plan::{ObjectOp, ObjectPlan};

use vos::placement::Placement;

/// Memory of a request for replies that are no values, in bytes.
const SCRATCH_BYTES: usize = 4096;
/// The same where keys are listed.
const LIST_BYTES: usize = 64 << 10;

/// See the module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Geometry {
    /// Requests of one operation at a time, at most.
    pub(super) fan: u32,
    /// Memory of each of them, in bytes.
    pub(super) scratch_bytes: usize,
    /// Bytes of an array under one dkey.
    pub(super) chunk_bytes: u64,
}

/// Whether an operation goes to every shard of an object.
fn is_for_all_shards(operation: ObjectOp) -> bool {
    use ObjectOp::{Destroy, Iterate, Punch, Query, Size};
    matches!(operation, Destroy | Iterate | Punch | Query | Size)
}

/// Whether an operation goes to every target.
fn is_for_all_targets(operation: ObjectOp) -> bool {
    matches!(operation, ObjectOp::Aggregate | ObjectOp::Collect)
}

impl Geometry {
    pub(super) fn new(plan: &ObjectPlan, placement: &Placement, targets: u32) -> Self {
        let chunk_bytes = plan.cell_size_bytes.saturating_mul(plan.chunk_size_cells).max(1);
        let value_bytes = plan.dataset.value_size_bytes_max.max(plan.short_read_bytes.unwrap_or(0));
        let fan_of = |operation: ObjectOp| match operation {
            // A value that begins anywhere touches one chunk more than it fills.
            ObjectOp::Write | ObjectOp::Read => {
                u32::try_from(value_bytes.div_ceil(chunk_bytes) + 1).unwrap_or(u32::MAX)
            }
            _ if is_for_all_targets(operation) => targets,
            _ if is_for_all_shards(operation) => placement.shards(),
            _ => 1,
        };
        let lists = plan.any(|operation| operation == ObjectOp::List);
        let fan = plan.operations().map(fan_of).max().unwrap_or(1).max(1);
        let scratch_bytes = if lists { LIST_BYTES } else { SCRATCH_BYTES };
        Self { fan, scratch_bytes, chunk_bytes }
    }
}

/// Whether the driver can carry out a plan.
///
/// # Errors
/// Bad usage that says what it can.
pub(super) fn check(plan: &ObjectPlan, placement: &Placement) -> Result<(), Error> {
    let fan = Geometry::new(plan, placement, placement.shards()).fan;
    if u64::from(fan) * u64::from(plan.load.depth) > u64::from(DEPTH_MAX) {
        return Err(Error::usage(
            "depth",
            format!("depth {} with {fan} requests per operation is too large", plan.load.depth),
        )
        .remedy(format!(
            "the product may be at most {DEPTH_MAX}: use a larger --chunk-size or a lower --depth"
        )));
    }
    Ok(())
}
