//! Arrivals of an open loop that were due within the window and never left, because all slots were taken.

use statistics::{Histogram, SparseHistogram};
use workload::arrival::Arrivals;

/// Due times told apart; of more arrivals, each stands for several that are due one after the other.
const POINTS_MAX: u64 = 10_000;

/// Arrivals from one on that never became operations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Unserved {
    /// How many.
    pub(crate) count: u64,
    /// When the first of them was due, from the opening of the window, in nanoseconds.
    first_ns: u64,
    /// When the window closed on them.
    until_ns: u64,
}

impl Unserved {
    /// Those from the one on that was due at `due`, up to the end of the `window`, which is from one time to another.
    pub(crate) fn from(arrivals: &mut Arrivals, begin_ns: u64, due: u64, window: (u64, u64)) -> Self {
        let (open_ns, until_ns) = window;
        if due >= until_ns || until_ns <= open_ns {
            return Self::default();
        }
        let is_within = due >= open_ns;
        if !is_within {
            arrivals.count_until(open_ns - begin_ns);
        }
        let count = u64::from(is_within) + arrivals.count_until(until_ns - begin_ns);
        Self { count, first_ns: due.max(open_ns) - open_ns, until_ns: until_ns - open_ns }
    }

    /// How long they had waited when the window closed, by the interval of `interval_ns` in which they were due and by class: start of
    /// the interval, class, times. They are taken as evenly spread from the first on, and dealt out to the classes by `weights`.
    pub(crate) fn waits(&self, interval_ns: u64, weights: &[u64]) -> Vec<(u64, usize, SparseHistogram)> {
        let points = self.count.min(POINTS_MAX);
        let span_ns = u128::from(self.until_ns - self.first_ns);
        let mut dealer = Dealer::new(weights);
        let mut waits = Vec::new();
        let mut row: Vec<Histogram> = weights.iter().map(|_| Histogram::new()).collect();
        let mut row_ns = self.first_ns / interval_ns * interval_ns;
        for point in 0..points {
            let at = |place: u64| (u128::from(self.count) * u128::from(place) / u128::from(points)) as u64;
            let (from, to) = (at(point), at(point + 1));
            let middle = u128::from(from + (to - from - 1) / 2);
            let due_ns = self.first_ns + (span_ns * middle / u128::from(self.count)) as u64;
            let start_ns = due_ns / interval_ns * interval_ns;
            if start_ns != row_ns {
                hand_on(&mut row, row_ns, &mut waits);
                row_ns = start_ns;
            }
            dealer.deal(to - from, |class, count| row[class].record_n(self.until_ns - due_ns, count));
        }
        hand_on(&mut row, row_ns, &mut waits);
        waits
    }
}

/// Moves what an interval has into the list.
fn hand_on(row: &mut [Histogram], start_ns: u64, waits: &mut Vec<(u64, usize, SparseHistogram)>) {
    for (class, histogram) in row.iter_mut().enumerate().filter(|(_, histogram)| !histogram.is_empty()) {
        waits.push((start_ns, class, SparseHistogram::from(&*histogram)));
        histogram.clear();
    }
}

/// Deals counts out by weights; what is left of one deal goes into the next.
struct Dealer {
    shares: Vec<f64>,
    owed: Vec<f64>,
}

impl Dealer {
    fn new(weights: &[u64]) -> Self {
        let all: u64 = weights.iter().sum();
        let share =
            |weight: &u64| if all == 0 { 1.0 / weights.len() as f64 } else { *weight as f64 / all as f64 };
        Self { shares: weights.iter().map(share).collect(), owed: vec![0.0; weights.len()] }
    }

    fn deal(&mut self, count: u64, mut give: impl FnMut(usize, u64)) {
        for (owed, share) in self.owed.iter_mut().zip(&self.shares) {
            *owed += share * count as f64;
        }
        let mut left = count;
        while left > 0 {
            let most = self.owed.iter().enumerate().max_by(|one, other| one.1.total_cmp(other.1));
            let Some((class, owed)) = most else { return };
            let part = (*owed as u64).clamp(1, left);
            self.owed[class] -= part as f64;
            left -= part;
            give(class, part);
        }
    }
}

#[cfg(test)]
mod tests {
    use units::Rate;
    use workload::arrival::Spacing;

    use super::*;

    #[test]
    fn waits_are_those_of_each_arrival() {
        let mut arrivals = Arrivals::new(Spacing::Constant, Rate::new(1000.0).unwrap(), 0, 1, 1).unwrap();
        let due = std::iter::repeat_with(|| arrivals.next()).nth(100).unwrap();
        let unserved = Unserved::from(&mut arrivals, 0, due, (0, 1_000_000_000));
        assert_eq!(unserved.count, 900);
        let waits = unserved.waits(500_000_000, &[1, 3]);
        let told: Vec<_> =
            waits.iter().map(|(at_ns, class, waits)| (*at_ns, *class, waits.count())).collect();
        assert_eq!(told, [(0, 0, 100), (0, 1, 300), (500_000_000, 0, 125), (500_000_000, 1, 375)]);
        let longest = waits.iter().filter_map(|(_, _, waits)| waits.max_ns()).max();
        let shortest = waits.iter().filter_map(|(_, _, waits)| waits.min_ns()).min();
        assert_eq!((longest, shortest), (Some(900_000_000), Some(1_000_000)));
    }

    #[test]
    fn very_many_are_taken_together_and_none_is_lost() {
        let mut arrivals = Arrivals::new(Spacing::Poisson, Rate::new(1e6).unwrap(), 0, 1, 1).unwrap();
        let due = arrivals.next();
        let unserved = Unserved::from(&mut arrivals, 0, due, (0, 1_000_000_000));
        let waits = unserved.waits(100_000_000, &[0]);
        assert_eq!(waits.iter().map(|(_, _, waits)| waits.count()).sum::<u64>(), unserved.count);
        let mean_ns =
            waits.iter().map(|(_, _, waits)| waits.sum_ns()).sum::<u128>() as f64 / unserved.count as f64;
        assert!((mean_ns / 5e8 - 1.0).abs() < 0.01, "{mean_ns}");
    }
}
