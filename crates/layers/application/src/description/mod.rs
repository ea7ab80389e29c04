//! Descriptions of applications: a TOML file with parameters, sets of objects, and groups of processes with their steps.

mod checks;
mod datasets;
pub mod expression;
mod logs;
mod parse;
mod remedies;
mod resolve;
mod scale;
mod staging;
mod values;

use std::collections::BTreeMap;

use serde::Deserialize;

pub(crate) use datasets::is_shared;
pub use datasets::{AskedFormat, FormatChoice};
pub use parse::{FORMAT, parse};
pub use remedies::{RemedyValue, remedies};
pub use resolve::{Application, resolve};
pub(crate) use scale::{Scale, full_words, scaled};

/// A description, as written. Texts that are numbers are expressions over its parameters.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Description {
    /// Version of the format.
    pub format: u32,
    /// Name.
    pub name: String,
    /// Version of the application, for records.
    pub version: String,
    /// One line about it.
    pub summary: String,
    /// Lines for the notes of a record: what the load is not.
    #[serde(default)]
    pub notes: Vec<String>,
    /// Parameters by name.
    #[serde(default)]
    pub parameters: BTreeMap<String, Parameter>,
    /// Values of parameters for a row of `strata stack`, whose passes take some tenths of a second.
    #[serde(default)]
    pub stack: BTreeMap<String, Quantity>,
    /// Values of parameters to try where a part of the time is large.
    #[serde(default, rename = "remedy")]
    pub remedies: Vec<Remedy>,
    /// Sets of objects.
    #[serde(default, rename = "set")]
    pub sets: Vec<Set>,
    /// Groups of processes.
    #[serde(rename = "group")]
    pub groups: Vec<Group>,
}

/// A value in TOML: a number, or a text with units or names.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(untagged, expecting = "expected a whole number of 0 or more, or a text such as 'members * levels'")]
pub enum Quantity {
    /// A whole number.
    Number(u64),
    /// An expression, or a word.
    Text(String),
}

impl Quantity {
    /// Its text.
    #[must_use]
    pub fn text(&self) -> String {
        match self {
            Self::Number(number) => number.to_string(),
            Self::Text(text) => text.clone(),
        }
    }
}

/// A parameter of an application.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Parameter {
    /// Value where the user gives none.
    pub default: Quantity,
    /// One line about it.
    pub help: String,
    /// Words that it takes; empty: it is a number.
    #[serde(default)]
    pub choices: Vec<String>,
    /// Smallest number.
    #[serde(default)]
    pub min: Option<Quantity>,
    /// Largest number.
    #[serde(default)]
    pub max: Option<Quantity>,
    /// Value of the full size of the application, which `--scale 1` gives.
    #[serde(default)]
    pub full: Option<Quantity>,
    /// The value with `--scale` is `full` times the scale; `false`: it is `full` with every scale.
    #[serde(default)]
    pub scales: Option<bool>,
    /// The full value is that of so many together, an expression: each has its part of it.
    #[serde(default)]
    pub among: Option<Quantity>,
}

/// A value of a parameter that may shorten a part of the time: what `--try` tries.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Remedy {
    /// Part, by its name in the profile: a kind of call, or `wait`.
    pub part: String,
    /// `NAME=VALUE`: a parameter, and one of its choices or an expression over the parameters.
    pub set: String,
    /// `calls` (default): it is compared by the bytes that calls move in their time; `stage`: by the time of the whole stage, where it has other things go on meanwhile.
    #[serde(default)]
    pub by: Option<String>,
    /// Condition, as of a set.
    #[serde(default)]
    pub when: Option<String>,
}

/// A set of objects of one kind.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Set {
    /// Name.
    pub name: String,
    /// `array`: bytes at offsets (a file, an array object); `index`: key-values; `log`: records that are appended, in segments.
    pub kind: String,
    /// Which items share an object: `item`, `process`, `iteration`, `process-iteration` or `shared`.
    pub layout: String,
    /// Bytes of an item, or `LOW..HIGH` for sizes spread evenly between two.
    #[serde(default)]
    pub size: Option<Quantity>,
    /// Bytes that one call moves; the whole item where nothing is said.
    #[serde(default)]
    pub transfer: Option<Quantity>,
    /// Order of the items of an iteration in an object of several processes: `process` (those of a process follow each other) or `item` (those
    /// of the same number do).
    #[serde(default)]
    pub order: Option<String>,
    /// Bytes of a segment of a log; `group`: a segment has the records of one group of commits, and is written whole.
    #[serde(default)]
    pub segment: Option<Quantity>,
    /// Preparation of segments of a log by `allocate`: `zero` (filled with zeros) or `none` (made empty).
    #[serde(default)]
    pub preallocate: Option<String>,
    /// Extent of a sync: `all` (fsync; where nothing is said) or `data` (fdatasync).
    #[serde(default)]
    pub sync: Option<String>,
    /// Form of objects: `raw` (bytes as they are; where nothing is said), `hdf5`, or `auto` (HDF5 where the library and the target can).
    #[serde(default)]
    pub format: Option<String>,
    /// Datasets of an HDF5 object, `NAME:TYPE`: they share its bytes evenly, one behind the other. One of bytes where nothing is said.
    #[serde(default)]
    pub datasets: Vec<String>,
    /// Transfers of ranks of MPI that have an HDF5 object open together: `collective` (where nothing is said) or `independent`.
    #[serde(default)]
    pub transfers: Option<String>,
    /// The set is there where these parameters have these values: `layout=shared`, several with commas.
    #[serde(default)]
    pub when: Option<String>,
}

/// Processes that do the same.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Group {
    /// Name.
    pub name: String,
    /// Stage: groups of one stage run at the same time, and stages follow each other in the order in which they are first named.
    pub stage: String,
    /// Number of processes.
    pub processes: Quantity,
    /// How often each carries its steps out.
    pub iterations: Quantity,
    /// Name of an iteration, for messages: `step`.
    #[serde(default)]
    pub iteration: Option<String>,
    /// Condition, as for sets.
    #[serde(default)]
    pub when: Option<String>,
    /// Its processes are accelerators, whose utilisation is measured.
    #[serde(default)]
    pub utilisation: Option<Utilisation>,
    /// Its stage is a checkpoint, whose throughput and share of the time are told.
    #[serde(default)]
    pub checkpoint: bool,
    /// Its steps, carried out in this order in each iteration.
    #[serde(rename = "step")]
    pub steps: Vec<Step>,
}

/// Utilisation of accelerators: the time that they compute over the time that a stage takes.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Utilisation {
    /// Thousandths that it must reach; nothing is asked of it where none is said.
    #[serde(default)]
    pub permille_min: Option<Quantity>,
    /// Iterations at the beginning that are left out; 1 where nothing is said.
    #[serde(default)]
    pub exclude_first: Option<Quantity>,
    /// Iterations at the end that are left out; none where nothing is said.
    #[serde(default)]
    pub exclude_last: Option<Quantity>,
    /// Samples of an accelerator in an iteration.
    pub samples: Quantity,
    /// Mean bytes of a sample, or the range of them.
    pub sample_bytes: Quantity,
    /// Samples of an epoch, of all accelerators together: the time of one is told.
    #[serde(default)]
    pub epoch_samples: Option<Quantity>,
}

/// A step of a group.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// Name.
    pub name: String,
    /// Items of each process in an iteration.
    #[serde(default)]
    pub items: Option<Quantity>,
    /// `items` are those of all processes of the group together, which share them as evenly as they can; with `from = "all"`.
    #[serde(default)]
    pub together: bool,
    /// Items that are passed over before the first, whole passes among them; with `from = "all"` and `items`.
    #[serde(default)]
    pub skip: Option<Quantity>,
    /// The items are those of this step (`group.step`), which are read.
    #[serde(default)]
    pub of: Option<String>,
    /// Which of them: `same` (those of the same iteration), `last` (those of the last), `all`.
    #[serde(default)]
    pub from: Option<String>,
    /// Their order: `sequential`, or `shuffled` anew in each pass.
    #[serde(default)]
    pub order: Option<String>,
    /// Calls at the beginning of the first iteration.
    #[serde(default)]
    pub once: Vec<String>,
    /// Calls at the beginning of each iteration.
    #[serde(default)]
    pub begin: Vec<String>,
    /// Calls on each item: `CALL SET`, with ` every N` for every Nth alone, and ` when NAME=VALUE` where a parameter has that value alone.
    #[serde(default)]
    pub each: Vec<String>,
    /// Calls at the end of each iteration.
    #[serde(default)]
    pub end: Vec<String>,
    /// Length of `compute`.
    #[serde(default)]
    pub compute: Option<Quantity>,
    /// How it is spent: `sleep` (an accelerator computes) or `busy` (this processor does).
    #[serde(default)]
    pub compute_with: Option<String>,
    /// Steps (`group.step`) whose processes must all have done the same iteration before this one begins it; `group.step - N`: the one N before.
    #[serde(default)]
    pub after: Vec<String>,
    /// Names of the parts of an item's number, the slowest first, for messages: `member:members`, `level:levels`.
    #[serde(default)]
    pub dimensions: Vec<String>,
    /// Condition, as for sets.
    #[serde(default)]
    pub when: Option<String>,
}
