//! Seeds and random numbers. Everything is reproducible: the same seed gives the same draws on every machine.

#[cfg(test)]
mod tests;

/// The increment of SplitMix64: 2^64 divided by the golden ratio, made odd.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// The output function of SplitMix64 (Steele, Lea and Flood 2014; Vigna's public-domain version): a bijection on 64
/// bits in which every input bit changes every output bit with a probability near one half.
#[inline]
pub fn mix64(value: u64) -> u64 {
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

/// The SplitMix64 generator, for filling state from one seed.
#[derive(Clone, Debug)]
pub struct SplitMix64(u64);

impl SplitMix64 {
    /// Starts at `seed`.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next 64 random bits.
    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(GOLDEN);
        mix64(self.0)
    }
}

/// The seed of one stream of draws, from the seed of the run and the labels of the stream, such as the purpose, the
/// phase and the worker. Lists of labels that differ in a value, in the order or in the length give unrelated seeds.
pub fn derive_seed(seed: u64, labels: &[u64]) -> u64 {
    let mut state = mix64(seed.wrapping_add(GOLDEN));
    for &label in labels {
        // The product keeps the two apart: both went through the same function, so equal ones would cancel.
        state = mix64(state.wrapping_mul(GOLDEN) ^ mix64(label.wrapping_add(GOLDEN)));
    }
    mix64(state ^ labels.len() as u64)
}

/// A label for [`derive_seed`] from a name (FNV-1a, 64 bits).
pub const fn label(name: &str) -> u64 {
    let bytes = name.as_bytes();
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    let mut index = 0;
    while index < bytes.len() {
        hash = (hash ^ bytes[index] as u64).wrapping_mul(0x0100_0000_01b3);
        index += 1;
    }
    hash
}

/// The xoshiro256++ 1.0 generator of Blackman and Vigna (2019): period 2^256 - 1, under 1 ns per draw.
#[derive(Clone, Debug)]
pub struct Random {
    state: [u64; 4],
}

impl Random {
    /// Starts from `seed`, which SplitMix64 spreads over the state as the authors recommend.
    pub fn new(seed: u64) -> Self {
        let mut source = SplitMix64::new(seed);
        Self { state: std::array::from_fn(|_| source.next_u64()) }
    }

    /// The next 64 random bits.
    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        let state = &mut self.state;
        let drawn = state[0].wrapping_add(state[3]).rotate_left(23).wrapping_add(state[0]);
        let shifted = state[1] << 17;
        state[2] ^= state[0];
        state[3] ^= state[1];
        state[1] ^= state[2];
        state[0] ^= state[3];
        state[2] ^= shifted;
        state[3] = state[3].rotate_left(45);
        drawn
    }

    /// A number from 0 to `bound - 1`, each equally likely (Lemire 2019, "Fast random integer generation in an
    /// interval").
    ///
    /// # Panics
    /// Where `bound` is 0.
    #[inline]
    pub fn below(&mut self, bound: u64) -> u64 {
        assert!(bound > 0, "a draw from an empty range");
        let mut product = u128::from(self.next_u64()) * u128::from(bound);
        if (product as u64) < bound {
            // Rare: without these rejections some results would stand for one more input than others.
            let excess = bound.wrapping_neg() % bound;
            while (product as u64) < excess {
                product = u128::from(self.next_u64()) * u128::from(bound);
            }
        }
        (product >> 64) as u64
    }

    /// A number in [0, 1), a multiple of 2^-53.
    #[inline]
    pub fn unit(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// A number in (0, 1], a multiple of 2^-53: safe for a logarithm.
    #[inline]
    pub fn unit_above_zero(&mut self) -> f64 {
        ((self.next_u64() >> 11) + 1) as f64 * (1.0 / (1u64 << 53) as f64)
    }
}
