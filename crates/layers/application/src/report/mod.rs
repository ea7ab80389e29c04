//! The report of the application layer: its parameters, what its stages came to, and remedies for expensive calls.

mod beside;
mod checkpoint;
mod feeding;
mod stack_remedies;

use layer::observations::{CheckpointActivity, CommitActivity, Utilisation};
use report::chart::Chart;
use report::doubts::{Evidence, Kind};
use report::page::{Page, Style};
use report::profile::{ProfileRemedy, WorkerNoun};
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
        &["compute", "wait", "copy"]
    }

    fn takes_more(&self) -> bool {
        false
    }

    fn stack_remedies(&self, case: &RemedyCase<'_>) -> Vec<Remedy> {
        stack_remedies::remedies(case)
    }

    fn worker_noun(&self) -> WorkerNoun {
        WorkerNoun { one: "process", several: "processes", each: "a process" }
    }

    fn profile_remedies(&self) -> &'static [ProfileRemedy] {
        PROFILE_REMEDIES
    }
}

/// Name, version and parameters of an application.
fn application_words(plan: &AppPlan) -> String {
    let values =
        plan.parameters.iter().map(|parameter| format!("{}={}", parameter.name, clean(&parameter.value)));
    let values = values.collect::<Vec<_>>().join(" ");
    format!("{} {}: {values}", clean(&plan.application), clean(&plan.version))
}

/// Writes the utilisation of accelerators, checkpoints and commits.
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
}

/// Utilisation of accelerators, whether it suffices, and the samples that they took.
fn utilisation(page: &mut Page, seen: &Utilisation) {
    let (noun, each) = if seen.accelerators == 1 { ("accelerator", "") } else { ("accelerators", " each") };
    // Nothing is asked of some.
    let verdict = (seen.limit_fraction > 0.0).then(|| {
        let word = if seen.is_met { "passes" } else { "below" };
        format!("{word} {:.1} %, ", seen.limit_fraction * 100.0)
    });
    let text = format!(
        "{:.1} % of {} {noun} in {} steps{each}: {}{:.1} % of the time waiting",
        seen.fraction * 100.0,
        seen.accelerators,
        count(seen.steps),
        verdict.unwrap_or_default(),
        seen.waiting_fraction * 100.0,
    );
    page.field("utilisation", &text, if seen.is_met { Style::Plain } else { Style::Doubt });
    let epoch =
        seen.epoch_ns.map_or_else(String::new, |ns| format!("; an epoch takes {}", human_ns(ns as f64)));
    let rate =
        format!("{:.1} samples/s, {}/s{epoch}", seen.samples_per_second, human_bytes(seen.bytes_per_second));
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
        let all = counted(seen.commits, "commit");
        let of = |number, noun, each: f64, one| {
            let most = count(seen.commits_per_sync_max);
            format!("{all} in {}, {each:.2} {one}, {most} at most", counted(number, noun))
        };
        let mut text = match (seen.commits_per_object, seen.commits_per_sync) {
            (Some(each), _) => of(seen.objects, "object", each, "per object"),
            (None, Some(each)) => of(seen.syncs, "sync", each, "per sync"),
            (None, None) => format!("{all}: durable when written, nothing to sync"),
        };
        if seen.logs > 1 {
            text += &format!("; {} logs, one per host with clients", count(seen.logs));
        }
        if let Some(checkpoints) = seen.checkpoints {
            text += &format!("; {}", counted(checkpoints, "checkpoint"));
        }
        page.field("commits", &text, Style::Plain);
    }
    if seen.recovered_records > 0 {
        let text =
            format!("{}; no acknowledged commit is missing", counted(seen.recovered_records, "record"));
        page.field("recovered", &text, Style::Plain);
    }
}

/// The remedies, as the tutorials of DAOS and of file systems have them.
const PROFILE_REMEDIES: &[ProfileRemedy] = &[
    ProfileRemedy::OPEN_CONTAINER,
    ProfileRemedy {
        part: "allocate-ids",
        against: Some(("write", 0.05)),
        text: "take many object ids in one call and keep them: one call for 100 objects or more (fdb-hammer: --set ids=1000)",
    },
    ProfileRemedy {
        part: "create",
        against: Some(("write", 0.5)),
        text: "open arrays with known attributes instead of creating them, and put several items into one object",
    },
    ProfileRemedy {
        part: "open",
        against: Some(("read", 0.5)),
        text: "keep objects open between reads, or put several items into one object",
    },
    ProfileRemedy {
        part: "stat",
        against: None,
        text: "store sizes in the index, or use a read buffer that is large enough",
    },
    ProfileRemedy {
        part: "put",
        against: None,
        text: "use one index per process: a shared key-value object causes contention (fdb-hammer: --index process)",
    },
    ProfileRemedy {
        part: "get",
        against: None,
        text: "keep index entries in memory, and use one index per writer (fdb-hammer: --index process)",
    },
    ProfileRemedy::LIST,
    ProfileRemedy {
        part: "sync",
        against: Some(("write", 0.5)),
        text: "sync once after several writes: each sync waits for the device",
    },
    ProfileRemedy {
        part: "wait",
        against: None,
        text: "processes wait for other processes: move work away from the group they wait for, or let writers run further ahead",
    },
];

const KINDS: &[Kind] = &[
    Kind {
        rank: 150,
        name: "not_durable",
        look: not_durable,
        remedy: "add sync to the steps of the description, so that a write counts only when it is on the storage",
    },
    Kind {
        rank: 80,
        name: "page_cache",
        look: page_cache,
        remedy: "read with --target-options direct=true, or read more data than fits in memory",
    },
];

/// Writes that nothing made durable.
fn not_durable(evidence: &Evidence<'_>) -> Option<String> {
    let plan = evidence.plan.of::<AppPlan>()?;
    let written = evidence.bytes_of("write");
    let is_synced = plan.classes().contains(&(crate::AppClass::Sync as usize));
    (written > 0 && plan.is_cached && !is_synced).then(|| {
        format!("{} were written to the page cache and never made durable", human_bytes(written as f64))
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
            "only {} of {} read came from storage; the rest came from memory",
            human_bytes(fetched as f64),
            human_bytes(read as f64)
        )
    })
}
