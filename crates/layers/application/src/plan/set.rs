//! Sets of objects, and where their items lie.

use layer::storage::{Dataset, ObjectFormat, Transfers};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::LogPlan;

/// Items that share an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Layout {
    /// Each item has its own object.
    Item,
    /// Items of a process.
    Process,
    /// Items of an iteration.
    Iteration,
    /// Items of a process in an iteration.
    ProcessIteration,
    /// All items.
    Shared,
}

/// Names of the layouts.
pub(crate) const LAYOUTS: &[(&str, Layout)] = &[
    ("item", Layout::Item),
    ("process", Layout::Process),
    ("iteration", Layout::Iteration),
    ("process-iteration", Layout::ProcessIteration),
    ("shared", Layout::Shared),
];

/// Numbers of the items of a set: item `k` of process `p` in iteration `i` has the number `(i x processes + p) x items + k`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Space {
    /// Iterations of the step that writes it.
    pub iterations: u64,
    /// Processes of its group.
    pub processes: u64,
    /// Items of each process in an iteration.
    pub items: u64,
}

impl Space {
    /// Items of an iteration.
    #[inline]
    #[must_use]
    pub fn of_iteration(&self) -> u64 {
        self.processes * self.items
    }

    /// All items.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.iterations * self.of_iteration()
    }
}

fn one() -> u64 {
    1
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_one(number: &u64) -> bool {
    *number == 1
}

/// A set of objects.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SetPlan {
    /// Name.
    pub name: String,
    /// Whether its objects are indexes of key-values.
    pub is_index: bool,
    /// Items that share an object.
    pub layout: Layout,
    /// In an object of several processes, items of the same number follow each other; otherwise the items of the same process.
    pub by_item: bool,
    /// Smallest item, in bytes.
    pub size_bytes_min: u64,
    /// Largest item, in bytes: the distance of items in an object.
    pub size_bytes_max: u64,
    /// Step between the possible item sizes, in bytes.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub size_step_bytes: u64,
    /// Most bytes that one call moves.
    pub transfer_bytes: u64,
    /// Numbering of its items.
    pub space: Space,
    /// The set of arrays whose items an index finds.
    pub describes: Option<u16>,
    /// Objects are created under a temporary name and renamed.
    pub is_renamed: bool,
    /// The log, if the set is one: records in append order, in segments.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log: Option<LogPlan>,
    /// A sync covers data and sizes, but not times: `fdatasync`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub data_sync: bool,
    /// Form of its objects on the target.
    #[serde(default)]
    pub format: ObjectFormat,
    /// Datasets of an object that is not raw: equal in bytes, one after another in the offsets of the object.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub datasets: Vec<Dataset>,
    /// Transfers of its objects, if the hosts share them as MPI ranks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parallel: Option<Transfers>,
}

impl SetPlan {
    /// Objects of the set.
    #[must_use]
    pub fn objects(&self) -> u64 {
        if self.log.is_some() {
            return self.log_segments();
        }
        let Space { iterations, processes, .. } = self.space;
        match self.layout {
            Layout::Item => self.space.total(),
            Layout::Process => processes,
            Layout::Iteration => iterations,
            Layout::ProcessIteration => iterations * processes,
            Layout::Shared => 1,
        }
    }

    /// Bytes of the largest object.
    #[must_use]
    pub fn object_bytes(&self) -> u64 {
        if let Some(log) = &self.log {
            return log.segment_bytes;
        }
        let objects = self.objects().max(1);
        (self.space.total() / objects).saturating_mul(self.size_bytes_max)
    }

    /// Object of an item, and where it begins there; of a log, those of the record at place `item`.
    #[inline]
    #[must_use]
    pub fn place(&self, item: u64) -> (u64, u64) {
        let stride = self.size_bytes_max;
        if self.log.is_some() {
            let records = self.segment_records();
            return (item / records, item % records * stride);
        }
        let Space { processes, items, .. } = self.space;
        match self.layout {
            Layout::Item => (item, 0),
            Layout::Shared => (0, item * stride),
            Layout::ProcessIteration => (item / items, item % items * stride),
            Layout::Process => {
                let (turn, k) = (item / items, item % items);
                (turn % processes, (turn / processes * items + k) * stride)
            }
            Layout::Iteration => {
                let all = processes * items;
                let (iteration, within) = (item / all, item % all);
                let at = if self.by_item { within % items * processes + within / items } else { within };
                (iteration, at * stride)
            }
        }
    }

    /// Bytes of an item.
    #[inline]
    #[must_use]
    pub fn size(&self, item: u64) -> u64 {
        let range = self.size_bytes_max - self.size_bytes_min;
        if range == 0 {
            return self.size_bytes_max;
        }
        let step = self.size_step_bytes.max(1);
        self.size_bytes_min + units::random::mix64(item ^ 0x5bd1_e995) % (range / step + 1) * step
    }

    /// Bytes of all items, about where sizes differ.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        if let Some(log) = self.log.as_ref().filter(|log| log.is_preallocated) {
            return self.objects().saturating_mul(log.segment_bytes);
        }
        let mean = self.size_bytes_min / 2
            + self.size_bytes_max / 2
            + (self.size_bytes_min & self.size_bytes_max & 1);
        self.space.total().saturating_mul(mean)
    }
}
