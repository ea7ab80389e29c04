//! Priorities that shares of the operations have, for the drivers that can tell the kernel.

use std::cell::Cell;

use workload::control::PriorityShare;
use workload::random::SplitMix64;

use crate::{MediaClass, MediaOperation};

/// One share: whom it means, up to which of 100 a draw is its own, and the priority.
struct Share {
    class: MediaClass,
    bytes: Option<u32>,
    below: u8,
    value: u16,
}

/// Draws the priority of each operation.
pub(crate) struct Priorities {
    shares: Vec<Share>,
    state: Cell<u64>,
}

impl Priorities {
    /// Of these shares; none where there are none.
    pub(crate) fn new(shares: &[PriorityShare]) -> Option<Box<Self>> {
        let mut built: Vec<Share> = Vec::new();
        for share in shares {
            let class = if share.class == "read" { MediaClass::Read } else { MediaClass::Write };
            let before = built.iter().rev().find(|known| known.class == class && known.bytes == share.bytes);
            let below = before.map_or(0, |known| known.below).saturating_add(share.percent);
            built.push(Share { class, bytes: share.bytes, below, value: share.priority.value() });
        }
        (!built.is_empty()).then(|| Box::new(Self { shares: built, state: Cell::new(1) }))
    }

    /// The priority of an operation; 0 is that of its thread.
    pub(crate) fn draw(&self, operation: &MediaOperation) -> u16 {
        let mut random = SplitMix64::new(self.state.get());
        let number = random.next_u64();
        self.state.set(number);
        let drawn = (number % 100) as u8;
        let is_meant = |share: &&Share| {
            share.class == operation.class && share.bytes.is_none_or(|bytes| bytes == operation.length)
        };
        self.shares.iter().filter(is_meant).find(|share| drawn < share.below).map_or(0, |share| share.value)
    }
}

#[cfg(test)]
mod tests {
    use workload::control::parse_priority_shares;

    use super::*;

    #[test]
    fn shares_have_their_part_of_the_operations_that_they_mean() {
        let shares = parse_priority_shares("read/4096:20@realtime:1,read/4096:30@idle").unwrap();
        let priorities = Priorities::new(&shares).unwrap();
        let read = |length| MediaOperation {
            offset: 0,
            length,
            slot: 0,
            target: 0,
            class: MediaClass::Read,
            is_extra: false,
        };
        let mut counts = [0u32; 3];
        for _ in 0..10_000 {
            match priorities.draw(&read(4096)) >> 13 {
                1 => counts[0] += 1,
                3 => counts[1] += 1,
                _ => counts[2] += 1,
            }
        }
        assert!(counts[0].abs_diff(2_000) < 200 && counts[1].abs_diff(3_000) < 250, "{counts:?}");
        assert!((0..100).all(|_| priorities.draw(&read(8192)) == 0));
        assert!(Priorities::new(&[]).is_none());
    }
}
