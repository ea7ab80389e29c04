//! One phase as a block of text, and as one line.

use std::collections::BTreeMap;

use host::Environment;
use statistics::{ClassSummary, Finish, LatencySummary, SteadyReason};
use units::human::human_bytes;
use units::{human_bytes_per_second, human_ns, percent};

use super::{doubt_lines, on_targets};
use crate::page::{Cell, Page, Style, Table};
use crate::record::{ArrivalOutcome, HostRecord, PhaseRecord};
use crate::shares;
use crate::view;
use crate::words::{bounded, clean, count, counted, is_steady, load, processors, rate, spread};

/// Share of the phase by which workers may end apart before it is worth a line.
const FINISH_SPREAD_MAX: f64 = 0.01;
/// Time after the window from which on waiting is worth a line, nanoseconds.
const DRAIN_NS_MIN: u64 = 100_000_000;
/// Deviation of the operations in flight from those asked for that is worth a line.
const CONCURRENCY_SPREAD_MAX: f64 = 0.05;

/// Columns of the table of classes, up to the percentiles.
const COLUMNS: &[&str] = &["class", "rate", "±95%", "bandwidth", "mean"];

/// A percentile of a table: its name, its percent, and its value.
pub(crate) type Percentile = (&'static str, f64, fn(&LatencySummary) -> Option<u64>);

pub(crate) const PERCENTILES: &[Percentile] = &[
    ("p50", 50.0, |latency| Some(latency.p50_ns)),
    ("p90", 90.0, |latency| latency.p90_ns),
    ("p99", 99.0, |latency| latency.p99_ns),
    ("p99.9", 99.9, |latency| latency.p99_9_ns),
    ("p99.99", 99.99, |latency| latency.p99_99_ns),
    ("max", 100.0, |latency| Some(latency.max_ns)),
];

/// Width from which on a page has room for all percentiles.
const ALL_PERCENTILES_WIDTH_MIN: usize = 100;

/// Phases beside which one ran that are named; of more, the rest is counted.
const BESIDE_SHOWN: usize = 3;

/// `beside` are the phases that ran at the same time.
pub(super) fn block(
    page: &mut Page,
    phase: &PhaseRecord,
    beside: &[&PhaseRecord],
    environment: &Environment,
    with_targets: bool,
    hosts: &[HostRecord],
) {
    let plan = &phase.plan;
    let view = view::of(plan.layer());
    page.line(&clean(plan.name()), Style::Strong);
    page.field(
        "what",
        &format!("{}, {}, {}", plan.layer(), plan.operation_words(), load(plan)),
        Style::Plain,
    );
    if !beside.is_empty() {
        page.field("beside", &format!("{}, at the same time", names(beside)), Style::Plain);
    }
    if with_targets {
        on_targets(page, plan.targets(), environment);
    }
    view.places(page, phase);
    page.blank();
    classes(page, phase);
    page.blank();
    super::split::parts(page, phase);
    view.moved(page, phase);
    page.field("precision", &sure(phase), Style::Plain);
    page.field("cost", &cost(phase), Style::Plain);
    if let Some(text) = in_flight(phase) {
        page.field("in flight", &text, Style::Plain);
    }
    if let Some(text) = drained(phase) {
        page.field("drained", &text, Style::Plain);
    }
    finishes(page, phase);
    if let Some(arrivals) = &phase.arrivals {
        page.field("arrivals", &arrival_words(arrivals), Style::Plain);
    }
    errors(page, phase);
    shares::hosts(page, phase, hosts);
    view.detail(page, phase);
    for (class, words) in view.spent(phase) {
        page.field("spent", &format!("{}: {words}", clean(&class.class)), Style::Plain);
    }
    crate::profile::block(page, phase);
    for note in &phase.notes {
        page.field("note", &clean(note), Style::Plain);
    }
    for doubt in &phase.doubts {
        doubt_lines(page, &doubt.kind, &doubt.detail, &doubt.remedy);
    }
    // What a worker failed with stands above already.
    let is_told = |failure: &&String| {
        let told = phase.samples.workers.iter().filter_map(|worker| worker.failure.as_ref());
        // Of hosts the phase says whose failure it is, as the line above does.
        let is_of_hosts = plan.load().place.is_some();
        told.into_iter().any(|told| told == *failure || (is_of_hosts && failure.ends_with(told.as_str())))
    };
    let failure =
        phase.failure.as_ref().or(phase.samples.interrupted.as_ref()).filter(|failure| !is_told(failure));
    if let Some(failure) = failure {
        page.field("failed", &clean(failure), Style::Failure);
    }
}

/// Line on the data stored before the phases that need it: it is not what was asked for.
pub(super) fn filled(page: &mut Page, phase: &PhaseRecord) {
    let done = &phase.summary.last_done;
    let bytes = if done.bytes == 0 {
        String::new()
    } else {
        format!(", {} ({})", human_bytes(done.bytes as f64), human_bytes_per_second(done.bytes_per_second))
    };
    let name = phase.plan.operation_name();
    let text = format!(
        "{name}: {} in {}{bytes}",
        counted(done.operations, "operation"),
        human_ns(done.elapsed_ns as f64)
    );
    page.field("filled", &text, Style::Plain);
}

/// `reads, writes`, `a, b, c and 5 more`.
fn names(phases: &[&PhaseRecord]) -> String {
    let shown: Vec<_> = phases.iter().take(BESIDE_SHOWN).map(|phase| clean(phase.plan.name())).collect();
    let more = match phases.len() - shown.len() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("{}{more}", shown.join(", "))
}

fn classes(page: &mut Page, phase: &PhaseRecord) {
    let summary = &phase.summary;
    let used: Vec<_> = summary.classes.iter().filter(|class| class.operations + class.errors > 0).collect();
    let shown = percentiles(&summary.total, page.width());
    let headers = COLUMNS.iter().copied().chain(shown.iter().map(|(name, ..)| *name));
    let mut table = Table::named(headers.map(str::to_owned).collect());
    for class in &used {
        table.row(class_row(class, &shown));
    }
    // One class is all there is: its row is the total.
    if used.len() != 1 {
        table.row(class_row(&summary.total, &shown));
    }
    page.table(&table);
}

/// The percentiles that are shown: p99.99 where it has operations enough, in place of p90 where there is no room for both.
fn percentiles(total: &ClassSummary, width: usize) -> Vec<Percentile> {
    let has_tail = has_tail(total);
    let is_shown = |(_, percent, _): &&Percentile| match *percent {
        99.99 => has_tail,
        90.0 => !has_tail || width >= ALL_PERCENTILES_WIDTH_MIN,
        _ => true,
    };
    PERCENTILES.iter().filter(is_shown).copied().collect()
}

/// Whether there are operations enough for p99.99.
pub(crate) fn has_tail(total: &ClassSummary) -> bool {
    total.latency.as_ref().is_some_and(|latency| latency.p99_99_ns.is_some())
}

fn class_row(class: &ClassSummary, shown: &[Percentile]) -> Vec<Cell> {
    let dash = || Cell::styled("-", Style::Faint);
    let mut cells = vec![
        clean(&class.class).into_owned().into(),
        Cell::styled(rate(class.operations_per_second), Style::Strong),
        spread(class.rate.as_ref()).into(),
        if class.bytes == 0 {
            dash()
        } else {
            Cell::styled(human_bytes_per_second(class.bytes_per_second), Style::Strong)
        },
    ];
    match &class.latency {
        None => cells.extend((0..=shown.len()).map(|_| dash())),
        Some(latency) => {
            cells.push(bounded(latency.mean_ns, latency.is_mean_lower_bound()).into());
            let figure = |(_, percent, of): &Percentile| {
                of(latency)
                    .map_or_else(dash, |ns| bounded(ns as f64, latency.is_lower_bound(*percent)).into())
            };
            cells.extend(shown.iter().map(figure));
        }
    }
    cells
}

/// How long the phase waited for what began in its window, where that is worth a line.
fn drained(phase: &PhaseRecord) -> Option<String> {
    let summary = &phase.summary;
    (summary.drain_ns > DRAIN_NS_MIN).then(|| {
        format!(
            "waited {} after the window for operations in flight: {} counted in the latencies but in no rate",
            human_ns(summary.drain_ns as f64),
            counted(summary.drained_operations + summary.unfinished_operations, "operation")
        )
    })
}

/// How sure the rate is and what was cut.
fn sure(phase: &PhaseRecord) -> String {
    let summary = &phase.summary;
    let intervals = format!(
        "{} of {}",
        counted(phase.samples.series.points.len() as u64, "interval"),
        human_ns(phase.samples.series.interval_ns as f64)
    );
    let interval = match &summary.total.rate {
        Some(estimate) if estimate.low <= 0.0 => format!(
            "the rate varies too much for a confidence interval ({intervals}, effective sample size {:.1})",
            estimate.effective_samples
        ),
        Some(estimate) => format!(
            "95 % CI {} to {} ({intervals}, effective sample size {:.0})",
            rate(estimate.low),
            rate(estimate.high),
            estimate.effective_samples
        ),
        None if summary.total.window_operations == 0 => format!("no operation completed ({intervals})"),
        None => format!("no confidence interval ({intervals}: too few)"),
    };
    format!("{interval}; {}", steadiness(phase))
}

/// Whether the rate is steady, and which part of the phase the figures are of.
fn steadiness(phase: &PhaseRecord) -> String {
    let summary = &phase.summary;
    if let (Some(drop), Some(at)) = (&summary.steady.drop, &summary.dropped) {
        let (before, after) = (drop.operations_per_second_before, drop.operations_per_second_after);
        let at = human_ns(at.elapsed_ns as f64);
        return format!(
            "{} before {at}, {} after: the results include both parts",
            rate(before),
            rate(after)
        );
    }
    let start = human_ns(summary.window_start_ns as f64);
    // Of a start that was faster than what follows it, the rate is told.
    let (done, _) = phase.samples.done_by(None, summary.window_start_ns);
    let cut = done * 1e9 / summary.window_start_ns.max(1) as f64;
    let warm_up = if cut > summary.total.operations_per_second {
        format!("the faster start ({}) is excluded", rate(cut))
    } else {
        "the warm-up is excluded".to_owned()
    };
    match (is_steady(phase), summary.window_start_ns) {
        _ if summary.steady.reason == SteadyReason::BacklogGrows => "not steady: the queue grows".to_owned(),
        _ if summary.steady.reason == SteadyReason::HangingGrows => {
            "not steady: more and more operations hang".to_owned()
        }
        (true, 0) => "steady from the start".to_owned(),
        (true, _) => format!("steady after {start}, {warm_up}"),
        (false, 0) => "no steady state found; the whole run is used".to_owned(),
        (false, _) => format!("no steady state found; the first {start} is excluded"),
    }
}

/// Processor time of an operation, and strata's part in it.
fn cost(phase: &PhaseRecord) -> String {
    let summary = &phase.summary;
    let (Some(cpu_ns), Some(tool_ns)) = (summary.cpu_ns_per_operation, summary.tool_ns_per_operation) else {
        // A window of no length, because all that was begun hangs, has no processors to tell of.
        return match summary.cpus_used {
            0.0 => "no operation completed".to_owned(),
            used => format!("{} used, no operation completed", processors(used)),
        };
    };
    let workers = &phase.samples.workers;
    let per_operation = |total: u64| total as f64 / summary.last_done.operations.max(1) as f64;
    let parts = [
        ("filling", per_operation(workers.iter().map(|worker| worker.fill_ns).sum())),
        ("verifying", per_operation(workers.iter().map(|worker| worker.verify_ns).sum())),
    ];
    let parts: Vec<_> = parts
        .iter()
        .filter(|(_, ns)| *ns >= 0.5)
        .map(|(what, ns)| format!("{} {what} buffers", human_ns(*ns)))
        .collect();
    let parts = if parts.is_empty() { String::new() } else { format!(" ({})", parts.join(", ")) };
    format!(
        "{} CPU per operation, {} used; strata itself {} per operation{parts}",
        human_ns(cpu_ns),
        processors(summary.cpus_used),
        human_ns(tool_ns)
    )
}

/// Operations in flight, where they are not what was asked for.
fn in_flight(phase: &PhaseRecord) -> Option<String> {
    let load = &phase.plan.load();
    let asked = phase.plan.in_flight();
    let measured = phase.summary.concurrency;
    let apart = (measured / asked - 1.0).abs() > CONCURRENCY_SPREAD_MAX;
    (load.arrivals.is_none() && asked > 1.0 && measured > 0.0 && apart)
        .then(|| format!("{measured:.1} on average of {asked} requested, from submission to completion"))
}

fn finishes(page: &mut Page, phase: &PhaseRecord) {
    let summary = &phase.summary;
    let Some(first) = &summary.first_done else { return };
    let last = &summary.last_done;
    let apart = last.elapsed_ns.saturating_sub(first.elapsed_ns);
    if apart as f64 <= FINISH_SPREAD_MAX * last.elapsed_ns as f64 {
        return;
    }
    let mut parts = vec![finish("first done", first), finish("last done", last)];
    parts.extend(summary.stonewalled.as_ref().map(|stonewall| finish("stonewall", stonewall)));
    page.field("workers", &parts.join("; "), Style::Plain);
}

fn finish(label: &str, finish: &Finish) -> String {
    let bandwidth = if finish.bytes == 0 {
        String::new()
    } else {
        format!(", {}", human_bytes_per_second(finish.bytes_per_second))
    };
    format!(
        "{label} at {}: {}{bandwidth}",
        human_ns(finish.elapsed_ns as f64),
        rate(finish.operations_per_second)
    )
}

fn arrival_words(arrivals: &ArrivalOutcome) -> String {
    let share = arrivals.started_per_second / arrivals.asked_per_second;
    let unserved = match arrivals.unserved_operations {
        0 => "none missed".to_owned(),
        left => format!("{} were due but never issued", count(left)),
    };
    let completed = match (arrivals.completed_per_second, arrivals.backlog_growth_per_second) {
        (Some(completed), Some(growth)) if arrivals.backlog_grows => {
            format!(", {} completed: the queue grows by {}", rate(completed), rate(growth))
        }
        _ => String::new(),
    };
    format!(
        "{} requested, {} started ({}), {unserved}{completed}; latency counts from the intended start",
        rate(arrivals.asked_per_second),
        rate(arrivals.started_per_second),
        percent(share)
    )
}

/// Failed operations of all workers, by class and cause.
fn errors(page: &mut Page, phase: &PhaseRecord) {
    let mut causes: BTreeMap<(&str, &str, Option<i32>), (u64, u64)> = BTreeMap::new();
    for error in phase.samples.workers.iter().flat_map(|worker| &worker.errors) {
        let entry = causes.entry((&error.class, &error.cause, error.errno)).or_insert((0, u64::MAX));
        entry.0 = entry.0.saturating_add(error.count);
        entry.1 = entry.1.min(error.first_at_ns);
    }
    for ((class, cause, errno), (times, first_at_ns)) in causes {
        let errno = errno.map_or_else(String::new, |errno| format!(" (errno {errno})"));
        let text =
            format!("{} {class}: {cause}{errno}, first after {}", count(times), human_ns(first_at_ns as f64));
        page.field("errors", &clean(&text), Style::Failure);
    }
    for worker in &phase.samples.workers {
        let Some(failure) = &worker.failure else { continue };
        let text = match &worker.origin {
            Some(host) if phase.plan.load().place.is_some() => format!("host {host}: {failure}"),
            _ => format!("worker {}: {failure}", worker.worker),
        };
        page.field("failed", &clean(&text), Style::Failure);
    }
}

/// A finished phase in one line, for the end of a progress line.
#[must_use]
pub fn summary_line(phase: &PhaseRecord) -> String {
    let total = &phase.summary.total;
    let mut parts = vec![format!("{} {}", rate(total.operations_per_second), spread(total.rate.as_ref()))];
    if total.bytes > 0 {
        parts.push(human_bytes_per_second(total.bytes_per_second));
    }
    if let Some(latency) = &total.latency {
        parts.push(format!("p50 {}", human_ns(latency.p50_ns as f64)));
        parts.extend(latency.p99_ns.map(|ns| format!("p99 {}", human_ns(ns as f64))));
    }
    if total.errors > 0 {
        parts.push(counted(total.errors, "error"));
    }
    if !phase.doubts.is_empty() {
        parts.push(counted(phase.doubts.len() as u64, "warning"));
    }
    if let Some(failure) = &phase.failure {
        parts.push(format!("failed: {}", clean(failure)));
    }
    format!("{}: {}", clean(phase.plan.name()), parts.join(", "))
}
