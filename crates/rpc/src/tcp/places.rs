//! Numbers that sessions are known by with the poller. A place is taken again by another session, and what was reported of the one before
//! in the same batch is none of it: each number tells the session too.

/// Streams of a session with the poller: even for messages, odd for bulk.
const STREAMS: u64 = 2;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Places {
    /// How often each place was taken.
    generations: Vec<u32>,
}

impl Places {
    /// The place is another session's from now on.
    pub(super) fn renew(&mut self, index: usize) {
        if self.generations.len() <= index {
            self.generations.resize(index + 1, 0);
        }
        self.generations[index] = self.generations[index].wrapping_add(1);
    }

    /// Number of the first stream of the session at a place; that of the second follows it.
    #[inline]
    pub(super) fn number(&self, index: usize) -> u64 {
        let generation = self.generations.get(index).copied().unwrap_or(0);
        (u64::from(generation) << 32) | (index as u64 * STREAMS)
    }

    /// Place and stream of a number; none where the session is no more that it was given to.
    #[inline]
    pub(super) fn of(&self, number: u64) -> Option<(usize, usize)> {
        let place = number & u64::from(u32::MAX);
        let (index, stream) = ((place / STREAMS) as usize, place % STREAMS);
        (self.number(index) + stream == number).then_some((index, stream as usize))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_reported_of_a_session_is_none_of_the_next_at_its_place() {
        let mut places = Places::default();
        for index in [0, 3] {
            places.renew(index);
        }
        let (first, other) = (places.number(3), places.number(0));
        assert_eq!((places.of(first), places.of(first + 1)), (Some((3, 0)), Some((3, 1))));
        places.renew(3);
        assert_eq!((places.of(first), places.of(first + 1)), (None, None));
        assert_eq!((places.of(other), places.of(places.number(3))), (Some((0, 0)), Some((3, 0))));
        // The number of the inbox is no session's.
        assert_eq!(places.of(u64::MAX), None);
    }
}
