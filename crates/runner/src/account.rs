//! Account of a worker that it gives back at its end.

use driver::{Clock, Error, Operation, Source};
use host::activity::Usage;
use statistics::{
    ClassTotals, ErrorCount, OperationSample, PartTotals, SparseHistogram, TallySample, WorkerSamples,
};

use crate::exchange::Interval;
use crate::job::ArrivalTally;
use crate::parts::tallies;
use crate::split::SplitTally;
use crate::unserved::Unserved;
use crate::worker::Worker;

/// Why a worker ended although it had more to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cut {
    /// Another phase was done that lets its companions end.
    Ended,
    /// Something failed, or the run was interrupted.
    Stopped,
}

/// Results that a worker gives back besides its intervals. Times count from the opening of the window.
pub(crate) struct WorkerEnd {
    started_ns: u64,
    first_completion_ns: Option<u64>,
    /// When it was done: the close of its window, or when it was cut short, where it was at work until then; else its last
    /// counted completion.
    pub(crate) finished_ns: u64,
    finals_from_ns: Option<u64>,
    /// Whether it was at work until the window closed.
    pub(crate) reached_close: bool,
    /// Why it ended although it had more to do; none when it had not.
    pub(crate) cut: Option<Cut>,
    errors: Vec<ErrorCount>,
    drained_operations: u64,
    drain_ns: u64,
    pub(crate) unserved: Unserved,
    lateness: Option<SparseHistogram>,
    pub(crate) usage: Usage,
    tool_ns: u64,
    fill_ns: u64,
    verify_ns: u64,
    pub(crate) arrivals: ArrivalTally,
    pub(crate) failure: Option<String>,
    pub(crate) last: Box<Interval>,
    split: Option<Box<SplitTally>>,
    kept: Vec<OperationSample>,
    items: Option<SparseHistogram>,
    depth_found: Option<u32>,
    parts: Vec<PartTotals>,
    tallies: Vec<TallySample>,
    /// Faults that its driver found, a line each.
    pub(crate) findings: Vec<String>,
}

impl WorkerEnd {
    /// The worker's samples, with what was collected of its classes.
    pub(crate) fn into_samples(
        self,
        worker: usize,
        core: Option<usize>,
        mut classes: Vec<ClassTotals>,
    ) -> WorkerSamples {
        let depths = self.split.map(|split| split.hand_over(&mut classes));
        // Failures of the warm-up and after the close are failures of the phase: the totals count what the list tells.
        for class in &mut classes {
            let of_class = self.errors.iter().filter(|error| error.class == class.class);
            class.errors = of_class.map(|error| error.count).sum();
        }
        WorkerSamples {
            worker,
            origin: None,
            core,
            started_ns: self.started_ns,
            first_completion_ns: self.first_completion_ns,
            finished_ns: self.finished_ns,
            finals_from_ns: self.finals_from_ns,
            classes,
            errors: self.errors,
            depths,
            parts: self.parts,
            tallies: self.tallies,
            kept: self.kept,
            items: self.items,
            depth_found: self.depth_found,
            drained_operations: self.drained_operations,
            drain_ns: self.drain_ns,
            unfinished_operations: 0,
            lateness: self.lateness,
            cpu_user_ns: self.usage.user_ns,
            cpu_system_ns: self.usage.system_ns,
            tool_ns: self.tool_ns,
            fill_ns: self.fill_ns,
            verify_ns: self.verify_ns,
            failure: self.failure,
        }
    }
}

impl<Op: Operation, S: Source<Op>, C: Clock> Worker<'_, Op, S, C> {
    /// The worker's account. A driver that failed is in `result`.
    pub(crate) fn into_end(mut self, result: Result<(), Error>) -> WorkerEnd {
        let open_ns = self.window.open_ns;
        let since_open = |ns: u64| ns.saturating_sub(open_ns);
        let failure = result.err().map(|error| error.to_string());
        let failure = failure.or_else(|| if self.stops_on_error { self.errors.first() } else { None });
        let now = self.clock.now_ns();
        self.settle(now, now);
        // What a warm-up cost that never came to its end is in no figure.
        let in_window = |ns: u64| if now < self.window.open_ns { 0 } else { ns };
        let usage = Usage::of_thread().since(&self.usage_before);
        let is_over = self.is_exhausted || self.window.is_used_up() || now >= self.window.close_ns;
        let is_done = is_over && (self.is_finished || !self.finishes);
        let cut = match (self.shared.is_stopped(), self.shared.is_ending()) {
            (true, _) => Some(Cut::Stopped),
            (false, true) => Some(Cut::Ended),
            (false, false) => None,
        };
        let cut = cut.filter(|_| !is_done);
        // A worker that waited in vain until the close, or until it was cut short, was at work: its rate falls by the wait.
        let reached_close = now >= self.window.close_ns;
        let until_ns = if reached_close || cut.is_some() { now.min(self.window.close_ns) } else { 0 };
        WorkerEnd {
            started_ns: if self.started_ns == u64::MAX { 0 } else { since_open(self.started_ns) },
            first_completion_ns: (self.first_completion_ns != u64::MAX)
                .then(|| since_open(self.first_completion_ns)),
            finished_ns: since_open(self.last_completion_ns.max(until_ns)),
            finals_from_ns: self.finals_from_ns.map(since_open),
            reached_close,
            cut,
            errors: self.errors.into_counts(),
            drained_operations: self.drained,
            drain_ns: self.drained_ns.saturating_sub(self.window.close_ns),
            unserved: self.unserved,
            lateness: self.lateness.map(|lateness| SparseHistogram::from(&*lateness)),
            usage: if now < self.window.open_ns { Usage::default() } else { usage },
            tool_ns: in_window(self.tool_ns),
            fill_ns: in_window(self.fill_ns),
            verify_ns: in_window(self.verify_ns),
            arrivals: self.arrivals,
            failure,
            last: self.current,
            split: self.split,
            kept: self.kept.map_or_else(Vec::new, |kept| kept.into_operations()),
            items: self.items.map(|items| items.into_latency()),
            depth_found: self.depth_found,
            tallies: tallies(self.driver, self.parts.as_deref()),
            findings: self.driver.findings(),
            parts: self.parts.map_or_else(Vec::new, |parts| parts.into_totals()),
        }
    }
}
