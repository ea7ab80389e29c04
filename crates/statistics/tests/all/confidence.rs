use statistics::{estimate_mean, estimate_rate};

use crate::random::Random;

/// Share of `trials` in which the interval holds the true mean of 100.
fn coverage(rho: f64, count: usize, trials: u64) -> f64 {
    let held = (0..trials).filter(|trial| {
        let mut random = Random::new(1000 + trial);
        let values: Vec<f64> = random.autoregression(rho, count).iter().map(|x| 100.0 + 5.0 * x).collect();
        let estimate = estimate_mean(&values).unwrap();
        estimate.low <= 100.0 && 100.0 <= estimate.high
    });
    held.count() as f64 / trials as f64
}

#[test]
fn intervals_cover_the_mean_of_autocorrelated_data() {
    for rho in [0.0, 0.5, 0.9] {
        for count in [100, 300, 512] {
            let share = coverage(rho, count, 1000);
            assert!((0.90..=0.995).contains(&share), "rho {rho}, {count} values: covered {share}");
        }
    }
}

#[test]
fn intervals_are_no_wider_than_they_need_be() {
    // Independent values: 1.96 sigma / sqrt(n); correlated at 0.5: sqrt(3) times that.
    for (rho, factor) in [(0.0, 1.0), (0.5, 3_f64.sqrt())] {
        let widths: Vec<f64> = (0..200)
            .map(|seed| {
                let values = Random::new(seed).autoregression(rho, 400);
                let estimate = estimate_mean(&values).unwrap();
                (estimate.high - estimate.low) / 2.0
            })
            .collect();
        let mean = widths.iter().sum::<f64>() / widths.len() as f64;
        let ideal = 1.96 * factor / 20.0;
        assert!((0.9 * ideal..1.35 * ideal).contains(&mean), "rho {rho}: {mean} against {ideal}");
    }
}

#[test]
fn effective_samples_follow_the_correlation() {
    let values = Random::new(7).autoregression(0.9, 20_000);
    let estimate = estimate_mean(&values).unwrap();
    assert!((estimate.lag1_autocorrelation - 0.9).abs() < 0.02, "{estimate:?}");
    // n (1 - rho) / (1 + rho) = 1053.
    assert!((600.0..1700.0).contains(&estimate.effective_samples), "{estimate:?}");
    let independent = estimate_mean(&Random::new(7).autoregression(0.0, 20_000)).unwrap();
    assert!(independent.effective_samples > 18_000.0, "{independent:?}");
}

#[test]
fn equal_values_leave_no_doubt() {
    let estimate = estimate_mean(&[250.1; 40]).unwrap();
    assert!((estimate.low - 250.1).abs() < 1e-9 && (estimate.high - 250.1).abs() < 1e-9, "{estimate:?}");
    assert_eq!(estimate.lag1_autocorrelation, 0.0);
}

#[test]
fn too_little_gives_no_interval() {
    assert_eq!(estimate_mean(&[1.0, 2.0, 3.0]), None);
    assert_eq!(estimate_mean(&[1.0, 2.0, 3.0, f64::NAN]), None);
    assert_eq!(estimate_rate(&[1.0; 5], &[1.0; 4]), None);
    assert_eq!(estimate_rate(&[1.0; 5], &[0.0; 5]), None);
}

#[test]
fn a_rate_is_all_amounts_over_all_time() {
    let amounts = [100.0, 102.0, 98.0, 100.0, 101.0, 9.0];
    let seconds = [1.0, 1.0, 1.0, 1.0, 1.0, 0.1];
    let estimate = estimate_rate(&amounts, &seconds).unwrap();
    assert!((estimate.mean - 100.0).abs() < 1e-9, "{estimate:?}");
    assert!(estimate.low < 100.0 && estimate.high > 100.0);
    assert_eq!(estimate.batches, 5);
}
