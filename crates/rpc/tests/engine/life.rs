//! Starting, serving and stopping.

use std::net::{IpAddr, Ipv6Addr, SocketAddr, TcpListener};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use driver::ErrorKind;
use rpc::address::Provider;
use rpc::engine::{Engine, EngineRequest};
use rpc::{Answer, Call, Role, Service, SocketPlan, inquiry};

use crate::common::{Lines, POLL, endpoint, enter, eventually, ping, request, secret, serves, tags};

#[test]
fn every_tag_serves_by_the_map() {
    let engine =
        Engine::start(EngineRequest { tags: tags(16, 4), ..request(&Lines::default()) }).expect("an engine");
    let map = engine.tags();
    assert_eq!(map.to_string(), "22 tags: 0 metadata, 1 monitoring, 2-17 targets, 18-21 helpers");
    for tag in 0..22 {
        assert!(serves(&engine, tag, None), "tag {tag}");
        assert!(engine.counters(tag).is_some());
    }
    assert!(engine.counters(22).is_none());
    assert_eq!(engine.tag_name(17).expect("a target").to_string(), "target 15");
    assert!(!serves(&engine, 22, None));
}

#[test]
fn threads_are_named_by_tag_and_pinned_in_turn() {
    let allowed = rustix::thread::sched_getaffinity(None).expect("an affinity");
    let cores: Vec<u32> =
        (0..rustix::thread::CpuSet::MAX_CPU as u32).filter(|&core| allowed.is_set(core as usize)).collect();
    let seen = Arc::new(std::sync::Mutex::new(Vec::new()));
    let sink = Arc::clone(&seen);
    let service = Arc::new(move |tag: u32| -> Box<dyn Service> {
        let own = rustix::thread::sched_getaffinity(None).expect("an affinity");
        let pins: Vec<u32> = (0..1024).filter(|&core| own.is_set(core as usize)).collect();
        let name = std::thread::current().name().unwrap_or_default().to_owned();
        sink.lock().expect("a list").push((tag, name, pins));
        Box::new(rpc::measure::Measure::new())
    });
    let wanted =
        EngineRequest { service, cores: cores.clone(), tags: tags(2, 1), ..request(&Lines::default()) };
    let engine = Engine::start(wanted).expect("an engine");
    let mut seen = seen.lock().expect("a list").clone();
    seen.sort();
    let names: Vec<_> = seen.iter().map(|(_, name, _)| name.as_str()).collect();
    assert_eq!(names, ["tag0-metadata", "tag1-monitor", "tag2-target0", "tag3-target1", "tag4-help0"]);
    for (tag, _, pins) in &seen {
        assert_eq!(pins, &[cores[*tag as usize % cores.len()]], "tag {tag}");
    }
    drop(engine);
    let missing = EngineRequest { cores: vec![1023], ..request(&Lines::default()) };
    if !cores.contains(&1023) {
        let error = Engine::start(missing).expect_err("no such processor").to_string();
        assert!(error.contains("CPU 1023") && error.contains("accepted: "), "{error}");
    }
}

#[test]
fn statistics_tell_what_was_done() {
    let engine = Engine::start(request(&Lines::default())).expect("an engine");
    let target = endpoint(&engine, 2);
    let ask = || {
        inquiry::statistics(&target, &SocketPlan::default(), None, Duration::from_secs(20))
            .expect("an answer")
    };
    let before = ask();
    let mut connected = enter(&target, Role::Messages, None).expect("a connection");
    for _ in 0..5 {
        ping(&mut connected.stream, 2).expect("a reply");
    }
    let since = ask().since(&before);
    // The first question may count as well, once it was answered.
    assert!((5..=6).contains(&since.rpcs), "{since:?}");
    assert_eq!((since.errors, since.poll), (0, POLL));
    assert!(since.connections >= 1, "{since:?}");
    assert_eq!(
        inquiry::statistics(&endpoint(&engine, 9), &SocketPlan::default(), None, Duration::from_secs(5))
            .expect_err("no tag")
            .errno(),
        Some(libc::ENXIO)
    );
}

#[test]
fn stop_is_quick_while_clients_are_connected_and_may_be_called_again() {
    let lines = Lines::default();
    let engine = Engine::start(EngineRequest { tags: tags(4, 1), ..request(&lines) }).expect("an engine");
    let mut clients: Vec<_> = (0..7)
        .map(|tag| enter(&endpoint(&engine, tag), Role::Messages, None).expect("a connection").stream)
        .collect();
    for (tag, client) in (0..).zip(&mut clients) {
        ping(client, tag).expect("a reply");
    }
    let target = endpoint(&engine, 2);
    engine.stop();
    engine.stop();
    assert!(!lines.has("abandoned"), "{:?}", lines.all());
    for (tag, client) in (0..).zip(&mut clients) {
        assert!(ping(client, tag).is_err(), "tag {tag} still answers");
    }
    assert_eq!(
        enter(&target, Role::Messages, None).expect_err("it is gone").errno(),
        Some(libc::ECONNREFUSED)
    );
    drop(engine);
}

#[test]
fn it_listens_on_several_addresses_of_both_families() {
    let listen = ["[::1]:0", "127.0.0.1:0"].map(|text| text.parse().expect("an address")).to_vec();
    let engine = Engine::start(EngineRequest { listen, ..request(&Lines::default()) }).expect("an engine");
    assert!(engine.uri().starts_with("tcp://[::1]:"), "{}", engine.uri());
    assert!(serves(&engine, 0, None));
    for host in ["127.0.0.1", "localhost"] {
        let mut other = endpoint(&engine, 0);
        other.uri = other.uri.replace("[::1]", host);
        assert!(enter(&other, Role::Messages, None).is_ok(), "{}", other.uri);
    }
}

#[test]
fn beyond_loopback_a_token_is_required() {
    for address in ["0.0.0.0:0", "[::]:0", "192.0.2.1:0", "[::ffff:192.0.2.1]:0"] {
        let listen = vec!["127.0.0.1:0".parse().expect("an address"), address.parse().expect("an address")];
        let error = Engine::start(EngineRequest { listen, ..request(&Lines::default()) }).expect_err(address);
        assert_eq!((error.kind(), error.exit_code()), (ErrorKind::Unsafe, 2), "{error}");
        let text = error.to_string();
        assert!(text.contains("token is required beyond loopback") && text.contains("16 bytes"), "{text}");
        assert_eq!(text.lines().count(), 1);
    }
    let listen = vec!["0.0.0.0:0".parse().expect("an address")];
    let advertise = Some("127.0.0.1".to_owned());
    let wanted =
        EngineRequest { listen, advertise, secret: Some(secret(b'a')), ..request(&Lines::default()) };
    let engine = Engine::start(wanted).expect("with a token it may");
    assert!(serves(&engine, 0, Some(&secret(b'a'))));
    assert!(!serves(&engine, 0, None));
}

#[test]
fn what_cannot_be_is_refused_in_one_line() {
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let at = |address: SocketAddr| EngineRequest { listen: vec![address], ..request(&Lines::default()) };
    let base = || request(&Lines::default());
    let elsewhere = SocketAddr::new(IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1)), 0);
    let cases = [
        (at(taken.local_addr().expect("an address")), "another process listens on this address"),
        (EngineRequest { secret: Some(secret(b'a')), ..at(elsewhere) }, "this host has no such address"),
        (EngineRequest { listen: Vec::new(), ..base() }, "no address to listen on"),
        (EngineRequest { group: "a/b".to_owned(), ..base() }, "not a valid group name"),
        (EngineRequest { rank: u32::MAX, ..base() }, "is not a rank"),
        (EngineRequest { advertise: Some("a b".to_owned()), ..base() }, "not an endpoint address"),
        (EngineRequest { control: Some("a b".to_owned()), ..base() }, "not a control address"),
        (
            EngineRequest { attach_info_dir: Some(Path::new("/nonexistent").to_owned()), ..base() },
            "/nonexistent",
        ),
        (
            EngineRequest {
                socket: SocketPlan { source: Some("127.0.0.1".to_owned()), ..SocketPlan::default() },
                ..base()
            },
            "no source address",
        ),
        (EngineRequest { provider: Provider::Ofi("nosuch".to_owned()), ..base() }, "nosuch"),
    ];
    for (wanted, expected) in cases {
        let text = Engine::start(wanted).expect_err(expected).to_string();
        assert!(text.contains(expected), "{text}");
        assert_eq!(text.lines().count(), 1);
    }
}

#[test]
fn an_endpoint_that_dies_is_told_and_the_others_go_on() {
    struct Fragile;
    impl Service for Fragile {
        fn call(&mut self, _call: &Call<'_>, _answer: &mut Answer<'_>) -> i32 {
            panic!("a fault of the service");
        }
    }
    let lines = Lines::default();
    let service = Arc::new(|_| -> Box<dyn Service> { Box::new(Fragile) });
    let engine = Engine::start(EngineRequest { service, ..request(&lines) }).expect("an engine");
    let mut connected = enter(&endpoint(&engine, 1), Role::Messages, None).expect("a connection");
    let mut bytes = [0; rpc::wire::HEADER_BYTES];
    rpc::wire::Header { opcode: rpc::wire::opcode::MEASURE, tag: 1, ..Default::default() }.encode(&mut bytes);
    std::io::Write::write_all(&mut connected.stream, &bytes).expect("sent");
    eventually("the log tells of it", || lines.has("tag 1 has ended by a panic"));
    assert_eq!(
        enter(&endpoint(&engine, 1), Role::Messages, None).expect_err("it is dead").errno(),
        Some(libc::ECONNREFUSED)
    );
    assert!(serves(&engine, 0, None) && serves(&engine, 2, None));
}

#[test]
fn an_interrupt_ends_a_wait_for_a_silent_engine() {
    let silent = TcpListener::bind("127.0.0.1:0").expect("a port");
    let uri = format!("tcp://{}", silent.local_addr().expect("an address"));
    let target = rpc::EndpointPlan { rank: 0, tag: 0, uri, label: "0:0".to_owned() };
    let interrupt = Arc::new(AtomicBool::new(false));
    let wait = |timeout_ns: u64| {
        rpc::handshake::connect(
            &target,
            Role::Messages,
            [1; 16],
            &[],
            &SocketPlan::default(),
            None,
            timeout_ns,
            &interrupt,
        )
        .expect_err("nobody speaks")
        .errno()
    };
    assert_eq!(wait(30_000_000), Some(libc::ETIMEDOUT));
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| wait(u64::MAX));
        interrupt.store(true, Ordering::Relaxed);
        assert_eq!(waiting.join().expect("it returns"), Some(libc::EINTR));
    });
}
