//! Loads on files and directories: their phases, how they get ready, their jobs, and what they made.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use driver::{Arena, Error, ErrorKind, PageSize};
use layer::observations::{FileActivity, FoundFiles, Observations, StonewallActivity};
use layer::{
    DriverEntry, Hosts, LayerRun, Leftovers, Measured, Part, Phase, Planning, RunContext, Seen, StageContext,
};
use runner::{Job, Opener, Outcome, WorkerSetup};
use units::path_of;
use workload::layers::LayerDef;
use workload::plan::{PhasePlan, expand_ladder};
use workload::spec::Spec;

use crate::cache;
use crate::drivers::{self, DRIVERS, OpenRequest};
use crate::find::{self, Search};
use crate::made::{FileSets, Made, SuiteControl};
use crate::operation::{FsClass, NameKind};
use crate::options::LAYER;
use crate::phases::{FsOp, Over};
use crate::plan::{CacheBefore, FsPlan, RankShift};
use crate::progress::{self, Barriers, Progress, WearOut};
use crate::resolve;
use crate::set::{FileSet, Shape};
use crate::source::FsSource;
use crate::spec;
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

    fn leftovers(&self) -> Option<&'static dyn Leftovers> {
        Some(&FileSets)
    }

    fn options_title(&self) -> String {
        "Options of a load on files and directories (`strata fs`, `layer = \"filesystem\"` in a job file)"
            .to_owned()
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
    /// Something failed, and the user wants to look at what there is then.
    keeps_for_error: bool,
    /// Settings of the suite that the phases are of.
    control: Option<Arc<SuiteControl>>,
    /// Stages so far: all hosts count the same.
    stages: u32,
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
            keeps_for_error: false,
            control,
            stages: 0,
            reads_others: false,
        }
    }

    /// Progress of the set of a plan.
    pub(crate) fn progress_of(&mut self, plan: &FsPlan) -> Arc<Progress> {
        let is_same = |(targets, set): &Key| *targets == plan.targets && *set == plan.set;
        if let Some((_, known)) = self.progress.iter().find(|(key, _)| is_same(key)) {
            return Arc::clone(known);
        }
        let new = Progress::new(plan.set.ranks);
        self.progress.push(((plan.targets.clone(), plan.set.clone()), Arc::clone(&new)));
        new
    }
}

/// The hosts that a phase works with on the same targets; none where it is alone with its targets.
fn guests<'a>(context: &'a RunContext, plan: &FsPlan) -> Option<&'a Hosts> {
    context.hosts.as_ref().filter(|_| plan.has_guests())
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
    let other = || Error::new(ErrorKind::Run, "stage", "a phase of the file system has another plan");
    phase.plan.of().ok_or_else(other)
}

/// Whether the items of a set are there: the first of the first rank is.
fn is_there(plan: &FsPlan, over: Over) -> bool {
    if plan.targets.iter().any(|target| is_store(target)) {
        return false;
    }
    let kind = if over == Over::Directories { NameKind::Directory } else { NameKind::File };
    let path = crate::content::path_of(plan, kind, 0, 0);
    std::fs::symlink_metadata(path_of(&path)).is_ok()
}

impl LayerRun for FsRun {
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
            let mut set = None;
            for operation in resolve::operations(&step) {
                let seed = planning.seed_of(phases.len());
                let phase = phase(
                    &step,
                    resolve::plan(&step, operation, seed, self.context.journal.run(), &mut set)?,
                )?;
                let so_far = phases.iter().map(|phase| &phase.plan);
                let earlier: Vec<&PhasePlan> = planning.before.iter().copied().chain(so_far).collect();
                let fills = self.fills(&phase, &earlier);
                self.reads_others |= plan_of(&phase)?.rank_shift != RankShift::By(0);
                phases.extend(fills);
                phases.push(phase);
            }
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
            made.targets == plan.targets
                && made.set == plan.set
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
        self.stages += 1;
        for (number, phase) in phases.into_iter().enumerate() {
            let mut plan = plan_of(phase)?.clone();
            plan.set.restore()?;
            let plan = &plan;
            let progress = self.progress_of(plan);
            let journal = &self.context.journal;
            let made = self.made.get_or_insert_with(|| Made::new(journal));
            if let Some(control) = &self.control {
                made.follow(control, plan)?;
            }
            made.prepare(plan, phase.destroy_data, &progress)?;
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
                notes.extend(cache::drop_of(plan, &context.interrupt)?);
            }
            begin_making(plan, &progress);
            let meeting = format!("files.{}.{number}", self.stages);
            let (threads, hosts) = (plan.load.threads, self.context.hosts.as_ref());
            let with = (meeting.as_str(), hosts);
            let wear_out =
                plan.wear_out_ns.map(|after_ns| WearOut::new(after_ns, threads, with)).transpose()?;
            let barriers = plan.barriers.then(|| Barriers::new(threads, with)).transpose()?;
            ready.push(Ready {
                plan: Arc::new(plan.clone()),
                stores,
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
        }))
    }

    fn end(&mut self) -> Result<(), Error> {
        let leaves = self.control.as_ref().is_some_and(|control| control.leaves.load(Ordering::Relaxed));
        match &mut self.made {
            Some(made) if !self.context.keep && !self.keeps_for_error && !leaves => {
                let removed = self.stores.remove_all(made.run_id());
                removed.and(made.remove_all())
            }
            _ => Ok(()),
        }
    }
}

/// What a phase makes, as later phases count it; none where it makes nothing that they work on.
fn made_by<'a>(plan: &FsPlan, progress: &'a Progress) -> Option<&'a progress::Made> {
    match (plan.operation, plan.set.shape) {
        (FsOp::Mkdir, _) => Some(&progress.directories),
        (FsOp::Write, Shape::Private | Shape::Shared) => Some(&progress.blocks),
        (FsOp::Create | FsOp::Mknod | FsOp::Write, _) => Some(&progress.files),
        _ => None,
    }
}

/// How many of a rank there are once all is made, as [`made_by`] counts them.
fn all_of(plan: &FsPlan, rank: u32) -> u64 {
    match (plan.operation, plan.set.shape) {
        (FsOp::Mkdir, _) => plan.set.items,
        (_, Shape::Private | Shape::Shared) => plan.geometry.blocks(),
        _ => plan.set.items_of(rank, plan.operation.moves_data()),
    }
}

/// Notes that a phase makes items: later phases work on as many as it made.
fn begin_making(plan: &FsPlan, progress: &Progress) {
    if let Some(made) = made_by(plan, progress) {
        made.begin(plan.ranks_here());
    }
}

/// A phase that is ready.
struct Ready {
    plan: Arc<FsPlan>,
    stores: Vec<Arc<dyn dfs::FileSystem>>,
    progress: Arc<Progress>,
    search: Option<Arc<Search>>,
    wear_out: Option<Arc<WearOut>>,
    barriers: Option<Arc<Barriers>>,
    notes: Vec<String>,
    /// Name under which hosts meet in it.
    meeting: String,
}

impl Ready {
    fn job(&self, interrupt: &Arc<AtomicBool>) -> Job {
        let plan = &self.plan;
        let load = &plan.load;
        let classes = classes(plan);
        if let Some(search) = &self.search {
            let search = Arc::clone(search);
            let open = Opener::new(move |_| {
                let (source, driver) = find::worker(&search);
                Ok(WorkerSetup { driver: Box::new(driver), source, notes: Vec::new(), parts: Vec::new() })
            });
            return Job::new(&plan.name, load, classes, open, Arc::clone(interrupt));
        }
        let (shared, progress, wear_out) =
            (Arc::clone(plan), Arc::clone(&self.progress), self.wear_out.clone());
        let barriers = self.barriers.clone();
        let stores = self.stores.clone();
        let open = Opener::new(move |worker| {
            let slot_bytes = if shared.operation.moves_data() { shared.geometry.block_size_bytes } else { 1 };
            let arena = Arc::new(Arena::new(shared.load.depth, slot_bytes as usize, PageSize::Base)?);
            let request =
                OpenRequest { plan: Arc::clone(&shared), arena: Arc::clone(&arena), stores: stores.clone() };
            let opened = (drivers::find(&shared.engine)?.open)(&request)?;
            let source =
                FsSource::new(&shared, worker, &arena, &progress, (wear_out.as_ref(), barriers.as_ref()))?;
            Ok(WorkerSetup { driver: opened.driver, source, notes: opened.notes, parts: Vec::new() })
        });
        let is_one_file = plan.set.shape != Shape::Tree && plan.operation.moves_data();
        Job {
            expected_operations: Some(self.expected_operations()),
            finishes: is_one_file || plan.phase_sync,
            has_items: !is_one_file && plan.operation.phase().calls.len() > 1,
            ..Job::new(&plan.name, load, classes, open, Arc::clone(interrupt))
        }
    }

    /// Trees whose directories the workers of this host go over.
    fn trees_here(&self) -> u64 {
        let plan = &self.plan;
        if plan.set.shared_tree { u64::from(!plan.load.is_guest()) } else { u64::from(plan.load.threads) }
    }

    /// Operations of a whole pass of this host's workers.
    fn expected_operations(&self) -> u64 {
        let plan = &self.plan;
        let ranks = u64::from(plan.load.threads);
        let blocks = plan.geometry.blocks();
        if plan.set.shape != Shape::Tree && plan.operation.moves_data() {
            return ranks * (plan.blocks_to_move() + 2 + u64::from(plan.end_fsync));
        }
        let calls = plan.operation.phase().calls.iter();
        let calls: u64 = calls
            .map(|(class, _)| match class {
                FsClass::Read | FsClass::Write => blocks,
                FsClass::Fsync => u64::from(plan.end_fsync),
                _ => 1,
            })
            .sum();
        let items = match plan.operation.phase().over {
            Over::Nodes | Over::NodesReversed => self.trees_here() * plan.set.counted_nodes(),
            Over::Targets => ranks.min(plan.targets.len() as u64),
            Over::Directories if !plan.operation.makes() => {
                self.progress.directories.sum(plan.ranks_here(), plan.set.items)
            }
            Over::Files if !plan.operation.makes() && plan.set.listed.is_none() => {
                self.progress.files.sum(plan.ranks_here(), plan.set.items)
            }
            _ => self.items_here(),
        };
        if plan.set.listed.is_some() && plan.operation.moves_data() {
            let others = calls.saturating_sub(blocks);
            return items.saturating_mul(others).saturating_add(plan.blocks_here());
        }
        items.saturating_mul(calls)
    }

    /// Items of the ranks that the workers of this host work on.
    fn items_here(&self) -> u64 {
        let plan = &self.plan;
        let of = |rank| plan.set.items_of(rank, plan.operation.moves_data());
        plan.ranks_here().map(of).fold(0, u64::saturating_add)
    }

    /// Has all hosts know how much each has made, where later phases work on what others have.
    fn exchange(&self, context: &RunContext) -> Result<(), Error> {
        let plan = &self.plan;
        let (Some(hosts), Some(made)) = (guests(context, plan), made_by(plan, &self.progress)) else {
            return Ok(());
        };
        let here: Vec<u32> = plan.ranks_here().collect();
        made.exchange((hosts, &format!("{}.made", self.meeting)), &here, |rank| all_of(plan, rank))
    }

    fn activity(&self) -> FileActivity {
        let set = &self.plan.set;
        let items = match (self.plan.operation.phase().over, set.shape) {
            (Over::Nodes | Over::NodesReversed, _) => self.trees_here() * set.counted_nodes(),
            (Over::Directories, _) => self.progress.directories.sum(self.plan.ranks_here(), set.items),
            (Over::Walk | Over::Targets, _) => 0,
            (_, Shape::Tree) if set.listed.is_some() => self.items_here(),
            (_, Shape::Tree) => self.progress.files.sum(self.plan.ranks_here(), set.items),
            _ => self.progress.blocks.sum(self.plan.ranks_here(), self.plan.geometry.blocks()),
        };
        let stonewall = self.wear_out.as_ref().and_then(|wall| {
            let (items_max, items_min, items) = wall.seen()?;
            Some(StonewallActivity { after_ns: wall.after_ns(), items_max, items_min, items })
        });
        let found = self.search.as_ref().map(|search| {
            let (entries, matched) = search.found();
            FoundFiles { entries, matched }
        });
        FileActivity { items, stonewall, found }
    }
}

/// Classes that the operations of a plan can be of.
fn classes(plan: &FsPlan) -> Vec<usize> {
    let calls = plan.operation.phase().calls.iter().map(|(class, _)| *class);
    let syncs = plan.end_fsync || plan.fsync_every.is_some();
    let mut classes: Vec<usize> =
        calls.filter(|class| *class != FsClass::Fsync || syncs).map(|class| class as usize).collect();
    classes.extend(plan.phase_sync.then_some(FsClass::Syncfs as usize));
    classes.sort_unstable();
    classes.dedup();
    classes
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
}

impl Part for FsPart<'_> {
    fn jobs(&mut self) -> Vec<Job> {
        self.ready.iter().map(|ready| ready.job(&self.interrupt)).collect()
    }

    fn begin(&mut self) -> Result<(), Error> {
        self.fetched_bytes = host::activity::fetched_bytes();
        Ok(())
    }

    fn stop(&mut self) -> u64 {
        let now = host::activity::fetched_bytes();
        self.fetched_bytes = self.fetched_bytes.zip(now).map(|(before, now)| now.saturating_sub(before));
        0
    }

    fn end(self: Box<Self>, outcomes: Vec<Outcome>, machine: &Observations) -> Vec<Seen> {
        let Self { run, ready, fetched_bytes, .. } = *self;
        let mut seen = Vec::new();
        for (mut outcome, ready) in outcomes.into_iter().zip(&ready) {
            outcome.notes.extend(ready.notes.iter().cloned());
            run.keeps_for_error |= ready.plan.keep_on_error && has_failed(&outcome);
            if run.reads_others
                && let Err(error) = ready.exchange(&run.context)
            {
                outcome.notes.push(format!("what the other hosts have made is not known: {error}"));
            }
            if let Some(made) = &mut run.made
                && let Err(error) = made.settle(&ready.plan)
            {
                outcome.notes.push(error.to_string());
            }
            let observations = Observations {
                files: Some(ready.activity()),
                process_fetched_bytes: fetched_bytes,
                ..machine.clone()
            };
            seen.push((outcome, observations));
        }
        seen
    }
}
