//! Latencies: over time, as a histogram, and by percentile.

use statistics::{Histogram, has_percentile};

use super::super::model::{Axis, Chart, Dash, Heat, Point, Ramp, Scale, Series, Style, Unit};
use super::super::scale::written;
use super::events::lanes;
use super::groups::Group;
use super::rate::bands;
use super::{Line, dash_of, merge, window_latency};

/// Percentiles over time, with their names.
const PERCENTILES: [(f64, &str); 4] = [(50.0, "p50"), (99.0, "p99"), (99.9, "p99.9"), (100.0, "max")];
/// Those that are shown when several records share a chart, with their strokes.
const FEW: [(f64, &str, Dash); 2] = [(50.0, "p50", Dash::Solid), (99.0, "p99", Dash::Dashed)];
/// Most columns of a heat map over time, and its rows for each power of ten.
const HEAT_COLUMNS_MAX: usize = 64;
const HEAT_BINS_PER_DECADE: f64 = 6.0;
/// Share that has the palest colour of a heat map: one of ten thousand operations is seen.
const HEAT_SHARE_MIN: f64 = 1e-4;
/// Bins of a histogram for each power of ten.
const BINS_PER_DECADE: f64 = 24.0;
/// Places of a curve for each nine of its percentiles.
const PLACES_PER_NINE: f64 = 60.0;

fn axis() -> Axis {
    Axis::new("latency", Unit::Nanoseconds, Scale::Log)
}

/// A percentile over time. Of too few operations it would be an accident: intervals are joined until so many lie beyond it as a summary wants. The
/// maximum is that of every interval.
fn points(line: &Line<'_>, percent: f64, merged: &mut Histogram) -> Vec<Point> {
    let is_known = |merged: &Histogram| percent >= 100.0 || has_percentile(merged.count(), percent);
    let mut points = Vec::new();
    let mut begins_ns = None;
    merged.clear();
    for point in &line.phase.samples.series.points {
        let from_ns = *begins_ns.get_or_insert(point.start_ns);
        merge(point, merged);
        // Nothing at all is a gap, not a part of what comes after it.
        if merged.count() > 0 && !is_known(merged) {
            continue;
        }
        let ns = merged.percentile(percent).map_or(f64::NAN, |ns| ns as f64);
        points.push(Point::new(line.seconds(f64::midpoint(from_ns as f64, point.end_ns as f64)), ns));
        merged.clear();
        begins_ns = None;
    }
    points
}

/// Percentiles of every interval; none when nothing is known over time.
pub(super) fn over_time(group: &Group<'_>) -> Option<Chart> {
    let lines = &group.lines;
    let mut merged = Histogram::new();
    let time = Axis::new("time", Unit::Seconds, Scale::Linear);
    let mut chart = Chart::new(format!("{}: latency over time", group.title), time, axis());
    chart.note = group.note();
    if let [line] = lines.as_slice() {
        for (at, (percent, name)) in PERCENTILES.iter().enumerate() {
            let points = points(line, *percent, &mut merged);
            // Of few operations the slowest is the 99.9th percentile too: gaps show both lines.
            let dash = if *percent == 100.0 { Dash::Dotted } else { Dash::Solid };
            chart.series.push(Series { dash, ..Series::new(*name, Style::Line, at, points) });
        }
        chart.bands = bands(line.phase);
        chart.lanes = lanes(line.phase);
    } else {
        for (number, line) in lines.iter().enumerate() {
            for (percent, name, dash) in FEW {
                let points = points(line, percent, &mut merged);
                let name = format!("{}: {name}", line.name);
                let pale_until = Some(line.seconds(line.phase.summary.window_start_ns as f64));
                chart.series.push(Series {
                    dash,
                    pale_until,
                    ..Series::new(name, Style::Line, number, points)
                });
            }
        }
    }
    let has_line = |series: &Series| series.points.iter().filter(|point| point.y.is_finite()).count() > 1;
    chart.series.iter().any(has_line).then_some(chart)
}

/// Latencies over time as a heat map: the share of each time's operations in bins of latency; none when nothing is known over time, and for several records.
pub(super) fn heat(group: &Group<'_>) -> Option<Chart> {
    let [line] = group.lines.as_slice() else { return None };
    let all = &line.phase.samples.series.points;
    let together = all.len().div_ceil(HEAT_COLUMNS_MAX).max(1);
    let columns: Vec<(f64, Histogram)> = all
        .chunks(together)
        .map(|points| {
            let mut histogram = Histogram::new();
            points.iter().for_each(|point| merge(point, &mut histogram));
            (line.seconds(points[0].start_ns as f64), histogram)
        })
        .collect();
    let binned: Vec<Option<Bins>> =
        columns.iter().map(|(_, histogram)| Bins::of(histogram, HEAT_BINS_PER_DECADE)).collect();
    let first = binned.iter().flatten().map(|bins| bins.first).min()?;
    let last = binned.iter().flatten().map(Bins::last).max()?;
    let value = |row: i32, bins: &Option<Bins>| bins.as_ref()?.share(row);
    let shown = (first..=last).rev();
    let values: Vec<Vec<Option<f64>>> =
        shown.clone().map(|row| binned.iter().map(|bins| value(row, bins)).collect()).collect();
    let edge = |bin: i32| 10f64.powf(f64::from(bin) / HEAT_BINS_PER_DECADE);
    let rows: Vec<String> = shown.map(|bin| written(edge(bin), Unit::Nanoseconds)).collect();
    let time = |at: f64| if at > 0.0 { written(at, Unit::Seconds) } else { "0 s".to_owned() };
    let names: Vec<String> = columns.iter().map(|(at, _)| time(*at)).collect();
    let x = Axis::new("time", Unit::Plain, Scale::Names(names.clone()));
    let y = Axis::new("latency, from", Unit::Plain, Scale::Names(rows.clone()));
    let mut chart = Chart::new(format!("{}: latencies over time", group.title), x, y);
    chart.note = group.note();
    let title = "share".to_owned();
    let (unit, range, ramp) = (Unit::Share, (HEAT_SHARE_MIN, 1.0), Ramp::Blues);
    chart.heat = Some(Heat { rows, columns: names, values, title, unit, range, is_log: true, ramp });
    (columns.len() > 1).then_some(chart)
}

/// Operations in bins that are equally wide on a logarithmic axis.
struct Bins {
    /// Number of the first bin: its power of ten, times the bins of each.
    first: i32,
    counts: Vec<u64>,
}

impl Bins {
    /// None of an empty histogram.
    fn of(histogram: &Histogram, per_decade: f64) -> Option<Self> {
        let (min_ns, max_ns) = (histogram.min_ns()?, histogram.max_ns()?);
        let bin = |ns: u64| ((ns.max(1) as f64).log10() * per_decade).floor() as i32;
        let (first, last) = (bin(min_ns), bin(max_ns));
        let mut counts = vec![0u64; (last - first + 1).max(1) as usize];
        for bucket in histogram.buckets() {
            let at = bin(bucket.midpoint_ns().clamp(min_ns, max_ns)) - first;
            if let Some(count) = counts.get_mut(at.max(0) as usize) {
                *count += bucket.count;
            }
        }
        Some(Self { first, counts })
    }

    fn last(&self) -> i32 {
        self.first + self.counts.len() as i32 - 1
    }

    /// Share of the operations in a bin; none where there are none.
    fn share(&self, bin: i32) -> Option<f64> {
        let at = usize::try_from(bin - self.first).ok()?;
        let count = *self.counts.get(at).filter(|count| **count > 0)?;
        Some(count as f64 / self.counts.iter().sum::<u64>() as f64)
    }
}

/// Shares of the operations in bins, as steps.
fn bins(histogram: &Histogram) -> Vec<Point> {
    let Some(Bins { first, counts }) = Bins::of(histogram, BINS_PER_DECADE) else { return vec![] };
    // Bins below a nanosecond cannot be told apart: an edge is a whole nanosecond.
    let edge = |bin: i32| 10f64.powf(f64::from(bin) / BINS_PER_DECADE).ceil();
    let last = first + counts.len() as i32 - 1;
    let all = histogram.count() as f64;
    let mut points: Vec<Point> = vec![Point::new(edge(first), 0.0)];
    for (at, count) in counts.iter().enumerate() {
        points.push(Point::new(edge(first + at as i32), *count as f64 / all));
    }
    points.push(Point::new(edge(last + 1), 0.0));
    points.dedup_by(|later, earlier| later.x == earlier.x && later.y == 0.0);
    points
}

/// How latencies are spread; none when nothing completed.
pub(super) fn histogram(group: &Group<'_>) -> Option<Chart> {
    let lines = &group.lines;
    let filled = lines.len() == 1;
    let share = Axis::new("share of the operations", Unit::Share, Scale::Linear);
    let mut chart = Chart::new(format!("{}: latency histogram", group.title), axis(), share);
    chart.note = group.note();
    chart.series = lines
        .iter()
        .enumerate()
        .map(|(at, line)| (at, line, bins(&window_latency(line.phase))))
        .filter(|(.., points)| !points.is_empty())
        .map(|(at, line, points)| Series::new(line.name.clone(), Style::Steps { filled }, at, points))
        .collect();
    (!chart.series.is_empty()).then_some(chart)
}

/// Latency by percentile, the percentiles as their number of nines. The curve ends where one operation is left.
fn curve(histogram: &Histogram) -> Vec<Point> {
    let count = histogram.count();
    let Some(min_ns) = histogram.min_ns() else { return vec![] };
    let nines_max = (count as f64).log10();
    let mut points = vec![Point::new(0.0, min_ns as f64)];
    for place in 1..=(nines_max * PLACES_PER_NINE).floor() as u32 {
        let nines = f64::from(place) / PLACES_PER_NINE;
        let percent = 100.0 * (1.0 - 10f64.powf(-nines));
        if let Some(ns) = histogram.percentile(percent) {
            points.push(Point::new(nines, ns as f64));
        }
    }
    points
}

/// Latency by percentile; none when nothing completed.
pub(super) fn percentiles(group: &Group<'_>) -> Option<Chart> {
    let x = Axis::new("percentile: share of operations that were faster", Unit::Nines, Scale::Spanning);
    let mut chart = Chart::new(format!("{}: latency by percentile", group.title), x, axis());
    chart.note = group.note();
    let make = |(at, line): (usize, &Line<'_>)| {
        let points = curve(&window_latency(line.phase));
        let colour = line.colour(at);
        Series { dash: dash_of(colour), ..Series::new(line.name.clone(), Style::Line, colour, points) }
    };
    chart.series =
        group.lines.iter().enumerate().map(make).filter(|series| series.points.len() > 1).collect();
    (!chart.series.is_empty()).then_some(chart)
}
