//! History of a phase's figures, in memory that does not grow with its length.

use statistics::Snapshot;

/// Most points kept: more than a terminal has columns.
const POINTS_MAX: usize = 600;

/// The figures of one interval, or of several that were joined: then means, and the highest p99.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Point {
    /// End of the interval, seconds from the start of the phase.
    pub(crate) at_s: f64,
    /// Operations a second, by class.
    pub(crate) operations_per_second: Vec<f64>,
    /// Bytes a second, by class.
    pub(crate) bytes_per_second: Vec<f64>,
    /// Median latency, nanoseconds.
    pub(crate) p50_ns: Option<f64>,
    /// 99th percentile of the latency, nanoseconds.
    pub(crate) p99_ns: Option<f64>,
}

impl Point {
    fn of(snapshot: &Snapshot) -> Self {
        Self {
            at_s: snapshot.elapsed_ns as f64 / 1e9,
            operations_per_second: snapshot.operations_per_second.clone(),
            bytes_per_second: snapshot.bytes_per_second.clone(),
            p50_ns: snapshot.p50_ns.map(|ns| ns as f64),
            p99_ns: snapshot.p99_ns.map(|ns| ns as f64),
        }
    }

    /// Joins a later point of the weight 1 into this one of the weight `weight`.
    fn join(&mut self, later: &Self, weight: f64) {
        let mean = |mine: f64, theirs: f64| (mine * weight + theirs) / (weight + 1.0);
        let mean_all = |mine: &mut [f64], theirs: &[f64]| {
            for (mine, theirs) in mine.iter_mut().zip(theirs) {
                *mine = mean(*mine, *theirs);
            }
        };
        self.at_s = later.at_s;
        mean_all(&mut self.operations_per_second, &later.operations_per_second);
        mean_all(&mut self.bytes_per_second, &later.bytes_per_second);
        self.p50_ns = match (self.p50_ns, later.p50_ns) {
            (Some(mine), Some(theirs)) => Some(mean(mine, theirs)),
            (mine, theirs) => mine.or(theirs),
        };
        self.p99_ns = match (self.p99_ns, later.p99_ns) {
            (Some(mine), Some(theirs)) => Some(mine.max(theirs)),
            (mine, theirs) => mine.or(theirs),
        };
    }
}

/// The points of a phase in order of time. When there are too many, neighbours are joined and every later point
/// stands for twice as many intervals.
#[derive(Debug)]
pub(crate) struct History {
    points: Vec<Point>,
    /// Intervals that a point stands for.
    stride: usize,
    /// Intervals in the last point so far.
    filled: usize,
}

impl History {
    /// Nothing yet.
    pub(crate) fn new() -> Self {
        Self { points: Vec::new(), stride: 1, filled: 0 }
    }

    /// The points in order of time.
    pub(crate) fn points(&self) -> &[Point] {
        &self.points
    }

    /// Adds an interval; one that is not later than the last is passed over.
    pub(crate) fn push(&mut self, snapshot: &Snapshot) {
        let point = Point::of(snapshot);
        if self.points.last().is_some_and(|last| last.at_s >= point.at_s) {
            return;
        }
        match self.points.last_mut() {
            Some(last) if self.filled < self.stride => {
                last.join(&point, self.filled as f64);
                self.filled += 1;
            }
            _ => {
                if self.points.len() == POINTS_MAX {
                    self.halve();
                }
                self.points.push(point);
                self.filled = 1;
            }
        }
    }

    fn halve(&mut self) {
        let pairs = self.points.chunks_exact(2);
        self.points = pairs
            .map(|pair| {
                let mut joined = pair[0].clone();
                joined.join(&pair[1], 1.0);
                joined
            })
            .collect();
        self.stride *= 2;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn snapshot(second: u64) -> Snapshot {
        Snapshot {
            elapsed_ns: second * 1_000_000_000,
            operations_per_second: vec![second as f64],
            bytes_per_second: vec![10.0],
            p50_ns: Some(second),
            p99_ns: Some(1_000 + second % 4),
            ..Snapshot::default()
        }
    }

    #[test]
    fn points_are_kept_as_they_came_until_there_are_too_many() {
        let mut history = History::new();
        (1..=600).for_each(|second| history.push(&snapshot(second)));
        assert_eq!(history.points().len(), 600);
        assert_eq!(history.points()[599], Point::of(&snapshot(600)));
    }

    #[test]
    fn too_many_points_are_joined_evenly() {
        let mut history = History::new();
        (1..=2_402).for_each(|second| history.push(&snapshot(second)));
        // 600 became 300 of two each, those 300 of four each; then one more begun.
        assert_eq!((history.stride, history.points().len()), (8, 301));
        let first = &history.points()[0];
        assert_eq!(first.at_s, 8.0);
        assert_eq!(first.operations_per_second, [4.5]);
        assert_eq!(first.bytes_per_second, [10.0]);
        assert_eq!(first.p50_ns, Some(4.5));
        assert_eq!(first.p99_ns, Some(1_003.0));
        let last = &history.points()[300];
        assert_eq!((last.at_s, last.operations_per_second[0]), (2_402.0, 2_401.5));
    }

    #[test]
    fn a_million_intervals_take_no_more_room() {
        let mut history = History::new();
        for second in 1..=1_000_000 {
            history.push(&snapshot(second));
            assert!(history.points().len() <= POINTS_MAX);
        }
        assert!(history.points().is_sorted_by(|earlier, later| earlier.at_s < later.at_s));
    }

    #[test]
    fn an_interval_told_twice_counts_once() {
        let mut history = History::new();
        history.push(&snapshot(1));
        history.push(&snapshot(1));
        assert_eq!(history.points().len(), 1);
    }

    #[test]
    fn an_interval_without_completions_has_no_latency() {
        let mut idle = Point::of(&Snapshot { p50_ns: None, p99_ns: None, ..snapshot(1) });
        idle.join(&Point::of(&snapshot(2)), 1.0);
        assert_eq!((idle.p50_ns, idle.p99_ns), (Some(2.0), Some(1_002.0)));
    }
}
