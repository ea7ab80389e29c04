//! The record of a run as self_test prints it, latencies in whole microseconds. Failed RPCs are in no average.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use report::record::{PhaseRecord, Record};
use serde_json::{Value, json};
use statistics::{Histogram, WorkerSamples};

use super::grammar::{Kind, Payload, numbers};
use super::table::TOOL;
use crate::doubts::told;
use crate::{Destination, Piece, Render};

const BYTES_PER_MB: f64 = 1_048_576.0;

/// Percentiles after the tool's own quartiles.
const PERCENTILES: &[(&str, f64)] = &[("95th  %", 95.0), ("99th  %", 99.0), ("99.9th%", 99.9)];

/// An argument of `--endpoint` as typed.
#[derive(Clone, Debug)]
pub(crate) struct Added {
    ranks: String,
    tags: String,
}

impl Added {
    /// Reads `RANKS:TAGS`, which has been parsed before.
    pub(crate) fn of(text: &str) -> Self {
        let (ranks, tags) = text.split_once(':').unwrap_or((text, ""));
        Self { ranks: ranks.trim().to_owned(), tags: tags.trim().to_owned() }
    }

    fn lines(&self) -> String {
        let count = |list: &str| numbers(list).count();
        let (ranks, tags) = (&self.ranks, &self.tags);
        format!(
            "Adding endpoints:\n  ranks: {ranks} (# ranks = {})\n  tags: {tags} (# tags = {})\n",
            count(ranks),
            count(tags)
        )
    }
}

/// All that showing the results needs.
#[derive(Clone, Debug)]
pub(crate) struct Model {
    pub(crate) group: String,
    pub(crate) added: Vec<Added>,
    pub(crate) added_masters: Vec<Added>,
    /// Rank and tag of each.
    pub(crate) endpoints: Vec<(u32, u32)>,
    pub(crate) has_masters: bool,
    pub(crate) sizes: Vec<(Payload, Payload)>,
    pub(crate) align: Option<u64>,
    pub(crate) repetitions: u64,
    pub(crate) in_flight: u32,
    pub(crate) bits: bool,
    pub(crate) json: bool,
}

/// Results of one endpoint, or of all, as one master saw them.
#[derive(Default)]
struct Seen {
    /// RPCs completed in the window.
    rpcs: u64,
    latency: Histogram,
    failures: u64,
    causes: BTreeMap<String, u64>,
}

/// Samples of one master.
struct Master<'a> {
    label: String,
    workers: Vec<&'a WorkerSamples>,
}

/// Whole microseconds, cut off as the tool does.
fn us(ns: f64) -> String {
    format!("{:.0}", (ns / 1000.0).floor())
}

/// `0-EMPTY`, `2048-IOV`, `1048576-BULK_GET`: a bulk request is got by the server, a bulk reply put by it.
fn size_text(payload: Payload, bulk: &str) -> String {
    let kind = match payload.kind {
        Kind::Empty => "EMPTY",
        Kind::Iov => "IOV",
        Kind::Bulk => bulk,
    };
    format!("{}-{kind}", payload.size_bytes)
}

fn pair_text((request, reply): (Payload, Payload)) -> String {
    format!("({} {})", size_text(request, "BULK_GET"), size_text(reply, "BULK_PUT"))
}

/// How the system words its errors, and the name and number that the tool has for them (those of DAOS's gurt library).
const ERRORS: &[(&str, &str, u32)] = &[
    ("Connection refused", "DER_UNREACH", 1006),
    ("Connection reset", "DER_UNREACH", 1006),
    ("Broken pipe", "DER_UNREACH", 1006),
    ("not connected", "DER_UNREACH", 1006),
    ("No route to host", "DER_UNREACH", 1006),
    ("Network is unreachable", "DER_UNREACH", 1006),
    ("timed out", "DER_TIMEDOUT", 1011),
    ("Cannot allocate memory", "DER_NOMEM", 1009),
    ("Permission denied", "DER_NO_PERM", 1001),
    ("not supported", "DER_NOSYS", 1010),
    ("Message too long", "DER_OVERFLOW", 1017),
];

/// The tool's name and number for a cause, and its words.
fn error_text(cause: &str) -> String {
    let known = ERRORS.iter().find(|(words, ..)| cause.contains(words));
    let (name, code) = known.map_or(("DER_MISC", 1025), |(_, name, code)| (*name, *code));
    format!("-{name} (-{code}): {cause}")
}

impl Master<'_> {
    /// Results of one endpoint, as it saw them; of all together without one.
    fn seen(&self, part: Option<usize>) -> Seen {
        let mut seen = Seen::default();
        let parts = self.workers.iter().flat_map(|worker| &worker.parts);
        for totals in parts.filter(|totals| part.is_none_or(|part| totals.part == part)) {
            seen.latency.merge_sparse(&totals.latency);
            seen.rpcs += totals.operations;
            seen.failures += totals.errors;
            for cause in &totals.causes {
                *seen.causes.entry(cause.cause.clone()).or_default() += cause.count;
            }
        }
        seen
    }

    /// From its first RPC to its last, in seconds.
    fn seconds(&self) -> f64 {
        let begun = self.workers.iter().map(|worker| worker.started_ns).min().unwrap_or(0);
        let ended = self.workers.iter().map(|worker| worker.finished_ns).max().unwrap_or(0);
        ended.saturating_sub(begun) as f64 / 1e9
    }

    fn rpcs_per_second(&self, all: &Seen) -> f64 {
        let seconds = self.seconds();
        if seconds > 0.0 { all.rpcs as f64 / seconds } else { 0.0 }
    }
}

impl Model {
    fn head(&self) -> String {
        let mut text: String = self.added.iter().chain(&self.added_masters).map(Added::lines).collect();
        if !self.has_masters {
            text.push_str(
                "Warning: No --master-endpoint specified; using this command line application as the master endpoint\n",
            );
        }
        let sizes: Vec<String> = self.sizes.iter().map(|sizes| pair_text(*sizes)).collect();
        let align = self.align.map_or_else(|| "<Default>".to_owned(), |byte| byte.to_string());
        let _ = write!(
            text,
            "Self Test Parameters:\n  Group name to test against: {}\n  # endpoints:                {}\n  \
             Message sizes:              [{}]\n  Buffer addresses end with:  {align}\n  \
             Repetitions per size:       {}\n  Max in-flight RPCs:          {}\n\n",
            self.group,
            self.endpoints.len(),
            sizes.join(", "),
            self.repetitions,
            self.in_flight
        );
        text
    }

    /// The masters of a phase; this process is the one after the last rank.
    fn masters<'a>(&self, phase: &'a PhaseRecord) -> Vec<Master<'a>> {
        let own = self.endpoints.iter().map(|(rank, _)| *rank).max().unwrap_or(0) + 1;
        let mut masters: Vec<Master<'a>> = Vec::new();
        for worker in &phase.samples.workers {
            let label = worker.origin.clone().unwrap_or_else(|| format!("{own}:0"));
            match masters.iter_mut().find(|master| master.label == label) {
                Some(master) => master.workers.push(worker),
                None => masters.push(Master { label, workers: vec![worker] }),
            }
        }
        masters
    }

    fn results(&self, phase: &PhaseRecord) -> String {
        let Some(&sizes) = self.sizes.get(phase.request) else { return String::new() };
        let mut text = format!(
            "##################################################\nResults for message size {} (max_inflight_rpcs = {}):\n\n",
            pair_text(sizes),
            self.in_flight
        );
        let bytes = (sizes.0.size_bytes + sizes.1.size_bytes) as f64;
        for master in self.masters(phase) {
            let title = format!("Master Endpoint {}", master.label);
            let _ = writeln!(text, "{title}\n{}", "-".repeat(title.len()));
            self.figures(&mut text, &master, bytes);
            self.by_endpoint(&mut text, &master);
            text.push('\n');
        }
        text
    }

    fn figures(&self, text: &mut String, master: &Master<'_>, bytes: f64) {
        let all = master.seen(None);
        let latency = &all.latency;
        let (Some(min), Some(max), Some(mean)) = (latency.min_ns(), latency.max_ns(), latency.mean_ns())
        else {
            text.push_str("\tAll RPCs for this message size failed\n");
            return;
        };
        let rate = master.rpcs_per_second(&all);
        let (unit, scale) = if self.bits { ("Mbits/sec", 8.0 / 1e6) } else { ("MB/sec", 1.0 / BYTES_PER_MB) };
        let _ = writeln!(text, "\tRPC Bandwidth ({unit}): {:.2}", rate * bytes * scale);
        let _ = writeln!(text, "\tRPC Throughput (RPCs/sec): {rate:.0}\n\tRPC Latencies (us):");
        let mut line = |name: &str, ns: f64| {
            let _ = writeln!(text, "\t\t{name:<7}: {}", us(ns));
        };
        let at = |percent: f64| latency.percentile(percent).unwrap_or(0) as f64;
        line("Min", min as f64);
        line("25th  %", at(25.0));
        line("Median", at(50.0));
        line("75th  %", at(75.0));
        for (name, percent) in PERCENTILES {
            line(name, at(*percent));
        }
        line("Max", max as f64);
        line("Average", mean);
        let deviation_us = latency.stddev_ns().unwrap_or(0.0) / 1000.0;
        let _ = writeln!(text, "\t\tStd Dev: {deviation_us:.2}");
        let _ = writeln!(text, "\tRPC Failures: {}\n", all.failures);
    }

    fn by_endpoint(&self, text: &mut String, master: &Master<'_>) {
        text.push_str("\tEndpoint results (rank:tag - Median Latency (us)):\n");
        for (part, (rank, tag)) in self.endpoints.iter().enumerate() {
            let seen = master.seen(Some(part));
            let median = seen.latency.percentile(50.0).map_or_else(|| "NA".to_owned(), |ns| us(ns as f64));
            let _ = writeln!(text, "\t\t{rank}:{tag} - {median}");
            if seen.failures == 0 {
                continue;
            }
            let all = seen.latency.count() + seen.failures;
            let _ = writeln!(text, "\t\t\tFailures: {}/{all}", seen.failures);
            for (cause, count) in &seen.causes {
                let _ = writeln!(text, "\t\t\t{count}: {}", error_text(cause));
            }
        }
    }

    fn as_json(&self, phase: &PhaseRecord) -> Option<Value> {
        let &(request, reply) = self.sizes.get(phase.request)?;
        let bytes = (request.size_bytes + reply.size_bytes) as f64;
        let masters = self.masters(phase);
        let masters = masters.iter().map(|master| {
            let all = master.seen(None);
            let rate = master.rpcs_per_second(&all);
            let endpoints = self.endpoints.iter().enumerate().map(|(part, (rank, tag))| {
                let seen = master.seen(Some(part));
                json!({ "endpoint": format!("{rank}:{tag}"), "rpcs": seen.latency.count(), "failures": seen.failures,
                    "causes": seen.causes, "latency": latency_json(&seen.latency) })
            });
            json!({ "master": master.label, "rpcs": all.latency.count(), "failures": all.failures,
                "rpcs_per_second": rate, "bytes_per_second": rate * bytes, "latency": latency_json(&all.latency),
                "endpoints": endpoints.collect::<Vec<_>>() })
        });
        Some(json!({ "message_size": pair_text((request, reply)), "request_bytes": request.size_bytes,
            "reply_bytes": reply.size_bytes, "masters": masters.collect::<Vec<_>>() }))
    }

    /// Doubts about the phases; each once where it is about several.
    fn doubts(record: &Record) -> String {
        let mut all = told(TOOL, &record.phases);
        all.sort_by_key(|doubt| report::doubts::kinds().position(|kind| kind == doubt.kind));
        let lines: Vec<(&str, &_)> = all.iter().map(|doubt| ("", doubt)).collect();
        crate::doubts::lines(lines)
    }
}

/// Nanoseconds; null where nothing was done.
fn latency_json(latency: &Histogram) -> Value {
    let at = |percent: f64| latency.percentile(percent);
    json!({ "min_ns": latency.min_ns(), "p25_ns": at(25.0), "p50_ns": at(50.0), "p75_ns": at(75.0), "p95_ns": at(95.0),
        "p99_ns": at(99.0), "p99_9_ns": at(99.9), "max_ns": latency.max_ns(), "mean_ns": latency.mean_ns(),
        "stddev_ns": latency.stddev_ns() })
}

impl Render for Model {
    fn begin(&mut self, _record: &Record) -> Vec<Piece> {
        if self.json { Vec::new() } else { vec![Piece::stdout(self.head())] }
    }

    fn stage(&mut self, record: &Record, from: usize) -> Vec<Piece> {
        if self.json {
            return Vec::new();
        }
        let new = record.phases.get(from..).unwrap_or_default();
        vec![Piece::stdout(new.iter().map(|phase| self.results(phase)).collect::<String>())]
    }

    fn end(&mut self, record: &Record) -> Vec<Piece> {
        let mut pieces = Vec::new();
        if self.json {
            let results: Vec<Value> = record.phases.iter().filter_map(|phase| self.as_json(phase)).collect();
            let document = json!({ "group": self.group, "max_inflight_rpcs": self.in_flight,
                "repetitions_per_size": self.repetitions, "failure": record.failure, "results": results });
            pieces.push(Piece::stdout(format!("{document:#}\n")));
        }
        let doubts = Self::doubts(record);
        if !doubts.is_empty() {
            pieces.push(Piece { place: Destination::Stderr, content: doubts.into_bytes() });
        }
        pieces
    }
}
