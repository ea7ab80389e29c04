//! Doubts about the devices that buffers are on.

use gpu::{CuFile, GpuActivity, Transport};
use units::percent;

use super::Evidence;

/// Share of the data that must have gone to the device directly; below it the library copied the rest.
const DIRECT_SHARE_MIN: f64 = 0.9;
/// The module counts in whole MiB of reads and of writes: less cannot be told.
const COUNTED_BYTES_MIN: u64 = 64 << 20;

pub(super) fn far(evidence: &Evidence<'_>) -> Option<String> {
    let seen = evidence.observations.gpu.as_ref()?;
    let told = [
        (seen.far_workers, "workers are on another NUMA node than their GPU"),
        (
            seen.workers_far_from_storage,
            "workers use a GPU under another PCIe switch than their storage, which shares one with another GPU",
        ),
    ];
    let told: Vec<_> = told
        .iter()
        .filter(|(workers, _)| *workers > 0)
        .map(|(workers, what)| format!("{workers} {what}"))
        .collect();
    (!told.is_empty()).then(|| told.join("; "))
}

pub(super) fn held_back(evidence: &Evidence<'_>) -> Option<String> {
    let held_back = &evidence.observations.gpu.as_ref()?.held_back;
    (!held_back.is_empty()).then(|| format!("the clocks of a GPU were reduced: {}", held_back.join("; ")))
}

pub(super) fn shared(evidence: &Evidence<'_>) -> Option<String> {
    let others = evidence.observations.gpu.as_ref()?.other_processes;
    (others > 0).then(|| format!("{others} other processes used the GPU"))
}

/// GPUDirect Storage was asked for, and data went through memory of the host.
pub(super) fn staged(evidence: &Evidence<'_>) -> Option<String> {
    let seen = evidence.observations.gpu.as_ref().filter(|seen| seen.cufile_requests > 0)?;
    if seen.cufile_transport == Some(Transport::Compatibility) {
        return Some("GPUDirect Storage was in compatibility mode (nvidia-fs is not loaded): data went through host memory".to_owned());
    }
    let told: Vec<_> = [too_little(seen), unaligned(seen)].into_iter().flatten().collect();
    (!told.is_empty()).then(|| told.join("; "))
}

/// Less went directly than was asked for, by the counters of the module.
fn too_little(seen: &GpuActivity) -> Option<String> {
    let direct_bytes = seen.direct_bytes.filter(|_| seen.cufile_bytes >= COUNTED_BYTES_MIN)?;
    let share = direct_bytes as f64 / seen.cufile_bytes as f64;
    (share < DIRECT_SHARE_MIN).then(|| {
        format!("{} of the data went to the GPU directly: the rest went through host memory", percent(share))
    })
}

/// Requests that the library copied, whatever its way.
fn unaligned(seen: &GpuActivity) -> Option<String> {
    let share = seen.unaligned_requests as f64 / seen.cufile_requests as f64;
    (share > 1.0 - DIRECT_SHARE_MIN).then(|| {
        format!(
            "{} of the requests were not aligned to {} bytes: libcufile copied them through internal buffers",
            percent(share),
            CuFile::PAGE_BYTES
        )
    })
}
