//! Running a phase in a line.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use driver::{Clock, Driver, Error, Operation, Source};
use runner::{Job, Opener, Outcome, WorkerSetup, run_phase, run_together};
use statistics::{Histogram, LatencySummary, PhaseSamples};
use testkit::{Service, SimulatedTarget, TestOp, TestSource, VirtualClock};
use workload::plan::LoadPlan;
use workload::spec::Warmup;

pub(crate) const US: u64 = 1_000;
pub(crate) const MS: u64 = 1_000_000;
pub(crate) const SECOND: u64 = 1_000_000_000;
/// Size of the operations.
pub(crate) const BLOCK: u64 = 4096;

pub(crate) type AnyDriver = Box<dyn Driver<TestOp>>;

/// A job whose workers open what `open` gives them.
pub(crate) fn job<S: Source<TestOp> + 'static, C: Clock>(
    load: &LoadPlan,
    open: impl Fn(u32) -> (AnyDriver, S) + Send + Sync + 'static,
) -> Job<C> {
    job_opening(load, move |worker| {
        let (driver, source) = open(worker);
        Ok(WorkerSetup { driver, source, notes: vec!["a note".to_owned()], parts: Vec::new() })
    })
}

/// A job of any operations, whose workers are set up by `open`.
pub(crate) fn job_opening<Op: Operation, S: Source<Op> + 'static, C: Clock>(
    load: &LoadPlan,
    open: impl Fn(u32) -> Result<WorkerSetup<Op, S>, Error> + Send + Sync + 'static,
) -> Job<C> {
    Job::new("test", load, vec![0, 1], Opener::new(open), Arc::new(AtomicBool::new(false)))
}

pub(crate) fn run<C: Clock + 'static>(job: Job<C>, clock: C) -> Outcome {
    let warms_up = warms_up(&job);
    let outcome = run_phase(job, clock, &mut |_| {}).expect("the stations open");
    series_adds_up(&outcome.samples, warms_up);
    outcome
}

fn warms_up<C>(job: &Job<C>) -> bool {
    matches!(job.load.warmup, Warmup::Fixed(_))
}

/// Several jobs at the same time.
pub(crate) fn run_all<C: Clock + 'static>(jobs: Vec<Job<C>>, clock: C) -> Vec<Outcome> {
    let warms_up = jobs.iter().any(warms_up);
    let outcomes = run_together(jobs, clock, &mut |_| {}).expect("the stations open");
    outcomes.iter().for_each(|outcome| series_adds_up(&outcome.samples, warms_up));
    outcomes
}

/// Reads of [`BLOCK`] bytes by all workers on one target.
pub(crate) fn run_on(load: &LoadPlan, service: Service, servers: usize) -> Outcome {
    let clock = VirtualClock::new();
    let target = SimulatedTarget::new(&clock, service, servers);
    run(job(load, move |_| (Box::new(target.driver()), TestSource::reads(BLOCK))), clock)
}

/// The intervals hold what the workers' totals hold, class by class, and cover the phase without a gap. Failures before the window
/// and after its close are in totals alone, which count what the list of failures tells.
fn series_adds_up(samples: &PhaseSamples, warms_up: bool) {
    for class in 0..samples.classes.len() {
        let totals = samples.workers.iter().map(|worker| &worker.classes[class]);
        let totals = totals.fold((0, 0, 0, Histogram::new()), |mut sum, class| {
            sum.3.merge_sparse(&class.latency);
            (sum.0 + class.operations, sum.1 + class.bytes, sum.2 + class.errors, sum.3)
        });
        let points = samples.series.points.iter().map(|point| &point.classes[class]);
        let points = points.fold((0, 0, 0, Histogram::new()), |mut sum, class| {
            sum.3.merge_sparse(&class.latency);
            (sum.0 + class.operations, sum.1 + class.bytes, sum.2 + class.errors, sum.3)
        });
        let told = samples.workers.iter().flat_map(|worker| &worker.errors);
        let told: u64 =
            told.filter(|error| error.class == samples.classes[class]).map(|error| error.count).sum();
        assert_eq!((totals.0, totals.1, totals.2), (points.0, points.1, told));
        assert!(points.2 <= told);
        // Without a window every operation begins and completes in it.
        if samples.window_ns.is_none() && !warms_up {
            assert_eq!(totals.3.count(), totals.0);
        }
        assert_eq!(LatencySummary::of(&totals.3), LatencySummary::of(&points.3));
    }
    let ends = samples.series.points.iter().map(|point| (point.start_ns, point.end_ns));
    let end_ns = ends.fold(0, |last, (start_ns, end_ns)| {
        assert_eq!(start_ns, last);
        end_ns
    });
    assert_eq!(end_ns, samples.elapsed_ns);
}

pub(crate) fn operations(outcome: &Outcome) -> u64 {
    outcome.samples.workers.iter().map(|worker| worker.operations()).sum()
}

/// Operations by interval.
pub(crate) fn by_interval(outcome: &Outcome) -> Vec<u64> {
    outcome.samples.series.points.iter().map(|point| point.operations()).collect()
}

/// Latencies of all workers and classes.
pub(crate) fn histogram(outcome: &Outcome) -> Histogram {
    histograms(outcome).0
}

/// The same, with those that are lower bounds.
fn histograms(outcome: &Outcome) -> (Histogram, Histogram) {
    let (mut histogram, mut unfinished) = (Histogram::new(), Histogram::new());
    for class in outcome.samples.workers.iter().flat_map(|worker| &worker.classes) {
        histogram.merge_sparse(&class.latency);
        unfinished.merge_sparse(&class.unfinished);
    }
    (histogram, unfinished)
}

/// Their figures.
pub(crate) fn latency(outcome: &Outcome) -> LatencySummary {
    let (histogram, unfinished) = histograms(outcome);
    LatencySummary::censored(&histogram, &unfinished).expect("something began")
}

/// Asserts that `found` is within 0.1 % of `expected`.
#[track_caller]
pub(crate) fn assert_within_a_thousandth(found: f64, expected: f64) {
    assert!((found / expected - 1.0).abs() <= 1e-3, "{found} instead of {expected}");
}
