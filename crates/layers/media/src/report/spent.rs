//! Drive, submission, or kernel and this process: where operations on a device spend their time (`--split-latency`), by the counters of the block
//! layer (Documentation/block/stat.rst: from when a request is made to when it is complete).

use layer::observations::DeviceActivity;
use report::record::PhaseRecord;
use statistics::ClassSummary;
use units::clean;
use units::human::human_ns;

use crate::plan::MediaPlan;

/// Requests of a device, or bytes of them, beside those of the operations: nearer than this they are the same.
const SAME: f64 = 0.03;
/// Counters are in milliseconds: so many of them all together, for the mean to be told.
const TOLD_NS_MIN: u64 = 50_000_000;
/// Mean time of a device that is longer than the latency by more is not that of these operations.
const LONGER_MAX: f64 = 1.03;
/// Share of the time from which on the device is what counts.
const SHARE_MIN: f64 = 0.5;

/// Classes whose operations are each a request of one device.
pub(super) fn told(phase: &PhaseRecord) -> Vec<(&ClassSummary, String)> {
    let is_asked = phase.plan.of::<MediaPlan>().is_some_and(|plan| plan.load.split_latency);
    let device = match phase.observations.devices.as_slice() {
        [only] if is_asked => Some(only),
        _ => None,
    };
    let classes = device.into_iter().flat_map(|_| &phase.summary.classes);
    classes.filter_map(|class| Some((class, line(class, device?)?))).collect()
}

fn line(class: &ClassSummary, device: &DeviceActivity) -> Option<String> {
    let (requests, bytes, time_ns) = match class.class.as_str() {
        "read" => (device.reads, device.read_bytes, device.read_ns),
        "write" => (device.writes, device.written_bytes, device.write_ns),
        _ => return None,
    };
    let is_same = |one: u64, other: u64| (one as f64 - other as f64).abs() <= SAME * other as f64;
    let is_one_to_one = is_same(requests, class.operations) && is_same(bytes, class.bytes);
    let latency_ns = class.latency.as_ref()?.mean_ns;
    if !is_one_to_one || time_ns < TOLD_NS_MIN || requests == 0 || latency_ns <= 0.0 {
        return None;
    }
    let device_ns = time_ns as f64 / requests as f64;
    let share = device_ns / latency_ns;
    if share > LONGER_MAX {
        return None;
    }
    let submission = class.submission.as_ref().map_or(0.0, |part| part.mean_ns / latency_ns);
    let percent = |share: f64| format!("{:.0} %", 100.0 * share.clamp(0.0, 1.0));
    let advice = if share >= SHARE_MIN {
        "the drive is the bottleneck: --saturate finds how many operations it can execute in parallel"
    } else {
        "the CPU path is the bottleneck (submission, interrupts, wake-ups): use more threads, io_uring with several operations in flight, or polling (--iopoll)"
    };
    Some(format!(
        "{} of the time in {} ({} of {}, by the block layer), {} in submission, {} in the kernel and this process; {advice}",
        percent(share),
        clean(&device.name),
        human_ns(device_ns),
        human_ns(latency_ns),
        percent(submission),
        percent(1.0 - share - submission),
    ))
}
