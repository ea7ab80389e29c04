//! Memory that the payloads of RPCs lie in.

use gpu::{Exchange, GpuPath, Transfer, Transfers};
use layer::memory::WorkerNeeds;
use workload::option;
use workload::options::OptionDef;
use workload::spec::choice;

use crate::plan::NetworkPlan;
use crate::spec::NetworkSpec;
use crate::{Rpc, SlotLayout};

/// Options of the memory of payloads.
pub static MEMORY: &[OptionDef] = layer::staged_memory_options!(NetworkSpec);

/// The way that they take.
pub static PATH: &[OptionDef] = &[option!(
    "gpu-path",
    None,
    "staged|rdma",
    "staged",
    Engine,
    "How payloads reach GPU memory: a copy through host memory (part of the latency), or RDMA of bulk from and to the device (libfabric, FI_HMEM)",
    |spec, text| {
        let paths = [GpuPath::Staged.named(), GpuPath::Rdma.named()];
        spec.own.get_mut::<NetworkSpec>().memory.gpu_path = Some(choice("gpu-path", text, &paths)?);
        Ok(())
    }
)];

impl Transfers for Rpc {
    #[inline]
    fn transfer(&self) -> Transfer {
        Transfer::Exchange
    }
}

impl NetworkPlan {
    /// Memory of worker `worker`. RPCs without payloads need none of a device.
    pub(crate) fn worker_needs(&self, worker: u32) -> WorkerNeeds<'_> {
        WorkerNeeds::of(&self.memory, &self.load, worker, self.rpc_bytes() > 0)
    }

    /// Parts of a buffer that go out with a request and come in with a reply.
    pub(crate) fn exchange(&self, layout: SlotLayout) -> Exchange {
        Exchange {
            request: (layout.request_offset_bytes, self.request.size_bytes as usize),
            reply: (layout.reply_offset_bytes, self.reply.size_bytes as usize),
        }
    }
}
