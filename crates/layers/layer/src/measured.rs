//! Layers: from a spec to phases, and from phases to their part of a stage; state of a layer during a run.

use std::any::Any;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use driver::{Capabilities, Error, Registration, Secret};
use serde_json::Value;
use workload::layers::LayerDef;
use workload::plan::{PhasePlan, ServedStore};
use workload::random::derive_seed;
use workload::spec::Spec;

use crate::command::Command;
use crate::hosts::Hosts;
use crate::leftovers::Leftovers;
use crate::server::{EngineService, SharedStores};
use crate::stack::{StackLoads, StackRequest, StackRowSpec, StackServed};
use crate::stage::{Part, StageContext, Tell};
use crate::storage::{Storage, StorageNeeds};

/// A phase that is planned.
#[derive(Clone)]
pub struct Phase {
    /// Its plan.
    pub plan: PhasePlan,
    /// Largest queue depth of its driver.
    pub depth_max: u32,
    /// The user allows writes to what carries data.
    pub destroy_data: bool,
    /// Whether it reads back what another phase of the same spec wrote.
    pub is_read_back: bool,
    /// Data that it reads may be stored before it ([`LayerRun::fills`]).
    pub fills: bool,
    /// Secrets and settings of the way to the processes that drive it, which stand in no plan.
    pub control: Control,
    /// Number of the target that it is of, where a run measures several side by side: when one fails, the run goes on with the others.
    pub side: Option<u32>,
    /// State that its layer keeps for it besides the plan: a store, endpoints that were found.
    pub state: Option<Arc<dyn Any + Send + Sync>>,
}

/// Secrets and settings of the way to other processes.
#[derive(Clone, Debug, Default)]
pub struct Control {
    /// The shared secret.
    pub secret: Option<Secret>,
    /// TLS on loopback too.
    pub tls: bool,
    /// Domain of the fabric that this process uses.
    pub domain: Option<String>,
}

impl Phase {
    /// A phase of this plan, for a driver with these capabilities.
    #[must_use]
    pub fn new(plan: PhasePlan, capabilities: &Capabilities) -> Self {
        Self {
            plan,
            depth_max: if capabilities.asynchronous { capabilities.depth_max } else { 1 },
            destroy_data: false,
            is_read_back: false,
            fills: false,
            control: Control::default(),
            side: None,
            state: None,
        }
    }

    /// The state of this type that its layer keeps for it.
    #[must_use]
    pub fn state<T: Send + Sync + 'static>(&self) -> Option<Arc<T>> {
        Arc::clone(self.state.as_ref()?).downcast().ok()
    }
}

impl fmt::Debug for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Phase").field("plan", &self.plan).finish_non_exhaustive()
    }
}

/// A driver as `strata list` shows it.
#[derive(Clone, Copy, Debug)]
pub struct DriverEntry {
    /// Name by which users choose it.
    pub name: &'static str,
    /// Form of its targets, where these choose it.
    pub target: Option<&'static str>,
    /// Capabilities.
    pub capabilities: Capabilities,
    /// One line about it.
    pub summary: &'static str,
}

impl DriverEntry {
    /// The entry of a driver that is chosen by its name.
    #[must_use]
    pub fn of<Op, Request>(registration: &Registration<Op, Request>) -> Self {
        let Registration { name, capabilities, summary, .. } = *registration;
        Self { name, target: None, capabilities, summary }
    }
}

/// List of what a run has made and must remove, kept in a file that outlives it. It is on disk before anything is made.
pub trait Journal: Send + Sync {
    /// Number of the run.
    fn run(&self) -> u64;

    /// Number of the user on this machine.
    fn owner(&self) -> u64;

    /// Writes down all that is made under `key` ([`Leftovers::key`]), in place of what stood there.
    ///
    /// # Errors
    /// When it cannot be written: nothing may be made then.
    fn note(&self, key: &'static str, made: Value) -> Result<(), Error>;

    /// Everything that stands under `key`; null where nothing does.
    fn noted(&self, key: &str) -> Value;

    /// Takes over all that an earlier run, which has ended, has left: from then on it stands here, and in the list of that run no more.
    ///
    /// # Errors
    /// When that run has left no list, or is under way, and when it cannot be written.
    fn take_over(&self, run: u64) -> Result<(), Error> {
        Err(Error::usage("manifest", "lists of other runs are not available")
            .with("run", format!("{run:016x}")))
    }
}

/// Surroundings of a layer during a run.
#[derive(Clone)]
pub struct RunContext {
    /// List of what the run makes.
    pub journal: Arc<dyn Journal>,
    /// Set by signals: waits outside of phases end.
    pub interrupt: Arc<AtomicBool>,
    /// Whether everything that the run makes stays.
    pub keep: bool,
    /// Tells the user one line that belongs to no phase.
    pub tell: Tell,
    /// The hosts that carry the run out together; none where this process does alone.
    pub hosts: Option<Hosts>,
}

/// Phases of a run before those that are planned now, and where their seeds come from.
#[derive(Clone, Copy)]
pub struct Planning<'a> {
    /// Phases of the run so far, of all layers.
    pub before: &'a [&'a PhasePlan],
    /// Number of the first phase that is planned now.
    pub number: usize,
    /// Seed of the run.
    pub seed: Seed,
}

/// Where the seeds of phases come from.
#[derive(Clone, Copy, Debug)]
pub enum Seed {
    /// Each is derived from that of the run and from the number of the phase.
    OfRun(u64),
    /// All have this one.
    Given(u64),
}

impl Planning<'_> {
    /// Seed of the phase after `further` more.
    #[must_use]
    pub fn seed_of(&self, further: usize) -> u64 {
        match self.seed {
            Seed::OfRun(seed) => derive_seed(seed, &[(self.number + further) as u64]),
            Seed::Given(seed) => seed,
        }
    }
}

/// A layer: its entry in the list, its drivers, and how a run of it begins.
pub trait Measured: Sync {
    /// Its entry in the list of layers: name, command, options, how its plans are read.
    fn definition(&self) -> &'static LayerDef;

    /// Its drivers.
    fn drivers(&self) -> Vec<DriverEntry>;

    /// State of the layer for one run. Nothing is touched yet.
    fn begin(&self, context: &RunContext) -> Box<dyn LayerRun>;

    /// Refuses a spec that lacks what every load of the layer needs.
    ///
    /// # Errors
    /// Bad usage, with what would be accepted.
    fn check(&self, _spec: &Spec) -> Result<(), Error> {
        Ok(())
    }

    /// Paths of this machine that a spec names: no output may be written to them.
    fn paths(&self, _spec: &Spec) -> Vec<PathBuf> {
        Vec::new()
    }

    /// Targets and files that runs of a spec reach: a service asks its policy about each before anything is read. All of its targets, unless a
    /// layer has words of another kind among them, or names targets and files by options whose values are of several kinds.
    fn reached(&self, spec: &Spec) -> Vec<String> {
        spec.targets.clone()
    }

    /// Makes the relative paths of a spec absolute, before it goes to hosts with working directories of their own.
    fn ship(&self, spec: &mut Spec) {
        spec.targets.iter_mut().for_each(crate::places::make_absolute);
    }

    /// Things that its runs make and may leave, by kind.
    fn leftovers(&self) -> Vec<&'static dyn Leftovers> {
        Vec::new()
    }

    /// Forms of the targets that it serves to loads made of its operations ([`crate::storage`]); none where it serves none.
    fn storage_targets(&self) -> &'static [&'static str] {
        &[]
    }

    /// Its options that such a target takes.
    fn storage_options(&self) -> &'static [&'static str] {
        &[]
    }

    /// Whether such a target takes one of these options: an endpoint is of some targets alone.
    fn takes_storage_option(&self, _target: &str, option: &str) -> bool {
        self.storage_options().contains(&option)
    }

    /// Whether it serves a target to loads made of its operations.
    fn serves_storage(&self, _target: &str) -> bool {
        false
    }

    /// The target by which several processes of this machine use one that a process has open alone: an engine of `stores` serves it. None where the
    /// target is of several processes anyway.
    ///
    /// # Errors
    /// A directory without a store, and an engine that does not serve.
    fn shared_storage(
        &self,
        _target: &str,
        _stores: &mut SharedStores,
    ) -> Result<Option<ServedStore>, Error> {
        Ok(None)
    }

    /// Has a spec use such targets by engines of `stores`, before it goes to several processes of this machine, where all of them use its targets.
    ///
    /// # Errors
    /// As for [`Measured::shared_storage`], and options of a store that a process opens itself.
    fn share_targets(&self, _spec: &mut Spec, _stores: &mut SharedStores) -> Result<(), Error> {
        Ok(())
    }

    /// The library that makes HDF5 files on the target of a spec of this layer, and its version. With more than one host, these have the files open
    /// together, as ranks of MPI.
    ///
    /// # Errors
    /// Bad usage: a target that has none, a library that is missing, hosts that are no ranks; with what would be accepted.
    fn storage_hdf5(&self, spec: &Spec, _hosts: u32) -> Result<String, Error> {
        let target = spec.targets.first().map_or("", String::as_str);
        Err(Error::usage("plan", "HDF5 files can only be created in directories")
            .with("target", target)
            .remedy("use a directory, or --format raw"))
    }

    /// Opens the target of a spec of this layer for such a load.
    ///
    /// # Errors
    /// Why it cannot; a layer that serves no target refuses all.
    fn storage(
        &self,
        _spec: &Spec,
        _needs: &StorageNeeds,
        _context: &RunContext,
    ) -> Result<Arc<dyn Storage>, Error> {
        Err(Error::usage("plan", "the layer provides no targets for applications")
            .with("layer", self.definition().name))
    }

    /// Title of the table of its options in documents.
    fn options_title(&self) -> String {
        let LayerDef { name, command, .. } = self.definition();
        format!("Options of a load on {name} (`strata {command}`, `layer = \"{name}\"` in a job file)")
    }

    /// Whether a driver can be used on this machine, by name.
    fn is_available(&self, _driver: &str) -> bool {
        true
    }

    /// Whether a target is an image of a block device that a library reaches.
    fn is_image(&self, _target: &str) -> bool {
        false
    }

    /// Size in bytes of a block device or an image; none where the layer has no such targets.
    fn device_bytes(&self, _target: &str) -> Option<Result<u64, Error>> {
        None
    }

    /// Commands that it brings besides the one that measures it.
    fn commands(&self) -> Vec<Command> {
        Vec::new()
    }

    /// Service that it brings to engines.
    fn engine_service(&self) -> Option<&'static dyn EngineService> {
        None
    }

    /// Lines of `strata list` behind those of its drivers.
    fn list_notes(&self) -> Vec<String> {
        Vec::new()
    }

    /// Serves to rows of the stack what they need beside targets of their own ([`StackRequest::served`]). Called once the run has begun, so that what is
    /// made is noted in its list before.
    fn stack_serve(&self, _request: &StackRequest<'_>, _context: &RunContext) -> Vec<StackServed> {
        Vec::new()
    }

    /// Loads of its rows that the rows below shall have too. Asked for first, before anything is touched.
    ///
    /// # Errors
    /// Options that cannot be, with what would be accepted.
    fn stack_loads(&self, _request: &StackRequest<'_>) -> Result<StackLoads, Error> {
        Ok(StackLoads::default())
    }

    /// Rows of `strata stack` that it brings, the lowest first. Asked for twice: before the run begins, when nothing is served, and then.
    fn stack_rows(&self, _request: &StackRequest<'_>) -> Vec<StackRowSpec> {
        Vec::new()
    }

    /// Accepts a plan that another process sent for master `master`, before any of it is carried out; the bytes that its buffers will take.
    ///
    /// # Errors
    /// A plan that cannot be carried out here, with what is accepted.
    fn accept(&self, plan: &PhasePlan, _limits: &AcceptLimits) -> Result<u64, Error> {
        Err(Error::usage(
            "plan",
            format!("this process does not generate loads of layer {:?} for other processes", plan.layer()),
        ))
    }
}

/// Limits of loads that are driven for other processes.
#[derive(Clone, Copy, Debug)]
pub struct AcceptLimits {
    /// Memory of this machine in bytes, where it is known.
    pub memory_bytes: Option<u64>,
    /// Whether a shared secret says who the other process is.
    pub has_secret: bool,
}

/// State of a layer from the planning of a run to its end.
pub trait LayerRun {
    /// Looks at all specs of the layer before the first is planned: those without a target are given one, targets that are there already are opened.
    ///
    /// # Errors
    /// Specs that ask for the impossible, and targets that cannot be opened.
    fn find(&mut self, _specs: &mut [&mut Spec]) -> Result<(), Error> {
        Ok(())
    }

    /// Plans the phases of a spec in their order, with those before them that store what they need ([`workload::plan::LayerPlan::is_fill`]) and those
    /// after them that read back.
    ///
    /// # Errors
    /// Bad usage, with what would be accepted.
    fn phases(&mut self, spec: &Spec, planning: &Planning<'_>) -> Result<Vec<Phase>, Error>;

    /// Plans the reading back of what a phase of the spec wrote, where it is wanted.
    ///
    /// # Errors
    /// As for [`LayerRun::phases`].
    fn read_back(&mut self, _spec: &Spec, _written: &Phase, _seed: u64) -> Result<Option<Phase>, Error> {
        Ok(None)
    }

    /// Phases that store what a phase needs and none of the `earlier` ones has stored.
    fn fills(&self, _phase: &Phase, _earlier: &[&PhasePlan]) -> Vec<Phase> {
        Vec::new()
    }

    /// Phases that follow from what its phases have found so far, to run next. Asked after each stage until there are none.
    ///
    /// # Errors
    /// As for [`LayerRun::phases`].
    fn following(&mut self) -> Result<Vec<Phase>, Error> {
        Ok(Vec::new())
    }

    /// Checks plans of the layer that run at the same time against each other.
    ///
    /// # Errors
    /// Bad usage that names both.
    fn check_stage(&self, _plans: &[&PhasePlan]) -> Result<(), Error> {
        Ok(())
    }

    /// Checks all plans of the layer in a run against each other, each with the number of its stage.
    ///
    /// # Errors
    /// Bad usage.
    fn check_run(&self, _plans: &[(usize, &PhasePlan)]) -> Result<(), Error> {
        Ok(())
    }

    /// Why the hosts of a run keep their parts of a phase ([`workload::plan::HostPlace::rotated`]), among `all` plans of the layer in it; none where they
    /// may take over each other's. A layer that deals its work out by [`workload::plan::LoadPlan::worker`], and of whose data a host need not know what
    /// another has done, says none.
    fn keeps_parts(&self, plan: &PhasePlan, _all: &[&PhasePlan]) -> Option<String> {
        Some(format!("hosts of the layer {} keep their parts", plan.layer()))
    }

    /// Why a phase cannot be of other hosts than others of the run ([`workload::plan::HostPlace::run_hosts`]), among `all` plans of the layer in it, some
    /// of which may be of fewer hosts; none where it can. Asked where phases of the run differ in that.
    fn keeps_hosts(&self, plan: &PhasePlan, _all: &[&PhasePlan]) -> Option<String> {
        Some(format!("phases of the layer {} always use all hosts", plan.layer()))
    }

    /// Gets phases that run at the same time ready. `done` are the plans of phases of the run that did all that was asked of them.
    ///
    /// # Errors
    /// When they cannot begin.
    fn part<'a>(
        &'a mut self,
        phases: Vec<&'a Phase>,
        done: &[&PhasePlan],
        context: &StageContext<'_>,
    ) -> Result<Box<dyn Part + 'a>, Error>;

    /// Gets parts of plans ready that another process asked this one to drive: each with the number of its master.
    ///
    /// # Errors
    /// When they cannot begin.
    fn master_part<'a>(
        &'a mut self,
        phases: Vec<(&'a Phase, usize)>,
        context: &StageContext<'_>,
    ) -> Result<Box<dyn Part + 'a>, Error> {
        self.part(phases.into_iter().map(|(phase, _)| phase).collect(), &[], context)
    }

    /// Removes what the run made, unless it shall stay, and closes the rest.
    ///
    /// # Errors
    /// Things that are left, or were not saved.
    fn end(&mut self) -> Result<(), Error> {
        Ok(())
    }
}
