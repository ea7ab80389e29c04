//! Why a block that failed the check is wrong. Runs only after a mismatch, so it may recompute as often as it likes.

use super::layout::{HEADER_BYTES, Header, TAG_BYTES, put_tag, read_tag, tags};
use super::{BlockChecker, Expected, Fault, Mismatch, SCRATCH_BYTES};

/// Fewest bytes that must recompute to count as evidence of another sequence: chance agrees on fewer.
const EVIDENCE_BYTES: usize = 16;

/// One interval of a block and where it was read from.
#[derive(Clone, Copy)]
pub(super) struct Interval<'a> {
    bytes: &'a [u8],
    place: u64,
    /// Bytes that follow it in the block.
    after: &'a [u8],
}

/// A run of bytes between two tags.
#[derive(Clone, Copy)]
struct Segment {
    start: usize,
    end: usize,
    tagged: bool,
}

/// A fault and the byte of the interval where it begins.
type Found = (Fault, usize);

impl<'a> Interval<'a> {
    fn new(block: &'a [u8], at: usize, length: usize, offset: u64) -> Interval<'a> {
        let (bytes, after) = block[at..].split_at(length);
        Interval { bytes, place: offset.wrapping_add(at as u64), after }
    }

    fn segments(self) -> impl Iterator<Item = Segment> {
        let length = self.bytes.len();
        let starts = std::iter::once(0).chain(tags(self.place, length));
        let ends = tags(self.place, length).chain(std::iter::once(length));
        starts.zip(ends).map(|(start, end)| Segment { start, end, tagged: start > 0 })
    }

    fn part(self, segment: Segment) -> &'a [u8] {
        &self.bytes[segment.start..segment.end]
    }

    fn at(self, byte: usize) -> u64 {
        self.place.wrapping_add(byte as u64)
    }
}

impl BlockChecker {
    /// The mismatch of a block whose interval at `at` failed; the intervals before it are of sequence `head`.
    pub(super) fn diagnose(
        &mut self,
        block: &[u8],
        at: usize,
        offset: u64,
        expected: Expected,
        head: Option<u64>,
    ) -> Mismatch {
        let length = self.interval_bytes as usize;
        let (fault, byte) = self.diagnose_interval(Interval::new(block, at, length, offset), expected);
        match (fault, head) {
            (Fault::Unwritten, None) => self.diagnose_unwritten_start(block, offset, expected),
            (Fault::Unwritten, Some(_)) => {
                self.mismatch(offset, at, Fault::Torn { head_sequence: head, tail_sequence: None })
            }
            // The interval is torn itself, but its first part differs from the block's already.
            (Fault::Torn { head_sequence, .. }, Some(_)) if head_sequence != head => {
                let fault = Fault::Torn { head_sequence: head, tail_sequence: head_sequence };
                self.mismatch(offset, at, fault)
            }
            _ => self.mismatch(offset, at + byte, fault),
        }
    }

    /// The block begins with a zero interval: it is unwritten, or its first part is.
    fn diagnose_unwritten_start(&mut self, block: &[u8], offset: u64, expected: Expected) -> Mismatch {
        let length = self.interval_bytes as usize;
        let written = (0..block.len()).step_by(length).find(|&at| !is_zero(&block[at..at + length]));
        let Some(at) = written else {
            return self.mismatch(offset, 0, Fault::Unwritten);
        };
        if let Some(sequence) = self.check_interval(block, at, offset) {
            let fault = Fault::Torn { head_sequence: None, tail_sequence: Some(sequence) };
            return self.mismatch(offset, at, fault);
        }
        let (fault, byte) = self.diagnose_interval(Interval::new(block, at, length, offset), expected);
        match fault {
            Fault::Torn { head_sequence: Some(sequence), .. } => {
                let fault = Fault::Torn { head_sequence: None, tail_sequence: Some(sequence) };
                self.mismatch(offset, at, fault)
            }
            _ => self.mismatch(offset, at + byte, fault),
        }
    }

    fn diagnose_interval(&mut self, interval: Interval<'_>, expected: Expected) -> Found {
        match Header::decode(interval.bytes) {
            Some(header) => match self.identity_fault(&header, interval.place) {
                Some(fault) => (fault, 0),
                None => {
                    self.use_run(header.run);
                    self.diagnose_payload(interval, header.sequence, expected)
                }
            },
            None if is_zero(interval.bytes) => (Fault::Unwritten, 0),
            None => self.diagnose_header(interval, expected),
        }
    }

    /// The header is sane and in its place, but some byte after it is not of its sequence.
    fn diagnose_payload(&mut self, interval: Interval<'_>, sequence: u64, expected: Expected) -> Found {
        for segment in interval.segments() {
            let part = interval.part(segment);
            let skip = if segment.tagged { 0 } else { HEADER_BYTES };
            let Some(first) = self.first_difference(interval, segment, skip, sequence) else { continue };
            let torn = |tail_sequence| Fault::Torn { head_sequence: Some(sequence), tail_sequence };
            if segment.tagged {
                if is_zero(part) {
                    return (torn(None), segment.start);
                }
                if let Some((tag_sequence, tag_offset)) = self.proven_tag(part) {
                    let fault = match tag_offset == interval.at(segment.start) {
                        true => torn(Some(tag_sequence)),
                        false => Fault::Misplaced { found_offset: tag_offset },
                    };
                    return (fault, segment.start);
                }
            }
            return match self.tail_from(interval, segment, first, sequence, expected) {
                Some(tail_sequence) => (torn(tail_sequence), first),
                None => (Fault::Corrupt, first),
            };
        }
        // Unreachable for an interval that failed the check: every byte lies in one of the segments.
        (Fault::Corrupt, 0)
    }

    /// Sequence that the bytes of `segment` from byte `first` of the interval on are of, or that they were never written, if that can be
    /// shown.
    fn tail_from(
        &mut self,
        interval: Interval<'_>,
        segment: Segment,
        first: usize,
        sequence: u64,
        expected: Expected,
    ) -> Option<Option<u64>> {
        let enough = segment.end - first >= EVIDENCE_BYTES;
        if is_zero(&interval.bytes[first..segment.end]) {
            let next = &interval.bytes[segment.end..];
            let next = if next.is_empty() { interval.after } else { next };
            let zeros_follow = next.first_chunk::<EVIDENCE_BYTES>().is_some_and(|bytes| is_zero(bytes));
            return (enough || zeros_follow).then_some(None);
        }
        for tail in neighbours(interval, segment, sequence, expected).into_iter().flatten() {
            let explained = self.first_difference(interval, segment, first - segment.start, tail).is_none();
            if explained && (enough || self.is_followed_by(interval, segment, tail)) {
                return Some(Some(tail));
            }
        }
        None
    }

    /// Whether what comes after `segment` is provably of `sequence`.
    fn is_followed_by(&mut self, interval: Interval<'_>, segment: Segment, sequence: u64) -> bool {
        match interval.segments().find(|next| next.start == segment.end) {
            Some(next) => self.proven_tag(interval.part(next)) == Some((sequence, interval.at(next.start))),
            None => Header::decode(interval.after).is_some_and(|header| header.sequence == sequence),
        }
    }

    /// There is no sane header, and the interval is not zero.
    fn diagnose_header(&mut self, interval: Interval<'_>, expected: Expected) -> Found {
        let Some(raw) = interval.bytes.first_chunk::<HEADER_BYTES>().map(Header::fields) else {
            return (Fault::Corrupt, 0);
        };
        let run = self.run.unwrap_or(raw.run);
        self.use_run(run);
        let written = interval.segments().find(|&segment| !is_zero(interval.part(segment)));
        if let Some(segment) = written.filter(|segment| segment.tagged)
            && let Some((sequence, offset)) = self.proven_tag(interval.part(segment))
            && offset == interval.at(segment.start)
        {
            let fault = Fault::Torn { head_sequence: None, tail_sequence: Some(sequence) };
            return (fault, segment.start);
        }
        (Fault::Corrupt, self.likeliest_difference(interval, run, raw.sequence, expected))
    }

    /// The first byte that differs from the interval of the sequence that explains most of its bytes.
    fn likeliest_difference(
        &mut self,
        interval: Interval<'_>,
        run: u64,
        raw_sequence: u64,
        expected: Expected,
    ) -> usize {
        let tag_sequence =
            tags(interval.place, interval.bytes.len()).next().map(|tag| read_tag(&interval.bytes[tag..]).0);
        let candidates = [expected.sequence(), Some(raw_sequence), tag_sequence];
        let mut best = (usize::MAX, 0);
        for sequence in candidates.into_iter().flatten() {
            let header = Header {
                run,
                target: self.target,
                offset: interval.place,
                sequence,
                length: self.interval_bytes,
            };
            let header = header.encode();
            let mut first = header.iter().zip(interval.bytes).position(|(made, read)| made != read);
            let mut count = header.iter().zip(interval.bytes).filter(|(made, read)| made != read).count();
            for segment in interval.segments() {
                let skip = if segment.tagged { 0 } else { HEADER_BYTES };
                first = first.or(self.first_difference(interval, segment, skip, sequence));
                count += self.differences(interval, segment, skip, sequence);
            }
            best = best.min((count, first.unwrap_or(0)));
        }
        best.1
    }

    /// Sequence and offset of a sector's tag, if all of the sector recomputes from them.
    fn proven_tag(&mut self, sector: &[u8]) -> Option<(u64, u64)> {
        let (sequence, offset) = read_tag(sector);
        let made = &mut self.scratch[..sector.len()];
        self.payload.fill(made, sequence, offset);
        // A sector of a tag alone has no payload to prove it by.
        let proven = sector.len() >= TAG_BYTES + EVIDENCE_BYTES && sector[TAG_BYTES..] == made[TAG_BYTES..];
        proven.then_some((sequence, offset))
    }

    /// Recomputes `segment` from its byte `skip` on as write number `sequence` of its place.
    fn recompute(
        &mut self,
        interval: Interval<'_>,
        segment: Segment,
        skip: usize,
        sequence: u64,
    ) -> impl Iterator<Item = (u8, u8)> {
        // Tags are 512 apart and leave out at most the header or the end, so a segment is less than 1100 bytes.
        const { assert!(SCRATCH_BYTES >= 2048) };
        let length = segment.end - segment.start;
        let made = &mut self.scratch[..length];
        let place = interval.at(segment.start);
        self.payload.fill(made, sequence, place);
        if segment.tagged {
            put_tag(&mut made[..TAG_BYTES], sequence, place);
        }
        interval.part(segment)[skip..].iter().copied().zip(made[skip..].iter().copied())
    }

    /// The first byte of the interval, in this segment and past its first `skip` bytes, that is not of `sequence`.
    fn first_difference(
        &mut self,
        interval: Interval<'_>,
        segment: Segment,
        skip: usize,
        sequence: u64,
    ) -> Option<usize> {
        let mut pairs = self.recompute(interval, segment, skip, sequence);
        pairs.position(|(read, made)| read != made).map(|index| segment.start + skip + index)
    }

    fn differences(&mut self, interval: Interval<'_>, segment: Segment, skip: usize, sequence: u64) -> usize {
        self.recompute(interval, segment, skip, sequence).filter(|(read, made)| read != made).count()
    }
}

impl Expected {
    fn sequence(self) -> Option<u64> {
        match self {
            Expected::Exactly(sequence) | Expected::AtLeast(sequence) => Some(sequence),
            Expected::Any => None,
        }
    }
}

/// Sequences that the rest of a segment could be of: those of what follows it, of what was expected, and the nearest.
fn neighbours(
    interval: Interval<'_>,
    segment: Segment,
    sequence: u64,
    expected: Expected,
) -> [Option<u64>; 5] {
    let next_tag = (segment.end < interval.bytes.len()).then(|| read_tag(&interval.bytes[segment.end..]).0);
    let next_header = Header::decode(interval.after).map(|header| header.sequence);
    [
        next_tag,
        next_header,
        expected.sequence(),
        Some(sequence.wrapping_sub(1)),
        Some(sequence.wrapping_add(1)),
    ]
}

fn is_zero(bytes: &[u8]) -> bool {
    bytes.iter().all(|&byte| byte == 0)
}
