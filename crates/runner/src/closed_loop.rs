//! The closed loop: a completed operation makes room for the next.

use driver::{Clock, Error, Operation, Source, Wait};

use crate::pauses::Pauses;
use crate::waiting::{IDLE_NS, OTHERS_NS};
use crate::worker::Worker;

impl<Op: Operation, S: Source<Op>, C: Clock> Worker<'_, Op, S, C> {
    /// Starts operations as slots become free.
    pub(crate) fn run_closed(&mut self) -> Result<(), Error> {
        let mut mark = self.clock.now_ns();
        loop {
            self.impose_limits(mark);
            if self.may_start(mark) {
                while self.batch.len() < self.batch_max && self.draw() {}
            }
            if self.batch.is_empty() && self.in_flight == 0 {
                if self.is_waiting && self.may_start(mark) {
                    mark = self.await_others();
                    continue;
                }
                if !self.draw_final(mark) {
                    return Ok(());
                }
            }
            mark = self.advance(mark, false)?;
        }
    }

    /// As [`Worker::run_closed`], with a pause after every so many operations, once what is in flight has completed.
    pub(crate) fn run_thinking(&mut self, mut pauses: Pauses) -> Result<(), Error> {
        let mut mark = self.clock.now_ns();
        loop {
            self.impose_limits(mark);
            if self.may_start(mark) {
                while !pauses.are_due(mark) && self.batch.len() < self.batch_max && self.draw() {
                    pauses.draw();
                }
            }
            if self.batch.is_empty() && self.in_flight == 0 {
                if pauses.are_due(mark) && self.may_start(mark) && !self.window.is_used_up() {
                    mark = self.pause(mark, &mut pauses);
                    continue;
                }
                if self.is_waiting && self.may_start(mark) {
                    mark = self.await_others();
                    continue;
                }
                if !self.draw_final(mark) {
                    return Ok(());
                }
            }
            mark = self.advance(mark, pauses.are_due(mark))?;
        }
    }

    /// Nothing is in flight, and the source waits for another worker: it is asked again a little later; the time then.
    #[cold]
    pub(crate) fn await_others(&mut self) -> u64 {
        self.is_waiting = false;
        self.clock.sleep_ns(OTHERS_NS);
        self.clock.now_ns()
    }

    /// Waits for completions where nothing more can be drawn (`is_held`: nothing may be), else looks for some.
    #[inline(always)]
    pub(crate) fn await_some(&mut self, mark: u64, is_held: bool) -> Result<(), Error> {
        // A batch smaller than the depth goes to the target at once, and the next one follows.
        let is_full = is_held
            || self.is_waiting
            || self.free.is_empty()
            || !self.batch.is_empty()
            || !self.may_start(mark);
        let count = self.batch_min.min(self.in_flight);
        let wait = match is_full {
            true if count > 1 && mark < self.window.close_ns => Wait::AtLeast(count),
            true => Wait::Timeout { count, timeout_ns: IDLE_NS },
            false => Wait::None,
        };
        self.driver.reap(wait, &mut self.done)?;
        if is_full && self.done.is_empty() {
            self.idle()?;
        }
        Ok(())
    }

    /// Hands the batch over, waits for completions where nothing more can be drawn (`is_held`: nothing may be), and records them;
    /// the time then.
    #[inline(always)]
    pub(crate) fn advance(&mut self, mark: u64, is_held: bool) -> Result<u64, Error> {
        self.prepare_and_submit(mark)?;
        if self.done.is_empty() {
            self.await_some(mark, is_held)?;
        }
        let now = self.clock.now_ns();
        self.collect(now);
        Ok(now)
    }
}
