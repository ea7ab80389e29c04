//! Reasons not to believe a figure. Pure: everything is told from what was planned, measured and seen around it.
//!
//! docs/doubts.md lists every kind with what provokes it, when it stays silent, and the tests of both.

mod gpu;
mod machine;
mod rate;
#[cfg(test)]
mod tests;

use host::Environment;
use statistics::{PhaseSamples, SteadyReason, Summary};
use units::percent;
use workload::plan::PhasePlan;
use workload::spec::Warmup;

use crate::record::{ArrivalOutcome, Doubt, Observations, PhaseRecord, Record, ToolCost};
use crate::view::{self, View};

/// Share of its time that filling, checking and counting may take a worker.
const TOOL_SHARE_MAX: f64 = 0.25;
/// Time from which on a phase that is too short is not helped by the usual advice, nanoseconds.
const LONG_NS: u64 = 10_000_000_000;
const LONGER_STILL: &str = "run several times longer, or with more operations in flight (-t, -q): too few operations complete for these results";

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
    /// Whether the compiler optimized all of strata.
    pub optimized_build: bool,
    /// Whether no other phase ran at the same time.
    pub is_alone: bool,
    /// Workers of all phases that ran at the same time, its own among them.
    pub stage_threads: u64,
    /// Whether it is one of several passes, from whose differences every interval comes: its own window claims nothing.
    pub is_pass: bool,
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
            optimized_build: record.optimized_build,
            is_alone: stage().count() <= 1,
            stage_threads: stage().map(|other| u64::from(other.plan.load().threads)).sum(),
            is_pass: record.stack.as_ref().is_some_and(|stack| stack.pass_count > 1),
        }
    }

    /// Whether counters of devices and of the process count what this phase's samples do: they do not tell apart phases that
    /// ran together; they run over a delay and a warm-up that samples leave out; and samples are not whole where a worker failed.
    #[must_use]
    pub fn counts_match(&self) -> bool {
        let load = self.plan.load();
        self.is_alone
            && load.start_delay_ns == 0
            && !matches!(load.warmup, Warmup::Fixed(_))
            && self.samples.workers.iter().all(|worker| worker.failure.is_none())
    }

    /// Processors of the machine, where known.
    #[must_use]
    pub fn logical_cores(&self) -> Option<f64> {
        self.environment.processor.logical_cores.map(f64::from)
    }

    /// The share of a worker's time that strata itself took, in words, where the rate is strata's as much as the target's.
    #[must_use]
    pub fn tool_took(&self) -> Option<String> {
        let share = self.summary.tool_share_max.min(1.0);
        (share > TOOL_SHARE_MAX).then(|| format!("strata itself took {} of a worker's time", percent(share)))
    }

    /// Payload bytes of a class over the whole phase.
    #[must_use]
    pub fn bytes_of(&self, class: &str) -> u64 {
        self.summary.classes.iter().find(|found| found.class == class).map_or(0, |found| found.bytes)
    }
}

pub(crate) use machine::{others_cpus_max, throttled_share, used_by_others};

/// Why the rate of a phase is not steady though the series of its rates looks so: nothing completed for a time, or what hangs grows.
/// The phase's `steady` must say it, too ([`statistics::Steady::deny`]).
#[must_use]
pub fn unsteady(evidence: &Evidence<'_>) -> Option<SteadyReason> {
    rate::unsteady(evidence)
}

/// One reason to doubt: its name, how it is told, and what to do about it.
pub struct Kind {
    /// Place in the order of all kinds, the gravest (lowest) first. Kinds of the same name have the same.
    pub rank: u32,
    /// Its name: `too_short`.
    pub name: &'static str,
    /// Description of the evidence, in one sentence with figures; none when there is nothing to doubt.
    pub look: fn(&Evidence<'_>) -> Option<String>,
    /// Advice on how to avoid it, in a line.
    pub remedy: &'static str,
}

/// Time that strata itself takes, which layers tell of their own; `look` is theirs.
pub const CLIENT_SATURATED: Kind = Kind {
    rank: 190,
    name: "client_saturated",
    look: |_| None,
    remedy: "use more threads (-t) on cores of their own (--cores), larger blocks, or --refill stamp",
};

/// A load that leaves this machine over no link, which layers tell of their own; `look` is theirs.
pub const LOOPBACK: Kind = Kind {
    rank: 250,
    name: "loopback",
    look: |_| None,
    remedy: "run the engine on another machine to measure a link; loopback shows software overhead only",
};

/// Kinds that phases of any layer may raise.
const KINDS: &[Kind] = &[
    Kind {
        rank: 10,
        name: "debug_build",
        look: rate::debug_build,
        remedy: "build with `make`, or `cargo build --release`, and measure again",
    },
    Kind {
        rank: 15,
        name: "less_optimized",
        look: rate::less_optimized,
        remedy: "build with `make`, or `cargo build --release`, and measure again",
    },
    Kind {
        rank: 20,
        name: "too_short",
        look: rate::too_short,
        remedy: "run longer (--time 10s or more), or take out --count and --bytes limits",
    },
    Kind {
        rank: 30,
        name: "not_steady",
        look: rate::not_steady,
        remedy: "run longer; for a drive, overwrite it twice first; see the series in the record for what changes",
    },
    Kind {
        rank: 40,
        name: "rate_dropped",
        look: rate::rate_dropped,
        remedy: "fill the cache first (a pass over more than was done by then, or --warmup DURATION), or move less data",
    },
    Kind {
        rank: 50,
        name: "unfinished_operations",
        look: rate::unfinished_operations,
        remedy: "find out what hangs (`dmesg`, the target's log); values with >= are lower bounds",
    },
    Kind {
        rank: 182,
        name: "gpu_staged",
        look: gpu::staged,
        remedy: "load nvidia-fs, and use a file system and drive that it supports (see `gdscheck -p`), or a staged path",
    },
    Kind {
        rank: 184,
        name: "gpu_far",
        look: gpu::far,
        remedy: "bind workers to CPUs near their GPU (see `nvidia-smi topo -m`), or choose GPUs that are nearer",
    },
    Kind {
        rank: 186,
        name: "gpu_clocks",
        look: gpu::held_back,
        remedy: "cool the device, or raise its power limit (see `nvidia-smi -q -d PERFORMANCE`)",
    },
    Kind {
        rank: 188,
        name: "gpu_shared",
        look: gpu::shared,
        remedy: "stop the other processes on the device (see `nvidia-smi`), or choose another device",
    },
    Kind {
        rank: 230,
        name: "cpu_throttled",
        look: machine::cpu_throttled,
        remedy: "raise the quota (cpu.max, docker --cpus, limits.cpu), or use fewer threads than it allows",
    },
    Kind {
        rank: 320,
        name: "all_processors_busy",
        look: machine::all_processors_busy,
        remedy: "use fewer threads than CPUs; if the load needs more, this machine is too small to generate it",
    },
    Kind {
        rank: 330,
        name: "other_load",
        look: machine::other_load,
        remedy: "stop other processes on this machine (see `top`) and other load on its host, then measure again",
    },
    Kind {
        rank: 350,
        name: "generator_late",
        look: rate::generator_late,
        remedy: "leave CPUs free for strata (fewer threads, --cores, less other load), or ask for a lower --rate",
    },
    Kind {
        rank: 360,
        name: "arrivals_unserved",
        look: rate::arrivals_unserved,
        remedy: "ask for a lower --rate, or allow more in flight (-t, -q); latencies are those of an overloaded target",
    },
    Kind {
        rank: 370,
        name: "clock",
        look: machine::clock,
        remedy: "check whether the host sleeps or migrates; all times are wrong by this much",
    },
    Kind {
        rank: 380,
        name: "frequency_scaling",
        look: machine::frequency_scaling,
        remedy: "set the governor `performance` (cpupower frequency-set -g performance) and measure again",
    },
];

/// Names and remedies of all kinds, those of layers among them, the gravest first.
fn all() -> Vec<(u32, &'static str, &'static str)> {
    let own = view::all().into_iter().flat_map(View::doubts);
    let mut all: Vec<_> = KINDS.iter().chain(own).map(|kind| (kind.rank, kind.name, kind.remedy)).collect();
    all.sort_unstable();
    all.dedup_by_key(|(_, name, _)| *name);
    all
}

/// Names of all kinds, in the order in which they are shown.
pub fn kinds() -> impl Iterator<Item = &'static str> {
    all().into_iter().map(|(_, name, _)| name)
}

/// The remedy of each kind as strata words it, beside its name.
pub fn remedies() -> impl Iterator<Item = (&'static str, &'static str)> {
    all().into_iter().map(|(_, name, remedy)| (name, remedy))
}

/// Advice for a kind whose usual remedy names what is already so.
fn instead(kind: &Kind, evidence: &Evidence<'_>) -> Option<&'static str> {
    if kind.name == "too_short" && evidence.samples.elapsed_ns >= LONG_NS {
        return Some(LONGER_STILL);
    }
    view::of(evidence.plan.layer()).remedy(kind.name, evidence)
}

/// Every reason to doubt the figures of a phase, the gravest first.
#[must_use]
pub fn find(evidence: &Evidence<'_>) -> Vec<Doubt> {
    // No figure of it is what was asked for.
    if evidence.plan.is_fill() {
        return Vec::new();
    }
    let own = view::of(evidence.plan.layer()).doubts();
    let mut kinds: Vec<&Kind> = KINDS.iter().chain(own).collect();
    kinds.sort_by_key(|kind| kind.rank);
    let doubt = |kind: &Kind| {
        let detail = (kind.look)(evidence)?;
        let remedy = instead(kind, evidence).unwrap_or(kind.remedy);
        Some(Doubt { kind: kind.name.to_owned(), detail, remedy: remedy.to_owned() })
    };
    kinds.into_iter().filter_map(doubt).collect()
}
