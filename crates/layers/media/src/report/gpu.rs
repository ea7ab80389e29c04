//! The doubt about the way to buffers on GPUs.

use gpu::GpuPath;
use report::doubts::Evidence;
use units::percent;

use crate::plan::MediaPlan;

/// Share of the requests that must have gone to the device directly; below it the library copied the others.
const DIRECT_SHARE_MIN: f64 = 0.9;

/// GPUDirect Storage was asked for, and data went through memory of the host.
pub(super) fn staged(evidence: &Evidence<'_>) -> Option<String> {
    let gpu = evidence.plan.of::<MediaPlan>()?.memory.gpu()?;
    let seen = evidence.observations.gpu.as_ref()?;
    if gpu.path != GpuPath::Cufile {
        return None;
    }
    let Some(direct) = seen.direct_requests else {
        return Some("GPUDirect Storage was in compatibility mode (nvidia-fs is not loaded): data went through memory of the host".to_owned());
    };
    let classes =
        evidence.summary.classes.iter().filter(|class| ["read", "write"].contains(&class.class.as_str()));
    let asked: u64 = classes.map(|class| class.operations).sum();
    let share = direct as f64 / asked.max(1) as f64;
    (asked > 0 && share < DIRECT_SHARE_MIN).then(|| {
        format!(
            "{} of the requests went to the GPU directly: the others went through memory of the host",
            percent(share)
        )
    })
}
