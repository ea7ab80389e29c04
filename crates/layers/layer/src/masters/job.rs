//! Loads that this process drives for another one.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use driver::{Capabilities, Error, HostClock};
use fleet::{OutcomeMessage, PlanMessage, Prepared, ProgressReport, StartGate};
use serde::{Deserialize, Serialize};
use workload::plan::{PhasePlan, buffer_bytes_max};

use crate::observations::{LinkActivity, Observations};
use crate::{AcceptLimits, Control, Phase, RunContext, StageContext, find};

/// Parts of one job at most: phases of a stage, and masters that one process is in each.
const PARTS_MAX: usize = 1000;
/// Workers of one job at most, as for one phase.
const THREADS_MAX: u64 = 4096;

/// Job of one process in a stage.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MasterJob {
    /// One entry for each phase of the stage and each master that this process is in it.
    pub parts: Vec<MasterPart>,
}

/// A phase as one master drives it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MasterPart {
    /// The phase.
    pub plan: PhasePlan,
    /// Which of its masters this is.
    pub master: usize,
}

/// How a part ended, besides its samples.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct PartEnd {
    /// Notes of the drivers.
    pub(super) notes: Vec<String>,
    /// Why it failed or ended early.
    pub(super) failure: Option<String>,
    /// Arrivals of an open loop: started and never started.
    pub(super) arrivals: Option<(u64, u64)>,
    /// Counters of the interfaces that it sent through.
    #[serde(default)]
    pub(super) links: Vec<LinkActivity>,
}

impl MasterJob {
    /// Checks what a coordinator sent, before any of it is carried out: by the limits of a plan that is made here, for all parts
    /// together.
    ///
    /// # Errors
    /// A part that cannot be carried out, with what is accepted.
    pub fn check(&self, limits: &AcceptLimits) -> Result<(), Error> {
        let refused = |message: String| Err(Error::usage("plan", message));
        if self.parts.is_empty() || self.parts.len() > PARTS_MAX {
            return refused(format!("{} parts: use 1 to {PARTS_MAX}", self.parts.len()));
        }
        let (mut threads, mut buffer_bytes) = (0_u64, 0_u64);
        for MasterPart { plan, .. } in &self.parts {
            let bytes = find(plan.layer())?.accept(plan, limits)?;
            buffer_bytes = buffer_bytes.saturating_add(bytes);
            threads += u64::from(plan.load().threads);
        }
        let accepted_bytes = buffer_bytes_max(limits.memory_bytes);
        if threads > THREADS_MAX || buffer_bytes > accepted_bytes {
            return refused(format!(
                "{threads} workers with {buffer_bytes} bytes of buffers: use at most {THREADS_MAX} workers and {accepted_bytes} bytes"
            ));
        }
        Ok(())
    }
}

impl MasterPart {
    /// Puts the workers where the master's service thread is, unless the plan says where they are.
    ///
    /// # Errors
    /// A master that the plan does not have; processors that this machine does not have.
    fn take_place(&mut self, cores: &[u32]) -> Result<(), Error> {
        let masters = self.plan.master_plans();
        let tag = masters
            .get(self.master)
            .ok_or_else(|| Error::usage("plan", format!("the plan has no master {}", self.master)))?
            .tag;
        let load = self.plan.load_mut();
        let is_free = load.cores.is_empty() && load.numa.is_empty();
        if let Some(tag) = tag.filter(|_| is_free && !cores.is_empty()) {
            load.cores = vec![cores[tag as usize % cores.len()]];
        }
        runner::check_placement(load)
    }
}

/// Surroundings of the loads that this process drives for others.
#[derive(Clone)]
pub struct MasterSettings {
    /// Surroundings of its layers.
    pub context: RunContext,
    /// Its secrets.
    pub control: Control,
    /// Processors of its service threads, in the order of tags.
    pub cores: Vec<u32>,
}

/// A job of a message, ready to begin.
///
/// # Errors
/// A plan that cannot be carried out here.
pub fn prepare(message: &PlanMessage, settings: &MasterSettings) -> Result<Box<dyn Prepared>, Error> {
    find(&message.layer).map_err(|_| {
        Error::usage("plan", format!("this engine does not generate loads of layer {:?}", message.layer))
            .remedy(format!("send it a load of layer {}", names().join(" or ")))
    })?;
    let mut job: MasterJob = message.decode()?;
    let limits = AcceptLimits {
        memory_bytes: host::memory::memory().total_bytes,
        has_secret: settings.control.secret.is_some(),
    };
    job.check(&limits)?;
    if job.parts.iter().any(|part| part.plan.layer() != message.layer) {
        return Err(Error::usage("plan", "all phases that one process drives must be of one layer"));
    }
    for part in &mut job.parts {
        part.take_place(&settings.cores)?;
    }
    let phase = |MasterPart { plan, master }| {
        // How deep its driver goes was asked when it was planned.
        let phase = Phase::new(plan, &Capabilities::plain(&[], 1));
        (Phase { control: settings.control.clone(), ..phase }, master)
    };
    let phases = job.parts.into_iter().map(phase).collect();
    Ok(Box::new(PreparedJob { layer: message.layer.clone(), phases, context: settings.context.clone() }))
}

fn names() -> Vec<&'static str> {
    crate::all().iter().map(|layer| layer.definition().name).collect()
}

/// A job that can begin.
struct PreparedJob {
    layer: String,
    phases: Vec<(Phase, usize)>,
    context: RunContext,
}

impl Prepared for PreparedJob {
    fn run(
        self: Box<Self>,
        gate: StartGate,
        observe: &mut dyn FnMut(ProgressReport),
        stop: Arc<AtomicBool>,
    ) -> Result<OutcomeMessage, Error> {
        let Self { layer, phases, context } = *self;
        let mut run = find(&layer)?.begin(&context);
        let stage = StageContext { number: 0, interrupt: stop, progress: &|_, _| {}, tell: context.tell };
        let mut part =
            run.master_part(phases.iter().map(|(phase, master)| (phase, *master)).collect(), &stage)?;
        let jobs = part.jobs();
        part.begin()?;
        let mut gate = Some(gate);
        let mut ready = || match gate.take() {
            // The start lies in the past once the wait is over.
            Some(gate) => gate.wait(Vec::new()).map(|_: Instant| None),
            None => Ok(None),
        };
        let outcomes = runner::run_coordinated(jobs, HostClock::get(), &mut ready, &mut |snapshot| {
            observe(ProgressReport::Running(snapshot.clone()));
        });
        part.stop();
        let mut message = OutcomeMessage::default();
        let mut ends = Vec::new();
        for (outcome, observations) in part.end(outcomes?, &Observations::default()) {
            message.failure = message.failure.or_else(|| outcome.failure.clone());
            ends.push(PartEnd {
                notes: outcome.notes,
                failure: outcome.failure,
                arrivals: outcome.arrivals.map(|tally| (tally.started, tally.unserved)),
                links: observations.links,
            });
            message.samples.push(outcome.samples);
        }
        message.details = serde_json::to_value(ends).unwrap_or_default();
        Ok(message)
    }
}
