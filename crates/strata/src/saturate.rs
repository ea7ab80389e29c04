//! The stages of a run; ladders and saturation: several phases of one load, and the knee over them.

use driver::Error;
use report::record::{LadderRecord, PhaseRecord};
use statistics::{KneeOptions, LadderPoint, find_knee, refine_knee};
use workload::spec::{LadderDimension, Spec};

use crate::planning::{Planned, Programme};
use crate::session::Session;
use crate::sides::Sides;

/// Growth of the rate below which a step is taken for none: below it lies the noise of a short phase.
const GROWTH_MIN: f64 = 1.05;
/// Steps without growth after which the climb ends: one may be bad luck.
const FLAT_STEPS_MAX: u32 = 2;
/// Length of one step when the user names none.
const STEP_NS: u64 = 2_000_000_000;
/// Most rungs between two of the doubling, in each dimension.
const REFINED_MAX: u32 = 4;
/// Highest depth that is climbed to.
const DEPTH_MAX: u32 = 1024;

/// Runs all phases of the programme and finds the knee of its ladder.
pub(crate) fn run(session: &mut Session, programme: &Programme) -> Result<(), Error> {
    if let Some(spec) = &programme.saturate {
        // What the climb needs is stored before its steps, as far as they need it.
        return programme.phases.last().map_or(Ok(()), |first| saturate(session, first, spec));
    }
    session.phase_count = programme.phases.len();
    let (mut climbed, mut sides) = (Vec::new(), Sides::default());
    for stage in programme.phases.chunk_by(|one, next| one.stage == next.stage) {
        if sides.has_lost(stage) {
            continue;
        }
        let ran = match session.run_stage(stage) {
            Ok(ran) => ran,
            Err(error) => {
                sides.note_refused(session, stage, error)?;
                continue;
            }
        };
        sides.note(session, stage, &ran);
        // What was only stored for others is no rung.
        let is_rung = |at: &usize| !session.record.phases[*at].plan.is_fill();
        climbed.extend(ran.iter().copied().filter(is_rung));
        if let Some(dimension) = programme.ladder {
            note_ladder(session, Some(dimension), climbed.clone(), Vec::new());
        }
        if ran.into_iter().any(|at| ends_run(session, at)) {
            break;
        }
    }
    sides.result()
}

/// Whether nothing more shall be run after the phase `at`.
pub(crate) fn ends_run(session: &Session, at: usize) -> bool {
    session.ends_after(at)
}

fn note_ladder(
    session: &mut Session,
    dimension: Option<LadderDimension>,
    phases: Vec<usize>,
    refined: Vec<usize>,
) {
    let is_concurrency = matches!(dimension, None | Some(LadderDimension::Depth | LadderDimension::Threads));
    let points = points(session, &phases);
    let knee = if is_concurrency { find_knee(&points, &KneeOptions::default()) } else { None };
    session.record.ladder = Some(LadderRecord { dimension, phases, refined, knee });
}

fn points(session: &Session, phases: &[usize]) -> Vec<LadderPoint> {
    phases.iter().map(|&at| point(&session.record.phases[at])).collect()
}

fn point(phase: &PhaseRecord) -> LadderPoint {
    let total = &phase.summary.total;
    let latency = total.latency.as_ref();
    LadderPoint {
        concurrency: phase.plan.in_flight(),
        operations_per_second: total.operations_per_second,
        latency_ns_mean: latency.map_or(0.0, |latency| latency.mean_ns),
        latency_ns_p50: latency.map_or(0, |latency| latency.p50_ns),
        latency_ns_p99: latency.and_then(|latency| latency.p99_ns),
    }
}

/// Dimension that a climb raises.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Raised {
    Depth,
    Threads,
}

/// Climbs depth until the rate no longer grows, then threads.
fn saturate(session: &mut Session, first: &Planned, spec: &Spec) -> Result<(), Error> {
    let depth_max = first.depth_max.min(DEPTH_MAX);
    let cores = host::topology::current_affinity().map_or(1, |cores| cores.len() as u32);
    let mut step = first.clone();
    if step.plan.load().limit.time_ns.is_none() {
        step.phase.plan.load_mut().limit.time_ns = Some(STEP_NS);
    }
    let mut climb =
        Climb { spec, climbed: Vec::new(), refined: Vec::new(), best_rate: 0.0, best: step.clone() };
    let is_on = climb.along(session, &step, Raised::Depth, first.plan.load().depth, depth_max)?
        && climb.refine(session, &step, Raised::Depth, &[])?;
    if !is_on {
        return Ok(());
    }
    let (best, best_at) = (climb.best.clone(), climb.best_at(session));
    let threads = first.plan.load().threads.saturating_mul(2);
    let threads_max = cores.saturating_mul(4).max(threads);
    if climb.along(session, &best, Raised::Threads, threads, threads_max)? {
        climb.refine(session, &best, Raised::Threads, &best_at)?;
    }
    Ok(())
}

/// A climb under way.
struct Climb<'a> {
    spec: &'a Spec,
    climbed: Vec<usize>,
    /// Those of them that lie between two rungs of the doubling.
    refined: Vec<usize>,
    best_rate: f64,
    best: Planned,
}

impl Climb<'_> {
    /// Stores what a step needs and no phase before it has stored; whether the climb goes on.
    fn fill(&mut self, session: &mut Session, step: &Planned) -> Result<bool, Error> {
        for fill in session.fills(step)? {
            let at = session.run_phase(&fill)?;
            if ends_run(session, at) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The rung of the best rate, where it is one of the climb.
    fn best_at(&self, session: &Session) -> Vec<usize> {
        let load = self.best.plan.load();
        let is_best = |at: &&usize| {
            let other = session.record.phases[**at].plan.load();
            (other.threads, other.depth) == (load.threads, load.depth)
        };
        self.climbed.iter().filter(is_best).copied().collect()
    }

    /// Measures `base` with so many threads or such a depth; whether the climb goes on.
    fn measure(
        &mut self,
        session: &mut Session,
        base: &Planned,
        raised: Raised,
        value: u32,
    ) -> Result<bool, Error> {
        let mut step = base.clone();
        match raised {
            Raised::Depth => step.phase.plan.set_depth(value, self.spec),
            Raised::Threads => step.phase.plan.load_mut().threads = value,
        }
        let load = step.plan.load();
        let shape = format!("{} {}x{}", base.plan.operation_name(), load.threads, load.depth);
        *step.phase.plan.name_mut() = shape;
        if !self.fill(session, &step)? {
            return Ok(false);
        }
        let at = session.run_phase(&step)?;
        self.climbed.push(at);
        let mut rungs = self.climbed.clone();
        rungs.sort_by_key(|&at| {
            let load = session.record.phases[at].plan.load();
            (load.threads, load.depth)
        });
        note_ladder(session, None, rungs, self.refined.clone());
        Ok(!ends_run(session, at))
    }

    /// Doubles one dimension from `from` to `to` until the rate is flat; whether the climb goes on.
    fn along(
        &mut self,
        session: &mut Session,
        base: &Planned,
        raised: Raised,
        from: u32,
        to: u32,
    ) -> Result<bool, Error> {
        let mut flat_steps = 0;
        let mut value = from;
        while value <= to && flat_steps < FLAT_STEPS_MAX {
            if !self.measure(session, base, raised, value)? {
                return Ok(false);
            }
            let last = session.record.phases.len() - 1;
            let rate = session.record.phases[last].summary.total.operations_per_second;
            flat_steps = if rate > self.best_rate * GROWTH_MIN { 0 } else { flat_steps + 1 };
            if rate > self.best_rate * GROWTH_MIN {
                self.best_rate = rate;
                self.best = base.clone();
                self.best.phase.plan = session.record.phases[last].plan.clone();
            }
            value = value.saturating_mul(2);
        }
        Ok(true)
    }

    /// Measures between the knee and the rung below it until it is known well; whether the climb goes on. `below` are rungs that the climb
    /// of this dimension began above.
    fn refine(
        &mut self,
        session: &mut Session,
        base: &Planned,
        raised: Raised,
        below: &[usize],
    ) -> Result<bool, Error> {
        let load = base.plan.load().clone();
        let masters = base.plan.masters().max(1) as f64;
        let unit = masters
            * match raised {
                Raised::Depth => f64::from(load.threads),
                Raised::Threads => f64::from(load.depth),
            };
        for _ in 0..REFINED_MAX {
            let is_along = |at: &usize| {
                let other = session.record.phases[*at].plan.load();
                below.contains(at)
                    || match raised {
                        Raised::Depth => other.threads == load.threads,
                        Raised::Threads => other.depth == load.depth && other.threads > load.threads,
                    }
            };
            let rungs: Vec<usize> = self.climbed.iter().copied().filter(is_along).collect();
            let next = refine_knee(&points(session, &rungs), &KneeOptions::default(), unit);
            let Some(value) = next else { break };
            self.refined.push(session.record.phases.len());
            if !self.measure(session, base, raised, value)? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}
