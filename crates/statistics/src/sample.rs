//! Samples that a runner hands over: plain counts and times, nothing computed.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::histogram::SparseHistogram;
use crate::series::{IntervalPoint, Series};

/// Everything one worker did of one class of operations within the measured window.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClassTotals {
    /// Name of the class, such as `read`.
    pub class: String,
    /// Operations completed.
    pub operations: u64,
    /// Payload bytes of these operations.
    pub bytes: u64,
    /// Operations that failed, before the window opened and after it closed too; not among `operations`.
    pub errors: u64,
    /// Latencies of the operations that began (closed loop) or were due (open loop) in the window, whenever they completed; for those
    /// that never did, how long they had waited.
    pub latency: SparseHistogram,
    /// Values of `latency` that are lower bounds, because the operation did not complete.
    #[serde(default, skip_serializing_if = "SparseHistogram::is_empty")]
    pub unfinished: SparseHistogram,
    /// Submission part of the latency, until the driver accepted the operation; only with `--split-latency`.
    #[serde(default)]
    pub submission: Option<SparseHistogram>,
    /// Completion part of the latency, from there on; only with `--split-latency`.
    #[serde(default)]
    pub completion: Option<SparseHistogram>,
    /// Parts of the latency that the driver measures separately, and the rest; only with `--split-latency`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub latency_parts: Vec<LatencyPart>,
}

/// A part of the latencies of a class.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LatencyPart {
    /// Name, such as `connect`; `client` is the rest beside the parts that the driver measures.
    pub part: String,
    /// Its time in each operation.
    pub latency: SparseHistogram,
}

/// One kind of failure, counted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ErrorCount {
    /// Class of the operations that failed.
    pub class: String,
    /// Cause of the failure, in words.
    pub cause: String,
    /// Error number of the operating system, where there is one.
    pub errno: Option<i32>,
    /// Number of occurrences.
    pub count: u64,
    /// First occurrence, nanoseconds from the start of the phase.
    pub first_at_ns: u64,
    /// Whether the load ignores it: it is listed, but does not fail the phase.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_ignored: bool,
}

/// How deep a worker's queue was and how large its batches were: counts by powers of two, where place `k` holds the
/// sizes from `2^k` to below `2^(k+1)`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DepthCounts {
    /// Operations, by the number in flight once they were submitted.
    pub in_flight: Vec<u64>,
    /// Submission calls, by their number of operations.
    pub submitted: Vec<u64>,
    /// Collections, by their number of completions.
    pub completed: Vec<u64>,
}

/// A cause of failures and its number of occurrences.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CauseCount {
    /// Cause of the failure, in words.
    pub cause: String,
    /// Number of occurrences.
    pub count: u64,
}

/// Totals of one worker for one part of its target, such as an endpoint, within the measured window.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PartTotals {
    /// Number of the part: its place in the plan's list.
    pub part: usize,
    /// Operations completed.
    pub operations: u64,
    /// Payload bytes of these operations.
    pub bytes: u64,
    /// Operations that failed; not among `operations`.
    pub errors: u64,
    /// Failures by cause.
    pub causes: Vec<CauseCount>,
    /// Latencies of the operations that began (closed loop) or were due (open loop) in the window and completed.
    pub latency: SparseHistogram,
}

/// A value that a driver measured besides completions, for one part of its target.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TallySample {
    /// Number of the part: its place in the plan's list.
    pub part: usize,
    /// Name of the value, unit last: `tcp_retransmits`, `tcp_round_trip_ns`, ...
    pub name: String,
    /// The value.
    pub value: f64,
}

/// Samples of one worker in a phase. Times count from the start of the phase.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WorkerSamples {
    /// Number of the worker, from 0.
    pub worker: usize,
    /// Label of the master that the worker belongs to; none for this process.
    #[serde(default)]
    pub origin: Option<String>,
    /// Core it was pinned to.
    pub core: Option<usize>,
    /// When it submitted its first operation, nanoseconds.
    pub started_ns: u64,
    /// When its first operation completed, nanoseconds; none when none did.
    pub first_completion_ns: Option<u64>,
    /// When it was done, nanoseconds: the close of the window where it was at work until then, else its last counted
    /// completion.
    pub finished_ns: u64,
    /// When it had done its share and began with the operations that end it (a sync), nanoseconds; none where there were none.
    #[serde(default)]
    pub finals_from_ns: Option<u64>,
    /// One entry a class, in the order of the phase's classes.
    pub classes: Vec<ClassTotals>,
    /// Failures by kind.
    pub errors: Vec<ErrorCount>,
    /// Depths and batches, if they were counted.
    #[serde(default)]
    pub depths: Option<DepthCounts>,
    /// Totals by part of the target, if parts are counted separately; only the parts that the worker used.
    #[serde(default)]
    pub parts: Vec<PartTotals>,
    /// Further values from its driver.
    #[serde(default)]
    pub tallies: Vec<TallySample>,
    /// Its single operations in the order of completion, with `--keep-operations`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kept: Vec<crate::OperationSample>,
    /// Latencies of whole items (a file that is opened, written and closed), where they take several operations: the sum of the latencies of
    /// their operations. Items with a failed operation are not among them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub items: Option<SparseHistogram>,
    /// The largest depth that met the latency target, if one was searched for and found.
    #[serde(default)]
    pub depth_found: Option<u32>,
    /// Operations that completed after the window had closed: not in any rate; in the latencies if they had begun in the window.
    pub drained_operations: u64,
    /// How long after the close of the window the last of them completed, or what hangs was waited for, nanoseconds.
    #[serde(default)]
    pub drain_ns: u64,
    /// Operations that it began in the window and that had not completed when strata stopped waiting.
    #[serde(default)]
    pub unfinished_operations: u64,
    /// An open loop: how late operations left because of strata (a slot was free, and no call of the driver lasted), over the window.
    #[serde(default)]
    pub lateness: Option<SparseHistogram>,
    /// CPU time of the worker's thread in user mode, nanoseconds.
    pub cpu_user_ns: u64,
    /// CPU time of the worker's thread in the kernel, nanoseconds.
    pub cpu_system_ns: u64,
    /// Time between completions seen and the next submission, nanoseconds: generating, filling, verifying, recording.
    pub tool_ns: u64,
    /// Part of `tool_ns` that filled buffers.
    pub fill_ns: u64,
    /// Part of `tool_ns` that verified what was read.
    pub verify_ns: u64,
    /// Why the worker ended early; its results up to then are here.
    pub failure: Option<String>,
}

impl WorkerSamples {
    /// Operations of all classes.
    pub fn operations(&self) -> u64 {
        self.classes.iter().map(|class| class.operations).sum()
    }

    /// Payload bytes of all classes.
    pub fn bytes(&self) -> u64 {
        self.classes.iter().map(|class| class.bytes).sum()
    }
}

/// Everything measured in one phase.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PhaseSamples {
    /// Names of the classes, in the order in which workers and series list them.
    pub classes: Vec<String>,
    /// Length of the phase as planned, nanoseconds; none when it ends by count or bytes.
    pub window_ns: Option<u64>,
    /// Start of the phase on the clock of the run, nanoseconds; every other time here counts from it.
    pub started_ns: u64,
    /// Length of the measured window as it was, nanoseconds: until the last worker was done.
    pub elapsed_ns: u64,
    /// One entry a worker.
    pub workers: Vec<WorkerSamples>,
    /// All workers together, by interval.
    pub series: Series,
    /// Why the phase ended before it was done.
    pub interrupted: Option<String>,
    /// CPU time of the whole process in user mode within the phase, nanoseconds. Where other phases ran at the same time it cannot be
    /// told apart: then that of this phase's workers.
    pub process_cpu_user_ns: u64,
    /// CPU time of the whole process in the kernel within the phase, nanoseconds; with other phases at the same time, that of this
    /// phase's workers.
    pub process_cpu_system_ns: u64,
}

impl PhaseSamples {
    /// Operations and bytes of the class with this number, or of all together, that were completed by `at_ns`.
    ///
    /// Whole intervals are counted. Within the one that holds `at_ns`, which may be the whole of a short run, workers are taken
    /// to have completed evenly between their own beginning and end: what one that was done by then did is all in it.
    #[must_use]
    pub fn done_by(&self, class: Option<usize>, at_ns: u64) -> (f64, f64) {
        let is_meant = |at: usize| class.is_none_or(|class| class == at);
        self.series.points.iter().fold((0.0, 0.0), |(operations, bytes), point| {
            let meant = || point.classes.iter().enumerate().filter(|(at, _)| is_meant(*at));
            let share = self.share_done(point, &is_meant, at_ns);
            let done: u64 = meant().map(|(_, class)| class.operations).sum();
            let moved: u64 = meant().map(|(_, class)| class.bytes).sum();
            (operations + share * done as f64, bytes + share * moved as f64)
        })
    }

    /// The share of an interval's operations that was completed by `at_ns`.
    fn share_done(&self, point: &IntervalPoint, is_meant: &impl Fn(usize) -> bool, at_ns: u64) -> f64 {
        if at_ns <= point.start_ns || at_ns >= point.end_ns {
            return if at_ns <= point.start_ns { 0.0 } else { 1.0 };
        }
        let until = |ns: u64| -> f64 {
            let done = self.workers.iter().map(|worker| {
                let classes = worker.classes.iter().enumerate().filter(|(at, _)| is_meant(*at));
                let operations: u64 = classes.map(|(_, class)| class.operations).sum();
                let length = worker.finished_ns.saturating_sub(worker.started_ns).max(1) as f64;
                let share = (ns.saturating_sub(worker.started_ns) as f64 / length).min(1.0);
                share * operations as f64
            });
            done.sum()
        };
        let (before, whole) = (until(point.start_ns), until(point.end_ns));
        if whole > before {
            return (until(at_ns) - before) / (whole - before);
        }
        (at_ns - point.start_ns) as f64 / (point.end_ns - point.start_ns) as f64
    }
}
