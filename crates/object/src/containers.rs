//! Containers that a run makes: noted before they are made, known again by their ids, and nothing else destroyed.

use driver::Error;
use parking_lot::Mutex;
use workload::object::Made;

use crate::backend::{ConnectRequest, Removing};

/// A container that the run made, or asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Container {
    label: String,
    /// By what it is known again; none: whether it was made is not known.
    id: Option<String>,
}

/// What became of a container.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It is gone.
    Gone,
    /// Others use it.
    InUse,
}

/// The containers of a run in one store.
#[derive(Debug, Default)]
pub(crate) struct Containers(Mutex<Vec<Container>>);

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
        self.0.lock().push(Container { label: label.to_owned(), id: None });
        self.note(request)?;
        let id = make()?;
        let mut all = self.0.lock();
        if id.is_none() {
            all.retain(|other| other.label != label);
        }
        for other in all.iter_mut().filter(|other| other.label == label) {
            other.id.clone_from(&id);
        }
        drop(all);
        self.note(request)
    }

    fn note(&self, request: &ConnectRequest) -> Result<(), Error> {
        let noted = |container: &Container| Made::Container {
            label: container.label.clone(),
            id: container.id.clone(),
        };
        let made: Vec<Made> = self.0.lock().iter().map(noted).collect();
        request.journal.note(request, &made)
    }

    /// Takes over what an earlier run made.
    ///
    /// # Errors
    /// When it is no container.
    pub(crate) fn take_over(&self, made: &[Made]) -> Result<(), Error> {
        for made in made {
            let Made::Container { label, id } = made else {
                return Err(Error::usage("object", format!("this store has no {}", made.name())));
            };
            self.0.lock().push(Container { label: label.clone(), id: id.clone() });
        }
        Ok(())
    }

    /// Destroys them, the last first. `id_of` tells by what the container of a label is known now, none where there is none; `destroy`
    /// takes it away. Returns what stays, and why.
    ///
    /// # Errors
    /// The first that could not be destroyed; it and those before it stay noted.
    pub(crate) fn clean(
        &self,
        request: &ConnectRequest,
        removing: Removing<'_>,
        mut id_of: impl FnMut(&str) -> Result<Option<String>, Error>,
        mut destroy: impl FnMut(&str) -> Result<Fate, Error>,
    ) -> Result<Vec<String>, Error> {
        let mut left = Vec::new();
        let mut count = 0;
        loop {
            let Some(Container { label, id }) = self.0.lock().last().cloned() else { break };
            match (id_of(&label)?, id) {
                (None, _) => {}
                (Some(now), Some(id)) if now == id => match destroy(&label)? {
                    Fate::Gone => {
                        count += 1;
                        removing(count);
                    }
                    Fate::InUse => left.push(format!("container {label}: others have it open; it stays")),
                },
                (Some(_), Some(_)) => left.push(format!("container {label}: another was made under this label; it stays")),
                (Some(_), None) => left.push(format!(
                    "container {label}: this run asked for it, and the answer was lost; it stays, in case others made it"
                )),
            }
            self.0.lock().pop();
            self.note(request)?;
        }
        Ok(left)
    }

    /// One line each, as [`Containers::clean`] would find them.
    ///
    /// # Errors
    /// When the store cannot be asked.
    pub(crate) fn look(
        &self,
        mut id_of: impl FnMut(&str) -> Result<Option<String>, Error>,
    ) -> Result<Vec<String>, Error> {
        let all = self.0.lock().clone();
        let mut lines = Vec::new();
        for Container { label, id } in all.iter().rev() {
            lines.push(match (id_of(label)?, id) {
                (None, _) => format!("container {label}: it is not there any more"),
                (Some(now), Some(id)) if now == *id => format!("container {label} with all that is in it"),
                (Some(_), Some(_)) => {
                    format!("container {label}: another was made under this label; it stays")
                }
                (Some(_), None) => {
                    format!("container {label}: whether the run made it is not known; it stays")
                }
            });
        }
        Ok(lines)
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
        let looked = all.look(id_of).expect("looked");
        assert_eq!(looked.len(), 5, "{looked:?}");
        let mut destroyed = Vec::new();
        let left = all.clean(&request, &|_| (), id_of, |label| {
            destroyed.push(label.to_owned());
            Ok(if label == "d" { Fate::InUse } else { Fate::Gone })
        });
        let left = left.expect("cleaned").join("; ");
        assert_eq!(destroyed, ["d", "a"]);
        for what in ["container d: others", "container b: another", "container unknown: this run asked"] {
            assert!(left.contains(what), "{left}");
        }
        assert!(all.look(id_of).expect("looked").is_empty());
    }
}
