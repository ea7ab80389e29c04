//! Memory that the buffers of blocks lie in.

use std::path::Path;

use gpu::{GpuPath, MemoryPlan, Transfer, Transfers, WorkerNotes};
use layer::memory::{WorkerNeeds, receiver, storage_places};
use workload::option;
use workload::options::OptionDef;
use workload::spec::{Refill, choice};

use crate::operation::{FsClass, FsOperation};
use crate::plan::FsPlan;
use crate::spec::FsSpec;

/// Options of the memory of buffers.
pub(crate) static MEMORY: &[OptionDef] = layer::staged_memory_options!(FsSpec);

/// Those of GPUDirect Storage.
pub(crate) static CUFILE: &[OptionDef] = &[
    option!(
        "gpu-path",
        None,
        "staged|cufile",
        "staged; cufile with --engine cufile",
        Engine,
        "Way to memory of a GPU: a copy through memory of the host within the latency, or GPUDirect Storage",
        |spec, text| {
            let ways = [("staged", GpuPath::Staged), ("cufile", GpuPath::Cufile)];
            spec.own.get_mut::<FsSpec>().memory.gpu_path = Some(choice("gpu-path", text, &ways)?);
            Ok(())
        }
    ),
    option!(
        "gpu-register",
        None,
        "on|off",
        "on",
        Engine,
        "cufile: register the buffers with GPUDirect Storage before the phase",
        |spec, text| {
            let switches = [("on", true), ("off", false)];
            spec.own.get_mut::<FsSpec>().memory.gpu_register = Some(choice("gpu-register", text, &switches)?);
            Ok(())
        }
    ),
];

/// The memory of buffers for an engine.
///
/// # Errors
/// Options that do not go together, or with the engine.
pub(crate) fn plan_of(own: &FsSpec, engine: &str) -> Result<MemoryPlan, String> {
    let is_cufile = engine == CUFILE_ENGINE;
    if !is_cufile && own.memory.gpu_path == Some(GpuPath::Cufile) {
        return Err(format!("engine {engine} has no --gpu-path cufile: use --engine {CUFILE_ENGINE}"));
    }
    let plan = own.memory.plan(is_cufile.then_some(GpuPath::Cufile))?;
    if is_cufile && plan.gpu().is_none() {
        return Err(format!("engine {engine} works on memory of a GPU: give --memory gpu"));
    }
    Ok(plan)
}

/// The engine of GPUDirect Storage.
pub(crate) const CUFILE_ENGINE: &str = "cufile";

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
        let refills = self.operation == crate::phases::FsOp::Write && self.content.refill == Refill::Full;
        WorkerNeeds {
            memory: if moves_data { &self.memory } else { HOST },
            worker: receiver(&self.memory, &self.load, worker),
            depth: self.load.depth,
            makes_content: self.verify || refills,
            is_of_device: false,
        }
    }

    /// Notes of the workers about their devices, which know where the files are.
    pub(crate) fn gpu_notes(&self) -> WorkerNotes {
        if self.memory.gpu().is_none() || !self.operation.moves_data() {
            return WorkerNotes::default();
        }
        WorkerNotes::near(storage_places(self.targets.iter().map(Path::new)))
    }
}
