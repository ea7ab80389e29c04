//! A run: its record, its files, its stages one after the other.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use dialects::{Pace, Render};
use driver::{Error, ErrorKind, HostClock};
use host::Environment;
use live::{CsvTarget, Tempo, View};
use media::layout::{self, Manifest, Progress};
use media::names;
use media::zoned::ZoneTables;
use media::{MediaOperation, MediaSource};
use report::doubts::{self, Evidence};
use report::record::{Observations, PhaseRecord, Record, SCHEMA_VERSION, Status};
use runner::{Job, Outcome};
use statistics::{Event, Snapshot, SteadyReason, WarmUp, summarise};
use units::path_of;
use workload::network::NetworkPlan;
use workload::plan::{MediaPlan, PhasePlan};
use workload::random::SplitMix64;
use workload::spec::Warmup;

use crate::around::{self, Schedulers};
use crate::ledgers::{Check, Ledgers};
use crate::net;
use crate::objects::{self, Stores};
use crate::open_loop;
use crate::options::OutputSpec;
use crate::output::{self, Output};
use crate::phase::{self, Watch};
use crate::planning::Planned;
use crate::signals::{self, Attention};
use crate::status::{Due, StageReports};
use crate::tool_cost;

/// A seed that differs from run to run.
pub(crate) fn draw_seed() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    SplitMix64::new(now.as_nanos() as u64 ^ (u64::from(std::process::id()) << 48)).next_u64()
}

/// What came of a phase, and what was seen around it.
type Seen = (Outcome, Observations);

/// What goes when the stores of a run are closed.
type Ending = Box<dyn FnOnce() -> Result<(), Error>>;

/// A run under way.
pub(crate) struct Session {
    pub(crate) record: Record,
    output: Output,
    due: Due,
    view: Box<dyn View>,
    interrupt: Arc<AtomicBool>,
    attention: Attention,
    manifest: Manifest,
    keep: bool,
    ledgers: Ledgers,
    zones: ZoneTables,
    /// The object stores of the run.
    stores: Stores,
    /// Done when they are closed.
    ending: Option<Ending>,
    /// Phases of the run as far as known, for the live view.
    pub(crate) phase_count: usize,
}

impl Session {
    /// Begins a run: opens the outputs and the live view, gathers the environment, writes the first record.
    pub(crate) fn begin(
        words: &[String],
        output: &OutputSpec,
        targets: &[String],
        seed: u64,
        keep: bool,
        render: Option<Box<dyn Render>>,
    ) -> Result<Self, Error> {
        output::check_places(output, targets)?;
        let files: Vec<PathBuf> = render
            .iter()
            .flat_map(|render| render.files())
            .map(|file| output::named(&file).into_owned())
            .collect();
        output::check_apart(&files, targets)?;
        let run = SplitMix64::new(seed ^ draw_seed()).next_u64();
        let interrupt = Arc::new(AtomicBool::new(false));
        let attention = Attention::begin(&interrupt)?;
        let paths: Vec<PathBuf> = targets.iter().map(|target| path_of(target).into_owned()).collect();
        let record = Record {
            schema_version: SCHEMA_VERSION,
            strata_version: env!("CARGO_PKG_VERSION").to_owned(),
            debug_build: cfg!(debug_assertions),
            command_line: words.iter().map(|word| workload::object::without_password(word)).collect(),
            run_id: format!("{run:016x}"),
            seed,
            started_at: utc(SystemTime::now()),
            status: Status::Running,
            failure: None,
            environment: Environment::gather(&paths),
            tool_cost: None,
            peak_rss_bytes: 0,
            phases: Vec::new(),
            ladder: None,
            stack: None,
            recipes: None,
            made: Vec::new(),
        };
        if let Some(CsvTarget::File(path)) = &output.live_csv {
            output::made_outside_dev(path).map_err(|error| output::refused_place(path, error))?;
        }
        let pace = render.as_ref().map_or_else(Pace::default, |render| render.pace());
        let due = Due::new(pace)?;
        let tempo = Tempo { draw_ns: pace.draw_ns, line_ns: pace.line_ns };
        let view = live::open(output.live, output.live_csv.as_ref(), tempo).map_err(|error| {
            let lacks_room = error.cause().is_some_and(output::lacks_room);
            let kind = if lacks_room { ErrorKind::System } else { ErrorKind::Usage };
            Error::new(kind, "live", error.to_string())
        })?;
        let output = Output::open(output, render)?;
        output.save(&record)?;
        let manifest = Manifest::new(record.run_id.clone(), keep);
        Ok(Self {
            record,
            output,
            due,
            view,
            interrupt,
            attention,
            manifest,
            keep,
            ledgers: Ledgers::new(run),
            zones: ZoneTables::default(),
            stores: Stores::default(),
            ending: None,
            phase_count: 0,
        })
    }

    /// Takes over the object stores of the run: they are closed at its end, and a signal ends their waits. What it makes, files too, is noted
    /// in their manifest.
    ///
    /// # Errors
    /// When signals cannot be handled.
    pub(crate) fn adopt(&mut self, stores: Stores) -> Result<(), Error> {
        self.attention.interrupts(&stores.interrupt())?;
        stores.manifest().begin(self.ledgers.run(), &self.record.started_at, self.keep);
        self.attention.knows(stores.manifest());
        let journal: Arc<dyn layout::Journal> = Arc::<crate::manifest::Manifest>::clone(stores.manifest());
        self.manifest.keep_in(journal);
        self.stores = stores;
        Ok(())
    }

    /// Takes over stores that were found after [`Session::adopt`] had taken over the manifest and the signals that they share.
    pub(crate) fn holds(&mut self, stores: Stores) {
        self.stores = stores;
    }

    /// Has this done at the end, when the stores are closed: what served them goes.
    pub(crate) fn ends_with(&mut self, ending: Ending) {
        self.ending = Some(ending);
    }

    /// Whether the run was interrupted.
    pub(crate) fn is_interrupted(&self) -> bool {
        self.interrupt.load(Ordering::Relaxed)
    }

    /// Runs a phase by itself and adds it to the record; its index there.
    ///
    /// # Errors
    /// As for [`Session::run_stage`].
    pub(crate) fn run_phase(&mut self, planned: &Planned) -> Result<usize, Error> {
        self.run_stage(std::slice::from_ref(planned))?;
        Ok(self.record.phases.len() - 1)
    }

    /// Runs phases at the same time and adds them to the record; their indexes there, in the same order.
    ///
    /// # Errors
    /// When they could not begin. A phase that failed in the middle is in the record, with its failure.
    pub(crate) fn run_stage(&mut self, stage: &[Planned]) -> Result<Vec<usize>, Error> {
        if self.record.phases.is_empty() {
            self.output.begin(&self.record)?;
        }
        if let Some(planned) = stage.first() {
            self.output.ask(planned.request, &self.interrupt)?;
        }
        let before = self.record.phases.len();
        let (begun, seen) = match stage.first().map(|planned| &planned.plan) {
            Some(PhasePlan::Network(_)) => self.run_network(stage)?,
            Some(PhasePlan::Object(_)) => self.run_objects(stage)?,
            _ => self.run_media(stage)?,
        };
        // Stages count by what ran: a climb has more of them than were planned.
        let number = self.record.phases.last().map_or(0, |phase| phase.stage + 1);
        for (planned, (outcome, observations)) in stage.iter().zip(seen) {
            self.view.event(&Event::Finished(planned.plan.name(), &outcome.samples));
            let phase = phase_record(planned, number, begun, outcome, observations);
            self.record.phases.push(phase);
        }
        let new = before..self.record.phases.len();
        for at in new.clone() {
            if let Some(reason) = doubts::unsteady(&Evidence::of(&self.record, &self.record.phases[at])) {
                self.record.phases[at].summary.steady.deny(reason);
            }
            self.record.phases[at].doubts =
                doubts::find(&Evidence::of(&self.record, &self.record.phases[at]));
        }
        self.record.peak_rss_bytes = host::memory::peak_rss_bytes().unwrap_or(0);
        self.record.made = self.stores.manifest().made();
        self.output.save(&self.record)?;
        self.output.stage(&self.record, before);
        Ok(new.collect())
    }

    /// Runs the phases of a stage on media; when it began, and what came of each.
    fn run_media(&mut self, stage: &[Planned]) -> Result<(SystemTime, Vec<Seen>), Error> {
        let plans: Vec<&MediaPlan> = stage.iter().filter_map(|planned| planned.plan.media()).collect();
        let checks = self.ledgers.begin_stage(&plans)?;
        for ((planned, plan), check) in stage.iter().zip(&plans).zip(&checks) {
            self.lay_out(plan, planned.destroy_data, check.as_ref())?;
        }
        for (number, plan) in plans.iter().enumerate() {
            // Once, however many phases share it.
            let is_like = |other: &&MediaPlan| (other.cache, &other.targets) == (plan.cache, &plan.targets);
            if !plans[..number].iter().any(is_like) {
                media::cache::prepare(&plan.targets, plan.cache, &self.interrupt)?;
            }
        }
        let zones = self.zones.begin_stage(&plans)?;
        let parts = stage.iter().zip(&plans).zip(checks).zip(zones);
        let jobs = parts.map(|(((planned, plan), check), zones)| {
            phase::job(plan, check, planned.is_read_back, zones, Arc::clone(&self.interrupt))
        });
        let jobs = jobs.collect();
        let schedulers = Schedulers::set(&plans)?;
        around::run(&plans, true)?;
        let begun = SystemTime::now();
        let watch = Watch::begin(&plans);
        let outcomes = self.run_reporting(jobs, stage, begun);
        for (plan, needs) in plans.iter().filter_map(|plan| Some((plan, names::needs(&plan.engine)?))) {
            names::adopt(&mut self.manifest, &plan.targets, needs);
        }
        let outcomes = outcomes?;
        drop(schedulers);
        let observations = watch.end(&outcomes);
        let mut seen: Vec<Seen> = outcomes.into_iter().zip(observations).collect();
        if let (Err(error), Some((outcome, _))) = (around::run(&plans, false), seen.first_mut()) {
            outcome.failure.get_or_insert(error.to_string());
        }
        Ok((begun, seen))
    }

    fn run_reporting(
        &mut self,
        jobs: Vec<Job<MediaOperation, MediaSource>>,
        stage: &[Planned],
        begun: SystemTime,
    ) -> Result<Vec<Outcome>, Error> {
        let Self { record, output, due, view, phase_count, .. } = self;
        let number = record.phases.last().map_or(0, |phase| phase.stage + 1);
        let mut viewer = viewer(view, (record.phases.len() + 1, *phase_count));
        let mut status = StageReports { due, output, record, stage, number, begun };
        runner::run_reporting(jobs, HostClock::get(), &mut viewer, &mut status)
    }

    /// Runs the phases of a stage on the network; when it began, and what came of each.
    fn run_network(&mut self, stage: &[Planned]) -> Result<(SystemTime, Vec<Seen>), Error> {
        let ready = |planned: &'_ Planned| Some((planned.plan.network()?.clone(), planned.access.clone()?));
        let phases: Vec<_> = stage.iter().filter_map(ready).collect();
        let phases: Vec<_> = phases.iter().map(|(plan, access)| (plan, access)).collect();
        let interrupt = Arc::clone(&self.interrupt);
        net::run::run(&phases, &interrupt, &mut self.viewer())
    }

    /// Runs the phases of a stage on object stores; when it began, and what came of each.
    fn run_objects(&mut self, stage: &[Planned]) -> Result<(SystemTime, Vec<Seen>), Error> {
        let (run, verifies_own) = (self.ledgers.run(), |planned: &Planned| planned.fills);
        let is_whole = |phase: &&PhaseRecord| phase.failure.is_none() && phase.summary.total.errors == 0;
        let earlier: Vec<_> =
            self.record.phases.iter().filter(is_whole).filter_map(|phase| phase.plan.object()).collect();
        let ready = |planned: &Planned| {
            let plan = planned.plan.object()?;
            Some(objects::run::Ready {
                replaced: object::replaced_series(&earlier, plan, run),
                plan: plan.clone(),
                store: Arc::clone(planned.store.as_ref()?),
                run,
                accepts_foreign: !verifies_own(planned),
            })
        };
        let ready: Vec<_> = stage.iter().filter_map(ready).collect();
        let interrupt = Arc::clone(&self.interrupt);
        objects::run::run(&ready, &interrupt, &mut self.viewer())
    }

    /// Shows the snapshots of a stage, with its number in the run.
    fn viewer(&mut self) -> impl FnMut(&Snapshot) + '_ {
        viewer(&mut self.view, (self.record.phases.len() + 1, self.phase_count))
    }

    /// Makes the files of a phase ([`workload::spec::Layout`]).
    fn lay_out(&mut self, plan: &MediaPlan, destroy_data: bool, check: Option<&Check>) -> Result<(), Error> {
        if let Some(needs) = names::needs(&plan.engine) {
            return names::prepare(&mut self.manifest, &plan.targets, needs);
        }
        let fill = media::content::layout_fill(plan, self.ledgers.run_of(plan))?;
        let name = format!("laying out {}", plan.targets.first().map_or("", |target| target.path.as_str()));
        let view = std::cell::RefCell::new(&mut self.view);
        let progress = |progress: Progress| {
            let share = progress.written_bytes as f64 / progress.total_bytes.max(1) as f64;
            view.borrow_mut().event(&Event::Preparing(&name, share));
        };
        let request = layout::Request {
            needs_data: plan.reads() || plan.operation.is_random(),
            layout: plan.layout,
            refill: false,
            destroy_data,
            writes: plan.writes(),
            direct: true,
            grain_bytes: plan.block_size_bytes_max.max(plan.verify_interval_bytes.unwrap_or(1)),
            fill: &*fill,
            stop: &self.interrupt,
            progress: &progress,
        };
        let written = layout::prepare(&mut self.manifest, &plan.targets, &request)?;
        if let Some(check) = check.filter(|_| written >= plan.range_bytes()) {
            self.ledgers.laid_out(&check.ledger);
        }
        Ok(())
    }

    /// Ends the run and prints its report. `result` is what stopped it.
    pub(crate) fn finish(mut self, result: Result<(), Error>) -> Result<u8, Error> {
        let saved = self.close(&result);
        // Refused before anything was measured: the error alone, with its own exit code.
        if let (Err(error), true) = (result, self.record.phases.is_empty()) {
            if self.output.speaks_dialect() {
                self.output.print(&self.record)?;
            }
            return Err(error);
        }
        // What was measured is shown even where it could not be saved.
        let printed = self.output.print(&self.record);
        if let Some(failure) = &self.record.failure {
            return Err(Error::new(ErrorKind::Run, "run", format!("partial: {failure}")));
        }
        printed.and(saved)?;
        // A reader of the rows that has gone away has read enough.
        match self.view.failure().filter(|failure| failure.cause() != Some(io::ErrorKind::BrokenPipe)) {
            Some(failure) => Err(Error::new(ErrorKind::System, "live", failure.to_string())),
            None => Ok(0),
        }
    }

    /// Closes the object stores, with what the run made removed: the first failure, behind what goes on with it.
    fn end_stores(&mut self) -> Result<(), Error> {
        let mut result = Ok(());
        for store in self.stores.iter() {
            match store.end() {
                Ok(left) => left.iter().for_each(|line| output::tell(format_args!("strata: left: {line}"))),
                Err(error) => result = result.and(Err(error)),
            }
        }
        if let Some(ending) = self.ending.take() {
            result = result.and(ending());
        }
        let path = self.stores.manifest().path();
        match (result, path) {
            (Err(error), Some(path)) => Err(error.remedy(signals::command(&path))),
            (result, _) => result,
        }
    }

    /// Ends the run without a report: the tool's own cost, the final record. `result` is what stopped it.
    pub(crate) fn close(&mut self, result: &Result<(), Error>) -> Result<(), Error> {
        self.view.finish();
        self.record.tool_cost = tool_cost::measure().ok();
        let ended = self.end_stores();
        let cleaned = if self.keep { Ok(()) } else { self.manifest.remove_all() };
        let cleaned = ended.and(cleaned);
        if let (Err(left), true) = (&cleaned, result.is_err() || failure_of(&self.record.phases).is_some()) {
            // The run has failed of something else, and what it left must be told all the same.
            output::tell(format_args!("strata: left: {left}"));
        }
        self.record.made = self.stores.manifest().made();
        let failed = failure_of(&self.record.phases);
        let failure = match (result, failed) {
            (Err(error), _) => Some(error.to_string()),
            (Ok(()), Some(failure)) => Some(failure),
            (Ok(()), None) if self.is_interrupted() => Some("interrupted".to_owned()),
            (Ok(()), None) => cleaned.err().map(|error| error.to_string()),
        };
        self.record.status = if failure.is_some() { Status::Partial } else { Status::Complete };
        self.record.failure = failure;
        for at in 0..self.record.phases.len() {
            self.record.phases[at].doubts =
                doubts::find(&Evidence::of(&self.record, &self.record.phases[at]));
        }
        self.record.peak_rss_bytes = host::memory::peak_rss_bytes().unwrap_or(0);
        self.output.save(&self.record)
    }
}

/// Shows snapshots as those of a phase with this number, of so many.
fn viewer(view: &mut Box<dyn View>, place: (usize, usize)) -> impl FnMut(&Snapshot) + '_ {
    move |snapshot| {
        let mut snapshot = snapshot.clone();
        (snapshot.phase_number, snapshot.phase_count) = place;
        view.event(&Event::Running(&snapshot));
    }
}

/// The record of a phase that ran.
pub(crate) fn phase_record(
    planned: &Planned,
    stage: usize,
    begun: SystemTime,
    outcome: Outcome,
    observations: Observations,
) -> PhaseRecord {
    let load = planned.plan.load();
    let warm_up = if load.warmup == Warmup::Auto { WarmUp::Auto } else { WarmUp::None };
    let mut summary = summarise(&outcome.samples, warm_up);
    let arrivals = open_loop::outcome(&planned.plan, &outcome, &summary);
    if arrivals.is_some_and(|arrivals| arrivals.backlog_grows) {
        summary.steady.deny(SteadyReason::BacklogGrows);
    }
    PhaseRecord {
        plan: planned.plan.clone(),
        stage,
        request: planned.request,
        is_read_back: planned.is_read_back,
        started_at: utc(begun + Duration::from_nanos(load.start_delay_ns)),
        notes: outcome.notes,
        samples: outcome.samples,
        summary,
        arrivals,
        steady_ending: outcome.steady_ending,
        observations,
        doubts: Vec::new(),
        failure: outcome.failure,
    }
}

/// What went wrong in a run: where a worker failed, before a phase that was stopped for it or interrupted, before failures of
/// operations that were only counted.
fn failure_of(phases: &[PhaseRecord]) -> Option<String> {
    let has_failed =
        |phase: &&PhaseRecord| phase.samples.workers.iter().any(|worker| worker.failure.is_some());
    let failed = phases.iter().filter(has_failed).chain(phases);
    let mut failures = failed.filter_map(|phase| phase.failure.clone());
    failures.next().or_else(|| phases.iter().find_map(counted_failures))
}

/// Endpoints named in one line.
const ENDPOINTS_NAMED_MAX: usize = 4;

/// What failed in a phase that went on to its end (`--on-error continue`).
fn counted_failures(phase: &PhaseRecord) -> Option<String> {
    let errors =
        || phase.samples.workers.iter().flat_map(|worker| &worker.errors).filter(|error| !error.is_ignored);
    let count: u64 = errors().map(|error| error.count).sum();
    let first = errors().min_by_key(|error| error.first_at_ns)?;
    let (name, class, cause) = (&phase.plan.name(), &first.class, &first.cause);
    let by_endpoint = phase.plan.network().and_then(|plan| failed_endpoints(plan, phase));
    Some(match by_endpoint {
        Some(endpoints) => format!("{count} RPCs failed in phase {name}: {endpoints}"),
        None => format!("{count} operations failed in phase {name}: {class} failed: {cause}"),
    })
}

/// `endpoint 1:2: 12 (Connection reset by peer (os error 104))` for the endpoints that failed, the worst first.
fn failed_endpoints(plan: &NetworkPlan, phase: &PhaseRecord) -> Option<String> {
    let mut failed = statistics::by_part(&phase.samples);
    failed.retain(|part| part.figures.errors > 0);
    failed.sort_by_key(|part| std::cmp::Reverse(part.figures.errors));
    let named = failed.iter().take(ENDPOINTS_NAMED_MAX).map(|part| {
        let label = plan.endpoints.get(part.part).map_or("?", |endpoint| endpoint.label.as_str());
        let causes = part.figures.causes.iter().max_by_key(|cause| cause.count);
        let cause = causes.map_or("unknown", |cause| cause.cause.as_str());
        format!("endpoint {label}: {} ({cause})", part.figures.errors)
    });
    let mut parts: Vec<String> = named.collect();
    if failed.len() > ENDPOINTS_NAMED_MAX {
        parts.push(format!("and {} more endpoints", failed.len() - ENDPOINTS_NAMED_MAX));
    }
    (!parts.is_empty()).then(|| parts.join(", "))
}

/// RFC 3339, UTC, to the millisecond.
fn utc(time: SystemTime) -> String {
    humantime::format_rfc3339_millis(time).to_string()
}
