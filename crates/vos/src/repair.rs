//! Takes back changes of several targets that a failure cut off. They were never acknowledged; what was built on them was not either, and goes
//! with them: acknowledging a change makes all earlier ones of its shards durable.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use crate::Redundancy;

use super::error::StoreError;
use super::storage_target::{Mark, Target};
use super::transaction::Transaction;
use super::types::{ContainerId, KeyPath, Read};
use crate::erasure::Tag;
use crate::model::{Epoch, ObjectId};
use crate::placement::Placement;

/// Versions of a value that are looked at.
const VERSIONS_MAX: usize = 64;

/// A version of a cell.
#[derive(Clone, Copy)]
struct Cell {
    tag: Tag,
    epoch: Epoch,
}

/// Records that the logs have of a change.
#[derive(Debug, Default)]
struct Found {
    /// Target and record; a record that was moved may be there twice.
    marks: Vec<(usize, Mark)>,
}

impl Found {
    fn targets(&self) -> BTreeSet<usize> {
        self.marks.iter().map(|(target, _)| *target).collect()
    }

    fn transaction(&self) -> Transaction {
        self.marks.first().map_or(Transaction::NONE, |(_, mark)| mark.transaction)
    }

    fn is_whole(&self) -> bool {
        self.targets().len() >= self.transaction().parts()
    }

    /// Whether what it was computed from is lost as a whole. `epochs` are those of all that the logs have.
    fn is_orphan(&self, epochs: &HashSet<(usize, Epoch)>, settled: Epoch, damaged: &[bool]) -> bool {
        let after = self.transaction().after();
        // What is not later may have been aggregated.
        if after <= settled {
            return false;
        }
        let first_parity = self.marks.first().and_then(|(target, mark)| {
            let Redundancy::ErasureCoded { data, .. } = mark.object.class()?.redundancy else { return None };
            group_of(mark.object, *target, damaged.len())?.get(usize::from(data)).copied()
        });
        first_parity.is_some_and(|number| !damaged[number] && !epochs.contains(&(number, after)))
    }

    /// Whether parts of it may be missing because a log is damaged: that is no cut.
    fn may_be_damaged(&self, damaged: &[bool]) -> bool {
        let (Some((target, mark)), own) = (self.marks.first(), self.targets()) else { return false };
        let of_group = group_of(mark.object, *target, damaged.len());
        of_group.is_none_or(|group| group.iter().any(|number| damaged[*number] && !own.contains(number)))
    }
}

/// The targets of the group of an object that a target belongs to.
fn group_of(object: ObjectId, target: usize, targets: usize) -> Option<Vec<usize>> {
    let placement = Placement::new(object.class()?, targets as u32).ok()?;
    (0..placement.groups()).find_map(|group| {
        let shards = 0..placement.group_size();
        let numbers: Vec<_> = shards.map(|shard| placement.target(object, group, shard) as usize).collect();
        numbers.contains(&target).then_some(numbers)
    })
}

/// Places of changes that were cut off so far, to find what was built on it.
#[derive(Default)]
struct Lost {
    dkeys: BTreeSet<(ContainerId, ObjectId, u64)>,
    /// Objects as a whole, with the targets of the group.
    objects: HashMap<(ContainerId, ObjectId), BTreeSet<usize>>,
}

impl Lost {
    fn add(&mut self, found: &Found) {
        for (target, mark) in &found.marks {
            if mark.is_of_object {
                self.objects.entry((mark.container, mark.object)).or_default().insert(*target);
            } else {
                self.dkeys.insert((mark.container, mark.object, mark.dkey));
            }
        }
    }

    fn reaches(&self, found: &Found) -> bool {
        let Some((_, mark)) = found.marks.first() else { return false };
        let is_of_dkey = !mark.is_of_object && self.dkeys.contains(&(mark.container, mark.object, mark.dkey));
        let of_object = self.objects.get(&(mark.container, mark.object));
        is_of_dkey || of_object.is_some_and(|targets| !targets.is_disjoint(&found.targets()))
    }
}

/// Takes back what was cut off, and finishes discards that were. To be called when all logs were read after a failure, before anything is
/// aggregated; a target that cannot be opened is none. Changes up to `settled` are whole. How many changes there were.
///
/// # Errors
/// [`StoreError`] of reads and writes.
pub(super) fn take_back(targets: &[Option<Arc<Target>>], settled: Epoch) -> Result<u64, StoreError> {
    let (mut all, mut epochs): (BTreeMap<Epoch, Found>, HashSet<_>) = Default::default();
    let mut damaged = vec![true; targets.len()];
    for (number, target) in targets.iter().enumerate() {
        let Some(target) = target else { continue };
        let marks = target.take_marks();
        damaged[number] = marks.is_damaged;
        for mark in marks.all {
            epochs.insert((number, mark.epoch));
            // Of those that are whole only later parts are told, and some are a change of their own.
            if mark.transaction.is_some() && mark.transaction.number() > settled {
                all.entry(mark.transaction.number()).or_default().marks.push((number, mark));
            }
        }
    }
    let (mut lost, mut cut, mut built_on) = (Lost::default(), Vec::new(), Vec::new());
    for found in all.into_values() {
        let is_cut = !found.is_whole() && !found.may_be_damaged(&damaged);
        if !is_cut && !lost.reaches(&found) && !found.is_orphan(&epochs, settled, &damaged) {
            continue;
        }
        lost.add(&found);
        if is_cut { cut.push(found) } else { built_on.push(found) }
    }
    // What was built on others goes first: after another failure those are still there to tell.
    withdraw(targets, &built_on)?;
    withdraw(targets, &cut)?;
    finish_discards(targets)?;
    Ok((cut.len() + built_on.len()) as u64)
}

fn withdraw(targets: &[Option<Arc<Target>>], gone: &[Found]) -> Result<(), StoreError> {
    for (number, target) in targets.iter().enumerate() {
        let own = gone.iter().flat_map(|found| &found.marks).filter(|(target, _)| *target == number);
        let own: Vec<Mark> = own.map(|(_, mark)| *mark).collect();
        if let (Some(target), false) = (target, own.is_empty()) {
            target.withdraw(&own)?;
        }
    }
    Ok(())
}

/// A discard is noted on all targets before anything goes: one that some have noted is carried out on the others.
fn finish_discards(targets: &[Option<Arc<Target>>]) -> Result<(), StoreError> {
    let noted: Vec<_> = targets.iter().flatten().map(|target| target.discards()).collect();
    // Those of one epoch took back a change of one target.
    let of_all: BTreeSet<_> = noted
        .iter()
        .flat_map(|own| {
            own.iter().flat_map(|(id, ranges)| ranges.iter().map(|range| (*id, range.clone().into_inner())))
        })
        .filter(|(_, (first, last))| first < last)
        .collect();
    for (target, own) in targets.iter().flatten().zip(&noted) {
        for (container, (first, last)) in &of_all {
            let has = own.get(container).is_some_and(|ranges| ranges.contains(&(*first..=*last)));
            if !has {
                target.finish_discard(*container, *first..=*last)?;
            }
        }
    }
    Ok(())
}

/// Takes back what is newer than the latest update that can be read, or all where none ever was whole. How many updates there were.
pub(super) fn take_back_one(
    shards: &[&Arc<Target>],
    place: &KeyPath<'_>,
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
    place: &KeyPath<'_>,
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

fn cell(target: &Target, place: &KeyPath<'_>, epoch: Option<Epoch>) -> Result<Option<Cell>, StoreError> {
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
