//! Options of a load on the network.

use units::{parse_index_list, parse_u64_in};
use workload::layers::{Layer, LayerDef};
use workload::options::value::{
    above_zero, count, feature, ip_address, ladder, path, poll, socket_buffer, word, words,
};
use workload::options::{OptionDef, masters};
use workload::plan::PlanKind;
use workload::spec::choice;
use workload::{as_shared, option, own_of, switch_of};

use crate::grammar::{add_masters, parse_endpoints, parse_message_sizes};
use crate::memory::{MEMORY, PATH};
use crate::plan::{EndpointOrder, NetworkPlan, Traffic};
use crate::spec::{self, NetworkSpec};

/// The layer, as users see it.
pub const LAYER: Layer = Layer::of(&DEFINITION);

static DEFINITION: LayerDef = LayerDef {
    command: "net",
    help: crate::help::HELP,
    targets: "tcp://HOST:PORT or ofi+PROVIDER://HOST:PORT of engines, loopback: for a temporary engine on this \
              host, or null:; a group is selected with --group or --endpoint",
    options: &[NETWORK, MEMORY, PATH],
    common: COMMON,
    refused: REFUSED,
    is_one_phase: |spec| spec::of(spec).message_sizes.len() <= 1,
    one_phase: "one pair of message sizes",
    ..LayerDef::new(
        "network",
        "Measure RPCs to engines, or between them; without a target, to a temporary engine on this host",
        PlanKind::of::<NetworkPlan>("RPCs."),
    )
};

/// Options of several layers that mean the same here.
pub const COMMON: &[&str] = &[
    "threads",
    "warmup",
    "arrivals",
    "think-time",
    "think-blocks",
    "think-after",
    "think-spin",
    "no-catch-up",
    "start-delay",
    "concurrent",
    "end-others",
    "saturate",
    "batch-min",
    "batch-max",
    "seed",
    "cores",
    "cores-policy",
    "numa",
    "split-latency",
    "profile",
    "interval",
];

const POSITIONS: &str = "it for media only: an RPC has no position in a target";
const DURABLE: &str = "it for media only: an RPC makes nothing durable";
const CONTENT: &str = "--verify to generate and check payloads; without it their content does not matter";
const DRIVER: &str = "it for media only: it is an option of media drivers";
const FILES: &str = "it for media only: RPCs leave no files";

/// Options of media that this layer does not have, and what to do instead.
const REFUSED: &[(&str, &str)] = &[
    ("op", "--message-sizes: the sizes of an RPC define the operation"),
    ("block-size", "--message-sizes: each pair is a phase"),
    ("size", "--message-sizes for the size of an RPC, and --bytes for the amount of data of a phase"),
    ("offset", POSITIONS),
    ("align", "--buffer-align for the addresses of buffers: an RPC has no position in a target"),
    ("pattern", "--order for the order of endpoints: an RPC has no position in a target"),
    ("mix", "several --message-sizes: each is a phase"),
    ("fsync", DURABLE),
    ("end-fsync", DURABLE),
    ("sync-call", DURABLE),
    ("engine", "--provider, which selects the driver"),
    ("direct", DURABLE),
    ("sync", DURABLE),
    ("register-files", DRIVER),
    ("register-buffers", DRIVER),
    ("defer-taskrun", DRIVER),
    ("sqpoll", DRIVER),
    ("sqpoll-core", DRIVER),
    ("iopoll", "--poll, which sets how workers wait for replies"),
    ("hipri", DRIVER),
    ("nowait", DRIVER),
    ("rwf-dsync", DURABLE),
    ("dontcache", DRIVER),
    ("map-sync", DRIVER),
    ("memory-operation", DRIVER),
    ("huge-pages", "it for media only: RPC buffers use base pages"),
    ("gpu-register", "--gpu-path rdma: memory used by RDMA is always registered"),
    ("cache", FILES),
    ("layout", FILES),
    ("content", CONTENT),
    ("compress", CONTENT),
    ("dedupe", CONTENT),
    ("dedupe-set", CONTENT),
    ("dedupe-global", CONTENT),
    ("refill", CONTENT),
    ("verify-interval", "--verify only: each payload is checked as a whole"),
    ("verify-run", "--seed: checked payloads are generated from it"),
    ("no-read-back", "--verify only: replies are checked as they arrive"),
    ("keep", FILES),
    ("destroy-data", FILES),
];

macro_rules! own {
    ($($option:tt)*) => {
        own_of!(NetworkSpec, $($option)*)
    };
}

/// Options of a load on the network, besides [`COMMON`].
pub static NETWORK: &[OptionDef] = &[
    option!(
        "message-sizes",
        Some('s'),
        "SIZES",
        "0 0: empty in both directions",
        Workload,
        "Pairs of request and reply sizes, one phase per pair: \"(0 0) (b1m 0)\", \"i2k i2k,0 b1m\"; prefix e: empty, i: in the message, b: bulk; without a prefix, bulk from 1 MiB on; a single size applies to both directions",
        |spec, text| {
            let sizes = parse_message_sizes(text)?;
            spec.own.get_mut::<NetworkSpec>().message_sizes = sizes;
            Ok(())
        }
    ),
    option!(
        "endpoint",
        Some('e'),
        "RANKS:TAGS",
        "every target of every rank",
        Workload,
        "Endpoints of the group to send to: 0:2, 0-3:2-17, 0,2:2; may be repeated; order and duplicates are kept",
        |spec, text| {
            let endpoints = parse_endpoints(text)?;
            spec.own.get_mut::<NetworkSpec>().endpoints.extend(endpoints);
            Ok(())
        }
    ),
    option!(
        "master",
        Some('m'),
        "RANKS:TAGS",
        "this process",
        Workload,
        "Engines of the group that generate the load, all at the same time; may be repeated; sorted, without duplicates",
        |spec, text| {
            let mut masters = spec::of(spec).masters.clone();
            add_masters(&mut masters, text)?;
            spec.own.get_mut::<NetworkSpec>().masters = masters;
            Ok(())
        }
    ),
    option!(
        "servers",
        None,
        "HOST[:PORT],...",
        "none",
        Workload,
        "Control addresses of target engines, instead of a group",
        |spec, text| {
            let servers = words("servers", text)?;
            spec.own.get_mut::<NetworkSpec>().servers = servers;
            Ok(())
        }
    ),
    masters::clients("Control addresses of engines that generate the load, instead of --master"),
    own!(
        "group",
        Some('g'),
        "NAME",
        "daos_server",
        Workload,
        "Group that contains the engines of --endpoint and --master",
        group,
        |text| word("group", text)
    ),
    own!(
        "path",
        Some('p'),
        "DIR",
        "$CRT_ATTACH_INFO_PATH, otherwise /tmp",
        Workload,
        "Directory with the group's attach info",
        path,
        |text| path("path", text)
    ),
    own!(
        "traffic",
        None,
        "all|matrix|pairs|ring|incast",
        "all",
        Workload,
        "Which master sends to which endpoints: all: each to all; matrix: each to all on other ranks; pairs: k to k; ring: k to k + 1; incast: all to the first",
        traffic,
        |text| {
            let choices = [
                ("all", Traffic::All),
                ("matrix", Traffic::Matrix),
                ("pairs", Traffic::Pairs),
                ("ring", Traffic::Ring),
                ("incast", Traffic::Incast),
            ];
            choice("traffic", text, &choices)
        }
    ),
    own!(
        "order",
        None,
        "round-robin|random|pinned",
        "round-robin",
        Workload,
        "Next endpoint of a worker: in turn; random (from the seed); or the fixed endpoint of the queue slot",
        order,
        |text| {
            let choices = [
                ("round-robin", EndpointOrder::RoundRobin),
                ("random", EndpointOrder::Random),
                ("pinned", EndpointOrder::Pinned),
            ];
            choice("order", text, &choices)
        }
    ),
    as_shared!(
        "share",
        None,
        "partition|whole",
        "whole",
        Workload,
        "Whether endpoints are distributed over workers (worker w of n gets w, w + n, ...; with fewer endpoints, w modulo their number) or each worker sends to all"
    ),
    own!(
        "inflight",
        Some('i'),
        "N",
        "16, rounded up to a whole number per worker; with --saturate 1 per worker",
        Load,
        "RPCs in flight, in total for all workers of a master",
        inflight,
        |text| count("inflight", text, 1, 1 << 20)
    ),
    own!(
        "inflight-per-endpoint",
        None,
        "N",
        "not limited per endpoint",
        Load,
        "RPCs in flight from each worker to each of its endpoints, so that a slow endpoint does not delay the others",
        inflight_per_endpoint,
        |text| count("inflight-per-endpoint", text, 1, 65_536)
    ),
    as_shared!(
        "depth",
        Some('q'),
        "N",
        "a worker's share of --inflight",
        Load,
        "Queue depth: RPCs in flight per worker"
    ),
    own!(
        "connections",
        None,
        "N",
        "1",
        Load,
        "Connections from each worker to each of its endpoints",
        connections,
        |text| count("connections", text, 1, 1024)
    ),
    own!(
        "pipeline",
        None,
        "N",
        "the depth",
        Load,
        "Maximum number of RPCs in flight per connection",
        pipeline,
        |text| count("pipeline", text, 1, 65_536)
    ),
    as_shared!("time", None, "DURATION", "5s if no limit is set", Load, "End after this long"),
    as_shared!(
        "count",
        None,
        "N",
        "no limit",
        Load,
        "End after this many RPCs, in total for all workers of a master"
    ),
    as_shared!(
        "bytes",
        None,
        "SIZE",
        "no limit",
        Load,
        "End after this many payload bytes (requests and replies), in total for all workers of a master"
    ),
    as_shared!(
        "rate",
        Some('r'),
        "RATE",
        "closed loop",
        Load,
        "Open loop: RPCs per second, in total for all workers of a master (300k); latency counts from the intended start"
    ),
    option!(
        "ladder",
        None,
        "WHAT=N,N,...",
        "none",
        Load,
        "One phase per value of depth, threads or rate: depth=1,2,4,8",
        |spec, text| {
            spec.ladder = Some(ladder(text, None)?);
            Ok(())
        }
    ),
    as_shared!("batch", None, "N", "all free slots", Load, "Maximum number of RPCs per submission"),
    own!(
        "provider",
        None,
        "NAME",
        "the provider of the engines",
        Engine,
        "Provider: tcp, ofi+tcp, ofi+shm, ofi+verbs, ... or null; see `strata net scan`",
        provider,
        |text| word("provider", text)
    ),
    own!(
        "interface",
        None,
        "NAME",
        "$OFI_INTERFACE, otherwise one on the NUMA node of this process",
        Engine,
        "Network interface, such as eth0",
        interface,
        |text| word("interface", text)
    ),
    own!(
        "domain",
        None,
        "NAME",
        "$OFI_DOMAIN, otherwise the domain of the interface",
        Engine,
        "The fabric's name of the interface, such as mlx5_0",
        domain,
        |text| word("domain", text)
    ),
    own!(
        "poll",
        None,
        "spin|adaptive|block",
        "adaptive",
        Engine,
        "How workers wait for replies: spin: never sleep; adaptive: poll for a while, then sleep; block: sleep",
        poll,
        |text| poll("poll", text)
    ),
    own!(
        "engine-poll",
        None,
        "spin|adaptive|block",
        "same as --poll",
        Engine,
        "How engines started by this run wait for messages",
        engine_poll,
        |text| poll("engine-poll", text)
    ),
    own!(
        "engine-cores",
        None,
        "LIST",
        "the last CPU; the others are for workers; not pinned if there is only one CPU",
        Engine,
        "CPUs of the engine that loopback: starts: 0,2,4-7",
        engine_cores,
        |text| parse_index_list("engine-cores", text, 65_536)
    ),
    own!(
        "timeout",
        None,
        "DURATION",
        "30s",
        Engine,
        "Timeout for a connection and for one RPC; the RPC then fails",
        timeout,
        |text| above_zero("timeout", text, "5s")
    ),
    switch_of!(
        NetworkSpec,
        "no-sync",
        "off",
        Engine,
        "Do not ping every endpoint before the first phase",
        no_sync
    ),
    own!(
        "buffer-align",
        None,
        "N",
        "pages",
        Engine,
        "Low byte of the buffers' addresses, 0 to 255",
        buffer_align,
        |text| parse_u64_in("buffer-align", text, 0..=255).map(|byte| byte as u8)
    ),
    own!(
        "send-buffer",
        None,
        "SIZE",
        "sized by the kernel",
        Engine,
        "tcp: send buffer of a socket (SO_SNDBUF)",
        send_buffer,
        |text| socket_buffer("send-buffer", text)
    ),
    own!(
        "receive-buffer",
        None,
        "SIZE",
        "sized by the kernel",
        Engine,
        "tcp: receive buffer of a socket (SO_RCVBUF)",
        receive_buffer,
        |text| socket_buffer("receive-buffer", text)
    ),
    own!(
        "no-delay",
        None,
        "on|off",
        "on",
        Engine,
        "tcp: send small messages at once (TCP_NODELAY)",
        no_delay,
        |text| choice("no-delay", text, &[("on", true), ("off", false)])
    ),
    own!(
        "zero-copy",
        None,
        "auto|on|off",
        "auto: where it helps, which excludes loopback",
        Engine,
        "tcp: send bulk without copying it (MSG_ZEROCOPY)",
        zero_copy,
        |text| feature("zero-copy", text)
    ),
    own!(
        "bind-device",
        None,
        "NAME",
        "any",
        Engine,
        "tcp: device to bind sockets to (SO_BINDTODEVICE)",
        bind_device,
        |text| word("bind-device", text)
    ),
    own!(
        "bind-address",
        None,
        "ADDRESS",
        "any",
        Engine,
        "tcp: address to bind sockets to",
        bind_address,
        |text| ip_address("bind-address", text)
    ),
    as_shared!(
        "verify",
        None,
        "",
        "off",
        Data,
        "Generate every payload from the seed and its RPC number, and check it on arrival, on both sides"
    ),
    masters::token_file("File with the secret; required by engines that are not on loopback"),
    masters::tls("Use TLS for the control channel on loopback too"),
    as_shared!(
        "on-error",
        None,
        "stop|continue",
        "continue: the other endpoints continue",
        Run,
        "After a failed RPC: end the phase, or count the failure and continue"
    ),
    as_shared!("name", None, "NAME", "the message sizes", Run, "Name of the phase in tables and the record"),
];
