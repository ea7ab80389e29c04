//! The object store in process, and what the way over the network takes of it.

use units::human_bytes_per_second;

use super::step::{Step, is_bandwidth, steps_between};
use super::{HOLDS_BACK_FACTOR, Role, called, network, remedy, role};
use crate::record::{PhaseRecord, Record, StackRow};
use crate::words::{clean, factor, rate};

/// Layers of the object store: in this process, and behind the network.
const IN_PROCESS: &str = "object";
const OVER_NETWORK: &str = "engine";

/// Loads of the drive that a load of the store is held against.
const DRIVE_LOADS: &[(&str, &str)] = &[
    ("4 KiB KV put", "4 KiB random write"),
    ("4 KiB KV get", "4 KiB random read"),
    ("1 MiB array write", "1 MiB sequential write"),
    ("1 MiB array read", "1 MiB sequential read"),
];

/// Findings on the rate of the store, and on its losses over the network.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Outlook {
    /// One sentence a load of the store.
    pub(super) sentences: Vec<String>,
    /// Remedies to try, where the way over the network loses much.
    pub(super) try_lines: Vec<String>,
}

type Measured<'a> = (&'a StackRow, &'a PhaseRecord);

fn measured<'a>(record: &'a Record, layer: &str, load: &str) -> Option<Measured<'a>> {
    let rows = record.stack.iter().flat_map(|stack| &stack.rows);
    let row = rows.into_iter().find(|row| row.layer == layer && row.load == load)?;
    Some((row, record.phases.get(row.phase?)?))
}

/// The store over the network against the store in process, load by load.
pub(super) fn steps(record: &Record) -> Vec<Step> {
    let steps = loads(record).into_iter().filter_map(|load| {
        let below = measured(record, IN_PROCESS, load)?;
        let (row, phase) = measured(record, OVER_NETWORK, load)?;
        steps_between(load, below, (&row.layer, phase))
    });
    steps.collect()
}

/// The loads of the store, each once.
fn loads(record: &Record) -> Vec<&str> {
    let mut loads: Vec<&str> = Vec::new();
    for row in record.stack.iter().flat_map(|stack| &stack.rows) {
        if role(&row.layer) == Role::Store && !loads.contains(&row.load.as_str()) {
            loads.push(&row.load);
        }
    }
    loads
}

/// Findings on the object store of a record.
pub(super) fn outlook(record: &Record) -> Outlook {
    let mut found = Outlook::default();
    let steps = steps(record);
    for load in loads(record) {
        let rows = [IN_PROCESS, OVER_NETWORK].map(|layer| measured(record, layer, load));
        if rows.iter().all(Option::is_none) {
            continue;
        }
        let step = steps.iter().find(|step| step.load == load);
        found.sentences.push(sentence(record, load, rows, step));
        if let Some(step) = step.filter(|step| step.loss() >= HOLDS_BACK_FACTOR) {
            let lines = remedy::lines(step, &record.environment).into_iter().take(1);
            found.try_lines.extend(lines.filter(|line| !found.try_lines.contains(line)).collect::<Vec<_>>());
        }
    }
    found
}

fn speed(phase: &PhaseRecord) -> String {
    let total = &phase.summary.total;
    if is_bandwidth(&phase.plan) {
        human_bytes_per_second(total.bytes_per_second)
    } else {
        rate(total.operations_per_second)
    }
}

/// `4 KiB KV put: in process 412k/s, over the network 61.0k/s, 6.75 times less (sure); empty RPCs at 95.0k/s; the drive 20.0k/s`.
fn sentence(record: &Record, load: &str, rows: [Option<Measured<'_>>; 2], step: Option<&Step>) -> String {
    let places = ["in process", "over the network"];
    let told = rows.into_iter().zip(places).filter_map(|(row, place)| Some((row?, place)));
    let mut parts: Vec<String> =
        told.map(|((_, phase), place)| format!("{place} {}", speed(phase))).collect();
    if let (Some(step), Some(last)) = (step, parts.last_mut()) {
        let (times, words) = if step.loss() >= 1.0 { (step.loss(), "less") } else { (step.ratio, "more") };
        *last += &format!(", {} times {words} ({})", factor(times), step.confidence.words());
    }
    let mut sentence = format!("{}: {}", clean(load), parts.join(", "));
    let is_large = rows.into_iter().flatten().any(|(_, phase)| is_bandwidth(&phase.plan));
    let drive_load = DRIVE_LOADS.iter().find(|(own, _)| *own == load).map(|(_, drive)| *drive);
    let link_load = if is_large { drive_load } else { Some(network::EMPTY_LOAD) };
    if let Some((_, phase)) = link_load.and_then(|load| measured(record, "network", load)) {
        let what = if is_large { "bulk transfers" } else { "empty RPCs" };
        sentence += &format!("; {what} at {}", speed(phase));
    }
    if let Some((_, phase)) = drive_load.and_then(|load| measured(record, "media", load)) {
        sentence += &format!("; {} {}", called("media"), speed(phase));
    }
    sentence
}
