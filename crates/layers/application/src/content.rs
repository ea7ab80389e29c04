//! Content of items: it follows from the seed, the set and the number of an item, so that every byte can be checked wherever it is read.

use units::random::{derive_seed, mix64};

use crate::plan::{INDEX_VALUE_BYTES, SetPlan};

/// Odd multiplier between words.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// Content of the items of a set.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Content {
    seed: u64,
}

/// First byte that differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Difference {
    /// Where in the buffer.
    pub(crate) at: u64,
    /// Byte that was stored.
    pub(crate) expected: u8,
    /// Byte that came back.
    pub(crate) found: u8,
}

#[inline]
fn word(base: u64, at: u64) -> u64 {
    let value = base.wrapping_add(at.wrapping_mul(STEP));
    let value = (value ^ (value >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    value ^ (value >> 32)
}

impl Content {
    /// Content of set `set` of a run.
    pub(crate) fn new(seed: u64, set: usize) -> Self {
        Self { seed: derive_seed(seed, &[set as u64]) }
    }

    #[inline]
    fn base(self, item: u64) -> u64 {
        mix64(self.seed ^ mix64(item))
    }

    /// Fills a buffer with the bytes of an item from `from` on, a multiple of 8.
    #[inline]
    pub(crate) fn fill(self, item: u64, from: u64, into: &mut [u8]) {
        let (base, first) = (self.base(item), from / 8);
        let mut words = into.chunks_exact_mut(8);
        let mut at = first;
        for chunk in &mut words {
            chunk.copy_from_slice(&word(base, at).to_le_bytes());
            at += 1;
        }
        let rest = words.into_remainder();
        let last = word(base, at).to_le_bytes();
        rest.copy_from_slice(&last[..rest.len()]);
    }

    /// The first byte of a buffer that is not the item's.
    #[inline]
    pub(crate) fn check(self, item: u64, from: u64, found: &[u8]) -> Option<Difference> {
        let (base, first) = (self.base(item), from / 8);
        let whole = found.len() / 8 * 8;
        let mut differs = 0;
        for (at, chunk) in found.chunks_exact(8).enumerate() {
            let mut bytes = [0; 8];
            bytes.copy_from_slice(chunk);
            differs |= u64::from_le_bytes(bytes) ^ word(base, first + at as u64);
        }
        let last = word(base, first + (whole / 8) as u64).to_le_bytes();
        if differs == 0 && found[whole..] == last[..found.len() - whole] {
            return None;
        }
        first_difference(base, first, found)
    }
}

#[cold]
fn first_difference(base: u64, first: u64, found: &[u8]) -> Option<Difference> {
    found.iter().enumerate().find_map(|(at, &byte)| {
        let expected = word(base, first + at as u64 / 8).to_le_bytes()[at % 8];
        (byte != expected).then_some(Difference { at: at as u64, expected, found: byte })
    })
}

/// Value of an index: object, offset and length of an item, and a digest of these and its number.
pub(crate) fn index_value(describes: Option<&SetPlan>, item: u64) -> [u8; INDEX_VALUE_BYTES as usize] {
    let (object, offset) = describes.map_or((item, 0), |set| set.place(item));
    let length = describes.map_or(0, |set| set.size(item));
    let digest = mix64(object ^ mix64(offset ^ mix64(length ^ mix64(item))));
    let mut value = [0; INDEX_VALUE_BYTES as usize];
    for (place, number) in value.chunks_exact_mut(8).zip([object, offset, length, digest]) {
        place.copy_from_slice(&number.to_le_bytes());
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_is_checked() {
        let content = Content::new(7, 1);
        for length in [1, 7, 8, 9, 100] {
            let mut bytes = vec![0; length];
            content.fill(5, 16, &mut bytes);
            assert_eq!(content.check(5, 16, &bytes), None);
            for at in 0..length {
                let mut damaged = bytes.clone();
                damaged[at] ^= 4;
                let expected = Difference { at: at as u64, expected: bytes[at], found: bytes[at] ^ 4 };
                assert_eq!(content.check(5, 16, &damaged), Some(expected));
            }
        }
    }

    #[test]
    fn items_sets_seeds_and_places_differ() {
        let bytes = |seed, set, item, from| {
            let mut bytes = [0; 32];
            Content::new(seed, set).fill(item, from, &mut bytes);
            bytes
        };
        let one = bytes(1, 0, 0, 0);
        for other in [bytes(2, 0, 0, 0), bytes(1, 1, 0, 0), bytes(1, 0, 1, 0), bytes(1, 0, 0, 8)] {
            assert_ne!(one, other);
        }
        assert_eq!(one[8..], bytes(1, 0, 0, 8)[..24], "parts of an item are parts of its content");
    }
}
