//! Many hosts: one process, the coordinator, tells others, the agents, what to run, lets them begin together, and
//! brings home what they measured.
//!
//! The agent implements [`Agent`] and [`Prepared`] and starts a [`ControlServer`]; the coordinator connects a [`Fleet`]:
//!
//! ```no_run
//! # use std::{sync::{Arc, atomic::AtomicBool}, time::Duration};
//! # use driver::Secret;
//! # use fleet::*;
//! # fn agent(agent: Arc<dyn Agent>, secret: Option<Secret>) -> Result<(), driver::Error> {
//! let log = Arc::new(|line: &str| eprintln!("{line}"));
//! let listen = "127.0.0.1:0".to_owned();
//! let server = ControlServer::start(ControlRequest { listen, secret, tls: false, agent, log })?;
//! println!("control={}", server.address());
//! # Ok(()) }
//! # fn coordinator(secret: Option<Secret>, plan: &str, interrupt: &AtomicBool) -> Result<(), driver::Error> {
//! let hosts = parse_hosts("node1,node2:1700", 1611)?;
//! let fleet = Fleet::connect(ConnectRequest { hosts, secret, tls: false, timeout: Duration::from_secs(10) })?;
//! let plan = PlanMessage::new("rpc", "network", 1, &plan)?;
//! let plans = (0..fleet.len()).map(|host| (host, plan.clone())).collect();
//! for host in fleet.run(plans, &RunPolicy::default(), &mut |_hosts| {}, interrupt)? {
//!     println!("{}: {}", host.address, host.failure().unwrap_or("done"));
//! }
//! # Ok(()) }
//! ```
//!
//! Beyond loopback a shared [`Secret`](driver::Secret) is needed and TLS is on. A call is worth something only on a connection on which
//! both sides have proven that they know the secret; `stream.rs` tells why nobody can stand in between. Every wait has
//! an end, every message a largest size, and a peer that has died is found within 8 s.

mod address;
mod audit;
mod certificate;
mod client;
mod clock;
mod limits;
mod list;
mod meetings;
mod messages;
mod packing;
mod proof;
mod server;
mod session;
mod stream;
#[cfg(test)]
mod tests;
mod track;
mod trust;
mod wire;

pub use address::{HostAddress, parse_hosts};
pub use audit::{Audit, AuditEvent};
pub use certificate::{Certificate, Fingerprint, state_file};
pub use client::{
    ConnectRequest, Fleet, HostEnd, HostOutcome, HostProgress, HostStage, OnRefusal, RunPolicy,
};
pub use clock::{ClockEstimate, Exchange};
pub use limits::{PLAN_BYTES_MAX, PROTOCOL_VERSION, RESULT_BYTES_MAX};
pub use list::{ListedHost, listed_hosts};
pub use meetings::{FIGURES_MAX, Figure, Meetings, Met};
pub use messages::{Description, OutcomeMessage, PlanMessage, ProgressReport, Refusal, RefusalKind, Role};
pub use server::{Agent, ControlRequest, ControlServer, LogSink, Prepared, ServerOptions, StartGate};
pub use session::{
    HostMeetings, HostSession, HostStageEnd, SessionHost, SessionLink, SessionProgress, SessionRequest,
    SessionTerms, Sessions, StageOutcome, StagePart, StageRequest, StageTasks, report_interval,
};
pub use track::{ClockBound, ClockDrift, ClockStep, ClockTrack};
pub use trust::Trust;
