//! Takes back updates of erasure-coded single values that a kill cut off between two cells. They were never acknowledged, and too few of
//! their cells are there to read them; but aggregation would drop cells of the value before from under them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use workload::object::Redundancy;

use super::error::StoreError;
use super::target::Target;
use super::types::{Anchor, ContainerId, Place, Read};
use crate::erasure::Tag;
use crate::model::{Epoch, ObjectId};
use crate::placement::Placement;

/// Keys that are listed at a time.
const KEYS: usize = 1024;
/// Versions of a value that are looked at.
const VERSIONS_MAX: usize = 64;

/// A version of a cell.
#[derive(Clone, Copy)]
struct Cell {
    tag: Tag,
    epoch: Epoch,
}

/// Takes back what was cut off, in all containers. To be called when the log was read after a kill, before anything is aggregated.
/// How many updates there were.
///
/// # Errors
/// [`StoreError`] of reads and writes. What is damaged is left as it is.
pub(super) fn take_back(targets: &[Arc<Target>], containers: &[ContainerId]) -> Result<u64, StoreError> {
    let mut count = 0;
    for &container in containers {
        let mut objects = BTreeMap::new();
        for target in targets {
            listed(|anchor| {
                target.list_objects(container, None, anchor, KEYS, &mut |object| {
                    objects.extend(coded(object, targets.len()).map(|placement| (object, placement)));
                })
            })?;
        }
        for (object, placement) in objects {
            count += take_back_in(targets, container, object, placement)?;
        }
    }
    Ok(count)
}

/// Where the cells of an object lie; none where it has none.
fn coded(object: ObjectId, targets: usize) -> Option<Placement> {
    let class = object.class()?;
    let is_coded = matches!(class.redundancy, Redundancy::ErasureCoded { .. });
    Placement::new(class, targets as u32).ok().filter(|_| is_coded)
}

/// Lists to the end. What is not there, or damaged, has no more.
fn listed(mut next: impl FnMut(&mut Anchor) -> Result<usize, StoreError>) -> Result<(), StoreError> {
    let mut anchor = Anchor::START;
    while !anchor.is_end() {
        match next(&mut anchor) {
            Ok(_) => {}
            Err(StoreError::NotFound | StoreError::Damaged) => break,
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn take_back_in(
    targets: &[Arc<Target>],
    container: ContainerId,
    object: ObjectId,
    placement: Placement,
) -> Result<u64, StoreError> {
    let mut dkeys = BTreeSet::new();
    for target in targets {
        listed(|anchor| {
            target.list_dkeys(container, object, None, anchor, KEYS, &mut |dkey| {
                dkeys.insert(dkey.to_vec());
            })
        })?;
    }
    let mut count = 0;
    for dkey in &dkeys {
        let group = placement.group(dkey);
        let shard = |shard| &targets[placement.target(object, group, shard) as usize];
        let shards: Vec<_> = (0..placement.group_size()).map(shard).collect();
        let place = Place { container, object, dkey, akey: &[] };
        let mut akeys = BTreeSet::new();
        for target in &shards {
            listed(|anchor| {
                target.list_akeys(&place, None, anchor, KEYS, &mut |akey| {
                    akeys.insert(akey.to_vec());
                })
            })?;
        }
        for akey in &akeys {
            count += take_back_one(&shards, &Place { akey, ..place }, placement.redundancy())?;
        }
    }
    Ok(count)
}

/// Takes back what is newer than the latest update that can be read, or all where none ever was whole. How many updates there were.
pub(super) fn take_back_one(
    shards: &[&Arc<Target>],
    place: &Place<'_>,
    redundancy: Redundancy,
) -> Result<u64, StoreError> {
    let Redundancy::ErasureCoded { data, .. } = redundancy else { return Ok(0) };
    let data = usize::from(data);
    match histories(shards, place, 1) {
        Ok(latest) if is_cut_off(&latest, data) => {}
        // Damaged, or no single value.
        Ok(_) | Err(StoreError::Damaged | StoreError::WrongKind) => return Ok(0),
        Err(error) => return Err(error),
    }
    let histories = match histories(shards, place, VERSIONS_MAX) {
        Err(StoreError::Damaged) => return Ok(0),
        histories => histories?,
    };
    let kept = match last_whole(&histories, data) {
        // A whole one puts a cell into every shard, and the last of it stays there.
        None if histories.iter().all(|history| !history.is_empty()) => return Ok(0),
        kept => kept.unwrap_or(0),
    };
    let mut stamps = BTreeSet::new();
    for (target, history) in shards.iter().zip(&histories) {
        for cell in history.iter().filter(|cell| cell.epoch > kept) {
            match target.discard(place.container, cell.epoch..=cell.epoch) {
                // There is no room to note it: it is as it was.
                Err(StoreError::ScmFull) => return Ok(stamps.len() as u64),
                done => drop(done?),
            }
            stamps.insert(cell.tag.stamp);
        }
    }
    Ok(stamps.len() as u64)
}

/// Whether there are cells, and too few of the latest update.
fn is_cut_off(latest: &[Vec<Cell>], data: usize) -> bool {
    let cells = || latest.iter().flatten();
    let newest = cells().max_by_key(|cell| cell.epoch);
    newest.is_some_and(|newest| cells().filter(|cell| cell.tag == newest.tag).count() < data)
}

/// The last epoch of the latest update that has enough cells.
fn last_whole(histories: &[Vec<Cell>], data: usize) -> Option<Epoch> {
    let cells = || histories.iter().flatten();
    let is_whole = |tag: Tag| cells().filter(|cell| cell.tag == tag).count() >= data;
    cells().filter(|cell| is_whole(cell.tag)).map(|cell| cell.epoch).max()
}

/// The last versions of each shard's cell, newest first.
fn histories(
    shards: &[&Arc<Target>],
    place: &Place<'_>,
    versions_max: usize,
) -> Result<Vec<Vec<Cell>>, StoreError> {
    let history = |target: &&Arc<Target>| {
        let mut found: Vec<Cell> = Vec::new();
        while found.len() < versions_max
            && let Some(cell) = cell(target, place, found.last().map(|cell| cell.epoch - 1))?
        {
            found.push(cell);
        }
        Ok(found)
    };
    shards.iter().map(history).collect()
}

fn cell(target: &Target, place: &Place<'_>, epoch: Option<Epoch>) -> Result<Option<Cell>, StoreError> {
    let found = target.size_of(place, epoch).and_then(|bytes| {
        let mut value = vec![0; bytes as usize];
        let found = target.fetch(place, Read::Single, epoch, &mut value)?;
        let (_, tag) = Tag::split(&value).ok_or(StoreError::Damaged)?;
        Ok(Cell { tag, epoch: found.epoch })
    });
    match found {
        Err(StoreError::NotFound) => Ok(None),
        found => found.map(Some),
    }
}
