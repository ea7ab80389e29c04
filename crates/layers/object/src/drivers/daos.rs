//! `daos`: a DAOS pool through libdaos. Each worker has an event queue, and an event for each slot.

mod ids;
mod placed;
mod sweep;
mod worker;

use std::collections::HashMap;
use std::ffi::CString;
use std::sync::Arc;

use driver::{Capabilities, Error, ErrorKind, Opened};
use parking_lot::Mutex;

use crate::plan::{Made, ObjectPlan, Scope};

use ids::ObjectIds;
use placed::Placement;
use vos::PoolInfo;
use vos::claims::Ending;

use crate::backend::Removing;
use crate::containers::{Containers, Fate, changed_ids, parts_to_prepare, unseen};
use crate::daos::abi::PoolFacts;
use crate::daos::calls::Patience;
use crate::daos::errors::{BUSY, EXISTS, NONEXISTENT, failed};
use crate::daos::session::{Container, Pool, hexadecimal};
use crate::{Backend, BackendFacts, ConnectRequest, ObjectOperation, OpenRequest, Registration, snapshots};

/// The table line.
pub(super) const REGISTRATION: Registration = Registration {
    name: "daos",
    target: "daos://POOL/CONTAINER",
    summary: "a DAOS pool: key-value, array and multi-level objects through libdaos",
    capabilities: Capabilities {
        classes: &[
            "update",
            "fetch",
            "punch",
            "put",
            "get",
            "remove",
            "list",
            "stat",
            "write",
            "read",
            "size",
            "create",
            "open",
            "open-with-attr",
            "destroy",
            "open-container",
            "allocate-ids",
        ],
        asynchronous: true,
        depth_max: DEPTH_MAX,
        targetless: false,
        direct: false,
        options: &["container", "containers", "class", "snapshot", "daos-system"],
    },
    connect,
};

const DEPTH_MAX: u32 = 1024;

struct Daos {
    pool: Arc<Pool>,
    label: String,
    facts: PoolFacts,
    /// Container that the target names.
    container: Option<String>,
    request: ConnectRequest,
    threads: u32,
    open: Mutex<HashMap<String, Arc<Container>>>,
    /// Containers that this run made.
    made: Containers,
    /// Objects that it puts into others.
    placed: Placement,
}

fn connect(request: &ConnectRequest) -> Result<Arc<dyn Backend>, Error> {
    let (pool, container) = parse(&request.target)?;
    let system = request.options.daos_system.as_deref();
    let connection = Pool::connect(&pool, system, &request.interrupt)?;
    let facts = connection.query(Patience::Asking).map_err(|error| error.with("pool", &pool))?;
    Ok(Arc::new(Daos {
        pool: Arc::new(connection),
        label: pool,
        facts,
        container,
        request: request.clone(),
        threads: request.threads.max(1),
        open: Mutex::default(),
        made: Containers::default(),
        placed: Placement::default(),
    }))
}

/// Pool, and container where it is named.
fn parse(target: &str) -> Result<(String, Option<String>), Error> {
    let bad = || {
        Error::usage("daos", format!("{target:?} does not name a pool"))
            .remedy("accepted: daos://POOL or daos://POOL/CONTAINER, by label or UUID")
    };
    let rest = target.strip_prefix("daos://").ok_or_else(bad)?;
    let (pool, container) = rest.split_once('/').map_or((rest, ""), |parts| parts);
    let container = container.trim_end_matches('/');
    if pool.is_empty() || container.contains('/') || rest.contains('\0') {
        return Err(bad());
    }
    Ok((pool.to_owned(), (!container.is_empty()).then(|| container.to_owned())))
}

impl Daos {
    /// Label of the container of a worker.
    fn label(&self, plan: &ObjectPlan, worker: u32) -> String {
        let label = self.container.as_deref().unwrap_or(&plan.container);
        match plan.containers {
            Scope::Shared => label.to_owned(),
            Scope::Private => format!("{label}.{worker}"),
        }
    }

    /// The container of a label, for what is done at the end; none where there is none.
    fn find(&self, label: &str) -> Result<Option<Arc<Container>>, Error> {
        let name = CString::new(label).unwrap_or_default();
        match Container::open(&self.pool, &name, Patience::Cleaning) {
            Ok(container) => Ok(Some(Arc::new(container))),
            Err(NONEXISTENT) => Ok(None),
            Err(code) => Err(failed("the container cannot be opened", code)
                .with("pool", &self.label)
                .with("container", label)),
        }
    }

    fn no_container(&self, kind: ErrorKind, label: &str) -> Error {
        let message = format!("pool {} has no container {label}", self.label);
        let remedy = format!("create it: daos container create {} {label}", self.label);
        Error::new(kind, "daos", message).remedy(remedy)
    }

    /// Refuses a snapshot that a container does not have.
    fn check_snapshot(&self, epoch: u64, label: &str) -> Result<(), Error> {
        let found = self.find(label)?;
        let container = found.ok_or_else(|| self.no_container(ErrorKind::Usage, label))?;
        let there = container.snapshots().map_err(|code| {
            failed("the snapshots cannot be listed", code).with("pool", &self.label).with("container", label)
        })?;
        let maker = format!("daos container create-snap {} {label}", self.label);
        snapshots::check(epoch, label, &there, &maker)
    }

    /// Its UUID.
    fn id_of(&self, label: &str) -> Result<Option<String>, Error> {
        Ok(self.find(label)?.map(|container| container.id()))
    }

    /// Sees that a phase changes nothing of others in a container that the run did not make.
    fn claim(&self, plan: &ObjectPlan, container: &Container) -> Result<(), Error> {
        let Some(ids) = changed_ids(plan) else { return Ok(()) };
        if self.made.has(&container.label.to_string_lossy()) {
            return Ok(());
        }
        let objects = ObjectIds { upper: ids::upper(container, plan)?, ids };
        self.placed.claim(&self.request, &self.made, container, &objects)
    }

    /// The container of that label, opened once; made where it may be.
    fn container(&self, label: &str) -> Result<Arc<Container>, Error> {
        let mut open = self.open.lock();
        if let Some(container) = open.get(label) {
            return Ok(container.clone());
        }
        let name = CString::new(label)
            .map_err(|_| Error::usage("daos", format!("{label:?} contains a NUL byte")))?;
        let place = |error: Error| error.with("pool", &self.label).with("container", label);
        let code = match Container::open(&self.pool, &name, Patience::Asking) {
            Err(NONEXISTENT) if self.request.creates => {
                self.made.make(&self.request, label, || match self.pool.create(&name) {
                    Ok(id) => Ok(Some(id)),
                    Err(EXISTS) => Ok(None),
                    Err(code) => Err(place(failed("the container cannot be created", code))),
                })?;
                Container::open(&self.pool, &name, Patience::Asking)
            }
            opened => opened,
        };
        let container = match code {
            Ok(container) => Arc::new(container),
            Err(NONEXISTENT) => return Err(self.no_container(ErrorKind::Run, label)),
            Err(code) => return Err(place(failed("the container cannot be opened", code))),
        };
        open.insert(label.to_owned(), container.clone());
        Ok(container)
    }
}

impl Backend for Daos {
    fn facts(&self) -> BackendFacts {
        let PoolFacts { targets, disabled, .. } = self.facts;
        let notes =
            (disabled > 0).then(|| format!("{disabled} of the {targets} targets of the pool are not in use"));
        BackendFacts {
            targets: targets.saturating_sub(disabled),
            durable_by: "as configured in the cluster".to_owned(),
            notes: notes.into_iter().collect(),
        }
    }

    fn check(&self, plan: &ObjectPlan) -> Result<(), Error> {
        let Some(epoch) = plan.snapshot else { return Ok(()) };
        plan.container_parts().try_for_each(|part| self.check_snapshot(epoch, &self.label(plan, part)))
    }

    fn prepare(&self, plan: &ObjectPlan) -> Result<(), Error> {
        self.check(plan)?;
        if plan.is_guest() {
            let label = self.label(plan, 0);
            return self.id_of(&label)?.map(drop).ok_or_else(|| unseen("daos", &label));
        }
        let parts = parts_to_prepare(plan, self.threads);
        parts.into_iter().try_for_each(|part| self.claim(plan, &*self.container(&self.label(plan, part))?))
    }

    fn open(&self, request: &OpenRequest) -> Result<Opened<ObjectOperation>, Error> {
        let plan = &request.plan;
        if plan.load.depth > DEPTH_MAX {
            let message = format!("a depth of {} exceeds the DAOS limit", plan.load.depth);
            return Err(Error::usage("daos", message).remedy(format!("use at most {DEPTH_MAX}")));
        }
        let container = self.container(&self.label(plan, request.worker))?;
        Ok(Opened { driver: Box::new(worker::Worker::new(container, request)?), notes: Vec::new() })
    }

    fn pool(&self) -> Result<Option<PoolInfo>, Error> {
        let facts = self.pool.query(Patience::Brief)?;
        Ok(Some(PoolInfo {
            name: self.label.clone(),
            uuid: hexadecimal(&facts.uuid),
            targets: facts.targets,
            scm_bytes: facts.total[0],
            scm_free_bytes: facts.free[0],
            nvme_bytes: facts.total[1],
            nvme_free_bytes: facts.free[1],
            ..PoolInfo::default()
        }))
    }

    fn clean(&self, removing: Removing<'_>) -> Result<Vec<String>, Error> {
        let opened = std::mem::take(&mut *self.open.lock());
        let open = |label: &str| match opened.get(label) {
            Some(container) => Ok(Some(container.clone())),
            None => self.find(label),
        };
        let (objects, mut left) = self.placed.clean(&self.request, &self.made, removing, open)?;
        drop(opened);
        let destroy = |label: &str| match self.pool.destroy(&CString::new(label).unwrap_or_default()) {
            0 | NONEXISTENT => Ok(Fate::Gone),
            BUSY => Ok(Fate::InUse),
            code => Err(failed("the container cannot be destroyed", code)
                .with("pool", &self.label)
                .with("container", label)),
        };
        let after = |count| removing(objects + count);
        left.extend(self.made.clean(&self.request, &after, |label| self.id_of(label), destroy)?);
        Ok(left)
    }

    fn take_over(&self, made: &[Made]) -> Result<(), Error> {
        self.made.take_over(&self.placed.take_over(made)?)
    }

    fn look(&self) -> Result<Vec<String>, Error> {
        let mut lines = self.placed.look(|label| self.id_of(label))?;
        lines.extend(self.made.look(|label| self.id_of(label), |_| Ok(Ending::Destroyed))?);
        Ok(lines)
    }

    fn close(&self) -> Result<(), Error> {
        self.open.lock().clear();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_name_a_pool_and_perhaps_a_container() {
        assert_eq!(parse("daos://p/c").expect("good"), ("p".to_owned(), Some("c".to_owned())));
        assert_eq!(parse("daos://p").expect("good"), ("p".to_owned(), None));
        for bad in ["daos:p", "daos://", "daos:///c", "daos://p/c/d"] {
            let error = parse(bad).expect_err(bad).to_string();
            assert!(error.contains("daos://POOL/CONTAINER"), "{error}");
        }
    }
}
