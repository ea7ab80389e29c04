//! Words and figures that several views share.

use statistics::LatencySummary;
use units::{human_ns, percent};
use workload::plan::PhasePlan;

use crate::record::PhaseRecord;

pub(crate) use units::{clean, count, counted, rate};

/// Three significant digits: `3.20`, `17.1`, `1200`.
#[must_use]
pub fn factor(value: f64) -> String {
    let decimals = match value {
        _ if value < 9.995 => 2,
        _ if value < 99.95 => 1,
        _ => 0,
    };
    format!("{value:.decimals$}")
}

/// A processor count: two digits are all that the kernel's accounting is worth.
#[must_use]
pub fn processors(count: f64) -> String {
    format!("{count:.2} {}", if count == 1.0 { "CPU" } else { "CPUs" })
}

/// Everything about the load that is not its operations: `4 threads x depth 32, io_uring, direct`.
pub(crate) fn load(plan: &PhasePlan) -> String {
    let load = plan.load();
    let mut words = vec![plan.concurrency()];
    words.extend(plan.manner());
    if let Some(time_ns) = load.limit.time_ns {
        words.push(human_ns(time_ns as f64));
    }
    if let Some(operations) = load.limit.operations {
        words.push(counted(operations, "operation"));
    }
    if let Some(bytes) = load.limit.bytes {
        words.push(units::human::human_bytes(bytes as f64));
    }
    words.join(", ")
}

/// Half the confidence interval of the phase's rate over the rate: `±0.80%`; `-` when there is none, and `>100%` when it includes 0,
/// because its width means nothing then. What came to nothing at all is no sure figure.
pub(crate) fn spread(estimate: Option<&statistics::RateEstimate>) -> String {
    match estimate.filter(|rate| rate.mean > 0.0).map(statistics::RateEstimate::relative_half_width) {
        Some(share) if share > 1.0 => ">100%".to_owned(),
        Some(share) if share.is_finite() => format!("±{}", percent(share)),
        _ => "-".to_owned(),
    }
}

/// Whether the rate of a phase is steady, as far as its series and its doubts tell.
pub(crate) fn is_steady(phase: &PhaseRecord) -> bool {
    phase.summary.steady.is_steady && phase.doubts.iter().all(|doubt| doubt.kind != "not_steady")
}

/// A latency; one that is a lower bound with a sign before it.
#[must_use]
pub fn bounded(ns: f64, is_lower_bound: bool) -> String {
    format!("{}{}", if is_lower_bound { ">=" } else { "" }, human_ns(ns))
}

/// A percentile of a latency (the largest value: 100) that is given, or `-`; one that is a lower bound with a sign before it.
#[must_use]
pub fn percentile_words(latency: Option<&LatencySummary>, percent: f64, ns: Option<u64>) -> String {
    let is_lower_bound = latency.is_some_and(|latency| latency.is_lower_bound(percent));
    ns.map_or_else(|| "-".to_owned(), |ns| bounded(ns as f64, is_lower_bound))
}

/// CPU time an operation, or `-`.
pub(crate) fn cpu(phase: &PhaseRecord) -> String {
    phase.summary.cpu_ns_per_operation.map_or_else(|| "-".to_owned(), human_ns)
}
