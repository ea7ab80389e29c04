//! Submission and completion apart; depths and batches.

use runner::Outcome;
use statistics::{DepthCounts, Histogram, SparseHistogram};
use testkit::{Fault, FaultyDriver, Service, SimulatedTarget, TestSource, VirtualClock};
use testkit::{closed_load, open_load};
use workload::plan::LoadPlan;
use workload::spec::{OnError, Spacing, Warmup};

use crate::support::{AnyDriver, BLOCK, MS, US, job, operations, run};

const SUBMISSION_NS: u64 = 300 * US;

fn run_split(load: &LoadPlan, servers: usize, shape: impl Fn(SimulatedTarget) -> SimulatedTarget) -> Outcome {
    let clock = VirtualClock::new();
    let target = shape(SimulatedTarget::new(&clock, Service::Fixed(MS), servers));
    let mut load = load.clone();
    load.split_latency = true;
    run(job(&load, move |_| (Box::new(target.driver()) as AnyDriver, TestSource::reads(BLOCK))), clock)
}

fn slow_submission(target: SimulatedTarget) -> SimulatedTarget {
    target.with_submission_ns(SUBMISSION_NS)
}

fn counted(depth: u32, operations: u64) -> LoadPlan {
    let mut load = closed_load(1, depth);
    load.limit.operations = Some(operations);
    load
}

/// Count, smallest and largest value.
fn range(histogram: &SparseHistogram) -> (u64, Option<u64>, Option<u64>) {
    let mut dense = Histogram::new();
    dense.merge_sparse(histogram);
    (dense.count(), histogram.min_ns(), histogram.max_ns())
}

/// Submission, completion and all of the reads of the only worker.
fn parts(outcome: &Outcome) -> [&SparseHistogram; 3] {
    let class = &outcome.samples.workers[0].classes[0];
    [
        class.submission.as_ref().expect("submission"),
        class.completion.as_ref().expect("completion"),
        &class.latency,
    ]
}

fn depths(outcome: &Outcome) -> &DepthCounts {
    outcome.samples.workers[0].depths.as_ref().expect("depths")
}

#[test]
fn the_parts_are_as_declared() {
    let outcome = run_split(&counted(1, 100), 1, slow_submission);
    let always = |ns| (100, Some(ns), Some(ns));
    let ranges = parts(&outcome).map(range);
    assert_eq!(ranges, [always(SUBMISSION_NS), always(MS), always(MS + SUBMISSION_NS)]);
    let writes = &outcome.samples.workers[0].classes[1];
    assert_eq!(writes.submission.as_ref().map(range), Some((0, None, None)), "there were none");
}

#[test]
fn a_synchronous_call_has_no_submission() {
    let outcome = run_split(&counted(1, 100), 1, |target| slow_submission(target).synchronous());
    let all = (100, Some(MS + SUBMISSION_NS), Some(MS + SUBMISSION_NS));
    assert_eq!(parts(&outcome).map(range), [(0, None, None), all, all]);
    let hundred = DepthCounts { in_flight: vec![100], submitted: vec![100], completed: vec![100] };
    assert_eq!(*depths(&outcome), hundred);
}

#[test]
fn several_at_a_time_are_handed_over_whenever_they_complete() {
    let outcome = run_split(&counted(2, 100), 1, |target| slow_submission(target).synchronous());
    let [submission, completion, latency] = parts(&outcome);
    assert_eq!((range(submission).0, range(completion).0), (100, 100));
    assert_eq!(submission.sum_ns() + completion.sum_ns(), latency.sum_ns());
}

#[test]
fn in_an_open_loop_the_wait_is_part_of_submission() {
    let mut load = open_load(2000.0, Spacing::Constant, 1);
    load.limit.operations = Some(50);
    let outcome = run_split(&load, 1, |target| target);
    // The k-th is due after k/2 ms and taken after k ms.
    let [submission, completion, latency] = parts(&outcome);
    assert_eq!(range(submission), (50, Some(0), Some(49 * MS / 2)));
    assert_eq!(range(completion), (50, Some(MS), Some(MS)));
    assert_eq!(submission.sum_ns() + completion.sum_ns(), latency.sum_ns());
}

#[test]
fn depths_and_batches_are_counted_by_powers_of_two() {
    let outcome = run_split(&counted(8, 80), 8, |target| target);
    let tens = DepthCounts {
        in_flight: vec![0, 0, 0, 80],
        submitted: vec![0, 0, 0, 10],
        completed: vec![0, 0, 0, 10],
    };
    assert_eq!(*depths(&outcome), tens);
    // Two batches of two fill the depth of four, 100 ns apart; after that pairs come and go.
    let mut load = counted(4, 8);
    load.batch = 2;
    let outcome = run_split(&load, 4, |target| target);
    let pairs = DepthCounts { in_flight: vec![0, 2, 6], submitted: vec![0, 4, 0], completed: vec![0, 4, 0] };
    assert_eq!(*depths(&outcome), pairs);
}

#[test]
fn only_the_window_is_in_the_parts() {
    let mut load = counted(1, 25);
    load.warmup = Warmup::Fixed(10 * MS + MS / 2);
    let outcome = run_split(&load, 1, |target| target);
    assert_eq!(
        parts(&outcome).map(range),
        [(24, Some(0), Some(0)), (24, Some(MS), Some(MS)), (24, Some(MS), Some(MS))],
        "the first that completes in the window began before it"
    );
    // The first of the window was handed over before it opened.
    let counts = DepthCounts { in_flight: vec![24], submitted: vec![24], completed: vec![25] };
    assert_eq!(*depths(&outcome), counts);
    let mut load = closed_load(1, 4);
    load.limit.time_ns = Some(10 * MS + MS / 2);
    let outcome = run_split(&load, 4, |target| target);
    assert_eq!(range(parts(&outcome)[1]).0, 44, "what began in the window counts when it completes after it");
    assert_eq!((depths(&outcome).submitted[2], depths(&outcome).completed[2]), (11, 10));
}

#[test]
fn failed_operations_are_in_no_part() {
    let clock = VirtualClock::new();
    let target = SimulatedTarget::new(&clock, Service::Fixed(MS), 1);
    let mut load = counted(1, 100);
    (load.split_latency, load.on_error) = (true, OnError::Continue);
    let open = move |_| {
        let driver = FaultyDriver::new(Box::new(target.driver())).with_fault(7, Fault::Errno(5));
        (Box::new(driver) as AnyDriver, TestSource::reads(BLOCK))
    };
    let outcome = run(job(&load, open), clock);
    assert_eq!(operations(&outcome), 99);
    assert_eq!(parts(&outcome).map(|part| range(part).0), [99; 3]);
    assert_eq!(depths(&outcome).in_flight, [100]);
}

#[test]
fn nothing_is_split_unasked() {
    let outcome = crate::support::run_on(&counted(1, 10), Service::Fixed(MS), 1);
    let worker = &outcome.samples.workers[0];
    assert_eq!(worker.depths, None);
    assert!(worker.classes.iter().all(|class| class.submission.is_none() && class.completion.is_none()));
}
