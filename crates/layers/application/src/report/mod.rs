//! The report of the application layer: its parameters, where the time went, and remedies for expensive calls.

mod beside;
mod charts;
mod checkpoint;
mod feeding;
mod remedies;
mod stack_remedies;

use layer::observations::{CheckpointActivity, CommitActivity, GroupProfile, ProfilePart, Utilisation};
use report::chart::Chart;
use report::doubts::{Evidence, Kind};
use report::page::{Cell, Page, Style, Table};
use report::record::{PhaseRecord, Record};
use report::stack::{Remedy, RemedyCase};
use report::view::{SideBySide, View};
use units::human::{human_bytes, human_ns};
use units::{clean, count, counted};

use crate::plan::AppPlan;

/// The report of the application layer.
pub static VIEW: &dyn View = &Applications;

struct Applications;

impl View for Applications {
    fn layer(&self) -> &'static str {
        "application"
    }

    fn places(&self, page: &mut Page, phase: &PhaseRecord) {
        let Some(plan) = phase.plan.of::<AppPlan>() else { return };
        page.field("on", &clean(&plan.target), Style::Plain);
        page.field("application", &application_words(plan), Style::Plain);
    }

    fn detail(&self, page: &mut Page, phase: &PhaseRecord) {
        seen(page, phase);
    }

    fn together(&self, record: &Record) -> Vec<usize> {
        let mut phases = feeding::phases(record);
        phases.extend(beside::phases(record));
        phases
    }

    fn overview(&self, page: &mut Page, record: &Record) {
        feeding::block(page, record);
        beside::block(page, record);
    }

    fn overview_charts(&self, record: &Record) -> Vec<(&'static str, Chart)> {
        beside::chart(record).map(|chart| ("beside", chart)).into_iter().collect()
    }

    fn side_by_side(&self, record: &Record) -> Vec<SideBySide> {
        beside::side_by_side(record)
    }

    fn doubts(&self) -> &'static [Kind] {
        KINDS
    }

    fn idle_classes(&self) -> &'static [&'static str] {
        &["compute", "wait", "stage"]
    }

    fn takes_more(&self) -> bool {
        false
    }

    fn stack_remedies(&self, case: &RemedyCase<'_>) -> Vec<Remedy> {
        stack_remedies::remedies(case)
    }

    fn charts(&self, phase: &PhaseRecord, title: &str) -> Vec<(&'static str, Chart)> {
        charts::of(phase, title)
    }
}

/// Name, version and parameters of an application.
fn application_words(plan: &AppPlan) -> String {
    let values =
        plan.parameters.iter().map(|parameter| format!("{}={}", parameter.name, clean(&parameter.value)));
    let values = values.collect::<Vec<_>>().join(" ");
    format!("{} {}: {values}", clean(&plan.application), clean(&plan.version))
}

/// Writes the utilisation of accelerators, checkpoints and commits, where the time went, and remedies for expensive calls.
fn seen(page: &mut Page, phase: &PhaseRecord) {
    if let Some(seen) = &phase.observations.utilisation {
        utilisation(page, seen);
    }
    if let Some(seen) = &phase.observations.checkpoint {
        checkpoint(page, seen);
    }
    if let Some(seen) = &phase.observations.commits {
        commits(page, seen);
    }
    let Some(profile) = &phase.observations.profile else { return };
    for group in &profile.groups {
        breakdown(page, group);
    }
    for line in remedies::of(profile) {
        page.field("expensive", &line, Style::Doubt);
    }
}

/// Utilisation of accelerators, whether it suffices, and the samples that they took.
fn utilisation(page: &mut Page, seen: &Utilisation) {
    let (noun, each) = if seen.accelerators == 1 { ("accelerator", "") } else { ("accelerators", " each") };
    let text = format!(
        "{:.1} % of {} {noun} in {} steps{each}: {} {:.1} %, {:.1} % of the time waiting",
        seen.fraction * 100.0,
        seen.accelerators,
        count(seen.steps),
        if seen.is_met { "passes" } else { "below" },
        seen.limit_fraction * 100.0,
        seen.waiting_fraction * 100.0,
    );
    page.field("utilisation", &text, if seen.is_met { Style::Plain } else { Style::Doubt });
    let rate = format!("{:.1} samples/s, {}/s", seen.samples_per_second, human_bytes(seen.bytes_per_second));
    page.field("samples", &rate, Style::Plain);
}

/// A checkpoint: its size, its throughput, and the share of the time that checkpoints took so far.
fn checkpoint(page: &mut Page, seen: &CheckpointActivity) {
    let share = seen.share_fraction.map_or(String::new(), |share| {
        format!("; checkpoints took {:.1} % of the time so far", share * 100.0)
    });
    let text = format!(
        "{} in {} of {} in {}{}, {}/s{share}",
        human_bytes(seen.bytes as f64),
        counted(seen.files, "file"),
        counted(u64::from(seen.ranks), "rank"),
        human_ns(seen.time_ns as f64),
        checkpoint::with_computing(seen),
        human_bytes(seen.bytes_per_second)
    );
    page.field("checkpoint", &text, Style::Plain);
    if let Some(seen) = &seen.blocking {
        checkpoint::blocking(page, seen);
    }
}

/// Commits, what their syncs carried, and what was recovered.
fn commits(page: &mut Page, seen: &CommitActivity) {
    if seen.commits > 0 {
        let syncs = match seen.commits_per_sync {
            Some(each) => format!(
                "{} in {}, {each:.2} a sync, {} at most",
                counted(seen.commits, "commit"),
                counted(seen.syncs, "sync"),
                count(seen.commits_per_sync_max)
            ),
            None => format!("{}: durable when written, nothing to sync", counted(seen.commits, "commit")),
        };
        page.field("commits", &format!("{syncs}; {}", counted(seen.checkpoints, "checkpoint")), Style::Plain);
    }
    if seen.recovered_records > 0 {
        let text =
            format!("{}; no acknowledged commit is missing", counted(seen.recovered_records, "record"));
        page.field("recovered", &text, Style::Plain);
    }
}

/// Share of a part of the time of a group.
fn share(group: &GroupProfile, part: &ProfilePart) -> f64 {
    part.time_ns as f64 / group.wall_ns.max(1) as f64
}

/// Parts of a group, the largest first.
fn by_share(group: &GroupProfile) -> Vec<&ProfilePart> {
    let mut parts: Vec<&ProfilePart> = group.parts.iter().collect();
    parts.sort_by_key(|part| std::cmp::Reverse(part.time_ns));
    parts
}

/// Shares in tenths of a percent that add up to 1000: what rounding leaves goes to the parts that lost most by it.
fn tenths(group: &GroupProfile, parts: &[&ProfilePart]) -> Vec<u64> {
    let exact: Vec<f64> = parts.iter().map(|part| share(group, part) * 1000.0).collect();
    let mut shares: Vec<u64> = exact.iter().map(|share| *share as u64).collect();
    let mut order: Vec<usize> = (0..parts.len()).collect();
    order.sort_by(|&a, &b| exact[b].fract().total_cmp(&exact[a].fract()));
    let left = 1000u64.saturating_sub(shares.iter().sum());
    for &at in order.iter().take(left as usize) {
        shares[at] += 1;
    }
    shares
}

/// The table of a group.
fn breakdown(page: &mut Page, group: &GroupProfile) {
    let processes = u64::from(group.processes.max(1));
    let wall = human_ns(group.wall_ns as f64 / processes as f64);
    let mut table = Table::new(&["where the time goes", "share", "a process", "calls", "a call"]);
    let noun = if group.processes == 1 { "process" } else { "processes" };
    table.heading(format!("{}: {} {noun}, {wall} each", clean(&group.name), group.processes));
    let parts = by_share(group);
    for (part, tenths) in parts.iter().zip(tenths(group, &parts)) {
        let calls = if part.calls == 0 { String::new() } else { count(part.calls) };
        let each = match part.calls {
            0 => String::new(),
            calls => human_ns(part.time_ns as f64 / calls as f64),
        };
        table.row(vec![
            Cell::from(clean(&part.name).into_owned()),
            Cell::from(format!("{}.{} %", tenths / 10, tenths % 10)),
            Cell::from(human_ns(part.time_ns as f64 / processes as f64)),
            Cell::from(calls),
            Cell::from(each),
        ]);
    }
    page.gap();
    page.table(&table);
}

const KINDS: &[Kind] = &[
    Kind {
        rank: 150,
        name: "not_durable",
        look: not_durable,
        remedy: "add sync to the steps of the description, so that a write counts when it is on the storage",
    },
    Kind {
        rank: 80,
        name: "page_cache",
        look: page_cache,
        remedy: "read with --target-options direct=true, or more than the memory holds",
    },
];

/// Writes that nothing made durable.
fn not_durable(evidence: &Evidence<'_>) -> Option<String> {
    let plan = evidence.plan.of::<AppPlan>()?;
    let written = evidence.bytes_of("write");
    let is_synced = plan.classes().contains(&(crate::AppClass::Sync as usize));
    (written > 0 && plan.is_cached && !is_synced).then(|| {
        format!(
            "{} were written to the page cache, and nothing made them durable",
            human_bytes(written as f64)
        )
    })
}

/// Share of the bytes read that the devices must have given for the stage not to be one of the page cache.
const FETCHED_SHARE_MIN: f64 = 0.9;

/// Reads that the page cache answered.
fn page_cache(evidence: &Evidence<'_>) -> Option<String> {
    let plan = evidence.plan.of::<AppPlan>()?;
    let read = evidence.bytes_of("read");
    if !plan.is_cached || read == 0 {
        return None;
    }
    let fetched = evidence.observations.process_fetched_bytes?;
    ((fetched as f64) < FETCHED_SHARE_MIN * read as f64).then(|| {
        format!(
            "this process had {} fetched from storage for {} read: the rest came from memory",
            human_bytes(fetched as f64),
            human_bytes(read as f64)
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_add_up_to_a_hundred_percent() {
        let part = |name: &str, time_ns| ProfilePart { name: name.to_owned(), calls: 1, time_ns };
        let parts = vec![part("write", 333), part("sync", 333), part("wait", 334), part("strata", 1)];
        let group = GroupProfile { name: "g".to_owned(), processes: 1, wall_ns: 1001, parts };
        let parts = by_share(&group);
        assert_eq!(parts[0].name, "wait");
        let shares = tenths(&group, &parts);
        assert_eq!(shares.iter().sum::<u64>(), 1000);
        assert_eq!(shares.last(), Some(&1), "0.1 % is shown");
    }
}
