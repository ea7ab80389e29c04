//! Operations that hang: their number grows while the rate of the others stays as it is.

use crate::histogram::Histogram;
use crate::series::IntervalPoint;

/// Fewest operations that hang: one is no growth.
const HANGING_MIN: u64 = 2;
/// Share of the operations in flight below which what hangs does not matter.
const IN_FLIGHT_SHARE_MAX: f64 = 0.05;

/// Operations that had not ended at the end of a window, by when they began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hanging {
    /// Those that began in the first third of the window.
    pub first_third: u64,
    /// Those that began in the second third.
    pub second_third: u64,
}

impl Hanging {
    /// All of them.
    #[must_use]
    pub fn operations(&self) -> u64 {
        self.first_third + self.second_third
    }
}

/// Operations that hang, where their number grows over the window (nanoseconds from the start of the phase, as `points`) of which
/// `in_flight` is the mean number of operations in flight; none where it does not.
///
/// An operation hangs here where it had not ended by the end of the window though it began in its first two thirds. Where operations of
/// both thirds hang, two at least, and they are more than 5 % of what is in flight, every next part of the window adds to them: the rate
/// that the others give is not one that lasts. What begins to hang in the last third is not seen.
#[must_use]
pub fn find_hanging(
    points: &[IntervalPoint],
    (start_ns, end_ns): (u64, u64),
    in_flight: f64,
) -> Option<Hanging> {
    let third_ns = end_ns.saturating_sub(start_ns) / 3;
    let of_third = |number: u64| {
        let (from_ns, to_ns) = (start_ns + number * third_ns, start_ns + (number + 1) * third_ns);
        let within = points.iter().filter(|point| point.start_ns >= from_ns && point.end_ns <= to_ns);
        within.map(|point| longer_than(point, end_ns - point.start_ns)).sum()
    };
    let hanging = Hanging { first_third: of_third(0), second_third: of_third(1) };
    let grows = hanging.first_third > 0 && hanging.second_third > 0;
    let matters =
        hanging.operations() >= HANGING_MIN && hanging.operations() as f64 > IN_FLIGHT_SHARE_MAX * in_flight;
    (grows && matters).then_some(hanging)
}

/// Operations of an interval that took longer than this.
fn longer_than(point: &IntervalPoint, ns: u64) -> u64 {
    if point.classes.iter().all(|class| class.latency.max_ns().is_none_or(|max_ns| max_ns <= ns)) {
        return 0;
    }
    let mut latencies = Histogram::new();
    point.classes.iter().for_each(|class| latencies.merge_sparse(&class.latency));
    latencies.buckets().filter(|bucket| bucket.low_ns > ns).map(|bucket| bucket.count).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::histogram::SparseHistogram;
    use crate::series::ClassPoint;

    const MS: u64 = 1_000_000;

    /// A window of 3 s in intervals of 100 ms with 100 operations of 1 ms each, and so many that hang, by interval.
    fn found(hanging: &[(usize, u64)], in_flight: f64) -> Option<Hanging> {
        let point = |number: usize| {
            let mut latency = Histogram::new();
            latency.record_n(MS, 100);
            let hangs = hanging.iter().filter(|(at, _)| *at == number).map(|(_, count)| count).sum();
            latency.record_n(4000 * MS, hangs);
            let latency = SparseHistogram::from(&latency);
            IntervalPoint {
                start_ns: number as u64 * 100 * MS,
                end_ns: (number as u64 + 1) * 100 * MS,
                classes: vec![ClassPoint { operations: 100, latency, ..ClassPoint::default() }],
                in_flight_ns: None,
            }
        };
        find_hanging(&(0..30).map(point).collect::<Vec<_>>(), (0, 3000 * MS), in_flight)
    }

    #[test]
    fn what_hangs_in_both_thirds_grows() {
        let hanging = Hanging { first_third: 1, second_third: 2 };
        assert_eq!(found(&[(3, 1), (12, 1), (19, 1), (28, 5)], 8.0), Some(hanging));
    }

    #[test]
    fn what_hangs_once_or_is_little_does_not() {
        assert_eq!(found(&[], 1.0), None);
        assert_eq!(found(&[(3, 4)], 8.0), None, "it has hung since: it grows no more");
        assert_eq!(found(&[(12, 1)], 8.0), None);
        assert_eq!(found(&[(25, 9)], 8.0), None, "in flight at the end");
        assert_eq!(found(&[(3, 1), (12, 1)], 64.0), None, "2 of 64");
    }
}
