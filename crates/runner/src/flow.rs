//! Workers that do operations in the proportion of their weights, across the phases that run together.

use std::sync::atomic::{AtomicU64, Ordering};

use driver::{Clock, Error, Operation, Source};
use workload::plan::LoadPlan;

use crate::worker::Worker;

/// How long a worker that is ahead of the others waits with nothing in flight.
const AHEAD_NS: u64 = 50_000;

/// The weighted workers of a stage, by the number of their group.
#[derive(Default)]
pub(crate) struct Flows(Vec<(u32, Flow)>);

impl Flows {
    /// One flow for each number that is among `groups`.
    pub(crate) fn of(groups: impl Iterator<Item = u32>) -> Self {
        let mut flows: Vec<(u32, Flow)> = Vec::new();
        for group in groups {
            if flows.iter().all(|(known, _)| *known != group) {
                flows.push((group, Flow::default()));
            }
        }
        Self(flows)
    }

    /// The seat of a worker of this load, where it has a weight.
    pub(crate) fn join(&self, load: &LoadPlan) -> Option<Seat<'_>> {
        let group = load.control.flow_group.unwrap_or(0);
        let (_, flow) = self.0.iter().find(|(known, _)| *known == group)?;
        Some(flow.join(load.control.flow?, load.depth))
    }
}

/// Counters that all weighted workers of a group share.
#[derive(Default)]
struct Flow {
    done: AtomicU64,
    weight: AtomicU64,
}

/// A worker's seat: it counts while it is there.
pub(crate) struct Seat<'a> {
    flow: &'a Flow,
    own: u64,
    weight: u64,
    slack: u64,
}

impl Flow {
    /// Joins where the others are, so that nobody waits for what was done before.
    fn join(&self, weight: u32, depth: u32) -> Seat<'_> {
        let (done, all) = (self.done.load(Ordering::Relaxed), self.weight.load(Ordering::Relaxed));
        let weight = u64::from(weight);
        let own = if all == 0 { 0 } else { (u128::from(done) * u128::from(weight) / u128::from(all)) as u64 };
        self.done.fetch_add(own, Ordering::Relaxed);
        self.weight.fetch_add(weight, Ordering::Relaxed);
        Seat { flow: self, own, weight, slack: u64::from(depth) }
    }
}

impl Seat<'_> {
    /// Whether the next operation is still within the proportion: as far ahead as a queue is deep.
    fn may_draw(&self) -> bool {
        let done = u128::from(self.flow.done.load(Ordering::Relaxed));
        let all = u128::from(self.flow.weight.load(Ordering::Relaxed));
        u128::from(self.own) * all <= done * u128::from(self.weight) + u128::from(self.slack) * all
    }

    /// Counts an operation that starts.
    pub(crate) fn draw(&mut self) {
        self.own += 1;
        self.flow.done.fetch_add(1, Ordering::Relaxed);
    }
}

impl Drop for Seat<'_> {
    fn drop(&mut self) {
        self.flow.done.fetch_sub(self.own, Ordering::Relaxed);
        self.flow.weight.fetch_sub(self.weight, Ordering::Relaxed);
    }
}

impl<Op: Operation, S: Source<Op>, C: Clock> Worker<'_, Op, S, C> {
    /// As [`Worker::run_closed`], held back where it is ahead of the proportion.
    pub(crate) fn run_weighted(&mut self, mut seat: Seat<'_>) -> Result<(), Error> {
        let mut mark = self.clock.now_ns();
        loop {
            self.impose_limits(mark);
            let may_start = self.may_start(mark);
            let mut is_ahead = false;
            while may_start && self.batch.len() < self.batch_max {
                is_ahead = !seat.may_draw();
                if is_ahead || !self.draw() {
                    break;
                }
                seat.draw();
            }
            if self.batch.is_empty() && self.in_flight == 0 {
                if is_ahead && self.may_start(mark) {
                    self.clock.sleep_ns(AHEAD_NS);
                    mark = self.clock.now_ns();
                    continue;
                }
                if !self.draw_final(mark) {
                    return Ok(());
                }
            }
            mark = self.advance(mark, is_ahead)?;
        }
    }
}
