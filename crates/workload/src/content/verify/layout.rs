//! Where headers and tags lie, and how they are read and written.

/// Length of the header at the start of each interval, in bytes.
pub const HEADER_BYTES: usize = 48;

/// Sector that storage writes as one, in bytes: the distance between tags.
pub const SECTOR_BYTES: usize = 512;

/// Length of the tag at the start of each later sector of an interval, in bytes.
pub(super) const TAG_BYTES: usize = 16;

const MAGIC: [u8; 4] = *b"StVb";
const VERSION: u16 = 1;
const CRC_AT: usize = 44;

/// Header of an interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) run: u64,
    pub(super) target: u64,
    pub(super) offset: u64,
    pub(super) sequence: u64,
    pub(super) length: u32,
}

impl Header {
    pub(super) fn encode(&self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        bytes[..4].copy_from_slice(&MAGIC);
        bytes[4..6].copy_from_slice(&VERSION.to_le_bytes());
        bytes[6..8].copy_from_slice(&(HEADER_BYTES as u16).to_le_bytes());
        for (at, value) in [(8, self.run), (16, self.target), (24, self.offset), (32, self.sequence)] {
            bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
        }
        bytes[40..44].copy_from_slice(&self.length.to_le_bytes());
        let crc = checksum(&bytes[..CRC_AT]);
        bytes[CRC_AT..].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    /// The header at the start of `bytes`, if magic, version and checksum are right.
    #[inline]
    pub(super) fn decode(bytes: &[u8]) -> Option<Header> {
        let bytes = bytes.first_chunk::<HEADER_BYTES>()?;
        let header = Header::fields(bytes);
        let sane = bytes[..4] == MAGIC
            && bytes[4..6] == VERSION.to_le_bytes()
            && bytes[6..8] == (HEADER_BYTES as u16).to_le_bytes()
            && bytes[CRC_AT..] == checksum(&bytes[..CRC_AT]).to_le_bytes();
        sane.then_some(header)
    }

    /// The fields as they stand, sane or not.
    pub(super) fn fields(bytes: &[u8; HEADER_BYTES]) -> Header {
        let length = [bytes[40], bytes[41], bytes[42], bytes[43]];
        Header {
            run: word(bytes, 8),
            target: word(bytes, 16),
            offset: word(bytes, 24),
            sequence: word(bytes, 32),
            length: u32::from_le_bytes(length),
        }
    }
}

fn checksum(bytes: &[u8]) -> u32 {
    crc_fast::checksum(crc_fast::CrcAlgorithm::Crc32Iscsi, bytes) as u32
}

fn word(bytes: &[u8], at: usize) -> u64 {
    let mut word = [0; 8];
    word.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(word)
}

/// Where the tags of an interval of `length` bytes at `place` of the target begin, in bytes from its start.
#[inline]
pub(super) fn tags(place: u64, length: usize) -> impl Iterator<Item = usize> {
    tags_from(place, length, HEADER_BYTES)
}

/// Those of the tags that begin at `from` or later; `from` is at least [`HEADER_BYTES`].
#[inline]
pub(super) fn tags_from(place: u64, length: usize, from: usize) -> impl Iterator<Item = usize> {
    let past = (place.wrapping_add(from as u64) % SECTOR_BYTES as u64) as usize;
    let first = from + (SECTOR_BYTES - past) % SECTOR_BYTES;
    (first..(length + 1).saturating_sub(TAG_BYTES)).step_by(SECTOR_BYTES)
}

#[inline]
pub(super) fn put_tag(tag: &mut [u8], sequence: u64, offset: u64) {
    tag[..8].copy_from_slice(&sequence.to_le_bytes());
    tag[8..16].copy_from_slice(&offset.to_le_bytes());
}

/// Sequence and offset that the tag at the start of `sector` gives.
pub(super) fn read_tag(sector: &[u8]) -> (u64, u64) {
    (word(sector, 0), word(sector, 8))
}
