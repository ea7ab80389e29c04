//! Buffers on a device that bulk of RPCs comes from and goes to by RDMA (`--gpu-path rdma`).
#![allow(unsafe_code)]

use std::cell::RefCell;
use std::sync::Arc;

use driver::Error;
use gpu::{DeviceBuffers, Stream};
use layer::memory::DeviceRequest;
use rpc::ofi::buffers::Buffer;
use rpc::ofi::port::{Port, Region};

/// Registered buffers on a device. The port is dropped before them.
pub(super) struct DeviceMemory {
    buffers: Arc<DeviceBuffers>,
    region: Region,
}

impl DeviceMemory {
    fn new(port: &mut Port, buffers: Arc<DeviceBuffers>) -> Result<Self, Error> {
        let (address, bytes) = buffers.region();
        let number = buffers.context().device().number;
        // SAFETY: memory of the device that stays as long as the buffers, which outlive the port.
        let region = unsafe { port.register_device(address, bytes, number) }?;
        Ok(Self { buffers, region })
    }
}

/// The buffers of a worker, and the copies between them and memory that is set apart.
pub(super) struct DeviceSlots {
    memory: DeviceMemory,
    stream: RefCell<Stream>,
}

impl DeviceSlots {
    /// Registers the buffers of a worker.
    ///
    /// # Errors
    /// When the provider does not take memory of a device.
    pub(super) fn new(port: &mut Port, request: &DeviceRequest) -> Result<Self, Error> {
        let stream = RefCell::new(Stream::new(request.buffers.context())?);
        Ok(Self { memory: DeviceMemory::new(port, Arc::clone(&request.buffers))?, stream })
    }

    /// Region of the buffers, and where in it that of a slot begins.
    #[inline]
    pub(super) fn place(&self, slot: u32) -> (Region, usize) {
        let buffers = &self.memory.buffers;
        (self.memory.region, (buffers.slot_address(slot) - buffers.region().0) as usize)
    }

    /// Memory on the same device for one RPC of a slot whose own memory is set apart.
    pub(super) fn another(&self, port: &mut Port) -> Option<DeviceMemory> {
        let buffers = &self.memory.buffers;
        let buffers = DeviceBuffers::new(buffers.context(), 1, buffers.slot_bytes()).ok()?;
        DeviceMemory::new(port, Arc::new(buffers)).ok()
    }

    /// Copies a payload between a slot's buffer and memory that stands for it. Whether the device did.
    fn copy(&self, slot: u32, other: &DeviceMemory, (at, bytes): (usize, usize), is_reply: bool) -> bool {
        let buffers = &self.memory.buffers;
        if slot >= buffers.slots() || at + bytes > buffers.slot_bytes().min(other.buffers.slot_bytes()) {
            return false;
        }
        if bytes == 0 {
            return true;
        }
        let (own, other) = (buffers.slot_address(slot) + at as u64, other.buffers.region().0 + at as u64);
        let (to, from) = if is_reply { (own, other) } else { (other, own) };
        let mut stream = self.stream.borrow_mut();
        // SAFETY: both are memory of the device of that length, which no request uses: the RPC is not sent yet, or has been answered.
        let begun = unsafe { stream.copy_within(to, from, bytes) };
        begun.and_then(|()| stream.wait()).is_ok()
    }

    /// Keeps the memory for ever: an engine may still write to it.
    pub(super) fn leak(&self) {
        std::mem::forget(Arc::clone(&self.memory.buffers));
    }
}

/// Memory of a ticket of its own.
pub(super) enum TicketMemory {
    /// Of this process.
    Host(Buffer),
    /// Of the device that the worker's buffers are on.
    Device(DeviceMemory),
}

impl TicketMemory {
    /// Its region.
    #[inline]
    pub(super) fn region(&self) -> Region {
        match self {
            Self::Host(buffer) => buffer.region,
            Self::Device(memory) => memory.region,
        }
    }

    /// Brings a payload from the slot's buffer here, or with `is_reply` from here to it. Whether that could be done.
    ///
    /// # Safety
    /// `slot_buffer` is the slot's buffer in memory of the host, and nobody else uses it or this memory meanwhile.
    pub(super) unsafe fn copy(
        &self,
        device: Option<&DeviceSlots>,
        (slot, slot_buffer): (u32, *mut u8),
        (at, bytes): (usize, usize),
        is_reply: bool,
    ) -> bool {
        let buffer = match self {
            Self::Device(memory) => {
                return device.is_some_and(|device| device.copy(slot, memory, (at, bytes), is_reply));
            }
            Self::Host(buffer) => buffer,
        };
        // SAFETY: by the caller's promise; the part lies inside the slot by the layout, and inside the buffer by its own check.
        unsafe {
            let (own, other) =
                (std::slice::from_raw_parts_mut(slot_buffer.add(at), bytes), buffer.bytes_mut(at, bytes));
            if is_reply { own.copy_from_slice(other) } else { other.copy_from_slice(own) }
        }
        true
    }
}
