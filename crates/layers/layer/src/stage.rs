//! A stage: phases of one or several layers that run at the same time.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::SystemTime;

use driver::{Error, ErrorKind, HostClock};
use runner::{Job, Outcome, Reports};
use statistics::Snapshot;

use crate::Phase;
use crate::machine::MachineWatch;
use crate::masters::{self, Driven};
use crate::observations::Observations;
use crate::timeline::Timeline;

/// Outcome of a phase, and the observations around it.
pub type Seen = (Outcome, Observations);

/// Tells the user one line that belongs to no phase.
pub type Tell = fn(fmt::Arguments<'_>);

/// Surroundings of a stage while its layers get ready.
pub struct StageContext<'a> {
    /// Number of the stage among those that ran: the same on all hosts that carry it out.
    pub number: usize,
    /// Set from outside (Ctrl-C): what takes long ends early.
    pub interrupt: Arc<AtomicBool>,
    /// Shows a preparation that takes long, with its share that is done, from 0 to 1.
    pub progress: &'a dyn Fn(&str, f64),
    /// Tells the user one line that belongs to no phase.
    pub tell: Tell,
}

/// The phases of one layer in a stage, ready to run. What they need is held by it, and released with it.
pub trait Part {
    /// Their jobs, in the order of the phases. Asked for once.
    fn jobs(&mut self) -> Vec<Job>;

    /// Whether other processes drive the phases, by [`Part::drive`]. Such a part is alone in its stage.
    fn is_driven_elsewhere(&self) -> bool {
        false
    }

    /// Has other processes drive the phases, in place of [`Part::jobs`]; their outcomes, in the order of the phases.
    ///
    /// # Errors
    /// When they could not begin, or no process drives them.
    fn drive(&mut self, _observe: &mut dyn FnMut(&Snapshot)) -> Result<Vec<Outcome>, Error> {
        Err(Error::new(ErrorKind::Run, "stage", "its phases are driven by this process"))
    }

    /// The last step before all begin: counters are read.
    ///
    /// # Errors
    /// Where the phases cannot begin.
    fn begin(&mut self) -> Result<(), Error>;

    /// The first step after all have ended, or could not begin: counters are read again. CPU time that other processes of this machine used for
    /// the load, in nanoseconds.
    fn stop(&mut self) -> u64;

    /// Outcomes of the phases, in their order, with the observations around them. `machine` is what was seen of this machine.
    fn end(self: Box<Self>, outcomes: Vec<Outcome>, machine: &Observations) -> Vec<Seen>;
}

/// See [`plain_part`].
struct PlainPart<'a> {
    phases: Vec<&'a Phase>,
    jobs: Vec<Job>,
    interrupt: Arc<AtomicBool>,
}

/// A part of phases that need no more than their drivers: around them this machine alone is watched. `job` makes the job of each that this process
/// drives.
#[must_use]
pub fn plain_part<'a>(
    phases: Vec<&'a Phase>,
    context: &StageContext<'_>,
    job: impl FnMut(&&'a Phase) -> Job,
) -> Box<dyn Part + 'a> {
    let jobs = phases.iter().map(job).collect();
    Box::new(PlainPart { phases, jobs, interrupt: Arc::clone(&context.interrupt) })
}

impl Part for PlainPart<'_> {
    fn jobs(&mut self) -> Vec<Job> {
        std::mem::take(&mut self.jobs)
    }

    fn is_driven_elsewhere(&self) -> bool {
        self.phases.iter().any(|phase| phase.plan.is_driven_elsewhere())
    }

    fn drive(&mut self, observe: &mut dyn FnMut(&Snapshot)) -> Result<Vec<Outcome>, Error> {
        let stage: Vec<Driven<'_>> =
            self.phases.iter().map(|phase| Driven { phase, timeout_ns: 0 }).collect();
        let outcomes = masters::drive(&stage, &Vec::new, &self.interrupt, observe)?;
        Ok(outcomes.into_iter().map(|(outcome, _)| outcome).collect())
    }

    fn begin(&mut self) -> Result<(), Error> {
        Ok(())
    }

    fn stop(&mut self) -> u64 {
        0
    }

    fn end(self: Box<Self>, outcomes: Vec<Outcome>, machine: &Observations) -> Vec<Seen> {
        outcomes.into_iter().map(|outcome| (outcome, machine.clone())).collect()
    }
}

/// The phases of a stage by layer, each part with the numbers of its phases in the stage. Together they have each number once.
pub type Parts<'a> = Vec<(Vec<usize>, Box<dyn Part + 'a>)>;

/// Says when all phases of a stage may begin, once all of them could: at once, or so many nanoseconds later.
pub type Start<'a> = dyn FnMut() -> Result<Option<u64>, Error> + 'a;

/// Runs a stage, whose phases begin when `start` says so. Returns when the
/// phases began, and what came of each, in the order of the stage.
///
/// # Errors
/// When they could not begin.
pub fn run(
    mut parts: Parts<'_>,
    start: &mut Start<'_>,
    observe: &mut dyn FnMut(&Snapshot),
    reports: &mut dyn Reports,
) -> Result<(SystemTime, Vec<Seen>), Error> {
    let is_driven_elsewhere = parts.iter().any(|(_, part)| part.is_driven_elsewhere());
    if is_driven_elsewhere && parts.len() > 1 {
        return Err(Error::usage(
            "stage",
            "phases that other processes drive can only run at the same time as phases of the same layer",
        )
        .remedy("leave out concurrent, or drive all of them from this process"));
    }
    parts.iter_mut().try_for_each(|(_, part)| part.begin())?;
    let machine = MachineWatch::begin();
    let begun = SystemTime::now();
    let mut timeline = Timeline::default();
    let mut watch = |snapshot: &Snapshot| {
        timeline.look(snapshot.elapsed_ns);
        observe(snapshot);
    };
    let outcomes = match &mut parts[..] {
        [(_, part)] if is_driven_elsewhere => part.drive(observe),
        _ => runner::run_reporting(jobs_of(&mut parts), HostClock::get(), start, &mut watch, reports),
    };
    let beside_cpu_ns = parts.iter_mut().map(|(_, part)| part.stop()).sum();
    let outcomes = outcomes?;
    // Where others drive, this machine says nothing of them.
    let seen_here = match is_driven_elsewhere {
        true => Observations::default(),
        false => Observations { timeline: timeline.into_points(), ..machine.end(&outcomes, beside_cpu_ns) },
    };
    let mut outcomes: Vec<Option<Outcome>> = outcomes.into_iter().map(Some).collect();
    let mut seen: Vec<Option<Seen>> = outcomes.iter().map(|_| None).collect();
    for (numbers, part) in parts {
        let own = numbers.iter().filter_map(|&number| outcomes.get_mut(number)?.take()).collect();
        for (number, one) in numbers.into_iter().zip(part.end(own, &seen_here)) {
            seen[number] = Some(one);
        }
    }
    let count = seen.len();
    let seen: Vec<Seen> = seen.into_iter().flatten().collect();
    if seen.len() != count {
        return Err(Error::new(ErrorKind::Run, "stage", "a phase has no outcome"));
    }
    Ok((begun, seen))
}

/// Jobs of all parts, in the order of the stage.
fn jobs_of(parts: &mut Parts<'_>) -> Vec<Job> {
    let jobs = parts.iter_mut().flat_map(|(numbers, part)| numbers.iter().copied().zip(part.jobs()));
    let mut jobs: Vec<(usize, Job)> = jobs.collect();
    jobs.sort_by_key(|(number, _)| *number);
    jobs.into_iter().map(|(_, job)| job).collect()
}
