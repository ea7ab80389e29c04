//! IOR's output, from the record.

use std::fmt::Write as _;
use std::path::PathBuf;

use report::record::{PhaseRecord, Record};
use statistics::Spread;

use super::figures::{Row, at_stonewall, transfers_of_a_task};
use super::settings::{Format, Settings, Test};
use super::specs::{Kind, Step};
use super::table::{TOOL, VERSION};
use super::text::{errors, figure, options_of, outliers, rank_rows};
use crate::dates::{ctime, moment};
use crate::doubts::told;
use crate::{Destination, Piece, Render, World};

pub(crate) const MIB: f64 = 1024.0 * 1024.0;

const TABLE_HEAD: &str = "\naccess    bw(MiB/s)  IOPS       Latency(s)  block(KiB) xfer(KiB)  open(s)    wr/rd(s)   close(s)   total(s)   iter\n\
                          ------    ---------  ----       ----------  ---------- ---------  --------   --------   --------   --------   ----\n";
const SUMMARY_HEAD: &str = "Operation   Max(MiB)   Min(MiB)  Mean(MiB)     StdDev   Max(OPs)   Min(OPs)  Mean(OPs)     StdDev    Mean(s) \
                            Stonewall(s) Stonewall(MiB) Test# #Tasks tPN reps fPP reord reordoff reordrand seed segcnt   blksiz    xsize aggs(MiB)   API RefNum\n";

/// Settings and state that the output needs besides the record.
pub(crate) struct Model {
    pub(crate) settings: Settings,
    pub(crate) steps: Vec<Step>,
    pub(crate) command: String,
    pub(crate) host: String,
    /// Text that waits for its file, or for the end.
    held: String,
    /// Test whose head stands in the output.
    shown: Option<usize>,
}

/// A phase of the record, and its step.
pub(crate) type Done<'a> = (Step, &'a PhaseRecord);

/// Figures of one operation of a test over its repetitions.
pub(crate) struct Summed {
    pub(crate) kind: Kind,
    pub(crate) bandwidth: Spread,
    pub(crate) operations: Spread,
    pub(crate) mean_s: f64,
    pub(crate) bytes: u64,
    /// Mean time of the stonewall, and bytes a second until then, where it stood.
    pub(crate) stonewall: Option<(f64, f64)>,
}

impl Model {
    pub(crate) fn new(settings: Settings, steps: Vec<Step>, words: &[String], world: &dyn World) -> Self {
        let command =
            std::iter::once(TOOL).chain(words.iter().map(String::as_str)).collect::<Vec<_>>().join(" ");
        Self {
            settings,
            steps,
            command: command.replace(['\n', '\r'], " "),
            host: world.host_name(),
            held: String::new(),
            shown: None,
        }
    }

    /// Phases of a record that are steps of a test, in order.
    pub(crate) fn done<'a>(&'a self, phases: &'a [PhaseRecord]) -> impl Iterator<Item = Done<'a>> {
        let measured = phases.iter().filter(|phase| !phase.plan.is_fill());
        measured.filter_map(|phase| Some((*self.steps.get(phase.request)?, phase)))
    }

    pub(crate) fn machine(&self, record: &Record) -> String {
        let system = &record.environment.system;
        let more = if self.settings.show.verbose > 1 {
            format!(
                " {} {}",
                system.kernel.as_deref().unwrap_or_default(),
                system.architecture.as_deref().unwrap_or_default()
            )
        } else {
            String::new()
        };
        format!("Linux {}{more}", system.hostname.as_deref().unwrap_or(&self.host))
    }

    fn head(&self, record: &Record) -> String {
        let mut text = format!("IOR-{VERSION}: MPI Coordinated Test of Parallel I/O\n");
        field(&mut text, "Began", ctime(moment(&record.started_at, 0)));
        field(&mut text, "Command line", &self.command);
        field(&mut text, "Machine", self.machine(record));
        text
    }

    /// The head of a test.
    fn test_head(&self, number: usize, started_at: &str) -> String {
        let test = &self.settings.tests[number];
        let mut text = String::new();
        field(&mut text, "TestID", number);
        field(&mut text, "StartTime", ctime(moment(started_at, 0)));
        field(&mut text, "Path", super::specs::file_name(test, first_path(test), 0));
        text.push_str(&self.options(number));
        text
    }

    /// The block of options of a test, up to its results.
    fn options(&self, number: usize) -> String {
        let test = &self.settings.tests[number];
        let mut text = "\nOptions: \n".to_owned();
        for (name, value) in options_of(test, &self.settings) {
            field(&mut text, name, value.as_str().map_or_else(|| value.to_string(), str::to_owned));
        }
        text.push_str("\nResults: \n");
        text.push_str(TABLE_HEAD);
        text
    }

    /// Output of a run that touches nothing.
    pub(crate) fn dry_run(&self) -> String {
        let mut text = format!("IOR-{VERSION}: MPI Coordinated Test of Parallel I/O\n");
        field(&mut text, "Command line", &self.command);
        field(&mut text, "Machine", format!("Linux {}", self.host));
        for number in 0..self.settings.tests.len() {
            field(&mut text, "TestID", number);
            text.push_str(&self.options(number));
        }
        text
    }

    /// The row of a phase, and what is to be said of it.
    fn row(&self, (step, phase): Done<'_>) -> String {
        let test = &self.settings.tests[step.test];
        let row = Row::of(phase);
        let mut text = String::new();
        if step.kind != Kind::Check {
            let kib = |bytes: u64| bytes as f64 / 1024.0;
            let access = if step.kind == Kind::Write { "write" } else { "read" };
            let _ = writeln!(
                text,
                "{access:<10}{} {} {}  {} {} {} {} {} {} {:<4}",
                figure(row.bandwidth() / MIB),
                figure(row.iops()),
                figure(row.latency_s),
                figure(kib(test.block_bytes)),
                figure(kib(test.transfer_bytes)),
                figure(row.open_s),
                figure(row.move_s),
                figure(row.close_s),
                figure(row.total_s),
                step.repetition
            );
        }
        text.push_str(&errors(step.kind, phase));
        if test.outlier_s > 0 {
            text.push_str(&outliers(test, phase));
        }
        text
    }

    /// Figures of an operation of a test over all repetitions that there are.
    pub(crate) fn summed(&self, record: &Record, number: usize, kind: Kind) -> Option<Summed> {
        let test = &self.settings.tests[number];
        let own: Vec<&PhaseRecord> = self
            .done(&record.phases)
            .filter(|(step, _)| step.test == number && step.kind == kind)
            .map(|(_, phase)| phase)
            .collect();
        let rows: Vec<Row> = own.iter().map(|phase| Row::of(phase)).collect();
        let of = |figure: fn(&Row) -> f64| Spread::of(&rows.iter().map(figure).collect::<Vec<_>>());
        let walls: Vec<(f64, u64)> = own.iter().filter_map(|phase| at_stonewall(phase)).collect();
        let stonewall = (!walls.is_empty() && walls.len() == own.len()).then(|| {
            let time: f64 = walls.iter().map(|(time, _)| time).sum();
            let bytes: u64 = walls.iter().map(|(_, transfers)| transfers * test.transfer_bytes).sum();
            (time / walls.len() as f64, bytes as f64 / time)
        });
        Some(Summed {
            kind,
            bandwidth: of_all(of(Row::bandwidth)?, rows.len()),
            operations: of_all(of(Row::operations)?, rows.len()),
            mean_s: of(|row| row.total_s)?.mean,
            bytes: rows.first()?.bytes,
            stonewall,
        })
    }

    /// The lines of the summary of a test.
    fn summary(&self, record: &Record, number: usize) -> String {
        let test = &self.settings.tests[number];
        let mut text = String::new();
        for summed in
            [Kind::Write, Kind::Read].into_iter().filter_map(|kind| self.summed(record, number, kind))
        {
            let access = if summed.kind == Kind::Write { "write" } else { "read" };
            let (bandwidth, operations) = (summed.bandwidth, summed.operations);
            let _ = write!(text, "{access:<9} ");
            let in_mib = [bandwidth.max, bandwidth.min, bandwidth.mean, bandwidth.stddev].map(|at| at / MIB);
            for figure in
                in_mib.into_iter().chain([operations.max, operations.min, operations.mean, operations.stddev])
            {
                let _ = write!(text, "{figure:>10.2} ");
            }
            let _ = write!(text, "{:>10.5} ", summed.mean_s);
            let _ = match summed.stonewall {
                Some((time, rate)) => write!(text, "{time:>10.2} {:>13.2} ", rate / MIB),
                None => write!(text, "{:>10} {:>13} ", "NA", "NA"),
            };
            let _ = writeln!(
                text,
                "{number:>5} {:>6} {:>3} {:>4} {:>3} {:>5} {:>8} {:>9} {:>4} {:>6} {:>8} {:>8} {:>9.1} {:>3} {:>6}",
                test.tasks,
                test.tasks,
                test.repetitions,
                u8::from(test.file_per_task),
                u8::from(test.reorder),
                test.offset_tasks,
                test.reorder_random,
                test.reorder_seed,
                test.segments,
                test.block_bytes,
                test.transfer_bytes,
                summed.bytes as f64 / MIB,
                api(test),
                test.reference
            );
        }
        text
    }

    /// The best of each operation of a test.
    fn best(&self, record: &Record, number: usize) -> String {
        let mut text = String::new();
        for (kind, name) in [(Kind::Write, "Max Write: "), (Kind::Read, "Max Read:  ")] {
            if let Some(summed) = self.summed(record, number, kind) {
                let best = summed.bandwidth.max;
                let _ = writeln!(text, "{name}{:.2} MiB/sec ({:.2} MB/sec)", best / MIB, best / 1e6);
            }
        }
        text
    }

    /// Lines that end a test.
    fn test_end(&self, record: &Record, number: usize) -> String {
        let mut text = String::new();
        if self.settings.show.summary_always {
            let _ = write!(text, "\n{SUMMARY_HEAD}{}", self.summary(record, number));
        } else {
            let _ = write!(text, "\n{}", self.best(record, number));
        }
        text
    }

    /// Files that hold figures of their own: the status of a stonewall, times of the tasks.
    fn side_files(&self, record: &Record) -> Vec<Piece> {
        let mut pieces = Vec::new();
        for (number, test) in self.settings.tests.iter().enumerate() {
            let own = || self.done(&record.phases).filter(move |(step, _)| step.test == number);
            let last = own().filter(|(step, _)| step.kind == Kind::Write).last();
            if let (Some(path), Some((_, phase))) = (&test.status_file, last) {
                pieces.push(Piece::file(path, false, format!("{}\n", transfers_of_a_task(phase))));
            }
            if let Some(path) = &test.rank_csv {
                let rows: String = own().map(rank_rows).collect();
                let head = "access,rank,runtime-with-openclose,runtime,throughput-withopenclose,throughput\n";
                pieces.push(Piece::file(path, false, format!("{head}{rows}")));
            }
        }
        pieces
    }

    /// Text that is shown now, or waits for its file.
    fn emit(&mut self, text: String) -> Vec<Piece> {
        if self.settings.show.file.is_some() {
            self.held.push_str(&text);
            return Vec::new();
        }
        if text.is_empty() { Vec::new() } else { vec![Piece::stdout(text)] }
    }

    /// Doubts about the phases.
    pub(crate) fn doubts(record: &Record) -> String {
        let mut all = told(TOOL, &record.phases);
        all.sort_by_key(|doubt| report::doubts::kinds().position(|kind| kind == doubt.kind));
        crate::doubts::lines(all.iter().map(|doubt| ("", doubt)))
    }
}

impl Render for Model {
    fn files(&self) -> Vec<PathBuf> {
        let tests = self.settings.tests.iter();
        let own = tests.flat_map(|test| {
            [test.status_file.as_ref().filter(|_| test.write), test.rank_csv.as_ref()].into_iter().flatten()
        });
        own.chain(&self.settings.show.file).map(PathBuf::from).collect()
    }

    fn begin(&mut self, record: &Record) -> Vec<Piece> {
        let mut pieces = Vec::new();
        if let Some(path) = &self.settings.show.file {
            pieces.push(Piece::stdout(format!("Writing output to {path}\n")));
        }
        let text = match self.settings.show.format {
            Format::Text => self.head(record),
            Format::Csv => super::documents::CSV_HEAD.to_owned(),
            Format::Json => String::new(),
        };
        pieces.extend(self.emit(text));
        pieces
    }

    fn stage(&mut self, record: &Record, from: usize) -> Vec<Piece> {
        let new = record.phases.get(from..).unwrap_or_default();
        let mut text = String::new();
        let mut shown = self.shown;
        for (step, phase) in self.done(new) {
            match self.settings.show.format {
                Format::Json => {}
                Format::Csv => {
                    text.push_str(&super::documents::csv_row(&self.settings.tests[step.test], (step, phase)));
                }
                Format::Text => {
                    if shown != Some(step.test) {
                        text.extend(shown.map(|number| self.test_end(record, number)));
                        text.push_str(&self.test_head(step.test, &phase.started_at));
                        shown = Some(step.test);
                    }
                    text.push_str(&self.row((step, phase)));
                }
            }
        }
        self.shown = shown;
        self.emit(text)
    }

    fn end(&mut self, record: &Record) -> Vec<Piece> {
        let text = match self.settings.show.format {
            Format::Csv => String::new(),
            Format::Json => self.document(record),
            Format::Text => {
                let mut text: String =
                    self.shown.iter().map(|number| self.test_end(record, *number)).collect();
                let rows: String =
                    (0..self.settings.tests.len()).map(|number| self.summary(record, number)).collect();
                let _ = write!(text, "\nSummary of all tests:\n{SUMMARY_HEAD}{rows}");
                field(&mut text, "Finished", ctime(finished(record)));
                text
            }
        };
        let mut pieces = self.emit(text);
        if let Some(path) = &self.settings.show.file {
            pieces.push(Piece::file(path, false, std::mem::take(&mut self.held)));
        }
        pieces.extend(self.side_files(record));
        let doubts = Self::doubts(record);
        if !doubts.is_empty() {
            pieces.push(Piece { place: Destination::Stderr, content: doubts.into_bytes() });
        }
        pieces
    }
}

/// When the last phase ended.
pub(crate) fn finished(record: &Record) -> std::time::Duration {
    let ends = record.phases.iter().map(|phase| moment(&phase.started_at, phase.samples.elapsed_ns));
    ends.max().unwrap_or_else(|| moment(&record.started_at, 0))
}

/// Deviation of all repetitions, where the one of `statistics` is that of a sample.
fn of_all(spread: Spread, count: usize) -> Spread {
    let count = count as f64;
    Spread { stddev: spread.stddev * ((count - 1.0) / count).sqrt(), ..spread }
}

fn first_path(test: &Test) -> &str {
    test.path.split('@').next().unwrap_or_default()
}

pub(crate) fn api(test: &Test) -> &'static str {
    if test.is_dummy { "DUMMY" } else { "POSIX" }
}

fn field(text: &mut String, name: &str, value: impl std::fmt::Display) {
    let _ = writeln!(text, "{name:<20}: {value}");
}
