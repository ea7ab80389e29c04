//! Sizes and times of the channel. Nothing on it is unbounded.

use std::time::Duration;

/// Version of the control protocol: both sides must speak the same.
pub const PROTOCOL_VERSION: u32 = 3;

/// Largest plan, in bytes of JSON.
pub const PLAN_BYTES_MAX: usize = 16 << 20;

/// Largest result of a host, in bytes of JSON.
pub const RESULT_BYTES_MAX: usize = 256 << 20;

/// Room for what surrounds a plan or result in its message.
pub(crate) const ENVELOPE_BYTES: usize = 64 << 10;

/// Largest message of a caller that has not proven itself.
pub(crate) const HANDSHAKE_BYTES_MAX: usize = 4 << 10;

/// Largest name of a job or layer, and the most of an error line that travels, in bytes.
pub(crate) const TEXT_BYTES_MAX: usize = 4 << 10;

/// Connections to one server at a time.
pub(crate) const CONNECTIONS_MAX: usize = 64;

/// Calls in progress on one connection.
pub(crate) const STREAMS_MAX: u32 = 16;

/// Until when a caller must have proven itself, from the moment it connected.
pub(crate) const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);

/// How long a caller whose proof was wrong waits for the answer.
pub(crate) const WRONG_PROOF_DELAY: Duration = Duration::from_millis(500);

/// HTTP/2 pings: how often, and how long their answer may take. A dead peer is found within the sum.
pub(crate) const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(3);
pub(crate) const KEEPALIVE_TIMEOUT: Duration = Duration::from_secs(5);

/// How long an agent waits for the plan once a job's stream is open.
pub(crate) const PLAN_TIMEOUT: Duration = Duration::from_secs(30);

/// How long an agent that is ready waits for the start.
pub(crate) const GO_TIMEOUT: Duration = Duration::from_secs(15 * 60);

/// Longest delay of a start.
pub(crate) const START_DELAY_MAX: Duration = Duration::from_secs(60);

/// Shortest and longest interval of progress.
pub(crate) const PROGRESS_INTERVAL_MIN: Duration = Duration::from_millis(10);
pub(crate) const PROGRESS_INTERVAL_MAX: Duration = Duration::from_secs(60);

/// Answer to a short call.
pub(crate) const CALL_TIMEOUT: Duration = Duration::from_secs(10);

/// Flow control windows of HTTP/2, in bytes.
pub(crate) const STREAM_WINDOW_BYTES: u32 = 1 << 20;
pub(crate) const CONNECTION_WINDOW_BYTES: u32 = 4 << 20;

/// How long a server that is stopped lets a running job end and its result leave.
pub(crate) const STOP_TIMEOUT: Duration = Duration::from_secs(5);

/// Shortest and longest lease of a session.
pub(crate) const LEASE_MIN: Duration = Duration::from_secs(1);
pub(crate) const LEASE_MAX: Duration = Duration::from_secs(600);

/// How long a session waits for the next stage; its leader keeps the lease meanwhile.
pub(crate) const IDLE_TIMEOUT: Duration = Duration::from_secs(24 * 3600);
