//! Cells of erasure-coded values (Reed-Solomon): a value is cut into `data` cells, and `parity` more are computed, so that any `data` of
//! them give the value back.
//!
//! Single values: cell `i` holds bytes `[i * cell, (i + 1) * cell)` of the value, as far as it goes, and a tag behind them that says how
//! long the value is and which update wrote it: cells of two updates are never put together.
//! Extents: see [`Striping`].

use reed_solomon_simd::{ReedSolomonDecoder, ReedSolomonEncoder};

mod striping;

pub use striping::{EXTENT_CELL_BYTES, Striping};

/// Cells are multiples of this, so that the coder works on whole vector registers.
const CELL_ALIGN_BYTES: usize = 64;

/// Bytes behind the cell of a single value.
pub const TAG_BYTES: usize = 16;

/// Facts that the cells of a single value carry about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tag {
    /// Length of the whole value.
    pub value_bytes: u64,
    /// The update that wrote it: the same in all its cells, another for each update.
    pub stamp: u64,
}

impl Tag {
    /// As it stands behind a cell.
    #[must_use]
    pub fn encode(self) -> [u8; TAG_BYTES] {
        let mut bytes = [0; TAG_BYTES];
        bytes[..8].copy_from_slice(&self.value_bytes.to_le_bytes());
        bytes[8..].copy_from_slice(&self.stamp.to_le_bytes());
        bytes
    }

    /// Cell and tag of what is stored; none where it is too short for a tag.
    #[must_use]
    pub fn split(stored: &[u8]) -> Option<(&[u8], Self)> {
        let (cell, tag) = stored.split_last_chunk::<TAG_BYTES>()?;
        let tag = u128::from_le_bytes(*tag);
        Some((cell, Self { value_bytes: tag as u64, stamp: (tag >> 64) as u64 }))
    }
}

/// Length of the cells of a value of `value_bytes` over `data` cells. 0 for an empty value.
#[inline]
#[must_use]
pub fn cell_bytes(value_bytes: usize, data: usize) -> usize {
    value_bytes.div_ceil(data).next_multiple_of(CELL_ALIGN_BYTES)
}

/// The part of a value of `value_bytes` that cell `cell` holds.
#[inline]
#[must_use]
pub fn cell_range(value_bytes: usize, data: usize, cell: usize) -> std::ops::Range<usize> {
    let bytes = cell_bytes(value_bytes, data);
    (cell * bytes).min(value_bytes)..((cell + 1) * bytes).min(value_bytes)
}

/// Fewer cells are left than it takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooFewCells;

/// Computes parity, and cells that were lost. One a worker: it keeps its working memory, so that nothing is allocated once the largest
/// value has been seen.
pub struct Coder {
    data: usize,
    parity: usize,
    encoder: ReedSolomonEncoder,
    decoder: ReedSolomonDecoder,
    padded: Vec<u8>,
}

impl Coder {
    /// For `data` cells of data and `parity` of parity.
    ///
    /// # Panics
    /// When one of them is 0.
    #[must_use]
    pub fn new(data: u8, parity: u8) -> Self {
        let (data, parity) = (usize::from(data), usize::from(parity));
        let coder = ReedSolomonEncoder::new(data, parity, CELL_ALIGN_BYTES);
        let decoder = ReedSolomonDecoder::new(data, parity, CELL_ALIGN_BYTES);
        let message = "classes have at least one cell of each kind";
        Self {
            data,
            parity,
            encoder: coder.expect(message),
            decoder: decoder.expect(message),
            padded: Vec::new(),
        }
    }

    /// Cells of data.
    #[must_use]
    pub fn data(&self) -> usize {
        self.data
    }

    /// Cells of parity.
    #[must_use]
    pub fn parity(&self) -> usize {
        self.parity
    }

    /// Computes the parity of `value` into `parity`: its cells of `cell_bytes` one behind the other.
    ///
    /// # Panics
    /// When `cell_bytes` is no multiple of 64 or the cells do not hold the value, or `parity` has another length.
    pub fn encode(&mut self, value: &[u8], cell_bytes: usize, parity: &mut [u8]) {
        assert!(value.len() <= cell_bytes * self.data && parity.len() == cell_bytes * self.parity);
        if cell_bytes == 0 {
            return;
        }
        let message = "cells have the length that the coder was reset to";
        self.encoder.reset(self.data, self.parity, cell_bytes).expect(message);
        for cell in 0..self.data {
            let part =
                &value[(cell * cell_bytes).min(value.len())..((cell + 1) * cell_bytes).min(value.len())];
            if part.len() == cell_bytes {
                self.encoder.add_original_shard(part).expect(message);
                continue;
            }
            self.padded.clear();
            self.padded.extend_from_slice(part);
            self.padded.resize(cell_bytes, 0);
            self.encoder.add_original_shard(&self.padded).expect(message);
        }
        let encoded = self.encoder.encode().expect(message);
        for (cell, out) in encoded.recovery_iter().zip(parity.chunks_exact_mut(cell_bytes)) {
            out.copy_from_slice(cell);
        }
    }

    /// Computes the parity of cells that lie apart, each of `cell_bytes`: the first are those of data, and the others are filled.
    ///
    /// # Panics
    /// When `cell_bytes` is 0 or no multiple of 64, or there are not as many cells, or one has another length.
    pub fn encode_cells<C>(&mut self, cells: &mut [C], cell_bytes: usize)
    where
        C: std::ops::DerefMut<Target = [u8]>,
    {
        let message = "cells have the length that the coder was reset to";
        let (data, parity) = cells.split_at_mut(self.data);
        assert!(parity.len() == self.parity, "as many cells as the code has");
        self.encoder.reset(self.data, self.parity, cell_bytes).expect(message);
        for cell in data {
            self.encoder.add_original_shard(&cell[..]).expect(message);
        }
        let encoded = self.encoder.encode().expect(message);
        for (cell, out) in encoded.recovery_iter().zip(parity) {
            out.copy_from_slice(cell);
        }
    }

    /// Restores the cells of data that are not `present`. `cells` holds all cells of `cell_bytes` one behind the other, those of data
    /// first, padded with zeros; bit `i` of `present` says that cell `i` is there.
    ///
    /// # Errors
    /// When fewer cells are present than there are cells of data.
    ///
    /// # Panics
    /// When `cell_bytes` is no multiple of 64, or `cells` has another length than the cells together.
    pub fn reconstruct(
        &mut self,
        cells: &mut [u8],
        cell_bytes: usize,
        present: u32,
    ) -> Result<(), TooFewCells> {
        assert!(cells.len() == cell_bytes * (self.data + self.parity));
        let is_present = |cell: usize| present >> cell & 1 == 1;
        let count = (0..self.data + self.parity).filter(|&cell| is_present(cell)).count();
        if count < self.data {
            return Err(TooFewCells);
        }
        if cell_bytes == 0 || (0..self.data).all(is_present) {
            return Ok(());
        }
        let message = "cells have the length that the coder was reset to";
        self.decoder.reset(self.data, self.parity, cell_bytes).expect(message);
        for (cell, bytes) in cells.chunks_exact(cell_bytes).enumerate().filter(|(cell, _)| is_present(*cell))
        {
            let added = match cell.checked_sub(self.data) {
                None => self.decoder.add_original_shard(cell, bytes),
                Some(parity) => self.decoder.add_recovery_shard(parity, bytes),
            };
            added.expect(message);
        }
        let restored = self.decoder.decode().expect(message);
        for (cell, bytes) in restored.restored_original_iter() {
            cells[cell * cell_bytes..][..cell_bytes].copy_from_slice(bytes);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const CODES: &[(u8, u8)] = &[(2, 1), (2, 2), (4, 1), (4, 2), (8, 1), (8, 2), (16, 1), (16, 2)];

    fn value(bytes: usize) -> Vec<u8> {
        (0..bytes).map(|at| (at * 31 + at / 251 + 7) as u8).collect()
    }

    /// All cells of a value, padded.
    fn cells_of(coder: &mut Coder, value: &[u8]) -> (Vec<u8>, usize) {
        let cell = cell_bytes(value.len(), coder.data());
        let mut cells = value.to_vec();
        cells.resize(cell * (coder.data() + coder.parity()), 0);
        let split = cell * coder.data();
        coder.encode(value, cell, &mut cells[split..]);
        (cells, cell)
    }

    #[test]
    fn any_cells_that_are_enough_give_the_value_back() {
        for &(data, parity) in CODES {
            let mut coder = Coder::new(data, parity);
            for bytes in [1, 65, 4096] {
                let value = value(bytes);
                let (cells, cell) = cells_of(&mut coder, &value);
                let all = data + parity;
                // Every choice of as many lost cells as there is parity.
                for lost in (0u32..1 << all).filter(|lost| lost.count_ones() == u32::from(parity)) {
                    let mut left = cells.clone();
                    for at in (0..usize::from(all)).filter(|at| lost >> at & 1 == 1) {
                        left[at * cell..][..cell].fill(0xee);
                    }
                    coder.reconstruct(&mut left, cell, !lost).expect("enough cells");
                    assert!(left[..bytes] == value, "{data}+{parity}, {bytes} bytes, without {lost:b}");
                }
            }
        }
    }

    #[test]
    fn too_few_cells_are_an_error() {
        let mut coder = Coder::new(4, 2);
        let (mut cells, cell) = cells_of(&mut coder, &value(1000));
        assert_eq!(coder.reconstruct(&mut cells, cell, 0b111), Err(TooFewCells));
    }

    #[test]
    fn cells_cover_a_value_once() {
        for bytes in [0, 1, 64, 65, 4096, 10_000] {
            for data in [2, 4, 8, 16] {
                let ranges = (0..data).map(|cell| cell_range(bytes, data, cell));
                assert_eq!(
                    ranges.fold(0, |end, range| {
                        assert_eq!(range.start, end);
                        range.end
                    }),
                    bytes
                );
            }
        }
        assert_eq!((cell_bytes(0, 4), cell_bytes(1, 4), cell_bytes(4096, 4)), (0, 64, 1024));
    }

    proptest! {
        #[test]
        fn tags_come_back(value_bytes: u64, stamp: u64, cell in prop::collection::vec(any::<u8>(), 0..100)) {
            let tag = Tag { value_bytes, stamp };
            let stored = [cell.as_slice(), &tag.encode()].concat();
            prop_assert_eq!(Tag::split(&stored), Some((cell.as_slice(), tag)));
        }

        #[test]
        fn what_is_too_short_has_no_tag(stored in prop::collection::vec(any::<u8>(), 0..TAG_BYTES)) {
            prop_assert_eq!(Tag::split(&stored), None);
        }
    }
}
