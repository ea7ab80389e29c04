//! The time in flight by interval, held against a driver's own log.

use std::sync::{Arc, Mutex};

use driver::{Clock, Completions, Driver, Error, Span, Submitted, Wait};
use testkit::{Fault, FaultyDriver, Service, SimulatedTarget, TestOp, TestSource, VirtualClock, closed_load};
use workload::plan::LoadPlan;
use workload::spec::{OnError, Warmup};

use crate::support::{AnyDriver, BLOCK, MS, SECOND, US, job, run};

/// From when to when operations were in flight.
type Log = Arc<Mutex<Vec<(u64, u64)>>>;

/// Writes down what a driver has in flight.
struct Logged {
    inner: AnyDriver,
    clock: VirtualClock,
    begun_ns: Vec<u64>,
    log: Log,
}

impl Logged {
    fn note(&self, known: usize, done: &Completions) {
        let now = self.clock.now_ns();
        let mut log = self.log.lock().expect("no test panics with it");
        for at in known..done.len() {
            let slot = done.as_slice()[at].slot;
            let waited = Span { began_ns: self.begun_ns[slot as usize], ended_ns: now };
            let span = done.span(at).unwrap_or(waited);
            log.push((span.began_ns, span.ended_ns));
        }
    }
}

impl Driver<TestOp> for Logged {
    fn submit(&mut self, batch: &[TestOp], done: &mut Completions) -> Result<Submitted, Error> {
        let now = self.clock.now_ns();
        batch.iter().for_each(|operation| self.begun_ns[operation.slot as usize] = now);
        let known = done.len();
        let submitted = self.inner.submit(batch, done)?;
        self.note(known, done);
        Ok(submitted)
    }

    fn reap(&mut self, wait: Wait, done: &mut Completions) -> Result<(), Error> {
        let known = done.len();
        self.inner.reap(wait, done)?;
        self.note(known, done);
        Ok(())
    }
}

/// Carries a batch out one by one within submit and tells each operation's time.
struct InTurn(VirtualClock, u64);

impl Driver<TestOp> for InTurn {
    fn submit(&mut self, batch: &[TestOp], done: &mut Completions) -> Result<Submitted, Error> {
        for operation in batch {
            let began_ns = self.0.now_ns();
            self.0.sleep_ns(self.1);
            let span = Span { began_ns, ended_ns: self.0.now_ns() };
            done.push_timed(operation.slot, operation.bytes as i64, span);
        }
        Ok(Submitted { accepted: batch.len() })
    }
}

/// Runs a load and holds the time in flight of each interval against the log.
fn holds(load: &LoadPlan, open: impl Fn(&VirtualClock) -> AnyDriver + Send + Sync + 'static) {
    let (clock, log) = (VirtualClock::new(), Log::default());
    let (its_clock, its_log) = (clock.clone(), Arc::clone(&log));
    let depth = load.depth as usize;
    let job = job(load, move |_| {
        let (inner, clock) = (open(&its_clock), its_clock.clone());
        let driver = Logged { inner, clock, begun_ns: vec![0; depth], log: Arc::clone(&its_log) };
        (Box::new(driver) as AnyDriver, TestSource::reads(BLOCK))
    });
    let warmup_ns = if let Warmup::Fixed(ns) = load.warmup { ns } else { 0 };
    let begin_ns = clock.now_ns();
    let outcome = run(job, clock);
    let log = log.lock().expect("the driver is gone");
    let end_ns = outcome.samples.elapsed_ns;
    assert!(log.len() > 50, "{} operations", log.len());
    for point in &outcome.samples.series.points {
        let open_ns = begin_ns + warmup_ns;
        let (from_ns, until_ns) = (open_ns + point.start_ns, open_ns + point.end_ns.min(end_ns));
        let within = |span: &(u64, u64)| span.1.min(until_ns).saturating_sub(span.0.max(from_ns));
        let expected: u64 = log.iter().map(within).sum();
        let found = point.in_flight_ns.unwrap_or_default();
        assert_eq!(found, expected, "from {} to {} ms", point.start_ns / MS, point.end_ns / MS);
    }
}

/// Two seconds in intervals of 100 ms, one worker.
fn load(depth: u32) -> LoadPlan {
    let mut load = closed_load(1, depth);
    (load.limit.time_ns, load.interval_ns) = (Some(2 * SECOND), 100 * MS);
    load
}

fn served(service: Service, servers: usize) -> impl Fn(&VirtualClock) -> AnyDriver + Send + Sync + 'static {
    move |clock| Box::new(SimulatedTarget::new(clock, service.clone(), servers).driver())
}

#[test]
fn the_time_in_flight_is_that_of_the_driver_s_log() {
    let times = |mean_ns| Service::Exponential { mean_ns, seed: 7 };
    // Short beside an interval, long beside it, a queue behind few servers, batches.
    holds(&load(1), served(times(3 * MS), 1));
    holds(&load(8), served(times(3 * MS), 8));
    holds(&load(8), served(times(250 * MS), 8));
    holds(&load(16), served(times(10 * MS), 3));
    let mut batches = load(16);
    (batches.batch, batches.batch_min) = (4, 4);
    holds(&batches, served(times(7 * MS), 5));
    let mut warm = load(8);
    warm.warmup = Warmup::Fixed(333 * MS);
    holds(&warm, served(times(40 * MS), 4));
}

#[test]
fn the_time_in_flight_holds_where_nothing_completes_for_long() {
    let mut times = vec![MS; 200];
    (times[60], times[130]) = (730 * MS, 450 * MS);
    holds(&load(1), served(Service::List(times.clone()), 1));
    holds(&load(4), served(Service::List(times), 1));
}

#[test]
fn the_time_in_flight_holds_with_failures_and_a_busy_driver() {
    let mut load = load(8);
    load.on_error = OnError::Continue;
    holds(&load, |clock| {
        let target = SimulatedTarget::new(clock, Service::Exponential { mean_ns: 9 * MS, seed: 3 }, 4);
        let mut driver = FaultyDriver::new(Box::new(target.driver()));
        for number in (20..300).step_by(20) {
            driver = driver.with_fault(number, Fault::Errno(5)).with_fault(number + 7, Fault::Busy);
            driver = driver.with_fault(number + 9, Fault::Short(100));
        }
        Box::new(driver)
    });
}

#[test]
fn the_time_in_flight_of_a_batch_carried_out_in_submit_is_that_of_each_operation() {
    holds(&load(16), |clock| Box::new(InTurn(clock.clone(), 30 * MS)));
    holds(&load(4), |clock| Box::new(InTurn(clock.clone(), 700 * US)));
}
