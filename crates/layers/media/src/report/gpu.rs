//! The doubt about the way to buffers on GPUs.

use report::doubts::Evidence;
use units::percent;

use crate::plan::MediaPlan;

/// Share of the requests that must have gone to the device directly; below it the library copied the others.
const DIRECT_SHARE_MIN: f64 = 0.9;

/// GPUDirect Storage was asked for, and data went through memory of the host.
pub(super) fn staged(evidence: &Evidence<'_>) -> Option<String> {
    let gpu = evidence.plan.of::<MediaPlan>()?.memory.gpu()?;
    let seen = evidence.observations.gpu.as_ref()?;
    if !gpu.path.is_cufile() {
        return None;
    }
    let Some(direct) = seen.direct_requests else {
        return Some("GPUDirect Storage was in compatibility mode (nvidia-fs is not loaded): data went through memory of the host".to_owned());
    };
    let classes =
        evidence.summary.classes.iter().filter(|class| ["read", "write"].contains(&class.class.as_str()));
    let asked = classes.map(|class| class.operations).sum::<u64>() as f64;
    if asked == 0.0 {
        return None;
    }
    let share = direct as f64 / asked;
    let unaligned_share = (seen.unaligned_requests as f64 / asked).min(1.0);
    let unaligned = || {
        format!(
            "{} of the requests were not on multiples of {} bytes: libcufile copied them through buffers of its own",
            percent(unaligned_share),
            gpu::CuFile::PAGE_BYTES
        )
    };
    let staged = || {
        format!(
            "{} of the requests went to the GPU directly: the others went through memory of the host",
            percent(share.min(1.0))
        )
    };
    match (share < DIRECT_SHARE_MIN, unaligned_share > 1.0 - DIRECT_SHARE_MIN) {
        (true, true) => Some(format!("{}; {}", staged(), unaligned())),
        (true, false) => Some(staged()),
        (false, true) => Some(unaligned()),
        (false, false) => None,
    }
}
