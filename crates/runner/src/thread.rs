//! A worker's thread: from its driver and source to its account.

use std::any::Any;
use std::cell::Cell;
use std::num::NonZeroU64;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::Sender;

use driver::{Clock, Error, Operation, Source};
use units::Rate;
use workload::arrival::Arrivals;
use workload::control::Control;
use workload::plan::{ArrivalPlan, LoadPlan};

use crate::account::WorkerEnd;
use crate::flow::Seat;
use crate::job::WorkerSetup;
use crate::limits::{Window, ramp_ns};
use crate::parts::Parts;
use crate::pauses::Pauses;
use crate::placement::Placement;
use crate::stage::Stage;
use crate::waiting::wait;
use crate::worker::{Recording, Worker};

/// Message of a worker's thread to the coordinator.
pub(crate) enum Message {
    /// The driver is open; what it had to say.
    Ready(Vec<String>),
    Refused(Error),
    Ended(Box<WorkerEnd>),
    Panicked(String),
}

/// A message with where it comes from: the index of the phase and the number of the worker.
pub(crate) type WorkerMessage = (usize, u32, Message);

/// Runs worker `number` of phase `phase` on the calling thread, with the driver and the source that `open` gives.
pub(crate) fn work<Op, S, C>(
    open: &dyn Fn(u32) -> Result<WorkerSetup<Op, S>, Error>,
    stage: &Stage<C>,
    (phase, number): (usize, u32),
    place: &Placement,
    recording: Recording,
    sender: &Sender<WorkerMessage>,
) where
    Op: Operation,
    S: Source<Op>,
    C: Clock,
{
    let has_left = Cell::new(false);
    // Once, also when its driver panics on the way out.
    let leave = || {
        if !has_left.replace(true) {
            stage.leave(phase);
        }
    };
    let result = catch_unwind(AssertUnwindSafe(|| {
        let job = &stage.phase_states[phase].job;
        let setup =
            match place.apply().and_then(|()| prioritise(&job.load.control)).and_then(|()| open(number)) {
                Ok(setup) => setup,
                Err(error) => return Some(Message::Refused(error)),
            };
        let WorkerSetup { mut driver, source, notes, parts } = setup;
        let mut recording = Recording { parts: Parts::new(parts), ..recording };
        if let Some(split) = &mut recording.split {
            split.time_parts(driver.as_mut());
        }
        // Before anybody begins: one that begins first would be far ahead of those that are not there yet.
        let seat = if job.load.start_delay_ns == 0 { stage.flows.join(&job.load) } else { None };
        // The receiver lives as long as the phases; when it is gone nobody waits for this worker.
        sender.send((phase, number, Message::Ready(notes))).ok()?;
        let start_ns = stage.gate.wait()?;
        let end = measure(stage, (phase, number), driver.as_mut(), source, recording, (start_ns, seat));
        // The others learn of it while the driver lives: with virtual time, at this very moment.
        if end.failure.is_some() {
            stage.fail(phase);
        }
        leave();
        Some(Message::Ended(Box::new(end)))
    }));
    let message = result.unwrap_or_else(|panic| {
        stage.fail(phase);
        leave();
        Some(Message::Panicked(text_of(panic.as_ref())))
    });
    if let Some(message) = message {
        // Nobody listens any more when the phase was given up.
        let _ = sender.send((phase, number, message));
    }
}

/// Gives the calling thread its niceness, its memory and the priority of its I/O, where a load names some.
fn prioritise(control: &Control) -> Result<(), Error> {
    if let Some(more) = control.nice {
        host::priority::add_niceness(more).map_err(|error| {
            Error::system("nice", "cannot change the niceness of a worker", error)
                .with("nice", more)
                .remedy("a lower niceness requires CAP_SYS_NICE: run as root, or leave out --nice")
        })?;
    }
    if let Some(memory) = &control.memory {
        host::topology::set_memory_policy(memory.mode as i32, &memory.nodes).map_err(|error| {
            Error::system("memory", "cannot set the memory policy of a worker", error)
                .with("policy", format!("{memory:?}"))
                .remedy("use nodes that have memory and are in the cpuset of this process")
        })?;
    }
    if let Some(priority) = control.priority {
        host::priority::set_io_priority(priority.value()).map_err(|error| {
            Error::system("priority", "cannot set the I/O priority of a worker", error)
                .with("priority", format!("{priority:?}"))
                .remedy(
                    "the realtime class requires CAP_SYS_ADMIN or CAP_SYS_NICE: run as root, or use best-effort",
                )
        })?;
    }
    Ok(())
}

fn text_of(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "no message".to_owned())
}

/// Waits for the phase's begin and runs the loop.
fn measure<Op: Operation, S: Source<Op>, C: Clock>(
    stage: &Stage<C>,
    (phase, number): (usize, u32),
    driver: &mut dyn driver::Driver<Op>,
    source: S,
    recording: Recording,
    (start_ns, seat): (u64, Option<Seat<'_>>),
) -> WorkerEnd {
    let phase_state = &stage.phase_states[phase];
    let load = &phase_state.job.load;
    let begin_ns = phase_state.begin_ns(start_ns);
    let begins = stage.clock.now_ns() >= begin_ns || {
        wait(&stage.clock, begin_ns, || phase_state.shared.is_ending());
        !phase_state.shared.is_ending()
    };
    let mut worker = Worker::new(
        driver,
        source,
        stage.clock.clone(),
        &phase_state.job,
        Window::new(load, number, phase_state.open_ns(start_ns), phase_state.job.finishes),
        &phase_state.shared,
        (&phase_state.exchanges[number as usize], &phase_state.marks[number as usize]),
        recording,
    );
    let seat = seat.or_else(|| stage.flows.join(load));
    let result = if begins { run(&mut worker, load, number, seat) } else { Ok(()) };
    worker.into_end(result)
}

fn run<Op: Operation, S: Source<Op>, C: Clock>(
    worker: &mut Worker<'_, Op, S, C>,
    load: &LoadPlan,
    number: u32,
    seat: Option<Seat<'_>>,
) -> Result<(), Error> {
    let Some(plan) = load.arrivals else {
        return match (load.think, seat, load.control.latency_target) {
            (Some(think), ..) => worker.run_thinking(Pauses::new(think)),
            (None, Some(seat), _) => worker.run_weighted(seat),
            (None, None, Some(target)) => worker.run_searching(target),
            (None, None, None) => worker.run_closed(),
        };
    };
    // One nanosecond of slack instead of 50 us: a sleeping worker comes back when its operation is due.
    let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
    let mut arrivals = arrivals_of(load, &plan, number)?;
    let begin_ns = worker.window.open_ns - ramp_ns(load);
    worker.run_open(&mut arrivals, begin_ns, seat, load.think.map(Pauses::new))
}

/// When the operations of worker `number` are due, from the begin of its load.
pub(crate) fn arrivals_of(load: &LoadPlan, plan: &ArrivalPlan, number: u32) -> Result<Arrivals, Error> {
    if let Some(times_ns) = &load.schedule {
        return Ok(Arrivals::listed(std::sync::Arc::clone(times_ns)));
    }
    let arrivals = Rate::new(plan.rate_per_second)
        .and_then(|rate| Arrivals::new(plan.kind, rate, number, load.threads, load.seed));
    arrivals.map_err(|error| Error::usage("rate", error.to_string()))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;
    use std::sync::mpsc::channel;

    use driver::{Completions, Driver, HostClock, Submitted};
    use testkit::{InstantDriver, TestOp, TestSource, closed_load};

    use super::*;
    use crate::job::{Job, Opener};
    use crate::stage::PhaseState;

    /// Breaks when it is closed, after its work was done.
    struct BadEnd;

    impl Driver<TestOp> for BadEnd {
        fn submit(&mut self, batch: &[TestOp], done: &mut Completions) -> Result<Submitted, Error> {
            InstantDriver.submit(batch, done)
        }
    }

    impl Drop for BadEnd {
        fn drop(&mut self) {
            panic!("it cannot be closed");
        }
    }

    #[test]
    fn a_worker_whose_driver_panics_on_closing_leaves_once() {
        let mut load = closed_load(2, 1);
        load.limit.operations = Some(20);
        load.end_others = true;
        let open = Opener::new(|_| {
            let source = TestSource::reads(512);
            Ok(WorkerSetup { driver: Box::new(BadEnd), source, notes: Vec::new(), parts: Vec::new() })
        });
        let job = Job::new("test", &load, vec![0, 1], open, Arc::new(AtomicBool::new(false)));
        let (phase_state, mut recording) = PhaseState::new(job);
        let stage = Stage::new(HostClock::get(), vec![phase_state]);
        stage.gate.open(Some(0));
        let (sender, receiver) = channel();
        let place = Placement::plan(&load).unwrap().remove(0);
        std::thread::scope(|scope| {
            let opener = &stage.phase_states[0].job.open;
            scope.spawn(|| (opener.work)(&stage, (0, 0), &place, recording.remove(0), &sender));
        });
        assert!(receiver.iter().take(2).any(|(_, _, message)| matches!(message, Message::Panicked(_))));
        assert_eq!(stage.ended_by(), None, "the other worker has not left");
    }
}
