//! Figures by part of the target, and what drivers count besides.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use driver::{
    Clock, Completions, Driver, Error, ErrorKind, Fault as DataFault, Source, Submitted, Tally, Wait,
};
use runner::{Job, Outcome, WorkerSetup, run_coordinated};
use statistics::{CauseCount, PartTotals};
use testkit::{Fault, FaultyDriver, Service, SimulatedTarget, TestOp, TestSource, VirtualClock, closed_load};
use workload::plan::LoadPlan;
use workload::spec::{OnError, Warmup};

use crate::support::{AnyDriver, BLOCK, MS, SECOND, job, job_opening, operations, run};

/// Part k takes k + 1 ms. One operation at a time.
struct Routed {
    targets: Vec<AnyDriver>,
    part: usize,
    turns: Vec<u64>,
}

impl Routed {
    fn new(clock: &VirtualClock, parts: usize) -> Self {
        let target = |part: usize| -> AnyDriver {
            Box::new(SimulatedTarget::new(clock, Service::Fixed((part as u64 + 1) * MS), 1).driver())
        };
        Self { targets: (0..parts).map(target).collect(), part: 0, turns: vec![0; parts] }
    }
}

impl Driver<TestOp> for Routed {
    fn submit(&mut self, batch: &[TestOp], done: &mut Completions) -> Result<Submitted, Error> {
        self.part = batch[0].part;
        self.turns[self.part] += 1;
        self.targets[self.part].submit(&batch[..1], done)
    }

    fn reap(&mut self, wait: Wait, done: &mut Completions) -> Result<(), Error> {
        self.targets[self.part].reap(wait, done)
    }

    fn tallies(&mut self) -> Vec<Tally> {
        let turns = self.turns.iter().enumerate();
        turns.map(|(part, &turns)| Tally { part, name: "turns", value: turns as f64 }).collect()
    }
}

/// A job whose workers open what `open` gives them, with these numbers for their parts.
fn with_parts<S: Source<TestOp> + 'static, C: Clock>(
    load: &LoadPlan,
    open: impl Fn(u32) -> (AnyDriver, S) + Send + Sync + 'static,
    parts: &[usize],
) -> Job<C> {
    let parts = parts.to_vec();
    job_opening(load, move |worker| {
        let (driver, source) = open(worker);
        Ok(WorkerSetup { driver, source, notes: Vec::new(), parts: parts.clone() })
    })
}

fn routed(load: &LoadPlan, count: usize, numbers: &[usize]) -> Outcome {
    let clock = VirtualClock::new();
    let of_worker = clock.clone();
    let open = move |_| -> (AnyDriver, TestSource) {
        (Box::new(Routed::new(&of_worker, count)), TestSource::reads(BLOCK).over_parts(count))
    };
    run(with_parts(load, open, numbers), clock)
}

fn counted(operations: u64) -> LoadPlan {
    let mut load = closed_load(1, 1);
    load.limit.operations = Some(operations);
    load
}

/// Number, operations, bytes, errors, smallest and largest latency.
fn figures(part: &PartTotals) -> (usize, u64, u64, u64, Option<u64>, Option<u64>) {
    let latency = &part.latency;
    assert_eq!(latency.count(), part.operations);
    (part.part, part.operations, part.bytes, part.errors, latency.min_ns(), latency.max_ns())
}

#[test]
fn parts_have_their_own_figures_by_their_numbers() {
    let outcome = routed(&counted(101), 2, &[7, 3]);
    let worker = &outcome.samples.workers[0];
    let parts: Vec<_> = worker.parts.iter().map(figures).collect();
    let all = |part, operations, ns| (part, operations, operations * BLOCK, 0, Some(ns), Some(ns));
    assert_eq!(parts, [all(7, 51, MS), all(3, 50, 3 * MS - MS)]);
    let tallies: Vec<_> =
        worker.tallies.iter().map(|tally| (tally.part, tally.name.as_str(), tally.value)).collect();
    assert_eq!(tallies, [(7, "turns", 51.0), (3, "turns", 50.0)]);
    assert_eq!((worker.operations(), worker.origin.as_deref()), (101, None));
}

#[test]
fn without_names_nothing_is_kept_apart() {
    let outcome = routed(&counted(10), 2, &[]);
    let worker = &outcome.samples.workers[0];
    assert!(worker.parts.is_empty());
    assert_eq!(worker.tallies.iter().map(|tally| tally.part).collect::<Vec<_>>(), [0, 1]);
}

#[test]
fn parts_that_nobody_turned_to_are_left_out() {
    let outcome = routed(&counted(2), 3, &[4, 5, 6]);
    let parts = outcome.samples.workers[0].parts.iter().map(|part| part.part).collect::<Vec<_>>();
    assert_eq!(parts, [4, 5]);
}

#[test]
fn only_what_counts_in_the_window_counts_by_part() {
    let mut load = closed_load(1, 1);
    (load.warmup, load.limit.time_ns) = (Warmup::Fixed(10 * MS), Some(SECOND));
    let outcome = routed(&load, 2, &[0, 1]);
    let worker = &outcome.samples.workers[0];
    let by_part: u64 = worker.parts.iter().map(|part| part.operations).sum();
    assert_eq!((by_part, worker.operations()), (operations(&outcome), by_part));
    let turns: f64 = worker.tallies.iter().map(|tally| tally.value).sum();
    assert!(turns as u64 > by_part + 3, "the warm-up is no part of it: {turns} and {by_part}");
}

fn faulty(parts: usize, faults: fn() -> Vec<(u64, Fault)>, operations: u64) -> Outcome {
    let clock = VirtualClock::new();
    let target = SimulatedTarget::new(&clock, Service::Fixed(MS), 4);
    let mut load = counted(operations);
    (load.depth, load.batch, load.batch_max, load.on_error) = (4, 4, 4, OnError::Continue);
    let open = move |_| -> (AnyDriver, TestSource) {
        let driver = FaultyDriver::new(Box::new(target.driver()));
        let driver =
            faults().into_iter().fold(driver, |driver, (number, fault)| driver.with_fault(number, fault));
        (Box::new(driver), TestSource::reads(BLOCK).over_parts(parts))
    };
    let numbers: Vec<_> = (0..parts).collect();
    run(with_parts(&load, open, &numbers), clock)
}

#[test]
fn failures_are_counted_by_part_and_cause() {
    let outcome = faulty(
        2,
        || vec![(1, Fault::Errno(5)), (2, Fault::Errno(110)), (3, Fault::Errno(5)), (5, Fault::Short(1))],
        40,
    );
    let parts = &outcome.samples.workers[0].parts;
    let cause = |cause: &str, count| CauseCount { cause: cause.to_owned(), count };
    assert_eq!(
        parts.iter().map(|part| (part.operations, part.errors)).collect::<Vec<_>>(),
        [(19, 1), (17, 3)]
    );
    assert_eq!(parts[0].causes, [cause("Connection timed out (os error 110)", 1)]);
    assert_eq!(
        parts[1].causes,
        [cause("Input/output error (os error 5)", 2), cause("short: 1 of 4096 bytes", 1)]
    );
}

#[test]
fn kinds_of_failures_are_bounded() {
    let outcome = faulty(1, || (0..40).map(|number| (number, Fault::Short(number))).collect(), 100);
    let part = &outcome.samples.workers[0].parts[0];
    assert_eq!((part.operations, part.errors, part.causes.len()), (60, 40, 17));
    assert_eq!(part.causes.iter().map(|cause| cause.count).sum::<u64>(), 40);
    assert_eq!(part.causes.last().map(|cause| (cause.cause.as_str(), cause.count)), Some(("other", 24)));
}

/// Finds every tenth operation damaged.
struct Checked(TestSource, u64);

impl Source<TestOp> for Checked {
    fn next(&mut self, slot: u32) -> Option<TestOp> {
        self.0.next(slot)
    }

    fn checks(&self) -> bool {
        true
    }

    fn check(&mut self, _operation: &TestOp, _bytes: u64) -> Result<(), DataFault> {
        self.1 += 1;
        let damaged = self.1.is_multiple_of(10);
        if damaged {
            Err(DataFault { cause: "damaged", detail: format!("number {}", self.1) })
        } else {
            Ok(())
        }
    }
}

#[test]
fn wrong_data_is_an_error_of_its_part() {
    let clock = VirtualClock::new();
    let target = SimulatedTarget::new(&clock, Service::Fixed(MS), 1);
    let mut load = counted(100);
    load.on_error = OnError::Continue;
    let open = move |_| -> (AnyDriver, Checked) {
        (Box::new(target.driver()), Checked(TestSource::reads(BLOCK).over_parts(2), 0))
    };
    let outcome = run(with_parts(&load, open, &[0, 1]), clock);
    let parts = &outcome.samples.workers[0].parts;
    assert_eq!(
        parts.iter().map(|part| (part.operations, part.errors)).collect::<Vec<_>>(),
        [(50, 0), (40, 10)]
    );
    assert_eq!(parts[1].causes, [CauseCount { cause: "damaged".to_owned(), count: 10 }]);
}

#[test]
fn others_are_waited_for_once_all_stations_are_open() {
    let clock = VirtualClock::new();
    let begun_ns = clock.now_ns();
    let opened = Arc::new(AtomicU64::new(0));
    let (target, count) = (SimulatedTarget::new(&clock, Service::Fixed(MS), 8), Arc::clone(&opened));
    let mut load = closed_load(4, 1);
    load.limit.time_ns = Some(100 * MS);
    let open = move |_| -> (AnyDriver, TestSource) {
        count.fetch_add(1, Ordering::SeqCst);
        (Box::new(target.driver()), TestSource::reads(BLOCK))
    };
    let mut seen = None;
    let ready = &mut || {
        seen = Some(opened.load(Ordering::SeqCst));
        Ok(Some(50 * MS))
    };
    let outcomes = run_coordinated(vec![job(&load, open)], clock.clone(), ready, &mut |_| {});
    let outcome = outcomes.expect("the stations open").remove(0);
    assert_eq!((seen, outcome.failure.as_deref()), (Some(4), None));
    assert_eq!((outcome.samples.started_ns, outcome.samples.elapsed_ns), (begun_ns + 50 * MS, 100 * MS));
    assert_eq!((operations(&outcome), clock.now_ns()), (400, begun_ns + 150 * MS));
}

#[test]
fn nobody_begins_when_the_others_do_not() {
    let clock = VirtualClock::new();
    let begun_ns = clock.now_ns();
    let target = SimulatedTarget::new(&clock, Service::Fixed(MS), 8);
    let open = move |_| -> (AnyDriver, TestSource) { (Box::new(target.driver()), TestSource::reads(BLOCK)) };
    let ready = &mut || Err(Error::new(ErrorKind::Run, "barrier", "the others are gone"));
    let refused = run_coordinated(vec![job(&counted(10), open)], clock.clone(), ready, &mut |_| {});
    assert!(refused.err().is_some_and(|error| error.to_string().contains("the others are gone")));
    assert_eq!(clock.now_ns(), begun_ns);
}
