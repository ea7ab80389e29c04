//! The extents under an akey: what is visible now as pieces that do not overlap, and every version in the order of epochs.

use std::collections::BTreeMap;

use crate::model::Epoch;

/// Change that a version makes to its range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    /// Stores data.
    Data,
    /// Makes a hole.
    Hole,
    /// Removes everything.
    All,
}

/// One update or punch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ExtentVersion {
    pub(super) epoch: Epoch,
    /// First line of its record.
    pub(super) location: u64,
    /// Lines of its record.
    pub(super) lines: u32,
    pub(super) change: Change,
    pub(super) start: u64,
    pub(super) bytes: u64,
}

impl ExtentVersion {
    fn end(&self) -> u64 {
        self.start.saturating_add(self.bytes)
    }
}

/// A visible part of a version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    pub(super) bytes: u64,
    pub(super) epoch: Epoch,
    pub(super) location: u64,
    pub(super) lines: u32,
    /// Where in the version's data it begins.
    pub(super) from: u64,
}

/// Pieces by their first byte.
pub(super) type Pieces = BTreeMap<u64, Piece>;

/// An akey that holds an array.
#[derive(Debug, Default)]
pub(super) struct ExtentNode {
    pub(super) pieces: Pieces,
    pub(super) history: Vec<ExtentVersion>,
}

impl ExtentNode {
    /// Adds a version. One that is there already (the same epoch) is left as it is.
    pub(super) fn apply(&mut self, version: ExtentVersion) -> bool {
        if self.history.last().is_none_or(|last| last.epoch < version.epoch) {
            self.history.push(version);
            lay(&mut self.pieces, &version);
            return true;
        }
        match self.history.binary_search_by_key(&version.epoch, |other| other.epoch) {
            Ok(_) => false,
            Err(at) => {
                self.history.insert(at, version);
                self.pieces = self.pieces_at(Epoch::MAX);
                true
            }
        }
    }

    /// Pieces that were visible at an epoch.
    pub(super) fn pieces_at(&self, at: Epoch) -> Pieces {
        let mut pieces = Pieces::new();
        for version in self.history.iter().take_while(|version| version.epoch <= at) {
            lay(&mut pieces, version);
        }
        pieces
    }

    /// Takes versions out by their epochs and lays the rest anew.
    pub(super) fn retain(&mut self, keeps: impl Fn(&ExtentVersion) -> bool) {
        self.history.retain(keeps);
        self.pieces = self.pieces_at(Epoch::MAX);
    }

    /// The record of an epoch lies elsewhere now. False where there is none.
    pub(super) fn relocate(&mut self, epoch: Epoch, from: u64, to: u64) -> bool {
        let Ok(at) = self.history.binary_search_by_key(&epoch, |version| version.epoch) else { return false };
        let version = &mut self.history[at];
        if version.location != from {
            return false;
        }
        version.location = to;
        let (start, end) = (version.start, version.end());
        for (_, piece) in self.pieces.range_mut(start..end) {
            if piece.epoch == epoch {
                piece.location = to;
            }
        }
        true
    }

    /// Memory in bytes, about.
    pub(super) fn memory_bytes(&self) -> usize {
        size_of::<Self>()
            + self.history.capacity() * size_of::<ExtentVersion>()
            + self.pieces.len() * (size_of::<Piece>() + 8) * 3 / 2
    }
}

/// Pieces that overlap a range, in order, each with its first byte.
pub(super) fn overlapping(pieces: &Pieces, start: u64, end: u64) -> impl Iterator<Item = (u64, &Piece)> {
    let first = pieces
        .range(..=start)
        .next_back()
        .filter(|(at, piece)| *at + piece.bytes > start)
        .map_or(start, |(at, _)| *at);
    pieces.range(first..end.max(first)).map(|(at, piece)| (*at, piece))
}

/// Lays a version over what is there.
fn lay(pieces: &mut Pieces, version: &ExtentVersion) {
    if version.change == Change::All {
        pieces.clear();
        return;
    }
    let (start, end) = (version.start, version.end());
    if start == end {
        return;
    }
    // One that begins before and reaches in: its head stays, and its tail where it reaches over.
    if let Some((at, piece)) = pieces.range(..start).next_back().map(|(at, piece)| (*at, *piece)) {
        if at + piece.bytes > end {
            let skipped = end - at;
            let tail = Piece { bytes: piece.bytes - skipped, from: piece.from + skipped, ..piece };
            pieces.insert(end, tail);
        }
        if at + piece.bytes > start {
            pieces.insert(at, Piece { bytes: start - at, ..piece });
        }
    }
    while let Some((at, piece)) = pieces.range(start..end).next().map(|(at, piece)| (*at, *piece)) {
        pieces.remove(&at);
        if at + piece.bytes > end {
            let skipped = end - at;
            let tail = Piece { bytes: piece.bytes - skipped, from: piece.from + skipped, ..piece };
            pieces.insert(end, tail);
        }
    }
    if version.change == Change::Data {
        pieces.insert(
            start,
            Piece {
                bytes: version.bytes,
                epoch: version.epoch,
                location: version.location,
                lines: version.lines,
                from: 0,
            },
        );
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn version(epoch: Epoch, change: Change, start: u64, bytes: u64) -> ExtentVersion {
        ExtentVersion { epoch, location: epoch * 10, lines: 1, change, start, bytes }
    }

    proptest! {
        #[test]
        fn like_bytes_painted_over(changes in prop::collection::vec((0u64..80, 0u64..40, 0u8..8), 1..40), order in any::<u64>()) {
            let versions: Vec<_> = changes.iter().enumerate().map(|(number, (start, bytes, what))| {
                let change = match what { 0 => Change::All, 1 | 2 => Change::Hole, _ => Change::Data };
                version(number as u64 + 1, change, *start, *bytes)
            }).collect();
            let mut node = ExtentNode::default();
            let mut shuffled = versions.clone();
            let count = shuffled.len();
            for at in 0..count {
                let step = (order >> (at % 50)) as usize;
                shuffled.swap(at, (at + step) % count);
            }
            for version in &shuffled {
                prop_assert!(node.apply(*version));
                prop_assert!(!node.apply(*version));
            }
            for at in [count as u64 / 2, u64::MAX] {
                let mut painted = [(0u64, 0u64); 130];
                for version in versions.iter().take_while(|version| version.epoch <= at) {
                    match version.change {
                        Change::All => painted = [(0, 0); 130],
                        change => for byte in version.start..version.end() {
                            let from = byte - version.start;
                            painted[byte as usize] = if change == Change::Data { (version.epoch, from) } else { (0, 0) };
                        }
                    }
                }
                let pieces = if at == u64::MAX { node.pieces.clone() } else { node.pieces_at(at) };
                let mut found = [(0u64, 0u64); 130];
                for (start, piece) in overlapping(&pieces, 0, u64::MAX) {
                    for byte in 0..piece.bytes {
                        prop_assert_eq!(found[(start + byte) as usize], (0, 0));
                        found[(start + byte) as usize] = (piece.epoch, piece.from + byte);
                    }
                }
                prop_assert_eq!(found, painted);
                for (start, end) in [(0, 10), (15, 16), (30, 90)] {
                    let expected = (start..end).any(|byte: u64| painted[byte as usize].0 > 0);
                    prop_assert_eq!(overlapping(&pieces, start, end).next().is_some(), expected);
                }
            }
        }
    }

    #[test]
    fn records_move() {
        let mut node = ExtentNode::default();
        node.apply(version(1, Change::Data, 0, 100));
        node.apply(version(2, Change::Data, 40, 20));
        assert!(node.relocate(1, 10, 99) && !node.relocate(1, 10, 98) && !node.relocate(3, 30, 1));
        let locations: Vec<_> = node.pieces.values().map(|piece| piece.location).collect();
        assert_eq!(locations, [99, 20, 99]);
    }
}
