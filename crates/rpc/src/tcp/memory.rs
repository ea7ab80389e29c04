//! Buffers that the engine's budget has granted.

use crate::share::Purse;
use crate::{Budget, Grant};

/// Smallest buffer, so that growing is rare.
const STEP_BYTES: u64 = 64 << 10;

/// The budget has no such memory left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Exhausted;

/// Bytes with the grants that they were allocated under. All of its length can be used.
#[derive(Default)]
pub(super) struct Buffer {
    bytes: Vec<u8>,
    grants: Vec<Grant>,
}

impl Buffer {
    /// Makes it at least so long; what is in it stays.
    pub(super) fn grow(&mut self, length: u64, purse: &Purse<'_>) -> Result<(), Exhausted> {
        let present = self.bytes.len() as u64;
        if length <= present {
            return Ok(());
        }
        let length = length.next_multiple_of(STEP_BYTES);
        self.grants.push(purse.take(length - present).ok_or(Exhausted)?);
        if present == 0 {
            // Zero pages of the kernel: nothing is touched before it is used.
            self.bytes = vec![0; length as usize];
        } else {
            // No more than is granted: a vector that grows by itself doubles.
            self.bytes.reserve_exact((length - present) as usize);
            self.bytes.resize(length as usize, 0);
        }
        Ok(())
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub(super) fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.bytes
    }
}

/// Buffers for bulk that no session uses now. The last one given back is the next one taken: it is still in the cache.
#[derive(Default)]
pub(super) struct Pool {
    free: Vec<Buffer>,
}

impl Pool {
    /// A buffer of at least this length.
    pub(super) fn take(&mut self, length: u64, purse: &Purse<'_>) -> Result<Buffer, Exhausted> {
        let fits = |buffer: &Buffer| buffer.bytes.len() as u64 >= length;
        let kept = match self.free.iter().rposition(fits) {
            Some(index) => Some(self.free.swap_remove(index)),
            None => self.free.pop(),
        };
        let mut buffer = kept.unwrap_or_default();
        purse.budget().unkeep(buffer.bytes.len() as u64);
        // What others have left may be more than this one may hold.
        if !purse.may_hold(buffer.bytes.len() as u64) {
            buffer = Buffer::default();
        }
        let grown = buffer.grow(length, purse).or_else(|Exhausted| {
            // What lies unused makes room.
            buffer = Buffer::default();
            self.clear(purse.budget());
            buffer.grow(length, purse)
        });
        grown.map(|()| buffer)
    }

    pub(super) fn put_back(&mut self, buffer: Buffer, budget: &Budget) {
        if budget.keep(buffer.bytes.len() as u64) {
            self.free.push(buffer);
        }
    }

    /// Gives all of them back to the budget.
    pub(super) fn clear(&mut self, budget: &Budget) {
        self.free.drain(..).for_each(|buffer| budget.unkeep(buffer.bytes.len() as u64));
    }
}

/// Bytes that come in, and the part of them that is not read yet.
#[derive(Default)]
pub(super) struct Input {
    buffer: Buffer,
    start: usize,
    end: usize,
}

impl Input {
    pub(super) fn grow(&mut self, length: u64, purse: &Purse<'_>) -> Result<(), Exhausted> {
        self.buffer.grow(length, purse)
    }

    pub(super) fn held_bytes(&self) -> u64 {
        self.buffer.bytes().len() as u64
    }

    /// Bytes that came and are not consumed.
    pub(super) fn unread(&self) -> &[u8] {
        &self.buffer.bytes()[self.start..self.end]
    }

    /// Where more can go: empty when the buffer is full.
    pub(super) fn room(&mut self) -> &mut [u8] {
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
        } else if self.end == self.buffer.bytes().len() && self.start > 0 {
            self.buffer.bytes_mut().copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
        }
        &mut self.buffer.bytes_mut()[self.end..]
    }

    pub(super) fn has_room(&self) -> bool {
        self.end - self.start < self.buffer.bytes().len()
    }

    pub(super) fn filled(&mut self, bytes: usize) {
        self.end += bytes;
    }

    pub(super) fn consume(&mut self, bytes: usize) {
        self.start += bytes;
    }
}

/// Bytes that go out, and the part of them that is not sent yet.
#[derive(Default)]
pub(super) struct Output {
    buffer: Buffer,
    start: usize,
    end: usize,
}

impl Output {
    pub(super) fn pending(&self) -> &[u8] {
        &self.buffer.bytes()[self.start..self.end]
    }

    pub(super) fn sent(&mut self, bytes: usize) {
        self.start += bytes;
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
        }
    }

    /// The last so many bytes that wait.
    pub(super) fn last_mut(&mut self, bytes: usize) -> &mut [u8] {
        let (start, end) = (self.start, self.end);
        &mut self.buffer.bytes_mut()[start.max(end - bytes)..end]
    }

    /// Makes room for so many more bytes.
    pub(super) fn reserve(&mut self, bytes: u64, purse: &Purse<'_>) -> Result<(), Exhausted> {
        if self.has_room(bytes) {
            return Ok(());
        }
        if self.start > 0 {
            self.buffer.bytes_mut().copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
        }
        self.buffer.grow(self.end as u64 + bytes, purse)
    }

    /// Whether so many bytes more fit behind those that wait.
    #[inline]
    pub(super) fn has_room(&self, bytes: u64) -> bool {
        bytes as usize <= self.buffer.bytes().len() - self.end
    }

    pub(super) fn held_bytes(&self) -> u64 {
        self.buffer.bytes().len() as u64
    }

    /// Room that was reserved, to be filled and then [`Output::add`]ed.
    pub(super) fn room(&mut self, bytes: usize) -> &mut [u8] {
        &mut self.buffer.bytes_mut()[self.end..][..bytes]
    }

    /// Adds so many bytes of the room that was filled.
    pub(super) fn add(&mut self, bytes: usize) {
        self.end += bytes;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_grows_beyond_the_budget() {
        let budget = Budget::new(256 << 10);
        let purse = Purse::of_nobody(&budget);
        let mut pool = Pool::default();
        let first = pool.take(100 << 10, &purse).expect("fits");
        assert_eq!((first.bytes().len(), budget.used_bytes()), (128 << 10, 128 << 10));
        assert!(pool.take(129 << 10, &purse).is_err());
        assert_eq!(budget.used_bytes(), 128 << 10);
        pool.put_back(first, &budget);
        let second = pool.take(200 << 10, &purse).expect("unused memory makes room");
        assert_eq!(budget.used_bytes(), 256 << 10);
        drop(second);
        assert_eq!(budget.used_bytes(), 0);
        assert!(pool.take(u64::MAX >> 20, &purse).is_err());
    }

    #[test]
    fn input_and_output_keep_the_order_of_bytes() {
        let budget = Budget::new(1 << 20);
        let purse = Purse::of_nobody(&budget);
        let mut input = Input::default();
        assert!(!input.has_room() && input.room().is_empty());
        input.grow(1, &purse).expect("fits");
        let mut output = Output::default();
        let (mut next_in, mut next_out) = (0_u8, 0_u8);
        for round in 0..5000_usize {
            let room = input.room();
            let count = (round % 700).min(room.len());
            for byte in &mut room[..count] {
                *byte = next_in;
                next_in = next_in.wrapping_add(1);
            }
            input.filled(count);
            let eaten = (round % 611).min(input.unread().len());
            output.reserve(eaten as u64, &purse).expect("fits");
            output.room(eaten).copy_from_slice(&input.unread()[..eaten]);
            output.add(eaten);
            input.consume(eaten);
            let sent = (round % 590).min(output.pending().len());
            for &byte in &output.pending()[..sent] {
                assert_eq!(byte, next_out);
                next_out = next_out.wrapping_add(1);
            }
            output.sent(sent);
        }
        assert!(budget.used_bytes() <= 512 << 10);
    }
}
