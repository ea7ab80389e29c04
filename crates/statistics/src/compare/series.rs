//! Figures of a single run with their intervals, from what each interval of the series saw.

use crate::confidence::{MeanError, batch_means, batched_error, mean_error, whole_intervals};
use crate::histogram::Histogram;
use crate::sample::PhaseSamples;
use crate::series::{ClassPoint, IntervalPoint};
use crate::summary::Summary;

use super::{Figure, t_quantile};

/// Fewest intervals that an error is computed from.
const INTERVALS_MIN: usize = 8;
/// Batches of the long kind.
const LONG_BATCHES: usize = 30;
/// Fewest operations on the rarer side of a percentile: with fewer, their number is not near enough to normal.
const BEYOND_MIN: f64 = 20.0;
/// Half the interval of the share beyond a percentile, relative to that share, above which there is no interval: what lies beyond is then
/// worth fewer than about 16 independent operations, however many they are, and its error is guesswork.
const SHARE_SPREAD_MAX: f64 = 0.5;
/// Half the interval of a percentile is at least this of it. Where all latencies are alike the share beyond a percentile is known to
/// microseconds of milliseconds, and the same run on the same machine differs by more: by where its threads and memory lie and what the clock
/// of the processor does. Between runs of constant service times p50 has a standard deviation of 0.25 % (`bench/coverage.py`), of which one
/// run sees nothing.
const REPEATABILITY: f64 = 0.005;
/// Most operations of a run: whole numbers are exact up to here. Only a damaged record has more.
const COUNT_MAX: f64 = (1_u64 << 53) as f64;
/// Half an interval, relative to its figure, above which it says nothing: the figure might as well be 0.
const SPREAD_MAX: f64 = 1.0;

/// The intervals that the rates and latencies of a summary come from.
pub fn window_points<'a>(samples: &'a PhaseSamples, summary: &Summary) -> &'a [IntervalPoint] {
    let points = &samples.series.points;
    if summary.window_start_ns == 0 && summary.window_end_ns >= samples.elapsed_ns {
        return points;
    }
    let start = points.partition_point(|point| point.start_ns < summary.window_start_ns);
    let end = points.partition_point(|point| point.end_ns <= summary.window_end_ns);
    points.get(start..end).unwrap_or_default()
}

/// One class of an interval, or all together for none.
fn classes(point: &IntervalPoint, class: Option<usize>) -> impl Iterator<Item = &ClassPoint> {
    point
        .classes
        .iter()
        .enumerate()
        .filter(move |(at, _)| class.is_none_or(|class| class == *at))
        .map(|(_, class)| class)
}

/// Half the 95 % interval of the mean of values that are correlated in time, and its degrees of freedom.
///
/// Batch means twice: with the batches that the correlation of neighbours asks for, and with few long ones, which also see
/// what wanders so slowly that neighbours hide it (Schmeiser 1982: 10 to 30 batches). The wider one counts.
fn reach(values: &[f64]) -> Option<(f64, f64)> {
    if values.len() < INTERVALS_MIN || values.iter().any(|value| !value.is_finite()) {
        return None;
    }
    let reach = |error: MeanError| (t_quantile(error.degrees) * error.variance.sqrt(), error.degrees);
    let fine = reach(batched_error(values).0);
    if values.len() < 2 * LONG_BATCHES {
        return Some(fine);
    }
    let long = reach(mean_error(&batch_means(values, values.len() / LONG_BATCHES)));
    Some(if long.0 > fine.0 { long } else { fine })
}

/// The rate of one class (all for none) per second, with its interval from batch means, as for the rate of a phase.
/// `amount` says what is counted. None with fewer than 8 intervals, or where the rate varies too much to say anything.
pub fn rate_over(
    points: &[IntervalPoint],
    class: Option<usize>,
    amount: fn(&ClassPoint) -> u64,
) -> Option<Figure> {
    let amounts: Vec<f64> =
        points.iter().map(|point| classes(point, class).map(|class| amount(class) as f64).sum()).collect();
    let seconds: Vec<f64> = points.iter().map(IntervalPoint::seconds).collect();
    let (half, degrees) = reach(&whole_intervals(&amounts, &seconds)?)?;
    let value = amounts.iter().sum::<f64>() / seconds.iter().sum::<f64>();
    let spread = half / value;
    (value > 0.0 && spread < SPREAD_MAX).then(|| Figure::around(value, spread, degrees))
}

/// The mean latency of one class (all for none) in nanoseconds: a ratio of sums, whose error is that of
/// `sum - mean * count` over the intervals (Cochran 1977, *Sampling Techniques*, 6.3), by batch means.
pub fn mean_latency(points: &[IntervalPoint], class: Option<usize>) -> Option<Figure> {
    let part = |point: &IntervalPoint| {
        classes(point, class).fold((0.0, 0.0), |(count, sum), class| {
            (count + class.latency.count() as f64, sum + class.latency.sum_ns() as f64)
        })
    };
    let parts: Vec<(f64, f64)> = points.iter().map(part).collect();
    let (count, sum) = parts.iter().fold((0.0, 0.0), |all, part| (all.0 + part.0, all.1 + part.1));
    if count == 0.0 || sum == 0.0 {
        return None;
    }
    let mean = sum / count;
    let residuals: Vec<f64> = parts.iter().map(|(count, sum)| sum - mean * count).collect();
    let (half, degrees) = reach(&residuals)?;
    let spread = half * parts.len() as f64 / sum;
    (spread < SPREAD_MAX).then(|| Figure::around(mean, spread, degrees))
}

/// A percentile of the latency of one class (all for none) in nanoseconds, with its interval.
///
/// How many operations of an interval lie below the percentile is a series like any other: the error of their share
/// follows from batch means, which allows for slow spells that last over many intervals. The percentiles at both ends of
/// the share's interval bound the percentile itself (Woodruff 1952), so that a skewed distribution has a lopsided
/// interval, which is never narrower than what the same run repeats. None with fewer than 8 intervals, or fewer than 20 operations beyond
/// the percentile, or as many that are alike.
pub fn percentile_latency(points: &[IntervalPoint], class: Option<usize>, percent: f64) -> Option<Figure> {
    let counts =
        points.iter().flat_map(|point| classes(point, class)).map(|class| class.latency.count() as f64);
    if counts.sum::<f64>() > COUNT_MAX {
        return None;
    }
    let mut all = Histogram::new();
    points.iter().flat_map(|point| classes(point, class)).for_each(|class| all.merge_sparse(&class.latency));
    let count = all.count() as f64;
    let share = percent / 100.0;
    if count * share.min(1.0 - share) < BEYOND_MIN {
        return None;
    }
    let value = all.percentile(percent)?;
    let bucket = all.buckets().find(|bucket| bucket.high_ns >= value)?;
    let below: u64 =
        all.buckets().take_while(|bucket| bucket.high_ns < value).map(|bucket| bucket.count).sum();
    // The bucket of the percentile is cut where the share is met, so that equal latencies are no error.
    let inside = ((share * count - below as f64) / bucket.count as f64).clamp(0.0, 1.0);
    let residual = |point: &IntervalPoint| {
        classes(point, class).fold(0.0, |sum, class| {
            let (mut lower, mut equal) = (0, 0);
            for own in class.latency.buckets().take_while(|own| own.low_ns <= bucket.low_ns) {
                if own.low_ns == bucket.low_ns { equal = own.count } else { lower += own.count }
            }
            sum + lower as f64 + inside * equal as f64 - share * class.latency.count() as f64
        })
    };
    let residuals: Vec<f64> = points.iter().map(residual).collect();
    let (half, degrees) = reach(&residuals)?;
    let half = half * points.len() as f64 / count;
    if half > SHARE_SPREAD_MAX * share.min(1.0 - share) {
        return None;
    }
    let end = |share: f64| {
        let at = all.percentile(100.0 * share)?;
        all.buckets().find(|bucket| bucket.high_ns >= at)
    };
    let (low, high) = (end(share - half)?, end(share + half)?);
    Some(Figure {
        value: value as f64,
        low: (low.low_ns.max(1).min(value) as f64).min(value as f64 * (1.0 - REPEATABILITY)),
        high: (high.high_ns.max(value) as f64 + 1.0).max(value as f64 * (1.0 + REPEATABILITY)),
        degrees,
    })
}
