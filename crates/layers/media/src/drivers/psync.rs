//! `psync`: one `pread` or `pwrite` at a time.
#![allow(unsafe_code)]

use std::os::fd::AsFd;
use std::sync::Arc;

use crate::engine::SyncCall;
use driver::{Arena, Capabilities, Error, Opened, Operation, Registration};
use rustix::io::retry_on_intr;

use crate::descriptor::{self, Bounds, Descriptor, INVALID, completed, written};
use crate::one_by_one::{CarryOut, OneByOne};
use crate::{MediaClass, MediaOperation, OpenRequest};

const NAME: &str = "psync";

const CAPABILITIES: Capabilities = Capabilities {
    classes: MediaOperation::CLASSES,
    asynchronous: false,
    depth_max: 1,
    targetless: false,
    direct: true,
    options: &["advise", "sync", "memory", "gpu-path", "gpu-staging", "gpu-per"],
};

/// The table line.
pub(super) const REGISTRATION: Registration<MediaOperation, OpenRequest> =
    Registration { name: NAME, summary: "pread and pwrite, one at a time", capabilities: CAPABILITIES, open };

fn open(request: &OpenRequest) -> Result<Opened<MediaOperation>, Error> {
    descriptor::check(request, NAME, &CAPABILITIES)?;
    let targets = descriptor::open_all(request, NAME)?;
    let (arena, bounds) = (Arc::clone(&request.arena), Bounds::new(request));
    let driver = Psync { targets, arena, bounds, sync_call: request.options.sync_call };
    Ok(Opened { driver: Box::new(OneByOne(driver)), notes: Vec::new() })
}

struct Psync {
    targets: Vec<Descriptor>,
    arena: Arc<Arena>,
    bounds: Bounds,
    sync_call: SyncCall,
}

impl CarryOut for Psync {
    #[inline]
    fn carry_out(&self, operation: &MediaOperation) -> i64 {
        if !self.bounds.allow(operation) {
            return INVALID;
        }
        let target = &self.targets[usize::from(operation.target)];
        let MediaOperation { slot, offset, length, .. } = *operation;
        match operation.class {
            MediaClass::Read => {
                // SAFETY: the slot is the driver's from submit to completion, which is this call.
                let buffer = unsafe { self.arena.slot_mut(slot, length as usize) };
                completed(retry_on_intr(|| rustix::io::pread(&target.fd, &mut *buffer, offset)))
            }
            MediaClass::Write => {
                // SAFETY: as above.
                let buffer = unsafe { self.arena.slot_mut(slot, length as usize) };
                let first = completed(retry_on_intr(|| rustix::io::pwrite(&target.fd, &*buffer, offset)));
                written(first, length, |at| rustix::io::pwrite(&target.fd, &buffer[at..], offset + at as u64))
            }
            MediaClass::Discard => descriptor::discard(target, offset, length),
            MediaClass::Sync => descriptor::sync(target.fd.as_fd(), self.sync_call),
            MediaClass::Reset | MediaClass::Finish => descriptor::change_zone(target, operation),
            MediaClass::Nop => 0,
        }
    }
}
