//! Plain lines for a log: few of them, and nothing that steers a terminal.

use std::io::Write;

use statistics::{Event, PhaseSamples, Snapshot};
use units::human::human_bytes;
use units::human_rate;

use crate::View;
use crate::hosts;
use crate::text;
use crate::throttle::{Clock, Throttle};

/// At most one line in ten seconds, besides the one at the end of a phase.
const INTERVAL_NS: u64 = 10_000_000_000;
/// Most columns of a row by host.
const HOST_COLUMNS_MAX: usize = 118;
/// Most rows by host, heading included.
const HOST_ROWS_MAX: usize = 33;

/// Lines for a log.
pub(crate) struct PlainView<W: Write> {
    out: W,
    clock: Clock,
    throttle: Throttle,
    closed: bool,
}

impl<W: Write> PlainView<W> {
    /// Lines on `out`, at most one in `interval_ns`; the first one an interval from now, so that a short run says only how it ended.
    pub(crate) fn new(out: W, mut clock: Clock, interval_ns: Option<u64>) -> Self {
        let mut throttle = Throttle::new(interval_ns.unwrap_or(INTERVAL_NS));
        throttle.restart(clock());
        Self { out, clock, throttle, closed: false }
    }

    fn write(&mut self, line: &str) {
        let written = writeln!(self.out, "{line}").and_then(|()| self.out.flush());
        self.closed |= written.is_err();
    }
}

/// The figures of all, and a row for each host where there are several.
fn running(snapshot: &Snapshot) -> String {
    let mut lines = text::log_line(snapshot);
    for row in hosts::table(&snapshot.hosts, HOST_COLUMNS_MAX, HOST_ROWS_MAX) {
        lines += &format!("\n  {}", row.text);
    }
    lines
}

/// `randread  done in 30.0s  12.4M operations  47.1 GiB  err 7`
fn last_line(phase: &str, samples: &PhaseSamples) -> String {
    let (mut operations, mut bytes, mut errors) = (0, 0, 0);
    for class in samples.workers.iter().flat_map(|worker| &worker.classes) {
        operations += class.operations;
        bytes += class.bytes;
        errors += class.errors;
    }
    let how = if samples.interrupted.is_some() { "stopped after" } else { "done in" };
    let mut line = format!(
        "{}  {how} {}  {} operations",
        text::printable(phase),
        text::elapsed(samples.elapsed_ns),
        human_rate(operations as f64)
    );
    if bytes > 0 {
        line += &format!("  {}", human_bytes(bytes as f64));
    }
    line += &format!("  err {errors}");
    if let Some(cause) = &samples.interrupted {
        line += &format!("  ({})", text::printable(cause));
    }
    line
}

impl<W: Write> View for PlainView<W> {
    fn event(&mut self, event: &Event<'_>) {
        if self.closed {
            return;
        }
        let now_ns = (self.clock)();
        match event {
            Event::Finished(phase, samples) => {
                self.throttle.restart(now_ns);
                self.write(&last_line(phase, samples));
            }
            Event::Preparing(what, fraction) if self.throttle.pass(now_ns) => {
                self.write(&text::preparing(what, *fraction));
            }
            Event::Running(snapshot) if self.throttle.pass(now_ns) => self.write(&running(snapshot)),
            Event::Preparing(..) | Event::Running(_) => {}
        }
    }

    fn finish(&mut self) {
        self.closed = true;
    }
}

#[cfg(test)]
mod tests {
    use statistics::PhaseSamples;

    use super::*;
    use crate::testing::{HandClock, Sink, netbench, randread, randread_samples};

    #[test]
    fn one_line_in_ten_seconds_and_one_at_the_end() {
        let (sink, clock) = (Sink::default(), HandClock::default());
        let mut view = PlainView::new(sink.clone(), clock.clock(), None);
        for second in 0..=30 {
            clock.set_ms(second * 1_000);
            view.event(&Event::Running(&randread()));
        }
        let line = "randread  12.0s/30s  eta 18s  412k/s  1.57 GiB/s  p50 77.0 us  p99 210 us  err 0\n";
        assert_eq!(sink.take(), line.repeat(3));
        view.event(&Event::Finished("randread", &randread_samples()));
        assert_eq!(sink.take(), "randread  done in 30.0s  12.4M operations  47.1 GiB  err 7\n");
    }

    #[test]
    fn each_host_has_a_line_below_that_of_all() {
        let (sink, clock) = (Sink::default(), HandClock::default());
        let mut view = PlainView::new(sink.clone(), clock.clock(), None);
        clock.set_ms(10_000);
        let mut snapshot = netbench();
        snapshot.hosts.truncate(3);
        snapshot.hosts[0].failure = Some("does not answer".to_owned());
        view.event(&Event::Running(&snapshot));
        let text = sink.take();
        let lines: Vec<&str> = text.lines().collect();
        assert!(
            lines[0].starts_with("netbench  10.0s/1m12s") && lines[0].ends_with("3 hosts, 1 failed"),
            "{text}"
        );
        assert!(lines[1].starts_with("  host                role     done    so far   bandwidth"), "{text}");
        assert_eq!(lines[2], "  172.200.5.91:1611   server  failed: does not answer");
        assert!(lines[4].starts_with("  172.200.5.131:1611  client   13 %"), "{text}");
        assert_eq!(lines.len(), 5);
    }

    #[test]
    fn preparations_are_told_as_rarely() {
        let (sink, clock) = (Sink::default(), HandClock::default());
        let mut view = PlainView::new(sink.clone(), clock.clock(), None);
        view.event(&Event::Preparing("laying out /x", 0.1));
        clock.set_ms(10_000);
        view.event(&Event::Preparing("laying out /x", 0.45));
        clock.set_ms(10_100);
        view.event(&Event::Running(&randread()));
        assert_eq!(sink.take(), "laying out /x  45 %\n");
    }

    #[test]
    fn an_interrupted_phase_says_why() {
        let (sink, clock) = (Sink::default(), HandClock::default());
        let mut view = PlainView::new(sink.clone(), clock.clock(), None);
        let samples = PhaseSamples {
            elapsed_ns: 1_200_000_000,
            workers: Vec::new(),
            interrupted: Some("interrupted\nby SIGINT".to_owned()),
            ..randread_samples()
        };
        view.event(&Event::Finished("rand\u{1b}read", &samples));
        assert_eq!(
            sink.take(),
            "rand\\u{1b}read  stopped after 1.2s  0 operations  err 0  (interrupted\\nby SIGINT)\n"
        );
        view.finish();
        view.event(&Event::Finished("randread", &samples));
        assert_eq!(sink.take(), "");
    }
}
