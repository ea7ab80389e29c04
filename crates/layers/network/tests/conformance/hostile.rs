//! Bytes of peers that are no clients over a socket, while a good client goes on.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rpc::handshake::connect;
use rpc::wire::{BULK_HEADER_BYTES, BulkHeader, HEADER_BYTES, Header, flag, opcode};
use rpc::{Limits, Poll, Role, SocketPlan};

use super::peer::{self, Peer, PeerOptions};
use super::support::{Rig, Setup, bulk, errno, iov, on_endpoints, pattern};

const LIMITS: Limits = Limits {
    inline_bytes_max: 100_000,
    bulk_bytes_max: 4 << 20,
    connections_max: 64,
    memory_bytes_max: 16 << 20,
    stall_ns_max: 200_000_000,
};

/// Endpoints on sockets, one for each way to wait.
fn peers() -> impl Iterator<Item = Peer> {
    [Poll::Spin, Poll::Adaptive, Poll::Block]
        .into_iter()
        .map(|poll| Peer::start("tcp", &PeerOptions { poll, limits: LIMITS, ..PeerOptions::default() }))
}

fn good(peer: &Peer) -> Rig {
    let entry = on_endpoints().find(|entry| entry.name == "tcp").expect("the driver");
    Setup::new(peer.plans()).carrying(bulk(10_000), iov(500)).rig(entry)
}

struct Raw(TcpStream);

impl Raw {
    fn connect(peer: &Peer, role: Role, session: u8) -> Self {
        let never = AtomicBool::new(false);
        let (plan, socket) = (&peer.plans()[0], SocketPlan { no_delay: true, ..SocketPlan::default() });
        let connected = connect(plan, role, [session; 16], &[], &socket, None, 10_000_000_000, &never);
        let stream = connected.expect("connected").stream;
        stream.set_nonblocking(false).expect("an option");
        stream.set_read_timeout(Some(Duration::from_secs(10))).expect("an option");
        Self(stream)
    }

    fn send(&mut self, bytes: &[u8]) {
        // The endpoint may have closed it already.
        let _ = self.0.write_all(bytes);
    }

    fn request(&mut self, header: &Header) {
        let mut bytes = [0; HEADER_BYTES];
        header.encode(&mut bytes);
        self.send(&bytes);
    }

    fn reply(&mut self) -> (Header, Vec<u8>) {
        let mut bytes = [0; HEADER_BYTES];
        self.0.read_exact(&mut bytes).expect("a reply");
        let header = Header::decode(&bytes).expect("a header");
        let mut payload = vec![0; header.inline_bytes as usize];
        self.0.read_exact(&mut payload).expect("its payload");
        (header, payload)
    }

    /// Whether the endpoint closes it.
    fn is_closed(&mut self) -> bool {
        let mut bytes = vec![0; 1 << 16];
        loop {
            match self.0.read(&mut bytes) {
                Ok(0) => return true,
                Ok(_) => {}
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                    return false;
                }
                Err(_) => return true,
            }
        }
    }
}

const MEASURE: Header = Header {
    opcode: opcode::MEASURE,
    flags: 0,
    slot: 1,
    status: 0,
    tag: 0,
    inline_bytes: 0,
    bulk_bytes: 0,
    reply_inline_bytes: 0,
    reply_bulk_bytes: 0,
    sequence: 0,
    seed: 0,
};

/// Sends `bytes`, sees the connection closed with a line that says `why`, and a good client unharmed.
fn is_closed_for(peer: &Peer, client: &mut Rig, bytes: &[u8], why: &str) {
    let closed = || peer.endpoints[0].counters.closed_hostile.load(Ordering::Relaxed);
    let before = closed();
    peer.log.lock().expect("the log").clear();
    let mut raw = Raw::connect(peer, Role::Messages, 9);
    raw.send(bytes);
    assert!(raw.is_closed(), "{why}");
    assert!(peer.wait_until(|_| closed() == before + 1), "{why}");
    let log = peer.log.lock().expect("the log").clone();
    assert!(log.len() == 1 && log[0].contains(why) && log[0].contains("127.0.0.1"), "{why}: {log:?}");
    client.echo("a good client", 2, 0);
}

fn encoded(header: &Header) -> Vec<u8> {
    let mut bytes = [0; HEADER_BYTES];
    header.encode(&mut bytes);
    bytes.to_vec()
}

#[test]
fn what_no_client_sends_closes_its_connection() {
    for peer in peers() {
        let mut client = good(&peer);
        let mut check = |bytes: &[u8], why: &str| is_closed_for(&peer, &mut client, bytes, why);
        check(&[0xff; 64], "does not match this protocol");
        check(
            b"GET / HTTP/1.1\r\nHost: localhost\r\nUser-Agent: somebody/1.0 with a long name\r\n\r\n",
            "protocol",
        );
        let mut flags = encoded(&MEASURE);
        flags[7] = 0x80;
        check(&flags, "unknown flags");
        check(&encoded(&Header { flags: flag::REPLY, ..MEASURE }), "not a request");
        check(&encoded(&Header { flags: flag::RMA, ..MEASURE }), "not a request");
        check(&encoded(&Header { tag: 3, ..MEASURE }), "tag 3");
        check(&encoded(&Header { inline_bytes: 1 << 50, ..MEASURE }), "impossible sizes");
        check(&encoded(&Header { inline_bytes: 100_001, ..MEASURE }), "the limit is 100000");
        check(&encoded(&Header { reply_inline_bytes: 100_001, ..MEASURE }), "the limit is 100000");
        check(&encoded(&Header { bulk_bytes: 1 << 40, ..MEASURE }), "the limit is 4194304");
        check(&encoded(&Header { reply_bulk_bytes: 5 << 20, ..MEASURE }), "the limit is 4194304");
        // It waits for a stream that never comes.
        check(&encoded(&Header { bulk_bytes: 10, ..MEASURE }), "no stream");
        check(&encoded(&Header { reply_bulk_bytes: 10, ..MEASURE }), "no stream");
        // Half a frame, and half a payload.
        check(&encoded(&MEASURE)[..40], "in the middle of a message");
        check(&encoded(&Header { inline_bytes: 100, ..MEASURE }), "in the middle of a message");
    }
}

#[test]
fn bulk_that_no_request_tells_of_closes_the_session() {
    for peer in peers() {
        let mut client = good(&peer);
        let told = BulkHeader { slot: 1, bytes: 10 };
        for (request, sent, why) in [
            (None, Some(told), "no request announced"),
            (Some(10), Some(BulkHeader { slot: 2, ..told }), "does not match its request"),
            (Some(10), Some(BulkHeader { bytes: 11, ..told }), "does not match its request"),
            (Some(1 << 20), None, "protocol"),
            (Some(1 << 20), Some(BulkHeader { bytes: 1 << 20, ..told }), "has not arrived"),
        ] {
            peer.log.lock().expect("the log").clear();
            let mut messages = Raw::connect(&peer, Role::Messages, 7);
            let mut stream = Raw::connect(&peer, Role::Bulk, 7);
            if let Some(bulk_bytes) = request {
                messages.request(&Header { bulk_bytes, ..MEASURE });
            }
            let mut bytes = [0x11; BULK_HEADER_BYTES];
            if let Some(header) = sent {
                header.encode(&mut bytes);
            }
            stream.send(&bytes);
            stream.send(&[0; 100]);
            assert!(messages.is_closed() && stream.is_closed(), "{why}");
            assert!(peer.wait_until(|peer| !peer.log.lock().expect("the log").is_empty()), "{why}");
            let log = peer.log.lock().expect("the log").clone();
            assert!(log.iter().any(|line| line.contains(why)), "{why}: {log:?}");
            client.echo("a good client", 2, 0);
        }
        // A stream for bulk alone.
        assert!(Raw::connect(&peer, Role::Bulk, 8).is_closed());
        client.echo("a good client", 2, 0);
    }
}

#[test]
fn random_bytes_harm_nobody() {
    for peer in peers() {
        let mut client = good(&peer);
        for seed in 0..60_u64 {
            let mut messages = Raw::connect(&peer, Role::Messages, 5);
            let mut stream = Raw::connect(&peer, Role::Bulk, 5);
            let mut bytes = pattern(seed, 64 + (seed as usize * 977) % 3000);
            if seed % 2 == 0 {
                bytes[..4].copy_from_slice(b"SRP1");
                // Flags that are known, so that the sizes are looked at.
                bytes[6..8].copy_from_slice(&[(seed % 8) as u8, 0]);
                bytes[16..20].fill(0);
                for size in 0..4 {
                    bytes[24 + 8 * size + 2..32 + 8 * size].fill(0);
                }
            }
            messages.send(&bytes);
            stream.send(&pattern(seed + 1, 500));
            let _ = messages.0.shutdown(Shutdown::Write);
            assert!(messages.is_closed(), "seed {seed}");
            client.echo("a good client", 1, seed);
        }
        assert!(peer.wait_until(|peer| peer.endpoints[0].counters.connections.load(Ordering::Relaxed) == 2));
    }
}

#[test]
fn a_client_that_does_not_read_is_stopped_and_closed() {
    for peer in peers() {
        let mut client = good(&peer);
        let mut deaf = Raw::connect(&peer, Role::Messages, 6);
        deaf.0.set_write_timeout(Some(Duration::from_millis(100))).expect("an option");
        let request = encoded(&Header { reply_inline_bytes: 50_000, ..MEASURE });
        let many: Vec<u8> = request.iter().copied().cycle().take(64 * 1000).collect();
        let mut is_stopped = false;
        for _ in 0..2000 {
            if deaf.0.write_all(&many).is_err() {
                is_stopped = true;
                break;
            }
            client.echo("a good client", 1, 0);
            assert!(peer.budget.used_bytes() < 4 << 20, "{} bytes", peer.budget.used_bytes());
        }
        assert!(is_stopped, "everything was taken");
        let says = |peer: &Peer| {
            peer.log.lock().expect("the log").iter().any(|line| line.contains("has not read its replies"))
        };
        assert!(peer.wait_until(says));
        client.echo("a good client", 2, 0);
    }
}

#[test]
fn memory_is_not_taken_beyond_the_budget() {
    for peer in peers() {
        let mut client = good(&peer);
        client.echo("a good client", 1, 0);
        let mut held = Vec::new();
        for session in 20..30 {
            let mut messages = Raw::connect(&peer, Role::Messages, session);
            let mut stream = Raw::connect(&peer, Role::Bulk, session);
            messages.request(&Header { bulk_bytes: 4 << 20, ..MEASURE });
            let mut header = [0; BULK_HEADER_BYTES];
            BulkHeader { slot: 1, bytes: 4 << 20 }.encode(&mut header);
            stream.send(&header);
            held.push((messages, stream));
        }
        let says = |peer: &Peer| {
            peer.log.lock().expect("the log").iter().any(|line| line.contains("buffer memory is used up"))
        };
        assert!(peer.wait_until(says));
        assert!(peer.budget.used_bytes() <= LIMITS.memory_bytes_max);
        drop(held);
        client.echo("a good client", 2, 0);
    }
}

#[test]
fn pings_and_statistics_are_answered_by_the_endpoint_itself() {
    for peer in peers() {
        good(&peer).echo("a good client", 1, 0);
        let mut raw = Raw::connect(&peer, Role::Messages, 3);
        raw.request(&Header { opcode: opcode::PING, slot: 77, sequence: 5, ..MEASURE });
        let (header, payload) = raw.reply();
        assert_eq!((header.slot, header.sequence, header.status, payload.len()), (77, 5, 0, 0));
        assert_eq!((header.opcode, header.flags), (opcode::PING, flag::REPLY));
        let ask = Header { opcode: opcode::STATISTICS, reply_inline_bytes: 4096, ..MEASURE };
        raw.request(&ask);
        let said: serde_json::Value = serde_json::from_slice(&raw.reply().1).expect("JSON");
        // Eight RPCs and a ping.
        assert_eq!(said["rpcs"], 9, "{said}");
        assert_eq!((&said["received_bytes"], &said["sent_bytes"]), (&80_000.into(), &4000.into()), "{said}");
        assert!(said["cpu_user_ns"].is_u64() && said["cpu_system_ns"].is_u64() && said["poll"].is_string());
        raw.request(&Header { reply_inline_bytes: 10, ..ask });
        assert_eq!(raw.reply().0.status, -libc::EMSGSIZE);
    }
}

#[test]
fn a_byte_now_and_then_keeps_nothing_open() {
    for peer in peers() {
        let mut client = good(&peer);
        for (request, role, begin) in [
            (Header { inline_bytes: 100_000, ..MEASURE }, Role::Messages, Vec::new()),
            (Header { bulk_bytes: 1 << 20, ..MEASURE }, Role::Bulk, {
                let mut header = [0; BULK_HEADER_BYTES];
                BulkHeader { slot: 1, bytes: 1 << 20 }.encode(&mut header);
                header.to_vec()
            }),
        ] {
            let mut messages = Raw::connect(&peer, Role::Messages, 4);
            messages.request(&request);
            let mut held = None;
            let mut stream = messages;
            if role == Role::Bulk {
                held = Some(std::mem::replace(&mut stream, Raw::connect(&peer, Role::Bulk, 4)));
            }
            stream.send(&begin);
            // Far below the stall limit.
            stream.0.set_read_timeout(Some(Duration::from_millis(20))).expect("an option");
            let begun = Instant::now();
            while !stream.is_closed() {
                assert!(begun.elapsed() < Duration::from_secs(10), "{role:?}: it is still open");
                stream.send(&[0]);
            }
            drop(held);
            client.echo("a good client", 2, 0);
        }
    }
}

#[test]
fn what_a_client_took_is_given_back_when_it_leaves() {
    for peer in peers() {
        let entry = on_endpoints().find(|entry| entry.name == "tcp").expect("the driver");
        Setup::new(peer.plans()).carrying(bulk(4 << 20), bulk(4 << 20)).rig(entry).echo(
            "a large client",
            1,
            0,
        );
        // What is left is for the message of a reply.
        let is_given_back = |peer: &Peer| peer.budget.used_bytes() <= 64 << 10;
        assert!(peer.wait_until(is_given_back), "{} bytes", peer.budget.used_bytes());
    }
}

#[test]
fn bytes_of_one_client_are_in_no_reply_to_another() {
    struct Untouched;
    impl rpc::Service for Untouched {
        fn call(&mut self, call: &rpc::Call<'_>, answer: &mut rpc::Answer<'_>) -> i32 {
            answer.bulk = rpc::BulkReply::Scratch(call.reply_bulk_bytes as usize);
            0
        }
    }
    let peer =
        Peer::serving(&PeerOptions { limits: LIMITS, ..PeerOptions::default() }, || Box::new(Untouched));
    let mut secret = Raw::connect(&peer, Role::Messages, 1);
    let mut stream = Raw::connect(&peer, Role::Bulk, 1);
    secret.request(&Header { bulk_bytes: 10_000, ..MEASURE });
    let mut header = [0; BULK_HEADER_BYTES];
    BulkHeader { slot: 1, bytes: 10_000 }.encode(&mut header);
    stream.send(&header);
    stream.send(&[0x5e; 10_000]);
    assert_eq!(secret.reply().0.status, 0);
    let mut other = Raw::connect(&peer, Role::Messages, 2);
    let mut stream = Raw::connect(&peer, Role::Bulk, 2);
    other.request(&Header { reply_bulk_bytes: 10_000, ..MEASURE });
    assert_eq!(other.reply().0.bulk_bytes, 10_000);
    let mut bytes = vec![0; BULK_HEADER_BYTES + 10_000];
    stream.0.read_exact(&mut bytes).expect("the bulk");
    assert!(bytes[BULK_HEADER_BYTES..].iter().all(|&byte| byte == 0));
}

/// Result of an RPC when the engine answers it with the header that `change` makes of the right one.
fn answered(change: impl FnOnce(&mut Header) + Send + 'static) -> i64 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let plan = peer::plan("tcp", listener.local_addr().expect("an address"), 0);
    let engine = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("the client");
        stream.set_read_timeout(Some(Duration::from_secs(10))).expect("an option");
        peer::shake(&mut stream, &[]).expect("a client");
        let mut bytes = [0; HEADER_BYTES];
        stream.read_exact(&mut bytes).expect("a request");
        let mut header = Header::decode(&bytes).expect("a header");
        (header.flags, header.inline_bytes) = (flag::REPLY, 8);
        change(&mut header);
        let mut bytes = encoded(&header);
        bytes.resize(HEADER_BYTES + header.inline_bytes as usize, 0);
        stream.write_all(&bytes).expect("a reply");
        stream
    });
    let entry = on_endpoints().find(|entry| entry.name == "tcp").expect("the driver");
    let mut client = Setup::new(vec![plan]).carrying(iov(0), iov(8)).rig(entry);
    let result = client.run(client.rpc(3, 0, 77));
    drop(client);
    engine.join().expect("the engine");
    result
}

#[test]
fn a_reply_to_another_rpc_or_a_short_one_is_no_success() {
    assert_eq!(answered(|_| {}), 8);
    assert_eq!(answered(|header| header.sequence -= 1), errno(libc::EPROTO));
    assert_eq!(answered(|header| header.slot = 2), errno(libc::EPROTO));
    assert_eq!(answered(|header| header.inline_bytes = 9), errno(libc::EPROTO));
    assert_eq!(answered(|header| header.inline_bytes = 7), errno(libc::EBADMSG));
    assert_eq!(answered(|header| header.status = 5), errno(libc::EPROTO));
}
