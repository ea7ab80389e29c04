//! Where the results of further runs will lie: a prediction interval, from variances that several comparisons of one run steady for each other.

use crate::confidence::{mean_of, variance_of};
use crate::distribution::student_t_quantile;

/// Probability that all [`RUNS_FURTHER`] results lie in the interval.
pub const PREDICTION_LEVEL: f64 = 0.99;
/// Further runs that the interval speaks of.
pub const RUNS_FURTHER: u32 = 10;

/// Differences of one comparison over the passes of a run: their variance and their count, two or more.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PassSpread {
    variance: f64,
    count: usize,
    /// Passes of each further run.
    further_count: usize,
}

impl PassSpread {
    /// The spread of these differences; none for fewer than two, and for ones that are no numbers.
    #[must_use]
    pub fn of(differences: &[f64]) -> Option<Self> {
        let is_sound = differences.len() > 1 && differences.iter().all(|value| value.is_finite());
        let count = differences.len();
        is_sound.then(|| Self { variance: variance_of(differences), count, further_count: count })
    }

    /// The same where further runs may have only so many passes, and not as many as this one.
    #[must_use]
    pub fn before_runs_of(self, passes: usize) -> Self {
        Self { further_count: passes.clamp(1, self.count), ..self }
    }

    /// Variance of the difference between the mean of this run and that of a further one, in variances of one pass.
    fn of_means(self) -> f64 {
        1.0 / self.count as f64 + 1.0 / self.further_count as f64
    }

    fn degrees(self) -> f64 {
        (self.count - 1) as f64
    }
}

/// Distribution of the variances of all comparisons of a run: a scaled inverse chi-squared one, fitted by the method of moments to the logarithms of
/// the variances (G. K. Smyth, Linear models and empirical Bayes methods for assessing differential expression, 2004, section 6.2).
///
/// Few passes know their own variance badly: five are a factor of two off in one comparison of ten. Twenty comparisons together know it well.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CommonSpread {
    variance: f64,
    /// Degrees of freedom that it is worth for one comparison.
    degrees: f64,
    /// Degrees of freedom of all comparisons together.
    degrees_max: f64,
}

impl CommonSpread {
    /// The common distribution of these spreads; none where fewer than two of them vary at all.
    #[must_use]
    pub fn of(spreads: &[PassSpread]) -> Option<Self> {
        let varying: Vec<_> = spreads.iter().copied().filter(|spread| spread.variance > 0.0).collect();
        if varying.len() < 2 {
            return None;
        }
        let half = |spread: &PassSpread| spread.degrees() / 2.0;
        let unbiased = |spread: &PassSpread| spread.variance.ln() - digamma(half(spread)) + half(spread).ln();
        let logarithms: Vec<f64> = varying.iter().map(unbiased).collect();
        let of_sampling: Vec<f64> = varying.iter().map(|spread| trigamma(half(spread))).collect();
        let excess = variance_of(&logarithms) - mean_of(&of_sampling);
        let degrees_max: f64 = varying.iter().map(|spread| spread.degrees()).sum();
        let mean = mean_of(&logarithms);
        let prior = if excess > 0.0 { 2.0 * inverse_trigamma(excess) } else { f64::INFINITY };
        Some(if prior < degrees_max {
            let variance = (mean + digamma(prior / 2.0) - (prior / 2.0).ln()).exp();
            Self { variance, degrees: prior, degrees_max }
        } else {
            Self { variance: mean.exp(), degrees: degrees_max, degrees_max }
        })
    }

    /// Variance of one comparison in the light of all, and its degrees of freedom. Never less than its own passes show: a comparison that varies more than
    /// the others is not believed to be as steady as they are.
    fn posterior(&self, own: PassSpread) -> (f64, f64) {
        let together = self.degrees + own.degrees();
        let variance = (self.degrees * self.variance + own.degrees() * own.variance) / together;
        (variance.max(own.variance), together.min(self.degrees_max))
    }
}

/// Half the width of the interval, about the mean of one comparison, in which the means of [`RUNS_FURTHER`] further runs lie, all of them
/// with a probability of [`PREDICTION_LEVEL`] or more (the conservative factor of Hahn and Meeker, Statistical Intervals, 1991, section 4.8). `common` is
/// that of all comparisons of this run; without it the passes of the comparison stand alone. None where the differences do not vary.
#[must_use]
pub fn prediction_half_width(own: PassSpread, common: Option<&CommonSpread>) -> Option<f64> {
    let (variance, degrees) = common.map_or((own.variance, own.degrees()), |common| common.posterior(own));
    let tail = (1.0 - PREDICTION_LEVEL) / (2.0 * f64::from(RUNS_FURTHER));
    let quantile = student_t_quantile(1.0 - tail, degrees)?;
    (variance > 0.0).then(|| quantile * (variance * own.of_means()).sqrt())
}

/// From this argument on the asymptotic series have 10 digits; below it recurrence leads there.
const SERIES_MIN: f64 = 8.0;

/// Derivative of the logarithm of the gamma function for `x > 0` (Abramowitz and Stegun 6.3.5 and 6.3.18).
fn digamma(x: f64) -> f64 {
    if x < SERIES_MIN {
        return digamma(x + 1.0) - 1.0 / x;
    }
    let square = 1.0 / (x * x);
    x.ln()
        - 0.5 / x
        - square * (1.0 / 12.0 - square * (1.0 / 120.0 - square * (1.0 / 252.0 - square / 240.0)))
}

/// Its derivative for `x > 0` (Abramowitz and Stegun 6.4.6 and 6.4.12).
fn trigamma(x: f64) -> f64 {
    if x < SERIES_MIN {
        return trigamma(x + 1.0) + 1.0 / (x * x);
    }
    let square = 1.0 / (x * x);
    let series = 1.0 / 6.0 - square * (1.0 / 30.0 - square * (1.0 / 42.0 - square / 30.0));
    1.0 / x + 0.5 * square + series * square / x
}

/// The `x > 0` whose trigamma is `value > 0`: the function falls, so it is found by halving.
fn inverse_trigamma(value: f64) -> f64 {
    let (mut low, mut high) = (1e-6, 1e9);
    while high / low > 1.0 + 1e-12 {
        let middle = f64::sqrt(low * high);
        if trigamma(middle) > value {
            low = middle;
        } else {
            high = middle;
        }
    }
    low
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::noise::Noise;

    #[test]
    fn functions_have_their_known_values() {
        let near = |found: f64, known: f64| assert!((found - known).abs() < 1e-9, "{found} for {known}");
        // The constant of Euler and Mascheroni, and pi^2 / 6.
        near(digamma(1.0), -0.577_215_664_901_532_9);
        near(digamma(0.5), -1.963_510_026_021_423);
        near(trigamma(1.0), std::f64::consts::PI.powi(2) / 6.0);
        near(trigamma(0.5), std::f64::consts::PI.powi(2) / 2.0);
        near(inverse_trigamma(trigamma(3.25)), 3.25);
    }

    #[test]
    fn spreads_without_a_variance_are_none() {
        assert_eq!(PassSpread::of(&[1.0]), None);
        assert_eq!(PassSpread::of(&[1.0, f64::NAN]), None);
        let level = PassSpread::of(&[1.0, 1.0, 1.0]).unwrap();
        assert_eq!(prediction_half_width(level, None), None);
        assert_eq!(CommonSpread::of(&[level, level]), None);
        // A comparison that did not vary in this run may do so in the next.
        let varying = PassSpread::of(&[1.0, 1.1, 0.9]).unwrap();
        let common = CommonSpread::of(&[level, varying, varying]).unwrap();
        assert!(prediction_half_width(level, Some(&common)).unwrap() > 0.0);
    }

    /// Share of series of `RUNS_FURTHER` further runs that lie wholly in the interval of the run before; the variances of the comparisons differ by
    /// `spread`.
    fn covered((passes, further_passes): (usize, usize), spread: f64, noise: &mut Noise) -> f64 {
        const COMPARISONS: usize = 20;
        const TRIALS: usize = 1500;
        let mut covered = 0;
        for _ in 0..TRIALS {
            let scales: Vec<f64> = (0..COMPARISONS).map(|_| 0.06 * (spread * noise.normal()).exp()).collect();
            let mut run = |scale: f64, passes: usize| -> Vec<f64> {
                (0..passes).map(|_| scale * noise.normal()).collect()
            };
            let runs: Vec<Vec<f64>> = scales.iter().map(|scale| run(*scale, passes)).collect();
            let spread_of = |run: &Vec<f64>| PassSpread::of(run).unwrap().before_runs_of(further_passes);
            let spreads: Vec<_> = runs.iter().map(spread_of).collect();
            let common = CommonSpread::of(&spreads).unwrap();
            let half = prediction_half_width(spreads[0], Some(&common)).unwrap();
            let further = (0..RUNS_FURTHER).map(|_| mean_of(&run(scales[0], further_passes)));
            covered += usize::from(further.into_iter().all(|mean| (mean - mean_of(&runs[0])).abs() <= half));
        }
        covered as f64 / TRIALS as f64
    }

    #[test]
    fn further_runs_lie_in_the_interval_as_often_as_it_says() {
        let mut noise = Noise(11);
        for passes in [(3, 3), (5, 5), (10, 5)] {
            for spread in [0.0, 0.3, 0.6, 1.0] {
                let share = covered(passes, spread, &mut noise);
                assert!(share >= PREDICTION_LEVEL - 0.01, "{passes:?} passes, spread {spread}: {share}");
            }
        }
    }
}
