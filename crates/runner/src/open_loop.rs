//! The open loop: operations start when they are due, whether or not earlier ones are done, and their latency counts from
//! then. Waiting behind a slow operation is part of what a user sees (Tene: coordinated omission).

use driver::{Clock, Error, Operation, Source, Wait};
use workload::arrival::Arrivals;

use crate::waiting::{SLEEP_NS_MAX, SPIN_NS};
use crate::worker::Worker;

impl<Op: Operation, S: Source<Op>, C: Clock> Worker<'_, Op, S, C> {
    /// Starts operations when `arrivals` (from `begin_ns` on) says.
    pub(crate) fn run_open(&mut self, arrivals: &mut Arrivals, begin_ns: u64) -> Result<(), Error> {
        let mut due = begin_ns + arrivals.next();
        let mut now = self.clock.now_ns();
        let mut until_ns = self.window.close_ns;
        loop {
            self.impose_limits(now);
            if self.shared.is_ending() {
                until_ns = until_ns.min(now);
            }
            while due <= now && self.may_start(now) && self.batch.len() < self.batch_max && self.draw() {
                self.due_at(due);
                self.arrivals.started += u64::from(due >= self.window.open_ns);
                due = begin_ns + arrivals.next();
            }
            if self.batch.is_empty() && self.in_flight == 0 && !self.may_start(now) && !self.draw_final(now) {
                break;
            }
            self.prepare_and_submit(now)?;
            if !self.has_done() {
                self.wait_until(due)?;
            }
            now = self.clock.now_ns();
            self.collect(now);
        }
        self.arrivals.unserved = self.unserved(arrivals, begin_ns, due, until_ns);
        Ok(())
    }

    /// Waits for a completion or until `due`, whichever is first.
    #[inline]
    fn wait_until(&mut self, due: u64) -> Result<(), Error> {
        let now = self.clock.now_ns();
        // Without a free slot, or with nothing left to start, only a completion brings the loop on.
        if self.in_flight > 0 && (self.free.is_empty() || !self.may_start(now)) {
            return self.reap(Wait::AtLeast(1));
        }
        let until = due.min(self.window.close_ns);
        let sleep_ns = until.saturating_sub(now).saturating_sub(SPIN_NS);
        match (self.in_flight, sleep_ns) {
            (0, 0) => self.clock.spin_until(until),
            (0, _) => self.clock.sleep_ns(sleep_ns.min(SLEEP_NS_MAX)),
            (_, 0) => self.reap(Wait::None)?,
            (_, _) => self.reap(Wait::Timeout { count: 1, timeout_ns: sleep_ns.min(SLEEP_NS_MAX) })?,
        }
        Ok(())
    }

    /// Operations from `due` on that were due within the window, before `until_ns`, and never started.
    fn unserved(&self, arrivals: &mut Arrivals, begin_ns: u64, due: u64, until_ns: u64) -> u64 {
        let (open_ns, until_ns) = (self.window.open_ns, until_ns.min(self.clock.now_ns()));
        if due >= until_ns || until_ns <= open_ns || self.is_exhausted {
            return 0;
        }
        let is_within = due >= open_ns;
        if !is_within {
            arrivals.count_until(open_ns - begin_ns);
        }
        u64::from(is_within) + arrivals.count_until(until_ns - begin_ns)
    }
}
