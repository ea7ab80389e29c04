use super::*;
use proptest::prelude::*;

const RATES: [f64; 5] = [1e3, 1e5, 3e5, 1e6, 5e6];

fn arrivals(spacing: Spacing, rate: f64, worker: u32, workers: u32) -> Arrivals {
    Arrivals::new(spacing, Rate::new(rate).unwrap(), worker, workers, 42).unwrap()
}

#[test]
fn constant_starts_are_exact_without_drift() {
    for rate in [1e3, 1e5, 3e5, 1e6, 5e6, 7e6, 123_457.0, 3.0, 999_999_937.0] {
        let mut starts = arrivals(Spacing::Constant, rate, 0, 1);
        for ordinal in 0..200_000u128 {
            let exact_ns = ((ordinal * 2_000_000_000 / rate as u128).div_ceil(2)) as u64;
            let start_ns = starts.next();
            assert!(start_ns.abs_diff(exact_ns) <= 1, "{rate}/s, {ordinal}: {start_ns} for {exact_ns}");
        }
    }
}

/// A year of 300,000 a second, without walking it: the gap's error times the number of gaps.
#[test]
fn the_gap_is_exact_to_a_year() {
    let gap = fixed_quotient(1e9, 3e5);
    let exact_thirds = 3 * gap as i128 - (10_000i128 << 64);
    let year = 3e5 * 86400.0 * 365.0;
    assert!((exact_thirds as f64 / 3.0 / ONE as f64 * year).abs() < 1e-3, "{exact_thirds}");
}

#[test]
fn workers_together_are_evenly_spaced() {
    for workers in [1u32, 2, 3, 4, 7, 64] {
        for rate in [1e3, 3e5, 5e6] {
            let mut all = Vec::new();
            for worker in 0..workers {
                let mut starts = arrivals(Spacing::Constant, rate, worker, workers);
                all.extend((0..1000).map(|_| starts.next()));
            }
            all.sort_unstable();
            for (ordinal, &start_ns) in all.iter().enumerate() {
                let exact_ns = ordinal as f64 * 1e9 / rate;
                assert!(
                    (start_ns as f64 - exact_ns).abs() <= 1.0,
                    "{workers} at {rate}/s: {ordinal} at {start_ns}"
                );
            }
        }
    }
}

#[test]
fn poisson_means_are_right() {
    for rate in RATES {
        let mut starts = arrivals(Spacing::Poisson, rate, 0, 1);
        let draws = 1_000_000;
        let mut last_ns = 0;
        for _ in 0..draws {
            let start_ns = starts.next();
            assert!(start_ns >= last_ns);
            last_ns = start_ns;
        }
        let achieved = f64::from(draws) * 1e9 / last_ns as f64;
        // One standard error of a million exponential gaps is 0.1 %; this seed's draws lie within it.
        assert!((achieved / rate - 1.0).abs() < 1e-3, "{achieved} for {rate}");
    }
}

/// Means over many seeds: the error shrinks with the root of the number of draws, so the mean has no bias.
#[test]
fn poisson_means_have_no_bias() {
    let (seeds, draws) = (100, 100_000);
    let mut total_ns = 0.0;
    for seed in 0..seeds {
        let rate = Rate::new(5e6).unwrap();
        let mut starts = Arrivals::new(Spacing::Poisson, rate, 0, 1, seed).unwrap();
        total_ns += (0..draws).map(|_| starts.next()).last().unwrap() as f64;
    }
    let error = total_ns / (seeds as f64 * f64::from(draws)) / 200.0 - 1.0;
    assert!(error.abs() < 3.0 / (seeds as f64 * f64::from(draws)).sqrt(), "{error}");
}

/// Kolmogorov-Smirnov: the greatest distance between the gaps' distribution and the exponential one.
#[test]
fn poisson_gaps_are_exponential() {
    for rate in RATES {
        for workers in [1, 4] {
            let mut starts = arrivals(Spacing::Poisson, rate, workers - 1, workers);
            let mean_ns = 1e9 * f64::from(workers) / rate;
            let draws = 100_000;
            let mut previous_ns = 0;
            let mut gaps: Vec<u64> = Vec::new();
            for _ in 0..draws {
                let start_ns = starts.next();
                gaps.push(start_ns - previous_ns);
                previous_ns = start_ns;
            }
            gaps.sort_unstable();
            let mut distance = 0f64;
            for (ordinal, &gap) in gaps.iter().enumerate() {
                let expected = 1.0 - (-(gap as f64) / mean_ns).exp();
                let below = ordinal as f64 / f64::from(draws);
                distance = distance.max((expected - below).abs());
            }
            // 1 % significance, and what whole nanoseconds add.
            let limit = 1.63 / f64::from(draws).sqrt() + 1.0 / mean_ns;
            assert!(distance < limit, "{rate}/s of {workers}: {distance} above {limit}");
        }
    }
}

/// Counts in equal intervals have a variance equal to their mean, also for several workers together.
#[test]
fn poisson_counts_have_the_variance_of_their_mean() {
    let (workers, intervals, interval_ns) = (4u32, 5000usize, 100_000u64);
    let mut counts = vec![0f64; intervals];
    for worker in 0..workers {
        let mut starts = arrivals(Spacing::Poisson, 3e5, worker, workers);
        while let Some(count) = counts.get_mut((starts.next() / interval_ns) as usize) {
            *count += 1.0;
        }
    }
    let mean = counts.iter().sum::<f64>() / intervals as f64;
    let variance = counts.iter().map(|count| (count - mean).powi(2)).sum::<f64>() / intervals as f64;
    assert!((mean / 30.0 - 1.0).abs() < 4.0 / (30.0 * intervals as f64).sqrt(), "mean {mean}");
    assert!((variance / mean - 1.0).abs() < 4.0 * (2.0 / intervals as f64).sqrt(), "{variance} over {mean}");
}

#[test]
fn seeds_and_workers_give_different_streams() {
    let stream = |seed, worker| {
        let rate = Rate::new(1e6).unwrap();
        let mut starts = Arrivals::new(Spacing::Poisson, rate, worker, 2, seed).unwrap();
        (0..10).map(|_| starts.next()).collect::<Vec<_>>()
    };
    assert_eq!(stream(1, 0), stream(1, 0));
    assert_ne!(stream(1, 0), stream(2, 0));
    assert_ne!(stream(1, 0), stream(1, 1));
}

#[test]
fn refusals() {
    let rate = Rate::new(1.0).unwrap();
    assert!(Arrivals::new(Spacing::Constant, rate, 1, 1, 0).is_err());
    assert!(Arrivals::new(Spacing::Constant, rate, 0, 0, 0).is_err());
    assert!(Arrivals::new(Spacing::Constant, Rate::new(1e-15).unwrap(), 0, 1, 0).is_err());
    assert_eq!(
        "uniform".parse::<Spacing>().unwrap_err().to_string(),
        "\"uniform\" is not an arrival spacing: use constant or poisson"
    );
    assert_eq!("poisson".parse::<Spacing>().unwrap().to_string(), "poisson");
}

proptest! {
    #[test]
    fn any_rate_ascends(rate in 1e-9..1e12f64, worker in 0u32..8, poisson: bool) {
        let spacing = if poisson { Spacing::Poisson } else { Spacing::Constant };
        let mut starts = arrivals(spacing, rate, worker, 8);
        let mut last = 0;
        for _ in 0..100 {
            let start = starts.next();
            prop_assert!(start >= last);
            last = start;
        }
    }
}

#[test]
fn starts_before_an_end_are_counted() {
    let arrivals = |spacing, rate: f64| Arrivals::new(spacing, Rate::new(rate).unwrap(), 0, 1, 7).unwrap();
    // Starts at 0, 100, 200, ... ns.
    let mut constant = arrivals(Spacing::Constant, 1e7);
    assert_eq!(constant.count_until(0), 0);
    assert_eq!((constant.next(), constant.count_until(1000)), (0, 9));
    assert_eq!((constant.count_until(1000), constant.next()), (0, 1000));
    // 0.2 ns apart and rounded to the nearest nanosecond: those of the last half nanosecond belong to the end.
    assert_eq!(arrivals(Spacing::Constant, 5e9).count_until(1_000_000_000_000), 4_999_999_999_998);
    let by_hand = |mut poisson: Arrivals| (0..).take_while(|_| poisson.next() < 1_000_000).count() as u64;
    assert_eq!(
        arrivals(Spacing::Poisson, 1e7).count_until(1_000_000),
        by_hand(arrivals(Spacing::Poisson, 1e7))
    );
    let many = arrivals(Spacing::Poisson, 1e9).count_until(10_000_000_000) as f64;
    assert!((many / 1e10 - 1.0).abs() < 0.001, "{many}");
}

#[test]
fn what_is_due_by_a_time_is_what_the_workers_draw() {
    let times = [0, 5_000_000, 5_000_001, 20_000_000, 100_000_000];
    for spacing in [Spacing::Constant, Spacing::Poisson] {
        for (workers, since_ns) in [(1, 0), (4, 0), (3, 7_000_000)] {
            let due = due_before(spacing, Rate::new(1e5).unwrap(), workers, 42, since_ns, &times).unwrap();
            let by_hand = times.map(|end_ns| {
                let of_worker = |worker| {
                    let mut starts = arrivals(spacing, 1e5, worker, workers);
                    std::iter::repeat_with(|| starts.next())
                        .take_while(|&start_ns| start_ns < end_ns)
                        .filter(|&start_ns| start_ns >= since_ns)
                        .count() as u64
                };
                (0..workers).map(of_worker).sum::<u64>()
            });
            assert_eq!(due, by_hand, "{spacing} {workers} {since_ns}");
        }
    }
    // Too many to be drawn.
    let due = due_before(Spacing::Poisson, Rate::new(1e9).unwrap(), 2, 1, 1_000_000_000, &[3_000_000_000]);
    assert_eq!(due.unwrap(), [2_000_000_000]);
}
