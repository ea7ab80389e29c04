use statistics::{
    ClassTotals, Histogram, IntervalPoint, PhaseSamples, Series, SparseHistogram, WorkerSamples,
};
use workload::plan::{ArrivalPlan, LoadPlan, ThinkPlan};
use workload::spec::{Spacing, Spec};

use super::*;

/// Latencies of a class.
fn class(name: &str, latencies_ns: &[u64]) -> ClassTotals {
    let mut histogram = Histogram::new();
    latencies_ns.iter().for_each(|&ns| histogram.record(ns));
    ClassTotals {
        class: name.to_owned(),
        operations: latencies_ns.len() as u64,
        latency: SparseHistogram::from(&histogram),
        ..ClassTotals::default()
    }
}

/// A worker that begins after 150 ns, with some work before that, fills for 40, checks for 20, works 15 besides, writes twice and syncs once, and ends after 1000.
fn worker() -> WorkerSamples {
    WorkerSamples {
        started_ns: 150,
        finished_ns: 1000,
        tool_ns: 75,
        fill_ns: 40,
        verify_ns: 20,
        classes: vec![class("write", &[200, 100]), class("sync", &[500])],
        ..WorkerSamples::default()
    }
}

fn samples(workers: Vec<WorkerSamples>, in_flight_ns: Option<u64>) -> PhaseSamples {
    let mut series = Series::new(1, 2, 0);
    series.points = vec![IntervalPoint { start_ns: 0, end_ns: 1000, classes: Vec::new(), in_flight_ns }];
    PhaseSamples {
        classes: vec!["write".to_owned(), "sync".to_owned()],
        window_ns: None,
        started_ns: 0,
        elapsed_ns: 1000,
        workers,
        series,
        interrupted: None,
        process_cpu_user_ns: 0,
        process_cpu_system_ns: 0,
    }
}

/// The parts of all workers as one group; they add up to its time.
fn parts(load: &LoadPlan, samples: &PhaseSamples) -> (Vec<(String, u64)>, bool) {
    let mut sums = Sums::new(samples);
    for worker in &samples.workers {
        sums.add(worker, wall_ns(samples), load);
    }
    if load.arrivals.is_some() {
        sums.limit_to_flight(samples);
    }
    let group = sums.into_profile("workers", samples);
    assert_eq!(group.parts.iter().map(|part| part.time_ns).sum::<u64>(), group.wall_ns);
    assert_eq!(group.processes as usize, samples.workers.len());
    (group.parts.into_iter().map(|part| (part.name, part.time_ns)).collect(), group.is_shared)
}

fn told(parts: &[(&str, u64)]) -> Vec<(String, u64)> {
    parts.iter().map(|&(name, ns)| (name.to_owned(), ns)).collect()
}

fn load(depth: u32) -> LoadPlan {
    workload::plan::load(&Spec::default(), depth, None, 7).unwrap()
}

fn open(depth: u32) -> LoadPlan {
    let arrivals = ArrivalPlan { rate_per_second: 1.0, kind: Spacing::Constant };
    LoadPlan { arrivals: Some(arrivals), ..load(depth) }
}

fn failed(worker: WorkerSamples) -> WorkerSamples {
    let mut worker = worker;
    worker.classes[0].errors = 1;
    worker
}

#[test]
fn one_call_at_a_time_is_told_to_a_nanosecond() {
    let seen = parts(&load(1), &samples(vec![worker()], None));
    let own = [("filling", 40), ("checking", 20), ("strata", 15)];
    let expected = [&[("write", 300), ("sync", 500), ("starting", 125)][..], &own].concat();
    assert_eq!(seen, (told(&expected), false), "the work before the first call is in what strata took");
    let early = failed(WorkerSamples { started_ns: 100, ..worker() });
    let seen = parts(&load(1), &samples(vec![early], None));
    let expected = [&[("write", 300), ("sync", 500), ("starting", 100)][..], &own, &[("other", 25)]].concat();
    assert_eq!(seen, (told(&expected), false));
}

#[test]
fn several_calls_in_flight_share_their_time_by_their_latencies() {
    let classes = vec![class("write", &[4000, 2000]), class("sync", &[3000])];
    let deep = WorkerSamples { classes, ..worker() };
    let seen = parts(&load(32), &samples(vec![deep], None));
    let beside = [("starting", 75), ("filling", 40), ("checking", 20), ("strata", 15)];
    assert_eq!(seen, (told(&[&[("write", 567), ("sync", 283)][..], &beside].concat()), true));
    // Fewer latencies than time: no call was in flight for at least the rest.
    let seen = parts(&load(32), &samples(vec![failed(worker())], None));
    let expected = [&[("write", 300), ("sync", 500)][..], &beside, &[("other", 50)]].concat();
    assert_eq!(seen, (told(&expected), false));
}

#[test]
fn time_before_a_call_is_due_is_that_of_the_schedule() {
    let beside = [("starting", 75), ("filling", 40), ("checking", 20), ("strata", 15)];
    let of = |worker, in_flight_ns| parts(&open(1), &samples(vec![worker], in_flight_ns));
    // Latencies are 800 from when the calls were due; they were in flight for 600.
    let expected = [&[("write", 225), ("sync", 375)][..], &beside, &[("schedule", 250)]].concat();
    assert_eq!(of(worker(), Some(600)), (told(&expected), true));
    let expected = [&[("write", 300), ("sync", 500)][..], &beside, &[("schedule", 50)]].concat();
    assert_eq!(of(worker(), None), (told(&expected), false), "where it was not told");
    assert_eq!(of(worker(), Some(840)), (told(&expected), false), "no call failed");
    let rest = [("schedule", 10), ("other", 40)];
    let expected = [&[("write", 300), ("sync", 500)][..], &beside, &rest].concat();
    assert_eq!(of(failed(worker()), Some(840)), (told(&expected), false), "failed calls were in flight too");
}

#[test]
fn an_open_loop_that_falls_behind_has_no_more_than_its_time() {
    let late =
        WorkerSamples { classes: vec![class("write", &[900, 90_000]), class("sync", &[])], ..worker() };
    let (seen, is_shared) = parts(&open(4), &samples(vec![late], Some(3500)));
    assert_eq!((&seen[0], is_shared), (&("write".to_owned(), 850), true));
}

#[test]
fn pauses_are_those_of_the_schedule_where_no_call_failed() {
    let think = Some(ThinkPlan { pause_ns: 25, blocks: 1, ..ThinkPlan::default() });
    let paused = LoadPlan { think, ..load(1) };
    let last = |worker| parts(&paused, &samples(vec![worker], None)).0.pop().unwrap();
    let early = || WorkerSamples { started_ns: 100, ..worker() };
    assert_eq!(last(early()), ("schedule".to_owned(), 25));
    assert_eq!(last(failed(early())), ("other".to_owned(), 25));
}

#[test]
fn workers_wait_for_the_last_call_of_all() {
    let short = WorkerSamples { finished_ns: 1000, ..worker() };
    let drained = WorkerSamples {
        drain_ns: 200,
        classes: vec![class("write", &[200, 300]), class("sync", &[500])],
        ..worker()
    };
    let idle =
        WorkerSamples { classes: vec![class("write", &[]), class("sync", &[])], ..WorkerSamples::default() };
    let (seen, _) = parts(&load(1), &samples(vec![short, drained, idle], None));
    let part = |name: &str| seen.iter().find(|part| part.0 == name).map(|part| part.1);
    assert_eq!(part("ended"), Some(200 + 1200));
    assert_eq!(part("write"), Some(300 + 500));
    assert_eq!(part("starting"), Some(125 + 125));
    assert_eq!(part("other"), None);
}

#[test]
fn what_does_not_fit_is_cut() {
    let odd = WorkerSamples { tool_ns: 5000, fill_ns: 900, verify_ns: 300, ..worker() };
    for load in [load(1), load(8), open(1)] {
        parts(&load, &samples(vec![odd.clone()], Some(u64::MAX)));
    }
    assert_eq!(shared_out(10, &[0, 0]), [0, 0]);
    assert_eq!(shared_out(u64::MAX, &[u64::MAX, u64::MAX]).iter().sum::<u64>(), u64::MAX);
}
