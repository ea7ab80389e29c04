use proptest::prelude::*;
use statistics::{
    ClassPoint, ClassTotals, Merger, Pack, PartTotals, PhaseSamples, Series, Snapshot, SparseHistogram,
    WorkerSamples, merge,
};

use crate::histogram::{filled, latencies};

fn histogram() -> impl Strategy<Value = SparseHistogram> {
    prop_oneof![
        1 => Just(SparseHistogram::default()),
        4 => latencies().prop_map(|values| SparseHistogram::from(&filled(&values))),
        1 => Just(SparseHistogram::from(&filled(&[u64::MAX, 0, u64::MAX]))),
    ]
}

/// Histograms in every place that has one.
fn worker() -> impl Strategy<Value = WorkerSamples> {
    prop::collection::vec(histogram(), 7).prop_map(|histograms| {
        let [latency, unfinished, submission, completion, part, items, lateness] =
            <[SparseHistogram; 7]>::try_from(histograms).expect("seven");
        let has_some = !submission.is_empty();
        WorkerSamples {
            classes: vec![ClassTotals {
                class: "read".to_owned(),
                operations: latency.count(),
                latency,
                unfinished,
                submission: has_some.then_some(submission),
                completion: has_some.then_some(completion),
                ..ClassTotals::default()
            }],
            parts: vec![PartTotals {
                part: 3,
                operations: part.count(),
                latency: part,
                ..PartTotals::default()
            }],
            items: (!items.is_empty()).then_some(items),
            lateness: (!lateness.is_empty()).then_some(lateness),
            ..WorkerSamples::default()
        }
    })
}

fn phase() -> impl Strategy<Value = PhaseSamples> {
    let points = prop::collection::vec((0_u64..40, histogram(), histogram()), 0..20);
    let workers = prop::collection::vec(worker(), 0..3);
    (points, workers, 0_u64..3, 0_u64..500, any::<bool>()).prop_map(
        |(points, workers, doubled, late, has_read)| {
            let interval_ns = 100 << doubled;
            let mut series = Series::new(interval_ns, 16, 1);
            for (at, latency, unfinished) in points {
                let point =
                    ClassPoint { operations: latency.count(), bytes: 7, errors: 1, latency, unfinished };
                series.add(at * interval_ns, 0, &point);
                series.add_in_flight(at * interval_ns, at);
            }
            series.finish(series.points.last().map_or(0, |point| point.start_ns + 1));
            let class = if has_read { "read" } else { "write" };
            PhaseSamples {
                classes: vec![class.to_owned()],
                window_ns: Some(1000),
                started_ns: 1000 + late,
                elapsed_ns: 1000,
                workers,
                series,
                interrupted: None,
                process_cpu_user_ns: 1,
                process_cpu_system_ns: 2,
            }
        },
    )
}

/// Both parts of a message: JSON without what is packed, and bytes.
fn sent(samples: &PhaseSamples) -> (Vec<u8>, Vec<u8>) {
    let mut samples = samples.clone();
    let mut bytes = Vec::new();
    samples.pack(&mut bytes);
    (serde_json::to_vec(&samples).expect("JSON"), bytes)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn what_is_packed_comes_out_as_it_was(samples in phase(), latency in histogram()) {
        let (json, bytes) = sent(&samples);
        let mut read: PhaseSamples = serde_json::from_slice(&json).expect("JSON");
        let mut rest = &bytes[..];
        read.unpack(&mut rest).expect("what was packed");
        prop_assert!(rest.is_empty());
        prop_assert_eq!(&read, &samples);
        let snapshot = Snapshot { latency, ..Snapshot::default() };
        let (mut packed, mut bytes) = (snapshot.clone(), Vec::new());
        packed.pack(&mut bytes);
        prop_assert!(packed.latency.is_empty());
        packed.unpack(&mut &bytes[..]).expect("what was packed");
        prop_assert_eq!(packed, snapshot);
    }

    #[test]
    fn bytes_of_others_are_refused_or_give_sound_samples(
        samples in phase(), at in any::<prop::sample::Index>(), byte in any::<u8>(), cut in any::<prop::sample::Index>(),
    ) {
        let (json, mut bytes) = sent(&samples);
        let changed = at.index(bytes.len());
        bytes[changed] = byte;
        for bytes in [&bytes[..], &bytes[..cut.index(bytes.len())]] {
            let mut read: PhaseSamples = serde_json::from_slice(&json).expect("JSON");
            if read.unpack(&mut &*bytes).is_ok() {
                let latencies = read.workers.iter().flat_map(|worker| &worker.classes).map(|class| &class.latency);
                for latency in latencies {
                    prop_assert_eq!(&SparseHistogram::from(&latency.to_histogram()), latency);
                }
            }
        }
    }

    #[test]
    fn phases_that_come_one_by_one_are_merged_as_all_at_once(
        samples in prop::collection::vec(phase(), 1..6), repeats in 1_usize..20,
    ) {
        let all: Vec<&PhaseSamples> = samples.iter().cycle().take(samples.len() * repeats).collect();
        // The grid is that of the coarsest, which the first one has: those before it would be moved by the finer one.
        let mut all = all;
        all.sort_by_key(|part| std::cmp::Reverse(part.series.interval_ns));
        let mut merger = Merger::new(all.iter().map(|part| part.started_ns).min().expect("one at least"));
        all.iter().for_each(|part| merger.add((*part).clone()));
        prop_assert_eq!(merger.finish(), merge(&all));
    }
}

#[test]
fn a_series_that_no_process_has_is_refused() {
    let mut series = Series::new(100, 16, 1);
    series.finish(300);
    let whole = PhaseSamples {
        classes: vec!["read".to_owned()],
        window_ns: None,
        started_ns: 0,
        elapsed_ns: 300,
        workers: Vec::new(),
        series,
        interrupted: None,
        process_cpu_user_ns: 0,
        process_cpu_system_ns: 0,
    };
    let (_, bytes) = sent(&whole);
    let refuse = |change: fn(&mut Series)| {
        let mut samples = PhaseSamples { series: Series::new(100, 16, 1), ..whole.clone() };
        change(&mut samples.series);
        samples.unpack(&mut &bytes[..]).expect_err("it cannot be").to_string()
    };
    assert!(refuse(|series| series.interval_ns = 0).contains("intervals of 0 ns"));
    assert!(refuse(|series| series.capacity = usize::MAX).contains("a series of"));
    assert!(refuse(|series| series.capacity = 2).contains("3 intervals in a series of at most 2"));
    assert!(refuse(|series| series.class_count = 5).contains("1 classes in a series of 5"));
}
