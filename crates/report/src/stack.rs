//! The waterfall of `strata stack`: every layer against the one below it, and which one holds the stack back.

mod remedy;
mod step;
#[cfg(test)]
mod tests;

use units::{human_bytes_per_second, percent};

use crate::page::{Cell, Page, Style, Table};
use crate::record::{PhaseRecord, Record, StackRecord, StackRow};
use crate::text::{doubts_of, notes_of};
use crate::view;
use crate::words::{clean, cpu, factor, percentile_words, rate, spread};

pub use step::{Confidence, Step, is_bandwidth, steps, steps_between};
pub use workload::plan::LoadKind;

/// A layer of software is said to hold the stack back when it loses this factor against the layer below it. Below
/// that, what lies beneath decides: a faster drive gains more than a perfect layer above it could.
pub const HOLDS_BACK_FACTOR: f64 = 1.25;
/// A layer counts as faster than the one below it from this factor on.
pub const FASTER_FACTOR: f64 = 1.1;

/// Role of a layer in the verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    /// Cost of strata itself: no layer at all.
    Floor,
    /// It is as fast as it is: where nothing above loses much, it is the limit.
    Hardware,
    /// It can give what the layer below gives; what is missing, it lost.
    Software,
    /// Beside the storage of this machine: what another layer tells the outlook of.
    Beside,
}

/// Layers of the storage that are not software, and how a sentence calls them. Every other one is software.
const LAYERS: &[(&str, Role, &str)] = &[
    ("null", Role::Floor, "strata itself"),
    ("memory", Role::Hardware, "the memory of this machine"),
    ("media", Role::Hardware, "the drive"),
];

fn role(layer: &str) -> Role {
    if view::all().iter().any(|view| view.stack_rows().contains(&layer)) {
        return Role::Beside;
    }
    LAYERS.iter().find(|(name, ..)| *name == layer).map_or(Role::Software, |(_, role, _)| *role)
}

/// Whether a row is of the storage itself, and not beside it.
#[must_use]
pub fn is_storage(row: &StackRow) -> bool {
    role(&row.layer) != Role::Beside
}

/// A layer of the storage as a sentence calls it: `the drive`.
#[must_use]
pub fn called(layer: &str) -> &str {
    LAYERS.iter().find(|(name, ..)| *name == layer).map_or(layer, |(_, _, words)| words)
}

/// Which layer holds the stack back, by how much, how sure that is, and what to try.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// The layer; none when there is nothing to compare or nothing lost.
    pub holding_layer: Option<String>,
    /// How many times less than the layer below it gives, at the load where it loses most; 1 when nothing is lost.
    pub factor: f64,
    /// How sure that is.
    pub confidence: Confidence,
    /// The verdict in words.
    pub sentence: String,
    /// Remedies to try, the most promising first.
    pub try_lines: Vec<String>,
    /// One sentence a load.
    pub loads: Vec<String>,
    /// Outlooks of the layers beside the storage.
    pub outlooks: Vec<Outlook>,
}

/// The outlook of a layer that lies beside the storage.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outlook {
    /// Label of its sentences.
    pub label: &'static str,
    /// One sentence a load; empty where it was not measured.
    pub sentences: Vec<String>,
    /// Remedies to try.
    pub try_lines: Vec<String>,
    /// Its rows that are compared with others of its own.
    pub steps: Vec<Step>,
}

/// The verdict on the stack of a record, from its rows alone.
///
/// The layer of software that loses most against the layer below it, at any load, holds the stack back if it loses a
/// factor of [`HOLDS_BACK_FACTOR`] or more and the confidence intervals bear that out. Where none does, the highest
/// layer of hardware is the limit.
#[must_use]
pub fn verdict(record: &Record) -> Verdict {
    let steps = steps(record);
    let all: Vec<&Step> = steps.iter().collect();
    let mut loads: Vec<&str> = Vec::new();
    for step in &steps {
        if !loads.contains(&step.load.as_str()) {
            loads.push(&step.load);
        }
    }
    let loads = loads.iter().map(|load| load_sentence(load, &all)).collect();
    let outlooks: Vec<Outlook> = view::all().iter().map(|view| view.outlook(record)).collect();
    let beside = outlooks.iter().flat_map(|outlook| outlook.try_lines.iter().cloned());
    let Some(holding) = holding(&all) else {
        return Verdict {
            holding_layer: None,
            factor: 1.0,
            confidence: Confidence::CannotTell,
            sentence: nothing_lost(&all),
            try_lines: beside.collect(),
            loads,
            outlooks,
        };
    };
    Verdict {
        holding_layer: Some(holding.layer.clone()),
        factor: holding.loss(),
        confidence: holding.confidence,
        sentence: sentence(holding, &all),
        try_lines: remedy::lines(holding, &record.environment).into_iter().chain(beside).collect(),
        loads,
        outlooks,
    }
}

/// The step that decides: of software if one loses enough and surely, else of the highest hardware.
fn holding<'a>(steps: &[&'a Step]) -> Option<&'a Step> {
    let most = |steps: &mut dyn Iterator<Item = &'a Step>| steps.max_by(|a, b| a.loss().total_cmp(&b.loss()));
    let told = |step: &&&'a Step| step.confidence != Confidence::CannotTell;
    let loses = |step: &&&'a Step| role(&step.layer) == Role::Software && step.loss() >= HOLDS_BACK_FACTOR;
    most(&mut steps.iter().filter(told).filter(loses).copied()).or_else(|| {
        let hardware = |step: &&&Step| role(&step.layer) == Role::Hardware;
        let top = steps.iter().filter(hardware).map(|step| step.place).max()?;
        most(
            &mut steps.iter().filter(hardware).filter(|step| step.place == top && step.loss() > 1.0).copied(),
        )
    })
}

/// `file gives 12.1% of what media gives: 8.26 times less (sure: 8.10 to 8.43 times with 95%)`.
fn comparison(step: &Step) -> String {
    let interval = match step.interval {
        Some((low, high)) => format!("{} to {} times with 95%", factor(1.0 / high), factor(1.0 / low)),
        None => "no confidence interval".to_owned(),
    };
    let why = if step.doubted && step.interval.is_some() { ", but the figures are in doubt" } else { "" };
    format!(
        "{} gives {} of what {} gives, {} times less ({}: {interval}{why})",
        clean(&step.layer),
        percent(step.ratio),
        clean(&step.below),
        factor(step.loss()),
        step.confidence.words()
    )
}

/// `file gives 12.1% of what media gives (8.26 times less, sure)`.
fn in_short(step: &Step) -> String {
    format!(
        "{} gives {} of what {} gives ({} times less, {})",
        clean(&step.layer),
        percent(step.ratio),
        clean(&step.below),
        factor(step.loss()),
        step.confidence.words()
    )
}

fn sentence(holding: &Step, steps: &[&Step]) -> String {
    let told = comparison(holding);
    let load = clean(&holding.load);
    if role(&holding.layer) == Role::Software {
        return format!("{} holds the stack back: at {load}, {told}", clean(&holding.layer));
    }
    let above = || steps.iter().filter(|step| role(&step.layer) == Role::Software);
    let least = above().map(|step| step.ratio).min_by(f64::total_cmp);
    let kept = match (above().find(|step| step.is_faster()), least) {
        (Some(step), _) => {
            format!(
                "; {} answers from memory, which hides it only while the data fit there",
                clean(&step.layer)
            )
        }
        (None, Some(kept)) => format!("; the layers above it give {} or more of it", percent(kept)),
        (None, None) => String::new(),
    };
    let limit = if holding.cpu_bound { "the processor in front of it" } else { called(&holding.layer) };
    format!("{limit} is the limit: at {load}, {told}{kept}")
}

fn nothing_lost(steps: &[&Step]) -> String {
    if steps.is_empty() {
        return "nothing to compare: fewer than two layers were measured at the same load".to_owned();
    }
    "no layer is known to give less than the one below it".to_owned()
}

/// Sentence on the layer that holds the stack back at one load, and on the layers that are faster than the one below.
fn load_sentence(load: &str, steps: &[&Step]) -> String {
    let here: Vec<&Step> = steps.iter().copied().filter(|step| step.load == load).collect();
    let mut parts: Vec<String> =
        here.iter().filter(|step| step.is_faster()).map(|step| faster(step)).collect();
    // A layer that answers from memory hides what lies below: that does not hold anything back here.
    let hidden = !parts.is_empty();
    let holds = |step: &&Step| !(hidden && role(&step.layer) == Role::Hardware);
    parts.extend(holding(&here).filter(holds).map(in_short));
    if parts.is_empty() {
        parts.push(nothing_lost(&here));
    }
    format!("{}: {}", clean(load), parts.join("; "))
}

/// Why a layer is faster than the one below it, in words.
fn faster(step: &Step) -> String {
    let (layer, below) = (clean(&step.layer), called(&step.below));
    let times = factor(step.ratio);
    let memory_serves = step.layer == "file" && step.below == "media";
    match step.kind {
        Some(LoadKind::SequentialRead | LoadKind::RandomRead) if memory_serves => {
            format!("{layer} reads come from memory, not from {below} ({times} times as fast)")
        }
        Some(LoadKind::SequentialWrite | LoadKind::RandomWrite) if memory_serves => {
            format!("{layer} writes end in memory, not on {below} ({times} times as fast)")
        }
        _ => format!(
            "{layer} is faster than {} ({times} times): it answers part of the load itself",
            clean(&step.below)
        ),
    }
}

/// The rows of one load that were measured or are known to be missing.
fn loads(stack: &StackRecord) -> Vec<(&str, Vec<&StackRow>)> {
    let mut loads: Vec<(&str, Vec<&StackRow>)> = Vec::new();
    for row in &stack.rows {
        match loads.iter_mut().find(|(load, _)| *load == row.load) {
            Some((_, rows)) => rows.push(row),
            None => loads.push((&row.load, vec![row])),
        }
    }
    loads
}

/// Writes the waterfall and the verdict.
pub(crate) fn block(page: &mut Page, record: &Record, stack: &StackRecord) {
    let verdict = verdict(record);
    let beside = verdict.outlooks.iter().flat_map(|outlook| outlook.steps.clone());
    let steps: Vec<Step> = steps(record).into_iter().chain(beside).collect();
    let mut table = Table::new(&["layer", "rate", "±95%", "p50", "p99", "CPU/op", "of the layer below"]);
    for (load, rows) in loads(stack) {
        table.heading(clean(load));
        for row in rows {
            let step = steps.iter().find(|step| step.load == row.load && step.layer == row.layer);
            table.row(cells(row, row.phase.and_then(|at| record.phases.get(at)), step));
        }
    }
    page.table(&table);
    page.blank();
    let missing = stack.rows.iter().filter_map(|row| Some((row, row.missing.as_ref()?)));
    for (row, why) in missing {
        page.field("missing", &clean(&format!("{}, {}: {why}", row.layer, row.load)), Style::Plain);
    }
    verdict_lines(page, &verdict);
    let phases: Vec<(String, &PhaseRecord)> = stack
        .rows
        .iter()
        .filter_map(|row| Some((format!("{} {}", row.layer, row.load), record.phases.get(row.phase?)?)))
        .collect();
    notes_of(page, &phases);
    doubts_of(page, &phases);
}

fn verdict_lines(page: &mut Page, verdict: &Verdict) {
    page.field("verdict", &verdict.sentence, Style::Strong);
    for (at, line) in verdict.try_lines.iter().enumerate() {
        page.field(if at == 0 { "try" } else { "" }, line, Style::Plain);
    }
    for (at, line) in verdict.loads.iter().enumerate() {
        page.field(if at == 0 { "by load" } else { "" }, line, Style::Plain);
    }
    for outlook in &verdict.outlooks {
        for (at, line) in outlook.sentences.iter().enumerate() {
            page.field(if at == 0 { outlook.label } else { "" }, line, Style::Plain);
        }
    }
}

/// The speed of a phase: bytes a second, or operations a second.
#[must_use]
pub fn speed(phase: &PhaseRecord, in_bytes: bool) -> String {
    let total = &phase.summary.total;
    if in_bytes { human_bytes_per_second(total.bytes_per_second) } else { rate(total.operations_per_second) }
}

fn cells(row: &StackRow, phase: Option<&PhaseRecord>, step: Option<&Step>) -> Vec<Cell> {
    let dash = || Cell::styled("-", Style::Faint);
    let layer = Cell::from(format!("  {}", clean(&row.layer)));
    let Some(phase) = phase else { return vec![layer, dash(), dash(), dash(), dash(), dash(), dash()] };
    let total = &phase.summary.total;
    // The floor moves nothing: a bandwidth would be a fancy.
    let in_bytes = is_bandwidth(&phase.plan) && role(&row.layer) != Role::Floor;
    let estimate = if in_bytes { total.bandwidth.as_ref() } else { total.rate.as_ref() };
    let latency = total.latency.as_ref();
    let share = match (role(&row.layer), step) {
        (Role::Floor, _) => Cell::styled("floor", Style::Faint),
        (_, Some(step)) if step.ratio >= 10.0 => format!("{} times", factor(step.ratio)).into(),
        (_, Some(step)) => percent(step.ratio).into(),
        _ => dash(),
    };
    vec![
        layer,
        Cell::styled(speed(phase, in_bytes), Style::Strong),
        spread(estimate).into(),
        percentile_words(latency, 50.0, latency.map(|latency| latency.p50_ns)).into(),
        percentile_words(latency, 99.0, latency.and_then(|latency| latency.p99_ns)).into(),
        cpu(phase).into(),
        share,
    ]
}
