//! The stages of a run; ladders and saturation: several phases of one load, and the knee over them.

use driver::Error;
use report::record::{LadderRecord, PhaseRecord};
use statistics::{KneeOptions, LadderPoint, find_knee};
use workload::plan::PhasePlan;
use workload::spec::LadderDimension;

use crate::planning::{Planned, Programme};
use crate::session::Session;
use crate::{net, objects};

/// Growth of the rate below which a step is taken for none: below it lies the noise of a short phase.
const GROWTH_MIN: f64 = 1.05;
/// Steps without growth after which the climb ends: one may be bad luck.
const FLAT_STEPS_MAX: u32 = 2;
/// Length of one step when the user names none.
const STEP_NS: u64 = 2_000_000_000;
/// Highest depth that is climbed to.
const DEPTH_MAX: u32 = 1024;

/// Runs all phases of the programme and finds the knee of its ladder.
pub(crate) fn run(session: &mut Session, programme: &Programme) -> Result<(), Error> {
    if programme.saturate {
        // What the climb needs is stored before its steps, as far as they need it.
        return programme.phases.last().map_or(Ok(()), |first| saturate(session, first));
    }
    session.phase_count = programme.phases.len();
    let mut climbed = Vec::new();
    for stage in programme.phases.chunk_by(|one, next| one.stage == next.stage) {
        let ran = session.run_stage(stage)?;
        // What was only stored for others is no rung.
        let is_rung = |at: &usize| session.record.phases[*at].plan.object().is_none_or(|plan| !plan.is_fill);
        climbed.extend(ran.iter().copied().filter(is_rung));
        if let Some(dimension) = programme.ladder {
            note_ladder(session, Some(dimension), &climbed);
        }
        if ran.into_iter().any(|at| ends_run(session, at)) {
            break;
        }
    }
    Ok(())
}

/// Whether nothing more shall be run after the phase `at`.
pub(crate) fn ends_run(session: &Session, at: usize) -> bool {
    session.is_interrupted() || session.record.phases[at].failure.is_some()
}

fn note_ladder(session: &mut Session, dimension: Option<LadderDimension>, climbed: &[usize]) {
    let is_concurrency = matches!(dimension, None | Some(LadderDimension::Depth | LadderDimension::Threads));
    let points: Vec<_> = climbed.iter().map(|&at| point(&session.record.phases[at])).collect();
    let knee = if is_concurrency { find_knee(&points, &KneeOptions::default()) } else { None };
    session.record.ladder = Some(LadderRecord { dimension, phases: climbed.to_vec(), knee });
}

fn point(phase: &PhaseRecord) -> LadderPoint {
    let total = &phase.summary.total;
    let latency = total.latency.as_ref();
    let masters = phase.plan.network().map_or(1, |plan| plan.masters.len().max(1));
    LadderPoint {
        concurrency: masters as f64
            * f64::from(phase.plan.load().threads)
            * f64::from(phase.plan.load().depth),
        operations_per_second: total.operations_per_second,
        latency_ns_mean: latency.map_or(0.0, |latency| latency.mean_ns),
        latency_ns_p50: latency.map_or(0, |latency| latency.p50_ns),
        latency_ns_p99: latency.and_then(|latency| latency.p99_ns),
    }
}

/// Climbs depth until the rate no longer grows, then threads.
fn saturate(session: &mut Session, first: &Planned) -> Result<(), Error> {
    let capabilities = match &first.plan {
        PhasePlan::Media(plan) => driver::find(media::DRIVERS, &plan.engine)?.capabilities,
        PhasePlan::Network(plan) => net::driver_of(&plan.engine)?.capabilities,
        PhasePlan::Object(plan) => object::backend::driver_of(&plan.target)?.capabilities,
    };
    let depth_max = if capabilities.asynchronous { capabilities.depth_max.min(DEPTH_MAX) } else { 1 };
    let cores = host::topology::current_affinity().map_or(1, |cores| cores.len() as u32);
    let mut step = first.clone();
    if step.plan.load().limit.time_ns.is_none() {
        step.plan.load_mut().limit.time_ns = Some(STEP_NS);
    }
    let mut climb = Climb { climbed: Vec::new(), best_rate: 0.0, best: step.clone() };
    climb.along(session, &step, PhasePlan::set_depth, first.plan.load().depth, depth_max)?;
    let best = climb.best.clone();
    if session.is_interrupted() || climb.has_failed(session) {
        return Ok(());
    }
    let threads = first.plan.load().threads.saturating_mul(2);
    climb.along(
        session,
        &best,
        |plan, threads| plan.load_mut().threads = threads,
        threads,
        cores.saturating_mul(4).max(threads),
    )
}

/// A climb under way.
struct Climb {
    climbed: Vec<usize>,
    best_rate: f64,
    best: Planned,
}

impl Climb {
    fn has_failed(&self, session: &Session) -> bool {
        self.climbed.last().is_some_and(|&at| session.record.phases[at].failure.is_some())
    }

    /// Stores what a step needs and no phase before it has stored; whether the climb goes on.
    fn fill(&mut self, session: &mut Session, step: &Planned) -> Result<bool, Error> {
        if !step.fills {
            return Ok(true);
        }
        let earlier: Vec<_> =
            session.record.phases.iter().filter_map(|phase| phase.plan.object().cloned()).collect();
        for fill in objects::plan::fills(step, &earlier) {
            let at = session.run_phase(&fill)?;
            if ends_run(session, at) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Doubles one dimension from `from` to `to` until the rate is flat.
    fn along(
        &mut self,
        session: &mut Session,
        base: &Planned,
        set: fn(&mut PhasePlan, u32),
        from: u32,
        to: u32,
    ) -> Result<(), Error> {
        let mut flat_steps = 0;
        let mut value = from;
        while value <= to && flat_steps < FLAT_STEPS_MAX {
            let mut step = base.clone();
            set(&mut step.plan, value);
            let load = step.plan.load();
            let shape = format!("{} {}x{}", base.plan.operation_name(), load.threads, load.depth);
            *step.plan.name_mut() = shape;
            if !self.fill(session, &step)? {
                return Ok(());
            }
            let at = session.run_phase(&step)?;
            self.climbed.push(at);
            note_ladder(session, None, &self.climbed);
            if ends_run(session, at) {
                return Ok(());
            }
            let rate = session.record.phases[at].summary.total.operations_per_second;
            flat_steps = if rate > self.best_rate * GROWTH_MIN { 0 } else { flat_steps + 1 };
            if rate > self.best_rate * GROWTH_MIN {
                (self.best_rate, self.best) = (rate, step);
            }
            value = value.saturating_mul(2);
        }
        Ok(())
    }
}
