//! How a worker hands its intervals over: full buffers one way, empty ones back, without a lock or an allocation.

use crossbeam_queue::ArrayQueue;
use statistics::Histogram;

/// Buffers that one worker has: one in use, one on its way, one in reserve for a late collector.
const BUFFERS: usize = 3;

/// What one class did in one interval of one worker.
pub(crate) struct ClassTally {
    pub(crate) operations: u64,
    pub(crate) bytes: u64,
    pub(crate) errors: u64,
    pub(crate) latency: Histogram,
}

/// One interval of one worker.
pub(crate) struct Interval {
    /// When it began, from the start of the window, in nanoseconds.
    pub(crate) start_ns: u64,
    pub(crate) classes: Vec<ClassTally>,
}

impl Interval {
    fn new(classes: usize) -> Self {
        let class = || ClassTally { operations: 0, bytes: 0, errors: 0, latency: Histogram::new() };
        Self { start_ns: 0, classes: (0..classes).map(|_| class()).collect() }
    }

    pub(crate) fn clear(&mut self) {
        for class in &mut self.classes {
            (class.operations, class.bytes, class.errors) = (0, 0, 0);
            class.latency.clear();
        }
    }
}

/// The two queues between one worker and the collector.
pub(crate) struct Exchange {
    full: ArrayQueue<Box<Interval>>,
    empty: ArrayQueue<Box<Interval>>,
}

impl Exchange {
    /// An exchange, and the buffer that the worker begins with.
    pub(crate) fn new(classes: usize) -> (Self, Box<Interval>) {
        let exchange = Self { full: ArrayQueue::new(BUFFERS), empty: ArrayQueue::new(BUFFERS) };
        for _ in 1..BUFFERS {
            exchange.give_back(Box::new(Interval::new(classes)));
        }
        (exchange, Box::new(Interval::new(classes)))
    }

    /// Worker: swaps `current` for an empty buffer. When the collector is late, nothing happens and the interval grows: false.
    pub(crate) fn rotate(&self, current: &mut Box<Interval>) -> bool {
        let Some(empty) = self.empty.pop() else { return false };
        let full = std::mem::replace(current, empty);
        // There are as many places as buffers, so the push cannot fail.
        let pushed = self.full.push(full);
        debug_assert!(pushed.is_ok());
        true
    }

    /// Collector: the next full buffer.
    pub(crate) fn take(&self) -> Option<Box<Interval>> {
        self.full.pop()
    }

    /// Collector: returns a cleared buffer.
    pub(crate) fn give_back(&self, buffer: Box<Interval>) {
        let pushed = self.empty.push(buffer);
        debug_assert!(pushed.is_ok());
    }
}
