//! The table that a person reads: what ran, how fast, how sure, what is doubtful.

mod ladder;
mod phase;
mod split;
#[cfg(test)]
mod tests;

use driver::ClockSource;
use host::{Environment, TargetEnvironment};
use units::human::human_bytes;
use units::human_ns;
use workload::target::{TargetKind, TargetPlan};

use crate::page::{Page, Style};
use crate::record::{Doubt, PhaseRecord, Record, Status, ToolCost};
use crate::words::{clean, counted};
use crate::{preset, recipes, stack, suite, view};

pub use phase::summary_line;
pub(crate) use phase::{PERCENTILES, Percentile, has_tail};

/// Targets named one by one; of more, the rest is counted.
const TARGETS_SHOWN: usize = 3;

/// The whole record as text of `width` columns (at least 40), with ANSI colours where `colour` is set.
///
/// Lines end in no space; control characters of names and errors are spelled out.
#[must_use]
pub fn render(record: &Record, width: usize, colour: bool) -> String {
    render_in(record, width, colour, stack::Detail::Full)
}

/// The same, with as much of a stack as is asked for; of other runs all is shown.
#[must_use]
pub fn render_in(record: &Record, width: usize, colour: bool, detail: stack::Detail) -> String {
    if let (Some(rows), true) = (&record.stack, detail != stack::Detail::Full) {
        let mut page = Page::new(width, colour);
        page.line(&machine(&record.environment), Style::Strong);
        on_targets(&mut page, &common_targets(record), &record.environment);
        stack::block(&mut page, record, rows, detail);
        if let Some(failure) = &record.failure {
            page.field("failed", &clean(failure), Style::Failure);
        }
        return page.finish();
    }
    let mut page = Page::new(width, colour);
    header(&mut page, record);
    let common = common_targets(record);
    on_targets(&mut page, &common, &record.environment);
    let mut shown = shown_as_parts(record);
    let together: Vec<_> = view::all().into_iter().map(|view| (view, view.together(record))).collect();
    let together_at = together.iter().flat_map(|(_, phases)| phases.iter().copied());
    together_at.for_each(|at| shown.iter_mut().skip(at).take(1).for_each(|shown| *shown = true));
    // An open loop at a share of what the climb found comes after it.
    let last_rung = record.ladder.as_ref().and_then(|ladder| ladder.phases.iter().max()).copied();
    let is_after = |at: usize| last_rung.is_some_and(|last| at > last);
    let alone = |page: &mut Page, after: bool| {
        for (at, phase) in
            record.phases.iter().enumerate().filter(|(at, _)| !shown[*at] && is_after(*at) == after)
        {
            page.blank();
            if is_fill(phase) {
                phase::filled(page, phase);
                continue;
            }
            let beside = record.beside(at);
            phase::block(page, phase, &beside, &record.environment, common.is_empty(), &record.hosts);
        }
    };
    alone(&mut page, false);
    for (view, phases) in together.iter().filter(|(_, phases)| !phases.is_empty()) {
        page.blank();
        view.overview(&mut page, record);
        let named = |at: &usize| record.phases.get(*at).map(|phase| (phase.plan.name().clone(), phase));
        let phases: Vec<_> = phases.iter().filter_map(named).collect();
        notes_of(&mut page, &phases);
        doubts_of(&mut page, &phases);
    }
    if let Some(ladder) = &record.ladder {
        page.blank();
        ladder::block(&mut page, record, ladder);
        alone(&mut page, true);
    }
    if let Some(rows) = &record.stack {
        page.blank();
        stack::block(&mut page, record, rows, detail);
    }
    if let Some(found) = &record.recipes {
        page.blank();
        recipes::block(&mut page, record, found);
    }
    if let Some(suite) = &record.suite {
        page.blank();
        suite::block(&mut page, record, suite);
    }
    if let Some(answer) = &record.preset {
        page.blank();
        preset::block(&mut page, record, answer);
    }
    footer(&mut page, record);
    page.finish()
}

/// Whether each phase is shown as a part of a stack, of recipes, of a suite, of a preset or of a ladder.
fn shown_as_parts(record: &Record) -> Vec<bool> {
    let mut shown = vec![false; record.phases.len()];
    let mut mark = |indexes: &mut dyn Iterator<Item = usize>| {
        indexes.for_each(|at| shown.iter_mut().skip(at).take(1).for_each(|shown| *shown = true));
    };
    if let Some(stack) = &record.stack {
        mark(&mut (0..record.phases.len()).filter(|at| stack.has(*at)));
        mark(&mut fills(record));
    }
    if let Some(found) = &record.recipes {
        mark(&mut found.recipes.iter().flat_map(|recipe| recipe.pairs.iter().flatten().copied()));
        mark(&mut fills(record));
    }
    if let Some(suite) = &record.suite {
        mark(&mut suite.phases.iter().filter_map(|phase| phase.phase));
    }
    if record.preset.is_some() {
        mark(&mut (0..record.phases.len()));
    }
    if let Some(ladder) = &record.ladder {
        mark(&mut ladder.phases.iter().copied());
    }
    shown
}

/// Whether a phase only stored what others need.
pub(crate) fn is_fill(phase: &PhaseRecord) -> bool {
    phase.plan.is_fill() && phase.failure.is_none()
}

/// Whether pages leave out phases that only store: they say nothing, unless there is nothing else.
pub(crate) fn hides_fills(record: &Record) -> bool {
    record.phases.iter().any(|phase| !is_fill(phase))
}

/// The phases that did.
fn fills(record: &Record) -> impl Iterator<Item = usize> + '_ {
    record.phases.iter().enumerate().filter(|(_, phase)| is_fill(phase)).map(|(at, _)| at)
}

fn header(page: &mut Page, record: &Record) {
    let status = match record.status {
        Status::Running => ", still running or killed: results until then",
        Status::Complete => "",
        Status::Partial => ", partial",
    };
    let what = format!(
        "strata {}, run {}, seed {}, {}{status}",
        clean(&record.strata_version),
        clean(&record.run_id),
        record.seed,
        clean(&record.started_at)
    );
    page.line(&what, Style::Strong);
    let machine = machine(&record.environment);
    if !machine.is_empty() {
        page.line(&machine, Style::Faint);
    }
    page.rule();
}

/// `store1: Example EPYC 7B13, 8 cores, 64 GiB, Linux 6.12.8`.
pub(crate) fn machine(environment: &Environment) -> String {
    let (processor, system) = (&environment.processor, &environment.system);
    let reporting = environment.memory.free_page_reporting == Some(true);
    let of_machine =
        [processor.hypervisor.as_deref().map(clean), reporting.then(|| "free page reporting".into())];
    let of_machine = of_machine.into_iter().flatten().collect::<Vec<_>>().join(", ");
    let virtual_machine = (processor.virtualised == Some(true)).then(|| match &*of_machine {
        "" => "virtual machine".to_owned(),
        facts => format!("virtual machine ({facts})"),
    });
    let facts = [
        processor.model.as_deref().map(|model| clean(model).into_owned()),
        processor.logical_cores.map(|cores| counted(cores.into(), "core")),
        environment.memory.total_bytes.map(|bytes| human_bytes(bytes as f64)),
        system.kernel.as_deref().map(|kernel| format!("Linux {}", clean(kernel))),
        virtual_machine,
        system.container.as_deref().map(|name| format!("in a container ({})", clean(name))),
    ];
    let facts = facts.into_iter().flatten().collect::<Vec<_>>().join(", ");
    match &system.hostname {
        Some(name) if !facts.is_empty() => format!("{}: {facts}", clean(name)),
        _ => facts,
    }
}

/// The targets, where all phases have the same; of a stack, whose layers have their own, the storage among them.
pub(crate) fn common_targets(record: &Record) -> Vec<TargetPlan> {
    let Some((first, rest)) = record.phases.split_first() else { return vec![] };
    if rest.iter().all(|phase| phase.plan.targets() == first.plan.targets()) {
        return first.plan.targets().to_vec();
    }
    let mut found: Vec<TargetPlan> = vec![];
    if record.stack.is_some() {
        for target in record.phases.iter().flat_map(|phase| phase.plan.targets()) {
            if target.kind.is_storage() && found.iter().all(|known| known.path != target.path) {
                found.push(target.clone());
            }
        }
    }
    found
}

/// Targets in a line each, those that are shown: `/data/file: 10 GiB, ext4 on nvme0n1 (...)`.
pub(crate) fn target_lines(targets: &[TargetPlan], environment: &Environment) -> Vec<String> {
    let known = &environment.targets;
    let place =
        |target: &TargetPlan| known.iter().find(|place| place.path.as_os_str() == target.path.as_str());
    targets.iter().take(TARGETS_SHOWN).map(|target| target_words(target, place(target))).collect()
}

fn on_targets(page: &mut Page, targets: &[TargetPlan], environment: &Environment) {
    for (at, line) in target_lines(targets, environment).iter().enumerate() {
        page.field(if at == 0 { "on" } else { "" }, line, Style::Plain);
    }
    if targets.len() > TARGETS_SHOWN {
        page.field("", &format!("and {} more", targets.len() - TARGETS_SHOWN), Style::Plain);
    }
}

/// `/data/file: 10 GiB, ext4 on nvme0n1 (Example SSD 980, scheduler none)`.
fn target_words(target: &TargetPlan, place: Option<&TargetEnvironment>) -> String {
    let size = human_bytes(target.size_bytes as f64);
    let path = clean(&target.path);
    let range = match target.kind {
        TargetKind::Null => return format!("{path} no storage: measures strata's own overhead"),
        TargetKind::Memory => return format!("{path} {size} of memory per worker"),
        TargetKind::Name => return format!("{path}, a name"),
        TargetKind::CharacterDevice => return format!("{path}, a character device"),
        TargetKind::File | TargetKind::BlockDevice | TargetKind::Image if target.offset_bytes > 0 => {
            format!("{size} from offset {}", human_bytes(target.offset_bytes as f64))
        }
        TargetKind::File | TargetKind::BlockDevice | TargetKind::Image => size,
    };
    let Some(place) = place else { return format!("{path}: {range}") };
    let filesystem = place.filesystem.as_ref().map(|filesystem| clean(&filesystem.kind));
    let device = place.device.as_ref().map(|device| {
        let facts = [
            device.model.as_deref().map(|model| clean(model).into_owned()),
            device.scheduler.as_deref().map(|scheduler| format!("scheduler {}", clean(scheduler))),
        ];
        let facts = facts.into_iter().flatten().collect::<Vec<_>>().join(", ");
        let name = device.partition.as_deref().unwrap_or(&device.name);
        if facts.is_empty() { clean(name).into_owned() } else { format!("{} ({facts})", clean(name)) }
    });
    match (filesystem, device) {
        (Some(filesystem), Some(device)) => format!("{path}: {range}, {filesystem} on {device}"),
        (Some(filesystem), None) => format!("{path}: {range}, {filesystem}"),
        (None, Some(device)) => format!("{path}: {range}, device {device}"),
        (None, None) => format!("{path}: {range}"),
    }
}

/// Phases that a doubt names before the rest is only counted.
const DOUBT_LABELS_MAX: usize = 3;

/// Doubts of several phases, those of one kind together: in which phases, with the figures of the first.
pub(crate) fn doubts_of(page: &mut Page, phases: &[(String, &PhaseRecord)]) {
    let each = phases.iter().map(|(label, phase)| (label.clone(), phase.doubts.iter().collect()));
    warnings_of(page, &each.collect::<Vec<_>>());
}

/// Warnings with the labels of their phases.
pub(crate) fn warnings_of(page: &mut Page, phases: &[(String, Vec<&Doubt>)]) {
    let mut kinds: Vec<&str> = Vec::new();
    for doubt in phases.iter().flat_map(|(_, doubts)| doubts) {
        if !kinds.contains(&doubt.kind.as_str()) {
            kinds.push(&doubt.kind);
        }
    }
    for kind in kinds {
        let found: Vec<_> = phases
            .iter()
            .filter_map(|(label, doubts)| Some((label, *doubts.iter().find(|doubt| doubt.kind == kind)?)))
            .collect();
        let Some((first_label, first)) = found.first() else { continue };
        let labels = labels_of(found.iter().map(|(label, _)| label.as_str()));
        let alike = found.iter().all(|(_, doubt)| doubt.detail == first.detail);
        let place = match found.len() {
            1 => format!(" ({})", labels[0]),
            count if count == phases.len() && alike => " (everywhere)".to_owned(),
            count if count == phases.len() => format!(" (everywhere; shown: {})", clean(first_label)),
            _ if alike => format!(" ({})", labels.join("; ")),
            _ if labels.len() == 1 => format!(" ({})", labels[0]),
            _ => format!(" (shown: {}; also {})", labels[0], labels[1..].join("; ")),
        };
        doubt_lines(page, kind, &format!("{}{place}", first.detail), &first.remedy);
    }
}

/// Names of the phases of a doubt, each once: those of the passes of a run are the same.
fn labels_of<'a>(phases: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut counted: Vec<(&str, u32)> = Vec::new();
    for label in phases {
        match counted.iter_mut().find(|(known, _)| *known == label) {
            Some((_, count)) => *count += 1,
            None => counted.push((label, 1)),
        }
    }
    let name = |(label, count): &(&str, u32)| match count {
        1 => clean(label).into_owned(),
        count => format!("{}, {count} times", clean(label)),
    };
    let mut labels: Vec<String> = counted.iter().map(name).collect();
    if labels.len() > DOUBT_LABELS_MAX + 1 {
        let more = labels.len() - DOUBT_LABELS_MAX;
        labels.truncate(DOUBT_LABELS_MAX);
        labels.push(format!("{more} more"));
    }
    labels
}

fn doubt_lines(page: &mut Page, kind: &str, detail: &str, remedy: &str) {
    page.field("warning", &format!("{}: {}", clean(kind), clean(detail)), Style::Doubt);
    page.field("", &format!("try: {}", clean(remedy)), Style::Plain);
}

/// Failures and notes of several phases, each with the phase it belongs to; notes only once.
pub(crate) fn notes_of(page: &mut Page, phases: &[(String, &PhaseRecord)]) {
    let mut seen: Vec<&str> = Vec::new();
    for note in phases.iter().flat_map(|(_, phase)| &phase.notes) {
        if !seen.contains(&note.as_str()) {
            seen.push(note);
            page.field("note", &clean(note), Style::Plain);
        }
    }
    for (label, phase) in phases {
        if let Some(failure) = &phase.failure {
            page.field("failed", &format!("{}: {}", clean(label), clean(failure)), Style::Failure);
        }
    }
}

fn footer(page: &mut Page, record: &Record) {
    if record.tool_cost.is_some() || record.failure.is_some() {
        page.rule();
    }
    if let Some(cost) = &record.tool_cost {
        page.field("strata", &tool_words(cost, record.peak_rss_bytes), Style::Plain);
    }
    // The failure of the only phase stands with the phase.
    let is_told =
        |failure: &&String| matches!(&record.phases[..], [only] if only.failure.as_ref() == Some(*failure));
    if let Some(failure) = record.failure.as_ref().filter(|failure| !is_told(failure)) {
        page.field("failed", &clean(failure), Style::Failure);
    }
}

fn tool_words(cost: &ToolCost, peak_rss_bytes: u64) -> String {
    let source = match cost.clock_source {
        ClockSource::TimeStampCounter => "time-stamp counter",
        ClockSource::Monotonic => "kernel clock",
    };
    format!(
        "{} per operation on the null driver; {} per clock read ({source}, drift {:.0} ppm); {} of memory",
        human_ns(cost.null_ns_per_operation),
        human_ns(cost.clock_read_ns),
        // Adding zero turns a rounded -0 into 0.
        cost.clock_drift_ppm.round() + 0.0,
        human_bytes(peak_rss_bytes as f64)
    )
}
