//! Segments of a log, and their headers.

use std::sync::Arc;

use super::checksum::crc32c;
use super::memory::Region;
use super::record::LINE_BYTES;
use crate::model::Epoch;

/// Use of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Use {
    Free,
    Active,
    Sealed,
    /// Empty, but somebody still reads it.
    Draining,
}

/// A segment.
#[derive(Clone, Debug)]
pub(super) struct Segment {
    pub(super) usage: Use,
    /// Grows with each life of any segment; records are bound to it by their CRC.
    pub(super) sequence: u32,
    /// Lines that the index refers to.
    pub(super) live_lines: u32,
    /// Lines written, with the segment's header.
    pub(super) used_lines: u32,
    /// Earliest epoch among records that are dead; `Epoch::MAX`: there are none.
    pub(super) dead_epoch_min: Epoch,
    /// Reservations that are neither published nor dropped.
    pub(super) reservations: u32,
    /// Mapped logs that are synced: lines from its beginning of which a sync has reached all headers.
    pub(super) synced_lines: u32,
    /// Its content, while it is written or waits to be.
    pub(super) buffer: Option<Arc<Region>>,
    /// Buffered logs: lines from its beginning that are durable, and read from the file although the buffer has them.
    pub(super) cold_lines: u32,
    /// The file system gave it its space: its blocks have been zeroed or written; mapped: its pages are present.
    pub(super) has_space: bool,
    /// It holds records of its last life, which are to be zeroed before it is written again.
    pub(super) is_stale: bool,
}

impl Segment {
    /// Whether it can be begun when it is free.
    pub(super) fn is_ready(&self) -> bool {
        self.has_space && !self.is_stale
    }

    pub(super) fn free(has_space: bool) -> Self {
        Self {
            usage: Use::Free,
            sequence: 0,
            live_lines: 0,
            used_lines: 0,
            dead_epoch_min: Epoch::MAX,
            reservations: 0,
            synced_lines: 0,
            buffer: None,
            cold_lines: 0,
            has_space,
            is_stale: false,
        }
    }
}

/// Who asks for room: the last segments are kept for those that make room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Need {
    Update,
    Punch,
    Clean,
}

impl Need {
    /// Free segments that must be left when one is taken.
    pub(super) fn reserve(self) -> usize {
        match self {
            Self::Update => 2,
            Self::Punch => 1,
            Self::Clean => 0,
        }
    }
}

/// Begins a segment that is in use. Written after the rest of the header, and zeroed alone when the segment is freed: memory is torn by
/// words of 8 bytes, so a header is there as a whole or not at all.
const SEGMENT_MAGIC: [u8; 8] = *b"STRATSEG";
/// No log comes so far; a sequence from here on is damage.
const SEQUENCE_MAX: u32 = u32::MAX - (1 << 24);
/// Its length in bytes.
pub(super) const MAGIC_BYTES: usize = SEGMENT_MAGIC.len();

/// Whether a segment that begins so is free.
pub(super) fn is_free(header: &[u8]) -> bool {
    header.iter().take(MAGIC_BYTES).all(|byte| *byte == 0)
}

/// Header of a segment in use.
pub(super) fn segment_header(uuid: &[u8; 16], number: u32, sequence: u32) -> [u8; LINE_BYTES] {
    let mut header = [0; LINE_BYTES];
    header[..8].copy_from_slice(&SEGMENT_MAGIC);
    header[8..12].copy_from_slice(&number.to_le_bytes());
    header[12..16].copy_from_slice(&sequence.to_le_bytes());
    header[16..32].copy_from_slice(uuid);
    let crc = crc32c(0, &header[..60]);
    header[60..].copy_from_slice(&crc.to_le_bytes());
    header
}

/// Fields of a segment's header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SegmentHead {
    /// It holds nothing. The sequence of its last life, 0 where it had none: its records are still there, and must not come to life again
    /// with those of a next life that has the same.
    Free(u32),
    /// In use, with this sequence.
    Used(u32),
    /// Neither.
    Damaged,
}

/// Reads a segment's header.
pub(super) fn parse_segment_header(header: &[u8; LINE_BYTES], uuid: &[u8; 16], number: u32) -> SegmentHead {
    let sequence = u32::from_le_bytes([header[12], header[13], header[14], header[15]]);
    if is_free(header) {
        // Number and sequence are one word, which is not torn; the checksum may be of another life.
        let is_own = header[8..12] == number.to_le_bytes() && header[16..32] == *uuid;
        return SegmentHead::Free(if is_own && sequence < SEQUENCE_MAX { sequence } else { 0 });
    }
    if *header == segment_header(uuid, number, sequence) {
        SegmentHead::Used(sequence)
    } else {
        SegmentHead::Damaged
    }
}
