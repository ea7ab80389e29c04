//! Checkpoints of an application: throughput of each, and their share of the time.

use std::sync::atomic::{AtomicU64, Ordering};

use layer::observations::CheckpointActivity;
use statistics::PhaseSamples;

use crate::operation::AppClass;
use crate::plan::AppPlan;

/// Time of the stages of an application so far, in nanoseconds.
#[derive(Default)]
pub(crate) struct Times {
    checkpoints: AtomicU64,
    others: AtomicU64,
}

impl Times {
    /// Takes in a stage that has ended; what is told of it where it is a checkpoint.
    pub(crate) fn take(&self, plan: &AppPlan, samples: &PhaseSamples) -> Option<CheckpointActivity> {
        let ns = samples.elapsed_ns;
        if !plan.groups.iter().any(|group| group.checkpoint) {
            // Training, evaluation and pauses; the data set is made before all of them.
            if plan.groups.iter().flat_map(|group| &group.steps).any(|step| step.compute_ns > 0) {
                self.others.fetch_add(ns, Ordering::Relaxed);
            }
            return None;
        }
        let all_ns = self.checkpoints.fetch_add(ns, Ordering::Relaxed) + ns;
        let others_ns = self.others.load(Ordering::Relaxed);
        let classes = || samples.workers.iter().flat_map(|worker| &worker.classes);
        let named = |class: AppClass| classes().filter(move |one| one.class == class.name());
        let bytes: u64 = named(AppClass::Write).map(|one| one.bytes).sum();
        Some(CheckpointActivity {
            ranks: plan.processes(),
            files: named(AppClass::Create).map(|one| one.latency.count()).sum(),
            bytes,
            time_ns: ns,
            bytes_per_second: bytes as f64 * 1e9 / ns.max(1) as f64,
            share_fraction: (others_ns > 0).then(|| all_ns as f64 / (all_ns + others_ns) as f64),
        })
    }
}
