//! Charts over time: percentiles of enough operations, heat maps, stalls.

use super::*;

const COUNT: usize = INTERVALS as usize;

#[test]
fn percentiles_over_time_come_from_enough_operations() {
    // 25 operations in an interval of 100 ms: 20 are enough for the median, and p99 needs 1000 of them, 40 intervals.
    let record = record(vec![phase(&Shape { operations_per_second: 250.0, ..DRIVE })]);
    let chart = chart_of(&[named(&record)], "-latency");
    let known = |name: &str| {
        let series = chart.series.iter().find(|series| series.name == name).unwrap();
        series.points.iter().filter(|point| point.y.is_finite()).count()
    };
    assert_eq!((known("p50"), known("max")), (COUNT, COUNT));
    assert_eq!((known("p99"), known("p99.9")), (COUNT / 40, 0));
}

#[test]
fn a_heat_map_shows_every_latency_of_every_time() {
    let record = record(vec![phase(&DRIVE)]);
    let chart = chart_of(&[named(&record)], "-latencies");
    let heat = chart.heat.as_ref().unwrap();
    assert_eq!((heat.columns.len(), heat.values.len()), (COUNT, heat.rows.len()));
    for column in 0..COUNT {
        let share: f64 = heat.values.iter().filter_map(|row| row[column]).sum();
        assert!((share - 1.0).abs() < 1e-9, "{column}: {share}");
    }
    let svg = to_svg(&chart, &Look::default());
    assert!(texts(&svg).contains(&"time".to_owned()) && count(&svg, "rect") > COUNT, "{svg}");
}

#[test]
fn stalls_are_pointed_out() {
    let mut record = record(vec![phase(&DRIVE)]);
    let labels = |record: &Record| -> Vec<(String, f64, f64)> {
        let bands = chart_of(&[named(record)], "-rate").bands;
        bands.into_iter().map(|band| (band.label, band.from, band.to)).collect()
    };
    assert!(labels(&record).iter().all(|(label, ..)| label != "stall"));
    let points = &mut record.phases[0].samples.series.points;
    let (from, to) = (points[10].start_ns as f64 / 1e9, points[11].end_ns as f64 / 1e9);
    for point in &mut points[10..12] {
        point.classes.iter_mut().for_each(|class| *class = Default::default());
    }
    let found = labels(&record);
    assert!(found.contains(&("stall".to_owned(), from, to)), "{found:?}");
    // Nothing was in flight: nobody waited.
    for point in &mut record.phases[0].samples.series.points[10..12] {
        point.in_flight_ns = Some(0);
    }
    assert!(labels(&record).iter().all(|(label, ..)| label != "stall"));
}
