//! Buffers of a load on media on a GPU.

use gpu::{Transfer, Transfers, WorkerNotes};
use layer::memory::{WorkerNeeds, worker_notes};
use workload::spec::Refill;
use workload::target::TargetKind;

use crate::plan::MediaPlan;
use crate::{MediaClass, MediaOperation};

impl Transfers for MediaOperation {
    #[inline]
    fn transfer(&self) -> Transfer {
        match self.class {
            MediaClass::Read => Transfer::In,
            MediaClass::Write => Transfer::Out,
            _ => Transfer::None,
        }
    }
}

impl MediaPlan {
    /// Memory of worker `worker`.
    pub(crate) fn worker_needs(&self, worker: u32) -> WorkerNeeds<'_> {
        let refills = self.mix.write_percent > 0 && self.content.refill != Refill::Once;
        WorkerNeeds {
            makes_content: refills || self.verify_interval_bytes.is_some(),
            is_of_device: ["gpu_copy", "gpu_mem"].contains(&self.engine.as_str()),
            ..WorkerNeeds::of(&self.memory, &self.load, worker, true)
        }
    }

    /// Notes of the workers about their devices, which know where the storage is.
    pub(crate) fn gpu_notes(&self) -> WorkerNotes {
        let stored = [TargetKind::File, TargetKind::BlockDevice];
        let targets = self.targets.iter().filter(|target| stored.contains(&target.kind));
        worker_notes(&self.memory, targets.map(|target| &target.path))
    }
}
