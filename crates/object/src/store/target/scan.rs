//! Reading a segment record by record, as recovery and cleaning do.

use crate::store::record::{HEADER_BYTES, Header, Kind, LINE_BYTES};

/// A record that a scan found.
#[derive(Clone, Copy, Debug)]
pub(super) struct Found {
    /// First line in the segment.
    pub(super) line: u32,
    pub(super) header: Header,
    pub(super) state: Committed,
}

/// How far a record got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Committed {
    /// Published.
    Yes,
    /// Reserved, and never published.
    No,
    /// The commit word is a wrong one.
    Damaged,
}

/// Lines that hold no record although records follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Gap {
    pub(super) line: u32,
    pub(super) lines: u32,
    /// Epoch of the record before it; 0 where it is the first.
    pub(super) epoch_before: u64,
}

/// What a scan came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Scanned {
    /// Lines that records take, with the segment's header.
    pub(super) used_lines: u32,
    /// Whether the segment was filled and ended in order.
    pub(super) is_sealed: bool,
    pub(super) gaps: Vec<Gap>,
}

/// An intact header at a line.
fn header_at(segment: &[u8], line: usize, sequence: u32) -> Option<Header> {
    let rest = segment.get(line * LINE_BYTES..)?;
    let header = Header::decode(rest.first_chunk::<HEADER_BYTES>()?, rest.len())?;
    header.is_intact(rest, sequence).then_some(header)
}

/// Shows the records of a segment in their order, each with its bytes.
pub(super) fn scan(segment: &[u8], sequence: u32, visit: &mut dyn FnMut(&Found, &[u8])) -> Scanned {
    let lines = segment.len() / LINE_BYTES;
    let mut scanned = Scanned { used_lines: 1, ..Scanned::default() };
    let (mut line, mut epoch_before) = (1, 0);
    while line < lines {
        let Some(header) = header_at(segment, line, sequence) else {
            // Either the end, or damage with records behind it.
            let behind = (line + 1..lines).find(|at| header_at(segment, *at, sequence).is_some());
            let Some(at) = behind else { break };
            scanned.gaps.push(Gap { line: line as u32, lines: (at - line) as u32, epoch_before });
            line = at;
            continue;
        };
        let record = &segment[line * LINE_BYTES..(line + header.lines()) * LINE_BYTES];
        if header.kind != Kind::Seal {
            let state = match header.commitment(record) {
                (_, true) => Committed::Yes,
                (0, _) => Committed::No,
                _ => Committed::Damaged,
            };
            if state == Committed::Yes {
                epoch_before = header.epoch;
            }
            visit(&Found { line: line as u32, header, state }, record);
        }
        line += header.lines();
        scanned.is_sealed = header.kind == Kind::Seal && line == lines;
        scanned.used_lines = line as u32;
    }
    scanned.is_sealed |= line == lines;
    scanned
}
