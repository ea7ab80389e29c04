//! The open loop: operations start when they are due, whether or not earlier ones are done, and their latency counts from
//! then. Waiting behind a slow operation is part of what a user sees (Tene: coordinated omission).

use driver::{Clock, Error, Operation, Source, Wait};
use workload::arrival::Arrivals;

use crate::flow::Seat;
use crate::pauses::Pauses;
use crate::unserved::Unserved;
use crate::waiting::{IDLE_NS, SLEEP_NS_MAX, SPIN_NS};
use crate::worker::Worker;

/// How long after the close operations may leave that were due before it.
const CATCH_UP_NS_MAX: u64 = 10_000_000;

/// Whether nothing may start before the next pause.
#[inline]
fn are_due(pauses: &mut Option<Pauses>, now: u64) -> bool {
    pauses.as_mut().is_some_and(|pauses| pauses.are_due(now))
}

impl<Op: Operation, S: Source<Op>, C: Clock> Worker<'_, Op, S, C> {
    /// Starts operations when `arrivals` (from `begin_ns` on) says; they count in the proportion of a flow, and are not held back by
    /// it. An operation that was due in a pause is due when it is over: nobody but the user made it wait.
    pub(crate) fn run_open(
        &mut self,
        arrivals: &mut Arrivals,
        mut begin_ns: u64,
        mut seat: Option<Seat<'_>>,
        mut pauses: Option<Pauses>,
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
                && !are_due(&mut pauses, now)
                && self.batch.len() < self.batch_max
                && self.draw()
            {
                pauses.iter_mut().for_each(Pauses::draw);
                if let Some(seat) = &mut seat {
                    seat.draw();
                }
                self.due_at(pauses.as_ref().map_or(due, |pauses| pauses.after(due)));
                self.marks.arrived();
                self.arrivals.started += u64::from(due >= self.window.open_ns);
                due = begin_ns + arrivals.next();
            }
            let is_held = are_due(&mut pauses, now);
            if let Some(pauses) =
                pauses.as_mut().filter(|_| is_held && self.is_at_rest() && self.may_start(now))
            {
                let over_ns = self.pause(now, pauses);
                let moved_ns = pauses.moves_by(over_ns - now);
                (begin_ns, due, now) = (begin_ns + moved_ns, due + moved_ns, over_ns);
                continue;
            }
            let is_late = now >= close_ns && !(catches_up && now - close_ns < CATCH_UP_NS_MAX);
            catches_up = !is_late && !self.free.is_empty();
            if self.is_at_rest() && !self.may_start(now) && !self.draw_final(now) {
                break;
            }
            if self.is_at_rest() && self.is_waiting {
                now = self.await_others();
                continue;
            }
            self.prepare_and_submit(now)?;
            if !self.has_done() {
                self.wait_until(due, is_held)?;
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

    /// Whether there is nothing to submit and nothing in flight.
    fn is_at_rest(&self) -> bool {
        self.batch.is_empty() && self.in_flight == 0
    }

    /// Waits for a completion or until `due`, whichever is first.
    #[inline]
    fn wait_until(&mut self, due: u64, is_held: bool) -> Result<(), Error> {
        let now = self.clock.now_ns();
        // Without a free slot, or with nothing left to start, only a completion brings the loop on.
        if self.in_flight > 0 && (is_held || self.free.is_empty() || !self.may_start(now)) {
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
