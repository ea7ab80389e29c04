use std::cmp::Reverse;
use std::collections::BinaryHeap;

use statistics::{Histogram, KneeOptions, LadderPoint, LadderShape, find_knee, refine_knee};

use crate::random::Random;

/// A closed queue of `concurrency` callers without think time before `servers` servers, simulated event by event.
fn simulate(servers: usize, concurrency: usize, mut service_ns: impl FnMut() -> u64) -> LadderPoint {
    let mut free: BinaryHeap<Reverse<u64>> = (0..servers).map(|_| Reverse(0)).collect();
    let mut callers: BinaryHeap<Reverse<u64>> = (0..concurrency).map(|_| Reverse(0)).collect();
    let mut latency = Histogram::new();
    let mut end_ns = 0;
    for _ in 0..20_000 {
        let Reverse(arrived) = callers.pop().unwrap();
        let Reverse(idle) = free.pop().unwrap();
        let done = arrived.max(idle) + service_ns();
        free.push(Reverse(done));
        callers.push(Reverse(done));
        latency.record(done - arrived);
        end_ns = end_ns.max(done);
    }
    LadderPoint {
        concurrency: concurrency as f64,
        operations_per_second: 20_000.0 * 1e9 / end_ns as f64,
        latency_ns_mean: latency.mean_ns().unwrap(),
        latency_ns_p50: latency.percentile(50.0).unwrap(),
        latency_ns_p99: latency.percentile(99.0),
    }
}

fn rung(concurrency: f64, operations_per_second: f64) -> LadderPoint {
    let latency_ns_mean = concurrency * 1e9 / operations_per_second;
    LadderPoint {
        concurrency,
        operations_per_second,
        latency_ns_mean,
        latency_ns_p50: latency_ns_mean as u64,
        latency_ns_p99: Some(2 * latency_ns_mean as u64),
    }
}

const POWERS: [usize; 8] = [1, 2, 4, 8, 16, 32, 64, 128];

#[test]
fn a_server_of_fixed_service_time_has_its_knee_at_its_width() {
    for servers in [1, 4, 16, 32] {
        let ladder: Vec<_> = POWERS.iter().map(|depth| simulate(servers, *depth, || 100_000)).collect();
        let knee = find_knee(&ladder, &KneeOptions::default()).unwrap();
        assert_eq!(knee.concurrency, servers as f64, "{knee:?}");
        let expected = if servers == 1 { LadderShape::FlatFromStart } else { LadderShape::Plateau };
        assert_eq!(knee.shape, expected);
        assert!((knee.concurrency_saturation / servers as f64 - 1.0).abs() < 0.01, "{knee:?}");
        assert!((knee.operations_per_second / (servers as f64 * 1e4) - 1.0).abs() < 0.01);
        assert!(knee.share_of_bound > 0.99, "{knee:?}");
        assert!((knee.little.ratio - 1.0).abs() < 0.01, "{knee:?}");
        assert!(knee.latency_ns_p50.abs_diff(100_000) < 100);
        assert_eq!(ladder[knee.index].concurrency, knee.concurrency);
    }
}

#[test]
fn a_server_of_random_service_time_has_its_knee_there_too() {
    for (servers, seed) in [(4, 1), (8, 2), (32, 3)] {
        let mut random = Random::new(seed);
        let ladder: Vec<_> = POWERS
            .iter()
            .map(|depth| simulate(servers, *depth, || (random.exponential() * 100_000.0) as u64))
            .collect();
        let knee = find_knee(&ladder, &KneeOptions::default()).unwrap();
        assert_eq!(knee.shape, LadderShape::Plateau);
        assert_eq!(knee.concurrency, servers as f64, "{knee:?}");
        assert!((knee.concurrency_saturation / servers as f64 - 1.0).abs() < 0.08, "{knee:?}");
    }
}

#[test]
fn rungs_between_the_powers_put_the_knee_exactly() {
    let ladder: Vec<_> = (1..=24).map(|depth| simulate(12, depth, || 50_000)).collect();
    let knee = find_knee(&ladder, &KneeOptions { rate_share: 0.99 }).unwrap();
    assert_eq!((knee.concurrency, knee.index), (12.0, 11));
    let early = find_knee(&ladder, &KneeOptions { rate_share: 0.5 }).unwrap();
    assert_eq!(early.concurrency, 6.0);
}

#[test]
fn a_ladder_that_ends_too_early_still_climbs() {
    let ladder: Vec<_> = POWERS[..5].iter().map(|depth| simulate(64, *depth, || 100_000)).collect();
    let knee = find_knee(&ladder, &KneeOptions::default()).unwrap();
    assert_eq!((knee.shape, knee.concurrency), (LadderShape::StillClimbing, 16.0));
    assert_eq!(knee.elasticity_after, None);
    // Fine steps never lose 5 % from one to the next; the growth shows all the same.
    let fine: Vec<_> = (30..=60).map(|depth| rung(f64::from(depth), 1000.0 * f64::from(depth))).collect();
    let knee = find_knee(&fine, &KneeOptions::default()).unwrap();
    assert_eq!(knee.shape, LadderShape::StillClimbing);
    assert!((knee.elasticity_after.unwrap() - 1.0).abs() < 1e-9);
}

#[test]
fn a_rate_that_falls_after_its_peak_is_seen() {
    let ladder = [rung(1.0, 1e4), rung(4.0, 3.8e4), rung(16.0, 4e4), rung(64.0, 3e4)];
    let knee = find_knee(&ladder, &KneeOptions::default()).unwrap();
    assert_eq!((knee.shape, knee.index, knee.concurrency_at_max), (LadderShape::FallsAfterPeak, 1, 16.0));
    assert!((knee.last_share_of_max - 0.75).abs() < 1e-12);
}

#[test]
fn the_order_of_the_rungs_does_not_matter() {
    let ladder = [rung(16.0, 4e4), rung(1.0, 1e4), rung(64.0, 4.01e4), rung(4.0, 3.9e4)];
    let knee = find_knee(&ladder, &KneeOptions::default()).unwrap();
    assert_eq!((knee.shape, knee.index), (LadderShape::Plateau, 3));
}

#[test]
fn noise_on_the_plateau_does_not_move_the_knee() {
    // With 1 % of noise the highest of four rates stands 5 % above another about once in 200 ladders.
    let found = (0..200)
        .filter(|seed| {
            let mut random = Random::new(*seed);
            let ladder: Vec<_> = POWERS
                .iter()
                .map(|depth| {
                    let depth = *depth as f64;
                    rung(depth, depth.min(16.0) * 1e4 * (1.0 + 0.01 * random.normal()))
                })
                .collect();
            let knee = find_knee(&ladder, &KneeOptions::default()).unwrap();
            knee.shape == LadderShape::Plateau && knee.concurrency == 16.0
        })
        .count();
    assert!(found >= 198, "{found} of 200");
}

#[test]
fn littles_law_shows_what_the_tool_kept_for_itself() {
    let mut ladder = vec![rung(1.0, 1e4), rung(8.0, 7.9e4), rung(16.0, 8e4)];
    // Half of the time of this rung the operations were not in flight.
    ladder[2].latency_ns_mean /= 2.0;
    let knee = find_knee(&ladder, &KneeOptions::default()).unwrap();
    assert!((knee.little.ratio - 1.0).abs() < 1e-9);
    assert_eq!(knee.little_worst.asked, 16.0);
    assert!((knee.little_worst.measured - 8.0).abs() < 1e-9);
}

#[test]
fn what_is_no_ladder_has_no_knee() {
    let options = KneeOptions::default();
    assert_eq!(find_knee(&[], &options), None);
    assert_eq!(find_knee(&[LadderPoint { operations_per_second: 0.0, ..rung(1.0, 1e4) }], &options), None);
    assert_eq!(find_knee(&[rung(1.0, 1e4)], &KneeOptions { rate_share: 0.0 }), None);
    assert_eq!(find_knee(&[rung(1.0, 1e4)], &KneeOptions { rate_share: 1.5 }), None);
    let single = find_knee(&[rung(8.0, 1e4)], &options).unwrap();
    assert_eq!((single.shape, single.index), (LadderShape::SinglePoint, 0));
    let failed_rung = [rung(1.0, 1e4), rung(2.0, f64::NAN), rung(4.0, 2e4), rung(8.0, 2e4)];
    assert_eq!(find_knee(&failed_rung, &options).unwrap().index, 2);
}

/// A climb as `--saturate` makes it: doublings until two are flat, then rungs between; the refined ones in order.
fn climb(measure: impl Fn(usize) -> LadderPoint) -> (Vec<LadderPoint>, Vec<u32>) {
    let mut points: Vec<_> = POWERS.iter().map(|depth| measure(*depth)).collect();
    let mut refined = Vec::new();
    while let Some(next) = refine_knee(&points, &KneeOptions::default(), 1.0) {
        assert!(!points.iter().any(|point| point.concurrency == f64::from(next)), "{next} again");
        refined.push(next);
        points.push(measure(next as usize));
    }
    (points, refined)
}

#[test]
fn rungs_between_find_a_knee_that_doublings_step_over() {
    // What a round trip costs beside the service keeps the rung at the width below 95 % of the highest rate.
    for (servers, refined) in
        [(8usize, &[12, 10, 9][..]), (32, &[48, 40, 36]), (24, &[24, 28, 26]), (12, &[12, 14, 13])]
    {
        let measure = |depth: usize| {
            let rate = (depth as f64 / 1.1e-3).min(servers as f64 / 1e-3);
            LadderPoint { latency_ns_mean: depth as f64 * 1e9 / rate, ..rung(depth as f64, rate) }
        };
        let coarse = find_knee(&POWERS.map(measure), &KneeOptions::default()).unwrap();
        let (points, rungs) = climb(measure);
        let knee = find_knee(&points, &KneeOptions::default()).unwrap();
        assert_eq!(rungs, refined, "{servers}: {knee:?}");
        let width = 1.1 * servers as f64;
        assert!((0.9..1.15).contains(&(knee.concurrency / width)), "{servers}: {knee:?}");
        assert!(coarse.concurrency > knee.concurrency, "{servers}: {coarse:?}");
        assert!((knee.concurrency_saturation / width - 1.0).abs() < 0.01, "{knee:?}");
    }
}

#[test]
fn a_knee_without_a_place_is_not_refined() {
    let refined = |points: &[LadderPoint]| refine_knee(points, &KneeOptions::default(), 1.0);
    assert_eq!(refined(&[rung(1.0, 100.0), rung(2.0, 200.0), rung(4.0, 400.0)]), None, "it still climbs");
    assert_eq!(refined(&[rung(1.0, 100.0), rung(2.0, 100.0), rung(4.0, 100.0)]), None, "flat from the start");
    assert_eq!(refined(&[rung(1.0, 100.0), rung(2.0, 200.0), rung(4.0, 200.0), rung(8.0, 200.0)]), None);
    // Two threads: their rungs are twice as far apart.
    let wide =
        [rung(8.0, 100.0), rung(16.0, 180.0), rung(32.0, 300.0), rung(64.0, 300.0), rung(128.0, 300.0)];
    assert_eq!(refine_knee(&wide, &KneeOptions::default(), 2.0), Some(12));
}
