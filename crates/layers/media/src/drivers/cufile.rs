//! Memory of a GPU through GPUDirect Storage: `cufile`, one request at a time; in flight beside each other in [`queued`].

pub(super) mod queued;

use std::os::fd::AsFd;

use driver::{Capabilities, Error, Opened, Registration};
use gpu::RegisteredFile;
use layer::memory::DirectMemory;

use crate::descriptor::{self, Bounds, Descriptor, INVALID, UNSUPPORTED};
use crate::engine::SyncCall;
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
    files: Vec<RegisteredFile>,
    pub(super) memory: DirectMemory,
    targets: Vec<Descriptor>,
    bounds: Bounds,
    sync_call: SyncCall,
}

impl Files {
    /// Opens and registers all that a request needs; with notes for the record.
    fn open(
        request: &OpenRequest,
        engine: &'static str,
        capabilities: &Capabilities,
    ) -> Result<(Self, Vec<String>), Error> {
        descriptor::check(request, engine, capabilities)?;
        let (memory, note) = DirectMemory::open(request.device.as_ref(), engine)?;
        let targets = descriptor::open_all(request, engine)?;
        let register = |target: &Descriptor| memory.library.register_file(target.fd.as_fd());
        let files = targets
            .iter()
            .zip(&request.targets)
            .map(|(target, plan)| register(target).map_err(|error| error.with("target", &plan.path)));
        let files = files.collect::<Result<Vec<_>, _>>()?;
        let (bounds, sync_call) = (Bounds::new(request), request.options.sync_call);
        Ok((Self { files, memory, targets, bounds, sync_call }, vec![note]))
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

impl CarryOut for Files {
    #[inline]
    fn carry_out(&self, operation: &MediaOperation) -> i64 {
        if !self.bounds.allow(operation) {
            return INVALID;
        }
        let (file, buffers) = (&self.files[usize::from(operation.target)], &self.memory.buffers);
        let MediaOperation { slot, offset, length, .. } = *operation;
        match operation.class {
            MediaClass::Read => {
                self.memory.count(offset, u64::from(length));
                file.read(buffers, slot, length as usize, offset)
            }
            MediaClass::Write => {
                self.memory.count(offset, u64::from(length));
                file.write(buffers, slot, length as usize, offset)
            }
            _ => self.without_data(operation),
        }
    }
}
