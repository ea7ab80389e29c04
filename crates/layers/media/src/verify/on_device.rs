//! Blocks in buffers on a device: made and checked by its kernels, or on the host and copied.
#![allow(unsafe_code)]

use driver::{Arena, Fault};
use layer::memory::{BufferPart, Content};
use workload::content::Recipe;

use super::{Blocks, Verifier};
use crate::{MediaClass, MediaOperation};

impl Verifier {
    /// The same in a buffer on a device; what no kernel makes is made in the buffer of the host, which `arena` has, and sent.
    pub(crate) fn write_on(&mut self, operation: &MediaOperation, arena: &Arena, device: &mut Content) {
        let MediaOperation { slot, target, offset, length, .. } = *operation;
        let grain_bytes = self.ledger.grain_bytes();
        let Some(recipe) = self.recipe(target).filter(|recipe| device.makes(recipe, offset, grain_bytes))
        else {
            // SAFETY: the operation is not submitted yet, so its slot is the source's.
            self.write(operation, unsafe { arena.slot_mut(slot, length as usize) });
            return device.send(slot, length as usize);
        };
        let grains = self.ledger.grains(target, offset, length);
        self.ledger.begin_block(&grains);
        for (grain, part) in grains.zip(parts(slot, length, grain_bytes)) {
            let sequence = self.ledger.advance(grain);
            device.make(part, &recipe, sequence, offset + part.at as u64);
        }
    }

    /// Terms of the blocks of a target, where kernels make and check them.
    fn recipe(&self, target: u16) -> Option<Recipe> {
        match &self.blocks[usize::from(target)] {
            Blocks::Sealed { writer, .. } => Some(writer.recipe()),
            Blocks::Repeated(_) => None,
        }
    }

    /// Checks a block, of which `bytes` were read to a buffer on a device. One that a kernel finds wrong, or cannot judge, is fetched to the buffer of the
    /// host, which `arena` has, and checked there.
    pub(crate) fn check_on(
        &mut self,
        operation: &MediaOperation,
        bytes: usize,
        arena: &Arena,
        device: &mut Content,
    ) -> Result<(), Fault> {
        let MediaOperation { slot, target, offset, length, class, .. } = *operation;
        if class != MediaClass::Read {
            return self.check(operation, &[]);
        }
        let grains = self.ledger.grains(target, offset, length);
        let recipe = self.recipe(target).filter(|_| bytes == length as usize);
        let mut judged = recipe.map(|_| true);
        for (grain, part) in grains.clone().zip(parts(slot, length, self.ledger.grain_bytes())) {
            let (Some(recipe), Some(true)) = (&recipe, judged) else { break };
            judged = match self.ledger.sequence(grain) {
                0 if self.accepts_foreign => None,
                0 => Some(true),
                sequence => device.is_right(part, recipe, sequence, offset + part.at as u64),
            };
        }
        if judged == Some(true) {
            if operation.is_extra {
                self.ledger.checked(grains);
            }
            return Ok(());
        }
        device.fetch(slot, bytes);
        // SAFETY: the operation has completed, so its slot is the source's again; the device has written it.
        self.check(operation, unsafe { arena.slot_mut(slot, bytes) })?;
        match judged {
            // The host finds nothing wrong with what the device found wrong.
            Some(false) => Err(Fault {
                cause: "device",
                detail: format!(
                    "{}, block at offset {offset}: wrong on the GPU, but correct in the copy on the host",
                    self.paths[usize::from(target)]
                ),
            }),
            _ => Ok(()),
        }
    }
}

/// The parts of a buffer of `length` bytes that are blocks of their own.
fn parts(slot: u32, length: u32, grain_bytes: u64) -> impl Iterator<Item = BufferPart> {
    let (length, grain) = (length as usize, grain_bytes as usize);
    (0..length).step_by(grain.max(1)).map(move |at| BufferPart { slot, at, length: grain.min(length - at) })
}
