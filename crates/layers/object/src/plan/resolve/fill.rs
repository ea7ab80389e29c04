//! Phases that store the records for a phase that reads.

use vos::ObjectType;
use workload::block_size::BlockSizes;
use workload::plan::{LimitPlan, Pattern};
use workload::spec::{OnError, Share, Warmup};

use super::is_unlimited;
use crate::plan::{Interface, ObjectOp, ObjectPlan, OpShare, ValueKind};

/// The interface of the objects that a plan works on.
fn interface(plan: &ObjectPlan) -> Interface {
    match plan.object_type {
        ObjectType::KvHashed => Interface::KeyValue,
        ObjectType::Array | ObjectType::ArrayAttr | ObjectType::ArrayByte => Interface::Array,
        ObjectType::MultiHashed | ObjectType::DkeyUint64 => Interface::Keys,
    }
}

/// The phases that store all that a phase works on, each record once and in order, without a limit: one, and before it one that creates
/// the arrays where they keep their attributes.
#[must_use]
pub fn fill_phases(plan: &ObjectPlan) -> Vec<ObjectPlan> {
    let mut fill = plan.clone();
    fill.is_fill = true;
    fill.memory = gpu::MemoryPlan::Host;
    fill.sequence.clear();
    fill.pattern = Pattern::Sequential;
    fill.short_read_bytes = None;
    fill.load.limit = LimitPlan::default();
    (fill.load.arrivals, fill.load.think) = (None, None);
    (fill.load.start_delay_ns, fill.load.end_others) = (0, false);
    (fill.load.warmup, fill.load.on_error) = (Warmup::None, OnError::Stop);
    let dataset = &mut fill.dataset;
    [dataset.objects, dataset.dkeys, dataset.akeys, dataset.records] = dataset.whole();
    (dataset.first, dataset.whole) = ([0; 4], None);
    if plan.reads_ranges() {
        let value_bytes = dataset.records * dataset.stride_bytes;
        dataset.value = ValueKind::Single;
        (dataset.records, dataset.stride_bytes) = (1, 0);
        dataset.value_size_bytes_max = value_bytes;
        if let Ok(size) = BlockSizes::fixed(value_bytes) {
            dataset.value_size = size.to_string();
        }
    }
    fill.share = if fill.is_private() { Share::Whole } else { Share::Partition };
    let records = fill.dataset.record_count();
    if !fill.is_private() {
        // Fewer records than workers: the others have nothing to do.
        fill.load.limit_threads(records);
    }
    let mut phases = Vec::new();
    if plan.object_type == ObjectType::Array {
        let mut create = with(&fill, ObjectOp::Create);
        if !create.is_private() {
            create.load.limit_threads(create.dataset.objects);
        }
        phases.push(create);
    }
    phases.push(with(&fill, interface(plan).store()));
    phases
}

/// The plan with this operation alone.
fn with(plan: &ObjectPlan, operation: ObjectOp) -> ObjectPlan {
    let mut plan = plan.clone();
    plan.mix = vec![OpShare { operation, percent: 100 }];
    plan.name = if operation == ObjectOp::Create { "fill create" } else { "fill" }.to_owned();
    plan
}

/// Whether what a phase reads was not stored by the phases before it, which ran on the same store.
#[must_use]
pub fn needs_fill(plan: &ObjectPlan, before: &[ObjectPlan]) -> bool {
    if !plan.any(ObjectOp::needs_data) || plan.snapshot.is_some() {
        return false;
    }
    // What a mix or a sequence reads it may have stored itself, but only a sequence has done so surely.
    let mut operations = plan.sequence.iter();
    let is_stored_first = operations
        .find(|operation| operation.stores() || operation.needs_data())
        .is_some_and(|operation| operation.stores());
    let last = before.iter().rev().find_map(|earlier| is_there_after(earlier, plan));
    !is_stored_first && !last.unwrap_or(false)
}

/// Whether a phase goes on until each record had its turn. One worker does that with as many operations; several share them out unevenly.
fn covers(plan: &ObjectPlan) -> bool {
    let limit = &plan.load.limit;
    let is_counted = plan.load.workers() == 1
        && (limit.time_ns, limit.bytes) == (None, None)
        && limit.operations.is_some_and(|count| count >= plan.dataset.record_count());
    is_unlimited(plan) || is_counted
}

/// Whether what `plan` reads is there after a phase; none where the phase changes nothing about it.
fn is_there_after(earlier: &ObjectPlan, plan: &ObjectPlan) -> Option<bool> {
    let place = |plan: &ObjectPlan| {
        (
            (plan.target.clone(), plan.container.clone(), plan.containers, plan.object_scope),
            (plan.object_type, plan.class, plan.dataset.first_id, plan.dataset.object_names.clone()),
            (plan.dataset.dkey_prefix.clone(), plan.dataset.akey_prefix.clone(), plan.dataset.constant_akey),
        )
    };
    if place(earlier) != place(plan) {
        return None;
    }
    if earlier.any(ObjectOp::takes_away) || earlier.any(|operation| operation == ObjectOp::Discard) {
        return Some(false);
    }
    let wanted = fill_phases(plan).pop()?;
    let (dataset, need) = (&earlier.dataset, &wanted.dataset);
    let is_whole = dataset.first == [0; 4] && dataset.whole.is_none() && earlier.mix.len() <= 1;
    let is_pass = covers(earlier) && earlier.pattern.is_full_coverage();
    let is_private = earlier.is_private();
    let has_sizes = (dataset.value, &dataset.value_size) == (need.value, &need.value_size);
    if earlier.any(ObjectOp::stores) && !has_sizes {
        return Some(false);
    }
    let is_same = dataset.whole() == need.whole()
        && (dataset.stride_bytes, dataset.offset_bytes) == (need.stride_bytes, need.offset_bytes)
        && (!plan.verify || earlier.verify)
        && (!is_private || earlier.load.workers() >= plan.load.workers());
    (earlier.any(ObjectOp::stores) && is_whole && is_pass && is_same).then_some(true)
}
