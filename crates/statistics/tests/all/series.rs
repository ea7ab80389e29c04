use statistics::{ClassPoint, Histogram, Series, SparseHistogram};

fn point(operations: u64, latency_ns: u64) -> ClassPoint {
    let mut histogram = Histogram::new();
    histogram.record_n(latency_ns, operations);
    ClassPoint {
        operations,
        bytes: operations * 4096,
        errors: 1,
        latency: SparseHistogram::from(&histogram),
        ..ClassPoint::default()
    }
}

#[test]
fn workers_meet_in_the_interval_whatever_their_order() {
    let mut series = Series::new(100, 8, 2);
    series.add(250, 1, &point(3, 50));
    series.add(10, 0, &point(5, 20));
    series.add(99, 0, &point(7, 30));
    series.finish(270);
    let spans: Vec<_> = series.points.iter().map(|point| (point.start_ns, point.end_ns)).collect();
    assert_eq!(spans, [(0, 100), (100, 200), (200, 270)]);
    let operations: Vec<_> = series.points.iter().map(|point| point.operations()).collect();
    assert_eq!(operations, [12, 0, 3]);
    assert_eq!(series.points[0].classes[0].errors, 2);
    assert_eq!(series.points[0].classes[0].latency.count(), 12);
    assert_eq!(series.points[2].classes[1].bytes, 3 * 4096);
}

#[test]
fn a_long_run_keeps_its_memory_and_loses_nothing() {
    let mut series = Series::new(1000, 16, 1);
    let mut all = Histogram::new();
    for interval in 0..1000_u64 {
        let latency_ns = 10_000 + interval * 37;
        all.record_n(latency_ns, interval % 7 + 1);
        series.add(interval * 1000, 0, &point(interval % 7 + 1, latency_ns));
        assert!(series.points.len() <= 16);
    }
    series.finish(999_500);
    assert_eq!(series.interval_ns, 64_000);
    let mut merged = SparseHistogram::default();
    for (at, point) in series.points.iter().enumerate() {
        assert_eq!(point.start_ns, at as u64 * 64_000);
        assert_eq!(point.end_ns, if at == 15 { 999_500 } else { point.start_ns + 64_000 });
        let expected: u64 =
            (at as u64 * 64..(at as u64 * 64 + 64).min(1000)).map(|interval| interval % 7 + 1).sum();
        assert_eq!(point.operations(), expected);
        merged.merge(&point.classes[0].latency);
    }
    assert_eq!(merged, SparseHistogram::from(&all));
}

#[test]
fn a_late_worker_after_joining_lands_in_the_right_interval() {
    let mut series = Series::new(10, 4, 1);
    (0..5).for_each(|interval| series.add(interval * 10, 0, &point(1, 5)));
    assert_eq!(series.interval_ns, 20);
    series.add(15, 0, &point(10, 5));
    let operations: Vec<_> = series.points.iter().map(|point| point.operations()).collect();
    assert_eq!(operations, [12, 2, 1]);
    assert_eq!(series.points[2].end_ns, 60);
}

#[test]
fn a_long_silence_is_kept_as_zeros() {
    let mut series = Series::new(10, 8, 1);
    series.add(0, 0, &point(4, 5));
    series.finish(1_000_000);
    assert!(series.points.len() <= 8);
    assert_eq!(series.points.last().unwrap().end_ns, 1_000_000);
    assert_eq!(series.points.iter().map(|point| point.operations()).collect::<Vec<_>>()[..2], [4, 0]);
}

#[test]
fn a_series_comes_back_from_json() {
    let mut series = Series::new(100, 8, 1);
    series.add(150, 0, &point(9, 123_456));
    series.finish(200);
    let json = serde_json::to_string(&series).unwrap();
    assert_eq!(serde_json::from_str::<Series>(&json).unwrap(), series);
}
