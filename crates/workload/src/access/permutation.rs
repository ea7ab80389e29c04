//! Orders that visit every block once without storing what was visited.

use crate::random::{Random, SplitMix64, derive_seed};

/// Rounds of multiply, add and shift: with one fewer, about one order in a hundred has related neighbours.
const ROUNDS: usize = 5;

/// Blocks computed at a time: their computations overlap in the processor, which a draw at a time prevents.
const BATCH: usize = 32;

/// A keyed one-to-one map of `0..2^bits` onto itself: each round is an odd multiplication and an addition modulo
/// 2^bits, then a shift of the upper half onto the lower half, each of which can be undone.
#[derive(Clone, Debug)]
struct Mixer {
    mask: u64,
    shift: u32,
    keys: [(u64, u64); ROUNDS],
}

impl Mixer {
    /// A map over the smallest power of two that is at least `blocks`.
    fn new(blocks: u64, seed: u64) -> Self {
        let bits = u64::BITS - (blocks - 1).leading_zeros();
        let mask = if bits == 0 { 0 } else { u64::MAX >> (u64::BITS - bits) };
        let mut source = SplitMix64::new(seed);
        let keys = std::array::from_fn(|_| (source.next_u64() | 1, source.next_u64()));
        Self { mask, shift: bits.div_ceil(2).max(1), keys }
    }

    #[inline]
    fn apply(&self, mut value: u64) -> u64 {
        for (multiplier, addend) in self.keys {
            value = value.wrapping_mul(multiplier).wrapping_add(addend) & self.mask;
            value ^= value >> self.shift;
        }
        value
    }
}

/// Every block of a region exactly once per pass, in a random order that differs from pass to pass. Uses the same
/// small memory whatever the size of the region.
#[derive(Clone, Debug)]
pub struct Permutation {
    mixer: Mixer,
    blocks: u64,
    seed: u64,
    pass: u64,
    /// The next value to map.
    counter: u64,
    /// Whether all values of the pass were mapped.
    exhausted: bool,
    head: usize,
    filled: usize,
    ready: [u64; BATCH],
}

impl Permutation {
    /// An order over `blocks` blocks, at least 1, chosen by `seed`.
    pub fn new(blocks: u64, seed: u64) -> Self {
        assert!(blocks > 0, "a region without blocks");
        let mixer = Mixer::new(blocks, derive_seed(seed, &[0]));
        let ready = [0; BATCH];
        Self { mixer, blocks, seed, pass: 0, counter: 0, exhausted: false, head: 0, filled: 0, ready }
    }

    /// The next block.
    #[inline]
    pub fn next_block(&mut self) -> u64 {
        if self.head == self.filled {
            self.refill();
        }
        let block = self.ready[self.head];
        self.head += 1;
        block
    }

    /// Maps the next values and keeps those that are blocks of the region, without a branch per value.
    #[inline(never)]
    fn refill(&mut self) {
        self.head = 0;
        self.filled = 0;
        if self.blocks <= BATCH as u64 {
            return self.shuffle();
        }
        while self.filled == 0 {
            if self.exhausted {
                self.pass = self.pass.wrapping_add(1);
                self.mixer = Mixer::new(self.blocks, derive_seed(self.seed, &[self.pass]));
                self.counter = 0;
                self.exhausted = false;
            }
            // Saturates only at 2^64 values left, where one fewer changes nothing.
            let left = (self.mixer.mask - self.counter).saturating_add(1);
            let batch = left.min(BATCH as u64);
            for offset in 0..batch {
                let block = self.mixer.apply(self.counter + offset);
                self.ready[self.filled] = block;
                self.filled += usize::from(block < self.blocks);
            }
            self.counter = self.counter.wrapping_add(batch);
            self.exhausted = batch == left;
        }
    }

    /// A whole pass of a region that fits one batch, by Fisher and Yates: the mixer has too few bits there to make
    /// every order equally likely.
    fn shuffle(&mut self) {
        let mut random = Random::new(derive_seed(self.seed, &[self.pass]));
        self.pass = self.pass.wrapping_add(1);
        self.filled = self.blocks as usize;
        for place in 0..self.filled {
            let other = random.below(place as u64 + 1) as usize;
            self.ready[place] = self.ready[other];
            self.ready[other] = place as u64;
        }
    }
}
