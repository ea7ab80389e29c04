//! Reading a segment record by record, as recovery and cleaning do.

use crate::model::Epoch;
use crate::record::{FLAG_MOVED, HEADER_BYTES, Header, Kind, LINE_BYTES};

/// A record that a scan found.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Found {
    /// First line in the segment.
    pub(crate) line: u32,
    pub(crate) header: Header,
    pub(crate) state: Committed,
}

impl Found {
    /// Its epoch, where it was published at this place first: those of such records grow along the log.
    pub(crate) fn own_epoch(&self) -> Option<Epoch> {
        let is_own = matches!(self.state, Committed::Yes | Committed::Withdrawn)
            && self.header.flags & FLAG_MOVED == 0;
        is_own.then_some(self.header.epoch)
    }
}

/// How far a record got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Committed {
    /// Published.
    Yes,
    /// Published, and taken back by a recovery: of it the epoch counts, as that of a record that was durable.
    Withdrawn,
    /// Reserved, and never published.
    No,
    /// The commit word is a wrong one.
    Damaged,
}

/// Lines that hold no record although records follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Gap {
    pub(crate) line: u32,
    pub(crate) lines: u32,
    /// Latest epoch of the segment's records before it, and earliest of those behind it. What was moved has its place elsewhere.
    pub(crate) epoch_before: Option<Epoch>,
    pub(crate) epoch_behind: Option<Epoch>,
    /// A record that was published lies behind it, or the end of the segment.
    pub(crate) is_published_behind: bool,
}

impl Gap {
    /// Whether what it held was durable: it is damage then. Else a power failure cut it.
    ///
    /// `durable`: epoch up to which all was durable, in logs whose parts reach the medium in any order; none in those where what is
    /// published follows what is durable.
    pub(crate) fn is_damage(&self, durable: Option<Epoch>) -> bool {
        match durable {
            // Syncs go up to the end of the log: what was durable before or behind it tells of what lies between.
            Some(durable) => {
                self.epoch_before.is_some_and(|epoch| epoch < durable)
                    || self.epoch_behind.is_some_and(|epoch| epoch <= durable)
            }
            None => self.is_published_behind,
        }
    }
}

/// Outcome of a scan.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Scanned {
    /// Lines that records take, with the segment's header.
    pub(crate) used_lines: u32,
    /// Whether the segment was filled and ended in order.
    pub(crate) is_sealed: bool,
    pub(crate) gaps: Vec<Gap>,
}

/// An intact header at a line.
fn header_at(segment: &[u8], line: usize, sequence: u32) -> Option<Header> {
    let rest = segment.get(line * LINE_BYTES..)?;
    let header = Header::decode(rest.first_chunk::<HEADER_BYTES>()?, rest.len())?;
    header.is_intact(rest, sequence).then_some(header)
}

/// Shows the records of a segment in their order, each with its bytes.
pub(crate) fn scan(segment: &[u8], sequence: u32, visit: &mut dyn FnMut(&Found, &[u8])) -> Scanned {
    let lines = segment.len() / LINE_BYTES;
    let mut scanned = Scanned { used_lines: 1, ..Scanned::default() };
    let (mut line, mut epoch_before) = (1, None);
    while line < lines {
        let Some(header) = header_at(segment, line, sequence) else {
            // Either the end, or damage with records behind it.
            let behind = (line + 1..lines).find(|at| header_at(segment, *at, sequence).is_some());
            let Some(at) = behind else { break };
            scanned.gaps.push(Gap {
                line: line as u32,
                lines: (at - line) as u32,
                epoch_before,
                epoch_behind: None,
                is_published_behind: false,
            });
            line = at;
            continue;
        };
        let record = &segment[line * LINE_BYTES..(line + header.lines()) * LINE_BYTES];
        if header.kind != Kind::Seal {
            let state = match header.commitment(record) {
                (_, true) => Committed::Yes,
                (0, _) => Committed::No,
                _ if header.is_withdrawn(record) => Committed::Withdrawn,
                _ => Committed::Damaged,
            };
            let found = Found { line: line as u32, header, state };
            if matches!(state, Committed::Yes | Committed::Withdrawn) {
                let own = found.own_epoch();
                epoch_before = epoch_before.max(own);
                for gap in &mut scanned.gaps {
                    gap.is_published_behind = true;
                    gap.epoch_behind = gap.epoch_behind.into_iter().chain(own).min();
                }
            }
            visit(&found, record);
        }
        if header.kind == Kind::Seal {
            scanned.gaps.iter_mut().for_each(|gap| gap.is_published_behind = true);
        }
        line += header.lines();
        scanned.is_sealed = header.kind == Kind::Seal && line == lines;
        scanned.used_lines = line as u32;
    }
    scanned.is_sealed |= line == lines;
    scanned
}

#[cfg(test)]
mod tests {
    use crate::Checksum;

    use super::*;
    use crate::model::ObjectId;
    use crate::record::COMMIT_AT;
    use crate::types::{ContainerId, KeyPath};

    const SEQUENCE: u32 = 7;

    /// Appends a record of one line; `change` is what became of its commit word.
    fn append(segment: &mut Vec<u8>, epoch: Epoch, change: impl Fn(u32) -> u32) {
        let place =
            KeyPath { container: ContainerId(1), object: ObjectId::default(), dkey: b"d", akey: b"a" };
        let mut header = Header::new(Kind::PunchAkey, &place, Checksum::Off, 0, 0);
        header.epoch = epoch;
        let at = segment.len();
        segment.resize(at + header.lines() * LINE_BYTES, 0);
        let record = &mut segment[at..];
        header.write(record, place.dkey, place.akey, SEQUENCE);
        let commit = change(header.seal(record));
        record[COMMIT_AT..][..4].copy_from_slice(&commit.to_le_bytes());
    }

    #[test]
    fn what_was_moved_or_never_published_has_no_epoch_of_its_place() {
        let place =
            KeyPath { container: ContainerId(1), object: ObjectId::default(), dkey: b"d", akey: b"a" };
        let header = Header { epoch: 9, ..Header::new(Kind::PunchAkey, &place, Checksum::Off, 0, 0) };
        let own = |state, flags| Found { line: 1, header: Header { flags, ..header }, state }.own_epoch();
        let states = [Committed::Yes, Committed::Withdrawn, Committed::No, Committed::Damaged];
        assert_eq!(states.map(|state| own(state, 0)), [Some(9), Some(9), None, None]);
        assert_eq!(states.map(|state| own(state, FLAG_MOVED)), [None; 4]);
    }

    fn scanned(last_before: impl Fn(u32) -> u32) -> Scanned {
        let mut segment = vec![0; LINE_BYTES];
        append(&mut segment, 5, |commit| commit);
        append(&mut segment, 9, last_before);
        segment.extend([0xa5; 3 * LINE_BYTES]);
        append(&mut segment, 20, |commit| commit);
        segment.resize(segment.len() + 8 * LINE_BYTES, 0);
        scan(&segment, SEQUENCE, &mut |_, _| {})
    }

    #[test]
    fn what_follows_a_record_that_was_taken_back_is_not_as_old() {
        // The sync that made 9 durable reached no further: what was cut behind it never was.
        let of =
            |scanned: &Scanned| scanned.gaps.iter().map(|gap| (gap.lines, gap.is_damage(Some(9)))).collect();
        let all: [Vec<(u32, bool)>; 3] =
            [of(&scanned(|commit| commit)), of(&scanned(Header::withdrawn)), of(&scanned(|_| 0))];
        // Of one that was never published nothing is known: the gap may be what was durable at 9.
        assert_eq!(all, [vec![(3, false)], vec![(3, false)], vec![(3, true)]]);
        // What was durable beyond is damage, whoever stands before it.
        let gap = scanned(Header::withdrawn).gaps[0];
        assert!(gap.is_damage(Some(10)) && gap.is_damage(None) && gap.is_published_behind);
    }
}
