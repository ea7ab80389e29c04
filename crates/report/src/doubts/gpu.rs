//! Doubts about the devices that buffers are on.

use super::Evidence;

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
    (!held_back.is_empty()).then(|| format!("the clocks of a GPU were held back: {}", held_back.join("; ")))
}

pub(super) fn shared(evidence: &Evidence<'_>) -> Option<String> {
    let others = evidence.observations.gpu.as_ref()?.other_processes;
    (others > 0).then(|| format!("{others} other processes were on the GPU"))
}
