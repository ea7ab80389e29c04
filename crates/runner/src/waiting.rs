//! Waits of a worker that has nothing in flight.

use driver::Clock;

/// Waits longer than this sleep; the rest spins, because a sleeping thread comes back late by some tens of microseconds.
pub(crate) const SPIN_NS: u64 = 150_000;
/// How long a worker waits at a time where only a completion brings it on: then it hands over what it has.
pub(crate) const IDLE_NS: u64 = 100_000_000;
/// How long a worker with nothing in flight sleeps until it asks again whether another one has made room.
pub(crate) const OTHERS_NS: u64 = 20_000;
/// Longest sleep at a time, so that an interruption is noticed.
pub(crate) const SLEEP_NS_MAX: u64 = 10_000_000;

/// Waits until `until_ns`, or until `is_over` says so when it is asked between two sleeps; the time then.
pub(crate) fn wait<C: Clock>(clock: &C, until_ns: u64, is_over: impl Fn() -> bool) -> u64 {
    loop {
        let now = clock.now_ns();
        if now >= until_ns || is_over() {
            return now;
        }
        match (until_ns - now).saturating_sub(SPIN_NS) {
            0 => clock.spin_until(until_ns),
            sleep_ns => clock.sleep_ns(sleep_ns.min(SLEEP_NS_MAX)),
        }
    }
}
