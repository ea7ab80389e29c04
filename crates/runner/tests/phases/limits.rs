//! When a phase ends, and for whom.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use runner::Outcome;
use statistics::{Summary, WarmUp, summarise};
use testkit::{Fault, FaultyDriver, Service, SimulatedTarget, TestSource, VirtualClock, closed_load};
use workload::plan::LoadPlan;
use workload::spec::Warmup;

use crate::support::{
    AnyDriver, BLOCK, MS, SECOND, assert_within_a_thousandth, by_interval, job, operations, run, run_on,
};

fn each_worker(load: &LoadPlan) -> Vec<u64> {
    let outcome = run_on(load, Service::Fixed(MS), 64);
    assert_eq!(outcome.failure, None);
    outcome.samples.workers.iter().map(|worker| worker.operations()).collect()
}

#[test]
fn a_count_is_exact_and_dealt_out() {
    for depth in [1, 7] {
        let mut load = closed_load(3, depth);
        load.limit.operations = Some(1000);
        assert_eq!(each_worker(&load), [334, 333, 333]);
        load.limit.operations = Some(2);
        assert_eq!(each_worker(&load), [1, 1, 0]);
    }
}

#[test]
fn bytes_are_exact_and_dealt_out() {
    let mut load = closed_load(3, 4);
    load.limit.bytes = Some(999 * BLOCK);
    assert_eq!(each_worker(&load), [333, 333, 333]);
    // A worker whose share is not whole blocks ends with the block that completes it.
    load.limit.bytes = Some(3 * BLOCK + 1);
    assert_eq!(each_worker(&load), [2, 1, 1]);
}

#[test]
fn a_source_ends_a_worker() {
    let clock = VirtualClock::new();
    let target = SimulatedTarget::new(&clock, Service::Fixed(MS), 8);
    let mut load = closed_load(2, 4);
    load.limit.time_ns = Some(10 * SECOND);
    let open = move |worker| {
        let source = TestSource::reads(BLOCK).ending_after(100 + u64::from(worker));
        (Box::new(target.driver()) as AnyDriver, source)
    };
    let outcome = run(job(&load, open), clock);
    assert_eq!((outcome.failure.as_deref(), operations(&outcome)), (None, 201));
    assert_eq!(outcome.samples.elapsed_ns, 26 * MS, "101 operations four at a time");
}

#[test]
fn whichever_limit_comes_first_holds() {
    let mut load = closed_load(1, 1);
    (load.limit.time_ns, load.limit.operations) = (Some(SECOND), Some(20));
    let outcome = run_on(&load, Service::Fixed(MS), 1);
    assert_eq!((operations(&outcome), outcome.samples.elapsed_ns), (20, 20 * MS));
    load.limit.operations = Some(2000);
    let outcome = run_on(&load, Service::Fixed(MS), 1);
    assert_eq!((operations(&outcome), outcome.samples.elapsed_ns), (1000, SECOND));
}

#[test]
fn a_time_limit_holds_although_operations_are_long() {
    let mut load = closed_load(1, 1);
    load.limit.time_ns = Some(250 * MS);
    let outcome = run_on(&load, Service::Fixed(100 * MS), 1);
    let worker = &outcome.samples.workers[0];
    assert_eq!((worker.operations(), worker.drained_operations, worker.finished_ns), (2, 1, 250 * MS));
    assert_eq!(outcome.samples.elapsed_ns, 250 * MS, "the window was open, and worked in, until then");
}

#[test]
fn a_fixed_warm_up_is_in_no_figure() {
    let mut load = closed_load(1, 1);
    load.warmup = Warmup::Fixed(500 * MS + 1);
    load.limit.time_ns = Some(SECOND);
    // Slow before the window opens, fast after.
    let outcome = run_on(&load, Service::Steps(vec![(0, 10 * MS), (500 * MS, MS)]), 1);
    assert_eq!(operations(&outcome), 1000);
    assert_eq!(by_interval(&outcome), [100; 10]);
    assert_eq!(outcome.samples.elapsed_ns, SECOND);
    assert_eq!(crate::support::latency(&outcome).max_ns, MS);
}

#[test]
fn limits_hold_for_the_window_and_not_for_its_warm_up() {
    for (depth, servers) in [(1, 1), (4, 4), (4, 2), (7, 3)] {
        let mut load = closed_load(1, depth);
        load.warmup = Warmup::Fixed(10 * MS);
        load.limit.operations = Some(25);
        assert_eq!(operations(&run_on(&load, Service::Fixed(3 * MS), servers)), 25, "depth {depth}");
        (load.limit.operations, load.limit.bytes) = (None, Some(25 * BLOCK));
        assert_eq!(operations(&run_on(&load, Service::Fixed(3 * MS), servers)), 25, "depth {depth}");
    }
}

#[test]
fn first_and_last_done_are_told_apart() {
    let clock = VirtualClock::new();
    let targets = [1, 2].map(|ms| SimulatedTarget::new(&clock, Service::Fixed(ms * MS), 1));
    let mut load = closed_load(2, 1);
    load.limit.operations = Some(200);
    let open = move |worker: u32| {
        (Box::new(targets[worker as usize].driver()) as AnyDriver, TestSource::reads(BLOCK))
    };
    let outcome = run(job(&load, open), clock);
    let samples = &outcome.samples;
    let finished: Vec<_> = samples.workers.iter().map(|worker| worker.finished_ns).collect();
    assert_eq!(finished, [100 * MS, 200 * MS]);
    let summary = summarise(samples, WarmUp::None);
    let first = summary.first_done.expect("two workers");
    assert_eq!((first.elapsed_ns, first.operations, first.operations_per_second), (100 * MS, 150, 1500.0));
    let last = summary.last_done;
    assert_eq!((last.elapsed_ns, last.operations, last.operations_per_second), (200 * MS, 200, 1000.0));
    assert_eq!(summary.stonewalled, None, "no length was planned");
}

#[test]
fn the_stonewall_stands_at_the_planned_end() {
    let mut load = closed_load(2, 1);
    load.limit.time_ns = Some(SECOND);
    let summary = summarise(&run_on(&load, Service::Fixed(MS), 2).samples, WarmUp::None);
    let stonewalled = summary.stonewalled.expect("a length was planned");
    assert_eq!((stonewalled.elapsed_ns, stonewalled.operations), (SECOND, 2000));
}

/// Reads of 1 ms until 600 ms, and then of 10 s, for a second; the rate that is reported.
fn rate_with_a_stall(threads: u32) -> (Outcome, Summary) {
    let mut load = closed_load(threads, 1);
    (load.limit.time_ns, load.interval_ns) = (Some(SECOND), 20 * MS);
    let service = Service::Steps(vec![(0, MS), (600 * MS, 10 * SECOND)]);
    let outcome = run_on(&load, service, threads as usize);
    let summary = summarise(&outcome.samples, WarmUp::Auto);
    (outcome, summary)
}

#[test]
fn a_stall_at_the_end_lowers_the_rate() {
    for threads in [1, 3] {
        let (outcome, summary) = rate_with_a_stall(threads);
        assert_eq!(operations(&outcome), u64::from(threads) * 600);
        assert!(
            outcome.samples.workers.iter().all(|worker| worker.finished_ns == SECOND),
            "at work until then"
        );
        assert_within_a_thousandth(summary.last_done.operations_per_second, f64::from(threads) * 600.0);
        assert_eq!((summary.window_start_ns, summary.window_end_ns), (0, SECOND));
        assert_within_a_thousandth(summary.total.operations_per_second, f64::from(threads) * 600.0);
    }
}

#[test]
fn a_warm_up_that_never_ends_costs_nothing() {
    let clock = VirtualClock::new();
    let target = SimulatedTarget::new(&clock, Service::Fixed(MS), 1);
    let interrupt = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&interrupt);
    let mut load = closed_load(1, 1);
    load.warmup = Warmup::Fixed(3600 * SECOND);
    let mut job = job(&load, move |_| {
        let flag = Arc::clone(&flag);
        let call = Fault::Call(Box::new(move || flag.store(true, Ordering::Relaxed)));
        let driver = FaultyDriver::new(Box::new(target.driver())).with_fault(50, call);
        (Box::new(driver) as AnyDriver, TestSource::reads(BLOCK))
    });
    job.interrupt = interrupt;
    let outcome = run(job, clock);
    let samples = &outcome.samples;
    assert_eq!((operations(&outcome), outcome.failure.as_deref()), (0, Some("interrupted")));
    assert_eq!((samples.process_cpu_user_ns, samples.process_cpu_system_ns), (0, 0));
    assert_eq!((samples.workers[0].cpu_user_ns, samples.workers[0].tool_ns), (0, 0));
    assert_eq!(summarise(samples, WarmUp::Auto).cpus_used, 0.0);
}
