use super::*;
use proptest::prelude::*;

mod distributions;

fn access(pattern: &str, blocks: u64) -> Access {
    Access::new(&pattern.parse().unwrap(), blocks, 1).unwrap()
}

fn take(access: &mut Access, count: u64) -> Vec<u64> {
    (0..count).map(|_| access.next().block).collect()
}

/// Draws a whole pass and fails unless it holds every block once.
fn check_pass(access: &mut Access, pass: u64) -> Vec<u64> {
    let blocks = access.blocks();
    let mut seen = vec![false; blocks as usize];
    let mut order = Vec::with_capacity(blocks as usize);
    for index in 0..blocks {
        let step = access.next();
        assert_eq!((step.pass, step.index), (pass, index), "{blocks} blocks");
        assert!(!std::mem::replace(&mut seen[step.block as usize], true), "{} of {blocks} twice", step.block);
        order.push(step.block);
    }
    order
}

#[test]
fn known_orders() {
    assert_eq!(take(&mut access("sequential", 3), 5), [0, 1, 2, 0, 1]);
    assert_eq!(take(&mut access("backward", 3), 5), [2, 1, 0, 2, 1]);
    assert_eq!(take(&mut access("strided:3", 8), 11), [0, 3, 6, 1, 4, 7, 2, 5, 0, 3, 6]);
    assert_eq!(take(&mut access("strided:4", 4), 5), [0, 1, 2, 3, 0]);
    assert_eq!(take(&mut access("strided:1", 1), 2), [0, 0]);
    let mut sequential = access("sequential", 2);
    sequential.next();
    sequential.next();
    assert_eq!(sequential.next(), Step { block: 0, pass: 1, index: 0 });
}

#[test]
fn a_pass_of_any_size_holds_every_block_once() {
    for blocks in (1..2000).chain([4095, 4096, 4097, 65_535, 65_536, 65_537, 100_003, 1 << 20]) {
        let mut permutation = access("permutation", blocks);
        for pass in 0..2 {
            check_pass(&mut permutation, pass);
        }
    }
    for blocks in (1..100).chain([1000, 4097]) {
        for stride in (1..blocks.min(20)).chain([blocks]) {
            let mut strided = access(&format!("strided:{stride}"), blocks);
            check_pass(&mut strided, 0);
            check_pass(&mut strided, 1);
        }
    }
}

#[test]
fn passes_and_seeds_give_different_permutations() {
    let mut permutation = access("permutation", 1000);
    let first = check_pass(&mut permutation, 0);
    let second = check_pass(&mut permutation, 1);
    let other = check_pass(&mut Access::new(&Pattern::Permutation, 1000, 2).unwrap(), 0);
    assert_eq!(first, check_pass(&mut access("permutation", 1000), 0));
    for (a, b) in [(&first, &second), (&first, &other)] {
        let same = a.iter().zip(b).filter(|(a, b)| a == b).count();
        assert!(same < 10, "{same} blocks in the same place, 1 expected");
    }
}

#[test]
fn full_coverage_is_told() {
    for (pattern, full) in [
        ("sequential", true),
        ("backward", true),
        ("strided:4", true),
        ("permutation", true),
        ("uniform", false),
        ("zipf:0.99", false),
        ("pareto:0.2", false),
        ("normal:10", false),
        ("zoned:60/10,40/90", false),
    ] {
        assert_eq!(access(pattern, 100).is_full_coverage(), full, "{pattern}");
        assert_eq!(pattern.parse::<Pattern>().unwrap().is_full_coverage(), full, "{pattern}");
    }
}

#[test]
fn refusals() {
    let line = |text: &str| text.parse::<Pattern>().expect_err(text).to_string();
    assert_eq!(
        line("zoned:60/10,30/90"),
        "\"zoned:60/10,30/90\" is not an access pattern: use access percentages that add up to 100 (these make 90)"
    );
    assert!(line("zoned:60/10,40/80").contains("size percentages that add up to 100 (these make 90)"));
    assert!(line("zipf:11").contains("a theta from 0 to 10"));
    assert!(line("pareto:1").contains("a share above 0 and below 1"));
    assert!(line("normal:0").contains("a deviation above 0 and up to 100 percent"));
    assert!(line("strided:0").contains("a stride of at least 1 block"));
    let garbage = [
        "",
        "random",
        "zipf",
        "zipf:",
        "zipf:nan",
        "zipf:-1",
        "zipf:inf",
        "zipf:1e0",
        "zipf:.",
        "sequential:1",
        "zoned:",
        "zoned:1",
        "zoned:1/",
        "zoned:300/1",
        "zoned:100/100,",
        "strided:-1",
        "strided:1.5",
        "Uniform",
        "uniform ",
        "strided:18446744073709551616",
        "strided:",
    ];
    for text in garbage {
        let line = line(text);
        assert!(line.contains(" is not an access pattern: use one of sequential, backward"), "{line}");
    }
    let fit = |pattern: &str, blocks| Access::new(&pattern.parse().unwrap(), blocks, 0).map(|_| ());
    assert!(fit("sequential", 0).is_err());
    assert_eq!(
        fit("strided:9", 8).unwrap_err().to_string(),
        "\"strided:9\" is not an access pattern: use a stride of at most the region, 8 blocks"
    );
    assert!(fit("zoned:50/1,50/99", 99).unwrap_err().to_string().contains("zones of at least one block"));
    assert!(fit("zoned:50/1,50/99", 100).is_ok());
    assert!(fit("zoned:0/1,100/99", 10).is_ok());
    assert!(Access::new(&Pattern::Zipf { theta: f64::NAN }, 10, 0).is_err());
    assert!(Access::new(&Pattern::Pareto { h: f64::NAN }, 10, 0).is_err());
    assert!(Access::new(&Pattern::Normal { deviation_percent: f64::INFINITY }, 10, 0).is_err());
}

#[test]
fn patterns_round_trip() {
    for text in [
        "sequential",
        "backward",
        "strided:8",
        "permutation",
        "uniform",
        "zipf:0.99",
        "zipf:1",
        "pareto:0.2",
        "normal:12.5",
        "zoned:60/10,30/20,10/70",
    ] {
        let pattern: Pattern = text.parse().unwrap();
        assert_eq!(pattern.to_string(), text);
        let json = serde_json::to_string(&pattern).unwrap();
        assert_eq!(serde_json::from_str::<Pattern>(&json).unwrap(), pattern);
    }
    assert_eq!("zoned:60%/10%,40/90".parse::<Pattern>().unwrap().to_string(), "zoned:60/10,40/90");
}

const ALL: [&str; 11] = [
    "sequential",
    "backward",
    "strided:1",
    "permutation",
    "uniform",
    "zipf:0",
    "zipf:1",
    "zipf:10",
    "pareto:0.001",
    "normal:100",
    "zoned:100/100",
];

#[test]
fn the_largest_regions_work() {
    for blocks in [1, 2, 3, 1 << 32, (1 << 53) + 1, (1 << 63) + 1, u64::MAX - 1, u64::MAX] {
        for pattern in ALL {
            let mut access = access(pattern, blocks);
            for _ in 0..1000 {
                let step = access.next();
                assert!(step.block < blocks && step.index < blocks, "{pattern} over {blocks}: {step:?}");
            }
        }
    }
}

proptest! {
    #[test]
    fn blocks_stay_inside_and_repeat_with_the_seed(blocks in 1u64.., shift in 0u32..64, seed: u64, kind in 0..ALL.len()) {
        let blocks = (blocks >> shift).max(1);
        let pattern: Pattern = ALL[kind].parse().unwrap();
        let mut one = Access::new(&pattern, blocks, seed).unwrap();
        let mut two = Access::new(&pattern, blocks, seed).unwrap();
        for _ in 0..100 {
            let step = one.next();
            prop_assert!(step.block < blocks);
            prop_assert_eq!(step, two.next());
        }
    }

    #[test]
    fn scatter_is_one_to_one(blocks in 1u64..3000, seed: u64) {
        let scatter = Scatter::new(blocks, seed);
        let mut images: Vec<u64> = (0..blocks).map(|value| scatter.map(value)).collect();
        images.sort_unstable();
        prop_assert!(images.into_iter().eq(0..blocks));
    }

    #[test]
    fn no_text_panics(text in prop_oneof![".*", "(zipf|pareto|normal|zoned|strided):[0-9./,%]{0,12}"]) {
        if let Ok(pattern) = text.parse::<Pattern>() {
            prop_assert_eq!(&pattern.to_string().parse::<Pattern>().unwrap(), &pattern);
            let _ = Access::new(&pattern, 50, 1).map(|mut access| access.next());
        }
    }
}
