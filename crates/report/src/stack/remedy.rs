//! Remedies for the row that the verdict is about: from what was planned and seen, never what was just run.

use host::Environment;

use super::rows::Row;
use super::step::Step;
use crate::record::{PhaseRecord, Record};
use crate::view;

/// Most lines given.
const LINES_MAX: usize = 3;
/// Most operations in flight that are proposed.
const DEPTH_MAX: u32 = 256;

/// Most passes of a stack (`--passes`).
pub const PASSES_MAX: u32 = 50;

/// Something to try.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remedy {
    /// It in a line.
    pub line: String,
    /// Options of the load that carry it out; empty where that is for the user.
    pub options: Vec<(String, String)>,
}

impl Remedy {
    /// One for the user to carry out.
    #[must_use]
    pub fn told(line: impl Into<String>) -> Self {
        Self { line: line.into(), options: Vec::new() }
    }

    /// One that is another value of an option.
    #[must_use]
    pub fn option(line: impl Into<String>, name: &str, value: impl ToString) -> Self {
        Self { line: line.into(), options: vec![(name.to_owned(), value.to_string())] }
    }
}

/// Twice as many passes, where those that were run differ too much; none beyond what `--passes` takes.
pub(super) fn more_passes(record: &Record) -> Option<Remedy> {
    let done = record.stack.as_ref()?.pass_count;
    let more = done.saturating_mul(2).min(PASSES_MAX);
    let line = format!("more passes, for narrower confidence intervals: --passes {more}");
    (more > done).then(|| Remedy::told(line))
}

/// Passes of the usual length, where those of `--quick` were too short.
pub(super) fn longer_passes(record: &Record) -> Option<Remedy> {
    let is_quick = record.command_line.iter().any(|word| word == "--quick");
    is_quick.then(|| Remedy::told("longer passes: leave out --quick"))
}

/// The row that is to become faster.
#[derive(Clone, Copy, Debug)]
pub struct RemedyCase<'a> {
    /// Its layer.
    pub layer: &'a str,
    /// Its load.
    pub load: &'a str,
    /// The layer that carries it.
    pub below: &'a str,
    /// Whether it is used up, and does not lose what another one gives.
    pub is_limit: bool,
    /// One of its passes, with its plan.
    pub phase: &'a PhaseRecord,
    /// Whether its workers had no processor time left.
    pub is_cpu_bound: bool,
    /// The machine.
    pub environment: &'a Environment,
}

impl RemedyCase<'_> {
    /// Workers of the plan.
    #[must_use]
    pub fn threads(&self) -> u32 {
        self.phase.plan.load().threads
    }

    /// Operations in flight for each worker of the plan.
    #[must_use]
    pub fn depth(&self) -> u32 {
        self.phase.plan.load().depth
    }

    /// Processors of the machine.
    #[must_use]
    pub fn cores(&self) -> u32 {
        self.environment.processor.logical_cores.unwrap_or(1)
    }
}

/// More of what the plan has: threads where processors are left, operations in flight where the workers wait.
fn more(case: &RemedyCase<'_>) -> Vec<Remedy> {
    let (threads, depth) = (case.threads(), case.depth());
    let mut found = Vec::new();
    if depth > 1 && !case.is_cpu_bound && depth * 4 <= DEPTH_MAX {
        let more = depth * 4;
        found.push(Remedy::option(
            format!(
                "more operations in flight: --depth {more}, now {depth}; the workers wait most of the time"
            ),
            "depth",
            more,
        ));
    }
    let room = if case.is_cpu_bound { case.cores() } else { case.cores().max(4) };
    if threads * 2 <= room {
        let more = threads * 2;
        let why = if case.is_cpu_bound {
            "one thread uses its CPU fully, other CPUs are free"
        } else {
            "the workers wait most of the time"
        };
        found.push(Remedy::option(
            format!("more threads: --threads {more}, now {threads}; {why}"),
            "threads",
            more,
        ));
    }
    if found.is_empty() && case.is_cpu_bound {
        found.push(Remedy::told("more or faster CPUs: the load uses all CPUs of this machine"));
    }
    found
}

/// Remedies for a row, the most promising first: those of its layer, then more of what the plan has.
pub(super) fn remedies(row: &Row<'_>, step: &Step, rows: &[Row<'_>], record: &Record) -> Vec<Remedy> {
    let Some(phase) = row.phase() else { return Vec::new() };
    let case = RemedyCase {
        layer: &row.row.layer,
        load: &row.row.load,
        below: &rows[step.below].row.layer,
        is_limit: row.kind == layer::StackKind::Hardware,
        phase,
        is_cpu_bound: row.is_cpu_bound(),
        environment: &record.environment,
    };
    let view = view::of(phase.plan.layer());
    let mut found = view.stack_remedies(&case);
    if view.takes_more() {
        found.extend(more(&case));
    }
    found.truncate(LINES_MAX);
    found
}
