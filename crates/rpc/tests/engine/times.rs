//! Tests of times that engines tell: waits and work of known length, to those who ask.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

use rpc::engine::{Engine, EngineRequest};
use rpc::wire::{HEADER_BYTES, Header, ServerTimes, flag, opcode};
use rpc::{Answer, Call, Service};

use crate::common::{Lines, client, request};

const TAG: u32 = 2;

/// Takes as many milliseconds for a request as its seed says, and as long again as is said here to make changes durable.
struct Slow {
    settle: Option<Duration>,
    is_unsettled: bool,
}

impl Service for Slow {
    fn call(&mut self, call: &Call<'_>, _answer: &mut Answer<'_>) -> i32 {
        self.is_unsettled = self.settle.is_some();
        std::thread::sleep(Duration::from_millis(u64::from(call.seed)));
        0
    }

    fn defer(&mut self) -> bool {
        self.settle.is_some()
    }

    fn is_unsettled(&self) -> bool {
        self.is_unsettled
    }

    fn settle(&mut self) -> i32 {
        self.is_unsettled = false;
        std::thread::sleep(self.settle.unwrap_or_default());
        0
    }
}

fn serve(settle: Option<Duration>) -> Engine {
    let service = Arc::new(move |_| -> Box<dyn Service> { Box::new(Slow { settle, is_unsettled: false }) });
    Engine::start(EngineRequest { service, ..request(&Lines::default()) }).expect("an engine")
}

/// Sends requests of so many milliseconds with one call.
fn send(stream: &mut TcpStream, flags: u16, ms: &[u32]) {
    let mut bytes = Vec::new();
    for &seed in ms {
        let mut head = [0; HEADER_BYTES];
        Header { opcode: opcode::MEASURE, flags, tag: TAG, seed, ..Header::default() }.encode(&mut head);
        bytes.extend_from_slice(&head);
    }
    stream.write_all(&bytes).expect("sent");
}

fn reply(stream: &mut TcpStream) -> Header {
    let mut head = [0; HEADER_BYTES];
    stream.read_exact(&mut head).expect("a reply");
    Header::decode(&head).expect("a header")
}

/// Times of the next reply, in milliseconds.
fn told_ms(stream: &mut TcpStream) -> (u64, u64) {
    let times = ServerTimes::of(&reply(stream)).expect("times");
    (times.queue_ns / 1_000_000, times.service_ns / 1_000_000)
}

#[test]
fn work_and_the_wait_for_others_are_told_to_those_who_ask() {
    let engine = serve(None);
    let mut stream = client(&engine, TAG);
    send(&mut stream, 0, &[1]);
    let header = reply(&mut stream);
    let fields = (header.flags, header.reply_inline_bytes, header.reply_bulk_bytes);
    assert_eq!(fields, (flag::REPLY, 0, 0), "as it was before there were times");
    send(&mut stream, flag::TIMED, &[40, 30]);
    let [first, second] = [told_ms(&mut stream), told_ms(&mut stream)];
    // The first reply leaves with the second.
    assert!((40..70).contains(&first.1) && first.0 >= 30, "{first:?}");
    assert!((30..60).contains(&second.1) && second.0 >= 40, "{second:?}");
    // Others on the same connection stay untimed.
    send(&mut stream, 0, &[1]);
    assert_eq!(reply(&mut stream).flags, flag::REPLY);
    send(&mut stream, flag::TIMED, &[20]);
    let alone = told_ms(&mut stream);
    assert!(alone.1 >= 20 && alone.0 < 15, "{alone:?}");
}

#[test]
fn making_changes_durable_is_work() {
    let engine = serve(Some(Duration::from_millis(50)));
    let mut stream = client(&engine, TAG);
    send(&mut stream, flag::TIMED, &[10]);
    let times = told_ms(&mut stream);
    assert!(times.1 >= 60 && times.0 < 40, "{times:?}");
}

#[test]
fn a_request_waits_while_its_server_is_at_another_ones() {
    let engine = serve(None);
    let (mut busy, mut waits) = (client(&engine, TAG), client(&engine, TAG));
    // From its first request on, the kernel says when it got the next.
    send(&mut waits, flag::TIMED, &[0]);
    told_ms(&mut waits);
    send(&mut busy, 0, &[300]);
    std::thread::sleep(Duration::from_millis(100));
    send(&mut waits, flag::TIMED, &[0]);
    let times = told_ms(&mut waits);
    assert!((100..300).contains(&times.0) && times.1 < 50, "{times:?}");
}
