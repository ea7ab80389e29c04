//! Declared service times.

use workload::random::Random;

/// How long a simulated server works on an operation. Times are at least 1 ns.
#[derive(Clone, Debug, PartialEq)]
pub enum Service {
    /// Always the same, in nanoseconds.
    Fixed(u64),
    /// Independent and exponentially distributed.
    Exponential {
        /// Mean in nanoseconds.
        mean_ns: u64,
        /// The same seed gives the same times.
        seed: u64,
    },
    /// These times in nanoseconds, in turn, and from the first again.
    List(Vec<u64>),
    /// Changes with time: from the first number on (nanoseconds since the clock was made, ascending, the first 0) operations take
    /// the second number of nanoseconds.
    Steps(Vec<(u64, u64)>),
}

/// A service with its state.
pub(crate) struct Generator {
    service: Service,
    random: Random,
    drawn: usize,
}

impl Generator {
    /// # Panics
    /// When a service has no time, or one of 0: the simulation would not move on.
    pub(crate) fn new(service: Service) -> Self {
        let is_valid = match &service {
            Service::Fixed(ns) => *ns > 0,
            Service::Exponential { mean_ns, .. } => *mean_ns > 0,
            Service::List(times) => !times.is_empty() && times.iter().all(|&ns| ns > 0),
            Service::Steps(steps) => {
                steps.first().is_some_and(|step| step.0 == 0)
                    && steps.is_sorted_by_key(|step| step.0)
                    && steps.iter().all(|step| step.1 > 0)
            }
        };
        assert!(is_valid, "{service:?} has no time, or one of 0");
        let seed = if let Service::Exponential { seed, .. } = service { seed } else { 0 };
        Self { service, random: Random::new(seed), drawn: 0 }
    }

    /// The time of an operation whose service begins `at_ns` after the clock was made.
    pub(crate) fn next_ns(&mut self, at_ns: u64) -> u64 {
        self.drawn += 1;
        match &self.service {
            Service::Fixed(ns) => *ns,
            Service::Exponential { mean_ns, .. } => {
                (-self.random.unit_above_zero().ln() * *mean_ns as f64).ceil().max(1.0) as u64
            }
            Service::List(times) => times[(self.drawn - 1) % times.len()],
            Service::Steps(steps) => steps[steps.partition_point(|step| step.0 <= at_ns) - 1].1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_as_declared() {
        let draw = |service, at: &[u64]| -> Vec<u64> {
            let mut generator = Generator::new(service);
            at.iter().map(|&at_ns| generator.next_ns(at_ns)).collect()
        };
        assert_eq!(draw(Service::Fixed(5), &[0, 9]), [5, 5]);
        assert_eq!(draw(Service::List(vec![1, 2, 3]), &[0; 5]), [1, 2, 3, 1, 2]);
        assert_eq!(draw(Service::Steps(vec![(0, 7), (100, 8)]), &[0, 99, 100, 1000]), [7, 7, 8, 8]);
        let drawn = draw(Service::Exponential { mean_ns: 1_000_000, seed: 3 }, &[0; 100_000]);
        let mean = drawn.iter().sum::<u64>() as f64 / 1e5;
        // The mean of 100 000 has a standard deviation of 0.32 %.
        assert!((mean / 1e6 - 1.0).abs() < 0.013, "{mean}");
    }

    #[test]
    #[should_panic(expected = "has no time")]
    fn a_service_without_time_is_refused() {
        let _ = Generator::new(Service::List(vec![1, 0]));
    }
}
