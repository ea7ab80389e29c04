//! The open loop: latency counts from when an operation was due.

use std::sync::{Arc, Mutex};

use driver::{Clock, Completions, Driver, Error, Submitted, Wait};
use statistics::{Histogram, WarmUp, summarise};
use testkit::{Service, SimulatedTarget, TestOp, TestSource, VirtualClock, open_load};
use units::Rate;
use workload::arrival::{Arrivals, Spacing};
use workload::spec::Warmup;

use crate::support::{
    AnyDriver, BLOCK, MS, SECOND, US, assert_within_a_thousandth, histogram, job, latency, operations, run,
    run_on,
};

/// A thousand operations a second for ten seconds; each takes 100 us but one, which takes 100 ms.
fn with_one_stall(depth: u32) -> Histogram {
    let mut load = open_load(1000.0, Spacing::Constant, depth);
    load.limit.time_ns = Some(10 * SECOND);
    let mut times = vec![100 * US; 10_000];
    times[5000] = 100 * MS;
    let outcome = run_on(&load, Service::List(times), 1);
    let arrivals = outcome.arrivals.expect("an open loop");
    assert_eq!((arrivals.started, arrivals.unserved, operations(&outcome)), (10_000, 0, 10_000));
    histogram(&outcome)
}

/// The operation due j milliseconds after the stalled one waits for it and for the j before it: it is done at 100 + 0.1 j, after
/// 100 - 0.9 j ms, as long as there is a queue (j up to 110). So the hundred slowest of the ten thousand are j = 0 to 99.
#[test]
fn waiting_behind_a_slow_operation_is_counted() {
    for depth in [1, 16, 128] {
        let found = with_one_stall(depth);
        assert_eq!((found.min_ns(), found.max_ns()), (Some(100 * US), Some(100 * MS)), "depth {depth}");
        let at = |percent: f64| found.percentile(percent).unwrap() as f64;
        assert_within_a_thousandth(at(50.0), 0.1e6);
        assert_within_a_thousandth(at(99.0), 10e6); // j = 100
        assert_within_a_thousandth(at(99.9), 91e6); // j = 10
        assert_within_a_thousandth(at(99.99), 99.1e6); // j = 1
        let waiting: f64 = (0..=110).map(|j| 100e6 - 0.9e6 * f64::from(j)).sum();
        assert_within_a_thousandth(
            found.mean_ns().unwrap(),
            (waiting + (10_000.0 - 111.0) * 0.1e6) / 10_000.0,
        );
    }
}

#[test]
fn constant_arrivals_keep_their_rate() {
    for (rate, service_ns) in [(1000.0, 100 * US), (100_000.0, 2 * US), (300_000.0, US), (1e6, 400)] {
        let mut load = open_load(rate, Spacing::Constant, 8);
        load.limit.time_ns = Some(100 * MS);
        let outcome = run_on(&load, Service::Fixed(service_ns), 8);
        assert_within_a_thousandth(operations(&outcome) as f64, rate / 10.0);
        let arrivals = outcome.arrivals.expect("an open loop");
        assert_eq!((arrivals.started as f64, arrivals.unserved), (rate / 10.0, 0));
        let found = latency(&outcome);
        assert_eq!((found.min_ns, found.max_ns), (service_ns, service_ns), "nobody waits at {rate}/s");
    }
}

#[test]
fn workers_share_the_rate_in_turn() {
    let mut load = open_load(1000.0, Spacing::Constant, 4);
    load.threads = 3;
    load.limit.time_ns = Some(SECOND);
    let outcome = run_on(&load, Service::Fixed(100 * US), 8);
    let each: Vec<_> = outcome.samples.workers.iter().map(|worker| worker.operations()).collect();
    assert_eq!(each, [334, 333, 333]);
    let starts: Vec<_> = outcome.samples.workers.iter().map(|worker| worker.started_ns).collect();
    assert_eq!(starts, [0, MS, 2 * MS]);
}

/// Notes when each operation is submitted.
struct Recorder {
    inner: AnyDriver,
    clock: VirtualClock,
    at_ns: Arc<Mutex<Vec<u64>>>,
}

impl Driver<TestOp> for Recorder {
    fn submit(&mut self, batch: &[TestOp], done: &mut Completions) -> Result<Submitted, Error> {
        let now = self.clock.now_ns();
        self.at_ns.lock().expect("lock").extend(batch.iter().map(|_| now));
        self.inner.submit(batch, done)
    }

    fn reap(&mut self, wait: Wait, done: &mut Completions) -> Result<(), Error> {
        self.inner.reap(wait, done)
    }
}

#[test]
fn poisson_arrivals_have_exponential_gaps() {
    let (rate, window_ns) = (10_000.0, 10 * SECOND);
    let mut load = open_load(rate, Spacing::Poisson, 64);
    load.limit.time_ns = Some(window_ns);
    let clock = VirtualClock::new();
    let target = SimulatedTarget::new(&clock, Service::Fixed(US), 64);
    let at_ns = Arc::new(Mutex::new(Vec::new()));
    let (noted, its_clock) = (Arc::clone(&at_ns), clock.clone());
    let open = move |_| {
        let (at_ns, clock) = (Arc::clone(&noted), its_clock.clone());
        let recorder = Recorder { inner: Box::new(target.driver()), clock, at_ns };
        (Box::new(recorder) as AnyDriver, TestSource::reads(BLOCK))
    };
    let outcome = run(job(&load, open), clock);
    let mut due = Rate::new(rate)
        .and_then(|rate| Arrivals::new(Spacing::Poisson, rate, 0, 1, load.seed))
        .expect("a rate");
    let planned = std::iter::repeat_with(|| due.next()).take_while(|&due| due < window_ns).count();
    let arrivals = outcome.arrivals.expect("an open loop");
    assert_eq!((arrivals.started, arrivals.unserved), (planned as u64, 0));
    let achieved = operations(&outcome) as f64 / 10.0;
    assert!((achieved / rate - 1.0).abs() < 0.005, "{achieved}/s");
    let at_ns = at_ns.lock().expect("lock");
    let gaps: Vec<f64> = at_ns.windows(2).map(|pair| (pair[1] - pair[0]) as f64 * rate / 1e9).collect();
    // The share of gaps above x is e^-x; with 100 000 gaps its standard deviation is at most 0.16 %.
    for x in [0.1, 0.5, 1.0, 2.0, 4.0_f64] {
        let share = gaps.iter().filter(|&&gap| gap > x).count() as f64 / gaps.len() as f64;
        assert!((share - (-x).exp()).abs() < 0.005, "{share} of the gaps are above {x}");
    }
    let found = latency(&outcome);
    // A poll of the simulated driver lasts 100 ns, by which a start may be late.
    assert!(found.min_ns == US && found.max_ns <= US + 100, "{} ns", found.max_ns);
}

#[test]
fn arrivals_that_were_never_served_are_counted() {
    let mut load = open_load(1000.0, Spacing::Constant, 1);
    load.limit.time_ns = Some(SECOND);
    let outcome = run_on(&load, Service::Fixed(10 * MS), 1);
    let arrivals = outcome.arrivals.expect("an open loop");
    assert_eq!((operations(&outcome), arrivals.started, arrivals.unserved), (100, 100, 900));
    // The k-th is due after k ms and done after 10 (k + 1) ms; those that never left had waited until the close.
    let found = latency(&outcome);
    assert_eq!((found.count, found.lower_bounds), (1000, 900));
    assert_within_a_thousandth(found.min_ns as f64, 10e6);
    assert_eq!((found.max_ns, found.lower_bound_from_percent), (901 * MS, Some(50.0)));
    let outcome_of = summarise(&outcome.samples, WarmUp::None);
    assert_eq!(outcome_of.unfinished_operations, 0, "none of them began");
    assert_eq!(outcome_of.concurrency, 1.0);
}

#[test]
fn a_low_rate_lasts_as_long_as_planned() {
    let mut load = open_load(1.0, Spacing::Constant, 1);
    load.limit.time_ns = Some(2 * SECOND + SECOND / 2);
    let outcome = run_on(&load, Service::Fixed(MS), 1);
    assert_eq!((operations(&outcome), outcome.samples.elapsed_ns), (3, 2 * SECOND + SECOND / 2));
}

#[test]
fn a_count_ends_an_open_loop() {
    let mut load = open_load(1000.0, Spacing::Constant, 4);
    load.limit.operations = Some(50);
    let outcome = run_on(&load, Service::Fixed(100 * US), 4);
    assert_eq!(operations(&outcome), 50);
    assert_eq!(outcome.samples.elapsed_ns, 49 * MS + 100 * US);
    assert_eq!(outcome.arrivals.expect("an open loop").unserved, 0);
}

#[test]
fn an_open_loop_warms_up_too() {
    let mut load = open_load(1000.0, Spacing::Constant, 4);
    (load.warmup, load.limit.time_ns) = (Warmup::Fixed(500 * MS), Some(SECOND));
    let outcome = run_on(&load, Service::Fixed(100 * US), 4);
    let arrivals = outcome.arrivals.expect("an open loop");
    assert_eq!((operations(&outcome), arrivals.started, arrivals.unserved), (1000, 1000, 0));
    (load.limit.time_ns, load.limit.operations) = (None, Some(77));
    assert_eq!(operations(&run_on(&load, Service::Fixed(100 * US), 4)), 77);
}
