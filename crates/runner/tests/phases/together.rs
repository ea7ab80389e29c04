//! Phases at the same time.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use driver::{Clock, Error, ErrorKind};
use runner::{Job, Opener, WorkerSetup, run_together};
use testkit::{Fault, FaultyDriver, Service, SimulatedTarget, TestOp, TestSource, VirtualClock, closed_load};
use workload::plan::{LoadPlan, ThinkPlan};
use workload::spec::{OnError, Spacing, Warmup};

use crate::support::{AnyDriver, BLOCK, MS, SECOND, US, job, latency, operations, run_all};

const EIO: i32 = 5;

/// Fault of a worker, and the operation at which it comes.
type Faults = fn() -> Option<(u64, Fault)>;

/// A job on a target of its own with a server for each slot; `fault` is what goes wrong in its last worker.
fn named(
    clock: &VirtualClock,
    name: &str,
    load: &LoadPlan,
    service_ns: u64,
    fault: Faults,
) -> Job<VirtualClock> {
    let servers = (load.threads * load.depth) as usize;
    let target = SimulatedTarget::new(clock, Service::Fixed(service_ns), servers);
    let faulty = load.threads - 1;
    let mut job = job(load, move |worker| {
        let mut driver = FaultyDriver::new(Box::new(target.driver()));
        if let Some((number, fault)) = fault().filter(|_| worker == faulty) {
            driver = driver.with_fault(number, fault);
        }
        (Box::new(driver) as AnyDriver, TestSource::reads(BLOCK))
    });
    job.name = name.to_owned();
    job
}

fn healthy(clock: &VirtualClock, name: &str, load: &LoadPlan, service_ns: u64) -> Job<VirtualClock> {
    named(clock, name, load, service_ns, || None)
}

fn timed(threads: u32, depth: u32, time_ns: u64) -> LoadPlan {
    let mut load = closed_load(threads, depth);
    load.limit.time_ns = Some(time_ns);
    load
}

fn counted(threads: u32, depth: u32, operations: u64) -> LoadPlan {
    let mut load = closed_load(threads, depth);
    load.limit.operations = Some(operations);
    load
}

#[test]
fn phases_at_the_same_time_have_their_own_figures() {
    let clock = VirtualClock::new();
    let begun_ns = clock.now_ns();
    let mut open = testkit::open_load(100.0, Spacing::Constant, 2);
    open.limit.time_ns = Some(SECOND / 2);
    let jobs = vec![
        healthy(&clock, "slow", &timed(2, 1, SECOND), MS),
        healthy(&clock, "fast", &counted(1, 4, 1000), 500 * US),
        healthy(&clock, "open", &open, 3 * MS),
    ];
    let outcomes = run_all(jobs, clock.clone());
    let figures: Vec<_> = outcomes
        .iter()
        .map(|outcome| (operations(outcome), outcome.samples.elapsed_ns, latency(outcome).max_ns))
        .collect();
    assert_eq!(figures, [(2000, SECOND, MS), (1000, 125 * MS, 500 * US), (50, SECOND / 2, 3 * MS)]);
    for outcome in &outcomes {
        let samples = &outcome.samples;
        assert_eq!((outcome.failure.as_deref(), samples.started_ns), (None, begun_ns));
        assert_eq!(outcome.notes, ["a note"]);
        let of_workers: u64 = samples.workers.iter().map(|worker| worker.cpu_user_ns).sum();
        assert_eq!(samples.process_cpu_user_ns, of_workers, "the process ran other phases too");
    }
    let workers: Vec<_> = outcomes.iter().map(|outcome| outcome.samples.workers.len()).collect();
    assert_eq!(workers, [2, 1, 1]);
    assert_eq!(outcomes[2].arrivals.map(|arrivals| arrivals.started), Some(50));
    assert_eq!(clock.elapsed_ns(), SECOND);
}

#[test]
fn phases_share_a_target() {
    let clock = VirtualClock::new();
    let target = SimulatedTarget::new(&clock, Service::Fixed(MS), 1);
    let jobs = (0..2).map(|_| {
        let target = target.clone();
        let open = move |_| (Box::new(target.driver()) as AnyDriver, TestSource::reads(BLOCK));
        job(&timed(1, 1, SECOND), open)
    });
    let outcomes = run_all(jobs.collect(), clock.clone());
    assert_eq!(outcomes.iter().map(operations).collect::<Vec<_>>(), [500, 500]);
    // One waits for the other from the first on.
    assert!(outcomes.iter().all(|outcome| latency(outcome).max_ns == 2 * MS));
}

#[test]
fn each_window_opens_after_its_own_delay() {
    let clock = VirtualClock::new();
    let mut late = timed(1, 1, 100 * MS);
    (late.start_delay_ns, late.warmup) = (300 * MS, Warmup::Fixed(50 * MS));
    let jobs =
        vec![healthy(&clock, "first", &timed(1, 1, 200 * MS), MS), healthy(&clock, "late", &late, 2 * MS)];
    let outcomes = run_all(jobs, clock.clone());
    let [first, late] = &outcomes[..] else { panic!("two outcomes") };
    assert_eq!((operations(first), operations(late)), (200, 50 + 1), "one completes at the opening");
    assert_eq!(late.samples.started_ns - first.samples.started_ns, 350 * MS);
    assert_eq!((first.samples.elapsed_ns, late.samples.elapsed_ns), (200 * MS, 100 * MS));
    assert_eq!(clock.elapsed_ns(), 450 * MS);
}

#[test]
fn one_that_is_done_may_end_the_others() {
    let clock = VirtualClock::new();
    let mut ends = counted(2, 1, 200);
    ends.end_others = true;
    let mut unborn = timed(1, 1, SECOND);
    unborn.start_delay_ns = 3600 * SECOND;
    let jobs = vec![
        healthy(&clock, "busy", &timed(1, 1, 60 * SECOND), 30 * MS),
        healthy(&clock, "ends", &ends, MS),
        healthy(&clock, "unborn", &unborn, MS),
        healthy(&clock, "done", &counted(1, 1, 5), MS),
    ];
    let outcomes = run_all(jobs, clock.clone());
    let figures: Vec<_> =
        outcomes.iter().map(|outcome| (operations(outcome), outcome.samples.elapsed_ns)).collect();
    // The fourth of the busy one was in flight at 100 ms.
    assert_eq!(figures, [(4, 120 * MS), (200, 100 * MS), (0, 1), (5, 5 * MS)]);
    assert!(outcomes.iter().all(|outcome| outcome.failure.is_none()));
    let ended = ["a note", "ended because phase ends ended"];
    assert_eq!(
        (&outcomes[0].notes[..], &outcomes[2].notes[..]),
        (&ended.map(str::to_owned)[..], &ended.map(str::to_owned)[..])
    );
    assert_eq!((outcomes[1].notes.len(), outcomes[3].notes.len()), (1, 1));
    assert!(clock.elapsed_ns() <= 120 * MS, "nobody waits for the delay: {} ns", clock.elapsed_ns());
}

#[test]
fn what_is_cut_short_was_at_work_until_then() {
    let clock = VirtualClock::new();
    let mut ends = counted(1, 1, 100);
    ends.end_others = true;
    let mut pausing = timed(2, 1, 60 * SECOND);
    pausing.think = Some(ThinkPlan { pause_ns: 95 * MS, blocks: 1, ..ThinkPlan::default() });
    let mut open = testkit::open_load(40.0, Spacing::Constant, 2);
    open.limit.time_ns = Some(60 * SECOND);
    let jobs = vec![
        healthy(&clock, "ends", &ends, MS),
        healthy(&clock, "pausing", &pausing, 4 * MS),
        healthy(&clock, "open", &open, 60 * MS),
    ];
    let outcomes = run_all(jobs, clock);
    let [_, pausing, open] = &outcomes[..] else { panic!("three outcomes") };
    // Two at 4 ms, two that were in flight at 100 ms.
    assert_eq!((operations(pausing), pausing.samples.elapsed_ns), (4, 103 * MS));
    assert!(pausing.samples.workers.iter().all(|worker| worker.finished_ns == 103 * MS));
    let arrivals = open.arrivals.map(|arrivals| (arrivals.started, arrivals.unserved));
    // Due every 25 ms on two slots of 60 ms: the one due at 100 ms finds none before it is seen at 120 ms that the phase ends,
    // and what is due while the last one is waited for was not meant to start.
    assert_eq!((arrivals, open.samples.elapsed_ns), (Some((4, 1)), 145 * MS));
}

#[test]
fn a_chain_of_ends_is_cut_at_the_first() {
    let clock = VirtualClock::new();
    let chain: Vec<_> = (1..=4)
        .map(|number| {
            let mut load = timed(1, 1, number * 100 * MS);
            load.end_others = true;
            healthy(&clock, &format!("{number}"), &load, MS)
        })
        .collect();
    let outcomes = run_all(chain, clock.clone());
    for outcome in &outcomes[1..] {
        assert_eq!(outcome.failure, None);
        assert!(
            (100 * MS..=102 * MS).contains(&outcome.samples.elapsed_ns),
            "{}",
            outcome.samples.elapsed_ns
        );
        assert_eq!(outcome.notes, ["a note", "ended because phase 1 ended"]);
    }
}

#[test]
fn one_that_fails_stops_the_others() {
    let faults: [Faults; 2] = [|| Some((20, Fault::Errno(EIO))), || Some((20, Fault::Reap))];
    let failures =
        ["read failed: Input/output error (os error 5)", "reap: the driver broke, as it was told to"];
    for (fault, failure) in faults.into_iter().zip(failures) {
        let clock = VirtualClock::new();
        let jobs = vec![
            healthy(&clock, "other", &timed(2, 1, 60 * SECOND), 8 * MS),
            named(&clock, "bad", &counted(1, 1, 100), MS, fault),
            healthy(&clock, "done", &counted(1, 1, 5), MS),
        ];
        let outcomes = run_all(jobs, clock);
        let [other, bad, done] = &outcomes[..] else { panic!("three outcomes") };
        assert_eq!((bad.failure.as_deref(), operations(bad)), (Some(failure), 20));
        assert_eq!(other.failure.as_deref(), Some("stopped: phase bad failed"));
        assert_eq!((operations(other), other.samples.elapsed_ns), (6, 24 * MS), "with what was in flight");
        assert!(other.samples.workers.iter().all(|worker| worker.failure.is_none()));
        assert_eq!((done.failure.as_deref(), operations(done)), (None, 5), "it was done before");
    }
}

#[test]
fn a_panic_stops_the_others() {
    let clock = VirtualClock::new();
    let jobs = vec![
        named(&clock, "bad", &counted(1, 1, 100), MS, || Some((20, Fault::Panic))),
        healthy(&clock, "other", &timed(1, 1, 600 * SECOND), 8 * MS),
    ];
    let outcomes = run_all(jobs, clock);
    assert!(outcomes[0].failure.as_deref().is_some_and(|failure| failure.contains("worker 0 panicked")));
    assert_eq!(outcomes[1].failure.as_deref(), Some("stopped: phase bad failed"));
    assert!(operations(&outcomes[1]) >= 2);
}

#[test]
fn counted_failures_stop_nobody() {
    let clock = VirtualClock::new();
    let mut counting = counted(1, 1, 100);
    counting.on_error = OnError::Continue;
    let jobs = vec![
        named(&clock, "counting", &counting, MS, || Some((20, Fault::Errno(EIO)))),
        healthy(&clock, "other", &timed(1, 1, SECOND), 8 * MS),
    ];
    let outcomes = run_all(jobs, clock);
    assert!(outcomes.iter().all(|outcome| outcome.failure.is_none()));
    assert_eq!(outcomes.iter().map(operations).collect::<Vec<_>>(), [99, 125]);
}

#[test]
fn a_refused_station_lets_nobody_begin() {
    let clock = VirtualClock::new();
    let began = Arc::new(AtomicBool::new(false));
    let watched = Arc::clone(&began);
    let target = SimulatedTarget::new(&clock, Service::Fixed(MS), 1);
    let good = job(&counted(2, 1, 10), move |_| {
        let began = Arc::clone(&watched);
        let fault = Fault::Call(Box::new(move || began.store(true, Ordering::Relaxed)));
        let driver = FaultyDriver::new(Box::new(target.driver())).with_fault(0, fault);
        (Box::new(driver) as AnyDriver, TestSource::reads(BLOCK))
    });
    let mut refused = healthy(&clock, "refused", &counted(2, 1, 10), MS);
    refused.open = Opener::new(|_| -> Result<WorkerSetup<TestOp, TestSource>, Error> {
        Err(Error::new(ErrorKind::Unsupported, "open", "no such thing here"))
    });
    let error = run_together(vec![good, refused], clock, &mut |_| {}).expect_err("refused");
    assert_eq!(error.to_string(), "open: no such thing here");
    assert!(!began.load(Ordering::Relaxed), "nobody began");
}

#[test]
fn nothing_to_run_has_no_outcome() {
    let outcomes = run_all(Vec::<Job<VirtualClock>>::new(), VirtualClock::new());
    assert!(outcomes.is_empty());
}
