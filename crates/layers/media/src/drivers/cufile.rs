//! Memory of a GPU through GPUDirect Storage: `cufile`, one request at a time; in flight beside each other in [`queued`].

pub(super) mod queued;

use std::cell::Cell;
use std::os::fd::AsFd;
use std::sync::Arc;

use driver::{Capabilities, Error, Opened, Registration};
use gpu::{CuFile, CufileRequests, DeviceBuffers, GpuPath, RegisteredBuffers, RegisteredFile, WorkerNotes};

use crate::descriptor::{self, Bounds, Descriptor, INVALID, UNSUPPORTED};
use crate::engine::SyncCall;
use crate::on_device;
use crate::one_by_one::{CarryOut, OneByOne};
use crate::{MediaClass, MediaOperation, OpenRequest};

const NAME: &str = "cufile";

const CAPABILITIES: Capabilities = Capabilities {
    classes: &["read", "write", "discard", "sync"],
    asynchronous: false,
    depth_max: 1,
    targetless: false,
    direct: true,
    options: &["sync", "memory", "gpu-path", "gpu-register", "gpu-per"],
};

/// The table line.
pub(super) const REGISTRATION: Registration<MediaOperation, OpenRequest> = Registration {
    name: NAME,
    summary: "memory of a GPU through GPUDirect Storage (libcufile): --memory gpu",
    capabilities: CAPABILITIES,
    open,
};

fn open(request: &OpenRequest) -> Result<Opened<MediaOperation>, Error> {
    let (files, notes) = Files::open(request, NAME, &CAPABILITIES)?;
    Ok(Opened { driver: Box::new(OneByOne(files)), notes })
}

/// Targets that the library knows. They are deregistered before they are closed.
pub(super) struct Files {
    pub(super) library: &'static CuFile,
    files: Vec<RegisteredFile>,
    _registered: Option<RegisteredBuffers>,
    targets: Vec<Descriptor>,
    pub(super) buffers: Arc<DeviceBuffers>,
    bounds: Bounds,
    sync_call: SyncCall,
    asked: Cell<CufileRequests>,
    seen: WorkerNotes,
}

impl Files {
    /// Opens and registers all that a request needs; with notes for the record.
    fn open(
        request: &OpenRequest,
        engine: &'static str,
        capabilities: &Capabilities,
    ) -> Result<(Self, Vec<String>), Error> {
        descriptor::check(request, engine, capabilities)?;
        let device = on_device::requested(request, engine)?;
        let library = CuFile::open()?;
        let targets = descriptor::open_all(request, engine)?;
        let register = |target: &Descriptor| library.register_file(target.fd.as_fd());
        let files = targets
            .iter()
            .zip(&request.targets)
            .map(|(target, plan)| register(target).map_err(|error| error.with("target", &plan.path)));
        let files = files.collect::<Result<Vec<_>, _>>()?;
        let registered = match (device.plan.register, device.plan.path) {
            (false, _) => None,
            (true, GpuPath::CufileStream) => Some(library.register_each_buffer(&device.buffers)?),
            (true, _) => Some(library.register_buffers(&device.buffers)?),
        };
        let transport = library.transport();
        device.notes.add_transport(transport);
        let notes = vec![transport.note().to_owned()];
        let files = Self {
            library,
            files,
            _registered: registered,
            targets,
            buffers: Arc::clone(&device.buffers),
            bounds: Bounds::new(request),
            sync_call: request.options.sync_call,
            asked: Cell::default(),
            seen: device.notes.clone(),
        };
        Ok((files, notes))
    }

    /// Counts a read or a write.
    #[inline]
    fn count(&self, operation: &MediaOperation) {
        self.asked.set(self.asked.get().and(operation.offset, u64::from(operation.length)));
    }

    /// Carries out what moves no data.
    fn without_data(&self, operation: &MediaOperation) -> i64 {
        let target = &self.targets[usize::from(operation.target)];
        match operation.class {
            MediaClass::Discard => descriptor::discard(target, operation.offset, operation.length),
            MediaClass::Sync => descriptor::sync(target.fd.as_fd(), self.sync_call),
            _ => UNSUPPORTED,
        }
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        self.seen.add_requests(self.asked.get());
    }
}

impl CarryOut for Files {
    #[inline]
    fn carry_out(&self, operation: &MediaOperation) -> i64 {
        if !self.bounds.allow(operation) {
            return INVALID;
        }
        let file = &self.files[usize::from(operation.target)];
        let MediaOperation { slot, offset, length, .. } = *operation;
        match operation.class {
            MediaClass::Read => {
                self.count(operation);
                file.read(&self.buffers, slot, length as usize, offset)
            }
            MediaClass::Write => {
                self.count(operation);
                file.write(&self.buffers, slot, length as usize, offset)
            }
            _ => self.without_data(operation),
        }
    }
}
