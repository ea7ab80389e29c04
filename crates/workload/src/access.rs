//! Which block of a region an operation touches.
//!
//! An [`Access`] is made from a [`Pattern`], a number of blocks and a seed. It stores nothing that grows with the
//! region and allocates nothing after it was made.

mod pattern;
mod permutation;
mod scatter;
mod skew;
mod zoned;

#[cfg(test)]
mod tests;

pub use pattern::{Pattern, Zone};
pub use permutation::Permutation;
pub use scatter::Scatter;
pub use skew::{Normal, Pareto, Scattered, Zipf};
pub use zoned::Zoned;

use crate::random::{Random, derive_seed};
use units::ParseError;

/// One access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// The block, from 0.
    pub block: u64,
    /// How often the whole region's number of blocks has been drawn before.
    pub pass: u64,
    /// The number of draws in this pass before this one.
    pub index: u64,
}

/// The blocks of a region, one after the other, without end.
#[derive(Clone, Debug)]
pub struct Access {
    kind: Kind,
    blocks: u64,
    pass: u64,
    index: u64,
}

#[derive(Clone, Debug)]
enum Kind {
    Sequential,
    Backward,
    Strided { stride_blocks: u64, next: u64, start: u64 },
    Permutation(Box<Permutation>),
    Uniform(Random),
    Zipf(Box<Scattered<Zipf>>),
    Pareto(Box<Scattered<Pareto>>),
    Normal(Box<Normal>),
    Zoned(Zoned),
    Sequence { order: Vec<u64>, moves_on: bool, at: usize, base: u64 },
}

impl Access {
    /// Visits a region of `blocks` blocks by `pattern`; `seed` chooses among the orders of a random one.
    ///
    /// # Errors
    /// Refuses a region without blocks, and parameters of the pattern that are out of range or do not fit the region.
    pub fn new(pattern: &Pattern, blocks: u64, seed: u64) -> Result<Self, ParseError> {
        if blocks == 0 {
            return Err(ParseError::new(
                "a region size",
                "0 blocks",
                "a region that holds at least one block",
            ));
        }
        pattern.check()?;
        // A pattern's draws and the spreading of its ranks must not depend on each other.
        let (draws, spread) = (derive_seed(seed, &[1]), derive_seed(seed, &[2]));
        let (random, scatter) = (|| Random::new(draws), || Scatter::new(blocks, spread));
        let kind = match pattern {
            Pattern::Sequential => Kind::Sequential,
            Pattern::Backward => Kind::Backward,
            Pattern::Strided { stride_blocks } if *stride_blocks > blocks => {
                let accepted = format!("a stride of at most the region, {blocks} blocks");
                return Err(ParseError::new(pattern::WHAT, pattern, accepted));
            }
            &Pattern::Strided { stride_blocks } => Kind::Strided { stride_blocks, next: 0, start: 0 },
            Pattern::Permutation | Pattern::Fitted => {
                Kind::Permutation(Box::new(Permutation::new(blocks, draws)))
            }
            Pattern::Uniform => Kind::Uniform(random()),
            Pattern::Zipf { theta } => {
                let ranks = Zipf::new(blocks, *theta);
                Kind::Zipf(Box::new(Scattered { ranks, scatter: scatter(), random: random() }))
            }
            Pattern::Pareto { h } => {
                let ranks = Pareto::new(blocks, *h);
                Kind::Pareto(Box::new(Scattered { ranks, scatter: scatter(), random: random() }))
            }
            Pattern::Normal { deviation_percent } => {
                Kind::Normal(Box::new(Normal::new(blocks, *deviation_percent, draws)))
            }
            Pattern::Zoned { zones } => Kind::Zoned(Zoned::new(zones, blocks, draws)?),
            Pattern::Sequence { blocks: order, .. } if order.iter().any(|&block| block >= blocks) => {
                let accepted = format!("numbers below {blocks}, the blocks of the region");
                return Err(ParseError::new(pattern::WHAT, pattern, accepted));
            }
            Pattern::Sequence { blocks: order, moves_on } => {
                Kind::Sequence { order: order.clone(), moves_on: *moves_on, at: 0, base: 0 }
            }
        };
        Ok(Self { kind, blocks, pass: 0, index: 0 })
    }

    /// Whether one pass visits every block exactly once.
    pub fn is_full_coverage(&self) -> bool {
        use Kind::{Backward, Permutation, Sequential, Strided};
        matches!(self.kind, Sequential | Backward | Strided { .. } | Permutation(_))
    }

    /// The number of blocks in the region.
    pub fn blocks(&self) -> u64 {
        self.blocks
    }

    /// The next access.
    #[inline]
    #[expect(clippy::should_implement_trait, reason = "an endless sequence needs no Option around each step")]
    pub fn next(&mut self) -> Step {
        let (pass, index, blocks) = (self.pass, self.index, self.blocks);
        let block = match &mut self.kind {
            Kind::Sequential => index,
            Kind::Backward => blocks - 1 - index,
            Kind::Strided { stride_blocks, next, start } => {
                let block = *next;
                // Compared by distance, since the sum may not fit.
                if blocks - block > *stride_blocks {
                    *next = block + *stride_blocks;
                } else {
                    *start = if *start + 1 == *stride_blocks { 0 } else { *start + 1 };
                    *next = *start;
                }
                block
            }
            Kind::Permutation(order) => order.next_block(),
            Kind::Uniform(random) => random.below(blocks),
            Kind::Zipf(zipf) => zipf.scatter.map(zipf.ranks.rank(&mut zipf.random) - 1),
            Kind::Pareto(pareto) => pareto.scatter.map(pareto.ranks.rank(&mut pareto.random)),
            Kind::Normal(normal) => normal.next_block(),
            Kind::Zoned(zoned) => zoned.next_block(),
            Kind::Sequence { order, moves_on, at, base } => {
                let block = (*base + order[*at]) % blocks;
                *at += 1;
                if *at == order.len() {
                    *at = 0;
                    *base = if *moves_on { (*base + order.len() as u64) % blocks } else { 0 };
                }
                block
            }
        };
        self.index += 1;
        if self.index == blocks {
            self.index = 0;
            self.pass += 1;
        }
        Step { block, pass, index }
    }
}
