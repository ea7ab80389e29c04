//! From runs to series.

use statistics::Figure;

use super::{Change, HistoryPoint, HistoryRun, PhaseHistory, Series, SeriesRun};
use crate::compare::FigureName;
use crate::record::Record;
use crate::words::clean;

/// Targets that a series is named by, at most.
const TARGETS_NAMED: usize = 3;

/// The series of a record that the user gave no name: its host and its targets; of a stack, the mount point of the file system that it measured.
#[must_use]
pub fn series_of(record: &Record) -> String {
    let host = record.environment.system.hostname.as_deref().unwrap_or("unknown host");
    let targets = match &record.stack {
        Some(_) => {
            let places = record.environment.targets.iter().filter_map(|target| target.filesystem.as_ref());
            places.map(|place| place.mount_point.display().to_string()).take(1).collect()
        }
        None => targets_of(record),
    };
    let named = targets.iter().take(TARGETS_NAMED).map(|target| clean(target).into_owned());
    let mut parts: Vec<String> = std::iter::once(clean(host).into_owned()).chain(named).collect();
    if targets.len() > TARGETS_NAMED {
        parts.push(format!("{} more", targets.len() - TARGETS_NAMED));
    }
    parts.join(", ")
}

/// Addresses of the targets of all phases, each once.
fn targets_of(record: &Record) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for address in record.phases.iter().flat_map(|phase| phase.plan.target_addresses()) {
        if !address.is_empty() && found.iter().all(|known| known != address) {
            found.push(address.to_owned());
        }
    }
    found
}

/// Series of runs, the one with the newest run first. The figure of each phase is `metric`, or the one that decides about it; the expected range of a value comes from at most
/// `last` complete runs before it.
#[must_use]
pub fn build(runs: &[HistoryRun], metric: Option<FigureName>, last: usize) -> Vec<Series> {
    let mut groups: Vec<Vec<&HistoryRun>> = Vec::new();
    for run in runs {
        match groups.iter_mut().find(|group| group[0].is_of_series(run)) {
            Some(group) => group.push(run),
            None => groups.push(vec![run]),
        }
    }
    for group in &mut groups {
        group.sort_by(|a, b| (&a.started_at, &a.run_id).cmp(&(&b.started_at, &b.run_id)));
    }
    groups.sort_by(|a, b| {
        let newest = |group: &[&HistoryRun]| group.last().map(|run| run.started_at.clone());
        newest(b).cmp(&newest(a))
    });
    groups.iter().map(|group| series(group, metric, last)).collect()
}

fn series(runs: &[&HistoryRun], metric: Option<FigureName>, last: usize) -> Series {
    let newest = runs[runs.len() - 1];
    let mut phases: Vec<PhaseHistory> = Vec::new();
    for (at, run) in runs.iter().enumerate() {
        for point in &run.phases {
            let metric = metric.unwrap_or(point.headline);
            let Some((_, value)) = point.figures.iter().find(|(name, _)| *name == metric) else { continue };
            let known = phases
                .iter()
                .position(|phase| phase.name == point.name && phase.occurrence == point.occurrence);
            let place = known.unwrap_or_else(|| {
                let (name, occurrence) = (point.name.clone(), point.occurrence);
                phases.push(PhaseHistory { name, occurrence, metric, points: Vec::new() });
                phases.len() - 1
            });
            phases[place].points.push(HistoryPoint {
                run: at,
                value: *value,
                expected_low: None,
                expected_high: None,
                warnings: point.warnings.clone(),
            });
        }
    }
    for phase in &mut phases {
        expect(&mut phase.points, runs, last);
    }
    let run = |run: &&HistoryRun| SeriesRun {
        path: run.path.clone(),
        run_id: run.run_id.clone(),
        started_at: run.started_at.clone(),
        failure: run.failure.clone(),
    };
    Series {
        name: newest.series.clone(),
        load: newest.load.clone(),
        runs: runs.iter().map(run).collect(),
        phases,
        changes: changes(runs),
    }
}

/// The expected range of each value, from the complete runs before it.
fn expect(points: &mut [HistoryPoint], runs: &[&HistoryRun], last: usize) {
    for at in 0..points.len() {
        let before = points[..at].iter().rev().filter(|point| runs[point.run].failure.is_none());
        let values: Vec<f64> = before.take(last).map(|point| point.value).collect();
        if let Some(range) = Figure::of_next(&values) {
            (points[at].expected_low, points[at].expected_high) = (Some(range.low), Some(range.high));
        }
    }
}

/// Facts that are not what they were in the run before.
fn changes(runs: &[&HistoryRun]) -> Vec<Change> {
    let mut found = Vec::new();
    for (at, pair) in runs.windows(2).enumerate() {
        let value = |run: &HistoryRun, fact: &str| {
            let known = run.facts.iter().find(|(name, _)| name == fact);
            known.map_or_else(|| "unknown".to_owned(), |(_, value)| value.clone())
        };
        for (fact, _) in &pair[1].facts {
            let (before, after) = (value(pair[0], fact), value(pair[1], fact));
            if before != after {
                found.push(Change { run: at + 1, fact: fact.clone(), before, after });
            }
        }
    }
    found
}
