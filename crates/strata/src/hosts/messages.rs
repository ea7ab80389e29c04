//! Messages of leader and hosts, as JSON.

use driver::{Capabilities, Error, ErrorKind};
use layer::Phase;
use report::record::Observations;
use runner::{ArrivalTally, Outcome};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use statistics::SteadyEnding;
use workload::plan::PhasePlan;
use workload::spec::Spec;

use crate::planning::Planned;

/// A phase that a host has planned.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct PlannedPhase {
    pub(super) plan: PhasePlan,
    depth_max: u32,
    pub(super) stage: usize,
    pub(super) request: usize,
    is_read_back: bool,
    pub(super) fills: bool,
}

impl PlannedPhase {
    pub(super) fn of(planned: &Planned) -> Self {
        let Phase { plan, depth_max, is_read_back, fills, .. } = &planned.phase;
        Self {
            plan: plan.clone(),
            depth_max: *depth_max,
            stage: planned.stage,
            request: planned.request,
            is_read_back: *is_read_back,
            fills: *fills,
        }
    }

    /// Whether it stores what others need (0), is what was asked for (1), or reads back what was written (2).
    pub(super) fn kind(&self) -> u8 {
        if self.plan.is_fill() { 0 } else { 1 + u8::from(self.is_read_back) }
    }

    /// The phase as the leader runs it, with its number in the programme.
    pub(super) fn planned(self, number: usize) -> Planned {
        let Self { plan, depth_max, stage, request, is_read_back, fills } = self;
        // How deep its driver goes was asked where it was planned.
        let phase = Phase::new(plan, &Capabilities::plain(&[], 1));
        Planned { phase: Phase { depth_max, is_read_back, fills, ..phase }, stage, request, number }
    }
}

/// A stage that is to be carried out.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct StageAsked {
    /// Its number among those that ran.
    pub(super) number: usize,
    pub(super) steps: Vec<StepAsked>,
    /// Phases of the programme that did all that was asked of them, in their order: a host knows of those that it took part in by itself.
    pub(super) done: Vec<usize>,
}

/// A phase of a stage: one of the programme, as a climb has it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct StepAsked {
    /// Its number in the programme.
    pub(super) phase: usize,
    name: String,
    threads: u32,
    depth: u32,
    time_ns: Option<u64>,
}

impl StepAsked {
    pub(super) fn of(planned: &Planned) -> Self {
        let load = planned.plan.load();
        Self {
            phase: planned.number,
            name: planned.plan.name().clone(),
            threads: load.threads,
            depth: load.depth,
            time_ns: load.limit.time_ns,
        }
    }

    /// Makes a phase of the programme the one that is asked for.
    pub(super) fn settle(&self, planned: &mut Planned, spec: Option<&Spec>) {
        let plan = &mut planned.phase.plan;
        if let Some(spec) = spec.filter(|_| plan.load().depth != self.depth) {
            plan.set_depth(self.depth, spec);
        }
        plan.name_mut().clone_from(&self.name);
        let load = plan.load_mut();
        // Of hosts of different sizes each has its own number.
        if !load.is_uneven() {
            load.threads = self.threads;
        }
        load.limit.time_ns = self.time_ns;
    }
}

/// Everything about a phase on one host besides its samples.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct PhaseDetails {
    pub(super) notes: Vec<String>,
    pub(super) failure: Option<String>,
    /// Arrivals of an open loop: started and never started.
    pub(super) arrivals: Option<(u64, u64)>,
    pub(super) steady_ending: Option<SteadyEnding>,
    pub(super) coordinator_cpu_ns: u64,
    pub(super) observations: Observations,
    /// From the common start to that of the samples, in nanoseconds.
    pub(super) started_after_ns: i64,
    /// From the common start to the first operation, in nanoseconds; none where none was begun.
    pub(super) lateness_ns: Option<i64>,
}

impl PhaseDetails {
    /// Of an outcome; the common start was at `scheduled_ns` by this process's clock.
    pub(super) fn of(outcome: &Outcome, observations: Observations, scheduled_ns: u64) -> Self {
        let after = |ns: u64| i64::try_from(i128::from(ns) - i128::from(scheduled_ns)).unwrap_or(i64::MAX);
        let samples = &outcome.samples;
        let has_begun = |worker: &&statistics::WorkerSamples| worker.first_completion_ns.is_some();
        let first_ns = samples.workers.iter().filter(has_begun).map(|worker| worker.started_ns).min();
        Self {
            notes: outcome.notes.clone(),
            failure: outcome.failure.clone(),
            arrivals: outcome.arrivals.map(|ArrivalTally { started, unserved }| (started, unserved)),
            steady_ending: outcome.steady_ending.clone(),
            coordinator_cpu_ns: outcome.coordinator_cpu_ns,
            observations,
            started_after_ns: after(samples.started_ns),
            lateness_ns: first_ns.map(|first_ns| after(samples.started_ns.saturating_add(first_ns))),
        }
    }
}

/// Reads JSON of the other side.
pub(super) fn read<T: DeserializeOwned>(value: Value) -> Result<T, Error> {
    serde_json::from_value(value).map_err(|error| {
        Error::new(ErrorKind::Run, "session", format!("cannot read the message of the other side: {error}"))
            .remedy("use the same version of strata on all hosts")
    })
}

/// Makes JSON of what is sent.
pub(super) fn written(value: impl Serialize) -> Result<Value, Error> {
    serde_json::to_value(value).map_err(|error| {
        Error::new(ErrorKind::Run, "session", format!("the message cannot be written as JSON: {error}"))
    })
}
