//! The object store in process, and what the way over the network takes of it.

use report::record::{PhaseRecord, Record, StackRow};
use report::stack::{HOLDS_BACK_FACTOR, Outlook, Step, called, is_bandwidth, speed, steps_between};
use report::words::factor;
use units::clean;

/// Layers of the object store: in this process, and behind the network.
const IN_PROCESS: &str = "object";
const OVER_NETWORK: &str = "engine";
/// The same together.
pub(super) const ROWS: &[&str] = &[IN_PROCESS, OVER_NETWORK];
/// The row of what it goes over, and its load that moves nothing.
const LINK: &str = "network";
const EMPTY_LOAD: &str = "empty RPC";
/// Advice where the way over the network loses much.
const MORE_IN_FLIGHT: &str = "more in flight for the object store over the network (-q, -t): its store has more to give in process; or run \
                              where the data are";

/// Loads of the drive that a load of the store is held against.
const DRIVE_LOADS: &[(&str, &str)] = &[
    ("4 KiB KV put", "4 KiB random write"),
    ("4 KiB KV get", "4 KiB random read"),
    ("1 MiB array write", "1 MiB sequential write"),
    ("1 MiB array read", "1 MiB sequential read"),
];

type Measured<'a> = (&'a StackRow, &'a PhaseRecord);

fn measured<'a>(record: &'a Record, layer: &str, load: &str) -> Option<Measured<'a>> {
    let rows = record.stack.iter().flat_map(|stack| &stack.rows);
    let row = rows.into_iter().find(|row| row.layer == layer && row.load == load)?;
    Some((row, record.phases.get(row.phase?)?))
}

/// The store over the network against the store in process, load by load.
fn steps(record: &Record) -> Vec<Step> {
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
        if ROWS.contains(&row.layer.as_str()) && !loads.contains(&row.load.as_str()) {
            loads.push(&row.load);
        }
    }
    loads
}

/// Findings on the object store of a record.
pub(super) fn outlook(record: &Record) -> Outlook {
    let mut found = Outlook { label: "objects", steps: steps(record), ..Outlook::default() };
    for load in loads(record) {
        let rows = [IN_PROCESS, OVER_NETWORK].map(|layer| measured(record, layer, load));
        if rows.iter().all(Option::is_none) {
            continue;
        }
        let step = found.steps.iter().find(|step| step.load == load);
        found.sentences.push(sentence(record, load, rows, step));
        if step.is_some_and(|step| step.loss() >= HOLDS_BACK_FACTOR) {
            found.try_lines = vec![MORE_IN_FLIGHT.to_owned()];
        }
    }
    found
}

/// `4 KiB KV put: in process 412k/s, over the network 61.0k/s, 6.75 times less (sure); empty RPCs at 95.0k/s; the drive 20.0k/s`.
fn sentence(record: &Record, load: &str, rows: [Option<Measured<'_>>; 2], step: Option<&Step>) -> String {
    let speed = |phase: &PhaseRecord| speed(phase, is_bandwidth(&phase.plan));
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
    let link_load = if is_large { drive_load } else { Some(EMPTY_LOAD) };
    if let Some((_, phase)) = link_load.and_then(|load| measured(record, LINK, load)) {
        let what = if is_large { "bulk transfers" } else { "empty RPCs" };
        sentence += &format!("; {what} at {}", speed(phase));
    }
    if let Some((_, phase)) = drive_load.and_then(|load| measured(record, "media", load)) {
        sentence += &format!("; {} {}", called("media"), speed(phase));
    }
    sentence
}
