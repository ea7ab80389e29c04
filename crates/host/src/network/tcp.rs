//! Counters of the machine's TCP (RFC 4022; Documentation/networking/snmp_counter.rst).

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::source;

/// Counters of TCP in a network namespace since it was made, or between two readings; over all connections of all users. What this
/// kernel does not count is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TcpCounters {
    /// Segments received.
    pub received_segments: Option<u64>,
    /// Segments sent, those sent again left out.
    pub sent_segments: Option<u64>,
    /// Segments sent again.
    pub retransmitted_segments: Option<u64>,
    /// Bad segments received.
    pub receive_errors: Option<u64>,
    /// Connections that never came to be.
    pub failed_attempts: Option<u64>,
    /// Established connections that were reset.
    pub established_resets: Option<u64>,
    /// Times a timer ran out before an acknowledgement came.
    pub timeouts: Option<u64>,
    /// Retransmissions that were lost again.
    pub lost_retransmits: Option<u64>,
    /// Requests for a connection that were sent again.
    pub syn_retransmits: Option<u64>,
    /// Connections dropped because a listener's queue was full.
    pub listen_overflows: Option<u64>,
    /// Connections dropped by listeners for any reason, a full queue included.
    pub listen_drops: Option<u64>,
    /// Segments dropped because a socket's backlog was full.
    pub backlog_drops: Option<u64>,
}

impl TcpCounters {
    /// Reads the counters of the calling thread's network namespace; none where there is no `/proc`.
    #[must_use]
    pub fn read() -> Option<Self> {
        let basic = source::text("/proc/thread-self/net/snmp")?;
        let extended = source::text("/proc/thread-self/net/netstat").unwrap_or_default();
        Some(parse_tcp(&basic, &extended))
    }

    /// Reads the counters of RFC 4022 alone, segments among them, in a third of the time.
    #[must_use]
    pub fn read_basic() -> Option<Self> {
        Some(parse_tcp(&source::text("/proc/thread-self/net/snmp")?, ""))
    }

    /// Difference from an earlier reading.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let step = |now: Option<u64>, before: Option<u64>| {
            now.zip(before).map(|(now, before)| now.saturating_sub(before))
        };
        Self {
            received_segments: step(self.received_segments, earlier.received_segments),
            sent_segments: step(self.sent_segments, earlier.sent_segments),
            retransmitted_segments: step(self.retransmitted_segments, earlier.retransmitted_segments),
            receive_errors: step(self.receive_errors, earlier.receive_errors),
            failed_attempts: step(self.failed_attempts, earlier.failed_attempts),
            established_resets: step(self.established_resets, earlier.established_resets),
            timeouts: step(self.timeouts, earlier.timeouts),
            lost_retransmits: step(self.lost_retransmits, earlier.lost_retransmits),
            syn_retransmits: step(self.syn_retransmits, earlier.syn_retransmits),
            listen_overflows: step(self.listen_overflows, earlier.listen_overflows),
            listen_drops: step(self.listen_drops, earlier.listen_drops),
            backlog_drops: step(self.backlog_drops, earlier.backlog_drops),
        }
    }

    /// Share of the segments sent that were sent again; none when nothing was sent.
    #[must_use]
    pub fn retransmitted_share(&self) -> Option<f64> {
        let (again, sent) = self.retransmitted_segments.zip(self.sent_segments)?;
        (sent > 0).then(|| again as f64 / sent as f64)
    }
}

/// Parses the texts of `/proc/net/snmp` and `/proc/net/netstat`.
#[must_use]
pub fn parse_tcp(snmp: &str, netstat: &str) -> TcpCounters {
    let (basic, extended) = (section(snmp, "Tcp:"), section(netstat, "TcpExt:"));
    let basic = |name: &str| basic.get(name).copied();
    let extended = |name: &str| extended.get(name).copied();
    TcpCounters {
        received_segments: basic("InSegs"),
        sent_segments: basic("OutSegs"),
        retransmitted_segments: basic("RetransSegs"),
        receive_errors: basic("InErrs"),
        failed_attempts: basic("AttemptFails"),
        established_resets: basic("EstabResets"),
        timeouts: extended("TCPTimeouts"),
        lost_retransmits: extended("TCPLostRetransmit"),
        syn_retransmits: extended("TCPSynRetrans"),
        listen_overflows: extended("ListenOverflows"),
        listen_drops: extended("ListenDrops"),
        backlog_drops: extended("TCPBacklogDrop"),
    }
}

/// A pair of lines with the same first word: names, then values.
fn section<'a>(text: &'a str, title: &str) -> BTreeMap<&'a str, u64> {
    let mut lines = text.lines().filter_map(|line| line.strip_prefix(title));
    let (Some(names), Some(values)) = (lines.next(), lines.next()) else { return BTreeMap::new() };
    let pairs = names.split_ascii_whitespace().zip(values.split_ascii_whitespace());
    pairs.filter_map(|(name, value)| Some((name, value.parse().ok()?))).collect()
}
