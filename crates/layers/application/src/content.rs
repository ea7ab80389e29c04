//! Content of items: it follows from the seed, the set and the number of an item, so that every byte can be checked wherever it is read.

use units::random::{derive_seed, mix64};
use workload::content::Stream;

use crate::plan::{INDEX_VALUE_BYTES, SetPlan};

/// Bytes that are made at a time to be compared: they stay in the first cache.
const COMPARED_BYTES: usize = 2048;

/// Content of the items of a set: random bytes of the processor's AES rounds, several times as fast as memory, so that a load is not the
/// measure of its filler.
#[derive(Clone, Debug)]
pub(crate) struct Content {
    stream: Stream,
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

impl Content {
    /// Content of set `set` of a run.
    pub(crate) fn new(seed: u64, set: usize) -> Self {
        Self { stream: Stream::new(derive_seed(seed, &[set as u64]), set as u64) }
    }

    /// Fills a buffer with the bytes of an item from `from` on.
    #[inline]
    pub(crate) fn fill(&self, item: u64, from: u64, into: &mut [u8]) {
        self.stream.fill(into, item, from);
    }

    /// The first byte of a buffer that is not the item's.
    #[inline]
    pub(crate) fn check(&self, item: u64, from: u64, found: &[u8]) -> Option<Difference> {
        let mut made = [0; COMPARED_BYTES];
        let mut at = 0;
        for part in found.chunks(COMPARED_BYTES) {
            let expected = &mut made[..part.len()];
            self.stream.fill(expected, item, from + at);
            if *expected != *part {
                return first_difference(expected, part)
                    .map(|found| Difference { at: at + found.at, ..found });
            }
            at += part.len() as u64;
        }
        None
    }
}

#[cold]
fn first_difference(expected: &[u8], found: &[u8]) -> Option<Difference> {
    let pairs = expected.iter().zip(found).enumerate();
    let mut wrong = pairs.filter(|(_, (expected, found))| expected != found);
    wrong.next().map(|(at, (&expected, &found))| Difference { at: at as u64, expected, found })
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
        for length in [1, 7, 8, 9, 100, COMPARED_BYTES + 5] {
            let mut bytes = vec![0; length];
            content.fill(5, 24, &mut bytes);
            assert_eq!(content.check(5, 24, &bytes), None);
            for at in (0..length).step_by(1 + length / 200) {
                let mut damaged = bytes.clone();
                damaged[at] ^= 4;
                let expected = Difference { at: at as u64, expected: bytes[at], found: bytes[at] ^ 4 };
                assert_eq!(content.check(5, 24, &damaged), Some(expected));
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
