//! How a worker hands its intervals over: full buffers one way, empty ones back, without a lock or an allocation.

use crossbeam_queue::ArrayQueue;
use statistics::Histogram;

/// Buffers that one worker has: one in use, one on its way, one in reserve for a late collector.
const BUFFERS: usize = 3;

/// Latencies that an interval holds of operations that began before it; of more, the rest counts in the interval itself.
const LATE_MAX: usize = 4096;
/// Times in flight that an interval holds of before and after it; of more, the rest counts in the interval itself.
const SPANS_MAX: usize = 16;

/// The latency of an operation that began in an earlier interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Late {
    /// Place of its class.
    pub(crate) class: u32,
    /// When it began or was due, from the start of the window, in nanoseconds.
    pub(crate) start_ns: u64,
    pub(crate) latency_ns: u64,
}

/// A time in which some operations were in flight, from the start of the window, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct InFlightSpan {
    pub(crate) from_ns: u64,
    pub(crate) until_ns: u64,
    pub(crate) operations: u64,
}

/// Counters of one class in one interval of one worker.
pub(crate) struct ClassTally {
    pub(crate) operations: u64,
    pub(crate) bytes: u64,
    pub(crate) errors: u64,
    /// Latencies of those that began in it.
    pub(crate) latency: Histogram,
}

/// One interval of one worker.
pub(crate) struct Interval {
    /// When it began, from the start of the window, in nanoseconds.
    pub(crate) start_ns: u64,
    pub(crate) classes: Vec<ClassTally>,
    /// Latencies of those that completed in it and began earlier.
    pub(crate) late: Vec<Late>,
    /// Operations in flight times how long, in nanoseconds. While a closed loop fills it: without the latencies recorded here, and
    /// wrapping, so that a part of a latency can be taken off before the latency is added.
    pub(crate) in_flight_ns: u64,
    /// The same over the borders of the interval.
    pub(crate) spans: Vec<InFlightSpan>,
}

impl Interval {
    fn new(classes: usize) -> Self {
        let class = || ClassTally { operations: 0, bytes: 0, errors: 0, latency: Histogram::new() };
        Self {
            start_ns: 0,
            classes: (0..classes).map(|_| class()).collect(),
            late: Vec::with_capacity(LATE_MAX),
            in_flight_ns: 0,
            spans: Vec::with_capacity(SPANS_MAX),
        }
    }

    pub(crate) fn clear(&mut self) {
        for class in &mut self.classes {
            (class.operations, class.bytes, class.errors) = (0, 0, 0);
            class.latency.clear();
        }
        self.late.clear();
        self.in_flight_ns = 0;
        self.spans.clear();
    }

    /// Whether it holds nothing.
    pub(crate) fn is_empty(&self) -> bool {
        let is_empty = |class: &ClassTally| class.operations + class.errors == 0 && class.latency.is_empty();
        self.late.is_empty()
            && self.spans.is_empty()
            && self.in_flight_ns == 0
            && self.classes.iter().all(is_empty)
    }

    /// Adds a latency of an operation that began earlier; whether it counts in this interval because there was no room.
    pub(crate) fn add_late(&mut self, late: Late) -> bool {
        if self.late.len() < LATE_MAX {
            self.late.push(late);
            return false;
        }
        self.classes[late.class as usize].latency.record(late.latency_ns);
        true
    }

    /// The latencies of what began in it, in nanoseconds.
    pub(crate) fn latencies_ns(&self) -> u64 {
        self.classes.iter().map(|class| class.latency.sum_ns() as u64).fold(0, u64::wrapping_add)
    }

    /// Adds a time in which `operations` were in flight.
    pub(crate) fn add_span(&mut self, from_ns: u64, until_ns: u64, operations: u64) {
        if self.spans.len() < SPANS_MAX {
            self.spans.push(InFlightSpan { from_ns, until_ns, operations });
        } else {
            self.in_flight_ns += (until_ns - from_ns) * operations;
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

    /// Worker: an empty buffer; none when the collector is late: the interval in use grows then.
    pub(crate) fn empty(&self) -> Option<Box<Interval>> {
        self.empty.pop()
    }

    /// Worker: hands a buffer to the collector.
    pub(crate) fn hand_over(&self, full: Box<Interval>) {
        // There are as many places as buffers, so the push cannot fail.
        let pushed = self.full.push(full);
        debug_assert!(pushed.is_ok());
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
