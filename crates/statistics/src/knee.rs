//! The knee of a load ladder: the least concurrency that gets (nearly) all the rate there is.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Growth of the rate per growth of the concurrency (both as logarithms) above which a ladder still climbs: 1 is
/// proportional growth, 0 a plateau.
const CLIMBING_ELASTICITY: f64 = 0.5;

/// Rungs as close as this fraction of the lower one are not told apart further: their rates differ by as little as noise.
const REFINED_FRACTION: u32 = 8;

/// One rung of a ladder.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LadderPoint {
    /// Operations kept in flight: threads times depth.
    pub concurrency: f64,
    /// Completed operations per second.
    pub operations_per_second: f64,
    /// Mean latency, nanoseconds.
    pub latency_ns_mean: f64,
    /// Median latency, nanoseconds.
    pub latency_ns_p50: u64,
    /// 99th percentile of the latency, nanoseconds.
    pub latency_ns_p99: Option<u64>,
}

impl LadderPoint {
    /// Little's law (Little 1961) on this rung.
    pub fn little(&self) -> LittleCheck {
        let measured = self.operations_per_second * self.latency_ns_mean / 1e9;
        LittleCheck { asked: self.concurrency, measured, ratio: measured / self.concurrency }
    }

    fn is_usable(&self) -> bool {
        let figures = [self.concurrency, self.operations_per_second, self.latency_ns_mean];
        figures.iter().all(|figure| figure.is_finite() && *figure > 0.0)
    }
}

/// Requested concurrency compared with rate times mean latency: they agree if strata kept the load in flight.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LittleCheck {
    /// Requested operations in flight.
    pub asked: f64,
    /// Operations in flight by Little's law, `N = X R`.
    pub measured: f64,
    /// Measured over requested: below 1, strata spent the difference between operations.
    pub ratio: f64,
}

/// How a knee is chosen.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct KneeOptions {
    /// Share of the highest rate that counts as all of it, above 0 and at most 1.
    pub rate_share: f64,
}

impl Default for KneeOptions {
    fn default() -> Self {
        Self { rate_share: 0.95 }
    }
}

/// The course of the rate over a ladder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LadderShape {
    /// The rate stops growing within the ladder: the knee is one.
    Plateau,
    /// The rate falls below the chosen share of its peak at the end: the knee is one, and more load does harm.
    FallsAfterPeak,
    /// The rate still grows at the last rung: the knee lies beyond it.
    StillClimbing,
    /// All rungs reach the rate: the knee lies at the first rung or below it.
    FlatFromStart,
    /// One usable rung only: nothing to compare with.
    SinglePoint,
}

/// The knee of a ladder and the values that it is based on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Knee {
    /// Position of the knee among the points given. When the ladder still climbs: the rung that comes nearest.
    pub index: usize,
    /// The course of the rate; only `plateau` and `falls_after_peak` put the knee where `index` says.
    pub shape: LadderShape,
    /// Operations in flight at the knee.
    pub concurrency: f64,
    /// Rate at the knee, operations per second.
    pub operations_per_second: f64,
    /// Mean latency at the knee, nanoseconds.
    pub latency_ns_mean: f64,
    /// Median latency at the knee, nanoseconds.
    pub latency_ns_p50: u64,
    /// 99th percentile at the knee, nanoseconds; none with too few operations.
    pub latency_ns_p99: Option<u64>,
    /// Highest rate of the ladder, operations per second.
    pub operations_per_second_max: f64,
    /// Concurrency at which it was reached.
    pub concurrency_at_max: f64,
    /// Share of the highest rate that the knee must reach.
    pub rate_share: f64,
    /// Lowest mean latency of the ladder, nanoseconds: what an operation takes without waiting, `R0`.
    pub latency_ns_unloaded: f64,
    /// `R0 Xmax`: below it no ladder can reach the highest rate, above it operations wait for one another.
    pub concurrency_saturation: f64,
    /// Rate at the knee over the bound `min(N / R0, Xmax)`; 1 is a server without any waiting below saturation.
    pub share_of_bound: f64,
    /// Growth of the rate per growth of the concurrency from the knee to the end of the ladder; none at its last rung.
    pub elasticity_after: Option<f64>,
    /// Rate of the last rung over the highest rate.
    pub last_share_of_max: f64,
    /// Little's law at the knee.
    pub little: LittleCheck,
    /// Little's law on the rung where it agrees least.
    pub little_worst: LittleCheck,
}

/// Finds the knee of a ladder given in any order; none when no rung completed anything or `rate_share` is not above 0
/// and at most 1.
///
/// The knee is the rung of least concurrency whose rate reaches `rate_share` of the highest. It is set against the
/// asymptotic bounds of a closed queue (Lazowska, Zahorjan, Graham and Sevcik 1984, chapter 5):
/// `X(N) <= min(N / R0, Xmax)`, which cross at `N* = R0 Xmax`. Rungs without a rate are passed over.
pub fn find_knee(points: &[LadderPoint], options: &KneeOptions) -> Option<Knee> {
    if !(options.rate_share > 0.0 && options.rate_share <= 1.0) {
        return None;
    }
    let mut rungs: Vec<(usize, &LadderPoint)> =
        points.iter().enumerate().filter(|(_, point)| point.is_usable()).collect();
    rungs.sort_by(|a, b| a.1.concurrency.total_cmp(&b.1.concurrency));
    let (_, peak) = rungs
        .iter()
        .copied()
        .max_by(|a, b| a.1.operations_per_second.total_cmp(&b.1.operations_per_second))?;
    let max = peak.operations_per_second;
    let (index, knee) =
        rungs.iter().copied().find(|(_, point)| point.operations_per_second >= options.rate_share * max)?;
    let last = rungs.last()?.1;
    let unloaded = rungs.iter().map(|(_, point)| point.latency_ns_mean).fold(f64::INFINITY, f64::min);
    let bound = max.min(knee.concurrency * 1e9 / unloaded);
    let elasticity_after = elasticity(knee, last);
    Some(Knee {
        index,
        shape: shape_of(&rungs, knee, max, options.rate_share),
        concurrency: knee.concurrency,
        operations_per_second: knee.operations_per_second,
        latency_ns_mean: knee.latency_ns_mean,
        latency_ns_p50: knee.latency_ns_p50,
        latency_ns_p99: knee.latency_ns_p99,
        operations_per_second_max: max,
        concurrency_at_max: peak.concurrency,
        rate_share: options.rate_share,
        latency_ns_unloaded: unloaded,
        concurrency_saturation: unloaded * max / 1e9,
        share_of_bound: knee.operations_per_second / bound,
        elasticity_after,
        last_share_of_max: last.operations_per_second / max,
        little: knee.little(),
        little_worst: worst_little(&rungs)?,
    })
}

/// The rung to measure next so that the knee is known better: halfway between the rung below the knee and the knee, as a multiple of
/// `unit` (the operations in flight of one thread, or of one step of depth). None where the climb has no knee of its own, and where the two
/// are within an eighth of each other or next to each other.
pub fn refine_knee(points: &[LadderPoint], options: &KneeOptions, unit: f64) -> Option<u32> {
    let knee = find_knee(points, options)?;
    if !matches!(knee.shape, LadderShape::Plateau | LadderShape::FallsAfterPeak) {
        return None;
    }
    let below = points
        .iter()
        .filter(|point| point.is_usable() && point.concurrency < knee.concurrency)
        .map(|point| point.concurrency)
        .max_by(f64::total_cmp)?;
    let (below, knee) = ((below / unit).round() as u32, (knee.concurrency / unit).round() as u32);
    let apart = knee.saturating_sub(below);
    (apart > 1.max(below / REFINED_FRACTION)).then(|| below + apart / 2)
}

fn shape_of(rungs: &[(usize, &LadderPoint)], knee: &LadderPoint, max: f64, share: f64) -> LadderShape {
    let (first, last) = (rungs[0].1, rungs[rungs.len() - 1].1);
    if first.concurrency == last.concurrency {
        return LadderShape::SinglePoint;
    }
    if last.operations_per_second < share * max {
        return LadderShape::FallsAfterPeak;
    }
    // Steps too fine to lose the share between two rungs can climb on all the same.
    if elasticity(knee, last).is_none_or(|growth| growth > CLIMBING_ELASTICITY) {
        return LadderShape::StillClimbing;
    }
    if knee.concurrency == first.concurrency { LadderShape::FlatFromStart } else { LadderShape::Plateau }
}

/// `d ln X / d ln N` between two rungs; none when they have the same concurrency.
fn elasticity(from: &LadderPoint, to: &LadderPoint) -> Option<f64> {
    let growth = (to.concurrency / from.concurrency).ln();
    (growth > 0.0).then(|| (to.operations_per_second / from.operations_per_second).ln() / growth)
}

fn worst_little(rungs: &[(usize, &LadderPoint)]) -> Option<LittleCheck> {
    let apart = |check: &LittleCheck| check.ratio.ln().abs();
    rungs.iter().map(|(_, point)| point.little()).max_by(|a, b| apart(a).total_cmp(&apart(b)))
}
