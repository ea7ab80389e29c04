//! Drivers that ask a library for what has completed: what they have in flight, and the wait for it.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::{Completions, Error, Wait};

/// Longest sleep of a worker: an interrupt is looked at after it.
const SLEEP: Duration = Duration::from_millis(50);

/// Operations that a driver has taken and not handed over, and results of those among them that have ended. It has its room from the start.
#[derive(Debug)]
pub struct InFlight {
    count: u32,
    ended: VecDeque<(u32, i64)>,
    interrupt: Arc<AtomicBool>,
}

impl InFlight {
    /// None yet, with room for `depth`. Waits for them end when `interrupt` is set.
    #[must_use]
    pub fn new(depth: u32, interrupt: &Arc<AtomicBool>) -> Self {
        let ended = VecDeque::with_capacity(depth as usize);
        Self { count: 0, ended, interrupt: Arc::clone(interrupt) }
    }

    /// One more was taken.
    #[inline]
    pub fn begin(&mut self) {
        self.count += 1;
    }

    /// One of those that were taken has ended with `result`.
    #[inline]
    pub fn end(&mut self, slot: u32, result: i64) {
        self.ended.push_back((slot, result));
    }

    /// How many were taken and not handed over.
    #[inline]
    #[must_use]
    pub fn count(&self) -> u32 {
        self.count
    }

    /// Whether waits are to end.
    #[inline]
    #[must_use]
    pub fn is_interrupted(&self) -> bool {
        self.interrupt.load(Ordering::Relaxed)
    }

    /// How many of them have not ended.
    #[inline]
    fn pending(&self) -> u32 {
        self.count - self.ended.len() as u32
    }

    /// Hands over those that have ended, first come first, as far as `done` has room.
    #[inline]
    pub fn hand_over(&mut self, done: &mut Completions) {
        while done.room() > 0
            && let Some((slot, result)) = self.ended.pop_front()
        {
            self.count -= 1;
            done.push(slot, result);
        }
    }
}

/// A driver that asks a library for what has completed.
pub trait Polled {
    /// Its operations.
    fn in_flight(&mut self) -> &mut InFlight;

    /// Takes in what has completed; where nothing has, sleeps for it first, `longest` at most. Whether anything had. Called while operations
    /// have not ended.
    ///
    /// # Errors
    /// When the library cannot be asked.
    fn poll(&mut self, longest: Duration) -> Result<bool, Error>;
}

/// [`Driver::reap`](crate::Driver::reap) of a driver that is polled.
///
/// # Errors
/// As for [`Polled::poll`].
#[inline]
pub fn reap(driver: &mut impl Polled, wait: Wait, done: &mut Completions) -> Result<(), Error> {
    let (count, deadline) = wait.deadline();
    let enough = done.len() + count;
    let mut longest = Duration::ZERO;
    loop {
        let is_any = driver.in_flight().pending() > 0 && driver.poll(longest)?;
        driver.in_flight().hand_over(done);
        if done.len() >= enough || done.room() == 0 || driver.in_flight().count() == 0 {
            return Ok(());
        }
        longest = Duration::ZERO;
        if is_any {
            continue;
        }
        let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        if left == Some(Duration::ZERO) || driver.in_flight().is_interrupted() {
            return Ok(());
        }
        longest = left.map_or(SLEEP, |left| left.min(SLEEP));
    }
}

/// Waits for all that has not ended, `limit` at most, when a driver goes. Whether all has.
pub fn drain(driver: &mut impl Polled, limit: Duration) -> bool {
    let deadline = Instant::now() + limit;
    while driver.in_flight().pending() > 0 && Instant::now() < deadline {
        if driver.poll(SLEEP).is_err() {
            break;
        }
    }
    driver.in_flight().pending() == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A library: an operation ends with each poll, while `ends` are left.
    struct Library {
        in_flight: InFlight,
        ends: u32,
        polls: Vec<Duration>,
    }

    impl Library {
        fn with(taken: u32, ends: u32) -> Self {
            let mut in_flight = InFlight::new(taken, &Arc::default());
            (0..taken).for_each(|_| in_flight.begin());
            Self { in_flight, ends, polls: Vec::new() }
        }
    }

    impl Polled for Library {
        fn in_flight(&mut self) -> &mut InFlight {
            &mut self.in_flight
        }

        fn poll(&mut self, longest: Duration) -> Result<bool, Error> {
            self.polls.push(longest);
            let is_any = self.ends > 0;
            if is_any {
                self.ends -= 1;
                self.in_flight.end(self.ends, 7);
            }
            Ok(is_any)
        }
    }

    fn reaped(library: &mut Library, wait: Wait) -> usize {
        let mut done = Completions::with_depth(8);
        reap(library, wait, &mut done).expect("reaped");
        done.len()
    }

    #[test]
    fn it_waits_for_as_many_as_are_wanted_and_no_longer() {
        let mut library = Library::with(5, 5);
        assert_eq!(reaped(&mut library, Wait::None), 1);
        assert_eq!(reaped(&mut library, Wait::AtLeast(3)), 3);
        assert_eq!(library.polls, [Duration::ZERO; 4], "nobody slept");
        assert_eq!(reaped(&mut library, Wait::AtLeast(3)), 1, "no more are in flight");
        assert_eq!((library.in_flight.count(), library.in_flight.pending()), (0, 0));
    }

    #[test]
    fn a_wait_ends_with_its_time_and_with_an_interrupt() {
        let mut library = Library::with(2, 1);
        assert_eq!(reaped(&mut library, Wait::Timeout { count: 2, timeout_ns: 1000 }), 1);
        assert!(library.polls.iter().all(|longest| *longest < SLEEP));
        library.in_flight.interrupt.store(true, Ordering::Relaxed);
        assert_eq!(reaped(&mut library, Wait::AtLeast(1)), 0);
        assert_eq!(library.in_flight.pending(), 1);
    }

    #[test]
    fn results_without_room_are_kept() {
        let mut library = Library::with(3, 3);
        (0..3).for_each(|_| assert!(library.poll(SLEEP).expect("polled")));
        let mut done = Completions::with_depth(3).limited_to(2);
        library.in_flight.hand_over(&mut done);
        assert_eq!((done.len(), library.in_flight.count(), library.in_flight.pending()), (2, 1, 0));
        assert_eq!((done.as_slice()[0].slot, done.as_slice()[0].result), (2, 7), "first come, first");
    }

    #[test]
    fn who_goes_waits_for_what_the_library_has() {
        assert!(drain(&mut Library::with(3, 3), Duration::from_secs(60)));
        assert!(!drain(&mut Library::with(3, 2), Duration::from_millis(2)));
    }
}
