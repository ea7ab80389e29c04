use super::*;
use crate::sample;

/// Pairs with this ratio, disturbed alike by what drifts and a little apart.
fn pairs(ratio: f64, noise: f64) -> RecipeFactor {
    let without: Vec<f64> = (0..8).map(|round| 1000.0 * (1.0 + 0.3 * f64::from(round))).collect();
    let sign = |at: usize| if at.is_multiple_of(2) { 1.0 } else { -1.0 };
    let with: Vec<f64> =
        without.iter().enumerate().map(|(at, rate)| rate * ratio * (noise * sign(at)).exp()).collect();
    factor_of(&without, &with).expect("eight pairs")
}

#[test]
fn drift_cancels_and_the_factor_is_found() {
    let found = pairs(3.0, 0.02);
    assert!((found.factor - 3.0).abs() < 0.01, "{found:?}");
    assert!(found.low > 2.9 && found.high < 3.1, "{found:?}");
    assert!((found.with_per_second / found.without_per_second - found.factor).abs() < 1e-9);
}

#[test]
fn what_matters_is_large_and_sure() {
    assert_eq!(finding_of(&pairs(3.0, 0.05)), RecipeFinding::Matters);
    assert_eq!(finding_of(&pairs(1.2, 0.001)), RecipeFinding::DoesNotMatter);
    assert_eq!(finding_of(&pairs(1.01, 0.02)), RecipeFinding::DoesNotMatter);
    assert_eq!(finding_of(&pairs(1.01, 0.8)), RecipeFinding::CannotTell);
    assert_eq!(finding_of(&pairs(0.5, 0.05)), RecipeFinding::Harms);
    assert_eq!(finding_of(&pairs(1.5, 0.8)), RecipeFinding::CannotTell);
    assert_eq!(factor_of(&[1000.0], &[2000.0]), None, "one pair says nothing");
    assert_eq!(factor_of(&[1000.0, 0.0], &[2000.0, 1.0]), None, "nothing was done");
}

#[test]
fn the_page_says_what_matters_and_why_not_all_was_tested() {
    let mut record = sample::record(vec![]);
    record.recipes = Some(sample::recipes());
    let page = crate::render(&record, 120, false);
    for line in [
        "recipes on vos:/mnt/pmem",
        "index-kv",
        "matters   index-kv: an index of each worker's own, 3.00 times as fast as one index for all",
        "try: give each process an index of its own",
        "others    do not matter here: value-size",
        "untested  class: the store has one target",
    ] {
        assert!(page.contains(line), "{line}\n{page}");
    }
}
