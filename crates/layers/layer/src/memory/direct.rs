//! GPUDirect Storage on the buffers of a worker: what drivers of any layer share.

use std::cell::Cell;
use std::sync::Arc;

use driver::Error;
use gpu::{CuFile, CufileRequests, DeviceBuffers, GpuPath, RegisteredBuffers, WorkerNotes};

use super::DeviceRequest;

/// The library with the buffers of a worker, registered where the plan says so. Requests are counted, and noted when this goes: files
/// that it reads and writes are deregistered before.
pub struct DirectMemory {
    /// The library.
    pub library: &'static CuFile,
    /// The buffers.
    pub buffers: Arc<DeviceBuffers>,
    _registered: Option<RegisteredBuffers>,
    asked: Cell<CufileRequests>,
    notes: WorkerNotes,
}

impl DirectMemory {
    /// Opens the library and registers the buffers, with a note for the record on the way that data take.
    ///
    /// # Errors
    /// Bad usage where the buffers are on no device; when the library is missing, or refuses.
    pub fn open(request: Option<&DeviceRequest>, engine: &str) -> Result<(Self, String), Error> {
        let request = DeviceRequest::required(request, engine)?;
        let library = CuFile::open()?;
        let registered = match (request.plan.register, request.plan.path) {
            (false, _) => None,
            (true, GpuPath::CufileStream) => Some(library.register_each_buffer(&request.buffers)?),
            (true, _) => Some(library.register_buffers(&request.buffers)?),
        };
        let transport = library.transport();
        request.notes.add_transport(transport);
        let memory = Self {
            library,
            buffers: Arc::clone(&request.buffers),
            _registered: registered,
            asked: Cell::default(),
            notes: request.notes.clone(),
        };
        Ok((memory, transport.note().to_owned()))
    }

    /// Counts a read or a write of `bytes` at `offset` of a file.
    #[inline]
    pub fn count(&self, offset: u64, bytes: u64) {
        self.asked.set(self.asked.get().and(offset, bytes));
    }
}

impl Drop for DirectMemory {
    fn drop(&mut self) {
        self.notes.add_requests(self.asked.get());
    }
}
