//! Doubts about whether the storage was really asked: memory, holes and data that shrink.

use crate::engine::SyncMode;
use crate::plan::MediaPlan;
use crate::spec::CachePolicy;
use report::doubts::Evidence;
use units::percent;
use workload::class_sizes::ClassSizes;
use workload::plan::ContentChoice;
use workload::spec::Refill;

use super::evidence::{place_of, targets, through_page_cache};
use super::{path, place};

/// Share of the range in the page cache above which reads from memory move the mean.
const CACHED_FRACTION_MAX: f64 = 0.05;
/// Share of the bytes read that must have come from the device; below it the rest was in memory.
const DEVICE_READ_SHARE_MIN: f64 = 0.9;
/// Share of the bytes written that must have reached the device where writes are made durable; below it blocks were
/// written over in memory before they were.
const DEVICE_WRITTEN_SHARE_MIN: f64 = 0.9;
/// Share of the range that may be holes: metadata, not data, answers there.
const UNWRITTEN_FRACTION_MAX: f64 = 0.01;

pub(super) fn memory_target(evidence: &Evidence<'_>) -> Option<String> {
    let memory = targets(evidence).find_map(|target| {
        let name = place_of(evidence, target).and_then(place::memory_behind)?;
        Some((target, name))
    });
    memory.map(|(target, name)| format!("{} is in memory ({name}): no drive is measured", target.path))
}

pub(super) fn page_cache(evidence: &Evidence<'_>) -> Option<String> {
    let plan = evidence.plan.of::<MediaPlan>()?;
    if !plan.reads() || !through_page_cache(evidence) || plan.cache == CachePolicy::Warm {
        return None;
    }
    if let Some(cached) =
        evidence.observations.cached_before_fraction.filter(|&cached| cached > CACHED_FRACTION_MAX)
    {
        return Some(format!("{} of the range was in the page cache before the phase", percent(cached)));
    }
    let read = evidence.bytes_of("read");
    let share = path::least_read_bytes(evidence)? as f64 / read as f64;
    // Of what is stored compressed the device gives less.
    let is_encoded = evidence.observations.range.encoded_fraction.is_some_and(|share| share > 0.0);
    (read > 0 && share < DEVICE_READ_SHARE_MIN && !is_encoded).then(|| {
        format!(
            "the device delivered {} of the bytes read: the rest came from memory",
            at_most(evidence, share)
        )
    })
}

pub(super) fn unwritten_range(evidence: &Evidence<'_>) -> Option<String> {
    let unwritten = evidence.observations.unwritten_fraction?;
    (evidence.plan.of::<MediaPlan>()?.reads() && unwritten > UNWRITTEN_FRACTION_MAX).then(|| {
        format!("{} of the range was never written: reads there do not access the medium", percent(unwritten))
    })
}

pub(super) fn buffered_writes(evidence: &Evidence<'_>) -> Option<String> {
    let plan = evidence.plan.of::<MediaPlan>()?;
    let options = &plan.options;
    let each_is_durable = options.sync != SyncMode::None || options.rwf_dsync || options.map_sync;
    if plan.mix.write_percent == 0 || each_is_durable || !through_page_cache(evidence) {
        return None;
    }
    let written = evidence.bytes_of("write");
    let reached = path::least_written_bytes(evidence).filter(|_| written > 0);
    let share = reached.map(|reached| (reached as f64 / written as f64).min(1.0));
    let shrinks = !matches!(plan.content.content, ContentChoice::Random)
        || plan.content.compress_percent > 0
        || plan.content.dedupe_percent > 0;
    match share {
        _ if !is_synced(evidence) => Some(match share {
            // Write-back of others counts too: all of it says nothing.
            Some(share) if share < 1.0 && evidence.is_alone => format!(
                "writes end in the page cache and are not made durable: only {} reached the device",
                percent(share)
            ),
            _ => "writes end in the page cache and are not made durable".to_owned(),
        }),
        Some(share) if share < DEVICE_WRITTEN_SHARE_MIN && !shrinks => Some(format!(
            "{} of the bytes written reached the device: blocks were overwritten in the page cache",
            at_most(evidence, share)
        )),
        _ => None,
    }
}

/// A share of what a device did: what it did for others that ran at the same time is in it.
pub(super) fn at_most(evidence: &Evidence<'_>, share: f64) -> String {
    let words = if evidence.is_alone { "" } else { "at most " };
    format!("{words}{}", percent(share))
}

/// Whether writes were made durable at least once: `--fsync 1000` does nothing for the first 999 of them.
pub(super) fn is_synced(evidence: &Evidence<'_>) -> bool {
    let asked = evidence.plan.stops_to_sync();
    let done = evidence.summary.classes.iter().find(|class| class.class == "sync");
    asked && done.is_none_or(|class| class.operations > 0)
}

/// Whether no write is smaller than what file systems and drives compress as one (btrfs: 128 KiB, ZFS: records of 1 MiB): random bytes that come again only after so
/// many do not shrink, and the stamps keep copies of blocks from being found.
fn writes_are_large(plan: &MediaPlan) -> bool {
    const BYTES_MIN: u64 = 1 << 20;
    plan.block_size.parse::<ClassSizes>().is_ok_and(|sizes| sizes.min() >= BYTES_MIN)
}

pub(super) fn compressible_content(evidence: &Evidence<'_>) -> Option<String> {
    let plan = evidence.plan.of::<MediaPlan>()?;
    let content = &plan.content;
    if plan.mix.write_percent == 0 || plan.verify_interval_bytes.is_some() {
        return None;
    }
    let what = match &content.content {
        ContentChoice::Zero => "only zeros are written".to_owned(),
        ContentChoice::Bytes(_) => "one short pattern is written repeatedly".to_owned(),
        ContentChoice::Random if content.compress_percent > 0 => {
            format!("{}% of the data is compressible", content.compress_percent)
        }
        ContentChoice::Random if content.dedupe_percent > 0 => {
            format!("{}% of the data are duplicates", content.dedupe_percent)
        }
        ContentChoice::Random => match content.refill {
            Refill::Full => return None,
            Refill::Stamp if writes_are_large(plan) => return None,
            Refill::Stamp => "only 16 bytes of each 4 KiB change".to_owned(),
            Refill::Once => "buffers are filled once and written repeatedly".to_owned(),
        },
    };
    let who = targets(evidence).find_map(|target| place::compressor(place_of(evidence, target)))?;
    Some(format!("{what}; {who}"))
}
