//! Shows how far the removal of what a run made has come, where it takes long.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::output::tell;

/// How often it is told.
const EVERY: Duration = Duration::from_secs(1);

/// Tells counts on standard error, at most once a second.
pub(crate) struct Told {
    begin: Instant,
    /// Seconds at which it was told last.
    last: AtomicU64,
}

impl Default for Told {
    fn default() -> Self {
        Self { begin: Instant::now(), last: AtomicU64::new(0) }
    }
}

impl Told {
    /// So many things are gone.
    pub(crate) fn tell(&self, count: u64) {
        let second = self.begin.elapsed().as_secs() / EVERY.as_secs();
        // One of all the threads that remove tells it.
        if self.last.fetch_max(second, Ordering::Relaxed) < second {
            tell(format_args!("removing what the run made: {count} so far"));
        }
    }
}
