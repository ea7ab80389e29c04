//! `engine:`: the embedded store behind the endpoints of an engine.
//!
//! Each operation becomes requests to the targets that placement names, one for each copy, cell or chunk; it is done when all of them are.
//! An endpoint that is gone fails its operations by its errno and stays gone for the phase: a driver that connected again in the middle would
//! measure two stores as one. The next phase opens drivers of its own, and so reaches an engine that was started again.

mod cells;
mod coded;
mod driver;
mod geometry;
mod issue;
mod operations;
mod results;

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use ::driver::{Capabilities, Error, Opened, Operation};
use network::client::DEPTH_MAX;
use network::security::Token;
use workload::object::{ObjectOptions, ObjectPlan, Scope};

use crate::placement::Placement;
use crate::service::{Engine, Location, PoolFacts};
use crate::{Backend, BackendFacts, ConnectRequest, ObjectOperation, OpenRequest, PoolInfo, Registration};

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
            "checksum",
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
    options: ObjectOptions,
    token: Option<Token>,
    creates: bool,
    interrupt: Arc<AtomicBool>,
    /// Labels of containers that this run has made.
    made: Mutex<Vec<String>>,
}

fn connect(request: &ConnectRequest) -> Result<Arc<dyn Backend>, Error> {
    let location = Location::parse(&request.target)?;
    let token = request.secrets.token.clone();
    let mut engine = Engine::connect(&location, token.as_ref(), CONTROL_TIMEOUT, &request.interrupt)?;
    let Some(pool) = location.pool.clone() else {
        let pools = engine.pools()?.join(", ");
        return Err(Error::usage("engine", format!("{:?} names no pool", request.target))
            .remedy(format!("the engine has {pools}")));
    };
    let facts = engine.pool(&pool)?;
    Ok(Arc::new(EngineBackend {
        location,
        pool,
        facts,
        options: request.options.clone(),
        token,
        creates: request.creates,
        interrupt: Arc::clone(&request.interrupt),
        made: Mutex::new(Vec::new()),
    }))
}

impl EngineBackend {
    fn control(&self) -> Result<Engine, Error> {
        Engine::connect(&self.location, self.token.as_ref(), CONTROL_TIMEOUT, &self.interrupt)
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

    fn prepare(&self, plan: &ObjectPlan) -> Result<(), Error> {
        geometry::check(plan, &Placement::new(plan.class, self.facts.info.targets)?)?;
        let mut engine = self.control()?;
        let there = engine.containers(&self.pool)?;
        let workers = if plan.containers == Scope::Private { plan.load.threads.max(1) } else { 1 };
        for worker in 0..workers {
            let label = self.container(plan, worker);
            if there.iter().any(|info| info.label == label) {
                continue;
            }
            if !self.creates {
                // Its refusal says what is missing.
                engine.container(&self.pool, &label)?;
            }
            engine.create_container(&self.pool, &label, self.options.checksum)?;
            self.made.lock().unwrap_or_else(PoisonError::into_inner).push(label);
        }
        Ok(())
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
            token: self.token.as_ref(),
            zero_copy: plan.options.zero_copy,
            timeout_ns: if plan.options.timeout_ns == 0 { TIMEOUT_NS } else { plan.options.timeout_ns },
        })
    }

    fn pool(&self) -> Result<Option<PoolInfo>, Error> {
        Ok(Some(self.control()?.pool(&self.pool)?.info))
    }

    fn clean(&self) -> Result<(), Error> {
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        if made.is_empty() {
            return Ok(());
        }
        let mut engine = self.control()?;
        while let Some(label) = made.last() {
            engine.destroy_container(&self.pool, label)?;
            made.pop();
        }
        Ok(())
    }

    fn close(&self) -> Result<(), Error> {
        // The engine's pool stays open: it is another process's.
        Ok(())
    }
}
