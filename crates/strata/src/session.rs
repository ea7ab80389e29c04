//! A run: its record, its files, its stages one after the other.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use dialects::{Pace, Render};
use driver::{Error, ErrorKind};
use host::Environment;
use layer::{Journal as _, Parts, Phase, Runs, StageContext};
use live::{CsvTarget, Tempo, View};
use report::doubts::{self, Evidence};
use report::record::{PhaseRecord, Record, SCHEMA_VERSION, Status};
use statistics::{Event, Snapshot};
use units::path_of;
use workload::plan::PhasePlan;
use workload::random::SplitMix64;

use crate::failures::failure_of;
use crate::hosts::{Leader, StageRan};
use crate::options::OutputSpec;
use crate::output::{self, Output};
use crate::phase_record::{phase_record, utc};
use crate::planning::{Layers, Planned};
use crate::signals::{self, Attention};
use crate::status::{Due, StageReports};
use crate::tool_cost;

/// A seed that differs from run to run.
pub(crate) fn draw_seed() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    SplitMix64::new(now.as_nanos() as u64 ^ (u64::from(std::process::id()) << 48)).next_u64()
}

/// A number for a run.
pub(crate) fn draw_run(seed: u64) -> u64 {
    SplitMix64::new(seed ^ draw_seed()).next_u64()
}

/// Cleanup that is done when the stores of a run are closed.
type Ending = Box<dyn FnOnce() -> Result<(), Error>>;

/// A run under way.
pub(crate) struct Session {
    pub(crate) record: Record,
    output: Output,
    due: Due,
    view: Box<dyn View>,
    interrupt: Arc<AtomicBool>,
    attention: Attention,
    /// Number of the run, which verified blocks and values carry.
    run: u64,
    keep: bool,
    layers: Layers,
    /// The hosts that carry it out, where this process leads them.
    leader: Option<Leader>,
    /// Phases that failed, without which the run goes on: hosts are lost, or a target beside others.
    survived: BTreeSet<usize>,
    /// Done when they have ended.
    ending: Option<Ending>,
    /// Phases of the run as far as known, for the live view.
    pub(crate) phase_count: usize,
    /// When the run will have ended, as far as known, for the live view.
    pub(crate) ends_at: Option<Instant>,
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
        Self::begin_run(draw_run(seed), words, output, targets, seed, keep, render)
    }

    /// The same for the run of a number that was drawn before.
    pub(crate) fn begin_run(
        run: u64,
        words: &[String],
        output: &OutputSpec,
        targets: &[String],
        seed: u64,
        keep: bool,
        render: Option<Box<dyn Render>>,
    ) -> Result<Self, Error> {
        output::check_places(output, targets)?;
        let files = render.iter().flat_map(|render| render.files());
        let files: Vec<PathBuf> = files.map(|file| output::named(&file).into_owned()).collect();
        output::check_apart(&files, targets)?;
        let interrupt = Arc::new(AtomicBool::new(false));
        let attention = Attention::begin(&interrupt)?;
        let paths: Vec<PathBuf> = targets.iter().map(|target| path_of(target).into_owned()).collect();
        let record = Record {
            schema_version: SCHEMA_VERSION,
            strata_version: env!("CARGO_PKG_VERSION").to_owned(),
            debug_build: cfg!(debug_assertions),
            optimized_build: crate::help::is_optimized(),
            command_line: words.iter().map(|word| units::without_password(word)).collect(),
            run_id: format!("{run:016x}"),
            seed,
            started_at: utc(SystemTime::now()),
            status: Status::Running,
            failure: None,
            environment: Environment::gather(&paths),
            hosts: Vec::new(),
            tool_cost: None,
            peak_rss_bytes: 0,
            phases: Vec::new(),
            ladder: None,
            stack: None,
            recipes: None,
            suite: None,
            preset: None,
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
        Ok(Self {
            record,
            output,
            due,
            view,
            interrupt,
            attention,
            run,
            keep,
            layers: Layers::new(keep),
            leader: None,
            survived: BTreeSet::new(),
            ending: None,
            phase_count: 0,
            ends_at: None,
        })
    }

    /// Takes over the layers of the run: they end with it, and a signal ends their waits. What it makes is noted in their manifest.
    ///
    /// # Errors
    /// When signals cannot be handled.
    pub(crate) fn adopt(&mut self, layers: Layers) -> Result<(), Error> {
        self.attention.interrupts(&layers.runs.context().interrupt)?;
        layers.manifest.begin(self.run, &self.record.started_at, self.keep);
        self.attention.knows(&layers.manifest);
        self.layers = layers;
        Ok(())
    }

    /// Has hosts carry the run out.
    ///
    /// # Errors
    /// When signals cannot be handled.
    pub(crate) fn lead(&mut self, leader: Leader) -> Result<(), Error> {
        leader.is_launched().then(|| self.attention.heeds_launcher(&self.interrupt)).transpose()?;
        self.record.hosts = leader.records();
        self.leader = Some(leader);
        Ok(())
    }

    /// Has hosts carry out the phases that they have planned, and this process all others.
    ///
    /// # Errors
    /// As for [`Session::lead`].
    pub(crate) fn lead_beside(&mut self, leader: Leader) -> Result<(), Error> {
        self.lead(leader.of_placed_phases())
    }

    /// Number of the run.
    pub(crate) fn run(&self) -> u64 {
        self.run
    }

    /// Whether other processes carry the run out.
    pub(crate) fn leads_hosts(&self) -> bool {
        self.leader.is_some()
    }

    /// Whether nothing more shall be run after the phase `at`.
    pub(crate) fn ends_after(&self, at: usize) -> bool {
        self.is_interrupted() || (self.record.phases[at].failure.is_some() && !self.survived.contains(&at))
    }

    /// Phases that follow from what was found so far, to run next.
    ///
    /// # Errors
    /// Phases that cannot be planned.
    pub(crate) fn following(&mut self) -> Result<Vec<Phase>, Error> {
        for (_, run) in self.layers.runs.all() {
            let phases = run.following()?;
            if !phases.is_empty() {
                return Ok(phases);
            }
        }
        Ok(Vec::new())
    }

    /// Has the run go on after the phase `at`, which failed.
    pub(crate) fn survive(&mut self, at: usize) {
        self.survived.insert(at);
    }

    /// The layers of the run.
    pub(crate) fn layers(&mut self) -> &mut Layers {
        &mut self.layers
    }

    /// Has this done at the end, when the layers have ended: what served them goes.
    pub(crate) fn ends_with(&mut self, ending: Ending) {
        self.ending = Some(ending);
    }

    /// Prints text while the run is under way, where standard output is free for it.
    ///
    /// # Errors
    /// When it is not taken.
    pub(crate) fn show(&mut self, text: &str) -> Result<(), Error> {
        self.output.show_text(text)
    }

    /// Shows that something is prepared for the run, and which part of it is done.
    pub(crate) fn prepares(&mut self, what: &str, done_fraction: f64) {
        self.view.event(&Event::Preparing(what, done_fraction));
    }

    /// Shows as much of a stack at the end.
    pub(crate) fn shows(&mut self, detail: report::stack::Detail) {
        self.output.detail = detail;
    }

    /// Whether the run was interrupted.
    pub(crate) fn is_interrupted(&self) -> bool {
        self.interrupt.load(Ordering::Relaxed)
    }

    /// Phases that store what a phase needs and none of the run has stored.
    ///
    /// # Errors
    /// Where this build has not its layer.
    pub(crate) fn fills(&mut self, planned: &Planned) -> Result<Vec<Planned>, Error> {
        if self.leader.as_ref().is_some_and(|leader| leader.takes(planned)) {
            return Ok(Vec::new());
        }
        let earlier: Vec<&PhasePlan> = self.record.phases.iter().map(|phase| &phase.plan).collect();
        let run = self.layers.runs.of(planned.plan.layer())?;
        let fills = run.fills(&planned.phase, &earlier).into_iter();
        Ok(fills.map(|phase| Planned { phase, ..planned.clone() }).collect())
    }

    /// Stores what a phase needs and none of the run has stored.
    ///
    /// # Errors
    /// When that failed.
    pub(crate) fn fill(&mut self, planned: &Planned) -> Result<(), Error> {
        for fill in self.fills(planned)? {
            let at = self.run_phase(&fill)?;
            let failure = self.record.phases[at].failure.clone();
            failure.map_or(Ok(()), |failure| Err(Error::new(ErrorKind::Run, "fill", failure)))?;
        }
        Ok(())
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
        let StageRan { begun, phases, goes_on } = self.measure(stage)?;
        let number = next_stage(&self.record);
        for (planned, ((outcome, observations), host_starts)) in stage.iter().zip(phases) {
            self.view.event(&Event::Finished(planned.plan.name(), &outcome.samples));
            let phase = phase_record(planned, number, begun, outcome, observations);
            self.record.phases.push(PhaseRecord { host_starts, ..phase });
        }
        let new = before..self.record.phases.len();
        self.survived.extend(new.clone().filter(|_| goes_on));
        for at in new.clone() {
            if let Some(reason) = doubts::unsteady(&Evidence::of(&self.record, &self.record.phases[at])) {
                self.record.phases[at].summary.steady.deny(reason);
            }
            self.record.phases[at].doubts =
                doubts::find(&Evidence::of(&self.record, &self.record.phases[at]));
        }
        self.record.peak_rss_bytes = host::memory::peak_rss_bytes().unwrap_or(0);
        self.record.made = self.made_in_stores();
        self.output.save_phase(&self.record)?;
        self.output.stage(&self.record, before);
        Ok(new.collect())
    }

    /// Runs the phases of a stage.
    fn measure(&mut self, stage: &[Planned]) -> Result<StageRan, Error> {
        let Self { record, output, due, view, phase_count, ends_at, layers, interrupt, leader, .. } = self;
        let (number, stage_number) = ((record.phases.len() + 1, *phase_count), next_stage(record));
        if let Some(leader) = leader.as_mut().filter(|leader| stage.iter().all(|it| leader.takes(it))) {
            let mut show = |event: &Event<'_>| match event {
                Event::Running(snapshot) => viewer(view, number, *ends_at)(snapshot),
                event => view.event(event),
            };
            // A launcher kills all ranks soon after its signal, also where one is in a call of MPI that does not come back.
            let mut note_interrupt = || output.save_stopped(record, "interrupted");
            return leader.stage(stage, &mut show, (interrupt, &mut note_interrupt));
        }
        let shown = RefCell::new(&mut *view);
        let progress = |name: &str, share: f64| shown.borrow_mut().event(&Event::Preparing(name, share));
        let context = StageContext {
            number: stage_number,
            interrupt: Arc::clone(interrupt),
            progress: &progress,
            tell: |line| output::tell(line),
        };
        let is_whole = |phase: &&PhaseRecord| phase.failure.is_none() && phase.summary.total.errors == 0;
        let done: Vec<&PhasePlan> = record.phases.iter().filter(is_whole).map(|phase| &phase.plan).collect();
        let parts = parts(stage, &done, &mut layers.runs, &context)?;
        let mut observe = viewer(view, number, *ends_at);
        let begun = SystemTime::now();
        let mut reports = StageReports { due, output, record, stage, number: stage_number, begun };
        let (begun, seen) = layer::run(parts, &mut || Ok(None), &mut observe, &mut reports)?;
        let seen = stage.iter().zip(seen).map(|(planned, seen)| layer::profile::added(&planned.plan, seen));
        Ok(StageRan { begun, phases: seen.map(|seen| (seen, Vec::new())).collect(), goes_on: false })
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

    /// Objects, containers, pools and buckets that the run made and has not removed.
    fn made_in_stores(&self) -> Vec<serde_json::Value> {
        serde_json::from_value(self.layers.manifest.noted("made")).unwrap_or_default()
    }

    /// Ends the layers, with what the run made removed: the first failure, behind what goes on with it.
    fn end_layers(&mut self) -> Result<(), Error> {
        let mut result = Ok(());
        if let Some(leader) = &mut self.leader {
            result = leader.end(&self.interrupt);
            self.record.hosts = leader.records();
        }
        for (_, run) in self.layers.runs.all() {
            result = result.and(run.end());
        }
        if let Some(ending) = self.ending.take() {
            result = result.and(ending());
        }
        let path = self.layers.manifest.path();
        match (result, path) {
            (Err(error), Some(path)) => Err(error.remedy(signals::command(&path))),
            (result, _) => result,
        }
    }

    /// Ends the run without a report: the tool's own cost, the final record. `result` is what stopped it.
    pub(crate) fn close(&mut self, result: &Result<(), Error>) -> Result<(), Error> {
        self.view.finish();
        let stopped = match (result, failure_of(&self.record.phases)) {
            (Err(error), _) => Some(error.to_string()),
            (Ok(()), None) if self.is_interrupted() => Some("interrupted".to_owned()),
            (Ok(()), failed) => failed,
        };
        if let Some(why) = &stopped {
            // Whoever has stopped the run may kill this process before all else is done: a launcher does.
            self.output.save_stopped(&mut self.record, why);
        }
        self.record.tool_cost = tool_cost::measure().ok();
        let cleaned = self.end_layers();
        if let (Err(left), true) = (&cleaned, stopped.is_some()) {
            // The run has failed of something else, and what it left must be told all the same.
            output::tell(format_args!("strata: left: {left}"));
        }
        self.record.made = self.made_in_stores();
        let failure = stopped.or_else(|| cleaned.err().map(|error| error.to_string()));
        self.record.status = if failure.is_some() { Status::Partial } else { Status::Complete };
        self.record.failure = failure;
        for at in 0..self.record.phases.len() {
            self.record.phases[at].doubts =
                doubts::find(&Evidence::of(&self.record, &self.record.phases[at]));
        }
        self.record.peak_rss_bytes = host::memory::peak_rss_bytes().unwrap_or(0);
        let saved = self.output.save(&self.record);
        // mpirun kills this process as soon as another one has ended after a signal: the record comes first.
        self.leader = None;
        saved
    }
}

/// The number of the stage that comes next. Stages count by what ran: a climb has more of them than were planned.
fn next_stage(record: &Record) -> usize {
    record.phases.last().map_or(0, |phase| phase.stage + 1)
}

/// The phases of a stage by layer, with their numbers in the stage, ready to run. `done` are the plans of phases before them that did all that was
/// asked of them.
pub(crate) fn parts<'a>(
    stage: &'a [Planned],
    done: &[&PhasePlan],
    runs: &'a mut Runs,
    context: &StageContext<'_>,
) -> Result<Parts<'a>, Error> {
    let mut parts: Parts<'a> = Vec::new();
    for (name, run) in runs.all() {
        let own = stage.iter().enumerate().filter(|(_, planned)| planned.plan.layer() == name);
        let (numbers, phases): (Vec<usize>, Vec<&Phase>) =
            own.map(|(number, planned)| (number, &planned.phase)).unzip();
        if !phases.is_empty() {
            parts.push((numbers, run.part(phases, done, context)?));
        }
    }
    Ok(parts)
}

/// Shows snapshots as those of a phase with this number, of so many; the run will have ended at `ends_at`.
fn viewer(
    view: &mut Box<dyn View>,
    place: (usize, usize),
    ends_at: Option<Instant>,
) -> impl FnMut(&Snapshot) + '_ {
    move |snapshot| {
        let mut snapshot = snapshot.clone();
        (snapshot.phase_number, snapshot.phase_count) = place;
        snapshot.run_left_ns =
            ends_at.map(|end| end.saturating_duration_since(Instant::now()).as_nanos() as u64);
        view.event(&Event::Running(&snapshot));
    }
}
