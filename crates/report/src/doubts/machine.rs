//! Doubts about the machine around the run.

use units::human_ns;

use super::Evidence;
use crate::words::processors;

/// Shortest phase over which the kernel's ticks (up to 10 ms) are exact enough, in nanoseconds.
const TICKS_NS_MIN: u64 = 400_000_000;
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
/// Share of a phase for which the quota of a control group may stop threads, all processors together.
const CPU_THROTTLED_SHARE_MAX: f64 = 0.01;
/// Drift of the clock against the kernel's, parts per million: calibration leaves some 5, discipline by NTP up to 500
/// on the kernel's side for a while, a healthy oscillator less than 100.
const DRIFT_PPM_MAX: f64 = 200.0;

/// Whether engines elsewhere drive: what this machine does meanwhile says nothing about their figures.
fn is_elsewhere(evidence: &Evidence<'_>) -> bool {
    evidence.plan.is_driven_elsewhere()
}

/// Whether processors are kept busy on purpose: memory and the tool itself are measured so, and who spins does nothing else.
fn is_busy_on_purpose(evidence: &Evidence<'_>, cores: f64) -> bool {
    let threads = evidence.stage_threads + evidence.plan.local_endpoints();
    evidence.plan.is_busy_on_purpose() && threads as f64 <= cores
}

/// Processors that service threads of this machine kept busy, in user mode and in all; they serve this load. None where there are none, or
/// where they did not say.
fn local_servers_cpus(evidence: &Evidence<'_>) -> Option<(f64, f64)> {
    let servers = &evidence.observations.servers;
    if evidence.plan.local_endpoints() == 0 || servers.is_empty() {
        return None;
    }
    let cpus = |ns: u64| ns as f64 / evidence.samples.elapsed_ns.max(1) as f64;
    let user = servers.iter().map(|server| server.cpu_user_ns).sum();
    let all = servers.iter().map(|server| server.cpu_user_ns + server.cpu_system_ns).sum();
    Some((cpus(user), cpus(all)))
}

pub(super) fn all_processors_busy(evidence: &Evidence<'_>) -> Option<String> {
    if evidence.samples.elapsed_ns < TICKS_NS_MIN {
        return None;
    }
    let cores = evidence.logical_cores()?;
    let seen = evidence.observations;
    // What the hypervisor gave to others was not to be had either.
    let busy = seen.machine_cpus_busy? + seen.stolen_cpus.unwrap_or(0.0);
    let meant = is_elsewhere(evidence) || is_busy_on_purpose(evidence, cores);
    let served = local_servers_cpus(evidence).map_or(0.0, |(_, all)| all);
    let own = seen.machine_cpus_busy? - seen.other_cpus_busy.unwrap_or(0.0) + served;
    (!meant && busy > MACHINE_BUSY_SHARE_MAX * cores && own > OWN_BUSY_SHARE_MIN * cores)
        .then(|| format!("{busy:.2} of {cores} CPUs were busy: threads waited for a CPU"))
}

pub(super) fn other_load(evidence: &Evidence<'_>) -> Option<String> {
    let seen = evidence.observations;
    if is_elsewhere(evidence) || evidence.samples.elapsed_ns < TICKS_NS_MIN {
        return None;
    }
    let grown = evidence.logical_cores().map_or(1.0, |cores| (cores / CORES_OF_LIMITS).max(1.0));
    if let Some(stolen) = seen.stolen_cpus.filter(|stolen| *stolen > grown * STOLEN_CPUS_MAX) {
        return Some(format!(
            "the hypervisor gave {} of this machine to other virtual machines",
            processors(stolen)
        ));
    }
    // Service threads on this machine serve this load; where they did not say what they took, others cannot be told from them.
    let is_served_here = evidence.plan.local_endpoints() > 0;
    let served = match local_servers_cpus(evidence) {
        None if is_served_here => return None,
        served => served.unwrap_or((0.0, 0.0)),
    };
    let others = (seen.other_cpus_busy? - served.1).max(0.0);
    match seen.other_cpus_user.map(|user| (user - served.0).max(0.0)) {
        None => (others > grown * OTHER_CPUS_UNKNOWN_MAX)
            .then(|| format!("other processes used {} of this machine", processors(others))),
        Some(user) if user > grown * OTHER_USER_CPUS_MAX => {
            Some(format!("other processes used {} of this machine", processors(others.max(user))))
        }
        Some(user) => (others > grown * OTHER_CPUS_MAX).then(|| {
            format!(
                "other processes used {}, {user:.2} of that in user mode: programs, or kernel threads that serve this load",
                processors(others)
            )
        }),
    }
}

/// Processors that programs of others used during a phase, and those that the hypervisor took; none where it cannot be told.
pub(crate) fn used_by_others(evidence: &Evidence<'_>) -> Option<f64> {
    let seen = evidence.observations;
    let served = match local_servers_cpus(evidence) {
        None if evidence.plan.local_endpoints() > 0 => return None,
        served => served.map_or(0.0, |(user, _)| user),
    };
    let user = seen.other_cpus_user.map(|user| (user - served).max(0.0));
    Some(user? + seen.stolen_cpus.unwrap_or(0.0))
}

/// Share of the time of a phase in which the quota of a control group stopped its threads, all processors together.
pub(crate) fn throttled_share(phase: &crate::record::PhaseRecord) -> f64 {
    let throttled = phase.observations.cpu_throttling.filter(|seen| seen.throttled_periods > 0);
    throttled.map_or(0.0, |seen| seen.throttled_ns as f64 / phase.samples.elapsed_ns.max(1) as f64)
}

/// Processors that others may use before a row of a stack says nothing, on a machine with so many.
pub(crate) fn others_cpus_max(cores: Option<f64>) -> f64 {
    OTHER_USER_CPUS_MAX * cores.map_or(1.0, |cores| (cores / CORES_OF_LIMITS).max(1.0))
}

pub(super) fn cpu_throttled(evidence: &Evidence<'_>) -> Option<String> {
    let seen = evidence.observations.cpu_throttling.filter(|_| !is_elsewhere(evidence))?;
    let share = seen.throttled_ns as f64 / evidence.samples.elapsed_ns.max(1) as f64;
    let quota = evidence.environment.system.cpu_limit_cores;
    let quota = quota.map_or_else(String::new, |cores| format!(" of {}", processors(cores)));
    (seen.throttled_periods > 0 && share > CPU_THROTTLED_SHARE_MAX).then(|| {
        format!(
            "the control group's quota{quota} was used up in {} of {} periods: threads were stopped for {}",
            seen.throttled_periods,
            seen.periods,
            human_ns(seen.throttled_ns as f64)
        )
    })
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
    (!other.is_empty())
        .then(|| format!("the frequency governor is {}: CPUs slow down while they wait", other.join(", ")))
}
