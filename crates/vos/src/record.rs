//! Records of the log.
//!
//! A record begins on a cache line with a header of 64 bytes, little endian:
//!
//! | at | field |
//! |---|---|
//! | 0 | CRC-32C of bytes 4 to 48 and of both keys, going on from the segment's sequence: what an earlier life of the segment left does not match |
//! | 4 | kind, flags (checksum kind in the upper half) |
//! | 6 | lengths of dkey and akey, then the number of pieces of a value that lies scattered in the data file (0: it lies in one) |
//! | 12 | container |
//! | 16 | object |
//! | 32 | bytes of the value; length of the record in lines |
//! | 40 | first byte of an extent |
//! | 48 | epoch (48 bits) and how far behind it durable epochs were (16 bits) |
//! | 56 | checksum of the data where it is one of at most 4 bytes |
//! | 60 | commit word: CRC-32C of bytes 48 to 60 and of the extension, going on from the first CRC; 0 until the record is published; XOR [`WITHDRAWN`] once it was taken back |
//!
//! Behind it: dkey, akey, extension (place in the data file, or place and length of each piece; of a part of a change of several targets, which
//! change it is; checksums), data (on a line of its own from
//! 1 KiB on).

use crate::Checksum;

use super::checksum;
use super::data::Spread;
use super::transaction::{TRANSACTION_BYTES, Transaction};
use super::types::{ContainerId, KeyPath};
use crate::model::{Epoch, ObjectId};

/// Unit of the log, in bytes.
pub(super) const LINE_BYTES: usize = 64;
/// Header of a record, and of a segment.
pub(super) const HEADER_BYTES: usize = 64;
/// Where the commit word stands.
pub(super) const COMMIT_AT: usize = 60;
/// Changes the commit word of a record that was taken back.
const WITHDRAWN: u32 = 0x6b61_7462;
/// Data from this size on begins on a line.
const ALIGNED_BYTES_MIN: usize = 1024;
/// Place and length of a piece in the data file.
pub(super) const PIECE_BYTES: usize = 16;
/// Lag that tells nothing.
pub(super) const LAG_UNKNOWN: u16 = u16::MAX;
const EPOCH_MASK: u64 = (1 << 48) - 1;

/// Kind of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Kind {
    Single = 1,
    Extent = 2,
    PunchExtent = 3,
    PunchAkey = 4,
    PunchDkey = 5,
    PunchObject = 6,
    Discard = 7,
    /// Room at the end of a segment.
    Seal = 8,
}

impl Kind {
    fn of_number(number: u8) -> Option<Self> {
        use Kind::{Discard, Extent, PunchAkey, PunchDkey, PunchExtent, PunchObject, Seal, Single};
        let all = [Single, Extent, PunchExtent, PunchAkey, PunchDkey, PunchObject, Discard, Seal];
        all.into_iter().find(|kind| *kind as u8 == number)
    }

    /// Whether it carries data.
    pub(super) fn has_data(self) -> bool {
        matches!(self, Self::Single | Self::Extent)
    }
}

/// The data lies in the data file.
pub(super) const FLAG_EXTERNAL: u8 = 1;
/// Moved here by cleaning.
pub(super) const FLAG_MOVED: u8 = 2;
/// A punch of an akey that holds an array.
pub(super) const FLAG_ARRAY: u8 = 4;

/// A part of a change of several targets.
pub(super) const FLAG_PART: u8 = 8;

/// A header, decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) kind: Kind,
    pub(super) flags: u8,
    pub(super) checksum: Checksum,
    pub(super) dkey_bytes: u16,
    pub(super) akey_bytes: u16,
    /// Pieces of the data file that hold the value; 0: one extent, as long as the value.
    pub(super) pieces: u16,
    pub(super) container: ContainerId,
    pub(super) object: ObjectId,
    /// Bytes of the value, wherever they lie.
    pub(super) bytes: u32,
    /// First byte of an extent; first epoch of a discard.
    pub(super) offset: u64,
    pub(super) epoch: Epoch,
    pub(super) lag: u16,
    pub(super) sum: u32,
}

impl Header {
    /// Of a change at a place, neither summed nor committed.
    pub(super) fn new(
        kind: Kind,
        place: &KeyPath<'_>,
        checksum: Checksum,
        bytes: usize,
        offset: u64,
    ) -> Self {
        Self {
            kind,
            flags: 0,
            checksum,
            dkey_bytes: place.dkey.len() as u16,
            akey_bytes: place.akey.len() as u16,
            pieces: 0,
            container: place.container,
            object: place.object,
            bytes: bytes as u32,
            offset,
            epoch: 0,
            lag: LAG_UNKNOWN,
            sum: 0,
        }
    }

    /// The same as a part of a change of several targets, or not.
    pub(super) fn as_part(mut self, is_part: bool) -> Self {
        if is_part {
            self.flags |= FLAG_PART;
        }
        self
    }

    fn is_part(&self) -> bool {
        self.flags & FLAG_PART != 0
    }

    pub(super) fn is_external(&self) -> bool {
        self.flags & FLAG_EXTERNAL != 0
    }

    /// Bytes of header and keys.
    pub(super) fn keys_end(&self) -> usize {
        HEADER_BYTES + usize::from(self.dkey_bytes) + usize::from(self.akey_bytes)
    }

    /// Bytes of all checksums.
    pub(super) fn sums_bytes(&self) -> usize {
        checksum::width(self.checksum) * checksum::chunks(self.bytes as usize)
    }

    /// Whether the checksum stands in the header.
    pub(super) fn is_sum_inside(&self) -> bool {
        self.sums_bytes() <= 4
    }

    /// Bytes of the extension.
    pub(super) fn extension_bytes(&self) -> usize {
        let part = if self.is_part() { TRANSACTION_BYTES } else { 0 };
        part + match self.kind {
            Kind::Single | Kind::Extent => {
                let place = match (self.is_external(), self.pieces) {
                    (false, _) => 0,
                    (true, 0) => 8,
                    (true, pieces) => usize::from(pieces) * PIECE_BYTES,
                };
                place + if self.is_sum_inside() { 0 } else { self.sums_bytes() }
            }
            Kind::PunchExtent | Kind::Discard => 8,
            _ => 0,
        }
    }

    /// Where the data begins.
    pub(super) fn data_at(&self) -> usize {
        let end = self.keys_end() + self.extension_bytes();
        if self.inline_bytes() >= ALIGNED_BYTES_MIN { end.next_multiple_of(LINE_BYTES) } else { end }
    }

    /// Bytes of data in the log.
    pub(super) fn inline_bytes(&self) -> usize {
        if self.kind.has_data() && !self.is_external() { self.bytes as usize } else { 0 }
    }

    /// Length of the record in lines. A seal says it itself.
    pub(super) fn lines(&self) -> usize {
        match self.kind {
            Kind::Seal => self.bytes as usize,
            _ => (self.data_at() + self.inline_bytes()).div_ceil(LINE_BYTES),
        }
    }

    /// Writes header and keys; not committed yet.
    #[inline]
    pub(super) fn write(&self, record: &mut [u8], dkey: &[u8], akey: &[u8], sequence: u32) {
        let mut head = [0u8; HEADER_BYTES];
        head[4] = self.kind as u8;
        head[5] = self.flags | checksum::number(self.checksum) << 4;
        head[6..8].copy_from_slice(&self.dkey_bytes.to_le_bytes());
        head[8..10].copy_from_slice(&self.akey_bytes.to_le_bytes());
        head[10..12].copy_from_slice(&self.pieces.to_le_bytes());
        head[12..16].copy_from_slice(&self.container.0.to_le_bytes());
        head[16..24].copy_from_slice(&self.object.lo.to_le_bytes());
        head[24..32].copy_from_slice(&self.object.hi.to_le_bytes());
        head[32..36].copy_from_slice(&self.bytes.to_le_bytes());
        head[36..40].copy_from_slice(&(self.lines() as u32).to_le_bytes());
        head[40..48].copy_from_slice(&self.offset.to_le_bytes());
        let keys_end = self.keys_end();
        record[HEADER_BYTES..HEADER_BYTES + dkey.len()].copy_from_slice(dkey);
        record[HEADER_BYTES + dkey.len()..keys_end].copy_from_slice(akey);
        let crc = checksum::crc32c(sequence, &head[4..48]);
        let crc = checksum::crc32c(crc, &record[HEADER_BYTES..keys_end]);
        head[..4].copy_from_slice(&crc.to_le_bytes());
        record[..HEADER_BYTES].copy_from_slice(&head);
    }

    /// Writes what is known when the data is there, and returns the commit word, which the caller stores last.
    #[inline]
    pub(super) fn seal(&self, record: &mut [u8]) -> u32 {
        let stamp = self.epoch & EPOCH_MASK | u64::from(self.lag) << 48;
        record[48..56].copy_from_slice(&stamp.to_le_bytes());
        record[56..60].copy_from_slice(&self.sum.to_le_bytes());
        commit_word(record, self.keys_end(), self.extension_bytes())
    }

    /// Decodes a header without looking at its CRC. None where it cannot be one, or where the record would not fit into `room` bytes.
    pub(super) fn decode(head: &[u8; HEADER_BYTES], room: usize) -> Option<Self> {
        let word16 = |at: usize| u16::from_le_bytes([head[at], head[at + 1]]);
        let word32 = |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
        let word64 = |at: usize| u64::from(word32(at)) | u64::from(word32(at + 4)) << 32;
        let header = Self {
            kind: Kind::of_number(head[4])?,
            flags: head[5] & 15,
            checksum: checksum::of_number(head[5] >> 4)?,
            dkey_bytes: word16(6),
            akey_bytes: word16(8),
            pieces: word16(10),
            container: ContainerId(word32(12)),
            object: ObjectId { lo: word64(16), hi: word64(24) },
            bytes: word32(32),
            offset: word64(40),
            epoch: word64(48) & EPOCH_MASK,
            lag: (word64(48) >> 48) as u16,
            sum: word32(56),
        };
        let lines = header.lines();
        (lines > 0 && lines == word32(36) as usize && lines * LINE_BYTES <= room).then_some(header)
    }

    /// Whether the first CRC matches; `record` holds header and keys at least.
    #[inline]
    pub(super) fn is_intact(&self, record: &[u8], sequence: u32) -> bool {
        let Some(keys) = record.get(HEADER_BYTES..self.keys_end()) else { return false };
        let crc = checksum::crc32c(sequence, &record[4..48]);
        checksum::crc32c(crc, keys).to_le_bytes() == record[..4]
    }

    /// Takes back a record that was published: it counts no longer, and its epoch stays known.
    pub(super) fn withdrawn(commit: u32) -> u32 {
        commit ^ WITHDRAWN
    }

    /// Whether the commit word is that of a record that was taken back.
    pub(super) fn is_withdrawn(&self, record: &[u8]) -> bool {
        let (stored, _) = self.commitment(record);
        stored == Self::withdrawn(commit_word(record, self.keys_end(), self.extension_bytes()))
    }

    /// The commit word, and whether it is the right one.
    #[inline]
    pub(super) fn commitment(&self, record: &[u8]) -> (u32, bool) {
        let stored = u32::from_le_bytes([record[60], record[61], record[62], record[63]]);
        (stored, stored == commit_word(record, self.keys_end(), self.extension_bytes()))
    }

    /// The extension.
    pub(super) fn extension<'a>(&self, record: &'a [u8]) -> &'a [u8] {
        &record[self.keys_end()..self.keys_end() + self.extension_bytes()]
    }

    /// Where it says which change it is a part of: behind places and lengths, before checksums.
    fn transaction_at(&self) -> usize {
        let sums = if self.is_sum_inside() { 0 } else { self.sums_bytes() };
        self.keys_end() + self.extension_bytes() - sums - TRANSACTION_BYTES
    }

    /// Writes which change it is a part of, where it is one.
    pub(super) fn write_transaction(&self, record: &mut [u8], transaction: Transaction) {
        if self.is_part() {
            let at = self.transaction_at();
            record[at..at + TRANSACTION_BYTES].copy_from_slice(&transaction.bytes());
        }
    }

    /// Which change it is a part of.
    pub(super) fn transaction(&self, record: &[u8]) -> Transaction {
        if !self.is_part() {
            return Transaction::NONE;
        }
        Transaction::of_bytes(record[self.transaction_at()..].first_chunk().copied().unwrap_or_default())
    }

    /// First number of the extension: place in the data file, length of a punched extent, last epoch of a discard.
    pub(super) fn extension_number(&self, record: &[u8]) -> u64 {
        self.extension(record).first_chunk::<8>().map_or(0, |bytes| u64::from_le_bytes(*bytes))
    }

    /// Where the value lies in the data file.
    pub(super) fn spread(&self, record: &[u8]) -> Spread {
        if self.pieces == 0 {
            return Spread::One(self.extension_number(record));
        }
        let (pieces, _) = self.extension(record).as_chunks::<PIECE_BYTES>();
        let number = |bytes: &[u8]| bytes.first_chunk::<8>().map_or(0, |bytes| u64::from_le_bytes(*bytes));
        let pieces = pieces.iter().take(usize::from(self.pieces));
        Spread::Many(pieces.map(|piece| (number(piece), number(&piece[8..]))).collect())
    }

    /// Notes where the value lies.
    pub(super) fn write_spread(&self, record: &mut [u8], spread: &Spread) {
        let extension = &mut record[self.keys_end()..];
        match spread {
            Spread::One(at) => extension[..8].copy_from_slice(&at.to_le_bytes()),
            Spread::Many(pieces) => {
                for ((at, bytes), into) in pieces.iter().zip(extension.chunks_mut(PIECE_BYTES)) {
                    into[..8].copy_from_slice(&at.to_le_bytes());
                    into[8..].copy_from_slice(&bytes.to_le_bytes());
                }
            }
        }
    }

    /// Copies the checksums out; returns how many bytes they are.
    pub(super) fn sums<'a>(&self, record: &'a [u8]) -> &'a [u8] {
        if self.is_sum_inside() {
            return &record[56..56 + self.sums_bytes()];
        }
        let extension = self.extension(record);
        &extension[extension.len() - self.sums_bytes()..]
    }

    /// The dkey.
    pub(super) fn dkey<'a>(&self, record: &'a [u8]) -> &'a [u8] {
        &record[HEADER_BYTES..HEADER_BYTES + usize::from(self.dkey_bytes)]
    }

    /// The akey.
    pub(super) fn akey<'a>(&self, record: &'a [u8]) -> &'a [u8] {
        &record[HEADER_BYTES + usize::from(self.dkey_bytes)..self.keys_end()]
    }
}

/// CRC of the second part; never 0, which stands for a record that was not published.
#[inline]
fn commit_word(record: &[u8], keys_end: usize, extension_bytes: usize) -> u32 {
    let first = u32::from_le_bytes([record[0], record[1], record[2], record[3]]);
    let mut crc = checksum::crc32c(first, &record[48..60]);
    if extension_bytes > 0 {
        crc = checksum::crc32c(crc, &record[keys_end..keys_end + extension_bytes]);
    }
    crc.max(1)
}
