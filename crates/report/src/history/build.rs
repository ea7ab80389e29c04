//! From runs to series.

use statistics::Figure;

use super::{Change, HistoryPoint, HistoryRun, PhaseHistory, Series, SeriesRun};
use crate::compare::{FigureName, facts_by_name};
use crate::record::Record;
use crate::text::common_targets;
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

/// Names of the targets of all phases, each once.
fn targets_of(record: &Record) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let mut add = |name: String| {
        if !name.is_empty() && !found.contains(&name) {
            found.push(name);
        }
    };
    common_targets(record).into_iter().for_each(|target| add(target.path));
    for phase in &record.phases {
        phase.plan.targets().iter().for_each(|target| add(target.path.clone()));
        // Layers whose targets are no paths say it in their plans.
        let plan = serde_json::to_value(&phase.plan).unwrap_or_default();
        if let Some(target) = plan.get("target").and_then(|target| target.as_str()) {
            add(target.to_owned());
        }
        let uris = plan.get("endpoints").and_then(|endpoints| endpoints.as_array()).into_iter().flatten();
        for uri in uris.filter_map(|endpoint| endpoint.get("uri").and_then(|uri| uri.as_str())) {
            add(uri.to_owned());
        }
        let names = plan.get("targets").and_then(|targets| targets.as_array()).into_iter().flatten();
        names.filter_map(|name| name.as_str()).for_each(|name| add(name.to_owned()));
    }
    found
}

/// Facts about machine and software of a record, of those that comparisons tell.
#[must_use]
pub fn facts_of(record: &Record) -> Vec<(String, String)> {
    facts_by_name(record)
}

/// Series of runs, the one with the newest run first. The figure of each phase is `metric`, or the one that decides about it; the expected range of a value comes from at most
/// `last` complete runs before it.
#[must_use]
pub fn build(runs: &[HistoryRun], metric: Option<FigureName>, last: usize) -> Vec<Series> {
    let mut groups: Vec<Vec<&HistoryRun>> = Vec::new();
    for run in runs {
        match groups.iter_mut().find(|group| is_of(group[0], run)) {
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

fn is_of(run: &HistoryRun, other: &HistoryRun) -> bool {
    run.series == other.series && run.load_key == other.load_key
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
