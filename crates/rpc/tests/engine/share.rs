//! One client takes no more than its share of an engine, and the others go on.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};

use driver::Error;
use rpc::engine::{Engine, EngineRequest};
use rpc::handshake::{connect, new_session};
use rpc::wire::{BULK_HEADER_BYTES, HEADER_BYTES, Header, opcode};
use rpc::{Limits, Role, SocketPlan};

use crate::common::{Lines, WAIT, endpoint, eventually, request, secret};

const TAG: u32 = 0;
/// More than a session is assured of, and less.
const LARGE_BYTES: u64 = 8 << 20;
const SMALL_BYTES: u64 = 256 << 10;
const LIMITS: fn() -> Limits = || Limits {
    bulk_bytes_max: LARGE_BYTES,
    connections_max: 64,
    memory_bytes_max: 64 << 20,
    ..Limits::default()
};

/// A session with its stream for bulk.
struct Client {
    messages: TcpStream,
    bulk: TcpStream,
}

impl Client {
    /// From an address of this machine.
    fn open(engine: &Engine, source: &str) -> Result<Self, Error> {
        let session = new_session()?;
        let (socket, never) =
            (SocketPlan { source: Some(source.to_owned()), ..SocketPlan::default() }, AtomicBool::new(false));
        let stream = |role| {
            let timeout_ns = WAIT.as_nanos() as u64;
            let own = secret(b't');
            let plan = endpoint(engine, TAG);
            let connected = connect(&plan, role, session, &[], &socket, Some(&own), timeout_ns, &never)?;
            connected.stream.set_nonblocking(false).expect("an option");
            connected.stream.set_read_timeout(Some(WAIT)).expect("an option");
            Ok::<_, Error>(connected.stream)
        };
        Ok(Self { messages: stream(Role::Messages)?, bulk: stream(Role::Bulk)? })
    }

    /// Asks for so much.
    fn ask(&mut self, bytes: u64) {
        let mut head = [0; HEADER_BYTES];
        let header = Header {
            opcode: opcode::MEASURE,
            tag: TAG,
            slot: 1,
            reply_bulk_bytes: bytes,
            ..Header::default()
        };
        header.encode(&mut head);
        self.messages.write_all(&head).expect("sent");
    }

    /// Asks for so much, and reads it. The status.
    fn get(&mut self, bytes: u64) -> i32 {
        self.ask(bytes);
        let mut head = [0; HEADER_BYTES];
        self.messages.read_exact(&mut head).expect("answered");
        let reply = Header::decode(&head).expect("a header");
        if reply.bulk_bytes > 0 {
            let mut bulk = vec![0; BULK_HEADER_BYTES + reply.bulk_bytes as usize];
            self.bulk.read_exact(&mut bulk).expect("it comes");
        }
        reply.status
    }
}

#[test]
fn a_client_that_takes_all_it_gets_and_reads_nothing_leaves_the_others_theirs() {
    let wanted = EngineRequest { limits: LIMITS(), secret: Some(secret(b't')), ..request(&Lines::default()) };
    let engine = Engine::start(wanted).expect("an engine");
    let mut neighbour = Client::open(&engine, "127.0.0.1").expect("let in");
    let mut other = Client::open(&engine, "127.0.0.2").expect("let in");
    let mut hogs = Vec::new();
    while let Ok(mut hog) = Client::open(&engine, "127.0.0.1") {
        hog.ask(LARGE_BYTES);
        hogs.push(hog);
        assert!(hogs.len() < 40, "it gets all connections");
    }
    // Three quarters of the connections are the most that one address has.
    assert!(hogs.len() >= 20, "{}", hogs.len());
    let answered = || engine.counters(TAG).expect("a tag").rpcs.load(Ordering::Relaxed);
    eventually("all were answered or hold their buffers", || answered() >= hogs.len() as u64);
    for round in 0..20 {
        assert_eq!(other.get(LARGE_BYTES), 0, "another client, round {round}");
        assert_eq!(neighbour.get(SMALL_BYTES), 0, "another session of the same address, round {round}");
    }
    let mut newcomer = Client::open(&engine, "127.0.0.3").expect("some connections are kept for others");
    assert_eq!(newcomer.get(SMALL_BYTES), 0);
    // What one client gives back it can have again.
    drop(hogs);
    eventually("the buffers are free again", || neighbour.get(LARGE_BYTES) == 0);
}
