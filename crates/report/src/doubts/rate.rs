//! Doubts about the rate itself: too little of it, or not one rate.

use statistics::{Hanging, IntervalPoint, SteadyReason, find_hanging};
use units::human::human_bytes;
use units::human_ns;

use super::Evidence;
use crate::words::{count, counted, rate};

/// Shortest window that is believed, nanoseconds: write-back, journals and flash garbage collection work in beats of
/// up to a second.
const WINDOW_NS_MIN: u64 = 1_000_000_000;
/// Fewest operations: with fewer than 1000 the 99th percentile rests on fewer than ten of them.
const OPERATIONS_MIN: u64 = 1000;
/// Fewest independent interval rates: with fewer than ten the t quantile is above 2.26 and the estimate of their
/// correlation, on which the confidence interval stands, is itself guesswork.
const EFFECTIVE_SAMPLES_MIN: f64 = 10.0;
/// Share of the phase in which nothing may complete: as much as a change of the rate that matters.
const STALL_SHARE_MAX: f64 = 0.05;
/// Shortest stall that is worth a word: a scheduler makes shorter ones on any busy machine, nanoseconds.
const STALL_NS_MIN: u64 = 100_000_000;
/// Operations that must be missing in a stall: fewer do not come by chance.
const STALL_OPERATIONS_MIN: f64 = 20.0;
/// Part of the mean latency, and of its 99th percentile, that strata's own lateness may be.
const LATENESS_MEAN_SHARE_MAX: f64 = 0.1;
const LATENESS_P99_SHARE_MAX: f64 = 0.25;
/// Lateness below which nothing is said, nanoseconds: what spinning and handing over cost on a quiet machine.
const LATENESS_MEAN_NS_MIN: f64 = 5_000.0;
const LATENESS_P99_NS_MIN: f64 = 50_000.0;
/// Share of the data that may come behind the last interval that was full of it: where a sync follows, the interval in which it began has
/// the rest.
const AFTER_DATA_SHARE_MAX: f64 = 0.02;
/// Part of the memory that the kernel lets written data take before it holds writers back (`vm.dirty_ratio` as it is by default).
const DIRTY_SHARE_MAX: f64 = 0.2;
/// Share of the asked rate that may be missing.
const UNSERVED_SHARE_MAX: f64 = 0.005;

/// Time of a worker per operation from which on 2 us of it are at most 5 %, nanoseconds.
const SHORT_OPERATION_NS: f64 = 40_000.0;

pub(super) fn debug_build(evidence: &Evidence<'_>) -> Option<String> {
    evidence.debug_build.then(|| "strata was built with debug assertions: it is many times slower".to_owned())
}

/// The profile `first`: its part of an operation is longer than that of a release by some hundred nanoseconds, and by 2 us in the file system over
/// objects (bench/RESULTS.md, "First table").
pub(super) fn less_optimized(evidence: &Evidence<'_>) -> Option<String> {
    if evidence.optimized_build || evidence.debug_build {
        return None;
    }
    let rate = evidence.summary.total.operations_per_second;
    let operation_ns = f64::from(evidence.plan.load().threads) * 1e9 / rate;
    (rate > 0.0 && operation_ns < SHORT_OPERATION_NS).then(|| {
        format!(
            "strata was built with the profile `first`: short operations take up to twice as long (here a worker takes {} per operation)",
            human_ns(operation_ns)
        )
    })
}

pub(super) fn too_short(evidence: &Evidence<'_>) -> Option<String> {
    let summary = evidence.summary;
    let window_ns = summary.window_end_ns.saturating_sub(summary.window_start_ns);
    let operations = summary.total.window_operations;
    if operations == 0 {
        return Some("no operation completed in the window".to_owned());
    }
    if evidence.is_pass {
        return None;
    }
    if window_ns < WINDOW_NS_MIN {
        return Some(format!("the window is {} long, less than 1 s", human_ns(window_ns as f64)));
    }
    if operations < OPERATIONS_MIN {
        return Some(format!("{operations} operations: fewer than 10 of them determine the 99th percentile"));
    }
    match &summary.total.rate {
        None => Some("fewer than 4 intervals: no confidence interval".to_owned()),
        // A change of the rate looks like correlation: then the change is the doubt, and not the length.
        Some(rate) if rate.effective_samples < EFFECTIVE_SAMPLES_MIN && !changes(evidence) => Some(format!(
            "the effective sample size of the rate is {:.1}, below {EFFECTIVE_SAMPLES_MIN}",
            rate.effective_samples
        )),
        Some(_) => None,
    }
}

fn changes(evidence: &Evidence<'_>) -> bool {
    not_steady(evidence).is_some() || rate_dropped(evidence).is_some()
}

/// A fall from one level to another: as warm-up it would hide the faster part, as a mean of both the slower one.
pub(super) fn rate_dropped(evidence: &Evidence<'_>) -> Option<String> {
    if evidence.is_pass {
        return None;
    }
    let drop = evidence.summary.steady.drop.as_ref()?;
    let at = evidence.summary.dropped.as_ref()?;
    if is_last_sync(evidence, drop.at_interval) || is_page_cache_filled(evidence, drop.at_interval) {
        return None;
    }
    let done = match at.bytes {
        0 => counted(at.operations, "operation"),
        bytes => human_bytes(bytes as f64),
    };
    Some(format!(
        "the rate fell from {} to {} after {} ({done} done)",
        rate(drop.operations_per_second_before),
        rate(drop.operations_per_second_after),
        human_ns(at.elapsed_ns as f64)
    ))
}

/// Whether all data was moved before an interval, and what follows is the sync at the end: its time is in the bandwidth, and nothing dropped.
fn is_last_sync(evidence: &Evidence<'_>, interval: usize) -> bool {
    let points = &evidence.samples.series.points;
    let behind = points.get(interval..).map_or(0, bytes_of);
    evidence.plan.stops_to_sync() && (behind as f64) < AFTER_DATA_SHARE_MAX * bytes_of(points) as f64
}

/// Whether writes were fast as long as the page cache took them, and a sync at the end has the rest in the bandwidth: how the kernel spreads
/// that over the time is nothing of the storage. Beyond what it may hold, a drop is another matter.
fn is_page_cache_filled(evidence: &Evidence<'_>, interval: usize) -> bool {
    let held_max =
        evidence.environment.memory.total_bytes.map_or(0.0, |bytes| DIRTY_SHARE_MAX * bytes as f64);
    let before = evidence.samples.series.points.get(..interval).map_or(0, bytes_of);
    evidence.plan.is_synced_at_end() && (before as f64) < held_max
}

fn bytes_of(points: &[IntervalPoint]) -> u64 {
    points.iter().flat_map(|point| &point.classes).map(|class| class.bytes).sum()
}

pub(super) fn not_steady(evidence: &Evidence<'_>) -> Option<String> {
    if evidence.is_pass {
        return None;
    }
    if let Some(stall_ns) = stall_ns(evidence) {
        return Some(format!("no operation completed for {} within the phase", human_ns(stall_ns as f64)));
    }
    let steady = &evidence.summary.steady;
    match steady.reason {
        SteadyReason::Steady | SteadyReason::HangingGrows => hanging(evidence).map(|hanging| {
            format!(
                "more and more operations hang: {} of the first third of the window had not completed at its end, and {} of the second third",
                counted(hanging.first_third, "operation"),
                hanging.second_third
            )
        }),
        SteadyReason::TooFewIntervals | SteadyReason::NoRate | SteadyReason::Stalls => None,
        // Doubts of their own.
        SteadyReason::RateDropped | SteadyReason::BacklogGrows => None,
        SteadyReason::Wanders => wanders(evidence),
        SteadyReason::LevelChanges => {
            let words = "the rate shifted within the window";
            Some(steady.level_change.as_ref().map_or(words.to_owned(), |change| {
                let (before, after) =
                    (rate(change.operations_per_second_before), rate(change.operations_per_second_after));
                format!("{words}, from {before} to {after}")
            }))
        }
        SteadyReason::Trend => {
            let (verb, change) = moved(steady.slope_percent_per_window);
            Some(format!("the rate {verb} by {change:.1}% over the window"))
        }
        SteadyReason::HalvesDiffer => {
            let (verb, change) = moved(steady.drift_percent);
            Some(format!("the rate {verb} by {change:.1}% from the first half of the window to the second"))
        }
    }
}

/// Why the rate is not steady, where its series does not show it.
pub(super) fn unsteady(evidence: &Evidence<'_>) -> Option<SteadyReason> {
    let stalls = stall_ns(evidence).map(|_| SteadyReason::Stalls);
    stalls.or_else(|| hanging(evidence).map(|_| SteadyReason::HangingGrows))
}

/// Operations that hang, where they become more; what an open loop never started hangs in no target.
fn hanging(evidence: &Evidence<'_>) -> Option<Hanging> {
    let summary = evidence.summary;
    let window = (summary.window_start_ns, summary.window_end_ns);
    let is_served = evidence.arrivals.is_none_or(|arrivals| arrivals.unserved_operations == 0);
    find_hanging(&evidence.samples.series.points, window, summary.concurrency).filter(|_| is_served)
}

/// The longest time in which nothing completed, where that says something: a stall at the end lies behind the window of
/// the figures, and one in the middle is a spike to them.
fn stall_ns(evidence: &Evidence<'_>) -> Option<u64> {
    let (plan, samples) = (evidence.plan, evidence.samples);
    if plan.stops_to_sync() || plan.load().think.is_some() {
        return None;
    }
    let mut longest_ns = 0;
    let mut since_ns = None;
    for point in &samples.series.points {
        if point.operations() > 0 {
            since_ns = None;
            continue;
        }
        let start_ns = *since_ns.get_or_insert(point.start_ns);
        longest_ns = longest_ns.max(point.end_ns.saturating_sub(start_ns));
    }
    let share = longest_ns as f64 / samples.elapsed_ns.max(1) as f64;
    let missed = evidence.summary.total.operations_per_second * longest_ns as f64 / 1e9;
    (longest_ns >= STALL_NS_MIN && share > STALL_SHARE_MAX && missed > STALL_OPERATIONS_MIN)
        .then_some(longest_ns)
}

fn wanders(evidence: &Evidence<'_>) -> Option<String> {
    let intervals = evidence.samples.series.points.len();
    let worth = evidence.summary.total.rate.as_ref()?.effective_samples;
    Some(format!("the rate drifts slowly: {intervals} intervals have an effective sample size of {worth:.1}"))
}

fn moved(percent: f64) -> (&'static str, f64) {
    (if percent < 0.0 { "fell" } else { "rose" }, percent.abs())
}

pub(super) fn arrivals_unserved(evidence: &Evidence<'_>) -> Option<String> {
    let arrivals = evidence.arrivals?;
    // Against what was due, not against the rate asked for: the number of Poisson arrivals varies by its square root.
    let due = arrivals.started_operations + arrivals.unserved_operations;
    let missing = arrivals.unserved_operations as f64 / due.max(1) as f64;
    if missing > UNSERVED_SHARE_MAX {
        return Some(format!(
            "requested {}, started {}: {} operations were never issued",
            rate(arrivals.asked_per_second),
            rate(arrivals.started_per_second),
            count(arrivals.unserved_operations)
        ));
    }
    let growth = arrivals.backlog_growth_per_second.filter(|_| arrivals.backlog_grows)?;
    Some(format!(
        "requested {}, completed {}: the queue grows by {}, and latencies grow with it",
        rate(arrivals.asked_per_second),
        rate(arrivals.completed_per_second.unwrap_or(evidence.summary.total.operations_per_second)),
        rate(growth)
    ))
}

/// Operations that did not come back.
pub(super) fn unfinished_operations(evidence: &Evidence<'_>) -> Option<String> {
    let summary = evidence.summary;
    let unfinished = summary.unfinished_operations;
    let workers = || evidence.samples.workers.iter().filter(|worker| worker.unfinished_operations > 0);
    let longest_ns =
        workers().flat_map(|worker| &worker.classes).filter_map(|class| class.unfinished.max_ns()).max();
    (unfinished > 0).then(|| {
        format!(
            "{} had not completed {} after the window; each counts with the time that it had waited until then, {} at most",
            counted(unfinished, "operation"),
            human_ns(summary.drain_ns as f64),
            human_ns(longest_ns.unwrap_or(0) as f64)
        )
    })
}

/// An open loop whose operations left late because of strata itself.
pub(super) fn generator_late(evidence: &Evidence<'_>) -> Option<String> {
    let (late, latency) = (evidence.summary.lateness.as_ref()?, evidence.summary.total.latency.as_ref()?);
    let is_mean_late = late.mean_ns > LATENESS_MEAN_NS_MIN.max(LATENESS_MEAN_SHARE_MAX * latency.mean_ns);
    let [late_p99, p99] = [late, latency].map(|each| each.p99_ns.unwrap_or(each.max_ns) as f64);
    let is_tail_late =
        late.p99_ns.is_some() && late_p99 > LATENESS_P99_NS_MIN.max(LATENESS_P99_SHARE_MAX * p99);
    (is_mean_late || is_tail_late).then(|| {
        format!(
            "strata issued operations {} late on average (p99 {}); the latency is {} on average (p99 {})",
            human_ns(late.mean_ns),
            human_ns(late_p99),
            human_ns(latency.mean_ns),
            human_ns(p99)
        )
    })
}
