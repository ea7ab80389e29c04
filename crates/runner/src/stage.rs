//! State that the threads of a call share: the phases that run at the same time, and the start that all wait for.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError};

use statistics::Histogram;

use crate::exchange::Exchange;
use crate::flow::Flows;
use crate::items::ItemTally;
use crate::job::Job;
use crate::kept::Kept;
use crate::limits::ramp_ns;
use crate::marks::Marks;
use crate::shared::Shared;
use crate::split::SplitTally;
use crate::worker::Recording;

/// The start that workers wait for: set once, to the absolute start time or to "do not start".
#[derive(Default)]
pub(crate) struct Gate {
    state: Mutex<Option<Option<u64>>>,
    opened: Condvar,
}

impl Gate {
    pub(crate) fn open(&self, start: Option<u64>) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        *state = Some(start);
        self.opened.notify_all();
    }

    pub(crate) fn wait(&self) -> Option<u64> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            match *state {
                Some(start) => return start,
                None => state = self.opened.wait(state).unwrap_or_else(PoisonError::into_inner),
            }
        }
    }
}

/// State that the workers of one phase share.
pub(crate) struct PhaseState<C> {
    pub(crate) job: Job<C>,
    pub(crate) shared: Shared,
    pub(crate) exchanges: Vec<Exchange>,
    /// Operations that each worker has in flight.
    pub(crate) marks: Vec<Marks>,
    /// Workers that have not ended.
    at_work: AtomicU32,
}

impl<C> PhaseState<C> {
    /// State of the phase of a job, and what each of its workers records in.
    pub(crate) fn new(job: Job<C>) -> (Self, Vec<Recording>) {
        let (classes, load) = (job.classes.len(), &job.load);
        let split = || load.split_latency.then(|| Box::new(SplitTally::new(classes, load.depth)));
        let (exchanges, recording) = (0..load.threads)
            .map(|_| {
                let (exchange, interval) = Exchange::new(classes);
                let lateness = load.arrivals.is_some().then(|| Box::new(Histogram::new()));
                let kept = Kept::new(&load.control);
                let items = job.has_items.then(|| Box::new(ItemTally::new(load.depth)));
                (exchange, Recording { interval, split: split(), parts: None, kept, items, lateness })
            })
            .unzip();
        let shared = Shared::new(Arc::clone(&job.interrupt), load.interval_ns);
        let marks = (0..load.threads).map(|_| Marks::new(load.depth)).collect();
        let at_work = AtomicU32::new(load.threads);
        (Self { job, shared, exchanges, marks, at_work }, recording)
    }

    /// When its load begins, where all phases could begin at `start_ns`.
    pub(crate) fn begin_ns(&self, start_ns: u64) -> u64 {
        start_ns.saturating_add(self.job.load.start_delay_ns)
    }

    /// When its window opens.
    pub(crate) fn open_ns(&self, start_ns: u64) -> u64 {
        self.begin_ns(start_ns).saturating_add(ramp_ns(&self.job.load))
    }
}

/// All phases of a call.
pub(crate) struct Stage<C> {
    pub(crate) clock: C,
    pub(crate) phase_states: Vec<PhaseState<C>>,
    pub(crate) gate: Gate,
    /// The phase that failed first.
    failed: OnceLock<usize>,
    /// Weights of the workers, where they have some.
    pub(crate) flows: Flows,
    /// The phase that was done and lets the others end with it.
    ended_by: OnceLock<usize>,
}

impl<C> Stage<C> {
    pub(crate) fn new(clock: C, phase_states: Vec<PhaseState<C>>) -> Self {
        let (failed, ended_by) = (OnceLock::new(), OnceLock::new());
        let controls = phase_states.iter().map(|phase_state| &phase_state.job.load.control);
        let flows = Flows::of(
            controls.filter(|control| control.flow.is_some()).map(|control| control.flow_group.unwrap_or(0)),
        );
        Self { clock, phase_states, gate: Gate::default(), failed, flows, ended_by }
    }

    /// `phase` failed: all end after what is in flight.
    pub(crate) fn fail(&self, phase: usize) {
        // Only the first is to blame.
        let _ = self.failed.set(phase);
        self.phase_states.iter().for_each(|phase_state| phase_state.shared.stop());
    }

    /// A worker of `phase` has ended; the last one may end the other phases.
    pub(crate) fn leave(&self, phase: usize) {
        let phase_state = &self.phase_states[phase];
        if phase_state.at_work.fetch_sub(1, Ordering::AcqRel) == 1 && phase_state.job.load.end_others {
            // Only the first is named.
            let _ = self.ended_by.set(phase);
            self.phase_states.iter().for_each(|phase_state| phase_state.shared.end());
        }
    }

    /// Name of the phase that failed first.
    pub(crate) fn failed(&self) -> Option<&str> {
        self.failed.get().map(|phase| self.phase_states[*phase].job.name.as_str())
    }

    /// Name of the phase that the others ended with.
    pub(crate) fn ended_by(&self) -> Option<&str> {
        self.ended_by.get().map(|phase| self.phase_states[*phase].job.name.as_str())
    }
}
