//! How often a view may draw.

use std::time::Instant;

/// Nanoseconds since some fixed moment; never goes back.
pub(crate) type Clock = Box<dyn FnMut() -> u64>;

/// The clock of the machine, from now on.
pub(crate) fn monotonic_clock() -> Clock {
    let start = Instant::now();
    Box::new(move || u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX))
}

/// Lets one event through per interval.
#[derive(Debug)]
pub(crate) struct Throttle {
    interval_ns: u64,
    passed_at_ns: Option<u64>,
}

impl Throttle {
    /// Lets the first event through at once, later ones at least `interval_ns` apart.
    pub(crate) fn new(interval_ns: u64) -> Self {
        Self { interval_ns, passed_at_ns: None }
    }

    /// Whether an event at `now_ns` may pass; if so, the interval begins anew.
    pub(crate) fn pass(&mut self, now_ns: u64) -> bool {
        let due = self.passed_at_ns.is_none_or(|at_ns| now_ns.saturating_sub(at_ns) >= self.interval_ns);
        if due {
            self.passed_at_ns = Some(now_ns);
        }
        due
    }

    /// Begins the interval at `now_ns`, as if an event had passed.
    pub(crate) fn restart(&mut self, now_ns: u64) {
        self.passed_at_ns = Some(now_ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn at_most_four_of_a_thousand_events_a_second_pass() {
        let mut throttle = Throttle::new(250_000_000);
        let passed: Vec<u64> =
            (0..2_000).map(|ms| ms * 1_000_000).filter(|now_ns| throttle.pass(*now_ns)).collect();
        let expected: Vec<u64> = (0..8).map(|quarter| quarter * 250_000_000).collect();
        assert_eq!(passed, expected);
    }

    #[test]
    fn a_restart_holds_back_for_one_interval() {
        let mut throttle = Throttle::new(10);
        throttle.restart(100);
        assert!(!throttle.pass(109));
        assert!(throttle.pass(110));
        assert!(!throttle.pass(110));
    }

    #[test]
    fn events_rarer_than_the_interval_all_pass() {
        let mut throttle = Throttle::new(250);
        assert!((0..10).all(|step| throttle.pass(step * 1_000)));
    }
}
