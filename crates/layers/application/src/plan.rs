//! Plan of a stage of an application: every expression evaluated, every name a number.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::{ByteSize, clean, counted};
use workload::plan::{LayerPlan, LoadPlan, Terms};

use crate::operation::AppClass;

pub(crate) mod hosts;
mod log;
mod set;

pub use log::LogPlan;
pub(crate) use log::LogShare;
pub(crate) use set::LAYOUTS;
pub use set::{Layout, SetPlan, Space};

/// Bytes of the value of an index: where an item lies.
pub(crate) const INDEX_VALUE_BYTES: u64 = 32;

/// A call of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CallPlan {
    /// Call.
    pub class: AppClass,
    /// Number of its set.
    pub set: u16,
    /// Issued on every Nth item.
    pub every: u64,
}

/// Items that a step works on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Selection {
    /// The step has its own, or none.
    #[default]
    Own,
    /// Items of another step in the same iteration.
    Same,
    /// Items of its last iteration.
    Last,
    /// All of its items.
    All,
}

/// How a computation spends its time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ComputeWith {
    /// Asleep: the computation does not use this CPU.
    #[default]
    Sleep,
    /// Busy.
    Busy,
}

/// A step that must have been done before another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AfterPlan {
    /// Its group in the stage.
    pub group: u16,
    /// Its number in the group.
    pub step: u16,
    /// Number of iterations that it may lag behind.
    pub lag: u64,
}

/// Part of an item's number in messages.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Dimension {
    /// Name.
    pub name: String,
    /// Number of its values.
    pub count: u64,
}

/// A step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StepPlan {
    /// Name.
    pub name: String,
    /// Numbering of its items.
    pub space: Space,
    /// Items of them.
    pub selection: Selection,
    /// Items per process and iteration, if the iterations go through all items in turn; 0: the processes share all items in each iteration.
    pub items: u64,
    /// These items are those of all processes of the group together.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub together: bool,
    /// Items to skip before the first.
    #[serde(default, skip_serializing_if = "is_nothing")]
    pub skip: u64,
    /// Reshuffled in each pass.
    pub shuffled: bool,
    /// Calls at the start of the first iteration.
    pub once: Vec<CallPlan>,
    /// Calls at the start of each iteration.
    pub begin: Vec<CallPlan>,
    /// Calls on each item.
    pub each: Vec<CallPlan>,
    /// Calls at the end of each iteration.
    pub end: Vec<CallPlan>,
    /// Length of a computation, in nanoseconds.
    pub compute_ns: u64,
    /// How it is spent.
    pub compute_with: ComputeWith,
    /// Steps that it waits for.
    pub after: Vec<AfterPlan>,
    /// Parts of an item's number.
    pub dimensions: Vec<Dimension>,
}

impl StepPlan {
    /// Items of a process in an iteration: the first of their numbers in the pass, and how many.
    #[inline]
    #[must_use]
    pub fn share(&self, process: u64, processes: u64, iteration: u64) -> (u64, u64) {
        let cut =
            |total: u64, part: u64| (u128::from(total) * u128::from(part) / u128::from(processes)) as u64;
        let part_of = |total: u64| {
            let first = cut(total, process);
            (first, cut(total, process + 1) - first)
        };
        match self.selection {
            Selection::Own => {
                ((iteration * self.space.processes + process) * self.space.items, self.space.items)
            }
            Selection::Same | Selection::Last => {
                let at =
                    if self.selection == Selection::Same { iteration } else { self.space.iterations - 1 };
                let (first, count) = part_of(self.space.of_iteration());
                (at * self.space.of_iteration() + first, count)
            }
            Selection::All if self.items == 0 => part_of(self.space.total()),
            Selection::All if self.together => {
                let (first, count) = part_of(self.items);
                (self.skip + iteration * self.items + first, count)
            }
            Selection::All => (self.skip + (iteration * processes + process) * self.items, self.items),
        }
    }

    /// All its calls.
    pub fn calls(&self) -> impl Iterator<Item = &CallPlan> {
        self.once.iter().chain(&self.begin).chain(&self.each).chain(&self.end)
    }
}

fn is_nothing(number: &u64) -> bool {
    *number == 0
}

/// How the utilisation of accelerators is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UtilisationPlan {
    /// Required utilisation in thousandths; 0: no limit.
    pub permille_min: u64,
    /// Excluded iterations at the start.
    pub first: u64,
    /// Excluded iterations at the end.
    pub last: u64,
    /// Samples per accelerator and iteration.
    pub samples: u64,
    /// Mean bytes of a sample.
    pub sample_bytes: u64,
    /// Samples per epoch over all accelerators; 0: the time of an epoch is not reported.
    #[serde(default, skip_serializing_if = "is_nothing")]
    pub epoch_samples: u64,
}

/// Processes with the same steps.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GroupPlan {
    /// Name.
    pub name: String,
    /// Number of processes.
    pub processes: u32,
    /// Number of iterations of its steps.
    pub iterations: u64,
    /// Name of an iteration, for messages.
    pub iteration: String,
    /// How the utilisation is computed, if its processes are accelerators.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub utilisation: Option<UtilisationPlan>,
    /// Its stage is a checkpoint.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub checkpoint: bool,
    /// Its steps.
    pub steps: Vec<StepPlan>,
}

/// A parameter and its value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ParameterPlan {
    /// Name.
    pub name: String,
    /// Value, as given or by default.
    pub value: String,
}

/// A stage of an application on a target.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AppPlan {
    /// Name in tables: the stage's.
    pub name: String,
    /// Application.
    pub application: String,
    /// Version of its description.
    pub version: String,
    /// Driver of the target.
    pub engine: String,
    /// Library that writes HDF5 files, with version and file; none if all objects are raw.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hdf5_library: Option<String>,
    /// Memory of the buffers.
    #[serde(default, skip_serializing_if = "gpu::MemoryPlan::is_host")]
    pub memory: gpu::MemoryPlan,
    /// Target.
    pub target: String,
    /// Its place among compared targets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub beside: Option<crate::beside::BesidePlan>,
    /// Options of the target's layer.
    pub target_options: Vec<ParameterPlan>,
    /// Lines for the notes of the record.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// Values of its parameters.
    pub parameters: Vec<ParameterPlan>,
    /// Sets of the whole application.
    pub sets: Vec<SetPlan>,
    /// Groups of processes of the stage.
    pub groups: Vec<GroupPlan>,
    /// Every byte that is read is checked.
    pub verify: bool,
    /// Skipped calls that the target does not support.
    pub left_out: Vec<String>,
    /// Data that is written stays in the page cache until it is synced.
    pub is_cached: bool,
    /// The target runs in this process.
    pub is_in_process: bool,
    /// Whether it is the first stage of its application, so that no earlier stage has used space.
    pub is_first: bool,
    /// Seed of the content of all stages.
    pub content_seed: u64,
    /// How the load is generated: one thread per process.
    pub load: LoadPlan,
}

impl AppPlan {
    /// Group of a process of the stage, and its number in the group. Each host has as many of each group that can be dealt out so; the processes
    /// of the other groups fill the places that are left on the hosts, in their order.
    #[must_use]
    pub fn process(&self, worker: u32) -> Option<(usize, u32)> {
        let hosts = self.load.place.map_or(1, |place| place.hosts.max(1));
        hosts::dealt(&self.groups, hosts, worker)
    }

    /// Sets that are staged, each with the group whose processes stage its items.
    pub(crate) fn staged(&self) -> impl Iterator<Item = (usize, u16)> {
        let groups = self.groups.iter().enumerate();
        let calls = groups
            .flat_map(|(at, group)| group.steps.iter().flat_map(StepPlan::calls).map(move |call| (at, call)));
        calls.filter(|(_, call)| call.class == AppClass::Copy).map(|(at, call)| (at, call.set))
    }

    /// Numbers of the processes of a group that are of this host.
    pub fn processes_here(&self, group: usize) -> impl Iterator<Item = u32> {
        let here = (0..self.load.threads).filter_map(|worker| self.process(self.load.worker(worker)));
        here.filter(move |(of, _)| *of == group).map(|(_, process)| process)
    }

    /// Processes of the stage.
    #[must_use]
    pub fn processes(&self) -> u32 {
        self.groups.iter().map(|group| group.processes).sum()
    }

    /// Most bytes that one call moves.
    #[must_use]
    pub fn transfer_bytes_max(&self) -> u64 {
        let of = |set: &SetPlan| if set.is_index { INDEX_VALUE_BYTES } else { set.transfer_bytes };
        self.sets.iter().map(of).max().unwrap_or(INDEX_VALUE_BYTES)
    }

    /// Classes of its calls, by index.
    #[must_use]
    pub fn classes(&self) -> Vec<usize> {
        let steps = || self.groups.iter().flat_map(|group| &group.steps);
        let mut classes: Vec<usize> =
            steps().flat_map(StepPlan::calls).map(|call| call.class as usize).collect();
        if steps().any(|step| !step.after.is_empty()) {
            classes.push(AppClass::Wait as usize);
        }
        // What is around a commit is a part of it.
        let apart = steps().flat_map(StepPlan::calls).filter(|call| call.class.is_of_log());
        let apart = apart.filter(|call| call.class != AppClass::Commit);
        let around = apart.flat_map(|call| self.sets[usize::from(call.set)].around(call.class));
        let is_there = |class: &&AppClass| !self.left_out.iter().any(|name| name == class.name());
        classes.extend(around.filter(is_there).map(|class| *class as usize));
        classes.sort_unstable();
        classes.dedup();
        classes
    }

    /// Value of a parameter.
    #[must_use]
    pub fn parameter(&self, name: &str) -> Option<&str> {
        self.parameters
            .iter()
            .find(|parameter| parameter.name == name)
            .map(|parameter| parameter.value.as_str())
    }
}

const TERMS: Terms = Terms {
    size: "item size",
    size_column: "item",
    size_points: "item sizes",
    operations: "calls",
    ..Terms::COMMON
};

impl LayerPlan for AppPlan {
    workload::plan_parts!("application");

    fn operation_name(&self) -> &'static str {
        "app"
    }

    fn operation_size(&self) -> String {
        ByteSize(self.operation_bytes_max()).to_string()
    }

    fn operation_bytes_max(&self) -> u64 {
        self.sets.iter().filter(|set| !set.is_index).map(|set| set.size_bytes_max).max().unwrap_or(0)
    }

    fn operation_words(&self) -> String {
        let groups = self.groups.iter().map(|group| {
            format!("{} {} x {}", group.processes, group.name, counted(group.iterations, "iteration"))
        });
        format!("{}: {}", clean(&self.application), groups.collect::<Vec<_>>().join(" and "))
    }

    fn manner(&self) -> Vec<String> {
        let mut words = vec![clean(&self.engine).into_owned()];
        if self.verify {
            words.push("verified".to_owned());
        }
        words.extend(self.memory.words());
        words.extend(
            self.target_options.iter().map(|option| format!("{} {}", option.name, clean(&option.value))),
        );
        words
    }

    fn target_names(&self) -> Vec<&str> {
        vec![&self.target]
    }

    fn terms(&self) -> &'static Terms {
        &TERMS
    }

    fn fields(&self) -> Vec<(&'static str, String)> {
        let values =
            self.parameters.iter().map(|parameter| format!("{}={}", parameter.name, parameter.value));
        let values = values.collect::<Vec<_>>().join(" ");
        let own = [("application", self.application.clone()), ("parameters", values)];
        let pass = self.beside.as_ref().map(|beside| ("pass", beside.pass.to_string()));
        own.into_iter().chain(pass).collect()
    }

    fn profile_groups(&self) -> Vec<&str> {
        self.groups.iter().map(|group| group.name.as_str()).collect()
    }

    fn profile_group(&self, worker: u32) -> Option<usize> {
        self.process(self.load.worker(worker)).map(|(group, _)| group)
    }

    /// Processes that write what others have staged.
    fn works_behind(&self, group: &str) -> bool {
        let staged: Vec<(usize, u16)> = self.staged().collect();
        let writes_staged = |at: usize, group: &GroupPlan| {
            let mut calls = group.steps.iter().flat_map(StepPlan::calls);
            calls.any(|call| {
                call.class.writes() && staged.iter().any(|(by, set)| *by != at && *set == call.set)
            })
        };
        self.groups.iter().enumerate().any(|(at, one)| one.name == group && writes_staged(at, one))
    }

    fn is_busy_on_purpose(&self) -> bool {
        let is_busy = |step: &StepPlan| step.compute_ns > 0 && step.compute_with == ComputeWith::Busy;
        self.is_in_process || self.groups.iter().flat_map(|group| &group.steps).any(is_busy)
    }

    fn meets_to_prepare(&self) -> bool {
        self.sets.iter().any(|set| set.parallel.is_some())
    }

    fn stops_to_sync(&self) -> bool {
        let mut steps = self.groups.iter().flat_map(|group| &group.steps);
        steps.any(|step| step.calls().any(|call| matches!(call.class, AppClass::Sync | AppClass::Commit)))
    }
}

#[cfg(test)]
mod tests;
