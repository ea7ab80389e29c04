//! An engine's endpoints in this process, for the drivers to talk to.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rpc::handshake::{
    Challenge, HELLO_BYTES_MIN, Hello, PROOF_BYTES, Reply, Welcome, parse_hello, reply_bytes,
};
use rpc::ofi::{FabricSettings, Listener};
use rpc::{
    Accepted, Answer, Budget, BulkReply, Call, Counters, EndpointPlan, InboxSender, Limits, Poll, Seat,
    Service, SocketPlan, inbox, ofi, socket, tcp,
};

/// A way to reach endpoints, and what a driver can expect of it.
#[derive(Debug)]
pub(crate) struct Transport {
    /// As users type it.
    pub(crate) provider: &'static str,
    /// Loopback addresses that it runs over.
    pub(crate) hosts: &'static [&'static str],
    /// Connections to an endpoint that can be asked for at most.
    pub(crate) connections_max: u32,
    /// Sockets that carry the RPCs of one connection with bulk, where the driver counts them.
    pub(crate) sockets: Option<u32>,
    /// Requests that an endpoint answers for a driver to open.
    pub(crate) greetings: RangeInclusive<u64>,
}

/// All that peers are known for; the driver of each is the word before the `+`.
pub(crate) const TRANSPORTS: [Transport; 3] = [
    Transport {
        provider: "tcp",
        hosts: &["127.0.0.1", "::1"],
        connections_max: u32::MAX,
        sockets: Some(2),
        greetings: 0..=0,
    },
    Transport { provider: "ofi+tcp", ..FABRIC },
    Transport { provider: "ofi+shm", ..FABRIC },
];

const FABRIC: Transport =
    Transport { provider: "", hosts: &["127.0.0.1"], connections_max: 1, sockets: None, greetings: 1..=20 };

impl Transport {
    /// Its driver.
    pub(crate) fn driver(&self) -> &'static str {
        self.provider.split('+').next().unwrap_or(self.provider)
    }

    /// Why this machine cannot test it.
    pub(crate) fn missing(&self) -> Option<String> {
        if self.provider == "tcp" {
            return None;
        }
        match ofi::providers() {
            Err(error) => Some(error.to_string()),
            Ok(facts) => {
                let names = ofi::typed_names(facts.iter().map(|facts| facts.name.as_str()));
                let is_there = names.iter().any(|name| name == self.provider);
                (!is_there).then(|| format!("libfabric offers {}", names.join(" ")))
            }
        }
    }
}

/// How a peer is started.
#[derive(Clone, Debug)]
pub(crate) struct PeerOptions {
    /// Where it listens.
    pub(crate) host: &'static str,
    /// How its threads wait.
    pub(crate) poll: Poll,
    /// Limits of the peer.
    pub(crate) limits: Limits,
    /// Endpoints, one thread each; tags from 0.
    pub(crate) endpoints: u32,
    /// It lets clients in and then answers none of their RPCs.
    pub(crate) is_silent: bool,
    /// Processor of its threads.
    pub(crate) cpu: Option<usize>,
}

impl Default for PeerOptions {
    fn default() -> Self {
        Self {
            host: "127.0.0.1",
            poll: Poll::Adaptive,
            limits: Limits::default(),
            endpoints: 1,
            is_silent: false,
            cpu: None,
        }
    }
}

/// One endpoint of a peer.
pub(crate) struct Seated {
    pub(crate) counters: Arc<Counters>,
    sender: InboxSender,
    fabric_name: Arc<OnceLock<Vec<u8>>>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Seated {
    /// Stops its thread, and so closes its connections.
    pub(crate) fn kill(&mut self) {
        self.stop.store(true, Ordering::Release);
        self.sender.ring();
        if let Some(thread) = self.thread.take() {
            thread.join().expect("the endpoint's thread");
        }
    }
}

/// See the module.
pub(crate) struct Peer {
    provider: String,
    pub(crate) address: SocketAddr,
    pub(crate) endpoints: Vec<Seated>,
    pub(crate) budget: Arc<Budget>,
    pub(crate) log: Arc<Mutex<Vec<String>>>,
    closing: Arc<AtomicBool>,
    acceptor: Option<JoinHandle<()>>,
}

impl Peer {
    /// Starts endpoints that are reached over this provider.
    pub(crate) fn start(provider: &str, options: &PeerOptions) -> Self {
        Self::with(provider, options, || Box::new(Echo))
    }

    /// Starts endpoints on sockets with services of another kind.
    pub(crate) fn serving(options: &PeerOptions, service: fn() -> Box<dyn Service>) -> Self {
        Self::with("tcp", options, service)
    }

    fn with(provider: &str, options: &PeerOptions, service: fn() -> Box<dyn Service>) -> Self {
        let listener = TcpListener::bind((options.host, 0)).expect("a port");
        let address = listener.local_addr().expect("an address");
        let budget = Budget::new(options.limits.memory_bytes_max);
        let log = Arc::new(Mutex::new(Vec::new()));
        let endpoints: Vec<_> = (0..options.endpoints)
            .map(|tag| seat((provider, service), tag, options, &budget, &log))
            .collect();
        let served: Vec<ServedTag> = endpoints
            .iter()
            .map(|endpoint| (endpoint.sender.clone(), Arc::clone(&endpoint.fabric_name)))
            .collect();
        let closing = Arc::new(AtomicBool::new(false));
        // Who reads nothing needs no endpoint; on a fabric it must have let the client in.
        let (is_closing, is_deaf) = (Arc::clone(&closing), options.is_silent && provider == "tcp");
        let mut kept = Vec::new();
        let acceptor = std::thread::spawn(move || {
            for stream in listener.incoming() {
                if is_closing.load(Ordering::Acquire) {
                    return;
                }
                accept(stream.expect("a connection"), &served, &mut kept, is_deaf);
            }
        });
        let provider = provider.to_owned();
        Self { provider, address, endpoints, budget, log, closing, acceptor: Some(acceptor) }
    }

    /// Its endpoints, as a driver is told of them.
    pub(crate) fn plans(&self) -> Vec<EndpointPlan> {
        (0..self.endpoints.len() as u32).map(|tag| plan(&self.provider, self.address, tag)).collect()
    }

    /// Waits until `is_true`; false when that takes longer than 10 s.
    pub(crate) fn wait_until(&self, mut is_true: impl FnMut(&Self) -> bool) -> bool {
        let begin = Instant::now();
        while !is_true(self) {
            if begin.elapsed() > Duration::from_secs(10) {
                return false;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        true
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        self.closing.store(true, Ordering::Release);
        let _ = TcpStream::connect(self.address);
        if let Some(acceptor) = self.acceptor.take() {
            let _ = acceptor.join();
        }
        for endpoint in &mut self.endpoints {
            endpoint.kill();
        }
        if !std::thread::panicking() {
            assert_eq!(self.budget.used_bytes(), 0, "memory is not given back");
        }
    }
}

/// The plan of an endpoint at an address.
pub(crate) fn plan(provider: &str, address: SocketAddr, tag: u32) -> EndpointPlan {
    EndpointPlan { rank: 0, tag, uri: format!("{provider}://{address}"), label: format!("0:{tag}") }
}

/// An endpoint's inbox and its name on the fabric.
pub(crate) type ServedTag = (InboxSender, Arc<OnceLock<Vec<u8>>>);

fn seat(
    (provider, service): (&str, fn() -> Box<dyn Service>),
    tag: u32,
    options: &PeerOptions,
    budget: &Arc<Budget>,
    log: &Arc<Mutex<Vec<String>>>,
) -> Seated {
    let (sender, receiver) = inbox().expect("an inbox");
    let (counters, stop) = (Arc::new(Counters::default()), Arc::new(AtomicBool::new(false)));
    let log = Arc::clone(log);
    let seat = Seat {
        rank: 0,
        tag,
        poll: options.poll,
        limits: options.limits,
        budget: Arc::clone(budget),
        counters: Arc::clone(&counters),
        stop: Arc::clone(&stop),
        log: Arc::new(move |line| log.lock().expect("the log").push(line.to_owned())),
        fabric_name: Arc::default(),
    };
    let fabric_name = Arc::clone(&seat.fabric_name);
    let mut service: Box<dyn Service> =
        if options.is_silent { Box::new(Mute(Arc::clone(&stop))) } else { service() };
    let serve: Box<dyn FnOnce() + Send> = if provider == "tcp" {
        Box::new(move || tcp::serve(seat, receiver, service))
    } else {
        let settings = FabricSettings {
            provider: provider.to_owned(),
            interface: Some("lo".to_owned()),
            ..FabricSettings::default()
        };
        let listener = Listener::open(seat, &settings).expect("an endpoint on the fabric");
        Box::new(move || listener.serve(&receiver, &mut *service))
    };
    let cpu = options.cpu;
    let thread = std::thread::spawn(move || {
        if let Some(cpu) = cpu {
            pin(cpu);
        }
        serve();
    });
    Seated { counters, sender, fabric_name, stop, thread: Some(thread) }
}

/// Pins the calling thread.
pub(crate) fn pin(cpu: usize) {
    let mut set = rustix::thread::CpuSet::new();
    set.set(cpu);
    rustix::thread::sched_setaffinity(None, &set).expect("a processor");
}

/// Lets a client in and hands its connection to the endpoint that it is for; keeps it for itself where nobody is to answer.
fn accept(mut stream: TcpStream, served: &[ServedTag], kept: &mut Vec<TcpStream>, is_deaf: bool) {
    stream.set_read_timeout(Some(Duration::from_secs(5))).expect("an option");
    let Some(hello) = shake(&mut stream, served) else { return };
    let plan = SocketPlan { no_delay: true, ..SocketPlan::default() };
    socket::apply(&stream, &plan).expect("options");
    let peer = stream.peer_addr().expect("an address");
    if is_deaf {
        kept.push(stream);
        return;
    }
    let Hello { role, session, tag, fabric_name, .. } = hello;
    served[tag as usize].0.send(Accepted { role, stream, session, peer, fabric_name });
}

/// The engine's part of the handshake, without a token.
pub(crate) fn shake(stream: &mut TcpStream, served: &[ServedTag]) -> Option<Hello> {
    let mut bytes = vec![0; HELLO_BYTES_MIN];
    stream.read_exact(&mut bytes).ok()?;
    let hello = loop {
        if let Some((hello, _)) = parse_hello(&bytes).expect("a client") {
            break hello;
        }
        let mut next = [0];
        stream.read_exact(&mut next).ok()?;
        bytes.extend(next);
    };
    let challenge = Challenge { nonce: [1; 32], rank: 0, group: 0, demands_token: false };
    let tag = served.get(hello.tag as usize);
    let fabric_name = tag.and_then(|tag| tag.1.get()).cloned().unwrap_or_default();
    let welcome = Welcome { proof: [0; 32], rank: 0, fabric_name };
    stream.write_all(&reply_bytes(&Reply::Challenge(challenge)).expect("a frame")).ok()?;
    stream.read_exact(&mut [0; PROOF_BYTES]).ok()?;
    stream.write_all(&reply_bytes(&Reply::Welcome(welcome)).expect("a frame")).ok()?;
    Some(hello)
}

/// Answers nothing until its endpoint is to stop.
struct Mute(Arc<AtomicBool>);

impl Service for Mute {
    fn call(&mut self, _: &Call<'_>, _: &mut Answer<'_>) -> i32 {
        while !self.0.load(Ordering::Acquire) {
            std::thread::sleep(Duration::from_millis(1));
        }
        -libc::ESHUTDOWN
    }
}

/// Sends back what came, again and again until the reply is as long as was asked for.
struct Echo;

struct Page(Vec<u8>);

impl AsRef<[u8]> for Page {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

fn repeated(from: &[u8], to: &mut [u8]) {
    if !from.is_empty() {
        for chunk in to.chunks_mut(from.len()) {
            chunk.copy_from_slice(&from[..chunk.len()]);
        }
    }
}

/// Number from which on [`Echo`] takes [`Page`]s for bulk replies, so that both ways are walked.
pub(crate) const FROM_PAGES: u64 = 1 << 40;

impl Service for Echo {
    fn call(&mut self, call: &Call<'_>, answer: &mut Answer<'_>) -> i32 {
        let from = if call.inline.is_empty() { call.bulk } else { call.inline };
        let inline = answer.inline.add(call.reply_inline_bytes as usize).expect("its own room");
        repeated(from, inline);
        let length = call.reply_bulk_bytes as usize;
        if call.sequence >= FROM_PAGES {
            let mut page = Page(vec![0; length + 7]);
            repeated(from, &mut page.0[7..]);
            answer.bulk = BulkReply::Shared(Arc::new(page), 7..length + 7);
        } else {
            repeated(from, &mut answer.scratch[..length]);
            answer.bulk = BulkReply::Scratch(length);
        }
        0
    }
}
