//! Memory that the buffers of values lie in.

use gpu::{MemoryPlan, Transfer, Transfers, WorkerNotes};
use layer::memory::{WorkerNeeds, receiver, storage_places};
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
        const HOST: &MemoryPlan = &MemoryPlan::Host;
        WorkerNeeds {
            memory: if self.moves_values() { &self.memory } else { HOST },
            worker: receiver(&self.memory, &self.load, worker),
            depth: self.load.depth,
            // Verified values are made on the host: they carry checksums of their own.
            makes_content: !self.verify && self.any(ObjectOp::stores) && self.content.refill == Refill::Full,
            is_of_device: false,
        }
    }

    /// Notes of the workers about their devices, which know where a store of this machine is.
    pub(crate) fn gpu_notes(&self) -> WorkerNotes {
        match self.memory.gpu().and(directory_of(&self.target)) {
            Some(directory) => {
                WorkerNotes::near(storage_places(std::iter::once(units::path_of(directory).as_ref())))
            }
            None => WorkerNotes::default(),
        }
    }
}
