//! Final operations, and what they count for.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use runner::{Job, Outcome};
use statistics::{WarmUp, summarise};
use testkit::{Fault, FaultyDriver, Service, SimulatedTarget, TestSource, VirtualClock};
use testkit::{closed_load, open_load};
use workload::plan::LoadPlan;
use workload::spec::Spacing;

use crate::support::{AnyDriver, BLOCK, MS, SECOND, assert_within_a_thousandth, job, run, run_all};

/// Reads, and two writes at the end of each worker.
fn finishing(load: &LoadPlan, target: &SimulatedTarget, finishes: bool) -> Job<testkit::VirtualClock> {
    let target = target.clone();
    let source = TestSource::reads(BLOCK).finishing_with(1, 2);
    let mut job = job(load, move |_| (Box::new(target.driver()) as AnyDriver, source.clone()));
    job.finishes = finishes;
    job
}

fn run_finishing(load: &LoadPlan, service: Service, finishes: bool) -> Outcome {
    let clock = VirtualClock::new();
    let target = SimulatedTarget::new(&clock, service, 4);
    run(finishing(load, &target, finishes), clock)
}

/// Reads, writes and those after the window of the first worker, and the length of the phase.
fn figures(outcome: &Outcome) -> (u64, u64, u64, u64) {
    assert_eq!(outcome.failure, None);
    let worker = &outcome.samples.workers[0];
    let [reads, writes] = [0, 1].map(|class| worker.classes[class].operations);
    (reads, writes, worker.drained_operations, outcome.samples.elapsed_ns)
}

#[test]
fn final_operations_after_the_time_are_measured() {
    let mut load = closed_load(1, 1);
    load.limit.time_ns = Some(10 * MS + MS / 2);
    let outcome = run_finishing(&load, Service::Fixed(MS), true);
    assert_eq!(figures(&outcome), (11, 2, 0, 13 * MS), "one was in flight at the close, two follow it");
    assert_eq!(outcome.samples.window_ns, load.limit.time_ns);
    let outcome = run_finishing(&load, Service::Fixed(MS), false);
    assert_eq!(figures(&outcome), (10, 0, 1, 10 * MS + MS / 2), "nothing counts after the close");
}

#[test]
fn an_open_loop_finishes_too() {
    let mut load = open_load(1000.0, Spacing::Constant, 4);
    load.limit.time_ns = Some(10 * MS);
    let outcome = run_finishing(&load, Service::Fixed(3 * MS), true);
    // The last read was due at 9 ms.
    assert_eq!(figures(&outcome), (10, 2, 0, 18 * MS));
    assert_eq!(outcome.arrivals.map(|arrivals| (arrivals.started, arrivals.unserved)), Some((10, 0)));
}

#[test]
fn what_ends_before_its_time_finishes_at_once() {
    let mut load = closed_load(1, 1);
    (load.limit.operations, load.limit.time_ns) = (Some(5), Some(SECOND));
    for finishes in [true, false] {
        let outcome = run_finishing(&load, Service::Fixed(MS), finishes);
        assert_eq!(figures(&outcome), (5, 2, 0, 7 * MS));
    }
}

#[test]
fn a_long_final_operation_is_waited_for() {
    let mut load = closed_load(1, 1);
    load.limit.time_ns = Some(10 * MS);
    let service = Service::Steps(vec![(0, MS), (10 * MS, 40 * SECOND)]);
    let outcome = run_finishing(&load, service, true);
    assert_eq!(figures(&outcome), (10, 2, 0, 80 * SECOND + 10 * MS));
}

#[test]
fn a_long_final_operation_is_no_drop_of_the_rate() {
    let mut load = closed_load(1, 1);
    (load.limit.operations, load.interval_ns) = (Some(3000), 20 * MS);
    let service = Service::Steps(vec![(0, MS), (3 * SECOND, SECOND)]);
    let outcome = run_finishing(&load, service, true);
    assert_eq!(figures(&outcome), (3000, 2, 0, 5 * SECOND));
    assert_eq!(outcome.samples.workers[0].finals_from_ns, Some(3 * SECOND));
    let summary = summarise(&outcome.samples, WarmUp::Auto);
    assert_eq!((summary.steady.drop, summary.dropped), (None, None));
    assert_within_a_thousandth(summary.total.operations_per_second, 3002.0 / 5.0);
}

#[test]
fn an_interruption_skips_final_operations() {
    let clock = VirtualClock::new();
    let target = SimulatedTarget::new(&clock, Service::Fixed(MS), 1);
    let interrupt = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&interrupt);
    let mut load = closed_load(1, 1);
    load.limit.time_ns = Some(SECOND);
    let mut job = job(&load, move |_| {
        let flag = Arc::clone(&flag);
        let call = Fault::Call(Box::new(move || flag.store(true, Ordering::Relaxed)));
        let driver = FaultyDriver::new(Box::new(target.driver())).with_fault(9, call);
        (Box::new(driver) as AnyDriver, TestSource::reads(BLOCK).finishing_with(1, 2))
    });
    (job.finishes, job.interrupt) = (true, interrupt);
    let outcome = run(job, clock);
    assert_eq!(outcome.failure.as_deref(), Some("interrupted"));
    let classes = &outcome.samples.workers[0].classes;
    assert_eq!((classes[0].operations, classes[1].operations), (10, 0));
    assert_eq!(outcome.samples.elapsed_ns, 10 * MS);
}

#[test]
fn a_phase_that_ends_with_another_finishes() {
    let clock = VirtualClock::new();
    let targets = [MS, 30 * MS].map(|ns| SimulatedTarget::new(&clock, Service::Fixed(ns), 1));
    let mut load = closed_load(1, 1);
    (load.limit.operations, load.end_others) = (Some(98), true);
    let first = finishing(&load, &targets[0], true);
    let second = finishing(&closed_load(1, 1), &targets[1], true);
    let outcomes = run_all(vec![first, second], clock);
    assert_eq!(figures(&outcomes[0]), (98, 2, 0, 100 * MS));
    assert_eq!(figures(&outcomes[1]), (4, 2, 0, 180 * MS));
}
