//! A layer against the one below it at one load.

use statistics::RateEstimate;
use workload::plan::{LoadKind, PhasePlan};

use super::{FASTER_FACTOR, Role, role};
use crate::record::{PhaseRecord, Record, StackRow};

/// Blocks from this size on are compared by bandwidth, smaller ones by operations a second; bytes.
const BANDWIDTH_BLOCK_BYTES_MIN: u64 = 64 << 10;
/// Share of its time on a processor above which a worker is the limit.
const CPU_BOUND_SHARE_MIN: f64 = 0.9;
/// Doubts that leave open which of two rates is the higher.
const GRAVE_DOUBTS: &[&str] = &[
    "debug_build",
    "too_short",
    "not_steady",
    "rate_dropped",
    "client_saturated",
    "all_processors_busy",
    "other_load",
    "unwritten_range",
    "memory_target",
    "direct_not_honoured",
    "cpu_throttled",
    "io_throttled",
    "other_io",
    "loopback",
    "cpu_bound",
    "retransmits",
    "link_shared",
];

/// How sure a comparison is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Confidence {
    /// The 95 % interval of the ratio excludes 1 and neither figure is in doubt.
    Sure,
    /// It excludes 1, but a figure is in doubt.
    Likely,
    /// The interval includes 1, or there is none.
    CannotTell,
}

impl Confidence {
    /// In words.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::Sure => "sure",
            Self::Likely => "likely",
            Self::CannotTell => "cannot tell",
        }
    }
}

/// A layer against the one below it.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// Load, as the row names it.
    pub load: String,
    /// The layer.
    pub layer: String,
    /// The nearest layer below it that was measured.
    pub below: String,
    /// Position of the row within its load, lowest layer first.
    pub place: usize,
    /// The sort of load; none for others than the four common ones.
    pub kind: Option<LoadKind>,
    /// Its rate (bandwidth, for large blocks) over that of the layer below.
    pub ratio: f64,
    /// 95 % interval of that ratio.
    pub interval: Option<(f64, f64)>,
    /// How sure it is that the two differ.
    pub confidence: Confidence,
    /// Whether doubts were raised on one of the figures.
    pub doubted: bool,
    /// Whether the workers of the layer had no processor time left.
    pub cpu_bound: bool,
}

impl Step {
    /// How many times less than the layer below it gives; below 1 when it gives more.
    #[must_use]
    pub fn loss(&self) -> f64 {
        1.0 / self.ratio
    }

    /// Whether it gives more than the layer below, as far as can be told.
    #[must_use]
    pub fn is_faster(&self) -> bool {
        self.ratio >= FASTER_FACTOR && self.confidence != Confidence::CannotTell
    }
}

/// Whether a phase is compared by bandwidth.
#[must_use]
pub fn is_bandwidth(plan: &PhasePlan) -> bool {
    plan.operation_bytes_max() >= BANDWIDTH_BLOCK_BYTES_MIN
}

fn speed(phase: &PhaseRecord) -> (f64, Option<&RateEstimate>) {
    let total = &phase.summary.total;
    if is_bandwidth(&phase.plan) {
        (total.bytes_per_second, total.bandwidth.as_ref())
    } else {
        (total.operations_per_second, total.rate.as_ref())
    }
}

/// Two phases that were measured, as layers of one load; none where one of them gave nothing.
#[must_use]
pub fn steps_between(
    load: &str,
    below: (&StackRow, &PhaseRecord),
    layer: (&str, &PhaseRecord),
) -> Option<Step> {
    let is_measured = speed(below.1).0 > 0.0 && speed(layer.1).0 > 0.0;
    is_measured.then(|| step(load, (&below.0.layer, below.1), layer, 0))
}

/// Every measured layer against the nearest measured one below it, load by load. The null floor is no layer, and
/// neither is what lies beside the storage.
#[must_use]
pub fn steps(record: &Record) -> Vec<Step> {
    let mut steps = Vec::new();
    let Some(stack) = &record.stack else { return steps };
    for (load, rows) in super::loads(stack) {
        let measured = rows
            .iter()
            .enumerate()
            .filter(|(_, row)| !matches!(role(&row.layer), Role::Floor | Role::Beside))
            .filter_map(|(place, row)| {
                let phase = record.phases.get(row.phase?).filter(|phase| speed(phase).0 > 0.0)?;
                Some((place, row.layer.as_str(), phase))
            });
        let measured: Vec<_> = measured.collect();
        for pair in measured.windows(2) {
            let ((_, below, lower), (place, layer, upper)) = (pair[0], pair[1]);
            steps.push(step(load, (below, lower), (layer, upper), place));
        }
    }
    steps
}

fn step(load: &str, below: (&str, &PhaseRecord), layer: (&str, &PhaseRecord), place: usize) -> Step {
    let (lower, upper) = (speed(below.1), speed(layer.1));
    let ratio = upper.0 / lower.0;
    let interval = upper.1.zip(lower.1).and_then(|(upper, lower)| ratio_interval(ratio, upper, lower));
    let is_grave = |phase: &PhaseRecord| {
        phase.failure.is_some()
            || phase.doubts.iter().any(|doubt| GRAVE_DOUBTS.contains(&doubt.kind.as_str()))
    };
    let doubted = is_grave(below.1) || is_grave(layer.1);
    Step {
        load: load.to_owned(),
        layer: layer.0.to_owned(),
        below: below.0.to_owned(),
        place,
        kind: layer.1.plan.load_kind(),
        ratio,
        interval,
        confidence: confidence(interval, doubted),
        doubted,
        cpu_bound: is_cpu_bound(layer.1),
    }
}

/// 95 % interval of the ratio of two independent rates: relative errors add in quadrature on the logarithm (the delta
/// method), which keeps both ends above 0. None when an interval is wider than its rate.
fn ratio_interval(ratio: f64, upper: &RateEstimate, lower: &RateEstimate) -> Option<(f64, f64)> {
    let half = upper.relative_half_width().hypot(lower.relative_half_width());
    (half < 1.0).then(|| (ratio * (-half).exp(), ratio * half.exp()))
}

fn confidence(interval: Option<(f64, f64)>, doubted: bool) -> Confidence {
    match interval {
        Some((low, high)) if low <= 1.0 && high >= 1.0 => Confidence::CannotTell,
        Some(_) if doubted => Confidence::Likely,
        Some(_) => Confidence::Sure,
        None => Confidence::CannotTell,
    }
}

/// Whether the workers were on their processors nearly all the time.
fn is_cpu_bound(phase: &PhaseRecord) -> bool {
    let (busy, all) = phase.samples.workers.iter().fold((0, 0), |(busy, all), worker| {
        let length_ns = worker.finished_ns.saturating_sub(worker.started_ns);
        (busy + worker.cpu_user_ns + worker.cpu_system_ns, all + length_ns)
    });
    all > 0 && busy as f64 > CPU_BOUND_SHARE_MIN * all as f64
}
