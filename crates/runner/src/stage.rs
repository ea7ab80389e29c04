//! What the threads of a call share: the phases that run at the same time, and the start that all wait for.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError};

use statistics::Histogram;

use crate::exchange::Exchange;
use crate::flow::Flows;
use crate::job::Job;
use crate::kept::Kept;
use crate::limits::ramp_ns;
use crate::marks::Marks;
use crate::shared::Shared;
use crate::split::SplitTally;
use crate::worker::Books;

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

/// What the workers of one phase share.
pub(crate) struct Floor<Op, S> {
    pub(crate) job: Job<Op, S>,
    pub(crate) shared: Shared,
    pub(crate) exchanges: Vec<Exchange>,
    /// What each worker has in flight.
    pub(crate) marks: Vec<Marks>,
    /// Workers that have not ended.
    at_work: AtomicU32,
}

impl<Op, S> Floor<Op, S> {
    /// The floor of a job, and what each of its workers records in.
    pub(crate) fn new(job: Job<Op, S>) -> (Self, Vec<Books>) {
        let (classes, load) = (job.classes.len(), &job.load);
        let split = || load.split_latency.then(|| Box::new(SplitTally::new(classes, load.depth)));
        let (exchanges, books) = (0..load.threads)
            .map(|_| {
                let (exchange, interval) = Exchange::new(classes);
                let lateness = load.arrivals.is_some().then(|| Box::new(Histogram::new()));
                let kept = Kept::new(&load.control);
                (exchange, Books { interval, split: split(), parts: None, kept, lateness })
            })
            .unzip();
        let shared = Shared::new(Arc::clone(&job.interrupt), load.interval_ns);
        let marks = (0..load.threads).map(|_| Marks::new(load.depth)).collect();
        let at_work = AtomicU32::new(load.threads);
        (Self { job, shared, exchanges, marks, at_work }, books)
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
pub(crate) struct Stage<Op, S, C> {
    pub(crate) clock: C,
    pub(crate) floors: Vec<Floor<Op, S>>,
    pub(crate) gate: Gate,
    /// The phase that failed first.
    failed: OnceLock<usize>,
    /// Weights of the workers, where they have some.
    pub(crate) flows: Flows,
    /// The phase that was done and lets the others end with it.
    ended_by: OnceLock<usize>,
}

impl<Op, S, C> Stage<Op, S, C> {
    pub(crate) fn new(clock: C, floors: Vec<Floor<Op, S>>) -> Self {
        let (failed, ended_by) = (OnceLock::new(), OnceLock::new());
        let controls = floors.iter().map(|floor| &floor.job.load.control);
        let flows = Flows::of(
            controls.filter(|control| control.flow.is_some()).map(|control| control.flow_group.unwrap_or(0)),
        );
        Self { clock, floors, gate: Gate::default(), failed, flows, ended_by }
    }

    /// `phase` failed: all end after what is in flight.
    pub(crate) fn fail(&self, phase: usize) {
        // Only the first is to blame.
        let _ = self.failed.set(phase);
        self.floors.iter().for_each(|floor| floor.shared.stop());
    }

    /// A worker of `phase` has ended; the last one may end the other phases.
    pub(crate) fn leave(&self, phase: usize) {
        let floor = &self.floors[phase];
        if floor.at_work.fetch_sub(1, Ordering::AcqRel) == 1 && floor.job.load.end_others {
            // Only the first is named.
            let _ = self.ended_by.set(phase);
            self.floors.iter().for_each(|floor| floor.shared.end());
        }
    }

    /// Name of the phase that failed first.
    pub(crate) fn failed(&self) -> Option<&str> {
        self.failed.get().map(|phase| self.floors[*phase].job.name.as_str())
    }

    /// Name of the phase that the others ended with.
    pub(crate) fn ended_by(&self) -> Option<&str> {
        self.ended_by.get().map(|phase| self.floors[*phase].job.name.as_str())
    }
}
