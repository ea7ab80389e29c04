//! `cufile`: memory of a GPU through GPUDirect Storage, one operation at a time.

use std::os::fd::AsFd;
use std::sync::Arc;

use driver::{Capabilities, Error, Opened, Registration};
use gpu::{CuFile, DeviceBuffers, RegisteredBuffers, RegisteredFile, Transport};

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
    options: &["sync", "memory", "gpu-path", "gpu-register"],
};

/// The table line.
pub(super) const REGISTRATION: Registration<MediaOperation, OpenRequest> = Registration {
    name: NAME,
    summary: "memory of a GPU through GPUDirect Storage (libcufile): --memory gpu",
    capabilities: CAPABILITIES,
    open,
};

fn open(request: &OpenRequest) -> Result<Opened<MediaOperation>, Error> {
    descriptor::check(request, NAME, &CAPABILITIES)?;
    let device = on_device::requested(request, NAME)?;
    let library = CuFile::open()?;
    let targets = descriptor::open_all(request, NAME)?;
    let register = |target: &Descriptor| library.register_file(target.fd.as_fd());
    let files = targets
        .iter()
        .zip(&request.targets)
        .map(|(target, plan)| register(target).map_err(|error| error.with("target", &plan.path)));
    let files = files.collect::<Result<Vec<_>, _>>()?;
    let registered =
        if device.plan.register { Some(library.register_buffers(&device.buffers)?) } else { None };
    let notes = vec![match library.transport() {
        Transport::Module { major, minor } => format!("GPUDirect Storage with nvidia-fs {major}.{minor}"),
        Transport::Compatibility => {
            "GPUDirect Storage is in compatibility mode (nvidia-fs is not loaded): data go through memory of the host"
                .to_owned()
        }
    }];
    let driver = Direct {
        files,
        _registered: registered,
        targets,
        buffers: Arc::clone(&device.buffers),
        bounds: Bounds::new(request),
        sync_call: request.options.sync_call,
    };
    Ok(Opened { driver: Box::new(OneByOne(driver)), notes })
}

/// Files are deregistered before they are closed.
struct Direct {
    files: Vec<RegisteredFile>,
    _registered: Option<RegisteredBuffers>,
    targets: Vec<Descriptor>,
    buffers: Arc<DeviceBuffers>,
    bounds: Bounds,
    sync_call: SyncCall,
}

impl CarryOut for Direct {
    #[inline]
    fn carry_out(&self, operation: &MediaOperation) -> i64 {
        if !self.bounds.allow(operation) {
            return INVALID;
        }
        let at = usize::from(operation.target);
        let MediaOperation { slot, offset, length, .. } = *operation;
        match operation.class {
            MediaClass::Read => self.files[at].read(&self.buffers, slot, length as usize, offset),
            MediaClass::Write => self.files[at].write(&self.buffers, slot, length as usize, offset),
            MediaClass::Discard => descriptor::discard(&self.targets[at], offset, length),
            MediaClass::Sync => descriptor::sync(self.targets[at].fd.as_fd(), self.sync_call),
            _ => UNSUPPORTED,
        }
    }
}
