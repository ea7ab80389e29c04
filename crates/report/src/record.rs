//! The record: all that is known about a run, as versioned JSON.

mod seen;

use driver::ClockSource;
use host::Environment;
use host::control_group::CpuThrottling;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use statistics::{Knee, PhaseSamples, Summary};
use workload::network::Poll;
use workload::plan::PhasePlan;
use workload::spec::LadderDimension;

pub use seen::{DeviceActivity, IoLimitActivity, MachineTraffic, RangeFacts};

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
    /// What was seen, in one sentence with figures.
    pub detail: String,
    /// What to do about it.
    pub remedy: String,
}

/// What strata itself cost, measured in the same process with the `null` driver.
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

/// Seen around a phase, from outside the measured loop; doubts are made from it. Figures of the machine, of its devices
/// and of the process are shared by the phases of a stage, which run at the same time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Observations {
    /// Processors of the whole machine that were busy during the phase (user, system, interrupts); none when it was too short for
    /// the kernel's accounting to tell.
    pub machine_cpus_busy: Option<f64>,
    /// Processors that others than this process kept busy; none when it was too short to tell.
    pub other_cpus_busy: Option<f64>,
    /// Of these, processors that were busy in user mode: programs. The rest may be threads of the kernel that serve this load.
    #[serde(default)]
    pub other_cpus_user: Option<f64>,
    /// Processors that the hypervisor gave to others while this machine wanted them; none when it was too short to tell.
    #[serde(default)]
    pub stolen_cpus: Option<f64>,
    /// Share of the range in the page cache before the phase, 0 to 1, where it could be told.
    pub cached_before_fraction: Option<f64>,
    /// Share of the range that was never written (holes and unwritten extents) before the phase, 0 to 1.
    pub unwritten_fraction: Option<f64>,
    /// Bytes that the block devices of the targets really read during the phase, where they could be told.
    pub device_read_bytes: Option<u64>,
    /// Bytes that they really wrote.
    pub device_written_bytes: Option<u64>,
    /// Voluntary and involuntary context switches of the process.
    pub context_switches: u64,
    /// Page faults of the process that read a disk.
    #[serde(default)]
    pub major_faults: u64,
    /// Page faults of the process that did not.
    #[serde(default)]
    pub minor_faults: u64,
    /// CPU time of the process that none of strata's own threads used, in nanoseconds: that of threads which the kernel
    /// made in it, such as those of io_uring. None when it cannot be told: the phase did not run alone, or a worker was lost.
    #[serde(default)]
    pub kernel_worker_cpu_ns: Option<u64>,
    /// What each block device under the targets did, where it could be told.
    #[serde(default)]
    pub devices: Vec<DeviceActivity>,
    /// What the devices at the bottom did: below loop devices, device mapper, RAID and bcache. Empty where these are the same,
    /// or keep no counters.
    #[serde(default)]
    pub bottom_devices: Vec<DeviceActivity>,
    /// Bytes that this process made the kernel fetch from block devices, reading ahead included, where it could be told.
    #[serde(default)]
    pub process_fetched_bytes: Option<u64>,
    /// What all of this machine moved, where a target is served by a program (FUSE), and what lies behind cannot be told.
    #[serde(default)]
    pub machine_traffic: Option<MachineTraffic>,
    /// What the files were before the phase.
    #[serde(default)]
    pub range: RangeFacts,
    /// Share of the file system of a target that was free for its users before the phase, 0 to 1: the fullest of them.
    #[serde(default)]
    pub free_fraction: Option<f64>,
    /// How often the quota of processor time of a control group stopped this process; none where no group has one.
    #[serde(default)]
    pub cpu_throttling: Option<CpuThrottling>,
    /// Limits that control groups of this process set on devices, and what was used of them.
    #[serde(default)]
    pub io_limits: Vec<IoLimitActivity>,
    /// What each endpoint of an engine did, by its own counters, where it could be asked before and after.
    #[serde(default)]
    pub servers: Vec<ServerActivity>,
    /// Segments that this machine sent again over TCP during the phase, by its own counters; none where it could not be told.
    #[serde(default)]
    pub tcp_retransmitted_segments: Option<u64>,
    /// Segments that this machine sent over TCP during the phase, those sent again among them.
    #[serde(default)]
    pub tcp_sent_segments: Option<u64>,
    /// What the interfaces that the load went through did, for all their users, where it could be told; the first is this process's own.
    #[serde(default)]
    pub links: Vec<LinkActivity>,
    /// What the object store told of itself before and after the phase; none of other layers.
    #[serde(default)]
    pub store: Option<StoreActivity>,
}

/// An object store around a phase.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StoreActivity {
    /// Targets that objects are spread over; 1 where a cluster does not tell.
    pub targets: u32,
    /// How updates are made durable, in words; empty where it is not told.
    pub durable_by: String,
    /// Its space before the phase, where it could be told.
    #[serde(default)]
    pub before: Option<StoreSpace>,
    /// Its space after the phase, where it could be told.
    #[serde(default)]
    pub after: Option<StoreSpace>,
    /// The file of what it acknowledged, and what that cost, where it was asked for.
    #[serde(default)]
    pub acknowledged: Option<AcknowledgedFile>,
}

/// A file with a line for each update that was acknowledged in a phase. Written outside latencies.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AcknowledgedFile {
    /// Where it is.
    pub file: String,
    /// Updates of the phase in it.
    pub updates: u64,
    /// Bytes that the phase added to it.
    pub bytes: u64,
    /// Time that the thread took which writes it, in nanoseconds.
    pub write_ns: u64,
    /// Time that workers waited for it, in nanoseconds; a part of the time for filling and checking.
    pub waited_ns: u64,
}

/// Space of an object store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StoreSpace {
    /// Mapped memory (or log), in bytes.
    pub scm_bytes: u64,
    /// Of it free, in bytes.
    pub scm_free_bytes: u64,
    /// Data file, in bytes.
    pub nvme_bytes: u64,
    /// Of it free, in bytes.
    pub nvme_free_bytes: u64,
    /// Memory that the index takes, in bytes.
    pub index_bytes: u64,
    /// After a phase: what the store took from the file system while it ran, beyond what was prepared before it, in bytes.
    #[serde(default)]
    pub grown_bytes: u64,
    /// Containers.
    pub containers: u32,
}

/// What an interface did during a phase, by the kernel's counters (`/proc/net/dev`), and how large its packets may be.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LinkActivity {
    /// Whose it is: the label of a master or an endpoint; none for this process.
    #[serde(default)]
    pub owner: Option<String>,
    /// Its name, such as `eth0`.
    pub interface: String,
    /// Bytes received, headers included.
    #[serde(default)]
    pub received_bytes: u64,
    /// Bytes sent, headers included.
    #[serde(default)]
    pub sent_bytes: u64,
    /// Packets that were received and thrown away, and packets with errors.
    #[serde(default)]
    pub dropped_packets: u64,
    /// Its largest packet in bytes; none where it could not be told.
    #[serde(default)]
    pub mtu_bytes: Option<u64>,
    /// Largest packet that gets through to the other side, as far as the kernel knows (`IP_MTU`); none where it could not be told.
    #[serde(default)]
    pub path_mtu_bytes: Option<u64>,
}

/// What an endpoint of an engine did during a phase, for all its clients.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ServerActivity {
    /// What people call the endpoint, such as `0:2`.
    pub label: String,
    /// Requests answered.
    pub rpcs: u64,
    /// Payload bytes received.
    pub received_bytes: u64,
    /// Payload bytes sent.
    pub sent_bytes: u64,
    /// Requests answered with an error.
    pub errors: u64,
    /// CPU time of its service thread in user mode, nanoseconds.
    pub cpu_user_ns: u64,
    /// CPU time of its service thread in the kernel, nanoseconds.
    pub cpu_system_ns: u64,
    /// How its service thread waits for messages, where it said so.
    #[serde(default)]
    pub poll: Option<Poll>,
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

/// One phase.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PhaseRecord {
    /// What was planned, every default resolved.
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
    /// What the driver had to do otherwise than asked, and what is worth knowing.
    pub notes: Vec<String>,
    /// All that was measured.
    pub samples: PhaseSamples,
    /// Figures computed from it.
    pub summary: Summary,
    /// The open loop as it went.
    pub arrivals: Option<ArrivalOutcome>,
    /// What came of waiting for a steady state that ends it.
    #[serde(default)]
    pub steady_ending: Option<statistics::SteadyEnding>,
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
    /// What was climbed; none for saturation, which climbs depth and then threads.
    pub dimension: Option<LadderDimension>,
    /// Indexes into `phases`, in the order of the climb; of a climb to saturation by threads and depth.
    pub phases: Vec<usize>,
    /// Those of them that were measured between two rungs to find the knee.
    #[serde(default)]
    pub refined: Vec<usize>,
    /// Where the climb stops paying, when it was found.
    pub knee: Option<Knee>,
}

/// One row of the waterfall of `strata stack`: one load on one layer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StackRow {
    /// Layer (`memory`, `media`, `file`, ...), lowest first.
    pub layer: String,
    /// Load (`1 MiB sequential read`, ...).
    pub load: String,
    /// Index into `phases`; none when the layer could not be measured.
    pub phase: Option<usize>,
    /// Why it could not be measured.
    pub missing: Option<String>,
}

/// `strata stack`: the rows of the waterfall.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StackRecord {
    /// Rows, lowest layer first within a load.
    pub rows: Vec<StackRow>,
}

/// What a recipe of `strata object recipes` comes to on a store.
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
    /// What it asks.
    pub question: String,
    /// What was done without it, in words.
    pub without: String,
    /// What was done with it, in words.
    pub with: String,
    /// What is counted: `records`, `ids`.
    pub unit: String,
    /// What to do where it matters.
    pub advice: String,
    /// Pairs of indexes into `phases`, without and with it, in the order of their rounds; within a pair the order was drawn.
    pub pairs: Vec<[usize; 2]>,
    /// What the pairs say; none where it was not tested, or too little.
    pub factor: Option<RecipeFactor>,
    /// What it comes to.
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

/// The record of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Record {
    /// [`SCHEMA_VERSION`].
    pub schema_version: u32,
    /// Version of strata.
    pub strata_version: String,
    /// Whether strata was built with debug assertions: its figures are worthless then.
    pub debug_build: bool,
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
    /// What went wrong, when it did not complete.
    pub failure: Option<String>,
    /// The machine and the targets.
    pub environment: Environment,
    /// What strata itself cost; measured after the last phase.
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
    /// What the run has made in object stores and has not removed: `strata clean` removes it.
    #[serde(default)]
    pub made: Vec<workload::object::MadeInStore>,
}

/// Whether two phases were at work at the same time.
fn overlap(one: &PhaseSamples, other: &PhaseSamples) -> bool {
    let end = |samples: &PhaseSamples| samples.started_ns.saturating_add(samples.elapsed_ns);
    one.started_ns < end(other) && other.started_ns < end(one)
}

impl Record {
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
