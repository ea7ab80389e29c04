//! Parts of the latencies of a phase, where they were timed apart (`--split-latency`): those that its driver tells apart, or until the driver had
//! taken an operation, and from there on.

use statistics::{ClassSummary, LatencySummary};

use crate::page::{Cell, Page, Style, Table};
use crate::record::PhaseRecord;
use crate::words::{bounded, clean, percentile_words};

const COLUMNS: &[&str] = &["part of the latency", "share", "mean", "p50", "p90", "p99", "p99.9", "max"];

/// A table of the parts by class; nothing where they were not timed apart.
pub(super) fn parts(page: &mut Page, phase: &PhaseRecord) {
    let mut table = Table::new(COLUMNS);
    let mut has_any = false;
    for class in &phase.summary.classes {
        let parts = of(class);
        // What was complete when it was submitted has no submission, so that counts differ.
        let all_ns: f64 = parts.iter().map(|(_, part)| part.sum_ns()).sum();
        for (name, part) in parts {
            has_any = true;
            table.row(row(&format!("{} {name}", clean(&class.class)), part, all_ns));
        }
    }
    if has_any {
        page.table(&table);
        page.blank();
    }
}

/// Parts of a class by name: those that its driver tells apart, or until the driver had taken an operation and from there on.
fn of(class: &ClassSummary) -> Vec<(&str, &LatencySummary)> {
    if !class.latency_parts.is_empty() {
        return class.latency_parts.iter().map(|part| (part.part.as_str(), &part.latency)).collect();
    }
    let parts = [("submission", &class.submission), ("completion", &class.completion)];
    parts.into_iter().filter_map(|(name, part)| Some((name, part.as_ref()?))).collect()
}

fn row(name: &str, part: &LatencySummary, all_ns: f64) -> Vec<Cell> {
    let figures = [
        (50.0, Some(part.p50_ns)),
        (90.0, part.p90_ns),
        (99.0, part.p99_ns),
        (99.9, part.p99_9_ns),
        (100.0, Some(part.max_ns)),
    ];
    let share = if all_ns > 0.0 { 100.0 * part.sum_ns() / all_ns } else { 0.0 };
    let mut cells = vec![
        name.to_owned().into(),
        Cell::styled(format!("{share:.1} %"), Style::Strong),
        bounded(part.mean_ns, part.is_mean_lower_bound()).into(),
    ];
    cells.extend(figures.map(|(percent, ns)| percentile_words(Some(part), percent, ns).into()));
    cells
}
