//! Observations of devices around a phase.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::cufile::Counters;
use crate::device::{Device, node_of_thread};
use crate::facts::GpuFacts;
use crate::nvml;

/// Seen of the devices of a phase.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GpuActivity {
    /// The devices of this machine, and the software that drives them.
    pub facts: GpuFacts,
    /// Requests that the kernel module nvidia-fs carried out during the phase, of all processes; none where it is not loaded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub direct_requests: Option<u64>,
    /// Workers whose device is attached to another NUMA node than the processor that they began on.
    #[serde(default)]
    pub far_workers: u32,
    /// Devices whose clocks were held back when the phase ended, and why: `GPU 0: power cap`. Empty where libnvidia-ml cannot tell.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub held_back: Vec<String>,
    /// Processes of others on a device when the phase ended, the most of them.
    #[serde(default)]
    pub other_processes: usize,
}

/// Workers of a phase whose devices are far from them.
#[derive(Clone, Debug, Default)]
pub struct FarWorkers(Arc<AtomicU32>);

impl FarWorkers {
    /// Notes a worker on the processor of this thread.
    pub fn note(&self, device: &Device) {
        let is_far = device.numa_node.zip(node_of_thread()).is_some_and(|(device, thread)| device != thread);
        self.0.fetch_add(u32::from(is_far), Ordering::Relaxed);
    }

    fn count(&self) -> u32 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Watches the devices of a phase.
#[derive(Debug)]
pub struct GpuWatch {
    facts: GpuFacts,
    counters: Option<Counters>,
}

impl GpuWatch {
    /// Begins before the phase, with the devices of these numbers (none: all); none where there are no devices.
    #[must_use]
    pub fn begin(numbers: &[u32]) -> Option<Self> {
        let mut facts = GpuFacts::read().ok()?;
        facts.devices.retain(|device| numbers.is_empty() || numbers.contains(&device.number));
        Some(Self { facts, counters: Counters::now() })
    }

    /// Observations until now.
    #[must_use]
    pub fn end(self, far: &FarWorkers) -> GpuActivity {
        let devices = self.facts.devices.iter();
        let states: Vec<_> =
            devices.filter_map(|device| Some((device.number, nvml::state(&device.pci_address)?))).collect();
        let held_back = states.iter().filter(|(_, state)| !state.held_back_by.is_empty());
        GpuActivity {
            direct_requests: self.counters.zip(Counters::now()).map(|(before, after)| after.since(before)),
            far_workers: far.count(),
            held_back: held_back
                .map(|(number, state)| format!("GPU {number}: {}", state.held_back_by.join(", ")))
                .collect(),
            other_processes: states.iter().map(|(_, state)| state.other_processes).max().unwrap_or(0),
            facts: self.facts,
        }
    }
}
