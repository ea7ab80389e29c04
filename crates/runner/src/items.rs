//! Latency of whole items, where an item takes several operations: the sum of their latencies, without the time between them in which buffers are filled and checked.

use driver::{Clock, Operation, Source};
use statistics::{Histogram, SparseHistogram};

use crate::worker::Worker;

/// In place of a sum: an operation of the item failed.
const FAILED: u64 = u64::MAX;

/// Items of one worker. Everything is allocated before the window opens.
pub(crate) struct ItemTally {
    /// Time of the operations so far of the items in flight, by their places.
    spent_ns: Vec<u64>,
    latency: Histogram,
}

impl ItemTally {
    /// A tally for `depth` items in flight.
    pub(crate) fn new(depth: u32) -> Self {
        Self { spent_ns: vec![FAILED; depth as usize], latency: Histogram::new() }
    }

    /// Adds an operation that took `latency_ns`; whole items are recorded.
    fn add<Op: Operation>(&mut self, operation: &Op, latency_ns: Option<u64>) {
        let Some(spent) = self.spent_ns.get_mut(operation.item_place() as usize) else { return };
        if operation.begins_item() {
            *spent = 0;
        }
        *spent = match latency_ns {
            Some(ns) if *spent != FAILED => *spent + ns,
            _ => FAILED,
        };
        if operation.ends_item() && *spent != FAILED {
            self.latency.record(*spent);
        }
    }

    /// The latencies.
    pub(crate) fn into_latency(self) -> SparseHistogram {
        SparseHistogram::from(&self.latency)
    }
}

impl<Op: Operation, S: Source<Op>, C: Clock> Worker<'_, Op, S, C> {
    /// Adds what completed at `now` to the items that it belongs to.
    pub(crate) fn note_items(&mut self, now: u64) {
        let Some(mut items) = self.items.take() else { return };
        for (at, completion) in self.done.as_slice().iter().enumerate() {
            let Some(operation) = self.slots[completion.slot as usize] else { continue };
            let (start_ns, ended_ns) = self.span_of(at, now);
            let is_good = operation.is_whole(completion.result) && self.window.holds_begin(start_ns);
            items.add(&operation, is_good.then(|| ended_ns.saturating_sub(start_ns)));
        }
        self.items = Some(items);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Copy, Debug)]
    struct Step {
        slot: u32,
        begins: bool,
        ends: bool,
    }

    impl Operation for Step {
        const CLASSES: &'static [&'static str] = &["step"];
        fn class(&self) -> usize {
            0
        }
        fn slot(&self) -> u32 {
            self.slot
        }
        fn bytes(&self) -> u64 {
            0
        }
        fn begins_item(&self) -> bool {
            self.begins
        }
        fn ends_item(&self) -> bool {
            self.ends
        }
    }

    #[test]
    fn an_item_takes_as_long_as_its_operations_and_none_where_one_failed() {
        let mut items = ItemTally::new(2);
        let step = |slot, begins, ends| Step { slot, begins, ends };
        items.add(&step(0, true, false), Some(100));
        items.add(&step(1, true, false), Some(7));
        items.add(&step(0, false, false), Some(20));
        items.add(&step(1, false, false), None);
        items.add(&step(0, false, true), Some(3));
        items.add(&step(1, false, true), Some(1));
        items.add(&step(1, true, true), Some(50));
        let mut latency = Histogram::new();
        latency.merge_sparse(&items.into_latency());
        assert_eq!((latency.count(), latency.min_ns(), latency.max_ns()), (2, Some(50), Some(123)));
    }
}
