//! Counts of the kernel and the connections, their event, and what servers say of requests.

use std::os::fd::{AsFd, BorrowedFd};

use driver::Tally;

use super::Channel;
use super::connection::Connection;
use crate::wire::ServerTimes;

impl Channel {
    /// Descriptor that is readable while a reply, or a part of one, can be read.
    #[must_use]
    pub fn event(&self) -> BorrowedFd<'_> {
        self.common.poller.as_fd()
    }

    /// Times that the server said of the last request of a slot that asked for them ([`crate::wire::flag::TIMED`]); zero where it was never heard of.
    #[inline]
    #[must_use]
    pub fn server_times(&self, slot: u32) -> ServerTimes {
        self.common.slots.server_times(slot)
    }

    /// Values counted for each endpoint: sums of counts, the shortest round trip, and means of the rest, over its streams.
    #[must_use]
    pub fn tallies(&self) -> Vec<Tally> {
        (0..self.endpoints.len()).flat_map(|part| self.tallies_of(part)).collect()
    }

    fn tallies_of(&self, part: usize) -> Vec<Tally> {
        let own = || self.connections.iter().filter(move |connection| connection.endpoint == part);
        let retired = || self.retired.iter().filter(move |retired| retired.endpoint == part);
        let before = retired().flat_map(|retired| retired.states.iter().copied());
        let states: Vec<_> = own().flat_map(Connection::states).chain(before).collect();
        if states.is_empty() {
            return Vec::new();
        }
        let sum = |value: fn(&crate::socket::TcpState) -> u64| states.iter().map(value).sum::<u64>() as f64;
        let mean = |value| sum(value) / states.len() as f64;
        let mut tallies = vec![
            ("tcp_retransmits", sum(|state| state.retransmits)),
            ("tcp_round_trip_ns", mean(|state| state.round_trip_ns)),
            ("tcp_round_trip_variance_ns", mean(|state| state.round_trip_variance_ns)),
            ("tcp_congestion_window_bytes", mean(|state| state.congestion_window_bytes)),
            ("tcp_congestion_window_packets", mean(|state| state.congestion_window_packets)),
            ("tcp_connections", states.len() as f64),
        ];
        let least: Vec<_> = states.iter().filter_map(|state| state.round_trip_min_ns).collect();
        if let Some(&least_ns) = least.iter().min() {
            tallies.push(("tcp_round_trip_min_ns", least_ns as f64));
        }
        let before = retired().filter_map(|retired| retired.counts);
        let counts: Vec<_> = own().filter_map(Connection::zero_copy_counts).chain(before).collect();
        if !counts.is_empty() {
            tallies.push(("zero_copy_sends", counts.iter().map(|count| count.sends).sum::<u64>() as f64));
            tallies.push(("zero_copy_copied", counts.iter().map(|count| count.copied).sum::<u64>() as f64));
        }
        if self.recovery.reopened[part] > 0 {
            tallies.push(("sessions_reopened", self.recovery.reopened[part] as f64));
        }
        tallies.into_iter().map(|(name, value)| Tally { part, name, value }).collect()
    }
}
