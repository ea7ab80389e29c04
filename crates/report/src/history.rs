//! Runs of the same load over time: figures of each, the range in which they were to be expected, and what changed between them.

mod build;
mod csv;
mod page;
#[cfg(test)]
mod tests;
mod text;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::compare::{Comparison, FigureName, PhasePoint};
use crate::json;

pub use build::{build, series_of};
pub use csv::to_csv;
pub use page::to_html;
pub use text::{render, render_check};

/// Version of the shape of [`History`] and [`HistoryCheck`]. Raised when a field changes its meaning or goes; new fields do not raise it.
pub const SCHEMA_VERSION: u32 = 1;

/// A run as a history knows it.
#[derive(Clone, Debug, PartialEq)]
pub struct HistoryRun {
    /// Its record, relative to the directory of the history.
    pub path: String,
    /// Name of the run.
    pub run_id: String,
    /// When it began, RFC 3339 UTC.
    pub started_at: String,
    /// Series that it belongs to: the name that the user gave, or host and target.
    pub series: String,
    /// Load, as a key: runs of one series with the same key are compared with each other.
    pub load_key: String,
    /// Load in words.
    pub load: String,
    /// Why it is partial, where it is: it is shown, and no other run is compared with it.
    pub failure: Option<String>,
    /// Facts about machine and software.
    pub facts: Vec<(String, String)>,
    /// Figures of its phases.
    pub phases: Vec<PhasePoint>,
}

impl HistoryRun {
    /// Whether another run is of the same series and load: the two are compared with each other.
    #[must_use]
    pub fn is_of_series(&self, other: &Self) -> bool {
        self.series == other.series && self.load_key == other.load_key
    }
}

/// A directory of records over time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct History {
    /// [`SCHEMA_VERSION`] of histories.
    pub schema_version: u32,
    /// Version of strata that made it.
    pub strata_version: String,
    /// The directory.
    pub directory: String,
    /// Number of runs before each run that its expected range comes from, at most.
    pub last: usize,
    /// Runs of one load each, in the order of their newest runs, the newest first.
    pub series: Vec<Series>,
    /// Files that are no part of it, and why.
    pub remarks: Vec<String>,
}

/// Runs of one load on one host and target, or under one name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Series {
    /// Its name: the one that the user gave, or host and target.
    pub name: String,
    /// The load in words.
    pub load: String,
    /// Its runs, the oldest first.
    pub runs: Vec<SeriesRun>,
    /// Its phases; of a stack its rows.
    pub phases: Vec<PhaseHistory>,
    /// Changes of machine and software from one run to the next.
    pub changes: Vec<Change>,
}

/// A run of a series.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SeriesRun {
    /// Its record, relative to the directory of the history.
    pub path: String,
    /// Name of the run.
    pub run_id: String,
    /// When it began, RFC 3339 UTC.
    pub started_at: String,
    /// Why it is partial, where it is.
    pub failure: Option<String>,
}

/// A phase over time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PhaseHistory {
    /// Its name.
    pub name: String,
    /// How many phases of this name came before it.
    pub occurrence: usize,
    /// The figure that is shown.
    pub metric: FigureName,
    /// Its values, the oldest first; runs without a value are left out.
    pub points: Vec<HistoryPoint>,
}

/// A value of a phase in a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HistoryPoint {
    /// Index of the run in the series.
    pub run: usize,
    /// The value; latencies and CPU time in nanoseconds.
    pub value: f64,
    /// Lower end of the range in which it was to be expected with 95 %, from the runs before it; none with fewer than two of them.
    pub expected_low: Option<f64>,
    /// Upper end of the range.
    pub expected_high: Option<f64>,
    /// Kinds of its warnings.
    pub warnings: Vec<String>,
}

impl HistoryPoint {
    /// Whether it lies outside of the range in which it was to be expected.
    #[must_use]
    pub fn is_outside(&self) -> bool {
        self.expected_low.is_some_and(|low| self.value < low)
            || self.expected_high.is_some_and(|high| self.value > high)
    }
}

/// A fact that is not what it was in the run before.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Change {
    /// Index of the first run with the new value.
    pub run: usize,
    /// The fact.
    pub fact: String,
    /// Its value before.
    pub before: String,
    /// Its value from this run on.
    pub after: String,
}

/// The newest runs against those before them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HistoryCheck {
    /// [`SCHEMA_VERSION`] of histories.
    pub schema_version: u32,
    /// Version of strata that checked.
    pub strata_version: String,
    /// The directory.
    pub directory: String,
    /// A comparison for each run that was checked: A are the runs before it, B is the run.
    pub comparisons: Vec<Comparison>,
    /// Files that are no part of the history, and why.
    pub remarks: Vec<String>,
}

impl HistoryCheck {
    /// Whether a limit was exceeded.
    #[must_use]
    pub fn fails(&self) -> bool {
        self.comparisons.iter().any(Comparison::fails)
    }
}

/// A value as indented JSON, with a newline at its end.
///
/// # Errors
/// One line, when it has no JSON form.
pub fn to_json(value: &impl Serialize) -> Result<String, String> {
    json::pretty(value, "history")
}

/// The JSON schema (draft 2020-12) of a history.
#[must_use]
pub fn schema() -> serde_json::Value {
    schemars::schema_for!(History).to_value()
}

/// The JSON schema (draft 2020-12) of a check.
#[must_use]
pub fn check_schema() -> serde_json::Value {
    schemars::schema_for!(HistoryCheck).to_value()
}
