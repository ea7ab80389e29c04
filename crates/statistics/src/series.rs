//! Series of figures by interval of a phase, in memory that does not grow with the length of the run.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::histogram::SparseHistogram;

/// Figures of one class of operations within one interval.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClassPoint {
    /// Operations completed.
    pub operations: u64,
    /// Payload bytes of these operations.
    pub bytes: u64,
    /// Operations that failed; not among `operations`.
    pub errors: u64,
    /// Latencies of the operations that began (closed loop) or were due (open loop) in the interval, whenever they completed; for
    /// those that never did, how long they had waited.
    pub latency: SparseHistogram,
    /// Those of `latency` that are lower bounds, because the operation did not complete.
    #[serde(default, skip_serializing_if = "SparseHistogram::is_empty")]
    pub unfinished: SparseHistogram,
}

impl ClassPoint {
    /// Adds what another worker, or the next interval, counted.
    pub fn merge(&mut self, other: &Self) {
        self.operations += other.operations;
        self.bytes += other.bytes;
        self.errors += other.errors;
        self.latency.merge(&other.latency);
        self.unfinished.merge(&other.unfinished);
    }
}

/// One interval, all workers together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct IntervalPoint {
    /// Start of the interval, nanoseconds from the start of the phase.
    pub start_ns: u64,
    /// End of the interval, nanoseconds from the start of the phase.
    pub end_ns: u64,
    /// One entry a class, in the order of the phase's classes.
    pub classes: Vec<ClassPoint>,
    /// Operations in flight (from submission to completion) times how long within the interval, nanoseconds; none where this was not
    /// told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_flight_ns: Option<u64>,
}

impl IntervalPoint {
    /// Operations of all classes.
    pub fn operations(&self) -> u64 {
        self.classes.iter().map(|class| class.operations).sum()
    }

    /// Payload bytes of all classes.
    pub fn bytes(&self) -> u64 {
        self.classes.iter().map(|class| class.bytes).sum()
    }

    /// Length of the interval, seconds.
    pub fn seconds(&self) -> f64 {
        self.end_ns.saturating_sub(self.start_ns) as f64 / 1e9
    }

    fn absorb(&mut self, later: &Self) {
        self.end_ns = later.end_ns;
        self.in_flight_ns = match (self.in_flight_ns, later.in_flight_ns) {
            (Some(mine), Some(theirs)) => Some(mine + theirs),
            (one, other) => one.or(other),
        };
        for (mine, theirs) in self.classes.iter_mut().zip(&later.classes) {
            mine.merge(theirs);
        }
    }
}

/// The intervals of a phase on a fixed grid from its start, at most `capacity` of them.
///
/// Workers add what they did per base interval, in any order; once the grid is full, neighbours are joined and the
/// interval doubles. Intervals in which nothing completed are there too, as zeros.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Series {
    /// Length of the intervals as they are now, nanoseconds; the last may be shorter.
    pub interval_ns: u64,
    /// Most intervals kept.
    pub capacity: usize,
    /// Number of classes in each point.
    pub class_count: usize,
    /// The intervals in order of time.
    pub points: Vec<IntervalPoint>,
}

impl Series {
    /// Intervals kept where nothing else is asked for.
    pub const CAPACITY_DEFAULT: usize = 512;

    /// An empty series of `class_count` classes with intervals of `interval_ns`.
    ///
    /// # Panics
    /// When `interval_ns` is 0 or `capacity` below 2.
    pub fn new(interval_ns: u64, capacity: usize, class_count: usize) -> Self {
        assert!(interval_ns > 0, "an interval lasts at least 1 ns");
        assert!(capacity >= 2, "a series keeps at least 2 intervals");
        Self { interval_ns, capacity, class_count, points: Vec::with_capacity(capacity) }
    }

    /// Adds what one worker did of one class within the base interval that contains `at_ns`.
    ///
    /// # Panics
    /// When `class` is not below `class_count`.
    pub fn add(&mut self, at_ns: u64, class: usize, point: &ClassPoint) {
        let slot = self.slot_of(at_ns);
        self.extend_to(slot);
        self.points[slot].classes[class].merge(point);
    }

    /// Adds time in flight (operations times how long) to the base interval that contains `at_ns`.
    pub fn add_in_flight(&mut self, at_ns: u64, in_flight_ns: u64) {
        if in_flight_ns == 0 {
            return;
        }
        let slot = self.slot_of(at_ns);
        self.extend_to(slot);
        *self.points[slot].in_flight_ns.get_or_insert(0) += in_flight_ns;
    }

    /// Adds `operations` that were in flight from one time to another, to each interval its part.
    pub fn add_in_flight_span(&mut self, from_ns: u64, until_ns: u64, operations: u64) {
        if from_ns >= until_ns || operations == 0 {
            return;
        }
        let last = self.slot_of(until_ns - 1);
        self.extend_to(last);
        for slot in self.slot_of(from_ns)..=last {
            let point = &mut self.points[slot];
            let end_ns = if slot == last { until_ns } else { point.end_ns };
            let length_ns = end_ns.saturating_sub(from_ns.max(point.start_ns));
            *point.in_flight_ns.get_or_insert(0) += length_ns * operations;
        }
    }

    /// Ends the series at `end_ns`: fills in intervals that saw nothing and shortens the last one to the end.
    pub fn finish(&mut self, end_ns: u64) {
        if end_ns == 0 {
            return;
        }
        let slot = self.slot_of(end_ns - 1);
        self.extend_to(slot);
        let last = self.points.len() - 1;
        if last == slot {
            self.points[last].end_ns = end_ns;
        }
    }

    /// Joins intervals until the grid reaches to `at_ns`.
    pub(crate) fn make_room(&mut self, at_ns: u64) {
        let _ = self.slot_of(at_ns);
    }

    /// The slot of a time; joins intervals until it is within the capacity.
    fn slot_of(&mut self, at_ns: u64) -> usize {
        while at_ns / self.interval_ns >= self.capacity as u64 {
            self.coalesce();
        }
        (at_ns / self.interval_ns) as usize
    }

    fn extend_to(&mut self, slot: usize) {
        while self.points.len() <= slot {
            let start_ns = self.points.len() as u64 * self.interval_ns;
            let end_ns = start_ns.saturating_add(self.interval_ns);
            self.points.push(IntervalPoint {
                start_ns,
                end_ns,
                classes: vec![ClassPoint::default(); self.class_count],
                in_flight_ns: None,
            });
        }
    }

    fn coalesce(&mut self) {
        self.interval_ns = self.interval_ns.saturating_mul(2);
        let mut kept = 0;
        for from in (0..self.points.len()).step_by(2) {
            self.points.swap(kept, from);
            if from + 1 < self.points.len() {
                let (head, tail) = self.points.split_at_mut(from + 1);
                head[kept].absorb(&tail[0]);
            } else {
                self.points[kept].end_ns = self.points[kept].start_ns.saturating_add(self.interval_ns);
            }
            kept += 1;
        }
        self.points.truncate(kept);
    }
}
