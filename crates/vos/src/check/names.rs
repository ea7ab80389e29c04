//! Keys that lie on several targets: their copies and cells are compared, and mended.

use std::sync::Arc;

use crate::Redundancy;

use super::report::{Finding, FindingKind};
use super::{Examined, cells, copies};
use crate::error::StoreError;
use crate::model::Epoch;
use crate::placement::Placement;
use crate::repair::take_back_one;
use crate::storage_target::Target;
use crate::types::{Ack, ContainerId, KeyPath, Punch, Read, Write};

/// Bytes of an array that are compared at a time.
pub(super) const STEP_BYTES: u64 = 64 << 10;

/// A key, and the targets of the shards of its group.
pub(super) struct Key<'a> {
    pub(super) place: KeyPath<'a>,
    pub(super) redundancy: Redundancy,
    pub(super) shards: Vec<(u32, &'a Arc<Target>)>,
    /// Shards on targets of which a part of the log was lost.
    pub(super) holed: Vec<bool>,
}

/// A remedy of one shard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Mend {
    Write(Write, Vec<u8>),
    Punch(Punch),
    /// The update that was cut off is taken back on all shards.
    TakeBack,
}

/// A shard that is not as the others say.
#[derive(Clone, Debug)]
pub(super) struct Fault {
    pub(super) shard: usize,
    pub(super) kind: FindingKind,
    pub(super) what: String,
    /// The plan of the repair, or why nothing can be done.
    pub(super) plan: String,
    /// Empty: nothing mends it.
    pub(super) mends: Vec<Mend>,
}

/// State of a value on a shard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Held {
    Value {
        epoch: Epoch,
        bytes: Vec<u8>,
    },
    /// Nothing is visible; what was there last changed at this epoch (0: nothing is known of it).
    Missing {
        since: Epoch,
    },
    Damaged,
}

/// Repairs, and the outcome of each.
#[derive(Debug, Default)]
pub(super) struct Mender {
    pub(super) done: Vec<String>,
    pub(super) left: Vec<String>,
}

/// Compares what lies on several targets. With a mender, faults are mended and not reported.
pub(super) fn compare(
    targets: &[Option<Arc<Target>>],
    examined: &mut Examined,
    mut mender: Option<&mut Mender>,
) {
    let names = std::mem::take(&mut examined.names);
    let mut skipped = 0u64;
    for ((container, object), keys) in &names {
        let placement = object.class().and_then(|class| Placement::new(class, targets.len() as u32).ok());
        let Some(placement) = placement else { continue };
        for (dkey, akey) in keys {
            let group = placement.group(dkey);
            let numbers = (0..placement.group_size()).map(|shard| placement.target(*object, group, shard));
            let shards: Option<Vec<_>> =
                numbers.map(|number| Some((number, targets[number as usize].as_ref()?))).collect();
            let Some(shards) = shards else {
                skipped += 1;
                continue;
            };
            let holed = shards.iter().map(|(number, _)| examined.holed.contains(number)).collect();
            let place = KeyPath { container: *container, object: *object, dkey, akey };
            let key = Key { place, redundancy: placement.redundancy(), shards, holed };
            let faults = match key.redundancy {
                Redundancy::None => continue,
                Redundancy::Replicated(_) => copies::compare(&key),
                Redundancy::ErasureCoded { data, parity } => cells::compare(&key, data, parity),
            };
            examined.report.compared_values += 1;
            match (&mut mender, faults) {
                (Some(mender), Ok(faults)) => mend(&key, &faults, mender),
                (None, Ok(faults)) => report(&key, faults, examined),
                (_, Err(error)) => {
                    let what = format!("its copies cannot be read: {error}");
                    let finding = Finding::new(FindingKind::File, what);
                    let finding = with_place(&key, finding, examined);
                    examined.push(finding.kept("the device or the file system must be repaired first"));
                }
            }
        }
    }
    if skipped > 0 {
        let note = format!(
            "{skipped} values were not compared, because a target with a copy or a cell of them cannot be opened"
        );
        examined.report.notes.push(note);
    }
    examined.names = names;
}

fn with_place(key: &Key<'_>, finding: Finding, examined: &Examined) -> Finding {
    Finding {
        container: Some(examined.label(key.place.container)),
        object: Some(key.place.object.to_string()),
        dkey: Some(key.place.dkey.escape_ascii().to_string()),
        akey: Some(key.place.akey.escape_ascii().to_string()),
        ..finding
    }
}

/// Adds faults to what was found; damage that was found already gets the plan that the others make possible.
fn report(key: &Key<'_>, faults: Vec<Fault>, examined: &mut Examined) {
    for fault in faults {
        let (number, _) = key.shards[fault.shard];
        let can_repair = !fault.mends.is_empty();
        if let Some(found) = examined.finding_of(number, key) {
            (found.plan, found.can_repair) = (fault.plan, can_repair);
            continue;
        }
        let finding = with_place(key, Finding::new(fault.kind, fault.what).on(number), examined);
        examined.push(Finding { plan: fault.plan, can_repair, ..finding });
    }
}

fn mend(key: &Key<'_>, faults: &[Fault], mender: &mut Mender) {
    for fault in faults {
        let (number, target) = key.shards[fault.shard];
        let name = format!(
            "target {number} object {} dkey {} akey {}",
            key.place.object,
            key.place.dkey.escape_ascii(),
            key.place.akey.escape_ascii()
        );
        if fault.mends.is_empty() {
            mender.left.push(format!("{name}: {}: {}", fault.what, fault.plan));
            continue;
        }
        let done = fault.mends.iter().try_for_each(|mend| match mend {
            Mend::Write(write, bytes) => {
                target.update(&key.place, *write, bytes, Ack::AsConfigured).map(drop)
            }
            Mend::Punch(what) => match target.punch(&key.place, *what, Ack::AsConfigured) {
                Ok(_) | Err(StoreError::NotFound) => Ok(()),
                Err(error) => Err(error),
            },
            Mend::TakeBack => {
                let shards: Vec<&Arc<Target>> = key.shards.iter().map(|(_, target)| *target).collect();
                take_back_one(&shards, &key.place, key.redundancy).map(drop)
            }
        });
        match done {
            Ok(()) => mender.done.push(format!("{name}: {}", fault.plan)),
            Err(error) => {
                mender.left.push(format!("{name}: {}: cannot be repaired: {error}", fault.what));
            }
        }
    }
}

/// The single value on a shard.
pub(super) fn held(target: &Target, place: &KeyPath<'_>) -> Result<Held, StoreError> {
    let found = target.size_of(place, None).and_then(|bytes| {
        let mut value = vec![0; bytes as usize];
        let found = target.fetch(place, Read::Single, None, &mut value)?;
        Ok(Held::Value { epoch: found.epoch, bytes: value })
    });
    match found {
        Err(StoreError::NotFound) => Ok(Held::Missing { since: target.last_change(place) }),
        Err(StoreError::Damaged) => Ok(Held::Damaged),
        found => found,
    }
}

/// Visible extents of an array on a shard, as ranges; empty where there is none.
pub(super) fn extents(target: &Target, place: &KeyPath<'_>) -> Result<Vec<std::ops::Range<u64>>, StoreError> {
    let mut found = Vec::new();
    let listed = target.list_extents(place, None, 0, usize::MAX, &mut |extent| {
        found.push(extent.offset_bytes..extent.offset_bytes.saturating_add(extent.bytes));
    });
    match listed {
        Ok(_) | Err(StoreError::NotFound) => Ok(found),
        Err(error) => Err(error),
    }
}

/// Whether an akey holds an array on the first shard that has it.
pub(super) fn is_array(key: &Key<'_>) -> bool {
    key.shards.iter().any(|(_, target)| {
        let listed = target.list_extents(&key.place, None, 0, 1, &mut |_| {});
        matches!(listed, Ok(count) if count > 0)
    })
}

/// Parts of at most [`STEP_BYTES`] that cover all extents, cut at multiples of `unit_bytes`.
pub(super) fn steps(all: &[Vec<std::ops::Range<u64>>], unit_bytes: u64) -> Vec<std::ops::Range<u64>> {
    let mut ranges: Vec<_> = all.iter().flatten().cloned().collect();
    ranges.sort_unstable_by_key(|range| range.start);
    let mut steps: Vec<std::ops::Range<u64>> = Vec::new();
    for range in ranges {
        let whole = range.start / unit_bytes * unit_bytes..range.end.div_ceil(unit_bytes) * unit_bytes;
        let mut at = steps.last().map_or(0, |last| last.end).max(whole.start);
        while at < whole.end {
            let end = (at + STEP_BYTES).min(whole.end);
            steps.push(at..end);
            at = end;
        }
    }
    steps
}

/// The part of `step` that lies in extents.
pub(super) fn within(
    extents: &[std::ops::Range<u64>],
    step: &std::ops::Range<u64>,
) -> Vec<std::ops::Range<u64>> {
    let cut = |range: &std::ops::Range<u64>| range.start.max(step.start)..range.end.min(step.end);
    extents.iter().map(cut).filter(|range| range.start < range.end).collect()
}

/// A part of an array on a shard: none where it is damaged; what is not there is zero.
pub(super) fn part(
    target: &Target,
    place: &KeyPath<'_>,
    step: &std::ops::Range<u64>,
) -> Result<Option<(Epoch, Vec<u8>)>, StoreError> {
    let mut bytes = vec![0; (step.end - step.start) as usize];
    match target.fetch(place, Read::Extent { offset_bytes: step.start }, None, &mut bytes) {
        Ok(found) => Ok(Some((found.epoch, bytes))),
        Err(StoreError::NotFound) => Ok(Some((0, bytes))),
        Err(StoreError::Damaged) => Ok(None),
        Err(error) => Err(error),
    }
}

/// The container of a key, for those that aggregate it.
pub(super) fn containers(examined: &Examined) -> Vec<ContainerId> {
    examined.labels.keys().copied().collect()
}
