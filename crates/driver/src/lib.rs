//! The contract between a worker and what it measures.
//!
//! A layer brings an operation type ([`Operation`]), a source of operations ([`Source`]) and drivers ([`Driver`]) that carry
//! them out. The runner knows these three and nothing of the layer. No driver lives here.

mod arena;
mod capability;
mod clock;
mod contract;
mod error;
mod findings;
pub mod foreign;
mod joined;
pub mod polled;
mod secret;

pub use arena::{Arena, PageSize};
pub use capability::{Capabilities, Opened, Registration, find};
pub use clock::{Clock, ClockSource, HostClock};
pub use contract::{
    CLASSES_MAX, Completion, Completions, Driver, Fault, Operation, Source, Span, Submitted, Tally, Timed,
    Wait,
};
pub use error::{Error, ErrorKind};
pub use findings::{FINDINGS_MAX, Findings};
pub use joined::{Either, Joined};
pub use secret::Secret;
