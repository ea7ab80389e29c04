//! Which phases share a chart.

use workload::spec::LadderDimension;

use super::{Line, Named, OfStack, note, warning};
use crate::record::{LadderRecord, PhaseRecord, Record};
use crate::stack::rows;
use crate::text::{hides_fills, is_fill};
use crate::view::{self, SideBySide};
use crate::words::{clean, counted};

/// Phases that ran together which a title names; of more, the rest is counted.
const NAMES_SHOWN: usize = 3;

/// Property that the phases of a group share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// The same phase of several records, or one phase.
    Phase,
    /// Phases of one stage: they ran at the same time.
    Together,
    /// One load on several sides, side by side.
    Beside,
    /// The rungs of one ladder.
    Ladder,
    /// The layers of a stack at one load.
    Stack,
}

/// Phases that share charts.
pub(super) struct Group<'a> {
    pub(super) kind: Kind,
    pub(super) title: String,
    pub(super) lines: Vec<Line<'a>>,
    /// Layer, name and number among phases of that name in its record: what phases of several records are matched by.
    key: (String, String, usize),
}

impl Group<'_> {
    /// Description of the load of its phases.
    pub(super) fn note(&self) -> String {
        note(&self.lines, matches!(self.kind, Kind::Phase | Kind::Together | Kind::Beside))
    }

    /// Doubts and failures of its phases.
    pub(super) fn warning(&self) -> String {
        warning(&self.lines)
    }
}

/// The groups of these records, those of phases in the order in which they ran.
pub(super) fn groups<'a>(records: &[Named<'a>]) -> Vec<Group<'a>> {
    let mut groups: Vec<Group<'a>> = Vec::new();
    let layers = layers(records);
    for named in records {
        let record = named.record;
        let hides_fills = hides_fills(record);
        let is_hidden = |at: &usize| hides_fills && record.phases.get(*at).is_some_and(is_fill);
        let several = records.len() > 1;
        let of_ladder = |at: &usize| record.ladder.as_ref().is_some_and(|ladder| ladder.phases.contains(at));
        let of_stack = |at: &usize| record.stack.as_ref().is_some_and(|stack| stack.has(*at));
        for stage in stages(record, |at| !of_ladder(&at) && !of_stack(&at) && !is_hidden(&at)) {
            together(named, several, &stage, &mut groups);
        }
        let beside = beside_groups(named, several, &mut groups);
        let mut seen: Vec<(&str, &str)> = Vec::new();
        for (at, phase) in record.phases.iter().enumerate() {
            if of_ladder(&at) || of_stack(&at) || is_hidden(&at) {
                continue;
            }
            let (layer, name) = (phase.plan.layer(), phase.plan.name().as_str());
            let number = seen.iter().filter(|other| **other == (layer, name)).count();
            seen.push((layer, name));
            if beside.contains(&at) {
                continue;
            }
            let title = match number {
                0 => clean(name).into_owned(),
                _ => format!("{} ({})", clean(name), number + 1),
            };
            let line = Line::new(if several { named.name.to_owned() } else { String::new() }, phase);
            add(&mut groups, Kind::Phase, title, line, (layer.to_owned(), name.to_owned(), number));
        }
        groups.extend(ladder_group(named, several));
        stack_groups(named, several, &layers, &mut groups);
    }
    groups
}

/// Stages of several phases, of those that `counts` admits.
fn stages(record: &Record, counts: impl Fn(usize) -> bool) -> Vec<Vec<&PhaseRecord>> {
    let mut stages: Vec<Vec<&PhaseRecord>> = Vec::new();
    for (_, phase) in record.phases.iter().enumerate().filter(|(at, _)| counts(*at)) {
        match stages.iter_mut().find(|stage| stage[0].stage == phase.stage) {
            Some(stage) => stage.push(phase),
            None => stages.push(vec![phase]),
        }
    }
    stages.retain(|stage| stage.len() > 1);
    stages
}

/// Phases that ran at the same time, in one group.
fn together<'a>(named: &Named<'a>, several: bool, stage: &[&'a PhaseRecord], groups: &mut Vec<Group<'a>>) {
    let names: Vec<_> = stage.iter().map(|phase| clean(phase.plan.name())).collect();
    let shown = names.iter().take(NAMES_SHOWN).map(AsRef::as_ref).collect::<Vec<&str>>().join(", ");
    let title = match names.len().saturating_sub(NAMES_SHOWN) {
        0 => format!("{shown} at the same time"),
        more => format!("{shown} and {more} more at the same time"),
    };
    let key = (named.record.phases.len().to_string(), names.join("\n"), stage[0].stage);
    for (at, (phase, name)) in stage.iter().zip(&names).enumerate() {
        // Jobs of one name differ by their number.
        let number = names[..at].iter().filter(|other| *other == name).count();
        let name = if number == 0 { name.to_string() } else { format!("{name} ({})", number + 1) };
        let name = if several { format!("{}: {name}", named.name) } else { name };
        let line = Line { begins_ns: phase.plan.load().start_delay_ns, ..Line::new(name, phase) };
        add(groups, Kind::Together, title.clone(), line, key.clone());
    }
}

/// One load on several sides, in a group for each stage; the phases that have no other charts.
fn beside_groups<'a>(named: &Named<'a>, several: bool, groups: &mut Vec<Group<'a>>) -> Vec<usize> {
    let mut all = Vec::new();
    for view in view::all() {
        for SideBySide { title, lines, left_out } in view.side_by_side(named.record) {
            let key = (view.layer().to_owned(), title.clone(), 0);
            for (name, at) in lines {
                let Some(phase) = named.record.phases.get(at) else { continue };
                let name = if several { format!("{}: {name}", named.name) } else { name };
                add(groups, Kind::Beside, title.clone(), Line::new(name, phase), key.clone());
                all.push(at);
            }
            all.extend(left_out);
        }
    }
    all
}

fn add<'a>(
    groups: &mut Vec<Group<'a>>,
    kind: Kind,
    title: String,
    line: Line<'a>,
    key: (String, String, usize),
) {
    match groups.iter_mut().find(|group| group.kind == kind && group.key == key) {
        Some(group) => group.lines.push(line),
        None => groups.push(Group { kind, title, lines: vec![line], key }),
    }
}

/// Label of a rung by the value that tells it from the others, in short: `8` of a queue depth.
pub(super) fn rung_label(ladder: &LadderRecord, phase: &PhaseRecord) -> String {
    let load = &phase.plan.load();
    match ladder.dimension {
        Some(LadderDimension::Depth) => load.depth.to_string(),
        Some(LadderDimension::Threads) => load.threads.to_string(),
        None => format!("{}x{}", load.threads, load.depth),
        Some(LadderDimension::BlockSize | LadderDimension::Rate) => rung_name(ladder, phase),
    }
}

/// Name of a rung by the value that tells it from the others: `depth 8`.
pub(crate) fn rung_name(ladder: &LadderRecord, phase: &PhaseRecord) -> String {
    let load = &phase.plan.load();
    match ladder.dimension {
        Some(LadderDimension::Depth) => phase.plan.depth_words(),
        Some(LadderDimension::Threads) => counted(load.threads.into(), "thread"),
        Some(LadderDimension::BlockSize) => clean(&phase.plan.operation_size()).into_owned(),
        Some(LadderDimension::Rate) => {
            let asked = load.arrivals.as_ref().map_or(0.0, |arrivals| arrivals.rate_per_second);
            format!("{}/s requested", units::human_rate(asked))
        }
        None => phase.plan.concurrency(),
    }
}

fn ladder_group<'a>(named: &Named<'a>, several: bool) -> Option<Group<'a>> {
    let record = named.record;
    let ladder = record.ladder.as_ref()?;
    let phases = ladder.phases.iter().filter_map(|at| record.phases.get(*at));
    let lines: Vec<Line<'a>> = phases.map(|phase| Line::new(rung_name(ladder, phase), phase)).collect();
    let title = if several { format!("Rungs of {}", named.name) } else { "Rungs".to_owned() };
    (!lines.is_empty()).then(|| Group { kind: Kind::Ladder, title, lines, key: Default::default() })
}

/// Layers of stacks, each once: a layer has the colour of its number in every chart. The floor has the last, so that it takes none from the layers.
fn layers<'a>(records: &[Named<'a>]) -> Vec<&'a str> {
    let rows = records.iter().flat_map(|named| named.record.stack.iter().flat_map(|stack| &stack.rows));
    let (mut layers, mut floors): (Vec<&str>, Vec<&str>) = (Vec::new(), Vec::new());
    for row in rows {
        let is_floor = row.kind == Some(layer::StackKind::Floor);
        let of = if is_floor { &mut floors } else { &mut layers };
        if !of.contains(&row.layer.as_str()) {
            of.push(&row.layer);
        }
    }
    layers.into_iter().chain(floors).collect()
}

fn stack_groups<'a>(named: &Named<'a>, several: bool, layers: &[&str], groups: &mut Vec<Group<'a>>) {
    let mut all = rows(named.record);
    // The floor has one load, which would come first.
    all.sort_by_key(|row| row.kind == layer::StackKind::Floor);
    for row in all {
        let (Some(phase), Some(speed)) = (row.phase(), row.speed()) else { continue };
        let layer = clean(&row.row.layer);
        let name = if several { format!("{}: {layer}", named.name) } else { layer.into_owned() };
        let key = (String::new(), row.row.load.clone(), 0);
        let number = layers.iter().position(|known| *known == row.row.layer);
        let of_stack = OfStack {
            speed,
            interval: row.speed_interval(),
            in_bytes: row.in_bytes(),
            layer: number.unwrap_or_default(),
            by_design: &row.row.by_design,
        };
        let line = Line { of_stack: Some(of_stack), ..Line::new(name, phase) };
        add(groups, Kind::Stack, clean(&row.row.load).into_owned(), line, key);
    }
}
