//! Time that a thread waits for the files of stores: reads, writes and syncs, its own and those of others that it shares.

use std::cell::Cell;
use std::time::Instant;

thread_local! {
    /// None as long as nobody has asked: then no clock is read.
    static WAITED_NS: Cell<Option<u64>> = const { Cell::new(None) };
}

/// Time that this thread has waited for the files of stores since it first asked, in nanoseconds. Differences of two of them are the waits of what was
/// done between. What comes by the mapping of a file (its pages, cache lines that are written back) is no wait.
#[must_use]
pub fn storage_wait_ns() -> u64 {
    WAITED_NS.with(|waited| {
        let ns = waited.get().unwrap_or(0);
        waited.set(Some(ns));
        ns
    })
}

/// Does what a thread waits for.
#[inline]
pub(crate) fn waiting<R>(work: impl FnOnce() -> R) -> R {
    let Some(before_ns) = WAITED_NS.get() else { return work() };
    let begin = Instant::now();
    let done = work();
    WAITED_NS.set(Some(before_ns.saturating_add(begin.elapsed().as_nanos() as u64)));
    done
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn waits_add_up_from_when_they_are_asked_for() {
        let wait = || waiting(|| std::thread::sleep(Duration::from_millis(20)));
        wait();
        assert_eq!(storage_wait_ns(), 0, "nobody had asked");
        wait();
        let first = storage_wait_ns();
        std::thread::sleep(Duration::from_millis(20));
        wait();
        let both = storage_wait_ns();
        let work_ns = 20_000_000;
        assert!(first >= work_ns && both >= 2 * work_ns, "{first} {both}");
        assert_eq!(storage_wait_ns(), both, "what is no wait does not count");
        assert_eq!(std::thread::spawn(storage_wait_ns).join().ok(), Some(0), "those of others do not count");
    }
}
