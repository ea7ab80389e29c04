//! Operations that a worker has in flight, told so that the coordinator can read them while the worker's thread hangs in a system call.

use std::sync::atomic::{AtomicU64, Ordering};

use driver::{CLASSES_MAX, Operation};

/// Bits of a mark that hold its time: 18 years.
const TIME_BITS: u32 = u64::BITS - CLASSES_MAX.trailing_zeros();
const TIME_MASK: u64 = (1 << TIME_BITS) - 1;
/// Marks of a cache line: workers with few slots must not share one.
const LINE: usize = 8;

#[repr(align(64))]
struct Line([AtomicU64; LINE]);

/// An operation that is in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct InFlight {
    /// Its class.
    pub(crate) class: usize,
    /// When it was submitted (closed loop) or due (open loop), on the clock of the run.
    pub(crate) start_ns: u64,
}

/// The slots of one worker. Written by the worker alone, with plain stores; whoever else reads sees each of them some time later.
pub(crate) struct Marks {
    lines: Box<[Line]>,
    /// Up to when the worker has handed over what it measured, on the clock of the run.
    handed_ns: AtomicU64,
    /// Arrivals of an open loop that were turned into operations.
    arrived: AtomicU64,
}

impl Marks {
    pub(crate) fn new(depth: u32) -> Self {
        let line = |_| Line([const { AtomicU64::new(0) }; LINE]);
        Self {
            lines: (0..(depth as usize).div_ceil(LINE)).map(line).collect(),
            handed_ns: AtomicU64::new(0),
            arrived: AtomicU64::new(0),
        }
    }

    #[inline(always)]
    fn mark(&self, slot: u32) -> &AtomicU64 {
        &self.lines[slot as usize / LINE].0[slot as usize % LINE]
    }

    /// Worker: `operation` began, or was due, at `start_ns`.
    #[inline(always)]
    pub(crate) fn set<Op: Operation>(&self, operation: &Op, start_ns: u64) {
        let mark = ((operation.class() as u64) << TIME_BITS) | (start_ns & TIME_MASK);
        self.mark(operation.slot()).store(mark, Ordering::Relaxed);
    }

    /// When the operation in a slot began; 0 where none is marked.
    #[inline(always)]
    pub(crate) fn start_ns(&self, slot: u32) -> u64 {
        self.mark(slot).load(Ordering::Relaxed) & TIME_MASK
    }

    /// Worker: the operation in a slot is over.
    #[inline(always)]
    pub(crate) fn clear(&self, slot: u32) {
        self.mark(slot).store(0, Ordering::Relaxed);
    }

    /// Worker: what it measured up to `now` is handed over.
    #[inline]
    pub(crate) fn handed_over(&self, now: u64) {
        self.handed_ns.store(now, Ordering::Relaxed);
    }

    /// Up to when the worker has handed over what it measured.
    pub(crate) fn handed_ns(&self) -> u64 {
        self.handed_ns.load(Ordering::Relaxed)
    }

    /// Worker: one more arrival was turned into an operation.
    #[inline]
    pub(crate) fn arrived(&self) {
        self.arrived.store(self.arrived.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    }

    /// Arrivals that were turned into operations.
    pub(crate) fn arrivals(&self) -> u64 {
        self.arrived.load(Ordering::Relaxed)
    }

    /// Operations in flight.
    pub(crate) fn in_flight(&self) -> Vec<InFlight> {
        let marks = self.lines.iter().flat_map(|line| &line.0).map(|mark| mark.load(Ordering::Relaxed));
        let told = marks.filter(|mark| mark & TIME_MASK > 0);
        told.map(|mark| InFlight { class: (mark >> TIME_BITS) as usize, start_ns: mark & TIME_MASK })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Copy)]
    struct Op(u32, usize);

    impl Operation for Op {
        const CLASSES: &'static [&'static str] = &["a"; CLASSES_MAX];

        fn class(&self) -> usize {
            self.1
        }

        fn slot(&self) -> u32 {
            self.0
        }

        fn bytes(&self) -> u64 {
            0
        }
    }

    #[test]
    fn tells_what_is_in_flight() {
        let marks = Marks::new(9);
        marks.set(&Op(8, CLASSES_MAX - 1), 7_000);
        marks.set(&Op(0, 2), 5_000);
        marks.set(&Op(3, 1), 6_000);
        marks.clear(3);
        assert_eq!((marks.start_ns(8), marks.start_ns(0), marks.start_ns(3)), (7_000, 5_000, 0));
        let told: Vec<_> = marks.in_flight().iter().map(|each| (each.class, each.start_ns)).collect();
        assert_eq!(told, [(2, 5_000), (CLASSES_MAX - 1, 7_000)]);
    }
}
