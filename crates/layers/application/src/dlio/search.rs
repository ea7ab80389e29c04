//! Search for the most accelerators that a storage feeds: doubling, then halving, with runs again where noise decides.

use layer::observations::{AcceleratorSearch, AcceleratorTry, Utilisation};
use statistics::mean_half_width;

/// Most runs of one number: a number whose first run is within noise of the limit is run again.
const RUNS_MAX: usize = 3;

/// One run of a number of accelerators.
#[derive(Clone, Copy, Debug)]
struct Run {
    accelerators: u64,
    fraction: f64,
    /// Half of the width of the interval of its steps.
    half: Option<f64>,
    limit: f64,
}

/// A search.
#[derive(Clone, Debug)]
pub(crate) struct Search {
    /// Largest number that can be tried.
    max: u64,
    /// The reason why there are no larger ones.
    max_reason: String,
    runs: Vec<Run>,
}

impl Search {
    /// A search up to `max`, beyond which nothing can be tried for this reason.
    pub(crate) fn new(max: u64, max_reason: String) -> Self {
        Self { max, max_reason, runs: Vec::new() }
    }

    /// Takes a run in.
    pub(crate) fn add(&mut self, accelerators: u64, seen: &Utilisation) {
        let half = seen.low_fraction.zip(seen.high_fraction).map(|(low, high)| (high - low) / 2.0);
        self.runs.push(Run { accelerators, fraction: seen.fraction, half, limit: seen.limit_fraction });
    }

    /// Runs so far.
    pub(crate) fn runs(&self) -> usize {
        self.runs.len()
    }

    /// Runs of this number so far.
    pub(crate) fn runs_of(&self, accelerators: u64) -> usize {
        self.runs.iter().filter(|run| run.accelerators == accelerators).count()
    }

    fn tries(&self) -> Vec<AcceleratorTry> {
        let mut numbers: Vec<u64> = Vec::new();
        for run in &self.runs {
            if !numbers.contains(&run.accelerators) {
                numbers.push(run.accelerators);
            }
        }
        let of = |number: &u64| -> Vec<Run> {
            self.runs.iter().filter(|run| run.accelerators == *number).copied().collect()
        };
        numbers.iter().map(|number| joined(&of(number))).collect()
    }

    /// Number to try next; none at the end, or before the first.
    pub(crate) fn next(&self) -> Option<u64> {
        let tries = self.tries();
        let last = self.runs.last()?.accelerators;
        if tries.iter().any(|one| one.accelerators == last && one.is_near) && self.runs_of(last) < RUNS_MAX {
            return Some(last);
        }
        let (fed, missed) = ends(&tries);
        match missed {
            None if fed == self.max => None,
            None => Some((fed * 2).min(self.max)),
            Some(missed) if missed == fed + 1 => None,
            Some(missed) => Some(u64::midpoint(fed, missed)),
        }
    }

    /// The search so far.
    pub(crate) fn so_far(&self) -> AcceleratorSearch {
        let tries = self.tries();
        let (most, missed) = ends(&tries);
        let is_ended = !self.runs.is_empty() && self.next().is_none();
        let ended = match missed {
            None => self.max_reason.clone(),
            Some(1) => "1 accelerator is below the limit".to_owned(),
            Some(missed) => format!("{missed} accelerators are below the limit"),
        };
        let surely = |is_met: bool| {
            tries.iter().filter(move |one| one.is_met == is_met && !one.is_near).map(|one| one.accelerators)
        };
        AcceleratorSearch {
            most,
            surely_fed: surely(true).max().unwrap_or(0),
            surely_not_fed: surely(false).min(),
            ended: is_ended.then_some(ended),
            tries,
        }
    }
}

/// The largest number that reached the limit, and the smallest that did not.
fn ends(tries: &[AcceleratorTry]) -> (u64, Option<u64>) {
    let of = |is_met: bool| tries.iter().filter(move |one| one.is_met == is_met).map(|one| one.accelerators);
    (of(true).max().unwrap_or(0), of(false).min())
}

/// All runs of one number as one try. Its interval is that of the steps, or that of the runs where it is wider.
fn joined(runs: &[Run]) -> AcceleratorTry {
    let count = runs.len() as f64;
    let fraction = runs.iter().map(|run| run.fraction).sum::<f64>() / count;
    let squares = runs.iter().map(|run| run.half.map(|half| half * half)).sum::<Option<f64>>();
    let of_steps = squares.map(|sum| sum.sqrt() / count);
    // Two runs alone say too little of how runs differ.
    let fractions: Vec<f64> = runs.iter().map(|run| run.fraction).collect();
    let of_runs = if runs.len() > 2 { mean_half_width(&fractions) } else { None };
    let half = of_steps.map(|half| of_runs.map_or(half, |other| half.max(other)));
    let limit = runs.first().map_or(1.0, |run| run.limit);
    AcceleratorTry {
        accelerators: runs.first().map_or(0, |run| run.accelerators),
        runs: runs.len() as u32,
        fraction,
        low_fraction: half.map(|half| (fraction - half).max(0.0)),
        high_fraction: half.map(|half| (fraction + half).min(1.0)),
        is_met: fraction >= limit,
        is_near: half.is_none_or(|half| (fraction - limit).abs() <= half),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs a search on a storage that feeds a number as `fraction` says; the numbers that were tried, and what was found.
    fn searched(max: u64, half: f64, fraction: impl Fn(u64, usize) -> f64) -> (Vec<u64>, AcceleratorSearch) {
        let mut search = Search::new(max, "no more".to_owned());
        let (mut tried, mut next) = (Vec::new(), Some(1));
        while let Some(number) = next {
            let fraction = fraction(number, search.runs_of(number));
            search.add(
                number,
                &Utilisation {
                    fraction,
                    low_fraction: Some(fraction - half),
                    high_fraction: Some(fraction + half),
                    limit_fraction: 0.9,
                    ..Utilisation::default()
                },
            );
            tried.push(number);
            assert!(tried.len() < 100);
            next = search.next();
        }
        (tried, search.so_far())
    }

    /// A storage that feeds so many, and shares itself out among more.
    fn feeds(most: u64) -> impl Fn(u64, usize) -> f64 {
        move |number, _| if number <= most { 0.99 } else { 0.85 * most as f64 / number as f64 }
    }

    #[test]
    fn every_number_is_found() {
        for most in 0..200 {
            let (tried, found) = searched(4096, 0.001, feeds(most));
            assert_eq!((found.most, found.surely_fed, found.surely_not_fed), (most, most, Some(most + 1)));
            assert!(found.ended.unwrap().ends_with("below the limit"));
            assert!(tried.len() <= 18, "{most}: {tried:?}");
        }
        assert_eq!(searched(4096, 0.001, feeds(5)).0, [1, 2, 4, 8, 6, 5]);
    }

    #[test]
    fn the_end_is_told_where_all_are_fed() {
        for (max, expected) in [(1, vec![1]), (12, vec![1, 2, 4, 8, 12])] {
            let (tried, found) = searched(max, 0.001, feeds(1000));
            assert_eq!((tried, found.most, found.surely_not_fed), (expected, max, None));
            assert_eq!(found.ended.as_deref(), Some("no more"));
        }
    }

    #[test]
    fn numbers_within_noise_are_run_again_and_told() {
        let near = |number: u64, _| match number {
            1..=4 => 0.99,
            5 => 0.905,
            _ => 0.7,
        };
        let (tried, found) = searched(64, 0.02, near);
        assert_eq!(tried, [1, 2, 4, 8, 6, 5, 5, 5]);
        assert_eq!((found.most, found.surely_fed, found.surely_not_fed), (5, 4, Some(6)));
        let five = &found.tries[5];
        assert_eq!((five.runs, five.is_met, five.is_near), (3, true, true), "{five:?}");
    }
}
