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
    /// Its passes, each with the number of the pass over all rows; `phase` is the first. In a stack of several hosts they are those of the first
    /// host alone.
    #[serde(default)]
    pub passes: Vec<StackPass>,
    /// The row on several hosts; none in a stack of one host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hosts: Option<StackRowHosts>,
}

/// A row of the stack on several hosts at once, beside its passes on one.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StackRowHosts {
    /// Number of hosts that `passes` were carried out by; 1 where it was one host alone.
    pub count: u32,
    /// Passes on all hosts at once. Each is compared with the pass of one host of the same number.
    #[serde(default)]
    pub passes: Vec<StackPass>,
    /// Why several hosts cannot carry it out at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub one_host: Option<String>,
    /// Scaling from one host to all: their rate by `count` times the rate of one host, 1 where nothing is lost; none before two passes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scaling: Option<f64>,
    /// Lower end of the 95 % interval of the scaling.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scaling_low: Option<f64>,
    /// Upper end of the 95 % interval of the scaling.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scaling_high: Option<f64>,
    /// Hosts that are slower than the others in these passes beyond chance.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub slow: Vec<StackSlowHost>,
}

/// A host that is slower than the others in a row of the stack.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StackSlowHost {
    /// Its name, as in `hosts` of the record.
    pub name: String,
    /// Part of the median of the other hosts by which its rate is below it, 0 to 1.
    pub below_median: f64,
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
    /// Number of hosts at once whose rate was compared with so many times that of one host, in place of another layer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hosts: Option<u32>,
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
    /// Passes over all rows that were asked for, those of `passes_added` among them.
    #[serde(default)]
    pub pass_count: u32,
    /// Passes that were added because the first ones differed too much for a verdict.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub passes_added: u32,
    /// The verdict, once all passes are done.
    #[serde(default)]
    pub verdict: Option<StackVerdict>,
    /// The remedy that was tried, where that was asked for.
    #[serde(default)]
    pub trial: Option<StackTrial>,
}

fn is_zero(count: &u32) -> bool {
    *count == 0
}

impl StackRecord {
    /// Whether a phase, by its index, is a pass of a row or of a trial.
    #[must_use]
    pub fn has(&self, at: usize) -> bool {
        self.row_of(at).is_some()
            || self.trial.iter().any(|trial| trial.pairs.iter().flatten().any(|of| *of == at))
    }

    /// The row that a phase is a pass of, on one host or on all.
    #[must_use]
    pub fn row_of(&self, at: usize) -> Option<&StackRow> {
        self.rows.iter().find(|row| {
            let on_hosts = row.hosts.iter().flat_map(|hosts| &hosts.passes);
            row.phase == Some(at) || row.passes.iter().chain(on_hosts).any(|pass| pass.phase == at)
        })
    }
}
