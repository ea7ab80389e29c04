//! `gpu_mem`: copies within memory of a GPU. Each byte is read and written there; it counts once.
#![allow(unsafe_code)]

use std::sync::Arc;

use driver::{Capabilities, Completions, Driver, Error, Opened, Registration, Submitted};
use gpu::{DeviceBuffers, Stream};
use layer::memory::DeviceRequest;
use workload::target::{TargetKind, TargetPlan};

use crate::descriptor::{self, Bounds, INVALID, UNSUPPORTED};
use crate::{MediaClass, MediaOperation, OpenRequest};

const NAME: &str = "gpu_mem";

const CAPABILITIES: Capabilities = Capabilities {
    classes: &["read", "write", "nop"],
    asynchronous: false,
    depth_max: 1,
    targetless: true,
    direct: false,
    options: &["memory", "gpu-per"],
};

/// The table line.
pub(super) const REGISTRATION: Registration<MediaOperation, OpenRequest> = Registration {
    name: NAME,
    summary: "copies within GPU memory (mem:): reads copy to the buffers, writes copy from them",
    capabilities: CAPABILITIES,
    open,
};

fn open(request: &OpenRequest) -> Result<Opened<MediaOperation>, Error> {
    descriptor::check(request, NAME, &CAPABILITIES)?;
    let device = DeviceRequest::required(request.device.as_ref(), NAME)?;
    let context = device.buffers.context();
    let region = |target: &TargetPlan| {
        if target.kind != TargetKind::Memory {
            return Err(Error::usage("open", "engine gpu_mem works on memory, not on a file or a device")
                .with("target", &target.path)
                .remedy("use mem: as the target, or choose another engine"));
        }
        let bytes = usize::try_from(target.size_bytes).unwrap_or(usize::MAX);
        Ok(Region {
            memory: DeviceBuffers::new(context, 1, bytes)?,
            offset_bytes: target.offset_bytes,
            bytes,
        })
    };
    let driver = Copies {
        stream: Stream::new(context)?,
        regions: request.targets.iter().map(region).collect::<Result<_, _>>()?,
        buffers: Arc::clone(&device.buffers),
        bounds: Bounds::new(request),
    };
    Ok(Opened { driver: Box::new(driver), notes: Vec::new() })
}

/// Memory of the device that stands for a target.
struct Region {
    memory: DeviceBuffers,
    offset_bytes: u64,
    bytes: usize,
}

struct Copies {
    stream: Stream,
    regions: Vec<Region>,
    buffers: Arc<DeviceBuffers>,
    bounds: Bounds,
}

impl Copies {
    fn carry_out(&mut self, operation: &MediaOperation) -> Result<i64, Error> {
        if !self.bounds.allow(operation) {
            return Ok(INVALID);
        }
        let region = &self.regions[usize::from(operation.target)];
        let start =
            operation.offset.checked_sub(region.offset_bytes).and_then(|start| usize::try_from(start).ok());
        let Some(start) = start else { return Ok(INVALID) };
        let length = region.bytes.saturating_sub(start).min(operation.length as usize);
        let there = region.memory.slot_address(0) + start.min(region.bytes) as u64;
        let buffer = self.buffers.slot_address(operation.slot);
        match operation.class {
            // SAFETY: inside both, as counted above and by the bounds; the copy is waited for below.
            MediaClass::Read => unsafe { self.stream.copy_within(buffer, there, length) }?,
            MediaClass::Write if length == 0 && operation.length > 0 => return Ok(-i64::from(libc::ENOSPC)),
            // SAFETY: as for the copy that reads.
            MediaClass::Write => unsafe { self.stream.copy_within(there, buffer, length) }?,
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
