//! Grain of a phase: the least that one operation works on, and a worker's part of it.

use driver::Error;
use units::ByteSize;
use vos::Redundancy;
use workload::access::Access;
use workload::block_size::BlockSizes;
use workload::spec::Share;

use crate::plan::{DatasetPlan, ObjectOp, ObjectPlan, PunchScope};

use vos::erasure::{EXTENT_CELL_BYTES, Striping, TAG_BYTES, cell_bytes};

use super::is_private;

/// Bytes of a record beside its value, about: header, keys, checksums, and what the next line begins after.
const RECORD_BYTES: f64 = 160.0;

/// Grain of a phase: one that only opens objects visits each object once, not once for each of its records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Grain {
    /// The store as a whole.
    Store,
    /// An object.
    Object,
    /// A piece of the list of an object's keys: so many make the whole list.
    List(u64),
    /// A dkey.
    Dkey,
    /// An akey.
    Akey,
    /// A record.
    Record,
}

impl Grain {
    /// The finest grain of a phase's operations.
    fn of(plan: &ObjectPlan) -> Self {
        plan.operations().map(|operation| Self::of_operation(operation, plan)).max().unwrap_or(Self::Record)
    }

    fn of_operation(operation: ObjectOp, plan: &ObjectPlan) -> Self {
        use ObjectOp as Op;
        match operation {
            Op::OpenContainer | Op::AllocateIds | Op::Aggregate | Op::Discard | Op::Collect => Self::Store,
            Op::Size | Op::Create | Op::Open | Op::OpenWithAttr | Op::Destroy | Op::Query | Op::Iterate => {
                Self::Object
            }
            Op::List => {
                let keys = plan.dataset.dkeys * plan.dataset.akeys * plan.dataset.records;
                Self::List(keys.div_ceil(u64::from(plan.list_max.max(1))).max(1))
            }
            Op::Punch => match plan.punch {
                PunchScope::Object => Self::Object,
                PunchScope::Dkey => Self::Dkey,
                PunchScope::Akey => Self::Akey,
                PunchScope::Record => Self::Record,
            },
            Op::Update | Op::Fetch | Op::Put | Op::Get | Op::Remove | Op::Stat | Op::Write | Op::Read => {
                Self::Record
            }
        }
    }

    /// Places of a dataset.
    fn places(self, dataset: &DatasetPlan) -> u64 {
        let product = |factors: &[u64]| factors.iter().fold(1u64, |all, &one| all.saturating_mul(one));
        let DatasetPlan { objects, dkeys, akeys, .. } = *dataset;
        match self {
            Self::Store => 1,
            Self::Object => objects,
            Self::List(pieces) => product(&[objects, pieces]),
            Self::Dkey => product(&[objects, dkeys]),
            Self::Akey => product(&[objects, dkeys, akeys]),
            Self::Record => dataset.record_count(),
        }
    }
}

/// The places of one worker.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Part {
    grain: Grain,
    first: u64,
    end: u64,
}

impl Part {
    /// The part of this number, of as many as there are workers that share the store. What is shared by parts and has fewer places than there are workers
    /// is everyone's, unless it is records, or is to be stored once for all: then some have none.
    ///
    /// # Errors
    /// Bad usage: fewer records than workers that share them, or none at all.
    pub(crate) fn new(plan: &ObjectPlan, worker: u32) -> Result<Self, Error> {
        let grain = Grain::of(plan);
        let total = grain.places(&plan.dataset);
        let threads = plan.load.workers();
        let is_cut = plan.share == Share::Partition && !is_private(plan);
        let is_few = total < u64::from(threads);
        if total == 0 || (is_cut && is_few && grain == Grain::Record && !plan.is_fill) {
            return Err(Error::usage("plan", "there are fewer records than threads to share them")
                .with("records", total)
                .with("threads", threads)
                .remedy(
                    "use more --objects, --dkeys, --akeys or --records, fewer --threads, or --share whole",
                ));
        }
        let cut = |part: u32| (u128::from(total) * u128::from(part) / u128::from(threads)) as u64;
        let (first, end) =
            if is_cut && (!is_few || plan.is_fill) { (cut(worker), cut(worker + 1)) } else { (0, total) };
        Ok(Self { grain, first, end })
    }

    pub(crate) fn places(&self) -> u64 {
        self.end - self.first
    }

    #[inline]
    pub(crate) fn first(&self) -> u64 {
        self.first
    }

    #[inline]
    pub(crate) fn grain(&self) -> Grain {
        self.grain
    }
}

/// Whether every worker of a plan gets records that its pattern fits: for plans to be refused before anything is touched.
///
/// # Errors
/// Bad usage: what does not fit.
pub fn check_plan(plan: &ObjectPlan) -> Result<(), Error> {
    for worker in 0..plan.load.threads {
        let number = plan.part_of(worker);
        let part = Part::new(plan, number)?;
        super::Dataset::new(plan, number)?;
        Access::new(&plan.pattern, part.places().max(1), 0)
            .map_err(|error| Error::usage("plan", error.to_string()))?;
    }
    Ok(())
}

/// Operations of the workers of this host together where nothing but one pass limits the phase; none where something does.
#[must_use]
pub fn operations_of(plan: &ObjectPlan) -> Option<u64> {
    if plan.load.limit != workload::plan::LimitPlan::default() {
        return None;
    }
    let parts = (0..plan.load.threads).filter_map(|worker| Part::new(plan, plan.part_of(worker)).ok());
    let places = parts.fold(0u64, |all, part| all.saturating_add(part.places()));
    Some(places.saturating_mul(plan.sequence.len().max(1) as u64))
}

/// Bytes of log and of data file that a phase of an embedded store will about write, of all workers, where that is known beforehand; 0
/// where time alone ends it. `is_external` tells whether values of a size go to the data file.
pub(crate) fn appended_bytes(plan: &ObjectPlan, is_external: impl Fn(u64) -> bool) -> (u64, u64) {
    let limit = &plan.load.limit;
    let value_bytes = plan.dataset.value_size.parse::<BlockSizes>().map_or(0.0, |sizes| sizes.mean());
    let in_data_file = is_external(value_bytes as u64);
    let Some(operations) = operations_of(plan).or(limit.operations) else {
        let bytes = limit.bytes.unwrap_or(0);
        return if in_data_file { (0, bytes) } else { (bytes, 0) };
    };
    let shares =
        plan.mix.iter().filter(|share| share.operation.stores()).map(|share| f64::from(share.percent));
    let share = match plan.sequence.len() {
        0 => shares.sum::<f64>() / 100.0,
        steps => plan.sequence.iter().filter(|step| step.stores()).count() as f64 / steps as f64,
    };
    let times = match plan.class.redundancy {
        Redundancy::None => 1.0,
        Redundancy::Replicated(copies) => f64::from(copies),
        Redundancy::ErasureCoded { data, parity } => 1.0 + f64::from(parity) / f64::from(data),
    };
    let written = operations as f64 * share * times;
    let bytes = |each: f64| (written * each) as u64;
    if in_data_file {
        (bytes(RECORD_BYTES), bytes(value_bytes))
    } else {
        (bytes(value_bytes + RECORD_BYTES), 0)
    }
}

/// Bytes that a phase hands to a target at once, at least: its largest value, or chunk, or cell. 0 where it stores nothing.
fn piece_bytes(plan: &ObjectPlan) -> u64 {
    if !plan.any(ObjectOp::stores) {
        return 0;
    }
    let value_bytes = plan.dataset.value_size_bytes_max;
    let has_whole = plan.any(|operation| operation.stores() && operation != ObjectOp::Write);
    let chunk_bytes = plan.cell_size_bytes.saturating_mul(plan.chunk_size_cells).max(1);
    let piece = if has_whole { value_bytes } else { value_bytes.min(chunk_bytes) };
    match plan.class.redundancy {
        Redundancy::None | Redundancy::Replicated(_) => piece,
        Redundancy::ErasureCoded { data, .. } => {
            let cell = cell_bytes(piece as usize, usize::from(data)) + TAG_BYTES;
            // An array's cells are whole stripes.
            let stripe = Striping::new(usize::from(data)).stripe_bytes();
            let stripes = (piece.div_ceil(stripe) + 1) * EXTENT_CELL_BYTES;
            if has_whole { cell as u64 } else { stripes }
        }
    }
}

/// Refuses a phase whose values a store that takes so many bytes at once does not take; 0: it does not tell.
pub(crate) fn check_value_size(plan: &ObjectPlan, value_bytes_max: u64) -> Result<(), Error> {
    let piece = piece_bytes(plan);
    if value_bytes_max == 0 || piece <= value_bytes_max {
        return Ok(());
    }
    let (asked, most) = (ByteSize(plan.dataset.value_size_bytes_max), ByteSize(value_bytes_max));
    let message =
        format!("--value-size {asked} is too large for this store: a target accepts at most {most} at once");
    Err(Error::usage("object", message).remedy(
        "use smaller values, or a store with a larger --scm (a value may take a sixteenth of a target's, and at most 32m) or with --nvme",
    ))
}
