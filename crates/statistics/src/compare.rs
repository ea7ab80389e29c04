//! Two measurements against each other: how far apart a figure is, how sure that is, and the verdict.
//!
//! Everything is done on logarithms: a difference is a ratio, and what disturbs rates and latencies multiplies them and
//! is skewed to one side (Fleming and Wallace 1986; Kalibera and Jones 2013, *Rigorous Benchmarking in Reasonable Time*).

mod series;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::confidence::{mean_of, variance_of};
use crate::distribution::{student_t_below, student_t_quantile};

pub use series::{mean_latency, percentile_latency, rate_over, window_points};

/// Two-sided level of every interval and verdict here.
pub const LEVEL: f64 = 0.95;
/// Fewest pairs of which the means of all subsets reach 95 %: the widest interval of five holds but 15/16.
const PAIRS_MIN_SUBSETS: usize = 6;
/// Most pairs whose subsets are enumerated; beyond it the mean is as good as normal.
const PAIRS_MAX_SUBSETS: usize = 12;

/// A figure of one side with its 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Figure {
    /// The figure, in its own unit; above 0.
    pub value: f64,
    /// Lower end of its 95 % interval.
    pub low: f64,
    /// Upper end of its 95 % interval.
    pub high: f64,
    /// Degrees of freedom of the error behind the interval.
    pub degrees: f64,
}

/// 97.5 % quantile of Student's t; infinite where it is not defined.
fn t_quantile(degrees: f64) -> f64 {
    student_t_quantile(0.5 + LEVEL / 2.0, degrees).unwrap_or(f64::INFINITY)
}

fn logarithms(values: &[f64]) -> Option<Vec<f64>> {
    values
        .iter()
        .all(|value| value.is_finite() && *value > 0.0)
        .then(|| values.iter().map(|value| value.ln()).collect())
}

impl Figure {
    /// The geometric mean of repeats, one value each, with the interval of Student's t on their logarithms; none for
    /// fewer than two values or values that are not above 0.
    pub fn of_repeats(values: &[f64]) -> Option<Self> {
        let logs = logarithms(values).filter(|logs| logs.len() >= 2)?;
        let degrees = (logs.len() - 1) as f64;
        let half = t_quantile(degrees) * (variance_of(&logs) / logs.len() as f64).sqrt();
        Some(Self::around(mean_of(&logs).exp(), half, degrees))
    }

    /// A single value beside repeats of the other side: it is taken to vary as they do.
    pub fn of_single(value: f64, others: &[f64]) -> Option<Self> {
        let logs = logarithms(others).filter(|logs| logs.len() >= 2 && value.is_finite() && value > 0.0)?;
        let degrees = (logs.len() - 1) as f64;
        Some(Self::around(value, t_quantile(degrees) * variance_of(&logs).sqrt(), degrees))
    }

    /// The range in which one further value lies with a probability of 95 %, around the geometric mean of these: the prediction interval of Student's t on their logarithms;
    /// none for fewer than two values, or values that are not above 0.
    pub fn of_next(values: &[f64]) -> Option<Self> {
        let logs = logarithms(values).filter(|logs| logs.len() >= 2)?;
        let degrees = (logs.len() - 1) as f64;
        let deviation = (variance_of(&logs) * (1.0 + 1.0 / logs.len() as f64)).sqrt();
        Some(Self::around(mean_of(&logs).exp(), t_quantile(degrees) * deviation, degrees))
    }

    /// `half` is half the interval of the logarithm.
    fn around(value: f64, half: f64, degrees: f64) -> Self {
        Self { value, low: value * (-half).exp(), high: value * half.exp(), degrees }
    }

    /// The same with an interval that is wider by a relative uncertainty on both sides: what the histogram cannot tell
    /// apart.
    #[must_use]
    pub fn widened(self, relative: f64) -> Self {
        Self { low: self.low * (-relative).exp(), high: self.high * relative.exp(), ..self }
    }
}

/// Which way a figure is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// A rate.
    HigherIsFaster,
    /// A latency or a cost.
    LowerIsFaster,
}

/// Verdict of the data about B against A.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// B is faster, or cheaper.
    Faster,
    /// B is slower, or dearer.
    Slower,
    /// No difference that this data can show: the interval holds 0.
    NoDifference,
    /// Too little data for an interval.
    TooLittle,
}

/// How much more B has than A of one figure, in per cent of A, with its 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Difference {
    /// B against A, in per cent.
    pub percent: f64,
    /// Lower end of the 95 % interval.
    pub percent_low: f64,
    /// Upper end of the 95 % interval.
    pub percent_high: f64,
    /// Degrees of freedom of the error behind the interval.
    pub degrees: f64,
    /// Probability of a difference at least this large where there is none.
    pub p_value: f64,
}

fn percent_of(log_ratio: f64) -> f64 {
    100.0 * log_ratio.exp_m1()
}

impl Difference {
    /// From logarithms of ratios; none where an end is too far out to be a number.
    fn new(centre: f64, low: f64, high: f64, degrees: f64) -> Option<Self> {
        let towards_zero = if centre > 0.0 { centre - low } else { high - centre };
        let p_value = match (centre == 0.0, towards_zero == 0.0) {
            (true, _) => 1.0,
            (false, true) => 0.0,
            // The t whose interval has this reach: below 5 % exactly when the interval leaves 0 out.
            _ => 2.0 * student_t_below(-centre.abs() / towards_zero * t_quantile(degrees), degrees),
        };
        let made = Self {
            percent: percent_of(centre),
            percent_low: percent_of(low),
            percent_high: percent_of(high),
            degrees,
            p_value,
        };
        (made.percent_high.is_finite() && made.percent_low.is_finite() && p_value.is_finite()).then_some(made)
    }

    /// B against A, measured apart from each other.
    ///
    /// The interval of a difference recovered from the intervals of its sides (MOVER: Zou and Donner 2008), so that
    /// lopsided intervals stay lopsided. Each side brings its own quantile of Student's t, as in Cochran's (1964)
    /// answer to the Behrens-Fisher problem: with equal numbers this is Welch's (1947) statistic with the fewer degrees
    /// of freedom, which never calls equal means different more often than it promises, whatever the two variances
    /// (Mickey and Brown 1966).
    pub fn of_independent(a: &Figure, b: &Figure) -> Option<Self> {
        let logs = logarithms(&[a.value, a.low, a.high, b.value, b.low, b.high])?;
        let [a_log, a_low, a_high, b_log, b_low, b_high] = logs[..] else { return None };
        let centre = b_log - a_log;
        let low = centre - (b_log - b_low).hypot(a_high - a_log);
        let high = centre + (b_high - b_log).hypot(a_log - a_low);
        Self::new(centre, low, high, a.degrees.min(b.degrees))
    }

    /// B against A from pairs that ran next to each other: what drifts disturbs both alike and cancels.
    ///
    /// Student's t on the logarithms of the ratios. From 6 to 12 pairs the interval must also hold the one that needs no
    /// normal distribution, only that chance favours neither side: the means of all subsets of the ratios cut the line
    /// into parts that hold the true value with equal probability (Hartigan 1969). The wider end counts on each side.
    /// `resolution` is the relative uncertainty of both values together. None for fewer than two pairs, for lists of
    /// unequal length, or values that are not above 0.
    pub fn of_pairs(a: &[f64], b: &[f64], resolution: f64) -> Option<Self> {
        if a.len() != b.len() || a.len() < 2 {
            return None;
        }
        let (a, b) = (logarithms(a)?, logarithms(b)?);
        let ratios: Vec<f64> = a.iter().zip(&b).map(|(a, b)| b - a).collect();
        let degrees = (ratios.len() - 1) as f64;
        let centre = mean_of(&ratios);
        let half = t_quantile(degrees) * (variance_of(&ratios) / ratios.len() as f64).sqrt();
        let (mut low, mut high) = (centre - half, centre + half);
        if let Some((subset_low, subset_high)) = subset_interval(&ratios) {
            low = low.min(subset_low);
            high = high.max(subset_high);
        }
        Self::new(centre, low - resolution, high + resolution, degrees)
    }

    /// Verdict of this difference: decided by whether its interval holds 0.
    pub fn verdict(&self, direction: Direction) -> Verdict {
        self.verdict_if(direction, self.percent_low > 0.0 || self.percent_high < 0.0)
    }

    /// The verdict where `p_value`, adjusted for what else was looked at, decides.
    pub fn verdict_at(&self, direction: Direction, p_value: f64) -> Verdict {
        self.verdict_if(
            direction,
            p_value <= 1.0 - LEVEL && (self.percent_low > 0.0 || self.percent_high < 0.0),
        )
    }

    fn verdict_if(&self, direction: Direction, is_certain: bool) -> Verdict {
        match (is_certain, (self.percent > 0.0) == (direction == Direction::HigherIsFaster)) {
            (false, _) => Verdict::NoDifference,
            (true, true) => Verdict::Faster,
            (true, false) => Verdict::Slower,
        }
    }

    /// How much slower B is, in per cent; negative when it is faster.
    pub fn slower_percent(&self, direction: Direction) -> f64 {
        if direction == Direction::HigherIsFaster { -self.percent } else { self.percent }
    }

    /// Half the width of the interval, in per cent by which B would be slower: smaller differences would not be seen.
    pub fn detectable_percent(&self, direction: Direction) -> f64 {
        let half = ((100.0 + self.percent_high) / (100.0 + self.percent_low)).ln() / 2.0;
        // A rate cannot fall by more than all of it.
        if direction == Direction::HigherIsFaster { -percent_of(-half) } else { percent_of(half) }
    }
}

/// The interval that the means of all subsets give (Hartigan 1969), at 95 % or just above.
fn subset_interval(values: &[f64]) -> Option<(f64, f64)> {
    if !(PAIRS_MIN_SUBSETS..=PAIRS_MAX_SUBSETS).contains(&values.len()) {
        return None;
    }
    let parts = 1_usize << values.len();
    let mut sums = vec![0.0; parts];
    for subset in 1..parts {
        // A subset is a smaller one and its lowest member.
        sums[subset] = sums[subset & (subset - 1)] + values[subset.trailing_zeros() as usize];
    }
    let mut means: Vec<f64> =
        (1..parts).map(|subset| sums[subset] / f64::from(subset.count_ones())).collect();
    means.sort_by(f64::total_cmp);
    // This many of the equally likely parts are left out at each end.
    let cut = ((1.0 - LEVEL) / 2.0 * parts as f64) as usize;
    Some((means[cut - 1], means[means.len() - cut]))
}

/// Half a bucket of the latency histogram, relative to a latency in nanoseconds: what a percentile cannot tell apart.
pub fn latency_resolution(ns: f64) -> f64 {
    if ns >= 2048.0 { 1.0 / 2048.0 } else { 0.5 / ns.max(1.0) }
}

/// Which of several figures of the same runs decides, and the probability of its difference by chance, adjusted for their number
/// (Bonferroni); none without a figure.
///
/// The first that is sure decides; where none is, the one that would have shown the smallest difference.
pub fn decide(figures: &[(Direction, Difference)]) -> Option<(usize, f64)> {
    let adjusted = |at: usize| (figures.len() as f64 * figures[at].1.p_value).min(1.0);
    let is_sure =
        |at: &usize| figures[*at].1.verdict_at(figures[*at].0, adjusted(*at)) != Verdict::NoDifference;
    let unseen = |at: usize| figures[at].1.detectable_percent(figures[at].0);
    let all = 0..figures.len();
    let sure = all.clone().find(is_sure);
    let decisive = sure.or_else(|| all.min_by(|a, b| unseen(*a).total_cmp(&unseen(*b))))?;
    Some((decisive, adjusted(decisive)))
}

/// Probabilities adjusted so that of all of them together no more than promised are wrong (Holm 1979).
pub fn adjust_for_many(p_values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p_values.len()).collect();
    order.sort_by(|a, b| p_values[*a].total_cmp(&p_values[*b]));
    let mut adjusted = vec![0.0; p_values.len()];
    let mut highest: f64 = 0.0;
    for (rank, at) in order.into_iter().enumerate() {
        highest = highest.max((p_values.len() - rank) as f64 * p_values[at]).min(1.0);
        adjusted[at] = highest;
    }
    adjusted
}
