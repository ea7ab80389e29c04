use super::*;

/// From the authors' C program with the state 1, 2, 3, 4.
#[test]
fn xoshiro_matches_the_reference() {
    let mut random = Random { state: [1, 2, 3, 4] };
    let expected = [
        41943041,
        58720359,
        3588806011781223,
        3591011842654386,
        9228616714210784205,
        9973669472204895162,
        14011001112246962877,
        12406186145184390807,
        15849039046786891736,
        10450023813501588000,
    ];
    assert_eq!(expected.map(|_| random.next_u64()), expected);
}

/// From the authors' C program with the seed 1234567.
#[test]
fn splitmix_matches_the_reference() {
    let mut source = SplitMix64::new(1234567);
    let expected = [
        6457827717110365317,
        3203168211198807973,
        9817491932198370423,
        4593380528125082431,
        16408922859458223821,
    ];
    assert_eq!(expected.map(|_| source.next_u64()), expected);
}

#[test]
fn bounded_draws_are_uniform() {
    let mut random = Random::new(7);
    for bound in [1u64, 2, 3, 7, 100, 1 << 10] {
        let mut counts = vec![0u64; bound as usize];
        let draws = 1000 * bound;
        for _ in 0..draws {
            counts[random.below(bound) as usize] += 1;
        }
        let chi: f64 = counts.iter().map(|&count| (count as f64 - 1000.0).powi(2) / 1000.0).sum();
        let freedom = (bound - 1) as f64;
        assert!(chi <= freedom + 4.0 * (2.0 * freedom).sqrt(), "{bound}: chi-square {chi}");
    }
}

/// With a bound of 3/4 of 2^64 plain multiplication would give every third result twice the weight.
#[test]
fn bounded_draws_are_unbiased_for_huge_bounds() {
    let bound = 3u64 << 62;
    let mut random = Random::new(8);
    let draws = 300_000;
    let multiples = (0..draws).filter(|_| random.below(bound).is_multiple_of(3)).count();
    let deviation = (draws as f64 * 2.0 / 9.0).sqrt();
    assert!((multiples as f64 - draws as f64 / 3.0).abs() < 4.0 * deviation, "{multiples}");
}

#[test]
fn fractions_stay_in_range() {
    let mut random = Random::new(9);
    let draws = 100_000;
    let mut sum = 0.0;
    for _ in 0..draws {
        let unit = random.unit();
        assert!((0.0..1.0).contains(&unit));
        let above = random.unit_above_zero();
        assert!(above > 0.0 && above <= 1.0);
        sum += unit;
    }
    let error = sum / f64::from(draws) - 0.5;
    assert!(error.abs() < 4.0 * (1.0 / 12.0 / f64::from(draws)).sqrt(), "{error}");
}

#[test]
fn seeds_of_streams_differ() {
    let mut seeds = std::collections::HashSet::new();
    for seed in 0..20 {
        assert!(seeds.insert(derive_seed(seed, &[])));
        for first in 0..20 {
            assert!(seeds.insert(derive_seed(seed, &[first])));
            for second in 0..20 {
                assert!(seeds.insert(derive_seed(seed, &[first, second])));
            }
        }
    }
    assert_eq!(derive_seed(5, &[label("access"), 3]), derive_seed(5, &[label("access"), 3]));
    assert_ne!(label("access"), label("arrival"));
    assert_eq!(label(""), 0xcbf2_9ce4_8422_2325);
    assert_eq!(label("a"), 0xaf63_dc4c_8601_ec8c);
}
