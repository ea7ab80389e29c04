//! Where steady state begins in a series of rates, and whether it is one.

use std::ops::Range;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::confidence::{MeanError, mean_error, mean_error_about, mean_of, median_of, variance_of};
use crate::distribution::student_t_quantile;

/// Fewest intervals on which anything is decided.
const SAMPLES_MIN: usize = 8;
/// Change over the window, in per cent of the mean, below which it does not matter even if it is certain.
const CHANGE_PERCENT_MIN: f64 = 5.0;
/// A rate this many scaled median absolute deviations from its neighbours' median is a spike.
const SPIKE_DEVIATIONS: f64 = 5.0;
/// One-sided level of the intervals that slope and drift are judged by: two-sided 99 %, so that of a hundred steady
/// series about one is doubted.
const DECISION_LEVEL: f64 = 0.995;
/// Fewest intervals in which three levels are looked for: with fewer, three levels fit any noise.
const THREE_LEVELS_MIN: usize = 60;
/// Neighbours on either side that a spike is judged by.
const SPIKE_REACH: usize = 3;
/// Share of the run that a faster start may last and still be warm-up: a queue that fills, a first burst into empty buffers.
const BURST_SHARE_MAX: f64 = 0.05;
/// Longest such start, seconds: what lasts longer is a store of some size, which a load can use up.
const BURST_SECONDS_MAX: f64 = 1.0;

/// Why a series is, or is not, steady.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SteadyReason {
    /// No relevant trend, and no relevant difference between the halves.
    Steady,
    /// Fewer than 8 intervals.
    TooFewIntervals,
    /// Nothing completed.
    NoRate,
    /// The rate changed its level within the window, or was still settling in the second half of the run.
    LevelChanges,
    /// The rate rises or falls over the window.
    Trend,
    /// The two halves of the window differ.
    HalvesDiffer,
    /// The rate dropped from one level to another and stayed there: a cache or a burst allowance was used up.
    RateDropped,
    /// Neighbouring intervals are so alike that no change can be told from chance: it wanders.
    Wanders,
    /// The target does not keep up with an open loop: the backlog grows, even if the rate is constant.
    BacklogGrows,
    /// Nothing completed for a relevant part of the phase.
    Stalls,
    /// The number of hanging operations grows, even if the rate of the others is constant.
    HangingGrows,
}

/// A fall of the rate from one level to another.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RateDrop {
    /// First interval of the lower level.
    pub at_interval: usize,
    /// Mean rate of the higher level, operations per second.
    pub operations_per_second_before: f64,
    /// Mean rate of the lower level, operations per second.
    pub operations_per_second_after: f64,
}

/// A change of the rate from one level to another, up or down, within the window that is reported.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LevelChange {
    /// First interval of the later level.
    pub at_interval: usize,
    /// Mean rate before it, operations per second.
    pub operations_per_second_before: f64,
    /// Mean rate from it on, operations per second.
    pub operations_per_second_after: f64,
}

/// Where steady state begins, and whether what follows is steady.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Steady {
    /// First interval of the steady window; 0 when nothing is cut, and always when the rates alone show no steady state.
    pub begins_at: usize,
    /// True when the window shows no change that matters.
    pub is_steady: bool,
    /// Fitted change from the start of the window to its end, in per cent of its mean.
    pub slope_percent_per_window: f64,
    /// Half width of the 99 % interval of that change, in per cent of the mean, allowing for autocorrelation.
    pub slope_percent_half_width: f64,
    /// Mean of the second half of the window against that of the first, in per cent of the whole.
    pub drift_percent: f64,
    /// Half width of the 99 % interval of that difference, in per cent of the mean.
    pub drift_percent_half_width: f64,
    /// Spikes that the decision ignores.
    pub spikes: usize,
    /// Why.
    pub reason: SteadyReason,
    /// The drop of the rate; none if it did not drop.
    #[serde(default)]
    pub drop: Option<RateDrop>,
    /// The change of the level, if that is the reason and its place is known.
    #[serde(default)]
    pub level_change: Option<LevelChange>,
}

impl Steady {
    /// Takes back that the rate is steady, for a reason that the rates alone do not show.
    pub fn deny(&mut self, reason: SteadyReason) {
        if self.is_steady {
            (self.is_steady, self.reason) = (false, reason);
        }
    }

    fn without_figures(reason: SteadyReason) -> Self {
        Self {
            begins_at: 0,
            is_steady: false,
            slope_percent_per_window: 0.0,
            slope_percent_half_width: 0.0,
            drift_percent: 0.0,
            drift_percent_half_width: 0.0,
            spikes: 0,
            reason,
            drop: None,
            level_change: None,
        }
    }
}

/// Finds where `rates` (one an interval of `interval_seconds`) settle, and says whether they then stay where they are.
///
/// 1. Single spikes are replaced by the median of their neighbours (Hampel 1974), so that one stall decides nothing.
/// 2. The start is cut where the marginal standard error is smallest: MSER-5 (White 1997), over batches of five
///    intervals (fewer in short series); the cut then moves back to where the rates first differ from the rest beyond
///    chance. Never more than half is cut: if the level changes later than that, there is no steady state.
/// 3. Warm-up ends upward. What would be cut and was faster than the rest, for longer than 5 % of the run or 1 s (whichever is
///    less, two intervals at least), is no warm-up: the rate dropped, and nothing is cut.
/// 4. What remains is steady unless a change of level at some place, its slope, or the difference between its halves is
///    both beyond chance (errors allow for autocorrelation) and above 5 % of the mean. Where it is not, nothing was warm-up, and
///    the whole is judged in its place: what is said is of what is reported.
pub fn find_steady(rates: &[f64], interval_seconds: f64) -> Steady {
    if rates.len() < SAMPLES_MIN {
        return Steady::without_figures(SteadyReason::TooFewIntervals);
    }
    if !rates.iter().all(|rate| rate.is_finite()) || rates.iter().sum::<f64>() <= 0.0 {
        return Steady::without_figures(SteadyReason::NoRate);
    }
    let (clean, spikes) = without_spikes(rates);
    let truncation = truncation_of(&clean);
    let early = truncation
        .and_then(|cut| drop_within((&clean, rates), cut, burst_max(rates.len(), interval_seconds)));
    let begins_at = if early.is_some() { 0 } else { truncation.unwrap_or(0) };
    let window = &clean[begins_at..];
    let shift = level_shift(window);
    let found = change_within(window, shift);
    let late = || shift.and_then(|at| drop_at((&clean, rates), begins_at, begins_at + at));
    let is_slope = shift.is_some() && found == Some(SteadyReason::Trend);
    let drop = if is_slope { None } else { early.or_else(late) };
    // A start that is cut only to find a change behind it is no warm-up: everything is kept, and is judged as it is reported.
    let (begins_at, reason) = if drop.is_some() {
        (0, SteadyReason::RateDropped)
    } else if truncation.is_none() {
        (0, if is_slope { SteadyReason::Trend } else { SteadyReason::LevelChanges })
    } else if found.is_some() && begins_at > 0 {
        (0, change_within(&clean, level_shift(&clean)).unwrap_or(SteadyReason::Steady))
    } else {
        (begins_at, found.unwrap_or(SteadyReason::Steady))
    };
    let is_steady = reason == SteadyReason::Steady;
    let (mean, slope, slope_half, drift, drift_half) = changes_over(&clean[begins_at..]);
    let percent = |value: f64| if mean > 0.0 { 100.0 * value / mean } else { 0.0 };
    Steady {
        begins_at,
        is_steady,
        slope_percent_per_window: percent(slope),
        slope_percent_half_width: percent(slope_half),
        drift_percent: percent(drift),
        drift_percent_half_width: percent(drift_half),
        spikes,
        reason,
        drop,
        level_change: (reason == SteadyReason::LevelChanges)
            .then(|| level_change(&clean, begins_at))
            .flatten(),
    }
}

/// The change of level of the window that begins at an interval.
fn level_change(clean: &[f64], begins_at: usize) -> Option<LevelChange> {
    let window = &clean[begins_at..];
    let at = level_shift(window)?;
    let (before, after) = window.split_at(at);
    Some(LevelChange {
        at_interval: begins_at + at,
        operations_per_second_before: mean_of(before),
        operations_per_second_after: mean_of(after),
    })
}

/// The change within a window that is beyond chance and matters; `shift` is where its level changes, if it does.
fn change_within(window: &[f64], shift: Option<usize>) -> Option<SteadyReason> {
    let (mean, slope, slope_half, drift, drift_half) = changes_over(window);
    let matters =
        |change: f64, half: f64| change.abs() > half && 100.0 * change.abs() > CHANGE_PERCENT_MIN * mean;
    let is_slope = matters(slope, slope_half);
    match shift {
        Some(at) if is_slope && line_explains_more(window, at) => Some(SteadyReason::Trend),
        Some(_) => Some(SteadyReason::LevelChanges),
        None if is_slope => Some(SteadyReason::Trend),
        None if matters(drift, drift_half) => Some(SteadyReason::HalvesDiffer),
        None => None,
    }
}

/// Mean of a window, its fitted change and the difference between its halves, each with the half width of its interval.
fn changes_over(window: &[f64]) -> (f64, f64, f64, f64, f64) {
    let (slope, slope_half) = slope_over(window);
    let (first, second) = window.split_at(window.len() / 2);
    let (drift, drift_half) = difference(first, second, DECISION_LEVEL);
    (mean_of(window), slope, slope_half, drift, drift_half)
}

/// Intervals that a faster start may last and still be warm-up.
fn burst_max(intervals: usize, interval_seconds: f64) -> usize {
    let share = BURST_SHARE_MAX * intervals as f64;
    (share.min(BURST_SECONDS_MAX / interval_seconds) as usize).max(2)
}

/// A drop within the first `cut` rates: the stretch of them that lies most above the rest, where it is more than a burst.
fn drop_within((clean, rates): (&[f64], &[f64]), cut: usize, burst_max: usize) -> Option<RateDrop> {
    let rest = &clean[cut..];
    let level = mean_of(rest);
    let least = level * (1.0 + CHANGE_PERCENT_MIN / 200.0);
    let (mut best, mut best_sum) = (0..0, 0.0);
    let (mut start, mut sum) = (0, 0.0);
    for (at, rate) in clean[..cut].iter().enumerate() {
        sum += rate - least;
        if sum <= 0.0 {
            (start, sum) = (at + 1, 0.0);
        } else if sum > best_sum {
            (best, best_sum) = (start..at + 1, sum);
        }
    }
    let fast = &clean[best.clone()];
    let is_drop = fast.len() > burst_max && level_changes(fast, rest);
    if is_drop { told(rates, best, cut) } else { None }
}

/// The drop after the stretch `fast`, with the levels of `rates` as they were measured: what looks like a spike may be the rhythm of a slow
/// target, whose intervals without an operation are part of its rate. None where these do not fall.
fn told(rates: &[f64], fast: Range<usize>, rest: usize) -> Option<RateDrop> {
    let (before, after) = (mean_of(&rates[fast.clone()]), mean_of(&rates[rest..]));
    (before > after).then_some(RateDrop {
        at_interval: fast.end,
        operations_per_second_before: before,
        operations_per_second_after: after,
    })
}

/// A drop at `at` of what begins at `start`, where the level there changes downward and stays low to the end.
fn drop_at((clean, rates): (&[f64], &[f64]), start: usize, at: usize) -> Option<RateDrop> {
    let (first, second) = (&clean[start..at], &clean[at..]);
    let (before, after) = (mean_of(first), mean_of(second));
    let between = (before + after) / 2.0;
    let last_of = |part: &[f64]| mean_of(&part[part.len() - (part.len() / 4).max(1)..]);
    let is_drop = before > after && last_of(first) > between && last_of(second) < between;
    if is_drop { told(rates, start..at, at) } else { None }
}

/// Whether a straight line through the window leaves less unexplained than levels: two that meet at `at`, one of them in two
/// again.
fn line_explains_more(window: &[f64], at: usize) -> bool {
    let count = window.len() as f64;
    let mean = mean_of(window);
    let explained_by = |part: &[f64]| best_split(part, 1).1;
    let (first, second) = window.split_at(at);
    let levels = first.len() as f64 * (mean_of(first) - mean).powi(2)
        + second.len() as f64 * (mean_of(second) - mean).powi(2)
        + explained_by(first).max(explained_by(second));
    let centre = (count - 1.0) / 2.0;
    let offsets = || (0..window.len()).map(|at| at as f64 - centre);
    let together: f64 = offsets().zip(window).map(|(offset, rate)| offset * (rate - mean)).sum();
    let square: f64 = offsets().map(|offset| offset * offset).sum();
    together * together / square > levels
}

/// The rates with spikes replaced by the median around them, and how many there were. The first few are left alone:
/// a single slow first interval is warm-up, not a spike.
fn without_spikes(rates: &[f64]) -> (Vec<f64>, usize) {
    // The typical step between neighbours is the noise floor: a window of equal values would call anything a spike.
    let mut steps: Vec<f64> = rates.windows(2).map(|pair| (pair[1] - pair[0]).abs()).collect();
    let floor = 1.0484 * median_of(&mut steps).unwrap_or(0.0);
    let mut clean = rates.to_vec();
    let mut spikes = 0;
    for at in SPIKE_REACH..rates.len() {
        let end = (at + SPIKE_REACH + 1).min(rates.len());
        // At the end of the series the window reaches further back, so that two last rates do not outvote the rest.
        let mut around = rates[end - (2 * SPIKE_REACH + 1)..end].to_vec();
        let median = median_of(&mut around).unwrap_or(0.0);
        around.iter_mut().for_each(|value| *value = (*value - median).abs());
        let deviation = (1.4826 * median_of(&mut around).unwrap_or(0.0)).max(floor);
        if (rates[at] - median).abs() > SPIKE_DEVIATIONS * deviation {
            clean[at] = median;
            spikes += 1;
        }
    }
    (clean, spikes)
}

/// How many rates to cut from the start; none when the level changes in the second half.
fn truncation_of(rates: &[f64]) -> Option<usize> {
    let size = (rates.len() / 20).clamp(1, 5);
    let batches: Vec<f64> = rates.chunks_exact(size).map(mean_of).collect();
    let half = batches.len() / 2;
    let scores = marginal_errors(&batches);
    let cut_upto = |last: usize| {
        let lowest = (0..=last).min_by(|a, b| scores[*a].total_cmp(&scores[*b])).unwrap_or(0);
        pull_back(rates, lowest * size)
    };
    // The last few batches always agree with themselves; five have to be left for the rule to say anything.
    let cut = cut_upto(batches.len().saturating_sub(5).max(half));
    if cut <= rates.len() / 2 {
        return Some(cut);
    }
    if level_changes(&rates[..cut], &rates[cut..]) { None } else { Some(cut_upto(half)) }
}

/// Moves a cut towards the start as far as what it would cut cannot be told from what it leaves.
///
/// Behind the true start the marginal standard error is nearly flat and noise puts its minimum anywhere, so the rule
/// alone cuts too much. Going back stops at a rate, or a mean of the rates gone back over, that differs from the rest
/// at a level of 1 % shared among all the places looked at, two tests of two sides each.
fn pull_back(rates: &[f64], cut: usize) -> usize {
    let rest = &rates[cut..];
    let (mean, noise) = (mean_of(rest), mean_error(rest));
    let count = rest.len() as f64;
    let one = noise.variance * count / noise.inflation;
    let level = 1.0 - 0.01 / (4.0 * cut.max(1) as f64);
    let quantile = student_t_quantile(level, noise.degrees).unwrap_or(f64::INFINITY);
    let differs = |value: f64, over: f64| {
        let variance = one * (noise.inflation / over).min(1.0) + noise.variance;
        (value - mean).abs() > quantile * variance.sqrt() + f64::EPSILON * mean.abs()
    };
    let mut sum = 0.0;
    for at in (0..cut).rev() {
        sum += rates[at];
        let over = (cut - at) as f64;
        if differs(rates[at], 1.0) || differs(sum / over, over) {
            return at + 1;
        }
    }
    0
}

/// White's marginal standard error for every truncation: the squared error of what is left over the square of its
/// length.
fn marginal_errors(batches: &[f64]) -> Vec<f64> {
    (0..batches.len())
        .map(|cut| {
            let left = &batches[cut..];
            variance_of(left) * (left.len() as f64 - 1.0) / (left.len() as f64).powi(2)
        })
        .collect()
}

/// Whether the mean changes beyond chance, and by enough to matter. The place was chosen because its two sides
/// differ, so the level is strict.
fn level_changes(first: &[f64], second: &[f64]) -> bool {
    let (change, half) = difference(first, second, 0.9995);
    change.abs() > half && 100.0 * change.abs() > CHANGE_PERCENT_MIN * mean_of(second).abs()
}

/// Where the window splits into two levels: at the place where the split explains most (a likelihood-ratio change point,
/// Hinkley 1970); none where they do not differ. Either level has to last for a twentieth of the window: shorter ones are
/// stalls.
fn level_shift(window: &[f64]) -> Option<usize> {
    let count = window.len();
    let mean = mean_of(window);
    let shortest = (count / 20).max(3);
    let (place, _) = best_split(window, shortest);
    if place == 0 {
        return None;
    }
    let (first, second) = window.split_at(place);
    let change = mean_of(second) - mean_of(first);
    if 100.0 * change.abs() <= CHANGE_PERCENT_MIN * mean {
        return None;
    }
    let is_certain = |residuals: &[f64], levels: f64, level: f64| {
        let noise = mean_error_about(residuals, levels);
        let variance = noise.variance * (count as f64).powi(2) / (first.len() as f64 * second.len() as f64);
        let degrees = (count as f64 / noise.inflation - levels).max(1.0);
        let quantile = student_t_quantile(1.0 - level, degrees).unwrap_or(f64::INFINITY);
        change.abs() > quantile * variance.sqrt()
    };
    // The place was chosen among all: they share the level.
    let level = 0.01 / (2.0 * count as f64);
    let by_two = is_certain(&[around(first), around(second)].concat(), 2.0, level);
    // A third level looks like correlation to two: both places are taken out then, and pairs of places share the level.
    let by_three = || {
        count >= THREE_LEVELS_MIN
            && is_certain(&around_three(first, second, shortest), 3.0, level / count as f64)
    };
    (by_two || by_three()).then_some(place)
}

/// The rates less their mean.
fn around(part: &[f64]) -> Vec<f64> {
    let mean = mean_of(part);
    part.iter().map(|rate| rate - mean).collect()
}

/// Residuals of two levels when the level that a second split explains better is split again.
fn around_three(first: &[f64], second: &[f64], shortest: usize) -> Vec<f64> {
    let (in_first, in_second) = (best_split(first, shortest), best_split(second, shortest));
    let (whole, (split, place)) =
        if in_first.1 > in_second.1 { (second, (first, in_first.0)) } else { (first, (second, in_second.0)) };
    let (left, right) = split.split_at(place);
    let parts = [whole, left, right].into_iter().filter(|part| !part.is_empty());
    parts.flat_map(around).collect()
}

/// Where two levels, each of `shortest` rates at least, explain most of the squares around the mean, and how much of them; place
/// 0 where they explain nothing.
fn best_split(window: &[f64], shortest: usize) -> (usize, f64) {
    let (count, mean) = (window.len(), mean_of(window));
    let mut above = 0.0;
    let mut best = (0, 0.0_f64);
    for (at, rate) in window.iter().enumerate().take(count.saturating_sub(shortest)) {
        above += rate - mean;
        let before = at + 1;
        let explained = above * above * count as f64 / (before as f64 * (count - before) as f64);
        if before >= shortest && explained > best.1 {
            best = (before, explained);
        }
    }
    best
}

/// Mean of `second` less that of `first`, with the half width of its interval at the one-sided `level`.
fn difference(first: &[f64], second: &[f64], level: f64) -> (f64, f64) {
    let change = mean_of(second) - mean_of(first);
    let (a, b) = (part_error(first, second), part_error(second, first));
    let variance = a.variance + b.variance;
    // Welch and Satterthwaite.
    let degrees = if variance > 0.0 {
        variance.powi(2) / (a.variance.powi(2) / a.degrees + b.variance.powi(2) / b.degrees)
    } else {
        1.0
    };
    (change, student_t_quantile(level, degrees).unwrap_or(f64::INFINITY) * variance.sqrt())
}

/// The error of the mean of `part`. A short part knows its own variance badly: it is taken to vary at least as much as
/// the longer one.
fn part_error(part: &[f64], other: &[f64]) -> MeanError {
    let own = mean_error(part);
    if other.len() <= part.len() {
        return own;
    }
    let lent = mean_error(other);
    MeanError { variance: own.variance.max(lent.variance * other.len() as f64 / part.len() as f64), ..lent }
}

/// Fitted change over the whole window, and the half width of its 99 % interval.
fn slope_over(window: &[f64]) -> (f64, f64) {
    let count = window.len() as f64;
    let centre = (count - 1.0) / 2.0;
    let mean = mean_of(window);
    let offsets = (0..window.len()).map(|at| at as f64 - centre);
    let square: f64 = offsets.clone().map(|offset| offset * offset).sum();
    let slope =
        offsets.clone().zip(window).map(|(offset, rate)| offset * (rate - mean)).sum::<f64>() / square;
    let residuals: Vec<f64> =
        offsets.zip(window).map(|(offset, rate)| rate - mean - slope * offset).collect();
    let error = mean_error(&residuals);
    // The residuals' error of the mean holds the inflated variance of one rate, over the count.
    let variance = error.variance * count / square;
    let degrees = (count / error.inflation - 2.0).max(1.0);
    let quantile = student_t_quantile(DECISION_LEVEL, degrees).unwrap_or(f64::INFINITY);
    let span = count - 1.0;
    (slope * span, quantile * variance.sqrt() * span)
}
