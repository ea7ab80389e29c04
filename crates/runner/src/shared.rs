//! Flags that the workers of a phase watch while they run.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};

/// Nothing but its limits ends the phase.
const RUNS: u8 = 0;
/// It ends as if its limits were reached.
const ENDS: u8 = 1;
/// It ends because something failed.
const STOPS: u8 = 2;
/// Nobody waits any more for what is in flight.
const IS_LEFT: u8 = 3;

/// State that all workers of a phase share.
pub(crate) struct Shared {
    /// Set from outside: end after what is in flight.
    interrupt: Arc<AtomicBool>,
    /// Whether the phase ends before its limits; only ever goes up.
    ending: AtomicU8,
    /// Length of the intervals now; grows with the length of the run.
    pub(crate) interval_ns: AtomicU64,
}

impl Shared {
    pub(crate) fn new(interrupt: Arc<AtomicBool>, interval_ns: u64) -> Self {
        Self { interrupt, ending: AtomicU8::new(RUNS), interval_ns: AtomicU64::new(interval_ns) }
    }

    /// Ends the phase after what is in flight, as if its limits were reached.
    pub(crate) fn end(&self) {
        self.ending.fetch_max(ENDS, Ordering::Relaxed);
    }

    /// Ends the phase after what is in flight, because something failed.
    pub(crate) fn stop(&self) {
        self.ending.fetch_max(STOPS, Ordering::Relaxed);
    }

    /// Nobody waits any more for what is in flight.
    pub(crate) fn leave(&self) {
        self.ending.fetch_max(IS_LEFT, Ordering::Relaxed);
    }

    /// Whether nobody waits any more for what is in flight.
    pub(crate) fn is_left(&self) -> bool {
        self.ending.load(Ordering::Relaxed) == IS_LEFT
    }

    /// Whether nothing new may start.
    #[inline]
    pub(crate) fn is_ending(&self) -> bool {
        self.ending.load(Ordering::Relaxed) != RUNS || self.is_interrupted()
    }

    /// Whether the phase ends for a failure or an interruption.
    pub(crate) fn is_stopped(&self) -> bool {
        self.ending.load(Ordering::Relaxed) >= STOPS || self.is_interrupted()
    }

    #[inline]
    pub(crate) fn is_interrupted(&self) -> bool {
        self.interrupt.load(Ordering::Relaxed)
    }
}
