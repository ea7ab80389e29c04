//! From the threads of a library to the worker that waits for them.

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, Ordering};
use std::time::Duration;

use rustix::thread::futex;

/// No entry.
const NONE: u32 = u32::MAX;

/// Where a request lands when it has completed. What is behind it in the queue is its own.
#[derive(Debug)]
pub struct CompletionEntry {
    index: u32,
    next: AtomicU32,
    result: AtomicI64,
}

impl CompletionEntry {
    /// The entry of this number.
    #[must_use]
    pub fn new(index: u32) -> Self {
        Self { index, next: AtomicU32::new(NONE), result: AtomicI64::new(0) }
    }

    /// Result of the request that landed here last.
    #[inline]
    #[must_use]
    pub fn result(&self) -> i64 {
        self.result.load(Ordering::Relaxed)
    }

    /// Number of the entry behind it in what [`Queue::take_within`] took. To be asked for before this one is used again.
    #[inline]
    #[must_use]
    pub fn next(&self) -> Option<u32> {
        Some(self.next.load(Ordering::Relaxed)).filter(|next| *next != NONE)
    }
}

/// Completed requests: a stack that callbacks push to and the worker takes whole. No lock, no allocation; the worker sleeps on its head.
#[derive(Debug)]
pub struct Queue {
    head: AtomicU32,
    is_waiting: AtomicBool,
}

impl Default for Queue {
    fn default() -> Self {
        Self { head: AtomicU32::new(NONE), is_waiting: AtomicBool::new(false) }
    }
}

impl Queue {
    /// Callback: a request has completed with `result`.
    pub fn push(&self, entry: &CompletionEntry, result: i64) {
        entry.result.store(result, Ordering::Relaxed);
        let mut head = self.head.load(Ordering::Relaxed);
        loop {
            entry.next.store(head, Ordering::Relaxed);
            match self.head.compare_exchange_weak(head, entry.index, Ordering::SeqCst, Ordering::Relaxed) {
                Ok(_) => break,
                Err(now) => head = now,
            }
        }
        if self.is_waiting.swap(false, Ordering::SeqCst) {
            let _ = futex::wake(&self.head, futex::Flags::PRIVATE, 1);
        }
    }

    /// Number of the first of those that have completed since the last call, latest first; the rest by [`CompletionEntry::next`]. Where
    /// nothing has, it sleeps first until something has, for `longest` at most, or until a signal.
    #[inline]
    pub fn take_within(&self, longest: Duration) -> Option<u32> {
        if self.head.load(Ordering::Relaxed) == NONE {
            if longest.is_zero() {
                return None;
            }
            self.wait(longest);
        }
        Some(self.head.swap(NONE, Ordering::Acquire)).filter(|head| *head != NONE)
    }

    fn wait(&self, timeout: Duration) {
        let timeout = rustix::fs::Timespec {
            tv_sec: timeout.as_secs() as i64,
            tv_nsec: i64::from(timeout.subsec_nanos()),
        };
        self.is_waiting.store(true, Ordering::SeqCst);
        // The kernel looks at the head again: a push between here and there is not slept over.
        let _ = futex::wait(&self.head, futex::Flags::PRIVATE, NONE, Some(&timeout));
        self.is_waiting.store(false, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_other_threads_push_arrives_once() {
        const COUNT: u32 = 1000;
        let (queue, entries) = (Queue::default(), (0..COUNT).map(CompletionEntry::new).collect::<Vec<_>>());
        let mut seen = vec![0; COUNT as usize];
        std::thread::scope(|scope| {
            for part in entries.chunks(COUNT as usize / 4) {
                let queue = &queue;
                scope.spawn(move || part.iter().for_each(|one| queue.push(one, i64::from(one.index) - 7)));
            }
            let mut left = COUNT;
            while left > 0 {
                let mut landed = queue.take_within(Duration::from_secs(10));
                while let Some(at) = landed {
                    let entry = &entries[at as usize];
                    landed = entry.next();
                    assert_eq!(entry.result(), i64::from(at) - 7);
                    seen[at as usize] += 1;
                    left -= 1;
                }
            }
        });
        assert!(seen.iter().all(|count| *count == 1));
    }

    #[test]
    fn a_wait_ends_with_its_time() {
        let begin = std::time::Instant::now();
        assert_eq!(Queue::default().take_within(Duration::from_millis(2)), None);
        assert!(begin.elapsed() >= Duration::from_millis(2));
    }
}
