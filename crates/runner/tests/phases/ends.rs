//! Operations in flight at the end of the window, operations that hang, and how much was in flight.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use driver::{Clock, Completions, Driver, Error, HostClock, Source, Span, Submitted, Wait};
use host::activity::Usage;
use runner::{Outcome, run_phase};
use statistics::{Snapshot, WarmUp, summarise};
use testkit::{
    Fault, FaultyDriver, InstantDriver, Service, SimulatedTarget, TestOp, TestSource, VirtualClock,
    closed_load, open_load,
};
use workload::arrival::Spacing;
use workload::plan::LoadPlan;
use workload::spec::{OnError, Warmup};

use crate::support::{
    AnyDriver, BLOCK, MS, SECOND, US, assert_within_a_thousandth, histogram, job, job_opening, latency,
    operations, run, run_all, run_on,
};

/// How long what hangs is waited for.
const GRACE_NS: u64 = 300 * MS;

/// Reads of 100 us, of which 3 in 100 take 8 s.
fn slow_tail() -> Service {
    let mut times = vec![100 * US; 100];
    for at in [20, 50, 80] {
        times[at] = 8 * SECOND;
    }
    Service::List(times)
}

fn percentile(outcome: &Outcome, percent: f64) -> u64 {
    histogram(outcome).percentile(percent).expect("something began")
}

#[test]
fn a_slow_tail_is_in_the_latencies_of_an_open_loop() {
    let mut load = open_load(100.0, Spacing::Constant, 128);
    load.limit.time_ns = Some(5 * SECOND);
    let outcome = run_on(&load, slow_tail(), 128);
    assert_eq!(outcome.failure, None);
    // 15 of 500: what began in the window is in the latencies, what completed in it in the rate.
    let found = latency(&outcome);
    assert_eq!((found.count, operations(&outcome), found.lower_bounds), (500, 485, 0));
    assert_within_a_thousandth(percentile(&outcome, 99.0) as f64, 8e9);
    assert_eq!((percentile(&outcome, 95.0) / US, found.max_ns), (100, 8 * SECOND));
    let summary = summarise(&outcome.samples, WarmUp::Auto);
    assert_eq!((summary.drained_operations, outcome.samples.elapsed_ns), (15, 5 * SECOND));
    assert_within_a_thousandth(summary.drain_ns as f64, 7.8e9);
    // 3 a second stay: their number grows to 15, beside 0.01 of those that take 100 us.
    assert_within_a_thousandth(summary.concurrency, 7.51);
}

#[test]
fn what_hangs_in_a_closed_loop_is_in_flight_and_in_the_latencies() {
    let mut load = closed_load(16, 1);
    load.limit.time_ns = Some(2 * SECOND);
    let mut times = vec![MS; 100];
    times[50] = 8 * SECOND;
    let outcome = run_on(&load, Service::List(times), 16);
    let (found, summary) = (latency(&outcome), summarise(&outcome.samples, WarmUp::None));
    // Every thread meets one that hangs, sooner or later: from then on it is in flight and does nothing else.
    assert_eq!((found.max_ns, summary.drained_operations), (8 * SECOND, 16));
    assert_eq!(found.count, operations(&outcome) + 16);
    assert_within_a_thousandth(summary.concurrency, 16.0);
}

/// The target stands still for 200 ms each second; 1000 operations a second, each 100 us.
#[test]
fn a_stall_each_second_is_in_the_tail_of_an_open_loop() {
    let mut load = open_load(1000.0, Spacing::Constant, 512);
    load.limit.time_ns = Some(2 * SECOND);
    let mut times = vec![100 * US; 1000];
    times[900] = 200 * MS;
    let outcome = run_on(&load, Service::List(times.clone()), 1);
    // The same by hand: one server, first come, first served.
    let mut free_ns = 0;
    let mut expected: Vec<u64> = (0..2000_u64)
        .map(|number| {
            let due_ns = number * MS;
            free_ns = due_ns.max(free_ns) + times[number as usize % 1000];
            free_ns - due_ns
        })
        .collect();
    expected.sort_unstable();
    let rank = |percent: f64| expected[(percent * 20.0) as usize - 1] as f64;
    let [p90, p99] = [90.0, 99.0].map(|percent| percentile(&outcome, percent));
    assert_eq!(latency(&outcome).count, 2000);
    assert_within_a_thousandth(p90 as f64, rank(90.0));
    assert_within_a_thousandth(p99 as f64, rank(99.0));
    assert!(p90 > 80 * MS, "{p90}");
}

#[test]
fn latencies_belong_to_the_interval_in_which_their_operation_began() {
    let mut load = closed_load(1, 1);
    (load.limit.time_ns, load.interval_ns) = (Some(SECOND), 100 * MS);
    let mut times = vec![10 * MS; 100];
    times[5] = 500 * MS;
    let outcome = run_on(&load, Service::List(times), 1);
    let points = &outcome.samples.series.points;
    let longest: Vec<_> =
        points.iter().map(|point| point.classes[0].latency.max_ns().unwrap_or(0) / MS).collect();
    assert_eq!(longest, [500, 0, 0, 0, 0, 10, 10, 10, 10, 10]);
    let in_flight: Vec<_> = points.iter().map(|point| point.in_flight_ns).collect();
    assert_eq!(in_flight, [Some(100 * MS); 10], "one was in flight all the time");
}

/// Takes every operation and never completes those from one on.
struct Hanging {
    inner: AnyDriver,
    clock: VirtualClock,
    left: u32,
    running: usize,
    held: u32,
}

impl Driver<TestOp> for Hanging {
    fn submit(&mut self, batch: &[TestOp], done: &mut Completions) -> Result<Submitted, Error> {
        let taken = batch.len().min(self.left as usize);
        self.left -= taken as u32;
        let accepted = self.inner.submit(&batch[..taken], done)?.accepted;
        self.running += accepted - done.len();
        self.held += (batch.len() - taken) as u32;
        Ok(Submitted { accepted: accepted + batch.len() - taken })
    }

    fn reap(&mut self, wait: Wait, done: &mut Completions) -> Result<(), Error> {
        let before = done.len();
        self.inner.reap(Wait::None, done)?;
        self.running -= done.len() - before;
        match wait {
            Wait::None if done.is_empty() => self.clock.sleep_ns(US),
            Wait::Timeout { timeout_ns, .. } if done.is_empty() => {
                let step_ns = if self.running > 0 { 100 * US } else { timeout_ns };
                self.clock.sleep_ns(timeout_ns.min(step_ns));
            }
            Wait::AtLeast(_) if done.is_empty() && self.held > 0 => self.clock.sleep_ns(3600 * SECOND),
            Wait::AtLeast(_) if done.is_empty() => self.clock.sleep_ns(100 * US),
            _ => {}
        }
        Ok(())
    }
}

/// A job of one worker whose operations hang from the 11th on; each other takes 1 ms.
fn hanging(load: &LoadPlan) -> (runner::Job<VirtualClock>, VirtualClock) {
    let clock = VirtualClock::new();
    let target = SimulatedTarget::new(&clock, Service::Fixed(MS), 4);
    let its_clock = clock.clone();
    let mut job = job(load, move |_| {
        let hanging = Hanging {
            inner: Box::new(target.driver()),
            clock: its_clock.clone(),
            left: 10,
            running: 0,
            held: 0,
        };
        (Box::new(hanging) as AnyDriver, TestSource::reads(BLOCK))
    });
    job.grace_ns = GRACE_NS;
    (job, clock)
}

fn run_hanging(load: &LoadPlan) -> Outcome {
    let (job, clock) = hanging(load);
    run_phase(job, clock, &mut |_| {}).expect("the station opens")
}

/// Takes everything and completes nothing, on a real clock.
struct Deaf;

impl Driver<TestOp> for Deaf {
    fn submit(&mut self, batch: &[TestOp], _done: &mut Completions) -> Result<Submitted, Error> {
        Ok(Submitted { accepted: batch.len() })
    }

    fn reap(&mut self, _wait: Wait, _done: &mut Completions) -> Result<(), Error> {
        std::thread::sleep(Duration::from_millis(10));
        Ok(())
    }
}

#[test]
fn it_is_shown_that_a_phase_waits() {
    let mut load = closed_load(2, 4);
    load.limit.time_ns = Some(SECOND);
    let mut job = job(&load, |_| (Box::new(Deaf) as AnyDriver, TestSource::reads(BLOCK)));
    job.grace_ns = 2 * SECOND;
    let mut shown = Vec::new();
    let outcome = run_phase(job, HostClock::get(), &mut |snapshot: &Snapshot| shown.extend(snapshot.waiting));
    assert!(outcome.expect("the stations open").failure.is_some());
    // One worker may give up before the other.
    let waiting = shown.iter().max_by_key(|waiting| waiting.operations).expect("it is shown");
    assert_eq!((waiting.operations, waiting.grace_ns), (8, 2 * SECOND));
    assert!(waiting.waited_ns > 0 && waiting.waited_ns <= 2 * SECOND);
}

/// Takes everything, completes nothing, and keeps its processor busy; counts the time of it from when the phase is seen to wait.
struct Spinning {
    waits: Arc<AtomicBool>,
    spun_ns: Arc<AtomicU64>,
}

impl Driver<TestOp> for Spinning {
    fn submit(&mut self, batch: &[TestOp], _done: &mut Completions) -> Result<Submitted, Error> {
        Ok(Submitted { accepted: batch.len() })
    }

    fn reap(&mut self, _wait: Wait, _done: &mut Completions) -> Result<(), Error> {
        let waits = self.waits.load(Ordering::Acquire);
        let before = Usage::of_thread();
        while Usage::of_thread().since(&before).cpu_ns() < 5 * MS {}
        if waits {
            self.spun_ns.fetch_add(Usage::of_thread().since(&before).cpu_ns(), Ordering::Relaxed);
        }
        Ok(())
    }
}

/// Processor time that waiting for what hangs takes belongs to no window: neither one that time ended, nor one in which nothing came.
#[test]
fn processors_that_only_waited_are_not_counted() {
    for time_ns in [Some(10 * MS), None] {
        let (waits, spun_ns) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let mut load = closed_load(1, 4);
        (load.limit.time_ns, load.limit.operations) = (time_ns, Some(1000));
        let (its_waits, its_spun) = (Arc::clone(&waits), Arc::clone(&spun_ns));
        let mut job = job(&load, move |_| {
            let spinning = Spinning { waits: Arc::clone(&its_waits), spun_ns: Arc::clone(&its_spun) };
            (Box::new(spinning) as AnyDriver, TestSource::reads(BLOCK))
        });
        job.grace_ns = 4 * SECOND;
        let before = Usage::of_process();
        let outcome = run_phase(job, HostClock::get(), &mut |snapshot: &Snapshot| {
            waits.fetch_or(snapshot.waiting.is_some(), Ordering::Release);
        });
        let samples = outcome.expect("the station opens").samples;
        let whole_ns = Usage::of_process().since(&before).cpu_ns();
        let counted_ns = samples.process_cpu_user_ns + samples.process_cpu_system_ns;
        let spun_ns = spun_ns.load(Ordering::Relaxed);
        assert!(counted_ns + spun_ns <= whole_ns && spun_ns > 0, "{counted_ns}, {spun_ns} of {whole_ns}");
        if time_ns.is_none() {
            assert_eq!((counted_ns, summarise(&samples, WarmUp::None).cpus_used), (0, 0.0));
        }
    }
}

#[test]
fn what_hangs_beyond_the_grace_counts_with_the_time_it_has_waited() {
    let mut load = closed_load(1, 4);
    load.limit.time_ns = Some(100 * MS);
    let outcome = run_hanging(&load);
    assert!(outcome.failure.as_deref().is_some_and(|failure| failure.contains("an operation hangs")));
    let worker = &outcome.samples.workers[0];
    assert_eq!(worker.unfinished_operations, 4);
    let (found, summary) = (latency(&outcome), summarise(&outcome.samples, WarmUp::None));
    assert_eq!((found.count, found.lower_bounds, summary.unfinished_operations), (14, 4, 4));
    assert!(found.max_ns >= GRACE_NS, "{}", found.max_ns);
    assert_eq!(found.lower_bound_from_percent, Some(90.0), "4 of 14 are lower bounds");
    assert_eq!((found.p50_ns / MS, outcome.samples.elapsed_ns), (1, 100 * MS));
    assert!((summary.concurrency / 4.0 - 1.0).abs() < 0.05, "{}", summary.concurrency);
    assert!(summary.drain_ns >= GRACE_NS);
}

#[test]
fn arrivals_behind_what_hangs_count_with_the_time_they_have_waited() {
    let mut load = open_load(1000.0, Spacing::Constant, 4);
    load.limit.time_ns = Some(100 * MS);
    let outcome = run_hanging(&load);
    let arrivals = outcome.arrivals.expect("an open loop");
    assert_eq!((arrivals.started, arrivals.unserved), (14, 86));
    let found = latency(&outcome);
    assert_eq!((found.count, found.lower_bounds, found.min_ns / US), (100, 90, 1000));
    assert_eq!(found.lower_bound_from_percent, Some(50.0));
    // The 14th arrival and all after it had waited until the close, evenly from 86 ms down; four hang on.
    assert!((found.p50_ns as f64 / 40e6 - 1.0).abs() < 0.1, "{}", found.p50_ns);
    assert!(percentile(&outcome, 99.0) >= GRACE_NS);
}

#[test]
fn a_count_that_hangs_ends_when_nothing_has_completed_for_the_grace() {
    let mut load = closed_load(1, 4);
    load.limit.operations = Some(1000);
    let outcome = run_hanging(&load);
    let failure = outcome.failure.as_deref().unwrap_or_default();
    assert!(failure.starts_with("worker 0 is stuck: nothing completed for"), "{failure}");
    let (found, summary) = (latency(&outcome), summarise(&outcome.samples, WarmUp::None));
    assert_eq!((operations(&outcome), found.lower_bounds, summary.unfinished_operations), (10, 4, 4));
    assert!(found.max_ns >= GRACE_NS && summary.drain_ns >= GRACE_NS, "{summary:?}");
    assert_eq!(found.p50_ns / MS, 1);
}

/// Takes everything, and completes one operation after the other, each of them late, on a real clock.
struct Slow(Vec<u32>, Instant, Duration);

impl Driver<TestOp> for Slow {
    fn submit(&mut self, batch: &[TestOp], _done: &mut Completions) -> Result<Submitted, Error> {
        self.0.extend(batch.iter().map(|operation| operation.slot));
        Ok(Submitted { accepted: batch.len() })
    }

    fn reap(&mut self, _wait: Wait, done: &mut Completions) -> Result<(), Error> {
        std::thread::sleep(Duration::from_millis(10));
        if self.1.elapsed() >= self.2 {
            self.1 = Instant::now();
            self.0.drain(..1).for_each(|slot| done.push(slot, BLOCK as i64));
        }
        Ok(())
    }
}

#[test]
fn it_is_shown_that_a_count_hangs_and_what_is_only_slow_is_waited_for() {
    let mut load = closed_load(1, 2);
    load.limit.operations = Some(2);
    let open = |_| {
        let slow = Slow(Vec::new(), Instant::now(), Duration::from_secs(4));
        (Box::new(slow) as AnyDriver, TestSource::reads(BLOCK))
    };
    let mut job = job(&load, open);
    // Each comes within the grace of the one before it, both together do not.
    job.grace_ns = 6 * SECOND;
    let mut shown = Vec::new();
    let outcome = run_phase(job, HostClock::get(), &mut |snapshot: &Snapshot| shown.extend(snapshot.waiting));
    let outcome = outcome.expect("the station opens");
    assert_eq!((outcome.failure.as_deref(), operations(&outcome)), (None, 2));
    let waiting = shown.last().expect("it is shown");
    assert_eq!((waiting.operations, waiting.grace_ns), (1, 6 * SECOND));
    assert!(waiting.waited_ns >= 3 * SECOND, "{waiting:?}");
}

#[test]
fn one_who_interrupts_does_not_wait_out_the_grace() {
    let mut load = closed_load(1, 4);
    load.limit.operations = Some(1000);
    let (mut job, clock) = hanging(&load);
    job.grace_ns = u64::MAX;
    job.interrupt = Arc::new(AtomicBool::new(false));
    let interrupt = Arc::clone(&job.interrupt);
    let outcome = run_phase(job, clock, &mut |_| interrupt.store(true, Ordering::Relaxed));
    let outcome = outcome.expect("the stations open");
    assert_eq!(outcome.samples.workers[0].unfinished_operations, 4);
    assert_eq!(latency(&outcome).lower_bounds, 4);
}

/// Carries a batch out one by one within submit, 1 ms each, and says so.
struct InTurn(VirtualClock);

impl Driver<TestOp> for InTurn {
    fn submit(&mut self, batch: &[TestOp], done: &mut Completions) -> Result<Submitted, Error> {
        for operation in batch {
            let began_ns = self.0.now_ns();
            self.0.sleep_ns(MS);
            done.push_timed(
                operation.slot,
                operation.bytes as i64,
                Span { began_ns, ended_ns: self.0.now_ns() },
            );
        }
        Ok(Submitted { accepted: batch.len() })
    }
}

#[test]
fn an_operation_of_a_batch_carried_out_in_submit_has_its_own_latency() {
    let clock = VirtualClock::new();
    let mut load = closed_load(1, 16);
    load.limit.operations = Some(160);
    let its_clock = clock.clone();
    let outcome = run(
        job(&load, move |_| (Box::new(InTurn(its_clock.clone())) as AnyDriver, TestSource::reads(BLOCK))),
        clock,
    );
    let found = latency(&outcome);
    assert_eq!((found.count, found.min_ns, found.max_ns), (160, MS, MS));
    assert_eq!(outcome.samples.elapsed_ns, 160 * MS);
    let summary = summarise(&outcome.samples, WarmUp::None);
    assert_within_a_thousandth(summary.concurrency, 1.0);
}

#[test]
fn of_a_batch_counts_what_was_completed_within_the_window() {
    // Batches of 16 ms: a window within one of them, one that begins and ends within two, and one that ends with a batch.
    for (warmup_ms, time_ms, expected) in
        [(0, 10, 10), (3, 9, 9), (3, 20, 20), (0, 32, 32), (15, 2, 2), (16, 16, 16), (20, 40, 40)]
    {
        for is_open in [false, true] {
            let clock = VirtualClock::new();
            let mut load = closed_load(1, 16);
            load.limit.time_ns = Some(time_ms * MS);
            load.interval_ns = 7 * MS;
            if is_open {
                load.arrivals = open_load(16_000.0, Spacing::Constant, 16).arrivals;
            }
            if warmup_ms > 0 {
                // No operation ends on the border.
                load.warmup = Warmup::Fixed(warmup_ms * MS + MS / 2);
            }
            let its_clock = clock.clone();
            let outcome = run(
                job(&load, move |_| {
                    (Box::new(InTurn(its_clock.clone())) as AnyDriver, TestSource::reads(BLOCK))
                }),
                clock,
            );
            let worker = &outcome.samples.workers[0];
            let what = format!("from {warmup_ms} ms, {time_ms} ms, open loop: {is_open}");
            let found = worker.classes[0].operations;
            // The first of an open loop is due when the load begins, and a batch is what is due then.
            if is_open {
                assert!(found.abs_diff(expected) <= 1, "{what}: {found}");
            } else {
                assert_eq!(found, expected, "{what}");
            }
            assert_eq!(worker.classes[0].bytes, found * BLOCK, "{what}");
            assert!(worker.drained_operations <= 16, "{what}: {}", worker.drained_operations);
        }
    }
}

/// A source whose every third operation does not count, and that counts how often each is prepared.
struct Counting {
    source: TestSource,
    drawn: u32,
    prepared: Arc<AtomicU32>,
}

impl Source<TestOp> for Counting {
    fn next(&mut self, slot: u32) -> Option<TestOp> {
        self.drawn += 1;
        self.source.next(slot)
    }

    fn prepares(&self) -> bool {
        true
    }

    fn prepare(&mut self, _op: &TestOp) {
        self.prepared.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn a_busy_driver_has_each_operation_prepared_once() {
    let clock = VirtualClock::new();
    let target = SimulatedTarget::new(&clock, Service::Fixed(MS), 4).with_depth_max(3);
    let prepared = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&prepared);
    let mut load = closed_load(1, 8);
    load.limit.operations = Some(100);
    let open = move |_| {
        let source = Counting { source: TestSource::reads(BLOCK), drawn: 0, prepared: Arc::clone(&counted) };
        (Box::new(target.driver()) as AnyDriver, source)
    };
    assert_eq!(operations(&run(job(&load, open), clock)), 100);
    assert_eq!(prepared.load(Ordering::Relaxed), 100);
}

/// Operations that succeed leave their slot through `check`, those that fail through `abandon`.
struct Leaving {
    source: TestSource,
    left: Arc<[AtomicU32; 2]>,
}

impl Source<TestOp> for Leaving {
    fn next(&mut self, slot: u32) -> Option<TestOp> {
        self.source.next(slot)
    }

    fn abandon(&mut self, _op: &TestOp) {
        self.left[1].fetch_add(1, Ordering::Relaxed);
    }

    fn checks(&self) -> bool {
        true
    }

    fn check(&mut self, _op: &TestOp, _bytes: u64) -> Result<(), driver::Fault> {
        self.left[0].fetch_add(1, Ordering::Relaxed);
        Ok(())
    }
}

#[test]
fn a_failed_operation_is_abandoned() {
    let clock = VirtualClock::new();
    let target = SimulatedTarget::new(&clock, Service::Fixed(MS), 1);
    let left = Arc::new([AtomicU32::new(0), AtomicU32::new(0)]);
    let counted = Arc::clone(&left);
    let mut load = closed_load(1, 1);
    (load.limit.operations, load.on_error) = (Some(10), OnError::Continue);
    let open = move |_| {
        let driver = FaultyDriver::new(Box::new(target.driver()))
            .with_fault(3, Fault::Errno(5))
            .with_fault(5, Fault::Short(7));
        let source = Leaving { source: TestSource::reads(BLOCK), left: Arc::clone(&counted) };
        (Box::new(driver) as AnyDriver, source)
    };
    assert_eq!(operations(&run(job(&load, open), clock)), 8);
    assert_eq!([0, 1].map(|way| left[way].load(Ordering::Relaxed)), [8, 2]);
}

#[test]
fn an_interruption_ends_a_run_whose_driver_never_opens() {
    let opens: fn(u32) -> (AnyDriver, TestSource) = |_| {
        std::thread::sleep(Duration::from_secs(600));
        (Box::new(InstantDriver), TestSource::reads(BLOCK))
    };
    let stuck = job(&closed_load(1, 1), opens);
    let interrupt = Arc::clone(&stuck.interrupt);
    let begun = Instant::now();
    std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(100));
        interrupt.store(true, Ordering::Relaxed);
    });
    let error = run_phase(stuck, HostClock::get(), &mut |_| {}).expect_err("interrupted");
    assert_eq!(error.to_string(), "open: interrupted while 1 worker was opening its driver");
    assert!(begun.elapsed() < Duration::from_secs(300));
}

/// Final operations and such do not count towards a limit, also when a warm-up hands them to the window.
#[test]
fn what_does_not_count_is_not_taken_off_a_limit_after_a_warm_up() {
    let mut load = closed_load(1, 8);
    (load.warmup, load.limit.operations) = (Warmup::Fixed(10 * MS), Some(50));
    let clock = VirtualClock::new();
    let target = SimulatedTarget::new(&clock, Service::Fixed(3 * MS), 8);
    let open = move |_| (Box::new(Uncounted(target.driver())) as Box<dyn Driver<FreeOp>>, FreeSource(0));
    let job = job_opening(&load, move |worker| {
        let (driver, source) = open(worker);
        Ok(runner::WorkerSetup { driver, source, notes: Vec::new(), parts: Vec::new() })
    });
    let outcome = run_phase(job, clock, &mut |_| {}).expect("the station opens");
    let worker = &outcome.samples.workers[0];
    assert_eq!(worker.classes[0].operations, 50, "every second operation counts, and these are 50");
}

/// Types of operations differ between layers: the figures of each phase are those of its own classes.
#[test]
fn phases_of_different_operations_run_at_the_same_time() {
    let clock = VirtualClock::new();
    let mut load = closed_load(1, 2);
    load.limit.operations = Some(40);
    let target = |service_ns| SimulatedTarget::new(&clock, Service::Fixed(service_ns), 2);
    let (plain, counted) = (target(2 * MS), target(5 * MS));
    let jobs = vec![
        job(&load, move |_| (Box::new(plain.driver()) as Box<dyn Driver<TestOp>>, TestSource::reads(BLOCK))),
        job_opening(&load, move |_| {
            let driver: Box<dyn Driver<FreeOp>> = Box::new(Uncounted(counted.driver()));
            Ok(runner::WorkerSetup { driver, source: FreeSource(0), notes: Vec::new(), parts: Vec::new() })
        }),
    ];
    let outcomes = run_all(jobs, clock);
    let shown = |at: usize| {
        let samples = &outcomes[at].samples;
        (samples.classes.clone(), samples.workers[0].classes[0].operations, latency(&outcomes[at]).max_ns)
    };
    assert_eq!(shown(0), (vec!["read".to_owned(), "write".to_owned()], 40, 2 * MS));
    assert_eq!(shown(1), (vec!["counts".to_owned(), "free".to_owned()], 40, 5 * MS));
}

/// Every second operation does not count towards limits.
#[derive(Clone, Copy)]
struct FreeOp(TestOp);

impl driver::Operation for FreeOp {
    const CLASSES: &'static [&'static str] = &["counts", "free"];

    fn class(&self) -> usize {
        self.0.class
    }

    fn slot(&self) -> u32 {
        self.0.slot
    }

    fn bytes(&self) -> u64 {
        self.0.bytes
    }

    fn is_limited(&self) -> bool {
        self.0.class == 0
    }
}

struct FreeSource(u32);

impl Source<FreeOp> for FreeSource {
    fn next(&mut self, slot: u32) -> Option<FreeOp> {
        self.0 += 1;
        let class = self.0 as usize % 2;
        Some(FreeOp(TestOp { class, slot, bytes: 0, part: 0 }))
    }
}

struct Uncounted(testkit::SimulatedDriver<FreeOp>);

impl Driver<FreeOp> for Uncounted {
    fn submit(&mut self, batch: &[FreeOp], done: &mut Completions) -> Result<Submitted, Error> {
        self.0.submit(batch, done)
    }

    fn reap(&mut self, wait: Wait, done: &mut Completions) -> Result<(), Error> {
        self.0.reap(wait, done)
    }
}

/// Takes its time to fill a buffer now and then, as a thread does that is kept from its processor.
struct Delayed {
    source: TestSource,
    clock: VirtualClock,
    delay_ns: u64,
    filled: u32,
}

impl Source<TestOp> for Delayed {
    fn next(&mut self, slot: u32) -> Option<TestOp> {
        self.source.next(slot)
    }

    fn prepares(&self) -> bool {
        true
    }

    fn prepare(&mut self, _op: &TestOp) {
        self.filled += 1;
        if self.filled.is_multiple_of(100) {
            self.clock.sleep_ns(self.delay_ns);
        }
    }
}

fn lateness(delay_ns: u64) -> (statistics::LatencySummary, statistics::LatencySummary) {
    let clock = VirtualClock::new();
    let target = SimulatedTarget::new(&clock, Service::Fixed(US), 64);
    let its_clock = clock.clone();
    let mut load = open_load(1000.0, Spacing::Constant, 64);
    load.limit.time_ns = Some(SECOND);
    let open = move |_| {
        let source =
            Delayed { source: TestSource::reads(BLOCK), clock: its_clock.clone(), delay_ns, filled: 0 };
        (Box::new(target.driver()) as AnyDriver, source)
    };
    let outcome = run(job(&load, open), clock);
    let summary = summarise(&outcome.samples, WarmUp::None);
    (summary.lateness.expect("an open loop"), summary.total.latency.expect("it ran"))
}

#[test]
fn what_strata_itself_delays_is_recorded_as_lateness() {
    // One of 100 leaves 20 ms late, and those due meanwhile wait with it: 20, 19, ... 1 ms. Behind the tenth, the last, nobody waits.
    let (late, latency) = lateness(20 * MS);
    assert_eq!((late.count, late.max_ns), (1000, 20 * MS));
    assert_within_a_thousandth(late.mean_ns, (9.0 * (20.0 * 21.0 / 2.0) + 20.0) * 1e6 / 1000.0);
    assert!(late.mean_ns > 0.99 * latency.mean_ns, "all of the latency but 1 us is strata's own");
    let (late, _) = lateness(0);
    assert_eq!(late.max_ns, 0);
}

#[test]
fn waiting_for_a_slow_target_is_no_lateness() {
    let mut load = open_load(1000.0, Spacing::Constant, 1);
    load.limit.time_ns = Some(SECOND);
    let summary = summarise(&run_on(&load, Service::Fixed(10 * MS), 1).samples, WarmUp::None);
    assert_eq!(summary.lateness.expect("an open loop").max_ns, 0);
}
