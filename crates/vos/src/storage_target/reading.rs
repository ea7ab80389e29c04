//! Reads from files: scratch memory for them, and values that lie in pieces.

use std::cell::RefCell;

use crate::data::{DataFile, Spread};
use crate::error::StoreError;
use crate::medium::BLOCK_BYTES;
use crate::memory::Region;

thread_local! {
    /// Where records are read to that are neither mapped nor buffered: one for the log, one for the data file.
    static SCRATCH: [RefCell<Option<Region>>; 2] = const { [RefCell::new(None), RefCell::new(None)] };
}

/// Reads a value of `whole` bytes that lies in pieces, from byte `low` (the start of a chunk) on, as far as `into` goes: whole blocks.
pub(super) fn gather(
    file: &DataFile,
    spread: &Spread,
    low: usize,
    whole: usize,
    into: &mut [u8],
) -> Result<(), StoreError> {
    let high = low + into.len();
    let mut first = 0;
    for (at, bytes) in spread.pieces(whole as u64) {
        let bytes = bytes as usize;
        // Pieces are whole blocks; the last one has the rest of its block.
        let (begin, end) = (first.max(low), (first + bytes.next_multiple_of(BLOCK_BYTES)).min(high));
        if begin < end {
            file.medium.read(&mut into[begin - low..end - low], at + (begin - first) as u64)?;
        }
        first += bytes;
    }
    Ok(())
}

/// Shows scratch memory of this thread, aligned for direct I/O.
pub(super) fn with_scratch<R>(
    which: usize,
    bytes: usize,
    show: impl FnOnce(&mut [u8]) -> Result<R, StoreError>,
) -> Result<R, StoreError> {
    SCRATCH.with(|scratch| {
        let mut scratch = scratch[which].borrow_mut();
        if scratch.as_ref().is_none_or(|region| region.len() < bytes) {
            *scratch = Some(Region::anonymous(bytes.next_power_of_two())?);
        }
        let region = scratch.as_mut().ok_or(StoreError::System(libc::ENOMEM))?;
        show(region.bytes_mut(0, bytes))
    })
}
