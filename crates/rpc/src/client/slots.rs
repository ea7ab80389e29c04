//! The requests in flight, by slot, and those that are done.

use std::collections::VecDeque;

use super::Done;
use super::memory::Window;
use crate::wire::ServerTimes;

/// No connection: the slot is free, or its request failed before it was sent.
const NONE: u32 = u32::MAX;

/// Conditions that a reply must meet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Expected {
    pub(super) opcode: u16,
    pub(super) inline_bytes_max: u64,
    pub(super) bulk_bytes_max: u64,
    /// Where its payload goes.
    pub(super) window: Window,
}

impl Expected {
    /// A reply without payload.
    pub(super) const NOTHING: Self =
        Self { opcode: 0, inline_bytes_max: 0, bulk_bytes_max: 0, window: Window::NONE };
}

/// A request that is done: its pipeline has room again.
#[derive(Clone, Copy, Debug)]
pub(super) struct Freed {
    pub(super) connection: u32,
    pub(super) had_bulk: bool,
}

/// One request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slot {
    connection: u32,
    /// Number of the request: a reply to an earlier one of this slot is none of it.
    sequence: u64,
    start_ns: u64,
    /// The reply's message has come whole.
    has_reply: bool,
    /// Reasons to keep the slot: parts to be sent, and sends that the kernel still refers to.
    held: u32,
    /// 0 or a negated errno, as the reply says.
    status: i32,
    inline_bytes: u64,
    /// Opcode of the request, and limits of the reply.
    expected: Expected,
    /// Bulk that the reply's message tells of.
    bulk_told_bytes: u64,
    /// Bulk that began to come, and whether it is whole.
    bulk_bytes: Option<u64>,
    is_bulk_whole: bool,
    /// It has failed by this errno, and is done once the kernel has let go of its memory; 0: it has not.
    failed_by: i32,
}

const FREE: Slot = Slot {
    connection: NONE,
    sequence: 0,
    start_ns: 0,
    has_reply: false,
    held: 0,
    status: 0,
    inline_bytes: 0,
    expected: Expected::NOTHING,
    bulk_told_bytes: 0,
    bulk_bytes: None,
    is_bulk_whole: false,
    failed_by: 0,
};

/// See the module.
pub(super) struct Slots {
    slots: Vec<Slot>,
    /// Times that the server said of the last reply to each, where it was asked.
    server_times: Vec<ServerTimes>,
    ready: VecDeque<Done>,
    /// Connections whose pipelines have room again.
    pub(super) freed: Vec<Freed>,
}

impl Slots {
    pub(super) fn new(count: u32) -> Self {
        Self {
            slots: vec![FREE; count as usize],
            server_times: vec![ServerTimes::default(); count as usize],
            ready: VecDeque::with_capacity(count as usize),
            freed: Vec::with_capacity(count as usize),
        }
    }

    pub(super) fn count(&self) -> usize {
        self.slots.len()
    }

    #[inline]
    pub(super) fn start(
        &mut self,
        slot: u32,
        connection: u32,
        sequence: u64,
        now_ns: u64,
        expected: Expected,
    ) {
        self.slots[slot as usize] = Slot { connection, sequence, start_ns: now_ns, expected, ..FREE };
    }

    /// Conditions for the reply of the request in this slot; none when no such request is in flight.
    #[inline]
    pub(super) fn expected_by(&self, slot: u32, connection: u32, sequence: u64) -> Option<&Expected> {
        self.is_of(slot, connection, sequence).then(|| &self.slots[slot as usize].expected)
    }

    /// The same for bulk, which says no number.
    #[inline]
    pub(super) fn expected_on(&self, slot: u32, connection: u32) -> Option<&Expected> {
        self.is_on(slot, connection).then(|| &self.slots[slot as usize].expected)
    }

    /// Where the payload of the reply goes.
    #[inline]
    pub(super) fn window(&self, slot: u32) -> Window {
        self.slots[slot as usize].expected.window
    }

    /// Whether the request in flight in this slot on this connection has that number.
    #[inline]
    fn is_of(&self, slot: u32, connection: u32, sequence: u64) -> bool {
        self.is_on(slot, connection) && self.slots[slot as usize].sequence == sequence
    }

    /// Whether a request is in flight in this slot on this connection.
    #[inline]
    fn is_on(&self, slot: u32, connection: u32) -> bool {
        self.slots.get(slot as usize).is_some_and(|entry| entry.connection == connection)
    }

    /// Times that the server said of the last request of a slot.
    #[inline]
    pub(super) fn server_times(&self, slot: u32) -> ServerTimes {
        self.server_times.get(slot as usize).copied().unwrap_or_default()
    }

    /// Notes what the server says about the request of a slot.
    #[inline]
    pub(super) fn note_times(&mut self, slot: u32, times: ServerTimes) {
        self.server_times[slot as usize] = times;
    }

    #[inline]
    pub(super) fn hold(&mut self, slot: u32) {
        self.slots[slot as usize].held += 1;
    }

    #[inline]
    pub(super) fn release(&mut self, slot: u32) {
        let entry = &mut self.slots[slot as usize];
        // What a request that is done held is none of the next in its slot.
        let Some(held) = entry.held.checked_sub(1) else { return };
        entry.held = held;
        match entry.failed_by {
            0 => self.settle(slot),
            errno if held == 0 => self.finish(slot, errno),
            _ => {}
        }
    }

    #[cfg(test)]
    pub(super) fn held(&self, slot: u32) -> u32 {
        self.slots[slot as usize].held
    }

    /// The reply's message has come. False when that cannot be.
    #[inline]
    pub(super) fn reply(&mut self, slot: u32, status: i32, inline_bytes: u64, bulk_bytes: u64) -> bool {
        let entry = &mut self.slots[slot as usize];
        if entry.has_reply || entry.bulk_bytes.is_some_and(|bytes| bytes != bulk_bytes) {
            return false;
        }
        entry.has_reply = true;
        entry.status = status;
        entry.inline_bytes = inline_bytes;
        entry.bulk_told_bytes = bulk_bytes;
        self.settle(slot);
        true
    }

    /// A bulk transfer begins. False when that cannot be.
    pub(super) fn bulk_begins(&mut self, slot: u32, bytes: u64) -> bool {
        let entry = &mut self.slots[slot as usize];
        if entry.bulk_bytes.is_some() || (entry.has_reply && entry.bulk_told_bytes != bytes) {
            return false;
        }
        entry.bulk_bytes = Some(bytes);
        true
    }

    pub(super) fn bulk_ends(&mut self, slot: u32) {
        self.slots[slot as usize].is_bulk_whole = true;
        self.settle(slot);
    }

    /// Completes a request that has all it needs.
    #[inline]
    fn settle(&mut self, slot: u32) {
        let entry = &self.slots[slot as usize];
        if entry.connection == NONE || !entry.has_reply || entry.held > 0 {
            return;
        }
        if entry.bulk_told_bytes > 0 && !entry.is_bulk_whole {
            return;
        }
        let done = Done {
            slot,
            status: entry.status,
            inline_bytes: entry.inline_bytes,
            bulk_bytes: entry.bulk_told_bytes,
        };
        self.freed.push(Freed { connection: entry.connection, had_bulk: entry.expected.bulk_bytes_max > 0 });
        self.slots[slot as usize].connection = NONE;
        self.ready.push_back(done);
    }

    /// Completes a request that has failed on this side.
    pub(super) fn finish(&mut self, slot: u32, errno: i32) {
        let entry = &mut self.slots[slot as usize];
        (entry.connection, entry.held, entry.failed_by) = (NONE, 0, 0);
        self.server_times[slot as usize] = ServerTimes::default();
        self.ready.push_back(Done { slot, status: -errno, inline_bytes: 0, bulk_bytes: 0 });
    }

    /// Completes all requests of a connection that is no more. Those whose slots are among `referred`, as often as the kernel refers to their
    /// memory, are done when it has let go of it.
    pub(super) fn fail(&mut self, connection: u32, errno: i32, referred: &[u32]) {
        for slot in 0..self.slots.len() as u32 {
            let entry = &mut self.slots[slot as usize];
            if entry.connection != connection {
                continue;
            }
            let held = referred.iter().filter(|own| **own == slot).count() as u32;
            if held == 0 {
                self.finish(slot, errno);
            } else {
                (entry.connection, entry.held, entry.failed_by) = (NONE, held, errno);
            }
        }
    }

    /// Completes those of them that still wait: the socket that referred to their memory is closed.
    pub(super) fn give_up(&mut self, referred: &[u32]) {
        for &slot in referred {
            let errno = self.slots[slot as usize].failed_by;
            if errno != 0 {
                self.finish(slot, errno);
            }
        }
    }

    /// The connection of a request that began at or before `limit_ns`, or else when the oldest one began.
    pub(super) fn oldest(&self, limit_ns: u64) -> Result<u32, Option<u64>> {
        let mut oldest = None;
        for entry in self.slots.iter().filter(|entry| entry.connection != NONE) {
            if entry.start_ns <= limit_ns {
                return Ok(entry.connection);
            }
            oldest = Some(oldest.unwrap_or(u64::MAX).min(entry.start_ns));
        }
        Err(oldest)
    }

    /// The next request that is done.
    #[inline]
    pub(super) fn pop(&mut self) -> Option<Done> {
        self.ready.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_that_the_kernel_refers_to_is_not_handed_back() {
        let mut slots = Slots::new(3);
        for slot in 0..3 {
            slots.start(slot, 7, 1, 0, Expected::NOTHING);
            slots.hold(slot);
        }
        slots.hold(1);
        slots.fail(7, libc::ETIMEDOUT, &[1, 2, 1]);
        let done = |slots: &mut Slots| slots.pop().map(|done| (done.slot, done.status));
        assert_eq!((done(&mut slots), done(&mut slots)), (Some((0, -libc::ETIMEDOUT)), None));
        // None of them is overdue any more.
        assert_eq!(slots.oldest(u64::MAX), Err(None));
        slots.release(1);
        assert_eq!(done(&mut slots), None);
        slots.release(1);
        assert_eq!(done(&mut slots), Some((1, -libc::ETIMEDOUT)));
        slots.give_up(&[1, 2]);
        assert_eq!((done(&mut slots), done(&mut slots)), (Some((2, -libc::ETIMEDOUT)), None));
    }

    #[test]
    fn what_was_held_is_released_once() {
        let mut slots = Slots::new(1);
        slots.start(0, 7, 1, 0, Expected::NOTHING);
        slots.hold(0);
        slots.fail(7, libc::ECONNRESET, &[]);
        // Late news of the request before, also when the next one is under way.
        slots.release(0);
        slots.start(0, 8, 2, 0, Expected::NOTHING);
        slots.release(0);
        assert_eq!(slots.held(0), 0);
        assert!(slots.reply(0, 0, 0, 0));
        assert_eq!(slots.pop().map(|done| done.status), Some(-libc::ECONNRESET));
        assert_eq!(slots.pop().map(|done| done.status), Some(0));
    }
}
