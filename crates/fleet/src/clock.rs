//! Clocks of several hosts: how far apart they are, and how well that is known.

use std::time::{SystemTime, UNIX_EPOCH};

/// Now, in nanoseconds since 1970.
pub(crate) fn unix_ns() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

/// One question for the time: when it left here, when it came there, when the answer left there, when it came here;
/// each by the clock of the place, nanoseconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exchange {
    /// When it left here.
    pub sent: u64,
    /// When it came there, by the clock of the place.
    pub received_there: u64,
    /// When the answer left there, by the clock of the place.
    pub sent_there: u64,
    /// When the answer came here.
    pub received: u64,
}

/// A host's clock against that of the coordinator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockEstimate {
    /// How far the host's clock is ahead, nanoseconds.
    pub offset_ns: i64,
    /// The true offset lies at most this far from it, nanoseconds: half the time that a message was under way.
    pub uncertainty_ns: u64,
    /// Shortest time to the host and back, nanoseconds, without its own time in between.
    pub round_trip_ns: u64,
}

impl ClockEstimate {
    /// From the exchange that was under way for the shortest time (RFC 5905, section 8 and 10: offset and delay, and
    /// the least delayed of the latest samples).
    #[must_use]
    pub fn of(exchanges: &[Exchange]) -> Option<Self> {
        exchanges.iter().map(Self::of_one).min_by_key(|estimate| estimate.round_trip_ns)
    }

    fn of_one(exchange: &Exchange) -> Self {
        let difference = |a: u64, b: u64| i128::from(a) - i128::from(b);
        let there = difference(exchange.received_there, exchange.sent);
        let back = difference(exchange.sent_there, exchange.received);
        let spent = difference(exchange.sent_there, exchange.received_there).max(0);
        let round_trip = (difference(exchange.received, exchange.sent) - spent).max(0);
        Self {
            offset_ns: i64::try_from(i128::midpoint(there, back)).unwrap_or(i64::MAX),
            uncertainty_ns: u64::try_from((round_trip + 1) / 2).unwrap_or(u64::MAX),
            round_trip_ns: u64::try_from(round_trip).unwrap_or(u64::MAX),
        }
    }

    /// A time of the host's clock by that of the coordinator.
    pub(crate) fn here(&self, unix_ns_there: u64) -> i128 {
        i128::from(unix_ns_there) - i128::from(self.offset_ns)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_true_offset_lies_within_the_uncertainty(
            offset in -1_000_000_000_i64..1_000_000_000,
            trips in prop::collection::vec((0_u64..5_000_000, 0_u64..5_000_000, 0_u64..1_000_000), 1..9),
        ) {
            let base = 1_700_000_000_000_000_000_u64;
            let exchanges: Vec<_> = trips
                .iter()
                .map(|&(there, back, spent)| {
                    let received_there = (base + there).saturating_add_signed(offset);
                    Exchange {
                        sent: base,
                        received_there,
                        sent_there: received_there + spent,
                        received: base + there + spent + back,
                    }
                })
                .collect();
            let estimate = ClockEstimate::of(&exchanges).expect("one exchange at least");
            prop_assert!(estimate.offset_ns.abs_diff(offset) <= estimate.uncertainty_ns + 1);
            let shortest = trips.iter().map(|(there, back, _)| there + back).min().expect("one");
            prop_assert_eq!(estimate.round_trip_ns, shortest);
        }
    }

    #[test]
    fn a_clock_that_was_set_back_in_between_gives_no_panic() {
        let exchange = Exchange { sent: 10, received_there: u64::MAX, sent_there: 0, received: 5 };
        assert_eq!(ClockEstimate::of(&[exchange]).expect("one").round_trip_ns, 0);
        assert_eq!(ClockEstimate::of(&[]), None);
    }
}
