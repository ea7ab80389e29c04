//! Loads of applications: their stages, how they get ready, and their jobs.

mod part;

use std::any::Any;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use driver::{Arena, Capabilities, Error, ErrorKind, Operation};
use gpu::WorkerNotes;
use layer::memory::{Attached, WorkerMemory, WorkerNeeds};
use layer::server::SharedStores;
use layer::storage::Storage;
use layer::{DriverEntry, LayerRun, Measured, Part, Phase, Planning, RunContext, StageContext};
use runner::{GRACE_NS, Job, Opener, WorkerSetup};
use units::path_of;
use workload::layers::LayerDef;
use workload::plan::{HostPlace, PhasePlan};
use workload::spec::Spec;

use crate::beside::{self, BesidePlan, Turn};
use crate::checkpoint::Times;
use crate::driver::{AppDriver, MadeAgain};
use crate::feeding::{self, Feeding};
use crate::log::Logs;
use crate::meter::Meters;
use crate::operation::{AppClass, AppOperation};
use crate::options::LAYER;
use crate::plan::AppPlan;
use crate::planning::{self, Opening, PlannedApp};
use crate::progress::Progress;
use crate::sharing;
use crate::source::{AppSource, expected_operations};
use crate::staging::{Stager, Staging};
use crate::trying::{Side, Trying};

/// Applications.
#[derive(Debug)]
pub struct Applications;

/// Capabilities of a process of an application: one call at a time.
const CAPABILITIES: Capabilities = Capabilities::plain(AppOperation::CLASSES, 1);

impl Measured for Applications {
    fn definition(&self) -> &'static LayerDef {
        LAYER.definition()
    }

    fn drivers(&self) -> Vec<DriverEntry> {
        let summary = "Calls on storage of the layers below, computations, and waiting for other processes";
        vec![DriverEntry { name: "storage", target: None, capabilities: CAPABILITIES, summary }]
    }

    fn paths(&self, spec: &Spec) -> Vec<PathBuf> {
        let target =
            spec.targets.last().filter(|_| spec.targets.len() > 1 || crate::spec::of(spec).app.is_some());
        let beside = beside::targets(&crate::spec::of(spec).on).unwrap_or_default();
        let is_path =
            |target: &&String| !target.contains(':') || target.contains('/') && !target.contains("://");
        let beside = beside.iter().map(|beside| &beside.target);
        let paths = target.into_iter().chain(beside).filter(is_path);
        paths.map(|path| path_of(path).into_owned()).collect()
    }

    fn reached(&self, spec: &Spec) -> Vec<String> {
        planning::reached(spec)
    }

    fn ship(&self, spec: &mut Spec) {
        planning::ship(spec);
    }

    fn share_targets(&self, spec: &mut Spec, stores: &mut SharedStores) -> Result<(), Error> {
        sharing::share(spec, stores)
    }

    fn commands(&self) -> Vec<layer::Command> {
        crate::commands::all()
    }

    fn stack_loads(&self, request: &layer::StackRequest<'_>) -> Result<layer::StackLoads, Error> {
        crate::stack::loads(request)
    }

    fn stack_rows(&self, request: &layer::StackRequest<'_>) -> Vec<layer::StackRowSpec> {
        crate::stack::rows(request)
    }

    fn options_title(&self) -> String {
        "Options of a load of an application (`strata app`, `layer = \"application\"` in a job file)"
            .to_owned()
    }

    fn begin(&self, context: &RunContext) -> Box<dyn LayerRun> {
        Box::new(AppRun {
            context: context.clone(),
            storages: Vec::new(),
            searches: Vec::new(),
            trying: Vec::new(),
            stages: 0,
            turns: 0,
            turn: None,
            left: Ok(()),
        })
    }
}

/// The storage of a phase, as a phase keeps it.
enum KeptStorage {
    /// Opened when it was planned.
    Open(Arc<dyn Storage>),
    /// Opened for the turn of this number.
    InTurn(Arc<Opening>, usize),
    /// Opened anew each time the first stage of the turn of this number begins.
    Repeated(Arc<Opening>, usize),
}

/// Storage of a turn, and what its stages share.
struct OpenTurn {
    number: usize,
    storage: Arc<dyn Storage>,
    logs: Arc<Logs>,
    times: Arc<Times>,
}

/// Storage of a phase, and the search that it is a run of.
struct Kept {
    storage: KeptStorage,
    /// Its logs: all stages of an application share them.
    logs: Arc<Logs>,
    times: Arc<Times>,
    search: Option<Arc<Feeding>>,
    /// The remedies that its profile chooses from.
    trying: Option<Arc<Trying>>,
}

/// Storage of a phase, and what it shares with the other stages.
type Shared = (Arc<dyn Storage>, Arc<Logs>, Arc<Times>);

/// Whether a class of calls, by its index, brings data back.
fn is_read(class: usize) -> bool {
    [AppClass::Read, AppClass::Recover].iter().any(|read| *read as usize == class)
}

/// Stages of an application with what they share; `kept` says where their storage is, `search` is of the last one, and `trying` of all.
fn stages(
    spec: &Spec,
    plans: Vec<AppPlan>,
    kept: impl Fn() -> KeptStorage,
    (search, trying): (Option<&Arc<Feeding>>, Option<&Arc<Trying>>),
) -> Vec<Phase> {
    let last = plans.len().saturating_sub(1);
    let times = Arc::new(Times::default());
    let logs = Arc::new(plans.first().map_or_else(Logs::default, Logs::new));
    let stage = |(at, plan)| {
        let (logs, times) = (Arc::clone(&logs), Arc::clone(&times));
        let search = search.filter(|_| at == last).cloned();
        phase(spec, plan, Kept { storage: kept(), logs, times, search, trying: trying.cloned() })
    };
    plans.into_iter().enumerate().map(stage).collect()
}

/// The phase of a plan.
fn phase(spec: &Spec, plan: AppPlan, kept: Kept) -> Phase {
    Phase {
        destroy_data: spec.destroy_data,
        side: plan.beside.as_ref().map(|beside| beside.at),
        state: Some(Arc::new(kept) as Arc<dyn Any + Send + Sync>),
        ..Phase::new(PhasePlan::new(plan), &CAPABILITIES)
    }
}

/// Applications during a run.
struct AppRun {
    context: RunContext,
    storages: Vec<Arc<dyn Storage>>,
    searches: Vec<Arc<Feeding>>,
    trying: Vec<Arc<Trying>>,
    /// Stages so far.
    stages: usize,
    /// Turns that are planned.
    turns: usize,
    /// The turn that goes on.
    turn: Option<OpenTurn>,
    /// Things that turns left behind.
    left: Result<(), Error>,
}

impl AppRun {
    /// Adds the phases of all turns of several targets, each pass over all of them. Nothing stays open until the turn comes.
    fn turns(
        &mut self,
        (turns, passes): (Vec<Turn>, u32),
        planning: &Planning<'_>,
    ) -> Result<Vec<Phase>, Error> {
        let mut sides = Vec::new();
        for turn in turns {
            let app = planning::plan(&turn.spec, planning, &self.context)?;
            app.storage.end()?;
            let (spec, beside, opening) = (turn.spec, turn.beside, Arc::new(app.opening));
            sides.push(Side { spec, beside, plans: app.plans, opening });
        }
        Ok(self.passes(&sides, passes))
    }

    /// The phases of passes over sides that are planned.
    fn passes(&mut self, sides: &[Side], passes: u32) -> Vec<Phase> {
        let mut phases = Vec::new();
        for pass in 1..=passes {
            for side in sides {
                self.turns += 1;
                let in_turn = |plan: &AppPlan| AppPlan {
                    name: format!("{}{}", plan.name, side.beside.suffix()),
                    beside: Some(BesidePlan { pass, ..side.beside.clone() }),
                    ..plan.clone()
                };
                let plans = side.plans.iter().map(in_turn).collect();
                let kept = || KeptStorage::InTurn(Arc::clone(&side.opening), self.turns);
                phases.extend(stages(&side.spec, plans, kept, (None, None)));
            }
        }
        phases
    }

    /// The phases of the first run of an application that a remedy is tried on. Its turns follow from what it shows.
    fn tried(
        &mut self,
        spec: &Spec,
        planned: PlannedApp,
        planning: &Planning<'_>,
    ) -> Result<Vec<Phase>, Error> {
        planned.storage.end()?;
        let opening = Arc::new(planned.opening);
        let trying = Trying::of(spec, &planned.plans, &opening, (planning, &self.context))?;
        self.trying.push(Arc::clone(&trying));
        self.turns += 1;
        let kept = || KeptStorage::InTurn(Arc::clone(&opening), self.turns);
        Ok(stages(spec, planned.plans, kept, (None, Some(&trying))))
    }

    /// The storage of a phase, and what its stages share. That of the turn before is closed first, with what the run made removed.
    fn storage(&mut self, kept: &Kept, plan: &AppPlan) -> Result<Shared, Error> {
        let of_run = |storage| Ok((storage, Arc::clone(&kept.logs), Arc::clone(&kept.times)));
        let (opening, number, is_repeated) = match &kept.storage {
            KeptStorage::Open(storage) => return of_run(Arc::clone(storage)),
            KeptStorage::InTurn(opening, number) => (opening, *number, false),
            KeptStorage::Repeated(opening, number) => (opening, *number, true),
        };
        if let Some(turn) = self.turn.as_ref().filter(|turn| turn.number == number)
            && !(is_repeated && plan.is_first)
        {
            return Ok((Arc::clone(&turn.storage), Arc::clone(&turn.logs), Arc::clone(&turn.times)));
        }
        if is_repeated && !plan.is_first {
            return Err(Error::new(ErrorKind::Run, "stage", "the previous stage did not run"));
        }
        self.end_turn();
        let storage = opening.open(&self.context)?;
        let (logs, times) = match is_repeated {
            true => (Arc::new(Logs::new(plan)), Arc::default()),
            false => (Arc::clone(&kept.logs), Arc::clone(&kept.times)),
        };
        let turn = OpenTurn { number, storage, logs, times };
        let shared = (Arc::clone(&turn.storage), Arc::clone(&turn.logs), Arc::clone(&turn.times));
        self.turn = Some(turn);
        Ok(shared)
    }

    /// Closes the storage of the turn that goes on. What it leaves is told at the end, and keeps no other target from its turn.
    fn end_turn(&mut self) {
        if let Some(turn) = self.turn.take() {
            let left = turn.storage.end();
            self.left = std::mem::replace(&mut self.left, Ok(())).and(left);
        }
    }
}

impl LayerRun for AppRun {
    fn find(&mut self, specs: &mut [&mut Spec]) -> Result<(), Error> {
        for spec in specs.iter_mut() {
            planning::name_app(spec)?;
            let paths = Applications.paths(spec);
            planning::settle_hosts(spec, &paths)?;
            feeding::check_hosts(spec)?;
        }
        Ok(())
    }

    fn phases(&mut self, spec: &Spec, planning: &Planning<'_>) -> Result<Vec<Phase>, Error> {
        if let Some(turns) = beside::turns(spec)? {
            return self.turns(turns, planning);
        }
        let planned = planning::plan(spec, planning, &self.context)?;
        if crate::spec::of(spec).is_repeated {
            planned.storage.end()?;
            self.turns += 1;
            let opening = Arc::new(planned.opening);
            let kept = || KeptStorage::Repeated(Arc::clone(&opening), self.turns);
            return Ok(stages(spec, planned.plans, kept, (None, None)));
        }
        if crate::spec::of(spec).try_remedy {
            return self.tried(spec, planned, planning);
        }
        self.storages.push(Arc::clone(&planned.storage));
        let search = match planned.plans.first() {
            Some(first) => Feeding::of(spec, &planned.storage, first)?,
            None => None,
        };
        self.searches.extend(search.clone());
        let kept = || KeptStorage::Open(Arc::clone(&planned.storage));
        Ok(stages(spec, planned.plans, kept, (search.as_ref(), None)))
    }

    fn following(&mut self) -> Result<Vec<Phase>, Error> {
        for search in &self.searches {
            if let Some(plan) = search.next()? {
                let (storage, own) =
                    (KeptStorage::Open(Arc::clone(search.storage())), Some(Arc::clone(search)));
                let kept =
                    Kept { storage, logs: Arc::default(), times: Arc::default(), search: own, trying: None };
                return Ok(vec![phase(search.spec(), plan, kept)]);
            }
        }
        let turns = self.trying.iter().find_map(|trying| trying.turns());
        Ok(turns.map(|(sides, passes)| self.passes(&sides, passes)).unwrap_or_default())
    }

    /// The processes of an application are those of all hosts, and meet each other.
    fn keeps_hosts(&self, plan: &PhasePlan, _all: &[&PhasePlan]) -> Option<String> {
        let is_subset = plan.load().place.is_some_and(HostPlace::is_subset);
        is_subset.then(|| "an application requires all hosts of the run".to_owned())
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
            let (Some(plan), Some(kept)) = (phase.plan.of::<AppPlan>(), phase.state::<Kept>()) else {
                return Err(Error::new(
                    ErrorKind::Run,
                    "stage",
                    "internal error: a phase was planned without its storage",
                ));
            };
            let (storage, logs, times) = self.storage(&kept, plan)?;
            let meeting = format!("app.{}.{number}", self.stages);
            let hosts = self.context.hosts.as_ref().filter(|_| plan.load.place.is_some());
            // The others get ready when the first host has made what all share.
            storage.prepare()?;
            let reads = || plan.classes().into_iter().any(is_read);
            if matches!(kept.storage, KeptStorage::Repeated(..)) && reads() {
                storage.drop_cache(&context.interrupt)?;
            }
            // A target that was opened just now tells of its room only now. Later stages find less, because the first has written.
            if plan.is_first {
                planning::check_space(&plan.sets, &storage.facts(), &plan.target)?;
            }
            ready.push(Ready {
                plan: Arc::new(plan.clone()),
                storage,
                gpu_notes: WorkerNotes::default(),
                meters: Meters::default(),
                made_again: MadeAgain::default(),
                progress: Arc::new(Progress::with_hosts(plan, &meeting, hosts)?),
                staging: Arc::new(Staging::new(plan)?),
                logs,
                times,
                search: kept.search.clone(),
                trying: kept.trying.clone(),
            });
        }
        let (interrupt, tell) = (Arc::clone(&context.interrupt), context.tell);
        Ok(Box::new(part::AppPart { ready, interrupt, tell, devices: Vec::new() }))
    }

    fn end(&mut self) -> Result<(), Error> {
        self.end_turn();
        let mut result = std::mem::replace(&mut self.left, Ok(()));
        for storage in self.storages.drain(..) {
            result = result.and(storage.end());
        }
        result
    }
}

/// A stage that is ready.
struct Ready {
    plan: Arc<AppPlan>,
    storage: Arc<dyn Storage>,
    /// Notes of its workers about their devices.
    gpu_notes: WorkerNotes,
    /// Work of the accelerators.
    meters: Meters,
    /// Reads that were made again.
    made_again: MadeAgain,
    progress: Arc<Progress>,
    /// Memory for the items that are staged.
    staging: Arc<Staging>,
    logs: Arc<Logs>,
    times: Arc<Times>,
    /// The search that it is a run of.
    search: Option<Arc<Feeding>>,
    /// The remedies that its profile chooses from.
    trying: Option<Arc<Trying>>,
}

impl Ready {
    fn job(&self, interrupt: &Arc<AtomicBool>) -> Job {
        let plan = &self.plan;
        let (progress, logs) = (Arc::clone(&self.progress), Arc::clone(&self.logs));
        let (shared, storage, flag) = (Arc::clone(plan), Arc::clone(&self.storage), Arc::clone(interrupt));
        let (gpu_notes, meters) = (self.gpu_notes.clone(), self.meters.clone());
        let (staging, made_again) = (Arc::clone(&self.staging), self.made_again.clone());
        let open = Opener::new(move |worker| {
            let number = shared.load.worker(worker);
            let needs =
                WorkerNeeds { depth: 1, ..WorkerNeeds::of(&shared.memory, &shared.load, worker, true) };
            let arena = Arc::new(Arena::new(1, shared.transfer_bytes_max() as usize, needs.pages())?);
            let memory = WorkerMemory::take(&needs, &arena, &gpu_notes)?;
            let opened = storage.open(worker, &arena, &flag)?;
            let Attached { driver, device, notes } = memory.attach(&needs, opened, &arena)?;
            // The last hosts may have fewer processes than the others.
            let found = shared.process(number);
            let group = found.map_or(0, |(group, _)| group);
            let source =
                AppSource::new(&shared, found, &arena, (&progress, &logs)).staged(&staging).on_device(device);
            let meter = found.and_then(|(group, _)| meters.of(&shared.groups[group]));
            let stager = found.map(|(_, process)| Stager {
                staging: Arc::clone(&staging),
                arena: Arc::clone(&arena),
                process,
            });
            let driver = AppDriver::new(driver, &storage, &shared, (&progress, &logs), &flag, group)
                .counting(&made_again)
                .gathering(&arena)
                .metered(meter)
                .staging(stager);
            Ok(WorkerSetup { driver: Box::new(driver), source, notes, parts: Vec::new() })
        });
        let compute_ns = plan.groups.iter().flat_map(|group| &group.steps).map(|step| step.compute_ns).max();
        Job {
            expected_operations: Some(expected_operations(plan)),
            grace_ns: GRACE_NS.saturating_add(compute_ns.unwrap_or(0)),
            ..Job::new(&plan.name, &plan.load, plan.classes(), open, Arc::clone(interrupt))
        }
    }
}
