//! Copies of replicated values against each other. Changes reach them one after the other, so after a kill one of them may be ahead: it is
//! the newest, and never older than what was acknowledged.

use std::ops::Range;

use super::names::{Fault, Held, Key, Mend, extents, held, is_array, part, steps, within};
use super::report::FindingKind;
use crate::error::StoreError;
use crate::types::{Punch, Write};

/// Compares the copies of a key.
pub(super) fn compare(key: &Key<'_>) -> Result<Vec<Fault>, StoreError> {
    if is_array(key) { compare_arrays(key) } else { compare_singles(key) }
}

fn compare_singles(key: &Key<'_>) -> Result<Vec<Fault>, StoreError> {
    let copies =
        key.shards.iter().map(|(_, target)| held(target, &key.place)).collect::<Result<Vec<_>, _>>()?;
    let newest = copies.iter().enumerate().filter_map(|(shard, copy)| match copy {
        Held::Value { epoch, bytes } => Some((*epoch, shard, bytes)),
        _ => None,
    });
    // Where no copy is whole, damage has been found already.
    let Some((epoch, shard, value)) = newest.max_by_key(|(epoch, ..)| *epoch) else { return Ok(Vec::new()) };
    let removed = copies.iter().filter_map(|copy| match copy {
        Held::Missing { since } => Some(*since),
        _ => None,
    });
    let is_removed = removed.max().is_some_and(|since| since > epoch);
    let source = key.shards[shard].0;
    let mut faults = Vec::new();
    for (shard, copy) in copies.iter().enumerate() {
        let fault = |what: &str| {
            let plan = format!("it is rewritten from the copy on target {source} (epoch {epoch})");
            let mends = vec![Mend::Write(Write::Single, value.clone())];
            Fault { shard, kind: FindingKind::Copy, what: what.to_owned(), plan, mends }
        };
        let removal = |what: &str| {
            let plan = "the removal is completed".to_owned();
            let mends = vec![Mend::Punch(Punch::Akey)];
            Fault { shard, kind: FindingKind::Copy, what: what.to_owned(), plan, mends }
        };
        faults.extend(match copy {
            Held::Value { .. } | Held::Damaged if is_removed => {
                Some(removal("a removal was interrupted: it reached other copies, but not this one"))
            }
            Held::Value { bytes, .. } if bytes == value => None,
            Held::Value { .. } => Some(fault("its copy differs from the newest one")),
            Held::Missing { .. } if is_removed => None,
            Held::Missing { .. } => Some(fault("its copy is missing")),
            Held::Damaged => Some(fault("its copy is damaged")),
        });
    }
    Ok(faults)
}

/// Extents that copies of an array need, by shard.
struct Needs {
    what: &'static str,
    bytes: u64,
    source: u32,
    mends: Vec<Mend>,
    is_lost: bool,
}

fn compare_arrays(key: &Key<'_>) -> Result<Vec<Fault>, StoreError> {
    let all =
        key.shards.iter().map(|(_, target)| extents(target, &key.place)).collect::<Result<Vec<_>, _>>()?;
    let mut needs: Vec<Option<Needs>> = key.shards.iter().map(|_| None).collect();
    for step in steps(&all, 1) {
        let parts = key
            .shards
            .iter()
            .map(|(_, target)| part(target, &key.place, &step))
            .collect::<Result<Vec<_>, _>>()?;
        let newest = parts.iter().enumerate().filter_map(|(shard, part)| Some((shard, part.as_ref()?)));
        let newest = newest.max_by_key(|(_, (epoch, _))| *epoch);
        for (shard, part) in parts.iter().enumerate() {
            let is_same = match (newest, part) {
                (Some((newest, (_, bytes))), Some((_, own))) => {
                    own == bytes && within(&all[newest], &step) == within(&all[shard], &step)
                }
                _ => false,
            };
            if is_same {
                continue;
            }
            let own = needs[shard].get_or_insert(Needs {
                what: if part.is_none() {
                    "its copy is damaged"
                } else {
                    "its copy differs from the newest one"
                },
                bytes: 0,
                source: 0,
                mends: Vec::new(),
                is_lost: false,
            });
            own.bytes += step.end - step.start;
            match newest {
                Some((newest, (_, bytes))) => {
                    own.source = key.shards[newest].0;
                    copy_step(&mut own.mends, &step, bytes, &all[newest], &all[shard]);
                }
                None => own.is_lost = true,
            }
        }
    }
    let fault = |(shard, needs): (usize, Option<Needs>)| needs.map(|needs| fault_of(shard, needs));
    Ok(needs.into_iter().enumerate().filter_map(fault).collect())
}

fn fault_of(shard: usize, needs: Needs) -> Fault {
    let what = format!("{} in {} bytes", needs.what, needs.bytes);
    let (plan, mends) = if needs.is_lost {
        ("no copy of one part of it is intact: write it again, or remove it".to_owned(), Vec::new())
    } else {
        (format!("these bytes are rewritten from the copy on target {}", needs.source), needs.mends)
    };
    Fault { shard, kind: FindingKind::Copy, what, plan, mends }
}

/// Makes a step of one copy like the newest: its data is written, and where it has holes, what is there is punched.
fn copy_step(
    mends: &mut Vec<Mend>,
    step: &Range<u64>,
    bytes: &[u8],
    newest: &[Range<u64>],
    own: &[Range<u64>],
) {
    let stored = within(newest, step);
    let mut at = step.start;
    let mut hole = |range: Range<u64>| {
        for part in within(own, &range) {
            mends.push(Mend::Punch(Punch::Record { offset_bytes: part.start, bytes: part.end - part.start }));
        }
    };
    for part in &stored {
        hole(at..part.start);
        at = part.end;
    }
    hole(at..step.end);
    for part in stored {
        let data = &bytes[(part.start - step.start) as usize..(part.end - step.start) as usize];
        mends.push(Mend::Write(Write::Extent { offset_bytes: part.start }, data.to_vec()));
    }
}
