//! A run of the suite: phase after phase, with what stands in the result files after each.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use driver::Error;
use layer::{Bench, BenchRequest, Console, LayerRun, Phase, Planning, Runs, Seed};
use report::record::{Record, SuitePhase, SuiteRecord};
use units::{label_of, path_of};

use super::files::{self, Times};
use super::options::SuiteSpec;
use super::programme::{self, Changes, HARD_FILE_BYTES, Kind, PHASES, PhaseDef, Search};
use super::settings::{Mode, Settings};
use super::state::State;
use super::{around, ranks, rules, score, time};
use crate::made::{SuiteControl, has_sets};
use crate::plan::FsPlan;
use crate::progress::Progress;
use crate::run::FsRun;

/// A phase that is planned.
pub(super) struct Planned {
    pub(super) def: &'static PhaseDef,
    /// The command line that makes the same load, or that of another program.
    words: Option<String>,
    /// The load, where strata's loop measures it.
    phase: Option<Phase>,
    /// Its number among those that the processes of a launch carry out.
    pub(super) number: Option<usize>,
}

/// The suite.
pub(super) struct Suite<'a> {
    pub(super) settings: Settings,
    pub(super) state: State,
    console: &'a dyn Console,
    control: Arc<SuiteControl>,
    /// Progress of each file set.
    progress: BTreeMap<&'static str, Arc<Progress>>,
    /// Plan of a phase of each file set.
    plans: BTreeMap<&'static str, FsPlan>,
    /// The next phase is the one that was interrupted.
    is_resumed: bool,
}

impl<'a> Suite<'a> {
    /// A run from the first phase on.
    ///
    /// # Errors
    /// Phases that have nothing to work on.
    pub(super) fn new(settings: Settings, spec: SuiteSpec, console: &'a dyn Console) -> Result<Self, Error> {
        let suite = SuiteRecord {
            name: "io500".to_owned(),
            mode: settings.mode.name().to_owned(),
            ranks: settings.ranks,
            stonewall_seconds: settings.stonewall_s,
            data_directory: settings.data.clone(),
            result_directory: label_of(settings.results.as_os_str()),
            invalid: rules::invalid_settings(&settings, spec.dry_run),
            ..SuiteRecord::default()
        };
        let config = settings.config.text(false, |_| true);
        let state = State { spec, config, suite, started: time::stamp(), ..State::default() };
        rules::check_sources(&settings)?;
        let mut suite = Self::with(settings, state, console, false);
        // Refused before a file is made.
        suite.plan(&mut FsRun::new(&console.context(false), None), 0)?;
        Ok(suite)
    }

    /// A run that goes on behind its last whole phase.
    ///
    /// # Errors
    /// As for [`Suite::new`].
    pub(super) fn resumed(
        settings: Settings,
        mut state: State,
        console: &'a dyn Console,
    ) -> Result<Self, Error> {
        let next = state.suite.phases.len();
        let before =
            PHASES.iter().filter(|def| def.is_in(settings.mode)).nth(next).map_or("the end", |def| def.name);
        state.suite.invalid.push(format!("the run was interrupted before or in {before}, and resumed"));
        state.suite.scores.clear();
        // Their measurements are in the record of the part that ran them.
        state.suite.phases.iter_mut().for_each(|phase| phase.phase = None);
        state.suite.result_directory = label_of(settings.results.as_os_str());
        rules::check_sources(&settings)?;
        Ok(Self::with(settings, state, console, true))
    }

    fn with(settings: Settings, state: State, console: &'a dyn Console, is_resumed: bool) -> Self {
        Self {
            settings,
            state,
            console,
            control: Arc::default(),
            progress: BTreeMap::new(),
            plans: BTreeMap::new(),
            is_resumed,
        }
    }

    /// Phases that are not whole yet.
    fn left(&self) -> impl Iterator<Item = &'static PhaseDef> + use<> {
        let mode = self.settings.mode;
        PHASES.iter().filter(move |def| def.is_in(mode)).skip(self.state.suite.phases.len())
    }

    fn plan(&mut self, run: &mut FsRun, seed: u64) -> Result<Vec<Planned>, Error> {
        let mut planned = Vec::new();
        for (number, def) in self.left().enumerate() {
            let load = programme::load(&self.settings, def)?;
            let external = match def.kind {
                Kind::Find => self.settings.find(def.name)?.external,
                _ => None,
            };
            let words = external.map(|external| {
                around::command_line(&external, &Search::of(&self.settings, def).arguments(&self.settings))
            });
            let words = words.or_else(|| load.as_ref().map(programme::Load::words));
            let mut phase = None;
            if let Some(load) = load {
                let planning = Planning { before: &[], number, seed: Seed::OfRun(seed) };
                phase = run.phases(&load.spec(def.name)?, &planning)?.pop();
            }
            if let (Some(set), Some(plan)) =
                (def.set(), phase.as_ref().and_then(|phase| phase.plan.of::<FsPlan>()))
            {
                self.plans.entry(set).or_insert_with(|| plan.clone());
                self.progress.insert(set, run.progress_of(plan));
            }
            planned.push(Planned { def, words, phase, number: None });
        }
        Ok(planned)
    }

    /// Writes what each phase would do.
    ///
    /// # Errors
    /// As for [`Suite::run`].
    pub(super) fn dry_run(mut self) -> Result<(), Error> {
        let mut run = FsRun::new(&self.console.context(false), None);
        self.console.print(&files::banner(&self.state.suite))?;
        for planned in self.plan(&mut run, 0)? {
            let mut entry = planned.def.entry();
            let score = planned.def.unit().map(|_| ("score", "0.000000".to_owned()));
            let facts = planned.words.map(|words| ("exe", words)).into_iter().chain(score);
            entry.facts = facts.map(|(key, value)| [key.to_owned(), value]).collect();
            self.console.print(&files::phase_line(&entry))?;
            if let Some([_, words]) = entry.facts.first().filter(|[key, _]| key == "exe") {
                self.console.print(&format!("         {words}\n"))?;
            }
            self.state.suite.phases.push(entry);
        }
        self.close();
        self.write(None)?;
        let scores = self.state.suite.scores.iter().map(files::score_line).collect::<String>();
        self.console.print(&scores)?;
        let results = &self.state.suite.result_directory;
        self.console.print(&format!("\nThe result files are stored in the directory: {results}\n"))
    }

    /// Runs all phases that are left; the exit code. `earlier` is the run that has left their files.
    ///
    /// # Errors
    /// Bad usage, and what could not be measured.
    pub(super) fn run(mut self, earlier: Option<u64>) -> Result<u8, Error> {
        let console = self.console;
        let seed = console.draw_seed();
        let mut runs = Runs::new(console.context(false));
        let mut run = FsRun::new(runs.context(), Some(Arc::clone(&self.control)));
        let mut planned = self.plan(&mut run, seed)?;
        let specs = ranks::specs(&self.settings, &mut planned)?;
        let journal = Arc::clone(&runs.context().journal);
        self.state.parts += 1;
        let record = self.settings.results.join(match self.state.parts {
            1 => "record.json".to_owned(),
            part => format!("record-{part}.json"),
        });
        let place = self.prepare_data(earlier.is_some())?;
        let request = BenchRequest {
            paths: &[place],
            seed,
            keep: false,
            phase_count: planned.iter().filter(|planned| planned.phase.is_some()).count(),
            record: Some(&record),
        };
        let mut bench = match specs.is_empty() {
            true => console.bench(&request)?,
            false => console.bench_of_ranks(&request, &specs)?,
        };
        runs.put(crate::LAYER.name, Box::new(run));
        let mut begun = bench.adopt(runs).and_then(|()| earlier.map_or(Ok(()), |run| journal.take_over(run)));
        if !specs.is_empty() {
            let plan = self.plans.values().next();
            begun = begun.and_then(|()| ranks::make_directories(&self.control, plan, &journal));
        }
        if begun.is_err() {
            return bench.finish(begun);
        }
        self.state.run_id = Record::of(&mut *bench).run_id.clone();
        let result = self.measure(&mut *bench, planned);
        // Processes of a launch remove what they made, however the run ends.
        let is_left = bench.is_interrupted() && specs.is_empty() && has_sets(&*journal);
        if is_left {
            self.control.leaves.store(true, Ordering::Relaxed);
        } else {
            State::remove(&self.settings.results)?;
        }
        self.end(&mut *bench, is_left, &record)?;
        bench.finish(result)
    }

    /// Has the directories made that the phases do not make themselves, and knows again what an earlier part has made; a path that is there, for
    /// facts of the machine.
    fn prepare_data(&mut self, is_resumed: bool) -> Result<String, Error> {
        let data = self.settings.data.clone();
        if is_resumed {
            for (set, counts) in &self.state.counts {
                if let Some(progress) = self.progress.get(set.as_str()) {
                    remember(progress, set, counts);
                    progress.count_blocks_of(programme::block_bytes(&self.settings, set));
                }
            }
            return Ok(data);
        }
        let path = path_of(&data).into_owned();
        let place = if path.exists() { path.as_path() } else { path.parent().unwrap_or(Path::new("/")) };
        std::fs::create_dir_all(place).map_err(|error| {
            Error::usage("io500", format!("cannot create the directory: {error}"))
                .with("path", place.display())
        })?;
        let directories = [data.clone(), format!("{data}/ior-easy"), format!("{data}/ior-hard")];
        if let Ok(mut held) = self.control.directories.lock() {
            *held = directories.to_vec();
        }
        Ok(label_of(place.as_os_str()))
    }

    fn measure(&mut self, bench: &mut dyn Bench, planned: Vec<Planned>) -> Result<(), Error> {
        bench.show(&files::banner(&self.state.suite))?;
        self.state.suite.phases.iter().try_for_each(|phase| bench.show(&files::phase_line(phase)))?;
        self.save()?;
        for planned in planned {
            let def = planned.def;
            if bench.is_interrupted() {
                break;
            }
            let entry =
                if self.settings.runs(def.name) { self.phase(bench, planned)? } else { rules::left_out(def) };
            if bench.is_interrupted() {
                break;
            }
            bench.show(&files::phase_line(&entry))?;
            self.state.suite.phases.push(entry);
            if let (Changes::Makes, Some(set), 1) = (def.changes, def.set(), self.settings.processes) {
                let counts =
                    self.progress.get(set).map(|progress| counts_of(progress, set, self.settings.ranks));
                self.state.counts.extend(counts.map(|counts| (set.to_owned(), counts)));
            }
            self.save()?;
            self.write(None)?;
            Record::of(bench).suite = Some(self.state.suite.clone());
        }
        Ok(())
    }

    /// Keeps the state, by which a run of one process goes on where it was interrupted.
    fn save(&mut self) -> Result<(), Error> {
        if self.settings.processes > 1 { Ok(()) } else { self.state.save(&self.settings.results) }
    }

    /// Runs one phase.
    fn phase(&mut self, bench: &mut dyn Bench, planned: Planned) -> Result<SuitePhase, Error> {
        let Planned { def, words, phase, number } = planned;
        let mut entry = def.entry();
        let mut facts: Vec<(&str, String)> = Vec::new();
        if let Some(command) = self.settings.drop_caches.as_deref().filter(|_| def.kind != Kind::Timestamp) {
            entry.doubts.extend(around::drop_caches(command).map(|why| format!("caches: {why}")));
            entry.doubts.extend(ranks::unpurged(&self.settings, self.console));
        }
        if let Some(directory) = &self.settings.pause {
            facts.push(("t_pause", time::stamp()));
            around::pause(directory, def.name, || bench.is_interrupted());
            if bench.is_interrupted() {
                return Ok(entry);
            }
        }
        self.recover(def)?;
        facts.push(("t_start", time::stamp()));
        facts.extend(words.map(|words| ("exe", words)));
        match &phase {
            Some(phase) => facts.extend(self.measured(bench, def, (phase, number), &mut entry)?),
            None if def.kind == Kind::Find => facts.extend(self.searched(def, &facts, &mut entry)?),
            None => self.stamp()?,
        }
        if def.unit().is_some() {
            facts.push(("score", format!("{:.6}", entry.score)));
        }
        facts.push(("t_delta", format!("{:.4}", entry.seconds)));
        facts.push(("t_end", time::stamp()));
        let is_wanted = |key: &str| match key {
            "t_pause" | "t_start" | "t_delta" | "t_end" => self.settings.verbosity > 0,
            "accessed" | "result-file" | "time" => self.settings.verbosity > 1,
            _ => true,
        };
        facts.retain(|(key, _)| is_wanted(key));
        entry.facts = facts.into_iter().map(|(key, value)| [key.to_owned(), value]).collect();
        rules::judge(&self.settings, def, &mut entry);
        Ok(entry)
    }

    /// Before the phase that was interrupted: what it made goes, what it removed comes back.
    fn recover(&mut self, def: &PhaseDef) -> Result<(), Error> {
        let was_interrupted = std::mem::take(&mut self.is_resumed);
        let Some(set) = def.set() else { return Ok(()) };
        match def.changes {
            Changes::Makes => self.control.empties.store(was_interrupted, Ordering::Relaxed),
            Changes::Removes if was_interrupted => {
                let bytes = if set == "mdtest-hard" { HARD_FILE_BYTES } else { 0 };
                if let (Some(plan), Some(counts)) = (self.plans.get(set), self.state.counts.get(set)) {
                    around::refill(plan, counts, bytes)?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Makes the file by whose time searches know newer ones.
    fn stamp(&self) -> Result<(), Error> {
        let path = programme::stamp_file(&self.settings);
        std::fs::write(path_of(&path), "")
            .map_err(|error| Error::system("timestamp", "cannot create the file", error).with("path", path))
    }

    /// Has strata's loop measure a phase; its lines in the result file.
    fn measured(
        &self,
        bench: &mut dyn Bench,
        def: &PhaseDef,
        (phase, number): (&Phase, Option<usize>),
        entry: &mut SuitePhase,
    ) -> Result<Vec<(&'static str, String)>, Error> {
        let at = match number {
            Some(number) => bench.run_by_ranks(number)?,
            None => bench.run_phase(phase)?,
        };
        let record = Record::of(bench);
        let text = files::phase_text(record, at);
        let block_bytes = phase.plan.of::<FsPlan>().map_or(0, |plan| plan.geometry.block_size_bytes);
        let measured = &record.phases[at];
        let figures = score::figures(def.kind, block_bytes, measured);
        (entry.score, entry.seconds, entry.phase) = (figures.score, figures.seconds, Some(at));
        entry.doubts.extend(measured.doubts.iter().map(|doubt| format!("{}: {}", doubt.kind, doubt.detail)));
        entry.invalid.extend(rules::failures(measured));
        let name = format!("{}.txt", def.name);
        files::write(&self.settings.results, &name, &text)?;
        files::write(&self.settings.results, &format!("{}.csv", def.name), &files::phase_csv(def, measured))?;
        let mut facts = vec![
            ("result-file", label_of(self.settings.results.join(name).as_os_str())),
            ("accessed", figures.amount.to_string()),
        ];
        let stonewall =
            if matches!(def.kind, Kind::Transfer(_)) { "throughput-stonewall" } else { "rate-stonewall" };
        facts.extend(figures.at_stonewall.map(|rate| (stonewall, format!("{rate:.6}"))));
        if let Some(found) = measured.observations.files.as_ref().and_then(|files| files.found) {
            facts.extend([("found", found.matched.to_string()), ("total-files", found.entries.to_string())]);
            if found.matched == 0 {
                entry.invalid.push("the search found nothing".to_owned());
            }
        }
        Ok(facts)
    }

    /// Has another program search; its lines in the result file.
    fn searched(
        &self,
        def: &PhaseDef,
        facts: &[(&str, String)],
        entry: &mut SuitePhase,
    ) -> Result<Vec<(&'static str, String)>, Error> {
        let command = facts.iter().find(|(key, _)| *key == "exe").map_or("", |(_, command)| command);
        let found = around::search(command)?;
        let per_second = if found.seconds > 0.0 { found.total as f64 / found.seconds } else { 0.0 };
        (entry.score, entry.seconds) = (per_second / 1000.0, found.seconds);
        entry.invalid.extend(found.invalid);
        entry.doubts.extend(found.doubts);
        if found.matched == 0 {
            entry.invalid.push("the search found nothing".to_owned());
        }
        files::write(&self.settings.results, &format!("{}.txt", def.name), &found.output)?;
        Ok(vec![
            ("last-output", format!("\"{}\"", units::clean(&found.last_line))),
            ("total-files", found.total.to_string()),
            ("found", found.matched.to_string()),
        ])
    }

    /// Scores, once all phases are whole.
    fn close(&mut self) {
        let suite = &mut self.state.suite;
        let is_valid = |extended: bool| {
            let counted = suite.phases.iter().filter(|phase| extended || !phase.is_extended);
            suite.invalid.is_empty() && counted.into_iter().all(|phase| phase.invalid.is_empty())
        };
        let mut scores = vec![score::of(&suite.phases, false, is_valid(false))];
        if self.settings.mode == Mode::Extended {
            // Without mdworkbench the extended score is never whole.
            scores.push(score::of(&suite.phases, true, false));
        }
        suite.scores = scores;
    }

    /// Writes the files that tell of the whole run.
    fn write(&self, end: Option<&str>) -> Result<(), Error> {
        let Self { settings, state, .. } = self;
        let has_times = settings.verbosity > 0;
        let times =
            Times { start: Some(&state.started[..]).filter(|_| has_times), end: end.filter(|_| has_times) };
        files::write(&settings.results, "result.txt", &files::result(&state.suite, &settings.config, times))?;
        files::write(&settings.results, "result_summary.txt", &files::summary(&state.suite))
    }

    /// Tells what came of the run.
    fn end(&mut self, bench: &mut dyn Bench, is_left: bool, record: &Path) -> Result<(), Error> {
        let is_whole = self.left().next().is_none();
        if is_whole {
            self.close();
        } else {
            let next = self.left().next().map_or("the end", |def| def.name);
            self.state.suite.invalid.push(format!("the run ended before or in {next}"));
        }
        self.write(Some(&time::stamp()))?;
        Record::of(bench).suite = Some(self.state.suite.clone());
        for score in &self.state.suite.scores {
            bench.show(&files::score_line(score))?;
        }
        let results = &self.state.suite.result_directory;
        bench.show(&format!("\nThe result files are stored in the directory: {results}\n\n"))?;
        if is_left {
            let (data, record) = (&self.settings.data, record.display());
            (self.console.tell())(format_args!(
                "strata: data kept in {data}; resume: strata suite io500 --resume {results}\nstrata: remove: strata clean --yes {record}"
            ));
        }
        Ok(())
    }
}

/// Items or blocks of each rank.
fn counts_of(progress: &Progress, set: &str, ranks: u32) -> Vec<u64> {
    let made = if set.starts_with("ior") { &progress.blocks } else { &progress.files };
    (0..ranks).map(|rank| made.of(rank, u64::MAX)).collect()
}

/// Notes in the progress of a set what an earlier part of the run made.
fn remember(progress: &Progress, set: &str, counts: &[u64]) {
    let is_tree = set.starts_with("mdtest");
    let made = if is_tree { &progress.files } else { &progress.blocks };
    made.begin((0..).zip(counts).map(|(rank, _)| rank));
    (0..).zip(counts).for_each(|(rank, &count)| made.reach(rank, count));
    progress.has_tree.store(is_tree, Ordering::Relaxed);
}
