//! Outcomes of RPCs when endpoints die, are not there, or do not answer.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use driver::{Completion, Wait};
use rpc::wire::BULK_HEADER_BYTES;
use rpc::{Answer, Call, Role, Service};
use workload::engine::Feature;

use super::peer::{Peer, PeerOptions, plan, shake};
use super::setup;
use super::support::{Entry, POLLS, Rig, SECOND_NS, Setup, bulk, errno, iov, on_endpoints};

fn sockets() -> &'static Entry {
    on_endpoints().find(|entry| entry.name == "tcp").expect("it is always there")
}

/// Reaps until `count` have completed; each slot once.
fn collect(rig: &mut Rig, count: usize) -> BTreeMap<u32, i64> {
    let mut results = BTreeMap::new();
    let begin = Instant::now();
    while results.len() < count {
        rig.done.clear();
        rig.driver.reap(Wait::Timeout { count: 1, timeout_ns: SECOND_NS }, &mut rig.done).expect("reap");
        for &Completion { slot, result } in rig.done.as_slice() {
            assert!(results.insert(slot, result).is_none(), "slot {slot} twice");
        }
        assert!(begin.elapsed() < Duration::from_secs(20), "{} of {count} have completed", results.len());
    }
    results
}

fn says_gone(result: i64) -> bool {
    [libc::ECONNRESET, libc::EPIPE, libc::ENOTCONN, libc::ECONNREFUSED]
        .iter()
        .any(|&code| result == errno(code))
}

#[test]
fn a_killed_endpoint_fails_its_own_rpcs_alone() {
    for entry in on_endpoints() {
        for poll in POLLS {
            let (peer, base) = setup(entry, &PeerOptions { endpoints: 2, ..PeerOptions::default() });
            let mut peer = peer.expect("a peer");
            let setup = Setup { poll, connections: entry.connections(2), depth: 16, ..base };
            let mut rig = setup.carrying(bulk(200_000), bulk(100_000)).rig(entry);
            rig.echo(entry.name, 2, 0);
            let batch: Vec<_> = (0..16).map(|slot| rig.rpc(slot, slot % 2, u64::from(slot))).collect();
            batch.iter().for_each(|rpc| rig.fill(rpc));
            rig.done.clear();
            assert_eq!(rig.driver.submit(&batch, &mut rig.done).expect("submit").accepted, 16);
            peer.endpoints[0].kill();
            for (slot, result) in collect(&mut rig, 16) {
                let rpc = &batch[slot as usize];
                if result == rpc.bytes as i64 {
                    rig.check(rpc);
                } else {
                    assert!(rpc.endpoint == 0 && says_gone(result), "{}: {slot} {result}", entry.name);
                }
            }
            // Later ones fail soon but not at once; the other endpoint goes on.
            let begin = Instant::now();
            for _ in 0..10 {
                assert!(says_gone(rig.run(rig.rpc(0, 0, 0))), "{}", entry.name);
            }
            let each = begin.elapsed() / 10;
            assert!(each > Duration::from_micros(50) && each < Duration::from_millis(200), "{each:?}");
            let rpc = rig.rpc(1, 1, 5);
            rig.fill(&rpc);
            assert_eq!(rig.run(rpc), rpc.bytes as i64, "{}", entry.name);
            rig.check(&rpc);
        }
    }
}

#[test]
fn an_endpoint_that_is_not_there_fails_its_own_rpcs_alone() {
    for entry in on_endpoints() {
        let (_peer, base) = setup(entry, &PeerOptions::default());
        let closed = TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("an address");
        let mut endpoints = vec![entry.plan(closed, 4)];
        endpoints.extend(base.endpoints.clone());
        let mut rig = Setup { endpoints, ..base.clone() }.carrying(iov(10), iov(20)).rig(entry);
        assert!(rig.notes.iter().any(|note| note.contains("0:4")), "{:?}", rig.notes);
        assert_eq!(rig.run(rig.rpc(0, 0, 0)), errno(libc::ECONNREFUSED), "{}", entry.name);
        let rpc = rig.rpc(0, 1, 1);
        rig.fill(&rpc);
        assert_eq!(rig.run(rpc), 30, "{}", entry.name);
        rig.check(&rpc);
        let none = Setup { endpoints: vec![entry.plan(closed, 4)], ..base };
        let error = none.open(entry).err().expect("a refusal");
        assert_eq!((error.errno(), error.exit_code()), (Some(libc::ECONNREFUSED), 1), "{error}");
        let line = error.to_string();
        assert!(line.contains("0:4") && line.contains(&closed.to_string()) && !line.contains('\n'), "{line}");
    }
}

#[test]
fn an_endpoint_that_does_not_answer_costs_the_time_out() {
    for entry in on_endpoints() {
        for poll in POLLS {
            let silent = Peer::start(entry.name, &PeerOptions { is_silent: true, ..PeerOptions::default() });
            let (_peer, base) = setup(entry, &PeerOptions::default());
            let mut endpoints = base.endpoints.clone();
            endpoints.extend(silent.plans());
            let setup = Setup { poll, endpoints, timeout_ns: SECOND_NS / 2, ..base };
            let mut rig = setup.carrying(bulk(3_000_000), bulk(1000)).rig(entry);
            let batch: Vec<_> = (0..8).map(|slot| rig.rpc(slot, slot % 2, 0)).collect();
            batch.iter().for_each(|rpc| rig.fill(rpc));
            let begin = Instant::now();
            assert_eq!(rig.driver.submit(&batch, &mut rig.done).expect("submit").accepted, 8);
            for (slot, result) in collect(&mut rig, 8) {
                let expected = if slot % 2 == 0 { 3_001_000 } else { errno(libc::ETIMEDOUT) };
                assert_eq!(result, expected, "{}: {slot}", entry.name);
            }
            let elapsed = begin.elapsed();
            assert!(elapsed > Duration::from_millis(490) && elapsed < Duration::from_secs(10), "{elapsed:?}");
            assert_eq!(rig.run(rig.rpc(0, 1, 0)), errno(libc::ETIMEDOUT), "{}", entry.name);
            let rpc = rig.rpc(0, 0, 3);
            rig.fill(&rpc);
            assert_eq!(rig.run(rpc), 3_001_000, "{}", entry.name);
        }
    }
}

#[test]
fn waiting_ends_with_the_time() {
    for entry in on_endpoints() {
        for poll in POLLS {
            let silent = Peer::start(entry.name, &PeerOptions { is_silent: true, ..PeerOptions::default() });
            let mut rig = Setup { poll, ..Setup::new(silent.plans()) }.rig(entry);
            let batch = [rig.rpc(0, 0, 0), rig.rpc(1, 0, 1)];
            assert_eq!(rig.driver.submit(&batch, &mut rig.done).expect("submit").accepted, 2);
            // Nothing to wait for is no wait, whatever is in flight.
            for wait in [Wait::AtLeast(0), Wait::Timeout { count: 0, timeout_ns: 60 * SECOND_NS }] {
                let begin = Instant::now();
                rig.driver.reap(wait, &mut rig.done).expect("reap");
                assert!(begin.elapsed() < Duration::from_secs(5), "{wait:?}");
            }
            for timeout_ns in [0, 300_000, 20_000_000] {
                let begin = Instant::now();
                let wait = Wait::Timeout { count: 2, timeout_ns };
                rig.driver.reap(wait, &mut rig.done).expect("reap");
                assert!(rig.done.is_empty() && begin.elapsed().as_nanos() as u64 >= timeout_ns);
                assert!(begin.elapsed() < Duration::from_secs(5), "{:?}", begin.elapsed());
            }
        }
    }
}

#[test]
fn an_engine_that_stops_and_starts_again_serves_new_drivers() {
    for entry in on_endpoints() {
        for _ in 0..3 {
            let peer = Peer::start(entry.name, &PeerOptions::default());
            Setup::new(peer.plans()).carrying(bulk(70_000), iov(8)).rig(entry).echo(entry.name, 2, 0);
        }
    }
}

/// Bytes of a request that failed are not the sender's any more: what the peer reads later is none of what the buffer got since.
#[test]
fn memory_that_the_kernel_still_sends_from_is_not_handed_back() {
    const BYTES: u64 = 16 << 20;
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("bound");
    let (sender, bulk_streams) = channel::<TcpStream>();
    // Lets everybody in and reads nothing. The thread ends with the process.
    std::thread::spawn(move || {
        let mut kept = Vec::new();
        for mut stream in listener.incoming().flatten() {
            match shake(&mut stream, &[]).map(|hello| hello.role) {
                Some(Role::Bulk) => sender.send(stream).unwrap_or_default(),
                _ => kept.push(stream),
            }
        }
    });
    let setup = Setup {
        zero_copy: Feature::On,
        timeout_ns: SECOND_NS / 2,
        depth: 1,
        ..Setup::new(vec![plan("tcp", address, 0)])
    };
    let mut rig = setup.carrying(bulk(BYTES), iov(8)).rig(sockets());
    let mut peer = bulk_streams.recv().expect("a stream for bulk");
    let (first, second) = (rig.rpc(0, 0, 1), rig.rpc(0, 0, 2));
    rig.fill(&first);
    assert_eq!(rig.run(first), errno(libc::ETIMEDOUT));
    rig.fill(&second);
    let mut came = Vec::new();
    // How the stream ends does not matter.
    let _ = peer.read_to_end(&mut came);
    let sent = rig.payload(1);
    let came = came.get(BULK_HEADER_BYTES..).unwrap_or_default();
    assert!(came.len() < sent.len(), "the sockets took all of it: it shows nothing");
    assert!(*came == sent[..came.len()], "the peer has read what the buffer got later");
    assert!(rig.tally("zero_copy_sends") > Some(0.0));
}

static IS_HELD: AtomicBool = AtomicBool::new(false);

/// Answers when it is let.
struct Late;

impl Service for Late {
    fn call(&mut self, _: &Call<'_>, _: &mut Answer<'_>) -> i32 {
        while IS_HELD.load(Ordering::SeqCst) {
            std::thread::sleep(Duration::from_millis(1));
        }
        0
    }
}

#[test]
fn an_endpoint_that_was_late_is_connected_again() {
    for bytes in [0, 200_000] {
        let peer = Peer::serving(&PeerOptions::default(), || Box::new(Late));
        let setup = Setup { timeout_ns: SECOND_NS, depth: 1, ..Setup::new(peer.plans()) };
        let request = if bytes == 0 { iov(0) } else { bulk(bytes) };
        let mut rig = setup.carrying(request, iov(0)).rig(sockets());
        assert_eq!(rig.run(rig.rpc(0, 0, 0)), bytes as i64);
        IS_HELD.store(true, Ordering::SeqCst);
        assert_eq!(rig.run(rig.rpc(0, 0, 1)), errno(libc::ETIMEDOUT));
        IS_HELD.store(false, Ordering::SeqCst);
        let begin = Instant::now();
        let mut sequence = 2;
        while rig.run(rig.rpc(0, 0, sequence)) != bytes as i64 {
            sequence += 1;
            assert!(begin.elapsed() < Duration::from_secs(60), "it stays gone");
        }
        for sequence in 0..10 {
            assert_eq!(rig.run(rig.rpc(0, 0, 1_000_000 + sequence)), bytes as i64);
        }
        assert!(rig.tally("sessions_reopened") >= Some(1.0));
        drop(rig);
    }
}
