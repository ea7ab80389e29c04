//! Doubts about the devices of the targets: who else uses them, and limits on them.

use crate::plan::MediaPlan;
use host::control_group::IoLimitKind;
use report::doubts::Evidence;
use units::human::human_bytes;
use units::human_bytes_per_second;

use super::evidence::{on_drives, place_of, targets};

/// Share of this load's bytes that others may move on its devices.
const OTHER_IO_SHARE_MAX: f64 = 0.05;
/// Bytes that they may move in any case: logs and metadata.
const OTHER_IO_BYTES_MIN: u64 = 4 << 20;
/// Share of a limit on a device from which on the limit, and not the device, makes the rate.
const IO_LIMIT_SHARE_MIN: f64 = 0.85;

/// Traffic of others on the devices of the targets, as far as it cannot be this load's: more reads than were asked
/// for past the page cache, and writes where nothing was written.
pub(super) fn other_io(evidence: &Evidence<'_>) -> Option<String> {
    let (plan, seen) = (evidence.plan.of::<MediaPlan>()?, evidence.observations);
    if !evidence.counts_match() || !on_drives(evidence) {
        return None;
    }
    let asked = evidence.bytes_of("read") + evidence.bytes_of("write");
    let in_flight = u64::from(plan.load.threads) * u64::from(plan.load.depth) * plan.block_size_bytes_max;
    let limit = ((asked as f64 * OTHER_IO_SHARE_MAX) as u64).max(OTHER_IO_BYTES_MIN) + in_flight;
    let read = seen.device_read_bytes.filter(|_| plan.options.direct);
    let read = read.map_or(0, |read| read.saturating_sub(evidence.bytes_of("read")));
    let written = seen.device_written_bytes.filter(|_| !plan.writes()).unwrap_or(0);
    let size = |bytes: u64| human_bytes(bytes as f64);
    if read > limit {
        return Some(format!("other processes read {} from the devices of this load", size(read)));
    }
    (written > limit)
        .then(|| format!("other processes wrote {} to the devices while this load only read", size(written)))
}

/// A limit of a control group on a device of the targets (on any, where these are not known) that this load comes up to.
pub(super) fn io_throttled(evidence: &Evidence<'_>) -> Option<String> {
    if !on_drives(evidence) {
        return None;
    }
    let places = targets(evidence).map(|target| place_of(evidence, target)?.device.as_ref());
    let layers: Option<Vec<_>> =
        places.map(|device| Some(device?.layers().into_iter().map(|layer| &layer.name))).collect();
    let names: Option<Vec<_>> = layers.map(|layers| layers.into_iter().flatten().collect());
    let is_own = |device: &String| names.as_ref().is_none_or(|names| names.contains(&device));
    let used = evidence.observations.io_limits.iter().find(|limit| {
        is_own(&limit.device)
            && limit.reached_per_second >= IO_LIMIT_SHARE_MIN * limit.limit_per_second as f64
    })?;
    let (what, is_bytes) = match used.kind {
        IoLimitKind::ReadBytes => ("reads", true),
        IoLimitKind::WrittenBytes => ("writes", true),
        IoLimitKind::Reads => ("reads", false),
        IoLimitKind::Writes => ("writes", false),
    };
    let rate = |value: f64| if is_bytes { human_bytes_per_second(value) } else { units::rate(value) };
    Some(format!(
        "a control group limits {what} of {} to {}, and the load reached {}: the result shows the limit, not the device",
        used.device,
        rate(used.limit_per_second as f64),
        rate(used.reached_per_second)
    ))
}
