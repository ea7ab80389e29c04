//! Reasons not to believe a figure. Pure: everything is told from what was planned, measured and seen around it.
//!
//! docs/doubts.md lists every kind with what provokes it and when it stays silent.

#[cfg(test)]
mod tests;

use host::Environment;
use statistics::{PhaseSamples, SteadyReason, Summary, WorkerSamples};
use units::{human_ns, percent};
use workload::plan::{ContentChoice, PhasePlan};
use workload::spec::{CachePolicy, Refill};
use workload::target::TargetKind;

use crate::record::{ArrivalOutcome, Doubt, Observations, PhaseRecord, Record, ToolCost};
use crate::words::{count, is_storage, processors, rate};

/// Shortest window that is believed, nanoseconds: write-back, journals and flash garbage collection work in beats of
/// up to a second.
const WINDOW_NS_MIN: u64 = 1_000_000_000;
/// Fewest operations: with fewer than 1000 the 99th percentile rests on fewer than ten of them.
const OPERATIONS_MIN: u64 = 1000;
/// Fewest independent interval rates: with fewer than ten the t quantile is above 2.26 and the estimate of their
/// correlation, on which the confidence interval stands, is itself guesswork.
const EFFECTIVE_SAMPLES_MIN: f64 = 10.0;
/// Share of the range in the page cache above which reads from memory move the mean.
const CACHED_FRACTION_MAX: f64 = 0.05;
/// Share of the bytes read that must have come from the device; below it the rest was in memory.
const DEVICE_READ_SHARE_MIN: f64 = 0.9;
/// Share of the range that may be holes: metadata, not data, answers there.
const UNWRITTEN_FRACTION_MAX: f64 = 0.01;
/// Share of a worker's time that strata itself may take; above it the rate is strata's as much as the target's.
const TOOL_SHARE_MAX: f64 = 0.25;
/// Share of its time that a worker may compute in user mode, where only strata runs.
const WORKER_USER_SHARE_MAX: f64 = 0.9;
/// Share of its time that a worker may be on its processor while it keeps a device's queue filled; above it, it never
/// waits, so the device does.
const WORKER_BUSY_SHARE_MAX: f64 = 0.95;
/// Share of the machine's processors that may be busy; above it, threads wait for a processor.
const MACHINE_BUSY_SHARE_MAX: f64 = 0.95;
/// Processors that others may keep busy: the kernel's own threads for this load stay below a fifth of one.
const OTHER_CPUS_MAX: f64 = 0.2;
/// The same as a share of all processors, for large machines, where services take some of many.
const OTHER_CPUS_SHARE_MAX: f64 = 0.02;
/// Drift of the clock against the kernel's, parts per million: calibration leaves some 5, discipline by NTP up to 500
/// on the kernel's side for a while, a healthy oscillator less than 100.
const DRIFT_PPM_MAX: f64 = 200.0;
/// Share of the asked rate that may be missing.
const UNSERVED_SHARE_MAX: f64 = 0.005;

/// All that doubts are told from.
#[derive(Clone, Copy, Debug)]
pub struct Evidence<'a> {
    /// What was planned.
    pub plan: &'a PhasePlan,
    /// What was measured.
    pub samples: &'a PhaseSamples,
    /// The figures computed from it.
    pub summary: &'a Summary,
    /// What was seen around the phase.
    pub observations: &'a Observations,
    /// The machine.
    pub environment: &'a Environment,
    /// The open loop as it went.
    pub arrivals: Option<&'a ArrivalOutcome>,
    /// What strata cost; without it the clock is not doubted.
    pub tool_cost: Option<&'a ToolCost>,
    /// Whether strata was built with debug assertions.
    pub debug_build: bool,
}

impl<'a> Evidence<'a> {
    /// The evidence of a recorded phase.
    #[must_use]
    pub fn of(record: &'a Record, phase: &'a PhaseRecord) -> Self {
        Self {
            plan: &phase.plan,
            samples: &phase.samples,
            summary: &phase.summary,
            observations: &phase.observations,
            environment: &record.environment,
            arrivals: phase.arrivals.as_ref(),
            tool_cost: record.tool_cost.as_ref(),
            debug_build: record.debug_build,
        }
    }

    /// Whether it measures storage, and not strata, memory or a sink of the kernel.
    fn on_storage(&self) -> bool {
        self.plan.targets.iter().any(|target| is_storage(target.kind))
    }

    fn through_page_cache(&self) -> bool {
        self.on_storage() && !self.plan.options.direct
    }

    fn logical_cores(&self) -> Option<f64> {
        self.environment.processor.logical_cores.map(f64::from)
    }
}

/// One reason to doubt: its name, how it is told, and what to do about it.
struct Kind {
    name: &'static str,
    /// What was seen, in one sentence with figures; none when there is nothing to doubt.
    look: fn(&Evidence<'_>) -> Option<String>,
    remedy: &'static str,
}

/// Every kind, the gravest first: this is the order in which they are shown.
const KINDS: &[Kind] = &[
    Kind {
        name: "debug_build",
        look: debug_build,
        remedy: "build with `make`, or `cargo build --release`, and measure again",
    },
    Kind {
        name: "too_short",
        look: too_short,
        remedy: "run longer (--time 10s or more), or take out --count and --bytes limits",
    },
    Kind {
        name: "not_steady",
        look: not_steady,
        remedy: "run longer; bring the target into a steady state first (a drive: write it over twice), or look at \
                 the series in the record for what changes",
    },
    Kind {
        name: "page_cache",
        look: page_cache,
        remedy: "read with --direct, or with --cache drop on a range larger than memory; if memory is what you mean \
                 to measure, say so with --cache warm",
    },
    Kind {
        name: "unwritten_range",
        look: unwritten_range,
        remedy: "write the whole range once (--op write) before reading it",
    },
    Kind {
        name: "buffered_writes",
        look: buffered_writes,
        remedy: "write with --direct, or make writes durable: --end-fsync, --fsync N or --sync dsync",
    },
    Kind {
        name: "compressible_content",
        look: compressible_content,
        remedy: "write --content random with --refill full (the defaults), unless your data are like this",
    },
    Kind {
        name: "client_saturated",
        look: client_saturated,
        remedy: "use more threads (-t) on cores of their own (--cores), larger blocks, or a cheaper engine; \
                 --refill stamp where buffers are filled anew",
    },
    Kind {
        name: "all_processors_busy",
        look: all_processors_busy,
        remedy: "use fewer threads than processors; if the load needs more, this machine is too small to drive it",
    },
    Kind {
        name: "other_load",
        look: other_load,
        remedy: "stop what else runs on this machine (see `top`) and measure again",
    },
    Kind {
        name: "arrivals_unserved",
        look: arrivals_unserved,
        remedy: "ask for a lower --rate, or allow more in flight (-t, -q); latencies here are those of an overloaded \
                 target",
    },
    Kind {
        name: "clock",
        look: clock,
        remedy: "look whether the host sleeps or migrates; times are off by this much",
    },
    Kind {
        name: "frequency_scaling",
        look: frequency_scaling,
        remedy: "choose the governor `performance` (cpupower frequency-set -g performance) and measure again",
    },
];

/// Names of all kinds, in the order in which they are shown.
pub fn kinds() -> impl Iterator<Item = &'static str> {
    KINDS.iter().map(|kind| kind.name)
}

/// Every reason to doubt the figures of a phase, the gravest first.
#[must_use]
pub fn find(evidence: &Evidence<'_>) -> Vec<Doubt> {
    let doubt = |kind: &Kind| {
        let detail = (kind.look)(evidence)?;
        Some(Doubt { kind: kind.name.to_owned(), detail, remedy: kind.remedy.to_owned() })
    };
    KINDS.iter().filter_map(doubt).collect()
}

fn debug_build(evidence: &Evidence<'_>) -> Option<String> {
    evidence.debug_build.then(|| "strata was built with debug assertions: it is many times slower".to_owned())
}

fn too_short(evidence: &Evidence<'_>) -> Option<String> {
    let summary = evidence.summary;
    let window_ns = summary.window_end_ns.saturating_sub(summary.window_start_ns);
    let operations = summary.total.window_operations;
    if operations == 0 {
        return Some("nothing completed in the window".to_owned());
    }
    if window_ns < WINDOW_NS_MIN {
        return Some(format!("the window is {} long, below 1 s", human_ns(window_ns as f64)));
    }
    if operations < OPERATIONS_MIN {
        return Some(format!("{operations} operations: the 99th percentile rests on fewer than 10 of them"));
    }
    match &summary.total.rate {
        None => Some("fewer than 4 intervals: no confidence interval".to_owned()),
        Some(rate) if rate.effective_samples < EFFECTIVE_SAMPLES_MIN => Some(format!(
            "the rate rests on {:.1} independent intervals, below {EFFECTIVE_SAMPLES_MIN}",
            rate.effective_samples
        )),
        Some(_) => None,
    }
}

fn not_steady(evidence: &Evidence<'_>) -> Option<String> {
    let steady = &evidence.summary.steady;
    match steady.reason {
        SteadyReason::Steady | SteadyReason::TooFewIntervals | SteadyReason::NoRate => None,
        SteadyReason::LevelChanges => Some("the rate changed its level within the window".to_owned()),
        SteadyReason::Trend => {
            let (verb, change) = moved(steady.slope_percent_per_window);
            Some(format!("the rate {verb} by {change:.1}% over the window"))
        }
        SteadyReason::HalvesDiffer => {
            let (verb, change) = moved(steady.drift_percent);
            Some(format!("the rate {verb} by {change:.1}% from the first half of the window to the second"))
        }
    }
}

fn moved(percent: f64) -> (&'static str, f64) {
    (if percent < 0.0 { "fell" } else { "rose" }, percent.abs())
}

fn page_cache(evidence: &Evidence<'_>) -> Option<String> {
    let plan = evidence.plan;
    if !plan.reads() || !evidence.through_page_cache() || plan.cache == CachePolicy::Warm {
        return None;
    }
    if let Some(cached) =
        evidence.observations.cached_before_fraction.filter(|&cached| cached > CACHED_FRACTION_MAX)
    {
        return Some(format!("{} of the range was in the page cache before the phase", percent(cached)));
    }
    let read = evidence.summary.classes.iter().find(|class| class.class == "read")?.bytes;
    let device_read = evidence.observations.device_read_bytes?;
    let share = device_read as f64 / read as f64;
    (read > 0 && share < DEVICE_READ_SHARE_MIN)
        .then(|| format!("the device gave {} of the bytes read: the rest came from memory", percent(share)))
}

fn unwritten_range(evidence: &Evidence<'_>) -> Option<String> {
    let unwritten = evidence.observations.unwritten_fraction?;
    (evidence.plan.reads() && unwritten > UNWRITTEN_FRACTION_MAX)
        .then(|| format!("{} of the range was never written: no medium is read there", percent(unwritten)))
}

fn buffered_writes(evidence: &Evidence<'_>) -> Option<String> {
    let (plan, options) = (evidence.plan, &evidence.plan.options);
    let durable = plan.end_fsync
        || plan.fsync_every.is_some()
        || options.sync != workload::engine::SyncMode::None
        || options.rwf_dsync
        || options.map_sync;
    if plan.mix.write_percent == 0 || durable || !evidence.through_page_cache() {
        return None;
    }
    let written = evidence
        .observations
        .device_written_bytes
        .zip(evidence.summary.classes.iter().find(|class| class.class == "write").map(|class| class.bytes));
    Some(match written {
        Some((device, asked)) if asked > 0 => format!(
            "writes end in the page cache and nothing makes them durable: {} of the bytes had reached the device",
            percent((device as f64 / asked as f64).min(1.0))
        ),
        _ => "writes end in the page cache and nothing makes them durable".to_owned(),
    })
}

fn compressible_content(evidence: &Evidence<'_>) -> Option<String> {
    let (plan, content) = (evidence.plan, &evidence.plan.content);
    if plan.mix.write_percent == 0 || plan.verify_interval_bytes.is_some() || !evidence.on_storage() {
        return None;
    }
    let what = match &content.content {
        ContentChoice::Zero => "only zeros are written".to_owned(),
        ContentChoice::Bytes(_) => "one short pattern is written over and over".to_owned(),
        ContentChoice::Random if content.compress_percent > 0 => {
            format!("{}% of what is written compresses away", content.compress_percent)
        }
        ContentChoice::Random if content.dedupe_percent > 0 => {
            format!("{}% of what is written are copies", content.dedupe_percent)
        }
        ContentChoice::Random => match content.refill {
            Refill::Full => return None,
            Refill::Stamp => "all but 16 bytes of each 4 KiB are written again and again".to_owned(),
            Refill::Once => "buffers are filled once and written again and again".to_owned(),
        },
    };
    Some(format!("{what}: a target that compresses or removes copies stores less than it is given"))
}

fn client_saturated(evidence: &Evidence<'_>) -> Option<String> {
    let (plan, options) = (evidence.plan, &evidence.plan.options);
    if !evidence.on_storage() {
        return None;
    }
    let share = evidence.summary.tool_share_max;
    if share > TOOL_SHARE_MAX {
        let fill: u64 = evidence.samples.workers.iter().map(|worker| worker.fill_ns + worker.verify_ns).sum();
        let all: u64 = evidence.samples.workers.iter().map(|worker| worker.tool_ns).sum();
        let most = if fill * 2 > all { ", most of it filling and verifying buffers" } else { "" };
        return Some(format!("strata itself took {} of a worker's time{most}", percent(share)));
    }
    // An open loop may wait on its processor for the next arrival; mmap copies in user mode.
    let closed = plan.load.arrivals.is_none();
    let user = highest_share(evidence.samples, |worker| worker.cpu_user_ns);
    if closed && plan.engine != "mmap" && user > WORKER_USER_SHARE_MAX {
        return Some(format!("a worker computed in user mode for {} of its time", percent(user)));
    }
    let busy = highest_share(evidence.samples, |worker| worker.cpu_user_ns + worker.cpu_system_ns);
    let polls = options.iopoll || options.hipri;
    let queues = options.direct && plan.load.depth > 1;
    (closed && queues && !polls && busy > WORKER_BUSY_SHARE_MAX).then(|| {
        format!("a worker was on its processor for {} of its time: the device waited for it", percent(busy))
    })
}

fn highest_share(samples: &PhaseSamples, time_ns: fn(&WorkerSamples) -> u64) -> f64 {
    let share = |worker: &WorkerSamples| {
        let length_ns = worker.finished_ns.saturating_sub(worker.started_ns);
        if length_ns == 0 { 0.0 } else { time_ns(worker) as f64 / length_ns as f64 }
    };
    samples.workers.iter().map(share).fold(0.0, f64::max)
}

fn all_processors_busy(evidence: &Evidence<'_>) -> Option<String> {
    let cores = evidence.logical_cores()?;
    let busy = evidence.observations.machine_cpus_busy?;
    // Memory and the tool itself are measured by keeping processors busy.
    let meant = evidence
        .plan
        .targets
        .iter()
        .all(|target| matches!(target.kind, TargetKind::Memory | TargetKind::Null))
        && f64::from(evidence.plan.load.threads) <= cores;
    (!meant && busy > MACHINE_BUSY_SHARE_MAX * cores)
        .then(|| format!("{busy:.2} of {cores} processors were busy: threads waited for a processor"))
}

fn other_load(evidence: &Evidence<'_>) -> Option<String> {
    let limit =
        evidence.logical_cores().map_or(0.0, |cores| cores * OTHER_CPUS_SHARE_MAX).max(OTHER_CPUS_MAX);
    let others = evidence.observations.other_cpus_busy?;
    (others > limit).then(|| format!("others kept {} of this machine busy", processors(others)))
}

fn arrivals_unserved(evidence: &Evidence<'_>) -> Option<String> {
    let arrivals = evidence.arrivals?;
    // Against what was due, not against the rate asked for: the number of Poisson arrivals varies by its square root.
    let due = arrivals.started_operations + arrivals.unserved_operations;
    let missing = arrivals.unserved_operations as f64 / due.max(1) as f64;
    (missing > UNSERVED_SHARE_MAX).then(|| {
        format!(
            "{} were asked for and {} started: {} operations never were",
            rate(arrivals.asked_per_second),
            rate(arrivals.started_per_second),
            count(arrivals.unserved_operations)
        )
    })
}

fn clock(evidence: &Evidence<'_>) -> Option<String> {
    let drift = evidence.tool_cost?.clock_drift_ppm;
    (drift.abs() > DRIFT_PPM_MAX)
        .then(|| format!("the clock drifted by {drift:.0} parts per million against the kernel's"))
}

fn frequency_scaling(evidence: &Evidence<'_>) -> Option<String> {
    let other: Vec<_> = evidence
        .environment
        .processor
        .governors
        .iter()
        .map(String::as_str)
        .filter(|governor| *governor != "performance")
        .collect();
    (!other.is_empty()).then(|| {
        format!("the frequency governor is {}: processors slow down when they wait", other.join(", "))
    })
}
