//! Percentiles of latencies of which some are lower bounds: operations that had not completed when they were last seen.

use crate::histogram::Histogram;

/// Percentiles that are given.
const PERCENTS: [f64; 6] = [50.0, 90.0, 95.0, 99.0, 99.9, 99.99];
/// A percentile is known where what did not complete could change it by no more than this, whatever its latency.
const BOUND_CHANGE_MAX: f64 = 0.01;
/// Share of values that are lower bounds from which on mean and largest value are, too.
const BOUND_SHARE_MAX: f64 = 0.001;

/// From which percentile on figures are lower bounds. Values in `unfinished` were taken to have ended as soon as they were last seen;
/// a percentile that stays what it is when they never end is known.
pub(crate) fn lower_bound_from(histogram: &Histogram, unfinished: &Histogram) -> Option<f64> {
    if unfinished.is_empty() {
        return None;
    }
    let known = histogram.count() - unfinished.count();
    let never = |percent: f64| {
        let rank = (percent / 100.0 * histogram.count() as f64).ceil().max(1.0) as u64;
        finished_at_rank(histogram, unfinished, rank).filter(|_| rank <= known)
    };
    let is_bound = |percent: &f64| {
        let found = histogram.percentile(*percent).unwrap_or(0) as f64;
        never(*percent).is_none_or(|most_ns| most_ns as f64 > found * (1.0 + BOUND_CHANGE_MAX))
    };
    let share = unfinished.count() as f64 / histogram.count().max(1) as f64;
    let is_largest = histogram.max_ns() == unfinished.max_ns();
    let last = (share > BOUND_SHARE_MAX || is_largest).then_some(100.0);
    PERCENTS.into_iter().find(is_bound).or(last)
}

/// The value at a rank among those that are no lower bounds.
fn finished_at_rank(histogram: &Histogram, unfinished: &Histogram, rank: u64) -> Option<u64> {
    let mut bounds = unfinished.buckets().peekable();
    let mut seen = 0;
    for bucket in histogram.buckets() {
        let same = bounds.next_if(|bound| bound.low_ns == bucket.low_ns);
        seen += bucket.count - same.map_or(0, |bound| bound.count).min(bucket.count);
        if seen >= rank {
            return Some(bucket.midpoint_ns());
        }
    }
    None
}

/// The smallest value; where it is a lower bound, the smallest that is none.
pub(crate) fn smallest(histogram: &Histogram, unfinished: &Histogram) -> Option<u64> {
    let smallest_ns = histogram.min_ns()?;
    if unfinished.min_ns() != Some(smallest_ns) {
        return Some(smallest_ns);
    }
    finished_at_rank(histogram, unfinished, 1).or(Some(smallest_ns))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn histogram(values: &[(u64, u64)]) -> Histogram {
        let mut histogram = Histogram::new();
        values.iter().for_each(|&(ns, count)| histogram.record_n(ns, count));
        histogram
    }

    #[test]
    fn figures_above_what_hangs_are_lower_bounds() {
        let hanging = histogram(&[(1_000_000, 3)]);
        let all = histogram(&[(1000, 97), (1_000_000, 3)]);
        assert_eq!(lower_bound_from(&all, &hanging), Some(99.0), "p95 is known, whatever the three become");
        assert_eq!(lower_bound_from(&all, &Histogram::new()), None);
        let one = histogram(&[(1000, 99_999), (1_000_000, 1)]);
        assert_eq!(
            lower_bound_from(&one, &histogram(&[(1_000_000, 1)])),
            Some(100.0),
            "only the largest value"
        );
    }

    #[test]
    fn what_had_barely_waited_changes_nothing() {
        let all = histogram(&[(1000, 50_000), (2000, 49_990), (500, 1), (9000, 9)]);
        assert_eq!(lower_bound_from(&all, &histogram(&[(500, 1)])), None);
        assert_eq!(smallest(&all, &histogram(&[(500, 1)])), Some(1000));
    }

    #[test]
    fn much_that_had_barely_waited_makes_all_of_them_lower_bounds() {
        let all = histogram(&[(1000, 500), (2000, 400), (10, 600)]);
        assert_eq!(lower_bound_from(&all, &histogram(&[(10, 600)])), Some(50.0));
    }
}
