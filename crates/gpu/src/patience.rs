//! The wait for a copy: asleep for a part of the time that the last ones took, then polling, so that the processor is not busy for all of it.
#![allow(unsafe_code)]

use std::time::{Duration, Instant};

use driver::Error;

use crate::memory::Stream;

/// Shorter sleeps cost more than they save.
const SLEEP_MIN: Duration = Duration::from_micros(5);
/// Largest part of the expected time that is slept.
const SHARE_MAX: f64 = 0.7;
/// Weight of the last copy in the expected time.
const WEIGHT: f64 = 0.1;

/// How long copies one way are expected to take, and which part of that is slept.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Patience {
    expected: Duration,
    share: f64,
}

impl Patience {
    /// Knows nothing yet. The thread's timers become exact: by default they may be 50 us late (prctl(2), `PR_SET_TIMERSLACK`).
    pub(crate) fn new() -> Self {
        // SAFETY: a number; it is about this thread alone.
        unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1 as libc::c_ulong) };
        Self { expected: Duration::ZERO, share: SHARE_MAX / 2.0 }
    }

    /// Waits for a copy that `stream` has just begun.
    ///
    /// # Errors
    /// As for [`Stream::wait`].
    #[inline]
    pub(crate) fn wait(&mut self, stream: &mut Stream) -> Result<(), Error> {
        let began = Instant::now();
        let sleep = self.expected.mul_f64(self.share);
        if sleep < SLEEP_MIN {
            stream.wait()?;
            self.took(began.elapsed());
            return Ok(());
        }
        std::thread::sleep(sleep);
        if stream.is_done()? {
            self.overslept();
        } else {
            stream.wait()?;
            self.took(began.elapsed());
        }
        Ok(())
    }

    /// A copy took so long, and was waited for to its end.
    fn took(&mut self, time: Duration) {
        let known = if self.expected.is_zero() { time } else { self.expected };
        self.expected = known.mul_f64(1.0 - WEIGHT) + time.mul_f64(WEIGHT);
        self.share = (self.share + 0.01).min(SHARE_MAX);
    }

    /// The copy was done before the sleep was: nobody knows since when.
    fn overslept(&mut self) {
        self.share *= 0.8;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sleeps_grow_slowly_and_shrink_at_once() {
        let mut patience = Patience::new();
        (0..200).for_each(|_| patience.took(Duration::from_micros(100)));
        assert!((patience.expected.as_nanos() as i64 - 100_000).abs() < 100, "{patience:?}");
        assert!((patience.share - SHARE_MAX).abs() < 1e-9);
        patience.overslept();
        patience.overslept();
        assert!((patience.share - SHARE_MAX * 0.64).abs() < 1e-9);
        // Copies that are twice as fast are slept through until the share has come down.
        let slept = (0..10).take_while(|_| {
            let is_over = patience.expected.mul_f64(patience.share) > Duration::from_micros(40);
            patience.overslept();
            is_over
        });
        assert!(slept.count() < 5);
    }
}
