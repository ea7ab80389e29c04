//! The record of a run as elbencho shows it, phase by phase.

use std::path::PathBuf;

use report::record::{PhaseRecord, Record};
use workload::plan::PhasePlan;

use super::console::{self, Entries};
use super::figures::{Figures, date_text_seconds};
use super::files::{self, Configuration, Entry};
use super::settings::Output;
use super::specs::Step;
use crate::{Destination, Piece, Render};

/// Line that ends a phase's rows.
const SEPARATOR: &str = "---\n";

/// All that showing the results needs.
#[derive(Clone, Debug)]
pub(crate) struct Model {
    pub(crate) steps: Vec<Step>,
    /// The step of each request.
    pub(crate) step_of: Vec<usize>,
    pub(crate) iterations: u32,
    pub(crate) is_mix: bool,
    pub(crate) show: Output,
    pub(crate) configuration: Configuration,
    /// The CSV file has no line yet.
    pub(crate) csv_is_new: bool,
    /// Iterations that have begun.
    pub(crate) begun: u32,
    /// Doubts that were told.
    pub(crate) told: Vec<String>,
}

/// The step that a phase belongs to, and whether it reads back.
type Belongs = (Option<usize>, bool);

fn stderr(text: String) -> Piece {
    Piece { place: Destination::Stderr, content: text.into_bytes() }
}

impl Model {
    /// On standard output, and in the file of `--resfile`.
    fn table(&self, text: String) -> Vec<Piece> {
        let in_file = self.show.table.as_ref().map(|path| Piece::file(path, true, text.clone()));
        [Some(Piece::stdout(text)), in_file].into_iter().flatten().collect()
    }

    /// The same for the rows of a phase, which the tool ends with an empty line in the file.
    fn phase(&self, rows: &str) -> Vec<Piece> {
        let text = format!("{rows}{SEPARATOR}");
        let in_file = self.show.table.as_ref().map(|path| Piece::file(path, true, format!("{text}\n")));
        [Some(Piece::stdout(text)), in_file].into_iter().flatten().collect()
    }

    /// The head of an iteration.
    fn head(&mut self, record: &Record) -> Vec<Piece> {
        self.begun += 1;
        let mut pieces = Vec::new();
        if self.iterations > 1 {
            pieces.push(Piece::stdout(format!(
                "[Starting iteration {} of {}...]\n",
                self.begun, self.iterations
            )));
        }
        if let Some(path) = &self.show.table {
            let label = match self.show.label.as_str() {
                "" => String::new(),
                label => format!("LABEL: {label}\n"),
            };
            let date = date_text_seconds(&record.started_at);
            let text = format!("ISO DATE: {date}\n{label}COMMAND LINE: {}\n\n", self.configuration.command);
            pieces.push(Piece::file(path, true, text));
        }
        pieces.extend(self.table(console::header()));
        pieces
    }

    /// The rows and lines of a phase of the table.
    fn step(&mut self, record: &Record, number: usize, phases: &[&PhaseRecord]) -> Vec<Piece> {
        let Some(step) = self.steps.get(number).cloned() else { return Vec::new() };
        let mut pieces = Vec::new();
        while self.begun <= step.iteration {
            pieces.extend(self.head(record));
        }
        if let Some(figures) = Figures::of(record, phases, self.is_mix && step.operation != "READ") {
            let rows = match phases.first().and_then(|phase| phase.plan.direction_bytes()) {
                Some(bytes) => console::net_rows(&figures, bytes, &self.show),
                None if self.configuration.dirs_and_files.is_some() => {
                    let entries = self.entries(&phases[0].plan);
                    console::entry_rows(&step.operation, &entries, &figures, &self.show)
                }
                None => console::rows(&step.operation, &figures, &self.show),
            };
            let doubts = console::doubts(phases, &mut self.told);
            pieces.extend(self.phase(&format!("{rows}{doubts}")));
            let entry = Entry {
                operation: &step.operation,
                id: format!("{}-{number}", record.run_id),
                version: format!("3.1 (strata {})", record.strata_version),
                figures: &figures,
            };
            if let Some(path) = &self.show.csv {
                pieces.push(Piece::file(path, true, files::csv_row(&entry, &self.configuration, &self.show)));
            }
            if let Some(path) = &self.show.json {
                pieces.push(Piece::file(
                    path,
                    true,
                    files::json_line(&entry, &self.configuration, &self.show),
                ));
            }
        }
        pieces
    }

    /// Things that a phase of many entries goes over.
    fn entries(&self, plan: &PhasePlan) -> Entries {
        let is_of_files = plan.layer() == "filesystem";
        let noun = match plan.operation_name() {
            _ if !is_of_files => "Objects",
            "tree-create" | "tree-remove" => "Dirs",
            _ => "Files",
        };
        let (_, files) = self.configuration.dirs_and_files.unwrap_or_default();
        let shows_directories =
            self.configuration.shows_directories && matches!(plan.operation_name(), "write" | "read");
        Entries {
            noun,
            files_in_directory: shows_directories.then_some(files.max(1)),
            has_io_latency: is_of_files,
        }
    }

    /// Rows of data read back for verification, in the table alone.
    fn read_back(&self, record: &Record, phases: &[&PhaseRecord]) -> Vec<Piece> {
        let figures = Figures::of(record, phases, false);
        let rows = figures.map(|figures| console::rows("VERIFY", &figures, &Output::default()));
        rows.map(|rows| self.phase(&rows)).unwrap_or_default()
    }
}

/// Failures of phases, as far as the failure of the run, which strata tells, does not name them.
fn failures(record: &Record) -> String {
    let is_told = |text: &str| record.failure.as_deref().is_some_and(|failure| failure.contains(text));
    let of_phases = record.phases.iter().filter_map(|phase| Some((phase, phase.failure.as_deref()?)));
    of_phases
        .filter(|(_, failure)| !is_told(failure))
        .map(|(phase, failure)| format!("ERROR: {}: {failure}\n", phase.plan.name()))
        .collect()
}

impl Render for Model {
    fn files(&self) -> Vec<PathBuf> {
        [&self.show.csv, &self.show.json, &self.show.table].into_iter().flatten().cloned().collect()
    }

    fn begin(&mut self, record: &Record) -> Vec<Piece> {
        let mut pieces = self.head(record);
        if let Some(path) = self.show.csv.as_ref().filter(|_| self.csv_is_new && self.show.csv_labels) {
            pieces.push(Piece::file(path, true, files::csv_header()));
        }
        pieces
    }

    fn stage(&mut self, record: &Record, from: usize) -> Vec<Piece> {
        let new = record.phases.get(from..).unwrap_or_default();
        let mut pieces = Vec::new();
        // Phases that ran at the same time stand together under one step.
        let key = |phase: &PhaseRecord| (self.step_of.get(phase.request).copied(), phase.is_read_back);
        let mut groups: Vec<(Belongs, Vec<&PhaseRecord>)> = Vec::new();
        for phase in new {
            match groups.last_mut() {
                Some((last, phases)) if *last == key(phase) => phases.push(phase),
                _ => groups.push((key(phase), vec![phase])),
            }
        }
        for ((step, is_read_back), phases) in groups {
            match step {
                Some(_) if is_read_back => pieces.extend(self.read_back(record, &phases)),
                Some(step) => pieces.extend(self.step(record, step, &phases)),
                None => {}
            }
        }
        pieces
    }

    fn end(&mut self, record: &Record) -> Vec<Piece> {
        let lines = failures(record);
        if lines.is_empty() { Vec::new() } else { vec![stderr(lines)] }
    }
}
