//! Charts over time: percentiles of enough operations, heat maps, stalls.

use statistics::ClassPoint;

use super::*;
use crate::record::TimelinePoint;

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

/// Begin, end and label of an event.
type Event = (f64, f64, String);

/// The lanes of a chart over time, with their names.
fn lanes_of(record: &Record) -> Vec<(String, Vec<Event>)> {
    let named = [Named { name: "sample", record }];
    let made = charts(&named);
    let of = |kind: &str| {
        let found = made.iter().find(|made| made.file_stem.ends_with(kind)).unwrap();
        let events = |lane: &Lane| {
            lane.events.iter().map(|event| (event.from, event.to, event.label.clone())).collect::<Vec<_>>()
        };
        found.chart.lanes.iter().map(|lane| (lane.name.clone(), events(lane))).collect::<Vec<_>>()
    };
    assert_eq!(of("-rate"), of("-latency"), "both charts over time have the same events");
    of("-rate")
}

#[test]
fn events_stand_below_the_data() {
    let mut quiet = record(vec![phase(&DRIVE)]);
    let part = |at: u64, other_cpus_user: f64, again: u64| TimelinePoint {
        start_ns: at * 500_000_000,
        end_ns: (at + 1) * 500_000_000,
        other_cpus_user: Some(other_cpus_user),
        tcp_retransmitted_segments: Some(again),
    };
    quiet.phases[0].observations.timeline = (0..8).map(|at| part(at, 0.1, 0)).collect();
    assert!(lanes_of(&quiet).is_empty(), "ticks of the kernel are no event");
    let mut busy = quiet.clone();
    busy.phases[0].observations.timeline[3] = part(3, 1.25, 0);
    busy.phases[0].observations.timeline[6] = part(6, 0.0, 12);
    // Syncs of two intervals of forty.
    let samples = &mut busy.phases[0].samples;
    samples.classes.push("sync".to_owned());
    for (at, point) in samples.series.points.iter_mut().enumerate() {
        let operations = u64::from(at == 10 || at == 30);
        point.classes.push(ClassPoint { operations, ..ClassPoint::default() });
    }
    let syncs = ["made durable: 1 sync".to_owned(), "made durable: 1 sync".to_owned()];
    let [one, two] = syncs;
    assert_eq!(
        lanes_of(&busy),
        [
            ("syncs".to_owned(), vec![(1.0, 1.1, one), (3.0, 3.1, two)]),
            ("others".to_owned(), vec![(1.5, 2.0, "other processes used 1.25 CPUs".to_owned())]),
            ("resent".to_owned(), vec![(3.0, 3.5, "this machine retransmitted 12 TCP segments".to_owned())]),
        ]
    );
    // Who syncs all the time has no such events: they are a line of the chart.
    for point in &mut busy.phases[0].samples.series.points {
        point.classes.last_mut().unwrap().operations = 3;
    }
    assert!(lanes_of(&busy).iter().all(|(name, _)| name != "syncs"));
    let named = [Named { name: "sample", record: &busy }];
    let chart = charts(&named).into_iter().find(|made| made.file_stem.ends_with("-rate")).unwrap().chart;
    let svg = to_svg(&chart, &Look::default());
    assert!(svg.contains("<title>other processes used 1.25 CPUs</title>"), "a pointing reader sees it");
    let document = roxmltree::Document::parse(&svg).unwrap();
    let numbers = document.descendants().filter(|node| node.has_tag_name("rect")).flat_map(|node| {
        ["x", "y", "width", "height"]
            .map(|name| node.attribute(name).map_or(0.0, |value| value.parse::<f64>().unwrap()))
    });
    assert!(numbers.into_iter().all(|number| (0.0..=960.0).contains(&number)), "within the image: {svg}");
    assert!(to_png(&chart, &Look::default(), 1.0).is_ok());
}
