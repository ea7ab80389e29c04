//! Many hosts as one, with known answers.

use proptest::prelude::*;
use statistics::{
    Histogram, HostRole, HostSnapshot, MasterReport, Snapshot, SparseHistogram, WorkerSnapshot, join_hosts,
    laggard,
};

/// A host that drives one class at this rate, 4 KiB an operation, with latencies of these nanoseconds.
fn driving(class: &str, rate: f64, latencies_ns: &[u64]) -> Snapshot {
    let mut latency = Histogram::new();
    latencies_ns.iter().for_each(|ns| latency.record(*ns));
    Snapshot {
        phase: "rpc".to_owned(),
        phase_number: 1,
        phase_count: 1,
        elapsed_ns: 10_000_000_000,
        done_fraction: Some(0.25),
        classes: vec![class.to_owned()],
        operations_per_second: vec![rate],
        bytes_per_second: vec![rate * 4096.0],
        p50_ns: latency.percentile(50.0),
        p99_ns: latency.percentile(99.0),
        latency: SparseHistogram::from(&latency),
        operations: 100,
        bytes: 409_600,
        errors: 1,
        cpus_used: 0.5,
        workers: vec![WorkerSnapshot { running: true, operations_per_second: rate, ..Default::default() }; 2],
        ..Snapshot::default()
    }
}

fn master<'a>(label: &'a str, snapshot: &'a Snapshot) -> MasterReport<'a> {
    MasterReport { label, role: HostRole::Client, snapshot: Some(snapshot), has_ended: false, failure: None }
}

fn server(label: &str) -> HostSnapshot {
    HostSnapshot {
        label: label.to_owned(),
        role: HostRole::Server,
        bytes: 1_000_000,
        bytes_per_second: 9e9,
        workers_active: 4,
        ..HostSnapshot::default()
    }
}

#[test]
fn hosts_that_drive_add_up_and_servers_do_not_count() {
    let (one, other) = (driving("rpc", 100.0, &[10, 20, 30]), driving("rpc", 50.0, &[1_000]));
    let other = Snapshot { elapsed_ns: 11_000_000_000, done_fraction: Some(0.5), ..other };
    let all = join_hosts(&[master("a", &one), master("b", &other)], vec![server("s")]);
    assert_eq!((all.phase.as_str(), all.phase_number, all.phase_count), ("rpc", 1, 1));
    assert_eq!((all.elapsed_ns, all.done_fraction), (11_000_000_000, Some(0.25)));
    assert_eq!((&all.classes[..], &all.operations_per_second[..]), (&["rpc".to_owned()][..], &[150.0][..]));
    assert_eq!(all.bytes_per_second, [150.0 * 4096.0]);
    assert_eq!((all.operations, all.bytes, all.errors), (200, 819_200, 2));
    assert_eq!((all.cpus_used, all.workers.len()), (1.0, 4));
    let labels: Vec<&str> = all.hosts.iter().map(|host| host.label.as_str()).collect();
    assert_eq!(labels, ["s", "a", "b"]);
    assert_eq!((all.hosts[1].bytes_per_second, all.hosts[1].workers_active), (409_600.0, 2));
    assert_eq!((all.hosts[2].p99_ns, all.hosts[2].cpus_used), (Some(1_000), Some(0.5)));
}

#[test]
fn percentiles_are_those_of_all_latencies_and_no_mean_of_medians() {
    // Medians of 20 and 1000 with three operations to one: the median of all four is the second smallest.
    let (one, other) = (driving("rpc", 3.0, &[10, 20, 30]), driving("rpc", 1.0, &[1_000]));
    let all = join_hosts(&[master("a", &one), master("b", &other)], Vec::new());
    assert_eq!((all.p50_ns, all.p99_ns), (Some(20), Some(1_000)));
    assert_eq!(all.latency.count(), 4);
    let bare = Snapshot { latency: SparseHistogram::default(), ..one.clone() };
    let all = join_hosts(&[master("a", &bare), master("b", &other)], Vec::new());
    assert_eq!((all.p50_ns, all.p99_ns), (None, None), "a part of the latencies is not told as all of them");
    assert_eq!(join_hosts(&[master("a", &bare)], Vec::new()).p50_ns, Some(20));
}

#[test]
fn classes_are_united_by_name() {
    let (one, other) = (driving("read", 5.0, &[]), driving("write", 2.0, &[]));
    let all = join_hosts(&[master("a", &one), master("b", &other), master("c", &one)], Vec::new());
    assert_eq!(all.classes, ["read", "write"]);
    assert_eq!(all.operations_per_second, [10.0, 2.0]);
    assert_eq!(all.p50_ns, None);
}

#[test]
fn a_dead_host_keeps_its_counts_and_has_no_rates() {
    let (one, other) = (driving("rpc", 100.0, &[10]), driving("rpc", 50.0, &[7_000]));
    let other = Snapshot { done_fraction: Some(0.125), ..other };
    let dead = MasterReport { failure: Some("connection reset"), ..master("b", &other) };
    let all = join_hosts(&[master("a", &one), dead], Vec::new());
    assert_eq!((all.operations_per_second[0], all.operations, all.errors), (100.0, 200, 2));
    assert_eq!((all.p99_ns, all.cpus_used, all.done_fraction), (Some(10), 0.5, Some(0.25)));
    let row = &all.hosts[1];
    assert_eq!((row.failure.as_deref(), row.bytes), (Some("connection reset"), 409_600));
    assert_eq!((row.bytes_per_second, row.workers_active, row.cpus_used), (0.0, 0, None));
    assert_eq!(all.workers.iter().filter(|worker| worker.running).count(), 2);
    assert_eq!(join_hosts(&[dead], Vec::new()).done_fraction, Some(0.125));
}

#[test]
fn a_host_that_has_ended_is_done_and_has_no_rates() {
    let (one, other) = (driving("rpc", 100.0, &[10]), driving("rpc", 50.0, &[7_000]));
    let ended = MasterReport { has_ended: true, ..master("b", &other) };
    let all = join_hosts(&[master("a", &one), ended], Vec::new());
    assert_eq!((all.operations_per_second[0], all.operations, all.p99_ns), (100.0, 200, Some(10)));
    assert_eq!((all.hosts[1].done_fraction, all.hosts[1].workers_active), (Some(1.0), 0));
    assert_eq!((all.done_fraction, join_hosts(&[ended], Vec::new()).done_fraction), (Some(0.25), Some(1.0)));
}

#[test]
fn before_anything_is_told_there_are_only_rows() {
    let silent =
        MasterReport { label: "a", role: HostRole::Master, snapshot: None, has_ended: false, failure: None };
    let all = join_hosts(&[silent], Vec::new());
    assert_eq!((all.phase.as_str(), all.classes.len(), all.done_fraction), ("", 0, None));
    assert_eq!((all.hosts.len(), all.hosts[0].role), (1, HostRole::Master));
    assert_eq!(join_hosts(&[], Vec::new()), Snapshot::default());
}

#[test]
fn a_snapshot_of_hosts_survives_json_and_one_without_reads_as_before() {
    let one = driving("rpc", 100.0, &[10, 5_000_000]);
    let all = join_hosts(&[master("a", &one)], vec![server("s")]);
    let text = serde_json::to_string(&all).unwrap();
    assert_eq!(serde_json::from_str::<Snapshot>(&text).unwrap(), all);
    let plain = Snapshot { latency: SparseHistogram::default(), ..one };
    let text = serde_json::to_string(&plain).unwrap();
    assert!(!text.contains("hosts") && !text.contains("latency\""), "{text}");
    assert_eq!(serde_json::from_str::<Snapshot>(&text).unwrap(), plain);
}

fn at(role: HostRole, bytes_per_second: f64) -> HostSnapshot {
    HostSnapshot { role, bytes_per_second, workers_active: 1, ..HostSnapshot::default() }
}

#[test]
fn the_slowest_that_drives_lags_from_a_fifth_below_the_median_on() {
    use HostRole::{Client, Master, Server};
    let mut hosts = vec![at(Server, 1.0), at(Client, 100.0), at(Client, 79.0), at(Master, 100.0)];
    let found = laggard(&hosts).unwrap();
    assert_eq!((found.host, (found.below_median * 1e6).round()), (2, 210_000.0));
    hosts[2].bytes_per_second = 80.0;
    assert_eq!(laggard(&hosts), None, "exactly a fifth is borne");
    hosts[2].bytes_per_second = 0.0;
    assert_eq!(laggard(&hosts).unwrap().below_median, 1.0);
    hosts[2].workers_active = 0;
    assert_eq!(laggard(&hosts), None, "it has done its part");
    hosts[2] = HostSnapshot { failure: Some("dead".to_owned()), ..at(Client, 0.0) };
    assert_eq!(laggard(&hosts), None);
    assert_eq!(laggard(&[at(Client, 0.0)]), None);
    assert_eq!(laggard(&[]), None);
}

#[test]
fn without_bytes_operations_are_compared() {
    let empty = |operations_per_second| HostSnapshot { operations_per_second, ..at(HostRole::Client, 0.0) };
    assert_eq!(laggard(&[empty(10.0), empty(10.0), empty(5.0)]).map(|found| found.host), Some(2));
    assert_eq!(laggard(&[empty(10.0), empty(9.0)]), None);
}

proptest! {
    #[test]
    fn merged_percentiles_are_those_of_one_histogram(
        parts in prop::collection::vec(prop::collection::vec(1_u64..100_000_000, 0..60), 1..6),
    ) {
        let snapshots: Vec<Snapshot> = parts.iter().map(|part| driving("rpc", 1.0, part)).collect();
        let reports: Vec<_> = snapshots.iter().map(|snapshot| master("h", snapshot)).collect();
        let mut one = Histogram::new();
        parts.iter().flatten().for_each(|ns| one.record(*ns));
        let all = join_hosts(&reports, Vec::new());
        prop_assert_eq!((all.p50_ns, all.p99_ns), (one.percentile(50.0), one.percentile(99.0)));
    }
}
