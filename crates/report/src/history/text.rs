//! A history as a person reads it at a terminal.

use super::{History, HistoryCheck, HistoryPoint, PhaseHistory, Series};
use crate::compare::{self, FigureName};
use crate::page::{Cell, Page, Style, Table};
use crate::words::{clean, counted};

/// Runs that a trend shows.
const TREND_RUNS_MAX: usize = 16;
/// Levels of a trend, the lowest first.
const TREND: &[char] = &['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
/// Changes of machine and software that are shown, the newest.
const CHANGES_SHOWN: usize = 8;

impl PhaseHistory {
    /// Its name, with a number where another of its name comes before it.
    #[must_use]
    pub fn label(&self) -> String {
        compare::labelled(&self.name, self.occurrence)
    }
}

/// The day of a moment: `2026-11-29`.
fn day(moment: &str) -> &str {
    moment.get(..10).unwrap_or(moment)
}

/// `2026-11-29 01:06`.
fn minute(moment: &str) -> String {
    clean(moment.get(..16).unwrap_or(moment)).replace('T', " ")
}

/// `398k/s to 421k/s`, or `-`.
fn expected_words(metric: FigureName, point: &HistoryPoint) -> String {
    match (point.expected_low, point.expected_high) {
        (Some(low), Some(high)) => format!("{} to {}", metric.words(low), metric.words(high)),
        _ => "-".to_owned(),
    }
}

/// Where a value lies: `in range`, `slower`, `faster`; none without a range.
fn position(metric: FigureName, point: &HistoryPoint) -> Option<&'static str> {
    let (low, high) = (point.expected_low?, point.expected_high?);
    let is_higher_faster = metric.direction() == statistics::Direction::HigherIsFaster;
    Some(match (point.value < low, point.value > high) {
        (false, false) => "in range",
        (true, _) if is_higher_faster => "slower",
        (_, true) if !is_higher_faster => "slower",
        _ => "faster",
    })
}

/// The last values as small bars, from the smallest to the largest of them.
fn trend(points: &[HistoryPoint]) -> String {
    let shown = &points[points.len().saturating_sub(TREND_RUNS_MAX)..];
    let values = || shown.iter().map(|point| point.value);
    let (low, high) = (values().fold(f64::INFINITY, f64::min), values().fold(f64::NEG_INFINITY, f64::max));
    let level = |value: f64| match high > low {
        true => ((value - low) / (high - low) * (TREND.len() - 1) as f64).round() as usize,
        false => TREND.len() / 2,
    };
    values().map(|value| TREND[level(value).min(TREND.len() - 1)]).collect()
}

/// Runs of a series in words: `21 runs, 2026-11-01 to 2026-11-29`.
pub(super) fn runs_words(series: &Series) -> String {
    let runs = counted(series.runs.len() as u64, "run");
    match (series.runs.first(), series.runs.last()) {
        (Some(first), Some(last)) if day(&first.started_at) != day(&last.started_at) => {
            format!("{runs}, {} to {}", clean(day(&first.started_at)), clean(day(&last.started_at)))
        }
        (_, Some(last)) => format!("{runs}, {}", clean(day(&last.started_at))),
        _ => runs,
    }
}

/// Changes of machine and software in a line each, the newest first.
pub(super) fn change_lines(series: &Series) -> Vec<String> {
    let changes = series.changes.iter().rev().take(CHANGES_SHOWN);
    let line = |change: &super::Change| {
        let run = &series.runs[change.run];
        format!(
            "{}: {}: {} → {}",
            minute(&run.started_at),
            clean(&change.fact),
            clean(&change.before),
            clean(&change.after)
        )
    };
    let mut lines: Vec<String> = changes.map(line).collect();
    if series.changes.len() > CHANGES_SHOWN {
        lines.push(format!("and {} before", series.changes.len() - CHANGES_SHOWN));
    }
    lines
}

/// The history as text of `width` columns (at least 40), with ANSI colours where `colour` is set.
#[must_use]
pub fn render(history: &History, width: usize, colour: bool) -> String {
    let mut page = Page::new(width, colour);
    let runs: usize = history.series.iter().map(|series| series.runs.len()).sum();
    page.line(
        &format!(
            "strata {}, history {}: {} in {}",
            clean(&history.strata_version),
            clean(&history.directory),
            counted(runs as u64, "run"),
            if history.series.len() == 1 {
                "1 series".to_owned()
            } else {
                format!("{} series", history.series.len())
            },
        ),
        Style::Strong,
    );
    page.rule();
    for series in &history.series {
        page.line(&clean(&series.name), Style::Strong);
        page.field("load", &clean(&series.load), Style::Plain);
        page.field("runs", &runs_words(series), Style::Plain);
        page.blank();
        page.table(&table(series));
        page.blank();
        for (at, line) in change_lines(series).iter().enumerate() {
            page.field(if at == 0 { "changed" } else { "" }, line, Style::Plain);
        }
        if let Some(last) = series.runs.last() {
            page.field("newest", &clean(&last.path), Style::Plain);
        }
        for run in series.runs.iter().filter(|run| run.failure.is_some()) {
            let failure = run.failure.as_deref().unwrap_or_default();
            page.field("partial", &format!("{}: {}", clean(&run.path), clean(failure)), Style::Failure);
        }
        page.blank();
    }
    for remark in &history.remarks {
        page.field("note", &clean(remark), Style::Doubt);
    }
    page.field(
        "expected",
        &format!("95% of further runs lie in this range, by the spread of the {} runs before", history.last),
        Style::Plain,
    );
    page.finish()
}

/// The newest run of a phase: its value, the range in which it was to be expected, and where it lies (`in range`, `slower`, `faster`, or `missing` from the run).
pub(super) fn newest(series: &Series, phase: &PhaseHistory) -> Option<(String, String, &'static str)> {
    let newest = phase.points.last()?;
    if newest.run + 1 < series.runs.len() {
        return Some(("-".to_owned(), "-".to_owned(), "missing"));
    }
    let metric = phase.metric;
    let place = position(metric, newest).unwrap_or("");
    Some((metric.words(newest.value), expected_words(metric, newest), place))
}

fn table(series: &Series) -> Table {
    let mut table = Table::new(&["", "newest", "expected", "", "runs", "trend"]);
    for phase in &series.phases {
        let Some((value, expected, place)) = newest(series, phase) else { continue };
        let style = match place {
            "slower" => Style::Failure,
            "faster" => Style::Strong,
            _ => Style::Faint,
        };
        table.row(vec![
            phase.metric.of_phase(phase.label()).into(),
            value.into(),
            expected.into(),
            Cell::styled(place, style),
            phase.points.len().to_string().into(),
            trend(&phase.points).into(),
        ]);
    }
    table
}

/// A check as text, a comparison after the other.
#[must_use]
pub fn render_check(check: &HistoryCheck, width: usize, colour: bool) -> String {
    let mut text = String::new();
    for comparison in &check.comparisons {
        text += &compare::render(comparison, width, colour);
        text.push('\n');
    }
    let mut page = Page::new(width, colour);
    check.remarks.iter().for_each(|remark| page.field("note", &clean(remark), Style::Doubt));
    text + &page.finish()
}
