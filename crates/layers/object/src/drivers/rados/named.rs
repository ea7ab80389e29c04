//! Objects that a load gives names of their own: made and marked before a phase changes them, kept apart from what others have there.

use std::ffi::CString;
use std::sync::Arc;

use driver::{Error, ErrorKind};
use parking_lot::Mutex;

use crate::backend::{ConnectRequest, Removing};
use crate::containers::Containers;
use crate::plan::{Made, ObjectOp, ObjectPlan};
use crate::rados::cluster::{Cluster, Pool, text};
use crate::rados::marks::{Found, Mark};

/// Longest RADOS object where the cluster does not tell (`osd_max_object_size`).
const OBJECT_BYTES_MAX: u64 = 128 << 20;

/// An object of the run's own.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Own {
    namespace: String,
    name: String,
}

/// Where the objects are.
#[derive(Clone, Copy)]
pub(super) struct Location<'a> {
    pub(super) cluster: &'a Arc<Cluster>,
    pub(super) pool: &'a str,
    pub(super) request: &'a ConnectRequest,
}

impl Location<'_> {
    fn open(&self, namespace: &str) -> Result<Pool, Error> {
        Pool::open(self.cluster, self.pool, namespace)
    }

    fn mark(&self) -> Mark {
        let journal = &self.request.journal;
        Mark { run: journal.run(), owner: journal.owner(), is_kept: false }
    }

    /// Whether the run may change what is under a name.
    fn may_change(&self, found: Found) -> bool {
        let mark = self.mark();
        match found {
            Found::Nothing => true,
            Found::Marked(other) => {
                self.request.destroys || other.run == mark.run || other.is_kept && other.owner == mark.owner
            }
            Found::Unmarked => self.request.destroys,
        }
    }

    fn check(&self, pool: &Pool, name: &str) -> Result<Found, Error> {
        let found = pool.found(text(name)?.as_c_str())?;
        if self.may_change(found) {
            return Ok(found);
        }
        let message = "the pool contains an object with a name of this load that this run did not create";
        let error =
            Error::new(ErrorKind::Unsafe, "rados", message).with("pool", self.pool).with("object", name);
        let (error, instead) = match found {
            Found::Marked(mark) if !mark.is_kept => (
                error.with("run", format!("{:016x}", mark.run)),
                "wait for that run (if it was killed, strata clean removes its objects), ",
            ),
            _ => (error, ""),
        };
        Err(error.remedy(format!("{instead}use another name, or --destroy-data to overwrite the object")))
    }
}

/// The named objects that a run has made.
#[derive(Debug, Default)]
pub(super) struct NamedObjects(Mutex<Vec<Own>>);

/// Refuses objects that are longer than an OSD takes.
pub(super) fn check_sizes(cluster: &Cluster, plan: &ObjectPlan) -> Result<(), Error> {
    if plan.dataset.object_names.is_empty() {
        return Ok(());
    }
    let told = cluster.setting(c"osd_max_object_size").and_then(|size| size.parse::<u64>().ok());
    let limit_bytes = told.unwrap_or(OBJECT_BYTES_MAX);
    let [.., records] = plan.dataset.whole();
    let object_bytes = records.saturating_mul(plan.dataset.stride_bytes);
    if object_bytes <= limit_bytes {
        return Ok(());
    }
    let message = format!("an object of {object_bytes} bytes exceeds the OSD's object limit");
    Err(Error::usage("rados", message).remedy(format!(
        "use at most {limit_bytes} bytes (osd_max_object_size): spread the data over more objects"
    )))
}

/// Names as the library takes them.
pub(super) fn as_library_takes(plan: &ObjectPlan) -> Result<Box<[CString]>, Error> {
    plan.dataset.object_names.iter().map(|name| text(name)).collect()
}

impl NamedObjects {
    /// Makes the objects that a phase changes and that are not there, each with the mark of the run. All are looked at before the first is
    /// made, and all are noted before.
    ///
    /// # Errors
    /// [`ErrorKind::Unsafe`]: others' objects are there, and the run may not destroy them. What the cluster says.
    pub(super) fn prepare(
        &self,
        place: Location<'_>,
        containers: &Containers,
        namespace: &str,
        plan: &ObjectPlan,
    ) -> Result<(), Error> {
        if !plan.any(|operation| operation.stores() || operation == ObjectOp::Punch) {
            return Ok(());
        }
        let pool = place.open(namespace)?;
        let first = plan.dataset.first[0] as usize;
        let names = plan.dataset.object_names.iter().skip(first).take(plan.dataset.objects as usize);
        let mut missing = Vec::new();
        for name in names {
            if place.check(&pool, name)? == Found::Nothing {
                missing.push(Own { namespace: namespace.to_owned(), name: name.clone() });
            }
        }
        if missing.is_empty() {
            return Ok(());
        }
        self.0.lock().extend(missing.iter().cloned());
        self.note(place.request, containers)?;
        for own in &missing {
            if !pool.make_marked(text(&own.name)?.as_c_str(), place.mark())? {
                // Somebody has made it just now; at the end it is told from the run's own by its mark.
                place.check(&pool, &own.name)?;
            }
        }
        Ok(())
    }

    fn note(&self, request: &ConnectRequest, containers: &Containers) -> Result<(), Error> {
        containers.note_others(request, self.made())
    }

    fn made(&self) -> Vec<Made> {
        let all = self.0.lock();
        let by_namespace = all.chunk_by(|a, b| a.namespace == b.namespace);
        let made = |own: &[Own]| Made::NamedObjects {
            namespace: own[0].namespace.clone(),
            names: own.iter().map(|own| own.name.clone()).collect(),
        };
        by_namespace.map(made).collect()
    }

    /// Those of the run's objects that are still its own, with their marks.
    fn each(
        &self,
        place: Location<'_>,
        mut act: impl FnMut(&Pool, &Own, Mark) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let all = self.0.lock().clone();
        for of_namespace in all.chunk_by(|a, b| a.namespace == b.namespace) {
            let pool = place.open(&of_namespace[0].namespace)?;
            for own in of_namespace {
                match pool.found(text(&own.name)?.as_c_str())? {
                    Found::Marked(mark) if mark.run == place.request.journal.run() => act(&pool, own, mark)?,
                    _ => {}
                }
            }
        }
        Ok(())
    }

    /// Notes on the objects that they stay.
    ///
    /// # Errors
    /// When it cannot be noted.
    pub(super) fn keep(&self, place: Location<'_>) -> Result<(), Error> {
        self.each(place, |pool, own, mark| {
            let kept = Mark { is_kept: true, ..mark };
            pool.replace_mark(text(&own.name)?.as_c_str(), mark, Some(kept)).map(drop)
        })
    }

    /// Removes the objects that carry the mark of the run.
    ///
    /// # Errors
    /// Error of the cluster; the rest is still known then.
    pub(super) fn clean(
        &self,
        place: Location<'_>,
        containers: &Containers,
        removing: Removing<'_>,
    ) -> Result<(), Error> {
        if self.0.lock().is_empty() {
            return Ok(());
        }
        let mut count = 0;
        self.each(place, |pool, own, mark| {
            count += u64::from(pool.replace_mark(text(&own.name)?.as_c_str(), mark, None)?);
            removing(count);
            Ok(())
        })?;
        self.0.lock().clear();
        self.note(place.request, containers)
    }

    /// Takes over those among what an earlier run made; the rest.
    pub(super) fn take_over(&self, made: &[Made]) -> Vec<Made> {
        let mut rest = Vec::new();
        for made in made {
            match made {
                Made::NamedObjects { namespace, names } => {
                    let own = |name: &String| Own { namespace: namespace.clone(), name: name.clone() };
                    self.0.lock().extend(names.iter().map(own));
                }
                other => rest.push(other.clone()),
            }
        }
        rest
    }

    /// State of each of them, without changing anything.
    ///
    /// # Errors
    /// When the cluster cannot be asked.
    pub(super) fn look(&self, place: Location<'_>) -> Result<Option<String>, Error> {
        let (noted, mut found) = (self.0.lock().len(), 0);
        self.each(place, |_, _, _| {
            found += 1;
            Ok(())
        })?;
        let line = || {
            format!(
                "pool {}: {found} of {noted} named objects; objects that other processes created there are kept",
                place.pool
            )
        };
        Ok((noted > 0).then(line))
    }
}
