//! Distributions in which some blocks are asked for more often than others.

use super::scatter::Scatter;
use crate::random::Random;

/// Zipf's law: the block of rank k is asked for in proportion to 1 / k^theta.
///
/// Draws by rejection-inversion (Hörmann and Derflinger 1996, "Rejection-inversion to generate variates from
/// monotone discrete distributions"), which needs no sum over the blocks and rejects few draws at any theta. Ranks
/// above 2^53 are as coarse as a double.
#[derive(Clone, Debug)]
pub struct Zipf {
    /// 1 - theta.
    power: f64,
    power_inverse: f64,
    theta: f64,
    blocks: u64,
    /// The area up to half a rank beyond the last.
    area_last: f64,
    /// Area that a draw of 1 adds to it.
    area_span: f64,
    /// A draw that lies this little below its rank is accepted without computing the density.
    squeeze: f64,
}

/// Nearer to a theta of 1 than this, the power 1 - theta loses too many digits, and the logarithm is the same.
const POWER_MIN: f64 = 1e-7;

impl Zipf {
    /// The law with exponent `theta`, from 0 on, over `blocks` ranks, at least 1.
    pub fn new(blocks: u64, theta: f64) -> Self {
        assert!(blocks > 0, "a region without blocks");
        let power = if (1.0 - theta).abs() < POWER_MIN { 0.0 } else { 1.0 - theta };
        let (area_last, area_span, squeeze) = (0.0, 0.0, 0.0);
        let mut zipf =
            Self { power, power_inverse: 1.0 / power, theta, blocks, area_last, area_span, squeeze };
        zipf.area_last = zipf.area(blocks as f64 + 0.5);
        // The density at rank 1 is 1.
        zipf.area_span = zipf.area(1.5) - zipf.area_of(1.0) - zipf.area_last;
        zipf.squeeze = 2.0 - zipf.inverse(zipf.area(2.5) - zipf.area_of(zipf.density(2.0)));
        zipf
    }

    /// The integral of x^-theta, up to a constant, in units of `area_of`: ln x, or x^(1 - theta), which falls for theta
    /// above 1. So scaled, the inverse takes one logarithm and one exponential.
    fn area(&self, x: f64) -> f64 {
        if self.power == 0.0 { x.ln() } else { (self.power * x.ln()).exp() }
    }

    /// The density or area `plain` in the units of `area`.
    fn area_of(&self, plain: f64) -> f64 {
        if self.power == 0.0 { plain } else { plain * self.power }
    }

    fn density(&self, x: f64) -> f64 {
        (-self.theta * x.ln()).exp()
    }

    #[inline]
    fn inverse(&self, area: f64) -> f64 {
        if self.power == 0.0 { area.exp() } else { (area.ln() * self.power_inverse).exp() }
    }

    /// Whether a draw at `area` belongs to `rank`: within the density at the upper end of the rank's part.
    fn accepts(&self, area: f64, rank: f64) -> bool {
        let bound = self.area(rank + 0.5) - self.area_of(self.density(rank));
        if self.power < 0.0 { area <= bound } else { area >= bound }
    }

    /// A rank from 1, the most frequent, to the number of blocks.
    #[inline]
    pub fn rank(&self, random: &mut Random) -> u64 {
        loop {
            let area = self.area_last + random.unit() * self.area_span;
            let x = self.inverse(area);
            let rank = ((x + 0.5) as u64).clamp(1, self.blocks);
            let nearest = rank as f64;
            if nearest - x <= self.squeeze || self.accepts(area, nearest) {
                return rank;
            }
        }
    }
}

/// Self-similar skew as fio's `pareto:h`: a share h of the blocks gets the share 1 - h of the accesses, and so on
/// within that share. With h = 0.2, 20 % of the blocks get 80 % of the accesses.
#[derive(Clone, Debug)]
pub struct Pareto {
    blocks: u64,
    power: f64,
}

impl Pareto {
    /// The skew `h`, between 0 and 1, over `blocks` ranks, at least 1.
    pub fn new(blocks: u64, h: f64) -> Self {
        assert!(blocks > 0, "a region without blocks");
        Self { blocks, power: h.ln() / (-h).ln_1p() }
    }

    /// A rank from 0, the most frequent, to the number of blocks less one.
    #[inline]
    pub fn rank(&self, random: &mut Random) -> u64 {
        let position = self.blocks as f64 * (random.unit_above_zero().ln() * self.power).exp();
        // The draw can be 1, which is the end of the region.
        (position as u64).min(self.blocks - 1)
    }
}

/// Ranks spread over the region, so that blocks that are asked for often are not neighbours.
#[derive(Clone, Debug)]
pub struct Scattered<D> {
    pub(super) ranks: D,
    pub(super) scatter: Scatter,
    pub(super) random: Random,
}

/// A bell curve around the middle of the region. Draws outside the region are drawn again.
#[derive(Clone, Debug)]
pub struct Normal {
    centre_blocks: f64,
    deviation_blocks: f64,
    blocks: u64,
    /// The second of the two values that the polar method gives.
    spare: Option<f64>,
    random: Random,
}

impl Normal {
    /// A standard deviation of `deviation_percent` of the region, above 0, over `blocks` blocks, at least 1.
    pub fn new(blocks: u64, deviation_percent: f64, seed: u64) -> Self {
        assert!(blocks > 0, "a region without blocks");
        let size = blocks as f64;
        let deviation_blocks = size * deviation_percent / 100.0;
        Self { centre_blocks: size / 2.0, deviation_blocks, blocks, spare: None, random: Random::new(seed) }
    }

    /// A standard normal value, by Marsaglia's polar method (1964).
    #[inline]
    fn standard(&mut self) -> f64 {
        if let Some(value) = self.spare.take() {
            return value;
        }
        loop {
            let (x, y) = (2.0 * self.random.unit() - 1.0, 2.0 * self.random.unit() - 1.0);
            let square = x * x + y * y;
            if square > 0.0 && square < 1.0 {
                let factor = (-2.0 * square.ln() / square).sqrt();
                self.spare = Some(y * factor);
                return x * factor;
            }
        }
    }

    /// The next block.
    #[inline]
    pub fn next_block(&mut self) -> u64 {
        loop {
            let position = self.centre_blocks + self.standard() * self.deviation_blocks;
            // The cast would turn a negative position into block 0.
            if position >= 0.0 && (position as u64) < self.blocks {
                return position as u64;
            }
        }
    }
}
