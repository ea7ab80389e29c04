//! The open loop: operations start when they are due, whether or not earlier ones are done, and their latency counts from
//! then. Waiting behind a slow operation is part of what a user sees (Tene: coordinated omission).

use driver::{Clock, Error, Operation, Source, Wait};
use workload::arrival::Arrivals;

use crate::flow::Seat;
use crate::unserved::Unserved;
use crate::waiting::{IDLE_NS, SLEEP_NS_MAX, SPIN_NS};
use crate::worker::Worker;

/// How long after the close operations may leave that were due before it.
const CATCH_UP_NS_MAX: u64 = 10_000_000;

impl<Op: Operation, S: Source<Op>, C: Clock> Worker<'_, Op, S, C> {
    /// Starts operations when `arrivals` (from `begin_ns` on) says; they count in the proportion of a flow, and are not held back by
    /// it.
    pub(crate) fn run_open(
        &mut self,
        arrivals: &mut Arrivals,
        begin_ns: u64,
        mut seat: Option<Seat<'_>>,
    ) -> Result<(), Error> {
        let mut due = begin_ns + arrivals.next();
        let mut now = self.clock.now_ns();
        let mut until_ns = self.window.close_ns;
        let (close_ns, mut catches_up) = (until_ns, false);
        loop {
            self.impose_limits(now);
            if self.shared.is_ending() {
                until_ns = until_ns.min(now);
            }
            // What was due before the close, with a slot free for it, leaves a little late.
            let may_start = self.may_start(now) || (catches_up && self.may_start(due));
            while due <= now
                && due < close_ns
                && may_start
                && self.batch.len() < self.batch_max
                && self.draw()
            {
                if let Some(seat) = &mut seat {
                    seat.draw();
                }
                self.due_at(due);
                self.marks.arrived();
                self.arrivals.started += u64::from(due >= self.window.open_ns);
                due = begin_ns + arrivals.next();
            }
            let is_late = now >= close_ns && !(catches_up && now - close_ns < CATCH_UP_NS_MAX);
            catches_up = !is_late && !self.free.is_empty();
            if self.batch.is_empty() && self.in_flight == 0 && !self.may_start(now) && !self.draw_final(now) {
                break;
            }
            self.prepare_and_submit(now)?;
            if !self.has_done() {
                self.wait_until(due)?;
                if !self.has_done() && (self.free.is_empty() || !self.may_start(now)) {
                    self.idle()?;
                }
            }
            now = self.clock.now_ns();
            self.collect(now);
        }
        let window = (self.window.open_ns, until_ns.min(self.clock.now_ns()));
        if !self.is_exhausted {
            self.unserved = Unserved::from(arrivals, begin_ns, due, window);
        }
        self.arrivals.unserved = self.unserved.count;
        Ok(())
    }

    /// Waits for a completion or until `due`, whichever is first.
    #[inline]
    fn wait_until(&mut self, due: u64) -> Result<(), Error> {
        let now = self.clock.now_ns();
        // Without a free slot, or with nothing left to start, only a completion brings the loop on.
        if self.in_flight > 0 && (self.free.is_empty() || !self.may_start(now)) {
            return self.reap(Wait::Timeout { count: 1, timeout_ns: IDLE_NS });
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
}
