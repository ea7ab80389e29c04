//! The doubt about the way to buffers on GPUs.

use gpu::{GpuActivity, Transport};
use report::doubts::Evidence;
use units::percent;

use crate::plan::MediaPlan;

/// Share of the data that must have gone to the device directly; below it the library copied the rest.
const DIRECT_SHARE_MIN: f64 = 0.9;
/// The module counts in whole MiB of reads and of writes: less cannot be told.
const COUNTED_BYTES_MIN: u64 = 64 << 20;

/// GPUDirect Storage was asked for, and data went through memory of the host.
pub(super) fn staged(evidence: &Evidence<'_>) -> Option<String> {
    let gpu = evidence.plan.of::<MediaPlan>()?.memory.gpu()?;
    let seen = evidence.observations.gpu.as_ref()?;
    if !gpu.path.is_cufile() || seen.cufile_requests == 0 {
        return None;
    }
    if seen.cufile_transport == Some(Transport::Compatibility) {
        return Some("GPUDirect Storage was in compatibility mode (nvidia-fs is not loaded): data went through memory of the host".to_owned());
    }
    let told: Vec<_> = [too_little(seen), unaligned(seen)].into_iter().flatten().collect();
    (!told.is_empty()).then(|| told.join("; "))
}

/// Less went directly than was asked for, by the counters of the module.
fn too_little(seen: &GpuActivity) -> Option<String> {
    let direct_bytes = seen.direct_bytes.filter(|_| seen.cufile_bytes >= COUNTED_BYTES_MIN)?;
    let share = direct_bytes as f64 / seen.cufile_bytes as f64;
    (share < DIRECT_SHARE_MIN).then(|| {
        format!(
            "{} of the data went to the GPU directly: the rest went through memory of the host",
            percent(share)
        )
    })
}

/// Requests that the library copied, whatever its way.
fn unaligned(seen: &GpuActivity) -> Option<String> {
    let share = seen.unaligned_requests as f64 / seen.cufile_requests as f64;
    (share > 1.0 - DIRECT_SHARE_MIN).then(|| {
        format!(
            "{} of the requests were not on multiples of {} bytes: libcufile copied them through buffers of its own",
            percent(share),
            gpu::CuFile::PAGE_BYTES
        )
    })
}
