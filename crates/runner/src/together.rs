//! Phases from their common start to their last completions.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use driver::{Clock, Error, ErrorKind};
use statistics::{PhaseSamples, Snapshot};
use workload::plan::LoadPlan;

use crate::job::{Job, Outcome};
use crate::phase::Phase;
use crate::placement::Placement;
use crate::stage::{PhaseState, Stage};
use crate::thread::{Message, WorkerMessage};
use crate::view::View;
use crate::worker::Recording;

/// How often the coordinator looks after its workers.
const TICK: Duration = Duration::from_millis(10);

/// Runs one phase: opens a driver for each worker on its own thread, lets all begin at once, collects what they measure and gives
/// it back. `observe` is called on this thread about ten times a second.
///
/// # Errors
/// When a driver could not be opened: nothing was measured then. What fails later is in the outcome.
pub fn run_phase<C>(job: Job<C>, clock: C, observe: &mut dyn FnMut(&Snapshot)) -> Result<Outcome, Error>
where
    C: Clock + 'static,
{
    let mut outcomes = run_together(vec![job], clock, observe)?;
    outcomes.pop().ok_or_else(|| Error::new(ErrorKind::Run, "phase", "there is no outcome"))
}

/// Runs several phases at the same time: all drivers of all jobs are opened, then all may begin at once. The window of a job opens
/// after its `start_delay_ns` and its own fixed warm-up from there. The outcomes are in the order of the jobs.
///
/// - A phase that fails (a worker, or an operation where the first failure ends it) stops the others after what is in flight. What
///   they measured is kept, and their failure names the phase that failed. Failures that are only counted stop nobody, and neither
///   does the failure of one phase touch another that was done.
/// - When all workers of a job with `end_others` have ended, those of all others end after what is in flight, as if their limits were
///   reached: no failure, and as long as they ran. A note in the outcome says so. One that had not begun does not begin.
/// - `observe` is called on this thread about ten times a second, with all phases as one.
///
/// # Errors
/// When a load cannot be put on, or a driver of any job could not be opened: nobody begins then. What fails later is in the outcomes.
pub fn run_together<C>(
    jobs: Vec<Job<C>>,
    clock: C,
    observe: &mut dyn FnMut(&Snapshot),
) -> Result<Vec<Outcome>, Error>
where
    C: Clock + 'static,
{
    run_coordinated(jobs, clock, &mut || Ok(None), observe)
}

/// Reports of what was measured so far, while phases run.
pub trait Reports {
    /// Whether one is wanted now; asked about a hundred times a second.
    fn is_due(&mut self) -> bool;

    /// Takes one: what each phase has so far, in the order of the jobs.
    fn show(&mut self, so_far: Vec<PhaseSamples>);
}

/// Nobody wants a report.
pub struct NoReports;

impl Reports for NoReports {
    fn is_due(&mut self) -> bool {
        false
    }

    fn show(&mut self, _so_far: Vec<PhaseSamples>) {}
}

/// As [`run_coordinated`], with reports of what was measured so far. They are made on this thread, from what workers hand over anyway.
///
/// # Errors
/// As [`run_together`].
pub fn run_reporting<C>(
    jobs: Vec<Job<C>>,
    clock: C,
    ready: &mut dyn FnMut() -> Result<Option<u64>, Error>,
    observe: &mut dyn FnMut(&Snapshot),
    reports: &mut dyn Reports,
) -> Result<Vec<Outcome>, Error>
where
    C: Clock + 'static,
{
    run_all(jobs, clock, ready, observe, reports)
}

/// As [`run_together`], with others: `ready` is called on this thread once all drivers are open and nobody has begun. It comes back
/// when all may begin: at once, or so many nanoseconds later where it says so, so that several machines begin at the same time.
///
/// # Errors
/// As [`run_together`], and that of `ready`: nobody begins then.
pub fn run_coordinated<C>(
    jobs: Vec<Job<C>>,
    clock: C,
    ready: &mut dyn FnMut() -> Result<Option<u64>, Error>,
    observe: &mut dyn FnMut(&Snapshot),
) -> Result<Vec<Outcome>, Error>
where
    C: Clock + 'static,
{
    run_all(jobs, clock, ready, observe, &mut NoReports)
}

fn run_all<C>(
    jobs: Vec<Job<C>>,
    clock: C,
    ready: &mut dyn FnMut() -> Result<Option<u64>, Error>,
    observe: &mut dyn FnMut(&Snapshot),
    reports: &mut dyn Reports,
) -> Result<Vec<Outcome>, Error>
where
    C: Clock + 'static,
{
    let mut places = Vec::with_capacity(jobs.len());
    for job in &jobs {
        check_pauses(&job.load)?;
        places.push(Placement::plan(&job.load)?);
    }
    let (phase_states, recording): (Vec<_>, Vec<_>) = jobs.into_iter().map(PhaseState::new).unzip();
    let phases =
        phase_states.iter().zip(&places).map(|(phase_state, places)| Phase::new(phase_state, places.clone()));
    let mut phases: Vec<Phase> = phases.collect();
    let stage = Arc::new(Stage::new(clock, phase_states));
    let (sender, receiver) = channel();
    for (phase, (places, recording)) in places.into_iter().zip(recording).enumerate() {
        if let Err(error) = spawn(&stage, phase, places, recording, &sender) {
            stage.gate.open(None);
            return Err(error);
        }
    }
    drop(sender);
    let refusal = await_ready(&stage, &receiver, &mut phases);
    let delay_ns = match refusal.map_or_else(&mut *ready, Err) {
        Ok(delay_ns) => delay_ns.unwrap_or(0),
        Err(refusal) => {
            stage.gate.open(None);
            return Err(refusal);
        }
    };
    let now = stage.clock.now_ns();
    let start_ns = now.saturating_add(delay_ns);
    for (phase, phase_state) in phases.iter_mut().zip(&stage.phase_states) {
        phase.begin(phase_state, start_ns, now);
    }
    stage.gate.open(Some(start_ns));
    watch(&stage, &receiver, &mut phases, observe, reports);
    let concluded = phases.into_iter().zip(&stage.phase_states);
    Ok(concluded.map(|(phase, phase_state)| phase.conclude(&stage, phase_state)).collect())
}

/// Refuses pauses that the loop cannot make.
fn check_pauses(load: &LoadPlan) -> Result<(), Error> {
    match load.think {
        Some(think) if think.blocks == 0 => {
            Err(Error::usage("think", "a pause after every 0 operations is not possible")
                .remedy("use 1 or more operations"))
        }
        _ => Ok(()),
    }
}

/// Starts the threads of one phase.
fn spawn<C>(
    stage: &Arc<Stage<C>>,
    phase: usize,
    places: Vec<Placement>,
    recording: Vec<Recording>,
    sender: &Sender<WorkerMessage>,
) -> Result<(), Error>
where
    C: Clock + 'static,
{
    for ((number, place), recording) in (0u32..).zip(places).zip(recording) {
        let (stage, sender) = (Arc::clone(stage), sender.clone());
        std::thread::Builder::new()
            .name(format!("worker-{number}"))
            .spawn(move || {
                let opener = &stage.phase_states[phase].job.open;
                (opener.work)(&stage, (phase, number), &place, recording, &sender);
            })
            .map_err(|error| {
                Error::system("threads", "cannot start a worker", error).with("worker", number)
            })?;
    }
    Ok(())
}

/// Waits until every worker has opened its driver; the first refusal.
fn await_ready<C>(
    stage: &Stage<C>,
    receiver: &Receiver<WorkerMessage>,
    phases: &mut [Phase],
) -> Option<Error> {
    let mut refusal = None;
    let mut left: u32 = stage.phase_states.iter().map(|phase_state| phase_state.job.load.threads).sum();
    while left > 0 {
        let letter = match receiver.recv_timeout(TICK) {
            // A driver that opens for ever must not outlast the user.
            Err(RecvTimeoutError::Timeout)
                if stage.phase_states.iter().any(|phase_state| phase_state.shared.is_interrupted()) =>
            {
                let workers = if left == 1 {
                    "1 worker was opening its driver"
                } else {
                    "workers were opening their drivers"
                };
                let message = format!("interrupted while {workers}");
                return refusal.or_else(|| Some(Error::new(ErrorKind::Run, "open", message)));
            }
            Err(RecvTimeoutError::Timeout) => continue,
            Err(RecvTimeoutError::Disconnected) => return refusal,
            Ok(letter) => letter,
        };
        left -= 1;
        match letter {
            (phase, _, Message::Ready(notes)) => phases[phase].note(notes),
            (_, _, Message::Refused(error)) => refusal = refusal.or(Some(error)),
            (_, worker, Message::Panicked(text)) => {
                let error = Error::new(ErrorKind::Run, "open", format!("worker {worker} panicked: {text}"));
                refusal = refusal.or(Some(error));
            }
            (_, _, Message::Ended(_)) => {}
        }
    }
    refusal
}

/// Collects until every worker of every phase has ended or was given up.
fn watch<C: Clock>(
    stage: &Stage<C>,
    receiver: &Receiver<WorkerMessage>,
    phases: &mut [Phase],
    observe: &mut dyn FnMut(&Snapshot),
    reports: &mut dyn Reports,
) {
    let Some(open_ns) = phases.iter().map(|phase| phase.open_ns).min() else { return };
    let mut view = View::new(open_ns);
    while !phases.iter().all(Phase::is_over) {
        match receiver.recv_timeout(TICK) {
            Ok((phase, worker, message)) => phases[phase].ended(worker, message),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
        poll(stage, phases);
        let now = stage.clock.now_ns();
        for (number, (phase, phase_state)) in phases.iter_mut().zip(&stage.phase_states).enumerate() {
            if phase.attend(phase_state, now) {
                stage.fail(number);
            }
        }
        if let Some(snapshot) = view.look(phases, now) {
            observe(&snapshot);
        }
        if reports.is_due() {
            let all = phases.iter().zip(&stage.phase_states);
            reports.show(
                all.map(|(phase, phase_state)| phase.so_far(phase_state.job.load.limit.time_ns, now))
                    .collect(),
            );
        }
    }
    poll(stage, phases);
}

fn poll<C>(stage: &Stage<C>, phases: &mut [Phase]) {
    for (phase, phase_state) in phases.iter_mut().zip(&stage.phase_states) {
        phase.collector.poll(&phase_state.exchanges, &phase_state.shared);
    }
}
