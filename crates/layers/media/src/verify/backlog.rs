//! Blocks that are read back while a phase still writes.

use std::collections::VecDeque;

use crate::plan::VerifyBacklog;

/// A block that was written: target, offset and length.
pub(crate) type Block = (u16, u64, u32);

/// Blocks that were written and are to be read back before the phase goes on.
pub(super) struct Backlog {
    due: VecDeque<Block>,
    plan: VerifyBacklog,
    /// Blocks that the batch still reads.
    left: u64,
}

impl Backlog {
    /// Nothing was written yet. All room is made here: nothing is allocated while the phase is measured.
    pub(super) fn new(plan: VerifyBacklog, depth: u32) -> Self {
        Self { due: VecDeque::with_capacity(plan.blocks as usize + depth as usize), plan, left: 0 }
    }

    /// Notes a block that was written.
    #[inline]
    pub(super) fn push(&mut self, block: Block) {
        self.due.push_back(block);
    }

    /// The block to read next; none while it is the turn of the load.
    #[inline]
    pub(super) fn peek(&mut self) -> Option<Block> {
        if self.left == 0 && self.due.len() as u64 >= self.plan.blocks {
            self.left = self.plan.batch;
        }
        if self.left == 0 {
            return None;
        }
        let next = self.due.front().copied();
        if next.is_none() {
            self.left = 0;
        }
        next
    }

    /// The block to read next is being read, or need not be.
    #[inline]
    pub(super) fn pop(&mut self, is_read: bool) {
        self.due.pop_front();
        self.left -= u64::from(is_read);
    }
}
