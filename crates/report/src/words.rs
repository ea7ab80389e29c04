//! Words and figures that several views share.

use std::borrow::Cow;

use statistics::LatencySummary;
use units::{human_ns, human_rate, percent};
use workload::engine::SyncMode;
use workload::plan::{MediaPlan, Pattern, PhasePlan};
use workload::spec::{Operation, Spacing};

use crate::record::PhaseRecord;
use crate::{network, object};

/// The text with control characters spelled out: a path or an error text must not steer the terminal.
pub(crate) fn clean(text: &str) -> Cow<'_, str> {
    if !text.contains(char::is_control) {
        return Cow::Borrowed(text);
    }
    let spell = |letter: char| {
        if letter.is_control() { letter.escape_default().to_string() } else { letter.to_string() }
    };
    Cow::Owned(text.chars().map(spell).collect())
}

/// `1 thread`, `4 threads`.
pub(crate) fn counted(count: u64, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}

/// A rate with its unit: `412k/s`.
pub(crate) fn rate(per_second: f64) -> String {
    format!("{}/s", human_rate(per_second))
}

/// Three significant digits: `3.20`, `17.1`, `1200`.
pub(crate) fn factor(value: f64) -> String {
    let decimals = match value {
        _ if value < 9.995 => 2,
        _ if value < 99.95 => 1,
        _ => 0,
    };
    format!("{value:.decimals$}")
}

/// A processor count: two digits are all that the kernel's accounting is worth.
pub(crate) fn processors(count: f64) -> String {
    format!("{count:.2} {}", if count == 1.0 { "processor" } else { "processors" })
}

/// A large count: digits up to five, rounded above.
pub(crate) fn count(value: u64) -> String {
    if value < 100_000 { value.to_string() } else { human_rate(value as f64) }
}

/// What the operations are: `4KiB random reads`, `4KiB random, 70% reads, 30% writes`; `RPCs, 1MiB bulk out, nothing back`;
/// `4KiB put`.
pub(crate) fn operations(plan: &PhasePlan) -> String {
    match plan {
        PhasePlan::Media(plan) => media_operations(plan),
        PhasePlan::Network(plan) => network::operations(plan),
        PhasePlan::Object(plan) => object::operations(plan),
    }
}

fn media_operations(plan: &MediaPlan) -> String {
    let order = match &plan.pattern {
        _ if plan.operation == Operation::Nop => return "no-ops".to_owned(),
        Pattern::Sequential => "sequential",
        Pattern::Backward => "backward",
        Pattern::Strided { .. } => "strided",
        _ => "random",
    };
    let mix = [
        (plan.mix.read_percent, "reads"),
        (plan.mix.write_percent, "writes"),
        (plan.mix.discard_percent, "discards"),
    ];
    let used: Vec<_> = mix.iter().filter(|(percent, _)| *percent > 0).collect();
    let what = match used.as_slice() {
        [(_, class)] => format!(" {class}"),
        several => several.iter().map(|(percent, class)| format!(", {percent}% {class}")).collect(),
    };
    let course = plan.course.as_ref().map(ToString::to_string).filter(|words| !words.is_empty());
    let course = course.map_or_else(String::new, |words| format!(", {words}"));
    let zones = plan.zoned.as_ref().map_or_else(String::new, |zones| format!(", {zones}"));
    // A zone is discarded as a whole.
    let size = match &plan.zoned {
        Some(_) if plan.mix.discard_percent == 100 => "zone",
        _ => &clean(&plan.block_size),
    };
    format!("{size} {order}{what}{course}{zones}")
}

/// `4 threads x depth 32`; of RPCs and objects `4 threads x 16 in flight`.
pub(crate) fn concurrency(plan: &PhasePlan) -> String {
    match plan {
        PhasePlan::Media(plan) => {
            format!("{} x depth {}", counted(plan.load.threads.into(), "thread"), plan.load.depth)
        }
        PhasePlan::Network(plan) => network::concurrency(plan),
        PhasePlan::Object(plan) => object::concurrency(plan),
    }
}

/// `depth 32`; of RPCs and objects `16 in flight`.
pub(crate) fn depth(plan: &PhasePlan) -> String {
    let depth = plan.load().depth;
    if plan.media().is_none() { format!("{depth} in flight") } else { format!("depth {depth}") }
}

/// Everything about the load that is not its operations: `4 threads x depth 32, io_uring, direct`.
pub(crate) fn load(plan: &PhasePlan) -> String {
    let load = plan.load();
    let mut words = vec![concurrency(plan)];
    words.extend(manner(plan));
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

/// How operations are carried out: engine and options.
pub(crate) fn manner(plan: &PhasePlan) -> Vec<String> {
    let mut words = match plan {
        PhasePlan::Media(plan) => media_manner(plan),
        PhasePlan::Network(plan) => network::manner(plan),
        PhasePlan::Object(plan) => object::manner(plan),
    };
    if let Some(arrivals) = &plan.load().arrivals {
        let kind = match arrivals.kind {
            Spacing::Constant => "constant",
            Spacing::Poisson => "Poisson",
        };
        words.push(format!("open loop {} {kind}", rate(arrivals.rate_per_second)));
    }
    words
}

fn media_manner(plan: &MediaPlan) -> Vec<String> {
    let options = &plan.options;
    let flags = [
        (options.direct, "direct"),
        (options.sync == SyncMode::Dsync, "O_DSYNC"),
        (options.sync == SyncMode::Sync, "O_SYNC"),
        (options.sqpoll, "sqpoll"),
        (options.iopoll, "iopoll"),
        (options.hipri, "hipri"),
        (options.nowait, "nowait"),
        (options.rwf_dsync, "RWF_DSYNC"),
        (options.dontcache, "dontcache"),
        (options.map_sync, "MAP_SYNC"),
        (plan.huge_pages, "huge pages"),
        (plan.verify_interval_bytes.is_some(), "verified"),
        (plan.end_fsync, "fsync at the end"),
    ];
    let mut words = vec![clean(&plan.engine).into_owned()];
    words.extend(flags.iter().filter(|(on, _)| *on).map(|(_, word)| (*word).to_owned()));
    words.extend(plan.fsync_every.map(|every| format!("fsync every {every}")));
    if !matches!(plan.pattern, Pattern::Sequential | Pattern::Backward | Pattern::Permutation) {
        words.push(plan.pattern.to_string());
    }
    words
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
pub(crate) fn bounded(ns: f64, is_lower_bound: bool) -> String {
    format!("{}{}", if is_lower_bound { ">=" } else { "" }, human_ns(ns))
}

/// A percentile of a latency (the largest value: 100) that is given, or `-`; one that is a lower bound with a sign before it.
pub(crate) fn percentile_words(latency: Option<&LatencySummary>, percent: f64, ns: Option<u64>) -> String {
    let is_lower_bound = latency.is_some_and(|latency| latency.is_lower_bound(percent));
    ns.map_or_else(|| "-".to_owned(), |ns| bounded(ns as f64, is_lower_bound))
}

/// CPU time an operation, or `-`.
pub(crate) fn cpu(phase: &PhaseRecord) -> String {
    phase.summary.cpu_ns_per_operation.map_or_else(|| "-".to_owned(), human_ns)
}
