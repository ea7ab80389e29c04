use super::*;
use proptest::prelude::*;

/// Fails unless every class is within less than one draw of its share after each of `draws` draws.
fn check_prefixes(weights: &[u32], draws: u64) {
    let mut mix = Mix::new(weights).unwrap();
    let total: i128 = weights.iter().map(|&weight| i128::from(weight)).sum();
    let mut counts = vec![0i128; weights.len()];
    for drawn in 1..=i128::from(draws) {
        counts[mix.next()] += 1;
        for (count, &weight) in counts.iter().zip(weights) {
            let error = count * total - drawn * i128::from(weight);
            assert!(error.abs() < total, "{weights:?} after {drawn}: {counts:?}");
        }
    }
}

#[test]
fn every_percentage_is_exact_at_every_prefix() {
    for percent in 0..=100u8 {
        check_prefixes(&[percent.into(), (100 - percent).into()], 1000);
    }
}

#[test]
fn known_orders() {
    let draws = |weights: &[u32], count: usize| {
        let mut mix = Mix::new(weights).unwrap();
        (0..count).map(|_| mix.next()).collect::<Vec<_>>()
    };
    assert_eq!(draws(&[1, 1], 6), [0, 1, 0, 1, 0, 1]);
    assert_eq!(draws(&[50, 50], 6), [0, 1, 0, 1, 0, 1]);
    assert_eq!(draws(&[1, 1, 1], 6), [0, 1, 2, 0, 1, 2]);
    assert_eq!(draws(&[0, 7], 3), [1, 1, 1]);
    let seventy = draws(&[70, 30], 10);
    assert_eq!(seventy.iter().filter(|&&class| class == 0).count(), 7);
    // Never more than three reads between two writes.
    let long = draws(&[70, 30], 1000);
    assert!(long.windows(4).all(|window| window.contains(&1)));
}

#[test]
fn refusals() {
    assert_eq!(
        Mix::from_percentages(&[70, 40]).unwrap_err().to_string(),
        "\"70,40\" is not a mix: use percentages that add up to 100 (these make 110)"
    );
    assert!(Mix::from_percentages(&[]).is_err());
    assert!(Mix::new(&[]).is_err());
    assert!(Mix::new(&[0, 0]).is_err());
    assert!(Mix::new(&[1; 65]).is_err());
    assert_eq!(Mix::from_percentages(&[0, 100]).unwrap().single(), Some(1));
    assert_eq!(Mix::from_percentages(&[1, 99]).unwrap().single(), None);
}

proptest! {
    #[test]
    fn exact_at_every_prefix(weights in proptest::collection::vec(0u32..50, 1..9)) {
        prop_assume!(weights.iter().any(|&weight| weight > 0));
        check_prefixes(&weights, 500);
    }

    #[test]
    fn exact_for_large_weights(weights in proptest::collection::vec(1u32.., 1..6)) {
        check_prefixes(&weights, 500);
    }
}
