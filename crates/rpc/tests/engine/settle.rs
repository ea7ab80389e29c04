//! Tests of settling: changes of requests are settled for many of them at once, and before their replies leave.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex};

use rpc::engine::{Engine, EngineRequest};
use rpc::handshake::{connect, new_session};
use rpc::wire::{BULK_HEADER_BYTES, BulkHeader, HEADER_BYTES, Header, opcode};
use rpc::{Answer, Call, Role, Service, SocketPlan};

use crate::common::{Lines, WAIT, client, endpoint, eventually, request};

const TAG: u32 = 2;
/// Requests of one batch: few enough for one segment.
const BATCH: u32 = 16;

/// State of a ledger, and orders to it.
#[derive(Default)]
struct State {
    called: AtomicU32,
    settled: AtomicU32,
    status: AtomicI32,
    is_settling: AtomicBool,
    may_settle: Mutex<bool>,
    told: Condvar,
}

impl State {
    fn let_settle(&self, may: bool) {
        *self.may_settle.lock().expect("the gate") = may;
        self.told.notify_all();
    }
}

/// Changes something with each request, and settles when it may.
struct Ledger {
    state: Arc<State>,
    is_unsettled: bool,
}

impl Service for Ledger {
    fn call(&mut self, call: &Call<'_>, answer: &mut Answer<'_>) -> i32 {
        self.state.called.fetch_add(1, Ordering::SeqCst);
        answer.inline.extend_from_slice(&call.sequence.to_le_bytes()[..call.reply_inline_bytes as usize]);
        self.is_unsettled = true;
        if call.sequence == 3 { -libc::ENOENT } else { 0 }
    }

    fn defer(&mut self) -> bool {
        true
    }

    fn is_unsettled(&self) -> bool {
        self.is_unsettled
    }

    fn settle(&mut self) -> i32 {
        self.is_unsettled = false;
        self.state.is_settling.store(true, Ordering::SeqCst);
        let gate = self.state.may_settle.lock().expect("the gate");
        let (gate, _) = self.state.told.wait_timeout_while(gate, WAIT, |may| !*may).expect("the gate");
        assert!(*gate, "nobody let it settle");
        self.state.settled.fetch_add(1, Ordering::SeqCst);
        self.state.status.load(Ordering::SeqCst)
    }
}

fn serve(state: &Arc<State>) -> Engine {
    let state = Arc::clone(state);
    let service = Arc::new(move |_| -> Box<dyn Service> {
        Box::new(Ledger { state: Arc::clone(&state), is_unsettled: false })
    });
    Engine::start(EngineRequest { service, ..request(&Lines::default()) }).expect("an engine")
}

/// Sends a batch with one call; each reply is to have as many bytes as its number says, 0 to 7.
fn send(stream: &mut TcpStream) {
    let mut bytes = Vec::new();
    for number in 0..BATCH {
        let mut head = [0; HEADER_BYTES];
        let (slot, sequence) = (number, u64::from(number));
        let reply_inline_bytes = u64::from(number % 8);
        let opcode = opcode::MEASURE;
        Header { opcode, tag: TAG, slot, sequence, reply_inline_bytes, ..Header::default() }
            .encode(&mut head);
        bytes.extend_from_slice(&head);
    }
    stream.write_all(&bytes).expect("sent");
}

/// Statuses of the replies of a batch, whose payloads are as they should be.
fn statuses(stream: &mut TcpStream) -> Vec<i32> {
    let mut head = [0; HEADER_BYTES];
    let replies = (0..u64::from(BATCH)).map(|number| {
        stream.read_exact(&mut head).expect("a reply");
        let reply = Header::decode(&head).expect("a header");
        assert_eq!((reply.sequence, reply.inline_bytes), (number, number % 8));
        let mut payload = vec![0; reply.inline_bytes as usize];
        stream.read_exact(&mut payload).expect("its payload");
        assert_eq!(payload, number.to_le_bytes()[..payload.len()]);
        reply.status
    });
    replies.collect()
}

fn expected(status: i32) -> Vec<i32> {
    // What has failed by itself keeps its own errno.
    (0..BATCH).map(|number| if number == 3 { -libc::ENOENT } else { status }).collect()
}

#[test]
fn a_batch_is_settled_once_and_before_its_replies_leave() {
    let state = Arc::new(State::default());
    let engine = serve(&state);
    let mut stream = client(&engine, TAG);
    send(&mut stream);
    eventually("it settles", || state.is_settling.load(Ordering::SeqCst));
    assert_eq!(state.called.load(Ordering::SeqCst), BATCH);
    stream.set_nonblocking(true).expect("set");
    let early = stream.peek(&mut [0; 1]).expect_err("nothing has left").kind();
    assert_eq!(early, ErrorKind::WouldBlock);
    stream.set_nonblocking(false).expect("set");
    state.let_settle(true);
    assert_eq!(statuses(&mut stream), expected(0));
    assert_eq!(state.settled.load(Ordering::SeqCst), 1);
}

#[test]
fn sessions_share_what_is_settled_and_what_fails() {
    let state = Arc::new(State::default());
    state.status.store(-libc::EIO, Ordering::SeqCst);
    let engine = serve(&state);
    let mut streams: Vec<_> = (0..3).map(|_| client(&engine, TAG)).collect();
    // While the first one's batch is being settled, those of the others arrive.
    send(&mut streams[0]);
    eventually("it settles", || state.is_settling.load(Ordering::SeqCst));
    streams[1..].iter_mut().for_each(send);
    state.let_settle(true);
    for stream in &mut streams {
        assert_eq!(statuses(stream), expected(-libc::EIO));
    }
    assert!(state.settled.load(Ordering::SeqCst) <= 3);
    // What failed is over: the next ones are judged by themselves.
    state.status.store(0, Ordering::SeqCst);
    for stream in &mut streams {
        send(stream);
        assert_eq!(statuses(stream), expected(0));
    }
}

#[test]
fn a_request_whose_bulk_comes_with_its_stream_is_answered() {
    const BULK_BYTES: usize = 3000;
    let state = Arc::new(State::default());
    state.let_settle(true);
    let engine = serve(&state);
    let (session, never) = (new_session().expect("random bytes"), AtomicBool::new(false));
    let open = |role| {
        let (plan, socket) = (endpoint(&engine, TAG), SocketPlan::default());
        let opened = connect(&plan, role, session, &[], &socket, None, WAIT.as_nanos() as u64, &never);
        let stream = opened.expect("let in").stream;
        stream.set_nonblocking(false).expect("set");
        stream.set_read_timeout(Some(WAIT)).expect("set");
        stream
    };
    let mut messages = open(Role::Messages);
    // Two requests in one segment: when the first is answered, the second waits for its bulk.
    let mut bytes = [0; 2 * HEADER_BYTES];
    let (heads, _) = bytes.as_chunks_mut::<HEADER_BYTES>();
    let small = Header { opcode: opcode::MEASURE, tag: TAG, ..Header::default() };
    small.encode(&mut heads[0]);
    Header { slot: 1, sequence: 1, bulk_bytes: BULK_BYTES as u64, ..small }.encode(&mut heads[1]);
    messages.write_all(&bytes).expect("sent");
    let mut head = [0; HEADER_BYTES];
    messages.read_exact(&mut head).expect("the first is answered");
    // The thread settles what another asked for, while the stream comes with all of its bytes.
    state.let_settle(false);
    state.is_settling.store(false, Ordering::SeqCst);
    let mut other = client(&engine, TAG);
    send(&mut other);
    eventually("it settles", || state.is_settling.load(Ordering::SeqCst));
    let mut bulk = open(Role::Bulk);
    let mut value = [7; BULK_HEADER_BYTES + BULK_BYTES];
    BulkHeader { slot: 1, bytes: BULK_BYTES as u64 }
        .encode(value.first_chunk_mut().expect("room for the header"));
    bulk.write_all(&value).expect("sent");
    state.let_settle(true);
    messages.read_exact(&mut head).expect("the second is answered");
    assert_eq!(Header::decode(&head).expect("a header").sequence, 1);
    assert_eq!(statuses(&mut other), expected(0));
}
