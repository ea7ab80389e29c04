//! The network against the storage that an engine would serve over it.

use report::record::{PhaseRecord, Record, StackRow};
use report::stack::{FASTER_FACTOR, Outlook, Step, called, is_bandwidth, is_storage, speed, steps_between};
use report::words::factor;
use units::clean;

use crate::NetworkPlan;

/// The row of the network.
pub(super) const ROW: &str = "network";
/// Storage that an engine would serve, the nearest to the drive first.
const STORAGE: &[&str] = &["media", "file"];

/// Whether a phase of the network goes over no link.
fn is_loopback(phase: &PhaseRecord) -> bool {
    let plan: Option<&NetworkPlan> = phase.plan.of();
    plan.is_some_and(|plan| plan.is_loopback() || plan.provider == "ofi+shm")
}

/// Whether the processor was used up. Time on it says nothing here: who polls is always there.
fn is_cpu_bound(phase: &PhaseRecord) -> bool {
    phase.doubts.iter().any(|doubt| doubt.kind == "cpu_bound")
}

/// The line to try where this phase gives less than the storage behind it.
fn remedy(phase: &PhaseRecord) -> &'static str {
    match (is_loopback(phase), is_cpu_bound(phase)) {
        (true, _) => {
            "loopback is the kernel's memory copy and no link: measure the one that clients would use (--engine HOST)"
        }
        (false, true) => {
            "the processor is used up before the link: more threads and connections, a fabric (--provider ofi+verbs), or \
             larger payloads"
        }
        (false, false) => "more in flight on the network, then a faster link or several of them",
    }
}

fn measured<'a>(record: &'a Record, row: &'a StackRow) -> Option<(&'a StackRow, &'a PhaseRecord)> {
    Some((row, record.phases.get(row.phase?)?))
}

/// Compares every load of the storage with the network at the same load; small blocks with empty RPCs, which any of them would need.
pub(super) fn outlook(record: &Record) -> Outlook {
    let mut found = Outlook { label: ROW, ..Outlook::default() };
    let Some(stack) = &record.stack else { return found };
    let rows: Vec<_> = stack.rows.iter().filter_map(|row| measured(record, row)).collect();
    let links: Vec<_> = rows.iter().filter(|(row, _)| row.layer == ROW).collect();
    let mut loads: Vec<&str> = Vec::new();
    for (row, _) in rows.iter().filter(|(row, _)| is_storage(row)) {
        if !loads.contains(&row.load.as_str()) {
            loads.push(&row.load);
        }
    }
    for load in loads {
        let storage = STORAGE
            .iter()
            .find_map(|layer| rows.iter().find(|(row, _)| row.load == load && row.layer == *layer));
        let Some(storage) = storage else { continue };
        let is_large = is_bandwidth(&storage.1.plan);
        let link = links.iter().find(|(row, phase)| {
            if is_large { row.load == load } else { phase.plan.operation_bytes_max() == 0 }
        });
        let Some(link) = link else { continue };
        let Some(step) = steps_between(load, *storage, (&link.0.layer, link.1)) else { continue };
        found.sentences.push(sentence(&step, storage, link.1));
        if step.ratio < 1.0 / FASTER_FACTOR && found.try_lines.is_empty() {
            found.try_lines.push(remedy(link.1).to_owned());
        }
    }
    found
}

/// `1 MiB sequential read: the network gives 1.10 GiB/s, the drive 3.20 GiB/s: behind an engine the network would hold it back (sure)`.
fn sentence(step: &Step, storage: &(&StackRow, &PhaseRecord), link: &PhaseRecord) -> String {
    let in_bytes = is_bandwidth(&storage.1.plan);
    let network = if is_loopback(link) { "loopback (a copy, no link)" } else { "the network" };
    let what = if in_bytes { "gives" } else { "carries empty RPCs at" };
    let below = called(&storage.0.layer);
    let outcome = match step.ratio {
        ratio if ratio < 1.0 / FASTER_FACTOR => {
            let who = if is_loopback(link) { "even that copy" } else { "the network" };
            format!("behind an engine {who} would hold it back, {} times", factor(1.0 / ratio))
        }
        ratio if ratio > FASTER_FACTOR => {
            let who = if is_loopback(link) { "that copy" } else { "the network" };
            format!("behind an engine it stays the limit, {who} has {} times as much", factor(ratio))
        }
        _ => "they are about equal".to_owned(),
    };
    format!(
        "{}: {network} {what} {}, {below} {}: {outcome} ({})",
        clean(&step.load),
        speed(link, in_bytes),
        speed(storage.1, in_bytes),
        step.confidence.words()
    )
}
