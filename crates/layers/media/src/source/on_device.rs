//! Buffers of a source on a device: filled and checked there.
#![allow(unsafe_code)]

use driver::Fault;

use super::MediaSource;
use crate::MediaOperation;
use crate::plan::MediaPlan;
use layer::memory::{BufferPart, OnDevice};

impl MediaSource {
    /// Whether the buffers are on a device.
    #[inline]
    pub(super) fn has_device(&self) -> bool {
        self.device.has_content()
    }

    /// The same with buffers on a device, or registered ones.
    pub(crate) fn on_device(mut self, plan: &MediaPlan, device: OnDevice) -> Self {
        self.device = device;
        self.recipe = self.content.recipe();
        if let Some(content) = self.device.content().filter(|_| plan.mix.write_percent > 0) {
            (0..plan.load.depth).for_each(|slot| content.send(slot, plan.block_size_bytes_max as usize));
        }
        self
    }

    /// Fills the buffer of a write on a device.
    pub(super) fn prepare_on_device(&mut self, operation: &MediaOperation) {
        let MediaOperation { slot, offset, length, .. } = *operation;
        let Some(content) = self.device.content() else { return };
        if let Some(verifier) = &mut self.verifier {
            return verifier.write_on(operation, &self.arena, content);
        }
        self.generation += 1;
        let part = BufferPart { slot, at: 0, length: length as usize };
        let is_made = self.recipe.is_some_and(|recipe| content.make(part, &recipe, self.generation, offset));
        if !is_made {
            // SAFETY: the operation is not submitted yet, so its slot is the source's.
            let buffer = unsafe { self.arena.slot_mut(slot, length as usize) };
            self.content.refill_block(buffer, offset, self.generation);
            content.send(slot, length as usize);
        }
    }

    /// Spoils the buffer of a read on a device that is to be verified: data that never arrive are not taken for those of an earlier operation.
    pub(super) fn spoil_on_device(&mut self, operation: &MediaOperation) {
        let MediaOperation { slot, length, .. } = *operation;
        if let Some(content) = self.device.content() {
            content.spoil(BufferPart { slot, at: 0, length: length as usize });
        }
    }

    /// Checks what an operation left in the buffer on a device.
    pub(super) fn check_on_device(&mut self, operation: &MediaOperation, bytes: u64) -> Result<(), Fault> {
        let Some(content) = self.device.content() else { return Ok(()) };
        let checked = match &mut self.verifier {
            Some(verifier) => verifier.check_on(operation, bytes as usize, &self.arena, content),
            None => Ok(()),
        };
        content.settle()?;
        checked
    }
}
