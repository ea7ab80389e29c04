//! The drawn frequencies against the exact ones. Seeds are fixed, so a test that passes once always passes; limits
//! are four standard deviations of the statistic.

use super::*;

/// How many standard deviations the chi-square statistic lies above its mean.
fn chi_square_excess(counts: &[u64], shares: impl Iterator<Item = f64>) -> f64 {
    let draws = counts.iter().sum::<u64>() as f64;
    let (mut chi, mut cells) = (0.0, 0.0);
    let (mut rest_count, mut rest_expected) = (0.0, 0.0);
    for (&count, share) in counts.iter().zip(shares) {
        // Cells are joined until each expects enough draws for the statistic to hold.
        rest_count += count as f64;
        rest_expected += share * draws;
        if rest_expected >= 20.0 {
            chi += (rest_count - rest_expected).powi(2) / rest_expected;
            cells += 1.0;
            (rest_count, rest_expected) = (0.0, 0.0);
        }
    }
    let freedom: f64 = cells - 1.0;
    (chi - freedom) / (2.0 * freedom).sqrt()
}

/// Draws by an independent order of ranks, from 0.
fn rank_counts(blocks: u64, draws: u64, mut rank: impl FnMut(&mut Random) -> u64) -> Vec<u64> {
    let mut random = Random::new(11);
    let mut counts = vec![0; blocks as usize];
    for _ in 0..draws {
        counts[rank(&mut random) as usize] += 1;
    }
    counts
}

#[test]
fn uniform_draws_are_uniform() {
    for blocks in [2u64, 7, 100, 1000] {
        let mut uniform = access("uniform", blocks);
        let mut counts = vec![0; blocks as usize];
        (0..blocks * 500).for_each(|_| counts[uniform.next().block as usize] += 1);
        let excess = chi_square_excess(&counts, std::iter::repeat(1.0 / blocks as f64));
        assert!(excess < 4.0, "{blocks}: {excess}");
    }
}

/// Any block is as likely as any other in any place of the order, over many seeds.
#[test]
fn permutations_put_any_block_anywhere() {
    for (blocks, seeds) in
        [(2u64, 2000), (3, 3000), (5, 5000), (10, 10_000), (32, 20_000), (33, 20_000), (64, 20_000)]
    {
        let mut counts = vec![0u64; (blocks * blocks) as usize];
        for seed in 0..seeds {
            let mut permutation = Permutation::new(blocks, seed);
            for place in 0..blocks {
                counts[(place * blocks + permutation.next_block()) as usize] += 1;
            }
        }
        let expected = seeds as f64 / blocks as f64;
        let chi: f64 = counts.iter().map(|&count| (count as f64 - expected).powi(2) / expected).sum();
        // Rows and columns are tied: the statistic is n / (n - 1) times a chi-square of (n - 1)^2 degrees.
        let size = blocks as f64;
        let excess = (chi - size * (size - 1.0)) / (size * 2f64.sqrt());
        assert!(excess.abs() < 4.0, "{blocks}: {excess}");
    }
}

/// All orders of a small region are equally likely.
#[test]
fn small_permutations_take_every_order() {
    let mut counts = [0u64; 24];
    for seed in 0..6 {
        let mut permutation = Permutation::new(4, seed);
        for _ in 0..2000 {
            let order: [u64; 4] = std::array::from_fn(|_| permutation.next_block());
            let rank =
                |place: usize| order[place + 1..].iter().filter(|&&block| block < order[place]).count();
            counts[rank(0) * 6 + rank(1) * 2 + rank(2)] += 1;
        }
    }
    let excess = chi_square_excess(&counts, std::iter::repeat(1.0 / 24.0));
    assert!(excess < 4.0, "{excess}: {counts:?}");
}

/// Every part of the order is spread over the whole region, with neither clusters nor a lattice.
#[test]
fn parts_of_a_permutation_are_spread_evenly() {
    for blocks in [10_000u64, 65_536, 100_003, 1 << 20, 3 << 30, 1 << 40] {
        let mut worst = f64::NEG_INFINITY;
        let mut lowest = f64::INFINITY;
        for seed in 0..20 {
            let mut permutation = Permutation::new(blocks, seed);
            let mut counts = vec![0; 50];
            for _ in 0..2000 {
                let cell = u128::from(permutation.next_block()) * 50 / u128::from(blocks);
                counts[cell as usize] += 1;
            }
            let excess = chi_square_excess(&counts, std::iter::repeat(1.0 / 50.0));
            (worst, lowest) = (worst.max(excess), lowest.min(excess));
        }
        assert!(worst < 4.5 && lowest > -4.0, "{blocks}: {lowest} to {worst}");
    }
}

/// Pairs of blocks at a distance in the order: the correlation, and the pairs over a 16 by 16 grid.
#[test]
fn neighbours_in_a_permutation_are_unrelated() {
    for blocks in [1000u64, 10_000, 65_536, 100_003, 1 << 20, 3 << 30] {
        for seed in 0..10 {
            let mut permutation = Permutation::new(blocks, seed);
            let draws = blocks.min(50_000) as usize;
            let order: Vec<u64> = (0..draws).map(|_| permutation.next_block()).collect();
            for lag in [1, 2, 3, 4, 8, 16, 32, 64, 128] {
                let pairs = (draws - lag) as f64;
                let mut grid = vec![0u64; 256];
                let mut sum = 0.0;
                for (&a, &b) in order.iter().zip(&order[lag..]) {
                    let centred = |value: u64| (value as f64 + 0.5) / blocks as f64 - 0.5;
                    sum += centred(a) * centred(b);
                    let cell = |value: u64| (u128::from(value) * 16 / u128::from(blocks)) as usize;
                    grid[cell(a) * 16 + cell(b)] += 1;
                }
                let correlation = sum / pairs * 12.0;
                assert!(
                    correlation.abs() < 4.5 / pairs.sqrt(),
                    "{blocks} lag {lag}: correlation {correlation}"
                );
                let excess = chi_square_excess(&grid, std::iter::repeat(1.0 / 256.0));
                assert!(excess < 5.0, "{blocks} lag {lag} seed {seed}: {excess}");
            }
        }
    }
}

/// Few successors lie right behind their predecessor: a random order has one such pair on average.
#[test]
fn a_permutation_has_no_sequential_runs() {
    for blocks in [1000u64, 10_000, 65_536, 100_003] {
        let total: usize = (0..20)
            .map(|seed| {
                let mut permutation = Permutation::new(blocks, seed);
                let order: Vec<u64> = (0..blocks).map(|_| permutation.next_block()).collect();
                order.windows(2).filter(|pair| pair[1] == pair[0] + 1).count()
            })
            .sum();
        assert!(total < 20 + 4 * 5, "{blocks}: {total} sequential pairs in 20 orders");
    }
}

#[test]
fn zipf_has_the_exact_frequencies() {
    for theta in [0.0, 0.5, 0.99, 1.0, 1.0 + 1e-9, 1.2, 2.0, 10.0] {
        for blocks in [1u64, 2, 10, 1000] {
            let zipf = Zipf::new(blocks, theta);
            let counts = rank_counts(blocks, 300_000, |random| zipf.rank(random) - 1);
            let weights = || (1..=blocks).map(|rank| (rank as f64).powf(-theta));
            let total: f64 = weights().sum();
            let excess = chi_square_excess(&counts, weights().map(|weight| weight / total));
            assert!(excess.is_nan() || excess < 4.0, "theta {theta} over {blocks}: {excess}");
        }
    }
}

/// The share of the first rank over a region that no sum could walk, from the Euler-Maclaurin value of the sum.
#[test]
fn zipf_is_right_over_a_large_region() {
    let blocks = 1u64 << 40;
    let zipf = Zipf::new(blocks, 1.0);
    let mut random = Random::new(5);
    let draws = 500_000;
    let first = (0..draws).filter(|_| zipf.rank(&mut random) == 1).count() as f64 / f64::from(draws);
    let euler = 0.577_215_664_901_532_9;
    let share = 1.0 / ((blocks as f64).ln() + euler);
    assert!((first - share).abs() < 4.0 * (share / f64::from(draws)).sqrt(), "{first} for {share}");
}

#[test]
fn hot_blocks_are_scattered() {
    for pattern in ["zipf:1.2", "pareto:0.1"] {
        let blocks = 100_000u64;
        let mut skewed = access(pattern, blocks);
        let mut counts = vec![0u32; blocks as usize];
        (0..500_000).for_each(|_| counts[skewed.next().block as usize] += 1);
        let mut hottest: Vec<usize> = (0..blocks as usize).collect();
        hottest.sort_by_key(|&block| std::cmp::Reverse(counts[block]));
        let mut cells = [0u64; 10];
        hottest[..1000].iter().for_each(|block| cells[block * 10 / blocks as usize] += 1);
        let excess = chi_square_excess(&cells, std::iter::repeat(0.1));
        assert!(excess < 4.0, "{pattern}: {cells:?}");
        let mut top = hottest[..100].to_vec();
        top.sort_unstable();
        let neighbours = top.windows(2).filter(|pair| pair[1] - pair[0] == 1).count();
        assert!(neighbours <= 2, "{pattern}: {neighbours} neighbours among the hottest hundred");
    }
}

#[test]
fn pareto_has_the_exact_frequencies() {
    for h in [0.1, 0.2, 0.5, 0.8] {
        let blocks = 1000u64;
        let pareto = Pareto::new(blocks, h);
        let counts = rank_counts(blocks, 300_000, |random| pareto.rank(random));
        let below = |rank: u64| (rank as f64 / blocks as f64).powf((1.0 - h).ln() / h.ln());
        let excess = chi_square_excess(&counts, (0..blocks).map(|rank| below(rank + 1) - below(rank)));
        assert!(excess < 4.0, "{h}: {excess}");
        let hot: u64 = counts[..(h * blocks as f64) as usize].iter().sum();
        let share = hot as f64 / 300_000.0;
        assert!((share - (1.0 - h)).abs() < 0.005, "{h}: {share}");
    }
}

/// The normal distribution function, by Simpson's rule over the density.
fn normal_below(limit: f64) -> f64 {
    let steps = 400;
    let (from, width) = (-8.0, (limit + 8.0) / f64::from(steps));
    let density = |x: f64| (-x * x / 2.0).exp() / std::f64::consts::TAU.sqrt();
    let inner: f64 = (1..steps)
        .map(|step| density(from + width * f64::from(step)) * if step % 2 == 1 { 4.0 } else { 2.0 })
        .sum();
    (density(from) + inner + density(limit)) * width / 3.0
}

#[test]
fn normal_has_the_exact_frequencies() {
    for deviation in [5.0, 10.0, 30.0, 100.0] {
        let blocks = 200u64;
        let mut normal = access(&format!("normal:{deviation}"), blocks);
        let mut counts = vec![0; blocks as usize];
        (0..300_000).for_each(|_| counts[normal.next().block as usize] += 1);
        let below = |block: u64| normal_below((block as f64 / blocks as f64 - 0.5) / (deviation / 100.0));
        let inside = below(blocks) - below(0);
        let shares = (0..blocks).map(|block| (below(block + 1) - below(block)) / inside);
        let excess = chi_square_excess(&counts, shares);
        assert!(excess < 4.0, "{deviation}: {excess}");
    }
}

#[test]
fn zones_get_their_exact_shares() {
    let blocks = 1000u64;
    let mut zoned = access("zoned:60/10,30/20,8/30,2/40", blocks);
    let mut counts = vec![0u64; blocks as usize];
    for _ in 0..1000 {
        let mut zones = [0; 4];
        for _ in 0..100 {
            let block = zoned.next().block;
            counts[block as usize] += 1;
            zones[match block {
                0..100 => 0,
                100..300 => 1,
                300..600 => 2,
                _ => 3,
            }] += 1;
        }
        assert_eq!(zones, [60, 30, 8, 2]);
    }
    let inside = chi_square_excess(&counts[..100], std::iter::repeat(1.0 / 100.0));
    assert!(inside < 4.0, "{inside}");
}

/// Zones come in a random order: the access after one to the first zone goes there as often as any other.
#[test]
fn zones_come_in_random_order() {
    let mut zoned = access("zoned:50/50,50/50", 100);
    let zones: Vec<bool> = (0..100_000).map(|_| zoned.next().block < 50).collect();
    let repeats = zones.windows(2).filter(|pair| pair[0] == pair[1]).count() as f64;
    // Dealt without returning: 49 of the 99 cards left are of the same zone.
    let expected = 100_000.0 * 49.0 / 99.0;
    assert!((repeats - expected).abs() < 5.0 * 160.0, "{repeats} for {expected}");
}
