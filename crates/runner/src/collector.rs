//! The collecting side: takes the workers' intervals, keeps totals and the series, makes snapshots for live views.

use std::sync::atomic::Ordering;

use host::activity::Usage;
use statistics::{ClassPoint, ClassTotals, Histogram, Series, Snapshot, SparseHistogram, WorkerSnapshot};

use crate::exchange::{Exchange, Interval, Late};
use crate::job::Job;
use crate::oversight::{Done, Oversight};
use crate::shared::Shared;
use crate::unserved::Unserved;

/// Intervals kept of one phase: enough to see steady state, few enough to keep the record small.
const SERIES_POINTS_MAX: usize = 256;

/// Totals of one worker.
struct WorkerTotals {
    classes: Vec<(u64, u64, u64, Histogram)>,
    /// Of the latencies of each class, those that are lower bounds.
    unfinished: Vec<SparseHistogram>,
    latest_operations: u64,
    latest_bytes: u64,
    running: bool,
}

/// Everything collected so far.
pub(crate) struct Collector {
    class_names: Vec<String>,
    workers: Vec<WorkerTotals>,
    series: Series,
    latest: Vec<ClassPoint>,
    usage_at_open: Usage,
    coordinator_at_open: Usage,
    name: String,
    time_ns: Option<u64>,
    operations: Option<u64>,
    bytes: Option<u64>,
    /// Limits that the phase is held against while it runs.
    pub(crate) oversight: Option<Oversight>,
    /// Room to sort latencies in.
    late: Vec<Late>,
    scratch: Histogram,
}

impl Collector {
    pub(crate) fn new<C>(job: &Job<C>) -> Self {
        let class_names: Vec<String> =
            job.classes.iter().map(|class| job.open.classes[*class].to_owned()).collect();
        let count = class_names.len();
        let worker = || WorkerTotals {
            classes: (0..count).map(|_| (0, 0, 0, Histogram::new())).collect(),
            unfinished: vec![SparseHistogram::default(); count],
            latest_operations: 0,
            latest_bytes: 0,
            running: true,
        };
        Self {
            workers: (0..job.load.threads).map(|_| worker()).collect(),
            series: Series::new(job.load.interval_ns, SERIES_POINTS_MAX, count),
            latest: vec![ClassPoint::default(); count],
            usage_at_open: Usage::of_process(),
            coordinator_at_open: Usage::of_thread(),
            name: job.name.clone(),
            time_ns: job.load.limit.time_ns,
            operations: job.load.limit.operations.or(job.expected_operations),
            bytes: job.load.limit.bytes,
            oversight: Oversight::new(&job.load.control),
            late: Vec::new(),
            scratch: Histogram::new(),
            class_names,
        }
    }

    /// Takes what the workers handed over since the last call.
    pub(crate) fn poll(&mut self, exchanges: &[Exchange], shared: &Shared) {
        for (worker, exchange) in exchanges.iter().enumerate() {
            while let Some(mut interval) = exchange.take() {
                self.absorb(worker, &interval);
                interval.clear();
                exchange.give_back(interval);
            }
        }
        let longest_ns = self.oversight.as_ref().map_or(u64::MAX, Oversight::interval_ns_max);
        shared.interval_ns.store(self.series.interval_ns.min(longest_ns), Ordering::Relaxed);
    }

    /// Adds one interval of one worker.
    pub(crate) fn absorb(&mut self, worker: usize, interval: &Interval) {
        let totals = &mut self.workers[worker];
        for (class, tally) in interval.classes.iter().enumerate() {
            if tally.operations == 0 && tally.errors == 0 && tally.latency.is_empty() {
                continue;
            }
            let sum = &mut totals.classes[class];
            sum.0 += tally.operations;
            sum.1 += tally.bytes;
            sum.2 += tally.errors;
            sum.3.merge(&tally.latency);
            totals.latest_operations += tally.operations;
            totals.latest_bytes += tally.bytes;
            if let Some(oversight) = &mut self.oversight {
                let late = interval.late.iter().filter(|late| late.class as usize == class);
                let late = late.fold((0, 0), |sum, late| (sum.0 + 1, sum.1 + u128::from(late.latency_ns)));
                oversight.add(
                    interval.start_ns,
                    Done {
                        operations: tally.operations,
                        bytes: tally.bytes,
                        timed: tally.latency.count() + late.0,
                        latency_ns: tally.latency.sum_ns() + late.1,
                    },
                );
            }
            let point = ClassPoint {
                operations: tally.operations,
                bytes: tally.bytes,
                errors: tally.errors,
                latency: SparseHistogram::from(&tally.latency),
                unfinished: SparseHistogram::default(),
            };
            // Behind the window nothing begins: what is here besides counts had no room among the late ones.
            let counts_nothing = tally.operations == 0 && tally.errors == 0;
            let last_ns =
                self.time_ns.filter(|_| counts_nothing).map_or(u64::MAX, |time_ns| time_ns.saturating_sub(1));
            let start_ns = interval.start_ns.min(last_ns);
            self.series.add(start_ns, class, &point);
            self.latest[class].merge(&point);
        }
        self.absorb_late(worker, &interval.late);
        self.series.add_in_flight(interval.start_ns, interval.in_flight_ns);
        for span in &interval.spans {
            self.series.add_in_flight_span(span.from_ns, span.until_ns, span.operations);
        }
    }

    /// Adds latencies to the intervals in which their operations began.
    fn absorb_late(&mut self, worker: usize, late: &[Late]) {
        if late.is_empty() {
            return;
        }
        let interval_ns = self.series.interval_ns;
        let key = |late: &Late| (late.class, late.start_ns / interval_ns);
        self.late.clear();
        self.late.extend_from_slice(late);
        self.late.sort_unstable_by_key(key);
        for same in self.late.chunk_by(|one, other| key(one) == key(other)) {
            self.scratch.clear();
            same.iter().for_each(|late| self.scratch.record(late.latency_ns));
            let (class, start_ns) = (same[0].class as usize, same[0].start_ns);
            self.workers[worker].classes[class].3.merge(&self.scratch);
            let latency = SparseHistogram::from(&self.scratch);
            let point = ClassPoint { latency, ..ClassPoint::default() };
            self.series.add(start_ns, class, &point);
            self.latest[class].merge(&point);
        }
    }

    /// Adds operations of a class that began, or were due, within the interval at `start_ns` and did not complete: how long they had
    /// waited.
    pub(crate) fn add_unfinished(
        &mut self,
        worker: usize,
        class: usize,
        start_ns: u64,
        waits: &SparseHistogram,
    ) {
        let totals = &mut self.workers[worker];
        totals.classes[class].3.merge_sparse(waits);
        totals.unfinished[class].merge(waits);
        let point = ClassPoint { latency: waits.clone(), unfinished: waits.clone(), ..ClassPoint::default() };
        self.series.add(start_ns, class, &point);
    }

    /// Adds arrivals that never left to the classes that a worker has, in the shares that these have in what it did: of which class
    /// each would have been is not known.
    pub(crate) fn add_unserved(&mut self, worker: usize, unserved: &Unserved) {
        let done: Vec<u64> = self.workers[worker].classes.iter().map(|class| class.3.count()).collect();
        for (start_ns, class, waits) in unserved.waits(self.series.interval_ns, &done) {
            self.add_unfinished(worker, class, start_ns, &waits);
        }
    }

    /// `operations` were in flight from one time to another, beside what intervals tell.
    pub(crate) fn add_in_flight(&mut self, (from_ns, until_ns): (u64, u64), operations: u64) {
        self.series.add_in_flight_span(from_ns, until_ns, operations);
    }

    /// The measured window opens: what the process used before is not part of it.
    pub(crate) fn open_window(&mut self) {
        self.usage_at_open = Usage::of_process();
        self.coordinator_at_open = Usage::of_thread();
    }

    /// Usage of the process and of the calling thread, which coordinates, since the window opened.
    pub(crate) fn usages(&self) -> (Usage, Usage) {
        (self.usage(), self.coordinator_usage())
    }

    /// Usage of the process since the window opened.
    pub(crate) fn usage(&self) -> Usage {
        Usage::of_process().since(&self.usage_at_open)
    }

    /// Usage of the calling thread since then.
    fn coordinator_usage(&self) -> Usage {
        Usage::of_thread().since(&self.coordinator_at_open)
    }

    /// Operations that were collected, failed ones among them.
    pub(crate) fn done(&self) -> u64 {
        self.workers.iter().flat_map(|worker| &worker.classes).map(|class| class.0 + class.2).sum()
    }

    pub(crate) fn ended(&mut self, worker: usize) {
        self.workers[worker].running = false;
    }

    /// The phase as it looks `now_ns` after its opening and `seconds` after the last look; begins a new interval of the live view and
    /// adds the latencies of the one that ends to `latency`. Percentiles and processors are for the caller.
    pub(crate) fn snapshot(&mut self, now_ns: u64, seconds: f64, latency: &mut Histogram) -> Snapshot {
        self.latest.iter().for_each(|class| latency.merge_sparse(&class.latency));
        let sum = |part: fn(&(u64, u64, u64, Histogram)) -> u64| -> u64 {
            self.workers.iter().flat_map(|worker| &worker.classes).map(part).sum()
        };
        let (operations, bytes, errors) = (sum(|class| class.0), sum(|class| class.1), sum(|class| class.2));
        let per_class = |part: fn(&ClassPoint) -> u64| -> Vec<f64> {
            self.latest.iter().map(|class| part(class) as f64 / seconds).collect()
        };
        let snapshot = Snapshot {
            phase: self.name.clone(),
            phase_number: 0,
            phase_count: 0,
            run_left_ns: None,
            elapsed_ns: now_ns,
            done_fraction: self.done_fraction(now_ns, operations, bytes),
            classes: self.class_names.clone(),
            operations_per_second: per_class(|class| class.operations),
            bytes_per_second: per_class(|class| class.bytes),
            p50_ns: None,
            p99_ns: None,
            latency: SparseHistogram::default(),
            operations,
            bytes,
            errors,
            cpus_used: 0.0,
            waiting: None,
            workers: self.workers.iter().map(|worker| worker.snapshot(seconds)).collect(),
            hosts: Vec::new(),
        };
        self.latest.iter_mut().for_each(|class| *class = ClassPoint::default());
        for worker in &mut self.workers {
            (worker.latest_operations, worker.latest_bytes) = (0, 0);
        }
        snapshot
    }

    fn done_fraction(&self, now_ns: u64, operations: u64, bytes: u64) -> Option<f64> {
        let share = |done: u64, all: Option<u64>| all.map(|all| done as f64 / all.max(1) as f64);
        let shares =
            [share(now_ns, self.time_ns), share(operations, self.operations), share(bytes, self.bytes)];
        shares.into_iter().flatten().reduce(f64::max).map(|share| share.min(1.0))
    }

    /// The totals of each worker, and the series up to `elapsed_ns`.
    pub(crate) fn finish(mut self, elapsed_ns: u64) -> (Vec<String>, Vec<Vec<ClassTotals>>, Series) {
        self.series.finish(elapsed_ns);
        let totals = self.totals();
        (self.class_names, totals, self.series)
    }

    /// Result that [`Collector::finish`] would give if the phase ended now.
    pub(crate) fn so_far(&self, elapsed_ns: u64) -> (Vec<String>, Vec<Vec<ClassTotals>>, Series) {
        let mut series = self.series.clone();
        series.finish(elapsed_ns);
        (self.class_names.clone(), self.totals(), series)
    }

    fn totals(&self) -> Vec<Vec<ClassTotals>> {
        let names = &self.class_names;
        let totals = self.workers.iter().map(|worker| {
            let classes = worker.classes.iter().zip(&worker.unfinished).zip(names);
            classes
                .map(|(((operations, bytes, errors, latency), unfinished), name)| ClassTotals {
                    class: name.clone(),
                    operations: *operations,
                    bytes: *bytes,
                    errors: *errors,
                    latency: SparseHistogram::from(latency),
                    unfinished: unfinished.clone(),
                    submission: None,
                    completion: None,
                    latency_parts: Vec::new(),
                })
                .collect()
        });
        totals.collect()
    }
}

impl WorkerTotals {
    fn snapshot(&self, seconds: f64) -> WorkerSnapshot {
        WorkerSnapshot {
            operations: self.classes.iter().map(|class| class.0).sum(),
            bytes: self.classes.iter().map(|class| class.1).sum(),
            operations_per_second: self.latest_operations as f64 / seconds,
            bytes_per_second: self.latest_bytes as f64 / seconds,
            errors: self.classes.iter().map(|class| class.2).sum(),
            running: self.running,
        }
    }
}
