//! What a running phase looks like at one moment: what live views render.

use crate::sample::PhaseSamples;

/// One worker at one moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WorkerSnapshot {
    /// Operations so far.
    pub operations: u64,
    /// Bytes so far.
    pub bytes: u64,
    /// Operations a second in the latest interval.
    pub operations_per_second: f64,
    /// Bytes a second in the latest interval.
    pub bytes_per_second: f64,
    /// Failed operations so far.
    pub errors: u64,
    /// Whether it is still at work.
    pub running: bool,
}

/// A running phase at one moment. Made by the coordinating thread from what workers hand over once an interval.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Snapshot {
    /// Name of the phase.
    pub phase: String,
    /// Number of the phase, from 1.
    pub phase_number: usize,
    /// Phases of the run; 0 when not known beforehand.
    pub phase_count: usize,
    /// Time since the phase began, in nanoseconds.
    pub elapsed_ns: u64,
    /// Share done, 0 to 1; none when it cannot be told.
    pub done_fraction: Option<f64>,
    /// Names of the classes in use, such as `read`.
    pub classes: Vec<String>,
    /// Operations a second in the latest interval, by class.
    pub operations_per_second: Vec<f64>,
    /// Bytes a second in the latest interval, by class.
    pub bytes_per_second: Vec<f64>,
    /// Median latency of the latest interval, all classes, in nanoseconds.
    pub p50_ns: Option<u64>,
    /// 99th percentile of the latest interval, all classes, in nanoseconds.
    pub p99_ns: Option<u64>,
    /// Operations so far.
    pub operations: u64,
    /// Bytes so far.
    pub bytes: u64,
    /// Failed operations so far.
    pub errors: u64,
    /// Processors that this process kept busy in the latest interval.
    pub cpus_used: f64,
    /// One entry a worker.
    pub workers: Vec<WorkerSnapshot>,
}

/// What a run tells a live view.
pub enum Event<'a> {
    /// Files are laid out, caches warmed: what and how far (0 to 1).
    Preparing(&'a str, f64),
    /// A phase is running.
    Running(&'a Snapshot),
    /// A phase is over.
    Finished(&'a str, &'a PhaseSamples),
}
