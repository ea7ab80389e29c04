//! One latency of a job: submission, completion or both together.

use statistics::{Histogram, SparseHistogram};

/// Figures of a latency, nanoseconds; all 0 where nothing was timed.
#[derive(Default)]
pub(super) struct Latency {
    pub(super) count: u64,
    pub(super) min_ns: u64,
    pub(super) max_ns: u64,
    pub(super) mean_ns: f64,
    pub(super) stddev_ns: f64,
    /// The percentiles asked for with their values; empty where none were, or nothing was timed.
    pub(super) percentiles: Vec<(f64, u64)>,
    pub(super) histogram: SparseHistogram,
}

impl Latency {
    /// The figures of these histograms together.
    pub(super) fn of<'a>(parts: impl Iterator<Item = &'a SparseHistogram>, percentiles: &[f64]) -> Self {
        let mut parts = parts.filter(|part| !part.is_empty()).peekable();
        if parts.peek().is_none() {
            return Self::default();
        }
        let mut all = Histogram::new();
        parts.for_each(|part| all.merge_sparse(part));
        Self {
            count: all.count(),
            min_ns: all.min_ns().unwrap_or(0),
            max_ns: all.max_ns().unwrap_or(0),
            mean_ns: all.mean_ns().unwrap_or(0.0),
            stddev_ns: all.stddev_ns().unwrap_or(0.0),
            percentiles: percentiles
                .iter()
                .filter_map(|&percent| Some((percent, all.percentile(percent)?)))
                .collect(),
            histogram: SparseHistogram::from(&all),
        }
    }
}
