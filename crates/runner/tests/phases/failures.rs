//! Failures, and what is kept of them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use driver::{Error, ErrorKind, Fault as DataFault, Source};
use runner::{Outcome, WorkerSetup, run_phase};
use testkit::{Fault, FaultyDriver, Service, SimulatedTarget, TestOp, TestSource, VirtualClock, closed_load};
use workload::plan::LoadPlan;
use workload::spec::OnError;

use crate::support::{AnyDriver, BLOCK, MS, SECOND, job, job_opening, latency, operations, run};

const EIO: i32 = 5;
const ENOSPC: i32 = 28;

/// Writes of 1 ms each; the last worker has the faults.
fn run_with(load: &LoadPlan, faults: fn() -> Vec<(u64, Fault)>) -> Outcome {
    let clock = VirtualClock::new();
    let target = SimulatedTarget::new(&clock, Service::Fixed(MS), 64);
    let faulty = load.threads - 1;
    let open = move |worker| {
        let mut driver = FaultyDriver::new(Box::new(target.driver()));
        if worker == faulty {
            driver =
                faults().into_iter().fold(driver, |driver, (number, fault)| driver.with_fault(number, fault));
        }
        (Box::new(driver) as AnyDriver, TestSource::in_turn(&[1], BLOCK))
    };
    run(job(load, open), clock)
}

fn counted(threads: u32, depth: u32, operations: u64, on_error: OnError) -> LoadPlan {
    let mut load = closed_load(threads, depth);
    (load.limit.operations, load.on_error) = (Some(operations), on_error);
    load
}

#[test]
fn errors_are_counted_and_never_as_operations() {
    let outcome = run_with(&counted(1, 1, 100, OnError::Continue), || {
        vec![
            (3, Fault::Errno(EIO)),
            (4, Fault::Errno(ENOSPC)),
            (7, Fault::Short(512)),
            (9, Fault::Errno(EIO)),
        ]
    });
    let worker = &outcome.samples.workers[0];
    assert_eq!((outcome.failure.as_deref(), worker.operations(), worker.bytes()), (None, 96, 96 * BLOCK));
    assert_eq!((worker.classes[1].errors, latency(&outcome).count), (4, 96));
    let errors: Vec<_> = worker
        .errors
        .iter()
        .map(|error| {
            (error.class.as_str(), error.cause.as_str(), error.errno, error.count, error.first_at_ns)
        })
        .collect();
    assert_eq!(
        errors,
        [
            ("write", "Input/output error (os error 5)", Some(EIO), 2, 4 * MS),
            ("write", "No space left on device (os error 28)", Some(ENOSPC), 1, 5 * MS),
            ("write", "short: 512 of 4096 bytes", None, 1, 8 * MS),
        ]
    );
}

#[test]
fn totals_count_the_failures_that_the_list_tells() {
    // Two at a time for 10.5 ms: the 21st and 22nd operation end after the close, and the first fails.
    let mut load = closed_load(1, 2);
    (load.limit.time_ns, load.on_error) = (Some(10 * MS + MS / 2), OnError::Continue);
    let outcome =
        run_with(&load, || vec![(2, Fault::Errno(EIO)), (20, Fault::Errno(EIO)), (21, Fault::Errno(ENOSPC))]);
    let worker = &outcome.samples.workers[0];
    let told: u64 = worker.errors.iter().map(|error| error.count).sum();
    assert_eq!((told, worker.classes[1].errors), (3, 3), "{:?}", worker.errors);
}

#[test]
fn the_first_error_ends_the_phase_where_asked() {
    let outcome = run_with(&counted(1, 1, 100, OnError::Stop), || vec![(20, Fault::Errno(ENOSPC))]);
    assert_eq!(outcome.failure.as_deref(), Some("write failed: No space left on device (os error 28)"));
    assert_eq!((operations(&outcome), outcome.samples.elapsed_ns), (20, 21 * MS));
    assert_eq!(outcome.samples.workers[0].classes[1].errors, 1);
    assert_eq!(outcome.samples.interrupted, None);
}

#[test]
fn a_short_transfer_ends_the_phase_where_asked() {
    let outcome = run_with(&counted(1, 1, 100, OnError::Stop), || vec![(20, Fault::Short(0))]);
    assert_eq!(outcome.failure.as_deref(), Some("write failed: short: 0 of 4096 bytes"));
    assert_eq!(operations(&outcome), 20);
}

#[test]
fn what_is_in_flight_at_an_error_is_still_counted() {
    let outcome = run_with(&counted(1, 8, 1000, OnError::Stop), || vec![(80, Fault::Errno(EIO))]);
    // The eleventh group of eight holds the error.
    assert_eq!((operations(&outcome), outcome.samples.elapsed_ns), (87, 11 * MS));
}

#[test]
fn an_error_of_one_worker_ends_all() {
    let outcome = run_with(&counted(2, 1, 100_000, OnError::Stop), || vec![(20, Fault::Errno(EIO))]);
    let workers = &outcome.samples.workers;
    assert_eq!(outcome.failure.as_deref(), Some("write failed: Input/output error (os error 5)"));
    assert_eq!((workers[1].operations(), workers[0].failure.as_deref()), (20, None));
    // The other one may have started its next operation at the very moment.
    assert!((21..=22).contains(&workers[0].operations()), "{}", workers[0].operations());
}

#[test]
fn a_driver_that_is_busy_is_asked_again() {
    let outcome = run_with(&counted(1, 4, 100, OnError::Stop), || vec![(10, Fault::Busy), (51, Fault::Busy)]);
    assert_eq!((outcome.failure.as_deref(), operations(&outcome)), (None, 100));
    // Nothing is in flight at depth 1: the driver gets time to make room, each time anew.
    let outcome =
        run_with(&counted(1, 1, 3000, OnError::Stop), || vec![(10, Fault::Busy), (2500, Fault::Busy)]);
    assert_eq!((outcome.failure.as_deref(), operations(&outcome)), (None, 3000));
    assert_eq!(latency(&outcome).max_ns, MS, "latency counts from when the driver took the operation");
}

#[test]
fn a_driver_that_stays_busy_is_given_up() {
    let clock = VirtualClock::new();
    let target = SimulatedTarget::new(&clock, Service::Fixed(MS), 1).with_depth_max(0);
    let open = move |_| (Box::new(target.driver()) as AnyDriver, TestSource::reads(BLOCK));
    let outcome = run(job(&counted(1, 1, 100, OnError::Stop), open), clock.clone());
    let failure = outcome.failure.as_deref();
    assert_eq!(failure, Some("submit: the driver is busy although nothing is in flight"));
    assert_eq!(operations(&outcome), 0);
    assert!((SECOND..=SECOND + MS).contains(&clock.elapsed_ns()), "{} ns", clock.elapsed_ns());
}

#[test]
fn a_broken_driver_keeps_what_was_measured() {
    for on_error in [OnError::Stop, OnError::Continue] {
        let outcome = run_with(&counted(1, 1, 100, on_error), || vec![(20, Fault::Submit)]);
        assert_eq!(outcome.failure.as_deref(), Some("submit: the driver broke, as it was told to"));
        assert_eq!((operations(&outcome), outcome.samples.elapsed_ns), (20, 20 * MS));
        let outcome = run_with(&counted(1, 1, 100, on_error), || vec![(20, Fault::Reap)]);
        assert_eq!(outcome.failure.as_deref(), Some("reap: the driver broke, as it was told to"));
        assert_eq!(operations(&outcome), 20);
    }
}

#[test]
fn a_panic_keeps_what_others_measured() {
    let mut load = closed_load(3, 1);
    (load.limit.time_ns, load.interval_ns) = (Some(60 * SECOND), 10 * MS);
    let outcome = run_with(&load, || vec![(50, Fault::Panic)]);
    let failure = outcome.failure.as_deref();
    assert_eq!(failure, Some("worker 2 panicked: the driver panicked, as it was told to"));
    let workers = &outcome.samples.workers;
    for worker in &workers[..2] {
        assert_eq!(worker.failure, None);
        assert!(worker.operations() >= 50, "{}", worker.operations());
    }
    // The intervals that it had handed over; the one it panicked in is lost.
    assert_eq!((workers[2].operations(), workers[2].failure.as_deref()), (40, failure));
    // The others go on while the panic unwinds, and no longer.
    assert!((50 * MS..60 * SECOND).contains(&outcome.samples.elapsed_ns));
}

#[test]
fn a_worker_that_cannot_open_refuses_the_phase() {
    let clock = VirtualClock::new();
    let target = SimulatedTarget::new(&clock, Service::Fixed(MS), 1);
    let began = Arc::new(AtomicBool::new(false));
    let watched = Arc::clone(&began);
    let refused = job_opening(&closed_load(3, 1), move |worker| {
        if worker == 1 {
            return Err(Error::new(ErrorKind::Unsupported, "open", "no such thing here").with("path", "/x"));
        }
        let began = Arc::clone(&watched);
        let fault = Fault::Call(Box::new(move || began.store(true, Ordering::Relaxed)));
        let driver = Box::new(FaultyDriver::new(Box::new(target.driver())).with_fault(0, fault)) as AnyDriver;
        let source = TestSource::reads(BLOCK);
        Ok(WorkerSetup { driver, source, notes: Vec::new(), parts: Vec::new() })
    });
    let error = run_phase(refused, clock, &mut |_| {}).expect_err("refused");
    assert_eq!(error.to_string(), "open: no such thing here (path=/x)");
    assert_eq!((error.kind(), error.exit_code()), (ErrorKind::Unsupported, 1));
    assert!(!began.load(Ordering::Relaxed), "nobody began");
}

#[test]
fn a_panic_while_opening_refuses_the_phase() {
    let clock = VirtualClock::new();
    let open = |_| -> (AnyDriver, TestSource) { panic!("no luck") };
    let error = run_phase(job(&closed_load(1, 1), open), clock, &mut |_| {}).expect_err("refused");
    assert_eq!(error.to_string(), "open: worker 0 panicked: no luck");
}

#[test]
fn an_interruption_keeps_what_was_measured() {
    let clock = VirtualClock::new();
    let target = SimulatedTarget::new(&clock, Service::Fixed(MS), 1);
    let interrupt = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&interrupt);
    let mut load = closed_load(1, 1);
    load.limit.time_ns = Some(3600 * SECOND);
    let mut interrupted = job(&load, move |_| {
        let flag = Arc::clone(&flag);
        let call = Fault::Call(Box::new(move || flag.store(true, Ordering::Relaxed)));
        let driver = FaultyDriver::new(Box::new(target.driver())).with_fault(100, call);
        (Box::new(driver) as AnyDriver, TestSource::reads(BLOCK))
    });
    interrupted.interrupt = interrupt;
    let outcome = run(interrupted, clock);
    assert_eq!(outcome.failure.as_deref(), Some("interrupted"));
    assert_eq!(outcome.samples.interrupted.as_deref(), Some("interrupted by a signal"));
    assert_eq!((operations(&outcome), outcome.samples.elapsed_ns), (101, 101 * MS));
    assert_eq!(outcome.samples.workers[0].failure, None);
}

/// Finds damage in every fourth block that it checks.
struct Inspector {
    source: TestSource,
    checked: u64,
}

impl Source<TestOp> for Inspector {
    fn next(&mut self, slot: u32) -> Option<TestOp> {
        self.source.next(slot)
    }

    fn checks(&self) -> bool {
        true
    }

    fn check(&mut self, _op: &TestOp, bytes: u64) -> Result<(), DataFault> {
        assert_eq!(bytes, BLOCK);
        self.checked += 1;
        if self.checked.is_multiple_of(4) {
            return Err(DataFault { cause: "torn", detail: format!("block {}", self.checked) });
        }
        Ok(())
    }
}

#[test]
fn wrong_data_is_an_error_and_no_operation() {
    let clock = VirtualClock::new();
    let target = SimulatedTarget::new(&clock, Service::Fixed(MS), 4);
    let open = move |_| {
        let driver = FaultyDriver::new(Box::new(target.driver())).with_fault(2, Fault::Errno(EIO));
        (Box::new(driver) as AnyDriver, Inspector { source: TestSource::reads(BLOCK), checked: 0 })
    };
    let outcome = run(job(&counted(1, 4, 101, OnError::Continue), open), clock);
    let worker = &outcome.samples.workers[0];
    let errors: Vec<_> =
        worker.errors.iter().map(|error| (error.cause.as_str(), error.errno, error.count)).collect();
    // The one that failed was not checked.
    assert_eq!(errors, [("Input/output error (os error 5)", Some(EIO), 1), ("torn: block 4", None, 25)]);
    assert_eq!((worker.operations(), worker.classes[0].errors, worker.bytes()), (75, 26, 75 * BLOCK));
}
