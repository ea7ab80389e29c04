use statistics::{
    ClassPoint, ClassTotals, Histogram, LatencySummary, PhaseSamples, Series, SparseHistogram, SteadyReason,
    WarmUp, WorkerSamples, summarise,
};

const INTERVAL_NS: u64 = 100_000_000;

fn latencies(latency_ns: u64, count: u64) -> SparseHistogram {
    let mut histogram = Histogram::new();
    histogram.record_n(latency_ns, count);
    SparseHistogram::from(&histogram)
}

/// A phase built from what each worker did in each interval: `(operations, latency_ns)` of 4 KiB.
fn phase(workers: &[Vec<(u64, u64)>]) -> PhaseSamples {
    let intervals = workers.iter().map(Vec::len).max().unwrap();
    let elapsed_ns = intervals as u64 * INTERVAL_NS;
    let mut series = Series::new(INTERVAL_NS, 512, 1);
    let samples = workers.iter().enumerate().map(|(worker, did)| {
        let mut totals = ClassTotals { class: "read".to_owned(), ..ClassTotals::default() };
        for (at, (operations, latency_ns)) in did.iter().enumerate() {
            let latency = latencies(*latency_ns, *operations);
            totals.operations += operations;
            totals.bytes += operations * 4096;
            totals.latency.merge(&latency);
            let point = ClassPoint {
                operations: *operations,
                bytes: operations * 4096,
                errors: 0,
                latency,
                ..ClassPoint::default()
            };
            series.add(at as u64 * INTERVAL_NS, 0, &point);
        }
        let finished_ns = did.len() as u64 * INTERVAL_NS;
        WorkerSamples {
            worker,
            finished_ns,
            classes: vec![totals],
            tool_ns: finished_ns / 10,
            ..WorkerSamples::default()
        }
    });
    let workers = samples.collect();
    series.finish(elapsed_ns);
    PhaseSamples {
        classes: vec!["read".to_owned()],
        window_ns: None,
        started_ns: 0,
        elapsed_ns,
        workers,
        series,
        interrupted: None,
        process_cpu_user_ns: elapsed_ns / 2,
        process_cpu_system_ns: elapsed_ns / 4,
    }
}

#[test]
fn a_steady_phase_is_summed_up_whole() {
    // 1000 operations of 200 us each in 100 ms: 10000 a second, 2 in flight.
    let summary = summarise(&phase(&[vec![(1000, 200_000); 40]]), WarmUp::Auto);
    let total = &summary.total;
    assert_eq!((total.operations, total.bytes, total.errors), (40_000, 40_000 * 4096, 0));
    assert_eq!(total.window_operations, 40_000);
    assert!((total.operations_per_second - 10_000.0).abs() < 1e-6);
    assert!((total.bytes_per_second - 40_960_000.0).abs() < 1e-3);
    let rate = total.rate.as_ref().unwrap();
    assert!((rate.mean - 10_000.0).abs() < 1e-6 && rate.high - rate.low < 1e-6);
    let latency = total.latency.as_ref().unwrap();
    assert_eq!(
        (latency.count, latency.p50_ns, latency.p99_9_ns, latency.max_ns),
        (40_000, 200_000, Some(200_000), 200_000)
    );
    assert_eq!(latency.p99_99_ns, None, "4 operations lie beyond it");
    assert!((summary.concurrency - 2.0).abs() < 1e-9);
    assert!(summary.steady.is_steady);
    assert_eq!((summary.window_start_ns, summary.window_end_ns), (0, 4_000_000_000));
    assert_eq!(summary.first_done, None);
    assert_eq!(summary.stonewalled, None);
    assert_eq!(summary.last_done.operations, 40_000);
    assert!((summary.cpu_ns_per_operation.unwrap() - 75_000.0).abs() < 1e-6);
    assert!((summary.tool_ns_per_operation.unwrap() - 10_000.0).abs() < 1e-6);
    assert!((summary.cpus_used - 0.75).abs() < 1e-9 && (summary.tool_share_max - 0.1).abs() < 1e-9);
    assert_eq!(summary.classes.len(), 1);
    assert_eq!(summary.classes[0].class, "read");
    assert_eq!(summary.classes[0].latency, total.latency);
}

#[test]
fn warm_up_is_in_the_totals_but_not_in_the_rates() {
    let mut did = vec![(100, 2_000_000); 10];
    did.extend(vec![(1000, 200_000); 40]);
    let samples = phase(&[did]);
    let summary = summarise(&samples, WarmUp::Auto);
    assert_eq!(summary.steady.begins_at, 10);
    assert_eq!(summary.window_start_ns, 10 * INTERVAL_NS);
    assert_eq!((summary.total.operations, summary.total.window_operations), (41_000, 40_000));
    assert!((summary.total.operations_per_second - 10_000.0).abs() < 1e-6);
    assert_eq!(summary.total.latency.as_ref().unwrap().max_ns, 200_000);
    assert_eq!(summary.last_done.operations, 41_000);
    let kept = summarise(&samples, WarmUp::None);
    assert_eq!((kept.window_start_ns, kept.total.window_operations), (0, 41_000));
    assert_eq!(kept.total.latency.as_ref().unwrap().max_ns, 2_000_000);
    assert!((kept.total.operations_per_second - 8200.0).abs() < 1e-6);
}

#[test]
fn the_tail_of_a_slow_worker_counts_for_last_done_only() {
    let samples = phase(&[vec![(1000, 100_000); 30], vec![(500, 200_000); 40]]);
    let summary = summarise(&samples, WarmUp::Auto);
    assert!(summary.steady.is_steady, "{:?}", summary.steady);
    assert_eq!(summary.window_end_ns, 30 * INTERVAL_NS);
    assert!((summary.total.operations_per_second - 15_000.0).abs() < 1e-6);
    let first = summary.first_done.unwrap();
    assert_eq!((first.elapsed_ns, first.operations), (3_000_000_000, 45_000));
    assert!((first.operations_per_second - 15_000.0).abs() < 1e-6);
    assert_eq!(summary.last_done.operations, 50_000);
    assert!((summary.last_done.operations_per_second - 12_500.0).abs() < 1e-6);
    assert!((summary.last_done.bytes_per_second - 12_500.0 * 4096.0).abs() < 1e-3);
}

#[test]
fn what_the_first_worker_did_is_done_when_it_is() {
    // Shorter than an interval: the first worker does 1,000 operations in 1 ms, the second the same in 4 ms.
    let mut samples = phase(&[vec![(1000, 1000)], vec![(1000, 1000)]]);
    for (worker, finished_ns) in samples.workers.iter_mut().zip([1_000_000, 4_000_000]) {
        (worker.started_ns, worker.finished_ns) = (0, finished_ns);
    }
    samples.elapsed_ns = 4_000_000;
    samples.series.points[0].end_ns = 4_000_000;
    let first = summarise(&samples, WarmUp::None).first_done.unwrap();
    assert_eq!((first.elapsed_ns, first.operations, first.bytes), (1_000_000, 1250, 1250 * 4096));
    assert!((first.operations_per_second - 1_250_000.0).abs() < 1e-6);
    assert_eq!(samples.done_by(Some(0), 0), (0.0, 0.0));
    assert_eq!(samples.done_by(Some(0), 4_000_000).0, 2000.0);
    // Nothing is known of the workers: spread evenly.
    samples.workers.clear();
    assert_eq!(samples.done_by(None, 1_000_000).0, 500.0);
}

#[test]
fn a_failed_worker_does_not_end_the_window() {
    let mut samples =
        phase(&[vec![(500, 100_000); 21], vec![(1000, 100_000); 40], vec![(1000, 100_000); 40]]);
    samples.workers[0].failure = Some("input/output error".to_owned());
    let summary = summarise(&samples, WarmUp::None);
    assert_eq!(summary.window_end_ns, samples.elapsed_ns);
    assert_eq!(summary.first_done.unwrap().elapsed_ns, samples.elapsed_ns);
    assert_eq!(summary.total.window_operations, 90_500);
}

#[test]
fn a_deadline_missed_is_stonewalled() {
    let mut samples = phase(&[vec![(1000, 100_000); 40], vec![(1000, 100_000); 40]]);
    samples.window_ns = Some(2_050_000_000);
    let stonewalled = summarise(&samples, WarmUp::Auto).stonewalled.unwrap();
    assert_eq!((stonewalled.elapsed_ns, stonewalled.operations), (2_050_000_000, 41_000));
    samples.window_ns = Some(9_000_000_000);
    let stonewalled = summarise(&samples, WarmUp::Auto).stonewalled.unwrap();
    assert_eq!((stonewalled.elapsed_ns, stonewalled.operations), (4_000_000_000, 80_000));
}

#[test]
fn a_cliff_keeps_the_whole_phase() {
    let mut did = vec![(3000, 100_000); 30];
    did.extend(vec![(1000, 300_000); 12]);
    let summary = summarise(&phase(&[did]), WarmUp::Auto);
    assert_eq!(summary.steady.reason, SteadyReason::RateDropped);
    let drop = summary.steady.drop.as_ref().unwrap();
    assert_eq!(drop.at_interval, 30);
    assert_eq!((drop.operations_per_second_before, drop.operations_per_second_after), (30_000.0, 10_000.0));
    let dropped = summary.dropped.as_ref().unwrap();
    assert_eq!(
        (dropped.elapsed_ns, dropped.operations, dropped.bytes),
        (3_000_000_000, 90_000, 90_000 * 4096)
    );
    assert_eq!((summary.window_start_ns, summary.window_end_ns), (0, 42 * INTERVAL_NS));
    assert_eq!(summary.total.window_operations, 102_000);
}

#[test]
fn a_cliff_in_the_first_half_keeps_the_whole_phase_too() {
    let did = [vec![(3000, 100_000); 16], vec![(1000, 300_000); 24]].concat();
    let summary = summarise(&phase(&[did]), WarmUp::Auto);
    assert_eq!((summary.steady.reason, summary.steady.is_steady), (SteadyReason::RateDropped, false));
    assert_eq!((summary.window_start_ns, summary.total.window_operations), (0, 72_000));
    assert_eq!(summary.dropped.map(|dropped| dropped.operations), Some(48_000));
}

#[test]
fn a_rate_that_wanders_is_not_steady() {
    // Six long spells that differ: no change stands out, and no two neighbours are independent.
    let spells = [1000, 700, 1000, 700, 1000, 700].map(|done| vec![(done, 100_000); 15]);
    let summary = summarise(&phase(&[spells.concat()]), WarmUp::None);
    let worth = summary.total.rate.as_ref().unwrap().effective_samples;
    assert_eq!(summary.steady.is_steady, worth >= 4.0, "{worth} {:?}", summary.steady);
    let long = [1000, 700, 1000, 700, 1000, 700].map(|done| vec![(done, 100_000); 80]);
    let summary = summarise(&phase(&[long.concat()]), WarmUp::None);
    assert!(!summary.steady.is_steady, "{:?}", summary.steady);
}

#[test]
fn nothing_completed_is_no_rate_that_could_be_sure() {
    let samples = phase(&[vec![(0, 0); 40]]);
    let summary = summarise(&samples, WarmUp::Auto);
    assert_eq!((&summary.total.rate, &summary.total.bandwidth), (&None, &None));
}

#[test]
fn percentiles_need_ten_operations_beyond_them() {
    let told = |count: u64| {
        let mut histogram = Histogram::new();
        (0..count).for_each(|at| histogram.record(1000 + at));
        let found = LatencySummary::of(&histogram).unwrap();
        let all = [found.p90_ns, found.p95_ns, found.p99_ns, found.p99_9_ns, found.p99_99_ns];
        all.iter().filter(|ns| ns.is_some()).count()
    };
    let counts = [1, 99, 100, 199, 200, 340, 999, 1000, 9_999, 10_000, 99_999, 100_000];
    assert_eq!(counts.map(told), [0, 0, 1, 1, 2, 2, 2, 3, 3, 4, 4, 5]);
}

#[test]
fn a_phase_that_did_nothing_has_no_figures() {
    let mut samples = phase(&[vec![(0, 0); 1]]);
    samples.series = Series::new(INTERVAL_NS, 512, 1);
    samples.elapsed_ns = 0;
    samples.workers[0].finished_ns = 0;
    let summary = summarise(&samples, WarmUp::Auto);
    assert_eq!(summary.total.operations_per_second, 0.0);
    assert_eq!((&summary.total.latency, &summary.total.rate), (&None, &None));
    assert_eq!((summary.cpu_ns_per_operation, summary.concurrency), (None, 0.0));
    assert!(!summary.steady.is_steady);
}

#[test]
fn classes_are_told_apart() {
    let mut samples = phase(&[vec![(1000, 100_000); 20]]);
    samples.classes.push("write".to_owned());
    samples.workers[0].classes.push(ClassTotals {
        class: "write".to_owned(),
        operations: 2000,
        bytes: 2000 * 512,
        errors: 3,
        latency: latencies(700_000, 2000),
        ..ClassTotals::default()
    });
    let mut series = Series::new(INTERVAL_NS, 512, 2);
    for at in 0..20 {
        let one = |operations, size, latency_ns| ClassPoint {
            operations,
            bytes: operations * size,
            errors: 0,
            latency: latencies(latency_ns, operations),
            ..ClassPoint::default()
        };
        series.add(at * INTERVAL_NS, 0, &one(1000, 4096, 100_000));
        series.add(at * INTERVAL_NS, 1, &one(100, 512, 700_000));
    }
    samples.series = series;
    let summary = summarise(&samples, WarmUp::Auto);
    let [read, write] = &summary.classes[..] else { panic!("two classes") };
    assert_eq!((read.operations, write.operations, summary.total.operations), (20_000, 2000, 22_000));
    assert_eq!((write.errors, summary.total.errors), (3, 3));
    assert!((write.operations_per_second - 1000.0).abs() < 1e-6);
    assert!((write.bandwidth.as_ref().unwrap().mean - 512_000.0).abs() < 1e-6);
    assert_eq!(write.latency.as_ref().unwrap().p50_ns, 700_000);
    let total = summary.total.latency.as_ref().unwrap();
    assert!(
        total.p90_ns.unwrap().abs_diff(100_000) < 100 && total.p95_ns.unwrap().abs_diff(700_000) < 700,
        "{total:?}"
    );
}

#[test]
fn samples_and_summary_come_back_from_json() {
    let samples = phase(&[vec![(1000, 123_456); 12], vec![(990, 654_321); 12]]);
    let back: PhaseSamples = serde_json::from_str(&serde_json::to_string(&samples).unwrap()).unwrap();
    assert_eq!(back, samples);
    let summary = summarise(&samples, WarmUp::Auto);
    let json = serde_json::to_string(&summary).unwrap();
    let again: statistics::Summary = serde_json::from_str(&json).unwrap();
    assert_eq!(again.total.operations, summary.total.operations);
    assert_eq!(summarise(&back, WarmUp::Auto), summary);
}

#[test]
fn a_window_in_which_nothing_completed_is_not_the_measured_one() {
    // 1000 operations, and then a stall that is as steady as can be.
    let samples = phase(&[[vec![(500, 100_000); 2], vec![(0, 100_000); 30]].concat()]);
    let summary = summarise(&samples, WarmUp::Auto);
    assert_eq!(summary.total.window_operations, 1000);
    let seconds = samples.elapsed_ns as f64 / 1e9;
    assert!((summary.total.operations_per_second * seconds / 1000.0 - 1.0).abs() < 1e-9);
}
