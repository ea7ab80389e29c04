//! Clients that have the token and send what they like.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use object::plan::ObjectOp;
use object_service::wire::{Handle, Request};
use object_service::{Engine as Control, Location, opcode, select};
use proptest::prelude::*;
use rpc::SocketPlan;
use rpc::client::Caller;
use rpc::engine::Engine;
use vos::Checksum;
use vos::model::ObjectId;
use vos::{KeyPath, Read};

use crate::support::{Rig, object, operation, pool_in, scratch, serve, small, url};

const REPLY_BYTES_MAX: u64 = 4096;

fn caller(engine: &Engine, tag: u32) -> Caller {
    let location = Location::parse(&url(engine, "c")).expect("a URL");
    let never = AtomicBool::new(false);
    let timeout = Duration::from_secs(20);
    Caller::connect(&location.endpoint(tag), &SocketPlan::default(), None, timeout, &never)
        .expect("connected")
}

fn handle(engine: &Engine) -> Handle {
    let location = Location::parse(&url(engine, "c")).expect("a URL");
    let never = AtomicBool::new(false);
    let mut control = Control::connect(&location, None, Duration::from_secs(20), &never).expect("connected");
    control.create_container("tank", "c", Checksum::default(), None).expect("made");
    control.open_container("tank", "c").expect("opened")
}

fn status(caller: &mut Caller, opcode: u16, request: &Request<'_>, value: &[u8]) -> i32 {
    let mut body = vec![0; 20_000];
    let end = request.encode(&mut body).expect("room");
    body.truncate(end);
    body.extend_from_slice(value);
    caller.call(opcode, &body, REPLY_BYTES_MAX).expect("answered").status
}

/// Two clients write one replicated key at the same time, again and again: no copy has another update last.
#[test]
fn copies_are_changed_in_one_order_for_all_clients() {
    let dir = scratch();
    let pool = pool_in(dir.path(), &small(3));
    let engine = serve(pool.clone(), None);
    let handle = handle(&engine);
    let class: vos::ObjectClass = "RP_3G1".parse().expect("a class");
    let object = ObjectId::new(vos::ObjectType::MultiHashed, class, 1);
    let placement = ::vos::placement::Placement::new(class, 3).expect("fits");
    let leader = placement.target(object, 0, 0);
    let container = pool.find_container("c").expect("made").id;
    let mut callers = [caller(&engine, 2 + leader), caller(&engine, 2 + leader)];
    for (number, bytes) in (0u8..40).zip([100, 9000].into_iter().cycle()) {
        let begin = std::sync::Barrier::new(callers.len());
        std::thread::scope(|scope| {
            for (mark, caller) in (0u8..).zip(&mut callers) {
                let begin = &begin;
                scope.spawn(move || {
                    let value = vec![number * 2 + mark; bytes];
                    let length = bytes as u64;
                    let request =
                        Request { handle, object, length, dkey: b"d", akey: b"a", ..Request::default() };
                    begin.wait();
                    assert_eq!(status(caller, opcode::UPDATE_SHARDS, &request, &value), 0);
                });
            }
        });
        let place = KeyPath { container, object, dkey: b"d", akey: b"a" };
        let copies = pool.targets().iter().map(|target| {
            let mut value = vec![0; bytes];
            target.fetch(&place, Read::Single, None, &mut value).expect("a copy");
            value
        });
        let copies: Vec<_> = copies.collect();
        assert!(copies.iter().all(|copy| *copy == copies[0]), "round {number}");
    }
    // Another target than that of the first copy is not asked, nor about what has no copies.
    let mut other = caller(&engine, 2 + placement.target(object, 0, 1));
    let request = Request { handle, object, length: 1, dkey: b"d", akey: b"a", ..Request::default() };
    assert_eq!(status(&mut other, opcode::UPDATE_SHARDS, &request, b"x"), -libc::EINVAL);
    let plain = Request { object: ObjectId { lo: 1, hi: 1 }, ..request };
    assert_eq!(status(&mut callers[0], opcode::UPDATE_SHARDS, &plain, b"x"), -libc::EINVAL);
}

#[test]
fn what_cannot_be_is_refused_by_errno_and_the_connection_stays() {
    let dir = scratch();
    let engine = serve(pool_in(dir.path(), &small(1)), None);
    let handle = handle(&engine);
    let mut caller = caller(&engine, 2);
    let good = Request {
        handle,
        object: ObjectId { lo: 1, hi: 1 },
        length: 3,
        dkey: b"d",
        akey: b"a",
        ..Request::default()
    };
    assert_eq!(status(&mut caller, opcode::UPDATE, &good, b"abc"), 0);
    let stale = Handle { instance: handle.instance.wrapping_add(1), ..handle };
    let cases = [
        (opcode::UPDATE, Request { length: 4, ..good }, &b"abc"[..], libc::EINVAL),
        (opcode::UPDATE, Request { selector: 9, ..good }, b"abc", libc::EINVAL),
        (opcode::UPDATE, Request { handle: stale, ..good }, b"abc", libc::ESTALE),
        (opcode::UPDATE, Request { handle: Handle { pool: 7, ..handle }, ..good }, b"abc", libc::ESTALE),
        (
            opcode::UPDATE,
            Request { handle: Handle { container: 999, ..handle }, ..good },
            b"abc",
            libc::ENOENT,
        ),
        (
            opcode::UPDATE,
            Request { handle: Handle { container: u64::MAX, ..handle }, ..good },
            b"abc",
            libc::ENOENT,
        ),
        (opcode::FETCH, Request { length: 2, ..good }, b"", libc::EOVERFLOW),
        (opcode::FETCH, Request { length: u64::MAX, dkey: b"x", ..good }, b"", libc::ENOENT),
        (opcode::LIST, Request { anchor: b"short", ..good }, b"", libc::EINVAL),
        (opcode::LIST, Request { selector: 77, ..good }, b"", libc::EINVAL),
        (opcode::PUNCH, Request { selector: 77, ..good }, b"", libc::EINVAL),
        (opcode::OPEN_CONTAINER, good, b"", libc::EOPNOTSUPP),
        (opcode::LAST + 1, good, b"", libc::EOPNOTSUPP),
    ];
    for (opcode, request, value, errno) in cases {
        assert_eq!(status(&mut caller, opcode, &request, value), -errno, "{opcode} {request:?}");
    }
    assert_eq!(status(&mut caller, opcode::FETCH, &good, b""), 0, "all the while it is served");
}

/// Extents of coded arrays that no memory holds, and that end where no number goes.
#[test]
fn a_punch_of_everything_takes_no_more_memory_than_one_of_a_part() {
    let dir = scratch();
    let engine = serve(pool_in(dir.path(), &small(3)), None);
    let handle = handle(&engine);
    let class: vos::ObjectClass = "EC_2P1G1".parse().expect("a class");
    let object = ObjectId::new(vos::ObjectType::MultiHashed, class, 1);
    let placement = ::vos::placement::Placement::new(class, 3).expect("fits");
    let mut caller = caller(&engine, 2 + placement.target(object, 0, 0));
    let selector = select::EXTENT;
    let array = Request { handle, object, selector, dkey: b"d", akey: b"a", ..Request::default() };
    let value = [7; 9000];
    let written = Request { length: 9000, offset: 100, ..array };
    assert_eq!(status(&mut caller, opcode::UPDATE_SHARDS, &written, &value), 0);
    let beyond = Request { length: 1, offset: u64::MAX, ..array };
    for opcode in [opcode::UPDATE_SHARDS, opcode::FETCH_SHARDS] {
        let sent = if opcode == opcode::UPDATE_SHARDS { &b"x"[..] } else { b"" };
        assert_eq!(status(&mut caller, opcode, &beyond, sent), -libc::EINVAL, "{opcode}");
    }
    let punch = Request { selector: select::RECORD, ..array };
    for (offset, length, expected) in [
        (1, u64::MAX, -libc::EINVAL),
        (u64::MAX, 0, -libc::EINVAL),
        (1 << 50, 1 << 60, 0),
        (1000, 1 << 62, 0),
    ] {
        let punch = Request { offset, length, ..punch };
        assert_eq!(status(&mut caller, opcode::PUNCH_SHARDS, &punch, b""), expected, "{offset} {length}");
    }
    let read = Request { length: 2000, ..array };
    let mut body = vec![0; 200];
    let end = read.encode(&mut body).expect("room");
    let reply = caller.call(opcode::FETCH_SHARDS, &body[..end], REPLY_BYTES_MAX).expect("answered");
    assert_eq!(reply.status, 0);
    let is_there = |at: usize| reply.body.get(at).copied().unwrap_or(0) == 7;
    assert!((100..1000).all(is_there) && !(0..100).chain(1000..2000).any(is_there));
}

#[test]
fn a_list_holds_as_much_as_its_reply_has_room_for() {
    let dir = scratch();
    let engine = serve(pool_in(dir.path(), &small(1)), None);
    let handle = handle(&engine);
    let mut caller = caller(&engine, 2);
    let object = ObjectId { lo: 1, hi: 1 };
    let keys: Vec<_> = (0..20_u8).map(|number| vec![number; 1000]).collect();
    for dkey in &keys {
        let request = Request { handle, object, dkey, length: 1, ..Request::default() };
        assert_eq!(status(&mut caller, opcode::UPDATE, &request, b"v"), 0);
    }
    let mut found = Vec::new();
    let mut anchor = Vec::new();
    for _ in 0..20 {
        let request = Request {
            handle,
            object,
            selector: select::DKEYS,
            length: 1000,
            anchor: &anchor,
            ..Request::default()
        };
        let mut body = vec![0; 200];
        let end = request.encode(&mut body).expect("room");
        let reply = caller.call(opcode::LIST, &body[..end], REPLY_BYTES_MAX).expect("answered");
        assert_eq!(reply.status, 0);
        let mut reader = object_service::wire::Reader(&reply.body);
        let count = reader.word().expect("a count");
        anchor = reader.bytes(16).expect("an anchor").to_vec();
        for _ in 0..count {
            found.push(reader.counted().expect("a key").to_vec());
        }
        if anchor[12] != 0 {
            break;
        }
    }
    found.sort();
    assert_eq!(found, keys);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 8, ..ProptestConfig::default() })]

    /// Whatever is sent is answered; another client notices nothing.
    #[test]
    fn any_bytes_after_the_handshake_are_answered(
        messages in prop::collection::vec((0..=opcode::LAST + 2, prop::collection::vec(any::<u8>(), 0..300), any::<bool>()), 1..80),
    ) {
        let dir = scratch();
        let engine = serve(pool_in(dir.path(), &small(1)), None);
        let plan = Rig::plan(&[ObjectOp::Update, ObjectOp::Fetch], 100, 1);
        let id = object(&plan, 1);
        let mut rig = Rig::open(&url(&engine, "mine"), plan).expect("a driver");
        let update = operation(ObjectOp::Update, id, 0, 100);
        rig.fill(&update, 9);
        prop_assert_eq!(rig.run(&update), 100);
        let handle = handle(&engine);
        for tag in [0, 2] {
            let mut caller = caller(&engine, tag);
            for (opcode, bytes, is_framed) in &messages {
                let mut body = bytes.clone();
                if *is_framed {
                    // A handle that is good, so that what follows is looked at.
                    let mut head = [0; 64];
                    Request { handle, ..Request::default() }.encode(&mut head).expect("room");
                    head[56] = bytes.first().copied().unwrap_or(0) / 2;
                    head[6] = bytes.last().copied().unwrap_or(0) % 6;
                    body.splice(0..0, head);
                }
                prop_assert!(caller.call(*opcode, &body, REPLY_BYTES_MAX).is_ok());
            }
        }
        let fetch = operation(ObjectOp::Fetch, id, 0, 100);
        prop_assert!(rig.run(&fetch) == 100 && rig.has(&fetch, 9));
        let hostile = (0..3).filter_map(|tag| engine.counters(tag)).map(|counters| counters.closed_hostile.load(Ordering::Relaxed));
        prop_assert_eq!(hostile.sum::<u64>(), 0);
    }
}
