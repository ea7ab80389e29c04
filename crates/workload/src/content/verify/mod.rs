//! Blocks that prove where they belong, and the check that tells faults apart.
//!
//! A block is one unit of writing. It is divided into intervals; each starts with a header of [`HEADER_BYTES`]:
//!
//! | bytes | field (little-endian) |
//! |---|---|
//! | 0..4 | magic `StVb` |
//! | 4..6 | version, 1 |
//! | 6..8 | header length, 48 |
//! | 8..16 | run |
//! | 16..24 | target |
//! | 24..32 | offset of the interval in the target, in bytes |
//! | 32..40 | sequence: which write of the block this is |
//! | 40..44 | interval length in bytes |
//! | 44..48 | CRC-32C of bytes 0..44 |
//!
//! The payload is random, keyed by (run, target) and addressed by (sequence, offset), so the check recomputes it at
//! memory speed: nothing is stored, no checksum of the payload is needed, and every byte of it is compared.
//!
//! **Tags.** At every multiple of 512 of the target's address space inside an interval (where the header leaves
//! room), 16 bytes of the payload are replaced by (sequence, offset of this sector). Storage tears and misdirects by
//! sectors, and the tag says what a wrong sector *is*, for any sequence and any offset, in one recomputation; without
//! it older sequences would have to be guessed, and guessing ends at some distance. A tag proves nothing by itself: a
//! sector counts as torn or misplaced only if all of it recomputes from what its tag says.
//!
//! A tear inside a sector (page cache, shared memory, network) is found where the rest of the sector recomputes from the
//! sequence of what follows it, the one expected, or the nearest ones. A tear inside a header is [`Fault::Corrupt`]: it
//! cannot be told from a damaged field.
//!
//! The check is stateless: it compares a block with what it claims to be and with what the caller expects.

mod diagnosis;
mod layout;
mod mismatch;

#[cfg(test)]
mod tests;

use std::fmt;

use self::layout::{Header, TAG_BYTES, put_tag};
use super::Recipe;
use super::stream::{Purpose, Stream};

pub use self::layout::{HEADER_BYTES, SECTOR_BYTES};
pub use self::mismatch::{Fault, Mismatch};

/// Smallest interval, in bytes.
pub const INTERVAL_BYTES_MIN: u32 = 64;

/// Bytes recomputed at a time: they stay in the first-level cache.
const SCRATCH_BYTES: usize = 4096;

/// Which sequence a block that is read back must have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expected {
    /// This one.
    Exactly(u64),
    /// This one or a newer one: other writers may have been there since.
    AtLeast(u64),
    /// Any, as long as the whole block has the same.
    Any,
}

/// Why an interval cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LayoutError {
    /// The interval asked for.
    pub interval_bytes: u32,
    /// The block size it was asked for with.
    pub block_size_bytes: u64,
}

impl fmt::Display for LayoutError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let LayoutError { interval_bytes, block_size_bytes } = self;
        write!(
            f,
            "verify interval of {interval_bytes} bytes with blocks of {block_size_bytes} bytes: expected at least \
             {INTERVAL_BYTES_MIN}, a multiple of 8, and a divisor of the block size"
        )
    }
}

impl std::error::Error for LayoutError {}

/// Checks that blocks of `block_size_bytes` can be verified in intervals of `interval_bytes`.
///
/// # Errors
/// [`LayoutError`] unless the interval is at least 64, a multiple of 8, and divides the block size.
pub fn check_layout(interval_bytes: u32, block_size_bytes: u64) -> Result<(), LayoutError> {
    let fits = interval_bytes >= INTERVAL_BYTES_MIN
        && interval_bytes.is_multiple_of(8)
        && block_size_bytes > 0
        && block_size_bytes.is_multiple_of(u64::from(interval_bytes));
    if fits { Ok(()) } else { Err(LayoutError { interval_bytes, block_size_bytes }) }
}

/// Writes the verified blocks of one run to one target.
#[derive(Clone, Debug)]
pub struct BlockWriter {
    run: u64,
    target: u64,
    interval_bytes: u32,
    payload: Stream,
}

impl BlockWriter {
    /// A writer of intervals of `interval_bytes`.
    ///
    /// # Errors
    /// As [`check_layout`], about the interval; the block size is checked there too, before a run.
    pub fn new(run: u64, target: u64, interval_bytes: u32) -> Result<BlockWriter, LayoutError> {
        check_layout(interval_bytes, u64::from(interval_bytes))?;
        Ok(BlockWriter { run, target, interval_bytes, payload: payload_stream(run, target) })
    }

    /// Terms of its blocks, for a kernel of a device that makes or compares them.
    pub fn recipe(&self) -> Recipe {
        let Self { run, target, interval_bytes, .. } = *self;
        Recipe { keys: self.payload.keys(), interval_bytes, run, target }
    }

    /// Fills `buf`, to be written at byte `offset` of the target as write number `sequence` of that block.
    ///
    /// # Panics
    /// If `buf` is not a whole number of intervals, which [`check_layout`] rules out beforehand.
    pub fn write_block(&self, buf: &mut [u8], offset: u64, sequence: u64) {
        let interval = self.interval_bytes as usize;
        assert!(buf.len().is_multiple_of(interval), "a block is a whole number of verify intervals");
        self.payload.fill(buf, sequence, offset);
        let mut place = offset;
        for bytes in buf.chunks_exact_mut(interval) {
            let header = Header {
                run: self.run,
                target: self.target,
                offset: place,
                sequence,
                length: self.interval_bytes,
            };
            bytes[..HEADER_BYTES].copy_from_slice(&header.encode());
            for at in layout::tags(place, interval) {
                put_tag(&mut bytes[at..at + TAG_BYTES], sequence, place.wrapping_add(at as u64));
            }
            place = place.wrapping_add(interval as u64);
        }
    }
}

/// Checks blocks of one target. One per worker: it owns the small buffer that expected bytes are recomputed in.
#[derive(Clone, Debug)]
pub struct BlockChecker {
    run: Option<u64>,
    target: u64,
    interval_bytes: u32,
    /// The run whose payload was recomputed last, and its stream.
    payload_run: u64,
    payload: Stream,
    scratch: Box<[u8; SCRATCH_BYTES]>,
}

impl BlockChecker {
    /// A checker of what [`BlockWriter`] wrote. With `run` only that run's blocks pass; with `None` those of any run do.
    ///
    /// # Errors
    /// As for [`BlockWriter::new`].
    pub fn new(run: Option<u64>, target: u64, interval_bytes: u32) -> Result<BlockChecker, LayoutError> {
        check_layout(interval_bytes, u64::from(interval_bytes))?;
        let payload_run = run.unwrap_or(0);
        Ok(BlockChecker {
            run,
            target,
            interval_bytes,
            payload_run,
            payload: payload_stream(payload_run, target),
            scratch: Box::new([0; SCRATCH_BYTES]),
        })
    }

    /// Checks `buf`, read from byte `offset` of the target, and returns its sequence. `buf` must be one block as it
    /// was written: a larger read is checked block by block, since neighbouring blocks have sequences of their own.
    ///
    /// # Errors
    /// The first [`Mismatch`] found. Intervals of different sequences in one block are [`Fault::Torn`].
    ///
    /// # Panics
    /// If `buf` is not a whole, positive number of intervals. No content of `buf` panics.
    pub fn check_block(&mut self, buf: &[u8], offset: u64, expected: Expected) -> Result<u64, Mismatch> {
        let interval = self.interval_bytes as usize;
        let whole = !buf.is_empty() && buf.len().is_multiple_of(interval);
        assert!(whole, "a block is a whole number of verify intervals");
        let mut head = None;
        for at in (0..buf.len()).step_by(interval) {
            let Some(sequence) = self.check_interval(buf, at, offset) else {
                return Err(self.diagnose(buf, at, offset, expected, head.map(|(sequence, _)| sequence)));
            };
            let (head_sequence, head_run) = *head.get_or_insert((sequence, self.payload_run));
            if self.payload_run != head_run {
                return Err(self.mismatch(offset, at, Fault::ForeignRun { found_run: self.payload_run }));
            }
            if sequence != head_sequence {
                let fault = Fault::Torn { head_sequence: Some(head_sequence), tail_sequence: Some(sequence) };
                return Err(self.mismatch(offset, at, fault));
            }
        }
        let found = head.map_or(0, |(sequence, _)| sequence);
        match expected {
            Expected::Exactly(sequence) if found > sequence => {
                Err(self.mismatch(offset, 0, Fault::Newer { found_sequence: found, expected: sequence }))
            }
            Expected::Exactly(sequence) | Expected::AtLeast(sequence) if found < sequence => {
                Err(self.mismatch(offset, 0, Fault::Stale { found_sequence: found, expected: sequence }))
            }
            _ => Ok(found),
        }
    }

    /// Content that a block should hold that was read as `buf`: as write number `expected`, or as the one that it says itself where any
    /// will do, of the run that was expected or that it says.
    #[must_use]
    pub fn remade(&self, buf: &[u8], offset: u64, expected: Expected) -> Vec<u8> {
        let said = Header::decode(buf);
        let run = self.run.or(said.map(|header| header.run)).unwrap_or(0);
        let sequence = match expected {
            Expected::Exactly(sequence) | Expected::AtLeast(sequence) => sequence,
            Expected::Any => said.map_or(1, |header| header.sequence),
        };
        let payload = payload_stream(run, self.target);
        let writer = BlockWriter { run, target: self.target, interval_bytes: self.interval_bytes, payload };
        let mut made = vec![0; buf.len()];
        writer.write_block(&mut made, offset, sequence);
        made
    }

    /// The sequence of the interval at `at` of the block, if every byte of it is as written.
    fn check_interval(&mut self, block: &[u8], at: usize, offset: u64) -> Option<u64> {
        let bytes = &block[at..at + self.interval_bytes as usize];
        let place = offset.wrapping_add(at as u64);
        let header = Header::decode(bytes)?;
        if self.identity_fault(&header, place).is_some() {
            return None;
        }
        self.use_run(header.run);
        let mut from = HEADER_BYTES;
        while from < bytes.len() {
            // Pieces end on multiples of the scratch size, so that no tag straddles two of them.
            let start = place.wrapping_add(from as u64);
            let room = SCRATCH_BYTES - (start % SCRATCH_BYTES as u64) as usize;
            let to = bytes.len().min(from + room);
            let made = &mut self.scratch[..to - from];
            self.payload.fill(made, header.sequence, start);
            for tag in layout::tags_from(place, bytes.len(), from).take_while(|&tag| tag < to) {
                let tag_bytes = &mut made[tag - from..tag - from + TAG_BYTES];
                put_tag(tag_bytes, header.sequence, place.wrapping_add(tag as u64));
            }
            if bytes[from..to] != *made {
                return None;
            }
            from = to;
        }
        Some(header.sequence)
    }

    /// Fault of a sane header, against the offset that it was read from.
    fn identity_fault(&self, header: &Header, place: u64) -> Option<Fault> {
        if self.run.is_some_and(|run| run != header.run) {
            Some(Fault::ForeignRun { found_run: header.run })
        } else if header.target != self.target {
            Some(Fault::Swapped { found_target: header.target })
        } else if header.offset != place {
            Some(Fault::Misplaced { found_offset: header.offset })
        } else if header.length != self.interval_bytes {
            Some(Fault::OtherInterval { found_interval_bytes: header.length })
        } else {
            None
        }
    }

    fn use_run(&mut self, run: u64) {
        if run != self.payload_run {
            self.payload_run = run;
            self.payload = payload_stream(run, self.target);
        }
    }

    fn mismatch(&self, offset: u64, at_byte: usize, fault: Fault) -> Mismatch {
        Mismatch { run: self.run, target: self.target, offset, at_byte: at_byte as u64, fault }
    }
}

fn payload_stream(run: u64, target: u64) -> Stream {
    Stream::for_purpose(run, target, Purpose::Verify)
}
