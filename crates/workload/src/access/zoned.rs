//! Zones with given shares of the accesses.

use units::ParseError;

use super::pattern::{WHAT, Zone};
use crate::random::Random;

/// One entry for each percent of the accesses.
const DECK: usize = 100;

/// The region in zones, in order, each with its share of the accesses; within a zone every block is equally likely.
///
/// The zones come from a deck of 100 cards that is dealt out and shuffled anew, so that every 100 accesses hold the
/// shares exactly, in a random order.
#[derive(Clone, Debug)]
pub struct Zoned {
    /// First block and number of blocks of each zone.
    zones: Box<[(u64, u64)]>,
    deck: Box<[u8; DECK]>,
    dealt: usize,
    random: Random,
}

impl Zoned {
    /// Lays the `zones` over `blocks` blocks. The percentages must have been checked to add up.
    ///
    /// # Errors
    /// Refuses a zone that is asked for but is too small to hold a block.
    pub fn new(zones: &[Zone], blocks: u64, seed: u64) -> Result<Self, ParseError> {
        let edge = |percent: u64| (u128::from(blocks) * u128::from(percent) / 100) as u64;
        let mut laid = Vec::with_capacity(zones.len());
        let mut deck = Vec::with_capacity(DECK);
        let mut below = 0;
        for (index, zone) in zones.iter().enumerate() {
            let above = below + u64::from(zone.size_percent);
            let (first, end) = (edge(below), edge(above));
            if zone.access_percent > 0 && first == end {
                let given = format!("{}/{}", zone.access_percent, zone.size_percent);
                let accepted = format!("zones of at least one block (the region has {blocks})");
                return Err(ParseError::new(WHAT, given, accepted));
            }
            laid.push((first, end - first));
            deck.extend(std::iter::repeat_n(index as u8, usize::from(zone.access_percent)));
            below = above;
        }
        let deck = deck.into_boxed_slice().try_into().expect("the access percentages add up to 100");
        Ok(Self { zones: laid.into(), deck, dealt: 0, random: Random::new(seed) })
    }

    /// The next block.
    #[inline]
    pub fn next_block(&mut self) -> u64 {
        let card = self.dealt + self.random.below((DECK - self.dealt) as u64) as usize;
        self.deck.swap(self.dealt, card);
        let (first, length) = self.zones[usize::from(self.deck[self.dealt])];
        self.dealt = if self.dealt + 1 == DECK { 0 } else { self.dealt + 1 };
        first + self.random.below(length)
    }
}
