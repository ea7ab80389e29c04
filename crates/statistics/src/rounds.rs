//! Rounds of a test of a drive: when they are steady by the rule of SNIA's performance test specification, and what they say together.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::compare::Figure;
use crate::confidence::mean_of;

/// Rounds of the window that steady state is decided on.
pub const ROUNDS_OF_WINDOW: usize = 5;
/// Largest range of the values of the window, as a share of their mean.
const DATA_EXCURSION_MAX: f64 = 0.20;
/// Largest change of the line fitted to them from the first round to the last, as a share of their mean.
const SLOPE_EXCURSION_MAX: f64 = 0.10;
/// Slack for values that lie on a limit but for rounding.
const ROUNDING: f64 = 1e-9;

/// The last five rounds of a test, held against SNIA's definition of steady state.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RoundsWindow {
    /// Rounds that were run.
    pub rounds: usize,
    /// Whether the last five are steady: both excursions are within their limits.
    pub is_steady: bool,
    /// Largest less smallest value of the five, in per cent of their mean; steady: at most 20.
    pub data_excursion_percent: f64,
    /// Largest less smallest value of the line fitted to the five, in per cent of their mean; steady: at most 10.
    pub slope_excursion_percent: f64,
}

impl RoundsWindow {
    /// Looks at the last five of these values, one a round; none for fewer, and where their mean is not above 0.
    #[must_use]
    pub fn of(values: &[f64]) -> Option<Self> {
        let window = &values[values.len().checked_sub(ROUNDS_OF_WINDOW)?..];
        let mean = window.iter().sum::<f64>() / ROUNDS_OF_WINDOW as f64;
        // Written so that NaN is no mean either.
        if !(mean > 0.0 && mean.is_finite()) {
            return None;
        }
        let largest = window.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let smallest = window.iter().copied().fold(f64::INFINITY, f64::min);
        let middle = (ROUNDS_OF_WINDOW - 1) as f64 / 2.0;
        let offsets = (0..ROUNDS_OF_WINDOW).map(|round| round as f64 - middle);
        let squares: f64 = offsets.clone().map(|offset| offset * offset).sum();
        let slope = offsets.zip(window).map(|(offset, value)| offset * value).sum::<f64>() / squares;
        let data = (largest - smallest) / mean;
        let change = (slope * (ROUNDS_OF_WINDOW - 1) as f64).abs() / mean;
        Some(Self {
            rounds: values.len(),
            is_steady: data <= DATA_EXCURSION_MAX + ROUNDING && change <= SLOPE_EXCURSION_MAX + ROUNDING,
            data_excursion_percent: data * 100.0,
            slope_excursion_percent: change * 100.0,
        })
    }
}

/// Mean of values of repeats, with its 95 % interval by Student's t.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RepeatsEstimate {
    /// The mean.
    pub mean: f64,
    /// Lower end of the interval; none for a single value, or where one is not above 0.
    pub low: Option<f64>,
    /// Upper end; none for a single value, or where one is not above 0.
    pub high: Option<f64>,
}

impl RepeatsEstimate {
    /// The estimate from these values; none where there is none. The interval is that of their logarithms, because rates and times vary by
    /// factors: its lower end is above 0.
    #[must_use]
    pub fn of(values: &[f64]) -> Option<Self> {
        if values.is_empty() {
            return None;
        }
        let mean = mean_of(values);
        let interval = Figure::of_repeats(values);
        Some(Self {
            mean,
            low: interval.map(|found| found.low.min(mean)),
            high: interval.map(|found| found.high.max(mean)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window(values: &[f64]) -> RoundsWindow {
        RoundsWindow::of(values).unwrap()
    }

    #[test]
    fn a_range_of_a_fifth_is_steady_and_more_is_not() {
        // Symmetrical about the middle, so that the fitted line is level.
        let steady = window(&[90.0, 100.0, 110.0, 100.0, 90.0 + 10.0]);
        assert!(steady.is_steady, "{steady:?}");
        let edge = window(&[90.0, 110.0, 100.0, 110.0, 90.0]);
        assert!(edge.is_steady && (edge.data_excursion_percent - 20.0).abs() < 1e-9, "{edge:?}");
        assert!(edge.slope_excursion_percent.abs() < 1e-9, "{edge:?}");
        let wide = window(&[89.0, 110.0, 102.0, 110.0, 89.0]);
        assert!(!wide.is_steady, "{wide:?}");
    }

    #[test]
    fn a_line_that_changes_by_a_tenth_is_steady_and_more_is_not() {
        let edge = window(&[95.0, 97.5, 100.0, 102.5, 105.0]);
        assert!(edge.is_steady && (edge.slope_excursion_percent - 10.0).abs() < 1e-9, "{edge:?}");
        let falls = window(&[106.0, 103.0, 100.0, 97.0, 94.0]);
        assert!(!falls.is_steady && (falls.slope_excursion_percent - 12.0).abs() < 1e-9, "{falls:?}");
        assert!(falls.data_excursion_percent < 20.0, "{falls:?}");
    }

    #[test]
    fn the_last_five_rounds_decide() {
        let mut rounds = vec![1000.0, 500.0, 250.0, 130.0];
        assert_eq!(RoundsWindow::of(&rounds), None);
        rounds.extend([101.0, 99.0, 100.0, 100.0]);
        assert!(!window(&rounds).is_steady);
        rounds.push(100.0);
        let found = window(&rounds);
        assert!(found.is_steady && found.rounds == 9, "{found:?}");
    }

    #[test]
    fn rounds_without_a_value_are_not_judged() {
        assert_eq!(RoundsWindow::of(&[0.0; 5]), None);
        assert_eq!(RoundsWindow::of(&[f64::NAN; 5]), None);
    }

    #[test]
    fn the_interval_of_five_repeats_is_that_of_students_t() {
        let found = RepeatsEstimate::of(&[98.0, 99.0, 100.0, 101.0, 102.0]).unwrap();
        // t(0.975, 4) = 2.776; of the values themselves 98.037 to 101.963.
        assert!((found.mean - 100.0).abs() < 1e-9);
        assert!((found.high.unwrap() - 101.973).abs() < 0.01, "{found:?}");
        assert!((found.low.unwrap() - 98.044).abs() < 0.01, "{found:?}");
        let apart = RepeatsEstimate::of(&[1.0, 10.0, 100.0]).unwrap();
        assert!(apart.low.unwrap() > 0.0 && apart.high.unwrap() > 100.0, "{apart:?}");
        assert_eq!(
            RepeatsEstimate::of(&[0.0, 2.0]),
            Some(RepeatsEstimate { mean: 1.0, low: None, high: None })
        );
        assert_eq!(RepeatsEstimate::of(&[7.0]), Some(RepeatsEstimate { mean: 7.0, low: None, high: None }));
        assert_eq!(RepeatsEstimate::of(&[]), None);
    }
}
