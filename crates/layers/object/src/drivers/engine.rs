//! `engine:`: the embedded store behind the endpoints of an engine.
//!
//! Each operation becomes requests to the targets that placement names, one for each chunk; what lies on several shards is changed by the
//! target of the first. An operation is done when all of them are.
//! An endpoint that is gone fails its operations by its errno and stays gone for the phase: a driver that connected again in the middle would
//! measure two stores as one. The next phase opens drivers of its own, and so reaches an engine that was started again. One that did not
//! answer in time is connected to again: it is the same store, or says that it is another (`ESTALE`).

mod driver;
mod geometry;
mod issue;
mod operations;
mod results;
mod watch;

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use ::driver::{Capabilities, Error, ErrorKind, Opened, Operation};
use rpc::client::DEPTH_MAX;

use crate::plan::{Made, ObjectPlan, Scope};

use vos::PoolInfo;
use vos::placement::Placement;

use crate::backend::Removing;
use crate::containers::{Containers, changed_ids, unseen};
use crate::snapshots;
use crate::source::check_value_size;
use crate::{Backend, BackendFacts, ConnectRequest, ObjectOperation, OpenRequest, Registration};
use object_service::{Engine, Location, PoolFacts};

/// The table line.
pub(super) const REGISTRATION: Registration = Registration {
    name: "engine",
    target: "engine://HOST:PORT/POOL/CONTAINER",
    summary: "the embedded store behind the endpoints of an engine (strata engine --pool)",
    capabilities: Capabilities {
        classes: ObjectOperation::CLASSES,
        asynchronous: true,
        depth_max: DEPTH_MAX,
        targetless: false,
        direct: false,
        options: &[
            "container",
            "containers",
            "class",
            "reopen",
            "snapshot",
            "checksum",
            "cache",
            "zero-copy",
            "timeout",
            "token-file",
        ],
    },
    connect,
};

/// Longest wait where none was said.
const TIMEOUT_NS: u64 = 30_000_000_000;
/// Longest wait for an answer about pools and containers.
const CONTROL_TIMEOUT: Duration = Duration::from_secs(30);

/// See the module.
struct EngineBackend {
    location: Location,
    pool: String,
    facts: PoolFacts,
    request: ConnectRequest,
    /// Containers that this run has made.
    made: Containers,
}

fn connect(request: &ConnectRequest) -> Result<Arc<dyn Backend>, Error> {
    let location = Location::parse(&request.target)?;
    let mut engine =
        Engine::connect(&location, request.secret.as_ref(), CONTROL_TIMEOUT, &request.interrupt)?;
    let Some(pool) = location.pool.clone() else {
        let pools = engine.pools()?.join(", ");
        return Err(Error::usage("engine", format!("{:?} does not name a pool", request.target))
            .remedy(format!("the engine has {pools}")));
    };
    let facts = engine.pool(&pool)?;
    Ok(Arc::new(EngineBackend {
        location,
        pool,
        facts,
        request: request.clone(),
        made: Containers::default(),
    }))
}

impl EngineBackend {
    fn control(&self) -> Result<Engine, Error> {
        self.connect(&self.request.interrupt)
    }

    /// A connection for the end of a run, whatever ended it.
    fn last_control(&self) -> Result<Engine, Error> {
        self.connect(&AtomicBool::new(false))
    }

    fn connect(&self, interrupt: &AtomicBool) -> Result<Engine, Error> {
        Engine::connect(&self.location, self.request.secret.as_ref(), CONTROL_TIMEOUT, interrupt)
    }

    /// Makes a container.
    fn make(&self, engine: &mut Engine, label: &str) -> Result<(), Error> {
        if !self.request.creates {
            // Its refusal says what is missing.
            engine.container(&self.pool, label)?;
        }
        let (checksum, run) = (self.request.options.checksum, self.request.journal.run());
        self.made.make(&self.request, label, || {
            match engine.create_container(&self.pool, label, checksum, Some(run)) {
                Ok(info) => Ok(Some(info.uuid)),
                // Another run was quicker.
                Err(error) if error.kind() == ErrorKind::Usage => {
                    engine.container(&self.pool, label).map(|_| None).map_err(|_| error)
                }
                Err(error) => Err(error),
            }
        })
    }

    /// Labels of the containers of this host's workers.
    fn labels(&self, plan: &ObjectPlan) -> impl Iterator<Item = String> {
        plan.container_parts().map(|part| self.container(plan, part))
    }

    /// Label of the container of a worker.
    fn container(&self, plan: &ObjectPlan, worker: u32) -> String {
        let label = self.location.container.as_ref().unwrap_or(&plan.container);
        match plan.containers {
            Scope::Shared => label.clone(),
            Scope::Private => format!("{label}.{worker}"),
        }
    }
}

impl Backend for EngineBackend {
    fn facts(&self) -> BackendFacts {
        BackendFacts {
            targets: self.facts.info.targets,
            durable_by: self.facts.durable_by.clone(),
            notes: self.facts.findings.clone(),
        }
    }

    fn check(&self, plan: &ObjectPlan) -> Result<(), Error> {
        geometry::check(plan, &Placement::new(plan.class, self.facts.info.targets)?)?;
        check_value_size(plan, self.facts.info.value_bytes_max)?;
        let Some(epoch) = plan.snapshot else { return Ok(()) };
        let mut engine = self.control()?;
        self.labels(plan).try_for_each(|label| {
            // Its refusal says which container is missing.
            let info = engine.container(&self.pool, &label)?;
            snapshots::check(epoch, &label, &info.snapshots, snapshots::MAKER)
        })
    }

    fn prepare(&self, plan: &ObjectPlan) -> Result<(), Error> {
        self.check(plan)?;
        let mut engine = self.control()?;
        let there = engine.containers(&self.pool)?;
        for label in self.labels(plan) {
            let is_there = there.iter().any(|info| info.label == label);
            if plan.is_guest() {
                if is_there {
                    continue;
                }
                return Err(unseen("engine", &label));
            }
            if !is_there {
                self.make(&mut engine, &label)?;
            }
            if let Some(ids) = changed_ids(plan) {
                let id = engine.container(&self.pool, &label)?.uuid;
                let claim = |asked: &_| engine.claim(&self.pool, &label, *asked);
                self.made.claim(&self.request, "object", (&label, id), ids, claim)?;
            }
        }
        Ok(())
    }

    fn drop_cache(&self) -> Result<(), Error> {
        self.control()?.drop_cache(&self.pool)
    }

    fn open(&self, request: &OpenRequest) -> Result<Opened<ObjectOperation>, Error> {
        let plan = &request.plan;
        let placement = Placement::new(plan.class, self.facts.info.targets)?;
        let label = self.container(plan, request.worker);
        let handle = self.control()?.open_container(&self.pool, &label)?;
        driver::open(&driver::Opening {
            request,
            placement,
            targets: self.facts.info.targets,
            location: &self.location,
            pool: &self.pool,
            container: &label,
            handle,
            secret: self.request.secret.as_ref(),
            zero_copy: plan.options.zero_copy,
            tells_parts: self.facts.tells_parts,
            timeout_ns: if plan.options.timeout_ns == 0 { TIMEOUT_NS } else { plan.options.timeout_ns },
        })
    }

    fn pool(&self) -> Result<Option<PoolInfo>, Error> {
        Ok(Some(self.control()?.pool(&self.pool)?.info))
    }

    fn keep(&self) -> Result<(), Error> {
        if self.made.is_empty() {
            return Ok(());
        }
        self.last_control()?.keep(&self.pool, self.request.journal.run())
    }

    fn clean(&self, removing: Removing<'_>) -> Result<Vec<String>, Error> {
        if self.made.is_empty() {
            return Ok(Vec::new());
        }
        let (engine, run) = (RefCell::new(self.last_control()?), self.request.journal.run());
        let id_of = |label: &str| id_of(&mut engine.borrow_mut(), &self.pool, label);
        let end = |label: &str| engine.borrow_mut().end_run(&self.pool, label, run, false).map(Into::into);
        self.made.clean(&self.request, removing, id_of, end)
    }

    fn take_over(&self, made: &[Made]) -> Result<(), Error> {
        self.made.take_over(made)
    }

    fn look(&self) -> Result<Vec<String>, Error> {
        let (engine, run) = (RefCell::new(self.last_control()?), self.request.journal.run());
        let id_of = |label: &str| id_of(&mut engine.borrow_mut(), &self.pool, label);
        self.made.look(id_of, |label| engine.borrow_mut().end_run(&self.pool, label, run, true))
    }

    fn close(&self) -> Result<(), Error> {
        // The engine's pool stays open: it is another process's.
        Ok(())
    }
}

/// UUID of the container of a label; none where there is none.
fn id_of(engine: &mut Engine, pool: &str, label: &str) -> Result<Option<String>, Error> {
    let all = engine.containers(pool)?;
    Ok(all.into_iter().find(|info| info.label == label).map(|info| info.uuid))
}
