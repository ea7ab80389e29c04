//! Remedies for a drive or a file system that holds a stack back: nothing that the plan has, and nothing that the machine is already.

use host::block::BlockDevice;
use report::stack::{Remedy, RemedyCase};
use workload::plan::LoadKind;

/// Read-ahead from which on more of it gains nothing, in bytes: drives are kept busy by less.
const READ_AHEAD_LARGE_BYTES: u64 = 4 << 20;

/// Remedies, the most promising first.
pub(super) fn remedies(case: &RemedyCase<'_>) -> Vec<Remedy> {
    let is_direct = case.phase.plan.value("/options/direct") == Some(true.into());
    let kind = case.phase.plan.load_kind();
    let reads = matches!(kind, Some(LoadKind::SequentialRead | LoadKind::RandomRead));
    let mut found = Vec::new();
    if case.is_limit {
        if case.phase.doubts.iter().any(|doubt| doubt.kind == "io_throttled") {
            found.push(Remedy::told(
                "raise the limit of the control group (io.max), or move the process out of it",
            ));
        }
        if drives(case).any(|drive| {
            drive.rotational != Some(true) && !matches!(drive.scheduler.as_deref(), Some("none") | None)
        }) {
            found.push(Remedy::told(
                "use the I/O scheduler `none` for flash (/sys/block/DEVICE/queue/scheduler)",
            ));
        }
        return found;
    }
    if !is_direct && kind == Some(LoadKind::SequentialRead) && !case.is_cpu_bound && read_ahead_is_small(case)
    {
        found.push(Remedy::told(
            "use a larger read-ahead (/sys/block/DEVICE/queue/read_ahead_kb): it limits what a buffered reader has in flight",
        ));
    }
    if !is_direct && reads && case.is_cpu_bound {
        found.push(Remedy::told(
            "use direct I/O (--direct), as in the row `media`: copying out of the page cache uses the CPU",
        ));
    }
    if !is_direct && !reads && !case.is_cpu_bound {
        found.push(Remedy::told(
            "use direct I/O (--direct), as in the row `media`: buffered writes are limited by write-back speed",
        ));
    }
    found
}

fn drives<'a>(case: &RemedyCase<'a>) -> impl Iterator<Item = &'a BlockDevice> {
    let devices = case.environment.targets.iter().filter_map(|target| target.device.as_ref());
    devices.flat_map(BlockDevice::bottoms)
}

fn read_ahead_is_small(case: &RemedyCase<'_>) -> bool {
    let mut devices = case.environment.targets.iter().filter_map(|target| target.device.as_ref());
    devices.any(|device| device.read_ahead_bytes.is_some_and(|bytes| bytes < READ_AHEAD_LARGE_BYTES))
}
