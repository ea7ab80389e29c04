//! Claims of runs in the containers of a pool, and the end of a run.

use std::sync::Arc;

use crate::Redundancy;
use driver::Error;

use super::containers::Row;
use super::pool::Pool;
use super::{Ack, Anchor, ContainerId, KeyPath, Punch, StoreError, Target, punch_all};
use crate::claims::{Asked, Ending, Found};
use crate::model::ObjectId;
use crate::placement::Placement;

/// Objects that are listed at once.
const PAGE: usize = 4096;

/// Objects of others in a container, in words; none where all is the run's own.
fn of_others(row: &Row, run: u64, objects: &[ObjectId]) -> Option<String> {
    if let Some(other) = row.claims.other(run) {
        return Some(format!("run {other:016x} has stored data in it"));
    }
    if let Some(object) = objects.iter().find(|object| !row.claims.is_of(run, **object)) {
        return Some(format!("it holds object {object}, which this run did not store"));
    }
    (!row.snapshots.is_empty()).then(|| "it has snapshots".to_owned())
}

impl Pool {
    /// Claims objects of a container for a run, durably. Returns what is in the way, where others' data are; nothing is claimed then.
    ///
    /// # Errors
    /// There is no such container, it cannot be listed, the table cannot be written.
    pub fn claim(&self, label: &str, asked: &Asked) -> Result<Option<Found>, Error> {
        let mut table = self.containers.lock();
        let row = table.of_label(label).ok_or_else(|| no_container(label))?;
        if row.claims.has(asked) {
            return Ok(None);
        }
        let collision = row.claims.collision(asked);
        if collision.is_some() && !asked.destroys {
            return Ok(collision);
        }
        // Nobody stores in a container of this run's own without a claim.
        let objects = if row.maker == Some(asked.run) { Vec::new() } else { self.objects_of(row.id)? };
        let mut met = objects.iter().filter(|object| asked.ids.has(**object));
        let is_others = |object: &&ObjectId| !row.claims.leaves(**object, asked);
        if let (Some(object), false) = (met.clone().find(is_others), asked.destroys) {
            return Ok(Some(Found { object: Some(object.to_string()), run: None, is_kept: false }));
        }
        let found_any = met.any(|object| !row.claims.is_fresh(asked.run, *object));
        let before = row.claims.clone();
        row.claims.enter(asked, found_any);
        let written = table.write_or_error();
        if let (Err(_), Some(row)) = (&written, table.of_label(label)) {
            row.claims = before;
        }
        written.map(|()| None)
    }

    /// Notes that what a run stored stays: its owner's later runs may change it.
    ///
    /// # Errors
    /// The table cannot be written.
    pub fn keep(&self, run: u64) -> Result<(), Error> {
        let mut table = self.containers.lock();
        let changed = table.rows.iter_mut().filter_map(|row| row.claims.keep(run).then_some(())).count();
        if changed > 0 { table.write_or_error() } else { Ok(()) }
    }

    /// Ends a run in a container: destroys it where the run made it and all that is in it is the run's own, and otherwise removes the
    /// objects that are there because of the run alone. With `only_looks` nothing is changed.
    ///
    /// # Errors
    /// A container that cannot be listed or removed, a table that cannot be written.
    pub fn end_run(&self, label: &str, run: u64, only_looks: bool) -> Result<Ending, Error> {
        let mut table = self.containers.lock();
        let Some(at) = table.rows.iter().position(|row| row.label == label) else {
            return Ok(Ending::Nothing);
        };
        let row = &mut table.rows[at];
        let is_made = row.maker == Some(run);
        if !is_made && !row.claims.names(run) {
            return Ok(Ending::Nothing);
        }
        let objects = self.objects_of(row.id)?;
        let others = of_others(row, run, &objects);
        if is_made && others.is_none() {
            if !only_looks {
                self.destroy_row(&mut table, at)?;
            }
            return Ok(Ending::Destroyed);
        }
        let own: Vec<ObjectId> =
            objects.into_iter().filter(|object| row.claims.is_fresh(run, *object)).collect();
        let ending = Ending::Cleared { objects: own.len() as u64, why: others.filter(|_| is_made) };
        if only_looks {
            return Ok(ending);
        }
        self.remove_objects(row.id, &own)?;
        row.claims.release(run);
        table.write_or_error().map(|()| ending)
    }

    /// Why the pool is not all of one run: a container that has something of others, or is others'. One line each.
    ///
    /// # Errors
    /// A container that cannot be listed.
    pub fn of_others(&self, run: u64) -> Result<Vec<String>, Error> {
        let table = self.containers.lock();
        let mut lines = Vec::new();
        for row in &table.rows {
            let why = match row.maker == Some(run) {
                true => of_others(row, run, &self.objects_of(row.id)?),
                false => Some("this run did not create it".to_owned()),
            };
            lines.extend(why.map(|why| format!("container {}: {why}", row.label)));
        }
        Ok(lines)
    }

    /// All objects of a container that are there now, each once.
    fn objects_of(&self, container: ContainerId) -> Result<Vec<ObjectId>, Error> {
        let mut all = Vec::new();
        for target in self.targets() {
            let mut anchor = Anchor::START;
            while !anchor.is_end {
                let listed = target.list_objects(container, None, &mut anchor, PAGE, &mut |id| all.push(id));
                listed.map_err(|error| failed("cannot list the objects of the container", error))?;
            }
        }
        all.sort_unstable();
        all.dedup();
        Ok(all)
    }

    fn remove_objects(&self, container: ContainerId, objects: &[ObjectId]) -> Result<(), Error> {
        let cannot = |error| failed("cannot remove the objects of the run", error);
        for &object in objects {
            let place = KeyPath { container, object, dkey: &[], akey: &[] };
            let turns = self.order().all();
            for group in self.groups_of(object) {
                let removed = match (group.as_slice(), turns.first()) {
                    ([_, _, ..], Some(turn)) => punch_all(turn, place, &group, Punch::Object, Ack::Deferred),
                    _ => group
                        .iter()
                        .try_for_each(|target| target.punch(&place, Punch::Object, Ack::Deferred).map(drop)),
                };
                match removed {
                    Ok(()) | Err(StoreError::NotFound) => {}
                    Err(error) => return Err(cannot(error)),
                }
            }
        }
        self.targets().iter().try_for_each(|target| target.commit()).map_err(cannot)
    }

    /// The targets of an object: those of each group where it has copies or cells, else each by itself.
    fn groups_of(&self, object: ObjectId) -> Vec<Vec<&Arc<Target>>> {
        let spread = object.class().filter(|class| class.redundancy != Redundancy::None);
        let placement = spread.and_then(|class| Placement::new(class, self.targets().len() as u32).ok());
        let Some(placement) = placement else {
            return self.targets().iter().map(|target| vec![target]).collect();
        };
        let number = |group, shard| placement.target(object, group, shard) as usize;
        let group =
            |group| (0..placement.group_size()).map(|shard| self.target(number(group, shard))).collect();
        (0..placement.groups()).map(group).collect()
    }
}

fn failed(message: &'static str, error: StoreError) -> Error {
    Error::system("container", message, error)
}

fn no_container(label: &str) -> Error {
    Error::usage("container", "the pool has no container with this label").with("label", label)
}
