//! The network layer: RPC endpoints, the transports that reach them, and the drivers that measure them.

pub mod address;
pub mod client;
mod drivers;
pub mod engine;
pub mod group;
pub mod handshake;
mod inbox;
pub mod inquiry;
pub mod interface;
pub mod measure;
pub mod ofi;
mod operation;
pub mod payload;
mod request;
mod seat;
pub mod security;
mod service;
mod share;
pub mod socket;
mod source;
mod statistics;
mod tags;
pub mod tcp;
pub mod watch;
pub mod wire;

pub use drivers::DRIVERS;
pub use inbox::{Accepted, Inbox, InboxSender, Role, inbox};
pub use operation::{Rpc, RpcClass};
pub use request::{OpenRequest, SlotLayout};
pub use seat::{Budget, Grant, Log, Seat};
pub use service::{Answer, BulkReply, Call, Counters, Inline, Landing, Limits, Memory, Service};
pub use source::{RpcSource, payload_seed};
pub use tags::{TAGS_MAX, TagMap, TagRole};
