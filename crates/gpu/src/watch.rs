//! Observations of devices around a phase.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Instant;

use parking_lot::Mutex;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::cufile::{Counters, CuFile, Transport};
use crate::device::{Device, node_of_thread};
use crate::facts::GpuFacts;
use crate::nvml;
use crate::topology::{Distance, PciePlace};

/// Seen of the devices of a phase.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GpuActivity {
    /// The devices of this machine, and the software that drives them.
    pub facts: GpuFacts,
    /// Numbers of the devices that workers had buffers on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub used: Vec<u32>,
    /// Way that requests of cuFile took; none where there were no such.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cufile_transport: Option<Transport>,
    /// Bytes that workers asked of cuFile, warm-up included.
    #[serde(default)]
    pub cufile_bytes: u64,
    /// Bytes that the kernel module nvidia-fs moved during the same time, of all processes; none where it is not loaded, or does not count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub direct_bytes: Option<u64>,
    /// Requests of cuFile.
    #[serde(default)]
    pub cufile_requests: u64,
    /// Those of them that did not begin and end on pages of 4096 bytes: the library copies such through buffers of its own.
    #[serde(default)]
    pub unaligned_requests: u64,
    /// Workers whose device is attached to another NUMA node than the processor that they began on.
    #[serde(default)]
    pub far_workers: u32,
    /// Workers whose device is under another PCIe switch than their storage, which shares one with another device.
    #[serde(default)]
    pub workers_far_from_storage: u32,
    /// Devices whose clocks were held back, why, and for which part of the phase: `GPU 0: power cap (12.0%)`. Empty where libnvidia-ml cannot tell.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub held_back: Vec<String>,
    /// Processes of others on a device in use when the phase ended, the most of them.
    #[serde(default)]
    pub other_processes: usize,
}

/// Requests of cuFile, counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CufileRequests {
    count: u64,
    bytes: u64,
    unaligned: u64,
}

impl CufileRequests {
    /// These and one more.
    #[inline]
    #[must_use]
    pub fn and(self, offset: u64, bytes: u64) -> Self {
        Self {
            count: self.count + 1,
            bytes: self.bytes + bytes,
            unaligned: self.unaligned + u64::from(!(offset | bytes).is_multiple_of(CuFile::PAGE_BYTES)),
        }
    }
}

/// Notes of the workers of a phase about their devices.
#[derive(Clone, Debug, Default)]
pub struct WorkerNotes(Arc<Noted>);

#[derive(Debug, Default)]
struct Noted {
    /// Places of the devices that the targets are on.
    storage: Vec<PciePlace>,
    used: Mutex<BTreeSet<u32>>,
    transport: Mutex<Option<Transport>>,
    far: AtomicU32,
    far_from_storage: AtomicU32,
    requests: AtomicU64,
    bytes: AtomicU64,
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
        if self.0.storage.is_empty() {
            return None;
        }
        let place = PciePlace::of_address(&device.pci_address)?;
        self.0.storage.iter().map(|storage| place.distance(storage)).min()
    }

    /// Notes the device, of `all`, of a worker on the processor of this thread.
    pub(crate) fn note(&self, device: &Device, all: &[Device]) {
        self.0.used.lock().insert(device.number);
        let is_far = device.numa_node.zip(node_of_thread()).is_some_and(|(device, thread)| device != thread);
        self.0.far.fetch_add(u32::from(is_far), Ordering::Relaxed);
        let nearest = all.iter().filter_map(|other| self.distance_to_storage(other)).min();
        let is_far = nearest == Some(Distance::PcieSwitch) && self.distance_to_storage(device) > nearest;
        self.0.far_from_storage.fetch_add(u32::from(is_far), Ordering::Relaxed);
    }

    /// Notes the way of requests of cuFile.
    pub fn add_transport(&self, transport: Transport) {
        *self.0.transport.lock() = Some(transport);
    }

    /// Notes requests of cuFile.
    pub fn add_requests(&self, requests: CufileRequests) {
        self.0.requests.fetch_add(requests.count, Ordering::Relaxed);
        self.0.bytes.fetch_add(requests.bytes, Ordering::Relaxed);
        self.0.unaligned.fetch_add(requests.unaligned, Ordering::Relaxed);
    }
}

/// Watches the devices of a phase.
#[derive(Debug)]
pub struct GpuWatch {
    facts: GpuFacts,
    counters: Option<Counters>,
    began: Instant,
    /// Times for which clocks were held back, by number of the device.
    held_back: Vec<(u32, nvml::HeldBack)>,
}

impl GpuWatch {
    /// Begins before the phase, with the devices of these numbers (none: all); none where there are no devices.
    #[must_use]
    pub fn begin(numbers: &[u32]) -> Option<Self> {
        let mut facts = GpuFacts::read().ok()?;
        facts.devices.retain(|device| numbers.is_empty() || numbers.contains(&device.number));
        let held_back = facts.devices.iter();
        let held_back =
            held_back.filter_map(|device| Some((device.number, nvml::held_back(&device.pci_address)?)));
        Some(Self { counters: Counters::now(), began: Instant::now(), held_back: held_back.collect(), facts })
    }

    /// Observations until now.
    #[must_use]
    pub fn end(mut self, notes: &WorkerNotes) -> GpuActivity {
        let noted = &notes.0;
        let used: Vec<u32> = noted.used.lock().iter().copied().collect();
        let elapsed_ns = self.began.elapsed().as_nanos() as u64;
        self.facts.read_links();
        let watched = self.facts.devices.iter().filter(|device| used.contains(&device.number));
        let mut held_back = Vec::new();
        let mut other_processes = 0;
        for device in watched {
            let before = self.held_back.iter().find(|(number, _)| *number == device.number);
            let now = nvml::held_back(&device.pci_address);
            let told =
                before.zip(now).map(|((_, before), now)| now.since(before, elapsed_ns)).unwrap_or_default();
            if !told.is_empty() {
                held_back.push(format!("GPU {}: {}", device.number, told.join(", ")));
            }
            other_processes = other_processes.max(nvml::other_processes(&device.pci_address).unwrap_or(0));
        }
        GpuActivity {
            used,
            cufile_transport: *noted.transport.lock(),
            cufile_bytes: noted.bytes.load(Ordering::Relaxed),
            direct_bytes: self.counters.zip(Counters::now()).map(|(before, after)| after.bytes_since(before)),
            cufile_requests: noted.requests.load(Ordering::Relaxed),
            unaligned_requests: noted.unaligned.load(Ordering::Relaxed),
            far_workers: noted.far.load(Ordering::Relaxed),
            workers_far_from_storage: noted.far_from_storage.load(Ordering::Relaxed),
            held_back,
            other_processes,
            facts: self.facts,
        }
    }
}
