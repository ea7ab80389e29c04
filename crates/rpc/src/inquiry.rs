//! Counters of an endpoint, asked for by a client.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use driver::{Error, Secret};
use serde::{Deserialize, Serialize};

use crate::client::Caller;
use crate::wire::{HEADER_BYTES, Header, flag, opcode};
use crate::{EndpointPlan, Poll, SocketPlan};

/// Longest answer, in bytes.
const ANSWER_BYTES_MAX: u64 = 64 << 10;

/// Counters of an endpoint since it began, and the costs of its thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerStatistics {
    /// Requests answered.
    pub rpcs: u64,
    /// Payload bytes received.
    pub received_bytes: u64,
    /// Payload bytes sent.
    pub sent_bytes: u64,
    /// Requests answered with an error.
    pub errors: u64,
    /// Connections open now.
    pub connections: u64,
    /// Connections closed for what came over them.
    pub closed_hostile: u64,
    /// Time of the service thread on a processor in user mode, in nanoseconds.
    pub cpu_user_ns: u64,
    /// Time of the service thread on a processor in the kernel, in nanoseconds.
    pub cpu_system_ns: u64,
    /// How the thread waits.
    pub poll: Poll,
}

impl ServerStatistics {
    /// Increase since `before`; connections and polling as they are now.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        Self {
            rpcs: self.rpcs.saturating_sub(before.rpcs),
            received_bytes: self.received_bytes.saturating_sub(before.received_bytes),
            sent_bytes: self.sent_bytes.saturating_sub(before.sent_bytes),
            errors: self.errors.saturating_sub(before.errors),
            connections: self.connections,
            closed_hostile: self.closed_hostile.saturating_sub(before.closed_hostile),
            cpu_user_ns: self.cpu_user_ns.saturating_sub(before.cpu_user_ns),
            cpu_system_ns: self.cpu_system_ns.saturating_sub(before.cpu_system_ns),
            poll: self.poll,
        }
    }
}

/// Asks an endpoint over a connection of its own, which is closed again. Takes `timeout` at most for the connection and as much again for the
/// answer.
///
/// # Errors
/// When it cannot be reached ([`crate::handshake::connect`]), or when its answer is none.
pub fn statistics(
    endpoint: &EndpointPlan,
    socket: &SocketPlan,
    secret: Option<&Secret>,
    timeout: Duration,
) -> Result<ServerStatistics, Error> {
    let never = AtomicBool::new(false);
    let mut caller = Caller::connect(endpoint, socket, secret, timeout, &never)?;
    let failed = |source: std::io::Error| {
        Error::system("statistics", "the endpoint does not answer", source)
            .with("endpoint", &endpoint.label)
            .with("address", &endpoint.uri)
    };
    let replied = caller.call(opcode::STATISTICS, &[], ANSWER_BYTES_MAX).map_err(failed)?;
    if replied.status != 0 {
        return Err(failed(std::io::Error::from_raw_os_error(replied.status.saturating_neg())));
    }
    serde_json::from_slice(&replied.body).map_err(|error| failed(std::io::Error::from(error)))
}

/// The request that asks the endpoint of this tag.
pub(crate) fn question(tag: u32) -> [u8; HEADER_BYTES] {
    let mut bytes = [0; HEADER_BYTES];
    let request =
        Header { opcode: opcode::STATISTICS, tag, reply_inline_bytes: ANSWER_BYTES_MAX, ..Header::default() };
    request.encode(&mut bytes);
    bytes
}

/// Bytes of JSON that follow the header of an answer.
///
/// # Errors
/// When it is none, or one that says an error.
pub(crate) fn answer_bytes(header: &[u8; HEADER_BYTES]) -> std::io::Result<usize> {
    let malformed = |what: &str| std::io::Error::new(std::io::ErrorKind::InvalidData, what.to_owned());
    let reply = Header::decode(header).map_err(|error| malformed(&error.to_string()))?;
    if reply.status != 0 {
        return Err(std::io::Error::from_raw_os_error(reply.status.saturating_neg()));
    }
    if reply.flags & flag::REPLY == 0
        || reply.opcode != opcode::STATISTICS
        || reply.inline_bytes > ANSWER_BYTES_MAX
    {
        return Err(malformed("the reply belongs to another request"));
    }
    Ok(reply.inline_bytes as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_keys_are_the_protocols() {
        let text = r#"{"rpcs":1,"received_bytes":2,"sent_bytes":3,"errors":4,"connections":5,"closed_hostile":6,
            "cpu_user_ns":7,"cpu_system_ns":8,"poll":"spin"}"#;
        let statistics: ServerStatistics = serde_json::from_str(text).expect("the keys");
        assert_eq!((statistics.rpcs, statistics.cpu_system_ns, statistics.poll), (1, 8, Poll::Spin));
        let doubled = ServerStatistics { rpcs: 11, cpu_user_ns: 9, connections: 2, ..statistics };
        let since = doubled.since(&statistics);
        assert_eq!((since.rpcs, since.cpu_user_ns, since.connections, since.sent_bytes), (10, 2, 2, 0));
    }
}
