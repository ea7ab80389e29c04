use proptest::prelude::*;
use statistics::{RateDrop, Steady, SteadyReason};

use crate::random::Random;

const LEVEL: f64 = 10_000.0;

/// Intervals of 100 ms: in series of up to 200 a faster start may last a twentieth of them, above that ten.
fn find_steady(rates: &[f64]) -> Steady {
    statistics::find_steady(rates, 0.1)
}

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
        let data = |seed| series(seed, count, 0.03, 0.0, |at| if at < step { 0.4 } else { 1.0 });
        let found = trials(data, |steady| steady.is_steady && (step..=step + 5).contains(&steady.begins_at));
        assert!(found >= 190, "step at {step} of {count}: {found} of 200");
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

/// Whether the rate fell at `at` (to within 3 intervals) from `before` to `after` times the level, and everything is kept.
fn dropped(steady: &Steady, at: usize, (before, after): (f64, f64)) -> bool {
    let near = |found: f64, level: f64| (found / (level * LEVEL) - 1.0).abs() < 0.05;
    let is_there = |drop: &RateDrop| {
        drop.at_interval.abs_diff(at) <= 3
            && near(drop.operations_per_second_before, before)
            && near(drop.operations_per_second_after, after)
    };
    !steady.is_steady
        && steady.begins_at == 0
        && steady.reason == SteadyReason::RateDropped
        && steady.drop.as_ref().is_some_and(is_there)
}

#[test]
fn a_cache_that_is_used_up_is_a_drop_wherever_it_happens() {
    for count in [40, 100, 300] {
        for share in [0.1, 0.2, 0.4, 0.5, 0.6, 0.8] {
            // A start of up to 1 s may be a burst.
            let cliff = ((share * count as f64) as usize).max(if count == 300 { 30 } else { 8 });
            for before in [1.3, 3.0] {
                let data = |seed| series(seed, count, 0.03, 0.2, |at| if at < cliff { before } else { 1.0 });
                let found = trials(data, |steady| dropped(steady, cliff, (before, 1.0)));
                assert!(found >= 190, "from {before} at {cliff} of {count}: {found} of 200");
            }
        }
    }
}

#[test]
fn a_drop_after_a_warm_up_is_a_drop() {
    let data = |seed| {
        series(seed, 200, 0.03, 0.0, |at| match at {
            0..20 => 0.3,
            20..90 => 3.0,
            _ => 1.0,
        })
    };
    let found = trials(data, |steady| dropped(steady, 90, (3.0, 1.0)));
    assert!(found >= 190, "{found} of 200");
    // An overshoot behind a slow start hides in no warm-up either.
    let overshoot = |seed| {
        series(seed, 200, 0.03, 0.0, |at| match at {
            0..40 => 0.1,
            40..70 => 1.5,
            _ => 1.0,
        })
    };
    let found = trials(overshoot, |steady| dropped(steady, 70, (1.5, 1.0)));
    assert!(found >= 190, "{found} of 200");
}

#[test]
fn a_second_cache_does_not_hide_the_first() {
    let data = |seed| {
        series(seed, 200, 0.02, 0.0, |at| match at {
            0..60 => 4.0,
            60..120 => 2.0,
            _ => 1.0,
        })
    };
    let found = trials(data, |steady| steady.reason == SteadyReason::RateDropped && steady.begins_at == 0);
    assert!(found >= 195, "{found} of 200");
}

#[test]
fn a_short_burst_at_the_start_is_warm_up() {
    // A twentieth of 100 intervals; a second of 500.
    for (count, burst) in [(100, 5), (200, 8), (500, 9)] {
        let data = |seed| series(seed, count, 0.03, 0.0, |at| if at < burst { 2.0 } else { 1.0 });
        let found = trials(data, |steady| {
            steady.is_steady && steady.drop.is_none() && (burst..=burst + 3).contains(&steady.begins_at)
        });
        assert!(found >= 190, "{burst} of {count}: {found} of 200");
    }
    let longer = |seed| series(seed, 500, 0.03, 0.0, |at| if at < 15 { 2.0 } else { 1.0 });
    let found = trials(longer, |steady| dropped(steady, 15, (2.0, 1.0)));
    assert!(found >= 190, "1.5 s: {found} of 200");
}

#[test]
fn what_is_no_drop_is_not_called_one() {
    let is_drop = |steady: &Steady| steady.drop.is_some() || steady.reason == SteadyReason::RateDropped;
    for (noise, rho) in [(0.02, 0.0), (0.1, 0.0), (0.05, 0.5), (0.05, 0.8)] {
        for count in [20, 60, 200, 500] {
            let flat = |seed| series(seed, count, noise, rho, |_| 1.0);
            // In a thousand; few intervals do not tell a level from a correlation.
            let (trials, most) = match count {
                20 => (1000, 40),
                60 => (1000, 20),
                _ => (300, 10),
            };
            let found = count_of(trials, flat, is_drop);
            assert!(found as u64 * 1000 <= most * trials, "noise {noise}, rho {rho}, {count}: {found}");
        }
    }
    type Shape = fn(usize) -> f64;
    let shapes: [(&str, Shape); 5] = [
        ("a rise", |at| if at < 80 { 0.5 } else { 1.0 }),
        ("a late rise", |at| if at < 160 { 0.5 } else { 1.0 }),
        ("a ramp up", |at| 0.6 + 0.8 * at as f64 / 200.0),
        ("a ramp down", |at| 1.4 - 0.8 * at as f64 / 200.0),
        ("saw teeth", |at| 0.8 + 0.4 * (at % 10) as f64 / 10.0),
    ];
    for (what, shape) in shapes {
        let found = trials(|seed| series(seed, 200, 0.03, 0.0, shape), is_drop);
        assert!(found <= 4, "{what}: {found} of 200");
    }
    // It comes back: a dip.
    let dip = |seed| series(seed, 200, 0.03, 0.0, |at| if (90..130).contains(&at) { 0.5 } else { 1.0 });
    let found = trials(dip, |steady| is_drop(steady) || steady.is_steady);
    assert!(found <= 4, "a dip: {found} of 200");
}

#[test]
fn a_ramp_down_is_a_trend() {
    let data = |seed| series(seed, 200, 0.03, 0.0, |at| 1.4 - 0.8 * at as f64 / 200.0);
    let found = trials(data, |steady| {
        steady.reason == SteadyReason::Trend && (steady.slope_percent_per_window + 80.0).abs() < 5.0
    });
    assert!(found >= 195, "{found} of 200");
}

#[test]
fn a_dip_of_some_length_is_not_steady() {
    let data = |seed| series(seed, 200, 0.03, 0.0, |at| if (120..200).contains(&at) { 0.8 } else { 1.0 });
    let unsteady = trials(data, |steady| !steady.is_steady && steady.begins_at == 0);
    assert!(unsteady >= 198, "{unsteady} of 200");
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

/// Levels from 10 % below to 10 % above for the first fifth, then a slope of up to 8 %: whatever is said of the change holds of
/// the figure that is printed with it.
#[test]
fn what_is_said_of_a_change_is_of_what_is_reported() {
    let (mut trends, mut settled) = (0, 0);
    for case in 0..2000_u64 {
        let start = 0.9 + 0.2 * (case % 50) as f64 / 50.0;
        let slope = 0.16 * (case / 50) as f64 / 40.0 - 0.08;
        let level = |at: usize| if at < 40 { start } else { 1.0 + slope * (at - 40) as f64 / 160.0 };
        let steady = find_steady(&series(case, 200, 0.004, 0.2, level));
        let matters = |change: f64, half: f64| change.abs() > 5.0 && change.abs() > half;
        let holds = match steady.reason {
            SteadyReason::Trend => matters(steady.slope_percent_per_window, steady.slope_percent_half_width),
            SteadyReason::HalvesDiffer => matters(steady.drift_percent, steady.drift_percent_half_width),
            _ => true,
        };
        assert!(holds, "{start} {slope}: {steady:?}");
        trends += u32::from(steady.reason == SteadyReason::Trend);
        settled += u32::from(steady.is_steady);
    }
    assert!(trends > 100 && settled > 300, "{trends} {settled}");
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

#[test]
fn levels_of_a_drop_count_intervals_without_an_operation() {
    // 800/s, then 8 operations each 30 ms: two intervals of 20 ms in three hold 8 of them, the third none.
    let slow = [400.0, 400.0, 0.0];
    let rates: Vec<f64> =
        std::iter::repeat_n(800.0, 100).chain((0..150).map(|number| slow[number % 3])).collect();
    let drop = find_steady(&rates).drop.expect("a drop");
    assert!(drop.at_interval.abs_diff(100) <= 2, "{drop:?}");
    assert!((drop.operations_per_second_before / 800.0 - 1.0).abs() < 0.02, "{drop:?}");
    assert!((drop.operations_per_second_after / 266.7 - 1.0).abs() < 0.02, "{drop:?}");
}

#[test]
fn a_rise_late_in_the_run_is_told_with_its_place_and_levels() {
    for (count, at, after) in [(100, 60, 1.5), (200, 150, 1.3), (300, 200, 1.2)] {
        let data = |seed| series(seed, count, 0.03, 0.0, |interval| if interval < at { 1.0 } else { after });
        let is_told = |steady: &Steady| {
            steady.level_change.as_ref().is_some_and(|change| {
                let near = |found: f64, level: f64| (found / (LEVEL * level) - 1.0).abs() < 0.02;
                change.at_interval.abs_diff(at) <= 2
                    && near(change.operations_per_second_before, 1.0)
                    && near(change.operations_per_second_after, after)
            })
        };
        let told = trials(data, |steady| steady.reason == SteadyReason::LevelChanges && is_told(steady));
        assert!(told >= 190, "at {at} of {count}: {told} of 200");
    }
    // No other reason has one.
    let flat = |seed| series(seed, 200, 0.05, 0.3, |_| 1.0);
    let without =
        |steady: &Steady| steady.reason == SteadyReason::LevelChanges || steady.level_change.is_none();
    assert_eq!(trials(flat, without), 200);
}
