//! Tests of the `ofi` driver for the parts of libfabric alone: engines that are processes of their own, killed and stopped ones, limits.
//! Features that all drivers have in common are in the conformance suite. Without libfabric each test says that it was skipped.

mod engine;
mod load;

use std::time::{Duration, Instant};

use engine::{Engine, TAGS, tested};
use load::Load;
use network::{Payload, PayloadKind};
use rpc::Poll;

const NONE: Payload = Payload::EMPTY;

fn iov(size_bytes: u64) -> Payload {
    Payload { kind: PayloadKind::Iov, size_bytes }
}

fn bulk(size_bytes: u64) -> Payload {
    Payload { kind: PayloadKind::Bulk, size_bytes }
}

/// Runs a check over each provider, or says that it cannot.
fn over_each(name: &str, check: impl Fn(&str)) {
    let (there, missing) = tested();
    missing.iter().for_each(|cause| println!("skipped: {name}: {cause}"));
    there.into_iter().for_each(check);
}

#[test]
fn an_engine_in_another_process_serves_the_same() {
    over_each("an_engine_in_another_process_serves_the_same", |provider| {
        let engine = Engine::start_process(provider);
        for (request, reply) in [(NONE, NONE), (iov(2048), iov(2048)), (bulk(200_000), bulk(200_000))] {
            let mut load =
                Load { endpoints: engine.endpoints(2), request, reply, ..Load::new(&engine) }.open();
            let results = load.run(200);
            let expected = (request.size_bytes + reply.size_bytes) as i64;
            assert!(results.iter().all(|&(_, r)| r == expected), "{provider} {request} {reply}: {results:?}");
        }
    });
}

#[test]
fn several_endpoints_and_every_way_to_wait() {
    over_each("several_endpoints_and_every_way_to_wait", |provider| {
        for poll in [Poll::Spin, Poll::Adaptive, Poll::Block] {
            let engine = Engine::start(provider, poll);
            let mut load = Load { endpoints: engine.endpoints(TAGS), poll, ..Load::new(&engine) }.open();
            let results = load.run(400);
            assert!(results.iter().all(|&(_, r)| r == 4096), "{provider} {poll:?}: {results:?}");
            for tag in 0..TAGS {
                assert_eq!(engine.received_bytes(tag), 100 * 2048, "{provider} {poll:?}: tag {tag}");
            }
        }
    });
}

#[test]
fn a_killed_engine_fails_its_own_rpcs_and_no_others() {
    over_each("a_killed_engine_fails_its_own_rpcs_and_no_others", |provider| {
        let (mut victim, other) = (Engine::start_process(provider), Engine::start_process(provider));
        for request in [iov(2048), bulk(200_000)] {
            let mut load = Load::new(&victim);
            load.endpoints.extend(Load::new(&other).endpoints);
            let mut load = Load { request, depth: 8, ..load }.open();
            assert!(load.run(100).iter().all(|&(_, result)| result > 0));
            victim.kill();
            let results = load.run(200);
            let failed = results.iter().filter(|&&(endpoint, result)| endpoint == 0 && result < 0).count();
            assert!(failed > 0, "{provider}: nothing failed");
            for (endpoint, result) in results {
                let expected = if endpoint == 1 { result > 0 } else { matches!(-result, 5 | 32 | 103..=113) };
                assert!(expected, "{provider}: endpoint {endpoint} gave {result}");
            }
            victim = Engine::start_process(provider);
        }
    });
}

#[test]
fn a_silent_engine_times_out_and_its_late_replies_harm_nobody() {
    over_each("a_silent_engine_times_out_and_its_late_replies_harm_nobody", |provider| {
        let engine = Engine::start_process(provider);
        let timeout = Duration::from_millis(1500);
        let mut load =
            Load { request: NONE, reply: bulk(100_000), timeout, depth: 4, ..Load::new(&engine) }.open();
        assert!(load.run(8).iter().all(|&(_, result)| result == 100_000));
        engine.signal("STOP");
        let began = Instant::now();
        let results = load.run(4);
        assert!(results.iter().all(|&(_, result)| result == -110), "{provider}: {results:?}");
        assert!(began.elapsed() < Duration::from_secs(5));
        engine.signal("CONT");
        // The late replies come while these run; each has memory of its own, and each is checked.
        let results = load.run(100);
        assert!(
            results.iter().filter(|&&(_, result)| result == 100_000).count() > 90,
            "{provider}: {results:?}"
        );
        assert_eq!(load.damaged, 0, "{provider}");
    });
}

#[test]
fn requests_beyond_the_limits_are_refused_and_others_served() {
    over_each("requests_beyond_the_limits_are_refused_and_others_served", |provider| {
        let engine = Engine::start(provider, Poll::Adaptive);
        let mut load =
            Load { request: bulk(engine::BULK_MAX + 1), reply: NONE, depth: 1, ..Load::new(&engine) }.open();
        assert!(load.run(3).iter().all(|&(_, result)| result == -90), "{provider}");
        let mut load = Load::new(&engine).open();
        assert!(load.run(20).iter().all(|&(_, result)| result == 4096));
        assert_eq!(engine.errors(0), 3, "{provider}: errors");
    });
}
