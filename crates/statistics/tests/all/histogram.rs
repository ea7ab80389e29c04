use proptest::prelude::*;
use statistics::{Histogram, PartHistograms, SparseHistogram};

use crate::random::Random;

pub(crate) fn filled(values: &[u64]) -> Histogram {
    let mut histogram = Histogram::new();
    values.iter().for_each(|value| histogram.record(*value));
    histogram
}

/// Nearest rank over sorted values, in whole numbers: `permille` of 1000.
fn true_percentile(sorted: &[u64], permille: u64) -> u64 {
    let rank = (permille * sorted.len() as u64).div_ceil(1000).max(1);
    sorted[rank as usize - 1]
}

/// Latencies over the whole range, evenly over the powers of two.
pub(crate) fn latencies() -> impl Strategy<Value = Vec<u64>> {
    let one = (0_u32..43, any::<u64>()).prop_map(|(bits, low)| (1 << bits) | (low & ((1 << bits) - 1)));
    prop::collection::vec(prop_oneof![8 => one, 1 => 0..3000_u64], 1..600)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(192))]

    #[test]
    fn percentiles_are_within_a_thousandth(values in latencies(), permille in 0_u64..=1000) {
        let mut sorted = values.clone();
        sorted.sort_unstable();
        let histogram = filled(&values);
        let truth = true_percentile(&sorted, permille);
        let found = histogram.percentile(permille as f64 / 10.0).unwrap();
        prop_assert!(found.abs_diff(truth) as f64 <= 0.001 * truth as f64, "{} for {}", found, truth);
        prop_assert_eq!(histogram.count(), values.len() as u64);
        prop_assert_eq!(histogram.min_ns(), sorted.first().copied());
        prop_assert_eq!(histogram.max_ns(), sorted.last().copied());
        prop_assert_eq!(histogram.sum_ns(), values.iter().map(|value| u128::from(*value)).sum::<u128>());
        prop_assert_eq!(histogram.saturated(), 0);
    }

    #[test]
    fn small_values_are_exact(values in prop::collection::vec(0..2048_u64, 1..300), permille in 0_u64..=1000) {
        let mut sorted = values.clone();
        sorted.sort_unstable();
        let found = filled(&values).percentile(permille as f64 / 10.0).unwrap();
        prop_assert_eq!(found, true_percentile(&sorted, permille));
    }

    #[test]
    fn merging_is_recording_everything_in_one(a in latencies(), b in latencies(), c in latencies()) {
        let all: Vec<u64> = a.iter().chain(&b).chain(&c).copied().collect();
        let mut left = filled(&a);
        left.merge(&filled(&b));
        left.merge(&filled(&c));
        let mut right = filled(&b);
        right.merge(&filled(&c));
        let mut first = filled(&a);
        first.merge(&right);
        prop_assert_eq!(&left, &first);
        prop_assert_eq!(&left, &filled(&all));
        let mut sparse = SparseHistogram::from(&filled(&c));
        sparse.merge(&SparseHistogram::from(&filled(&a)));
        sparse.merge(&SparseHistogram::from(&filled(&b)));
        prop_assert_eq!(&sparse, &SparseHistogram::from(&left));
        prop_assert_eq!(sparse.to_histogram(), left);
    }

    #[test]
    fn the_stored_form_loses_nothing(mut values in latencies(), beyond in any::<bool>()) {
        if beyond {
            values.extend([1 << 43, u64::MAX, u64::MAX]);
        }
        let histogram = filled(&values);
        let sparse = SparseHistogram::from(&histogram);
        prop_assert_eq!(&Histogram::from(&sparse), &histogram);
        let json = serde_json::to_string(&sparse).unwrap();
        let back: SparseHistogram = serde_json::from_str(&json).unwrap();
        prop_assert_eq!(&back, &sparse);
        prop_assert_eq!(sparse.percentile(99.0), histogram.percentile(99.0));
        prop_assert_eq!(sparse.count(), histogram.count());
        prop_assert_eq!(sparse.mean_ns(), histogram.mean_ns());
    }

    #[test]
    fn clearing_leaves_nothing(values in latencies()) {
        let mut histogram = filled(&values);
        histogram.clear();
        prop_assert_eq!(histogram, Histogram::new());
    }
}

#[test]
fn buckets_tile_the_range() {
    let mut histogram = Histogram::new();
    // Every value below 2^20 once: each bucket must hold as many as it is wide.
    (0..1 << 20).for_each(|value| histogram.record(value));
    let mut next = 0;
    for bucket in histogram.buckets() {
        assert_eq!(bucket.low_ns, next);
        let width = bucket.high_ns - bucket.low_ns + 1;
        assert_eq!(bucket.count, width);
        assert!(width == 1 || width * 1024 <= bucket.low_ns, "{bucket:?}");
        next = bucket.high_ns + 1;
    }
    assert_eq!(next, 1 << 20);
}

#[test]
fn what_lies_above_the_range_is_counted_apart() {
    let mut histogram = Histogram::new();
    histogram.record_n(1000, 98);
    histogram.record(Histogram::RANGE_NS_MAX);
    assert_eq!(histogram.saturated(), 0);
    histogram.record(Histogram::RANGE_NS_MAX + 1);
    histogram.record(u64::MAX - 5);
    assert_eq!(histogram.saturated(), 2);
    assert_eq!(histogram.count(), 101);
    assert_eq!(histogram.max_ns(), Some(u64::MAX - 5));
    assert_eq!(histogram.percentile(50.0), Some(1000));
    assert_eq!(histogram.percentile(100.0), Some(u64::MAX - 5));
    let sum = 98_000 + u128::from(Histogram::RANGE_NS_MAX) * 2 + 1 + u128::from(u64::MAX) - 5;
    assert_eq!(histogram.sum_ns(), sum);
    let stored = serde_json::to_value(SparseHistogram::from(&histogram)).unwrap();
    assert_eq!(stored["saturated"], 2);
    assert_eq!(stored["sum_ns_wraps"], 1);
}

#[test]
fn the_range_holds_more_than_an_hour_within_300_kib() {
    const { assert!(Histogram::RANGE_NS_MAX >= 1 << 42) };
    let mut histogram = Histogram::new();
    histogram.record(1 << 42);
    assert_eq!(histogram.saturated(), 0);
    let highest = histogram.buckets().last().unwrap();
    assert_eq!((highest.low_ns, highest.high_ns), (1 << 42, (1 << 42) + (1 << 32) - 1));
}

#[test]
fn an_empty_histogram_has_no_figures() {
    let histogram = Histogram::new();
    assert!(histogram.is_empty());
    assert_eq!((histogram.count(), histogram.min_ns(), histogram.max_ns()), (0, None, None));
    assert_eq!((histogram.percentile(50.0), histogram.mean_ns(), histogram.stddev_ns()), (None, None, None));
    let mut other = filled(&[5]);
    other.merge(&histogram);
    assert_eq!(other, filled(&[5]));
    let empty = serde_json::to_string(&SparseHistogram::default()).unwrap();
    assert_eq!(empty, r#"{"buckets":[],"min_ns":null,"max_ns":null,"sum_ns":0,"saturated":0}"#);
    assert_eq!(serde_json::from_str::<SparseHistogram>(&empty).unwrap(), SparseHistogram::from(&histogram));
}

#[test]
fn percentiles_use_the_nearest_rank() {
    let values: Vec<u64> = (1..=1000).collect();
    let histogram = filled(&values);
    for (percent, expected) in
        [(0.0, 1), (0.1, 1), (50.0, 500), (99.0, 990), (99.9, 999), (99.95, 1000), (100.0, 1000)]
    {
        assert_eq!(histogram.percentile(percent), Some(expected), "p{percent}");
    }
    assert_eq!(histogram.percentile(-1.0), None);
    assert_eq!(histogram.percentile(100.1), None);
    assert_eq!(histogram.percentile(f64::NAN), None);
}

#[test]
fn declared_service_times_come_back() {
    // Exponential with mean 80 us: p = -ln(1 - q) mean; a million values pin p99 to well under 1 %.
    let mut random = Random::new(3);
    let mut values: Vec<u64> = (0..1_000_000).map(|_| (random.exponential() * 80_000.0) as u64).collect();
    let histogram = filled(&values);
    values.sort_unstable();
    for permille in [500, 900, 950, 990, 999] {
        let truth = true_percentile(&values, permille) as f64;
        let found = histogram.percentile(permille as f64 / 10.0).unwrap() as f64;
        assert!((found / truth - 1.0).abs() < 0.001, "{permille}: {found} {truth}");
    }
    assert!((histogram.mean_ns().unwrap() / 80_000.0 - 1.0).abs() < 0.005);
    assert!((histogram.stddev_ns().unwrap() / 80_000.0 - 1.0).abs() < 0.005);
}

#[test]
fn a_stored_histogram_that_cannot_be_one_is_refused() {
    let cases = [
        (
            r#"{"buckets":[[2049,1]],"min_ns":2049,"max_ns":2049,"sum_ns":2049,"saturated":0}"#,
            "[2049, 1] does not start",
        ),
        (
            r#"{"buckets":[[7,1],[6,1]],"min_ns":6,"max_ns":7,"sum_ns":13,"saturated":0}"#,
            "[6, 1] is not above",
        ),
        (r#"{"buckets":[[7,0]],"min_ns":7,"max_ns":7,"sum_ns":0,"saturated":0}"#, "[7, 0] is empty"),
        (r#"{"buckets":[[7,1]],"min_ns":null,"max_ns":7,"sum_ns":7,"saturated":0}"#, "do not fit"),
        (r#"{"buckets":[[7,1]],"min_ns":7,"max_ns":9,"sum_ns":7,"saturated":0}"#, "do not fit"),
        (r#"{"buckets":[[7,2]],"min_ns":7,"max_ns":7,"sum_ns":15,"saturated":0}"#, "do not fit"),
        (
            r#"{"buckets":[[7,18446744073709551615],[8,1]],"min_ns":7,"max_ns":8,"sum_ns":1,"saturated":0}"#,
            "pass 2^64",
        ),
    ];
    for (text, expected) in cases {
        let error = serde_json::from_str::<SparseHistogram>(text).unwrap_err().to_string();
        assert!(error.contains(expected), "{text}: {error}");
    }
}

#[test]
fn the_schema_shows_what_is_stored() {
    let schema = serde_json::to_value(schemars::schema_for!(SparseHistogram)).unwrap();
    assert_eq!(schema["title"], "SparseHistogram");
    for field in ["buckets", "min_ns", "max_ns", "sum_ns", "sum_ns_wraps", "saturated"] {
        assert!(schema["properties"][field].is_object(), "{field} in {schema}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn parts_from_one_pool_are_what_full_histograms_are(
        values in prop::collection::vec((0_usize..70, 0_u32..64, any::<u64>()), 0..600), count in prop_oneof![Just(5_usize), Just(70)],
    ) {
        let mut pooled = PartHistograms::new(count);
        let mut full = vec![Histogram::new(); count];
        for (part, bits, low) in &values {
            let (part, ns) = (part % count, low >> bits);
            pooled.record(part, ns);
            full[part].record(ns);
        }
        let mut merged = SparseHistogram::default();
        let mut merged_full = Histogram::new();
        for (part, full) in full.iter().enumerate() {
            prop_assert_eq!(pooled.sparse(part), SparseHistogram::from(full));
            merged.merge(&pooled.sparse(part));
            merged_full.merge(full);
        }
        prop_assert_eq!(merged.to_histogram(), merged_full);
    }
}

#[test]
fn every_bucket_of_every_part_has_room() {
    let mut pooled = PartHistograms::new(65);
    assert_eq!(pooled.taken_bytes(), 0);
    let full = Histogram::new();
    let lows = || (0..=42).flat_map(|bits| (0..1024_u64).map(move |at| (1 << bits) + (at << bits) / 1024));
    for part in [0, 30, 64] {
        lows().chain([0, u64::MAX]).for_each(|ns| pooled.record(part, ns));
    }
    let mut all = full;
    lows().chain([0, u64::MAX]).for_each(|ns| all.record(ns));
    for part in [0, 30, 64] {
        assert_eq!(pooled.sparse(part), SparseHistogram::from(&all));
    }
    assert_eq!(pooled.taken_bytes(), 3 * 545 * 512, "all chunks of all parts");
    let mut narrow = PartHistograms::new(1000);
    (0..1000).for_each(|part| narrow.record(part, 100_000));
    assert_eq!(narrow.taken_bytes(), 1000 * 512, "as much as was seen");
}
