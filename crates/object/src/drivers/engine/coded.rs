//! Erasure-coded values: what is the same for all operations.

use std::ops::Range;

use driver::Error;
use ring::rand::{SecureRandom, SystemRandom};
use workload::object::{ObjectOp, ObjectPlan, PunchScope, ValueKind};

use crate::erasure::{Coder, EXTENT_CELL_BYTES, Striping, TAG_BYTES, cell_bytes};

/// Codes the values of one worker. Its memory is that of the largest value, from the start.
pub(super) struct Coded {
    pub(super) coder: Coder,
    pub(super) striping: Striping,
    /// All cells one behind the other, those of data first.
    pub(super) cells: Vec<u8>,
    /// Stamp of the last update.
    pub(super) stamp: u64,
}

/// Memory that the cell of a request takes.
pub(super) fn scratch_bytes(value_bytes: u64, data: u8) -> usize {
    let extent = value_bytes.div_ceil(u64::from(data)) + 2 * EXTENT_CELL_BYTES;
    cell_bytes(value_bytes as usize, usize::from(data)).max(extent as usize) + TAG_BYTES
}

/// Whether a plan is one that can be coded from this side.
///
/// # Errors
/// Bad usage that says what can.
pub(super) fn check(plan: &ObjectPlan, data: u8) -> Result<(), Error> {
    let stripe = Striping::new(usize::from(data)).stripe_bytes();
    let is_array = plan.dataset.value == ValueKind::Array;
    let writes_extents = plan.any(|operation| operation == ObjectOp::Write)
        || (is_array && plan.any(|operation| operation == ObjectOp::Update));
    let chunk = plan.cell_size_bytes.saturating_mul(plan.chunk_size_cells);
    let dataset = &plan.dataset;
    let sizes: Result<workload::block_size::BlockSizes, _> = dataset.value_size.parse();
    let is_one_size = sizes.is_ok_and(|sizes| sizes.single() == Some(dataset.value_size_bytes_max));
    let is_whole = is_one_size
        && [dataset.value_size_bytes_max, dataset.stride_bytes, dataset.offset_bytes]
            .iter()
            .all(|bytes| bytes.is_multiple_of(stripe));
    let is_chunk_whole = !plan.any(|operation| operation == ObjectOp::Write) || chunk.is_multiple_of(stripe);
    if writes_extents && !(is_whole && is_chunk_whole) {
        return Err(Error::usage(
            "class",
            format!("{} writes arrays over the network in whole stripes of {stripe} bytes", plan.class),
        )
        .remedy(
            "use a size, stride, offset and chunk size that are multiples of it, or a class without parity",
        ));
    }
    let reopens = plan.reopens_arrays();
    if reopens && plan.any(|operation| matches!(operation, ObjectOp::Write | ObjectOp::Read)) {
        return Err(Error::usage("class", format!("arrays of {} are opened once a worker", plan.class))
            .remedy("leave out --reopen, or use a class without parity"));
    }
    if is_array && plan.punch == PunchScope::Record && plan.any(|operation| operation == ObjectOp::Punch) {
        return Err(Error::usage(
            "punch",
            format!("parts of a stripe of {} are not punched over the network", plan.class),
        )
        .remedy("punch akeys, dkeys or objects, or use a class without parity"));
    }
    Ok(())
}

impl Coded {
    pub(super) fn new(data: u8, parity: u8, value_bytes: u64) -> Result<Self, Error> {
        let mut stamp = [0; 8];
        SystemRandom::new().fill(&mut stamp).map_err(|_| {
            let source = std::io::Error::from_raw_os_error(libc::EIO);
            Error::system("engine", "cannot draw random bytes", source)
        })?;
        let all = usize::from(data) + usize::from(parity);
        Ok(Self {
            coder: Coder::new(data, parity),
            striping: Striping::new(usize::from(data)),
            cells: Vec::with_capacity(all * scratch_bytes(value_bytes, data)),
            stamp: u64::from_le_bytes(stamp),
        })
    }

    pub(super) fn shards(&self) -> usize {
        self.coder.data() + self.coder.parity()
    }

    /// Fills `cells` with those of data and parity of a value; returns the length of each.
    pub(super) fn encode(&mut self, value: &[u8], extent: Option<&Range<u64>>) -> usize {
        let (data, shards) = (self.coder.data(), self.shards());
        let bytes = match extent {
            None => cell_bytes(value.len(), data),
            Some(_) => value.len() / data,
        };
        self.cells.clear();
        self.cells.resize(bytes * shards, 0);
        let (cells, parity) = self.cells.split_at_mut(bytes * data);
        match extent {
            None => cells[..value.len()].copy_from_slice(value),
            Some(extent) => {
                for (shard, cell) in cells.chunks_mut(bytes.max(1)).enumerate() {
                    let local = self.striping.local(shard, extent);
                    self.striping.gather(shard, &local, value, extent.start, cell);
                }
            }
        }
        self.coder.encode(cells, bytes, parity);
        bytes
    }
}

/// Where an array ends when its part on a shard of data ends at `end_bytes`.
pub(super) fn array_end(coded: Option<&Coded>, shard: u32, end_bytes: u64) -> u64 {
    match coded {
        Some(coded) if end_bytes > 0 => coded.striping.global(shard as usize, end_bytes - 1) + 1,
        _ => end_bytes,
    }
}

/// The extent of a shard that is asked for: its part, or with a repair its cells of whole stripes.
pub(super) fn local_of(coded: &Coded, shard: usize, extent: &Range<u64>, is_repair: bool) -> Range<u64> {
    if !is_repair {
        return coded.striping.local(shard, extent);
    }
    let (whole, stripe) = (coded.striping.whole(extent), coded.striping.stripe_bytes());
    whole.start / stripe * EXTENT_CELL_BYTES..whole.end / stripe * EXTENT_CELL_BYTES
}
