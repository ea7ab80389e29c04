//! Doubts about the machine around the run.

use host::control_group::IoLimitKind;
use units::human::human_bytes;
use units::{human_bytes_per_second, human_ns};

use super::{Evidence, network};
use crate::words::processors;

/// Share of the machine's processors that may be busy; above it, threads wait for a processor.
const MACHINE_BUSY_SHARE_MAX: f64 = 0.95;
/// Share of the processors that this load itself must have kept busy to be what crowds them; else others do.
const OWN_BUSY_SHARE_MIN: f64 = 0.25;
/// Processors that programs of others may keep busy in user mode.
const OTHER_USER_CPUS_MAX: f64 = 0.1;
/// Processors that others may keep busy in all where it is known how much of that is user mode: threads of the kernel that
/// serve this load (loop devices, dm-crypt, RAID, write-back, network storage) are among them.
const OTHER_CPUS_MAX: f64 = 0.5;
/// The same where it is not known.
const OTHER_CPUS_UNKNOWN_MAX: f64 = 0.2;
/// Processors of a machine from which on the limits above grow with it: services take some of many.
const CORES_OF_LIMITS: f64 = 10.0;
/// Processors that the hypervisor may give to others.
const STOLEN_CPUS_MAX: f64 = 0.05;
/// Share of this load's bytes that others may move on its devices.
const OTHER_IO_SHARE_MAX: f64 = 0.05;
/// Bytes that they may move in any case: logs and metadata.
const OTHER_IO_BYTES_MIN: u64 = 4 << 20;
/// Share of a phase for which the quota of a control group may stop threads, all processors together.
const CPU_THROTTLED_SHARE_MAX: f64 = 0.01;
/// Share of a limit on a device from which on the limit, and not the device, makes the rate.
const IO_LIMIT_SHARE_MIN: f64 = 0.85;
/// Drift of the clock against the kernel's, parts per million: calibration leaves some 5, discipline by NTP up to 500
/// on the kernel's side for a while, a healthy oscillator less than 100.
const DRIFT_PPM_MAX: f64 = 200.0;

/// Whether engines elsewhere drive: what this machine does meanwhile says nothing about their figures.
fn is_elsewhere(evidence: &Evidence<'_>) -> bool {
    evidence.plan.is_driven_elsewhere()
}

/// Whether processors are kept busy on purpose: memory and the tool itself are measured so, and who spins does nothing else.
fn is_busy_on_purpose(evidence: &Evidence<'_>, cores: f64) -> bool {
    let served_here = evidence.plan.network().map_or(0, network::local_endpoints);
    evidence.plan.is_busy_on_purpose() && (evidence.stage_threads + served_here) as f64 <= cores
}

pub(super) fn all_processors_busy(evidence: &Evidence<'_>) -> Option<String> {
    let cores = evidence.logical_cores()?;
    let seen = evidence.observations;
    // What the hypervisor gave to others was not to be had either.
    let busy = seen.machine_cpus_busy? + seen.stolen_cpus.unwrap_or(0.0);
    let meant = is_elsewhere(evidence) || is_busy_on_purpose(evidence, cores);
    let served = network::local_servers_cpus(evidence).map_or(0.0, |(_, all)| all);
    let own = seen.machine_cpus_busy? - seen.other_cpus_busy.unwrap_or(0.0) + served;
    (!meant && busy > MACHINE_BUSY_SHARE_MAX * cores && own > OWN_BUSY_SHARE_MIN * cores)
        .then(|| format!("{busy:.2} of {cores} processors were busy: threads waited for a processor"))
}

pub(super) fn other_load(evidence: &Evidence<'_>) -> Option<String> {
    let seen = evidence.observations;
    if is_elsewhere(evidence) {
        return None;
    }
    let grown = evidence.logical_cores().map_or(1.0, |cores| (cores / CORES_OF_LIMITS).max(1.0));
    if let Some(stolen) = seen.stolen_cpus.filter(|stolen| *stolen > grown * STOLEN_CPUS_MAX) {
        return Some(format!("the hypervisor gave {} of this machine to others", processors(stolen)));
    }
    // Service threads on this machine serve this load; where they did not say what they took, others cannot be told from them.
    let is_served_here = evidence.plan.network().is_some_and(|plan| network::local_endpoints(plan) > 0);
    let served = match network::local_servers_cpus(evidence) {
        None if is_served_here => return None,
        served => served.unwrap_or((0.0, 0.0)),
    };
    let others = (seen.other_cpus_busy? - served.1).max(0.0);
    match seen.other_cpus_user.map(|user| (user - served.0).max(0.0)) {
        None => (others > grown * OTHER_CPUS_UNKNOWN_MAX)
            .then(|| format!("others kept {} of this machine busy", processors(others))),
        Some(user) if user > grown * OTHER_USER_CPUS_MAX => {
            Some(format!("others kept {} of this machine busy", processors(others.max(user))))
        }
        Some(user) => (others > grown * OTHER_CPUS_MAX).then(|| {
            format!(
                "others kept {} busy, {user:.2} of it in user mode: programs, or the kernel's threads for this load",
                processors(others)
            )
        }),
    }
}

/// Traffic of others on the devices of the targets, as far as it cannot be this load's: more reads than were asked
/// for past the page cache, and writes where nothing was written.
pub(super) fn other_io(evidence: &Evidence<'_>) -> Option<String> {
    let (plan, seen) = (evidence.plan.media()?, evidence.observations);
    if !evidence.counts_match() || !evidence.on_drives() {
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
        return Some(format!("others read {} from the devices of this load", size(read)));
    }
    (written > limit)
        .then(|| format!("{} were written to the devices while this load only read", size(written)))
}

pub(super) fn cpu_throttled(evidence: &Evidence<'_>) -> Option<String> {
    let seen = evidence.observations.cpu_throttling.filter(|_| !is_elsewhere(evidence))?;
    let share = seen.throttled_ns as f64 / evidence.samples.elapsed_ns.max(1) as f64;
    let quota = evidence.environment.system.cpu_limit_cores;
    let quota = quota.map_or_else(String::new, |cores| format!(" of {}", processors(cores)));
    (seen.throttled_periods > 0 && share > CPU_THROTTLED_SHARE_MAX).then(|| {
        format!(
            "the control group's quota{quota} was used up in {} of {} periods: threads stood still for {}",
            seen.throttled_periods,
            seen.periods,
            human_ns(seen.throttled_ns as f64)
        )
    })
}

/// A limit of a control group on a device of the targets (on any, where these are not known) that this load comes up to.
pub(super) fn io_throttled(evidence: &Evidence<'_>) -> Option<String> {
    if !evidence.on_drives() {
        return None;
    }
    let places = evidence.targets().map(|target| evidence.place_of(target)?.device.as_ref());
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
    let rate = |value: f64| if is_bytes { human_bytes_per_second(value) } else { crate::words::rate(value) };
    Some(format!(
        "a control group limits {what} of {} to {}, and {} were reached: the limit is measured",
        used.device,
        rate(used.limit_per_second as f64),
        rate(used.reached_per_second)
    ))
}

pub(super) fn clock(evidence: &Evidence<'_>) -> Option<String> {
    let drift = evidence.tool_cost?.clock_drift_ppm;
    (drift.abs() > DRIFT_PPM_MAX)
        .then(|| format!("the clock drifted by {drift:.0} parts per million against the kernel's"))
}

pub(super) fn frequency_scaling(evidence: &Evidence<'_>) -> Option<String> {
    if is_elsewhere(evidence) {
        return None;
    }
    let other: Vec<_> = evidence
        .environment
        .processor
        .governors
        .iter()
        .map(String::as_str)
        .filter(|governor| *governor != "performance")
        .collect();
    (!other.is_empty()).then(|| {
        format!("the frequency governor is {}: processors slow down when they wait", other.join(", "))
    })
}
