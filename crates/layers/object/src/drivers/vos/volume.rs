//! A container spread over targets: values go to the shards that their class says, and come back from those that have them whole.

use std::sync::Arc;

use driver::Findings;
use vos::Redundancy;
use vos::coded::{Coded, Group, extent_of};
use vos::model::{Epoch, Key, ObjectId};
use vos::placement::Placement;
use vos::{
    Ack, Aggregated, Anchor, ContainerId, Iterated, KeyPath, Largest, Order, Punch, Read, StoreError, Target,
    Write, punch_all, update_all,
};

use crate::plan::ObjectPlan;

/// Object, dkey and akey.
#[derive(Clone, Copy)]
pub(super) struct At<'a> {
    pub(super) object: ObjectId,
    pub(super) dkey: &'a [u8],
    pub(super) akey: &'a [u8],
}

/// One worker's view of a container.
pub(super) struct Volume {
    pub(super) targets: Vec<Arc<Target>>,
    pub(super) container: ContainerId,
    pub(super) placement: Placement,
    /// When changes are acknowledged.
    pub(super) ack: Ack,
    /// The snapshot that is read; none: the latest versions are.
    epoch: Option<Epoch>,
    coded: Option<Coded>,
    /// Where a value lies on several targets: their order.
    locks: Option<Arc<Order>>,
    /// Targets with changes that wait for a commit.
    dirty: Vec<bool>,
    findings: Findings,
    /// Values that were served although a copy or a cell of them was damaged.
    pub(super) repaired: u64,
}

impl Volume {
    pub(super) fn new(
        targets: Vec<Arc<Target>>,
        container: ContainerId,
        placement: Placement,
        plan: &ObjectPlan,
        locks: Arc<Order>,
    ) -> Self {
        let bytes_max = plan.dataset.value_size_bytes_max.max(plan.short_read_bytes.unwrap_or(0)) as usize;
        let is_single = placement.redundancy() == Redundancy::None;
        let own = (!is_single).then_some(locks);
        let coded = match placement.redundancy() {
            Redundancy::ErasureCoded { data, parity } => Some(Coded::new(data, parity, bytes_max)),
            Redundancy::None | Redundancy::Replicated(_) => None,
        };
        Self {
            dirty: vec![false; targets.len()],
            targets,
            container,
            placement,
            ack: Ack::AsConfigured,
            epoch: plan.snapshot,
            coded,
            locks: own,
            findings: Findings::new(),
            repaired: 0,
        }
    }

    /// The target of a shard of the group of a dkey.
    #[inline]
    pub(super) fn shard(&self, at: &At<'_>, shard: usize) -> usize {
        self.placement.target(at.object, self.placement.group(at.dkey), shard as u32) as usize
    }

    #[inline]
    pub(super) fn place<'a>(&self, at: &At<'a>) -> KeyPath<'a> {
        KeyPath { container: self.container, object: at.object, dkey: at.dkey, akey: at.akey }
    }

    #[inline]
    pub(super) fn touch(&mut self, target: usize) {
        if self.ack == Ack::Deferred {
            self.dirty[target] = true;
        }
    }

    /// Makes durable what was deferred.
    pub(super) fn commit(&mut self) -> Result<(), StoreError> {
        let mut result = Ok(());
        for (target, dirty) in self.targets.iter().zip(&mut self.dirty) {
            if std::mem::take(dirty) {
                result = result.and(target.commit());
            }
        }
        result
    }

    /// Does something to the cells of a dkey; none where values are not coded.
    #[inline]
    fn with_cells<T>(
        &mut self,
        at: &At<'_>,
        act: impl FnOnce(&mut Coded, &Group<'_>) -> Result<T, StoreError>,
    ) -> Option<Result<T, StoreError>> {
        let place = self.place(at);
        let (coded, order) = (self.coded.as_mut()?, self.locks.as_deref()?);
        let (targets, placement) = (&self.targets[..], &self.placement);
        let (ack, epoch) = (self.ack, self.epoch);
        let result = act(coded, &Group { targets, order, placement, place, ack, epoch });
        if coded.take_flaw().is_some() && result.is_ok() {
            self.note_repair(at, "the value was reconstructed from its other cells");
        }
        Some(result)
    }

    /// Changes cells, and notes what waits for a commit.
    fn change_cells(
        &mut self,
        at: &At<'_>,
        act: impl FnOnce(&mut Coded, &Group<'_>) -> Result<(), StoreError>,
    ) -> Option<Result<(), StoreError>> {
        let result = self.with_cells(at, act)?;
        (0..self.placement.group_size() as usize).for_each(|shard| self.touch(self.shard(at, shard)));
        Some(result)
    }

    /// Writes a single value or an extent to all shards that hold it.
    #[inline]
    pub(super) fn write(&mut self, at: &At<'_>, write: Write, data: &[u8]) -> Result<(), StoreError> {
        if let Some(written) = self.change_cells(at, |coded, group| coded.write(group, write, data)) {
            return written;
        }
        let Some(locks) = self.locks.clone() else {
            let target = self.shard(at, 0);
            self.targets[target].update(&self.place(at), write, data, self.ack)?;
            self.touch(target);
            return Ok(());
        };
        let turn = locks.of(at.object, at.dkey);
        self.copies(at, |volume, copies| {
            update_all(&turn, volume.place(at), copies, (write, data), volume.ack)
        })
    }

    /// Changes the copies of a dkey. That which is read comes last: what is seen before it is acknowledged is on all of them.
    fn copies(
        &mut self,
        at: &At<'_>,
        change: impl FnOnce(&Self, &[&Arc<Target>]) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let numbers = (0..self.placement.group_size() as usize).rev().map(|shard| self.shard(at, shard));
        let targets: Vec<&Arc<Target>> = numbers.map(|number| &self.targets[number]).collect();
        let changed = change(self, &targets);
        (0..self.placement.group_size() as usize).for_each(|shard| self.touch(self.shard(at, shard)));
        changed
    }

    /// Reads a single value or an extent; returns where the last stored byte ends. A copy that is damaged is passed over.
    #[inline]
    pub(super) fn read(&mut self, at: &At<'_>, read: Read, into: &mut [u8]) -> Result<u64, StoreError> {
        if let Some(found) = self.with_cells(at, |coded, group| coded.read(group, read, into)) {
            return found;
        }
        let mut result = Err(StoreError::NotFound);
        for shard in 0..self.placement.group_size() as usize {
            let target = self.shard(at, shard);
            let found = self.targets[target].fetch(&self.place(at), read, self.epoch, into);
            result = found.map(|found| found.end_bytes);
            if result != Err(StoreError::Damaged) {
                if shard > 0 {
                    self.note_repair(at, "another copy was read");
                }
                break;
            }
            self.collect_findings(target);
        }
        result
    }

    /// Size of a single value, or end of the last extent.
    pub(super) fn size_of(&mut self, at: &At<'_>) -> Result<u64, StoreError> {
        if let Some(size) = self.with_cells(at, Coded::size_of) {
            return size;
        }
        self.targets[self.shard(at, 0)].size_of(&self.place(at), self.epoch)
    }

    /// Removes something of a dkey from all shards that hold it.
    pub(super) fn punch(&mut self, at: &At<'_>, what: Punch) -> Result<(), StoreError> {
        if let Punch::Record { offset_bytes, bytes } = what {
            let punch =
                |coded: &mut Coded, group: &Group<'_>| coded.punch(group, &extent_of(offset_bytes, bytes)?);
            if let Some(punched) = self.change_cells(at, punch) {
                return punched;
            }
        }
        let Some(locks) = self.locks.clone() else {
            let target = self.shard(at, 0);
            self.targets[target].punch(&self.place(at), what, self.ack)?;
            self.touch(target);
            return Ok(());
        };
        let turn = locks.of(at.object, at.dkey);
        self.copies(at, |volume, copies| punch_all(&turn, volume.place(at), copies, what, volume.ack))
    }

    /// Removes an object from all its targets.
    pub(super) fn punch_object(&mut self, object: ObjectId) -> Result<(), StoreError> {
        let at = At { object, dkey: &[], akey: &[] };
        let locks = self.locks.clone();
        let turns = locks.as_ref().map(|locks| locks.all());
        let turn = turns.as_ref().and_then(|turns| turns.first());
        let mut result = Err(StoreError::NotFound);
        for group in 0..self.placement.groups() {
            let shards = (0..self.placement.group_size()).rev();
            let numbers: Vec<usize> =
                shards.map(|shard| self.placement.target(object, group, shard) as usize).collect();
            let targets: Vec<&Arc<Target>> = numbers.iter().map(|number| &self.targets[*number]).collect();
            let punched = match turn {
                Some(turn) => punch_all(turn, self.place(&at), &targets, Punch::Object, self.ack),
                None => targets[0].punch(&self.place(&at), Punch::Object, self.ack).map(drop),
            };
            result = any_found(result, punched)?;
            numbers.into_iter().for_each(|number| self.touch(number));
        }
        result
    }

    /// The largest integer dkey of an object, and the end of the array under it.
    pub(super) fn largest(&mut self, object: ObjectId, akey: &[u8]) -> Result<Largest, StoreError> {
        let mut best: Option<Largest> = None;
        let data = self.coded.as_ref().map_or(1, Coded::data);
        for group in 0..self.placement.groups() {
            for shard in 0..data {
                let target = self.placement.target(object, group, shard as u32) as usize;
                let found = match self.targets[target].largest(self.container, object, akey, self.epoch) {
                    Ok(found) => found,
                    Err(StoreError::NotFound) => continue,
                    Err(error) => return Err(error),
                };
                let end_bytes = match &self.coded {
                    Some(coded) => coded.array_end(shard, found.end_bytes),
                    None => found.end_bytes,
                };
                let found = Largest { dkey: found.dkey, end_bytes };
                let key = |largest: &Largest| (largest.dkey, largest.end_bytes);
                if best.is_none_or(|best| key(&best) < key(&found)) {
                    best = Some(found);
                }
            }
        }
        best.ok_or(StoreError::NotFound)
    }

    /// Visits all that an object holds: its records (of erasure-coded ones, cells of data and parity of the first shard).
    pub(super) fn iterate(&self, object: ObjectId) -> Result<Iterated, StoreError> {
        let mut all = Iterated::default();
        let mut result = Err(StoreError::NotFound);
        for group in 0..self.placement.groups() {
            let target = self.placement.target(object, group, 0) as usize;
            let visited = self.targets[target].iterate(self.container, Some(object), self.epoch, true, true);
            if let Ok(visited) = visited {
                all.dkeys += visited.dkeys;
                all.akeys += visited.akeys;
                all.records += visited.records;
            }
            result = any_found(result, visited.map(drop))?;
        }
        result.map(|()| all)
    }

    /// Does something on every target.
    pub(super) fn on_all(
        &self,
        act: impl Fn(&Target) -> Result<Aggregated, StoreError>,
    ) -> Result<Aggregated, StoreError> {
        let mut all = Aggregated::default();
        for target in &self.targets {
            all += act(target)?;
        }
        Ok(all)
    }

    /// The next dkeys of an object in one of its groups.
    pub(super) fn list_group(
        &mut self,
        object: ObjectId,
        group: u32,
        anchor: &mut Anchor,
        max: usize,
        visit: &mut dyn FnMut(&[u8]),
    ) -> Result<usize, StoreError> {
        let target = self.placement.target(object, group, 0) as usize;
        let listed = self.targets[target].list_dkeys(self.container, object, self.epoch, anchor, max, visit);
        if listed == Err(StoreError::Damaged) {
            self.collect_findings(target);
        }
        listed
    }

    /// Keeps what a target found damaged.
    #[cold]
    pub(super) fn collect_findings(&mut self, target: usize) {
        for line in self.targets[target].take_findings() {
            self.note(line);
        }
    }

    /// A value was served although a part of it is damaged.
    #[cold]
    pub(super) fn note_repair(&mut self, at: &At<'_>, how: &str) {
        self.repaired += 1;
        let name =
            |key: &[u8]| Key::new(key).map_or_else(|| key.escape_ascii().to_string(), |key| key.to_string());
        self.note(format!(
            "object {} dkey {} akey {}: partly damaged; {how}",
            at.object,
            name(at.dkey),
            name(at.akey)
        ));
    }

    fn note(&mut self, line: String) {
        self.findings.add(|| line);
    }

    pub(super) fn take_findings(&mut self) -> Vec<String> {
        (0..self.targets.len()).for_each(|target| self.collect_findings(target));
        self.findings.take()
    }
}

/// Result of several targets together: something was found if one of them found it; any other error counts.
pub(super) fn any_found(
    before: Result<(), StoreError>,
    now: Result<(), StoreError>,
) -> Result<Result<(), StoreError>, StoreError> {
    match now {
        Err(StoreError::NotFound) => Ok(before),
        Err(error) => Err(error),
        Ok(()) => Ok(Ok(())),
    }
}
