//! Whether what waits in an open loop grows, on simulated queues.

use statistics::{Backlog, BacklogPoint, find_backlog};

use crate::random::Random;

const INTERVAL_NS: u64 = 50_000_000;

/// A queue of `stations` in order of arrival: its course over `seconds`, in intervals of 50 ms.
fn queue(
    arrivals_ns: &[u64],
    stations: usize,
    seconds: u64,
    service_ns: impl Fn(usize) -> u64,
) -> Vec<BacklogPoint> {
    let mut free_ns = vec![0u64; stations];
    let done: Vec<u64> = arrivals_ns
        .iter()
        .enumerate()
        .map(|(number, &at_ns)| {
            let station = free_ns.iter_mut().min().unwrap();
            *station = (*station).max(at_ns) + service_ns(number);
            *station
        })
        .collect();
    let count = |times: &[u64], end_ns: u64| times.iter().filter(|&&at_ns| at_ns < end_ns).count() as u64;
    (1..=seconds * 1_000_000_000 / INTERVAL_NS)
        .map(|interval| interval * INTERVAL_NS)
        .map(|at_ns| BacklogPoint {
            at_ns,
            due_operations: count(arrivals_ns, at_ns),
            done_operations: count(&done, at_ns),
        })
        .collect()
}

fn evenly(rate: u64, seconds: u64) -> Vec<u64> {
    (0..rate * seconds).map(|number| number * 1_000_000_000 / rate).collect()
}

fn poisson(rate: f64, seconds: f64, seed: u64) -> Vec<u64> {
    let mut random = Random::new(seed);
    let mut at = 0.0;
    let next = || {
        at += random.exponential() / rate;
        (at < seconds).then_some((at * 1e9) as u64)
    };
    std::iter::from_fn(next).collect()
}

fn judged(arrivals_ns: &[u64], seconds: u64) -> Backlog {
    // 800 a second.
    find_backlog(&queue(arrivals_ns, 4, seconds, |_| 5_000_000)).unwrap()
}

#[test]
fn above_what_is_served_it_grows() {
    for (rate, grows) in [(400, false), (700, false), (799, false), (820, true), (1000, true), (1500, true)] {
        let backlog = judged(&evenly(rate, 4), 4);
        assert_eq!(backlog.grows, grows, "{rate}: {backlog:?}");
        let expected = (rate as f64 - 800.0).max(0.0);
        assert!((backlog.growth_per_second - expected).abs() < 10.0, "{rate}: {backlog:?}");
        assert!(
            (backlog.done_per_second / (rate as f64).min(800.0) - 1.0).abs() < 0.01,
            "{rate}: {backlog:?}"
        );
    }
}

#[test]
fn chance_in_the_arrivals_is_no_growth() {
    let alarms = |rate| (0..200).filter(|&seed| judged(&poisson(rate, 5.0, seed), 5).grows).count();
    assert!(alarms(560.0) <= 2, "{}", alarms(560.0));
    assert!(alarms(900.0) >= 198, "{}", alarms(900.0));
}

#[test]
fn a_wait_of_every_operation_is_no_growth() {
    // Half a second each, as many at once as come.
    let points = queue(&evenly(1000, 4), 1000, 4, |_| 500_000_000);
    let backlog = find_backlog(&points).unwrap();
    assert!(!backlog.grows, "{backlog:?}");
}

#[test]
fn what_is_worked_off_again_is_no_growth() {
    // A stall of 200 ms each second, wherever the seconds begin.
    for shift in [0, 250, 500, 750] {
        let service = |number: usize| if number % 700 == shift { 200_000_000 } else { 1_000_000 };
        let backlog = find_backlog(&queue(&evenly(700, 5), 1, 5, service)).unwrap();
        assert!(!backlog.grows, "{shift}: {backlog:?}");
    }
}

#[test]
fn what_never_comes_back_is_growth() {
    // 3 % hang.
    let service = |number: usize| if number.is_multiple_of(33) { 8_000_000_000 } else { 100_000 };
    assert!(find_backlog(&queue(&evenly(1000, 5), 1000, 5, service)).unwrap().grows);
}

#[test]
fn too_little_is_not_judged() {
    let points = queue(&evenly(1000, 1), 1, 1, |_| 5_000_000);
    assert_eq!(find_backlog(&points[..8]), None);
    assert!(find_backlog(&points[..9]).is_some());
}
