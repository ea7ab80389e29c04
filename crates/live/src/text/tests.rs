use super::*;
use crate::testing::{netbench, randread};

#[test]
fn a_progress_line_in_full() {
    assert_eq!(
        progress_line(&randread(), 200),
        "randread  12.0s/30s [====>     ] eta 18s  412k/s  1.57 GiB/s  p50 77.0 us  p99 210 us  err 0"
    );
}

#[test]
fn a_short_line_loses_what_matters_least_first() {
    let snapshot = randread();
    assert_eq!(
        progress_line(&snapshot, 79),
        "randread  12.0s/30s eta 18s  412k/s  1.57 GiB/s  p50 77.0 us  p99 210 us  err 0"
    );
    assert_eq!(
        progress_line(&snapshot, 78),
        "randread  12.0s/30s eta 18s  412k/s  1.57 GiB/s  p99 210 us  err 0"
    );
    assert_eq!(progress_line(&snapshot, 40), "randread  12.0s/30s  412k/s  err 0");
    assert_eq!(progress_line(&snapshot, 5), "randr");
    assert_eq!(progress_line(&snapshot, 0), "");
}

#[test]
fn no_width_is_exceeded() {
    let snapshot = Snapshot { phase: "日本語 read".to_owned(), ..randread() };
    for width in 0..120 {
        assert!(columns(&progress_line(&snapshot, width)) <= width, "{width}");
    }
}

#[test]
fn a_phase_among_several_without_bytes_latency_or_end() {
    let snapshot = Snapshot {
        phase_number: 2,
        phase_count: 8,
        run_left_ns: None,
        phase: "discard".to_owned(),
        done_fraction: None,
        bytes: 0,
        p50_ns: None,
        p99_ns: None,
        errors: 3,
        ..randread()
    };
    assert_eq!(progress_line(&snapshot, 200), "2/8 discard  12.0s  412k/s  p50 -  p99 -  err 3");
}

#[test]
fn a_log_line_has_no_bar() {
    assert_eq!(
        log_line(&randread()),
        "randread  12.0s/30s  eta 18s  412k/s  1.57 GiB/s  p50 77.0 us  p99 210 us  err 0"
    );
}

#[test]
fn rates_are_those_of_all_classes() {
    let snapshot = Snapshot {
        classes: vec!["read".to_owned(), "write".to_owned()],
        operations_per_second: vec![700.0, 250.0],
        bytes_per_second: vec![3_145_728.0, 1_048_576.0],
        ..randread()
    };
    assert!(progress_line(&snapshot, 200).contains("  950/s  4.00 MiB/s  "));
}

#[test]
fn before_there_is_a_pace_no_rest_is_guessed() {
    let snapshot = Snapshot { elapsed_ns: 0, done_fraction: Some(0.0), ..randread() };
    assert_eq!(progress(&snapshot), Some(Progress { fraction: 0.0, rest_and_total_s: None }));
    let line = progress_line(&snapshot, 200);
    assert!(line.starts_with("randread  0.0s [>         ]  412k/s"), "{line}");
    let odd = Snapshot { done_fraction: Some(f64::NAN), ..randread() };
    assert_eq!(progress(&odd), None);
}

#[test]
fn a_done_phase_has_nothing_left() {
    let snapshot = Snapshot { elapsed_ns: 30_000_000_000, done_fraction: Some(1.0), ..randread() };
    let line = progress_line(&snapshot, 200);
    assert!(line.starts_with("randread  30.0s/30s [==========] eta 0s"), "{line}");
}

#[test]
fn times() {
    assert_eq!(elapsed(0), "0.0s");
    assert_eq!(elapsed(59_990_000_000), "59.9s");
    assert_eq!(elapsed(62_000_000_000), "1m02s");
    assert_eq!(elapsed(3_723_000_000_000), "1h02m");
    assert_eq!(total(2.5), "2.5s");
    assert_eq!(total(30.000_000_001), "30s");
    assert_eq!(total(90.0), "1m30s");
    assert_eq!(rest(17.2), "18s");
    assert_eq!(rest(18.000_000_001), "18s");
    assert_eq!(rest(0.0), "0s");
}

#[test]
fn preparations() {
    assert_eq!(preparing("laying out /x", 0.459), "laying out /x  45 %");
    assert_eq!(preparing("laying out /x", 1.0), "laying out /x  100 %");
    assert_eq!(preparing("laying out /x", f64::NAN), "laying out /x  n/a");
}

#[test]
fn a_name_cannot_steer_the_terminal() {
    assert_eq!(preparing("a\u{1b}[2J\nb", 0.0), "a\\u{1b}[2J\\nb  0 %");
    let snapshot = Snapshot { phase: "x\ry".to_owned(), ..randread() };
    assert!(progress_line(&snapshot, 200).starts_with("x\\ry  12.0s"));
}

#[test]
fn hosts_are_counted_and_the_slowest_is_named() {
    let mut snapshot = netbench();
    assert!(progress_line(&snapshot, 200).ends_with("err 0  6 hosts"));
    snapshot.hosts[3].bytes_per_second *= 0.5;
    snapshot.hosts[4].failure = Some("connection reset".to_owned());
    let line = log_line(&snapshot);
    assert!(line.ends_with("err 0  6 hosts, 1 failed  slowest 172.200.5.133:1611 -47 %"), "{line}");
    assert!(progress_line(&snapshot, 80).contains("1 failed"), "a dead host matters more than latency");
}
