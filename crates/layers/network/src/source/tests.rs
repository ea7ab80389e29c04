use std::sync::atomic::AtomicBool;

use driver::{Operation, PageSize};
use rpc::{EndpointPlan, Poll, SocketPlan};

use super::*;
use crate::Payload;

fn request(endpoints: u32, sizes: (u64, u64), verify: bool) -> OpenRequest {
    let endpoint = |tag| EndpointPlan { rank: 0, tag, uri: String::new(), label: format!("0:{tag}") };
    let (request, reply) = (Payload::of_size(sizes.0), Payload::of_size(sizes.1));
    let layout = SlotLayout::new(request, reply, None);
    OpenRequest {
        endpoints: (0..endpoints).map(endpoint).collect(),
        request,
        reply,
        layout,
        connections: 1,
        pipeline: 4,
        depth: 4,
        poll: Poll::Block,
        timeout_ns: 1,
        socket: SocketPlan::default(),
        domain: None,
        verify,
        seed: payload_seed(7, 0),
        arena: Arc::new(Arena::new(4, layout.slot_bytes, PageSize::Base).expect("buffers")),
        device: None,
        secret: None,
        interrupt: Arc::new(AtomicBool::new(false)),
    }
}

/// The endpoints of `count` RPCs in turn over four slots.
fn endpoints(order: EndpointOrder, of: u32, seed: u64, worker: u32, count: u32) -> Vec<u32> {
    let mut source = RpcSource::new(&request(of, (0, 0), false), order, seed, worker).expect("a source");
    (0..count).map(|number| source.next(number % 4).expect("no end").endpoint).collect()
}

#[test]
fn endpoints_come_in_their_order() {
    assert_eq!(endpoints(EndpointOrder::RoundRobin, 3, 1, 0, 7), [0, 1, 2, 0, 1, 2, 0]);
    assert_eq!(endpoints(EndpointOrder::RoundRobin, 3, 1, 5, 4), [2, 0, 1, 2], "worker 5 begins elsewhere");
    assert_eq!(endpoints(EndpointOrder::Pinned, 2, 1, 1, 8), [0, 1, 0, 1, 0, 1, 0, 1]);
    assert_eq!(endpoints(EndpointOrder::Pinned, 4, 1, 0, 8), [0, 1, 2, 3, 0, 1, 2, 3]);
    let drawn = endpoints(EndpointOrder::Random, 4, 1, 0, 4000);
    assert_eq!(drawn, endpoints(EndpointOrder::Random, 4, 1, 0, 4000), "the same seed draws the same");
    assert_ne!(drawn, endpoints(EndpointOrder::Random, 4, 2, 0, 4000));
    assert_ne!(drawn, endpoints(EndpointOrder::Random, 4, 1, 1, 4000));
    for endpoint in 0..4 {
        let times = drawn.iter().filter(|&&drawn| drawn == endpoint).count();
        assert!((900..1100).contains(&times), "endpoint {endpoint}: {times}");
    }
}

#[test]
fn rpcs_are_numbered_and_carry_both_payloads() {
    let mut source =
        RpcSource::new(&request(2, (100, 4000), false), EndpointOrder::RoundRobin, 1, 0).expect("a source");
    assert!(!source.prepares() && !source.checks());
    let rpcs: Vec<_> = (0..3).map(|slot| source.next(slot).expect("no end")).collect();
    assert_eq!(rpcs.iter().map(|rpc| (rpc.slot, rpc.sequence)).collect::<Vec<_>>(), [(0, 0), (1, 1), (2, 2)]);
    assert!(rpcs.iter().all(|rpc| rpc.bytes() == 4100 && rpc.is_whole(4100) && !rpc.is_whole(-110)));
    assert_eq!(rpcs.iter().map(Operation::part).collect::<Vec<_>>(), [0, 1, 0]);
}

#[test]
fn payloads_are_there_from_the_start() {
    let mut source =
        RpcSource::new(&request(1, (10_000, 0), false), EndpointOrder::RoundRobin, 1, 0).expect("a source");
    for slot in 0..4 {
        let zeros = source.payloads.of(slot, Direction::Request).iter().filter(|&&byte| byte == 0).count();
        assert!(zeros < 100, "slot {slot}: {zeros} of 10000 bytes are zero");
    }
}

#[test]
fn checked_payloads_follow_from_seed_and_number() {
    let open = request(1, (5000, 9000), true);
    let mut source = RpcSource::new(&open, EndpointOrder::RoundRobin, 7, 0).expect("a source");
    assert!(source.prepares() && source.checks());
    source.next(0).expect("no end");
    let rpc = source.next(3).expect("no end");
    source.prepare(&rpc);
    let mut engine = Content::new(open.seed);
    assert_eq!(engine.check(Direction::Request, 1, source.payloads.of(3, Direction::Request)), Ok(()));
    engine.fill(Direction::Reply, 1, source.payloads.of(3, Direction::Reply));
    assert_eq!(source.check(&rpc, rpc.bytes), Ok(()));
    source.payloads.of(3, Direction::Reply)[8999] ^= 1;
    assert_eq!(source.check(&rpc, rpc.bytes).map_err(|fault| fault.cause), Err("corrupt"));
    engine.fill(Direction::Reply, 0, source.payloads.of(3, Direction::Reply));
    assert_eq!(source.check(&rpc, rpc.bytes).map_err(|fault| fault.cause), Err("misplaced"));
    assert_eq!(
        engine.check(Direction::Request, 1, source.payloads.of(3, Direction::Request)),
        Ok(()),
        "apart"
    );
}

#[test]
fn only_what_there_is_is_made_and_checked() {
    let source = |sizes| {
        let source =
            RpcSource::new(&request(1, sizes, true), EndpointOrder::RoundRobin, 1, 0).expect("a source");
        (source.prepares(), source.checks())
    };
    assert_eq!([(0, 0), (8, 0), (0, 8)].map(source), [(false, false), (true, false), (false, true)]);
    assert_ne!(payload_seed(7, 0), payload_seed(7, 1));
    assert_ne!(payload_seed(7, 0), payload_seed(8, 0));
}

#[test]
fn what_cannot_be_is_refused() {
    let refusal = |request: &OpenRequest| {
        RpcSource::new(request, EndpointOrder::RoundRobin, 1, 0).err().expect("refused").to_string()
    };
    assert!(refusal(&request(0, (0, 0), false)).contains("a worker has no endpoint"));
    let small = OpenRequest {
        arena: Arc::new(Arena::new(4, 4096, PageSize::Base).expect("buffers")),
        ..request(1, (4096, 4096), false)
    };
    assert!(refusal(&small).contains("the buffers are smaller than the payloads"));
}
