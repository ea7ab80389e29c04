//! Knees and steady states are found where they were put.

use statistics::{
    KneeOptions, LadderPoint, LadderShape, SteadyReason, Summary, WarmUp, find_knee, refine_knee, summarise,
};
use testkit::{Service, closed_load};
use workload::plan::LoadPlan;

use crate::support::{MS, SECOND, US, run_on};

const SERVERS: usize = 8;

fn rung(load: &LoadPlan, service: Service, servers: usize) -> LadderPoint {
    let summary = summarise(&run_on(load, service, servers).samples, WarmUp::Auto);
    let latency = summary.total.latency.expect("latency");
    LadderPoint {
        concurrency: f64::from(load.threads * load.depth),
        operations_per_second: summary.total.operations_per_second,
        latency_ns_mean: latency.mean_ns,
        latency_ns_p50: latency.p50_ns,
        latency_ns_p99: latency.p99_ns,
    }
}

fn ladder(rungs: &[(u32, u32)], service: &Service) -> Vec<LadderPoint> {
    let step = |&(threads, depth): &(u32, u32)| {
        let mut load = closed_load(threads, depth);
        load.limit.time_ns = Some(SECOND / 2);
        load.interval_ns = 50 * MS;
        rung(&load, service.clone(), SERVERS)
    };
    rungs.iter().map(step).collect()
}

#[test]
fn the_knee_of_a_depth_ladder_is_at_the_number_of_servers() {
    let rungs = [(1, 1), (1, 2), (1, 4), (1, 8), (1, 16), (1, 32)];
    let points = ladder(&rungs, &Service::Fixed(500 * US));
    let rates: Vec<_> = points.iter().map(|point| point.operations_per_second).collect();
    assert_eq!(rates, [2000.0, 4000.0, 8000.0, 16000.0, 16000.0, 16000.0]);
    let knee = find_knee(&points, &KneeOptions::default()).expect("a knee");
    assert_eq!((knee.index, knee.shape, knee.concurrency), (3, LadderShape::Plateau, 8.0));
    assert!((knee.concurrency_saturation - 8.0).abs() < 1e-6, "{}", knee.concurrency_saturation);
    assert_eq!(knee.latency_ns_p99, Some(500 * US));
    assert!((knee.little_worst.ratio - 1.0).abs() < 0.02, "{:?}", knee.little_worst);
    let climbing = find_knee(&points[..3], &KneeOptions::default()).expect("a knee");
    assert_eq!(climbing.shape, LadderShape::StillClimbing);
}

#[test]
fn the_knee_stays_there_when_service_times_vary() {
    let points = ladder(
        &[(1, 1), (1, 2), (1, 4), (1, 8), (1, 16), (1, 64)],
        &Service::Exponential { mean_ns: 200 * US, seed: 5 },
    );
    let knee = find_knee(&points, &KneeOptions::default()).expect("a knee");
    assert_eq!((knee.index, knee.shape), (3, LadderShape::Plateau));
    assert!((knee.operations_per_second_max / 40_000.0 - 1.0).abs() < 0.03, "{knee:?}");
}

#[test]
fn rungs_between_two_doublings_find_the_knee() {
    for servers in [7, 8, 13, 32] {
        let measure = |depth: u32| {
            let mut load = closed_load(1, depth);
            (load.limit.time_ns, load.interval_ns) = (Some(SECOND), 50 * MS);
            rung(&load, Service::Fixed(MS), servers)
        };
        let mut points: Vec<_> = [1, 2, 4, 8, 16, 32, 64, 128].map(measure).to_vec();
        while let Some(depth) = refine_knee(&points, &KneeOptions::default(), 1.0) {
            points.push(measure(depth));
        }
        let knee = find_knee(&points, &KneeOptions::default()).expect("a knee");
        let of_width = knee.concurrency / servers as f64;
        assert!((0.94..=1.13).contains(&of_width), "{servers}: {knee:?}");
        assert!((knee.concurrency_saturation / servers as f64 - 1.0).abs() < 0.01, "{servers}: {knee:?}");
    }
}

#[test]
fn threads_climb_to_the_same_knee() {
    let points = ladder(&[(1, 1), (2, 1), (4, 2), (4, 4), (8, 4)], &Service::Fixed(MS));
    let knee = find_knee(&points, &KneeOptions::default()).expect("a knee");
    assert_eq!((knee.index, knee.shape, knee.concurrency), (2, LadderShape::Plateau, 8.0));
}

/// Four operations in flight; service takes `before_ns` until `change_ns`, then 1 ms.
fn settling(before_ns: u64, change_ns: u64) -> Summary {
    let mut load = closed_load(1, 4);
    load.limit.time_ns = Some(5 * SECOND);
    load.interval_ns = 50 * MS;
    let service = Service::Steps(vec![(0, before_ns), (change_ns, MS)]);
    summarise(&run_on(&load, service, 4).samples, WarmUp::Auto)
}

#[test]
fn steady_state_is_found_where_it_begins() {
    let summary = settling(5 * MS, SECOND);
    assert!(summary.steady.is_steady, "{:?}", summary.steady);
    assert_eq!((summary.window_start_ns, summary.window_end_ns), (SECOND, 5 * SECOND));
    assert_eq!(summary.total.operations_per_second, 4000.0);
    let latency = summary.total.latency.expect("latency");
    assert_eq!((latency.min_ns, latency.max_ns), (MS, MS), "nothing of before is in the figures");
}

#[test]
fn a_rate_that_drops_is_no_warm_up() {
    let summary = settling(MS / 4, SECOND);
    assert_eq!((summary.steady.is_steady, summary.steady.reason), (false, SteadyReason::RateDropped));
}

#[test]
fn what_is_steady_from_the_start_is_not_cut() {
    let summary = settling(MS, SECOND);
    assert!(summary.steady.is_steady);
    assert_eq!((summary.window_start_ns, summary.total.window_operations), (0, 20_000));
}

#[test]
fn a_late_change_is_no_steady_state() {
    let summary = settling(2 * MS, 4 * SECOND);
    assert_eq!((summary.steady.is_steady, summary.steady.reason), (false, SteadyReason::LevelChanges));
}
