//! One suite for every driver of the network layer, gated by what the driver says it can do, with endpoints in this process.

mod faults;
mod hostile;
mod peer;
mod support;

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use driver::{Completions, Operation, Wait};
use network::{DRIVERS, Payload, Rpc};
use peer::{FROM_PAGES, Peer, PeerOptions};
use rpc::Poll;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use support::{POLLS, SECOND_NS, Setup, bulk, errno, everyone, iov, on_endpoints};
use workload::engine::Feature;

/// The endpoints for a driver; those of a targetless one are names only.
fn setup(entry: &support::Entry, options: &PeerOptions) -> (Option<Peer>, Setup) {
    if entry.capabilities.targetless {
        let nowhere = "127.0.0.1:9".parse().expect("an address");
        let plans = (0..options.endpoints).map(|tag| entry.plan(nowhere, tag)).collect();
        return (None, Setup::new(plans));
    }
    let peer = Peer::start(entry.name, options);
    let plans = peer.plans();
    (Some(peer), Setup::new(plans))
}

#[test]
fn every_driver_file_is_registered() {
    let names = DRIVERS.iter().map(|entry| entry.name);
    testkit::assert_every_driver_file_is_registered(env!("CARGO_MANIFEST_DIR"), names);
}

#[test]
fn what_is_registered_makes_sense() {
    for entry in DRIVERS {
        let capabilities = &entry.capabilities;
        assert!(!entry.summary.is_empty() && !entry.summary.contains('\n'), "{}", entry.name);
        assert_eq!(capabilities.classes, Rpc::CLASSES, "{}", entry.name);
        assert!(capabilities.asynchronous && capabilities.depth_max >= 1, "{}", entry.name);
    }
}

#[test]
fn payloads_of_every_kind_and_size_come_unchanged() {
    let sizes = [1, 63, 65, 4095, 4097, 8193, 65_537, 300_001];
    for entry in everyone() {
        for (turn, poll) in POLLS.into_iter().enumerate() {
            let (_peer, base) = setup(entry, &PeerOptions { poll, ..PeerOptions::default() });
            let base = Setup { poll, ..base };
            for (index, &size) in sizes.iter().enumerate() {
                let other = sizes[(index * 5 + turn + 3) % sizes.len()];
                let pairs = [
                    (iov(size), iov(other)),
                    (bulk(size), bulk(other)),
                    (iov(size), bulk(other)),
                    (bulk(size), iov(other)),
                    (iov(size), Payload::EMPTY),
                    (bulk(size), Payload::EMPTY),
                    (Payload::EMPTY, iov(size)),
                    (Payload::EMPTY, bulk(size)),
                ];
                // Each pair of each size once, over ways to wait that take turns.
                for (request, reply) in pairs.into_iter().skip((index + turn) % 3).step_by(3) {
                    base.clone().carrying(request, reply).rig(entry).echo(entry.name, 2, 0);
                }
            }
            base.carrying(Payload::EMPTY, Payload::EMPTY).rig(entry).echo(entry.name, 50, 0);
        }
    }
}

#[test]
fn large_bulk_in_both_directions_over_both_families() {
    for entry in everyone() {
        for &host in entry.hosts() {
            let (_peer, base) = setup(entry, &PeerOptions { host, ..PeerOptions::default() });
            let base = base.carrying(bulk(5_000_011), bulk(3_000_017));
            Setup { depth: 3, align: Some(3), ..base.clone() }.rig(entry).echo(entry.name, 2, 0);
            // Replies out of somebody's memory instead of the endpoint's own buffer.
            Setup { depth: 3, ..base }.rig(entry).echo(entry.name, 2, FROM_PAGES);
        }
    }
}

#[test]
fn zero_copy_sends_what_a_copy_would() {
    for entry in on_endpoints().filter(|entry| entry.capabilities.options.contains(&"zero-copy")) {
        let (_peer, base) = setup(entry, &PeerOptions::default());
        for poll in POLLS {
            let setup = Setup { poll, zero_copy: Feature::On, ..base.clone() };
            let mut rig = setup.clone().carrying(bulk(1_000_003), bulk(1000)).rig(entry);
            rig.echo(entry.name, 4, 0);
            let sends = rig.tally("zero_copy_sends").expect("it is counted");
            assert!(sends >= 32.0, "{sends}");
            // Over loopback the receiver's copy is the one that could not be avoided: the kernel says so.
            assert_eq!(rig.tally("zero_copy_copied"), Some(sends));
        }
        let mut auto = base.carrying(bulk(1_000_003), Payload::EMPTY).rig(entry);
        auto.echo(entry.name, 2, 0);
        assert_eq!(auto.tally("zero_copy_sends"), None, "over loopback it does not pay");
    }
}

#[test]
fn no_more_than_depth_and_pipelines_take_is_in_flight() {
    for entry in everyone() {
        let (_peer, base) = setup(entry, &PeerOptions { endpoints: 2, ..PeerOptions::default() });
        for (connections, pipeline, most) in [(1, 3, 3), (3, 2, 6), (4, 4, 8), (1, 100, 8)] {
            if connections > entry.connections(connections) {
                let refused = Setup { connections, ..base.clone() }.open(entry).err().expect("a refusal");
                assert_eq!(refused.exit_code(), 2, "{}: {refused}", entry.name);
                continue;
            }
            let setup = Setup { connections, pipeline, ..base.clone() }.carrying(iov(100), iov(100));
            let mut rig = setup.rig(entry);
            let batch: Vec<_> = (0..16).map(|slot| rig.rpc(slot, 0, u64::from(slot))).collect();
            batch.iter().for_each(|rpc| rig.fill(rpc));
            let accepted = rig.driver.submit(&batch, &mut rig.done).expect("submit").accepted;
            let finished = rig.done.len();
            if !entry.capabilities.targetless {
                assert_eq!((accepted, finished), (most, 0), "{}", entry.name);
            }
            // More than is in flight is as much as is in flight.
            rig.driver.reap(Wait::AtLeast(100), &mut rig.done).expect("reap");
            assert_eq!(rig.done.len(), accepted, "{}", entry.name);
            let mut slots: Vec<_> = rig.done.as_slice().iter().map(|done| done.slot).collect();
            slots.extend(rig.run_all(&batch[accepted..]).iter().map(|done| done.slot));
            slots.sort_unstable();
            assert_eq!(slots, (0..16).collect::<Vec<_>>(), "{}: each slot once", entry.name);
        }
    }
}

#[test]
fn a_full_endpoint_ends_the_batch_where_it_stands() {
    for entry in on_endpoints() {
        let (_peer, base) = setup(entry, &PeerOptions { endpoints: 2, ..PeerOptions::default() });
        let mut rig = Setup { pipeline: 2, ..base }.rig(entry);
        let to = [0, 1, 0, 0, 1];
        let batch: Vec<_> = (0..5).map(|slot| rig.rpc(slot, to[slot as usize], 0)).collect();
        assert_eq!(rig.driver.submit(&batch, &mut rig.done).expect("submit").accepted, 3);
        assert_eq!(rig.run_all(&[]).len(), 0);
        rig.driver.reap(Wait::AtLeast(3), &mut rig.done).expect("reap");
        assert_eq!(rig.done.len(), 3, "{}", entry.name);
        assert_eq!(rig.run_all(&batch[3..]).len(), 2, "{}", entry.name);
    }
}

#[test]
fn the_ways_to_wait() {
    for entry in everyone() {
        for poll in POLLS {
            let (_peer, base) = setup(entry, &PeerOptions { poll, ..PeerOptions::default() });
            let mut rig = Setup { poll, ..base }.rig(entry);
            let hour = Wait::Timeout { count: 1, timeout_ns: 3600 * SECOND_NS };
            for wait in [Wait::None, Wait::AtLeast(1), hour] {
                rig.driver.reap(wait, &mut rig.done).expect("reap");
                assert!(rig.done.is_empty(), "{}: nothing is in flight", entry.name);
            }
            assert_eq!(rig.driver.submit(&[], &mut rig.done).expect("submit").accepted, 0);
            for wait in [Wait::AtLeast(1), hour, Wait::AtLeast(9)] {
                rig.done.clear();
                let rpc = rig.rpc(0, 0, 1);
                rig.driver.submit(&[rpc], &mut rig.done).expect("submit");
                rig.driver.reap(wait, &mut rig.done).expect("reap");
                assert_eq!(rig.done.len(), 1, "{}: {wait:?}", entry.name);
            }
            rig.done.clear();
            let rpc = rig.rpc(3, 0, 1);
            rig.driver.submit(&[rpc], &mut rig.done).expect("submit");
            let begin = Instant::now();
            while rig.done.is_empty() {
                rig.driver.reap(Wait::None, &mut rig.done).expect("reap");
                assert!(begin.elapsed() < Duration::from_secs(10), "{}", entry.name);
            }
            assert_eq!(rig.done.as_slice()[0].slot, 3);
        }
    }
}

#[test]
fn an_event_is_readable_while_a_reply_waits() {
    for entry in everyone() {
        let (_peer, setup) = setup(entry, &PeerOptions::default());
        let mut rig = setup.rig(entry);
        if rig.driver.event().expect("an event, or none").is_none() {
            assert_ne!(entry.name, "tcp");
            continue;
        }
        for number in 0..100 {
            rig.done.clear();
            let rpc = rig.rpc(number % 4, 0, 1);
            rig.driver.submit(&[rpc], &mut rig.done).expect("submit");
            rig.driver.reap(Wait::None, &mut rig.done).expect("reap");
            while rig.done.is_empty() {
                let event = rig.driver.event().expect("an event").expect("it stays");
                let mut events = [PollFd::from_borrowed_fd(event, PollFlags::IN)];
                let longest = Timespec { tv_sec: 60, tv_nsec: 0 };
                assert_eq!(poll(&mut events, Some(&longest)).expect("polled"), 1, "{}", entry.name);
                rig.driver.reap(Wait::None, &mut rig.done).expect("reap");
            }
            assert_eq!(rig.done.as_slice()[0].slot, number % 4, "{}", entry.name);
        }
    }
}

#[test]
fn reap_brings_no_more_than_there_is_room_for() {
    for entry in everyone() {
        let (_peer, base) = setup(entry, &PeerOptions::default());
        let mut rig = base.carrying(iov(9), iov(9)).rig(entry);
        let batch: Vec<_> = (0..rig.depth).map(|slot| rig.rpc(slot, 0, 1)).collect();
        let (mut accepted, mut slots) = (0, Vec::new());
        let mut done = Completions::with_depth(rig.depth).limited_to(2);
        while slots.len() < batch.len() {
            done.clear();
            accepted += rig.driver.submit(&batch[accepted..], &mut done).expect("submit").accepted;
            // What completes as it is submitted needs no reaping.
            if done.is_empty() {
                rig.driver.reap(Wait::AtLeast(3), &mut done).expect("reap");
                assert!((1..=2).contains(&done.len()), "{}: {} at once", entry.name, done.len());
            }
            slots.extend(done.as_slice().iter().map(|done| done.slot));
        }
        slots.sort_unstable();
        assert_eq!(slots, (0..rig.depth).collect::<Vec<_>>(), "{}: each slot once", entry.name);
    }
}

#[test]
fn what_is_nowhere_is_refused() {
    for entry in on_endpoints() {
        let (_peer, base) = setup(entry, &PeerOptions::default());
        let mut rig = base.clone().rig(entry);
        assert_eq!(rig.run(rig.rpc(0, 1, 0)), errno(libc::EINVAL), "{}: endpoint", entry.name);
        assert_eq!(rig.run(rig.rpc(99, 0, 0)), errno(libc::EINVAL), "{}: slot", entry.name);
        assert_eq!(rig.run(rig.rpc(0, 0, 0)), 0, "{}", entry.name);
        for wrong in [
            Setup { connections: 0, ..base.clone() },
            Setup { pipeline: 0, ..base.clone() },
            Setup { endpoints: Vec::new(), ..base.clone() },
            Setup { timeout_ns: 0, ..base.clone() },
        ] {
            let error = wrong.open(entry).err().expect("a refusal");
            assert_eq!(error.exit_code(), 2, "{}: {error}", entry.name);
        }
    }
}

#[test]
fn many_endpoints_and_connections_from_one_worker() {
    const ENDPOINTS: u32 = 5;
    for entry in on_endpoints() {
        for (poll, wanted) in [(Poll::Spin, 1), (Poll::Spin, 3), (Poll::Adaptive, 3), (Poll::Block, 3)] {
            let connections = entry.connections(wanted);
            let options =
                PeerOptions { endpoints: ENDPOINTS, poll: Poll::Adaptive, ..PeerOptions::default() };
            let (peer, base) = setup(entry, &options);
            let peer = peer.expect("a peer");
            let setup = Setup { poll, connections, depth: 20, ..base }.carrying(bulk(3001), iov(999));
            let mut rig = setup.rig(entry);
            for round in 0..20_u64 {
                let rpcs: Vec<_> = (0..20)
                    .map(|slot| rig.rpc(slot, slot % ENDPOINTS, round * 20 + u64::from(slot)))
                    .collect();
                rpcs.iter().for_each(|rpc| rig.fill(rpc));
                for completion in rig.run_all(&rpcs) {
                    let rpc = &rpcs[completion.slot as usize];
                    assert_eq!(completion.result, rpc.bytes as i64);
                    rig.check(rpc);
                }
            }
            let greetings = &entry.transport.expect("it reaches endpoints").greetings;
            for endpoint in &peer.endpoints {
                assert!(greetings.contains(&(endpoint.counters.rpcs.load(Ordering::Relaxed) - 80)));
                assert_eq!(endpoint.counters.received_bytes.load(Ordering::Relaxed), 80 * 3001);
                assert_eq!(endpoint.counters.sent_bytes.load(Ordering::Relaxed), 80 * 999);
                assert_eq!(endpoint.counters.errors.load(Ordering::Relaxed), 0);
            }
            if let Some(sockets) = entry.transport.and_then(|transport| transport.sockets) {
                let streams = f64::from(sockets * ENDPOINTS * connections);
                assert_eq!(rig.tally("tcp_connections"), Some(streams));
                assert!(rig.tally("tcp_round_trip_ns").expect("told") > 0.0);
                assert!(rig.tally("tcp_congestion_window_bytes").expect("told") > 0.0);
                assert!(rig.tally("tcp_retransmits").is_some());
            }
            drop(rig);
            let is_quiet = |peer: &Peer| {
                peer.endpoints
                    .iter()
                    .all(|endpoint| endpoint.counters.connections.load(Ordering::Relaxed) == 0)
            };
            assert!(peer.wait_until(is_quiet), "connections stay open");
            assert!(peer.log.lock().expect("the log").is_empty());
        }
    }
}

#[test]
fn workers_on_their_own_threads_share_endpoints() {
    for entry in on_endpoints() {
        // Few and many sessions for one service thread: each has its own way to find those that are ready.
        for (endpoints, workers, poll) in
            [(3, 4, Poll::Adaptive), (1, 12, Poll::Adaptive), (1, 12, Poll::Block), (1, 12, Poll::Spin)]
        {
            let (_peer, base) = setup(entry, &PeerOptions { endpoints, poll, ..PeerOptions::default() });
            std::thread::scope(|scope| {
                for worker in 0..workers {
                    let base = base.clone();
                    scope.spawn(move || {
                        let setup = base.carrying(iov(500 + worker), bulk(20_000 + worker));
                        setup.rig(entry).echo(entry.name, 20, worker << 20);
                    });
                }
            });
        }
    }
}

#[test]
fn no_completion_is_lost_or_doubled() {
    const COUNT: u64 = 10_000;
    for entry in everyone() {
        let (_peer, base) = setup(entry, &PeerOptions { endpoints: 3, ..PeerOptions::default() });
        for (seed, poll) in [(1, Poll::Adaptive), (2, Poll::Block)] {
            let setup =
                Setup { poll, connections: entry.connections(2), pipeline: 5, depth: 32, ..base.clone() };
            random_load(entry, &setup.carrying(iov(40), iov(24)), seed, COUNT);
        }
    }
}

fn random_load(entry: &support::Entry, setup: &Setup, seed: u64, count: u64) {
    let mut rig = setup.rig(entry);
    let mut free: Vec<u32> = (0..rig.depth).collect();
    let mut state = seed;
    let mut random = move |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    let (mut started, mut finished) = (0_u64, 0_u64);
    let mut numbers = vec![0; rig.depth as usize];
    while finished < count {
        let room = (free.len() as u64).min(count - started);
        let mut batch = Vec::new();
        for _ in 0..random(room + 1) {
            let slot = free.swap_remove(random(free.len() as u64) as usize);
            let rpc = rig.rpc(slot, random(3) as u32, started + batch.len() as u64);
            rig.fill(&rpc);
            batch.push(rpc);
        }
        rig.done.clear();
        let accepted = rig.driver.submit(&batch, &mut rig.done).expect("submit").accepted;
        batch[..accepted].iter().for_each(|rpc| numbers[rpc.slot as usize] = rpc.sequence);
        free.extend(batch[accepted..].iter().map(|rpc| rpc.slot));
        started += accepted as u64;
        let wait = match random(3) {
            0 => Wait::None,
            1 => Wait::AtLeast(random(4) as u32),
            _ => Wait::Timeout { count: random(9) as u32, timeout_ns: random(100_000) },
        };
        rig.driver.reap(wait, &mut rig.done).expect("reap");
        for done in rig.done.as_slice() {
            let rpc = rig.rpc(done.slot, 0, numbers[done.slot as usize]);
            assert_eq!(done.result, rpc.bytes as i64, "{}", entry.name);
            assert!(!free.contains(&done.slot), "{}: slot {} twice", entry.name, done.slot);
            rig.check(&rpc);
            free.push(done.slot);
        }
        finished += rig.done.len() as u64;
        assert!(finished <= started, "{}", entry.name);
    }
    assert_eq!(free.len(), rig.depth as usize);
}
