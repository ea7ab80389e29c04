//! `vos:DIR`: the embedded store, in this process.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use driver::{Capabilities, Error, Opened, Operation};
use parking_lot::{Mutex, RwLock};
use units::ByteSize;
use workload::object::{ObjectPlan, Scope};

use crate::placement::Placement;
use crate::source::appended_bytes;
use crate::store::{ContainerFacts, ContainerProperties, OpenOptions, Pool, PoolOptions};
use crate::{Backend, BackendFacts, ConnectRequest, ObjectOperation, OpenRequest, PoolInfo, Registration};

mod arrays;
mod coded;
mod listing;
mod volume;
mod worker;

#[cfg(test)]
mod tests;

use coded::Locks;

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
            "scm",
            "nvme",
            "threshold",
            "store-targets",
            "durability",
            "flush",
            "checksum",
            "zero-copy",
        ],
    },
    connect: |request| Ok(Arc::new(Vos::connect(request)?)),
};

/// The pool, as long as it is open: shared with drivers, which ask it for containers and ids.
type Shared = Arc<RwLock<Option<Pool>>>;

/// What this run made, and may destroy.
#[derive(Default)]
struct Made {
    pool: bool,
    containers: Vec<String>,
}

struct Vos {
    dir: PathBuf,
    request: ConnectRequest,
    pool: Shared,
    targets: u32,
    notes: Vec<String>,
    made: Mutex<Made>,
    locks: Arc<Locks>,
}

impl Vos {
    fn connect(request: &ConnectRequest) -> Result<Self, Error> {
        let dir = request.target.strip_prefix("vos:").map(|dir| dir.strip_prefix("//").unwrap_or(dir));
        let dir = PathBuf::from(dir.unwrap_or_default());
        if dir.as_os_str().is_empty() {
            return Err(
                Error::usage("object", "vos: names no directory").remedy("give one: vos:/dev/shm/pool")
            );
        }
        let options = &request.options;
        let open = OpenOptions { durability: options.durability, flush: options.flush };
        let exists = Pool::exists(&dir);
        let pool = match (exists, request.creates) {
            (true, _) => Pool::open(&dir, &open)?,
            (false, true) => Pool::create(&dir, &pool_options(request, open))?,
            (false, false) => {
                return Err(Error::usage("object", "there is no pool in the directory")
                    .with("directory", dir.display())
                    .remedy("make one with strata pool create, or run a phase that stores something"));
            }
        };
        let mut notes = pool.findings().to_vec();
        if exists {
            check_sizes(&dir, &pool.info(), request, &mut notes)?;
        }
        Ok(Self {
            targets: pool.targets().len() as u32,
            pool: Arc::new(RwLock::new(Some(pool))),
            dir,
            request: request.clone(),
            notes,
            made: Mutex::new(Made { pool: !exists, containers: Vec::new() }),
            locks: Arc::new(Locks::new()),
        })
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

fn pool_options(request: &ConnectRequest, open: OpenOptions) -> PoolOptions {
    let (options, default) = (&request.options, PoolOptions::default());
    let or = |value: u64, default: u64| if value == 0 { default } else { value };
    PoolOptions {
        targets: options.targets.max(1),
        scm_bytes: or(options.scm_bytes, default.scm_bytes),
        nvme_bytes: options.nvme_bytes,
        threshold_bytes: or(options.threshold_bytes, default.threshold_bytes),
        open,
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
        if asked > found {
            let message = format!("the pool has {there} of {option}, and {wanted} are asked for");
            return Err(Error::usage("object", message).with("directory", dir.display()).remedy(format!(
                "give {option} {there} or less, or destroy the pool (strata pool destroy) and have it made anew"
            )));
        }
        if asked != 0 && asked != found {
            notes.push(format!(
                "the pool was made with {option} {there}, and has it still: {wanted} are less"
            ));
        }
    }
    if options.targets > 1 && options.targets != info.targets {
        let message = format!("the pool has {} targets, and {} are asked for", info.targets, options.targets);
        return Err(Error::usage("object", message)
            .with("directory", dir.display())
            .remedy("leave out the option, or destroy the pool and have it made anew"));
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

fn no_container(dir: &Path, label: &str) -> Error {
    Error::usage("object", format!("the pool has no container {label:?}"))
        .with("directory", dir.display())
        .remedy("make it with strata container create, or run a phase that stores something")
}

impl Backend for Vos {
    fn facts(&self) -> BackendFacts {
        let durable_by = self.pool.read().as_ref().map_or_else(String::new, Pool::durable_by);
        BackendFacts { targets: self.targets, durable_by, notes: self.notes.clone() }
    }

    fn prepare(&self, plan: &ObjectPlan) -> Result<(), Error> {
        Placement::new(plan.class, self.targets)?;
        let workers = if plan.containers == Scope::Private { plan.load.threads } else { 1 };
        for label in (0..workers).map(|worker| label(plan, worker)) {
            self.with_pool(|pool| {
                if pool.find_container(&label).is_some() {
                    return Ok(());
                }
                if !self.request.creates {
                    return Err(no_container(&self.dir, &label));
                }
                pool.create_container(
                    &label,
                    &ContainerProperties { checksum: self.request.options.checksum },
                )?;
                self.made.lock().containers.push(label.clone());
                Ok(())
            })?;
        }
        // Pages that come into being while a phase is measured would be in its latencies.
        let bytes = appended_bytes(plan);
        self.with_pool(|pool| {
            pool.stock(bytes, &self.request.interrupt);
            Ok(())
        })
    }

    fn open(&self, request: &OpenRequest) -> Result<Opened<ObjectOperation>, Error> {
        let label = label(&request.plan, request.worker);
        let (targets, container): (_, ContainerFacts) = self.with_pool(|pool| {
            let facts = pool.find_container(&label).ok_or_else(|| no_container(&self.dir, &label))?;
            Ok((pool.targets().to_vec(), facts))
        })?;
        let placement = Placement::new(request.plan.class, self.targets)?;
        let volume =
            volume::Volume::new(targets, container.id, placement, &request.plan, Arc::clone(&self.locks));
        let worker =
            worker::Worker::new(volume, Arc::clone(&self.pool), label, request, &self.request.options);
        Ok(Opened { driver: Box::new(worker), notes: Vec::new() })
    }

    fn pool(&self) -> Result<Option<PoolInfo>, Error> {
        self.with_pool(|pool| Ok(Some(pool.info())))
    }

    fn clean(&self) -> Result<(), Error> {
        let made = std::mem::take(&mut *self.made.lock());
        if made.pool {
            drop(self.pool.write().take());
            return Pool::destroy(&self.dir);
        }
        made.containers.iter().try_for_each(|label| self.with_pool(|pool| pool.destroy_container(label)))
    }

    fn close(&self) -> Result<(), Error> {
        let pool = self.pool.write().take();
        pool.map_or(Ok(()), Pool::close)
    }
}
