//! Random positions for blocks of several sizes that fit between each other.

use super::{Extent, Position};
use workload::access::Permutation;
use workload::random::derive_seed;

/// Walks extents at random so that every byte comes once a pass: a block begins at a unit that was not visited yet, and ends early where
/// the next one was.
#[derive(Clone, Debug)]
pub struct Fitted {
    extents: Box<[Extent]>,
    /// Number of the first unit of each extent.
    firsts: Box<[u64]>,
    unit_bytes: u64,
    units: u64,
    order: Permutation,
    /// Units of this pass that were drawn.
    drawn: u64,
    /// A bit for each unit that was visited in this pass.
    visited: Box<[u64]>,
    once: bool,
}

impl Fitted {
    /// Walks `extents` by units that all sizes are multiples of; with `once` it ends after one pass.
    #[must_use]
    pub fn new(extents: &[Extent], unit_bytes: u64, once: bool, seed: u64) -> Self {
        let mut units = 0;
        let firsts = extents.iter().map(|extent| {
            let first = units;
            units += extent.size_bytes / unit_bytes;
            first
        });
        let firsts = firsts.collect();
        Self {
            extents: extents.into(),
            firsts,
            unit_bytes,
            units,
            order: Permutation::new(units, derive_seed(seed, &[5])),
            drawn: 0,
            visited: vec![0; units.div_ceil(64) as usize].into(),
            once,
        }
    }

    #[inline]
    fn is_visited(&self, unit: u64) -> bool {
        self.visited[(unit / 64) as usize] & (1 << (unit % 64)) != 0
    }

    /// The next block, of `size_bytes` where there is room; none after the only pass.
    #[inline]
    pub fn next(&mut self, size_bytes: u64) -> Option<Position> {
        let unit = loop {
            if self.drawn == self.units {
                if self.once {
                    return None;
                }
                self.drawn = 0;
                self.visited.fill(0);
            }
            self.drawn += 1;
            let unit = self.order.next_block();
            if !self.is_visited(unit) {
                break unit;
            }
        };
        let at = self.firsts.partition_point(|first| *first <= unit) - 1;
        let end = self.firsts.get(at + 1).copied().unwrap_or(self.units);
        let last = end.min(unit + (size_bytes / self.unit_bytes).max(1));
        let free = (unit..last).take_while(|&unit| !self.is_visited(unit)).count() as u64;
        for unit in unit..unit + free {
            self.visited[(unit / 64) as usize] |= 1 << (unit % 64);
        }
        let extent = self.extents[at];
        Some(Position {
            target: extent.target,
            offset_bytes: extent.offset_bytes + (unit - self.firsts[at]) * self.unit_bytes,
            length_bytes: (free * self.unit_bytes) as u32,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_comes_once_a_pass() {
        let extent = |target, offset_bytes, size_bytes| Extent { target, offset_bytes, size_bytes };
        let extents = [extent(0, 4096, 512 * 77), extent(3, 0, 512 * 5)];
        let mut walk = Fitted::new(&extents, 512, false, 3);
        for _ in 0..3 {
            let (mut seen, mut moved, mut number) = (std::collections::BTreeSet::new(), 0, 0u64);
            while moved < 512 * 82 {
                number += 1;
                let at = walk.next(512 * (1 + number % 8)).unwrap();
                moved += u64::from(at.length_bytes);
                let units = at.offset_bytes / 512..(at.offset_bytes + u64::from(at.length_bytes)) / 512;
                assert!(units.clone().all(|unit| seen.insert((at.target, unit))), "{at:?}");
                let whole = extents.iter().find(|extent| extent.target == at.target).unwrap();
                assert!(at.offset_bytes >= whole.offset_bytes);
                assert!(units.end * 512 <= whole.offset_bytes + whole.size_bytes);
            }
            assert_eq!((moved, seen.len()), (512 * 82, 82));
        }
        let mut once = Fitted::new(&extents, 512, true, 3);
        assert_eq!(std::iter::from_fn(|| once.next(1024)).map(|at| at.length_bytes).sum::<u32>(), 512 * 82);
    }
}
