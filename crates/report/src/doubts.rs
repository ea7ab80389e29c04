//! Reasons not to believe a figure. Pure: everything is told from what was planned, measured and seen around it.
//!
//! docs/doubts.md lists every kind with what provokes it, when it stays silent, and the tests of both.

mod client;
mod machine;
mod network;
mod object;
mod path;
mod place;
mod rate;
mod remedy;
mod storage;
#[cfg(test)]
mod tests;

use host::{Environment, TargetEnvironment};
use statistics::{PhaseSamples, SteadyReason, Summary};
use workload::plan::PhasePlan;
use workload::spec::Warmup;
use workload::target::{TargetKind, TargetPlan};

use crate::record::{ArrivalOutcome, Doubt, Observations, PhaseRecord, Record, ToolCost};

/// All that doubts are told from.
#[derive(Clone, Copy, Debug)]
pub struct Evidence<'a> {
    /// Plan of the phase.
    pub plan: &'a PhasePlan,
    /// Samples that were measured.
    pub samples: &'a PhaseSamples,
    /// The figures computed from it.
    pub summary: &'a Summary,
    /// Observations around the phase.
    pub observations: &'a Observations,
    /// The machine.
    pub environment: &'a Environment,
    /// The open loop as it went.
    pub arrivals: Option<&'a ArrivalOutcome>,
    /// Cost of strata itself; without it the clock is not doubted.
    pub tool_cost: Option<&'a ToolCost>,
    /// Whether strata was built with debug assertions.
    pub debug_build: bool,
    /// Whether no other phase ran at the same time.
    pub is_alone: bool,
    /// Workers of all phases that ran at the same time, its own among them.
    pub stage_threads: u64,
}

impl<'a> Evidence<'a> {
    /// The evidence of a recorded phase.
    #[must_use]
    pub fn of(record: &'a Record, phase: &'a PhaseRecord) -> Self {
        let stage = || record.phases.iter().filter(|other| other.stage == phase.stage);
        Self {
            plan: &phase.plan,
            samples: &phase.samples,
            summary: &phase.summary,
            observations: &phase.observations,
            environment: &record.environment,
            arrivals: phase.arrivals.as_ref(),
            tool_cost: record.tool_cost.as_ref(),
            debug_build: record.debug_build,
            is_alone: stage().count() <= 1,
            stage_threads: stage().map(|other| u64::from(other.plan.load().threads)).sum(),
        }
    }

    fn targets(&self) -> impl Iterator<Item = &'a TargetPlan> {
        self.plan.targets().iter().filter(|target| target.kind.is_storage())
    }

    /// Facts about the place of a target, where known.
    fn place_of(&self, target: &TargetPlan) -> Option<&'a TargetEnvironment> {
        self.environment.targets.iter().find(|place| place.path.as_os_str() == target.path.as_str())
    }

    /// Whether it measures files or devices, and not strata, its own memory or a sink of the kernel.
    fn on_storage(&self) -> bool {
        self.targets().next().is_some()
    }

    /// Whether any of them is more than memory that looks like a file or a device.
    fn on_drives(&self) -> bool {
        self.targets().any(|target| self.place_of(target).and_then(place::memory_behind).is_none())
    }

    fn through_page_cache(&self) -> bool {
        let is_past_it = self.targets().all(|target| target.kind == TargetKind::Image);
        !is_past_it
            && self.on_drives()
            && !self.is_dax()
            && self.plan.media().is_some_and(|plan| !plan.options.direct)
    }

    /// Whether every file is mapped past the page cache.
    fn is_dax(&self) -> bool {
        self.observations.range.dax_fraction.is_some_and(|dax| dax >= 1.0)
    }

    /// Whether counters of devices and of the process count what this phase's samples do: they do not tell apart phases that
    /// ran together; they run over a delay and a warm-up that samples leave out; and samples are not whole where a worker failed.
    fn counts_match(&self) -> bool {
        let load = self.plan.load();
        self.is_alone
            && load.start_delay_ns == 0
            && !matches!(load.warmup, Warmup::Fixed(_))
            && self.samples.workers.iter().all(|worker| worker.failure.is_none())
    }

    fn logical_cores(&self) -> Option<f64> {
        self.environment.processor.logical_cores.map(f64::from)
    }

    /// Payload bytes of a class over the whole phase.
    fn bytes_of(&self, class: &str) -> u64 {
        self.summary.classes.iter().find(|found| found.class == class).map_or(0, |found| found.bytes)
    }
}

/// Why the rate of a phase is not steady though the series of its rates looks so: nothing completed for a time, or what hangs grows.
/// The phase's `steady` must say it, too ([`statistics::Steady::deny`]).
#[must_use]
pub fn unsteady(evidence: &Evidence<'_>) -> Option<SteadyReason> {
    rate::unsteady(evidence)
}

/// One reason to doubt: its name, how it is told, and what to do about it.
struct Kind {
    name: &'static str,
    /// Description of the evidence, in one sentence with figures; none when there is nothing to doubt.
    look: fn(&Evidence<'_>) -> Option<String>,
    remedy: &'static str,
}

/// Every kind, the gravest first: this is the order in which they are shown.
const KINDS: &[Kind] = &[
    Kind {
        name: "debug_build",
        look: rate::debug_build,
        remedy: "build with `make`, or `cargo build --release`, and measure again",
    },
    Kind {
        name: "too_short",
        look: rate::too_short,
        remedy: "run longer (--time 10s or more), or take out --count and --bytes limits",
    },
    Kind {
        name: "not_steady",
        look: rate::not_steady,
        remedy: "run longer; write a drive over twice first; look at the series in the record for what changes",
    },
    Kind {
        name: "rate_dropped",
        look: rate::rate_dropped,
        remedy: "use up the cache first (a pass over more than was done by then, or --warmup DURATION), or move less",
    },
    Kind {
        name: "unfinished_operations",
        look: rate::unfinished_operations,
        remedy: "find out what hangs (`dmesg`, the target's own log); figures with >= are lower bounds",
    },
    Kind {
        name: "memory_target",
        look: storage::memory_target,
        remedy: "choose a target on a drive (`df -T` shows file systems); `mem:` measures memory",
    },
    Kind {
        name: "direct_not_honoured",
        look: path::direct_not_honoured,
        remedy: "ask what lies between for direct I/O too (its options), or measure the device below it",
    },
    Kind {
        name: "page_cache",
        look: storage::page_cache,
        remedy: "read with --direct, or --cache drop and one pass over the range; if you mean memory, --cache warm",
    },
    Kind {
        name: "unwritten_range",
        look: storage::unwritten_range,
        remedy: "write the whole range once (--op write) before reading it",
    },
    Kind {
        name: "encoded_extents",
        look: path::encoded_extents,
        remedy: "write the file anew, with random data, in a directory without compression, reflinks and snapshots",
    },
    Kind {
        name: "read_amplification",
        look: path::read_amplification,
        remedy: "read with --direct, or lower the read-ahead (blockdev --setra), unless your application reads like this",
    },
    Kind {
        name: "found_nothing",
        look: object::found_nothing,
        remedy: "store the data first (leave out --no-fill), with the same --objects, --dkeys and --class",
    },
    Kind {
        name: "buffered_writes",
        look: storage::buffered_writes,
        remedy: "write with --direct or --sync dsync; or one pass over a range larger than memory with --end-fsync",
    },
    Kind {
        name: "volatile_cache",
        look: path::volatile_cache,
        remedy: "mount with barriers; set queue/write_cache to what the drive says; choose a cache mode that keeps flushes",
    },
    Kind {
        name: "not_durable",
        look: object::not_durable,
        remedy: "leave out --durability: an update then counts as done when it is durable, and updates in flight share a sync",
    },
    Kind {
        name: "unwritten_extents",
        look: path::unwritten_extents,
        remedy: "lay the file out with data first (--layout fill), or write it twice and take the second pass",
    },
    Kind {
        name: "nearly_full",
        look: path::nearly_full,
        remedy: "free some space, or use another file system: allocation slows down where little is free",
    },
    Kind {
        name: "compressible_content",
        look: storage::compressible_content,
        remedy: "write --content random with --refill full (the defaults), unless your data are like this",
    },
    Kind {
        name: "client_saturated",
        look: client::client_saturated,
        remedy: "use more threads (-t) on cores of their own (--cores), larger blocks, or --refill stamp",
    },
    Kind {
        name: "kernel_workers",
        look: client::kernel_workers,
        remedy: "use --direct, or engine psync with more threads",
    },
    Kind {
        name: "store_grew",
        look: object::store_grew,
        remedy: "let the store take its space before (--allocate whole), or write a number of values (without --time)",
    },
    Kind {
        name: "paging",
        look: object::paging,
        remedy: "use fewer keys or a smaller --scm, so that store and index fit memory; or a directory on /dev/shm or DAX",
    },
    Kind {
        name: "cpu_throttled",
        look: machine::cpu_throttled,
        remedy: "raise the quota (cpu.max, docker --cpus, limits.cpu), or use fewer threads than it allows",
    },
    Kind {
        name: "io_throttled",
        look: machine::io_throttled,
        remedy: "take the limit away (io.max, blkio.throttle.*), unless it is what you measure",
    },
    Kind {
        name: "loopback",
        look: network::loopback,
        remedy: "to measure a link, run the engine on another machine; for strata and the kernel alone, this is it",
    },
    Kind {
        name: "cpu_bound",
        look: network::cpu_bound,
        remedy: "use more threads on cores of their own (-t, --cores), more endpoints, or larger payloads",
    },
    Kind {
        name: "remote_numa",
        look: network::remote_numa,
        remedy: "choose the interface on the workers' node (--interface; `strata net scan`), or pin them (--numa)",
    },
    Kind {
        name: "mtu_mismatch",
        look: network::mtu_mismatch,
        remedy: "set the same MTU on both sides and on every switch between (ip link set DEV mtu N)",
    },
    Kind {
        name: "retransmits",
        look: network::retransmits,
        remedy: "look for drops (`ethtool -S DEV`, `ip -s link`), duplex, cables and full queues of switches",
    },
    Kind {
        name: "link_shared",
        look: network::link_shared,
        remedy: "stop what else uses the interface (see `ip -s link`), and measure again",
    },
    Kind {
        name: "uneven_endpoints",
        look: network::uneven_endpoints,
        remedy: "use --order pinned, so that it does not hold up the others, and look at that host",
    },
    Kind {
        name: "all_processors_busy",
        look: machine::all_processors_busy,
        remedy: "use fewer threads than processors; if the load needs more, this machine is too small to drive it",
    },
    Kind {
        name: "other_load",
        look: machine::other_load,
        remedy: "stop what else runs on this machine, or on its host (see `top`), and measure again",
    },
    Kind {
        name: "other_io",
        look: machine::other_io,
        remedy: "stop what else uses the device (see `iostat`), and let earlier writes reach it first (`sync`)",
    },
    Kind {
        name: "generator_late",
        look: rate::generator_late,
        remedy: "leave processors free for strata (fewer threads, --cores, less other load), or ask for a lower --rate",
    },
    Kind {
        name: "arrivals_unserved",
        look: rate::arrivals_unserved,
        remedy: "ask for a lower --rate, or allow more in flight (-t, -q); latencies are those of an overloaded target",
    },
    Kind {
        name: "clock",
        look: machine::clock,
        remedy: "look whether the host sleeps or migrates; times are off by this much",
    },
    Kind {
        name: "frequency_scaling",
        look: machine::frequency_scaling,
        remedy: "choose the governor `performance` (cpupower frequency-set -g performance) and measure again",
    },
];

/// Names of all kinds, in the order in which they are shown.
pub fn kinds() -> impl Iterator<Item = &'static str> {
    KINDS.iter().map(|kind| kind.name)
}

/// The remedy of each kind as strata words it, beside its name.
pub fn remedies() -> impl Iterator<Item = (&'static str, &'static str)> {
    KINDS.iter().map(|kind| (kind.name, kind.remedy))
}

/// Every reason to doubt the figures of a phase, the gravest first.
#[must_use]
pub fn find(evidence: &Evidence<'_>) -> Vec<Doubt> {
    // No figure of it is what was asked for.
    if evidence.plan.is_fill() {
        return Vec::new();
    }
    let doubt = |kind: &Kind| {
        let detail = (kind.look)(evidence)?;
        let remedy = remedy::instead(kind.name, evidence).unwrap_or(kind.remedy);
        Some(Doubt { kind: kind.name.to_owned(), detail, remedy: remedy.to_owned() })
    };
    KINDS.iter().filter_map(doubt).collect()
}
