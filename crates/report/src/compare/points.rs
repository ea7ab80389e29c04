//! Figures of one record, under the names by which comparisons find them: what a history keeps.

use super::differs::fields_of_load;
use super::figures::value_of;
use super::matched::{Run, of_record};
use super::{FIGURE_KEYS, FigureName};
use crate::record::Record;

/// Figures of a phase, or of a row of a stack: the geometric means of its passes.
#[derive(Clone, Debug, PartialEq)]
pub struct PhasePoint {
    /// Its name.
    pub name: String,
    /// How many phases of this name came before it.
    pub occurrence: usize,
    /// The figure that decides about it.
    pub headline: FigureName,
    /// Kinds of its warnings.
    pub warnings: Vec<String>,
    /// The figures that it has, of all classes together.
    pub figures: Vec<(FigureName, f64)>,
}

/// Figures of the phases of a record that comparisons know; of phases in which nothing completed, none.
#[must_use]
pub fn points_of(record: &Record) -> Vec<PhasePoint> {
    let point = |((name, occurrence), run): ((String, usize), Run<'_>)| PhasePoint {
        name,
        occurrence,
        headline: headline_of(&run),
        warnings: run.doubts().into_iter().map(str::to_owned).collect(),
        figures: FIGURE_KEYS
            .iter()
            .filter_map(|(_, name)| Some((*name, value_of(&run, *name, None)?)))
            .collect(),
    };
    of_record(record).into_iter().map(point).collect()
}

fn headline_of(run: &Run<'_>) -> FigureName {
    let is_open = run.passes.iter().any(|phase| phase.plan.load().arrivals.is_some());
    match (is_open, run.in_bytes) {
        (true, _) => FigureName::P99,
        (false, true) => FigureName::Bandwidth,
        (false, false) => FigureName::Rate,
    }
}

/// The load of a record as one text: equal for records that comparisons take, another for those that they reject as other loads. Of a ladder the first rung counts,
/// because a climb ends where it stops paying.
#[must_use]
pub fn load_key(record: &Record) -> String {
    let mut parts: Vec<String> = Vec::new();
    let later = |name: &str| {
        let ladder = record.ladder.as_ref();
        let rungs = ladder.into_iter().flat_map(|ladder| ladder.phases.iter().skip(1));
        rungs.filter_map(|at| record.phases.get(*at)).any(|phase| phase.plan.name() == name)
    };
    let mut climbed: Vec<String> = Vec::new();
    for ((name, _), run) in of_record(record) {
        let Some(phase) = run.passes.first() else { continue };
        let plain = phase.plan.name();
        if later(plain) {
            if climbed.contains(plain) {
                continue;
            }
            climbed.push(plain.clone());
        }
        parts.push(format!("{name}: {}", fields_of_load(phase).join(" ")));
    }
    parts.sort();
    parts.dedup();
    parts.join("\n")
}

/// The load of a record in words: `4KiB random reads, 1 thread x depth 32, io_uring, direct`; of a stack, and of several phases, their names.
#[must_use]
pub fn load_words(record: &Record) -> String {
    if let Some(stack) = &record.stack {
        let mut layers: Vec<&str> = Vec::new();
        for row in &stack.rows {
            if !layers.contains(&row.layer.as_str()) {
                layers.push(&row.layer);
            }
        }
        return format!("stack of {}", layers.join(", "));
    }
    if let [phase] = &record.phases[..] {
        // How long it lasts is no part of a load.
        let mut words = vec![phase.plan.operation_words(), phase.plan.concurrency()];
        words.extend(phase.plan.manner());
        return words.join(", ");
    }
    let mut names: Vec<&str> = Vec::new();
    for phase in &record.phases {
        if !names.contains(&phase.plan.name().as_str()) {
            names.push(phase.plan.name());
        }
    }
    names.join(", ")
}
