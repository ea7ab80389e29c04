//! How the bytes of an array lie in cells of data.

use std::ops::Range;

/// Bytes of an array that lie on one shard before the next shard follows.
pub const EXTENT_CELL_BYTES: u64 = 1024;

/// Extents of arrays, dealt out to the shards of a group: byte `b` lies in stripe `b / (data * 1024)`, in the shard whose turn it is
/// there. A shard keeps its cells one behind the other, so an extent of the array is one extent of each shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Striping {
    data: u64,
}

impl Striping {
    /// Over `data` shards.
    #[must_use]
    pub fn new(data: usize) -> Self {
        Self { data: data as u64 }
    }

    /// Bytes of a stripe.
    #[inline]
    #[must_use]
    pub fn stripe_bytes(self) -> u64 {
        self.data * EXTENT_CELL_BYTES
    }

    /// The extent of whole stripes around an extent of the array.
    #[must_use]
    pub fn whole(self, extent: &Range<u64>) -> Range<u64> {
        let stripe = self.stripe_bytes();
        extent.start / stripe * stripe..extent.end.div_ceil(stripe) * stripe
    }

    /// How far shard `shard` goes when the array goes to `end`: where in it the bytes before `end` stop.
    #[inline]
    fn boundary(self, shard: u64, end: u64) -> u64 {
        let (stripe, within) = (end / self.stripe_bytes(), end % self.stripe_bytes());
        let in_cell = within.saturating_sub(shard * EXTENT_CELL_BYTES).min(EXTENT_CELL_BYTES);
        stripe * EXTENT_CELL_BYTES + in_cell
    }

    /// The extent of shard `shard` that holds its part of an extent of the array; empty where it has none.
    #[inline]
    #[must_use]
    pub fn local(self, shard: usize, extent: &Range<u64>) -> Range<u64> {
        let shard = shard as u64;
        self.boundary(shard, extent.start)..self.boundary(shard, extent.end)
    }

    /// Where in the array byte `local` of shard `shard` lies.
    #[inline]
    #[must_use]
    pub fn global(self, shard: usize, local: u64) -> u64 {
        local / EXTENT_CELL_BYTES * self.stripe_bytes()
            + shard as u64 * EXTENT_CELL_BYTES
            + local % EXTENT_CELL_BYTES
    }

    /// Where an array ends when its part on shard `shard` ends at `end_bytes`.
    #[must_use]
    pub fn end(self, shard: usize, end_bytes: u64) -> u64 {
        end_bytes.checked_sub(1).map_or(0, |last| self.global(shard, last) + 1)
    }

    /// Calls `piece` for each stretch of `local` of shard `shard` that lies together in the array: where it begins in the array, and
    /// where in `local` it lies, counted from its beginning.
    fn pieces(self, shard: usize, local: &Range<u64>, mut piece: impl FnMut(u64, Range<usize>)) {
        let mut at = local.start;
        while at < local.end {
            let end = local.end.min((at / EXTENT_CELL_BYTES + 1) * EXTENT_CELL_BYTES);
            piece(self.global(shard, at), (at - local.start) as usize..(end - local.start) as usize);
            at = end;
        }
    }

    /// Collects the bytes of `local` of shard `shard` out of `array`, which begins at byte `from` of the array.
    pub fn gather(self, shard: usize, local: &Range<u64>, array: &[u8], from: u64, out: &mut [u8]) {
        self.pieces(shard, local, |at, piece| {
            let at = (at - from) as usize;
            out[piece.clone()].copy_from_slice(&array[at..at + piece.len()]);
        });
    }

    /// Puts the bytes of `local` of shard `shard` to where they lie in `array`, which begins at byte `from` of the array.
    pub fn scatter(self, shard: usize, local: &Range<u64>, bytes: &[u8], array: &mut [u8], from: u64) {
        self.pieces(shard, local, |at, piece| {
            let at = (at - from) as usize;
            array[at..at + piece.len()].copy_from_slice(&bytes[piece]);
        });
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn an_extent_is_dealt_out_and_comes_together_again(
            data in prop::sample::select(vec![2usize, 4, 8, 16]), start in 0u64..100_000, length in 0usize..60_000,
        ) {
            let striping = Striping::new(data);
            let extent = start..start + length as u64;
            let array: Vec<u8> = (0..length).map(|at| (at * 31 + at / 257) as u8).collect();
            let mut again = vec![0; length];
            let mut total = 0;
            for shard in 0..data {
                let local = striping.local(shard, &extent);
                let mut bytes = vec![0; (local.end - local.start) as usize];
                total += bytes.len();
                striping.gather(shard, &local, &array, start, &mut bytes);
                striping.scatter(shard, &local, &bytes, &mut again, start);
                for at in local {
                    let global = striping.global(shard, at);
                    prop_assert!(extent.contains(&global));
                    prop_assert_eq!(striping.local(shard, &(global..global + 1)), at..at + 1);
                }
            }
            prop_assert_eq!(total, length);
            prop_assert!(again == array);
            let whole = striping.whole(&extent);
            prop_assert!(whole.start <= extent.start && whole.end >= extent.end);
            prop_assert_eq!(whole.end % striping.stripe_bytes() + whole.start % striping.stripe_bytes(), 0);
        }
    }
}
