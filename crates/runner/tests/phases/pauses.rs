//! Pauses of a closed loop, and a start that is put off.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use driver::Clock;
use runner::run_phase;
use testkit::{Fault, FaultyDriver, Service, SimulatedTarget, TestSource, VirtualClock};
use testkit::{closed_load, open_load};
use workload::plan::{LoadPlan, ThinkPlan};
use workload::spec::{Spacing, Warmup};

use crate::support::{AnyDriver, BLOCK, MS, SECOND, by_interval, job, latency, operations, run, run_on};

fn thinking(depth: u32, pause_ns: u64, blocks: u64) -> LoadPlan {
    LoadPlan { think: Some(ThinkPlan { pause_ns, blocks, ..ThinkPlan::default() }), ..closed_load(1, depth) }
}

#[test]
fn a_pause_as_long_as_the_service_halves_the_rate() {
    let mut load = thinking(1, MS, 1);
    load.limit.time_ns = Some(SECOND);
    let outcome = run_on(&load, Service::Fixed(MS), 1);
    assert_eq!((outcome.failure.as_deref(), operations(&outcome)), (None, 500));
    assert_eq!(by_interval(&outcome), [50; 10]);
    let worker = &outcome.samples.workers[0];
    assert_eq!((latency(&outcome).max_ns, worker.tool_ns), (MS, 0), "the pause is in no figure");
    assert_eq!((outcome.samples.elapsed_ns, worker.drained_operations), (SECOND, 0));
}

#[test]
fn what_is_in_flight_completes_before_a_pause() {
    // Four, then two of the six, then the pause: 3 ms in all. The last one is not paused after.
    let mut load = thinking(4, MS, 6);
    load.limit.operations = Some(60);
    let clock = VirtualClock::new();
    let target = SimulatedTarget::new(&clock, Service::Fixed(MS), 4);
    let open = move |_| (Box::new(target.driver()) as AnyDriver, TestSource::reads(BLOCK));
    let outcome = run(job(&load, open), clock.clone());
    assert_eq!((operations(&outcome), outcome.samples.elapsed_ns), (60, 29 * MS));
    assert_eq!((latency(&outcome).max_ns, clock.elapsed_ns()), (MS, 29 * MS));
}

#[test]
fn a_time_limit_holds_in_a_pause() {
    let mut load = thinking(1, 10 * SECOND, 3);
    load.limit.time_ns = Some(100 * MS);
    let outcome = run_on(&load, Service::Fixed(MS), 1);
    assert_eq!((operations(&outcome), outcome.samples.elapsed_ns), (3, 100 * MS));
}

#[test]
fn a_pause_is_interrupted() {
    let clock = VirtualClock::new();
    let target = SimulatedTarget::new(&clock, Service::Fixed(MS), 1);
    let interrupt = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&interrupt);
    let mut load = thinking(1, 3600 * SECOND, 1);
    load.threads = 2;
    // The second worker interrupts after 5 ms, in the first one's pause.
    let (its_target, its_clock) = (target.clone(), clock.clone());
    let mut job = job(&load, move |worker| {
        let mut driver = FaultyDriver::new(Box::new(its_target.driver()));
        if worker == 1 {
            let (flag, clock) = (Arc::clone(&flag), its_clock.clone());
            let interrupt = move || {
                clock.sleep_ns(5 * MS);
                flag.store(true, Ordering::Relaxed);
            };
            driver = driver.with_fault(0, Fault::Call(Box::new(interrupt)));
        }
        (Box::new(driver) as AnyDriver, TestSource::reads(BLOCK))
    });
    job.interrupt = interrupt;
    let outcome = run(job, clock.clone());
    assert_eq!(outcome.failure.as_deref(), Some("interrupted"));
    assert_eq!((operations(&outcome), outcome.samples.elapsed_ns), (2, 11 * MS), "it looks every 10 ms");
    assert_eq!(clock.elapsed_ns(), 11 * MS);
}

#[test]
fn pauses_that_cannot_be_made_are_refused() {
    let refused = |load: &LoadPlan| {
        let clock = VirtualClock::new();
        let target = SimulatedTarget::new(&clock, Service::Fixed(MS), 1);
        let open = move |_| (Box::new(target.driver()) as AnyDriver, TestSource::reads(BLOCK));
        run_phase(job(load, open), clock, &mut |_| {}).expect_err("refused").to_string()
    };
    assert!(refused(&thinking(1, MS, 0)).contains("a pause after every 0 operations"));
}

#[test]
fn operations_go_on_for_a_time_between_pauses() {
    let mut load = thinking(1, 10 * MS, u64::MAX);
    load.think = load.think.map(|think| ThinkPlan { after_ns: Some(30 * MS), spin_ns: 4 * MS, ..think });
    load.limit.time_ns = Some(200 * MS);
    let outcome = run_on(&load, Service::Fixed(MS), 1);
    // Thirty operations and a pause, five times.
    assert_eq!((operations(&outcome), latency(&outcome).max_ns), (150, MS));
    let mut load = thinking(1, 10 * MS, 20);
    load.think = load.think.map(|think| ThinkPlan { after_ns: Some(30 * MS), ..think });
    load.limit.time_ns = Some(300 * MS);
    assert_eq!(operations(&run_on(&load, Service::Fixed(MS), 1)), 200, "whichever is over first");
}

#[test]
fn a_rate_catches_up_after_a_pause_or_goes_on_as_it_was() {
    // One every 10 ms; after the tenth a pause, in which ten more are due.
    for (moves_arrivals, expected) in [(false, 100), (true, 50)] {
        let mut load = open_load(100.0, Spacing::Constant, 1);
        load.think =
            Some(ThinkPlan { pause_ns: 100 * MS, blocks: 10, moves_arrivals, ..ThinkPlan::default() });
        load.limit.time_ns = Some(SECOND);
        let outcome = run_on(&load, Service::Fixed(MS / 10), 1);
        let done = operations(&outcome);
        assert!(done.abs_diff(expected) <= 10, "{done} operations where about {expected} were due");
        // Those that were due in the pause are served one after the other, and none of them waited for the pause itself.
        assert!(latency(&outcome).max_ns <= 2 * MS, "{}", latency(&outcome).max_ns);
    }
}

#[test]
fn a_delay_puts_off_the_window() {
    for warm_up_ns in [0, 200 * MS + MS / 2] {
        let clock = VirtualClock::new();
        let begun_ns = clock.now_ns();
        // Slow until the load begins: nothing of that is seen.
        let service = Service::Steps(vec![(0, 50 * MS), (300 * MS, MS)]);
        let target = SimulatedTarget::new(&clock, service, 1);
        let mut load = closed_load(1, 1);
        (load.start_delay_ns, load.warmup) = (300 * MS, Warmup::Fixed(warm_up_ns));
        load.limit.time_ns = Some(100 * MS);
        let open = move |_| (Box::new(target.driver()) as AnyDriver, TestSource::reads(BLOCK));
        let outcome = run(job(&load, open), clock.clone());
        assert_eq!((operations(&outcome), outcome.samples.elapsed_ns), (100, 100 * MS));
        assert_eq!((latency(&outcome).max_ns, outcome.samples.workers[0].started_ns), (MS, 0));
        assert_eq!(outcome.samples.started_ns - begun_ns, 300 * MS + warm_up_ns);
    }
}

#[test]
fn a_delay_is_interrupted() {
    let clock = VirtualClock::new();
    let target = SimulatedTarget::new(&clock, Service::Fixed(MS), 1);
    let mut load = closed_load(2, 1);
    load.start_delay_ns = 3600 * SECOND;
    // Up once the worker has its driver: before that it would end the wait for drivers.
    let interrupt = Arc::new(AtomicBool::new(false));
    let raised = Arc::clone(&interrupt);
    let open = move |_| {
        let driver = Box::new(target.driver()) as AnyDriver;
        raised.store(true, Ordering::SeqCst);
        (driver, TestSource::reads(BLOCK))
    };
    let mut job = job(&load, open);
    job.interrupt = interrupt;
    let outcome = run(job, clock.clone());
    assert_eq!((outcome.failure.as_deref(), operations(&outcome)), (Some("interrupted"), 0));
    assert_eq!(clock.elapsed_ns(), 0, "nobody waited");
}
