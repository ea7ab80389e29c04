//! Loads on files and directories: their phases, how they get ready, their jobs, and what they made.

mod hosts;
mod ready;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use driver::{Error, ErrorKind};
use gpu::GpuWatch;
use layer::CacheBefore;
use layer::observations::Observations;
use layer::server::SharedStores;
use layer::storage::{Storage, StorageNeeds};
use layer::{
    DriverEntry, LayerRun, Leftovers, Measured, Part, Phase, Planning, RunContext, Seen, StageContext,
};
use ready::{Ready, begin_making};
use runner::{Job, Outcome};
use units::{label_of, path_of};
use workload::layers::LayerDef;
use workload::options;
use workload::plan::{HostTargets, PhasePlan, ServedStore, expand_ladder};
use workload::spec::Spec;

use crate::cache;
use crate::content;
use crate::doors::{self, AccessPaths};
use crate::drivers::{self, DRIVERS};
use crate::find::Search;
use crate::made::{FileSets, Made, SuiteControl, has_sets};
use crate::operation::NameKind;
use crate::options::LAYER;
use crate::phases::{FsOp, Over};
use crate::plan::FsPlan;
use crate::progress::{Barriers, Progress, WearOut};
use crate::resolve;
use crate::set::{FileSet, Shape};
use crate::spec;
use crate::stock;
use crate::storage;
use crate::stores::{Stores, is_store};

/// Data and metadata of files and directories.
#[derive(Debug)]
pub struct Filesystem;

impl Measured for Filesystem {
    fn definition(&self) -> &'static LayerDef {
        LAYER.definition()
    }

    fn drivers(&self) -> Vec<DriverEntry> {
        DRIVERS.iter().map(DriverEntry::of).collect()
    }

    fn commands(&self) -> Vec<layer::Command> {
        vec![crate::suite::command(), mount::command()]
    }

    fn paths(&self, spec: &Spec) -> Vec<PathBuf> {
        spec.targets
            .iter()
            .filter(|target| !is_store(target))
            .map(|target| path_of(target).into_owned())
            .collect()
    }

    fn leftovers(&self) -> Vec<&'static dyn Leftovers> {
        vec![&FileSets, &storage::Trees]
    }

    fn storage_targets(&self) -> &'static [&'static str] {
        &["a directory", "dfs+vos:DIR", "dfs+engine://HOST:PORT/POOL/CONTAINER", "dfs+daos://POOL/CONTAINER"]
    }

    fn storage_options(&self) -> &'static [&'static str] {
        storage::OPTIONS
    }

    fn takes_storage_option(&self, target: &str, option: &str) -> bool {
        storage::takes_option(target, option)
    }

    fn serves_storage(&self, target: &str) -> bool {
        storage::serves(target)
    }

    fn storage_hdf5(&self, spec: &Spec, hosts: u32) -> Result<String, Error> {
        storage::hdf5(spec, hosts)
    }

    fn shared_storage(&self, target: &str, stores: &mut SharedStores) -> Result<Option<ServedStore>, Error> {
        crate::stores::shared(target, stores)
    }

    fn share_targets(&self, spec: &mut Spec, stores: &mut SharedStores) -> Result<(), Error> {
        if spec.host_targets == Some(HostTargets::Own) {
            return Ok(());
        }
        for target in &mut spec.targets {
            if let Some(served) = crate::stores::shared(target, stores)? {
                target.clone_from(&served.target);
                spec.served.push(served);
            }
        }
        if !spec.served.is_empty() {
            let file = stores.token_file()?;
            options::apply(spec, "token-file", &label_of(file.as_os_str()))
                .map_err(|error| Error::usage("options", error.to_string()))?;
        }
        Ok(())
    }

    fn storage(
        &self,
        spec: &Spec,
        needs: &StorageNeeds,
        context: &RunContext,
    ) -> Result<Arc<dyn Storage>, Error> {
        Ok(Arc::new(storage::FileStorage::open(spec, needs, context)?))
    }

    fn options_title(&self) -> String {
        "Options of a load on files and directories (`strata fs`, `layer = \"filesystem\"` in a job file)"
            .to_owned()
    }

    fn stack_serve(
        &self,
        request: &layer::StackRequest<'_>,
        context: &RunContext,
    ) -> Vec<layer::StackServed> {
        crate::stack::serve(request, context)
    }

    fn stack_rows(&self, request: &layer::StackRequest<'_>) -> Vec<layer::StackRowSpec> {
        crate::stack::rows(request)
    }

    fn begin(&self, context: &RunContext) -> Box<dyn LayerRun> {
        Box::new(FsRun::new(context, None))
    }
}

/// Targets and set of a load: by these its progress is known again.
type Key = (Vec<String>, FileSet);

/// Files and directories during a run.
pub(crate) struct FsRun {
    context: RunContext,
    /// List of all that it made; from the first stage on, because by then the run has its number.
    made: Option<Made>,
    progress: Vec<(Key, Arc<Progress>)>,
    /// File systems over objects.
    stores: Stores,
    /// The way to such a file system that was taken last.
    doors: AccessPaths,
    /// Something failed, and the user wants to look at what there is then.
    keeps_for_error: bool,
    /// Settings of the suite that the phases are of.
    control: Option<Arc<SuiteControl>>,
    /// Some phase works on what other ranks have made: how much that is must be known.
    reads_others: bool,
}

impl FsRun {
    /// A run that has made nothing.
    pub(crate) fn new(context: &RunContext, control: Option<Arc<SuiteControl>>) -> Self {
        Self {
            context: context.clone(),
            made: None,
            progress: Vec::new(),
            stores: Stores::default(),
            doors: AccessPaths::default(),
            keeps_for_error: false,
            control,
            reads_others: false,
        }
    }

    /// Goes to the door of a plan. What the last turn made is removed, so that each door has the same to do.
    fn pass(&mut self, plan: &FsPlan) -> Result<(), Error> {
        if !self.doors.is_new(plan) {
            return Ok(());
        }
        if let Some(made) = &mut self.made
            && plan.door.is_some()
        {
            self.stores.remove_all(made.run_id())?;
            made.remove_all()?;
            self.progress.clear();
        }
        if plan.door.is_some() {
            self.stores.close();
        }
        self.doors.pass(plan)
    }

    /// Adds the phases of one turn.
    fn phases_of(
        &mut self,
        turn: &doors::Turn,
        planning: &Planning<'_>,
        phases: &mut Vec<Phase>,
    ) -> Result<(), Error> {
        let (step, first, mut set) = (&turn.spec, phases.len(), None);
        for operation in resolve::operations(step) {
            let seed = planning.seed_of(phases.len());
            let mut plan = resolve::plan(step, operation, seed, self.context.journal.run(), &mut set)?;
            turn.mark(&mut plan);
            let phase = phase(step, plan)?;
            // What another turn made is gone by then.
            let so_far = phases[if turn.is_of_door() { first } else { 0 }..].iter().map(|phase| &phase.plan);
            let before = planning.before.iter().copied().filter(|_| !turn.is_of_door());
            let earlier: Vec<&PhasePlan> = before.chain(so_far).collect();
            let fills = LayerRun::fills(self, &phase, &earlier);
            self.reads_others |= hosts::reads_others(plan_of(&phase)?, step);
            phases.extend(fills);
            phases.push(phase);
        }
        Ok(())
    }

    /// Progress of the set of a plan.
    pub(crate) fn progress_of(&mut self, plan: &FsPlan) -> Arc<Progress> {
        if let Some(known) = hosts::progress_of(&self.progress, plan) {
            return known;
        }
        let new = Progress::new(plan.set.ranks);
        self.progress.push(((plan.targets.clone(), plan.set.clone()), Arc::clone(&new)));
        new
    }
}

fn phase(spec: &Spec, plan: FsPlan) -> Result<Phase, Error> {
    let capabilities = &drivers::find(&plan.engine)?.capabilities;
    let fills = !spec::of(spec).no_fill && plan.engine != "null";
    let control =
        if plan.engine == "dfs" { layer::masters::control(spec)? } else { layer::Control::default() };
    Ok(Phase {
        control,
        destroy_data: spec.destroy_data,
        fills,
        ..Phase::new(PhasePlan::new(plan), capabilities)
    })
}

fn plan_of(phase: &Phase) -> Result<&FsPlan, Error> {
    let other = || Error::new(ErrorKind::Run, "stage", "a file-system phase has a plan of another layer");
    phase.plan.of().ok_or_else(other)
}

/// Whether the items of a set are there: the first of the first rank is.
fn is_there(plan: &FsPlan, over: Over) -> bool {
    if plan.targets.iter().any(|target| is_store(target)) {
        return false;
    }
    let kind = if over == Over::Directories { NameKind::Directory } else { NameKind::File };
    let path = content::path_of(plan, kind, 0, 0);
    std::fs::symlink_metadata(path_of(&path)).is_ok()
}

impl LayerRun for FsRun {
    fn keeps_parts(&self, _plan: &PhasePlan, _all: &[&PhasePlan]) -> Option<String> {
        None
    }

    fn keeps_hosts(&self, plan: &PhasePlan, all: &[&PhasePlan]) -> Option<String> {
        hosts::keeps(plan, all)
    }

    fn find(&mut self, specs: &mut [&mut Spec]) -> Result<(), Error> {
        for spec in specs.iter_mut() {
            let pool = spec.targets.iter().find_map(|target| target.strip_prefix("dfs+vos:"));
            match pool.map(|pool| path_of(pool).into_owned()) {
                Some(pool) => layer::settle_store_of_process(spec, &pool)?,
                None => {
                    let paths = Filesystem.paths(spec);
                    layer::settle_host_targets(spec, &paths);
                }
            }
        }
        Ok(())
    }

    fn phases(&mut self, spec: &Spec, planning: &Planning<'_>) -> Result<Vec<Phase>, Error> {
        let mut phases: Vec<Phase> = Vec::new();
        for step in expand_ladder(spec) {
            doors::check_others(&step, planning.before)?;
            for turn in doors::turns(&step)? {
                self.phases_of(&turn, planning, &mut phases)?;
            }
            self.doors.set_token_file(step.token_file.clone());
        }
        Ok(phases)
    }

    /// Items that a phase works on and nothing made so far are made before it.
    fn fills(&self, phase: &Phase, earlier: &[&PhasePlan]) -> Vec<Phase> {
        let Ok(plan) = plan_of(phase) else { return Vec::new() };
        let over = plan.operation.phase().over;
        let needs = !plan.operation.makes() && matches!(over, Over::Files | Over::Directories);
        let operation = match (over, plan.operation) {
            (Over::Directories, _) => FsOp::Mkdir,
            (_, FsOp::Read) => FsOp::Write,
            _ if plan.set.shape == Shape::Tree => FsOp::Create,
            _ => FsOp::Write,
        };
        let is_made = earlier.iter().filter_map(|plan| plan.of::<FsPlan>()).any(|made| {
            plan.is_within(made)
                && (made.operation == operation
                    || (made.operation.makes()
                        && made.operation.phase().over == over
                        && operation == FsOp::Create))
        });
        if !needs || !phase.fills || is_made || is_there(plan, over) {
            return Vec::new();
        }
        let mut fill = FsPlan {
            name: "fill".to_owned(),
            operation,
            is_fill: true,
            rank_shift: crate::plan::RankShift::By(0),
            wear_out_ns: None,
            transfers: None,
            barriers: false,
            phase_sync: false,
            cache: CacheBefore::Keep,
            item_order: crate::plan::OffsetOrder::Sequential,
            item_passes: 1,
            ..plan.clone()
        };
        fill.geometry.order = crate::plan::OffsetOrder::Sequential;
        fill.load.limit = workload::plan::LimitPlan::default();
        fill.load.arrivals = None;
        fill.load.think = None;
        vec![Phase { plan: PhasePlan::new(fill), fills: false, ..phase.clone() }]
    }

    fn part<'a>(
        &'a mut self,
        phases: Vec<&'a Phase>,
        _done: &[&PhasePlan],
        context: &StageContext<'_>,
    ) -> Result<Box<dyn Part + 'a>, Error> {
        let mut ready = Vec::new();
        for (number, phase) in phases.into_iter().enumerate() {
            let mut plan = plan_of(phase)?.clone();
            plan.set.restore()?;
            let plan = &plan;
            content::check_files(plan)?;
            self.pass(plan)?;
            let progress = self.progress_of(plan);
            let journal = &self.context.journal;
            let made = self.made.get_or_insert_with(|| Made::new(journal));
            if let Some(control) = &self.control {
                made.follow(control, plan)?;
            }
            made.prepare(plan, phase.destroy_data, &progress)?;
            if let Some(target) = plan.door_target.as_ref().filter(|_| plan.engine != "dfs") {
                made.note_store(&FsPlan { targets: vec![target.clone()], ..plan.clone() })?;
            }
            let stores = self.stores.of(plan, phase.control.secret.as_ref())?;
            if plan.engine == "dfs" {
                let run_id = made.run_id().to_owned();
                let note = &mut || made.note_store(plan);
                self.stores.prepare(plan, &stores, phase.destroy_data, &progress, (&run_id, note))?;
            }
            let search = match plan.operation {
                FsOp::Find => Some(Search::new(plan)?),
                _ => None,
            };
            let mut notes = cache::in_memory(plan);
            if plan.cache == CacheBefore::Drop && plan.engine != "null" {
                notes.extend(cache::drop_of(plan, &stores, &context.interrupt)?);
            }
            begin_making(plan, &progress);
            stock::stock(plan, &stores, &context.interrupt);
            let meeting = format!("files.{}.{number}", context.number);
            let (threads, hosts) = (plan.load.threads, self.context.hosts.as_ref());
            let with = (meeting.as_str(), hosts);
            let wear_out =
                plan.wear_out_ns.map(|after_ns| WearOut::new(after_ns, threads, with)).transpose()?;
            let barriers = plan.barriers.then(|| Barriers::new(threads, with)).transpose()?;
            ready.push(Ready {
                gpu_notes: plan.gpu_notes(),
                plan: Arc::new(plan.clone()),
                stores,
                functions: self.doors.functions(plan),
                progress,
                search,
                wear_out,
                barriers,
                notes,
                meeting,
            });
        }
        Ok(Box::new(FsPart {
            run: self,
            ready,
            interrupt: Arc::clone(&context.interrupt),
            fetched_bytes: None,
            devices: Vec::new(),
        }))
    }

    fn end(&mut self) -> Result<(), Error> {
        let leaves = self.control.as_ref().is_some_and(|control| control.leaves.load(Ordering::Relaxed));
        let journal = &self.context.journal;
        // A mount that no phase has used is in the list all the same.
        if self.made.is_none() && has_sets(&**journal) {
            self.made = Some(Made::new(journal));
        }
        let due = self.made.as_mut().map_or(Ok(()), Made::remove_due);
        let ended = match &mut self.made {
            Some(made) if !self.context.keep && !self.keeps_for_error && !leaves => {
                let removed = self.stores.remove_all(made.run_id());
                removed.and(made.remove_all())
            }
            _ => Ok(()),
        };
        self.stores.close();
        due.and(ended).and(self.doors.unmount())
    }
}

/// Whether an operation of a phase failed, or a worker did.
fn has_failed(outcome: &Outcome) -> bool {
    let workers = &outcome.samples.workers;
    workers.iter().any(|worker| worker.failure.is_some() || !worker.errors.is_empty())
}

/// Phases of a stage that are ready.
struct FsPart<'a> {
    run: &'a mut FsRun,
    ready: Vec<Ready>,
    interrupt: Arc<AtomicBool>,
    /// Bytes that this process made the kernel fetch, when the phases began.
    fetched_bytes: Option<u64>,
    /// Devices that buffers are on, phase by phase.
    devices: Vec<Option<GpuWatch>>,
}

impl Part for FsPart<'_> {
    fn jobs(&mut self) -> Vec<Job> {
        self.ready.iter().map(|ready| ready.job(&self.interrupt)).collect()
    }

    fn begin(&mut self) -> Result<(), Error> {
        self.fetched_bytes = host::activity::fetched_bytes();
        let watch = |ready: &Ready| {
            let gpu = ready.plan.memory.gpu().filter(|_| ready.plan.operation.moves_data())?;
            GpuWatch::begin(&gpu.devices)
        };
        self.devices = self.ready.iter().map(watch).collect();
        Ok(())
    }

    fn stop(&mut self) -> u64 {
        let now = host::activity::fetched_bytes();
        self.fetched_bytes = self.fetched_bytes.zip(now).map(|(before, now)| now.saturating_sub(before));
        0
    }

    fn end(self: Box<Self>, outcomes: Vec<Outcome>, machine: &Observations) -> Vec<Seen> {
        let Self { run, ready, fetched_bytes, devices, .. } = *self;
        let mut devices = devices.into_iter();
        let mut seen = Vec::new();
        for (mut outcome, ready) in outcomes.into_iter().zip(&ready) {
            outcome.notes.extend(ready.notes.iter().cloned());
            run.keeps_for_error |= ready.plan.keep_on_error && has_failed(&outcome);
            if run.reads_others
                && let Err(error) = ready.exchange(&run.context)
            {
                outcome.notes.push(format!("cannot read what the other hosts created: {error}"));
            }
            if let Some(made) = &mut run.made
                && let Err(error) = made.settle(&ready.plan)
            {
                outcome.notes.push(error.to_string());
            }
            let observations = Observations {
                files: Some(ready.activity()),
                gpu: devices.next().flatten().map(|watch| watch.end(&ready.gpu_notes)),
                process_fetched_bytes: fetched_bytes,
                ..machine.clone()
            };
            seen.push((outcome, observations));
        }
        seen
    }
}
