//! Helpers that the tests share.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use driver::{Error, Secret};
use rpc::engine::{Engine, EngineRequest};
use rpc::handshake::{Connected, connect, new_session};
use rpc::measure::Measure;
use rpc::wire::{HEADER_BYTES, Header, opcode};
use rpc::{EndpointPlan, Poll, Role, SocketPlan, TagMap};

/// Longest wait for anything.
pub(crate) const WAIT: Duration = Duration::from_secs(20);
/// Fits every test's engines: nobody spins on a small machine.
pub(crate) const POLL: Poll = Poll::Block;

/// The lines of a log.
#[derive(Clone, Default)]
pub(crate) struct Lines(Arc<Mutex<Vec<String>>>);

impl Lines {
    pub(crate) fn all(&self) -> Vec<String> {
        self.0.lock().expect("the lines").clone()
    }

    pub(crate) fn has(&self, part: &str) -> bool {
        self.all().iter().any(|line| line.contains(part))
    }
}

pub(crate) fn request(lines: &Lines) -> EngineRequest {
    let sink = lines.clone();
    let log = Arc::new(move |line: &str| sink.0.lock().expect("the lines").push(line.to_owned()));
    EngineRequest { poll: POLL, ..EngineRequest::new(Arc::new(|_| Box::new(Measure::new())), log) }
}

pub(crate) fn in_group(rank: u32, dir: &Path) -> EngineRequest {
    EngineRequest { rank, attach_info_dir: Some(dir.to_owned()), ..request(&Lines::default()) }
}

pub(crate) fn tags(targets: u32, helpers: u32) -> TagMap {
    TagMap::new(targets, helpers).expect("a map")
}

pub(crate) fn secret(letter: u8) -> Secret {
    Secret::new(&[letter; 16]).expect("long enough")
}

pub(crate) fn endpoint(engine: &Engine, tag: u32) -> EndpointPlan {
    let rank = engine.rank();
    EndpointPlan { rank, tag, uri: engine.uri().to_owned(), label: format!("{rank}:{tag}") }
}

pub(crate) fn enter(
    endpoint: &EndpointPlan,
    role: Role,
    secret: Option<&Secret>,
) -> Result<Connected, Error> {
    let session = new_session().expect("random bytes");
    let timeout_ns = WAIT.as_nanos() as u64;
    let never = AtomicBool::new(false);
    connect(endpoint, role, session, &[], &SocketPlan::default(), secret, timeout_ns, &never)
}

/// A connection for messages of an endpoint, whose reads wait.
pub(crate) fn client(engine: &Engine, tag: u32) -> TcpStream {
    let stream = enter(&endpoint(engine, tag), Role::Messages, None).expect("a connection").stream;
    stream.set_nonblocking(false).expect("set");
    stream.set_read_timeout(Some(WAIT)).expect("set");
    stream
}

/// One empty RPC over a connection that was let in; the tag must be its own.
pub(crate) fn ping(stream: &mut TcpStream, tag: u32) -> std::io::Result<Header> {
    stream.set_nonblocking(false)?;
    stream.set_read_timeout(Some(WAIT))?;
    let mut bytes = [0; HEADER_BYTES];
    Header { opcode: opcode::PING, tag, slot: 7, ..Header::default() }.encode(&mut bytes);
    stream.write_all(&bytes)?;
    stream.read_exact(&mut bytes)?;
    Ok(Header::decode(&bytes).expect("a header"))
}

/// Whether the endpoint lets somebody in and answers.
pub(crate) fn serves(engine: &Engine, tag: u32, secret: Option<&Secret>) -> bool {
    enter(&endpoint(engine, tag), Role::Messages, secret)
        .is_ok_and(|mut connected| ping(&mut connected.stream, tag).is_ok_and(|reply| reply.slot == 7))
}

/// A bare connection to the engine's acceptor.
pub(crate) fn bare(engine: &Engine) -> TcpStream {
    let address = engine.uri().strip_prefix("tcp://").expect("a tcp engine");
    let stream = TcpStream::connect(address).expect("somebody listens");
    stream.set_read_timeout(Some(WAIT)).expect("a timeout");
    stream
}

pub(crate) fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let end = Instant::now() + WAIT;
    while !holds() {
        assert!(Instant::now() < end, "{what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}
