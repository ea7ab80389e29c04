//! Buffers of a load on media on a GPU.

use driver::Error;
use gpu::{Transfer, Transfers};
use layer::memory::{DeviceRequest, WorkerNeeds};
use workload::spec::Refill;

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
            worker: self.load.worker(worker),
            depth: self.load.depth,
            makes_content: refills || self.verify_interval_bytes.is_some(),
            is_of_device: ["gpu_copy", "gpu_mem"].contains(&self.engine.as_str()),
        }
    }
}
