//! The pool that an engine serves objects from.

use std::path::PathBuf;
use std::sync::Arc;

use driver::Error;
use layer::server::{EngineService, EngineSpec, Served};
use object_service::{Pools, factory};
use rpc::engine::ServiceFactory;
use units::{ByteSize, ParseError, label_of};
use vos::{Allocation, Durability, Flush, OpenOptions, Pool, PoolOptions};
use workload::spec::choice;

use crate::load::scratch;

/// Mapped memory of a pool that is made, where nothing is said, in bytes.
const SCM_BYTES: u64 = 1 << 30;
/// A log has this many segments at least.
const SEGMENTS_MIN: u64 = 16;
/// Values from this size on go to the data file, where nothing is said, in bytes.
const THRESHOLD_BYTES: u64 = 4096;

/// Targets of a pool that is made, where nothing is said.
const TARGETS: u32 = 1;

/// The value of a word of the options, or its default.
fn word<T: Default>(
    said: Option<&str>,
    parse: impl FnOnce(&str) -> Result<T, ParseError>,
) -> Result<T, Error> {
    let parsed = said.map(parse).transpose();
    Ok(parsed.map_err(|error| Error::usage("options", error.to_string()))?.unwrap_or_default())
}

/// An open pool, with its label.
struct ServedPool {
    label: String,
    directory: PathBuf,
    pool: Arc<Pool>,
    /// The directory was chosen here and goes with the engine.
    is_scratch: bool,
}

impl ServedPool {
    /// Opens the pool of the options, or makes it; none where they name none. `targets` are those of the engine, where they were said.
    ///
    /// # Errors
    /// Options of a pool without one, and why it cannot be opened or made.
    fn open(spec: &EngineSpec, log: &dyn Fn(&str)) -> Result<Option<Self>, Error> {
        if spec.dir.is_none() && spec.pool.is_none() {
            return refuse_without(spec).map(|()| None);
        }
        let (directory, is_scratch) = match &spec.dir {
            Some(directory) => (directory.clone(), false),
            None => (scratch::directory()?, true),
        };
        let name = directory.file_name().map(label_of);
        let label = spec.pool.clone().or(name).unwrap_or_else(|| "pool".to_owned());
        let open = OpenOptions {
            durability: word(spec.durability, |text| choice("durability", text, Durability::CHOICES))?,
            flush: word(spec.flush, |text| choice("flush", text, Flush::CHOICES))?,
            allocation: word(spec.allocate, |text| choice("allocate", text, Allocation::CHOICES))?,
        };
        let pool = if Pool::exists(&directory) {
            let pool = Pool::open(&directory, &open)?;
            check_sizes(spec, &pool)?;
            let targets = pool.targets().len() as u32;
            if let Some(asked) = spec.targets.filter(|asked| *asked != targets) {
                return Err(Error::usage("engine", "the existing pool has a different number of targets")
                    .with("targets", asked)
                    .with("pool_targets", targets)
                    .remedy("leave out --targets"));
            }
            if spec.threshold.is_some() {
                log("the pool already exists: it keeps its threshold, and --threshold is ignored");
            }
            pool
        } else {
            let options = PoolOptions {
                targets: spec.targets.unwrap_or(TARGETS).max(1),
                scm_bytes: spec.scm.map_or(SCM_BYTES, |size| size.0),
                nvme_bytes: spec.nvme.map_or(0, |size| size.0),
                threshold_bytes: spec.threshold.map_or(THRESHOLD_BYTES, |size| size.0),
                open,
                uuid: None,
            };
            Pool::create(&directory, &options)?
        };
        Ok(Some(Self { label, directory, pool: Arc::new(pool), is_scratch }))
    }
}

/// Pools, served by engines.
pub(crate) struct PoolService;

impl EngineService for PoolService {
    fn open(&self, spec: &EngineSpec, log: &dyn Fn(&str)) -> Result<Option<Box<dyn Served>>, Error> {
        Ok(ServedPool::open(spec, log)?.map(|pool| Box::new(pool) as Box<dyn Served>))
    }
}

impl Served for ServedPool {
    fn targets(&self) -> u32 {
        self.pool.targets().len() as u32
    }

    fn words(&self) -> String {
        format!(
            ", pool {} in {} (durable by {})",
            self.label,
            self.directory.display(),
            self.pool.durable_by()
        )
    }

    fn findings(&self) -> Vec<String> {
        self.pool.findings().to_vec()
    }

    fn exposure(&self) -> Option<String> {
        let directory = self.directory.display();
        Pool::is_readable_by_others(&self.directory).then(|| {
            format!("other users of this machine can read the pool's files, even without the token: chmod -R go= {directory}")
        })
    }

    fn services(&self) -> Result<ServiceFactory, Error> {
        Ok(factory(Pools::new()?.with(&self.label, Arc::clone(&self.pool))?))
    }

    fn close(self: Box<Self>) -> Result<(), Error> {
        let pool = Arc::into_inner(self.pool).ok_or_else(|| {
            Error::new(
                driver::ErrorKind::Run,
                "engine",
                "the pool is still in use: its log will be replayed at the next start",
            )
            .with("dir", self.directory.display())
        })?;
        pool.close()?;
        if self.is_scratch { Pool::destroy(&self.directory) } else { Ok(()) }
    }
}

/// Options that are for a pool that is made.
fn sizes(spec: &EngineSpec) -> [(&'static str, bool); 3] {
    [
        ("--scm", spec.scm.is_some()),
        ("--nvme", spec.nvme.is_some()),
        ("--threshold", spec.threshold.is_some()),
    ]
}

/// Refuses sizes that a pool which is there does not have. The same command line may start it again.
fn check_sizes(spec: &EngineSpec, pool: &Pool) -> Result<(), Error> {
    let info = pool.info();
    let asked = [("--scm", spec.scm, info.scm_bytes), ("--nvme", spec.nvme, info.nvme_bytes)];
    for (name, size, has_bytes) in asked {
        // What was asked for was rounded down to whole segments.
        let asked_bytes = size.map_or(0, |size| size.0);
        if asked_bytes > has_bytes.saturating_add(has_bytes / SEGMENTS_MIN) {
            return Err(Error::usage(
                "engine",
                format!("{name} applies when a pool is created, and the existing pool is smaller"),
            )
            .with("asked", ByteSize(asked_bytes))
            .with("has", ByteSize(has_bytes))
            .remedy(format!("leave out {name}, or use another --dir")));
        }
    }
    Ok(())
}

fn refuse_without(spec: &EngineSpec) -> Result<(), Error> {
    let rest = [
        ("--durability", spec.durability.is_some()),
        ("--flush", spec.flush.is_some()),
        ("--allocate", spec.allocate.is_some()),
    ];
    match sizes(spec).iter().chain(&rest).find(|(_, is_given)| *is_given) {
        None => Ok(()),
        Some((name, _)) => {
            Err(Error::usage("engine", format!("{name} requires an engine that serves a pool"))
                .remedy("add --dir DIR or --pool LABEL"))
        }
    }
}
