//! Shares of operations by latency, and of queue depths and batches, in fio's classes.

use statistics::{DepthCounts, SparseHistogram};

use super::number::shares;

/// Upper ends of the classes below a thousand, as they are labelled: `4` are 2 and 3 nanoseconds.
pub(super) const BOUNDS: [&str; 12] =
    ["2", "4", "10", "20", "50", "100", "250", "500", "750", "1000", "2000", ">=2000"];
const LIMITS: [u64; 11] = [2, 4, 10, 20, 50, 100, 250, 500, 750, 1000, 2000];

/// Labels of the classes of queue depths, and of batches.
pub(super) const LEVELS: [&str; 7] = ["1", "2", "4", "8", "16", "32", ">=64"];
pub(super) const BATCHES: [&str; 7] = ["0", "4", "8", "16", "32", "64", ">=64"];

/// Shares of operations by completion latency, in percent; what is there is at least 0.01.
#[derive(Default)]
pub(super) struct Latencies {
    pub(super) ns: [f64; 10],
    pub(super) us: [f64; 10],
    pub(super) ms: [f64; 12],
}

impl Latencies {
    /// The shares of these histograms together. A bucket counts where its middle lies.
    pub(super) fn of(parts: [&SparseHistogram; 3]) -> Self {
        let (mut ns, mut us, mut ms) = ([0; 10], [0; 10], [0; 12]);
        let total = parts.iter().map(|part| part.count()).sum();
        for bucket in parts.iter().flat_map(|part| part.buckets()) {
            let value_ns = bucket.midpoint_ns();
            let slot = match value_ns {
                0..1000 => &mut ns[class_of(value_ns)],
                1000..1_000_000 => &mut us[class_of(value_ns / 1000)],
                _ => &mut ms[class_of(value_ns / 1_000_000)],
            };
            *slot += bucket.count;
        }
        Self { ns: shares(ns, total, 0.01), us: shares(us, total, 0.01), ms: shares(ms, total, 0.01) }
    }
}

fn class_of(value: u64) -> usize {
    LIMITS.iter().position(|limit| value < *limit).unwrap_or(LIMITS.len())
}

/// Counts of queue depths and batches in fio's classes.
#[derive(Default)]
pub(super) struct Depths {
    levels: [u64; 7],
    submitted: [u64; 7],
    completed: [u64; 7],
}

impl Depths {
    /// Adds what a worker counted. Counts come by powers of two; a batch of 5 to 7 is with those of 4.
    pub(super) fn add(&mut self, counts: &DepthCounts) {
        let batch = |power: usize| match power {
            0..=2 => 1,
            3..=6 => power - 1,
            _ => 6,
        };
        fill(&mut self.levels, &counts.in_flight, |power| power.min(6));
        fill(&mut self.submitted, &counts.submitted, batch);
        fill(&mut self.completed, &counts.completed, batch);
    }

    /// Adds operations that were done one at a time.
    pub(super) fn add_single(&mut self, operations: u64) {
        self.levels[0] += operations;
        self.submitted[1] += operations;
        self.completed[1] += operations;
    }

    /// Shares of the operations by depth, and of the submissions and collections by their size, in percent.
    pub(super) fn percent(&self) -> [[f64; 7]; 3] {
        [self.levels, self.submitted, self.completed].map(|counts| shares(counts, counts.iter().sum(), 0.1))
    }
}

fn fill(classes: &mut [u64; 7], counts: &[u64], class_of: impl Fn(usize) -> usize) {
    for (power, count) in counts.iter().enumerate() {
        classes[class_of(power)] += count;
    }
}

#[cfg(test)]
mod tests {
    use statistics::Histogram;

    use super::*;

    #[test]
    fn latencies_fall_into_their_classes() {
        let mut histogram = Histogram::new();
        for value_ns in [1, 2, 3, 749, 999, 1000, 1999, 20_000, 999_000, 1_500_000, 3_000_000_000] {
            histogram.record_n(value_ns, 100);
        }
        let sparse = SparseHistogram::from(&histogram);
        let empty = SparseHistogram::default();
        let found = Latencies::of([&sparse, &empty, &empty]);
        let classes = |shares: &[f64]| {
            let filled = shares.iter().zip(BOUNDS).filter(|(share, _)| **share > 0.0);
            filled.map(|(share, bound)| (bound, (share * 11.0 / 100.0).round() as u64)).collect::<Vec<_>>()
        };
        assert_eq!(classes(&found.ns), [("2", 1), ("4", 2), ("750", 1), ("1000", 1)]);
        assert_eq!(classes(&found.us), [("2", 2), ("50", 1), ("1000", 1)]);
        assert_eq!(classes(&found.ms), [("2", 1), (">=2000", 1)]);
    }

    #[test]
    fn depths_and_batches_fall_into_their_classes() {
        let mut depths = Depths::default();
        depths.add(&DepthCounts {
            in_flight: vec![1, 1, 1, 1, 1, 95, 0, 0],
            submitted: vec![10, 0, 10, 20, 0, 0, 0, 60],
            completed: vec![0, 0, 0, 0, 0, 50, 50],
        });
        let [levels, submitted, completed] = depths.percent();
        assert_eq!(levels, [1.0, 1.0, 1.0, 1.0, 1.0, 95.0, 0.0]);
        assert_eq!(submitted, [0.0, 20.0, 20.0, 0.0, 0.0, 0.0, 60.0]);
        assert_eq!(completed, [0.0, 0.0, 0.0, 0.0, 50.0, 50.0, 0.0]);
    }
}
