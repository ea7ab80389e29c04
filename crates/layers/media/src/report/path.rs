//! Doubts about the way from an operation to the medium: what lies between, and what of it reaches the lowest device that
//! can be found.

use crate::engine::SyncMode;
use crate::plan::MediaPlan;
use host::TargetEnvironment;
use host::block::BlockDevice;
use report::doubts::Evidence;
use report::record::DeviceActivity;
use units::human::human_bytes;
use units::percent;

use super::evidence::{is_dax, on_drives, place_of, targets, through_page_cache};
use super::place;
use super::storage::{at_most, is_synced};

/// Share of the bytes moved with `--direct` that the devices must have moved too.
const DIRECT_SHARE_MIN: f64 = 0.9;
/// Bytes that must have been moved before shares are looked at: small files lie in metadata.
const DIRECT_BYTES_MIN: u64 = 1 << 20;
/// Times the bytes read that devices may have been made to give.
const AMPLIFICATION_MAX: f64 = 2.0;
/// Bytes more than those read that they may give in any case: metadata, and what is read ahead at the end.
const AHEAD_BYTES_MIN: u64 = 16 << 20;
/// Share of the range that may be stored otherwise than it was written.
const ALTERED_FRACTION_MAX: f64 = 0.01;
/// Share of the range that may never have been written.
const UNWRITTEN_FRACTION_MAX: f64 = 0.01;
/// Share of the writes that may be the first of their blocks.
const FIRST_WRITES_MAX: f64 = 0.1;
/// Share of a file system that must be free.
const FREE_FRACTION_MIN: f64 = 0.05;

/// The least of what the devices of the targets and those at the bottom below them did; none where neither is known. All bytes
/// pass through both.
fn least(evidence: &Evidence<'_>, top: Option<u64>, part: fn(&DeviceActivity) -> u64) -> Option<u64> {
    let bottoms = &evidence.observations.bottom_devices;
    let bottom = (!bottoms.is_empty()).then(|| bottoms.iter().map(part).sum());
    top.into_iter().chain(bottom).min()
}

/// Bytes read by the devices, where they are fewest on the way.
pub(super) fn least_read_bytes(evidence: &Evidence<'_>) -> Option<u64> {
    least(evidence, evidence.observations.device_read_bytes, |device| device.read_bytes)
}

/// Bytes written by the devices, where they are fewest on the way.
pub(super) fn least_written_bytes(evidence: &Evidence<'_>) -> Option<u64> {
    least(evidence, evidence.observations.device_written_bytes, |device| device.written_bytes)
}

fn layers_of<'a>(evidence: &Evidence<'a>) -> Vec<&'a BlockDevice> {
    let devices = targets(evidence).filter_map(|target| place_of(evidence, target)?.device.as_ref());
    devices.flat_map(BlockDevice::layers).collect()
}

pub(super) fn direct_not_honoured(evidence: &Evidence<'_>) -> Option<String> {
    let plan = evidence.plan.of::<MediaPlan>().filter(|plan| plan.options.direct)?;
    let moves = plan.reads() || plan.mix.write_percent > 0;
    if !moves || !on_drives(evidence) || is_dax(evidence) {
        return None;
    }
    if let Some(layer) = cached_loop(evidence) {
        let file = layer.backing_file.as_ref().map_or_else(String::new, |file| file.display().to_string());
        return Some(format!(
            "{} accesses {file} through the page cache, which ignores --direct",
            layer.name
        ));
    }
    // What was discarded, compressed or never written is not asked of the device.
    let shrinks = targets(evidence).any(|target| place_of(evidence, target).is_some_and(place::shrinks));
    let range = evidence.observations.range;
    if plan.mix.discard_percent > 0 || shrinks || range.encoded_fraction.is_some_and(|share| share > 0.0) {
        return None;
    }
    let has_holes =
        evidence.observations.unwritten_fraction.is_some_and(|share| share > UNWRITTEN_FRACTION_MAX);
    let (read, written) = (evidence.bytes_of("read"), evidence.bytes_of("write"));
    let reached = |bytes: u64, moved: Option<u64>| {
        let share = moved? as f64 / bytes.max(1) as f64;
        (bytes >= DIRECT_BYTES_MIN && share < DIRECT_SHARE_MIN).then_some(share)
    };
    if let Some(share) = reached(read, least_read_bytes(evidence)).filter(|_| !has_holes) {
        let share = at_most(evidence, share);
        return Some(format!(
            "the devices delivered {share} of the bytes read with --direct: the rest was cached or never written"
        ));
    }
    if let Some(share) = reached(written, least_written_bytes(evidence)) {
        let share = at_most(evidence, share);
        return Some(format!(
            "{share} of the bytes written with --direct reached the devices during the phase"
        ));
    }
    served_from_memory(evidence, read, written)
}

/// A loop device on the way that does not pass direct I/O on to its file.
pub(super) fn cached_loop<'a>(evidence: &Evidence<'a>) -> Option<&'a BlockDevice> {
    layers_of(evidence).into_iter().find(|layer| layer.backing_direct == Some(false))
}

/// Whether a program serves the file system (FUSE), and not a hypervisor (virtiofs) or the kernel.
fn is_fuse(place: &TargetEnvironment) -> bool {
    let kind = place.filesystem.as_ref().map(|filesystem| filesystem.kind.as_str());
    kind.is_some_and(|kind| kind == "fuse" || kind.starts_with("fuse."))
}

/// Bytes that a program served and that neither a drive nor the network of this machine can have brought.
fn served_from_memory(evidence: &Evidence<'_>, read: u64, written: u64) -> Option<String> {
    let machine = evidence.observations.machine_traffic?;
    if !targets(evidence).all(|target| place_of(evidence, target).is_some_and(is_fuse)) {
        return None;
    }
    let came = [
        (read, machine.drives_read_bytes + machine.network_received_bytes, "read", "came from"),
        (written, machine.drives_written_bytes + machine.network_sent_bytes, "written", "went to"),
    ];
    let (bytes, moved, done, way) = came.into_iter().find(|(bytes, moved, ..)| {
        *bytes >= DIRECT_BYTES_MIN && (*moved as f64) < DIRECT_SHARE_MIN * *bytes as f64
    })?;
    let size = |bytes: u64| human_bytes(bytes as f64);
    Some(format!(
        "of {} {done} with --direct, at most {} {way} drives and networks of this machine: the rest stayed in memory of the FUSE server",
        size(bytes),
        size(moved)
    ))
}

pub(super) fn read_amplification(evidence: &Evidence<'_>) -> Option<String> {
    let plan = evidence.plan.of::<MediaPlan>()?;
    if !plan.reads() || !through_page_cache(evidence) || !evidence.counts_match() {
        return None;
    }
    let (read, fetched) = (evidence.bytes_of("read"), evidence.observations.process_fetched_bytes?);
    let ahead = layers_of(evidence).iter().filter_map(|layer| layer.read_ahead_bytes).max().unwrap_or(0);
    let allowed = (2 * ahead * u64::from(plan.load.threads)).max(AHEAD_BYTES_MIN);
    let times = fetched as f64 / read.max(1) as f64;
    (read > 0 && times > AMPLIFICATION_MAX && fetched - read > allowed)
        .then(|| format!("the kernel read {times:.1} times the requested bytes from the device (read-ahead)"))
}

pub(super) fn encoded_extents(evidence: &Evidence<'_>) -> Option<String> {
    let plan = evidence.plan.of::<MediaPlan>()?;
    let range = evidence.observations.range;
    let above = |share: Option<f64>| share.filter(|&share| share > ALTERED_FRACTION_MAX);
    if let Some(share) = above(range.encoded_fraction).filter(|_| plan.reads()) {
        return Some(format!(
            "{} of the range is stored compressed: the device reads fewer bytes",
            percent(share)
        ));
    }
    let share = above(range.shared_fraction).filter(|_| plan.reads() || plan.mix.write_percent > 0)?;
    let what = if plan.reads() {
        "data cached for one part also serve other parts"
    } else {
        "the first write to a block copies it"
    };
    Some(format!("{} of the range shares blocks with other data (reflinks): {what}", percent(share)))
}

/// Whether each write, or some of them on the way, is made durable by the device before its operation ends.
fn is_durable_by_the_way(evidence: &Evidence<'_>) -> bool {
    evidence.plan.of::<MediaPlan>().is_some_and(|plan| {
        plan.options.sync != SyncMode::None || plan.options.rwf_dsync || plan.fsync_every.is_some()
    })
}

pub(super) fn unwritten_extents(evidence: &Evidence<'_>) -> Option<String> {
    let plan = evidence.plan.of::<MediaPlan>()?;
    let waits = plan.options.direct || is_durable_by_the_way(evidence);
    if plan.mix.write_percent == 0 || !waits || !on_drives(evidence) || is_dax(evidence) {
        return None;
    }
    let unwritten =
        evidence.observations.unwritten_fraction.filter(|&share| share > UNWRITTEN_FRACTION_MAX)?;
    let written = evidence.bytes_of("write");
    let first = (unwritten * plan.range_bytes() as f64 / written.max(1) as f64).min(1.0);
    (written > 0 && first > FIRST_WRITES_MAX).then(|| {
        format!(
            "{} of the range was never written: the first write to a block also allocates or converts it",
            percent(unwritten)
        )
    })
}

pub(super) fn volatile_cache(evidence: &Evidence<'_>) -> Option<String> {
    let plan = evidence.plan.of::<MediaPlan>()?;
    let is_durable = is_durable_by_the_way(evidence) || is_synced(evidence);
    if plan.mix.write_percent == 0 || !is_durable || !on_drives(evidence) || is_dax(evidence) {
        return None;
    }
    targets(evidence).filter_map(|target| place_of(evidence, target)).find_map(|place| {
        let layers = place.device.as_ref().map(BlockDevice::layers).unwrap_or_default();
        without_barriers(place, &layers).or_else(|| unflushed(&layers)).or_else(|| behind_hypervisor(&layers))
    })
}

fn is_write_through(device: &BlockDevice) -> bool {
    device.write_cache.as_deref() == Some("write through")
}

fn without_barriers(place: &TargetEnvironment, layers: &[&BlockDevice]) -> Option<String> {
    let filesystem = place.filesystem.as_ref()?.bottom();
    let option = filesystem.options.split(',').find(|option| matches!(*option, "nobarrier" | "barrier=0"))?;
    let is_harmless = !layers.is_empty() && layers.iter().all(|layer| is_write_through(layer));
    (!is_harmless).then(|| {
        format!(
            "{} is mounted with {option}: fsync does not empty the drive's volatile cache",
            filesystem.mount_point.display()
        )
    })
}

/// A layer that passes for one without a volatile cache, so that no flush is sent to it, and has one.
fn unflushed(layers: &[&BlockDevice]) -> Option<String> {
    layers.iter().filter(|layer| is_write_through(layer)).find_map(|layer| {
        let says_itself =
            layer.drive_write_cache.as_deref().is_some_and(|cache| cache.starts_with("write back"));
        let below =
            layer.layers().into_iter().find(|below| below.write_cache.as_deref() == Some("write back"));
        let whose = match below {
            _ if says_itself => "the drive reports that its cache is on".to_owned(),
            Some(below) => format!("{} below it has one", below.name),
            None => return None,
        };
        Some(format!(
            "the kernel never flushes {}, which it treats as a device without a volatile cache, but {whose}",
            layer.name
        ))
    })
}

fn behind_hypervisor(layers: &[&BlockDevice]) -> Option<String> {
    let is_virtual = |layer: &&&BlockDevice| layer.transport.as_deref() == Some("virtio");
    let disk = layers.iter().filter(is_virtual).find(|layer| is_write_through(layer))?;
    Some(format!(
        "the hypervisor accepts no flushes for {}: strata cannot tell whether it keeps writes in memory",
        disk.name
    ))
}

pub(super) fn nearly_full(evidence: &Evidence<'_>) -> Option<String> {
    let writes = evidence.plan.of::<MediaPlan>()?.mix.write_percent > 0;
    let free = evidence.observations.free_fraction.filter(|_| writes && on_drives(evidence))?;
    (free < FREE_FRACTION_MIN).then(|| format!("only {} of the file system is free", percent(free)))
}
