//! Buffers of values on a device: filled before a value is stored, and fetched before one is checked.

use driver::Fault;
use layer::memory::{BufferPart, Content, OnDevice};
use workload::spec::Refill;

use super::ObjectSource;
use crate::ObjectOperation;
use crate::plan::{ObjectOp, ObjectPlan};

impl ObjectSource {
    /// The same with buffers on a device, which get what those of the host hold, or registered ones.
    #[must_use]
    pub fn on_device(mut self, plan: &ObjectPlan, device: OnDevice) -> Self {
        self.device = device;
        if plan.any(ObjectOp::stores) {
            let (slots, length) = (plan.load.depth, self.value_bytes_max as usize);
            if let Some(content) = self.content_on_device() {
                (0..slots).for_each(|slot| content.send(slot, length));
            }
        }
        self.makes_on_device =
            self.device.has_content() && !plan.verify && plan.content.refill == Refill::Full;
        self
    }

    /// Maker of content, where buffers are on a device.
    #[inline]
    pub(super) fn content_on_device(&mut self) -> Option<&mut Content> {
        self.device.content()
    }

    /// Whether buffers are on a device.
    #[inline]
    pub(super) fn has_device(&self) -> bool {
        self.device.has_content()
    }

    /// Makes a value that is not verified by a kernel; false where none makes it, or buffers are memory of the host.
    #[inline]
    pub(super) fn makes_value(&mut self, operation: &ObjectOperation, position: u64) -> bool {
        if !self.makes_on_device {
            return false;
        }
        let (recipe, sequence) = (self.content.recipe(), self.next_sequence);
        let part = BufferPart { slot: operation.slot, at: 0, length: operation.value_bytes as usize };
        recipe
            .zip(self.content_on_device())
            .is_some_and(|(recipe, content)| content.make(part, &recipe, sequence, position))
    }

    /// Brings a value that was filled on the host to the device.
    #[inline]
    pub(super) fn send_value(&mut self, operation: &ObjectOperation) {
        if let Some(content) = self.content_on_device() {
            content.send(operation.slot, operation.value_bytes as usize);
        }
    }

    /// Spoils the buffer of a value that is to be loaded and verified: data that never arrive are not taken for those of an earlier operation.
    #[inline]
    pub(super) fn spoil_value(&mut self, operation: &ObjectOperation) {
        if let Some(content) = self.content_on_device() {
            let length = operation.value_bytes as usize;
            content.spoil(BufferPart { slot: operation.slot, at: 0, length });
        }
    }

    /// Fetches a value that is to be verified, and tells of work on the device that failed: it leaves the data unknown.
    ///
    /// # Errors
    /// The first failure.
    pub(super) fn fetch_value(&mut self, operation: &ObjectOperation, bytes: u64) -> Result<(), Fault> {
        let is_checked = self.verifies.is_some() && operation.operation.loads();
        let Some(content) = self.content_on_device() else { return Ok(()) };
        if is_checked {
            content.fetch(operation.slot, bytes as usize);
        }
        content.settle()
    }
}
