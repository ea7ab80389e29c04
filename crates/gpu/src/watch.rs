//! Observations of devices around a phase.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::cufile::Counters;
use crate::device::{Device, node_of_thread};
use crate::facts::GpuFacts;
use crate::nvml;
use crate::topology::{Distance, PciePlace};

/// Seen of the devices of a phase.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GpuActivity {
    /// The devices of this machine, and the software that drives them.
    pub facts: GpuFacts,
    /// Requests that the kernel module nvidia-fs carried out during the phase, of all processes; none where it is not loaded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub direct_requests: Option<u64>,
    /// Requests of cuFile that did not begin and end on pages of 4096 bytes: the library copies such through buffers of its own.
    #[serde(default)]
    pub unaligned_requests: u64,
    /// Workers whose device is attached to another NUMA node than the processor that they began on.
    #[serde(default)]
    pub far_workers: u32,
    /// Workers whose device is under another PCIe switch than their storage, which shares one with another device.
    #[serde(default)]
    pub workers_far_from_storage: u32,
    /// Devices whose clocks were held back when the phase ended, and why: `GPU 0: power cap`. Empty where libnvidia-ml cannot tell.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub held_back: Vec<String>,
    /// Processes of others on a device when the phase ended, the most of them.
    #[serde(default)]
    pub other_processes: usize,
}

/// Notes of the workers of a phase about their devices.
#[derive(Clone, Debug, Default)]
pub struct WorkerNotes(Arc<Noted>);

#[derive(Debug, Default)]
struct Noted {
    /// Places of the devices that the targets are on.
    storage: Vec<PciePlace>,
    far: AtomicU32,
    far_from_storage: AtomicU32,
    unaligned: AtomicU64,
}

impl WorkerNotes {
    /// Notes of a phase on storage at these places.
    #[must_use]
    pub fn near(storage: Vec<PciePlace>) -> Self {
        Self(Arc::new(Noted { storage, ..Noted::default() }))
    }

    /// The shortest distance of a device to the storage; none where a place is not known.
    pub(crate) fn distance_to_storage(&self, device: &Device) -> Option<Distance> {
        let place = PciePlace::of_address(&device.pci_address)?;
        self.0.storage.iter().map(|storage| place.distance(storage)).min()
    }

    /// Notes the device, of `all`, of a worker on the processor of this thread.
    pub(crate) fn note(&self, device: &Device, all: &[Device]) {
        let is_far = device.numa_node.zip(node_of_thread()).is_some_and(|(device, thread)| device != thread);
        self.0.far.fetch_add(u32::from(is_far), Ordering::Relaxed);
        let nearest = all.iter().filter_map(|other| self.distance_to_storage(other)).min();
        let is_far = nearest == Some(Distance::PcieSwitch) && self.distance_to_storage(device) > nearest;
        self.0.far_from_storage.fetch_add(u32::from(is_far), Ordering::Relaxed);
    }

    /// Notes requests of cuFile that were not on pages.
    pub fn add_unaligned(&self, requests: u64) {
        self.0.unaligned.fetch_add(requests, Ordering::Relaxed);
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
    pub fn end(self, notes: &WorkerNotes) -> GpuActivity {
        let devices = self.facts.devices.iter();
        let states: Vec<_> =
            devices.filter_map(|device| Some((device.number, nvml::state(&device.pci_address)?))).collect();
        let held_back = states.iter().filter(|(_, state)| !state.held_back_by.is_empty());
        GpuActivity {
            direct_requests: self.counters.zip(Counters::now()).map(|(before, after)| after.since(before)),
            far_workers: notes.0.far.load(Ordering::Relaxed),
            workers_far_from_storage: notes.0.far_from_storage.load(Ordering::Relaxed),
            unaligned_requests: notes.0.unaligned.load(Ordering::Relaxed),
            held_back: held_back
                .map(|(number, state)| format!("GPU {number}: {}", state.held_back_by.join(", ")))
                .collect(),
            other_processes: states.iter().map(|(_, state)| state.other_processes).max().unwrap_or(0),
            facts: self.facts,
        }
    }
}
