//! Arrays: chunks under dkeys from 1 on, attributes under dkey 0.

use crate::plan::ObjectPlan;

use vos::model::{Key, ObjectId};
use vos::{Read, StoreError, Write};

use super::volume::{At, Volume};

/// Cell and chunk size of the arrays of a phase.
#[derive(Clone, Copy)]
pub(super) struct Arrays {
    cell_size_bytes: u64,
    chunk_size_cells: u64,
}

/// A part of a transfer that lies in one chunk.
struct Piece {
    dkey: Key,
    /// First byte in the chunk.
    offset_bytes: u64,
    /// Where it lies in the buffer.
    buffer: std::ops::Range<usize>,
}

impl Arrays {
    pub(super) fn new(plan: &ObjectPlan) -> Self {
        Self { cell_size_bytes: plan.cell_size_bytes.max(1), chunk_size_cells: plan.chunk_size_cells.max(1) }
    }

    fn chunk_bytes(self) -> u64 {
        self.cell_size_bytes.saturating_mul(self.chunk_size_cells)
    }

    /// Creates an array: its attributes are stored.
    pub(super) fn create(self, volume: &mut Volume, object: ObjectId) -> Result<(), StoreError> {
        let mut attributes = [0; 16];
        attributes[..8].copy_from_slice(&self.cell_size_bytes.to_le_bytes());
        attributes[8..].copy_from_slice(&self.chunk_size_cells.to_le_bytes());
        let dkey = Key::integer(0);
        volume.write(&At { object, dkey: dkey.as_bytes(), akey: &[] }, Write::Single, &attributes)
    }

    /// Opens an array: its attributes are read.
    pub(super) fn open(self, volume: &mut Volume, object: ObjectId) -> Result<u64, StoreError> {
        let mut attributes = [0; 16];
        let dkey = Key::integer(0);
        volume.read(&At { object, dkey: dkey.as_bytes(), akey: &[] }, Read::Single, &mut attributes)?;
        Ok(0)
    }

    /// Calls `act` for each chunk that `bytes` bytes from `offset_bytes` on lie in.
    #[inline]
    fn pieces(
        self,
        offset_bytes: u64,
        bytes: usize,
        mut act: impl FnMut(&Piece) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let chunk = self.chunk_bytes();
        let mut done = 0;
        while done < bytes {
            let at = offset_bytes + done as u64;
            let within = at % chunk;
            let length = (chunk - within).min((bytes - done) as u64) as usize;
            act(&Piece {
                dkey: Key::integer(at / chunk + 1),
                offset_bytes: within,
                buffer: done..done + length,
            })?;
            done += length;
        }
        Ok(())
    }

    pub(super) fn write(
        self,
        volume: &mut Volume,
        object: ObjectId,
        offset_bytes: u64,
        data: &[u8],
    ) -> Result<u64, StoreError> {
        self.pieces(offset_bytes, data.len(), |piece| {
            let at = At { object, dkey: piece.dkey.as_bytes(), akey: &[] };
            let write = Write::Extent { offset_bytes: piece.offset_bytes };
            volume.write(&at, write, &data[piece.buffer.clone()])
        })?;
        Ok(data.len() as u64)
    }

    /// Reads; returns where the last stored byte ends. What is not stored before it reads as zeros.
    pub(super) fn read(
        self,
        volume: &mut Volume,
        object: ObjectId,
        offset_bytes: u64,
        into: &mut [u8],
    ) -> Result<u64, StoreError> {
        let mut end = 0;
        self.pieces(offset_bytes, into.len(), |piece| {
            let at = At { object, dkey: piece.dkey.as_bytes(), akey: &[] };
            let part = &mut into[piece.buffer.clone()];
            match volume.read(&at, Read::Extent { offset_bytes: piece.offset_bytes }, part) {
                Ok(0) => {}
                Ok(bytes) => end = piece.buffer.start as u64 + bytes,
                Err(StoreError::NotFound) => part.fill(0),
                Err(error) => return Err(error),
            }
            Ok(())
        })?;
        Ok(end)
    }

    /// Size of an array: the end of its last chunk.
    pub(super) fn size(self, volume: &mut Volume, object: ObjectId) -> Result<u64, StoreError> {
        let largest = volume.largest(object, &[])?;
        let chunks = largest.dkey.saturating_sub(1);
        // Dkey 0 has the attributes.
        let end = if largest.dkey == 0 { 0 } else { largest.end_bytes };
        Ok(chunks.saturating_mul(self.chunk_bytes()).saturating_add(end))
    }
}
