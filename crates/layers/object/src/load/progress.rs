//! Shows how far the removal of what a run made has come, where it takes long.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use layer::Tell;

/// How often it is told.
const EVERY: Duration = Duration::from_secs(1);

/// Tells counts on standard error, at most once a second.
pub struct Told {
    begin: Instant,
    /// Seconds at which it was told last.
    last: AtomicU64,
    tell: Tell,
}

impl Told {
    /// Nothing told so far.
    #[must_use]
    pub fn new(tell: Tell) -> Self {
        Self { begin: Instant::now(), last: AtomicU64::new(0), tell }
    }

    /// So many things are gone.
    pub fn tell(&self, count: u64) {
        let second = self.begin.elapsed().as_secs() / EVERY.as_secs();
        // One of all the threads that remove tells it.
        if self.last.fetch_max(second, Ordering::Relaxed) < second {
            (self.tell)(format_args!("removing the run's data: {count} so far"));
        }
    }
}
