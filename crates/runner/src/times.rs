//! Which interval the times of operations belong to, and how long operations were in flight.

use driver::{Clock, Error, ErrorKind, Operation, Source};

use crate::exchange::Late;
use crate::limits::Window;
use crate::worker::Worker;

/// Bounds of the current interval and of the window, on the clock of the run: what every completion is held against.
pub(crate) struct Times {
    /// Operations that began from here on belong to the current interval, ...
    since_ns: u64,
    /// ... for as long as this: to the end of the window. None where the interval lies behind it.
    length_ns: u64,
    /// Up to when the time in flight is accounted for.
    passed_ns: u64,
    /// Until when it belongs to the current interval.
    until_ns: u64,
}

impl Times {
    /// Before the window opens.
    pub(crate) fn new(window: &Window, next_interval_ns: u64) -> Self {
        let mut times = Self { since_ns: 0, length_ns: 0, passed_ns: 0, until_ns: 0 };
        times.begin(window, 0, next_interval_ns);
        times
    }

    /// An interval begins `start_ns` after the opening of the window; it ends at `next_ns`.
    pub(crate) fn begin(&mut self, window: &Window, start_ns: u64, next_ns: u64) {
        self.since_ns = window.open_ns.saturating_add(start_ns);
        self.length_ns = window.begin_until_ns().saturating_sub(self.since_ns);
        self.until_ns = next_ns.min(window.count_until_ns);
    }

    /// Whether what began at `start_ns` belongs to the latencies of the current interval.
    #[inline(always)]
    pub(crate) fn is_current(&self, start_ns: u64) -> bool {
        start_ns.wrapping_sub(self.since_ns) < self.length_ns
    }
}

impl<Op: Operation, S: Source<Op>, C: Clock> Worker<'_, Op, S, C> {
    /// Adds the time in flight up to `now`. Of the operations in flight, `timed` told their own times, `timed_ns` together.
    #[inline]
    pub(crate) fn pass_time(&mut self, now: u64, timed: u32, timed_ns: u64) {
        let times = &mut self.times;
        let waiting = u64::from(self.in_flight - timed);
        if now <= times.until_ns && times.passed_ns >= times.since_ns {
            self.current.in_flight_ns += waiting * (now - times.passed_ns) + timed_ns;
            times.passed_ns = now;
        } else {
            self.pass_time_across(now, waiting, timed_ns);
        }
    }

    /// The same over the borders of the interval, as far as it lies in the window.
    #[cold]
    fn pass_time_across(&mut self, now: u64, waiting: u64, timed_ns: u64) {
        let window = &self.window;
        let from_ns = self.times.passed_ns.max(window.open_ns);
        let until_ns = now.min(window.count_until_ns);
        self.times.passed_ns = now;
        if from_ns >= until_ns {
            return;
        }
        if timed_ns > 0 && window.counts(now) {
            self.current.in_flight_ns += timed_ns;
        }
        if waiting > 0 {
            self.current.add_span(from_ns - window.open_ns, until_ns - window.open_ns, waiting);
        }
    }

    /// Records the latency of an operation that began before the current interval: in the interval in which it began. What began before
    /// the window, or after it, is in none.
    #[cold]
    pub(crate) fn began_before(&mut self, class: usize, start_ns: u64, ended_ns: u64) {
        if self.window.holds_begin(start_ns) {
            let start_ns_in_window = start_ns - self.window.open_ns;
            let latency_ns = ended_ns.saturating_sub(start_ns);
            self.current.add_late(Late { class: class as u32, start_ns: start_ns_in_window, latency_ns });
        }
    }

    /// Nothing completes: hands over what was measured, so that it is not lost should nothing complete any more.
    ///
    /// # Errors
    /// When nobody waits any more.
    #[cold]
    pub(crate) fn idle(&mut self) -> Result<(), Error> {
        if self.shared.is_left() {
            return Err(Error::new(ErrorKind::Run, "reap", "operations did not come back"));
        }
        let now = self.clock.now_ns();
        self.pass_time(now, 0, 0);
        if now > self.window.open_ns && !self.current.is_empty() {
            self.rotate(now);
        }
        Ok(())
    }
}
