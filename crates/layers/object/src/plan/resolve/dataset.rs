//! Dataset of the operations of a phase.

use units::ByteSize;

use workload::block_size::BlockSizes;
use workload::plan::{Amount, PlanError, refuse};

use super::Request;
use crate::plan::{DatasetPlan, Interface, ObjectOp, PunchScope, ValueKind};

/// Largest value, in bytes.
const VALUE_BYTES_MAX: u64 = 1 << 30;
/// Keys, where nothing is said.
const DKEYS: u64 = 10_000;
/// Transfers of an array, where nothing is said.
const ARRAY_RECORDS: u64 = 256;
/// Chunk of an array, where nothing is said, in bytes: that of DAOS.
const CHUNK_BYTES: u64 = 1 << 20;
/// Number of the first object's id, where nothing is said: 0 is the superblock of a file system.
const FIRST_ID: u64 = 1;
/// Names of the counts.
const COUNTS: [&str; 4] = ["objects", "dkeys", "akeys", "records"];

/// Unit that one operation works on; the finer comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Unit {
    Record,
    Akey,
    Dkey,
    Object,
    Container,
}

/// Unit that the operations of a phase go over: the finest of theirs.
pub(super) fn unit(request: &Request<'_>) -> Unit {
    let of = |&operation: &ObjectOp| match operation {
        ObjectOp::Punch => match request.own.punch.unwrap_or_default() {
            PunchScope::Record => Unit::Record,
            PunchScope::Akey => Unit::Akey,
            PunchScope::Dkey => Unit::Dkey,
            PunchScope::Object => Unit::Object,
        },
        ObjectOp::List
        | ObjectOp::Size
        | ObjectOp::Create
        | ObjectOp::Open
        | ObjectOp::OpenWithAttr
        | ObjectOp::Destroy
        | ObjectOp::Query
        | ObjectOp::Iterate => Unit::Object,
        ObjectOp::OpenContainer
        | ObjectOp::AllocateIds
        | ObjectOp::Aggregate
        | ObjectOp::Discard
        | ObjectOp::Collect => Unit::Container,
        _ => Unit::Record,
    };
    request.operations.iter().map(of).min().unwrap_or(Unit::Record)
}

/// How many of them a phase goes over.
pub(super) fn units(request: &Request<'_>, dataset: &DatasetPlan) -> u64 {
    match unit(request) {
        Unit::Record => dataset.record_count(),
        Unit::Akey => dataset.objects * dataset.dkeys * dataset.akeys,
        Unit::Dkey => dataset.objects * dataset.dkeys,
        Unit::Object => dataset.objects,
        Unit::Container => 1,
    }
}

/// Sizes of values: of the transfers of a ranged read those, else of what is stored.
struct Values {
    sizes: BlockSizes,
    kind: ValueKind,
    records: u64,
    stride_bytes: u64,
    offset_bytes: u64,
}

/// The dataset of a phase.
///
/// # Errors
/// Counts that do not fit, a part beyond the whole, values that overlap.
pub(super) fn dataset(request: &Request<'_>) -> Result<DatasetPlan, PlanError> {
    let own = request.own;
    let values = values(request)?;
    let is_array = request.is_array();
    let is_named = !own.object_names.is_empty();
    let counts = [
        own.objects.unwrap_or(own.object_names.len().max(1) as u64),
        if is_array || is_named { 1 } else { own.dkeys.unwrap_or(DKEYS) },
        own.akeys.unwrap_or(1),
        values.records,
    ];
    let first = own.first.unwrap_or([0; 4]);
    let ends = ends(first, counts)?;
    let whole = own.whole.unwrap_or(ends);
    if let Some(at) = (0..4).find(|&at| ends[at] > whole[at]) {
        return refuse(format!(
            "{} {} from {} on exceed the {} of --whole: use {} or fewer, or a larger --whole",
            counts[at],
            COUNTS[at],
            first[at],
            whole[at],
            whole[at].saturating_sub(first[at])
        ));
    }
    check_extent(request, whole, &values)?;
    check_names(&own.object_names, whole[0])?;
    let prefix = |text: &Option<String>, default: &str| text.clone().unwrap_or_else(|| default.to_owned());
    Ok(DatasetPlan {
        objects: counts[0],
        object_names: own.object_names.clone(),
        dkeys: counts[1],
        akeys: counts[2],
        records: counts[3],
        first,
        whole: (whole != counts).then_some(whole),
        integer_dkeys: own.integer_dkeys,
        dkey_prefix: prefix(&own.dkey_prefix, "blade-"),
        akey_prefix: prefix(&own.akey_prefix, "akey--"),
        constant_akey: own.constant_akey,
        value: values.kind,
        value_size: values.sizes.to_string(),
        value_size_bytes_max: values.sizes.max(),
        stride_bytes: values.stride_bytes,
        offset_bytes: values.offset_bytes,
        first_id: own.first_id.unwrap_or(FIRST_ID),
    })
}

/// Refuses names that are not one for each object.
fn check_names(names: &[String], objects: u64) -> Result<(), PlanError> {
    if names.is_empty() {
        return Ok(());
    }
    if names.len() as u64 != objects {
        return refuse(format!(
            "--object-names has {} names for {objects} objects: use one name per object",
            names.len()
        ));
    }
    let mut sorted: Vec<&String> = names.iter().collect();
    sorted.sort_unstable();
    match sorted.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => {
            refuse(format!("--object-names contains {} twice: use a different name for each object", pair[0]))
        }
        None => Ok(()),
    }
}

/// Where a part ends.
fn ends(first: [u64; 4], counts: [u64; 4]) -> Result<[u64; 4], PlanError> {
    let mut ends = [0; 4];
    for at in 0..4 {
        match first[at].checked_add(counts[at]) {
            Some(end) => ends[at] = end,
            None => {
                return refuse(format!(
                    "{} {} from {} on are too many: use fewer",
                    counts[at], COUNTS[at], first[at]
                ));
            }
        }
    }
    Ok(ends)
}

/// Refuses what numbers and positions cannot express.
fn check_extent(request: &Request<'_>, whole: [u64; 4], values: &Values) -> Result<(), PlanError> {
    let threads = if request.is_private() { request.workers() } else { 1 };
    let records = whole.iter().try_fold(threads, |product: u64, &count| product.checked_mul(count));
    let bytes = records.and_then(|records| records.checked_mul(values.sizes.max().max(values.stride_bytes)));
    if bytes.is_none_or(|bytes| bytes > i64::MAX as u64) {
        let [objects, dkeys, akeys, records] = whole;
        return refuse(format!(
            "{objects} objects x {dkeys} dkeys x {akeys} akeys x {records} records of up to {} exceed 8EiB: use less",
            Amount(values.sizes.max())
        ));
    }
    let first_id = request.own.first_id.unwrap_or(FIRST_ID);
    if whole[0].checked_mul(threads).and_then(|objects| objects.checked_add(first_id)).is_none() {
        return refuse(format!(
            "ids of {} objects do not fit after --first-id {first_id}: use a smaller one",
            whole[0].saturating_mul(threads)
        ));
    }
    Ok(())
}

fn values(request: &Request<'_>) -> Result<Values, PlanError> {
    let own = request.own;
    let default = if request.is_array() { "1MiB" } else { "4KiB" };
    let sizes: BlockSizes = own.value_size.as_deref().unwrap_or(default).parse()?;
    if sizes.max() > VALUE_BYTES_MAX {
        return refuse(format!("--value-size {} is too large: use 1GiB or less", Amount(sizes.max())));
    }
    if request.facts.reads_ranges() && request.operations.contains(&ObjectOp::Read) {
        return ranges(request, sizes);
    }
    if let Some(read) = own.read_size.filter(|read| read.0 < sizes.max() && !request.facts.reads_ranges()) {
        return refuse(format!(
            "--read-size {} is smaller than a value of {}: use the size of the value, or more for short reads",
            Amount(read.0),
            Amount(sizes.max())
        ));
    }
    let kind = match request.interface {
        Some(Interface::Array) => ValueKind::Array,
        Some(Interface::KeyValue) => ValueKind::Single,
        Some(Interface::Keys) | None => own.value.unwrap_or_default(),
    };
    if kind == ValueKind::Single {
        let records = own.records.unwrap_or(1);
        return Ok(Values { sizes, kind, records, stride_bytes: 0, offset_bytes: 0 });
    }
    let offset_bytes = own.record_offset.map_or(0, |offset| offset.0);
    let stride_bytes = own.stride.map_or(sizes.max(), |stride| stride.0);
    let need = offset_bytes.saturating_add(sizes.max());
    if need > stride_bytes {
        return refuse(format!(
            "records of up to {} at offset {} overlap with a --stride of {}: use {} or more",
            Amount(sizes.max()),
            offset_bytes,
            Amount(stride_bytes),
            Amount(need)
        ));
    }
    let records = own.records.unwrap_or(if request.is_array() { ARRAY_RECORDS } else { 1 });
    Ok(Values { sizes, kind, records, stride_bytes, offset_bytes })
}

/// The ranges of values that a driver without arrays reads.
fn ranges(request: &Request<'_>, sizes: BlockSizes) -> Result<Values, PlanError> {
    let Some(value) = sizes.single() else {
        return refuse(format!(
            "{} reads ranges of values that all have one size, but --value-size has {sizes}: use one --value-size, or --op get",
            request.facts.engine
        ));
    };
    // More than the value is a short read of it all.
    let range = request.own.read_size.map_or(value, |read| read.0.min(value));
    if !value.is_multiple_of(range) {
        return refuse(format!(
            "values of {} cannot be divided into ranges of {}: use a --read-size that divides the value",
            Amount(value),
            Amount(range)
        ));
    }
    let sizes = BlockSizes::fixed(range)?;
    Ok(Values { sizes, kind: ValueKind::Array, records: value / range, stride_bytes: range, offset_bytes: 0 })
}

/// Bytes that reads of the phase ask for, where that is more than what was written.
pub(super) fn short_read(request: &Request<'_>, dataset: &DatasetPlan) -> Option<u64> {
    let asked = request.own.read_size?.0;
    let is_longer = asked > dataset.value_size_bytes_max && request.any(ObjectOp::loads);
    is_longer.then_some(asked)
}

/// Size of a cell in bytes, and cells of a chunk.
///
/// # Errors
/// Sizes and positions that are not whole cells.
pub(super) fn cells(request: &Request<'_>) -> Result<(u64, u64), PlanError> {
    let own = request.own;
    let cell = own.cell_size.map_or(1, |cell| cell.0);
    let chunk = own.chunk_size.map_or(CHUNK_BYTES, |chunk| chunk.0);
    if !chunk.is_multiple_of(cell) {
        return refuse(format!(
            "a chunk of {} is not a whole number of cells of {}: use a --chunk-size such as {}",
            Amount(chunk),
            Amount(cell),
            ByteSize(chunk.next_multiple_of(cell))
        ));
    }
    if request.is_array() && cell > 1 {
        let values = values(request)?;
        let parts = [
            ("--value-size", values.sizes.granularity()),
            ("--stride", values.stride_bytes),
            ("--record-offset", values.offset_bytes),
            ("--read-size", own.read_size.map_or(0, |read| read.0)),
        ];
        if let Some((option, bytes)) = parts.iter().find(|(_, bytes)| !bytes.is_multiple_of(cell)) {
            return refuse(format!(
                "{option} must be a whole number of cells of {}, but it is {}: use a multiple of --cell-size",
                Amount(cell),
                Amount(*bytes)
            ));
        }
    }
    Ok((cell, chunk / cell))
}
