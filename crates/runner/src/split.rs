//! Submission and completion apart, and how deep queues and how large batches are: only where asked for.

use driver::{Clock, Completion, Driver, Operation, Source};
use statistics::{ClassTotals, DepthCounts, Histogram, LatencyPart, SparseHistogram};

use crate::worker::Worker;

/// Places of counts by powers of two: every depth has one.
const PLACES: usize = u32::BITS as usize;
/// In place of a time: the operation was complete when the driver had taken it.
const COMPLETED_AT_ONCE: u64 = 0;

/// Times of one class, split into submission and completion.
struct ClassSplit {
    submission: Histogram,
    completion: Histogram,
    /// Parts that the driver tells apart, and what is left behind them.
    parts: Vec<Histogram>,
}

/// Counts of one worker. Everything is allocated before the window opens.
pub(crate) struct SplitTally {
    classes: Vec<ClassSplit>,
    /// When the driver had taken the operation of a slot.
    taken_ns: Vec<u64>,
    in_flight: [u64; PLACES],
    submitted: [u64; PLACES],
    completed: [u64; PLACES],
    /// Names of the parts that the driver tells apart.
    parts: &'static [&'static str],
}

/// Name of what is left of a latency beside the parts that the driver tells apart.
const REST: &str = "client";

/// The place of a size from 1 on.
#[inline]
fn place(size: u32) -> usize {
    size.max(1).ilog2() as usize
}

impl SplitTally {
    /// A tally for `classes` classes and `depth` slots.
    pub(crate) fn new(classes: usize, depth: u32) -> Self {
        let class =
            || ClassSplit { submission: Histogram::new(), completion: Histogram::new(), parts: Vec::new() };
        Self {
            classes: (0..classes).map(|_| class()).collect(),
            taken_ns: vec![0; depth as usize],
            in_flight: [0; PLACES],
            submitted: [0; PLACES],
            completed: [0; PLACES],
            parts: &[],
        }
    }

    /// Has the driver time the parts that it can tell apart.
    pub(crate) fn time_parts<Op>(&mut self, driver: &mut dyn Driver<Op>) {
        self.parts = driver.latency_parts();
        if self.parts.is_empty() {
            return;
        }
        driver.time_parts();
        for class in &mut self.classes {
            class.parts = (0..=self.parts.len()).map(|_| Histogram::new()).collect();
        }
    }

    /// Records the parts of an operation whose latency is `whole_ns`.
    fn note_parts(&mut self, class: usize, times_ns: &[u64], whole_ns: u64) {
        let Some((rest, parts)) = self.classes[class].parts.split_last_mut() else { return };
        let mut left_ns = whole_ns;
        for (part, ns) in parts.iter_mut().zip(times_ns) {
            left_ns = left_ns.saturating_sub(*ns);
            // An operation that had no such part is none of it: most have no `connect`.
            if *ns > 0 {
                part.record(*ns);
            }
        }
        rest.record(left_ns);
    }

    /// The driver had taken `batch` at `now`, and `done` of it was complete then. One that carries out several operations at a time has been
    /// handed them, whenever they complete; one at a time is a call that does the work.
    fn taken<Op: Operation>(&mut self, batch: &[Op], done: &[Completion], now: u64) {
        for operation in batch {
            self.taken_ns[operation.slot() as usize] = now;
        }
        if self.taken_ns.len() > 1 {
            return;
        }
        for completion in done {
            self.taken_ns[completion.slot as usize] = COMPLETED_AT_ONCE;
        }
    }

    /// When the driver had taken the operation of a slot, where it was not complete then.
    pub(crate) fn taken_ns_of(&self, slot: u32) -> Option<u64> {
        Some(self.taken_ns[slot as usize]).filter(|&taken_ns| taken_ns != COMPLETED_AT_ONCE)
    }

    /// Counts a call that handed `accepted` operations over, after which `in_flight` were in flight.
    fn submitted(&mut self, accepted: u32, in_flight: u32) {
        if accepted > 0 {
            self.submitted[place(accepted)] += 1;
            self.in_flight[place(in_flight)] += u64::from(accepted);
        }
    }

    /// Records an operation that began at `start_ns` and completed at `now`. A synchronous call is one time, without a submission of its own.
    fn completed(&mut self, class: usize, slot: u32, start_ns: u64, now: u64) {
        let split = &mut self.classes[class];
        let taken_ns = match self.taken_ns[slot as usize] {
            COMPLETED_AT_ONCE => start_ns,
            taken_ns => {
                split.submission.record(taken_ns.saturating_sub(start_ns));
                taken_ns.max(start_ns)
            }
        };
        split.completion.record(now.saturating_sub(taken_ns));
    }

    /// Puts the latencies into the totals of the classes, which are in the same order; gives the counts back.
    pub(crate) fn hand_over(&self, totals: &mut [ClassTotals]) -> DepthCounts {
        for (totals, split) in totals.iter_mut().zip(&self.classes) {
            totals.submission = Some(SparseHistogram::from(&split.submission));
            totals.completion = Some(SparseHistogram::from(&split.completion));
            let names = self.parts.iter().copied().chain([REST]);
            let parts = names.zip(&split.parts);
            totals.latency_parts = parts
                .map(|(name, part)| LatencyPart {
                    part: name.to_owned(),
                    latency: SparseHistogram::from(part),
                })
                .collect();
        }
        let places = place(self.taken_ns.len() as u32) + 1;
        DepthCounts {
            in_flight: self.in_flight[..places].to_vec(),
            submitted: self.submitted[..places].to_vec(),
            completed: self.completed[..places].to_vec(),
        }
    }
}

impl<Op: Operation, S: Source<Op>, C: Clock> Worker<'_, Op, S, C> {
    /// Takes the time at which the driver had taken `accepted` operations of the batch.
    #[cold] // Keeps it out of the way of the runs that do not ask for it.
    pub(crate) fn note_submission(&mut self, accepted: usize) {
        let now = self.clock.now_ns();
        let is_counted = self.window.counts(now);
        let Some(split) = &mut self.split else { return };
        split.taken(&self.batch[..accepted], self.done.as_slice(), now);
        if is_counted {
            split.submitted(accepted as u32, self.in_flight + accepted as u32);
        }
    }

    /// Records the two parts of what completed whole at `now` and began in the window.
    #[cold]
    pub(crate) fn note_completions(&mut self, now: u64) {
        let Some(mut split) = self.split.take() else { return };
        if self.window.counts(now) {
            split.completed[place(self.done.len() as u32)] += 1;
        }
        for (at, completion) in self.done.as_slice().iter().enumerate() {
            let operation = self.slots[completion.slot as usize];
            let whole = operation.filter(|operation| operation.is_whole(completion.result));
            let (start_ns, ended_ns) = self.span_of(at, now);
            if let Some(operation) = whole.filter(|_| self.window.holds_begin(start_ns)) {
                let class = self.class_places[operation.class()] as usize;
                split.completed(class, completion.slot, start_ns, ended_ns);
                if !split.parts.is_empty() {
                    let times_ns = self.driver.part_times_ns(completion.slot);
                    split.note_parts(class, times_ns, ended_ns.saturating_sub(start_ns));
                }
            }
        }
        self.split = Some(split);
    }
}
