//! The answer of a preset in the record: figures, each beside the one that was stated or is needed.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use statistics::RoundsWindow;

/// Unit of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PresetUnit {
    /// Bytes per second: more is better.
    BytesPerSecond,
    /// Operations per second: more is better.
    OperationsPerSecond,
    /// Nanoseconds: less is better.
    Nanoseconds,
}

/// Finding on a figure and the one it is held against.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PresetFinding {
    /// Within the tolerance of it, or on its better side by no more than that.
    Meets,
    /// Better than it by more than the tolerance, with the whole interval.
    Better,
    /// Worse than it by more than the tolerance, with the whole interval.
    Worse,
    /// The interval is too wide to tell.
    CannotTell,
}

/// One figure of a preset.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PresetFigure {
    /// Its key: `rand_read`, `etcd`.
    pub key: String,
    /// Load that it was measured with, in words.
    pub load: String,
    /// Unit of all values of it.
    pub unit: PresetUnit,
    /// Mean over the phases it is computed from; none where it was not measured.
    pub value: Option<f64>,
    /// Lower end of its 95 % interval, from what differs between these phases.
    pub low: Option<f64>,
    /// Upper end of that interval.
    pub high: Option<f64>,
    /// Indexes into `phases` of all rounds that were run for it.
    pub rounds: Vec<usize>,
    /// Those of them that the figure is computed from.
    pub window: Vec<usize>,
    /// Whether the rounds are steady as SNIA defines it; none where that was not asked for.
    #[serde(default)]
    pub steady: Option<RoundsWindow>,
    /// Figure that it is held against; none where none was stated.
    pub stated: Option<f64>,
    /// Where that comes from, in words.
    #[serde(default)]
    pub source: Option<String>,
    /// Measured divided by stated.
    pub ratio: Option<f64>,
    /// Lower end of the interval of the ratio.
    pub ratio_low: Option<f64>,
    /// Upper end of that interval.
    pub ratio_high: Option<f64>,
    /// Finding; none without a stated figure or a measured one.
    pub finding: Option<PresetFinding>,
    /// Why there is no figure.
    #[serde(default)]
    pub reason: Option<String>,
}

/// A preset (`strata drive`, `strata wal`): a common question, answered by loads of one layer.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PresetRecord {
    /// Its name.
    pub name: String,
    /// Target that was measured.
    pub target: String,
    /// Head of the column of what figures are held against.
    pub against: String,
    /// How it was measured, in words.
    pub method: Vec<String>,
    /// The figures, in the order of the table.
    pub figures: Vec<PresetFigure>,
    /// The answer, a line for each thing that it says.
    pub verdict: Vec<String>,
    /// Reasons not to believe the whole.
    pub warnings: Vec<String>,
}
