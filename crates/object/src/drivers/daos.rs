//! `daos`: a DAOS pool through libdaos. Each worker has an event queue, and an event for each slot.

mod worker;

use std::collections::HashMap;
use std::ffi::{CString, c_int};
use std::sync::Arc;

use driver::{Capabilities, Error, ErrorKind, Opened};
use parking_lot::Mutex;
use workload::object::{Made, ObjectPlan, Scope};

use crate::backend::Removing;
use crate::claims::Ending;
use crate::containers::{Containers, Fate};
use crate::daos::errors::failed;
use crate::daos::session::{Container, Pool};
use crate::{Backend, BackendFacts, ConnectRequest, ObjectOperation, OpenRequest, Registration};

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
        options: &["container", "containers", "class", "daos-system"],
    },
    connect,
};

const DEPTH_MAX: u32 = 1024;
/// `-DER_NONEXIST`.
const NONEXISTENT: c_int = -1005;
/// `-DER_EXIST`.
const EXISTS: c_int = -1004;
/// `-DER_BUSY`.
const BUSY: c_int = -1012;

struct Daos {
    pool: Arc<Pool>,
    label: String,
    /// Container that the target names.
    container: Option<String>,
    request: ConnectRequest,
    threads: u32,
    open: Mutex<HashMap<String, Arc<Container>>>,
    /// Containers that this run made.
    made: Containers,
}

fn connect(request: &ConnectRequest) -> Result<Arc<dyn Backend>, Error> {
    let (pool, container) = parse(&request.target)?;
    let system = request.options.daos_system.as_deref();
    Ok(Arc::new(Daos {
        pool: Arc::new(Pool::connect(&pool, system)?),
        label: pool,
        container,
        request: request.clone(),
        threads: request.threads.max(1),
        open: Mutex::default(),
        made: Containers::default(),
    }))
}

/// Pool, and container where it is named.
fn parse(target: &str) -> Result<(String, Option<String>), Error> {
    let bad = || {
        Error::usage("daos", format!("{target:?} names no pool"))
            .remedy("accepted is daos://POOL or daos://POOL/CONTAINER, by label or UUID")
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

    /// UUID of the container of a label; none where there is none.
    fn id_of(&self, label: &str) -> Result<Option<String>, Error> {
        match self.pool.id_of(&CString::new(label).unwrap_or_default()) {
            Ok(id) => Ok(Some(id)),
            Err(NONEXISTENT) => Ok(None),
            Err(code) => Err(failed("the container cannot be opened", code)
                .with("pool", &self.label)
                .with("container", label)),
        }
    }

    /// The container of that label, opened once; made where it may be.
    fn container(&self, label: &str) -> Result<Arc<Container>, Error> {
        let mut open = self.open.lock();
        if let Some(container) = open.get(label) {
            return Ok(container.clone());
        }
        let name =
            CString::new(label).map_err(|_| Error::usage("daos", format!("{label:?} has a NUL in it")))?;
        let place = |error: Error| error.with("pool", &self.label).with("container", label);
        let code = match Container::open(&self.pool, &name) {
            Err(NONEXISTENT) if self.request.creates => {
                self.made.make(&self.request, label, || match self.pool.create(&name) {
                    Ok(id) => Ok(Some(id)),
                    Err(EXISTS) => Ok(None),
                    Err(code) => Err(place(failed("the container cannot be made", code))),
                })?;
                Container::open(&self.pool, &name)
            }
            opened => opened,
        };
        let container = match code {
            Ok(container) => Arc::new(container),
            Err(NONEXISTENT) => {
                let message = format!("there is no container {label} in pool {}", self.label);
                return Err(Error::new(ErrorKind::Run, "daos", message)
                    .remedy(format!("make it: daos container create {} {label}", self.label)));
            }
            Err(code) => return Err(place(failed("the container cannot be opened", code))),
        };
        open.insert(label.to_owned(), container.clone());
        Ok(container)
    }
}

impl Backend for Daos {
    fn facts(&self) -> BackendFacts {
        BackendFacts { targets: 1, durable_by: "the cluster's own means".to_owned(), notes: Vec::new() }
    }

    fn prepare(&self, plan: &ObjectPlan) -> Result<(), Error> {
        let workers = match plan.containers {
            Scope::Shared => 1,
            Scope::Private => self.threads,
        };
        (0..workers).try_for_each(|worker| self.container(&self.label(plan, worker)).map(drop))
    }

    fn open(&self, request: &OpenRequest) -> Result<Opened<ObjectOperation>, Error> {
        let plan = &request.plan;
        if plan.load.depth > DEPTH_MAX {
            let message = format!("a depth of {} is more than daos takes", plan.load.depth);
            return Err(Error::usage("daos", message).remedy(format!("at most {DEPTH_MAX}")));
        }
        let container = self.container(&self.label(plan, request.worker))?;
        Ok(Opened { driver: Box::new(worker::Worker::new(container, request)?), notes: Vec::new() })
    }

    fn clean(&self, removing: Removing<'_>) -> Result<Vec<String>, Error> {
        self.open.lock().clear();
        let destroy = |label: &str| match self.pool.destroy(&CString::new(label).unwrap_or_default()) {
            0 | NONEXISTENT => Ok(Fate::Gone),
            BUSY => Ok(Fate::InUse),
            code => Err(failed("the container cannot be destroyed", code)
                .with("pool", &self.label)
                .with("container", label)),
        };
        self.made.clean(&self.request, removing, |label| self.id_of(label), destroy)
    }

    fn take_over(&self, made: &[Made]) -> Result<(), Error> {
        self.made.take_over(made)
    }

    fn look(&self) -> Result<Vec<String>, Error> {
        self.made.look(|label| self.id_of(label), |_| Ok(Ending::Destroyed))
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
