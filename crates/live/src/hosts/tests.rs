use statistics::HostRole;

use super::*;
use crate::testing::{host, netbench};

fn lines(hosts: &[HostSnapshot], width: usize, rows: usize) -> Vec<String> {
    let lines: Vec<String> = table(hosts, width, rows).into_iter().map(|row| row.text).collect();
    for line in &lines {
        assert!(text::columns(line) <= width, "{line:?} is wider than {width}");
    }
    assert!(lines.len() <= rows);
    lines
}

#[test]
fn a_wide_table_has_every_figure() {
    let shown = lines(&netbench().hosts, 118, 10);
    assert_eq!(
        shown[..4],
        [
            "host                role     done    so far   bandwidth  ops/s  active   CPUs      p99  err",
            "172.200.5.91:1611   server      -   106 GiB  11.4 GiB/s  11.7k       4   0.40        -    0",
            "172.200.5.93:1611   server      -  96.7 GiB  10.4 GiB/s  10.6k       4   0.40        -    0",
            "172.200.5.131:1611  client   13 %  54.5 GiB  5.86 GiB/s  6.00k       4   0.30  1.21 ms    0",
        ]
    );
    assert_eq!(shown.len(), 7);
}

#[test]
fn a_narrow_table_keeps_who_how_far_and_how_fast() {
    assert_eq!(
        lines(&netbench().hosts, 58, 3),
        [
            "host                role     done   bandwidth  ops/s",
            "172.200.5.91:1611   server      -  11.4 GiB/s  11.7k",
            "… and 5 more",
        ]
    );
    assert_eq!(lines(&netbench().hosts, 30, 3)[1], "172.200.5.  server  11.4 GiB/s");
}

#[test]
fn the_slowest_is_marked_when_it_lags() {
    let mut hosts = netbench().hosts;
    assert_eq!(slowest(&hosts), None);
    hosts[5].bytes_per_second *= 0.7;
    assert_eq!(slowest(&hosts).unwrap(), "slowest 172.200.5.137:1611 -33 %");
    let rows = table(&hosts, 118, 10);
    let slow: Vec<&Row> = rows.iter().filter(|row| row.tone == Tone::Slow).collect();
    assert_eq!(slow.len(), 1);
    assert!(slow[0].text.starts_with("172.200.5.137:1611") && slow[0].text.ends_with("0 slow"));
    assert!(lines(&hosts, 58, 10)[6].ends_with("5.35k slow"));
}

#[test]
fn a_host_that_died_says_why_and_stays_when_rows_are_short() {
    let mut hosts = netbench().hosts;
    hosts[4].failure = Some("connection reset\nby peer".to_owned());
    hosts[5].bytes_per_second *= 0.5;
    assert_eq!(count(&hosts), "6 hosts, 1 failed");
    let rows = table(&hosts, 100, 4);
    let tones: Vec<Tone> = rows.iter().map(|row| row.tone).collect();
    assert_eq!(tones, [Tone::Heading, Tone::Failed, Tone::Slow, Tone::Rest]);
    assert_eq!(rows[1].text, "172.200.5.135:1611  client  failed: connection reset\\nby peer");
    assert_eq!(rows[3].text, "… and 4 more");
}

#[test]
fn errors_push_other_figures_aside() {
    let mut hosts = netbench().hosts;
    assert!(!lines(&hosts, 60, 9)[0].contains("err"));
    hosts[2].errors = 3;
    let many = HostSnapshot { errors: 1_234_567, ..hosts[2].clone() };
    assert!(lines(&[many], 118, 9)[1].ends_with("1.21 ms  1234567"));
    assert!(lines(&hosts, 60, 9)[0].ends_with("err") && lines(&hosts, 60, 9)[3].ends_with(" 3"));
}

#[test]
fn no_size_is_exceeded() {
    let mut hosts = netbench().hosts;
    hosts[0].label = "日本語".repeat(20);
    hosts[1].failure = Some("日本語".repeat(60));
    hosts[2].bytes_per_second = f64::NAN;
    hosts.push(HostSnapshot {
        cpus_used: Some(f64::INFINITY),
        done_fraction: Some(f64::NAN),
        ..host("\u{1b}[2J", HostRole::Master, 0.0)
    });
    for width in 0..130 {
        for rows in 0..12 {
            lines(&hosts, width, rows);
        }
    }
    assert_eq!(table(&[], 80, 10), []);
}

#[test]
fn one_host_is_one() {
    assert_eq!(count(&netbench().hosts[..1]), "1 host");
    assert_eq!(lines(&netbench().hosts[..1], 80, 9).len(), 2);
}
