//! The stores of a run: each is opened once, shared by all phases on it, and closed at the end.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use driver::Error;
use layer::{RunContext, Tell, secret};
use units::ByteSize;
use vos::{Layout, Pool};
use workload::plan::{HostPlace, HostTargets};
use workload::spec::Spec;

use super::journal::StoreJournal;
use super::progress::Told;
use super::{plan, scratch};
use crate::acknowledged::Recorder;
use crate::backend::{Journal, driver_of};
use crate::plan::{
    ObjectFacts, ObjectOp, ObjectPlan, ObjectSpec, S3Key, object_options, object_phases, resolve_object,
};
use crate::{Backend, BackendFacts, ConnectRequest, Registration};

/// One store.
pub struct Store {
    target: String,
    registration: &'static Registration,
    request: ConnectRequest,
    backend: Mutex<Option<Arc<dyn Backend>>>,
    /// The directory that the run chose for it.
    scratch: Option<PathBuf>,
    /// Layout that its pool was made with, where it was there before the run.
    layout: Option<Layout>,
    /// Whether the objects, containers and pools that the run made stay.
    keep: bool,
    tell: Tell,
    /// Where updates that are acknowledged are recorded.
    acknowledged: Option<PathBuf>,
    recorder: Mutex<Option<Arc<Recorder>>>,
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store").field("target", &self.target).finish_non_exhaustive()
    }
}

impl Store {
    /// A store that shall be opened so.
    pub fn new(request: ConnectRequest, keep: bool, tell: Tell) -> Result<Self, Error> {
        let registration = driver_of(&request.target)?;
        let target = request.target.clone();
        Ok(Self {
            target,
            registration,
            request,
            backend: Mutex::new(None),
            scratch: None,
            layout: None,
            keep,
            tell,
            acknowledged: None,
            recorder: Mutex::new(None),
        })
    }

    /// The directory of a store in this process.
    pub fn directory(&self) -> Option<&Path> {
        directory_of(&self.target).map(Path::new)
    }

    /// Opens it, once.
    ///
    /// # Errors
    /// Why it cannot be opened.
    pub fn connect(&self) -> Result<Arc<dyn Backend>, Error> {
        let mut backend = self.backend.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(backend) = &*backend {
            return Ok(Arc::clone(backend));
        }
        Ok(Arc::clone(backend.insert((self.registration.connect)(&self.request)?)))
    }

    /// The file of what it acknowledges to run `run`, where one is asked for; made when the first phase asks.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn recorder(&self, run: u64) -> Result<Option<Arc<Recorder>>, Error> {
        let Some(path) = &self.acknowledged else { return Ok(None) };
        let mut recorder = self.recorder.lock().unwrap_or_else(PoisonError::into_inner);
        if recorder.is_none() {
            *recorder = Some(Arc::new(Recorder::create(path, run, &self.target)?));
        }
        Ok(recorder.clone())
    }

    /// Refuses a phase that it cannot carry out, whether it is there already or the run is going to make it.
    ///
    /// # Errors
    /// Bad usage: what it does not take.
    pub fn check(&self, plan: &ObjectPlan) -> Result<(), Error> {
        let backend = self.backend.lock().unwrap_or_else(PoisonError::into_inner);
        match &*backend {
            Some(backend) => backend.check(plan),
            None if self.registration.name == "vos" && self.request.creates => crate::check_new_pool(plan),
            None => Ok(()),
        }
    }

    /// Puts what its pool was made with into a plan that does not say it.
    pub fn settle(&self, spec: &Spec, plan: &mut ObjectPlan) {
        let Some(layout) = self.layout else { return };
        let options = &mut plan.options;
        options.targets = layout.targets;
        options.threshold_bytes = layout.threshold_bytes;
        if ObjectSpec::of(spec).nvme.is_none() {
            options.nvme_bytes = layout.nvme_bytes;
        }
        if ObjectSpec::of(spec).scm.is_none() {
            options.scm_bytes = layout.scm_bytes;
        }
    }

    /// Whether opening it makes nothing: it is there already, or elsewhere.
    fn is_there(&self) -> bool {
        match self.registration.name {
            "vos" => self.directory().is_some_and(Pool::exists),
            name => name != "null",
        }
    }

    /// Facts that planning must know of it; how many targets it has where it was opened already.
    pub fn facts(&self) -> ObjectFacts {
        let backend = self.backend.lock().unwrap_or_else(PoisonError::into_inner);
        facts_of(self.registration, backend.as_ref().map_or(0, |backend| backend.facts().targets))
    }

    /// Facts that the backend reports of itself.
    pub fn told(&self) -> BackendFacts {
        let backend = self.backend.lock().unwrap_or_else(PoisonError::into_inner);
        backend.as_ref().map(|backend| backend.facts()).unwrap_or_default()
    }

    /// Space of a store that was opened already, where it tells.
    pub(crate) fn open_facts(&self) -> Option<vos::PoolInfo> {
        let backend = self.backend.lock().unwrap_or_else(PoisonError::into_inner);
        backend.as_ref()?.pool().ok()?
    }

    /// Notes for the user on the place of the store.
    pub fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if let Some(directory) = &self.scratch {
            let end = if self.keep { "it is kept" } else { "removed at the end" };
            notes.push(format!(
                "no target was specified: a temporary store in {}, {end}",
                directory.display()
            ));
        }
        if let Some(memory) = self.directory().and_then(scratch::memory_behind) {
            notes.push(format!("the store is in memory ({memory}): no drive is measured"));
        }
        notes.extend(self.told().notes);
        notes
    }

    /// Destroys what the run made of it, unless it shall stay, and closes it. What was left because it is others' own: one line each.
    ///
    /// # Errors
    /// Objects or containers that are left, or data that were not saved.
    pub fn end(&self) -> Result<Vec<String>, Error> {
        let backend = self.backend.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(backend) = backend else { return Ok(Vec::new()) };
        let told = Told::new(self.tell);
        let cleaned = match self.keep {
            true => backend.keep().map(|()| Vec::new()),
            false => backend.clean(&|count| told.tell(count)),
        };
        let closed = backend.close();
        drop(backend);
        let left = cleaned.and_then(|left| closed.map(|()| left))?;
        match self.scratch.as_deref().filter(|directory| !self.keep && directory.exists()) {
            Some(directory) => std::fs::remove_dir(directory).map_err(|error| {
                Error::system("object", "cannot remove the temporary store", error)
                    .with("path", directory.display())
            }),
            None => Ok(()),
        }
        .map(|()| left)
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        // Only where the run ended before it could say so.
        let _ = self.end();
    }
}

/// The directory of a store in this process: `vos:DIR`, or `vos://DIR`.
pub fn directory_of(target: &str) -> Option<&str> {
    let directory = target.strip_prefix("vos:")?;
    Some(directory.strip_prefix("//").unwrap_or(directory)).filter(|directory| !directory.is_empty())
}

/// Facts that planning must know of a driver.
fn facts_of(registration: &Registration, targets: u32) -> ObjectFacts {
    let capabilities = &registration.capabilities;
    ObjectFacts {
        engine: registration.name.to_owned(),
        operations: capabilities.classes,
        asynchronous: capabilities.asynchronous,
        depth_max: capabilities.depth_max,
        options: capabilities.options,
        targets,
        memory_bytes: host::memory::memory().total_bytes,
    }
}

/// The stores of all specs of a run.
#[derive(Clone)]
pub struct Stores {
    stores: Vec<Arc<Store>>,
    /// The target of specs that name none.
    default_target: Option<String>,
    /// List of the objects that the run makes in them.
    journal: StoreJournal,
    context: RunContext,
}

impl Stores {
    /// No stores so far.
    #[must_use]
    pub fn new(context: &RunContext) -> Self {
        Self {
            stores: Vec::new(),
            default_target: None,
            journal: StoreJournal::new(Arc::clone(&context.journal)),
            context: context.clone(),
        }
    }

    /// Finds the stores of specs of the object layer, and gives those without a target one of the run's own. Stores that are there already are opened, to know how many targets they have.
    ///
    /// # Errors
    /// Specs that ask for the impossible, and stores that cannot be opened.
    pub fn find(&mut self, specs: &mut [&mut Spec]) -> Result<(), Error> {
        for spec in specs.iter_mut() {
            let is_named = !spec.targets.is_empty();
            self.name_target(spec)?;
            settle_place(spec, is_named)?;
        }
        let mut targets: Vec<&str> = Vec::new();
        for spec in specs.iter() {
            let target = spec.targets.first().map_or("", String::as_str);
            if targets.contains(&target) {
                continue;
            }
            targets.push(target);
            let own = specs.iter().filter(|other| other.targets.first() == spec.targets.first());
            let store = self.store(target, &own.map(|spec| &**spec).collect::<Vec<_>>())?;
            self.stores.push(Arc::new(store));
        }
        for store in self.stores.iter().filter(|store| store.is_there()) {
            store.connect()?;
        }
        Ok(())
    }

    /// Gives a spec without a target one in a directory of the run's own.
    ///
    /// # Errors
    /// When there is no place for it.
    pub fn name_target(&mut self, spec: &mut Spec) -> Result<(), Error> {
        if !spec.targets.is_empty() {
            return Ok(());
        }
        let target = match &self.default_target {
            Some(target) => target.clone(),
            None => format!("vos:{}", scratch::directory()?.display()),
        };
        self.default_target = Some(target.clone());
        spec.targets = vec![target];
        Ok(())
    }

    /// The store of these specs, which all name it.
    fn store(&self, target: &str, specs: &[&Spec]) -> Result<Store, Error> {
        let registration = driver_of(target)?;
        // A pool that is there has targets, and sizes of its own.
        let layout = directory_of(target).and_then(|directory| Pool::layout(&units::path_of(directory)));
        let facts = facts_of(registration, layout.map_or(0, |layout| layout.targets));
        if let Some(layout) = layout {
            specs.iter().try_for_each(|spec| check_threshold(spec, &layout))?;
        }
        let mut plans: Vec<ObjectPlan> = Vec::new();
        for spec in specs {
            for step in workload::plan::expand_ladder(spec) {
                for phase in object_phases(&step).map_err(plan::usage)? {
                    plans.push(resolve_object(&step, &phase, &facts, 0).map_err(plan::usage)?);
                }
            }
        }
        let options = object_options(&plans).map_err(plan::usage)?;
        let first = specs[0];
        // A climb adds threads.
        let cores = host::topology::current_affinity().map_or(1, |cores| cores.len() as u32);
        let climbs = if specs.iter().any(|spec| spec.saturate) { cores.saturating_mul(8) } else { 1 };
        let threads = plans.iter().map(|plan| plan.load.threads).max().unwrap_or(1).max(climbs);
        let fills =
            specs.iter().any(|spec| !ObjectSpec::of(spec).no_fill && ObjectSpec::of(spec).snapshot.is_none())
                && plans.iter().any(|plan| plan.any(ObjectOp::needs_data));
        let request = ConnectRequest {
            target: target.to_owned(),
            options,
            secret: secret::shared_or_environment(first.token_file.as_deref())?,
            s3_key: s3_key(ObjectSpec::of(first), registration.name)?,
            creates: fills || plans.iter().any(|plan| plan.any(ObjectOp::changes)),
            threads,
            destroys: specs.iter().any(|spec| spec.destroy_data),
            interrupt: Arc::clone(&self.context.interrupt),
            journal: Arc::new(self.journal.clone()) as Arc<dyn Journal>,
        };
        let is_default = self.default_target.as_deref() == Some(target);
        let mut store = Store::new(request, self.context.keep, self.context.tell)?;
        if store.is_there() && specs.iter().all(|spec| ObjectSpec::of(spec).scm.is_none()) {
            // Its size was settled when it was made; that of this load is a default.
            store.request.options.scm_bytes = 0;
        }
        store.layout = layout;
        store.acknowledged = acknowledged(specs, first.place)?;
        store.scratch = store.directory().filter(|_| is_default).map(Path::to_path_buf);
        Ok(store)
    }

    /// The store of a spec that was among those that were found.
    ///
    /// # Errors
    /// When it was not.
    pub fn of(&self, spec: &Spec) -> Result<&Arc<Store>, Error> {
        let target = spec.targets.first();
        let found = self.stores.iter().find(|store| Some(&store.target) == target);
        found.ok_or_else(|| Error::usage("plan", "no store").remedy("specify a target, such as vos:DIR"))
    }

    /// Number of the run.
    #[must_use]
    pub fn run(&self) -> u64 {
        self.context.journal.run()
    }

    /// Closes them, with what the run made removed: the first failure, behind what goes on with it.
    ///
    /// # Errors
    /// As for [`Store::end`].
    pub fn end(&self) -> Result<(), Error> {
        let mut result = Ok(());
        for store in &self.stores {
            match store.end() {
                Ok(left) => {
                    left.iter().for_each(|line| (self.context.tell)(format_args!("strata: left: {line}")));
                }
                Err(error) => result = result.and(Err(error)),
            }
        }
        result
    }
}

/// Has a spec say whether the hosts of a run share its store: one in this process is each host's own, a service is reached by all.
fn settle_place(spec: &mut Spec, is_named: bool) -> Result<(), Error> {
    let target = spec.targets.first().cloned().unwrap_or_default();
    match (directory_of(&target), target.split(':').next()) {
        // The directory is this process's own.
        (Some(_), _) if !is_named && spec.place.is_some() => spec.host_targets = Some(HostTargets::Own),
        (Some(directory), _) => layer::settle_store_of_process(spec, &units::path_of(directory))?,
        (None, Some("rados" | "s3" | "daos")) if spec.host_targets == Some(HostTargets::Own) => {
            let message = format!("--host-targets own: all hosts reach the same store at {target}");
            return Err(Error::usage("plan", message).remedy("leave it out; accepted: auto and shared"));
        }
        (None, _) => layer::settle_host_targets(spec, &[]),
    }
    Ok(())
}

/// The file that all specs of a store name, or none of them does. Where several hosts carry them out each has one, with its number behind the name.
fn acknowledged(specs: &[&Spec], place: Option<HostPlace>) -> Result<Option<PathBuf>, Error> {
    let first = specs.first().and_then(|spec| ObjectSpec::of(spec).acknowledged.clone());
    if specs.iter().any(|spec| ObjectSpec::of(spec).acknowledged != first) {
        let what = "--acknowledged must name the same file for all phases on a store";
        return Err(Error::usage("object", what).remedy("set it before the first phase of the job file"));
    }
    if first.is_some() && specs.iter().any(|spec| spec.rotate_hosts.is_some()) {
        let what = "--rotate-hosts and --acknowledged conflict: a host records only its own writes, and another host overwrites them";
        return Err(Error::usage("object", what).remedy("leave out one of them"));
    }
    if first.is_some() && specs.iter().any(|spec| spec.place.is_some_and(HostPlace::is_subset)) {
        let what = "hosts_used of a phase conflicts with --acknowledged: a host records only its own writes, and other hosts overwrite them";
        return Err(Error::usage("object", what)
            .remedy("use the same hosts for all phases, or leave out --acknowledged"));
    }
    let first = first.map(|path| match place {
        Some(place) => path.with_added_extension(place.rank.to_string()),
        None => path,
    });
    let taken = first.as_ref().filter(|path| path.exists());
    match taken {
        Some(path) => Err(Error::usage("object", "the file of acknowledged updates already exists")
            .with("path", path.display())
            .remedy("use another file, or remove this one: strata does not overwrite the acknowledged updates of an earlier run")),
        None => Ok(first),
    }
}

/// Refuses another threshold than that of the pool.
fn check_threshold(spec: &Spec, layout: &Layout) -> Result<(), Error> {
    let there = ByteSize(layout.threshold_bytes);
    match ObjectSpec::of(spec).threshold {
        Some(asked) if asked != there && layout.nvme_bytes > 0 => {
            let message = format!("the pool was created with --threshold {there}, but {asked} is requested");
            Err(Error::usage("object", message)
                .remedy("leave it out, or destroy the pool (strata pool destroy) and create a new one"))
        }
        _ => Ok(()),
    }
}

/// Why the driver of a spec's target cannot carry it out; none where it can.
pub fn refusal(spec: &Spec) -> Option<String> {
    let registration = match driver_of(spec.targets.first().map_or("", String::as_str)) {
        Ok(registration) => registration,
        Err(error) => return Some(error.to_string()),
    };
    let facts = facts_of(registration, 0);
    let phases = match object_phases(spec) {
        Ok(phases) => phases,
        Err(error) => return Some(error.0),
    };
    phases.iter().find_map(|phase| resolve_object(spec, phase, &facts, 0).err()).map(|error| error.0)
}

/// The keys of S3, where the driver needs them.
fn s3_key(own: &ObjectSpec, driver: &str) -> Result<Option<S3Key>, Error> {
    match &own.s3_key {
        Some(key) => Ok(Some(key.clone())),
        None if driver == "s3" => super::s3_key(own.s3_key_file.as_deref()),
        None => Ok(None),
    }
}
