//! Options of the network layer, as typed.

use std::path::PathBuf;
use std::sync::LazyLock;

use rpc::Poll;
use units::{ByteSize, Span};
use workload::engine::Feature;
use workload::spec::Spec;

use crate::plan::{EndpointOrder, Payload, Traffic};

/// Options of a load on the network; `None` means: not said. [`of`] finds it in a spec. `targets` of the spec are
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
    /// `--memory` and what belongs to it.
    pub memory: gpu::MemorySpec,
    /// Processors of an engine that this run starts (`loopback:`).
    pub engine_cores: Option<Vec<u32>>,
}

/// Options of the network in a spec.
#[must_use]
pub fn of(spec: &Spec) -> &NetworkSpec {
    static NOTHING_SAID: LazyLock<NetworkSpec> = LazyLock::new(NetworkSpec::default);
    spec.own.get().unwrap_or(&NOTHING_SAID)
}

/// A rank and a tag: an endpoint by its numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RankTag {
    /// Rank.
    pub rank: u32,
    /// Tag.
    pub tag: u32,
}
