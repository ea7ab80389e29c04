//! `rados`: Ceph RADOS through librados. Each worker has a namespace handle of its own on one connection; every request is asynchronous
//! but listing, which librados does not offer so.

mod claiming;
mod issue;
mod named;
mod worker;

use std::ffi::CString;
use std::sync::Arc;

use driver::{Capabilities, Error, ErrorKind, Opened};

use crate::plan::{Made, ObjectOp, ObjectPlan, Scope};

use vos::PoolInfo;
use vos::claims::{Asked, Ending};

use crate::backend::Removing;
use crate::containers::{Containers, changed_ids, parts_to_prepare, unseen};
use crate::rados::cluster::{Cluster, List, Pool, refused};
use crate::{Backend, BackendFacts, ConnectRequest, ObjectOperation, OpenRequest, Registration};

/// The table line.
pub(super) const REGISTRATION: Registration = Registration {
    name: "rados",
    target: "rados://POOL[/CONTAINER]",
    summary: "Ceph RADOS: objects of a pool, keys as objects or omap entries, arrays striped over objects",
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
        ],
        asynchronous: true,
        depth_max: DEPTH_MAX,
        targetless: false,
        direct: false,
        options: &["container", "containers", "object-names", "rados-conf", "rados-user", "timeout"],
    },
    connect,
};

const DEPTH_MAX: u32 = 1024;

struct Rados {
    cluster: Arc<Cluster>,
    pool: String,
    /// Container that the target names.
    container: Option<String>,
    request: ConnectRequest,
    threads: u32,
    /// Containers that this run made.
    made: Containers,
    /// Objects with names of their own that this run made.
    named: named::NamedObjects,
}

fn connect(request: &ConnectRequest) -> Result<Arc<dyn Backend>, Error> {
    let (pool, container) = parse(&request.target)?;
    let cluster = Cluster::connect(&request.options)?;
    let cluster = Arc::new(cluster);
    // A pool that is not there is told here, not by the first operation.
    Pool::open(&cluster, &pool, "")?;
    Ok(Arc::new(Rados {
        cluster,
        pool,
        container,
        request: request.clone(),
        threads: request.threads.max(1),
        made: Containers::default(),
        named: named::NamedObjects::default(),
    }))
}

/// Pool, and container where it is named.
fn parse(target: &str) -> Result<(String, Option<String>), Error> {
    let bad = || {
        Error::usage("rados", format!("{target:?} does not name a pool"))
            .remedy("accepted: rados://POOL or rados://POOL/CONTAINER")
    };
    let rest = target.strip_prefix("rados://").ok_or_else(bad)?;
    let (pool, container) = match rest.split_once('/') {
        Some((pool, container)) => (pool, Some(container.trim_end_matches('/'))),
        None => (rest, None),
    };
    let container = container.filter(|container| !container.is_empty());
    if pool.is_empty() || container.is_some_and(|container| container.contains('/')) || rest.contains('\0') {
        return Err(bad());
    }
    Ok((pool.to_owned(), container.map(str::to_owned)))
}

impl Rados {
    /// Label of the container of a worker.
    fn label(&self, plan: &ObjectPlan, worker: u32) -> String {
        let label = self.container.as_deref().unwrap_or(&plan.container);
        match plan.containers {
            Scope::Shared => label.to_owned(),
            Scope::Private => format!("{label}.{worker}"),
        }
    }

    fn place(&self) -> named::Location<'_> {
        named::Location { cluster: &self.cluster, pool: &self.pool, request: &self.request }
    }

    /// Number of this run, as the marks of its containers have it.
    fn run(&self) -> String {
        format!("{:016x}", self.request.journal.run())
    }

    fn id_of(&self, label: &str) -> Result<Option<String>, Error> {
        Pool::open(&self.cluster, &self.pool, label)?.maker()
    }

    /// Makes a container that is not there; by what it is known again.
    fn make(&self, pool: &Pool, label: &str) -> Result<String, Error> {
        if let Some(maker) = pool.maker()? {
            return Ok(maker);
        }
        let place = |error: Error| error.with("pool", &self.pool).with("container", label);
        if !self.request.creates {
            let message = format!("pool {} has no container {label}", self.pool);
            return Err(Error::new(ErrorKind::Run, "rados", message));
        }
        let cannot_list = |code| refused("the pool cannot be listed", code);
        let mut list = List::open(pool).map_err(cannot_list)?;
        if list.next().map_err(cannot_list)?.is_some() && !pool.is_container()? {
            let message = "the namespace holds objects that strata did not create";
            return Err(
                place(Error::new(ErrorKind::Unsafe, "rados", message)).remedy("use another container")
            );
        }
        let run = self.run();
        self.made.make(&self.request, label, || Ok(pool.mark(&run).map_err(place)?.then(|| run.clone())))?;
        pool.maker().map(Option::unwrap_or_default)
    }

    fn prepare_container(&self, plan: &ObjectPlan, label: &str) -> Result<(), Error> {
        let pool = Pool::open(&self.cluster, &self.pool, label)?;
        let id = self.make(&pool, label)?;
        let Some(ids) = changed_ids(plan) else { return Ok(()) };
        let is_made = id == self.run();
        let claim = |asked: &Asked| claiming::claim(&pool, is_made, asked);
        self.made.claim(&self.request, "rados", (label, id), ids, claim)
    }

    fn end(&self, label: &str, only_looks: bool) -> Result<Ending, Error> {
        let pool = Pool::open(&self.cluster, &self.pool, label)?;
        let place = |error: Error| error.with("pool", &self.pool).with("container", label);
        claiming::end_run(&pool, self.request.journal.run(), only_looks).map_err(place)
    }

    /// Refuses what the cluster would refuse each time.
    fn check_sizes(&self, plan: &ObjectPlan) -> Result<(), Error> {
        let stores = |operation| matches!(operation, ObjectOp::Put | ObjectOp::Update);
        let limit = self.cluster.setting(c"osd_max_write_size").and_then(|size| size.parse::<u64>().ok());
        let limit_bytes = limit.unwrap_or(90) << 20;
        let value_bytes = plan.dataset.value_size_bytes_max;
        if plan.operations().any(stores) && value_bytes > limit_bytes {
            let message = format!("a value of {value_bytes} bytes exceeds the OSD's request limit");
            return Err(Error::usage("rados", message)
                .remedy(format!("use at most {limit_bytes} bytes (osd_max_write_size), or arrays (write)")));
        }
        named::check_sizes(&self.cluster, plan)?;
        let chunk_bytes = plan.cell_size_bytes.saturating_mul(plan.chunk_size_cells);
        if plan.operations().any(|operation| operation == ObjectOp::Write) && chunk_bytes > limit_bytes {
            let message = format!("a chunk of {chunk_bytes} bytes exceeds the OSD's request limit");
            return Err(Error::usage("rados", message)
                .remedy(format!("use at most {limit_bytes} bytes (osd_max_write_size)")));
        }
        Ok(())
    }
}

impl Backend for Rados {
    fn facts(&self) -> BackendFacts {
        let (major, minor, extra) = self.cluster.version();
        BackendFacts {
            targets: 1,
            durable_by: "as configured in the cluster".to_owned(),
            notes: vec![
                format!("librados {major}.{minor}.{extra}, cluster {}", self.cluster.fsid()),
                format!("an unanswered request fails after {} s", self.cluster.timeout_s()),
            ],
        }
    }

    fn check(&self, plan: &ObjectPlan) -> Result<(), Error> {
        self.check_sizes(plan)
    }

    fn prepare(&self, plan: &ObjectPlan) -> Result<(), Error> {
        self.check_sizes(plan)?;
        if !plan.dataset.object_names.is_empty() {
            let namespace = self.label(plan, 0);
            if plan.load.is_guest() {
                return Ok(());
            }
            return self.named.prepare(self.place(), &self.made, &namespace, plan);
        }
        if plan.is_guest() {
            let label = self.label(plan, 0);
            return self.id_of(&label)?.map(drop).ok_or_else(|| unseen("rados", &label));
        }
        let parts = parts_to_prepare(plan, self.threads);
        parts.into_iter().try_for_each(|part| self.prepare_container(plan, &self.label(plan, part)))
    }

    fn open(&self, request: &OpenRequest) -> Result<Opened<ObjectOperation>, Error> {
        let plan = &request.plan;
        if plan.load.depth > DEPTH_MAX {
            let message = format!("a depth of {} exceeds the RADOS limit", plan.load.depth);
            return Err(Error::usage("rados", message).remedy(format!("use at most {DEPTH_MAX}")));
        }
        let label = self.label(plan, request.worker);
        let pool = Pool::open(&self.cluster, &self.pool, &label)?;
        let text = |words: &str| {
            CString::new(words).map_err(|_| Error::usage("rados", format!("{words:?} contains a NUL byte")))
        };
        let names = (text(&self.pool)?, text(&label)?);
        Ok(Opened { driver: Box::new(worker::Worker::new(pool, names, request)?), notes: Vec::new() })
    }

    fn pool(&self) -> Result<Option<PoolInfo>, Error> {
        let stat = self.cluster.space()?;
        Ok((stat.kb > 0).then(|| PoolInfo {
            name: self.pool.clone(),
            uuid: self.cluster.fsid(),
            targets: 1,
            nvme_bytes: stat.kb << 10,
            nvme_free_bytes: stat.kb_avail << 10,
            ..PoolInfo::default()
        }))
    }

    fn keep(&self) -> Result<(), Error> {
        self.named.keep(self.place())?;
        self.made.labels().iter().try_for_each(|label| {
            let pool = Pool::open(&self.cluster, &self.pool, label)?;
            claiming::keep(&pool, self.request.journal.run())
        })
    }

    fn clean(&self, removing: Removing<'_>) -> Result<Vec<String>, Error> {
        self.named.clean(self.place(), &self.made, removing)?;
        let end = |label: &str| self.end(label, false).map(Into::into);
        self.made.clean(&self.request, removing, |label| self.id_of(label), end)
    }

    fn take_over(&self, made: &[Made]) -> Result<(), Error> {
        self.made.take_over(&self.named.take_over(made))
    }

    fn look(&self) -> Result<Vec<String>, Error> {
        let mut lines = self.made.look(|label| self.id_of(label), |label| self.end(label, true))?;
        lines.extend(self.named.look(self.place())?);
        Ok(lines)
    }

    fn close(&self) -> Result<(), Error> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_name_a_pool_and_perhaps_a_container() {
        let parts = |pool: &str, container: Option<&str>| (pool.to_owned(), container.map(str::to_owned));
        assert_eq!(parse("rados://p").expect("good"), parts("p", None));
        assert_eq!(parse("rados://p/").expect("good"), parts("p", None));
        assert_eq!(parse("rados://p/c").expect("good"), parts("p", Some("c")));
        for bad in ["rados:p", "rados://", "rados:///c", "rados://p/c/d", "rados://p\0"] {
            let error = parse(bad).expect_err(bad).to_string();
            assert!(error.contains("rados://POOL"), "{error}");
        }
    }
}
