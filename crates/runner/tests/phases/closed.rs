//! The closed loop: rates, latencies, intervals.

use driver::{Completions, Driver, Error, Submitted, Wait};
use statistics::{WarmUp, summarise};
use testkit::{Service, SimulatedTarget, TestOp, TestSource, VirtualClock, closed_load};
use workload::plan::LimitPlan;
use workload::random::Random;

use crate::support::{
    AnyDriver, BLOCK, MS, SECOND, US, assert_within_a_thousandth, by_interval, job, latency, operations, run,
    run_on,
};

const ONE_SECOND: LimitPlan = LimitPlan { time_ns: Some(SECOND), operations: None, bytes: None };

#[test]
fn the_rate_is_depth_over_service_time() {
    for (depth, servers, per_second) in [(1, 1, 1000), (4, 4, 4000), (8, 64, 8000), (16, 4, 4000)] {
        let mut load = closed_load(1, depth);
        load.limit = ONE_SECOND;
        let outcome = run_on(&load, Service::Fixed(MS), servers);
        let samples = &outcome.samples;
        assert_eq!(outcome.failure, None);
        assert_eq!(operations(&outcome), per_second);
        assert_eq!(by_interval(&outcome), [per_second / 10; 10]);
        assert_eq!((samples.elapsed_ns, samples.workers[0].finished_ns), (SECOND, SECOND));
        assert_eq!(samples.workers[0].first_completion_ns, Some(MS));
        assert_eq!(samples.workers[0].bytes(), per_second * BLOCK);
        // Those that wait in the queue at the end come back after it.
        assert_eq!(samples.workers[0].drained_operations, u64::from(depth).saturating_sub(servers as u64));
        let waits = (u64::from(depth) / servers as u64).max(1);
        assert_eq!((latency(&outcome).min_ns, latency(&outcome).max_ns), (MS, waits * MS));
        // Little's law holds but for the queue that builds up within the first few milliseconds.
        let concurrency = summarise(samples, WarmUp::None).concurrency;
        assert!((concurrency / f64::from(depth) - 1.0).abs() < 0.01, "{concurrency} at depth {depth}");
    }
}

/// Exponential service times, and what a percentile of them is by nearest rank.
fn declared(count: usize) -> (Vec<u64>, impl Fn(f64) -> f64) {
    let mut random = Random::new(9);
    let mut draw = || (-random.unit_above_zero().ln() * 100_000.0).ceil().max(1.0) as u64;
    let times: Vec<u64> = (0..count).map(|_| draw()).collect();
    let mut sorted = times.clone();
    sorted.sort_unstable();
    let rank = move |percent: f64| sorted[(percent * count as f64 / 100.0).round() as usize - 1] as f64;
    (times, rank)
}

#[test]
fn percentiles_are_those_of_the_declared_service_times() {
    let count = 50_000;
    let (times, rank) = declared(count);
    for threads in [1, 2] {
        let clock = VirtualClock::new();
        let part = count / threads;
        let targets: Vec<_> = times
            .chunks(part)
            .map(|times| SimulatedTarget::new(&clock, Service::List(times.to_vec()), 1))
            .collect();
        let mut load = closed_load(threads as u32, 1);
        load.limit.operations = Some(count as u64);
        let open = move |worker: u32| {
            let driver = targets[worker as usize].driver();
            (Box::new(driver) as AnyDriver, TestSource::reads(BLOCK))
        };
        let outcome = run(job(&load, open), clock);
        let found = latency(&outcome);
        assert_eq!(found.count, count as u64);
        assert_eq!((found.min_ns as f64, found.max_ns as f64), (rank(100.0 / count as f64), rank(100.0)));
        let percentiles = [
            (50.0, Some(found.p50_ns)),
            (90.0, found.p90_ns),
            (95.0, found.p95_ns),
            (99.0, found.p99_ns),
            (99.9, found.p99_9_ns),
        ];
        assert_eq!(found.p99_99_ns, None, "5 operations lie beyond it");
        for (percent, ns) in percentiles {
            assert_within_a_thousandth(ns.expect("enough operations") as f64, rank(percent));
        }
        assert_within_a_thousandth(found.mean_ns, times.iter().sum::<u64>() as f64 / count as f64);
        let busy = times.chunks(part).map(|times| times.iter().sum::<u64>());
        assert_eq!(
            Some(outcome.samples.elapsed_ns),
            busy.max(),
            "operations follow each other without a gap"
        );
    }
}

#[test]
fn classes_are_kept_apart() {
    let clock = VirtualClock::new();
    // Every third operation is a write; reads take 1 ms, writes 2 ms.
    let target = SimulatedTarget::new(&clock, Service::List(vec![MS, MS, 2 * MS]), 1);
    let mut load = closed_load(1, 1);
    load.limit = ONE_SECOND;
    let open = move |_| (Box::new(target.driver()) as AnyDriver, TestSource::in_turn(&[0, 0, 1], BLOCK));
    let outcome = run(job(&load, open), clock);
    let samples = &outcome.samples;
    assert_eq!(samples.classes, ["read", "write"]);
    let summary = summarise(samples, WarmUp::None);
    let figures: Vec<_> = summary.classes.iter().map(|class| (class.operations, class.bytes)).collect();
    assert_eq!(figures, [(500, 500 * BLOCK), (250, 250 * BLOCK)]);
    let of = |class: usize| summary.classes[class].latency.clone().expect("latency");
    assert_eq!((of(0).min_ns, of(0).max_ns), (MS, MS));
    assert_eq!((of(1).min_ns, of(1).max_ns), (2 * MS, 2 * MS));
    assert_eq!(summary.total.operations_per_second, 750.0);
}

#[test]
fn small_batches_fill_all_slots() {
    let mut load = closed_load(1, 8);
    (load.batch, load.limit.operations) = (4, Some(80));
    for batch_min in [1, 4, 8] {
        load.batch_min = batch_min;
        let outcome = run_on(&load, Service::Fixed(MS), 8);
        // The look at the target after a small batch takes some virtual time: 100 ns, once a round at most.
        let looks = 10 * MS..=10 * MS + 10 * 100;
        assert_eq!(operations(&outcome), 80);
        assert!(
            looks.contains(&outcome.samples.elapsed_ns),
            "eight are in flight: {}",
            outcome.samples.elapsed_ns
        );
    }
    // With two servers the first two of four wait for the other two to be seen.
    load.batch_min = 4;
    let outcome = run_on(&load, Service::Fixed(MS), 2);
    assert_eq!(
        (operations(&outcome), outcome.samples.elapsed_ns),
        (80, 40 * MS),
        "the servers are never idle"
    );
    assert_eq!(outcome.samples.workers[0].first_completion_ns, Some(2 * MS));
}

#[test]
fn what_a_driver_does_not_take_is_offered_again() {
    let clock = VirtualClock::new();
    let target = SimulatedTarget::new(&clock, Service::Fixed(MS), 8).with_depth_max(3);
    let mut load = closed_load(1, 8);
    load.limit = ONE_SECOND;
    let open = move |_| (Box::new(target.driver()) as AnyDriver, TestSource::reads(BLOCK));
    let outcome = run(job(&load, open), clock);
    assert_eq!((outcome.failure.as_deref(), operations(&outcome)), (None, 3000));
    assert_eq!(latency(&outcome).max_ns, MS, "latency counts from when the driver took the operation");
}

#[test]
fn long_runs_join_their_intervals() {
    let mut load = closed_load(1, 1);
    load.interval_ns = MS;
    load.limit.time_ns = Some(SECOND);
    let outcome = run_on(&load, Service::Fixed(500 * US), 1);
    let samples = &outcome.samples;
    assert_eq!(operations(&outcome), 2000);
    assert!(samples.series.points.len() <= 256 && samples.series.interval_ns == 4 * MS);
    // Intervals on their way while the length doubles may lie a little beside the grid.
    let counts = by_interval(&outcome);
    let off = counts.iter().filter(|&&count| count != 8).count();
    assert!(off <= 4, "{counts:?}");
}

#[test]
fn notes_are_given_once() {
    let mut load = closed_load(3, 1);
    load.limit.operations = Some(3);
    assert_eq!(run_on(&load, Service::Fixed(MS), 3).notes, ["a note"]);
}

/// Finds something wrong that all find, and something of its own.
struct Finder(AnyDriver, usize);

impl Driver<TestOp> for Finder {
    fn submit(&mut self, batch: &[TestOp], done: &mut Completions) -> Result<Submitted, Error> {
        self.0.submit(batch, done)
    }

    fn reap(&mut self, wait: Wait, done: &mut Completions) -> Result<(), Error> {
        self.0.reap(wait, done)
    }

    fn findings(&mut self) -> Vec<String> {
        let own = (0..self.1).map(|number| format!("finding {number}"));
        std::iter::once("the same for all".to_owned()).chain(own).collect()
    }
}

#[test]
fn findings_are_kept_once_and_not_without_end() {
    let found = |own: usize| {
        let mut load = closed_load(2, 1);
        load.limit.operations = Some(4);
        let clock = VirtualClock::new();
        let target = SimulatedTarget::new(&clock, Service::Fixed(MS), 2);
        let open = move |_| -> (AnyDriver, TestSource) {
            (Box::new(Finder(Box::new(target.driver()), own)), TestSource::reads(BLOCK))
        };
        run(job(&load, open), clock).notes
    };
    assert_eq!(found(1), ["a note", "the same for all", "finding 0"]);
    let many = found(40);
    assert_eq!((many.len(), many[16].as_str()), (18, "finding 14"));
    assert_eq!(many[17], "and 25 more findings of this kind");
}
