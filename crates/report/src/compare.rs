//! Two records, or two sets of repeats, against each other: per figure the difference, how sure it is, and a verdict.

mod differs;
mod figures;
mod junit;
mod limit;
mod markdown;
mod matched;
mod notes;
mod page;
mod points;
#[cfg(test)]
mod tests;
mod text;
mod verdict;

use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use statistics::{Difference, Direction, Verdict};
use units::ParseError;

use crate::json;
use crate::record::Record;
use crate::words::clean;
use matched::{Key, Run, Runs, is_in_passes, matched, phases};
use notes::{notes_on, once_each};

pub use differs::facts_by_name;
pub use junit::to_junit;
pub use limit::{Limit, LimitOutcome};
pub use markdown::to_markdown;
pub use page::to_html;
pub use points::{PhasePoint, load_key, load_words, points_of};
use text::limit_words;
pub use text::render;

/// Version of the comparison's shape. Raised when a field changes its meaning or goes; new fields do not raise it.
pub const SCHEMA_VERSION: u32 = 1;

/// Records of one side.
#[derive(Clone, Debug)]
pub struct Operand {
    /// Name that the user gave the operand: a path or a command line.
    pub label: String,
    /// Where each record came from, and the record; repeats in the order in which they ran.
    pub records: Vec<(String, Record)>,
}

/// Source of the variation that the intervals are computed from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Method {
    /// One run each: what varies within it.
    SingleRuns,
    /// Repeats: what varies from run to run.
    Repeats,
    /// Repeats in pairs that ran next to each other: what varies from pair to pair.
    Pairs,
    /// One run against those of a history before it: what varies from run to run. B is taken to vary as A does, so that the interval of the difference is that of a prediction.
    History,
}

/// Figure that is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FigureName {
    /// Operations a second.
    Rate,
    /// Bytes a second: in place of the rate where block sizes differ.
    Bandwidth,
    /// Mean latency, nanoseconds.
    Mean,
    /// Median latency, nanoseconds.
    P50,
    /// 90th percentile, nanoseconds.
    P90,
    /// 99th percentile, nanoseconds.
    P99,
    /// 99.9th percentile, nanoseconds.
    #[serde(rename = "p99_9")]
    P999,
    /// CPU time of the process per operation, nanoseconds.
    Cpu,
}

/// Names of figures in options, CSV files and databases.
const FIGURE_KEYS: &[(&str, FigureName)] = &[
    ("rate", FigureName::Rate),
    ("bandwidth", FigureName::Bandwidth),
    ("mean", FigureName::Mean),
    ("p50", FigureName::P50),
    ("p90", FigureName::P90),
    ("p99", FigureName::P99),
    ("p99.9", FigureName::P999),
    ("cpu", FigureName::Cpu),
];

impl FromStr for FigureName {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let found = FIGURE_KEYS.iter().find(|(key, _)| *key == text);
        found.map(|(_, figure)| *figure).ok_or_else(|| {
            ParseError::new("a metric", text, "rate, bandwidth, mean, p50, p90, p99, p99.9 or cpu")
        })
    }
}

impl FigureName {
    /// As options, CSV files and databases call it; [`FromStr`] reads it.
    #[must_use]
    pub fn key(self) -> &'static str {
        FIGURE_KEYS.iter().find(|(_, figure)| *figure == self).map_or("", |(key, _)| *key)
    }

    /// As tables and `--fail-if` call it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Rate => "rate",
            Self::Bandwidth => "bandwidth",
            Self::Mean => "mean",
            Self::P50 => "p50",
            Self::P90 => "p90",
            Self::P99 => "p99",
            Self::P999 => "p99.9",
            Self::Cpu => "CPU/op",
        }
    }

    /// Which way it is better.
    #[must_use]
    pub fn direction(self) -> Direction {
        if matches!(self, Self::Rate | Self::Bandwidth) {
            Direction::HigherIsFaster
        } else {
            Direction::LowerIsFaster
        }
    }
}

/// A record that was compared.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RecordName {
    /// Where it came from: a path, or the number of the run.
    pub source: String,
    /// Name of the run.
    pub run_id: String,
    /// When it began, RFC 3339 UTC.
    pub started_at: String,
    /// Why it is partial, where it is.
    pub failure: Option<String>,
}

/// One side.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Side {
    /// Name that the user gave the side.
    pub label: String,
    /// Its records, in the order in which they ran.
    pub records: Vec<RecordName>,
}

/// A field or fact in which the sides are not the same.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Differing {
    /// Its name; of a plan, its path in the record (`load.depth`).
    pub field: String,
    /// Values of A: one, unless its records differ among themselves.
    pub a: Vec<String>,
    /// Values of B.
    pub b: Vec<String>,
}

/// A doubt that records of a side carry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DoubtCount {
    /// `a` or `b`.
    pub side: String,
    /// Its name; the list is in docs/doubts.md.
    pub kind: String,
    /// Records that carry it.
    pub records: usize,
    /// Records of the side that have the phase.
    pub of_records: usize,
}

/// One figure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FigureComparison {
    /// Which.
    pub figure: FigureName,
    /// Its value in A; of repeats the geometric mean.
    pub a: Option<f64>,
    /// Its value in B; of repeats the geometric mean.
    pub b: Option<f64>,
    /// B against A with its 95 % interval; none with too little data.
    pub difference: Option<Difference>,
    /// Verdict that the data support.
    pub verdict: Verdict,
    /// Why there is no interval, where there is none.
    pub missing: Option<String>,
}

/// One class of operations, or `total`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClassComparison {
    /// Its name.
    pub class: String,
    /// Its figures.
    pub figures: Vec<FigureComparison>,
}

/// Figure that decides about a phase: the rate of a closed loop, p99 of an open one; of single runs the mean latency too.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Headline {
    /// Which.
    pub figure: FigureName,
    /// The figures that it was chosen from: they share the level.
    #[serde(default)]
    pub considered: Vec<FigureName>,
    /// Probability of such a difference by chance, adjusted for the number of figures considered (Bonferroni) and of phases (Holm 1979).
    pub p_value_adjusted: Option<f64>,
    /// The verdict by it.
    pub verdict: Verdict,
}

/// One phase of both sides.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PhaseComparison {
    /// Its name.
    pub name: String,
    /// How many phases of this name came before it.
    pub occurrence: usize,
    /// Fields of the plan that differ in B.
    pub differs: Vec<Differing>,
    /// Doubts of its records.
    pub doubts: Vec<DoubtCount>,
    /// The verdict on the phase.
    pub headline: Headline,
    /// `total`, then each class where there are several.
    pub classes: Vec<ClassComparison>,
}

/// A phase that only one side has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Unmatched {
    /// `a` or `b`.
    pub side: String,
    /// Its name.
    pub phase: String,
    /// How many phases of this name came before it.
    pub occurrence: usize,
}

/// Two sides compared.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Comparison {
    /// [`SCHEMA_VERSION`] of comparisons.
    pub schema_version: u32,
    /// Version of strata that compared.
    pub strata_version: String,
    /// Baseline of the comparison.
    pub a: Side,
    /// Side that is compared with the baseline.
    pub b: Side,
    /// Source of the variation that the intervals are computed from.
    pub method: Method,
    /// Whether the phases are rows of a stack, each with all its passes.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_stack: bool,
    /// Remarks worth knowing about the comparison as a whole.
    pub notes: Vec<String>,
    /// In which facts about machine and software the sides differ.
    pub differs: Vec<Differing>,
    /// Phases that both sides have, in the order of A.
    pub phases: Vec<PhaseComparison>,
    /// Phases that only one side has.
    pub unmatched: Vec<Unmatched>,
    /// Outcomes of the limits of `--fail-if`.
    pub limits: Vec<LimitOutcome>,
}

impl Comparison {
    /// Whether a limit of `--fail-if` was exceeded.
    #[must_use]
    pub fn fails(&self) -> bool {
        self.limits.iter().any(|limit| !limit.exceeded_by.is_empty())
    }

    /// Limits that were exceeded, with the phases that exceed them, a line each.
    #[must_use]
    pub fn exceeded(&self) -> Vec<String> {
        let words = self.limits.iter().flat_map(limit_words);
        words.filter(|(is_exceeded, _)| *is_exceeded).map(|(_, words)| words).collect()
    }

    /// As indented JSON, with a newline at its end.
    ///
    /// # Errors
    /// One line, when it has no JSON form.
    pub fn to_json(&self) -> Result<String, String> {
        json::pretty(self, "comparison")
    }
}

/// The JSON schema (draft 2020-12) of the comparison.
#[must_use]
pub fn schema() -> serde_json::Value {
    schemars::schema_for!(Comparison).to_value()
}

/// Compares B with A. With `are_pairs` the records of equal number ran next to each other.
///
/// # Errors
/// One line: a side without a record, or no phase that both have.
pub fn compare(a: &Operand, b: &Operand, are_pairs: bool, limits: &[Limit]) -> Result<Comparison, String> {
    has_records(a)?;
    has_records(b)?;
    let (mut a, mut b) = (a.clone(), b.clone());
    let mut notes = Vec::new();
    if !are_pairs {
        // The same run again would promise a certainty that nothing was measured for.
        notes.extend([&mut a, &mut b].into_iter().filter_map(once_each));
    }
    if are_pairs && a.records.len() != b.records.len() {
        let pairs = a.records.len().min(b.records.len());
        a.records.truncate(pairs);
        b.records.truncate(pairs);
        notes.push("a run without a counterpart is ignored".to_owned());
    }
    let method = match (a.records.len(), b.records.len()) {
        (1, 1) => Method::SingleRuns,
        _ if are_pairs => Method::Pairs,
        _ => Method::Repeats,
    };
    compare_by(&a, &b, method, notes, limits)
}

/// Compares a run with those before it, which say how much it varies from run to run: a figure differs where it lies outside of the range in which 95 % of further runs would lie.
///
/// # Errors
/// One line: no such run. Without a run before it, nothing is compared.
pub fn check(before: &Operand, newest: &Operand, limits: &[Limit]) -> Result<Comparison, String> {
    has_records(newest)?;
    compare_by(before, newest, Method::History, Vec::new(), limits)
}

fn has_records(side: &Operand) -> Result<(), String> {
    match side.records.is_empty() {
        true => Err(format!("{}: no record to compare", clean(&side.label))),
        false => Ok(()),
    }
}

fn compare_by(
    a: &Operand,
    b: &Operand,
    method: Method,
    mut notes: Vec<String>,
    limits: &[Limit],
) -> Result<Comparison, String> {
    notes.extend(notes_on(a, b, method));
    let (in_a, in_b) = (matched(a), matched(b));
    let mut phases = Vec::new();
    for (key, runs_a) in &in_a {
        if let Some((_, runs_b)) = in_b.iter().find(|(other, _)| other == key) {
            phases.push(phase(key, runs_a, runs_b, method));
        }
    }
    if phases.is_empty() && method != Method::History {
        return Err("nothing to compare: no phase of A has a counterpart of the same name in B".to_owned());
    }
    verdict::settle(&mut phases);
    let lacking = |side: &str, own: &[(Key, Runs<'_>)], others: &[(Key, Runs<'_>)]| -> Vec<Unmatched> {
        let alone = own.iter().filter(|(key, _)| others.iter().all(|(other, _)| other != key));
        alone
            .map(|((phase, occurrence), _)| Unmatched {
                side: side.to_owned(),
                phase: phase.clone(),
                occurrence: *occurrence,
            })
            .collect()
    };
    let mut unmatched = lacking("a", &in_a, &in_b);
    unmatched.extend(lacking("b", &in_b, &in_a));
    let limits = limits.iter().map(|limit| limit.judge(&phases, &unmatched, method)).collect();
    Ok(Comparison {
        schema_version: SCHEMA_VERSION,
        strata_version: env!("CARGO_PKG_VERSION").to_owned(),
        differs: differs::facts(a, b),
        a: side(a),
        b: side(b),
        method,
        is_stack: a.records.iter().chain(&b.records).all(|(_, record)| record.stack.is_some()),
        notes,
        phases,
        unmatched,
        limits,
    })
}

fn side(operand: &Operand) -> Side {
    let name = |(source, record): &(String, Record)| RecordName {
        source: source.clone(),
        run_id: record.run_id.clone(),
        started_at: record.started_at.clone(),
        failure: record.why_partial(),
    };
    Side { label: operand.label.clone(), records: operand.records.iter().map(name).collect() }
}

fn phase((name, occurrence): &Key, a: &Runs<'_>, b: &Runs<'_>, method: Method) -> PhaseComparison {
    let differs = differs::plans(a, b);
    let doubts = [("a", a), ("b", b)].into_iter().flat_map(|(side, runs)| doubts(side, runs)).collect();
    let is_open = phases(a).chain(phases(b)).any(|phase| phase.plan.load().arrivals.is_some());
    // Passes of one run are repeats.
    let method = match method {
        Method::SingleRuns if is_in_passes(a) || is_in_passes(b) => Method::Repeats,
        method => method,
    };
    let classes = figures::classes(a, b, method);
    let considered = verdict::considered(&classes, (a, b), method, is_open);
    PhaseComparison {
        name: name.clone(),
        occurrence: *occurrence,
        differs,
        doubts,
        headline: Headline {
            figure: considered[0],
            considered,
            p_value_adjusted: None,
            verdict: Verdict::TooLittle,
        },
        classes,
    }
}

fn doubts(side: &str, runs: &Runs<'_>) -> Vec<DoubtCount> {
    let mut found: Vec<DoubtCount> = Vec::new();
    let of_records = runs.iter().filter(|run| !run.passes.is_empty()).count();
    for kind in runs.iter().flat_map(Run::doubts) {
        match found.iter_mut().find(|known| known.kind == kind) {
            Some(known) => known.records += 1,
            None => {
                found.push(DoubtCount {
                    side: side.to_owned(),
                    kind: kind.to_owned(),
                    records: 1,
                    of_records,
                });
            }
        }
    }
    found
}

/// Label of a phase, with a number where another of its name came before it: `load (2)`.
pub(crate) fn labelled(name: &str, occurrence: usize) -> String {
    let name = clean(name);
    if occurrence == 0 { name.into_owned() } else { format!("{name} ({})", occurrence + 1) }
}

impl Unmatched {
    fn label(&self) -> String {
        labelled(&self.phase, self.occurrence)
    }
}

impl PhaseComparison {
    fn label(&self) -> String {
        labelled(&self.name, self.occurrence)
    }

    /// A figure of all classes together.
    #[must_use]
    pub fn total(&self, figure: FigureName) -> Option<&FigureComparison> {
        self.classes.first()?.figures.iter().find(|candidate| candidate.figure == figure)
    }

    /// Whether A completed operations and B none at all.
    fn b_is_idle(&self) -> bool {
        let rate = self.classes.first().and_then(|total| total.figures.first());
        rate.is_some_and(|rate| rate.a.is_some() && rate.b.is_none())
    }

    /// The figure that decides, and its difference.
    fn decisive(&self) -> Option<(&FigureComparison, Difference)> {
        let figure = self.total(self.headline.figure)?;
        Some((figure, figure.difference?))
    }
}
