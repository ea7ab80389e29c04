//! Charts over time: rate, bandwidth, latency.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Style};
use ratatui::symbols::Marker;
use ratatui::widgets::{Axis, Block, Chart, Dataset, GraphType, LegendPosition};
use units::human::human_bytes;
use units::human_rate;

use super::history::{History, Point};
use crate::text;

/// Colours of the classes, in their order; also those of the table of classes.
pub(crate) const CLASS_COLORS: [Color; 4] = [Color::Cyan, Color::Yellow, Color::Magenta, Color::Blue];
const P50_COLOR: Color = Color::Green;
const P99_COLOR: Color = Color::Red;

/// Widths from which two and three charts stand side by side.
const TWO_COLUMNS: u16 = 56;
const THREE_COLUMNS: u16 = 108;
/// Height from which rate and bandwidth share a column, one above the other.
const TWO_ROWS: u16 = 16;

/// A line of a chart.
struct Line {
    name: String,
    color: Color,
    points: Vec<(f64, f64)>,
}

/// The scale of an axis: bounds, and evenly spaced labels from the lower bound to the upper.
#[derive(Debug, PartialEq)]
struct Scale {
    bounds: [f64; 2],
    labels: Vec<String>,
}

/// Draws the charts that fit.
pub(crate) fn draw(frame: &mut Frame, area: Rect, history: &History, classes: &[String]) {
    let points = history.points();
    let has_bytes = points.iter().any(|point| point.bytes_per_second.iter().any(|value| *value > 0.0));
    let columns =
        |count: u32| Layout::horizontal(vec![Constraint::Ratio(1, count); count as usize]).split(area);
    let (rate, bandwidth, latency) = match area.width {
        THREE_COLUMNS.. if has_bytes => {
            let columns = columns(3);
            (columns[0], Some(columns[1]), Some(columns[2]))
        }
        TWO_COLUMNS.. => {
            let columns = columns(2);
            if has_bytes && area.height >= TWO_ROWS {
                let [above, below] = Layout::vertical([Constraint::Fill(1); 2]).areas(columns[0]);
                (above, Some(below), Some(columns[1]))
            } else {
                (columns[0], None, Some(columns[1]))
            }
        }
        _ => (area, None, None),
    };
    let by_class = |figures: fn(&Point) -> &[f64]| class_lines(points, classes, figures);
    let lines = by_class(|point| &point.operations_per_second);
    let scale = linear_scale(highest(&lines), DECIMAL_STEPS, 1000.0, human_rate);
    draw_chart(frame, rate, " operations/s ", points, &lines, &scale);
    if let Some(area) = bandwidth {
        let lines = by_class(|point| &point.bytes_per_second);
        let scale = linear_scale(highest(&lines), BINARY_STEPS, 1024.0, human_bytes);
        draw_chart(frame, area, " bandwidth, bytes/s ", points, &lines, &scale);
    }
    if let Some(area) = latency {
        let lines = latency_lines(points);
        draw_chart(frame, area, " latency, log scale ", points, &lines, &log_scale(&lines, area.height));
    }
}

fn class_lines(points: &[Point], classes: &[String], figures: fn(&Point) -> &[f64]) -> Vec<Line> {
    let line = |(index, name): (usize, &String)| Line {
        // A single line needs no legend.
        name: if classes.len() > 1 { text::printable(name) } else { String::new() },
        color: CLASS_COLORS[index % CLASS_COLORS.len()],
        points: points
            .iter()
            .filter_map(|point| Some((point.at_s, *figures(point).get(index)?)))
            .filter(|(_, value)| value.is_finite())
            .collect(),
    };
    classes.iter().enumerate().map(line).collect()
}

/// Logarithms of the latencies, to the base of 10.
fn latency_lines(points: &[Point]) -> Vec<Line> {
    let line = |name: &str, color, figure: fn(&Point) -> Option<f64>| Line {
        name: name.to_owned(),
        color,
        points: points
            .iter()
            .filter_map(|point| Some((point.at_s, figure(point)?.max(1.0).log10())))
            .collect(),
    };
    vec![line("p99", P99_COLOR, |point| point.p99_ns), line("p50", P50_COLOR, |point| point.p50_ns)]
}

fn highest(lines: &[Line]) -> f64 {
    lines.iter().flat_map(|line| &line.points).map(|(_, value)| *value).fold(0.0, f64::max)
}

/// Upper bounds of an axis below 1000, so that the bound and its half are short.
const DECIMAL_STEPS: &[f64] =
    &[1.0, 2.0, 4.0, 6.0, 8.0, 10.0, 20.0, 40.0, 60.0, 80.0, 100.0, 200.0, 400.0, 600.0, 800.0];
/// The same below 1024.
const BINARY_STEPS: &[f64] = &[
    1.0, 2.0, 4.0, 6.0, 8.0, 12.0, 16.0, 24.0, 32.0, 48.0, 64.0, 96.0, 128.0, 192.0, 256.0, 384.0, 512.0,
    768.0,
];

/// From 0 to the first step, times a power of `base`, that holds the highest value.
fn linear_scale(highest: f64, steps: &[f64], base: f64, label: fn(f64) -> String) -> Scale {
    let mut unit = 1.0;
    while unit * base <= highest {
        unit *= base;
    }
    let step = steps.iter().find(|step| **step * unit >= highest);
    let top = step.map_or(unit * base, |step| step * unit);
    Scale { bounds: [0.0, top], labels: vec!["0".to_owned(), label(top / 2.0), label(top)] }
}

/// Whole decades around all values, each labelled where there is room.
fn log_scale(lines: &[Line], height: u16) -> Scale {
    let values = || lines.iter().flat_map(|line| &line.points).map(|(_, value)| *value);
    let lowest = values().fold(f64::INFINITY, f64::min);
    let highest = values().fold(0.0, f64::max);
    let low = if lowest.is_finite() { lowest.floor() as i32 } else { 0 };
    let high = (highest.ceil() as i32).max(low + 1);
    // Frame and time axis take four rows.
    let rows = i32::from(height.saturating_sub(4)).max(2);
    let labels =
        if high - low < rows { (low..=high).map(decade).collect() } else { vec![decade(low), decade(high)] };
    Scale { bounds: [f64::from(low), f64::from(high)], labels }
}

/// A power of ten nanoseconds: `100 us`.
fn decade(exponent: i32) -> String {
    let unit = ["ns", "us", "ms", "s"][(exponent / 3).clamp(0, 3) as usize];
    let value = 10_f64.powi(exponent - (exponent / 3).clamp(0, 3) * 3);
    format!("{value} {unit}")
}

/// From the start of the phase to now.
fn time_scale(points: &[Point], width: u16) -> Scale {
    let end_s = points.last().map_or(1.0, |point| point.at_s).max(f64::MIN_POSITIVE);
    let label = |seconds: f64| text::total(seconds);
    let mut labels = vec!["0s".to_owned(), label(end_s / 2.0), label(end_s)];
    if width < 36 {
        labels.remove(1);
    }
    Scale { bounds: [0.0, end_s], labels }
}

fn draw_chart(frame: &mut Frame, area: Rect, title: &str, points: &[Point], lines: &[Line], scale: &Scale) {
    let datasets = lines.iter().map(|line| {
        // A line through a single point is nothing.
        let kind = if line.points.len() > 1 { GraphType::Line } else { GraphType::Scatter };
        let dataset = Dataset::default().marker(Marker::Braille).graph_type(kind).data(&line.points);
        let dataset = dataset.style(Style::new().fg(line.color));
        if line.name.is_empty() { dataset } else { dataset.name(line.name.as_str()) }
    });
    let axis = |scale: &Scale| {
        Axis::default()
            .style(Style::new().fg(Color::DarkGray))
            .bounds(scale.bounds)
            .labels(scale.labels.iter().map(|label| ratatui::text::Line::from(label.clone())))
    };
    let chart = Chart::new(datasets.collect())
        .block(Block::bordered().title(title).border_style(Style::new().fg(Color::DarkGray)))
        .legend_position(Some(LegendPosition::TopRight))
        .hidden_legend_constraints((Constraint::Ratio(1, 3), Constraint::Ratio(1, 2)))
        .x_axis(axis(&time_scale(points, area.width)))
        .y_axis(axis(scale));
    frame.render_widget(chart, area);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(values: &[f64]) -> Line {
        let points = values.iter().map(|value| (0.0, *value)).collect();
        Line { name: String::new(), color: Color::Red, points }
    }

    #[test]
    fn a_rate_axis_ends_at_the_next_round_figure() {
        let scale = |highest| linear_scale(highest, DECIMAL_STEPS, 1000.0, human_rate);
        assert_eq!(
            scale(412_000.0),
            Scale { bounds: [0.0, 600_000.0], labels: labels(&["0", "300k", "600k"]) }
        );
        assert_eq!(scale(900_000.0).labels, labels(&["0", "500k", "1.00M"]));
        assert_eq!(scale(0.0), Scale { bounds: [0.0, 1.0], labels: labels(&["0", "0.50", "1"]) });
        assert_eq!(scale(1_000.0).bounds, [0.0, 1_000.0]);
    }

    #[test]
    fn a_bandwidth_axis_counts_in_binary() {
        let scale = linear_scale(1.57 * 1_073_741_824.0, BINARY_STEPS, 1024.0, human_bytes);
        assert_eq!(scale.labels, labels(&["0", "1 GiB", "2 GiB"]));
        let scale = linear_scale(800.0 * 1_048_576.0, BINARY_STEPS, 1024.0, human_bytes);
        assert_eq!(scale.bounds, [0.0, 1_073_741_824.0]);
    }

    #[test]
    fn a_latency_axis_has_whole_decades() {
        let lines = [line(&[77_000_f64.log10()]), line(&[210_000_f64.log10()])];
        assert_eq!(
            log_scale(&lines, 12),
            Scale { bounds: [4.0, 6.0], labels: labels(&["10 us", "100 us", "1 ms"]) }
        );
        assert_eq!(log_scale(&lines, 6).labels, labels(&["10 us", "1 ms"]));
        assert_eq!(log_scale(&[], 12), Scale { bounds: [0.0, 1.0], labels: labels(&["1 ns", "10 ns"]) });
        assert_eq!(log_scale(&[line(&[3.0])], 12).labels, labels(&["1 us", "10 us"]));
        assert_eq!(decade(11), "100 s");
    }

    fn labels(texts: &[&str]) -> Vec<String> {
        texts.iter().map(|text| (*text).to_owned()).collect()
    }
}
