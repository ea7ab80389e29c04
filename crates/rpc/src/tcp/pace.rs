//! Limits on how long a peer may take.

/// A message gets the stall limit once, and again for so many bytes of it: a peer that sends or reads a byte now and then keeps
/// nothing for long.
const PACE_BYTES: u64 = 1 << 20;

/// How one direction gets on while something must come or leave.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Pace {
    /// Since when the limit counts; 0 while nothing must.
    pub(super) since_ns: u64,
    /// Bytes moved since.
    bytes: u64,
}

impl Pace {
    /// Notes what has moved until `now_ns`, and whether a message became whole.
    pub(super) fn note(&mut self, now_ns: u64, must: bool, moved_bytes: u64, is_whole: bool) {
        self.bytes += moved_bytes;
        if !must {
            *self = Self::default();
        } else if self.since_ns == 0 || is_whole || self.bytes >= PACE_BYTES {
            *self = Self { since_ns: now_ns.max(1), bytes: 0 };
        }
    }

    /// Takes time off in which nobody looked at what the peer did.
    pub(super) fn pardon(&mut self, away_ns: u64) {
        if self.since_ns != 0 {
            self.since_ns = self.since_ns.saturating_add(away_ns);
        }
    }

    /// Whether it has taken too long.
    pub(super) fn is_over(self, now_ns: u64, stall_ns_max: u64) -> bool {
        self.since_ns != 0 && now_ns.saturating_sub(self.since_ns) > stall_ns_max
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT_NS: u64 = 1000;

    #[test]
    fn bytes_now_and_then_are_no_progress() {
        let mut pace = Pace::default();
        for now_ns in (1..=LIMIT_NS + 1).step_by(100) {
            pace.note(now_ns, true, 1, false);
            assert!(!pace.is_over(now_ns, LIMIT_NS));
        }
        assert!(pace.is_over(LIMIT_NS + 2, LIMIT_NS));
        // Whole messages are, and so is enough of a long one.
        pace.note(LIMIT_NS, true, 1, true);
        assert!(!pace.is_over(2 * LIMIT_NS, LIMIT_NS));
        pace.note(2 * LIMIT_NS, true, PACE_BYTES, false);
        assert!(!pace.is_over(3 * LIMIT_NS, LIMIT_NS) && pace.is_over(3 * LIMIT_NS + 1, LIMIT_NS));
        pace.note(5 * LIMIT_NS, false, 0, false);
        assert!(!pace.is_over(u64::MAX, LIMIT_NS));
    }

    #[test]
    fn nobody_pays_for_the_time_in_which_nobody_looked() {
        let mut pace = Pace::default();
        pace.pardon(LIMIT_NS);
        assert_eq!(pace, Pace::default(), "nothing must come");
        pace.note(1, true, 1, false);
        pace.pardon(5 * LIMIT_NS);
        assert!(!pace.is_over(6 * LIMIT_NS + 1, LIMIT_NS));
        assert!(pace.is_over(6 * LIMIT_NS + 2, LIMIT_NS), "its own time counts on");
    }
}
