//! Which bytes the operations of a worker in flight touch.

use crate::MediaOperation;

/// A slot in which nothing is in flight: no part of any target.
const IDLE: (u16, u64, u64) = (u16::MAX, u64::MAX, 0);

/// For each slot: target, first byte and the byte behind the last.
pub(crate) struct InFlight(Box<[(u16, u64, u64)]>);

impl InFlight {
    pub(crate) fn new(depth: u32) -> Self {
        Self(vec![IDLE; depth as usize].into())
    }

    /// Whether an operation in flight touches a byte of this part.
    #[inline]
    pub(crate) fn touches(&self, target: u16, offset: u64, length: u32) -> bool {
        let end = offset + u64::from(length);
        self.0.iter().any(|&(other, begin, last)| other == target && offset < last && begin < end)
    }

    #[inline]
    pub(crate) fn begin(&mut self, operation: &MediaOperation) {
        let MediaOperation { slot, target, offset, length, .. } = *operation;
        self.0[slot as usize] = (target, offset, offset + u64::from(length));
    }

    #[inline]
    pub(crate) fn end(&mut self, slot: u32) {
        self.0[slot as usize] = IDLE;
    }
}
