//! Memory that the buffers of blocks lie in.

use gpu::{GpuPath, MemoryPlan, Transfer, Transfers, WorkerNotes};
use layer::memory::{WorkerNeeds, worker_notes};
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
        "Data path to GPU memory: a copy through host memory (part of the latency), or GPUDirect Storage",
        |spec, text| {
            spec.own.get_mut::<FsSpec>().memory.gpu_path =
                Some(choice("gpu-path", text, &[GpuPath::Staged.named(), GpuPath::Cufile.named()])?);
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
        return Err(format!(
            "engine {engine} does not support --gpu-path cufile: use --engine {CUFILE_ENGINE}"
        ));
    }
    let plan = own.memory.plan(is_cufile.then_some(GpuPath::Cufile))?;
    if is_cufile && plan.gpu().is_none() {
        return Err(format!("engine {engine} requires GPU memory: add --memory gpu"));
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
        let refills = self.operation == crate::phases::FsOp::Write && self.content.refill == Refill::Full;
        WorkerNeeds {
            makes_content: self.verify || refills,
            ..WorkerNeeds::of(&self.memory, &self.load, worker, self.operation.moves_data())
        }
    }

    /// Notes of the workers about their devices, which know where the files are.
    pub(crate) fn gpu_notes(&self) -> WorkerNotes {
        let stored = self.targets.iter().filter(|_| self.operation.moves_data());
        worker_notes(&self.memory, stored)
    }
}
