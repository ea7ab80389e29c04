//! Containers that a run makes, or stores in: noted before, known again by their ids, and nothing else destroyed.

use driver::{Error, ErrorKind};
use parking_lot::Mutex;
use vos::claims::{Asked, Ending, Found, Ids};

use crate::backend::{ConnectRequest, Removing};
use crate::plan::{Made, ObjectOp, ObjectPlan, Scope};

/// A container that the run made or asked for, or stores in.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Container {
    label: String,
    /// By what it is known again; none: whether it was made is not known.
    id: Option<String>,
    /// It was there before.
    was_there: bool,
}

/// Fate of a container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It is gone.
    Gone,
    /// Others use it.
    InUse,
    /// So many objects of the run in it are gone, and it stays; why, where the run made it.
    Cleared(u64, Option<String>),
}

impl From<Ending> for Fate {
    fn from(ending: Ending) -> Self {
        match ending {
            Ending::Destroyed => Self::Gone,
            Ending::Cleared { objects, why } => Self::Cleared(objects, why),
            Ending::Nothing => Self::Cleared(0, None),
        }
    }
}

/// Ids of the objects that a phase changes; none where it changes none.
pub(crate) fn changed_ids(plan: &ObjectPlan) -> Option<Ids> {
    if plan.any(|operation| operation == ObjectOp::Discard) {
        return Some(Ids::ALL);
    }
    let changes =
        |operation: ObjectOp| operation.stores() || operation.takes_away() || operation == ObjectOp::Create;
    if !plan.any(changes) {
        return None;
    }
    let data = &plan.dataset;
    let first = data.first_id.saturating_add(data.first[0]);
    let workers = if plan.object_scope == Scope::Private { u64::from(plan.load.workers().max(1)) } else { 1 };
    let apart = data.whole()[0].saturating_mul(workers - 1);
    let count = data.objects.saturating_add(apart).max(1);
    Some(Ids { first, last: first.saturating_add(count - 1) })
}

/// Parts whose containers a store gets ready: with one container for all, one; of a run alone those of all workers that it may have later, too.
pub(crate) fn parts_to_prepare(plan: &ObjectPlan, threads_max: u32) -> Vec<u32> {
    if plan.containers == Scope::Private && plan.load.place.is_none() {
        return (0..threads_max).collect();
    }
    plan.container_parts().collect()
}

/// Refuses a store in which this host does not see the container that another host of the run has made, or was to find.
pub(crate) fn unseen(operation: &'static str, label: &str) -> Error {
    Error::usage(operation, "the first host of the run sees this container, but this host does not")
        .with("container", label)
        .remedy("use a store that all hosts reach, or --host-targets own if each host has its own store")
}

/// Has a store enter the claim of the run to the objects of a load.
///
/// # Errors
/// [`driver::ErrorKind::Unsafe`]: others' objects are there, and the run may not destroy them. What the store says.
pub(crate) fn claim(
    request: &ConnectRequest,
    operation: &'static str,
    label: &str,
    ids: Ids,
    enter: impl FnOnce(&Asked) -> Result<Option<Found>, Error>,
) -> Result<(), Error> {
    let (run, owner) = (request.journal.run(), request.journal.owner());
    let found = enter(&Asked { run, owner, ids, destroys: request.destroys })?;
    found.map_or(Ok(()), |found| Err(found.refusal(operation, label, ids)))
}

/// The containers of a run in one store.
#[derive(Debug, Default)]
pub(crate) struct Containers {
    made: Mutex<Vec<Container>>,
    /// Other things that the run makes there, noted with them.
    others: Mutex<Vec<Made>>,
}

impl Containers {
    /// Makes one: it is noted before, and with its id afterwards. `make` answers the id, or none where somebody else has made it.
    ///
    /// # Errors
    /// When it cannot be noted, or made.
    pub(crate) fn make(
        &self,
        request: &ConnectRequest,
        label: &str,
        make: impl FnOnce() -> Result<Option<String>, Error>,
    ) -> Result<(), Error> {
        self.made.lock().push(Container { label: label.to_owned(), id: None, was_there: false });
        self.note(request)?;
        let id = make()?;
        let mut all = self.made.lock();
        if id.is_none() {
            all.retain(|other| other.label != label);
        }
        for other in all.iter_mut().filter(|other| other.label == label) {
            other.id.clone_from(&id);
        }
        drop(all);
        self.note(request)
    }

    /// Claims objects of a container, which is noted before. `id` is by what the container is known again.
    ///
    /// # Errors
    /// As [`claim`], and when it cannot be noted.
    pub(crate) fn claim(
        &self,
        request: &ConnectRequest,
        operation: &'static str,
        (label, id): (&str, String),
        ids: Ids,
        enter: impl FnOnce(&Asked) -> Result<Option<Found>, Error>,
    ) -> Result<(), Error> {
        let is_new = !self.made.lock().iter().any(|container| container.label == label);
        if is_new {
            self.made.lock().push(Container { label: label.to_owned(), id: Some(id), was_there: true });
            self.note(request)?;
        }
        let claimed = claim(request, operation, label, ids, enter);
        if is_new && claimed.as_ref().is_err_and(|error| error.kind() == ErrorKind::Unsafe) {
            self.made.lock().retain(|container| container.label != label);
            self.note(request)?;
        }
        claimed
    }

    /// Their labels.
    pub(crate) fn labels(&self) -> Vec<String> {
        self.made.lock().iter().map(|container| container.label.clone()).collect()
    }

    /// Whether the run has made none, and stores in none.
    pub(crate) fn is_empty(&self) -> bool {
        self.made.lock().is_empty()
    }

    fn note(&self, request: &ConnectRequest) -> Result<(), Error> {
        let noted = |container: &Container| match container.clone() {
            Container { label, id: Some(id), was_there: true } => Made::Stored { label, id },
            Container { label, id, .. } => Made::Container { label, id },
        };
        let mut made: Vec<Made> = self.made.lock().iter().map(noted).collect();
        made.extend(self.others.lock().iter().cloned());
        request.journal.note(request, &made)
    }

    /// Notes what else the run makes in the store, in place of what was noted before; containers stay noted.
    ///
    /// # Errors
    /// When it cannot be noted.
    pub(crate) fn note_others(&self, request: &ConnectRequest, others: Vec<Made>) -> Result<(), Error> {
        *self.others.lock() = others;
        self.note(request)
    }

    /// Whether the run made the container of that label.
    pub(crate) fn has(&self, label: &str) -> bool {
        self.made
            .lock()
            .iter()
            .any(|container| container.label == label && container.id.is_some() && !container.was_there)
    }

    /// Takes over what an earlier run made.
    ///
    /// # Errors
    /// When it is no container.
    pub(crate) fn take_over(&self, made: &[Made]) -> Result<(), Error> {
        for made in made {
            self.made.lock().push(match made.clone() {
                Made::Container { label, id } => Container { label, id, was_there: false },
                Made::Stored { label, id } => Container { label, id: Some(id), was_there: true },
                _ => return Err(Error::usage("object", format!("this store has no {}", made.name()))),
            });
        }
        Ok(())
    }

    /// Ends the run in them, the last first. `id_of` tells by what the container of a label is known now, none where there is none; `end`
    /// takes away what is the run's own. Returns what stays, and why.
    ///
    /// # Errors
    /// A failure of the store; the rest is still known then.
    pub(crate) fn clean(
        &self,
        request: &ConnectRequest,
        removing: Removing<'_>,
        mut id_of: impl FnMut(&str) -> Result<Option<String>, Error>,
        mut end: impl FnMut(&str) -> Result<Fate, Error>,
    ) -> Result<Vec<String>, Error> {
        let mut left = Vec::new();
        let mut count = 0;
        loop {
            let Some(Container { label, id, was_there }) = self.made.lock().last().cloned() else { break };
            match (id_of(&label)?, id) {
                (None, _) => {}
                (Some(now), Some(id)) if now == id => match end(&label)? {
                    Fate::Gone => {
                        count += 1;
                        removing(count);
                    }
                    Fate::InUse => left.push(format!("container {label}: kept, because other processes have it open")),
                    Fate::Cleared(objects, why) => {
                        count += objects;
                        removing(count);
                        left.extend(why.map(|why| format!("container {label}: created by this run; {why}; kept")));
                    }
                },
                // What was stored in it went with it.
                (Some(_), Some(_)) if was_there => {}
                (Some(_), Some(_)) => left.push(format!("container {label}: kept, because it was recreated under this label by another process")),
                (Some(_), None) => left.push(format!(
                    "container {label}: kept, because the answer to this run's create request was lost and another process may have created it"
                )),
            }
            self.made.lock().pop();
            self.note(request)?;
        }
        Ok(left)
    }

    /// One line each, as [`Containers::clean`] would find them; `ending` tells what it would do.
    ///
    /// # Errors
    /// When the store cannot be asked.
    pub(crate) fn look(
        &self,
        mut id_of: impl FnMut(&str) -> Result<Option<String>, Error>,
        mut ending: impl FnMut(&str) -> Result<Ending, Error>,
    ) -> Result<Vec<String>, Error> {
        let all = self.made.lock().clone();
        let mut lines = Vec::new();
        for Container { label, id, .. } in all.iter().rev() {
            lines.push(match (id_of(label)?, id) {
                (None, _) => format!("container {label}: no longer exists"),
                (Some(now), Some(id)) if now == *id => told(label, &ending(label)?),
                (Some(_), Some(_)) => {
                    format!("container {label}: kept, because it was recreated under this label by another process")
                }
                (Some(_), None) => {
                    format!("container {label}: kept, because it is unknown whether the run created it")
                }
            });
        }
        Ok(lines)
    }
}

/// Fate that a container would have, in words.
pub(crate) fn told(label: &str, ending: &Ending) -> String {
    match ending {
        Ending::Destroyed => format!("container {label} and all its contents"),
        Ending::Cleared { objects, why: Some(why) } => {
            format!("{objects} objects of the run in container {label}, which is kept: {why}")
        }
        Ending::Cleared { objects, why: None } => {
            format!("{objects} objects of the run in container {label}, which is kept")
        }
        Ending::Nothing => format!("container {label}: contains nothing of the run any more"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_very_container_goes() {
        let (request, all) = (ConnectRequest::default(), Containers::default());
        for label in ["a", "b", "c", "d"] {
            all.make(&request, label, || Ok(Some(format!("id-{label}")))).expect("made");
        }
        all.make(&request, "others", || Ok(None)).expect("somebody else made it");
        all.make(&request, "unknown", || Err(Error::usage("test", "no answer"))).expect_err("no answer");
        let id_of = |label: &str| {
            Ok(match label {
                "b" => Some("another".to_owned()),
                "c" => None,
                _ => Some(format!("id-{label}")),
            })
        };
        let looked = all.look(id_of, |_| Ok(Ending::Destroyed)).expect("looked");
        assert_eq!(looked.len(), 5, "{looked:?}");
        let mut destroyed = Vec::new();
        let left = all.clean(&request, &|_| (), id_of, |label| {
            destroyed.push(label.to_owned());
            Ok(if label == "d" { Fate::InUse } else { Fate::Gone })
        });
        let left = left.expect("cleaned").join("; ");
        assert_eq!(destroyed, ["d", "a"]);
        for what in [
            "container d: kept",
            "container b: kept, because it was recreated",
            "container unknown: kept, because the answer",
        ] {
            assert!(left.contains(what), "{left}");
        }
        assert!(all.look(id_of, |_| Ok(Ending::Destroyed)).expect("looked").is_empty());
    }
}
