//! The stages of a run; ladders and saturation: several phases of one load, and the knee over them.

use driver::Error;
use report::record::{LadderRecord, PhaseRecord};
use statistics::{KneeOptions, LadderPoint, find_knee, refine_knee};
use workload::plan::{ArrivalPlan, LimitPlan};
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
        let request = stage.first().map_or(0, |planned| planned.request);
        if ran.into_iter().any(|at| ends_run(session, at)) || !follow(session, request)? {
            break;
        }
    }
    sides.result()
}

/// Runs what follows from the phases so far, for as long as something does; whether the run goes on.
fn follow(session: &mut Session, request: usize) -> Result<bool, Error> {
    loop {
        let phases = session.following()?;
        if phases.is_empty() {
            return Ok(true);
        }
        session.phase_count += phases.len();
        for phase in phases {
            let at = session.run_phase(&Planned { request, ..Planned::of(phase) })?;
            if ends_run(session, at) {
                return Ok(false);
            }
        }
    }
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

/// Climbs depth until the rate no longer grows, then threads; then measures the open loop at a share of the highest rate, where one is
/// asked for.
fn saturate(session: &mut Session, first: &Planned, spec: &Spec) -> Result<(), Error> {
    let mut step = first.clone();
    let limit = &mut step.phase.plan.load_mut().limit;
    if spec.rate_percent.is_some() {
        // The limit that was given is that of the open loop, and no step is longer than it.
        let time_ns = limit.time_ns.map_or(STEP_NS, |time_ns| time_ns.min(STEP_NS));
        *limit = LimitPlan { time_ns: Some(time_ns), operations: None, bytes: None };
    } else if limit.time_ns.is_none() {
        limit.time_ns = Some(STEP_NS);
    }
    let mut climb =
        Climb { spec, climbed: Vec::new(), refined: Vec::new(), best_rate: 0.0, best: step.clone() };
    match spec.rate_percent {
        Some(percent) if climb.whole(session, &step)? => climb.open_loop(session, first, percent),
        Some(_) => Ok(()),
        None => climb.whole(session, &step).map(drop),
    }
}

/// The next rung between others, of the phases climbed so far: its threads or depth, and the step that it is made of.
type NextRung<'a> = dyn Fn(&Session, &[usize]) -> Option<(u32, Planned)> + 'a;

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
    /// Climbs from this step, first the depth and then the threads; whether the run goes on.
    fn whole(&mut self, session: &mut Session, step: &Planned) -> Result<bool, Error> {
        let depth_max = step.depth_max.min(DEPTH_MAX);
        let cores = host::topology::current_affinity().map_or(1, |cores| cores.len() as u32);
        let is_on = self.along(session, step, Raised::Depth, step.plan.load().depth, depth_max)?
            && self.refine(session, step, Raised::Depth, &[])?;
        if !is_on {
            return Ok(false);
        }
        let (best, best_at) = (self.best.clone(), self.best_at(session));
        let threads = step.plan.load().threads.saturating_mul(2);
        let threads_max = cores.saturating_mul(4).max(threads);
        Ok(self.along(session, &best, Raised::Threads, threads, threads_max)?
            && self.refine(session, &best, Raised::Threads, &best_at)?
            && self.refine_last(session, step)?)
    }

    /// Refines the knee of all rungs together: a peak with more threads may have moved it up a doubling of the depth.
    fn refine_last(&mut self, session: &mut Session, step: &Planned) -> Result<bool, Error> {
        let masters = step.plan.masters().max(1) as f64;
        self.refine_by(session, Raised::Depth, &|session, climbed| {
            let all = points(session, climbed);
            let knee = find_knee(&all, &KneeOptions::default())?;
            let mut base = step.clone();
            base.phase.plan.load_mut().threads =
                session.record.phases[climbed[knee.index]].plan.load().threads;
            let unit = masters * f64::from(base.plan.load().threads);
            Some((refine_knee(&all, &KneeOptions::default(), unit)?, base))
        })
    }

    /// Measures an open loop at this per cent of the highest rate, with the threads and the depth that reached it and the limit of the
    /// load as it was asked for.
    fn open_loop(&self, session: &mut Session, asked: &Planned, percent: f64) -> Result<(), Error> {
        let rate_of = |&at: &usize| session.record.phases[at].summary.total.operations_per_second;
        let Some(best_at) =
            self.climbed.iter().copied().max_by(|one, other| rate_of(one).total_cmp(&rate_of(other)))
        else {
            return Ok(());
        };
        let rate_per_second = rate_of(&best_at) * percent / 100.0;
        let best = session.record.phases[best_at].plan.clone();
        let mut open = Planned { phase: layer::Phase { plan: best, ..asked.phase.clone() }, ..asked.clone() };
        *open.phase.plan.name_mut() = format!("{} at {percent}%", asked.plan.operation_name());
        let load = open.phase.plan.load_mut();
        load.arrivals = Some(ArrivalPlan { rate_per_second, kind: self.spec.arrivals.unwrap_or_default() });
        load.limit = asked.plan.load().limit;
        load.interval_ns = asked.plan.load().interval_ns;
        session.fill(&open)?;
        session.run_phase(&open).map(drop)
    }

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
        self.refine_by(session, raised, &|session, climbed| {
            let is_along = |at: &usize| {
                let other = session.record.phases[*at].plan.load();
                below.contains(at)
                    || match raised {
                        Raised::Depth => other.threads == load.threads,
                        Raised::Threads => other.depth == load.depth && other.threads > load.threads,
                    }
            };
            let rungs: Vec<usize> = climbed.iter().copied().filter(is_along).collect();
            let value = refine_knee(&points(session, &rungs), &KneeOptions::default(), unit)?;
            Some((value, base.clone()))
        })
    }

    /// Measures the rungs that `next` names, with what each is made of, until it names none; whether the climb goes on.
    fn refine_by(
        &mut self,
        session: &mut Session,
        raised: Raised,
        next: &NextRung<'_>,
    ) -> Result<bool, Error> {
        for _ in 0..REFINED_MAX {
            let Some((value, base)) = next(session, &self.climbed) else { break };
            self.refined.push(session.record.phases.len());
            if !self.measure(session, &base, raised, value)? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}
