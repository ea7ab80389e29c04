//! Options of the network layer, as typed.

use std::path::PathBuf;

use units::{ByteSize, Span};

use super::{EndpointOrder, Payload, Poll, Traffic};
use crate::engine::Feature;
use vos::{Durability, Flush};

/// Options of a load on the network; `None` means: not said. [`crate::spec::Spec::network`] holds it. `targets` of the spec are
/// URIs of engines (`tcp://host:port`, `ofi+tcp://host:port`), `null:`, or `loopback:` for an engine that the run starts itself.
#[derive(Clone, Debug, Default, PartialEq)]
#[allow(
    missing_docs,
    reason = "each field is the option of the same name, documented in the table of options"
)]
pub struct NetworkSpec {
    /// `--message-sizes`: payloads of request and reply, one phase each.
    pub message_sizes: Vec<(Payload, Payload)>,
    pub group: Option<String>,
    /// Directory of the group's attach info.
    pub path: Option<PathBuf>,
    /// `--endpoint RANKS:TAGS`, in order, with duplicates.
    pub endpoints: Vec<RankTag>,
    /// `--master RANKS:TAGS`, sorted, without duplicates.
    pub masters: Vec<RankTag>,
    /// Control addresses of engines whose endpoints are sent to.
    pub servers: Vec<String>,
    pub traffic: Option<Traffic>,
    pub order: Option<EndpointOrder>,
    /// RPCs in flight of all workers of a master together.
    pub inflight: Option<u32>,
    pub inflight_per_endpoint: Option<u32>,
    pub connections: Option<u32>,
    pub pipeline: Option<u32>,
    /// `--buffer-align`: low byte of the buffers' addresses.
    pub buffer_align: Option<u8>,
    pub poll: Option<Poll>,
    /// How engines that this run starts or commands wait for messages.
    pub engine_poll: Option<Poll>,
    pub timeout: Option<Span>,
    /// Endpoints are not pinged before the first phase.
    pub no_sync: bool,
    pub provider: Option<String>,
    pub interface: Option<String>,
    pub domain: Option<String>,
    pub send_buffer: Option<ByteSize>,
    pub receive_buffer: Option<ByteSize>,
    pub no_delay: Option<bool>,
    pub zero_copy: Option<Feature>,
    pub bind_device: Option<String>,
    pub bind_address: Option<String>,
    /// Processors of an engine that this run starts (`loopback:`).
    pub engine_cores: Option<Vec<u32>>,
}

/// A rank and a tag: an endpoint by its numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RankTag {
    /// Rank.
    pub rank: u32,
    /// Tag.
    pub tag: u32,
}

/// Options of a server process; `None` means: not said.
#[derive(Clone, Debug, Default, PartialEq)]
#[allow(
    missing_docs,
    reason = "each field is the option of the same name, documented in the table of options"
)]
pub struct EngineSpec {
    pub rank: Option<u32>,
    pub group: Option<String>,
    /// Directory of the group's attach info.
    pub path: Option<PathBuf>,
    /// It stands in no attach info (services that are addressed by host).
    pub no_attach_info: bool,
    /// `--dir`: directory of the pool that it serves objects from.
    pub dir: Option<PathBuf>,
    pub pool: Option<String>,
    pub scm: Option<ByteSize>,
    pub nvme: Option<ByteSize>,
    pub threshold: Option<ByteSize>,
    pub durability: Option<Durability>,
    pub flush: Option<Flush>,
    pub targets: Option<u32>,
    pub helpers: Option<u32>,
    /// Address and port for data: `127.0.0.1:0` when none.
    pub listen: Option<String>,
    /// Address and port for control: the data address with a free port when none.
    pub control: Option<String>,
    pub provider: Option<String>,
    pub interface: Option<String>,
    pub domain: Option<String>,
    pub cores: Option<Vec<u32>>,
    pub poll: Option<Poll>,
    pub token_file: Option<PathBuf>,
    /// TLS for control on loopback too; beyond it is always on.
    pub tls: bool,
    pub message_size_max: Option<ByteSize>,
    pub bulk_size_max: Option<ByteSize>,
    pub connections_max: Option<u32>,
    pub memory_max: Option<ByteSize>,
    pub send_buffer: Option<ByteSize>,
    pub receive_buffer: Option<ByteSize>,
    /// It ends when its standard input does: for engines that another process starts.
    pub until_stdin_closes: bool,
    /// It goes on in the background once it serves; its log goes to this file.
    pub background: Option<PathBuf>,
    /// How it calls itself in its first line, where another tool's words are spoken.
    pub banner: Option<String>,
}
