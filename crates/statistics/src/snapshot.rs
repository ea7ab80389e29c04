//! State of a running phase at one moment: live views render it.

use serde::{Deserialize, Serialize};

use crate::histogram::SparseHistogram;
use crate::hosts::HostSnapshot;
use crate::sample::PhaseSamples;

/// One worker at one moment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
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

/// Operations that a phase waits for after the end of its window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Waiting {
    /// Operations in flight.
    pub operations: u64,
    /// Since how long, in nanoseconds.
    pub waited_ns: u64,
    /// How long at most, in nanoseconds.
    pub grace_ns: u64,
}

impl Waiting {
    /// Joins the waiting of several phases, or hosts.
    #[must_use]
    pub fn join(one: Option<Self>, other: Option<Self>) -> Option<Self> {
        let (Some(one), Some(other)) = (one, other) else { return one.or(other) };
        Some(Self {
            operations: one.operations + other.operations,
            waited_ns: one.waited_ns.max(other.waited_ns),
            grace_ns: one.grace_ns.max(other.grace_ns),
        })
    }
}

/// A running phase at one moment. Made by the coordinating thread from what workers hand over once an interval.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Snapshot {
    /// Name of the phase.
    pub phase: String,
    /// Number of the phase, from 1.
    pub phase_number: usize,
    /// Phases of the run; 0 when not known beforehand.
    pub phase_count: usize,
    /// Time until the run ends, as far as known, in nanoseconds.
    pub run_left_ns: Option<u64>,
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
    /// Latencies of the latest interval, all classes: what snapshots of several hosts are joined by without loss.
    #[serde(default, skip_serializing_if = "SparseHistogram::is_empty")]
    pub latency: SparseHistogram,
    /// Operations so far.
    pub operations: u64,
    /// Bytes so far.
    pub bytes: u64,
    /// Failed operations so far.
    pub errors: u64,
    /// Processors that this process kept busy in the latest interval; the sum over the hosts that drive where there are several.
    pub cpus_used: f64,
    /// Operations that it waits for, once its window is over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting: Option<Waiting>,
    /// One entry a worker.
    pub workers: Vec<WorkerSnapshot>,
    /// One entry a host, servers first; empty where one process measures by itself.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<HostSnapshot>,
}

/// Events of a run, for a live view.
pub enum Event<'a> {
    /// Files are laid out, caches warmed: what and how far (0 to 1).
    Preparing(&'a str, f64),
    /// A phase is running.
    Running(&'a Snapshot),
    /// A phase is over.
    Finished(&'a str, &'a PhaseSamples),
}
