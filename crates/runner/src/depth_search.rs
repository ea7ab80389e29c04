//! Search of the largest depth at which latency holds.

use driver::{Clock, Error, Operation, Source};
use workload::control::LatencyTarget;

use crate::worker::Worker;

/// The state of a search: depths up to `holds` were seen to hold, `fails` was seen not to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DepthSearch {
    target: LatencyTarget,
    /// Depth that is tried.
    depth: u32,
    holds: u32,
    fails: u32,
    most: u32,
    /// Begin of the window, and what began and ended in it.
    since_ns: u64,
    operations: u64,
    within: u64,
    is_over: bool,
}

impl DepthSearch {
    pub(crate) fn new(target: LatencyTarget, most: u32, now: u64) -> Self {
        let (holds, fails) = (0, most + 1);
        let fresh = (now, 0, 0);
        let (since_ns, operations, within) = fresh;
        Self { target, depth: 1, holds, fails, most, since_ns, operations, within, is_over: false }
    }

    /// Counts an operation that began at `start_ns` and took `latency_ns`.
    fn note(&mut self, start_ns: u64, latency_ns: u64) {
        // What began before was part of another depth.
        if start_ns >= self.since_ns {
            self.operations += 1;
            self.within += u64::from(latency_ns <= self.target.latency_ns);
        }
    }

    /// Judges the window where it is over at `now`.
    fn judge(&mut self, now: u64) {
        if self.is_over || now < self.since_ns.saturating_add(self.target.window_ns) || self.operations == 0 {
            return;
        }
        let percent = 100.0 * self.within as f64 / self.operations as f64;
        if percent >= self.target.percent {
            self.holds = self.depth;
        } else {
            self.fails = self.depth;
        }
        self.is_over = self.holds + 1 >= self.fails;
        self.depth = match () {
            () if self.is_over => self.holds.max(1),
            () if self.fails > self.most => (self.depth * 2).min(self.most),
            () => u32::midpoint(self.holds, self.fails),
        };
        (self.since_ns, self.operations, self.within) = (now, 0, 0);
    }

    /// The largest depth that was seen to hold; none where not even one operation at a time did.
    fn found(&self) -> Option<u32> {
        (self.holds > 0).then_some(self.holds)
    }
}

impl<Op: Operation, S: Source<Op>, C: Clock> Worker<'_, Op, S, C> {
    /// As [`Worker::run_closed`], with as many operations in flight as the search has come to.
    pub(crate) fn run_searching(&mut self, target: LatencyTarget) -> Result<(), Error> {
        let mut mark = self.clock.now_ns();
        let mut search = DepthSearch::new(target, self.slots.len() as u32, mark.max(self.window.open_ns));
        loop {
            self.impose_limits(mark);
            let may_start = self.may_start(mark) && (target.goes_on || !search.is_over);
            let mut is_held = !may_start;
            while may_start && self.batch.len() < self.batch_max {
                is_held = self.in_flight + self.batch.len() as u32 >= search.depth;
                if is_held || !self.draw() {
                    break;
                }
            }
            if self.batch.is_empty() && self.in_flight == 0 && !self.draw_final(mark) {
                self.depth_found = search.found();
                return Ok(());
            }
            self.prepare_and_submit(mark)?;
            if !self.has_done() {
                self.await_some(mark, is_held)?;
            }
            mark = self.clock.now_ns();
            for at in 0..self.done.len() {
                let (start_ns, ended_ns) = self.span_of(at, mark);
                search.note(start_ns, ended_ns.saturating_sub(start_ns));
            }
            search.judge(mark);
            self.collect(mark);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(most: u32, holds_up_to: u32) -> (Option<u32>, u32) {
        let target = LatencyTarget { latency_ns: 100, window_ns: 10, percent: 99.0, goes_on: false };
        let mut search = DepthSearch::new(target, most, 0);
        let mut windows = 0;
        while !search.is_over {
            windows += 1;
            let now = windows * 10;
            let latency_ns = if search.depth <= holds_up_to { 100 } else { 101 };
            search.note(now - 5, latency_ns);
            search.judge(now);
        }
        (search.found(), windows as u32)
    }

    #[test]
    fn the_largest_depth_that_holds_is_found_in_few_windows() {
        for (most, holds, expected) in
            [(128, 0, None), (128, 1, Some(1)), (128, 37, Some(37)), (128, 200, Some(128)), (1, 1, Some(1))]
        {
            let (depth, windows) = found(most, holds);
            assert_eq!(depth, expected, "{most} {holds}");
            assert!(windows <= 16, "{windows} windows");
        }
    }

    #[test]
    fn a_window_without_operations_or_with_old_ones_says_nothing() {
        let target = LatencyTarget { latency_ns: 100, window_ns: 10, percent: 99.0, goes_on: false };
        let mut search = DepthSearch::new(target, 4, 100);
        search.note(50, 1_000);
        search.judge(500);
        assert_eq!((search.depth, search.holds, search.fails), (1, 0, 5));
    }
}
