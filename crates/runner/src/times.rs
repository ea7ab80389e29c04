//! Which interval the times of operations belong to, and how long operations were in flight.
//!
//! In a closed loop an operation is in flight for its latency, which its histogram sums up: time in flight costs nothing beside what
//! crosses the border of an interval. In an open loop latency begins when the operation was due, so its time in flight is added up at
//! each submission and completion.

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
    /// Open loop: up to when the time in flight is accounted for.
    passed_ns: u64,
    /// Until when it belongs to the current interval.
    until_ns: u64,
}

/// The part of an interval that lies before its successor, to which times in flight are dealt out.
struct Border {
    since_ns: u64,
    /// Where the interval ends, ...
    end_ns: u64,
    /// ... and where its successor begins: later, where nothing completed meanwhile.
    next_ns: u64,
    /// Operations in flight from one to the other.
    over: u64,
    in_flight_ns: u64,
}

impl Border {
    /// Deals out the time of an operation from `start_ns` to `ended_ns`. Of what only began behind the end the rest is told.
    fn deal(&mut self, start_ns: u64, ended_ns: u64) -> Option<(u64, u64)> {
        let from_ns = start_ns.max(self.since_ns);
        let until_ns = ended_ns.min(self.next_ns);
        self.in_flight_ns += until_ns.min(self.end_ns).saturating_sub(from_ns);
        if from_ns <= self.end_ns && until_ns == self.next_ns {
            self.over += 1;
            return None;
        }
        let rest = (from_ns.max(self.end_ns), until_ns);
        (rest.0 < rest.1).then_some(rest)
    }
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
    /// Open loop: adds the time in flight up to `now`. Of the operations in flight, `timed` told their own times, `timed_ns` together.
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

    /// Closed loop: adds the time in flight of an operation that is over and whose latency is not recorded in the current interval.
    #[cold]
    pub(crate) fn add_time_in_flight(&mut self, start_ns: u64, ended_ns: u64) {
        if !self.is_open() {
            let part_ns = self.part_in_flight_ns(start_ns, ended_ns);
            self.current.in_flight_ns = self.current.in_flight_ns.wrapping_add(part_ns);
        }
    }

    /// How long an operation was in flight within the current interval and the window.
    fn part_in_flight_ns(&self, start_ns: u64, ended_ns: u64) -> u64 {
        ended_ns.min(self.window.count_until_ns).saturating_sub(start_ns.max(self.times.since_ns))
    }

    /// Records the latency of an operation that did not both begin and end within the current interval: in the interval in which it
    /// began. What began before the window, or after it, is in none.
    #[cold]
    pub(crate) fn record_across(&mut self, class: usize, start_ns: u64, ended_ns: u64) {
        let latency_ns = ended_ns.saturating_sub(start_ns);
        let is_current = self.times.is_current(start_ns);
        let is_here = if is_current {
            self.current.classes[class].latency.record(latency_ns);
            true
        } else {
            let late = || Late { class: class as u32, start_ns: start_ns - self.window.open_ns, latency_ns };
            self.window.holds_begin(start_ns) && self.current.add_late(late())
        };
        self.add_time_in_flight(start_ns, ended_ns);
        if is_here && !self.is_open() {
            self.current.in_flight_ns = self.current.in_flight_ns.wrapping_sub(latency_ns);
        }
    }

    /// Closed loop: completes what the current interval says of the time in flight, up to where the next one begins at `next_ns`.
    /// `now` is the time.
    pub(crate) fn settle(&mut self, next_ns: u64, now: u64) {
        if self.is_open() {
            return;
        }
        let interval = &mut *self.current;
        let open_ns = self.window.open_ns;
        let next_ns = next_ns.min(self.window.count_until_ns);
        let (since_ns, end_ns) = (self.times.since_ns, self.times.until_ns.min(next_ns));
        let mut border = Border { since_ns, end_ns, next_ns, over: 0, in_flight_ns: interval.latencies_ns() };
        let mut deal = |start_ns: u64, ended_ns: u64| {
            if let Some((from_ns, until_ns)) = border.deal(start_ns, ended_ns) {
                interval.add_span(from_ns - open_ns, until_ns - open_ns, 1);
            }
        };
        for (at, completion) in self.done.as_slice().iter().enumerate() {
            if let Some(span) = self.done.span(at) {
                self.marks.clear(completion.slot);
                deal(span.began_ns, span.ended_ns);
            }
        }
        let starts = (0..self.slots.len() as u32).map(|slot| self.marks.start_ns(slot));
        starts.filter(|&start_ns| start_ns > 0).for_each(|start_ns| deal(start_ns, now));
        interval.in_flight_ns = interval.in_flight_ns.wrapping_add(border.in_flight_ns);
        if border.over > 0 && end_ns < next_ns {
            interval.add_span(end_ns - open_ns, next_ns - open_ns, border.over);
        }
    }

    /// Nothing completes: hands over what was measured, so that it is not lost should nothing complete any more.
    ///
    /// # Errors
    /// When nobody waits any more.
    #[cold]
    pub(crate) fn idle(&mut self) -> Result<(), Error> {
        if self.shared.is_left() {
            return Err(Error::new(ErrorKind::Run, "reap", "operations did not complete"));
        }
        let now = self.clock.now_ns();
        if self.is_open() {
            self.pass_time(now, 0, 0);
        }
        if now > self.window.open_ns && !self.current.is_empty() {
            self.rotate(now);
        }
        Ok(())
    }
}
