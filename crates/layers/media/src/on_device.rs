//! Buffers of a load on media on a GPU.

use std::path::Path;

use driver::Error;
use gpu::{Transfer, Transfers, WorkerNotes};
use layer::memory::{DeviceRequest, WorkerNeeds, receiver, storage_places};
use workload::spec::Refill;
use workload::target::TargetKind;

use crate::plan::MediaPlan;
use crate::{MediaClass, MediaOperation, OpenRequest};

/// The buffers of a request on a device.
///
/// # Errors
/// Bad usage where it has none.
pub(crate) fn requested<'a>(
    request: &'a OpenRequest,
    engine: &'static str,
) -> Result<&'a DeviceRequest, Error> {
    request.device.as_ref().ok_or_else(|| {
        Error::usage("open", "the buffers are not on a GPU")
            .with("engine", engine)
            .remedy("give --memory gpu")
    })
}

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
            memory: &self.memory,
            worker: receiver(&self.memory, &self.load, worker),
            depth: self.load.depth,
            makes_content: refills || self.verify_interval_bytes.is_some(),
            is_of_device: ["gpu_copy", "gpu_mem"].contains(&self.engine.as_str()),
        }
    }

    /// Notes of the workers about their devices, which know where the storage is.
    pub(crate) fn gpu_notes(&self) -> WorkerNotes {
        if self.memory.gpu().is_none() {
            return WorkerNotes::default();
        }
        let stored = [TargetKind::File, TargetKind::BlockDevice];
        let targets = self.targets.iter().filter(|target| stored.contains(&target.kind));
        WorkerNotes::near(storage_places(targets.map(|target| Path::new(&target.path))))
    }
}
