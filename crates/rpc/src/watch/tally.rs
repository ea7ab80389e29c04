//! Tally of the answers of one endpoint.

use std::time::Instant;

use super::ServerReading;
use crate::inquiry::ServerStatistics;

/// Counts and rates of an endpoint.
#[derive(Debug, Default)]
pub(super) struct Tally {
    last: Option<(Instant, ServerStatistics)>,
    /// Whether nothing failed since the last answer: only then there is a rate.
    is_continued: bool,
    rpcs: u64,
    received_bytes: u64,
    sent_bytes: u64,
    errors: u64,
    rates: Option<Rates>,
}

/// Between the two latest answers, a second.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Rates {
    rpcs: f64,
    received_bytes: f64,
    sent_bytes: f64,
    cpus_used: f64,
}

impl Tally {
    /// Counts anew from the last answer.
    pub(super) fn begin_phase(&mut self) {
        (self.rpcs, self.received_bytes, self.sent_bytes, self.errors) = (0, 0, 0, 0);
    }

    /// The endpoint failed: it does nothing that is known of.
    pub(super) fn interrupt(&mut self) {
        self.is_continued = false;
        self.rates = None;
    }

    /// Takes an answer that came `at` this moment.
    pub(super) fn take(&mut self, at: Instant, now: ServerStatistics) {
        let Some((since, before)) = self.last.replace((at, now)) else {
            // What it did before anybody looked is not part of it.
            self.is_continued = true;
            return;
        };
        let is_another = now.rpcs < before.rpcs || now.cpu_user_ns < before.cpu_user_ns;
        let before = if is_another { ServerStatistics::default() } else { before };
        let more = now.since(&before);
        self.rpcs += more.rpcs;
        self.received_bytes += more.received_bytes;
        self.sent_bytes += more.sent_bytes;
        self.errors += more.errors;
        let seconds = at.saturating_duration_since(since).as_secs_f64();
        let has_rate = self.is_continued && !is_another && seconds > 0.0;
        self.rates = has_rate.then(|| Rates {
            rpcs: more.rpcs as f64 / seconds,
            received_bytes: more.received_bytes as f64 / seconds,
            sent_bytes: more.sent_bytes as f64 / seconds,
            cpus_used: (more.cpu_user_ns + more.cpu_system_ns) as f64 / 1e9 / seconds,
        });
        self.is_continued = true;
    }

    /// Whether it has answered.
    pub(super) fn is_known(&self) -> bool {
        self.last.is_some()
    }

    /// Adds it to the reading of its server.
    pub(super) fn add_to(&self, reading: &mut ServerReading) {
        reading.rpcs += self.rpcs;
        reading.received_bytes += self.received_bytes;
        reading.sent_bytes += self.sent_bytes;
        reading.errors += self.errors;
        if let Some((_, last)) = self.last.filter(|_| self.is_continued) {
            // One of them is the watch's own.
            reading.connections += last.connections.saturating_sub(1);
        }
        if let Some(rates) = self.rates {
            reading.rpcs_per_second += rates.rpcs;
            reading.received_bytes_per_second += rates.received_bytes;
            reading.sent_bytes_per_second += rates.sent_bytes;
            *reading.cpus_used.get_or_insert(0.0) += rates.cpus_used;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn counted(rpcs: u64) -> ServerStatistics {
        ServerStatistics {
            rpcs,
            received_bytes: rpcs * 100,
            sent_bytes: rpcs * 10,
            errors: rpcs / 10,
            connections: 3,
            cpu_user_ns: rpcs * 1_000_000,
            cpu_system_ns: rpcs * 2_000_000,
            ..ServerStatistics::default()
        }
    }

    fn reading(tallies: &[&Tally]) -> ServerReading {
        let mut reading = ServerReading::default();
        tallies.iter().for_each(|tally| tally.add_to(&mut reading));
        reading
    }

    #[test]
    fn rates_are_those_between_two_answers_and_counts_begin_with_the_first() {
        let (mut tally, start) = (Tally::default(), Instant::now());
        assert!(!tally.is_known());
        tally.take(start, counted(1000));
        let first = reading(&[&tally]);
        assert_eq!((first.rpcs, first.connections, first.cpus_used), (0, 2, None));
        tally.take(start + Duration::from_millis(500), counted(1100));
        let second = reading(&[&tally]);
        assert_eq!(
            (second.rpcs, second.received_bytes, second.sent_bytes, second.errors),
            (100, 10_000, 1000, 10)
        );
        assert_eq!(
            (second.rpcs_per_second, second.received_bytes_per_second, second.sent_bytes_per_second),
            (200.0, 20_000.0, 2000.0)
        );
        assert_eq!(second.cpus_used, Some(0.6));
        let both = reading(&[&tally, &tally]);
        assert_eq!(
            (both.rpcs, both.rpcs_per_second, both.connections, both.cpus_used),
            (200, 400.0, 4, Some(1.2))
        );
    }

    #[test]
    fn a_phase_counts_from_the_last_answer() {
        let (mut tally, start) = (Tally::default(), Instant::now());
        tally.take(start, counted(0));
        tally.take(start + Duration::from_secs(1), counted(50));
        tally.begin_phase();
        assert_eq!((reading(&[&tally]).rpcs, reading(&[&tally]).rpcs_per_second), (0, 50.0));
        tally.take(start + Duration::from_secs(2), counted(80));
        assert_eq!(reading(&[&tally]).rpcs, 30);
    }

    #[test]
    fn a_gap_has_no_rate_but_counts() {
        let (mut tally, start) = (Tally::default(), Instant::now());
        tally.take(start, counted(0));
        tally.take(start + Duration::from_secs(1), counted(50));
        tally.interrupt();
        let dead = reading(&[&tally]);
        assert_eq!((dead.rpcs, dead.rpcs_per_second, dead.connections, dead.cpus_used), (50, 0.0, 0, None));
        tally.take(start + Duration::from_secs(9), counted(60));
        assert_eq!((reading(&[&tally]).rpcs, reading(&[&tally]).cpus_used), (60, None));
        tally.take(start + Duration::from_secs(10), counted(61));
        assert_eq!(reading(&[&tally]).rpcs_per_second, 1.0);
    }

    #[test]
    fn a_server_that_was_started_anew_counts_from_nothing() {
        let (mut tally, start) = (Tally::default(), Instant::now());
        tally.take(start, counted(1000));
        tally.take(start + Duration::from_secs(1), counted(7));
        assert_eq!((reading(&[&tally]).rpcs, reading(&[&tally]).cpus_used), (7, None));
    }
}
