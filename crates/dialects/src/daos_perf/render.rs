//! The record of a run as the tools print it: as those of DAOS 2.8 do, or in the spelling of the public guide of 2.0.

use std::fmt::Write as _;

use report::record::{PhaseRecord, Record};
use statistics::{Histogram, WorkerSamples};

use super::class;
use super::commands::{Command, Test};
use super::settings::{Settings, TextOf, Workload};
use crate::doubts::told;
use crate::{Destination as Output, Piece, Render};

const BYTES_PER_MB: f64 = 1_048_576.0;

/// First line of the tools of 2.8, which load their library for several processes then.
const LOADED: &str = "Using compatible version\n";

/// Lines of latency after the tool's own, in nanoseconds.
const PERCENTILES: &[(&str, f64)] = &[("p50", 50.0), ("p90", 90.0), ("p99", 99.0), ("p99.9", 99.9)];

/// All that showing the results needs.
#[derive(Clone, Debug)]
pub(crate) struct Model {
    settings: Settings,
    /// The command of each request.
    command_of: Vec<usize>,
}

/// One test as it went.
struct Result {
    /// When each process began and ended, in nanoseconds of one clock.
    spans: Vec<(u64, u64)>,
    latency: Histogram,
    operations: u64,
    bytes: u64,
}

impl Result {
    fn of(phases: &[&PhaseRecord]) -> Self {
        let mut result = Self { spans: Vec::new(), latency: Histogram::new(), operations: 0, bytes: 0 };
        for phase in phases {
            let zero = phase.samples.started_ns;
            let span = |worker: &WorkerSamples| (zero + worker.started_ns, zero + worker.finished_ns);
            result.spans.extend(phase.samples.workers.iter().map(span));
            for class in phase.samples.workers.iter().flat_map(|worker| &worker.classes) {
                result.latency.merge_sparse(&class.latency);
                result.operations += class.operations;
                result.bytes += class.bytes;
            }
        }
        result
    }

    /// Time of each process, from its first operation to its last, in seconds.
    fn seconds(&self) -> impl Iterator<Item = f64> + '_ {
        self.spans.iter().map(|(begun, ended)| ended.saturating_sub(*begun) as f64 / 1e9)
    }

    /// From the first operation of all processes to the last, in seconds.
    fn seconds_all(&self) -> f64 {
        let begun = self.spans.iter().map(|span| span.0).min().unwrap_or(0);
        let ended = self.spans.iter().map(|span| span.1).max().unwrap_or(0);
        ended.saturating_sub(begun) as f64 / 1e9
    }
}

/// The run's own number in the form of a UUID: its id, and its seed.
fn uuid(record: &Record) -> String {
    let digits = format!("{:0>16}{:016x}", record.run_id, record.seed);
    let part = |from: usize, to: usize| digits.get(from..to).unwrap_or_default();
    [part(0, 8), part(8, 12), part(12, 16), part(16, 20), part(20, 32)].join("-")
}

impl Model {
    pub(crate) fn new(settings: &Settings, command_of: Vec<usize>) -> Self {
        Self { settings: settings.clone(), command_of }
    }

    fn head(&self, record: &Record) -> String {
        let own = &self.settings;
        let [objects, dkeys, akeys, records] = own.counts;
        let yes_no = |is_set: bool| if is_set { "yes" } else { "no" };
        let is_old = own.text_of == TextOf::V2_0;
        let (test, size) = match &own.place {
            Workload::Vos { .. } if is_old => ("VOS (storage only)".to_owned(), "stride size"),
            Workload::Vos { .. } => ("VOS storage".to_owned(), "value size "),
            Workload::Shared { is_echo, .. } => (class::text(&own.class, *is_echo), "stride size"),
        };
        let mut text = if is_old { String::new() } else { LOADED.to_owned() };
        for (what, uuid) in [("pool", &own.pool), ("cont", &own.container)] {
            if let (Some(uuid), false) = (uuid, is_old) {
                let _ = writeln!(text, "Using {what}:{uuid:.8}");
            }
        }
        let _ = write!(
            text,
            "Test :\n\t{test}\nPool :\n\t{}\nParameters :\n\tpool size     : SCM: {} MB, NVMe: {} MB\n\
             \tcredits       : {} (sync I/O for -ve)\n\tobj_per_cont  : {objects} x {} (procs)\n\
             \tdkey_per_obj  : {dkeys} ({})\n\takey_per_dkey : {akeys}{}\n\trecx_per_akey : {records}\n\
             \tvalue type    : {}\n\t{size}   : {}\n",
            self.pool(record),
            own.scm_bytes >> 20,
            own.nvme_bytes >> 20,
            own.credits,
            own.processes,
            if own.integer_dkeys { "int" } else { "buf" },
            if own.constant_akey { " (const)" } else { "" },
            if own.is_array { "array" } else { "single" },
            own.size_bytes,
        );
        if let Some(store) = own.store(0) {
            let _ = write!(text, "\tzero copy     : {}\n\tVOS file      : {store}\n", yes_no(own.zero_copy));
        }
        text
    }

    fn pool(&self, record: &Record) -> String {
        match (&self.settings.pool, &self.settings.place) {
            (Some(pool), _) => pool.clone(),
            (None, Workload::Vos { .. }) => uuid(record),
            (None, Workload::Shared { url, .. }) => url.clone(),
        }
    }

    fn command(&self, request: usize) -> Option<(usize, &Command)> {
        let number = *self.command_of.get(request)?;
        Some((number, self.settings.commands.get(number)?))
    }

    /// Text before a test's results.
    fn opening(&self, number: usize) -> String {
        let Some(command) = self.settings.commands.get(number) else { return String::new() };
        let name = command.test.name();
        let mut text = if self.settings.asks { String::new() } else { format!("Running test={name}\n") };
        let _ = write!(text, "Running {name} test (iteration={}", command.iterations);
        let subsets =
            ["objects", "dkeys", "akeys", "recx"].iter().zip(command.subset).zip(self.settings.counts);
        for ((what, asked), whole) in subsets {
            if let Some(asked) = asked.filter(|&asked| asked != whole) {
                let _ = write!(text, ", {what}={asked}");
            }
        }
        text.push_str(")\n");
        text
    }

    /// Count of a test: operations, or the entries that were walked.
    fn done(&self, command: &Command, result: &Result) -> u64 {
        let [objects, dkeys, akeys, records] = self.settings.counts;
        let passes = command.iterations * u64::from(self.settings.processes);
        match command.test {
            Test::Iterate => objects * dkeys * akeys * records * passes,
            _ => result.operations,
        }
    }

    fn figures(&self, command: &Command, result: &Result) -> String {
        let name = command.test.name();
        let seconds = result.seconds_all();
        let done = self.done(command, result);
        let per_second = |amount: f64| if seconds > 0.0 { amount / seconds } else { 0.0 };
        let longest = result.seconds().fold(0.0, f64::max);
        let shortest = result.seconds().fold(f64::INFINITY, f64::min).min(longest);
        let processes = result.spans.len().max(1) as f64;
        let each = done as f64 / processes;
        let latency_us = if each > 0.0 { longest * 1e6 / each } else { 0.0 };
        let (bandwidth_name, width) = match self.settings.text_of {
            TextOf::V2_0 => ("bandwidth", 9),
            TextOf::V2_8 => ("bandwith", 8),
        };
        let mut text = format!("{name} successfully completed:\n");
        let mut line = |name: &str, value: String, unit: &str| {
            let _ = writeln!(text, "\t{name:<width$} : {value:<10} {unit}");
        };
        line("duration", format!("{seconds:.6}"), "sec");
        if command.test.moves_values() {
            let bandwidth = per_second(result.bytes as f64) / BYTES_PER_MB;
            line(bandwidth_name, format!("{bandwidth:.3}"), "MB/sec");
        }
        line("rate", format!("{:.2}", per_second(done as f64)), "IO/sec");
        line("latency", format!("{latency_us:.3}"), "us (nonsense if credits > 1)");
        latencies(&mut text, width, &result.latency);
        let mean = result.seconds().sum::<f64>() / processes;
        let _ = write!(
            text,
            "Duration across processes:\n\tMAX duration : {longest:<10.6} sec\n\tMIN duration : {shortest:<10.6} sec\n\
             \tAverage duration : {mean:<10.6} sec\n"
        );
        text
    }

    /// The results of one test, and what announces the next.
    fn test(&self, record: &Record, number: usize, phases: &[&PhaseRecord]) -> Vec<Piece> {
        let Some(command) = self.settings.commands.get(number) else { return Vec::new() };
        let name = command.test.name();
        let mut text = if self.settings.asks { self.opening(number) } else { String::new() };
        if let Some(failure) = failure(record, phases) {
            text.push_str(&format!("{name} failed\n"));
            let failed =
                Piece { place: Output::Stderr, content: format!("Failed: {failure}\n").into_bytes() };
            return vec![failed, Piece::stdout(text)];
        }
        if command.prints {
            text.push_str(&self.figures(command, &Result::of(phases)));
        }
        text.push_str(&format!("Completed test={name}\n"));
        if !self.settings.asks {
            text.push_str(&self.opening(number + 1));
        }
        vec![Piece::stdout(text)]
    }
}

fn latencies(text: &mut String, width: usize, latency: &Histogram) {
    let (Some(min), Some(mean), Some(max)) = (latency.min_ns(), latency.mean_ns(), latency.max_ns()) else {
        return;
    };
    let mut line = |name: &str, ns: f64| {
        let _ = writeln!(text, "\t{name:<width$} : {ns:<10.0} ns");
    };
    line("min", min as f64);
    line("mean", mean);
    for (name, percent) in PERCENTILES {
        line(name, latency.percentile(*percent).unwrap_or(0) as f64);
    }
    line("max", max as f64);
}

/// Why a test failed; none where it did not.
fn failure(record: &Record, phases: &[&PhaseRecord]) -> Option<String> {
    let of_phases = phases.iter().find_map(|phase| phase.failure.clone());
    let counted = || {
        let workers = phases.iter().flat_map(|phase| &phase.samples.workers);
        let errors: Vec<_> = workers.flat_map(|worker| &worker.errors).collect();
        let first = errors.first()?;
        let count: u64 = errors.iter().map(|error| error.count).sum();
        Some(format!("{count} operations: {} failed: {}", first.class, first.cause))
    };
    of_phases.or_else(counted).or_else(|| phases.is_empty().then(|| record.failure.clone()).flatten())
}

impl Render for Model {
    fn begin(&mut self, record: &Record) -> Vec<Piece> {
        let opening = if self.settings.asks { String::new() } else { self.opening(0) };
        vec![Piece::stdout(format!("{}{opening}", self.head(record)))]
    }

    fn question(&self, request: usize) -> Option<String> {
        let (number, command) = self.command(request).filter(|_| self.settings.asks)?;
        let is_first = request == 0 || self.command_of.get(request - 1) != Some(&number);
        is_first.then(|| format!("Type 'y|Y' to run test={}: ", command.test.name()))
    }

    fn stage(&mut self, record: &Record, from: usize) -> Vec<Piece> {
        let new = record.phases.get(from..).unwrap_or_default();
        let of_tests: Vec<&PhaseRecord> =
            new.iter().filter(|phase| !phase.is_read_back && !phase.plan.is_fill()).collect();
        let number = of_tests.first().and_then(|phase| self.command(phase.request));
        number.map_or_else(Vec::new, |(number, _)| self.test(record, number, &of_tests))
    }

    fn end(&mut self, record: &Record) -> Vec<Piece> {
        let all = told(self.settings.tool, &record.phases);
        let doubts = crate::doubts::lines(all.iter().map(|doubt| ("", doubt)));
        if doubts.is_empty() {
            return Vec::new();
        }
        vec![Piece { place: Output::Stderr, content: doubts.into_bytes() }]
    }
}
