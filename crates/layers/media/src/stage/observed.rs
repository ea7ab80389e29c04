//! Observations of the targets of a media phase: their place before it, and the activity of their devices during it.

use std::path::Path;

use crate::plan::MediaPlan;
use gpu::{GpuWatch, WorkerNotes};
use host::block::{self, BlockDevice, DeviceNumber};
use host::extents::{self, Extents};
use host::network::{self, SYS_CLASS};
use host::page_cache;
use host::traffic::{self, Traffic};
use layer::observations::{DeviceActivity, MachineTraffic, Observations, RangeFacts};
use workload::target::{TargetKind, TargetPlan};

/// `FUSE_SUPER_MAGIC` of linux/magic.h.
const FUSE: u64 = 0x6573_5546;

/// Devices with what they did so far.
type Counted = Vec<(DeviceNumber, Traffic)>;

/// Observations of one phase's targets, begun before it.
pub(super) struct PhaseWatch {
    cached_before_fraction: Option<f64>,
    unwritten_fraction: Option<f64>,
    range: RangeFacts,
    free_fraction: Option<f64>,
    devices: Option<Counted>,
    bottoms: Option<Counted>,
    machine: Option<MachineTraffic>,
    gpu: Option<(GpuWatch, WorkerNotes)>,
}

impl PhaseWatch {
    /// Looks at the targets and devices of `plan`; its workers note in `gpu_notes` what they see of their devices.
    pub(super) fn begin(plan: &MediaPlan, gpu_notes: &WorkerNotes, looked: &mut Looked) -> Self {
        let reads_cache = plan.reads() && !plan.options.direct;
        let touches = plan.reads() || plan.mix.write_percent > 0;
        let cached = if reads_cache { over_range(plan, |target| looked.cached(target)) } else { None };
        let mut share = |part: fn(&Extents) -> u64| {
            let of_target = |target: &TargetPlan| {
                let extents = looked.extents(target)?;
                Some(part(&extents) as f64 / target.size_bytes.max(1) as f64)
            };
            if touches { over_range(plan, of_target) } else { None }
        };
        let dax = |target: &TargetPlan| page_cache::is_dax(&target.place()).map(f64::from);
        let (devices, bottoms) = devices(plan).unzip();
        Self {
            cached_before_fraction: cached,
            unwritten_fraction: share(|extents| extents.unwritten_bytes + extents.hole_bytes),
            range: RangeFacts {
                encoded_fraction: share(|extents| extents.encoded_bytes),
                shared_fraction: share(|extents| extents.shared_bytes),
                dax_fraction: over_range(plan, dax),
            },
            free_fraction: plan.targets.iter().filter_map(free_fraction).reduce(f64::min),
            devices,
            bottoms: bottoms.flatten(),
            gpu: plan.memory.gpu().and_then(|gpu| Some((GpuWatch::begin(&gpu.devices)?, gpu_notes.clone()))),
            machine: plan.targets.iter().any(is_served_by_program).then(machine_traffic).flatten(),
        }
    }

    /// Observations until now; `common` holds those of the machine.
    pub(super) fn end(self, common: &Observations) -> Observations {
        let devices = self.devices.and_then(since);
        let moved = |part: fn(&DeviceActivity) -> u64| Some(devices.as_ref()?.iter().map(part).sum());
        Observations {
            cached_before_fraction: self.cached_before_fraction,
            unwritten_fraction: self.unwritten_fraction,
            range: self.range,
            free_fraction: self.free_fraction,
            device_read_bytes: moved(|device| device.read_bytes),
            device_written_bytes: moved(|device| device.written_bytes),
            machine_traffic: self.machine.zip(machine_traffic()).map(|(before, after)| MachineTraffic {
                drives_read_bytes: after.drives_read_bytes.saturating_sub(before.drives_read_bytes),
                drives_written_bytes: after.drives_written_bytes.saturating_sub(before.drives_written_bytes),
                network_received_bytes: after
                    .network_received_bytes
                    .saturating_sub(before.network_received_bytes),
                network_sent_bytes: after.network_sent_bytes.saturating_sub(before.network_sent_bytes),
            }),
            devices: devices.unwrap_or_default(),
            bottom_devices: self.bottoms.and_then(since).unwrap_or_default(),
            gpu: self.gpu.map(|(watch, notes)| watch.end(&notes)),
            ..common.clone()
        }
    }
}

/// Activity of each device since; none when that cannot be told of all of them.
fn since(devices: Counted) -> Option<Vec<DeviceActivity>> {
    devices.iter().map(|(device, before)| layer::device_activity(*device, before)).collect()
}

/// Facts known of ranges; each is looked at once, however many phases of a stage share it.
#[derive(Default)]
pub(super) struct Looked {
    cached: Vec<(TargetPlan, Option<f64>)>,
    extents: Vec<(TargetPlan, Option<Extents>)>,
}

impl Looked {
    fn cached(&mut self, target: &TargetPlan) -> Option<f64> {
        once(&mut self.cached, target, |target| {
            page_cache::resident_fraction(&target.place(), target.offset_bytes, target.size_bytes)
        })
    }

    fn extents(&mut self, target: &TargetPlan) -> Option<Extents> {
        once(&mut self.extents, target, |target| {
            let range = target.offset_bytes..target.offset_bytes + target.size_bytes;
            match target.kind {
                TargetKind::File => extents::extents(&target.place(), range).ok(),
                TargetKind::Image => crate::rbd::extents(target).ok(),
                _ => None,
            }
        })
    }
}

fn once<T: Copy>(
    known: &mut Vec<(TargetPlan, Option<T>)>,
    target: &TargetPlan,
    look: impl FnOnce(&TargetPlan) -> Option<T>,
) -> Option<T> {
    if let Some((_, found)) = known.iter().find(|(known, _)| known == target) {
        return *found;
    }
    let found = look(target);
    known.push((target.clone(), found));
    found
}

/// Mean over the stored targets, weighted by their sizes.
fn over_range(plan: &MediaPlan, mut share: impl FnMut(&TargetPlan) -> Option<f64>) -> Option<f64> {
    let mut weighted = 0.0;
    let mut bytes = 0;
    for target in plan.targets.iter().filter(|target| target.kind.is_storage()) {
        weighted += share(target)? * target.size_bytes as f64;
        bytes += target.size_bytes;
    }
    (bytes > 0).then(|| weighted / bytes as f64)
}

/// Share of the target's file system that is free for its users, counted as df(1) does.
fn free_fraction(target: &TargetPlan) -> Option<f64> {
    let space = rustix::fs::statvfs(&target.path).ok().filter(|_| target.kind == TargetKind::File)?;
    let used = space.f_blocks.checked_sub(space.f_bfree)?;
    let usable = used + space.f_bavail;
    (usable > 0).then(|| space.f_bavail as f64 / usable as f64)
}

/// Whether a program serves the target's file system, and no block device of it is known.
fn is_served_by_program(target: &TargetPlan) -> bool {
    let path = &*target.place();
    let is_fuse = rustix::fs::statfs(path).is_ok_and(|space| space.f_type as u64 == FUSE);
    target.kind == TargetKind::File && is_fuse && block::numbers_of(path).is_empty()
}

/// None where fabrics (RDMA) may move data past the counters of interfaces.
fn machine_traffic() -> Option<MachineTraffic> {
    let fabrics = std::fs::read_dir(Path::new(SYS_CLASS).join("infiniband"));
    if fabrics.is_ok_and(|mut fabrics| fabrics.next().is_some()) {
        return None;
    }
    let drives = traffic::of_all_drives()?;
    let (network_received_bytes, network_sent_bytes) = network::moved_bytes();
    Some(MachineTraffic {
        drives_read_bytes: drives.read_bytes,
        drives_written_bytes: drives.written_bytes,
        network_received_bytes,
        network_sent_bytes,
    })
}

/// The devices under the targets, each once, with what they did so far; none where that cannot be told. Beside them those
/// at the bottom, where these are others and all of them count.
fn devices(plan: &MediaPlan) -> Option<(Counted, Option<Counted>)> {
    let (mut devices, mut bottoms): (Counted, Counted) = (Vec::new(), Vec::new());
    let mut all_count = true;
    for target in plan.targets.iter().filter(|target| target.kind.is_local_storage()) {
        let numbers = block::numbers_of(&target.place());
        if numbers.is_empty() {
            return None;
        }
        for number in numbers {
            let device = BlockDevice::read(number);
            if device.as_ref().is_some_and(|device| device.keeps_counters == Some(false)) {
                return None;
            }
            add(&mut devices, number, Traffic::read(number)?);
            for bottom in device.iter().flat_map(BlockDevice::bottoms) {
                let counted = Traffic::read(bottom.number).filter(|_| bottom.keeps_counters != Some(false));
                match counted {
                    Some(traffic) => add(&mut bottoms, bottom.number, traffic),
                    None => all_count = false,
                }
            }
        }
    }
    let differ = bottoms.iter().any(|(bottom, _)| !devices.iter().any(|(device, _)| device == bottom));
    (!devices.is_empty()).then_some((devices, (all_count && differ).then_some(bottoms)))
}

fn add(devices: &mut Counted, number: DeviceNumber, traffic: Traffic) {
    if !devices.iter().any(|(known, _)| *known == number) {
        devices.push((number, traffic));
    }
}
