//! Remarks on a comparison as a whole.

use super::{Method, Operand};
use crate::words::{clean, counted};

/// Runs of a history below which their spread is hardly known: of fewer, the range is over twice as wide as of many.
const RUNS_BEFORE_FEW: usize = 5;

/// Drops records of runs that the side has already; says so.
pub(super) fn once_each(operand: &mut Operand) -> Option<String> {
    let before = operand.records.len();
    let mut seen: Vec<String> = Vec::new();
    operand.records.retain(|(_, record)| {
        let is_new = !seen.contains(&record.run_id);
        seen.push(record.run_id.clone());
        is_new
    });
    let dropped = before - operand.records.len();
    (dropped > 0).then(|| {
        let records = counted(dropped as u64, "record");
        format!("{}: ignored {records} of runs that this side already has", clean(&operand.label))
    })
}

/// Remarks that weaken the comparison as a whole.
pub(super) fn notes_on(a: &Operand, b: &Operand, method: Method) -> Vec<String> {
    let mut notes = Vec::new();
    let shared =
        a.records.iter().filter(|(_, own)| b.records.iter().any(|(_, other)| own.run_id == other.run_id));
    match shared.count() {
        0 => {}
        1 => notes.push("1 run is on both sides".to_owned()),
        count => notes.push(format!("{count} runs are on both sides")),
    }
    if method == Method::SingleRuns {
        notes.push(
            "one run each: the intervals do not include variation from run to run; several records on each side, or --repeat 6, measure it"
                .to_owned(),
        );
    } else if method == Method::History {
        if a.records.is_empty() {
            notes.push("this is the first run of its series: there is nothing to compare it with".to_owned());
        } else if a.records.len() < RUNS_BEFORE_FEW {
            notes.push(format!(
                "only {} before it: the expected range is wide because there is little data",
                counted(a.records.len() as u64, "run")
            ));
        }
    } else if a.records.len().min(b.records.len()) < 3 {
        notes.push(
            "fewer than 3 repeats on a side: the intervals are wide because there is little data".to_owned(),
        );
    }
    if method == Method::Repeats {
        notes.push(
            "A and B were not run in turns: the difference includes everything that changed between the two series"
                .to_owned(),
        );
    }
    notes
}
