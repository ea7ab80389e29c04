//! How an open loop went: what was due of its rate, what was started, and whether what waits grows.

use report::record::ArrivalOutcome;
use runner::{ArrivalTally, Outcome};
use statistics::{Backlog, BacklogPoint, Summary, find_backlog};
use units::Rate;
use workload::arrival::due_before;
use workload::plan::PhasePlan;
use workload::spec::Warmup;

/// The open loop of a phase; none of a closed one.
pub(crate) fn outcome(plan: &PhasePlan, outcome: &Outcome, summary: &Summary) -> Option<ArrivalOutcome> {
    let (asked, tally) = plan.load().arrivals.zip(outcome.arrivals)?;
    let backlog = backlog(plan, outcome, summary, &tally);
    Some(ArrivalOutcome {
        asked_per_second: asked.rate_per_second,
        started_per_second: tally.started as f64 * 1e9 / outcome.samples.elapsed_ns as f64,
        started_operations: tally.started,
        unserved_operations: tally.unserved,
        completed_per_second: backlog.map(|backlog| backlog.done_per_second),
        backlog_growth_per_second: backlog.map(|backlog| backlog.growth_per_second),
        backlog_grows: backlog.is_some_and(|backlog| backlog.grows),
    })
}

/// Backlog of operations that are due and wait: the arrivals are drawn once more, as the workers drew them.
fn backlog(plan: &PhasePlan, outcome: &Outcome, summary: &Summary, tally: &ArrivalTally) -> Option<Backlog> {
    let (load, samples) = (plan.load(), &outcome.samples);
    let asked = load.arrivals?;
    // Masters and hosts draw their own.
    if plan.is_driven_elsewhere() || load.place.is_some() {
        return None;
    }
    let ramp_ns = if let Warmup::Fixed(ns) = load.warmup { ns } else { 0 };
    let until_ns = samples.window_ns.unwrap_or(u64::MAX).min(samples.elapsed_ns);
    let until_ns = summary.first_done.as_ref().map_or(until_ns, |first| until_ns.min(first.elapsed_ns));
    let points = samples.series.points.iter().take_while(|point| point.end_ns <= until_ns);
    let mut done = 0;
    let done: Vec<(u64, u64)> = points
        .map(|point| {
            done += point.operations() + point.classes.iter().map(|class| class.errors).sum::<u64>();
            (point.end_ns, done)
        })
        .collect();
    let times: Vec<u64> = done.iter().map(|(end_ns, _)| ramp_ns.saturating_add(*end_ns)).collect();
    let due = match &load.schedule {
        Some(listed) => {
            let before = |time_ns: u64| listed.partition_point(|&due_ns| due_ns < time_ns) as u64;
            let due = |time_ns: &u64| (before(*time_ns) - before(ramp_ns)) * u64::from(load.threads);
            times.iter().map(due).collect()
        }
        None => {
            let rate = Rate::new(asked.rate_per_second).ok()?;
            due_before(asked.kind, rate, load.threads, load.seed, ramp_ns, &times).ok()?
        }
    };
    let all_due = tally.started + tally.unserved;
    let points = done.into_iter().zip(due).map(|((at_ns, done_operations), due_operations)| BacklogPoint {
        at_ns,
        due_operations,
        done_operations,
    });
    // Behind the last operation of a count, nothing is due any more.
    let points: Vec<_> = points.take_while(|point| point.due_operations <= all_due).collect();
    find_backlog(&points)
}
