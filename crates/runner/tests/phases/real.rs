//! The same loop on the clock of the machine.

use driver::HostClock;
use testkit::{InstantDriver, TestSource, closed_load, open_load};
use workload::plan::LoadPlan;
use workload::spec::Spacing;

use crate::support::{AnyDriver, BLOCK, MS, job, operations, run};

fn run_real(load: &LoadPlan) -> runner::Outcome {
    run(job(load, |_| (Box::new(InstantDriver) as AnyDriver, TestSource::reads(BLOCK))), HostClock::get())
}

/// Repeats what another load on the machine can disturb; one undisturbed run is enough.
fn holds_once(mut holds: impl FnMut() -> bool) -> bool {
    (0..50).any(|_| holds())
}

#[test]
fn a_time_limit_is_kept_within_ten_milliseconds() {
    let mut load = closed_load(1, 8);
    load.limit.time_ns = Some(200 * MS);
    assert!(holds_once(|| {
        let outcome = run_real(&load);
        assert_eq!((outcome.failure.as_deref(), outcome.samples.elapsed_ns), (None, 200 * MS));
        let ends: Vec<_> = outcome.samples.workers.iter().map(|worker| worker.finished_ns).collect();
        assert!(ends.iter().all(|&end_ns| end_ns <= 200 * MS), "{ends:?}");
        ends.iter().all(|&end_ns| end_ns >= 190 * MS)
    }));
}

#[test]
fn an_open_loop_keeps_its_rate() {
    let mut load = open_load(1000.0, Spacing::Constant, 4);
    load.limit.time_ns = Some(200 * MS);
    assert!(holds_once(|| {
        let outcome = run_real(&load);
        let arrivals = outcome.arrivals.expect("an open loop");
        assert_eq!(arrivals.started + arrivals.unserved, 200);
        assert_eq!(outcome.samples.elapsed_ns, 200 * MS);
        operations(&outcome) == 200
    }));
}

#[test]
fn snapshots_grow_towards_the_totals() {
    let mut load = closed_load(1, 1);
    (load.limit.time_ns, load.interval_ns) = (Some(350 * MS), 10 * MS);
    let mut seen = Vec::new();
    let open = |_| (Box::new(InstantDriver) as AnyDriver, TestSource::reads(BLOCK));
    let outcome = runner::run_phase(job(&load, open), HostClock::get(), &mut |snapshot| {
        seen.push((snapshot.elapsed_ns, snapshot.operations, snapshot.done_fraction));
        assert_eq!((snapshot.classes.len(), snapshot.workers.len()), (2, 1));
    })
    .expect("the station opens");
    assert!(!seen.is_empty() && seen.is_sorted_by(|a, b| a.0 < b.0 && a.1 <= b.1), "{seen:?}");
    assert!(seen.iter().all(|shot| shot.2.is_some_and(|done| (0.0..=1.0).contains(&done))), "{seen:?}");
    assert!(seen.iter().all(|shot| shot.1 <= operations(&outcome)));
}

#[test]
fn phases_at_the_same_time_are_seen_as_one() {
    let mut load = closed_load(1, 1);
    load.limit.time_ns = Some(350 * MS);
    let named = |name: &str, threads| {
        let mut load = load.clone();
        load.threads = threads;
        let open = |_| (Box::new(InstantDriver) as AnyDriver, TestSource::reads(BLOCK));
        runner::Job { name: name.to_owned(), ..job(&load, open) }
    };
    let mut seen = Vec::new();
    let jobs = vec![named("one", 1), named("two", 2)];
    let outcomes = runner::run_together(jobs, HostClock::get(), &mut |snapshot| {
        seen.push((snapshot.elapsed_ns, snapshot.operations, snapshot.done_fraction));
        assert_eq!((snapshot.phase.as_str(), snapshot.workers.len()), ("one + two", 3));
        assert_eq!(snapshot.classes, ["read", "write"]);
    })
    .expect("the stations open");
    assert!(!seen.is_empty() && seen.is_sorted_by(|a, b| a.0 < b.0 && a.1 <= b.1), "{seen:?}");
    assert!(seen.iter().all(|shot| shot.2.is_some_and(|done| (0.0..=1.0).contains(&done))), "{seen:?}");
    let all: u64 = outcomes.iter().map(operations).sum();
    assert!(seen.iter().all(|shot| shot.1 <= all));
}
