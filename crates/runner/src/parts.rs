//! Figures of a worker for each part of its target: only where the driver names parts.

use driver::{Clock, Driver, Fault, Operation, Source};
use statistics::{CauseCount, PartHistograms, PartTotals, TallySample};

use crate::tally::cause_of;
use crate::worker::Worker;

/// Causes told apart for each part; beyond that they are counted as `other`.
const CAUSES_MAX: usize = 16;

/// Counters of one part.
struct PartTally {
    operations: u64,
    bytes: u64,
    errors: u64,
    causes: Vec<CauseCount>,
}

impl PartTally {
    #[cold]
    fn failed(&mut self, cause: &str) {
        self.errors += 1;
        if let Some(known) = self.causes.iter_mut().find(|known| known.cause == cause) {
            known.count += 1;
            return;
        }
        let is_full = self.causes.len() >= CAUSES_MAX;
        match self.causes.last_mut().filter(|last| is_full && last.cause == "other") {
            Some(other) => other.count += 1,
            None => {
                let cause = if is_full { "other" } else { cause }.to_owned();
                self.causes.push(CauseCount { cause, count: 1 });
            }
        }
    }
}

/// Counts of one worker by part. Everything is allocated before the window opens.
pub(crate) struct Parts {
    /// Numbers of the parts in the plan, in the order of [`Operation::part`].
    numbers: Vec<usize>,
    tallies: Vec<PartTally>,
    latencies: PartHistograms,
}

impl Parts {
    /// A tally for parts with these numbers; none where there are none.
    pub(crate) fn new(numbers: Vec<usize>) -> Option<Box<Self>> {
        let tally = |_: &usize| PartTally { operations: 0, bytes: 0, errors: 0, causes: Vec::new() };
        let tallies = numbers.iter().map(tally).collect();
        let latencies = PartHistograms::new(numbers.len());
        (!numbers.is_empty()).then(|| Box::new(Self { numbers, tallies, latencies }))
    }

    /// Counts an operation that returned wrong data.
    #[cold]
    pub(crate) fn faulty<Op: Operation>(&mut self, operation: &Op, fault: &Fault) {
        self.tallies[operation.part()].failed(fault.cause);
    }

    /// Totals of the parts that were turned to.
    pub(crate) fn into_totals(self) -> Vec<PartTotals> {
        let all = self.numbers.into_iter().zip(self.tallies).enumerate();
        let touched = all.filter(|(_, (_, tally))| tally.operations + tally.errors > 0);
        let totals = touched.map(|(at, (part, tally))| PartTotals {
            part,
            operations: tally.operations,
            bytes: tally.bytes,
            errors: tally.errors,
            causes: tally.causes,
            latency: self.latencies.sparse(at),
        });
        totals.collect()
    }
}

/// Counters of the driver besides completions; parts by their numbers in the plan.
pub(crate) fn tallies<Op>(driver: &mut dyn Driver<Op>, parts: Option<&Parts>) -> Vec<TallySample> {
    let number = |part: usize| parts.and_then(|parts| parts.numbers.get(part).copied()).unwrap_or(part);
    let tallies = driver.tallies().into_iter();
    tallies
        .map(|tally| TallySample {
            part: number(tally.part),
            name: tally.name.to_owned(),
            value: tally.value,
        })
        .collect()
}

impl<Op: Operation, S: Source<Op>, C: Clock> Worker<'_, Op, S, C> {
    /// Records what completed at `now` by part; outside the window failures alone, as the worker's own causes do. What was found faulty is
    /// recorded already and no longer in its slot.
    #[inline(never)] // Keeps it out of the way of the runs that do not ask for it.
    pub(crate) fn note_parts(&mut self, now: u64, is_counted: bool) {
        let Some(mut parts) = self.parts.take() else { return };
        for (at, completion) in self.done.as_slice().iter().enumerate() {
            let Some(operation) = self.slots[completion.slot as usize] else { continue };
            let part = operation.part();
            let tally = &mut parts.tallies[part];
            if !operation.is_whole(completion.result) {
                tally.failed(&cause_of(&operation, completion.result).0);
                continue;
            }
            if is_counted {
                tally.operations += 1;
                tally.bytes += operation.moved_bytes(completion.result);
            }
            let (start_ns, ended_ns) = self.span_of(at, now);
            if self.window.holds_begin(start_ns) {
                parts.latencies.record(part, ended_ns.saturating_sub(start_ns));
            }
        }
        self.parts = Some(parts);
    }
}
