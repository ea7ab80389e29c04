use super::*;
use proptest::prelude::*;

fn read(text: &str) -> BlockSizes {
    text.parse().unwrap()
}

#[test]
fn known_texts() {
    assert_eq!(read("4k"), BlockSizes::fixed(4096).unwrap());
    assert_eq!(read("4KB"), BlockSizes::fixed(4000).unwrap());
    assert_eq!(read("4k:70,64k:30%"), BlockSizes::split(&[(4096, 70), (65536, 30)]).unwrap());
    assert_eq!(read("4k-64k"), BlockSizes::range(4096, 65536, 4096).unwrap());
    assert_eq!(read("4k-64k/12k"), BlockSizes::range(4096, 65536, 12288).unwrap());
    assert_eq!(read("512-1k/1").to_string(), "512-1KiB/1");
    assert_eq!(read("4k:70,64k:30").to_string(), "4KiB:70,64KiB:30");
    assert_eq!(read("4k-64k").to_string(), "4KiB-64KiB");
}

#[test]
fn figures() {
    let sizes = read("4k:70,6k:30");
    assert_eq!((sizes.min(), sizes.max(), sizes.granularity(), sizes.single()), (4096, 6144, 2048, None));
    assert_eq!(sizes.mean(), 4096.0 * 0.7 + 6144.0 * 0.3);
    let sizes = read("4k-64k/12k");
    assert_eq!((sizes.min(), sizes.max(), sizes.granularity()), (4096, 65536, 4096));
    assert_eq!(sizes.mean(), 34816.0);
    let sizes = read("1m");
    assert_eq!((sizes.single(), sizes.granularity(), sizes.mean()), (Some(1 << 20), 1 << 20, 1048576.0));
}

#[test]
fn refusals() {
    let line = |text: &str| text.parse::<BlockSizes>().expect_err(text).to_string();
    assert_eq!(
        line("4k:70,64k:20"),
        "\"4KiB:70,64KiB:20\" is not a block size: use shares that add up to 100 (these make 90)"
    );
    assert_eq!(line("0"), "\"0\" is not a block size: use at least 1 byte");
    let garbage = [
        "",
        "1zz",
        "-1",
        "4k-",
        "-4k",
        "64k-4k",
        "4k-4k",
        "0-4k",
        "4k-64k/0",
        "4k-64k/7k",
        "4k-65k",
        "4k:",
        ":100",
        "4k:100,",
        "4k:50,4k:50",
        "0:100",
        "4k:100,8k:0",
        "4k:101",
        "4k-8k-16k",
        "4k/2k",
        "4k,8k",
        "4k:50;8k:50",
    ];
    for text in garbage {
        let line = line(text);
        assert!(line.contains(" is not a block size: use ") && !line.contains('\n'), "{line}");
    }
}

#[test]
fn draws_follow_the_shares() {
    let mut random = Random::new(3);
    let sizes = read("4k:70,64k:25,1m:5");
    let draws = 200_000u32;
    let mut counts = std::collections::HashMap::new();
    for _ in 0..draws {
        *counts.entry(sizes.next(&mut random)).or_insert(0u32) += 1;
    }
    for (bytes, share) in [(4096, 0.7), (65536, 0.25), (1 << 20, 0.05)] {
        let deviation = (f64::from(draws) * share * (1.0 - share)).sqrt();
        let error = f64::from(counts[&bytes]) - f64::from(draws) * share;
        assert!(error.abs() < 4.0 * deviation, "{bytes}: off by {error}");
    }
    assert_eq!(counts.len(), 3);
}

#[test]
fn draws_reach_every_size_of_a_range() {
    let mut random = Random::new(4);
    let sizes = read("4k-64k");
    let mut counts = [0u32; 16];
    for _ in 0..160_000 {
        let bytes = sizes.next(&mut random);
        assert!(bytes.is_multiple_of(4096));
        counts[(bytes / 4096 - 1) as usize] += 1;
    }
    let chi: f64 = counts.iter().map(|&count| (f64::from(count) - 1e4).powi(2) / 1e4).sum();
    assert!(chi < 15.0 + 4.0 * 30f64.sqrt(), "chi-square {chi}");
}

#[test]
fn json() {
    assert_eq!(serde_json::to_string(&read("4k:70,64k:30")).unwrap(), "\"4KiB:70,64KiB:30\"");
    assert_eq!(serde_json::from_str::<BlockSizes>("\"4k-8k\"").unwrap(), read("4k-8k"));
    assert_eq!(serde_json::from_str::<BlockSizes>("4096").unwrap(), read("4k"));
    assert!(serde_json::from_str::<BlockSizes>("0").is_err());
}

proptest! {
    #[test]
    fn text_round_trips(a in 1u64..=1 << 40, b in 1u64..=1 << 40, steps in 1u64..100, percent in 1u8..100) {
        prop_assume!(a != b);
        for sizes in [
            BlockSizes::fixed(a),
            BlockSizes::split(&[(a, percent), (b, 100 - percent)]),
            BlockSizes::range(a, a + b * steps, b),
        ] {
            let sizes = sizes.unwrap();
            prop_assert_eq!(&read(&sizes.to_string()), &sizes);
            let mut random = Random::new(a);
            for _ in 0..20 {
                let bytes = sizes.next(&mut random);
                prop_assert!(bytes >= sizes.min() && bytes <= sizes.max() && bytes % sizes.granularity() == 0);
            }
        }
    }

    #[test]
    fn no_text_panics(text in prop_oneof![".*", "[0-9]{1,21}[kmgteb]{0,2}[-:][0-9]{1,21}[kmge]?[/,%]?[0-9]{0,3}"]) {
        if let Ok(sizes) = text.parse::<BlockSizes>() {
            let bytes = sizes.next(&mut Random::new(1));
            prop_assert!(bytes >= sizes.min() && bytes <= sizes.max());
        }
    }
}

#[test]
fn a_number_has_one_size() {
    for text in ["4k", "4k:70,64k:30", "1k-64k", "1-3/1"] {
        let sizes = read(text);
        let drawn: Vec<u64> = (0..20_000).map(|number| sizes.of(number)).collect();
        assert!(drawn.iter().zip(0..).all(|(&size, number)| size == sizes.of(number)), "{text}");
        assert_eq!(
            (drawn.iter().min(), drawn.iter().max()),
            (Some(&sizes.min()), Some(&sizes.max())),
            "{text}"
        );
        let mean = drawn.iter().sum::<u64>() as f64 / drawn.len() as f64;
        assert!((mean / sizes.mean() - 1.0).abs() < 0.03, "{text}: {mean}");
    }
    let shares = read("4k:70,64k:30");
    let small = (0..100_000).filter(|&number| shares.of(number) == 4096).count();
    assert!((69_000..71_000).contains(&small), "{small} of 100000");
}
