//! Operations that hang in a phase that no time ends: without a look at them it would wait for ever.

use host::activity::Usage;

use crate::collector::Collector;
use crate::marks::Marks;

/// Time without a completion from which on what is in flight is looked at: before that, reading it would only disturb the workers.
const QUIET_NS: u64 = 1_000_000_000;
/// How often it is looked at then.
const LOOK_NS: u64 = 100_000_000;
/// Time without a completion from which on it is shown that the phase waits.
const SHOWN_NS: u64 = 3_000_000_000;

/// Follows whether anything completes. Times are those of the run's clock.
#[derive(Debug, Default)]
pub(crate) struct Hang {
    /// Operations that were collected, and since when it is so many.
    done: Option<(u64, u64)>,
    /// Usage of the process and of the coordinating thread when that many had come: a window that ends there has no more.
    pub(crate) used: (Usage, Usage),
    /// Operations in flight at the latest look: how many, and when the youngest began.
    in_flight: (u64, u64),
    looked_ns: u64,
    /// Since when nothing has completed.
    since_ns: u64,
}

impl Hang {
    /// Operations in flight and since when none of them has completed, where something should have come by `now`; none while
    /// all goes well.
    pub(crate) fn look(&mut self, collector: &Collector, marks: &[Marks], now: u64) -> Option<(u64, u64)> {
        let done = collector.done();
        let (known, quiet_since) = *self.done.get_or_insert((done, now));
        if known != done {
            *self = Self { done: Some((done, now)), used: collector.usages(), ..Self::default() };
            return None;
        }
        if now.saturating_sub(quiet_since) < QUIET_NS {
            return None;
        }
        if now.saturating_sub(self.looked_ns) >= LOOK_NS {
            self.looked_ns = now;
            // A worker within a call hands over nothing, but what it begins is seen.
            let flying = marks.iter().flat_map(Marks::in_flight);
            let seen =
                flying.fold((0, 0), |(count, youngest), each| (count + 1, each.start_ns.max(youngest)));
            let first_look = self.since_ns == 0;
            if seen.0 == 0 || seen != self.in_flight {
                self.in_flight = seen;
                // The first look finds what has been so since the last completion, or since the youngest began.
                self.since_ns = if first_look && seen.0 > 0 { quiet_since.max(seen.1 + 1) } else { now };
            }
        }
        let waits = self.in_flight.0 > 0 && now.saturating_sub(self.since_ns) >= SHOWN_NS;
        waits.then_some((self.in_flight.0, self.since_ns))
    }
}
