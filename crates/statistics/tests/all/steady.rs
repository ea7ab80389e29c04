use proptest::prelude::*;
use statistics::{Steady, SteadyReason, find_steady};

use crate::random::Random;

const LEVEL: f64 = 10_000.0;

/// `level(at)` times 10000 with normal noise of `noise` (a fraction) and lag-1 correlation `rho`.
fn series(seed: u64, count: usize, noise: f64, rho: f64, level: impl Fn(usize) -> f64) -> Vec<f64> {
    let shaken = Random::new(seed).autoregression(rho, count);
    shaken.iter().enumerate().map(|(at, x)| LEVEL * (level(at) + noise * x)).collect()
}

/// How many of the trials have the property.
fn count_of(trials: u64, data: impl Fn(u64) -> Vec<f64>, property: impl Fn(&Steady) -> bool) -> usize {
    (0..trials).filter(|seed| property(&find_steady(&data(5000 + seed)))).count()
}

/// How many of 200 trials have the property.
fn trials(data: impl Fn(u64) -> Vec<f64>, property: impl Fn(&Steady) -> bool) -> usize {
    count_of(200, data, property)
}

#[test]
fn flat_noise_is_steady_and_hardly_cut() {
    for (count, noise, rho) in
        [(20, 0.05, 0.0), (60, 0.02, 0.0), (200, 0.1, 0.0), (200, 0.05, 0.5), (500, 0.05, 0.8)]
    {
        let flat = |seed| series(seed, count, noise, rho, |_| 1.0);
        // About 1 % for each of the tests, and 1 % for the cut.
        let uncut = count_of(1000, flat, |steady| steady.is_steady && steady.begins_at == 0);
        assert!(uncut >= 950, "{count} values, noise {noise}, rho {rho}: {uncut} of 1000 uncut");
        let steady = count_of(1000, flat, |steady| steady.is_steady);
        assert!(steady >= 970, "{count} values, noise {noise}, rho {rho}: {steady} of 1000 steady");
    }
}

#[test]
fn an_exponential_start_is_cut_where_it_has_died_away() {
    for (count, tau) in [(100, 5.0), (200, 10.0), (500, 20.0)] {
        let data = |seed| series(seed, count, 0.01, 0.0, |at| 1.0 - 0.8 * (-(at as f64) / tau).exp());
        // At 2 tau 11 % is missing, at 7 tau less than 0.1 %.
        let (first, last) = ((2.0 * tau) as usize, (7.0 * tau) as usize);
        let found = trials(data, |steady| steady.is_steady && (first..=last).contains(&steady.begins_at));
        assert!(found >= 195, "tau {tau}: {found} of 200");
    }
}

#[test]
fn a_step_is_cut_where_it_is() {
    for (count, step) in [(40, 8), (100, 20), (300, 60)] {
        for before in [0.4, 2.5] {
            let data = |seed| series(seed, count, 0.03, 0.0, |at| if at < step { before } else { 1.0 });
            let found =
                trials(data, |steady| steady.is_steady && (step..=step + 5).contains(&steady.begins_at));
            assert!(found >= 190, "step at {step} of {count} from {before}: {found} of 200");
        }
    }
}

#[test]
fn one_slow_first_interval_is_cut() {
    let data = |seed| series(seed, 60, 0.02, 0.0, |at| if at == 0 { 0.3 } else { 1.0 });
    let found = trials(data, |steady| steady.is_steady && (1..=6).contains(&steady.begins_at));
    assert!(found >= 190, "{found} of 200");
}

#[test]
fn a_ramp_is_never_steady() {
    for (count, noise, rho) in [(20, 0.02, 0.0), (100, 0.05, 0.0), (400, 0.05, 0.5)] {
        let data = |seed| series(seed, count, noise, rho, |at| 0.6 + 0.8 * at as f64 / count as f64);
        let unsteady = trials(data, |steady| !steady.is_steady && steady.begins_at == 0);
        assert!(unsteady >= 195, "{count} values: {unsteady} of 200");
    }
}

#[test]
fn spikes_decide_nothing() {
    let data = |seed: u64| {
        let mut rates = series(seed, 200, 0.02, 0.0, |_| 1.0);
        for at in [20, 71, 120, 150, 197] {
            rates[at] *= if at % 2 == 0 { 0.1 } else { 3.0 };
        }
        rates
    };
    let found = trials(data, |steady| steady.is_steady && steady.begins_at == 0 && steady.spikes >= 5);
    assert!(found >= 190, "{found} of 200");
}

#[test]
fn spikes_do_not_hide_the_start() {
    let data = |seed: u64| {
        let mut rates = series(seed, 200, 0.02, 0.0, |at| if at < 30 { 0.5 } else { 1.0 });
        rates[90] *= 4.0;
        rates[160] *= 0.05;
        rates
    };
    let found = trials(data, |steady| steady.is_steady && (30..=35).contains(&steady.begins_at));
    assert!(found >= 190, "{found} of 200");
}

#[test]
fn a_full_write_cache_late_in_the_run_is_not_steady() {
    for (count, cliff) in [(40, 24), (100, 60), (100, 90), (300, 200)] {
        let data = |seed| series(seed, count, 0.03, 0.0, |at| if at < cliff { 3.0 } else { 1.0 });
        let unsteady = trials(data, |steady| !steady.is_steady && steady.begins_at == 0);
        assert!(unsteady >= 198, "cliff at {cliff} of {count}: {unsteady} of 200");
    }
}

#[test]
fn a_dip_of_some_length_is_not_steady() {
    let data = |seed| series(seed, 200, 0.03, 0.0, |at| if (120..200).contains(&at) { 0.8 } else { 1.0 });
    let unsteady = trials(data, |steady| !steady.is_steady && steady.begins_at == 0);
    assert!(unsteady >= 198, "{unsteady} of 200");
}

#[test]
fn a_full_write_cache_early_in_the_run_leaves_the_sustained_rate() {
    let data = |seed| series(seed, 200, 0.03, 0.0, |at| if at < 70 { 3.0 } else { 1.0 });
    let found = trials(data, |steady| steady.is_steady && (70..=75).contains(&steady.begins_at));
    assert!(found >= 190, "{found} of 200");
}

#[test]
fn a_slow_approach_that_never_settles_is_not_steady() {
    let data = |seed| series(seed, 200, 0.01, 0.0, |at| 1.0 - 0.8 * (-(at as f64) / 120.0).exp());
    let unsteady = trials(data, |steady| !steady.is_steady && steady.begins_at == 0);
    assert!(unsteady >= 198, "{unsteady} of 200");
}

#[test]
fn a_slope_that_does_not_matter_is_steady() {
    let data = |seed| series(seed, 200, 0.002, 0.0, |at| 1.0 + 0.02 * at as f64 / 200.0);
    let steady = find_steady(&data(1));
    assert!(steady.is_steady, "{steady:?}");
    let slope = find_steady(&series(1, 200, 0.0, 0.0, |at| 1.0 - 0.3 * at as f64 / 200.0));
    assert!((slope.slope_percent_per_window + 35.1).abs() < 0.2, "{slope:?}");
    assert!((slope.drift_percent + 17.6).abs() < 0.2, "{slope:?}");
}

#[test]
fn exact_data_has_exact_answers() {
    let flat = find_steady(&[500.0; 50]);
    assert!(flat.is_steady && flat.begins_at == 0 && flat.spikes == 0, "{flat:?}");
    let step = find_steady(&series(0, 100, 0.0, 0.0, |at| if at < 15 { 0.2 } else { 1.0 }));
    assert!(step.is_steady && step.begins_at == 15, "{step:?}");
}

#[test]
fn what_cannot_be_judged_is_not_called_steady() {
    assert_eq!(find_steady(&[]).reason, SteadyReason::TooFewIntervals);
    assert_eq!(find_steady(&[5.0; 7]).reason, SteadyReason::TooFewIntervals);
    assert_eq!(find_steady(&[0.0; 20]).reason, SteadyReason::NoRate);
    assert_eq!(find_steady(&[f64::NAN; 20]).reason, SteadyReason::NoRate);
    assert!(!find_steady(&[0.0; 20]).is_steady);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn any_series_has_finite_figures(
        rates in prop::collection::vec(prop_oneof![4 => 0.0..1e9_f64, 1 => Just(0.0), 1 => Just(5.0)], 0..120),
    ) {
        let steady = find_steady(&rates);
        let figures = [
            steady.slope_percent_per_window,
            steady.slope_percent_half_width,
            steady.drift_percent,
            steady.drift_percent_half_width,
        ];
        prop_assert!(figures.iter().all(|figure| figure.is_finite()), "{:?}", steady);
        prop_assert!(steady.begins_at <= rates.len() / 2);
        prop_assert!(steady.is_steady || steady.begins_at == 0);
    }
}
