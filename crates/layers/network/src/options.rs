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
    targets: "tcp://HOST:PORT or ofi+PROVIDER://HOST:PORT of engines, loopback: for an engine that is started here, or null:; a \
              group is named by --group or --endpoint",
    options: &[NETWORK, MEMORY, PATH],
    common: COMMON,
    refused: REFUSED,
    is_one_phase: |spec| spec::of(spec).message_sizes.len() <= 1,
    one_phase: "one pair of message sizes",
    ..LayerDef::new(
        "network",
        "Measure RPCs to engines, or between them; without a target, to an engine that is started here",
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

const POSITIONS: &str = "it for media alone: an RPC has no position in a target";
const DURABLE: &str = "it for media alone: an RPC makes nothing durable";
const CONTENT: &str = "--verify to have payloads made and checked; without it their content says nothing";
const DRIVER: &str = "it for media alone: it is an option of its drivers";
const FILES: &str = "it for media alone: RPCs leave no files";

/// Options of media that this layer does not have, and what to do instead.
const REFUSED: &[(&str, &str)] = &[
    ("op", "--message-sizes: what an RPC carries says what it does"),
    ("block-size", "--message-sizes: each pair is a phase"),
    ("size", "--message-sizes for the size of an RPC, and --bytes for that of a phase"),
    ("offset", POSITIONS),
    ("align", "--buffer-align for the addresses of buffers: an RPC has no position in a target"),
    ("pattern", "--order for the order of endpoints: an RPC has no position in a target"),
    ("mix", "several --message-sizes: each is a phase"),
    ("fsync", DURABLE),
    ("end-fsync", DURABLE),
    ("sync-call", DURABLE),
    ("engine", "--provider: it decides on the driver"),
    ("direct", DURABLE),
    ("sync", DURABLE),
    ("register-files", DRIVER),
    ("register-buffers", DRIVER),
    ("defer-taskrun", DRIVER),
    ("sqpoll", DRIVER),
    ("sqpoll-core", DRIVER),
    ("iopoll", "--poll: it says how to wait for replies"),
    ("hipri", DRIVER),
    ("nowait", DRIVER),
    ("rwf-dsync", DURABLE),
    ("dontcache", DRIVER),
    ("map-sync", DRIVER),
    ("memory-operation", DRIVER),
    ("huge-pages", "it for media alone: buffers of RPCs are on base pages"),
    ("gpu-register", "--gpu-path rdma: what it reads and writes is registered"),
    ("cache", FILES),
    ("layout", FILES),
    ("content", CONTENT),
    ("compress", CONTENT),
    ("dedupe", CONTENT),
    ("dedupe-set", CONTENT),
    ("dedupe-global", CONTENT),
    ("refill", CONTENT),
    ("verify-interval", "--verify alone: each payload is checked as a whole"),
    ("verify-run", "--seed: payloads that are checked are made from it"),
    ("no-read-back", "--verify alone: replies are checked as they come"),
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
        "0 0: empty both ways",
        Workload,
        "Pairs of request and reply sizes, a phase each: \"(0 0) (b1m 0)\", \"i2k i2k,0 b1m\"; before a size e is empty, i in the message, b bulk; without a letter bulk from 1 MiB on; one size holds both ways",
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
        "Endpoints of the group to send to: 0:2, 0-3:2-17, 0,2:2; may be given several times, order and duplicates are kept",
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
        "Engines of the group that drive the load, all at once; may be given several times, sorted and each once",
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
        "Control addresses of engines whose endpoints are sent to, in place of a group",
        |spec, text| {
            let servers = words("servers", text)?;
            spec.own.get_mut::<NetworkSpec>().servers = servers;
            Ok(())
        }
    ),
    masters::clients("Control addresses of engines that drive the load, all at once, in place of --master"),
    own!(
        "group",
        Some('g'),
        "NAME",
        "daos_server",
        Workload,
        "Group of engines that --endpoint and --master are ranks of",
        group,
        |text| word("group", text)
    ),
    own!(
        "path",
        Some('p'),
        "DIR",
        "$CRT_ATTACH_INFO_PATH, else /tmp",
        Workload,
        "Directory of the group's attach info",
        path,
        |text| path("path", text)
    ),
    own!(
        "traffic",
        None,
        "all|matrix|pairs|ring|incast",
        "all",
        Workload,
        "Which master sends to which endpoints: each to all; to those on other ranks; k to k; k to k + 1; all to the first",
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
        "Where a worker sends next: the next endpoint; one drawn with the seed; the one that the slot of the queue stays with",
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
        "Whether endpoints are dealt out to the workers (worker w of n has w, w + n, ...; with fewer endpoints, w modulo their number) or each worker sends to all"
    ),
    own!(
        "inflight",
        Some('i'),
        "N",
        "16, rounded up to a whole number for each worker; with --saturate 1 for each",
        Load,
        "RPCs in flight of all workers of a master together",
        inflight,
        |text| count("inflight", text, 1, 1 << 20)
    ),
    own!(
        "inflight-per-endpoint",
        None,
        "N",
        "not kept apart",
        Load,
        "RPCs that each worker has in flight with each of its endpoints, so that a slow one does not hold up the others",
        inflight_per_endpoint,
        |text| count("inflight-per-endpoint", text, 1, 65_536)
    ),
    as_shared!(
        "depth",
        Some('q'),
        "N",
        "a worker's share of --inflight",
        Load,
        "Queue depth: RPCs in flight for each worker"
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
        "RPCs in flight on one connection at most",
        pipeline,
        |text| count("pipeline", text, 1, 65_536)
    ),
    as_shared!("time", None, "DURATION", "5s when no limit is given", Load, "End after this long"),
    as_shared!(
        "count",
        None,
        "N",
        "no limit",
        Load,
        "End after this many RPCs of all workers of a master together"
    ),
    as_shared!(
        "bytes",
        None,
        "SIZE",
        "no limit",
        Load,
        "End after this many payload bytes of all workers of a master together, requests and replies"
    ),
    as_shared!(
        "rate",
        Some('r'),
        "RATE",
        "closed loop",
        Load,
        "Open loop: RPCs a second of all workers of a master together (300k); latency counts from the intended start"
    ),
    option!(
        "ladder",
        None,
        "WHAT=N,N,...",
        "none",
        Load,
        "One phase a value of depth, threads or rate: depth=1,2,4,8",
        |spec, text| {
            spec.ladder = Some(ladder(text, None)?);
            Ok(())
        }
    ),
    as_shared!("batch", None, "N", "all free slots", Load, "Most RPCs handed to the driver at once"),
    own!(
        "provider",
        None,
        "NAME",
        "that of the engines",
        Engine,
        "How endpoints are reached: tcp, ofi+tcp, ofi+shm, ofi+verbs, ... or null; see `strata net scan`",
        provider,
        |text| word("provider", text)
    ),
    own!(
        "interface",
        None,
        "NAME",
        "$OFI_INTERFACE, else one on the NUMA node of this process",
        Engine,
        "Network interface, such as eth0",
        interface,
        |text| word("interface", text)
    ),
    own!(
        "domain",
        None,
        "NAME",
        "$OFI_DOMAIN, else that of the interface",
        Engine,
        "The fabric's own name of the interface, such as mlx5_0",
        domain,
        |text| word("domain", text)
    ),
    own!(
        "poll",
        None,
        "spin|adaptive|block",
        "adaptive",
        Engine,
        "How workers wait for replies: never asleep; asking for a while, then asleep; asleep",
        poll,
        |text| poll("poll", text)
    ),
    own!(
        "engine-poll",
        None,
        "spin|adaptive|block",
        "that of --poll",
        Engine,
        "How engines that this run starts wait for messages",
        engine_poll,
        |text| poll("engine-poll", text)
    ),
    own!(
        "engine-cores",
        None,
        "LIST",
        "the last processor, and the others for workers; not pinned where there is one alone",
        Engine,
        "Processors of the engine that loopback: starts: 0,2,4-7",
        engine_cores,
        |text| parse_index_list("engine-cores", text, 65_536)
    ),
    own!(
        "timeout",
        None,
        "DURATION",
        "30s",
        Engine,
        "Longest wait for a connection and for one RPC; then it has failed",
        timeout,
        |text| above_zero("timeout", text, "5s")
    ),
    switch_of!(
        NetworkSpec,
        "no-sync",
        "off",
        Engine,
        "Do not ask every endpoint for a sign of life before the first phase",
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
        "the kernel's own sizing",
        Engine,
        "tcp: buffer of a socket for sending (SO_SNDBUF)",
        send_buffer,
        |text| socket_buffer("send-buffer", text)
    ),
    own!(
        "receive-buffer",
        None,
        "SIZE",
        "the kernel's own sizing",
        Engine,
        "tcp: buffer of a socket for receiving (SO_RCVBUF)",
        receive_buffer,
        |text| socket_buffer("receive-buffer", text)
    ),
    own!(
        "no-delay",
        None,
        "on|off",
        "on",
        Engine,
        "tcp: small messages leave at once (TCP_NODELAY)",
        no_delay,
        |text| choice("no-delay", text, &[("on", true), ("off", false)])
    ),
    own!(
        "zero-copy",
        None,
        "auto|on|off",
        "auto: where it pays, which is not on loopback",
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
        "tcp: device that sockets are bound to (SO_BINDTODEVICE)",
        bind_device,
        |text| word("bind-device", text)
    ),
    own!(
        "bind-address",
        None,
        "ADDRESS",
        "any",
        Engine,
        "tcp: address that sockets are bound to",
        bind_address,
        |text| ip_address("bind-address", text)
    ),
    as_shared!(
        "verify",
        None,
        "",
        "off",
        Data,
        "Make every payload from the seed and the number of its RPC, and check it where it arrives, on both sides"
    ),
    masters::token_file("File with the secret that engines beyond loopback demand"),
    masters::tls("TLS for control on loopback too"),
    as_shared!(
        "on-error",
        None,
        "stop|continue",
        "continue: the other endpoints go on",
        Run,
        "After a failed RPC: end the phase, or count it and go on"
    ),
    as_shared!("name", None, "NAME", "the message sizes", Run, "Name of the phase in tables and the record"),
];
