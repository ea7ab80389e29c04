//! Rates: over time, and by layer.

use statistics::IntervalPoint;

use super::super::model::{Axis, Band, Chart, Dash, Point, Scale, Series, Style, Unit};
use super::super::scale::written;
use super::events::lanes;
use super::groups::Group;
use super::{Line, dash_of};
use crate::record::PhaseRecord;

/// Block size in bytes from which on a phase is about bytes a second, and below about operations a second.
const BANDWIDTH_BLOCK_BYTES: u64 = 64 << 10;
/// Whether these phases are about bytes a second.
pub(super) fn is_bandwidth<'a>(mut phases: impl Iterator<Item = &'a PhaseRecord>) -> bool {
    phases.all(|phase| {
        phase.plan.operation_bytes_max() >= BANDWIDTH_BLOCK_BYTES
            && phase.summary.total.bytes_per_second > 0.0
    })
}

/// An axis of rates.
pub(super) fn axis(is_bandwidth: bool) -> Axis {
    if is_bandwidth {
        Axis::new("bandwidth", Unit::BytesPerSecond, Scale::Linear)
    } else {
        Axis::new("operations/s", Unit::PerSecond, Scale::Linear)
    }
}

/// The rate of a phase as its figures say it.
pub(super) fn of_phase(phase: &PhaseRecord, is_bandwidth: bool) -> f64 {
    let total = &phase.summary.total;
    if is_bandwidth { total.bytes_per_second } else { total.operations_per_second }
}

/// The rate of each interval, of one class or of all together.
fn points(line: &Line<'_>, is_bandwidth: bool, class: Option<usize>) -> Vec<Point> {
    let series = &line.phase.samples.series;
    let whole = |length_ns: u64| length_ns > series.interval_ns / 2;
    let kept = series.points.iter().filter(|point| whole(point.end_ns.saturating_sub(point.start_ns)));
    kept.map(|point| {
        let classes =
            point.classes.iter().enumerate().filter(|(at, _)| class.is_none_or(|class| class == *at));
        let amount: f64 =
            classes.map(|(_, class)| if is_bandwidth { class.bytes } else { class.operations } as f64).sum();
        Point::new(line.seconds(middle_ns(point)), amount / point.seconds())
    })
    .collect()
}

/// The middle of an interval, nanoseconds.
fn middle_ns(point: &IntervalPoint) -> f64 {
    f64::midpoint(point.start_ns as f64, point.end_ns as f64)
}

/// Numbers and names of the classes that did something.
fn used_classes(phase: &PhaseRecord) -> Vec<(usize, &str)> {
    let classes = phase.summary.classes.iter().enumerate();
    classes.filter(|(_, class)| class.operations > 0).map(|(at, class)| (at, class.class.as_str())).collect()
}

/// Lines of a chart over time: of the classes and of all together.
fn series_of(line: &Line<'_>, number: usize, is_alone: bool, is_bandwidth: bool) -> Vec<Series> {
    let classes = used_classes(line.phase);
    let pale_until = (!is_alone).then(|| line.seconds(line.phase.summary.window_start_ns as f64));
    let make = |name: String, class: Option<usize>, colour: usize, dash: Dash| Series {
        dash,
        pale_until,
        ..Series::new(name, Style::Line, colour, points(line, is_bandwidth, class))
    };
    let mut made = Vec::new();
    if classes.len() < 2 || is_alone {
        let name = if classes.len() > 1 { "all".to_owned() } else { line.name.clone() };
        made.push(make(name, None, number, dash_of(number)));
    }
    if classes.len() > 1 {
        let dashes = [Dash::Solid, Dash::Dashed, Dash::Dotted];
        for (place, (at, class)) in classes.into_iter().enumerate() {
            let class = crate::words::clean(class);
            made.push(if is_alone {
                // Halves of a mix run on top of each other: strokes with gaps show both.
                make(class.into_owned(), Some(at), place + 1, dashes[place % dashes.len()])
            } else {
                make(format!("{}: {class}", line.name), Some(at), number, dashes[place % dashes.len()])
            });
        }
    }
    made
}

/// Most stalls that are pointed out; of more, the longest.
const STALLS_MAX: usize = 8;
/// Operations of a usual interval from which on one without any is a stall.
const STALL_OPERATIONS_MIN: f64 = 10.0;

/// Times within the window in which nothing completed though operations were in flight: longest first.
pub(super) fn stalls(phase: &PhaseRecord) -> Vec<(u64, u64)> {
    let (from_ns, to_ns) = (phase.summary.window_start_ns, phase.summary.window_end_ns);
    let points = phase.samples.series.points.iter();
    let within: Vec<&IntervalPoint> =
        points.filter(|point| from_ns <= point.start_ns && point.end_ns <= to_ns).collect();
    let operations: u64 = within.iter().map(|point| point.operations()).sum();
    if (operations as f64) < STALL_OPERATIONS_MIN * within.len() as f64 {
        return Vec::new();
    }
    let waits = |point: &&IntervalPoint| point.operations() == 0 && point.in_flight_ns != Some(0);
    let runs = within.chunk_by(|one, next| waits(one) == waits(next)).filter(|run| waits(&run[0]));
    let mut stalls: Vec<(u64, u64)> = runs.map(|run| (run[0].start_ns, run[run.len() - 1].end_ns)).collect();
    stalls.sort_by_key(|(from, to)| std::cmp::Reverse(to - from));
    stalls.truncate(STALLS_MAX);
    stalls
}

/// Bands before and after the window that the figures come from, and stalls within it.
pub(super) fn bands(phase: &PhaseRecord) -> Vec<Band> {
    let (summary, elapsed_ns) = (&phase.summary, phase.samples.elapsed_ns);
    let band = |from: u64, to: u64, label: &str| Band {
        from: from as f64 / 1e9,
        to: to as f64 / 1e9,
        label: label.to_owned(),
    };
    let mut bands = Vec::new();
    if summary.window_start_ns > 0 {
        bands.push(band(0, summary.window_start_ns.min(elapsed_ns), "warm-up"));
    }
    // A tail shorter than an interval is the ragged end that every phase has.
    if summary.window_end_ns.saturating_add(phase.samples.series.interval_ns) < elapsed_ns {
        bands.push(band(summary.window_end_ns, elapsed_ns, "excluded"));
    }
    bands.extend(stalls(phase).into_iter().map(|(from, to)| band(from, to, "stall")));
    bands
}

/// The rate of every interval; none when nothing is known over time.
pub(super) fn over_time(group: &Group<'_>) -> Option<Chart> {
    let lines = &group.lines;
    let is_bandwidth = is_bandwidth(lines.iter().map(|line| line.phase));
    let is_alone = lines.len() == 1;
    let series: Vec<Series> = lines
        .iter()
        .enumerate()
        .flat_map(|(number, line)| series_of(line, number, is_alone, is_bandwidth))
        .filter(|series| series.points.len() > 1)
        .collect();
    let time = Axis::new("time", Unit::Seconds, Scale::Linear);
    let mut chart = Chart::new(format!("{}: rate over time", group.title), time, axis(is_bandwidth));
    chart.note = group.note();
    if is_alone {
        chart.bands = bands(lines[0].phase);
        chart.lanes = lanes(lines[0].phase);
    } else if lines.iter().any(|line| line.phase.summary.window_start_ns > 0) {
        chart.note += " (pale: warm-up)";
    }
    chart.series = series;
    (!chart.series.is_empty()).then_some(chart)
}

/// The rate of every layer at one load, over all its passes. The null engine is no layer: what strata itself costs would dwarf the rest.
pub(super) fn waterfall(group: &Group<'_>) -> Option<Chart> {
    let rows = group.lines.iter().filter(|line| line.phase.plan.engine() != "null");
    let rows: Vec<_> = rows.filter_map(|line| Some((line, line.of_stack.as_ref()?))).collect();
    let axis = axis(rows.iter().all(|(_, row)| row.in_bytes));
    let bars = rows.iter().enumerate().map(|(at, (_, row))| Point {
        label: Some(written(row.speed, axis.unit)),
        interval: row.interval,
        colour: Some(row.layer),
        ..Point::new(at as f64, row.speed)
    });
    let series = Series::new("", Style::Bars, 0, bars.collect());
    let names = rows.iter().map(|(line, _)| line.name.clone()).collect();
    let layers = Axis::new("layer, the lowest on the left", Unit::Plain, Scale::Names(names));
    let mut chart = Chart::new(format!("{}: rate of each layer", group.title), layers, axis);
    let has_intervals = series.points.iter().any(|point| point.interval.is_some());
    let means = if has_intervals { "mean of the passes with its 95% confidence interval" } else { "" };
    let told: Vec<String> =
        [group.note(), means.to_owned()].into_iter().filter(|text| !text.is_empty()).collect();
    chart.note = told.join("; ");
    chart.series = vec![series];
    (!rows.is_empty()).then_some(chart)
}
