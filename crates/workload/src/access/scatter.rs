//! A fixed place in the region for each rank.

use crate::random::SplitMix64;

/// Rounds of the map: places need to be apart, not unforeseeable.
const ROUNDS: usize = 2;

/// A multiplier with well spread bits (Steele and Vigna 2022, "Computationally easy, spectrally good multipliers").
const MULTIPLIER: u64 = 0xd134_2543_de82_ef95;

/// A fixed one-to-one map of `0..blocks` onto itself that puts neighbours far apart.
///
/// A value is a row and a column of a grid that is hardly larger than the region. Each round moves the row by a
/// function of the column and the column by a function of the row, as a generalised Feistel network does (Black and
/// Rogaway 2002), so that it can be undone. Unlike a map over a power of two, nearly every result is a block, and no
/// branch has to be guessed.
#[derive(Clone, Debug)]
pub struct Scatter {
    blocks: u64,
    rows: u64,
    column_bits: u32,
    column_mask: u64,
    keys: [(u64, u64); ROUNDS],
}

impl Scatter {
    /// A map over `blocks` blocks, at least 1, chosen by `seed`.
    pub fn new(blocks: u64, seed: u64) -> Self {
        assert!(blocks > 0, "a region without blocks");
        let last = blocks - 1;
        let column_bits = (u64::BITS - last.leading_zeros()) / 2;
        let mut source = SplitMix64::new(seed);
        let keys = std::array::from_fn(|_| (source.next_u64(), source.next_u64()));
        let (rows, column_mask) = ((last >> column_bits) + 1, (1 << column_bits) - 1);
        Self { blocks, rows, column_bits, column_mask, keys }
    }

    /// Where `value`, which is below the number of blocks, goes.
    #[inline]
    pub fn map(&self, value: u64) -> u64 {
        debug_assert!(value < self.blocks);
        // Cycle walking: what falls outside is mapped again until it falls inside.
        let mut value = self.step(value);
        while value >= self.blocks {
            value = self.step(value);
        }
        value
    }

    #[inline]
    fn step(&self, value: u64) -> u64 {
        let (mut row, mut column) = (value >> self.column_bits, value & self.column_mask);
        for (row_key, column_key) in self.keys {
            // The upper half of the product scales to the number of rows.
            let spread = (column ^ row_key).wrapping_mul(MULTIPLIER);
            row += ((u128::from(spread) * u128::from(self.rows)) >> 64) as u64;
            row -= if row >= self.rows { self.rows } else { 0 };
            column ^= ((row ^ column_key).wrapping_mul(MULTIPLIER) >> 32) & self.column_mask;
        }
        (row << self.column_bits) | column
    }
}
