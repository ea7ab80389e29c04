//! Backends: a store, opened once a run, that each worker gets a driver of.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use driver::{Arena, Capabilities, Error, Opened, Secret};
use vos::PoolInfo;

use crate::ObjectOperation;
use crate::drivers::DRIVERS;
use crate::plan::{Made, ObjectOptions, ObjectPlan, S3Key};

/// Keeps what a run makes in its stores, so that it can be removed also when the run was killed.
pub trait Journal: Send + Sync {
    /// Number of the run: things that can carry a mark carry it.
    fn run(&self) -> u64;

    /// Number of whoever runs it: the same for all runs of a user of a machine, whose kept data later runs may change.
    fn owner(&self) -> u64;

    /// Notes all that was made, or is about to be, in the store of `request`, in place of what was noted before. Durable when it returns.
    ///
    /// # Errors
    /// When it cannot be written: then nothing is made.
    fn note(&self, request: &ConnectRequest, made: &[Made]) -> Result<(), Error>;
}

/// A journal of a run that keeps nothing.
#[derive(Clone, Copy, Debug)]
pub struct Forgetful(
    /// Number of the run.
    pub u64,
);

impl Default for Forgetful {
    fn default() -> Self {
        use std::hash::{BuildHasher as _, RandomState};
        Self(RandomState::new().hash_one(std::process::id()))
    }
}

impl Journal for Forgetful {
    fn run(&self) -> u64 {
        self.0
    }

    fn owner(&self) -> u64 {
        self.0
    }

    fn note(&self, _: &ConnectRequest, _: &[Made]) -> Result<(), Error> {
        Ok(())
    }
}

/// Told while what a run made is removed: how many things have gone so far.
pub type Removing<'a> = &'a (dyn Fn(u64) + Sync);

/// Arguments that a store is opened with.
#[derive(Clone)]
pub struct ConnectRequest {
    /// Where it is: the whole URL.
    pub target: String,
    /// Options of its driver.
    pub options: ObjectOptions,
    /// S3: the keys of the user.
    pub s3_key: Option<S3Key>,
    /// Engines: the shared secret.
    pub secret: Option<Secret>,
    /// Whether pool (for `vos:`) and container may be made where they are not there.
    pub creates: bool,
    /// Whether what others made may be written over and removed by operations.
    pub destroys: bool,
    /// Workers that will ask for a driver.
    pub threads: u32,
    /// Set from outside: waits end, but for those of [`Backend::clean`].
    pub interrupt: Arc<AtomicBool>,
    /// Where what is made is noted.
    pub journal: Arc<dyn Journal>,
}

impl Default for ConnectRequest {
    fn default() -> Self {
        Self {
            target: String::new(),
            options: ObjectOptions::default(),
            s3_key: None,
            secret: None,
            creates: false,
            destroys: false,
            threads: 1,
            interrupt: Arc::default(),
            journal: Arc::new(Forgetful::default()),
        }
    }
}

impl fmt::Debug for ConnectRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConnectRequest").field("target", &self.target).finish_non_exhaustive()
    }
}

/// Arguments that the driver of one worker is opened with.
#[derive(Clone)]
pub struct OpenRequest {
    /// Number of the worker's part among those of all workers that share the store.
    pub worker: u32,
    /// The phase.
    pub plan: Arc<ObjectPlan>,
    /// Buffers: one a slot, of the largest value (or of `short_read_bytes`).
    pub arena: Arc<Arena>,
    /// Set from outside: waits end.
    pub interrupt: Arc<AtomicBool>,
}

/// Facts of a store, for planning and for the record.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BackendFacts {
    /// Targets that objects are spread over; 1 where a cluster does not tell.
    pub targets: u32,
    /// How updates are made durable, in words: `CPU flush (clwb)`, `msync`, `fdatasync`, `the cluster's own means`.
    pub durable_by: String,
    /// Notes on it for a person.
    pub notes: Vec<String>,
}

/// A store that is open. Shared by the workers; what they share beyond it (a pool, a cluster's handle) lives here.
pub trait Backend: Send + Sync {
    /// Facts that it tells of itself.
    fn facts(&self) -> BackendFacts;

    /// Refuses a phase that it cannot carry out: values that are too large, a class that needs more targets. Every phase of a run is asked
    /// about before the first begins. Changes nothing.
    ///
    /// # Errors
    /// Bad usage: what it does not take, and what it would.
    fn check(&self, plan: &ObjectPlan) -> Result<(), Error> {
        let _ = plan;
        Ok(())
    }

    /// Makes what a phase needs and is not there: containers, and with [`ObjectPlan::keeps_handles`] nothing more. What it made, it
    /// remembers for [`Backend::clean`].
    ///
    /// # Errors
    /// Containers or buckets that could not be made, with the remedy.
    fn prepare(&self, plan: &ObjectPlan) -> Result<(), Error>;

    /// Makes durable what was stored, and has what is read next come from the files of the store instead of its memory; nothing where there is no
    /// such memory, or none that a client can drop.
    ///
    /// # Errors
    /// When it could not be made durable, or the store does not answer.
    fn drop_cache(&self) -> Result<(), Error> {
        Ok(())
    }

    /// Opens the driver of one worker, on that worker's thread.
    ///
    /// # Errors
    /// Why it cannot.
    fn open(&self, request: &OpenRequest) -> Result<Opened<ObjectOperation>, Error>;

    /// Space; none where the store does not tell.
    ///
    /// # Errors
    /// When it cannot be asked.
    fn pool(&self) -> Result<Option<PoolInfo>, Error> {
        Ok(None)
    }

    /// Notes in the store that what this run stored stays, so that later runs of the same owner may change it.
    ///
    /// # Errors
    /// When it cannot be noted.
    fn keep(&self) -> Result<(), Error> {
        Ok(())
    }

    /// Destroys what this run made (objects, containers, a pool's directory), and nothing else. It waits for its own time, whatever ended the
    /// run. Returns what was left because it is, or may be, others' own: one line each.
    ///
    /// # Errors
    /// Data of the run's own that is left.
    fn clean(&self, removing: Removing<'_>) -> Result<Vec<String>, Error>;

    /// Takes over what an earlier run made, so that [`Backend::clean`] destroys it; `request.journal` has that run's number.
    ///
    /// # Errors
    /// When it is none that this store can have.
    fn take_over(&self, made: &[Made]) -> Result<(), Error>;

    /// Whether something that another run or a person made is there still, without changing anything: one line for each of `made`.
    ///
    /// # Errors
    /// When the store cannot be asked.
    fn look(&self) -> Result<Vec<String>, Error>;

    /// Ends it in order: what is not durable yet becomes so, an index is written down.
    ///
    /// # Errors
    /// Data that was not saved.
    fn close(&self) -> Result<(), Error>;
}

/// One line of the layer's table of drivers.
pub struct Registration {
    /// Name, and scheme of its targets: `vos`, `engine`, `rados`, `s3`, `daos`, `null`.
    pub name: &'static str,
    /// Form of its targets, for help: `vos:DIR`.
    pub target: &'static str,
    /// One line for `strata list` and the docs.
    pub summary: &'static str,
    /// Capabilities; `classes` are its operations, `options` those of the layer that it honours.
    pub capabilities: Capabilities,
    /// Opens the store.
    pub connect: fn(&ConnectRequest) -> Result<Arc<dyn Backend>, Error>,
}

/// The driver of a target, by its scheme.
///
/// # Errors
/// Bad usage that lists the forms of targets.
pub fn driver_of(target: &str) -> Result<&'static Registration, Error> {
    let scheme = target.split(':').next().unwrap_or_default();
    DRIVERS.iter().find(|entry| entry.name == scheme && target.contains(':')).ok_or_else(|| {
        let forms: Vec<_> = DRIVERS.iter().map(|entry| entry.target).collect();
        Error::usage("object", format!("{target:?} is not a target of the object layer"))
            .remedy(format!("accepted: {}", forms.join(", ")))
    })
}

/// Opens the store of a target.
///
/// # Errors
/// Why it cannot be opened.
pub fn connect(request: &ConnectRequest) -> Result<Arc<dyn Backend>, Error> {
    (driver_of(&request.target)?.connect)(request)
}
