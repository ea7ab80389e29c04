//! How sure a mean is.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::distribution::student_t_quantile;

/// Fewest values an interval is computed from.
const SAMPLES_MIN: usize = 4;
/// Fewest batches joining stops at: below it a variance says little (Law and Kelton advise at least 10 to 20).
const BATCHES_MIN: usize = 16;
/// Largest autocorrelation of batch means that the correction takes on; above it there is no interval to speak of.
const CORRELATION_MAX: f64 = 0.95;

/// A mean with its 95 % confidence interval, from values that may be correlated in time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RateEstimate {
    /// The mean, in the unit of the values.
    pub mean: f64,
    /// Lower end of the 95 % interval.
    pub low: f64,
    /// Upper end of the 95 % interval.
    pub high: f64,
    /// Batches the interval rests on.
    pub batches: usize,
    /// Autocorrelation of neighbouring values (before batching), -1 to 1.
    pub lag1_autocorrelation: f64,
    /// How many independent values would say as much about the mean.
    pub effective_samples: f64,
}

impl RateEstimate {
    /// Half the width of the interval as a fraction of the mean; infinite for a mean of 0.
    pub fn relative_half_width(&self) -> f64 {
        let half = (self.high - self.low) / 2.0;
        if half == 0.0 { 0.0 } else { half / self.mean.abs() }
    }
}

pub(crate) fn mean_of(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// The median of some values, which it sorts; none of none. An even number of them has the mean of the two in the middle.
pub fn median_of(values: &mut [f64]) -> Option<f64> {
    values.sort_unstable_by(f64::total_cmp);
    let lower = values.get(values.len().checked_sub(1)? / 2)?;
    Some(f64::midpoint(*lower, values[values.len() / 2]))
}

/// Sample variance (divided by n - 1); 0 for fewer than two values.
pub(crate) fn variance_of(values: &[f64]) -> f64 {
    if values.len() < 2 {
        return 0.0;
    }
    let mean = mean_of(values);
    values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (values.len() - 1) as f64
}

/// Lag-1 autocorrelation; 0 where the values do not vary.
fn lag1_of(values: &[f64]) -> f64 {
    let mean = mean_of(values);
    let square: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    // Equal values differ from their mean by rounding only.
    if square <= (16.0 * f64::EPSILON * mean).powi(2) * values.len() as f64 {
        return 0.0;
    }
    values.windows(2).map(|pair| (pair[0] - mean) * (pair[1] - mean)).sum::<f64>() / square
}

/// Variance of a mean of correlated values, and the degrees of freedom of that variance.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MeanError {
    pub(crate) variance: f64,
    pub(crate) degrees: f64,
    /// Factor by which correlation widens the variance of a mean.
    pub(crate) inflation: f64,
}

/// The error of the mean of `values`, taken as a first-order autoregression.
///
/// The estimate of the correlation is corrected for its bias (Marriott and Pope 1954: `-(1 + 3 rho) / n`), the sample
/// variance for the part of it that the common mean hides (Bayley and Hammersley 1946).
pub(crate) fn mean_error(values: &[f64]) -> MeanError {
    mean_error_about(values, 1.0)
}

/// The same of residuals about several fitted means, each of which takes its part of correlation and variance away.
pub(crate) fn mean_error_about(values: &[f64], means: f64) -> MeanError {
    let count = values.len() as f64;
    let raw = lag1_of(values);
    let rho = (raw + means * (1.0 + 3.0 * raw) / count).clamp(0.0, CORRELATION_MAX);
    let inflation = ((1.0 + rho) / (1.0 - rho)).min(count / (2.0 * means)).max(1.0);
    let variance = variance_of(values) * (count - 1.0) / (count - means * inflation);
    MeanError {
        variance: variance * inflation / count,
        degrees: (count / inflation - 1.0).max(1.0),
        inflation,
    }
}

pub(crate) fn batch_means(values: &[f64], size: usize) -> Vec<f64> {
    // What does not fill a batch is left out at the front, where a run is least settled.
    values[values.len() % size..].chunks_exact(size).map(mean_of).collect()
}

/// Error of the mean of correlated `values` by batch means, and the number of batches.
pub(crate) fn batched_error(values: &[f64]) -> (MeanError, usize) {
    let mut size = 1;
    let mut means = values.to_vec();
    while values.len() / (2 * size) >= BATCHES_MIN && lag1_of(&means) > 1.0 / (means.len() as f64).sqrt() {
        size *= 2;
        means = batch_means(values, size);
    }
    (mean_error(&means), means.len())
}

/// The mean of `values` with a 95 % confidence interval that allows for autocorrelation; none for fewer than 4 values.
///
/// Batch means (Law and Kelton, Simulation Modeling and Analysis): the batch size doubles until the means of
/// neighbouring batches are not visibly correlated or 16 batches are left; what correlation remains widens the
/// interval by the factor `(1 + rho) / (1 - rho)` of a first-order autoregression, with the degrees of freedom reduced
/// alike (Tafazzoli, Steiger and Wilson 2011, Skart).
pub fn estimate_mean(values: &[f64]) -> Option<RateEstimate> {
    if values.len() < SAMPLES_MIN || values.iter().any(|value| !value.is_finite()) {
        return None;
    }
    let (error, batches) = batched_error(values);
    let half = student_t_quantile(0.975, error.degrees)? * error.variance.sqrt();
    let mean = mean_of(values);
    let effective =
        if error.variance > 0.0 { variance_of(values) / error.variance } else { values.len() as f64 };
    Some(RateEstimate {
        mean,
        low: mean - half,
        high: mean + half,
        batches,
        lag1_autocorrelation: lag1_of(values),
        effective_samples: effective.clamp(1.0, values.len() as f64),
    })
}

/// The rate `sum of amounts / sum of seconds` with its 95 % interval from the rates of the single intervals.
///
/// A last interval shorter than half the one before it is joined to that one. None for fewer than 4 intervals, for
/// lists of unequal length, or when an interval has no length.
pub fn estimate_rate(amounts: &[f64], seconds: &[f64]) -> Option<RateEstimate> {
    let mut estimate = estimate_mean(&whole_intervals(amounts, seconds)?)?;
    let overall = amounts.iter().sum::<f64>() / seconds.iter().sum::<f64>();
    estimate.low += overall - estimate.mean;
    estimate.high += overall - estimate.mean;
    estimate.mean = overall;
    Some(estimate)
}

/// The rate of each interval; a last one shorter than half the one before it is joined to that one. None for lists of
/// unequal length, or when an interval has no length.
pub(crate) fn whole_intervals(amounts: &[f64], seconds: &[f64]) -> Option<Vec<f64>> {
    if amounts.len() != seconds.len() || seconds.iter().any(|length| length.is_nan() || *length <= 0.0) {
        return None;
    }
    let mut rates: Vec<f64> = amounts.iter().zip(seconds).map(|(amount, length)| amount / length).collect();
    if let ([.., a, b], [.., s, t]) = (amounts, seconds)
        && *t < s / 2.0
    {
        rates.pop();
        *rates.last_mut()? = (a + b) / (s + t);
    }
    Some(rates)
}
