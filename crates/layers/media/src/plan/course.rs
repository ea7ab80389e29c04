//! The course over a range: what of it goes together.

use workload::access::Pattern;
use workload::class_sizes::ClassSizes;
use workload::plan::{Amount, PlanError, refuse};
use workload::spec::{Operation, Spec};
use workload::target::TargetPlan;

use crate::course::CoursePlan;
use crate::spec;

/// The course of a phase; none where its pattern says all.
pub(super) fn course(
    spec: &Spec,
    operation: Operation,
    sizes: &ClassSizes,
    pattern: &Pattern,
    targets: &[TargetPlan],
) -> Result<Option<CoursePlan>, PlanError> {
    let own = spec::of(spec);
    let random = operation.is_random();
    let plan = CoursePlan {
        gap_bytes: own.gap.unwrap_or(0),
        run: own.run.unwrap_or_default(),
        random_percent: own.random_percent.unwrap_or_default(),
        own_positions: own.own_positions,
        zones: own.zones,
        visit: own.visit.unwrap_or_default(),
    };
    // Zones of a device say where operations go.
    if own.zoned.is_some() {
        return Ok(None);
    }
    if plan == CoursePlan::default() && sizes.common().is_none() && !operation.is_mixed() {
        return refuse(format!(
            "--block-size by class goes with --op readwrite or randrw, not with {}: give one size",
            operation.name()
        ));
    }
    if plan == CoursePlan::default() && sizes.common().is_some() {
        return Ok(None);
    }
    let in_order = matches!(pattern, Pattern::Sequential);
    let wrong = [
        (operation == Operation::Nop, "--op nop does not use positions: leave out the options for positions"),
        (
            plan.gap_bytes != 0 && random,
            "--gap is for sequential operations: use --op read, write, readwrite or discard",
        ),
        (
            (own.run.is_some() || own.random_percent.is_some()) && !random,
            "--run and --random-percent are for random operations: use --op randread, randwrite, randrw or randdiscard",
        ),
        (
            !random && !in_order,
            "--pattern backward and strided cover one range block by block: leave out --gap, --zones, --visit and --own-positions",
        ),
        (
            *pattern == Pattern::Fitted && sizes.single().is_none(),
            "--pattern fitted covers a range once, with blocks of all sizes: leave out sizes by class, --run, --random-percent, --zones and --visit",
        ),
        (plan.gap_bytes != 0 && plan.zones.is_some(), "use --gap or --zones, not both"),
        (plan.run.operations > 1 && own.random_percent.is_some(), "use --run or --random-percent, not both"),
        (
            plan.own_positions && !operation.is_mixed(),
            "--own-positions is for mixed loads: use it with --op readwrite or randrw",
        ),
    ];
    if let Some((_, message)) = wrong.iter().find(|(is_wrong, _)| *is_wrong) {
        return refuse((*message).to_owned());
    }
    check_room(&plan, sizes, targets)?;
    if spec.verify {
        // With blocks of several sizes an operation waits for those that it shares bytes with.
        let waits = own.serialize_overlap || sizes.single().is_none();
        let depth = if waits { 1 } else { spec.depth.unwrap_or(1) };
        check_verified(&plan, sizes.granularity(), depth, targets)?;
    }
    Ok(Some(plan))
}

fn check_room(plan: &CoursePlan, sizes: &ClassSizes, targets: &[TargetPlan]) -> Result<(), PlanError> {
    let smallest = targets.iter().map(|target| target.size_bytes).min().unwrap_or(0);
    if plan.gap_bytes.unsigned_abs() >= smallest {
        return refuse(format!(
            "--gap {} is as large as the range ({}): use less",
            Amount(plan.gap_bytes.unsigned_abs()),
            Amount(smallest)
        ));
    }
    if let Some(zones) = plan.zones.filter(|zones| zones.range_bytes < sizes.max()) {
        return refuse(format!(
            "a zone of {} is smaller than a block of {}: use larger zones",
            Amount(zones.range_bytes),
            Amount(sizes.max())
        ));
    }
    Ok(())
}

/// A verified block is written as a whole at its place, and by one operation at a time: so many places must be there as operations
/// are in flight.
fn check_verified(
    plan: &CoursePlan,
    block: u64,
    depth: u32,
    targets: &[TargetPlan],
) -> Result<(), PlanError> {
    let zones = plan.zones.map_or([0; 2], |zones| [zones.range_bytes, zones.skip_bytes]);
    let steps = [plan.gap_bytes.unsigned_abs(), zones[0], zones[1]];
    if steps.iter().any(|step| !step.is_multiple_of(block)) {
        return refuse(format!(
            "--verify needs positions at multiples of the block size: use multiples of {} for --gap and --zones",
            Amount(block)
        ));
    }
    let step = match plan.gap_bytes {
        gap if gap >= 0 => block.saturating_add(gap.unsigned_abs()),
        gap => gap.unsigned_abs(),
    };
    let share = |target: &TargetPlan| match plan.zones {
        Some(zones) => (zones.range_bytes.min(zones.size_bytes) / block).min(target.size_bytes / block),
        None if plan.gap_bytes < 0 && step != 2 * block => 1,
        None => target.size_bytes / step,
    };
    let places = targets.iter().map(share).min().unwrap_or(0);
    if places < u64::from(depth) {
        return refuse(format!(
            "--verify cannot have two operations in flight on one block, and this load repeats a block after {places} blocks: use --depth {} or less",
            places.max(1)
        ));
    }
    Ok(())
}
