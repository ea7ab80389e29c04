//! mdtest's output, from the record.

use std::fmt::Write as _;
use std::path::PathBuf;

use report::record::{PhaseRecord, Record};
use statistics::{Spread, WorkerSamples};

use super::settings::Settings;
use super::specs::{Step, TESTS, Test};
use super::table::{TOOL, VERSION};
use crate::dates::{moment, numbers};
use crate::doubts::told;
use crate::ior::span_s;
use crate::tasks::Failures;
use crate::{Destination, Piece, Render};

/// Settings and state that the output needs besides the record.
pub(crate) struct Model {
    pub(crate) settings: Settings,
    pub(crate) steps: Vec<Step>,
    pub(crate) command: String,
    /// Groups of phases whose tables were shown.
    shown: usize,
}

/// Figures of a phase.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Figures {
    /// Items a second, by the slowest task.
    rate: f64,
    /// Milliseconds from one item to the next.
    ms_per_item: f64,
    /// Items of all tasks.
    items: u64,
}

fn of_class(workers: &[WorkerSamples], at: usize) -> (u64, u64) {
    workers
        .iter()
        .filter_map(|worker| worker.classes.get(at))
        .fold((0, 0), |(done, failed), class| (done + class.operations, failed + class.errors))
}

/// Items that a phase went over and that did not fail: begun by its first call, without those that failed later.
fn items(phase: &PhaseRecord) -> u64 {
    let workers = &phase.samples.workers;
    let names = &phase.samples.classes;
    let first = ["create", "mknod", "mkdir", "open", "stat", "rename", "unlink", "rmdir"];
    let begins = first.iter().find_map(|name| names.iter().position(|class| class == name));
    let Some(begins) = begins else { return 0 };
    let later = |at: &usize| *at != begins && names[*at] != "sync";
    let failed: u64 = (0..names.len()).filter(later).map(|at| of_class(workers, at).1).sum();
    let (mut begun, _) = of_class(workers, begins);
    if names[begins] == "rename" {
        // Forth and back.
        begun /= 2;
    }
    begun.saturating_sub(failed)
}

impl Figures {
    fn of(phase: &PhaseRecord) -> Self {
        let (items, seconds) = (items(phase), span_s(phase));
        if items == 0 || seconds <= 0.0 {
            return Self::default();
        }
        Self { rate: items as f64 / seconds, ms_per_item: seconds * 1e3 / items as f64, items }
    }
}

impl Model {
    pub(crate) fn new(settings: Settings, steps: Vec<Step>, words: &[String]) -> Self {
        let words: String = words.iter().map(|word| format!(" '{word}'")).collect();
        let command = format!("{TOOL}{words}").replace(['\n', '\r'], " ");
        Self { settings, steps, command, shown: 0 }
    }

    fn head(&self, record: &Record) -> String {
        let settings = &self.settings;
        let tasks = settings.tasks.iter().max().copied().unwrap_or(1);
        let mut text = format!(
            "-- started at {} --\n\n{TOOL}-{VERSION} was launched with {tasks} total task(s) on 1 node(s)\n\
             Command line used: {}\nNodemap: {}\n",
            numbers(moment(&record.started_at, 0)),
            self.command,
            "1".repeat(tasks as usize),
        );
        for path in &settings.paths {
            let _ = writeln!(text, "{:<20}: {path}", "Path");
        }
        if settings.stride > 0 {
            let _ = writeln!(text, "Shifting ranks by {} for each phase.", settings.stride);
        }
        text
    }

    /// Phases of a group, in order.
    fn done<'a>(&'a self, record: &'a Record, group: usize) -> impl Iterator<Item = (Step, &'a PhaseRecord)> {
        let measured = record.phases.iter().filter(|phase| !phase.plan.is_fill());
        let steps = measured.filter_map(|phase| Some((*self.steps.get(phase.request)?, phase)));
        steps.filter(move |(step, _)| step.group == group)
    }

    /// All that is said of a number of tasks.
    fn group(&self, record: &Record, group: usize) -> String {
        let settings = &self.settings;
        let tasks = settings.tasks[group];
        let noun = match (settings.dirs, settings.files) {
            (true, true) => "files/directories",
            (true, false) => "directories",
            _ => "files",
        };
        let items = settings.noted.unwrap_or(settings.items());
        let mut text = format!("{tasks} tasks, {} {noun}\n", u128::from(items) * u128::from(tasks));
        if settings.rates {
            text.push_str(&self.table(record, group, "rate (in ops/sec)", |figures| figures.rate));
        }
        if settings.times {
            text.push_str(&self.table(record, group, "time (in ms/op)", |figures| figures.ms_per_item));
        }
        for (step, phase) in self.done(record, group) {
            text.push_str(&errors(step, phase));
        }
        text
    }

    fn table(&self, record: &Record, group: usize, title: &str, figure: fn(&Figures) -> f64) -> String {
        let settings = &self.settings;
        let mut text = format!(
            "\nSUMMARY {title}: (of {} iterations)\n\
             \x20  Operation                     Max            Min           Mean        Std Dev\n\
             \x20  ---------                     ---            ---           ----        -------\n",
            settings.iterations
        );
        for (test, name, of_directories) in TESTS {
            let is_shown =
                of_directories.is_none_or(|is_dir| if is_dir { settings.dirs } else { settings.files });
            if !is_shown {
                continue;
            }
            let own = self.done(record, group).filter(|(step, _)| step.test == *test);
            let all: Vec<f64> = own.map(|(_, phase)| figure(&Figures::of(phase))).collect();
            let spread = Spread::of(&all).unwrap_or_default();
            let _ = writeln!(
                text,
                "   {name:<22} {:>14.3} {:>14.3} {:>14.3} {:>14.3}",
                spread.max, spread.min, spread.mean, spread.stddev
            );
        }
        text
    }

    /// Items that each task made, for later runs.
    fn status_piece(&self, record: &Record) -> Option<Piece> {
        let path = self.settings.status_file.as_ref().filter(|_| self.settings.create)?;
        let created = |group| self.done(record, group).filter(|(step, _)| step.test == Test::FileCreation);
        let (step, phase) =
            (0..self.settings.tasks.len()).filter_map(|group| created(group).last()).next_back()?;
        let tasks = u64::from(self.settings.tasks[step.group]);
        let each = Figures::of(phase).items.div_ceil(tasks);
        Some(Piece::file(path, false, format!("{each}\n")))
    }
}

/// Lines about the failures of a phase.
fn errors(step: Step, phase: &PhaseRecord) -> String {
    let failures = Failures::of(phase);
    let (_, name, _) = TESTS.iter().find(|(test, ..)| *test == step.test).copied().unwrap_or(TESTS[0]);
    let mut text = String::new();
    if failures.wrong > 0 {
        let _ = writeln!(
            text,
            "\nERROR: verifying the data on read ({} errors)! Take the performance values with care!",
            failures.wrong
        );
    }
    for line in failures.lines() {
        let _ = writeln!(text, "WARNING: {name}, iteration {}: {line}", step.iteration);
    }
    text
}

impl Render for Model {
    fn files(&self) -> Vec<PathBuf> {
        self.settings.status_file.iter().filter(|_| self.settings.create).map(PathBuf::from).collect()
    }

    fn begin(&mut self, record: &Record) -> Vec<Piece> {
        vec![Piece::stdout(self.head(record))]
    }

    fn stage(&mut self, record: &Record, _from: usize) -> Vec<Piece> {
        let last = self.steps.iter().rposition(|step| step.group == self.shown);
        let is_whole = last.is_some_and(|last| record.phases.iter().any(|phase| phase.request == last));
        if !is_whole {
            return Vec::new();
        }
        self.shown += 1;
        vec![Piece::stdout(self.group(record, self.shown - 1))]
    }

    fn end(&mut self, record: &Record) -> Vec<Piece> {
        let mut text = String::new();
        if self.shown < self.settings.tasks.len() && self.done(record, self.shown).next().is_some() {
            text.push_str(&self.group(record, self.shown));
        }
        let ends = record.phases.iter().map(|phase| moment(&phase.started_at, phase.samples.elapsed_ns));
        let finished = ends.max().unwrap_or_else(|| moment(&record.started_at, 0));
        let _ = writeln!(text, "-- finished at {} --", numbers(finished));
        let mut pieces = vec![Piece::stdout(text)];
        pieces.extend(self.status_piece(record));
        let mut all = told(TOOL, &record.phases);
        all.sort_by_key(|doubt| report::doubts::kinds().position(|kind| kind == doubt.kind));
        let doubts = crate::doubts::lines(all.iter().map(|doubt| ("", doubt)));
        if !doubts.is_empty() {
            pieces.push(Piece { place: Destination::Stderr, content: doubts.into_bytes() });
        }
        pieces
    }
}
