//! Who is let in, and who is not.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use rpc::engine::{Engine, EngineRequest};
use rpc::handshake::{
    Challenge, Hello, Probe, Proof, Refusal, RefusalCode, Reply, Welcome, group_label, hello_bytes,
    parse_reply, probe, reply_bytes,
};
use rpc::{EndpointPlan, Limits, Role};

use crate::common::{Lines, WAIT, bare, endpoint, enter, eventually, ping, request, secret, serves, tags};

fn errno(target: &EndpointPlan, role: Role, with: Option<u8>) -> Option<i32> {
    enter(target, role, with.map(secret).as_ref()).err().map(|error| error.errno().expect("an error number"))
}

#[test]
fn the_right_token_opens_and_no_other_does() {
    let lines = Lines::default();
    let engine =
        Engine::start(EngineRequest { secret: Some(secret(b'a')), ..request(&lines) }).expect("an engine");
    let target = endpoint(&engine, 2);
    assert_eq!(errno(&target, Role::Messages, Some(b'a')), None);
    assert_eq!(errno(&target, Role::Bulk, Some(b'a')), None);
    assert_eq!(errno(&target, Role::Messages, Some(b'b')), Some(libc::EACCES));
    assert_eq!(errno(&target, Role::Messages, None), Some(libc::EACCES));
    eventually("the refusal is in the log", || lines.has("rejected: the token is missing or wrong"));
    assert!(lines.all().iter().all(|line| !line.contains("aaaa") && !line.contains("bbbb")));
}

#[test]
fn a_client_with_a_token_wants_proof() {
    let engine = Engine::start(request(&Lines::default())).expect("an engine");
    let error = enter(&endpoint(&engine, 0), Role::Messages, Some(&secret(b'a'))).expect_err("no proof");
    assert_eq!(error.errno(), Some(libc::EACCES));
    assert!(error.to_string().contains("has no token"), "{error}");
}

/// An engine that says `replies` to whatever comes; the client's side of it.
fn against(replies: Vec<Vec<u8>>) -> driver::Error {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let uri = format!("tcp://{}", listener.local_addr().expect("an address"));
    let target = EndpointPlan { rank: 0, tag: 0, uri, label: "0:0".to_owned() };
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let (mut stream, _) = listener.accept().expect("a client");
            stream.set_read_timeout(Some(WAIT)).expect("a timeout");
            let mut hello = [0; 64];
            stream.read_exact(&mut hello).expect("a hello");
            for reply in replies {
                let _ = stream.write_all(&reply);
            }
            let _ = stream.shutdown(Shutdown::Write);
            // Until the client hangs up, so that nothing it has not read is taken back.
            let _ = stream.read_to_end(&mut Vec::new());
        });
        enter(&target, Role::Messages, Some(&secret(b'a'))).expect_err("no engine that knows the token")
    })
}

#[test]
fn an_engine_that_only_says_that_it_knows_the_token_is_not_believed() {
    let frame = |reply: Reply| reply_bytes(&reply).expect("it fits");
    let challenge = |demands_token| {
        frame(Reply::Challenge(Challenge { nonce: [1; 32], rank: 0, group: 0, demands_token }))
    };
    let welcome = frame(Reply::Welcome(Welcome { proof: [2; 32], rank: 0, fabric_name: Vec::new() }));
    for demands_token in [true, false] {
        let error = against(vec![challenge(demands_token), welcome.clone()]);
        assert_eq!(error.errno(), Some(libc::EACCES), "{error}");
    }
    // Its own answers out of order, nonsense, or nothing.
    assert_eq!(against(vec![welcome]).errno(), Some(libc::EPROTO));
    assert_eq!(against(vec![b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec()]).errno(), Some(libc::EPROTO));
    assert_eq!(against(Vec::new()).errno(), Some(libc::ECONNRESET));
    let busy = Refusal { code: RefusalCode::Busy, text: "later".to_owned() };
    let error = against(vec![frame(Reply::Refusal(busy))]);
    assert_eq!(error.errno(), Some(libc::EBUSY));
    assert!(error.to_string().contains("the engine rejects the connection: later"), "{error}");
}

#[test]
fn wrong_tags_ranks_and_roles_are_refused_by_their_cause() {
    let engine = Engine::start(EngineRequest { rank: 3, ..request(&Lines::default()) }).expect("an engine");
    let right = endpoint(&engine, 2);
    assert_eq!(errno(&right, Role::Messages, None), None);
    assert_eq!(
        errno(&EndpointPlan { rank: u32::MAX, ..right.clone() }, Role::Messages, None),
        None,
        "any rank"
    );
    assert_eq!(errno(&EndpointPlan { tag: 3, ..right.clone() }, Role::Messages, None), Some(libc::ENXIO));
    assert_eq!(errno(&EndpointPlan { rank: 2, ..right.clone() }, Role::Messages, None), Some(libc::ENXIO));
    assert_eq!(errno(&right, Role::Fabric, None), Some(libc::EPROTONOSUPPORT));
    let wrong = EndpointPlan { rank: 2, ..right };
    let text = enter(&wrong, Role::Messages, None).expect_err("another rank").to_string();
    assert!(text.contains("this is rank 3, not rank 2"), "{text}");
}

#[test]
fn who_answers_is_seen_without_a_token() {
    let lines = Lines::default();
    let wanted =
        EngineRequest { rank: 5, group: "g".to_owned(), secret: Some(secret(b'a')), ..request(&lines) };
    let engine = Engine::start(wanted).expect("an engine");
    let expected = Probe::Engine { rank: 5, group: group_label("g") };
    assert_eq!(probe(engine.uri(), WAIT), expected);
    let uri = engine.uri().to_owned();
    engine.stop();
    assert_eq!(probe(&uri, WAIT), Probe::Nobody);
    assert!(lines.all().is_empty(), "asking is no event: {:?}", lines.all());
}

#[test]
fn the_limit_of_connections_holds_and_frees() {
    let limits = Limits { connections_max: 3, ..Limits::default() };
    let engine = Engine::start(EngineRequest { limits, ..request(&Lines::default()) }).expect("an engine");
    let mut held: Vec<_> = (0..3)
        .map(|tag| enter(&endpoint(&engine, tag), Role::Messages, None).expect("within the limit").stream)
        .collect();
    assert_eq!(errno(&endpoint(&engine, 0), Role::Messages, None), Some(libc::EUSERS));
    for (tag, stream) in (0..).zip(&mut held) {
        assert!(ping(stream, tag).is_ok(), "those inside are unharmed");
    }
    held.pop();
    eventually("a place is free again", || serves(&engine, 0, None));
}

/// Reads until the engine hangs up.
fn drain(mut stream: TcpStream) -> Vec<u8> {
    let mut bytes = Vec::new();
    // A connection that was closed with bytes unread is reset.
    let _ = stream.read_to_end(&mut bytes);
    bytes
}

#[test]
fn strangers_are_sent_away_at_once() {
    let lines = Lines::default();
    let engine = Engine::start(request(&lines)).expect("an engine");
    let mut http = bare(&engine);
    http.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").expect("sent");
    assert!(drain(http).is_empty());
    let mut newer = bare(&engine);
    newer.write_all(b"SRH2").expect("sent");
    let told = drain(newer);
    assert!(matches!(
        parse_reply(&told),
        Ok(Some((Reply::Refusal(Refusal { code: RefusalCode::Version, .. }), _)))
    ));
    // A name longer than may be, told by the head alone.
    let mut oversized = bare(&engine);
    let mut head = [0; 64];
    head[..8].copy_from_slice(b"SRH1\x03\x00\xff\xff");
    oversized.write_all(&head).expect("sent");
    assert!(drain(oversized).is_empty());
    eventually("each has its line", || {
        ["another protocol", "another version", "too long"].iter().all(|what| lines.has(what))
    });
    assert!(serves(&engine, 0, None));
}

#[test]
fn hundreds_of_silent_clients_delay_nobody() {
    let lines = Lines::default();
    let engine =
        Engine::start(EngineRequest { secret: Some(secret(b'a')), ..request(&lines) }).expect("an engine");
    let silent: Vec<_> = (0..400).map(|_| bare(&engine)).collect();
    // Those that came first are sent away for those that came last.
    eventually("the oldest go", || lines.has("too many other connections are in their handshake"));
    assert!(serves(&engine, 2, Some(&secret(b'a'))));
    let first = drain(silent.into_iter().next().expect("a client"));
    assert!(matches!(
        parse_reply(&first),
        Ok(Some((Reply::Refusal(Refusal { code: RefusalCode::Busy, .. }), _)))
    ));
    let told = lines.all().len();
    assert!(told < 200, "{told} lines");
}

#[test]
fn a_silent_client_is_sent_away_in_time() {
    let engine = Engine::start(request(&Lines::default())).expect("an engine");
    let began = std::time::Instant::now();
    let told = drain(bare(&engine));
    assert!(matches!(
        parse_reply(&told),
        Ok(Some((Reply::Refusal(Refusal { code: RefusalCode::Busy, .. }), _)))
    ));
    let seconds = began.elapsed().as_secs_f64();
    assert!((4.9..15.0).contains(&seconds), "{seconds} s");
}

#[test]
fn a_hello_may_come_in_pieces() {
    let engine = Engine::start(request(&Lines::default())).expect("an engine");
    let mut stream = bare(&engine);
    stream.set_nodelay(true).expect("an option");
    let hello = Hello {
        role: Role::Messages,
        tag: 1,
        rank: None,
        session: [3; 16],
        nonce: [4; 32],
        fabric_name: b"a name that sockets do not need".to_vec(),
    };
    for byte in hello_bytes(&hello).expect("it fits") {
        stream.write_all(&[byte]).expect("sent");
    }
    let mut challenge = [0; rpc::handshake::CHALLENGE_BYTES];
    stream.read_exact(&mut challenge).expect("a challenge");
    assert!(matches!(parse_reply(&challenge), Ok(Some((Reply::Challenge(_), _)))));
    // The first message comes right behind: it is the endpoint's.
    stream.write_all(&Proof { has_token: false, proof: [0; 32] }.bytes()).expect("sent");
    let mut welcome = [0; 48];
    stream.read_exact(&mut welcome).expect("a welcome");
    assert!(matches!(parse_reply(&welcome), Ok(Some((Reply::Welcome(_), _)))));
    assert!(ping(&mut stream, 1).is_ok());
}

#[test]
fn hostile_bytes_harm_nobody() {
    let lines = Lines::default();
    let wanted = EngineRequest { tags: tags(2, 0), secret: Some(secret(b'a')), ..request(&lines) };
    let engine = Engine::start(wanted).expect("an engine");
    let bystander = enter(&endpoint(&engine, 1), Role::Messages, Some(&secret(b'a'))).expect("let in").stream;
    let bystander = std::cell::RefCell::new(bystander);
    let hello = Hello {
        role: Role::Messages,
        tag: 1,
        rank: None,
        session: [1; 16],
        nonce: [2; 32],
        fabric_name: Vec::new(),
    };
    let valid = hello_bytes(&hello).expect("it fits");
    // Random bytes, a valid hello cut short or with bytes changed, and random bytes behind a valid one.
    let attack = (0..4u8, prop::collection::vec(any::<u8>(), 0..1200), 0..64usize, any::<u8>()).prop_map(
        move |(kind, random, at, byte)| match kind {
            0 => random,
            1 => valid[..at].to_vec(),
            2 => {
                let mut changed = valid.clone();
                changed[at] = byte;
                changed
            }
            _ => [valid.clone(), random].concat(),
        },
    );
    let mut runner = TestRunner::new(Config { cases: 200, failure_persistence: None, ..Config::default() });
    let result = runner.run(&attack, |bytes| {
        let mut stream = bare(&engine);
        let _ = stream.write_all(&bytes);
        let _ = stream.shutdown(Shutdown::Write);
        let said = drain(stream);
        // Nobody is welcomed without a proof.
        let mut rest = &said[..];
        while let Ok(Some((reply, length))) = parse_reply(rest) {
            prop_assert!(!matches!(reply, Reply::Welcome(_)));
            rest = &rest[length..];
        }
        prop_assert!(ping(&mut bystander.borrow_mut(), 1).is_ok());
        Ok(())
    });
    assert_eq!(result.map_err(|error| error.to_string()), Ok(()));
    assert!(serves(&engine, 2, Some(&secret(b'a'))));
    assert!(lines.all().iter().all(|line| !line.contains(char::is_control)));
}
