//! Values that say who wrote them: every byte follows from run, record, sequence and length, so a value is checked without a ledger.
//!
//! Each block of 4 KiB of a value begins with a stamp, little endian:
//!
//! | bytes | field |
//! |---|---|
//! | 0..8 | run |
//! | 8..16 | record |
//! | 16..24 | sequence: which write of the record it is |
//! | 24..30 | length of the value in bytes |
//! | 30..36 | number of the block |
//! | 36..40 | CRC-32C of bytes 0..36 |
//!
//! The rest of a block is the random stream of (run, record, sequence). A last block that is too short for a stamp has none. Values
//! under 40 bytes are random bytes that follow from the record alone.

use driver::Fault;
use workload::content::Stream;
use workload::random::{label, mix64};

/// Bytes that one stamp stands for.
const BLOCK_BYTES: usize = 4096;
const STAMP_BYTES: usize = 40;
/// Number of the streams that values are made from.
const STREAM: u64 = label("object value");
/// Fewest bytes that count as evidence of something: chance agrees on fewer.
const EVIDENCE_BYTES: usize = 16;

/// Fields of a block's stamp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stamp {
    run: u64,
    record: u64,
    sequence: u64,
    value_bytes: u64,
    block: u64,
}

impl Stamp {
    #[inline]
    fn encode(&self) -> [u8; STAMP_BYTES] {
        let mut bytes = [0; STAMP_BYTES];
        bytes[..8].copy_from_slice(&self.run.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.record.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.sequence.to_le_bytes());
        bytes[24..30].copy_from_slice(&self.value_bytes.to_le_bytes()[..6]);
        bytes[30..36].copy_from_slice(&self.block.to_le_bytes()[..6]);
        let crc = checksum(&bytes[..36]);
        bytes[36..].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    /// The stamp at the beginning of `block`; none where there is no room for one, or its checksum is wrong.
    #[inline]
    fn decode(block: &[u8]) -> Option<Self> {
        let bytes = block.first_chunk::<STAMP_BYTES>()?;
        if bytes[36..] != checksum(&bytes[..36]).to_le_bytes() {
            return None;
        }
        let word = |at: usize, length: usize| {
            let mut word = [0; 8];
            word[..length].copy_from_slice(&bytes[at..at + length]);
            u64::from_le_bytes(word)
        };
        Some(Self {
            run: word(0, 8),
            record: word(8, 8),
            sequence: word(16, 8),
            value_bytes: word(24, 6),
            block: word(30, 6),
        })
    }
}

pub(crate) fn checksum(bytes: &[u8]) -> u32 {
    crc_fast::checksum(crc_fast::CrcAlgorithm::Crc32Iscsi, bytes) as u32
}

/// Makes and checks the values of one run. Allocates only when it is made, and when it finds a fault.
#[derive(Clone, Debug)]
pub struct Payload {
    run: u64,
    accepts_foreign: bool,
    /// Series of writes that others of the run have replaced, sorted.
    replaced: Vec<u64>,
    /// Values that are read are older than the run.
    is_past: bool,
    stream: Stream,
    /// The run whose values were checked last, and its stream.
    read: (u64, Stream),
    small: Stream,
    expected: Box<[u8; BLOCK_BYTES]>,
}

/// A fault: its cause in one word, the byte where it begins, and what it is.
type Found = (&'static str, usize, String);

impl Payload {
    /// For the values of `run`. With `accepts_foreign` values of other runs pass too, if they are whole.
    #[must_use]
    pub fn new(run: u64, accepts_foreign: bool) -> Self {
        let stream = Stream::new(run, STREAM);
        Self {
            run,
            accepts_foreign,
            replaced: Vec::new(),
            is_past: false,
            read: (run, stream.clone()),
            stream,
            small: Stream::new(0, STREAM),
            expected: Box::new([0; BLOCK_BYTES]),
        }
    }

    /// The same, where later writes of the run have replaced all of these series: one of theirs is an older version.
    #[must_use]
    pub fn without(self, mut series: Vec<u64>) -> Self {
        series.sort_unstable();
        Self { replaced: series, ..self }
    }

    /// The same at a snapshot that was there before the run: a value of the run itself is newer than that.
    #[must_use]
    pub fn at_snapshot(self) -> Self {
        Self { is_past: true, ..self }
    }

    /// Run and sequence of a value, as its first stamp says; none where it is too short for one, or its checksum is wrong.
    #[must_use]
    pub fn write_of(value: &[u8]) -> Option<(u64, u64)> {
        Stamp::decode(value).map(|stamp| (stamp.run, stamp.sequence))
    }

    /// Run and sequence of the write that each part of `value` between `cuts` is of, which may be different ones: stores that change it part by
    /// part may be cut off between two. A part in which no block begins carries no stamp: it is held against those of the other parts, and
    /// against `others`, the likeliest first. None where a part is not whole, or of none of them.
    #[must_use]
    pub fn writes_of_parts(
        value: &[u8],
        record: u64,
        cuts: &[usize],
        others: impl Iterator<Item = (u64, u64)>,
    ) -> Option<Vec<(u64, u64)>> {
        let value_bytes = value.len() as u64;
        let mut writes: Vec<(u64, u64)> = value
            .chunks(BLOCK_BYTES)
            .filter_map(Stamp::decode)
            .filter(|stamp| stamp.record == record && stamp.value_bytes == value_bytes)
            .map(|stamp| (stamp.run, stamp.sequence))
            .collect();
        writes.sort_unstable();
        writes.dedup();
        let ends = cuts.iter().copied().chain([value.len()]);
        let begins = [0].into_iter().chain(cuts.iter().copied());
        let mut expected = vec![0; value.len()];
        let mut found = vec![None; cuts.len() + 1];
        let mut filler = Self::new(0, false);
        for (run, sequence) in writes.into_iter().chain(others) {
            if found.iter().all(Option::is_some) {
                break;
            }
            if filler.run != run {
                filler = Self::new(run, false);
            }
            filler.fill(&mut expected, record, sequence);
            for ((begin, end), found) in begins.clone().zip(ends.clone()).zip(&mut found) {
                if found.is_none() && value[begin..end] == expected[begin..end] {
                    *found = Some((run, sequence));
                }
            }
        }
        found.into_iter().collect()
    }

    /// Fills `value` as write number `sequence` of a record.
    pub fn fill(&self, value: &mut [u8], record: u64, sequence: u64) {
        if value.len() < STAMP_BYTES {
            self.small.fill(value, record, 0);
            return;
        }
        let value_bytes = value.len() as u64;
        for (number, block) in (0..).zip(value.chunks_mut(BLOCK_BYTES)) {
            let stamp = Stamp { run: self.run, record, sequence, value_bytes, block: number };
            fill_block(&self.stream, &stamp, block);
        }
    }

    /// Checks `value`, read as a record of `value_bytes`; with `at_least` it must be of that write or a later one of the same series
    /// (the upper 24 bits of a sequence name its series).
    ///
    /// # Errors
    /// The first fault: `short`, `unwritten`, `foreign_run`, `misplaced`, `other_size`, `stale`, `newer`, `torn` or `corrupt`.
    pub fn check(
        &mut self,
        value: &[u8],
        record: u64,
        value_bytes: u64,
        at_least: Option<u64>,
    ) -> Result<(), Fault> {
        let found = if (value.len() as u64) < value_bytes {
            Err(("short", value.len(), format!("only {} of {value_bytes} bytes exist", value.len())))
        } else {
            self.check_whole(&value[..value_bytes as usize], record, at_least)
        };
        found.map_err(|(cause, at, what)| Fault { cause, detail: format!("from byte {at}: {cause}: {what}") })
    }

    fn check_whole(&mut self, value: &[u8], record: u64, at_least: Option<u64>) -> Result<(), Found> {
        if value.len() < STAMP_BYTES {
            let expected = &mut self.expected[..value.len()];
            self.small.fill(expected, record, 0);
            return if value == expected { Ok(()) } else { Err(damage(value, expected)) };
        }
        let mut head: Option<Stamp> = None;
        for (number, block) in (0..).zip(value.chunks(BLOCK_BYTES)) {
            let at = number as usize * BLOCK_BYTES;
            let stamp = match (Stamp::decode(block), head) {
                (Some(stamp), _) => stamp,
                // Too short for a stamp of its own.
                (None, Some(head)) if block.len() < STAMP_BYTES => Stamp { block: number, ..head },
                (None, _) => return Err(no_stamp(value, at, head)),
            };
            let expected = head.unwrap_or(Stamp { record, value_bytes: value.len() as u64, ..stamp });
            self.check_stamp(&stamp, &Stamp { block: number, ..expected }, head.is_none())
                .map_err(|(cause, what)| (cause, at, what))?;
            if head.is_none() {
                check_age(stamp.sequence, at_least).map_err(|what| ("stale", at, what))?;
                if self.is_past && stamp.run == self.run {
                    let what = format!("write {:#x} of this run, issued after the snapshot", stamp.sequence);
                    return Err(("newer", at, what));
                }
                if stamp.run == self.run
                    && self.replaced.binary_search(&(stamp.sequence & SERIES_MASK)).is_ok()
                {
                    let what = format!(
                        "write {:#x} belongs to a phase whose values a later phase overwrote",
                        stamp.sequence
                    );
                    return Err(("stale", at, what));
                }
            }
            self.check_block(&stamp, block, &value[at + block.len()..])
                .map_err(|(cause, within, what)| (cause, at + within, what))?;
            head.get_or_insert(stamp);
        }
        Ok(())
    }

    /// Compares a stamp with the expected one.
    fn check_stamp(
        &self,
        stamp: &Stamp,
        expected: &Stamp,
        is_first: bool,
    ) -> Result<(), (&'static str, String)> {
        let is_own =
            stamp.run == self.run || (self.accepts_foreign && (is_first || stamp.run == expected.run));
        if !is_own {
            return Err(("foreign_run", format!("written by run {:#018x}", stamp.run)));
        }
        if stamp.record != expected.record || stamp.block != expected.block {
            return Err(("misplaced", format!("belongs to record {}, block {}", stamp.record, stamp.block)));
        }
        if stamp.value_bytes != expected.value_bytes {
            return Err(("other_size", format!("part of a {}-byte value", stamp.value_bytes)));
        }
        if stamp.sequence != expected.sequence {
            let (head, tail) = (expected.sequence, stamp.sequence);
            return Err(("torn", format!("write {head:#x} before this byte, write {tail:#x} from here")));
        }
        Ok(())
    }

    /// Whether the bytes behind a stamp are those that it stands for. `after` follows the block.
    fn check_block(&mut self, stamp: &Stamp, block: &[u8], after: &[u8]) -> Result<(), Found> {
        if self.read.0 != stamp.run {
            self.read = (stamp.run, Stream::new(stamp.run, STREAM));
        }
        let expected = &mut self.expected[..block.len()];
        fill_block(&self.read.1, stamp, expected);
        if block == expected {
            return Ok(());
        }
        let damage = damage(block, expected);
        let at = damage.1;
        if block.len() - at < EVIDENCE_BYTES {
            return Err(damage);
        }
        if block[at..].iter().all(|&byte| byte == 0) {
            return Err((
                "torn",
                at,
                format!("write {:#x} before this byte, unwritten from here", stamp.sequence),
            ));
        }
        let next = Stamp::decode(after).map(|next| next.sequence);
        let others = [next, Some(stamp.sequence.wrapping_sub(1)), Some(stamp.sequence.wrapping_add(1))];
        for sequence in others.into_iter().flatten() {
            fill_block(&self.read.1, &Stamp { sequence, ..*stamp }, expected);
            // Bytes of two writes may agree by chance where one goes over into the other.
            if block[at..] == expected[at..] {
                let what =
                    format!("write {:#x} before this byte, write {sequence:#x} from here", stamp.sequence);
                return Err(("torn", at, what));
            }
        }
        Err(damage)
    }
}

#[inline]
fn fill_block(stream: &Stream, stamp: &Stamp, block: &mut [u8]) {
    let generation = mix64(stamp.record ^ mix64(stamp.sequence));
    let stamped = if block.len() < STAMP_BYTES { 0 } else { STAMP_BYTES };
    block[..stamped].copy_from_slice(&stamp.encode()[..stamped]);
    let position = stamp.block * BLOCK_BYTES as u64 + stamped as u64;
    stream.fill(&mut block[stamped..], generation, position);
}

fn no_stamp(value: &[u8], at: usize, head: Option<Stamp>) -> Found {
    let is_zero = value[at..value.len().min(at + BLOCK_BYTES)].iter().all(|&byte| byte == 0);
    match head {
        _ if !is_zero => ("corrupt", at, "the bytes are not a value of any record".to_owned()),
        None => ("unwritten", at, "all zero".to_owned()),
        Some(head) => {
            ("torn", at, format!("write {:#x} before this byte, unwritten from here", head.sequence))
        }
    }
}

/// Bytes that are not what they should be, and that nothing explains.
fn damage(found: &[u8], expected: &[u8]) -> Found {
    if found.iter().all(|&byte| byte == 0) {
        return ("unwritten", 0, "all zero".to_owned());
    }
    let mut wrong = found.iter().zip(expected).enumerate().filter(|(_, (a, b))| a != b).map(|(at, _)| at);
    let first = wrong.next().unwrap_or(0);
    ("corrupt", first, format!("{} of {} bytes are wrong", wrong.count() + 1, found.len()))
}

/// Sequences of one series have these bits in common.
pub(crate) const SERIES_MASK: u64 = !0 << 40;

fn check_age(found: u64, at_least: Option<u64>) -> Result<(), String> {
    match at_least {
        Some(expected) if found & SERIES_MASK != expected & SERIES_MASK || found < expected => {
            Err(format!("found write {found:#x}, but write {expected:#x} was acknowledged"))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests;
