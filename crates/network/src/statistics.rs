//! What an endpoint says about itself when it is asked ([`crate::wire::opcode::STATISTICS`]).
#![allow(unsafe_code)]

use std::sync::atomic::Ordering;

use serde_json::json;

use crate::Seat;

/// Counters of the endpoint and CPU times of the calling thread, as JSON.
#[must_use]
pub(crate) fn of_this_thread(seat: &Seat) -> Vec<u8> {
    let (user_ns, system_ns) = thread_cpu_ns();
    let counters = &seat.counters;
    json!({
        "rpcs": counters.rpcs.load(Ordering::Relaxed),
        "received_bytes": counters.received_bytes.load(Ordering::Relaxed),
        "sent_bytes": counters.sent_bytes.load(Ordering::Relaxed),
        "errors": counters.errors.load(Ordering::Relaxed),
        "connections": counters.connections.load(Ordering::Relaxed),
        "closed_hostile": counters.closed_hostile.load(Ordering::Relaxed),
        "cpu_user_ns": user_ns,
        "cpu_system_ns": system_ns,
        "poll": seat.poll,
    })
    .to_string()
    .into_bytes()
}

/// CPU time of this thread in user and in kernel mode, in nanoseconds (getrusage(2), kept in microseconds).
fn thread_cpu_ns() -> (u64, u64) {
    // SAFETY: all-zero is a valid rusage.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: the kernel writes one rusage.
    let result = unsafe { libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage) };
    debug_assert_eq!(result, 0, "it fails only for bad arguments");
    let ns = |time: libc::timeval| time.tv_sec as u64 * 1_000_000_000 + time.tv_usec as u64 * 1000;
    (ns(usage.ru_utime), ns(usage.ru_stime))
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    #[test]
    fn time_spent_is_seen() {
        let spent_ns = || {
            let (user_ns, system_ns) = thread_cpu_ns();
            user_ns + system_ns
        };
        let (begin_ns, begin) = (spent_ns(), Instant::now());
        while spent_ns() < begin_ns + 1_000_000 {
            assert!(begin.elapsed() < Duration::from_secs(60), "a minute of work is no millisecond");
        }
    }
}
