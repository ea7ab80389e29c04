//! Makes the client and the server of the control channel's calls; `src/wire.rs` has their messages.

use tonic_build::manual::{Builder, Method, Service};

/// A call: its name in Rust and on the wire, its messages, whether each side sends a stream of them, and its meaning.
type Call = (&'static str, &'static str, [&'static str; 2], bool, &'static str);

/// Calls of a stranger. Everything else requires the session that `Prove` gives, as metadata `authorization`.
const HANDSHAKE: &[Call] = &[
    ("hello", "Hello", ["HelloRequest", "HelloReply"], false, "Exchanges versions and nonces."),
    (
        "prove",
        "Prove",
        ["ProveRequest", "ProveReply"],
        false,
        "Shows that both sides know the shared secret. Once a connection.",
    ),
];

/// Calls of those that have proven themselves on this connection.
const CONTROL: &[Call] = &[
    ("describe", "Describe", ["DescribeRequest", "DescribeReply"], false, "What this process is."),
    ("ping", "Ping", ["PingRequest", "PingReply"], false, "Reads the agent's clock."),
    ("run", "Run", ["FromCoordinator", "FromAgent"], true, "One job: a plan, a start, progress, a result."),
    (
        "session",
        "Session",
        ["FromLeader", "FromHost"],
        true,
        "One run of which this process is one of several hosts: planned here, its stages run one by one, its end.",
    ),
    (
        "interrupt",
        "Interrupt",
        ["InterruptRequest", "InterruptReply"],
        false,
        "Ends the running job, whoever started it.",
    ),
    ("quit", "Quit", ["QuitRequest", "QuitReply"], false, "Ends the process."),
];

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let services = [("Handshake", HANDSHAKE), ("Control", CONTROL)].map(|(name, calls)| {
        let service = Service::builder().name(name).package("strata.control.v1");
        calls.iter().fold(service, |service, call| service.method(method(call))).build()
    });
    Builder::new().build_transport(false).compile(&services);
}

fn method((name, route, [input, output], is_streamed, meaning): &Call) -> Method {
    let method = Method::builder()
        .name(name)
        .route_name(route)
        .comment(meaning)
        .input_type(format!("crate::wire::{input}"))
        .output_type(format!("crate::wire::{output}"))
        .codec_path("tonic_prost::ProstCodec");
    if *is_streamed { method.client_streaming().server_streaming().build() } else { method.build() }
}
