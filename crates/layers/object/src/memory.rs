//! Memory that the buffers of values lie in.

use gpu::{Transfer, Transfers, WorkerNotes};
use layer::memory::{WorkerNeeds, worker_notes};
use workload::options::OptionDef;
use workload::spec::Refill;

use crate::ObjectOperation;
use crate::load::directory_of;
use crate::plan::{ObjectOp, ObjectPlan, ObjectSpec};

/// Options of the memory of buffers.
pub static MEMORY: &[OptionDef] = layer::staged_memory_options!(ObjectSpec);

impl Transfers for ObjectOperation {
    #[inline]
    fn transfer(&self) -> Transfer {
        if self.operation.stores() {
            Transfer::Out
        } else if self.operation.loads() {
            Transfer::In
        } else {
            Transfer::None
        }
    }
}

impl ObjectPlan {
    /// Whether values are moved at all.
    pub(crate) fn moves_values(&self) -> bool {
        self.any(|operation| operation.stores() || operation.loads())
    }

    /// Memory of worker `worker` of this host. Phases that move no values need none of a device.
    pub(crate) fn worker_needs(&self, worker: u32) -> WorkerNeeds<'_> {
        WorkerNeeds {
            // Verified values are made on the host: they carry checksums of their own.
            makes_content: !self.verify && self.any(ObjectOp::stores) && self.content.refill == Refill::Full,
            ..WorkerNeeds::of(&self.memory, &self.load, worker, self.moves_values())
        }
    }

    /// Notes of the workers about their devices, which know where a store of this machine is.
    pub(crate) fn gpu_notes(&self) -> WorkerNotes {
        worker_notes(&self.memory, directory_of(&self.target).map(units::path_of))
    }
}
