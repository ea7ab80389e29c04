//! Whether a stretch of equal intervals is a plateau: how far intervals lie from their mean, and how it rises or falls.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How a stretch of values lies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Plateau {
    /// Mean of the values.
    pub mean: f64,
    /// Largest distance of one from the mean.
    pub deviation_max: f64,
    /// Slope of the line of least squares, by interval.
    pub slope: f64,
}

impl Plateau {
    /// Of these values; none where there are fewer than two.
    #[must_use]
    pub fn of(values: &[f64]) -> Option<Self> {
        if values.len() < 2 {
            return None;
        }
        let count = values.len() as f64;
        let mean = values.iter().sum::<f64>() / count;
        let deviation_max = values.iter().map(|value| (value - mean).abs()).fold(0.0, f64::max);
        let middle = (count - 1.0) / 2.0;
        let (mut covariance, mut variance) = (0.0, 0.0);
        for (at, value) in values.iter().enumerate() {
            let distance = at as f64 - middle;
            covariance += distance * (value - mean);
            variance += distance * distance;
        }
        Some(Self { mean, deviation_max, slope: covariance / variance })
    }
}

/// Outcome of waiting for a steady state that ends a phase.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SteadyEnding {
    /// Whether it was reached.
    pub attained: bool,
    /// Value compared with the limit, over the last time that was judged; in percent of the mean where the limit is.
    pub criterion: f64,
    /// Largest distance of an interval from the mean of what was judged.
    pub deviation_max: f64,
    /// Slope by interval of what was judged.
    pub slope: f64,
    /// Operations a second of each interval of the last time that was judged.
    pub operations_per_second: Vec<f64>,
    /// Bytes a second of the same.
    pub bytes_per_second: Vec<f64>,
    /// Mean latency of what completed in each of them, in nanoseconds; 0 where nothing did.
    #[serde(default)]
    pub latency_ns: Vec<f64>,
}

/// One operation, kept by itself. Times count from the opening of the window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OperationSample {
    /// When it completed, nanoseconds.
    pub ended_ns: u64,
    /// How long it took, from its begin or from when it was due, nanoseconds.
    pub latency_ns: u64,
    /// The part of it until the driver had it, nanoseconds, where that was timed.
    pub submission_ns: Option<u64>,
    /// Its class: the place in the phase's list.
    pub class: usize,
    /// Bytes that it moved.
    pub bytes: u64,
    /// Where in its target, in bytes.
    pub offset_bytes: u64,
    /// Number of its target.
    #[serde(default)]
    pub target: u16,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_its_slope_and_a_level_has_none() {
        let line = Plateau::of(&[10.0, 12.0, 14.0, 16.0]).unwrap();
        assert_eq!((line.mean, line.deviation_max, line.slope), (13.0, 3.0, 2.0));
        let level = Plateau::of(&[5.0, 5.0]).unwrap();
        assert_eq!((level.deviation_max, level.slope), (0.0, 0.0));
        assert_eq!(Plateau::of(&[1.0]), None);
    }
}
