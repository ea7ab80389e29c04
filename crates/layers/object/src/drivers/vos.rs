//! `vos:DIR`: the embedded store, in this process.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use driver::{Capabilities, Error, Opened, Operation};
use parking_lot::{Mutex, RwLock};
use units::ByteSize;

use crate::plan::{Made, ObjectOptions, ObjectPlan, Scope};

use vos::claims::{Ending, Ids};
use vos::placement::Placement;
use vos::{ContainerFacts, ContainerProperties, OpenOptions, Pool, PoolInfo, PoolOptions, PoolUuid};

use crate::backend::Removing;
use crate::containers::{Containers, changed_ids, claim, told};
use crate::snapshots;
use crate::source::{appended_bytes, check_value_size};
use crate::{Backend, BackendFacts, ConnectRequest, ObjectOperation, OpenRequest, Registration};

mod arrays;
mod listing;
mod volume;
mod worker;

#[cfg(test)]
mod tests;

/// The table line.
pub(super) const REGISTRATION: Registration = Registration {
    name: "vos",
    target: "vos:DIR",
    summary: "the embedded versioning store in this process: a log in mapped memory (or on a disk), a data file, an index in memory",
    capabilities: Capabilities {
        classes: ObjectOperation::CLASSES,
        asynchronous: true,
        depth_max: 4096,
        targetless: false,
        direct: false,
        options: &[
            "container",
            "containers",
            "class",
            "reopen",
            "snapshot",
            "scm",
            "nvme",
            "threshold",
            "store-targets",
            "durability",
            "flush",
            "allocate",
            "checksum",
            "cache",
            "zero-copy",
        ],
    },
    connect: |request| Ok(Arc::new(Vos::connect(request)?)),
};

/// The pool, as long as it is open: shared with drivers, which ask it for containers and ids.
type Shared = Arc<RwLock<Option<Pool>>>;

struct Vos {
    dir: PathBuf,
    request: ConnectRequest,
    pool: Shared,
    targets: u32,
    notes: Vec<String>,
    /// UUID of the pool, where this run made it.
    made_pool: Mutex<Option<String>>,
    /// That pool goes with all that is in it.
    is_private: AtomicBool,
    /// Containers that this run made in a pool that was there.
    made: Containers,
}

impl Vos {
    fn connect(request: &ConnectRequest) -> Result<Self, Error> {
        let dir = request.target.strip_prefix("vos:").map(|dir| dir.strip_prefix("//").unwrap_or(dir));
        let dir = units::path_of(dir.unwrap_or_default()).into_owned();
        if dir.as_os_str().is_empty() {
            return Err(Error::usage("object", "vos: requires a directory")
                .remedy("use one such as vos:/dev/shm/pool"));
        }
        let options = &request.options;
        let open = OpenOptions {
            durability: options.durability,
            flush: options.flush,
            allocation: options.allocation,
        };
        let exists = Pool::exists(&dir);
        let pool = match (exists, request.creates) {
            (true, _) => Pool::open(&dir, &open)?,
            (false, true) => {
                let uuid = PoolUuid::draw()?;
                request
                    .journal
                    .note(request, &[Made::Pool { id: Some(uuid.to_string()), is_private: false }])?;
                Pool::create(&dir, &PoolOptions { uuid: Some(uuid), ..pool_options(&request.options, open) })?
            }
            (false, false) => {
                return Err(Error::usage("object", "the directory contains no pool")
                    .with("directory", dir.display())
                    .remedy("create one with strata pool create, or run a phase that stores data"));
            }
        };
        let mut notes = pool.findings().to_vec();
        let made_pool = (!exists).then(|| pool.info().uuid);
        if exists {
            check_sizes(&dir, &pool.info(), request, &mut notes)?;
        }
        Ok(Self {
            targets: pool.targets().len() as u32,
            pool: Arc::new(RwLock::new(Some(pool))),
            dir,
            request: request.clone(),
            notes,
            made_pool: Mutex::new(made_pool),
            is_private: AtomicBool::new(false),
            made: Containers::default(),
        })
    }

    /// UUID of the container of a label; none where there is none.
    fn id_of(&self, label: &str) -> Result<Option<String>, Error> {
        self.with_pool(|pool| Ok(pool.find_container(label).map(|facts| facts.uuid)))
    }

    /// Makes a container that is not there.
    fn make(&self, pool: &Pool, label: &str) -> Result<(), Error> {
        if pool.find_container(label).is_some() {
            return Ok(());
        }
        if !self.request.creates {
            return Err(no_container(&self.dir, label));
        }
        let maker = Some(self.run());
        let properties = ContainerProperties { checksum: self.request.options.checksum, maker };
        if self.made_pool.lock().is_some() {
            // It goes with the pool.
            return pool.create_container(label, &properties).map(drop);
        }
        self.made.make(&self.request, label, || {
            pool.create_container(label, &properties)?;
            Ok(pool.find_container(label).map(|facts| facts.uuid))
        })
    }

    fn claim(&self, pool: &Pool, label: &str, ids: Ids) -> Result<(), Error> {
        let id = pool.find_container(label).map(|facts| facts.uuid).unwrap_or_default();
        if self.made_pool.lock().is_some() {
            return claim(&self.request, "object", label, ids, |asked| pool.claim(label, asked));
        }
        self.made.claim(&self.request, "object", (label, id), ids, |asked| pool.claim(label, asked))
    }

    fn run(&self) -> u64 {
        self.request.journal.run()
    }

    fn end(&self, label: &str, only_looks: bool) -> Result<Ending, Error> {
        self.with_pool(|pool| pool.end_run(label, self.run(), only_looks))
    }

    /// Destroys the pool that the run made where all that is in it is the run's own; else what is, and the pool stays.
    fn end_pool(&self, removing: Removing<'_>) -> Result<Vec<String>, Error> {
        let mut others = self.of_others()?;
        if others.is_empty() {
            let pool = self.pool.write().take();
            pool.map_or(Ok(()), Pool::destroy_open)?;
            removing(1);
            return Ok(others);
        }
        let labels: Vec<String> =
            self.with_pool(|pool| Ok(pool.containers().into_iter().map(|facts| facts.label).collect()))?;
        let mut count = 0;
        for label in labels {
            match self.end(&label, false)? {
                Ending::Destroyed => count += 1,
                Ending::Cleared { objects, .. } => count += objects,
                Ending::Nothing => {}
            }
            removing(count);
        }
        others.insert(
            0,
            format!(
                "pool in {}: kept, because other processes use it (created by this run)",
                self.dir.display()
            ),
        );
        Ok(others)
    }

    /// Contents of the pool that the run made which are not its own.
    fn of_others(&self) -> Result<Vec<String>, Error> {
        if self.is_private.load(Ordering::Relaxed) {
            return Ok(Vec::new());
        }
        self.with_pool(|pool| pool.of_others(self.run()))
    }

    /// Does something with the pool.
    fn with_pool<T>(&self, act: impl FnOnce(&Pool) -> Result<T, Error>) -> Result<T, Error> {
        match &*self.pool.read() {
            Some(pool) => act(pool),
            None => Err(closed()),
        }
    }
}

fn closed() -> Error {
    Error::new(driver::ErrorKind::Run, "object", "the pool is closed")
}

/// Refuses a phase that the pool which a run is going to make cannot carry out.
///
/// # Errors
/// Bad usage: the pool is too small to be one, values that it does not take, a class that needs more targets.
pub fn check_new_pool(plan: &ObjectPlan) -> Result<(), Error> {
    let options = pool_options(&plan.options, OpenOptions::default());
    Placement::new(plan.class, options.targets)?;
    check_value_size(plan, options.value_bytes_max()?)
}

fn pool_options(options: &ObjectOptions, open: OpenOptions) -> PoolOptions {
    let default = PoolOptions::default();
    let or = |value: u64, default: u64| if value == 0 { default } else { value };
    PoolOptions {
        targets: options.targets.max(1),
        scm_bytes: or(options.scm_bytes, default.scm_bytes),
        nvme_bytes: options.nvme_bytes,
        threshold_bytes: or(options.threshold_bytes, default.threshold_bytes),
        open,
        uuid: None,
    }
}

/// A pool that is there has the size it was made with: more is refused, and what was not asked for is said.
fn check_sizes(
    dir: &Path,
    info: &PoolInfo,
    request: &ConnectRequest,
    notes: &mut Vec<String>,
) -> Result<(), Error> {
    let options = &request.options;
    let sizes =
        [("--scm", options.scm_bytes, info.scm_bytes), ("--nvme", options.nvme_bytes, info.nvme_bytes)];
    for (option, asked, found) in sizes {
        let (wanted, there) = (ByteSize(asked), ByteSize(found));
        // What was asked for when it was made was rounded down, to whole segments and blocks of all targets.
        let rounded = if option == "--scm" { found / 16 } else { u64::from(info.targets) * 4096 };
        if asked >= found + rounded.max(1) && found > 0 || found == 0 && asked > 0 {
            let message = format!("the pool has {there} of {option}, but {wanted} is requested");
            return Err(Error::usage("object", message).with("directory", dir.display()).remedy(format!(
                "use {option} {there} or less, or destroy the pool (strata pool destroy) and create a new one"
            )));
        }
        if asked != 0 && asked < found {
            notes.push(format!(
                "the existing pool was created with {option} {there} and keeps it; the requested {wanted} is less"
            ));
        }
    }
    if options.targets > 1 && options.targets != info.targets {
        let message = format!("the pool has {} targets, but {} are requested", info.targets, options.targets);
        return Err(Error::usage("object", message)
            .with("directory", dir.display())
            .remedy("leave out the option, or destroy the pool and create a new one"));
    }
    Ok(())
}

/// Label of a worker's container.
fn label(plan: &ObjectPlan, worker: u32) -> String {
    match plan.containers {
        Scope::Shared => plan.container.clone(),
        Scope::Private => format!("{}.{worker}", plan.container),
    }
}

/// Labels of the containers of all workers.
fn labels(plan: &ObjectPlan) -> impl Iterator<Item = String> + '_ {
    let workers = if plan.containers == Scope::Private { plan.load.threads } else { 1 };
    (0..workers).map(|worker| label(plan, worker))
}

fn no_container(dir: &Path, label: &str) -> Error {
    Error::usage("object", format!("the pool has no container {label:?}"))
        .with("directory", dir.display())
        .remedy("create it with strata container create, or run a phase that stores data")
}

impl Backend for Vos {
    fn facts(&self) -> BackendFacts {
        let durable_by = self.pool.read().as_ref().map_or_else(String::new, Pool::durable_by);
        BackendFacts { targets: self.targets, durable_by, notes: self.notes.clone() }
    }

    fn check(&self, plan: &ObjectPlan) -> Result<(), Error> {
        Placement::new(plan.class, self.targets)?;
        self.with_pool(|pool| {
            check_value_size(plan, pool.info().value_bytes_max)?;
            let Some(epoch) = plan.snapshot else { return Ok(()) };
            labels(plan).try_for_each(|label| {
                let facts = pool.find_container(&label).ok_or_else(|| no_container(&self.dir, &label))?;
                snapshots::check(epoch, &label, &facts.snapshots, snapshots::MAKER)
            })
        })
    }

    fn prepare(&self, plan: &ObjectPlan) -> Result<(), Error> {
        self.check(plan)?;
        for label in labels(plan) {
            self.with_pool(|pool| {
                self.make(pool, &label)?;
                changed_ids(plan).map_or(Ok(()), |ids| self.claim(pool, &label, ids))
            })?;
        }
        // Pages that come into being while a phase is measured would be in its latencies.
        self.with_pool(|pool| {
            let (log_bytes, data_bytes) = appended_bytes(plan, |bytes| pool.is_external(bytes));
            pool.stock(log_bytes, data_bytes, &self.request.interrupt);
            Ok(())
        })
    }

    fn drop_cache(&self) -> Result<(), Error> {
        let failed = |error| {
            Error::system("object", "cannot drop the cache of the store", error)
                .with("directory", self.dir.display())
        };
        self.with_pool(|pool| pool.drop_cache().map_err(failed))
    }

    fn open(&self, request: &OpenRequest) -> Result<Opened<ObjectOperation>, Error> {
        let label = label(&request.plan, request.worker);
        let (targets, order, container): (_, _, ContainerFacts) = self.with_pool(|pool| {
            let facts = pool.find_container(&label).ok_or_else(|| no_container(&self.dir, &label))?;
            Ok((pool.targets().to_vec(), Arc::clone(pool.order()), facts))
        })?;
        let placement = Placement::new(request.plan.class, self.targets)?;
        let volume = volume::Volume::new(targets, container.id, placement, &request.plan, order);
        let worker =
            worker::Worker::new(volume, Arc::clone(&self.pool), label, request, &self.request.options);
        Ok(Opened { driver: Box::new(worker), notes: Vec::new() })
    }

    fn pool(&self) -> Result<Option<PoolInfo>, Error> {
        self.with_pool(|pool| Ok(Some(pool.info())))
    }

    fn keep(&self) -> Result<(), Error> {
        self.with_pool(|pool| pool.keep(self.run()))
    }

    fn clean(&self, removing: Removing<'_>) -> Result<Vec<String>, Error> {
        if self.made_pool.lock().is_some() {
            let left = self.end_pool(removing)?;
            self.made_pool.lock().take();
            return self.request.journal.note(&self.request, &[]).map(|()| left);
        }
        let end = |label: &str| self.end(label, false).map(Into::into);
        self.made.clean(&self.request, removing, |label| self.id_of(label), end)
    }

    fn take_over(&self, made: &[Made]) -> Result<(), Error> {
        let [Made::Pool { id, is_private }] = made else { return self.made.take_over(made) };
        let now = self.with_pool(|pool| Ok(pool.info().uuid))?;
        if id.as_ref() == Some(&now) {
            *self.made_pool.lock() = id.clone();
            self.is_private.store(*is_private, Ordering::Relaxed);
            return Ok(());
        }
        Err(Error::usage("object", "the pool in the directory is not the one that this run created")
            .with("directory", self.dir.display()))
    }

    fn look(&self) -> Result<Vec<String>, Error> {
        if self.made_pool.lock().is_some() {
            let mut others = self.of_others()?;
            if others.is_empty() {
                return Ok(vec![format!("pool in {} and all its contents", self.dir.display())]);
            }
            for facts in self.with_pool(|pool| Ok(pool.containers()))? {
                let ending = self.end(&facts.label, true)?;
                if ending != Ending::Nothing {
                    others.push(told(&facts.label, &ending));
                }
            }
            others.insert(0, format!("pool in {}: kept, because other processes use it", self.dir.display()));
            return Ok(others);
        }
        self.made.look(|label| self.id_of(label), |label| self.end(label, true))
    }

    fn close(&self) -> Result<(), Error> {
        let pool = self.pool.write().take();
        pool.map_or(Ok(()), Pool::close)
    }
}
