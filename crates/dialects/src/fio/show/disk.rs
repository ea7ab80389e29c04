//! Counters of the block devices under all targets, over the whole run.

use std::collections::BTreeMap;

use report::record::{DeviceActivity, Record};

use super::number::percent_of;

/// Counters of one device, as the kernel tells them: sectors of 512 bytes, milliseconds.
pub(super) struct Disk {
    pub(super) name: String,
    pub(super) operations: [u64; 2],
    pub(super) sectors: [u64; 2],
    pub(super) merges: [u64; 2],
    pub(super) ticks_ms: [u64; 2],
    pub(super) queue_ms: u64,
    pub(super) busy_percent: f64,
}

/// Activity of a device, and how long it was watched.
#[derive(Default)]
struct Seen {
    activity: DeviceActivity,
    watched_ns: u64,
}

/// The devices by name. Phases of one stage see the same device over the same time, so the one that saw most counts.
pub(super) fn disks(record: &Record) -> Vec<Disk> {
    let mut stages: BTreeMap<(&str, usize), (&DeviceActivity, u64)> = BTreeMap::new();
    for phase in &record.phases {
        for device in &phase.observations.devices {
            let seen = (device, phase.samples.elapsed_ns);
            let most = stages.entry((&device.name, phase.stage)).or_insert(seen);
            if work(device) > work(most.0) {
                most.0 = device;
            }
            most.1 = most.1.max(seen.1);
        }
    }
    let mut devices: BTreeMap<&str, Seen> = BTreeMap::new();
    for ((name, _), (activity, watched_ns)) in stages {
        let seen = devices.entry(name).or_default();
        add(&mut seen.activity, activity);
        seen.watched_ns = seen.watched_ns.saturating_add(watched_ns);
    }
    devices.into_iter().map(|(name, seen)| disk(name, &seen)).collect()
}

fn work(device: &DeviceActivity) -> u64 {
    device.reads.saturating_add(device.writes)
}

fn add(sum: &mut DeviceActivity, other: &DeviceActivity) {
    let pairs = [
        (&mut sum.reads, other.reads),
        (&mut sum.reads_merged, other.reads_merged),
        (&mut sum.read_bytes, other.read_bytes),
        (&mut sum.read_ns, other.read_ns),
        (&mut sum.writes, other.writes),
        (&mut sum.writes_merged, other.writes_merged),
        (&mut sum.written_bytes, other.written_bytes),
        (&mut sum.write_ns, other.write_ns),
        (&mut sum.busy_ns, other.busy_ns),
        (&mut sum.queue_ns, other.queue_ns),
    ];
    for (mine, theirs) in pairs {
        *mine = mine.saturating_add(theirs);
    }
}

fn disk(name: &str, seen: &Seen) -> Disk {
    const MS: u64 = 1_000_000;
    let device = &seen.activity;
    Disk {
        name: name.to_owned(),
        operations: [device.reads, device.writes],
        sectors: [device.read_bytes / 512, device.written_bytes / 512],
        merges: [device.reads_merged, device.writes_merged],
        ticks_ms: [device.read_ns / MS, device.write_ns / MS],
        queue_ms: device.queue_ns / MS,
        busy_percent: percent_of(device.busy_ns as f64, seen.watched_ns as f64),
    }
}
