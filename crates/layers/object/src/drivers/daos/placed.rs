//! Objects that a run puts into containers that it did not make: looked at before, noted, and taken away at the end.

use std::sync::Arc;

use driver::Error;
use parking_lot::Mutex;

use crate::plan::Made;

use vos::claims::{Found, Ids};

use super::ids::ObjectIds;
use super::sweep::{Sweep, Task};
use crate::backend::{ConnectRequest, Removing};
use crate::containers::Containers;
use crate::daos::errors::failed;
use crate::daos::session::Container;

/// Objects of the run in one container.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Placed {
    label: String,
    /// UUID of the container.
    id: String,
    objects: ObjectIds,
}

impl Placed {
    fn made(&self) -> Made {
        Made::ObjectIds {
            label: self.label.clone(),
            id: self.id.clone(),
            upper: format!("{:016x}", self.objects.upper),
            first: self.objects.ids.first,
            last: self.objects.ids.last,
        }
    }
}

/// Objects of a run in containers of others.
#[derive(Debug, Default)]
pub(super) struct Placement {
    placed: Mutex<Vec<Placed>>,
    /// Ids that were looked at, by container.
    looked: Mutex<Vec<(String, ObjectIds)>>,
    /// Objects that held something before and may be written over, by label and container.
    kept: Mutex<Vec<(String, String, u64)>>,
}

impl Placement {
    /// Sees that `objects` of a container that the run did not make are left to it: they hold nothing yet, or the run put it there. They are
    /// noted before anything is stored in them.
    ///
    /// # Errors
    /// As [`crate::containers::claim`]; where they cannot be looked at, or noted.
    pub(super) fn claim(
        &self,
        request: &ConnectRequest,
        containers: &Containers,
        container: &Container,
        objects: &ObjectIds,
    ) -> Result<(), Error> {
        let (label, id) = (container.label.to_string_lossy().into_owned(), container.id());
        let known = self.looked.lock().clone();
        let Ids { first, last } = objects.ids;
        let is_known =
            |lower: &u64| known.iter().any(|(other, looked)| *other == id && looked.has(objects, *lower));
        let mut fresh = (first..=last).filter(|lower| !is_known(lower));
        let mut held = Vec::new();
        let mut met = |lower| held.push(lower);
        Sweep::run(container, objects, Task::Look, &mut fresh, Some(&request.interrupt), &mut met).map_err(
            |code| failed("the objects of the container cannot be read", code).with("container", &label),
        )?;
        held.sort_unstable();
        if let (Some(lower), false) = (held.first(), request.destroys) {
            let object = Some(format!("{}.{lower}", objects.upper));
            let found = Found { object, run: None, is_kept: false };
            return Err(found.refusal("daos", &label, objects.ids).with("objects", held.len()));
        }
        let mut placed = self.placed.lock();
        for lower in (first..=last).filter(|lower| !is_known(lower) && held.binary_search(lower).is_err()) {
            match placed.last_mut() {
                Some(Placed { id: other, objects: before, .. })
                    if *other == id
                        && before.upper == objects.upper
                        && before.ids.last.checked_add(1) == Some(lower) =>
                {
                    before.ids.last = lower;
                }
                _ => {
                    let objects = ObjectIds { ids: Ids { first: lower, last: lower }, ..*objects };
                    placed.push(Placed { label: label.clone(), id: id.clone(), objects });
                }
            }
        }
        self.looked.lock().push((id.clone(), *objects));
        if !held.is_empty() {
            self.kept.lock().push((label, id, held.len() as u64));
        }
        let made = placed.iter().map(Placed::made).collect();
        drop(placed);
        containers.note_others(request, made)
    }

    /// Takes over what an earlier run noted; what is none of these comes back.
    ///
    /// # Errors
    /// When it is none that was noted so.
    pub(super) fn take_over(&self, made: &[Made]) -> Result<Vec<Made>, Error> {
        let mut others = Vec::new();
        for made in made {
            let (label, id, upper, ids) = match made {
                Made::ObjectIds { label, id, upper, first, last } if first <= last => {
                    (label, id, upper, Ids { first: *first, last: *last })
                }
                Made::Container { .. } => {
                    others.push(made.clone());
                    continue;
                }
                _ => return Err(Error::usage("daos", format!("this store has no {}", made.name()))),
            };
            let upper = u64::from_str_radix(upper, 16).map_err(|_| {
                Error::usage("daos", format!("{upper:?} is not the upper half of an object id"))
            })?;
            let objects = ObjectIds { upper, ids };
            self.placed.lock().push(Placed { label: label.clone(), id: id.clone(), objects });
        }
        Ok(others)
    }

    /// Takes the objects away, the last first. `open` opens the container of a label; none where there is none. Returns how many went, and
    /// what stays, and why.
    ///
    /// # Errors
    /// The first that could not be taken away; it and those before it stay noted.
    pub(super) fn clean(
        &self,
        request: &ConnectRequest,
        containers: &Containers,
        removing: Removing<'_>,
        mut open: impl FnMut(&str) -> Result<Option<Arc<Container>>, Error>,
    ) -> Result<(u64, Vec<String>), Error> {
        let (mut count, mut left) = (0, Vec::new());
        for (label, _, held) in std::mem::take(&mut *self.kept.lock()) {
            left.push(format!(
                "container {label}: {held} of the objects contained data before the run and are kept, including what the run overwrote"
            ));
        }
        loop {
            let Some(placed) = self.placed.lock().last().cloned() else { break };
            match open(&placed.label)? {
                Some(container) if container.id() == placed.id => {
                    let mut gone = |_| {
                        count += 1;
                        removing(count);
                    };
                    let mut lowers = placed.objects.ids.first..=placed.objects.ids.last;
                    Sweep::run(&container, &placed.objects, Task::Punch, &mut lowers, None, &mut gone)
                        .map_err(|code| {
                            failed("the objects of this run cannot be removed", code)
                                .with("container", &placed.label)
                        })?;
                }
                Some(_) => left.push(format!(
                    "container {}: kept, because it was recreated under this label by another process",
                    placed.label
                )),
                None => {}
            }
            let mut all = self.placed.lock();
            all.pop();
            let made = all.iter().map(Placed::made).collect();
            drop(all);
            containers.note_others(request, made)?;
        }
        Ok((count, left))
    }

    /// One line for each range, as [`Placement::clean`] would find it.
    ///
    /// # Errors
    /// When a container cannot be asked for.
    pub(super) fn look(
        &self,
        mut id_of: impl FnMut(&str) -> Result<Option<String>, Error>,
    ) -> Result<Vec<String>, Error> {
        let all = self.placed.lock().clone();
        let mut lines = Vec::new();
        for placed in all.iter().rev() {
            let what = placed.made().name();
            lines.push(match id_of(&placed.label)? {
                None => format!("{what}: the container no longer exists"),
                Some(id) if id == placed.id => what,
                Some(_) => format!("{what}: the container was recreated under this label by another process"),
            });
        }
        Ok(lines)
    }
}
