//! `gpu_copy`: copies between memory of the process and memory of a GPU. What the way there alone can give: the ceiling of staged paths.
#![allow(unsafe_code)]

use std::sync::Arc;

use driver::{Capabilities, Completions, Driver, Error, Opened, Registration, Submitted};
use gpu::{DeviceBuffers, Pinned, Staging, Stream};
use layer::memory::DeviceRequest;

use super::mem::Region;
use crate::descriptor::{self, Bounds, INVALID, UNSUPPORTED};
use crate::{MediaClass, MediaOperation, OpenRequest};

const NAME: &str = "gpu_copy";

const CAPABILITIES: Capabilities = Capabilities {
    classes: &["read", "write", "nop"],
    asynchronous: false,
    depth_max: 1,
    targetless: true,
    direct: false,
    options: &["memory", "gpu-path", "gpu-staging", "gpu-per"],
};

/// The table line.
pub(super) const REGISTRATION: Registration<MediaOperation, OpenRequest> = Registration {
    name: NAME,
    summary: "copies between process memory (mem:) and GPU memory: reads copy to the GPU, writes copy from it",
    capabilities: CAPABILITIES,
    open,
};

fn open(request: &OpenRequest) -> Result<Opened<MediaOperation>, Error> {
    descriptor::check(request, NAME, &CAPABILITIES)?;
    let device = DeviceRequest::required(request.device.as_ref(), NAME)?;
    let regions = request.targets.iter().map(Region::map).collect::<Result<Vec<_>, _>>()?;
    let context = device.buffers.context();
    let pin = |region: &Region| {
        let (address, bytes) = region.whole();
        // SAFETY: the regions stay mapped until the driver goes, which drops what is registered first.
        unsafe { Pinned::of_region(context, address, bytes) }
    };
    let pinned = match device.plan.staging {
        Staging::Pinned => regions.iter().map(pin).collect::<Result<_, _>>()?,
        Staging::Pageable => Vec::new(),
    };
    let driver = Copies {
        stream: Stream::new(context)?,
        _pinned: pinned,
        regions,
        buffers: Arc::clone(&device.buffers),
        bounds: Bounds::new(request),
    };
    Ok(Opened { driver: Box::new(driver), notes: Vec::new() })
}

struct Copies {
    stream: Stream,
    _pinned: Vec<Pinned>,
    regions: Vec<Region>,
    buffers: Arc<DeviceBuffers>,
    bounds: Bounds,
}

impl Copies {
    fn carry_out(&mut self, operation: &MediaOperation) -> Result<i64, Error> {
        if !self.bounds.allow(operation) {
            return Ok(INVALID);
        }
        let MediaOperation { offset, length, slot, .. } = *operation;
        let region = &self.regions[usize::from(operation.target)];
        let Some((memory, length)) = region.part(offset, length) else { return Ok(INVALID) };
        let buffer = self.buffers.slot_address(slot);
        match operation.class {
            // SAFETY: inside the region by `part`, inside the slot by the bounds; the copy is waited for below.
            MediaClass::Read => unsafe { self.stream.copy_in(buffer, memory, length) }?,
            MediaClass::Write if length == 0 && operation.length > 0 => return Ok(-i64::from(libc::ENOSPC)),
            // SAFETY: as for the copy that reads.
            MediaClass::Write => unsafe { self.stream.copy_out(memory, buffer, length) }?,
            MediaClass::Nop => return Ok(0),
            _ => return Ok(UNSUPPORTED),
        }
        self.stream.wait()?;
        Ok(length as i64)
    }
}

impl Driver<MediaOperation> for Copies {
    #[inline]
    fn submit(&mut self, batch: &[MediaOperation], done: &mut Completions) -> Result<Submitted, Error> {
        let Some(operation) = batch.first() else { return Ok(Submitted { accepted: 0 }) };
        done.push(operation.slot, self.carry_out(operation)?);
        Ok(Submitted { accepted: 1 })
    }
}
