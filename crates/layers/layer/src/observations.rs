//! Observations around a phase, from outside the measured loop; doubts are made from them.

mod hosts;
mod seen;

use gpu::GpuActivity;
use host::control_group::CpuThrottling;
use schemars::JsonSchema;
pub use seen::{DeviceActivity, IoLimitActivity, MachineTraffic, RangeFacts, TimelinePoint};
use serde::{Deserialize, Serialize};
use workload::engine::Poll;

/// Observations around a phase, from outside the measured loop; warnings use them. Phases of a stage, which run at the
/// same time, share the values of the machine, its devices and the process.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Observations {
    /// CPUs of the whole machine that were busy during the phase (user, system, interrupts); none when it was too short for
    /// the kernel's accounting.
    pub machine_cpus_busy: Option<f64>,
    /// CPUs that other processes used; none when the phase was too short.
    pub other_cpus_busy: Option<f64>,
    /// Part of these CPUs in user mode: programs. The rest may be threads of the kernel that serve this load.
    #[serde(default)]
    pub other_cpus_user: Option<f64>,
    /// CPUs that the hypervisor gave to other machines while this machine needed them; none when the phase was too short.
    #[serde(default)]
    pub stolen_cpus: Option<f64>,
    /// Share of the range in the page cache before the phase, 0 to 1; none if unknown.
    pub cached_before_fraction: Option<f64>,
    /// Share of the range that was never written (holes and unwritten extents) before the phase, 0 to 1.
    pub unwritten_fraction: Option<f64>,
    /// Bytes that the block devices of the targets read during the phase, by their counters; none if unknown.
    pub device_read_bytes: Option<u64>,
    /// Bytes that they wrote, by their counters; none if unknown.
    pub device_written_bytes: Option<u64>,
    /// Voluntary and involuntary context switches of the process.
    pub context_switches: u64,
    /// Page faults of the process that read a disk.
    #[serde(default)]
    pub major_faults: u64,
    /// Page faults of the process that did not read a disk.
    #[serde(default)]
    pub minor_faults: u64,
    /// CPU time of the process outside strata's own threads, in nanoseconds: that of threads which the kernel
    /// created in it, such as those of io_uring. None when it is unknown: the phase did not run alone, or a worker was lost.
    #[serde(default)]
    pub kernel_worker_cpu_ns: Option<u64>,
    /// Counters of each block device below the targets, if they could be read.
    #[serde(default)]
    pub devices: Vec<DeviceActivity>,
    /// Counters of the devices at the bottom: below loop devices, device mapper, RAID and bcache. Empty where these are the same,
    /// or keep no counters.
    #[serde(default)]
    pub bottom_devices: Vec<DeviceActivity>,
    /// Bytes that the kernel fetched from block devices for this process, including read-ahead; none if unknown.
    #[serde(default)]
    pub process_fetched_bytes: Option<u64>,
    /// Traffic of the whole machine, if a program (FUSE) serves a target and the storage behind it is unknown.
    #[serde(default)]
    pub machine_traffic: Option<MachineTraffic>,
    /// Facts about the files before the phase.
    #[serde(default)]
    pub range: RangeFacts,
    /// Free share of the target's file system for its users before the phase, 0 to 1; of several, the fullest.
    #[serde(default)]
    pub free_fraction: Option<f64>,
    /// How often the CPU quota of a control group stopped this process; none if no group has a quota.
    #[serde(default)]
    pub cpu_throttling: Option<CpuThrottling>,
    /// Limits that control groups of this process set on devices, and their use.
    #[serde(default)]
    pub io_limits: Vec<IoLimitActivity>,
    /// Counters of each endpoint of an engine, if it could be queried before and after.
    #[serde(default)]
    pub servers: Vec<ServerActivity>,
    /// Segments that this machine retransmitted over TCP during the phase, by its counters; none if unknown.
    #[serde(default)]
    pub tcp_retransmitted_segments: Option<u64>,
    /// Segments that this machine sent over TCP during the phase, including retransmissions.
    #[serde(default)]
    pub tcp_sent_segments: Option<u64>,
    /// Counters of the interfaces of the load, for all their users, if known; the first is that of this process.
    #[serde(default)]
    pub links: Vec<LinkActivity>,
    /// Facts that the object store reported before and after the phase; none of other layers.
    #[serde(default)]
    pub store: Option<StoreActivity>,
    /// State of this machine over the time of the phase, at most 128 parts of at least 250 ms; empty for shorter phases, and where several hosts or other processes carried it out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub timeline: Vec<TimelinePoint>,
    /// GPUs that the buffers were on; none for host memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu: Option<GpuActivity>,
    /// Progress on files and directories; none of other layers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub files: Option<FileActivity>,
    /// Time breakdown of the workers, with `--profile`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<Profile>,
    /// Utilisation of the accelerators of an application; none without accelerators.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub utilisation: Option<Utilisation>,
    /// Commits on the logs of an application; none without logs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commits: Option<CommitActivity>,
    /// The checkpoint that a stage of an application writes; none for other stages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkpoint: Option<CheckpointActivity>,
}

/// A checkpoint of an application.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CheckpointActivity {
    /// Ranks that wrote.
    pub ranks: u32,
    /// Files that they wrote, and made durable where that was asked for.
    pub files: u64,
    /// Bytes of them.
    pub bytes: u64,
    /// From the begin of the first to the end of the last, in nanoseconds.
    pub time_ns: u64,
    /// Bytes per second over that time.
    pub bytes_per_second: f64,
    /// Share of all checkpoints so far in the time of these and of the stages that compute, 0 to 1; none where none does.
    pub share_fraction: Option<f64>,
    /// Times of one of its checkpoints, where a stage may have several; none where no rank ended one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocking: Option<CheckpointBlocking>,
}

/// Times of a checkpoint, in nanoseconds of a rank and checkpoint in the mean.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CheckpointBlocking {
    /// Ranks copy their state and go on, and other processes write the copies.
    pub is_async: bool,
    /// Checkpoints that are complete: all their parts have their names, or are durable where they get none.
    pub checkpoints: u64,
    /// Checkpoints of all ranks, each rank counted: what the means are over.
    pub rank_checkpoints: u64,
    /// A rank stands still: all its calls, computing left out.
    pub blocking_ns: u64,
    /// The same of the rank that stands still longest.
    pub blocking_most_ns: u64,
    /// Part of it in which the state is copied; 0 where ranks write themselves.
    pub copy_ns: u64,
    /// Part of it in which a rank waits until the checkpoint before is flushed; 0 where ranks write themselves.
    pub stall_ns: u64,
    /// A rank computes before it.
    pub compute_ns: u64,
    /// The copy of a rank is written, made durable and closed, and gets its name; none where ranks write themselves.
    pub flush_ns: Option<u64>,
    /// Share of the flushes during which ranks went on, 0 to 1: neither waiting for them nor done; none where ranks write themselves.
    pub overlap_fraction: Option<f64>,
}

/// Commits of a stage on its logs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CommitActivity {
    /// Logs: each host with processes that append has one of its own.
    #[serde(default)]
    pub logs: u64,
    /// Commits that became durable.
    pub commits: u64,
    /// Syncs that made them so; 0 where a storage has nothing to sync.
    pub syncs: u64,
    /// Objects that groups of commits were written as, each with the records of one group; 0 where each process writes its own records into segments.
    #[serde(default, skip_serializing_if = "is_nothing")]
    pub objects: u64,
    /// Commits that one sync carried, in the mean; none without syncs.
    pub commits_per_sync: Option<f64>,
    /// Commits that one object carried, in the mean; none where groups are no objects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commits_per_object: Option<f64>,
    /// Most commits that one sync, or one object, carried.
    pub commits_per_sync_max: u64,
    /// Checkpoints that were whole: items written anew, and synced; none where the stage has none.
    pub checkpoints: Option<u64>,
    /// Records of logs that were read again.
    pub recovered_records: u64,
}

impl CommitActivity {
    /// Commits of one of so many; none where there are none.
    #[must_use]
    pub fn mean(commits: u64, of: u64) -> Option<f64> {
        (of > 0).then(|| commits as f64 / of as f64)
    }
}

fn is_nothing(number: &u64) -> bool {
    *number == 0
}

/// Utilisation of accelerators as MLPerf Storage defines it: the time that they computed over the time of the stage, without the iterations
/// that are left out at its beginning and end.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Utilisation {
    /// Accelerators that were measured.
    pub accelerators: u32,
    /// Steps of each that were measured; the fewest, where they differ.
    pub steps: u64,
    /// Time that they computed, of all together, in nanoseconds.
    pub compute_ns: u64,
    /// Time from the end of the last step that is left out at the beginning to the end of the last that is measured, of all together, in nanoseconds.
    pub time_ns: u64,
    /// Utilisation, 0 to 1: the mean of the accelerators.
    pub fraction: f64,
    /// That of the accelerator with the least.
    pub fraction_min: f64,
    /// Share of the time in which they waited for data or for each other, 0 to 1.
    pub waiting_fraction: f64,
    /// Utilisation that it must reach, 0 to 1; 0: nothing is asked of it.
    pub limit_fraction: f64,
    /// Whether it does.
    pub is_met: bool,
    /// Samples per second, of all together.
    pub samples_per_second: f64,
    /// Time of an epoch at that rate, in nanoseconds; none where none is described.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub epoch_ns: Option<u64>,
    /// Bytes of them per second, by the mean length of a sample.
    pub bytes_per_second: f64,
    /// Lower end of the 95 % interval of the utilisation, from its steps; none where there were too few.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub low_fraction: Option<f64>,
    /// Upper end of that interval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub high_fraction: Option<f64>,
    /// The search for the most accelerators that the storage feeds, as far as it was after this phase; none where there is no search.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub search: Option<AcceleratorSearch>,
}

/// Search for the most accelerators that a storage feeds. The last phase of the search has all of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AcceleratorSearch {
    /// Numbers of accelerators that were tried, in the order of their first runs.
    pub tries: Vec<AcceleratorTry>,
    /// Largest number that reached the utilisation; 0: none did.
    pub most: u64,
    /// Largest number that reached it beyond noise; 0: none did.
    pub surely_fed: u64,
    /// Smallest number that missed it beyond noise; none where none did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub surely_not_fed: Option<u64>,
    /// Reason why the search ended where it did; none while it goes on, and where it was cut short.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<String>,
}

/// A number of accelerators that was tried.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AcceleratorTry {
    /// The number.
    pub accelerators: u64,
    /// How often it was run: more than once where the first run was within noise of the limit.
    pub runs: u32,
    /// Utilisation, 0 to 1: the mean of the runs.
    pub fraction: f64,
    /// Lower end of its 95 % interval; none where there were too few steps.
    pub low_fraction: Option<f64>,
    /// Upper end of that interval.
    pub high_fraction: Option<f64>,
    /// Whether it reaches the limit.
    pub is_met: bool,
    /// Whether the limit lies within the interval: another run may end otherwise.
    pub is_near: bool,
}

/// Time of the workers of a phase, by what they did. Failed calls are in `other`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Profile {
    /// One entry a group: the groups of processes of an application, all workers together of other layers.
    pub groups: Vec<GroupProfile>,
}

/// Time of the workers of a group.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GroupProfile {
    /// Name of the group.
    pub name: String,
    /// Workers that were measured; those of an application are its processes.
    pub processes: u32,
    /// Time from the begin of the phase until the last call of all had come back, of all workers together, in nanoseconds.
    pub wall_ns: u64,
    /// Latencies add up to more than the time in which calls were in flight, because several were or had to wait: the time is divided among the kinds of
    /// calls in the ratio of their latencies.
    #[serde(default)]
    pub is_shared: bool,
    /// Parts of that time: they add up to it.
    pub parts: Vec<ProfilePart>,
}

impl GroupProfile {
    /// Share of a part of the time of the group, 0 to 1.
    #[must_use]
    pub fn share_of(&self, part: &ProfilePart) -> f64 {
        part.time_ns as f64 / self.wall_ns.max(1) as f64
    }
}

/// A part of the time of workers: a kind of call, `compute`, `wait` (for other processes), `starting` (before the first call), `filling`
/// buffers, `checking` what was read, `strata` (the tool itself), `schedule` (the next call was not due yet), `ended` (after the last call), `other`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProfilePart {
    /// Name.
    pub name: String,
    /// Calls that it had; 0 where it is none.
    pub calls: u64,
    /// Time of all workers together, in nanoseconds.
    pub time_ns: u64,
}

/// Progress of a phase on files and directories.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FileActivity {
    /// Items (or blocks of files without a tree) that there are after the phase, of all workers.
    pub items: u64,
    /// The stonewall with wear-out, where it was asked for and stood before all was done.
    #[serde(default)]
    pub stonewall: Option<StonewallActivity>,
    /// Outcome of a search.
    #[serde(default)]
    pub found: Option<FoundFiles>,
    /// Bytes that stores in this process took from what they lie on while the phase ran, beyond what was got ready before it.
    #[serde(default)]
    pub grown_bytes: Option<u64>,
}

impl FileActivity {
    /// Adds what another host did.
    pub fn add(&mut self, other: &Self) {
        self.items += other.items;
        match (&mut self.stonewall, other.stonewall) {
            (Some(all), Some(other)) => {
                all.after_ns = all.after_ns.min(other.after_ns);
                all.items_max = all.items_max.max(other.items_max);
                all.items_min = all.items_min.min(other.items_min);
                all.items += other.items;
            }
            (all @ None, other) => *all = other,
            (Some(_), None) => {}
        }
        match (&mut self.found, other.found) {
            (Some(all), Some(other)) => {
                all.entries += other.entries;
                all.matched += other.matched;
            }
            (all @ None, other) => *all = other,
            (Some(_), None) => {}
        }
    }
}

/// Work that was done when the stonewall stood, in items (or blocks of files without a tree).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StonewallActivity {
    /// When it stood, in nanoseconds after the first operation.
    pub after_ns: u64,
    /// Of the worker that had done most: each went on until it had done as much.
    pub items_max: u64,
    /// Of the worker that had done least.
    pub items_min: u64,
    /// Of all workers.
    pub items: u64,
}

/// Outcome of a search.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FoundFiles {
    /// Entries that were seen.
    pub entries: u64,
    /// Of these, entries that meet the conditions.
    pub matched: u64,
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

/// Counters of an interface during a phase, from the kernel (`/proc/net/dev`), and the size limits of its packets.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LinkActivity {
    /// Its owner: the label of a master or an endpoint; none for this process.
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
    /// Received packets that were dropped, and packets with errors.
    #[serde(default)]
    pub dropped_packets: u64,
    /// Its largest packet in bytes; none if unknown.
    #[serde(default)]
    pub mtu_bytes: Option<u64>,
    /// Largest packet that reaches the other side, according to the kernel (`IP_MTU`); none if unknown.
    #[serde(default)]
    pub path_mtu_bytes: Option<u64>,
}

/// Counters of an endpoint of an engine during a phase, for all its clients.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ServerActivity {
    /// Label of the endpoint, such as `0:2`.
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
    /// How its service thread waits for messages, if reported.
    #[serde(default)]
    pub poll: Option<Poll>,
}
