//! Counters of interfaces (proc_pid_net(5), `dev`).

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::source;

/// Fields after the name in a line of `dev`.
const FIELDS: usize = 16;

/// Counters of an interface since it was made, or between two readings; for all users of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct InterfaceCounters {
    /// Received, in bytes.
    pub received_bytes: u64,
    /// Packets received.
    pub received_packets: u64,
    /// Bad packets received.
    pub receive_errors: u64,
    /// Good packets that were dropped on the way in: no room, or nobody wanted them.
    pub receive_drops: u64,
    /// Sent, in bytes.
    pub sent_bytes: u64,
    /// Packets sent.
    pub sent_packets: u64,
    /// Packets that could not be sent.
    pub send_errors: u64,
    /// Packets dropped on the way out.
    pub send_drops: u64,
}

impl InterfaceCounters {
    /// Difference from an earlier reading.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            received_bytes: self.received_bytes.saturating_sub(earlier.received_bytes),
            received_packets: self.received_packets.saturating_sub(earlier.received_packets),
            receive_errors: self.receive_errors.saturating_sub(earlier.receive_errors),
            receive_drops: self.receive_drops.saturating_sub(earlier.receive_drops),
            sent_bytes: self.sent_bytes.saturating_sub(earlier.sent_bytes),
            sent_packets: self.sent_packets.saturating_sub(earlier.sent_packets),
            send_errors: self.send_errors.saturating_sub(earlier.send_errors),
            send_drops: self.send_drops.saturating_sub(earlier.send_drops),
        }
    }
}

/// Counters of all interfaces of the calling thread's network namespace, by name; `/sys/class/net/*/statistics` has the same, but
/// may show another namespace.
#[must_use]
pub fn counters() -> BTreeMap<String, InterfaceCounters> {
    source::text("/proc/thread-self/net/dev").map(|text| parse_dev(&text)).unwrap_or_default()
}

/// Bytes that all interfaces together received and sent so far.
#[must_use]
pub fn moved_bytes() -> (u64, u64) {
    let sum = |part: fn(&InterfaceCounters) -> u64| counters().values().map(part).sum();
    (sum(|counters| counters.received_bytes), sum(|counters| counters.sent_bytes))
}

/// Parses `/proc/net/dev`; lines of another form are left out.
#[must_use]
pub fn parse_dev(text: &str) -> BTreeMap<String, InterfaceCounters> {
    text.lines().filter_map(parse_line).collect()
}

fn parse_line(line: &str) -> Option<(String, InterfaceCounters)> {
    let (name, figures) = line.rsplit_once(':')?;
    let mut fields = [0u64; FIELDS];
    let mut words = figures.split_ascii_whitespace();
    for field in &mut fields {
        *field = words.next()?.parse().ok()?;
    }
    let counters = InterfaceCounters {
        received_bytes: fields[0],
        received_packets: fields[1],
        receive_errors: fields[2],
        receive_drops: fields[3],
        sent_bytes: fields[8],
        sent_packets: fields[9],
        send_errors: fields[10],
        send_drops: fields[11],
    };
    Some((name.trim().to_owned(), counters))
}
