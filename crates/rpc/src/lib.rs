//! Remote procedure calls: the wire format and handshake, sockets and libfabric, clients, and the engines that serve them.

pub mod address;
pub mod client;
pub mod engine;
pub mod group;
pub mod handshake;
mod inbox;
pub mod inquiry;
pub mod interface;
pub mod measure;
pub mod ofi;
pub mod payload;
mod plan;
mod seat;
mod service;
mod share;
pub mod socket;
mod statistics;
mod tags;
pub mod tcp;
pub mod watch;
pub mod wire;

pub use inbox::{Accepted, Inbox, InboxSender, Role, inbox};
pub use plan::{EndpointPlan, InterfacePlan, SocketPlan};
pub use seat::{Budget, Grant, Log, Seat};
pub use service::{Answer, BulkReply, BulkSink, Call, Counters, Inline, Limits, Memory, Service};
pub use tags::{TAGS_MAX, TagMap, TagRole};
pub use workload::engine::Poll;
