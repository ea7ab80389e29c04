//! Memory that the buffers of blocks lie in.

use gpu::{MemoryPlan, Transfer, Transfers};
use layer::memory::{WorkerNeeds, receiver};
use workload::options::OptionDef;
use workload::spec::Refill;

use crate::operation::{FsClass, FsOperation};
use crate::plan::FsPlan;
use crate::spec::FsSpec;

/// Options of the memory of buffers.
pub(crate) static MEMORY: &[OptionDef] = layer::staged_memory_options!(FsSpec);

impl Transfers for FsOperation {
    #[inline]
    fn transfer(&self) -> Transfer {
        match self.class {
            FsClass::Read => Transfer::In,
            FsClass::Write => Transfer::Out,
            _ => Transfer::None,
        }
    }
}

impl FsPlan {
    /// Memory of worker `worker` of this host. Phases that move no blocks need none of a device.
    pub(crate) fn worker_needs(&self, worker: u32) -> WorkerNeeds<'_> {
        const HOST: &MemoryPlan = &MemoryPlan::Host;
        let moves_data = self.operation.moves_data();
        let refills = self.operation == crate::phases::FsOp::Write && self.content.refill != Refill::Once;
        WorkerNeeds {
            memory: if moves_data { &self.memory } else { HOST },
            worker: receiver(&self.memory, &self.load, worker),
            depth: self.load.depth,
            makes_content: self.verify || refills,
            is_of_device: false,
        }
    }
}
