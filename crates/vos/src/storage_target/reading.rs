//! Reads from files: scratch memory for them, and values that lie in pieces.

use std::cell::RefCell;

use super::Target;
use super::fetch::{Part, chunks_around};
use crate::checksum::CHUNK_BYTES;
use crate::data::{DataFile, Spread};
use crate::error::StoreError;
use crate::medium::BLOCK_BYTES;
use crate::memory::Region;
use crate::record::{HEADER_BYTES, Header, LINE_BYTES};

/// Bytes that are read of a long record first, from the block that it begins in: header, keys and checksums of nearly all of them.
const HEAD_BYTES: usize = 2 * BLOCK_BYTES;

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

impl Part {
    /// Block of the log that its record begins in, by its first byte, and where in it.
    fn block(&self) -> (u64, usize) {
        let (at, block) = (self.location * LINE_BYTES as u64, BLOCK_BYTES as u64);
        (at / block * block, (at % block) as usize)
    }
}

impl Target {
    /// As [`Target::with_record`], for its head and so many bytes of its data from a first one on: of a long record in a file nothing else is read. What is
    /// shown beside them is of no meaning.
    pub(super) fn with_range<R>(
        &self,
        part: &Part,
        (from, length): (usize, usize),
        show: impl FnOnce(&[u8]) -> Result<R, StoreError>,
    ) -> Result<R, StoreError> {
        let bytes = part.lines * LINE_BYTES;
        let needed = HEAD_BYTES.saturating_add(length).saturating_add(2 * CHUNK_BYTES);
        if self.mapped.is_some() || part.buffer.is_some() || needed > bytes / 2 {
            return self.with_record(part, show);
        }
        let (first, skipped) = part.block();
        with_scratch(0, (skipped + bytes).next_multiple_of(BLOCK_BYTES), |scratch| {
            self.medium.read(&mut scratch[..HEAD_BYTES], first)?;
            let head = scratch[skipped..].first_chunk::<HEADER_BYTES>();
            let header = head.and_then(|head| Header::decode(head, bytes));
            // One that is damaged is told by who looks at it.
            if let Some(header) = header {
                let data_at = skipped + header.data_at();
                let (low, high) = match length {
                    0 => (0, 0),
                    _ => chunks_around(from, length, header.inline_bytes()),
                };
                for (begin, end) in [(HEAD_BYTES, data_at), (data_at + low, data_at + high)] {
                    if begin < end && end > HEAD_BYTES {
                        let begin = begin.max(HEAD_BYTES) / BLOCK_BYTES * BLOCK_BYTES;
                        let end = end.next_multiple_of(BLOCK_BYTES).min(scratch.len());
                        self.medium.read(&mut scratch[begin..end], first + begin as u64)?;
                    }
                }
            }
            show(&scratch[skipped..skipped + bytes])
        })
    }

    /// Shows a record, which is mapped, buffered, or read to scratch memory.
    pub(super) fn with_record<R>(
        &self,
        part: &Part,
        show: impl FnOnce(&[u8]) -> Result<R, StoreError>,
    ) -> Result<R, StoreError> {
        let bytes = part.lines * LINE_BYTES;
        if let Some(region) = &self.mapped {
            return show(region.bytes(part.location as usize * LINE_BYTES, bytes));
        }
        if let Some((region, at)) = &part.buffer {
            return show(region.bytes(*at, bytes));
        }
        let (first, skipped) = part.block();
        with_scratch(0, (skipped + bytes).next_multiple_of(BLOCK_BYTES), |scratch| {
            self.medium.read(scratch, first)?;
            show(&scratch[skipped..skipped + bytes])
        })
    }
}
