//! Doubts about the devices that buffers are on.

use super::Evidence;

pub(super) fn far(evidence: &Evidence<'_>) -> Option<String> {
    let far = evidence.observations.gpu.as_ref()?.far_workers;
    (far > 0).then(|| format!("{far} workers are on another NUMA node than their GPU"))
}

pub(super) fn held_back(evidence: &Evidence<'_>) -> Option<String> {
    let held_back = &evidence.observations.gpu.as_ref()?.held_back;
    (!held_back.is_empty()).then(|| format!("the clocks of a GPU were held back: {}", held_back.join("; ")))
}

pub(super) fn shared(evidence: &Evidence<'_>) -> Option<String> {
    let others = evidence.observations.gpu.as_ref()?.other_processes;
    (others > 0).then(|| format!("{others} other processes were on the GPU"))
}
