//! Statistics that an endpoint gives when it is asked ([`crate::wire::opcode::STATISTICS`]).

use std::sync::atomic::Ordering;

use host::activity::Usage;

use crate::inquiry::ServerStatistics;
use crate::{Counters, Seat};

/// Counters of the endpoint and CPU times of the calling thread, as JSON.
#[must_use]
pub(crate) fn of_this_thread(seat: &Seat) -> Vec<u8> {
    // Numbers and the name of a way to wait always are JSON.
    serde_json::to_vec(&ServerStatistics { poll: seat.poll, ..so_far(&seat.counters) }).unwrap_or_default()
}

/// Counters so far, and the costs of the calling thread.
fn so_far(counters: &Counters) -> ServerStatistics {
    let usage = Usage::of_thread();
    ServerStatistics {
        rpcs: counters.rpcs.load(Ordering::Relaxed),
        received_bytes: counters.received_bytes.load(Ordering::Relaxed),
        sent_bytes: counters.sent_bytes.load(Ordering::Relaxed),
        errors: counters.errors.load(Ordering::Relaxed),
        connections: counters.connections.load(Ordering::Relaxed),
        closed_hostile: counters.closed_hostile.load(Ordering::Relaxed),
        cpu_user_ns: usage.user_ns,
        cpu_system_ns: usage.system_ns,
        ..ServerStatistics::default()
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    #[test]
    fn time_spent_is_seen() {
        let spent_ns = || {
            let seen = so_far(&Counters::default());
            seen.cpu_user_ns + seen.cpu_system_ns
        };
        let (begin_ns, begin) = (spent_ns(), Instant::now());
        while spent_ns() < begin_ns + 1_000_000 {
            assert!(begin.elapsed() < Duration::from_secs(60), "a minute of work is no millisecond");
        }
    }
}
