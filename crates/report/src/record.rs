//! The record: all that is known about a run, as versioned JSON.

mod preset;
mod stack;

use driver::ClockSource;
use host::Environment;
use layer::Bench;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use statistics::{Knee, PhaseSamples, Summary};
use workload::plan::PhasePlan;
use workload::spec::LadderDimension;

pub use preset::{PresetFigure, PresetFinding, PresetRecord, PresetUnit};
pub use stack::{
    StackPass, StackRecord, StackRow, StackRowHosts, StackSlowHost, StackTrial, StackVerdict,
    StackVerdictKind,
};

pub use layer::observations::{
    AcknowledgedFile, DeviceActivity, FileActivity, IoLimitActivity, LinkActivity, MachineTraffic,
    Observations, RangeFacts, ServerActivity, StonewallActivity, StoreActivity, StoreSpace, TimelinePoint,
};

/// Version of the record's shape. Raised when a field changes its meaning or goes; new fields do not raise it.
pub const SCHEMA_VERSION: u32 = 1;

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// Still going on, or ended without a word (killed): what is here is what was done until then.
    Running,
    /// Everything asked for was done.
    Complete,
    /// Something failed or was interrupted; what was measured until then is here.
    Partial,
}

/// A reason not to believe a figure, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Doubt {
    /// Its name: `too_short`, `not_steady`, `page_cache`, `client_saturated`, ...; the list is in docs/doubts.md.
    pub kind: String,
    /// Observation that raised the doubt, in one sentence with figures.
    pub detail: String,
    /// Advice on how to avoid it.
    pub remedy: String,
}

/// Cost of strata itself, measured in the same process with the `null` driver.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ToolCost {
    /// One operation through the whole loop with full statistics, in nanoseconds.
    pub null_ns_per_operation: f64,
    /// One reading of the clock, in nanoseconds.
    pub clock_read_ns: f64,
    /// The counter that the clock reads.
    pub clock_source: ClockSource,
    /// Drift of the clock against the kernel's over the run, in parts per million.
    pub clock_drift_ppm: f64,
}

/// The open loop as it went.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ArrivalOutcome {
    /// Operations a second asked for.
    pub asked_per_second: f64,
    /// Operations a second that were started.
    pub started_per_second: f64,
    /// Operations that were started within the window.
    pub started_operations: u64,
    /// Operations that were due within the window but never started, because all slots were taken.
    pub unserved_operations: u64,
    /// Operations a second that were done while operations were due; none where that cannot be told (few intervals, masters).
    #[serde(default)]
    pub completed_per_second: Option<f64>,
    /// Operations a second by which what waits grew, from the second third of the time to the last; none as above.
    #[serde(default)]
    pub backlog_growth_per_second: Option<f64>,
    /// Whether what waits grew on and on: the target does not keep up with the rate.
    #[serde(default)]
    pub backlog_grows: bool,
}

impl ArrivalOutcome {
    /// Share of what was due that must have been started for the rate to count as served.
    const STARTED_SHARE_MIN: f64 = 0.995;

    /// Whether the target keeps up: as good as all that was due was started, and what waits does not grow.
    #[must_use]
    pub fn is_served(&self) -> bool {
        let due = self.started_operations + self.unserved_operations;
        self.started_operations as f64 >= Self::STARTED_SHARE_MIN * due as f64 && !self.backlog_grows
    }
}

/// When a host began a phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HostStart {
    /// Rank of the host.
    pub rank: u32,
    /// From the common start to its first operation, in nanoseconds, by its own clock: the error of that is in [`HostRecord::clock_error_ns`].
    pub lateness_ns: i64,
}

/// A host that carried out its part of the run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HostRecord {
    /// Its rank, from 0.
    pub rank: u32,
    /// Name under which its results stand (`origin` of workers).
    pub name: String,
    /// Address of its control channel.
    pub address: String,
    /// Name of its machine.
    pub host_name: Option<String>,
    /// Version of its strata.
    pub strata_version: Option<String>,
    /// Number of its process.
    pub pid: Option<u32>,
    /// Options that it has of its own (`--host-options`): name and value.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<[String; 2]>,
    /// How far its clock was ahead of the leader's when the run began, in nanoseconds.
    pub clock_offset_ns: Option<i64>,
    /// The true offset lies at most this far from it, in nanoseconds.
    pub clock_error_ns: Option<u64>,
    /// How much faster its clock went than the leader's over the run, in parts per million; none where the run was too short to tell.
    pub clock_drift_ppm: Option<f64>,
    /// Shortest time of a message to it and back, in nanoseconds.
    pub round_trip_ns: Option<u64>,
    /// Why it is no longer part of the run.
    pub failure: Option<String>,
    /// Lines about things that it could not remove, or did not save.
    pub left: Vec<String>,
}

/// One phase.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PhaseRecord {
    /// Plan of the phase, every default resolved.
    pub plan: PhasePlan,
    /// Phases of the same stage ran at the same time. Stages count from 0.
    #[serde(default)]
    pub stage: usize,
    /// The phase of the request (job file, dialect) that it carries out, from 0.
    #[serde(default)]
    pub request: usize,
    /// Whether it reads back, for verification, what a phase of the same request wrote.
    #[serde(default)]
    pub is_read_back: bool,
    /// When it began, RFC 3339 UTC.
    pub started_at: String,
    /// Deviations of the driver from the options asked for, and other remarks worth knowing.
    pub notes: Vec<String>,
    /// All that was measured.
    pub samples: PhaseSamples,
    /// Figures computed from it.
    pub summary: Summary,
    /// The open loop as it went.
    pub arrivals: Option<ArrivalOutcome>,
    /// Outcome of waiting for a steady state that ends the phase.
    #[serde(default)]
    pub steady_ending: Option<statistics::SteadyEnding>,
    /// Starts of the hosts that carried it out; empty where this process did alone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub host_starts: Vec<HostStart>,
    /// Seen around the phase.
    pub observations: Observations,
    /// Reasons not to believe the figures.
    pub doubts: Vec<Doubt>,
    /// Why the phase failed or ended early.
    pub failure: Option<String>,
}

/// A ladder or a climb to saturation over the phases of the run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LadderRecord {
    /// Dimension that was climbed; none for saturation, which climbs depth and then threads.
    pub dimension: Option<LadderDimension>,
    /// Indexes into `phases`, in the order of the climb; of a climb to saturation by threads and depth.
    pub phases: Vec<usize>,
    /// Those of them that were measured between two rungs to find the knee.
    #[serde(default)]
    pub refined: Vec<usize>,
    /// Where the climb stops paying, when it was found.
    pub knee: Option<Knee>,
}

/// Result of a recipe of `strata object recipes` on a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RecipeFinding {
    /// It is faster with it, by a factor that matters, and surely.
    Matters,
    /// The difference is too small to matter, or there is none that can be shown.
    DoesNotMatter,
    /// It is slower with it, by a factor that matters, and surely.
    Harms,
    /// The factor would matter, but chance may have made it.
    CannotTell,
    /// It cannot be tested on this store, or its test failed.
    NotTested,
}

/// How many times as fast it is with a recipe as without, over pairs of phases that ran next to each other.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RecipeFactor {
    /// The factor: above 1, it is faster with the recipe.
    pub factor: f64,
    /// Lower end of its 95 % interval.
    pub low: f64,
    /// Upper end of its 95 % interval.
    pub high: f64,
    /// Geometric mean of what was done a second without it.
    pub without_per_second: f64,
    /// Geometric mean of what was done a second with it.
    pub with_per_second: f64,
}

/// One recipe of `strata object recipes`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RecipeRecord {
    /// Its name.
    pub name: String,
    /// Question that the recipe answers.
    pub question: String,
    /// Operations of the phase without it, in words.
    pub without: String,
    /// Operations of the phase with it, in words.
    pub with: String,
    /// Unit that is counted: `records`, `ids`.
    pub unit: String,
    /// Advice for a store where it matters.
    pub advice: String,
    /// Pairs of indexes into `phases`, without and with it, in the order of their rounds; within a pair the order was drawn.
    pub pairs: Vec<[usize; 2]>,
    /// Factor computed from the pairs; none where it was not tested, or too little.
    pub factor: Option<RecipeFactor>,
    /// Result of the recipe.
    pub finding: RecipeFinding,
    /// Why it was not tested.
    pub reason: Option<String>,
}

/// `strata object recipes`: what users are told about object stores, measured on one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RecipesRecord {
    /// The store.
    pub target: String,
    /// Pairs that each recipe was measured with.
    pub rounds: u32,
    /// The recipes, in the order of the table.
    pub recipes: Vec<RecipeRecord>,
}

/// One phase of a suite.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SuitePhase {
    /// Its name.
    pub name: String,
    /// Its rate as the suite computes it: all that was done, by the time from the start of the phase to the end of the slowest worker.
    pub score: f64,
    /// Unit of the rate: `GiB/s` or `kIOPS`; none for a phase that has no rate.
    pub unit: Option<String>,
    /// Whether it counts: for `bandwidth`, `metadata`, or not at all.
    pub group: Option<String>,
    /// Only the extended score counts it.
    #[serde(default)]
    pub is_extended: bool,
    /// Length of the phase in seconds.
    pub seconds: f64,
    /// Index into `phases`; none where strata's own loop did not measure it, or another part of the run did that has a record of its own.
    pub phase: Option<usize>,
    /// Lines of the suite's result file on it, in order: key and value.
    pub facts: Vec<[String; 2]>,
    /// Reasons not to count it.
    pub invalid: Vec<String>,
    /// Doubts of its figures, in words.
    pub doubts: Vec<String>,
}

/// Score of a suite.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SuiteScore {
    /// Its name: `SCORE`, or `SCOREX` over the phases of the extended mode too.
    pub name: String,
    /// Geometric mean of the bandwidths, GiB/s.
    pub bandwidth_gib_per_second: f64,
    /// Geometric mean of the metadata rates, thousand operations per second.
    pub metadata_kiops: f64,
    /// Square root of the product of both.
    pub total: f64,
    /// Whether it may be compared with scores of others.
    pub is_valid: bool,
}

/// `strata suite`: a benchmark of several phases by the rules of others.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SuiteRecord {
    /// Its name.
    pub name: String,
    /// Its mode.
    pub mode: String,
    /// Workers.
    pub ranks: u32,
    /// Seconds of the stonewall.
    pub stonewall_seconds: u64,
    /// Directory of the data.
    pub data_directory: String,
    /// Directory of the results.
    pub result_directory: String,
    /// Phases that are whole.
    pub phases: Vec<SuitePhase>,
    /// The scores, once all phases are whole.
    pub scores: Vec<SuiteScore>,
    /// Reasons of the whole run for which its scores do not count.
    pub invalid: Vec<String>,
}

/// Records of versions that do not say it are of release builds.
fn yes() -> bool {
    true
}

impl Record {
    /// Why it is partial; none of a run that is complete.
    #[must_use]
    pub fn why_partial(&self) -> Option<String> {
        match (&self.failure, self.status) {
            (Some(failure), _) => Some(failure.clone()),
            (None, Status::Complete) => None,
            (None, _) => Some("the run did not finish".to_owned()),
        }
    }
}

/// The record of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Record {
    /// [`SCHEMA_VERSION`].
    pub schema_version: u32,
    /// Version of strata.
    pub strata_version: String,
    /// Whether strata was built with debug assertions: its figures are worthless then.
    pub debug_build: bool,
    /// Whether the compiler optimized all of strata, as release builds. The profile `first` of `make run` optimizes only the layers, and less.
    #[serde(default = "yes")]
    pub optimized_build: bool,
    /// The command line, word by word.
    pub command_line: Vec<String>,
    /// Name of the run: 16 hexadecimal digits; verification blocks carry it.
    pub run_id: String,
    /// Seed of all random choices.
    pub seed: u64,
    /// When it began, RFC 3339 UTC.
    pub started_at: String,
    /// How it ended.
    pub status: Status,
    /// Failure that ended the run, when it did not complete.
    pub failure: Option<String>,
    /// The machine and the targets.
    pub environment: Environment,
    /// Hosts that carried out the run together, by rank; empty where this process did alone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<HostRecord>,
    /// Cost of strata itself; measured after the last phase.
    pub tool_cost: Option<ToolCost>,
    /// Most memory that the process held, in bytes.
    pub peak_rss_bytes: u64,
    /// The phases so far.
    pub phases: Vec<PhaseRecord>,
    /// The ladder, where the run had one.
    pub ladder: Option<LadderRecord>,
    /// The waterfall, for `strata stack`.
    pub stack: Option<StackRecord>,
    /// The recipes, for `strata object recipes`.
    #[serde(default)]
    pub recipes: Option<RecipesRecord>,
    /// The suite, for `strata suite`.
    #[serde(default)]
    pub suite: Option<SuiteRecord>,
    /// The answer of a preset, for `strata drive` and `strata wal`.
    #[serde(default)]
    pub preset: Option<PresetRecord>,
    /// Objects, containers, pools and buckets that the run has made in stores and has not removed: `strata clean` removes them.
    #[serde(default)]
    #[schemars(schema_with = "made_schema")]
    pub made: Vec<Value>,
}

/// Schema of the list of what a run made and left, as the layer has it whose list that is.
fn made_schema(generator: &mut SchemaGenerator) -> Schema {
    let mut leftovers = layer::all().into_iter().flat_map(|layer| layer.leftovers());
    let entry = leftovers.find_map(|kind| kind.schema(generator)).unwrap_or_default();
    json_schema!({ "type": "array", "items": entry })
}

/// Whether two phases were at work at the same time.
fn overlap(one: &PhaseSamples, other: &PhaseSamples) -> bool {
    let end = |samples: &PhaseSamples| samples.started_ns.saturating_add(samples.elapsed_ns);
    one.started_ns < end(other) && other.started_ns < end(one)
}

impl Record {
    /// The record of a run.
    ///
    /// # Panics
    /// Where the run has a record of another type: there is this one alone.
    pub fn of(bench: &mut dyn Bench) -> &mut Self {
        bench.record().downcast_mut().expect("a run has a record of the report")
    }

    /// Whether a run ends with the phase of this index: it failed, or somebody ended it.
    pub fn ends_with(bench: &mut dyn Bench, at: usize) -> bool {
        bench.is_interrupted() || Self::of(bench).phases[at].failure.is_some()
    }

    /// The phases of the same stage that ran at the same time as the one of this index. Records from before stages were
    /// counted have one stage for all, so the times are looked at too.
    #[must_use]
    pub fn beside(&self, at: usize) -> Vec<&PhaseRecord> {
        let Some(own) = self.phases.get(at) else { return Vec::new() };
        let others = self.phases.iter().enumerate().filter(|(other, _)| *other != at);
        others
            .map(|(_, phase)| phase)
            .filter(|phase| phase.stage == own.stage && overlap(&own.samples, &phase.samples))
            .collect()
    }
}
