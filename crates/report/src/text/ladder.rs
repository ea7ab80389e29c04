//! A ladder as one table, and where its climb stops paying, in words.

use statistics::{Knee, LadderShape};
use units::human::human_bytes;
use units::{human_bytes_per_second, human_ns, percent};
use workload::plan::PhasePlan;
use workload::spec::LadderDimension;

use super::{doubts_of, notes_of};
use crate::page::{Cell, Page, Style, Table};
use crate::record::{ArrivalOutcome, LadderRecord, PhaseRecord, Record};
use crate::words::{bounded, clean, counted, cpu, is_steady, percentile_words, rate, spread};

/// Deviation from Little's law that is worth a sentence.
const LITTLE_SPREAD_MAX: f64 = 0.05;
/// Share of an asked rate that must have completed for it to count as served in full.
const COMPLETED_SHARE_MIN: f64 = 0.995;
/// Share of the highest bandwidth that counts as all of it; the same as for the knee.
const BANDWIDTH_SHARE_MIN: f64 = 0.95;

/// The rungs that the record really has.
fn rungs<'a>(record: &'a Record, ladder: &LadderRecord) -> Vec<&'a PhaseRecord> {
    ladder.phases.iter().filter_map(|&at| record.phases.get(at)).collect()
}

pub(super) fn block(page: &mut Page, record: &Record, ladder: &LadderRecord) {
    let rungs = rungs(record, ladder);
    let Some(first) = rungs.first() else { return };
    page.line(
        &format!("{} over {}", clean(first.plan.name()), dimension(ladder, &first.plan)),
        Style::Strong,
    );
    page.field("what", &what(first, ladder.dimension), Style::Plain);
    page.blank();
    table(page, &rungs, ladder);
    page.blank();
    if let Some((label, text)) = outcome(&rungs, ladder) {
        page.field(label, &text, Style::Strong);
    }
    if let Some(knee) = ladder.knee.as_ref().filter(|knee| has_place(knee)) {
        page.field("", &saturation_sentence(knee), Style::Plain);
    }
    if let Some(text) = ladder.knee.as_ref().and_then(|knee| little(knee, ladder.dimension)) {
        page.field("", &text, Style::Plain);
    }
    let labelled: Vec<_> = rungs.iter().map(|rung| (label(&rung.plan, ladder.dimension), *rung)).collect();
    for (label, rung) in &labelled {
        crate::profile::titled(page, label, rung);
    }
    notes_of(page, &labelled);
    doubts_of(page, &labelled);
}

fn dimension(ladder: &LadderRecord, plan: &PhasePlan) -> String {
    let terms = plan.terms();
    match ladder.dimension {
        Some(LadderDimension::Depth) => terms.depth.to_owned(),
        Some(LadderDimension::Threads) => "threads".to_owned(),
        Some(LadderDimension::BlockSize) => terms.size.to_owned(),
        Some(LadderDimension::Rate) => "rate".to_owned(),
        None => format!("threads and {}, to saturation", terms.depth),
    }
}

fn what(phase: &PhaseRecord, dimension: Option<LadderDimension>) -> String {
    let plan = &phase.plan;
    let threads = counted(plan.load().threads.into(), "thread");
    let mut words = vec![plan.layer().to_owned(), plan.operation_words()];
    match dimension {
        Some(LadderDimension::Depth) => words.push(threads),
        Some(LadderDimension::Threads) => words.push(plan.depth_words()),
        Some(LadderDimension::BlockSize | LadderDimension::Rate) => {
            words.push(plan.concurrency());
        }
        None => {}
    }
    if dimension == Some(LadderDimension::BlockSize) {
        words[1] = words[1].replacen(&format!("{} ", plan.operation_size()), "", 1);
    }
    words.extend(plan.manner().into_iter().filter(|word| !word.starts_with("open loop")));
    words.extend(plan.load().limit.time_ns.map(|ns| format!("{} each", human_ns(ns as f64))));
    words.join(", ")
}

/// The value of a rung.
fn value(plan: &PhasePlan, dimension: Option<LadderDimension>) -> String {
    match dimension {
        Some(LadderDimension::Depth) => plan.load().depth.to_string(),
        Some(LadderDimension::Threads) => plan.load().threads.to_string(),
        Some(LadderDimension::BlockSize) => plan.operation_size(),
        Some(LadderDimension::Rate) => {
            plan.load().arrivals.map_or_else(|| "-".to_owned(), |arrivals| rate(arrivals.rate_per_second))
        }
        None => format!("{} x {}", plan.load().threads, plan.load().depth),
    }
}

/// How a rung is called in a sentence: `depth 16`.
fn label(plan: &PhasePlan, dimension: Option<LadderDimension>) -> String {
    let value = value(plan, dimension);
    match dimension {
        Some(LadderDimension::Depth) => plan.depth_words(),
        Some(LadderDimension::Threads) => counted(plan.load().threads.into(), "thread"),
        Some(LadderDimension::BlockSize | LadderDimension::Rate) => value,
        None => plan.concurrency(),
    }
}

fn table(page: &mut Page, rungs: &[&PhaseRecord], ladder: &LadderRecord) {
    let Some(terms) = rungs.first().map(|rung| rung.plan.terms()) else { return };
    let header = match ladder.dimension {
        Some(LadderDimension::Depth) => terms.depth_column,
        Some(LadderDimension::Threads) => "threads",
        Some(LadderDimension::BlockSize) => terms.size_column,
        Some(LadderDimension::Rate) => "requested",
        None => "t x q",
    };
    let mut table = Table::of_figures(&[
        header,
        "rate",
        "±95%",
        "bandwidth",
        "mean",
        "p50",
        "p99",
        "CPU/op",
        "steady",
        "",
    ]);
    let knee = ladder.knee.as_ref().filter(|knee| has_place(knee)).map(|knee| knee.index);
    for (at, rung) in rungs.iter().enumerate() {
        let total = &rung.summary.total;
        let latency = total.latency.as_ref();
        let style = if knee == Some(at) { Style::Strong } else { Style::Plain };
        table.row(vec![
            Cell::styled(value(&rung.plan, ladder.dimension), style),
            Cell::styled(rate(total.operations_per_second), style),
            spread(total.rate.as_ref()).into(),
            if rung.plan.operation_bytes_max() == 0 {
                Cell::styled("-", Style::Faint)
            } else {
                Cell::styled(human_bytes_per_second(total.bytes_per_second), style)
            },
            latency.map_or_else(|| "-".to_owned(), |of| bounded(of.mean_ns, of.is_mean_lower_bound())).into(),
            percentile_words(latency, 50.0, latency.map(|latency| latency.p50_ns)).into(),
            percentile_words(latency, 99.0, latency.and_then(|latency| latency.p99_ns)).into(),
            cpu(rung).into(),
            if is_steady(rung) { "yes" } else { "no" }.into(),
            Cell::styled(remark(ladder, at, knee == Some(at)), Style::Strong),
        ]);
    }
    page.table(&table);
}

/// Remark on a rung: that it is the knee, that it was measured between two others to find it.
fn remark(ladder: &LadderRecord, at: usize, is_knee: bool) -> &'static str {
    let is_refined = ladder.phases.get(at).is_some_and(|phase| ladder.refined.contains(phase));
    match (is_knee, is_refined) {
        (true, true) => "knee, between",
        (true, false) => "knee",
        (false, true) => "between",
        (false, false) => "",
    }
}

/// Whether the climb ends at a rung of its own.
fn has_place(knee: &Knee) -> bool {
    matches!(knee.shape, LadderShape::Plateau | LadderShape::FallsAfterPeak)
}

/// Label and sentence of what the ladder shows.
fn outcome(rungs: &[&PhaseRecord], ladder: &LadderRecord) -> Option<(&'static str, String)> {
    match ladder.dimension {
        Some(LadderDimension::BlockSize) => bandwidth_sentence(rungs).map(|text| ("sizes", text)),
        Some(LadderDimension::Rate) => served_sentence(rungs).map(|text| ("served", text)),
        _ => {
            let knee = ladder.knee.as_ref()?;
            let place = label(&rungs.get(knee.index)?.plan, ladder.dimension);
            Some(("knee", knee_sentence(knee, &place, rungs)))
        }
    }
}

/// Where the knee is and why, by Little's law.
fn knee_sentence(knee: &Knee, place: &str, rungs: &[&PhaseRecord]) -> String {
    let at =
        format!("{place}: {}, mean {}", rate(knee.operations_per_second), human_ns(knee.latency_ns_mean));
    let last = rungs.iter().filter_map(|rung| little_words(rung)).max_by(|a, b| a.0.total_cmp(&b.0));
    match knee.shape {
        LadderShape::SinglePoint => {
            format!("{at}; only one usable rung, so no knee can be found: climb further")
        }
        LadderShape::StillClimbing => format!(
            "none yet: the rate still grows at the last rung ({at}): climb further; without queueing, {:.0} operations in \
             flight would reach it",
            knee.concurrency_saturation.ceil()
        ),
        LadderShape::FlatFromStart => format!(
            "{at}: the first rung already reaches {} of the highest rate; more operations in flight only wait longer{}",
            percent(knee.operations_per_second / knee.operations_per_second_max),
            beyond(knee, last)
        ),
        LadderShape::Plateau => {
            format!(
                "{at}; beyond it, latency grows in proportion and the rate does not grow{}",
                beyond(knee, last)
            )
        }
        LadderShape::FallsAfterPeak => format!(
            "{at}; more load reduces the rate: the last rung reaches {} of the highest rate{}",
            percent(knee.last_share_of_max),
            beyond(knee, last)
        ),
    }
}

/// Where the two bounds of a closed queue cross, beside the rung that was measured.
fn saturation_sentence(knee: &Knee) -> String {
    format!(
        "without queueing, {:.1} operations in flight would be enough: the highest rate x the lowest mean ({} x {})",
        knee.concurrency_saturation,
        rate(knee.operations_per_second_max),
        human_ns(knee.latency_ns_unloaded)
    )
}

/// Operations in flight of a rung, and Little's law on it.
fn little_words(rung: &PhaseRecord) -> Option<(f64, String)> {
    let in_flight = rung.plan.in_flight();
    let per_second = rung.summary.total.operations_per_second;
    (per_second > 0.0).then(|| {
        let expected = human_ns(in_flight / per_second * 1e9);
        let measured = rung.summary.total.latency.as_ref().map(|latency| human_ns(latency.mean_ns));
        let measured = measured.map_or_else(String::new, |mean| format!(", measured {mean}"));
        (in_flight, format!("N = X R: {in_flight} in flight / {} = {expected}{measured}", rate(per_second)))
    })
}

fn beyond(knee: &Knee, last: Option<(f64, String)>) -> String {
    match last {
        Some((in_flight, words)) if in_flight > knee.concurrency => format!(" ({words})"),
        _ => String::new(),
    }
}

/// Where Little's law does not hold: the tool did not keep the load in flight.
fn little(knee: &Knee, dimension: Option<LadderDimension>) -> Option<String> {
    let worst = &knee.little_worst;
    let climbs = !matches!(dimension, Some(LadderDimension::BlockSize | LadderDimension::Rate));
    (climbs && (worst.ratio - 1.0).abs() > LITTLE_SPREAD_MAX).then(|| {
        format!(
            "at {} requested, {:.1} were in flight on average: the difference is time between operations, in strata \
             itself or in its system calls",
            worst.asked, worst.measured
        )
    })
}

fn bandwidth_sentence(rungs: &[&PhaseRecord]) -> Option<String> {
    let bandwidth = |rung: &PhaseRecord| rung.summary.total.bytes_per_second;
    let best = rungs.iter().max_by(|a, b| bandwidth(a).total_cmp(&bandwidth(b)))?;
    let enough = rungs
        .iter()
        .filter(|rung| bandwidth(rung) >= BANDWIDTH_SHARE_MIN * bandwidth(best))
        .min_by_key(|rung| rung.plan.operation_bytes_max())?;
    Some(format!(
        "the highest bandwidth is {} with {}; {} and more reach {} of it",
        human_bytes_per_second(bandwidth(best)),
        human_bytes(best.plan.operation_bytes_max() as f64),
        human_bytes(enough.plan.operation_bytes_max() as f64),
        percent(bandwidth(enough) / bandwidth(best))
    ))
}

/// Up to where the asked rates were served: the target keeps up with them, and what waits does not grow.
fn served_sentence(rungs: &[&PhaseRecord]) -> Option<String> {
    let mut outcomes: Vec<_> = rungs
        .iter()
        .filter_map(|rung| Some((rung.arrivals?, *rung, rung.summary.total.latency.as_ref()?)))
        .collect();
    outcomes.sort_by(|a, b| a.0.asked_per_second.total_cmp(&b.0.asked_per_second));
    let missed = outcomes.iter().position(|(arrivals, rung, _)| !is_served(arrivals, rung));
    let full = outcomes[..missed.unwrap_or(outcomes.len())].last().map(|(arrivals, _, latency)| {
        let told = latency.p99_ns.map(|ns| bounded(ns as f64, latency.is_lower_bound(99.0)));
        let p99 = told.map_or_else(String::new, |ns| format!(" (p99 {ns})"));
        format!("all rates up to {}{p99}", rate(arrivals.asked_per_second))
    });
    let short = missed.map(|at| {
        let (arrivals, rung, _) = &outcomes[at];
        let (asked, completed) = (arrivals.asked_per_second, completed_per_second(arrivals, rung));
        let waits = if arrivals.backlog_grows { ", and the queue grows" } else { "" };
        format!(
            "of {} requested, only {} completed ({}){waits}",
            rate(asked),
            rate(completed),
            percent(completed / asked)
        )
    });
    match (full, short) {
        (Some(full), Some(short)) => Some(format!("{full}; {short}")),
        (full, short) => full.or(short),
    }
}

/// Operations that completed a second: of what was started, as no more can have.
fn completed_per_second(arrivals: &ArrivalOutcome, rung: &PhaseRecord) -> f64 {
    let completed = arrivals.completed_per_second.unwrap_or(rung.summary.total.operations_per_second);
    completed.min(arrivals.started_per_second)
}

/// Whether a rung served its rate. Where it is not known whether what waits grew, as much as was asked for must have completed.
fn is_served(arrivals: &ArrivalOutcome, rung: &PhaseRecord) -> bool {
    let total = &rung.summary.total;
    let completed = total.rate.as_ref().map_or(total.operations_per_second, |rate| rate.high);
    let is_known = arrivals.backlog_growth_per_second.is_some();
    arrivals.is_served() && (is_known || completed >= COMPLETED_SHARE_MIN * arrivals.asked_per_second)
}
