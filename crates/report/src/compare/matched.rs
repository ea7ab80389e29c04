//! Phases of records that are compared with each other: those of the same name, and rows of a stack with their passes.

use super::Operand;
use crate::chart::rung_name;
use crate::record::{PhaseRecord, Record, StackPass};
use crate::stack::in_bytes;

/// Name of a phase, and how many of that name came before it in its record.
pub(super) type Key = (String, usize);

/// Result of one record for a phase: the phase alone, or the passes of a row of a stack; empty where the record lacks it.
#[derive(Clone, Debug, Default)]
pub(super) struct Run<'a> {
    pub(super) passes: Vec<&'a PhaseRecord>,
    /// Kinds of warnings that state what the row measures on purpose.
    by_design: &'a [String],
    /// Whether it is compared by bandwidth, as a row of a stack with large operations.
    pub(super) in_bytes: bool,
}

impl<'a> Run<'a> {
    /// Kinds of its warnings, each once.
    pub(super) fn doubts(&self) -> Vec<&'a str> {
        let mut kinds: Vec<&str> = Vec::new();
        for doubt in self.passes.iter().flat_map(|phase| &phase.doubts) {
            if !self.by_design.contains(&doubt.kind) && !kinds.contains(&doubt.kind.as_str()) {
                kinds.push(&doubt.kind);
            }
        }
        kinds
    }
}

/// Results of every record of a side for a phase.
pub(super) type Runs<'a> = Vec<Run<'a>>;

/// All phases, those of passes one by one.
pub(super) fn phases<'r, 'a>(runs: &'r [Run<'a>]) -> impl Iterator<Item = &'a PhaseRecord> + 'r {
    runs.iter().flat_map(|run| run.passes.iter().copied())
}

/// Whether a record has several passes.
pub(super) fn is_in_passes(runs: &[Run<'_>]) -> bool {
    runs.iter().any(|run| run.passes.len() > 1)
}

/// The name of a phase; rungs of a ladder, which share theirs, are told apart by what is climbed.
fn name_of(record: &Record, number: usize, phase: &PhaseRecord) -> String {
    let ladder = record.ladder.as_ref().filter(|ladder| ladder.phases.contains(&number));
    match ladder.filter(|ladder| ladder.dimension.is_some()) {
        Some(ladder) => format!("{}, {}", phase.plan.name(), rung_name(ladder, phase)),
        None => phase.plan.name().clone(),
    }
}

/// The phases of a record that are compared, in their order. Of a stack that are its rows: phases that store data for others, and trials, are no part of it.
pub(super) fn of_record(record: &Record) -> Vec<(Key, Run<'_>)> {
    let mut found: Vec<(Key, Run<'_>)> = Vec::new();
    let mut push = |name: String, run| {
        let occurrence = found.iter().filter(|((known, _), _)| *known == name).count();
        found.push(((name, occurrence), run));
    };
    let Some(stack) = &record.stack else {
        for (number, phase) in record.phases.iter().enumerate() {
            push(name_of(record, number, phase), Run { passes: vec![phase], ..Run::default() });
        }
        return found;
    };
    for row in &stack.rows {
        let mut add = |name: String, passes: &[StackPass], first: Option<usize>| {
            let numbers = passes.iter().map(|pass| pass.phase).chain(first.filter(|_| passes.is_empty()));
            let passes: Vec<_> = numbers.filter_map(|at| record.phases.get(at)).collect();
            if let Some(first) = passes.first() {
                let in_bytes = in_bytes(row, first);
                push(name, Run { passes, by_design: &row.by_design, in_bytes });
            }
        };
        let name = format!("{}: {}", row.layer, row.load);
        if let Some(hosts) = &row.hosts {
            add(format!("{name}, {} hosts", hosts.count), &hosts.passes, None);
        }
        add(name, &row.passes, row.phase);
    }
    found
}

/// Phases of a side in their order, with the result of each record.
pub(super) fn matched(operand: &Operand) -> Vec<(Key, Runs<'_>)> {
    let mut found: Vec<(Key, Runs<'_>)> = Vec::new();
    for (at, (_, record)) in operand.records.iter().enumerate() {
        for (key, run) in of_record(record) {
            let place = found.iter().position(|(known, _)| *known == key).unwrap_or_else(|| {
                found.push((key, vec![Run::default(); operand.records.len()]));
                found.len() - 1
            });
            found[place].1[at] = run;
        }
    }
    found
}
