//! From the samples of a phase to the figures that are shown.

use std::ops::Range;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::censoring::{lower_bound_from, smallest};
use crate::compare::percentile_latency;
use crate::confidence::{RateEstimate, estimate_rate};
use crate::histogram::Histogram;
use crate::latency_parts::{self, LatencyPartSummary};
use crate::sample::{PhaseSamples, WorkerSamples};
use crate::series::{ClassPoint, IntervalPoint};
use crate::steady::{Steady, SteadyReason, find_steady};

/// Treatment of the start of a phase, where caches fill and queues build up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WarmUp {
    /// Exclude the part before steady state.
    #[default]
    Auto,
    /// Keep everything.
    None,
}

/// Fewest values beyond a percentile for it to be told: the share beyond it is then known to about a third (Poisson). With fewer a
/// percentile is one of the few largest values, whatever it is called.
pub const BEYOND_PERCENTILE_MIN: u64 = 10;

/// Latency results, nanoseconds. A percentile above the median is reported from 10 values beyond it on: p90 from 100 values, p99 from
/// 1000, p99.9 from 10000, p99.99 from 100000.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LatencySummary {
    /// Number of values: operations that began (closed loop) or were due (open loop) in the window.
    pub count: u64,
    /// Values that are lower bounds: operations that did not complete count with the time that they had waited.
    #[serde(default)]
    pub lower_bounds: u64,
    /// The percentiles from this one on, the largest value (100) and the mean are lower bounds because of them; none where they change
    /// no figure that matters.
    #[serde(default)]
    pub lower_bound_from_percent: Option<f64>,
    /// Smallest.
    pub min_ns: u64,
    /// Mean.
    pub mean_ns: f64,
    /// Standard deviation.
    pub stddev_ns: f64,
    /// Median.
    pub p50_ns: u64,
    /// 90th percentile; none with fewer than 10 values beyond it.
    pub p90_ns: Option<u64>,
    /// 95th percentile; none with fewer than 10 values beyond it.
    pub p95_ns: Option<u64>,
    /// 99th percentile; none with fewer than 10 values beyond it.
    pub p99_ns: Option<u64>,
    /// 99.9th percentile; none with fewer than 10 values beyond it.
    pub p99_9_ns: Option<u64>,
    /// 99.99th percentile; none with fewer than 10 values beyond it.
    pub p99_99_ns: Option<u64>,
    /// Largest.
    pub max_ns: u64,
    /// 95 % interval of the median, allowing for autocorrelation; none where nothing is known of the order of the values, or too
    /// little.
    pub p50_interval_ns: Option<(u64, u64)>,
    /// 95 % interval of the 99th percentile, allowing for autocorrelation; none where nothing is known of the order of the values,
    /// or too little.
    pub p99_interval_ns: Option<(u64, u64)>,
    /// Values above the range of the histogram (2.4 h).
    pub saturated: u64,
}

/// Whether so many operations have this percentile: [`BEYOND_PERCENTILE_MIN`] lie beyond it.
#[must_use]
pub fn has_percentile(operations: u64, percent: f64) -> bool {
    let beyond = (100.0 - percent) / 100.0 * operations as f64;
    // 0.1 % of 10000 may come out a few ulp below 10.
    beyond * (1.0 + 1e-9) >= BEYOND_PERCENTILE_MIN as f64
}

impl LatencySummary {
    /// The figures of a histogram; none when it is empty. They have no intervals: a histogram does not know in which order its values
    /// came.
    pub fn of(histogram: &Histogram) -> Option<Self> {
        Self::censored(histogram, &Histogram::new())
    }

    /// The figures of a histogram of which `unfinished` are lower bounds; none when it is empty.
    pub fn censored(histogram: &Histogram, unfinished: &Histogram) -> Option<Self> {
        let count = histogram.count();
        let told =
            |percent: f64| has_percentile(count, percent).then(|| histogram.percentile(percent)).flatten();
        Some(Self {
            count,
            lower_bounds: unfinished.count(),
            lower_bound_from_percent: lower_bound_from(histogram, unfinished),
            min_ns: smallest(histogram, unfinished)?,
            mean_ns: histogram.mean_ns()?,
            stddev_ns: histogram.stddev_ns()?,
            p50_ns: histogram.percentile(50.0)?,
            p90_ns: told(90.0),
            p95_ns: told(95.0),
            p99_ns: told(99.0),
            p99_9_ns: told(99.9),
            p99_99_ns: told(99.99),
            max_ns: histogram.max_ns()?,
            p50_interval_ns: None,
            p99_interval_ns: None,
            saturated: histogram.saturated(),
        })
    }

    /// With the intervals of its percentiles, from what each interval of the series saw of `class` (none for all).
    fn with_intervals(mut self, points: &[IntervalPoint], class: Option<usize>) -> Self {
        let interval = |percent: f64, told: Option<u64>| {
            let (told, found) = (told?, percentile_latency(points, class, percent)?);
            // What the workers counted beside the series may move a percentile by a hair.
            Some((told.min(found.low as u64), told.max(found.high as u64)))
        };
        self.p50_interval_ns = interval(50.0, Some(self.p50_ns));
        self.p99_interval_ns = interval(99.0, self.p99_ns);
        self
    }
}

impl LatencySummary {
    /// Time of all operations together, in nanoseconds.
    #[must_use]
    pub fn sum_ns(&self) -> f64 {
        self.mean_ns * self.count as f64
    }

    /// Whether this percentile (the largest value: 100) is a lower bound.
    #[must_use]
    pub fn is_lower_bound(&self, percent: f64) -> bool {
        self.lower_bound_from_percent.is_some_and(|from| percent >= from)
    }

    /// Whether the mean is a lower bound.
    #[must_use]
    pub fn is_mean_lower_bound(&self) -> bool {
        self.lower_bound_from_percent.is_some()
    }
}

/// Results of one class, or of all classes together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClassSummary {
    /// Name of the class; `total` for all together.
    pub class: String,
    /// Operations completed in the whole phase.
    pub operations: u64,
    /// Payload bytes of the whole phase.
    pub bytes: u64,
    /// Failed operations of the whole phase, before its window opened and after it closed too.
    pub errors: u64,
    /// Operations within the steady window.
    pub window_operations: u64,
    /// Payload bytes within the steady window.
    pub window_bytes: u64,
    /// Operations per second over the steady window.
    pub operations_per_second: f64,
    /// Payload bytes per second over the steady window.
    pub bytes_per_second: f64,
    /// The rate with its confidence interval; none with fewer than 4 intervals, or where nothing completed.
    pub rate: Option<RateEstimate>,
    /// The bandwidth (bytes per second) with its confidence interval; none with fewer than 4 intervals, or where no byte moved.
    pub bandwidth: Option<RateEstimate>,
    /// Latency of the operations that began (closed loop) or were due (open loop) within the steady window; none when there were none.
    pub latency: Option<LatencySummary>,
    /// Submission part of the latency, until the driver accepted the operation, over the whole phase; only with `--split-latency`.
    #[serde(default)]
    pub submission: Option<LatencySummary>,
    /// Completion part of the latency, from there on, over the whole phase; only with `--split-latency`.
    #[serde(default)]
    pub completion: Option<LatencySummary>,
    /// Parts of the latency that the driver measures separately, and the rest, over the whole phase; only with `--split-latency`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub latency_parts: Vec<LatencyPartSummary>,
}

/// The state of a phase at one of its ends.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Finish {
    /// Time from the start of the phase, nanoseconds.
    pub elapsed_ns: u64,
    /// Operations of all workers completed by then.
    pub operations: u64,
    /// Payload bytes of all workers completed by then.
    pub bytes: u64,
    /// Operations per second up to then.
    pub operations_per_second: f64,
    /// Payload bytes per second up to then.
    pub bytes_per_second: f64,
}

impl Finish {
    fn new(elapsed_ns: u64, operations: u64, bytes: u64) -> Self {
        let per_second = |amount: u64| rate_of(amount as f64, elapsed_ns);
        Self {
            elapsed_ns,
            operations,
            bytes,
            operations_per_second: per_second(operations),
            bytes_per_second: per_second(bytes),
        }
    }
}

/// The results of a phase.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Summary {
    /// Results by class.
    pub classes: Vec<ClassSummary>,
    /// All classes together.
    pub total: ClassSummary,
    /// Whether and where the rate is steady, over the time in which all workers ran.
    pub steady: Steady,
    /// Results up to the drop of the rate ([`Steady::drop`]); none where it did not drop.
    #[serde(default)]
    pub dropped: Option<Finish>,
    /// Start of the window of rates and latencies, nanoseconds; the part before it is warm-up.
    pub window_start_ns: u64,
    /// End of that window, nanoseconds.
    pub window_end_ns: u64,
    /// When the first worker was done; none when there was only one, or no series.
    pub first_done: Option<Finish>,
    /// When the last worker was done: the whole phase.
    pub last_done: Finish,
    /// At the planned end of the phase, had everybody been stopped there; none when no length was planned, or
    /// without a series.
    pub stonewalled: Option<Finish>,
    /// Mean number of operations in flight over the window, from submission to completion; what did not complete included.
    pub concurrency: f64,
    /// CPU time of the process per completed operation, nanoseconds; none when nothing completed.
    pub cpu_ns_per_operation: Option<f64>,
    /// Overhead of strata per completed operation, nanoseconds; none when nothing completed.
    pub tool_ns_per_operation: Option<f64>,
    /// CPUs that the process kept busy within the phase; 0 too where it has no length, because nothing completed and what was begun hangs.
    pub cpus_used: f64,
    /// Largest share of a worker's time spent in strata's own code, 0 to 1.
    pub tool_share_max: f64,
    /// Operations that completed after the window had closed: not in any rate; in the latencies if they had begun in the window.
    pub drained_operations: u64,
    /// Time after the close of the window in which strata waited for operations in flight, nanoseconds.
    #[serde(default)]
    pub drain_ns: u64,
    /// Operations that began in the window and had not completed when strata stopped waiting.
    #[serde(default)]
    pub unfinished_operations: u64,
    /// Open loop: how late operations were issued because of strata, over the whole phase.
    #[serde(default)]
    pub lateness: Option<LatencySummary>,
}

/// The part of a phase that rates and latencies come from.
struct Window<'a> {
    points: &'a [IntervalPoint],
    start_ns: u64,
    end_ns: u64,
    /// True when it is all of the phase: the workers' own totals are exact then.
    is_whole: bool,
}

impl Window<'_> {
    fn length_ns(&self) -> u64 {
        self.end_ns.saturating_sub(self.start_ns)
    }

    /// Mean number of operations in flight; none where it was not told.
    fn in_flight(&self) -> Option<f64> {
        let told = self.points.iter().filter_map(|point| point.in_flight_ns);
        let sum_ns = told.reduce(|sum, part| sum.saturating_add(part))?;
        Some(sum_ns as f64 / self.length_ns().max(1) as f64)
    }
}

/// Independent intervals below which a long series wanders.
const WANDERING_SAMPLES_MAX: f64 = 4.0;
/// Intervals from which on a series is long.
const WANDERING_INTERVALS_MIN: usize = 20;

/// A rate whose changes last about as long as the run: no change can be told from chance then, and steady it is not.
fn wanders(total: &ClassSummary, intervals: usize) -> bool {
    let worth = total.rate.as_ref().map_or(f64::INFINITY, |rate| rate.effective_samples);
    worth < WANDERING_SAMPLES_MAX && intervals >= WANDERING_INTERVALS_MIN
}

fn rate_of(amount: f64, length_ns: u64) -> f64 {
    if length_ns == 0 { 0.0 } else { amount * 1e9 / length_ns as f64 }
}

/// Computes every figure of a phase from its samples.
///
/// Rates and latencies come from the steady window: from where [`find_steady`] lets it begin (with
/// [`WarmUp::Auto`]) to where the first worker was done, because after that the load is no longer the one asked for. If the
/// first worker is done before half of the phase has passed, the window runs to the end of the phase. If nothing completed in
/// it, it is the whole phase.
/// `last_done`, `operations`, `bytes` and `errors` always cover the whole phase.
pub fn summarise(samples: &PhaseSamples, warm_up: WarmUp) -> Summary {
    let (operations, bytes) = totals_of(samples);
    let together = together_of(samples);
    let load_until_ns = load_until_ns(samples);
    let rates: Vec<f64> = samples.series.points[together.clone()]
        .iter()
        .filter(|point| point.start_ns < load_until_ns)
        .filter(|point| point.end_ns.saturating_sub(point.start_ns) > samples.series.interval_ns / 2)
        .map(|point| point.operations() as f64 / point.seconds())
        .collect();
    let mut steady = find_steady(&rates, samples.series.interval_ns as f64 / 1e9);
    let cut = if warm_up == WarmUp::Auto { steady.begins_at } else { 0 };
    let mut window = window_of(samples, cut, together);
    if window.points.iter().all(|point| point.operations() == 0) {
        // A run that stalled, or was cut off, may have all it did before what looks steady.
        window = window_of(samples, 0, 0..samples.series.points.len());
    }
    let classes: Vec<ClassSummary> =
        (0..samples.classes.len()).map(|class| class_summary(samples, &window, Some(class))).collect();
    let total = class_summary(samples, &window, None);
    if steady.is_steady && wanders(&total, window.points.len()) {
        (steady.is_steady, steady.reason) = (false, SteadyReason::Wanders);
    }
    let in_flight = total.latency.as_ref().map_or(0.0, |latency| latency.mean_ns / 1e9);
    let per_operation = |ns: u64| (operations > 0).then(|| ns as f64 / operations as f64);
    let cpu_ns = samples.process_cpu_user_ns + samples.process_cpu_system_ns;
    let has_series = !samples.series.points.is_empty();
    let at = |end_ns: u64| {
        let (operations, bytes) = samples.done_by(None, end_ns);
        Finish::new(end_ns, operations.round() as u64, bytes.round() as u64)
    };
    Summary {
        concurrency: window.in_flight().unwrap_or(total.operations_per_second * in_flight),
        dropped: steady
            .drop
            .as_ref()
            .and_then(|drop| samples.series.points.get(drop.at_interval))
            .map(|point| at(point.start_ns)),
        classes,
        total,
        steady,
        window_start_ns: window.start_ns,
        window_end_ns: window.end_ns,
        first_done: first_done_ns(samples).filter(|_| samples.workers.len() > 1 && has_series).map(at),
        last_done: Finish::new(samples.elapsed_ns, operations, bytes),
        stonewalled: samples
            .window_ns
            .filter(|_| has_series)
            .map(|planned| at(planned.min(samples.elapsed_ns))),
        cpu_ns_per_operation: per_operation(cpu_ns),
        tool_ns_per_operation: per_operation(samples.workers.iter().map(|worker| worker.tool_ns).sum()),
        cpus_used: if samples.elapsed_ns == 0 { 0.0 } else { cpu_ns as f64 / samples.elapsed_ns as f64 },
        tool_share_max: samples.workers.iter().map(tool_share_of).fold(0.0, f64::max),
        drained_operations: samples.workers.iter().map(|worker| worker.drained_operations).sum(),
        drain_ns: samples.workers.iter().map(|worker| worker.drain_ns).max().unwrap_or(0),
        unfinished_operations: samples.workers.iter().map(|worker| worker.unfinished_operations).sum(),
        lateness: lateness_of(samples),
    }
}

fn lateness_of(samples: &PhaseSamples) -> Option<LatencySummary> {
    let mut all = Histogram::new();
    samples
        .workers
        .iter()
        .filter_map(|worker| worker.lateness.as_ref())
        .for_each(|late| all.merge_sparse(late));
    LatencySummary::of(&all)
}

fn totals_of(samples: &PhaseSamples) -> (u64, u64) {
    samples.workers.iter().fold((0, 0), |(operations, bytes), worker| {
        (operations + worker.operations(), bytes + worker.bytes())
    })
}

fn tool_share_of(worker: &WorkerSamples) -> f64 {
    let length = worker.finished_ns.saturating_sub(worker.started_ns);
    if length == 0 { 0.0 } else { worker.tool_ns as f64 / length as f64 }
}

/// When the first worker was done. One that failed was not: it counts only if all did.
fn first_done_ns(samples: &PhaseSamples) -> Option<u64> {
    let earliest = |failed_too: bool| {
        let workers = samples.workers.iter().filter(|worker| failed_too || worker.failure.is_none());
        workers.map(|worker| worker.finished_ns).min()
    };
    earliest(false).or_else(|| earliest(true))
}

/// Until when all workers put their load on: what follows, such as one sync that lasts, belongs to the figures, and says nothing of whether
/// the rate of the load is steady.
fn load_until_ns(samples: &PhaseSamples) -> u64 {
    let first = samples.workers.iter().filter_map(|worker| worker.finals_from_ns).min();
    first.filter(|&from_ns| from_ns >= samples.elapsed_ns / 2).unwrap_or(u64::MAX)
}

/// The intervals in which all workers ran; all intervals if that is less than half of the phase.
fn together_of(samples: &PhaseSamples) -> Range<usize> {
    let points = &samples.series.points;
    let whole = 0..points.len();
    let Some(first_done_ns) = first_done_ns(samples) else { return whole };
    if first_done_ns < samples.elapsed_ns / 2 {
        return whole;
    }
    // Workers stopped by the same deadline differ by an operation or so; a tenth of an interval forgives that.
    let until_ns = first_done_ns.saturating_add(samples.series.interval_ns / 10);
    let end = points.iter().take_while(|point| point.end_ns <= until_ns).count();
    if end * 2 < points.len() { whole } else { 0..end }
}

fn window_of(samples: &PhaseSamples, cut: usize, together: Range<usize>) -> Window<'_> {
    let all = &samples.series.points;
    let points = &all[cut..together.end];
    let is_whole = points.len() == all.len();
    match points {
        [first, .., last] if !is_whole => {
            Window { points, start_ns: first.start_ns, end_ns: last.end_ns, is_whole: false }
        }
        [only] if !is_whole => {
            Window { points, start_ns: only.start_ns, end_ns: only.end_ns, is_whole: false }
        }
        _ => Window { points: all, start_ns: 0, end_ns: samples.elapsed_ns, is_whole: true },
    }
}

/// Figures of the class with this number, or of all together.
fn class_summary(samples: &PhaseSamples, window: &Window<'_>, class: Option<usize>) -> ClassSummary {
    let is_meant = |at: &usize| class.is_none_or(|class| class == *at);
    let mut whole = ClassPoint::default();
    let (mut histogram, mut unfinished) = (Histogram::new(), Histogram::new());
    let (mut submission, mut completion) = (Histogram::new(), Histogram::new());
    for worker in &samples.workers {
        for (_, totals) in worker.classes.iter().enumerate().filter(|(at, _)| is_meant(at)) {
            whole.operations += totals.operations;
            whole.bytes += totals.bytes;
            whole.errors += totals.errors;
            totals.submission.iter().for_each(|part| submission.merge_sparse(part));
            totals.completion.iter().for_each(|part| completion.merge_sparse(part));
            if window.is_whole {
                histogram.merge_sparse(&totals.latency);
                unfinished.merge_sparse(&totals.unfinished);
            }
        }
    }
    let (mut operations, mut bytes, mut seconds) = (Vec::new(), Vec::new(), Vec::new());
    let (mut window_operations, mut window_bytes) = (0, 0);
    for point in window.points {
        let meant =
            || point.classes.iter().enumerate().filter(|(at, _)| is_meant(at)).map(|(_, class)| class);
        let (done, moved) =
            meant().fold((0, 0), |sum, class| (sum.0 + class.operations, sum.1 + class.bytes));
        window_operations += done;
        window_bytes += moved;
        operations.push(done as f64);
        bytes.push(moved as f64);
        seconds.push(point.seconds());
        if !window.is_whole {
            for class in meant() {
                histogram.merge_sparse(&class.latency);
                unfinished.merge_sparse(&class.unfinished);
            }
        }
    }
    if window.is_whole {
        (window_operations, window_bytes) = (whole.operations, whole.bytes);
    }
    ClassSummary {
        class: class.map_or("total", |class| samples.classes[class].as_str()).to_owned(),
        operations: whole.operations,
        bytes: whole.bytes,
        errors: whole.errors,
        window_operations,
        window_bytes,
        operations_per_second: rate_of(window_operations as f64, window.length_ns()),
        bytes_per_second: rate_of(window_bytes as f64, window.length_ns()),
        // That nothing came in every interval is no figure that could be sure.
        rate: estimate_rate(&operations, &seconds).filter(|_| window_operations > 0),
        bandwidth: estimate_rate(&bytes, &seconds).filter(|_| window_bytes > 0),
        latency: LatencySummary::censored(&histogram, &unfinished)
            .map(|latency| latency.with_intervals(window.points, class)),
        submission: LatencySummary::of(&submission),
        completion: LatencySummary::of(&completion),
        latency_parts: latency_parts::summaries(samples, class),
    }
}
