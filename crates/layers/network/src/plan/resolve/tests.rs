use units::Span;
use workload::plan::{ArrivalPlan, PhasePlan};
use workload::spec::{Spacing, Warmup};

use super::*;
use crate::grammar::parse_endpoints;
use crate::plan::{PayloadKind, check_received};
use crate::{LAYER, NetworkSpec};

const EMPTY: (Payload, Payload) = (Payload::EMPTY, Payload::EMPTY);

fn bulk(size_bytes: u64) -> Payload {
    Payload { kind: PayloadKind::Bulk, size_bytes }
}

/// Endpoints with these ranks, tag 2 each.
fn endpoints(ranks: &[u32]) -> Vec<EndpointPlan> {
    let endpoint = |&rank: &u32| EndpointPlan {
        rank,
        tag: 2,
        uri: format!("tcp://10.0.0.{rank}:31416"),
        label: format!("{rank}:2"),
    };
    ranks.iter().map(endpoint).collect()
}

fn masters(ranks: &[u32]) -> Vec<MasterPlan> {
    let master = |&rank: &u32| MasterPlan {
        label: format!("{rank}:0"),
        control: format!("10.0.0.{rank}:1611"),
        rank: Some(rank),
        tag: Some(0),
        endpoints: Vec::new(),
    };
    ranks.iter().map(master).collect()
}

fn facts(ranks: &[u32]) -> NetworkFacts {
    NetworkFacts {
        provider: "tcp".to_owned(),
        engine: "tcp".to_owned(),
        asynchronous: true,
        depth_max: 4096,
        endpoints: endpoints(ranks),
        ..NetworkFacts::default()
    }
}

fn spec(change: impl FnOnce(&mut Spec)) -> Spec {
    let mut spec = Spec { layer: LAYER, ..Spec::default() };
    change(&mut spec);
    spec
}

fn own(spec: &mut Spec) -> &mut NetworkSpec {
    spec.own.get_mut()
}

fn plan(ranks: &[u32], change: impl FnOnce(&mut Spec)) -> NetworkPlan {
    resolve_network(&spec(change), EMPTY, &facts(ranks), 7).unwrap_or_else(|error| panic!("{error}"))
}

fn refusal(ranks: &[u32], change: impl FnOnce(&mut Spec)) -> String {
    let refused = resolve_network(&spec(change), EMPTY, &facts(ranks), 7);
    let message = refused.expect_err("refused").to_string();
    assert_eq!(message.lines().count(), 1, "{message}");
    message
}

/// The endpoints of each master.
fn directions(traffic: Traffic, of: &[u32], to: &[u32]) -> Result<Vec<Vec<u32>>, PlanError> {
    let facts = NetworkFacts { masters: masters(of), ..facts(to) };
    let spec = spec(|spec| {
        own(spec).traffic = Some(traffic);
        spec.clients = vec!["there".to_owned()];
    });
    let plan = resolve_network(&spec, EMPTY, &facts, 7)?;
    Ok(plan.masters.into_iter().map(|master| master.endpoints).collect())
}

#[test]
fn every_default_is_resolved() {
    let plan = plan(&[0, 1], |_| {});
    assert_eq!((plan.name.as_str(), plan.engine.as_str(), plan.provider.as_str()), ("0 0", "tcp", "tcp"));
    assert_eq!((plan.load.threads, plan.load.depth, plan.load.batch, plan.pipeline), (1, 16, 16, 16));
    assert_eq!((plan.connections, plan.poll, plan.timeout_ns), (1, Poll::Adaptive, 30_000_000_000));
    assert_eq!(
        (plan.order, plan.share, plan.traffic),
        (EndpointOrder::RoundRobin, Share::Whole, Traffic::All)
    );
    assert_eq!((plan.load.limit.time_ns, plan.load.seed), (Some(5_000_000_000), 7));
    assert_eq!((plan.load.on_error, plan.load.warmup), (OnError::Continue, Warmup::Auto));
    assert!(plan.socket.no_delay && plan.socket.zero_copy == Feature::Auto && !plan.verify);
    assert_eq!(message_sizes(&Spec::default()), [EMPTY]);
    let sizes = (Payload::EMPTY, bulk(1 << 20));
    let named = resolve_network(&Spec::default(), sizes, &facts(&[0]), 7).expect("a plan");
    assert_eq!((named.name.as_str(), named.rpc_bytes()), ("0 b1MiB", 1 << 20));
    assert_eq!(
        refusal(&[], |_| {}),
        "no endpoint: use tcp://HOST:PORT, loopback: or null:, or --endpoint RANKS:TAGS of a group"
    );
}

#[test]
fn what_is_in_flight_is_dealt_out_to_workers() {
    let depth = |threads, change: fn(&mut NetworkSpec)| {
        plan(&[0], |spec| {
            spec.threads = Some(threads);
            change(own(spec));
        })
        .load
        .depth
    };
    assert_eq!([1, 2, 16].map(|threads| depth(threads, |_| {})), [16, 8, 1]);
    assert_eq!([3, 32].map(|threads| depth(threads, |_| {})), [6, 1], "a default is rounded up");
    assert_eq!(depth(4, |own| own.inflight = Some(64)), 16);
    assert_eq!(plan(&[0], |spec| (spec.depth, spec.threads) = (Some(5), Some(3))).load.depth, 5);
    let inflight = |threads, inflight| {
        refusal(&[0], |spec| {
            spec.threads = Some(threads);
            own(spec).inflight = Some(inflight);
        })
    };
    assert_eq!(
        inflight(3, 16),
        "--inflight 16 cannot be divided among 3 threads: use 15 or 18, or --depth for each"
    );
    assert_eq!(inflight(4, 2), "--inflight 2 cannot be divided among 4 threads: use 4, or --depth for each");
    assert_eq!(plan(&[0], |spec| spec.saturate = true).load.depth, 1, "it climbs from there");
    let twice = refusal(&[0], |spec| {
        spec.depth = Some(4);
        own(spec).inflight = Some(4);
    });
    assert!(twice.ends_with("exclude each other: use one of them"), "{twice}");
    assert_eq!(
        refusal(&[0], |spec| spec.depth = Some(5000)),
        "engine tcp supports a depth of at most 4096, not 5000"
    );
}

#[test]
fn in_flight_per_endpoint_pins_slots() {
    let per_endpoint = |ranks: &[u32], threads, share| {
        let spec = spec(|spec| {
            (spec.threads, spec.share) = (Some(threads), Some(share));
            own(spec).inflight_per_endpoint = Some(4);
        });
        resolve_network(&spec, EMPTY, &facts(ranks), 7)
            .map(|plan| (plan.order, plan.load.depth))
            .map_err(|error| error.to_string())
    };
    let pinned = |depth| Ok((EndpointOrder::Pinned, depth));
    assert_eq!(per_endpoint(&[0, 1, 2], 2, Share::Whole), pinned(12));
    assert_eq!(per_endpoint(&[0, 1, 2, 3], 2, Share::Partition), pinned(8));
    assert_eq!(per_endpoint(&[0, 1], 6, Share::Partition), pinned(4));
    let uneven = per_endpoint(&[0, 1, 2], 2, Share::Partition).expect_err("uneven");
    assert!(
        uneven.starts_with(
            "--inflight-per-endpoint requires the same number of endpoints per worker, not 1 for one and 2"
        ),
        "{uneven}"
    );
    let ordered = refusal(&[0], |spec| {
        own(spec).inflight_per_endpoint = Some(1);
        own(spec).order = Some(EndpointOrder::Random);
    });
    assert!(ordered.contains("use --order pinned"), "{ordered}");
    let pinned = |ranks: &[u32], depth: Option<u32>| {
        let spec = spec(|spec| {
            spec.depth = depth;
            own(spec).order = Some(EndpointOrder::Pinned);
        });
        resolve_network(&spec, EMPTY, &facts(ranks), 7).map(|plan| plan.load.depth)
    };
    assert_eq!((pinned(&[0, 1, 2], None), pinned(&[0, 1, 2], Some(6))), (Ok(18), Ok(6)));
    assert!(pinned(&[0, 1, 2], Some(4)).expect_err("uneven").0.ends_with("use a depth of 6"));
}

#[test]
fn masters_are_directed() {
    let all = |count: u32| (0..count).collect::<Vec<_>>();
    assert_eq!(directions(Traffic::All, &[0, 1], &[0, 1, 2]), Ok(vec![all(3), all(3)]));
    assert_eq!(directions(Traffic::Matrix, &[0, 1], &[0, 1, 1, 2]), Ok(vec![vec![1, 2, 3], vec![0, 3]]));
    assert_eq!(directions(Traffic::Pairs, &[0, 1], &[2, 3]), Ok(vec![vec![0], vec![1]]));
    assert_eq!(directions(Traffic::Ring, &[0, 1, 2], &[0, 1, 2]), Ok(vec![vec![1], vec![2], vec![0]]));
    assert_eq!(directions(Traffic::Incast, &[0, 1, 2], &[4, 5]), Ok(vec![vec![0]; 3]));
    let refused = |traffic, of: &[u32], to: &[u32]| directions(traffic, of, to).expect_err("refused").0;
    assert_eq!(
        refused(Traffic::Pairs, &[0, 1], &[2]),
        "--traffic pairs requires one endpoint per master, not 1 for 2: use as many of both"
    );
    assert!(refused(Traffic::Ring, &[0], &[0]).ends_with("use --traffic pairs"));
    assert_eq!(
        refused(Traffic::Matrix, &[0, 1], &[1, 1]).as_str(),
        "master 1:0 has no endpoint on another rank: add one, or use --traffic all"
    );
    let alone = refusal(&[0], |spec| own(spec).traffic = Some(Traffic::Ring));
    assert!(alone.contains("requires --master or --clients"), "{alone}");
}

#[test]
fn masters_without_a_rank_are_told_by_their_label() {
    let mut facts = facts(&[0, 0]);
    facts.endpoints[0].label = "node01:1611".to_owned();
    let mut master = masters(&[0]).remove(0);
    (master.rank, master.label) = (None, "node01:1611".to_owned());
    facts.masters = vec![master];
    let spec = spec(|spec| {
        own(spec).traffic = Some(Traffic::Matrix);
        spec.clients = vec!["node01:1611".to_owned()];
    });
    let plan = resolve_network(&spec, EMPTY, &facts, 7).expect("a plan");
    assert_eq!(plan.masters[0].endpoints, [1]);
}

#[test]
fn workers_have_all_endpoints_or_their_own() {
    let of = |ranks: &[u32], threads: u32, share| {
        let plan = plan(ranks, |spec| (spec.threads, spec.share) = (Some(threads), Some(share)));
        (0..threads).map(|worker| worker_endpoints(&plan, None, worker)).collect::<Vec<_>>()
    };
    assert_eq!(of(&[0, 1, 2], 2, Share::Whole), [vec![0, 1, 2], vec![0, 1, 2]]);
    assert_eq!(of(&[0, 1, 2], 2, Share::Partition), [vec![0, 2], vec![1]]);
    assert_eq!(of(&[5, 6], 5, Share::Partition), [[0], [1], [0], [1], [0]]);
    let facts = NetworkFacts { masters: masters(&[0, 1]), ..facts(&[0, 1, 2, 3]) };
    let spec = spec(|spec| {
        (spec.threads, spec.share) = (Some(2), Some(Share::Partition));
        own(spec).traffic = Some(Traffic::Matrix);
        own(spec).masters = parse_endpoints("0-1:0").expect("masters");
    });
    let plan = resolve_network(&spec, EMPTY, &facts, 7).expect("a plan");
    assert_eq!([0, 1].map(|worker| worker_endpoints(&plan, Some(1), worker)), [vec![0, 3], vec![2]]);
}

#[test]
fn what_cannot_be_is_refused() {
    let has = |message: String, part: &str| assert!(message.contains(part), "{message}");
    has(refusal(&[0], |spec| spec.block_size = Some("4k".to_owned())), "use several --message-sizes");
    has(refusal(&[0], |spec| spec.bytes = Some(ByteSize(1))), "use --count or --time");
    has(
        refusal(&[0], |spec| {
            own(spec).pipeline = Some(2);
            own(spec).connections = Some(3);
        }),
        "--pipeline 2 allows 6 RPCs in flight on 3 connections of a worker, not 16: use --depth 6",
    );
    has(refusal(&[0], |spec| (spec.no_catch_up, spec.think_time) = (true, Some(Span(1)))), "give both");
    let refused = |sizes, memory_bytes, threads| {
        let facts = NetworkFacts { memory_bytes, ..facts(&[0]) };
        let spec = spec(|spec| (spec.threads, spec.depth) = (Some(threads), Some(16)));
        resolve_network(&spec, sizes, &facts, 7).map(|_| ()).map_err(|error| error.0)
    };
    let gib = 1 << 30;
    assert_eq!(refused((bulk(gib), bulk(gib)), None, 2), Ok(()));
    assert_eq!(
        refused((bulk(gib), bulk(gib)), None, 3),
        Err("48 RPCs in flight with 2GiB each need 96 GiB of buffers: use 32 or fewer in flight, or smaller --message-sizes".to_owned())
    );
    assert_eq!(refused((bulk(1 << 20), Payload::EMPTY), Some(32 << 20), 1), Ok(()));
    assert!(refused((bulk((1 << 20) + 1), Payload::EMPTY), Some(32 << 20), 1).is_err());
    let ranks: Vec<u32> = (0..5000).collect();
    has(
        refusal(&ranks, |spec| spec.threads = Some(4)),
        "20000 pairs of a worker and an endpoint are too many",
    );
    let facts = NetworkFacts { asynchronous: false, ..facts(&[0]) };
    let message = resolve_network(&Spec::default(), EMPTY, &facts, 7).expect_err("depth 16").0;
    has(message, "runs one operation at a time");
}

#[test]
fn another_depth_takes_what_nobody_asked_for_along() {
    let of = |phase: &PhasePlan| (phase.load().depth, phase.load().batch, phase.load().batch_max);
    let at = |change: fn(&mut Spec), depth| {
        let spec = spec(change);
        let mut phase = PhasePlan::new(plan(&[0], change));
        phase.set_depth(depth, &spec);
        (of(&phase), phase.of::<NetworkPlan>().map(|plan| plan.pipeline))
    };
    assert_eq!(at(|_| {}, 64), ((64, 64, 64), Some(64)));
    assert_eq!(at(|spec| own(spec).pipeline = Some(20), 8), ((8, 8, 8), Some(20)));
    assert_eq!(at(|spec| (spec.batch, spec.batch_max) = (Some(2), Some(3)), 64), ((64, 2, 3), Some(64)));
    let as_deep = |spec: &mut Spec| (spec.depth, own(spec).pipeline) = (Some(4), Some(4));
    assert_eq!(at(as_deep, 8), ((8, 8, 8), Some(4)), "it was asked for");
}

#[test]
fn what_is_resolved_here_is_accepted_elsewhere_and_nothing_beyond_it() {
    let good = resolve_network(&spec(|_| {}), (bulk(1 << 20), Payload::EMPTY), &facts(&[1, 2]), 7);
    let good = NetworkPlan { masters: masters(&[3]), ..good.expect("a plan") };
    let good = NetworkPlan {
        masters: vec![MasterPlan { endpoints: vec![0, 1], ..good.masters[0].clone() }],
        ..good
    };
    assert_eq!(check_received(&good, Some(1 << 30)), Ok(16 << 20));
    let refused = |part: &str, change: &dyn Fn(&mut NetworkPlan)| {
        let mut plan = good.clone();
        change(&mut plan);
        let message = check_received(&plan, Some(1 << 30)).expect_err(part).to_string();
        assert!(message.contains(part) && message.lines().count() == 1, "{part}: {message}");
    };
    refused("0 endpoints", &|plan| plan.endpoints.clear());
    refused("65537 endpoints", &|plan| plan.endpoints = vec![plan.endpoints[0].clone(); 65_537]);
    refused("master 0 sends to", &|plan| plan.masters[0].endpoints = vec![2]);
    refused("master 0 sends to", &|plan| plan.masters[0].endpoints = vec![0; 65_537]);
    // Sizes whose sum is small again when it overflows.
    refused("a request of", &|plan| plan.request = bulk(u64::MAX - 4000));
    refused("a reply of", &|plan| plan.reply = bulk(u64::MAX));
    refused("an empty reply of 5", &|plan| plan.reply.size_bytes = 5);
    refused("threads 0", &|plan| plan.load.threads = 0);
    refused("threads 4294967295", &|plan| plan.load.threads = u32::MAX);
    refused("depth 0", &|plan| plan.load.depth = 0);
    refused("in flight with", &|plan| (plan.load.depth, plan.load.threads) = (65_536, 4096));
    refused("batch 17", &|plan| plan.load.batch = 17);
    refused("batch_min 17", &|plan| plan.load.batch_min = 17);
    refused("batch_max 0", &|plan| plan.load.batch_max = 0);
    refused("connections 0", &|plan| plan.connections = 0);
    refused("connections 1025", &|plan| plan.connections = 1025);
    refused("pipeline 0", &|plan| plan.pipeline = 0);
    refused("timeout_ns 0", &|plan| plan.timeout_ns = 0);
    refused("interval_ns 0", &|plan| plan.load.interval_ns = 0);
    refused("number of CPUs 4097", &|plan| plan.load.cores = vec![0; 4097]);
    refused("a rate of inf", &|plan| {
        let kind = Spacing::Constant;
        plan.load.arrivals = Some(ArrivalPlan { rate_per_second: f64::INFINITY, kind });
    });
}
