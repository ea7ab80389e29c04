//! The table of results.

use std::fmt::Write as _;

use report::record::PhaseRecord;
use statistics::Histogram;

use super::figures::{Done, Figures, Side, elapsed_text, latency_text, quarter_buckets, us_text};
use super::settings::Output;
use super::table::TOOL;

const BYTES_PER_MIB: u64 = 1 << 20;

fn row(text: &mut String, operation: &str, kind: &str, colon: &str, first: &str, last: &str) {
    let _ = writeln!(text, "{operation:<11} {kind:<17}{colon:<1} {first:>11} {last:>11}");
}

fn open_row(text: &mut String, kind: &str, content: &str) {
    let _ = writeln!(text, "{:<11} {kind:<17}: [ {content} ]", "");
}

/// The head of the table.
pub(crate) fn header() -> String {
    let mut text = String::new();
    row(&mut text, "OPERATION", "RESULT TYPE", "", "FIRST DONE", "LAST DONE");
    row(&mut text, "===========", "================", "", "==========", "=========");
    text
}

/// A row of two numbers.
fn numbers(text: &mut String, kind: &str, side: (Done, Done), figure: fn(Done) -> f64, unit: f64) {
    let whole = |done: Done| ((figure(done) / unit) as u64).to_string();
    row(text, "", kind, ":", &whole(side.0), &whole(side.1));
}

/// The rows of a phase, without the line that ends it.
pub(crate) fn rows(operation: &str, figures: &Figures, show: &Output) -> String {
    let mut text = String::new();
    row(
        &mut text,
        operation,
        "Elapsed time",
        ":",
        &elapsed_text(figures.first_ns),
        &elapsed_text(figures.last_ns),
    );
    let (main, reads) = (&figures.main, &figures.mixed_reads);
    let is_mix = !reads.is_empty();
    rates(&mut text, main, reads, show);
    let mib = BYTES_PER_MIB as f64;
    let amount = |text: &mut String, kind: &str, side: &Side| {
        if side.last.bytes > 0 {
            numbers(text, kind, (side.first, side.last), |done| done.bytes as f64, mib);
        }
    };
    amount(&mut text, if is_mix { "MiB write" } else { "Total MiB" }, main);
    amount(&mut text, "MiB read", reads);
    if show.operations {
        let count = |text: &mut String, kind: &str, side: &Side| {
            if !side.is_empty() {
                numbers(text, kind, (side.first, side.last), |done| done.operations as f64, 1.0);
            }
        };
        count(&mut text, if is_mix { "IOs write" } else { "IOs total" }, main);
        count(&mut text, "IOs read", reads);
    }
    costs(&mut text, figures, show);
    latency(&mut text, if is_mix { "IO wr" } else { "IO" }, &main.latency, show);
    latency(&mut text, "IO rd", &reads.latency, show);
    text
}

/// Adds rows of failed operations, and where asked for the use of processors and the time of each thread.
fn costs(text: &mut String, figures: &Figures, show: &Output) {
    let failed = figures.main.errors + figures.mixed_reads.errors;
    if failed > 0 {
        row(text, "", "IOs failed", ":", "", &failed.to_string());
    }
    if show.cpu {
        let [first, last] = figures.cpu_texts();
        row(text, "", "CPU util %", ":", &first, &last);
    }
    if show.all_elapsed {
        let times: Vec<String> = figures.threads_ns.iter().map(|ns| (ns / 1_000_000).to_string()).collect();
        open_row(text, "Time ms each", &times.join(" "));
    }
}

/// Things that a phase goes over, as its rows name them.
pub(crate) struct Entries {
    /// `Objects`, `Files` or `Dirs`.
    pub(crate) noun: &'static str,
    /// Files in a directory, where directories are shown too.
    pub(crate) files_in_directory: Option<u64>,
    /// Latency of reads and writes stands beside that of files even where a file is one of them.
    pub(crate) has_io_latency: bool,
}

/// The rows of a phase on objects, files or directories: whole ones, and their parts or blocks where they are moved in several.
pub(crate) fn entry_rows(operation: &str, of: &Entries, figures: &Figures, show: &Output) -> String {
    let mut text = String::new();
    let elapsed = (elapsed_text(figures.first_ns), elapsed_text(figures.last_ns));
    row(&mut text, operation, "Elapsed time", ":", &elapsed.0, &elapsed.1);
    let (main, entries) = (&figures.main, figures.entries.as_ref());
    let per_second: fn(Done) -> f64 = |done| done.operations_per_second;
    let count: fn(Done) -> f64 = |done| done.operations as f64;
    let whole = entries.filter(|side| !side.is_empty());
    if let Some(side) = whole {
        numbers(&mut text, &format!("{}/s", of.noun), (side.first, side.last), per_second, 1.0);
        if let Some(files) = of.files_in_directory {
            numbers(&mut text, "Dirs/s", (side.first, side.last), per_second, files as f64);
        }
    }
    let in_parts = !main.is_empty() && whole.is_none_or(|side| side.last.operations != main.last.operations);
    if in_parts {
        numbers(&mut text, "IOPS", (main.first, main.last), per_second, 1.0);
    }
    if main.last.bytes > 0 {
        let (name, unit) = if show.base10 { ("MB/s", 1e6) } else { ("MiB/s", BYTES_PER_MIB as f64) };
        let kind = format!("Throughput {name}");
        numbers(&mut text, &kind, (main.first, main.last), |done| done.bytes_per_second, unit);
        let mib = BYTES_PER_MIB as f64;
        numbers(&mut text, "Total MiB", (main.first, main.last), |done| done.bytes as f64, mib);
    }
    if let Some(side) = whole {
        numbers(&mut text, &format!("{} total", of.noun), (side.first, side.last), count, 1.0);
        if let Some(files) = of.files_in_directory {
            numbers(&mut text, "Dirs total", (side.first, side.last), count, files as f64);
        }
    }
    if show.operations && !main.is_empty() {
        numbers(&mut text, "IOs total", (main.first, main.last), count, 1.0);
    }
    costs(&mut text, figures, show);
    if let Some(side) = whole {
        latency(&mut text, of.noun, &side.latency, show);
    }
    if in_parts || of.has_io_latency {
        latency(&mut text, "IO", &main.latency, show);
    }
    text
}

/// The rows of a phase of netbench: requests out, replies in. A side of single bytes says only that the other one arrived, and has no
/// rows.
pub(crate) fn net_rows(figures: &Figures, payload_bytes: (u64, u64), show: &Output) -> String {
    let mut text = String::new();
    let elapsed = (elapsed_text(figures.first_ns), elapsed_text(figures.last_ns));
    row(&mut text, "NET", "Elapsed time", ":", &elapsed.0, &elapsed.1);
    let (sent, received) = (&figures.main, &figures.mixed_reads);
    numbers(&mut text, "IOPS", (sent.first, sent.last), |done| done.operations_per_second, 1.0);
    let (name, unit) = if show.base10 { ("MB/s", 1e6) } else { ("MiB/s", BYTES_PER_MIB as f64) };
    let sides = [("write", sent, payload_bytes.0), ("read", received, payload_bytes.1)];
    for (direction, side, _) in sides.iter().filter(|(.., bytes)| *bytes > 1) {
        let kind = format!("{name} {direction}");
        numbers(&mut text, &kind, (side.first, side.last), |done| done.bytes_per_second, unit);
    }
    for (direction, side, _) in sides.iter().filter(|(.., bytes)| *bytes > 1) {
        let kind = format!("MiB {direction}");
        numbers(&mut text, &kind, (side.first, side.last), |done| done.bytes as f64, BYTES_PER_MIB as f64);
    }
    if show.operations {
        numbers(&mut text, "IOs total", (sent.first, sent.last), |done| done.operations as f64, 1.0);
    }
    costs(&mut text, figures, show);
    latency(&mut text, "IO", &sent.latency, show);
    text
}

fn rates(text: &mut String, main: &Side, reads: &Side, show: &Output) {
    let is_mix = !reads.is_empty();
    let total = (main.first.plus(reads.first), main.last.plus(reads.last));
    let operations: fn(Done) -> f64 = |done| done.operations_per_second;
    if !main.is_empty() {
        numbers(text, if is_mix { "IOPS write" } else { "IOPS" }, (main.first, main.last), operations, 1.0);
    }
    if is_mix {
        numbers(text, "IOPS read", (reads.first, reads.last), operations, 1.0);
        numbers(text, "IOPS total", total, operations, 1.0);
    }
    let (name, unit) = if show.base10 { ("MB/s", 1e6) } else { ("MiB/s", BYTES_PER_MIB as f64) };
    let bytes: fn(Done) -> f64 = |done| done.bytes_per_second;
    if main.last.bytes > 0 {
        let kind = if is_mix { format!("{name} write") } else { format!("Throughput {name}") };
        numbers(text, &kind, (main.first, main.last), bytes, unit);
    }
    if reads.last.bytes > 0 {
        numbers(text, &format!("{name} read"), (reads.first, reads.last), bytes, unit);
        numbers(text, &format!("{name} total"), total, bytes, unit);
    }
}

fn latency(text: &mut String, name: &str, latency: &Histogram, show: &Output) {
    let (Some(min), Some(mean), Some(max)) = (latency.min_ns(), latency.mean_ns(), latency.max_ns()) else {
        return;
    };
    if show.latency {
        let (min, mean, max) = (latency_text(min as f64), latency_text(mean), latency_text(max as f64));
        open_row(text, &format!("{name} latency"), &format!("min={min} avg={mean} max={max}"));
    }
    if show.percentiles {
        open_row(text, &format!("{name} lat % us"), &percentiles(latency, show.nines));
    }
    if show.histogram {
        let buckets = quarter_buckets(latency);
        let parts: Vec<String> =
            buckets.iter().map(|(end, count)| format!("{}: {count}", us_text(*end))).collect();
        open_row(text, &format!("{name} lat hist"), &parts.join(", "));
    }
}

fn percentiles(latency: &Histogram, nines: u32) -> String {
    let fixed = ["1", "50", "75", "99"].map(str::to_owned);
    let more = (1..=nines as usize).map(|count| format!("99.{}", "9".repeat(count)));
    let part = |percent: String| {
        let ns = percent.parse().ok().and_then(|value| latency.percentile(value)).unwrap_or(0);
        format!("{percent}%<={}", us_text(ns as f64 / 1000.0))
    };
    fixed.into_iter().chain(more).map(part).collect::<Vec<_>>().join(" ")
}

/// Doubts about the phases, the gravest first, but for those that `told` already has.
pub(crate) fn doubts(phases: &[&PhaseRecord], told: &mut Vec<String>) -> String {
    // Where all operations failed there is no figure to doubt.
    let has_figures = |phase: &&PhaseRecord| {
        phase.failure.is_none() || phase.samples.workers.iter().any(|worker| worker.operations() > 0)
    };
    let mut all = crate::doubts::told(TOOL, phases.iter().copied().filter(has_figures));
    all.sort_by_key(|doubt| report::doubts::kinds().position(|kind| kind == doubt.kind));
    let mut text = String::new();
    for line in all.iter().map(|doubt| doubt.line("")) {
        if !told.contains(&line) {
            text.push_str(&line);
            told.push(line);
        }
    }
    text
}
