//! The part of a record that is of `strata stack`: its rows, passes, verdict and trial.

use layer::{StackCarrier, StackKind};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One row of the waterfall of `strata stack`: one load on one layer.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StackRow {
    /// Layer (`memory`, `media`, `file`, ...), lowest first.
    pub layer: String,
    /// Load (`1 MiB sequential read`, ...).
    pub load: String,
    /// Index into `phases`; none when the layer could not be measured.
    pub phase: Option<usize>,
    /// Why it could not be measured.
    pub missing: Option<String>,
    /// Name of the layer in a sentence; none in records of earlier versions, as all that follows.
    #[serde(default)]
    pub called: Option<String>,
    /// Kind of the row.
    #[serde(default)]
    pub kind: Option<StackKind>,
    /// Rows that carry it. Of those that were measured the slowest counts.
    #[serde(default)]
    pub stands_on: Vec<StackCarrier>,
    /// Reason why it may be faster than what carries it.
    #[serde(default)]
    pub faster_by: Option<String>,
    /// Kinds of warnings that state what the row measures on purpose: they are not counted among those of the run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub by_design: Vec<String>,
    /// Name of what has this load, such as an application; none: it is one of those that every layer gets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load_of: Option<String>,
    /// Whether it is compared by bandwidth; none: by the size of its operations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_bytes: Option<bool>,
    /// Reason why it is compared with nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uncompared: Option<String>,
    /// Its passes, each with the number of the pass over all rows; `phase` is the first.
    #[serde(default)]
    pub passes: Vec<StackPass>,
}

/// One pass of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StackPass {
    /// Number of the pass over all rows, from 0.
    pub pass: u32,
    /// Index into `phases`.
    pub phase: usize,
}

/// Kind of a verdict on a stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StackVerdictKind {
    /// Software gives less than what it stands on.
    Loss,
    /// Hardware is used up.
    Limit,
    /// Nothing can be said.
    Inconclusive,
    /// Nothing is lost, or there is nothing to compare.
    None,
}

/// Verdict on a stack.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StackVerdict {
    /// Kind.
    pub kind: StackVerdictKind,
    /// Layer that it names.
    pub layer: Option<String>,
    /// Load that it names.
    pub load: Option<String>,
    /// Layer that it was compared with.
    pub below: Option<String>,
    /// How many times slower the layer is than that one.
    pub factor: Option<f64>,
    /// Lower end of the 95 % interval of the factor.
    pub low: Option<f64>,
    /// Upper end of the 95 % interval of the factor.
    pub high: Option<f64>,
    /// Lower end of the prediction interval: the factors of ten further runs of the same length lie in it, all of them with a probability of 99 %.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prediction_low: Option<f64>,
    /// Upper end of the prediction interval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prediction_high: Option<f64>,
    /// The verdict in words.
    pub sentence: String,
    /// Distances down to the hardware in words, a line for each load that is a stage of an application.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub chains: Vec<String>,
    /// Where the time of requests goes, in words: of the row that it names, else of the row with the largest factor whose requests are timed in parts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spent: Option<String>,
}

/// A remedy that was tried: pairs of phases without and with it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StackTrial {
    /// The remedy in words.
    pub remedy: String,
    /// Options that it changed, by name.
    pub options: Vec<[String; 2]>,
    /// Layer of the row.
    pub layer: String,
    /// Load of the row.
    pub load: String,
    /// Indexes into `phases`, without and with it.
    pub pairs: Vec<[usize; 2]>,
    /// Why it could not be tried.
    pub failure: Option<String>,
}

/// `strata stack`: the rows of the waterfall.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StackRecord {
    /// Rows, lowest layer first within a load.
    pub rows: Vec<StackRow>,
    /// Passes over all rows that were asked for.
    #[serde(default)]
    pub pass_count: u32,
    /// The verdict, once all passes are done.
    #[serde(default)]
    pub verdict: Option<StackVerdict>,
    /// The remedy that was tried, where that was asked for.
    #[serde(default)]
    pub trial: Option<StackTrial>,
}

impl StackRecord {
    /// Whether a phase, by its index, is a pass of a row or of a trial.
    #[must_use]
    pub fn has(&self, at: usize) -> bool {
        let of_row = |row: &StackRow| row.phase == Some(at) || row.passes.iter().any(|pass| pass.phase == at);
        self.rows.iter().any(of_row)
            || self.trial.iter().any(|trial| trial.pairs.iter().flatten().any(|of| *of == at))
    }
}
