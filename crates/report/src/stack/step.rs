//! A row against the one that carries it: how many times slower it is, and what can be said of that.

use layer::StackKind;
use statistics::{
    CommonSpread, Difference, PassSpread, RateEstimate, prediction_half_width, student_t_quantile,
};

use super::rows::{Disturbance, Row};
use crate::words::{factor, processors};

/// A row counts as slower than what carries it from this factor on.
pub const LOSS_FACTOR_MIN: f64 = 1.25;
/// A row cannot be faster than what carries it by more than this factor, unless something explains it.
pub const FASTER_FACTOR: f64 = 1.1;
/// Word of a row whose passes differ.
pub(super) const VARIES: &str = "varies";
/// Word of a row that completed nothing, or whose carrier did.
pub(super) const IDLE: &str = "idle";
/// Most that the upper end of an interval may be above its lower end, as a factor.
pub const WIDE_FACTOR: f64 = 3.0;

/// Finding on a row.
#[derive(Clone, Debug, PartialEq)]
pub enum Finding {
    /// It is slower than what carries it, by a factor that matters, and the passes bear that out.
    Loss,
    /// It gives as good as all that what carries it gives.
    Keeps,
    /// It is faster, for a reason that is known.
    Faster,
    /// It cannot be.
    Void(String),
    /// Nothing: a word, and why.
    Inconclusive(&'static str, String),
}

/// A row against the one that carries it.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// Index of the row.
    pub row: usize,
    /// Index of the row that carries it: of several the slowest.
    pub below: usize,
    /// How many times slower it is; below 1 it is faster.
    pub factor: f64,
    /// 95 % interval of that factor.
    pub interval: Option<(f64, f64)>,
    /// How the logarithm of the factor varies from pass to pass.
    pub spread: Option<PassSpread>,
    /// Finding.
    pub finding: Finding,
}

/// Every row that stands on another against the slowest that carries it.
#[must_use]
pub fn steps(rows: &[Row<'_>]) -> Vec<Step> {
    let numbers = 0..rows.len();
    let compared = numbers
        .filter(|at| matches!(rows[*at].kind, StackKind::Software | StackKind::Hardware))
        .filter(|at| !rows[*at].passes.is_empty() || rows[*at].idle_s.is_some());
    let step = |at: usize| {
        let speed_of = |other: &usize| rows[*other].speed().unwrap_or(f64::INFINITY);
        let carriers = rows[at].carriers.iter().copied();
        let below = carriers.min_by(|a, b| speed_of(a).total_cmp(&speed_of(b)))?;
        if rows[at].idle_s.is_some() { idle(rows, at, below) } else { step(rows, at, below) }
    };
    compared.filter_map(step).collect()
}

/// A row that completed nothing is slower by as many operations as what carries it completes in one of its passes, or by more. Where something that
/// carries it completed nothing either, that is the row to look at.
fn idle(rows: &[Row<'_>], at: usize, below: usize) -> Option<Step> {
    let (row, carrier) = (&rows[at], &rows[below]);
    let seconds = row.idle_s.filter(|_| row.idle_carrier.is_none())?;
    let bytes = carrier.phase().filter(|_| carrier.in_bytes()).map(|phase| phase.plan.operation_bytes_max());
    let factor = carrier.speed()? * seconds / bytes.map_or(1.0, |bytes| bytes.max(1) as f64);
    let why = format!("no operation completed in its passes of {seconds:.2} s, which are too short for it");
    let finding = Finding::Inconclusive(IDLE, why);
    Some(Step { row: at, below, factor, interval: None, spread: None, finding })
}

fn step(rows: &[Row<'_>], at: usize, below: usize) -> Option<Step> {
    let (row, carrier) = (&rows[at], &rows[below]);
    let pairs: Vec<_> = row
        .passes
        .iter()
        .filter_map(|(pass, phase)| {
            let (_, other) = carrier.passes.iter().find(|(other, _)| other == pass)?;
            Some((row.speed_of(phase), carrier.speed_of(other), (*phase, *other)))
        })
        .collect();
    let (own, other): (Vec<f64>, Vec<f64>) = pairs.iter().map(|(own, other, _)| (*own, *other)).unzip();
    let (factor, interval, spread) = match &pairs[..] {
        [] => return None,
        [(own, other, phases)] => {
            let (of_own, of_other) = (row.estimate_of(phases.0), carrier.estimate_of(phases.1));
            (other / own, of_windows(other / own, of_own, of_other), None)
        }
        _ => of_passes(&own, &other, row.passes_added),
    };
    let idle = row.idle_carrier.map(|idle| {
        let why =
            format!("no operation of {}, which carries it too, completed in any pass", rows[idle].called());
        Finding::Inconclusive(IDLE, why)
    });
    let finding = idle.unwrap_or_else(|| finding(row, carrier, factor, interval));
    Some(Step { row: at, below, factor, interval, spread, finding })
}

/// The interval in which the factors of further runs of this stack lie, by the spread of its passes in the light of those of all rows.
pub(super) fn further_runs(step: &Step, all: &[Step]) -> Option<(f64, f64)> {
    let spreads: Vec<PassSpread> = all.iter().filter_map(|step| step.spread).collect();
    let half = prediction_half_width(step.spread?, CommonSpread::of(&spreads).as_ref())?;
    Some((step.factor * (-half).exp(), step.factor * half.exp()))
}

/// Factor, its interval and its spread from pairs of passes: Student's t on the logarithms of their ratios. Where passes were `added`, because the first
/// ones said nothing, the interval is looked at for the second time, and has the level of one of two looks (Bonferroni); a further run has so many passes less.
pub(super) fn of_passes(
    own: &[f64],
    carrier: &[f64],
    added: usize,
) -> (f64, Option<(f64, f64)>, Option<PassSpread>) {
    let logarithms: Vec<f64> = own.iter().zip(carrier).map(|(own, carrier)| (carrier / own).ln()).collect();
    let times = |percent: f64| 1.0 + percent / 100.0;
    let (factor, interval) = match Difference::of_pairs(own, carrier, 0.0) {
        Some(found) => (times(found.percent), Some((times(found.percent_low), times(found.percent_high)))),
        None => ((logarithms.iter().sum::<f64>() / own.len() as f64).exp(), None),
    };
    let interval = interval.map(|(low, high)| {
        let times = if added > 0 { second_look(own.len()) } else { 1.0 };
        (factor * (low / factor).powf(times), factor * (high / factor).powf(times))
    });
    let spread = PassSpread::of(&logarithms);
    (factor, interval, spread.map(|spread| spread.before_runs_of(own.len().saturating_sub(added))))
}

/// How many times wider an interval from so many pairs is at the level of one of two looks: half of the 5 % that may be missed.
fn second_look(pairs: usize) -> f64 {
    let quantile = |tail: f64| student_t_quantile(1.0 - tail, pairs.saturating_sub(1) as f64);
    quantile(0.0125).zip(quantile(0.025)).map_or(1.0, |(second, one)| second / one)
}

/// 95 % interval of the ratio of two independent rates of one window each, as records have it whose rows were measured once: relative errors add in
/// quadrature on the logarithm (the delta method). None when an interval is wider than its rate.
fn of_windows(factor: f64, own: Option<&RateEstimate>, carrier: Option<&RateEstimate>) -> Option<(f64, f64)> {
    let half = own?.relative_half_width().hypot(carrier?.relative_half_width());
    (half < 1.0).then(|| (factor * (-half).exp(), factor * half.exp()))
}

fn disturbed(row: &Row<'_>) -> Option<Finding> {
    Some(match row.disturbance.as_ref()? {
        Disturbance::Others(cpus) => {
            let why = format!("other processes or the hypervisor used {}", processors(*cpus));
            Finding::Inconclusive("others", why)
        }
        Disturbance::Quota(share) => {
            let why = format!(
                "the CPU quota of the control group stopped it for {:.0}% of its time",
                100.0 * share
            );
            Finding::Inconclusive("quota", why)
        }
        Disturbance::Stalled(stalled, passes) => {
            let why = format!("no operation completed in {stalled} of {passes} passes of {}", row.called());
            Finding::Inconclusive("stalled", why)
        }
    })
}

fn finding(row: &Row<'_>, carrier: &Row<'_>, times: f64, interval: Option<(f64, f64)>) -> Finding {
    if let Some(disturbed) = disturbed(row).or_else(|| disturbed(carrier)) {
        return disturbed;
    }
    match weighed(times, interval) {
        // Records that name no carriers say nothing of caches either.
        Finding::Faster if row.row.faster_by.is_none() && row.row.kind.is_some() => Finding::Void(format!(
            "{} times as fast as {}, the layer below it",
            factor(1.0 / times),
            carrier.called()
        )),
        finding => finding,
    }
}

/// Finding on a row on several hosts against itself on one. Nothing is void there: more hosts have more caches.
pub(super) fn on_itself(all: &Row<'_>, one: &Row<'_>, times: f64, interval: Option<(f64, f64)>) -> Finding {
    disturbed(all).or_else(|| disturbed(one)).unwrap_or_else(|| weighed(times, interval))
}

/// Finding from a factor and its interval alone.
pub(super) fn weighed(times: f64, interval: Option<(f64, f64)>) -> Finding {
    let Some((low, high)) = interval else {
        return Finding::Inconclusive(
            "few",
            "fewer than two passes of both rows completed any operation".to_owned(),
        );
    };
    if high < 1.0 / FASTER_FACTOR {
        return Finding::Faster;
    }
    let spans_loss = low <= 1.0 && high >= LOSS_FACTOR_MIN;
    if high / low > WIDE_FACTOR || spans_loss {
        let why = format!("the passes differ: {} to {} times slower", factor(low), factor(high));
        return Finding::Inconclusive(VARIES, why);
    }
    if low > 1.0 && times >= LOSS_FACTOR_MIN { Finding::Loss } else { Finding::Keeps }
}
