//! Cells of erasure-coded values: parity against data, cells that are damaged, missing or of another update.

use std::ops::Range;

use super::names::{Fault, Held, Key, Mend, extents, held, is_array, part, steps, within};
use super::report::FindingKind;
use crate::erasure::{Coder, EXTENT_CELL_BYTES, Tag, cell_bytes, cell_range};
use crate::error::StoreError;
use crate::types::Write;

/// A value of a longer length than this is none: its tag is damaged.
const VALUE_BYTES_MAX: u64 = 1 << 36;

/// Compares the cells of a key.
pub(super) fn compare(key: &Key<'_>, data: u8, parity: u8) -> Result<Vec<Fault>, StoreError> {
    let mut coder = Coder::new(data, parity);
    if is_array(key) { compare_stripes(key, &mut coder) } else { compare_singles(key, &mut coder) }
}

fn compare_singles(key: &Key<'_>, coder: &mut Coder) -> Result<Vec<Fault>, StoreError> {
    let cells =
        key.shards.iter().map(|(_, target)| held(target, &key.place)).collect::<Result<Vec<_>, _>>()?;
    let tags: Vec<Option<(u64, Tag)>> = cells
        .iter()
        .map(|cell| match cell {
            Held::Value { epoch, bytes } => Tag::split(bytes).map(|(_, tag)| (*epoch, tag)),
            _ => None,
        })
        .collect();
    let Some((_, newest)) = tags.iter().flatten().max_by_key(|(epoch, _)| *epoch).copied() else {
        return Ok(Vec::new());
    };
    let count = tags.iter().flatten().filter(|(_, tag)| *tag == newest).count();
    if count < coder.data() {
        return Ok(vec![too_few(key, &cells, count, coder.data())]);
    }
    if newest.value_bytes > VALUE_BYTES_MAX {
        let plan = "write it again, or remove it".to_owned();
        let what = format!("its cells record a size of {} bytes", newest.value_bytes);
        return Ok(vec![Fault { shard: 0, kind: FindingKind::Stripe, what, plan, mends: Vec::new() }]);
    }
    let expected = whole_cells(&cells, newest, coder);
    let mut faults = Vec::new();
    for (shard, (cell, expected)) in cells.iter().zip(expected).enumerate() {
        let what = match cell {
            Held::Value { bytes, .. } if *bytes == expected => continue,
            Held::Value { bytes, .. } if Tag::split(bytes).is_some_and(|(_, tag)| tag == newest) => {
                "its cell does not match the other cells"
            }
            Held::Value { .. } => "its cell belongs to another update",
            Held::Missing { .. } => "its cell is missing",
            Held::Damaged => "its cell is damaged",
        };
        let plan = format!("it is computed from the other cells of update {:016x}", newest.stamp);
        let mends = vec![Mend::Write(Write::Single, expected)];
        faults.push(Fault { shard, kind: FindingKind::Stripe, what: what.to_owned(), plan, mends });
    }
    Ok(faults)
}

/// The newest update has too few cells: it was cut off, or cells of it were lost.
fn too_few(key: &Key<'_>, cells: &[Held], count: usize, data: usize) -> Fault {
    let lost = cells.iter().zip(&key.holed).filter(|(cell, is_holed)| match cell {
        Held::Damaged => true,
        Held::Missing { since: 0 } => **is_holed,
        _ => false,
    });
    let lost = lost.count();
    let what = format!("its newest update has {count} cells, but needs {data}");
    if count + lost >= data {
        let plan = "too many of its cells are damaged or lost: write it again, or remove it".to_owned();
        return Fault { shard: 0, kind: FindingKind::Stripe, what, plan, mends: Vec::new() };
    }
    let plan = "the update was interrupted and never acknowledged: it is rolled back, and the previous value is kept";
    Fault {
        shard: 0,
        kind: FindingKind::Incomplete,
        what,
        plan: plan.to_owned(),
        mends: vec![Mend::TakeBack],
    }
}

/// All cells of an update of which enough are there, each with its tag.
fn whole_cells(cells: &[Held], tag: Tag, coder: &mut Coder) -> Vec<Vec<u8>> {
    let (k, bytes) = (coder.data(), tag.value_bytes as usize);
    let length = cell_bytes(bytes, k);
    let mut all = vec![0; length * (k + coder.parity())];
    let mut present = 0;
    for (shard, cell) in cells.iter().enumerate() {
        let Held::Value { bytes, .. } = cell else { continue };
        match Tag::split(bytes) {
            Some((cell, own)) if own == tag && cell.len() <= length => {
                all[shard * length..][..cell.len()].copy_from_slice(cell);
                present |= 1 << shard;
            }
            _ => {}
        }
    }
    if coder.reconstruct(&mut all, length, present).is_err() {
        // A cell that is too long for its tag is none: the others say nothing against each other.
        let own = |cell: &Held| if let Held::Value { bytes, .. } = cell { bytes.clone() } else { Vec::new() };
        return cells.iter().map(own).collect();
    }
    let (data, parity) = all.split_at_mut(length * k);
    coder.encode(data, length, parity);
    let cut = |shard: usize| match shard.checked_sub(k) {
        None => &data[shard * length..][..cell_range(bytes, k, shard).len()],
        Some(number) => &parity[number * length..][..length],
    };
    (0..cells.len()).map(|shard| [cut(shard), tag.encode().as_slice()].concat()).collect()
}

/// Shards of an array that must be mended, with their extents.
#[derive(Default)]
struct Needs {
    bytes: u64,
    mends: Vec<Mend>,
    is_damaged: bool,
    is_lost: bool,
}

fn compare_stripes(key: &Key<'_>, coder: &mut Coder) -> Result<Vec<Fault>, StoreError> {
    let all =
        key.shards.iter().map(|(_, target)| extents(target, &key.place)).collect::<Result<Vec<_>, _>>()?;
    let mut needs: Vec<Needs> = key.shards.iter().map(|_| Needs::default()).collect();
    for step in steps(&all, EXTENT_CELL_BYTES) {
        let parts = parts(key, &step)?;
        if parts.iter().all(Option::is_some) {
            compare_step(&step, &parts, &all, coder, &mut needs);
            continue;
        }
        // Cell by cell: damage takes no more with it than it must.
        let mut at = step.start;
        while at < step.end {
            let cell = at..at + EXTENT_CELL_BYTES;
            compare_step(&cell, &self::parts(key, &cell)?, &all, coder, &mut needs);
            at = cell.end;
        }
    }
    let fault =
        |(shard, needs): (usize, Needs)| (needs.bytes > 0).then(|| fault_of(shard, needs, coder.data()));
    Ok(needs.into_iter().enumerate().filter_map(fault).collect())
}

fn parts(key: &Key<'_>, step: &Range<u64>) -> Result<Vec<Option<Vec<u8>>>, StoreError> {
    let read = |(_, target): &(u32, &std::sync::Arc<crate::Target>)| {
        Ok(part(target, &key.place, step)?.map(|(_, bytes)| bytes))
    };
    key.shards.iter().map(read).collect()
}

fn compare_step(
    step: &Range<u64>,
    parts: &[Option<Vec<u8>>],
    all: &[Vec<Range<u64>>],
    coder: &mut Coder,
    needs: &mut [Needs],
) {
    let (k, length) = (coder.data(), (step.end - step.start) as usize);
    let mut cells = vec![0; length * parts.len()];
    let mut present = 0u32;
    for (shard, part) in parts.iter().enumerate() {
        if let Some(part) = part {
            cells[shard * length..][..length].copy_from_slice(part);
            present |= 1 << shard;
        }
    }
    let is_restored = coder.reconstruct(&mut cells, length, present).is_ok();
    let mut parity = vec![0; length * coder.parity()];
    if is_restored {
        coder.encode(&cells[..length * k], length, &mut parity);
    }
    let matches = |number: usize, part: &[u8]| *part == parity[number * length..][..length];
    let damaged_data = parts[..k].iter().any(Option::is_none);
    // With cells to spare, what was put together can be held against them.
    let is_sure = parts[k..]
        .iter()
        .enumerate()
        .all(|(number, part)| part.as_ref().is_none_or(|part| !damaged_data || matches(number, part)));
    for (shard, part) in parts.iter().enumerate() {
        let need = &mut needs[shard];
        match (part, shard.checked_sub(k)) {
            (Some(_), None) => continue,
            (Some(part), Some(number)) if damaged_data || matches(number, part) => continue,
            (None, _) => need.is_damaged = true,
            (Some(_), Some(_)) => {}
        }
        need.bytes += length as u64;
        if !is_restored || !is_sure {
            need.is_lost = true;
            continue;
        }
        match shard.checked_sub(k) {
            None => need.mends.extend(within(&all[shard], step).into_iter().map(|range| {
                let from = shard * length + (range.start - step.start) as usize;
                let data = cells[from..from + (range.end - range.start) as usize].to_vec();
                Mend::Write(Write::Extent { offset_bytes: range.start }, data)
            })),
            Some(number) => need.mends.push(Mend::Write(
                Write::Extent { offset_bytes: step.start },
                parity[number * length..][..length].to_vec(),
            )),
        }
    }
}

fn fault_of(shard: usize, needs: Needs, data: usize) -> Fault {
    let bytes = needs.bytes;
    let what = match (needs.is_damaged, shard < data) {
        (true, true) => format!("{bytes} bytes of its cells are damaged"),
        (true, false) => format!("{bytes} bytes of its parity are damaged"),
        (false, _) => format!("{bytes} bytes of its parity do not match its data"),
    };
    let (plan, mends) = if needs.is_lost {
        let plan = "too few of its other cells are intact, or they do not match each other: write it again, or remove it";
        (plan.to_owned(), Vec::new())
    } else if shard < data {
        ("these bytes are recomputed from the other cells and written again".to_owned(), needs.mends)
    } else {
        ("parity is recomputed from the data and written again".to_owned(), needs.mends)
    };
    Fault { shard, kind: FindingKind::Stripe, what, plan, mends }
}
