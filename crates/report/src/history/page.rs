//! A history as one HTML page: a table and the graphs of each series.

use std::fmt::Write;

use super::text::{change_lines, newest, runs_words};
use super::{History, HistoryPoint, PhaseHistory, Series};
use crate::chart::{
    Axis, Chart, Dash, Look, Mark, Point, Scale, Series as Line, Style, Unit, document, escaped, to_element,
};
use crate::compare::FigureName;
use crate::words::clean;

/// Most places of a graph that are numbered as changes, the newest.
const MARKS_MAX: usize = 9;
/// Colours of a graph: the values, the range, and values outside of it.
const COLOURS: [usize; 3] = [0, 2, 1];

/// The history as a page that needs nothing from outside: of each series a table, the changes of machine and software, and a graph for each phase with the range in which each
/// value was to be expected.
#[must_use]
pub fn to_html(history: &History) -> String {
    let mut out = String::new();
    for series in &history.series {
        let _ = writeln!(out, "<h2>{}</h2>", escaped(&clean(&series.name)));
        let _ = writeln!(out, "<p class=\"muted\">{}</p>", escaped(&clean(&series.load)));
        let _ = writeln!(out, "<p class=\"muted\">{}</p>", escaped(&runs_words(series)));
        table(series, &mut out);
        let changes = change_lines(series);
        if !changes.is_empty() {
            out.push_str("<p>Changes, the newest first:</p>\n<ul>\n");
            for line in changes {
                let _ = writeln!(out, "<li>{}</li>", escaped(&line));
            }
            out.push_str("</ul>\n");
        }
        let look = Look { height: 300.0, ..Look::default() };
        for chart in series.phases.iter().filter_map(|phase| chart(series, phase)) {
            let _ = writeln!(out, "<figure>\n{}</figure>", to_element(&chart, &look));
        }
    }
    for remark in &history.remarks {
        let _ = writeln!(out, "<p class=\"warn\">note: {}</p>", escaped(&clean(remark)));
    }
    let _ = writeln!(
        out,
        "<p class=\"muted\">Expected: 95% of further runs lie in this range, by the spread of the {} runs before each.</p>",
        history.last
    );
    let title = format!("History {}", clean(&history.directory));
    document(&title, &title, &out)
}

fn table(series: &Series, out: &mut String) {
    out.push_str(
        "<div class=\"table\"><table>\n<thead><tr><th>phase</th><th>metric</th><th>newest</th><th>expected</th><th></th><th>runs</th></tr></thead>\n<tbody>\n",
    );
    for phase in &series.phases {
        let Some((value, expected, place)) = newest(series, phase) else { continue };
        let cells = [
            phase.label(),
            phase.metric.name().to_owned(),
            value,
            expected,
            place.to_owned(),
            phase.points.len().to_string(),
        ];
        let class = if place == "slower" { " class=\"warn\"" } else { "" };
        let cells: String = cells.iter().map(|cell| format!("<td>{}</td>", escaped(cell))).collect();
        let _ = writeln!(out, "<tr{class}>{cells}</tr>");
    }
    out.push_str("</tbody>\n</table></div>\n");
}

/// Seconds since 1970 of a moment.
fn seconds(moment: &str) -> Option<f64> {
    let at = humantime::parse_rfc3339(moment).ok()?;
    at.duration_since(std::time::UNIX_EPOCH).ok().map(|since| since.as_secs_f64())
}

/// The graph of a phase over time; none of fewer than two values whose moments are known.
fn chart(series: &Series, phase: &PhaseHistory) -> Option<Chart> {
    let at = |run: usize| seconds(&series.runs[run].started_at);
    let placed: Vec<_> = phase.points.iter().filter_map(|point| Some((at(point.run)?, point))).collect();
    if placed.len() < 2 {
        return None;
    }
    let unit = match phase.metric {
        FigureName::Rate => Unit::PerSecond,
        FigureName::Bandwidth => Unit::BytesPerSecond,
        _ => Unit::Nanoseconds,
    };
    let x = Axis::new("", Unit::Date, Scale::Spanning);
    let y = Axis::new(phase.metric.name(), unit, Scale::Linear);
    let mut chart = Chart::new(phase.label(), x, y);
    let inside = placed.iter().map(|(x, point)| Point::new(*x, point.value)).collect();
    chart.series.push(Line::new(phase.metric.name(), Style::Points, COLOURS[0], inside));
    // A range that is many times the values would leave these flat at the foot.
    let top = placed.iter().map(|(_, point)| point.value).fold(0.0, f64::max) * 1.5;
    let edge = |of: fn(&HistoryPoint) -> Option<f64>| {
        let end = |(x, point): &(f64, &HistoryPoint)| {
            Point::new(*x, of(point).map_or(f64::NAN, |end| end.min(top)))
        };
        placed.iter().map(end).collect::<Vec<_>>()
    };
    for (name, points) in
        [("expected (95%)", edge(|point| point.expected_low)), ("", edge(|point| point.expected_high))]
    {
        chart.series.push(Line { dash: Dash::Dashed, ..Line::new(name, Style::Line, COLOURS[1], points) });
    }
    let outside: Vec<Point> = placed
        .iter()
        .filter(|(_, point)| point.is_outside())
        .map(|(x, point)| Point::new(*x, point.value))
        .collect();
    if !outside.is_empty() {
        // The first series lies on top.
        chart.series.insert(0, Line::new("outside", Style::Points, COLOURS[2], with_gaps(outside)));
    }
    changes(series, &placed, &mut chart);
    Some(chart)
}

/// Points that no line joins.
fn with_gaps(points: Vec<Point>) -> Vec<Point> {
    points.into_iter().flat_map(|point| [Point::new(point.x, f64::NAN), point]).collect()
}

/// Numbers the runs from which on machine or software are not what they were; the note says what changed.
fn changes(series: &Series, placed: &[(f64, &HistoryPoint)], chart: &mut Chart) {
    let mut runs: Vec<usize> = series.changes.iter().map(|change| change.run).collect();
    runs.dedup();
    let first = runs.len().saturating_sub(MARKS_MAX);
    let mut told = Vec::new();
    for run in &runs[first..] {
        let Some((x, point)) = placed.iter().find(|(_, point)| point.run == *run) else { continue };
        let label = (told.len() + 1).to_string();
        let facts = series.changes.iter().filter(|change| change.run == *run);
        let facts: Vec<String> =
            facts.map(|change| format!("{} {}", clean(&change.fact), clean(&change.after))).collect();
        told.push(format!("{label}: {}", facts.join(", ")));
        chart.marks.push(Mark { x: *x, y: point.value, label });
    }
    if !told.is_empty() {
        chart.note = format!("Changes: {}", told.join("; "));
    }
}
