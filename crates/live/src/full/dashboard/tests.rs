use ratatui::Terminal;
use ratatui::backend::TestBackend;
use statistics::{HostRole, WorkerSnapshot};

use super::*;
use crate::testing::{host, netbench, randread, randread_samples};

/// Text that a terminal of this size shows, row by row.
fn shown(dashboard: &Dashboard, columns: u16, rows: u16) -> Vec<String> {
    let mut terminal = Terminal::new(TestBackend::new(columns, rows)).unwrap();
    terminal.draw(|frame| dashboard.draw(frame)).unwrap();
    let buffer = terminal.backend().buffer();
    let row = |y| (0..columns).map(|x| buffer[(x, y)].symbol()).collect();
    (0..rows).map(row).collect()
}

fn running(snapshots: &[Snapshot]) -> Dashboard {
    let mut dashboard = Dashboard::new(2);
    snapshots.iter().for_each(|snapshot| dashboard.take(&Event::Running(snapshot)));
    dashboard
}

fn twelve_seconds() -> Vec<Snapshot> {
    let at = |second: u64| Snapshot {
        elapsed_ns: second * 1_000_000_000,
        done_fraction: Some(second as f64 / 30.0),
        ..randread()
    };
    (1..=12).map(at).collect()
}

fn mix() -> Snapshot {
    Snapshot {
        phase_number: 2,
        phase_count: 8,
        run_left_ns: None,
        classes: vec!["read".to_owned(), "write".to_owned()],
        operations_per_second: vec![300_000.0, 112_000.0],
        bytes_per_second: vec![1_228_800_000.0, 458_752_000.0],
        errors: 3,
        ..randread()
    }
}

fn has(rows: &[String], text: &str) -> bool {
    rows.iter().any(|row| row.contains(text))
}

#[track_caller]
fn assert_shows(rows: &[String], texts: &[&str]) {
    for text in texts {
        assert!(has(rows, text), "{text:?} is missing in\n{}", rows.join("\n"));
    }
}

#[test]
fn a_large_terminal_shows_everything() {
    let rows = shown(&running(&twelve_seconds()), 120, 36);
    assert!(rows[0].starts_with("randread "), "{}", rows[0]);
    assert!(rows[0].ends_with("12.0s of 30s   eta 18s"), "{}", rows[0]);
    assert_shows(
        &rows,
        &[
            "40 %",
            "read           412k/s   1.57 GiB/s",
            "latency  p50 77.0 us   p99 210 us",
            "so far   4.94M operations   18.9 GiB",
            "errors   0",
            "CPU      1.43 of 2",
            " operations/s ",
            "600k",
            " bandwidth, bytes/s ",
            "2 GiB",
            " latency, log scale ",
            "100 us",
            " workers: 2 of 2 running ",
            "     0     206k    805 MiB/s       0",
        ],
    );
    assert!(!has(&rows, "more"));
}

#[test]
fn a_usual_terminal_shows_charts_and_workers() {
    let rows = shown(&running(&twelve_seconds()), 80, 24);
    assert_shows(&rows, &["412k/s", " operations/s ", " latency, log scale ", " workers: 2 of 2 running "]);
    assert!(!has(&rows, "bytes/s "));
}

#[test]
fn a_mix_shows_its_sum_and_each_class() {
    let rows = shown(&running(&[mix()]), 100, 30);
    assert!(rows[0].starts_with("randread   phase 2 of 8 "), "{}", rows[0]);
    assert_shows(
        &rows,
        &[
            "all            412k/s   1.57 GiB/s",
            "read           300k/s   1.14 GiB/s",
            "write          112k/s    438 MiB/s",
            "errors   3",
        ],
    );
}

#[test]
fn a_small_terminal_shows_what_matters_most() {
    let rows = shown(&running(&twelve_seconds()), 40, 10);
    assert_shows(&rows, &["randread", "eta 18s", "412k/s", "p50 77.0 us   p99 210 us", "errors   0"]);
}

#[test]
fn a_narrow_terminal_has_a_short_title() {
    let rows = shown(&running(&[mix()]), 40, 10);
    assert_eq!(rows[0], format!("{:<18}{}", "2/8 randread", "12.0s of 30s   eta 18s"));
}

#[test]
fn no_size_panics() {
    let dashboards =
        [Dashboard::new(2), running(&twelve_seconds()), running(&[mix()]), running(&[netbench()])];
    let sizes =
        [(1, 1), (2, 3), (5, 40), (40, 10), (79, 5), (80, 24), (107, 19), (120, 36), (300, 4), (300, 90)];
    for dashboard in &dashboards {
        for (columns, rows) in sizes {
            shown(dashboard, columns, rows);
        }
    }
    for columns in 1..60 {
        shown(&dashboards[2], columns, 1 + columns % 30);
    }
}

#[test]
fn odd_figures_do_not_panic() {
    let odd = Snapshot {
        phase: "\u{1b}[2J日本語".repeat(30),
        done_fraction: Some(f64::NAN),
        classes: (0..40).map(|class| format!("class {class}")).collect(),
        operations_per_second: vec![f64::NAN, f64::INFINITY, -1.0],
        bytes_per_second: Vec::new(),
        p50_ns: Some(0),
        p99_ns: Some(u64::MAX),
        operations: u64::MAX,
        elapsed_ns: u64::MAX,
        cpus_used: f64::NAN,
        ..randread()
    };
    let rows = shown(&running(&[Snapshot::default(), odd]), 90, 40);
    assert_shows(&rows, &["\\u{1b}[2J", "class 0"]);
}

#[test]
fn workers_that_do_not_fit_are_counted() {
    let worker = WorkerSnapshot { running: true, ..WorkerSnapshot::default() };
    let mut many = vec![worker; 64];
    many[1].running = false;
    many[1].errors = 5;
    let rows = shown(&running(&[Snapshot { workers: many, ..randread() }]), 80, 24);
    assert_shows(&rows, &[" workers: 63 of 64 running ", "       5  ended"]);
    let listed = rows.iter().filter(|row| row.contains("0.00 B/s") || row.contains("0 B/s")).count();
    assert_shows(&rows, &[&format!("… and {} more", 64 - listed)]);
}

#[test]
fn lists_stand_side_by_side_where_there_is_room() {
    let workers: Vec<WorkerSnapshot> = (0..16)
        .map(|index| WorkerSnapshot {
            operations_per_second: f64::from(index) + 500.0,
            ..WorkerSnapshot::default()
        })
        .collect();
    let rows = shown(&running(&[Snapshot { workers, ..randread() }]), 120, 36);
    assert_shows(&rows, &["500", "515", "    15      515"]);
    assert!(rows.iter().any(|row| row.contains("     0      500") && row.contains("     8      508")));
}

#[test]
fn preparation_is_shown_with_its_progress() {
    let mut dashboard = Dashboard::new(2);
    assert_shows(&shown(&dashboard, 60, 12), &["starting"]);
    dashboard.take(&Event::Preparing("laying out /x", 0.45));
    let rows = shown(&dashboard, 60, 12);
    assert!(rows[0].starts_with("laying out /x "));
    assert!(rows[1].contains("45 %"));
}

#[test]
fn a_finished_phase_says_so_and_the_next_begins_anew() {
    let mut dashboard = running(&twelve_seconds());
    assert_eq!(dashboard.history.points().len(), 12);
    dashboard.take(&Event::Finished("randread", &randread_samples()));
    let rows = shown(&dashboard, 80, 24);
    assert!(rows[0].ends_with("done in 12.0s"), "{}", rows[0]);
    assert!(rows[1].contains("100 %"));
    dashboard.take(&Event::Running(&twelve_seconds()[0]));
    assert_eq!(dashboard.history.points().len(), 1);
}

#[test]
fn rows_go_to_charts_first_then_to_workers() {
    assert_eq!(split_rows(3, 10), (0, 0));
    assert_eq!(split_rows(5, 10), (0, 5));
    assert_eq!(split_rows(9, 10), (9, 0));
    assert_eq!(split_rows(16, 67), (9, 7));
    assert_eq!(split_rows(28, 5), (23, 5));
}

#[test]
fn several_hosts_have_a_row_each_instead_of_workers() {
    for (columns, rows) in [(60, 20), (80, 24), (120, 36)] {
        let shown = shown(&running(&[netbench()]), columns, rows);
        assert_shows(
            &shown,
            &[
                "172.200.5.91:1611   server",
                "172.200.5.137:1611  client",
                " 6 hosts ",
                "1.20 on 4 driving hosts",
            ],
        );
        assert!(!has(&shown, "workers") && !has(&shown, "more"), "{}", shown.join("\n"));
        assert_eq!(has(&shown, " operations/s "), rows > 20, "charts where there is room");
    }
}

#[test]
fn a_host_that_lags_or_died_is_in_the_title_and_on_the_screen() {
    let mut snapshot = netbench();
    snapshot.hosts[4].bytes_per_second *= 0.6;
    snapshot.hosts[5].failure = Some("connection reset".to_owned());
    let shown = shown(&running(&[snapshot]), 60, 20);
    assert_shows(
        &shown,
        &[" 6 hosts, 1 failed · slowest 172.200.5.135:1611 -4", "client  failed: connection reset", "k slow"],
    );
}

#[test]
fn hosts_that_do_not_fit_are_counted() {
    let hosts: Vec<_> =
        (0..100).map(|index| host(&format!("node{index:03}:1611"), HostRole::Client, 1.0)).collect();
    let shown = shown(&running(&[Snapshot { hosts, ..netbench() }]), 80, 24);
    let listed = shown.iter().filter(|row| row.contains(":1611")).count();
    assert!(listed >= 5, "{}", shown.join("\n"));
    assert_shows(&shown, &[" 100 hosts ", &format!("… and {} more", 100 - listed)]);
}

#[test]
fn rows_go_to_hosts_first() {
    let six = netbench().hosts;
    assert_eq!(hosts::split_rows(0, &six, 7), (0, 0));
    assert_eq!(hosts::split_rows(11, &six, 7), (0, 9));
    assert_eq!(hosts::split_rows(12, &six, 7), (7, 5));
    assert_eq!(hosts::split_rows(16, &six, 7), (7, 9));
    assert_eq!(hosts::split_rows(30, &six, 7), (21, 9));
    assert_eq!(hosts::split_rows(11, &six[..1], 7), (7, 4));
}
