//! How many operations a phase has that ends by itself.

use crate::plan::MediaPlan;
use crate::zoned::{ZonedPlan, ZonedTarget};
use workload::block_size::BlockSizes;
use workload::plan::Pattern;
use workload::spec::Share;

use crate::region::Region;

/// Operations of all workers together of a phase that ends after one pass over the range; none where something else ends it.
/// Of sizes that are drawn, and of `fsync_every`, as many as are to be expected: for progress.
#[must_use]
pub fn operations_of(plan: &MediaPlan) -> Option<u64> {
    if plan.load.limit != workload::plan::LimitPlan::default() {
        return None;
    }
    if let Some(replay) = &plan.replay {
        return Some(replay.operations * u64::from(plan.load.threads));
    }
    if let Some(zoned) = &plan.zoned {
        return zoned_operations(plan, zoned);
    }
    let sizes: BlockSizes = plan.block_size.parse().ok()?;
    let regions = (0..plan.load.threads).filter_map(|worker| Region::new(plan, worker).ok());
    let places = regions.fold(0u64, |all, region| all.saturating_add(region.places()));
    let goes_by_bytes = !plan.pattern.is_random() || plan.pattern == Pattern::Fitted;
    let moved = if sizes.single().is_none() && goes_by_bytes {
        places as f64 * plan.align_bytes as f64 / sizes.mean()
    } else {
        places as f64
    };
    let writes =
        if plan.operation.is_pair() { moved } else { moved * f64::from(plan.mix.write_percent) / 100.0 };
    let moved = if plan.operation.is_pair() { 2.0 * moved } else { moved };
    let syncs = plan.fsync_every.map_or(0.0, |every| writes / every as f64);
    let final_syncs =
        if plan.end_fsync { u64::from(plan.load.threads) * plan.targets.len() as u64 } else { 0 };
    Some((moved + syncs) as u64 + final_syncs)
}

/// Writes and reads of one pass over zones; of discards, the zones.
fn zoned_operations(plan: &MediaPlan, zoned: &ZonedPlan) -> Option<u64> {
    let sizes: BlockSizes = plan.block_size.parse().ok()?;
    let passes = if plan.share == Share::Partition { 1 } else { u64::from(plan.load.threads) };
    let zones = |capacity: bool| {
        let of = |zones: &ZonedTarget| zones.zones * if capacity { zones.capacity_bytes } else { 1 };
        zoned.targets.iter().map(of).sum::<u64>() * passes
    };
    // Of a range that hosts share, as much as each does.
    let hosts = f64::from(plan.load.workers()) / f64::from(plan.load.threads.max(1));
    let hosts = if plan.share == Share::Partition { hosts } else { 1.0 };
    Some(if plan.mix.discard_percent > 0 {
        (zones(false) as f64 / hosts) as u64
    } else {
        (zones(true) as f64 / sizes.mean() / hosts) as u64
    })
}
