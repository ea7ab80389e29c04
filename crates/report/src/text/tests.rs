use statistics::{ErrorCount, WarmUp, summarise};
use workload::plan::ArrivalPlan;
use workload::spec::{LadderDimension, Operation, Spacing};

use super::*;
use crate::record::{ArrivalOutcome, Doubt};
use crate::sample::{self, DRIVE, Shape};

fn doubt(kind: &str, detail: &str) -> Doubt {
    Doubt { kind: kind.to_owned(), detail: detail.to_owned(), remedy: "measure again".to_owned() }
}

/// The lines of a page that begin with this label, joined.
fn field(text: &str, label: &str) -> String {
    let lines = text.lines().skip_while(|line| !line.starts_with(label));
    let mut found = String::new();
    for (at, line) in lines.enumerate() {
        if at > 0 && !line.starts_with("          ") {
            break;
        }
        let part = if at == 0 { line[label.len()..].trim() } else { line.trim() };
        found = format!("{found} {part}").trim().to_owned();
    }
    found
}

#[test]
fn the_first_screen_says_it_all() {
    let mut phase = sample::phase(&Shape { operation: Operation::RandRw, ..DRIVE });
    phase.notes.push("io_uring: buffers could not be registered: plain buffers are used".to_owned());
    phase.doubts.push(doubt("other_load", "other processes used 0.50 CPUs of this machine"));
    let text = render(&sample::record(vec![phase]), 80, false);
    let expected = "\
strata 0.1.0, run 00c0ffee00c0ffee, seed 42, 2026-01-02T03:04:05Z
store1: Example EPYC 7B13, 8 cores, 64 GiB, Linux 6.12.8
────────────────────────────────────────────────────────────────────────────────
on        /data/file: 10 GiB, ext4 on nvme0n1p2 (Example SSD 980, scheduler
          none)

randrw
what      media, 4KiB random, 70% reads, 30% writes, 4 threads x depth 32,
          io_uring, direct, 4.00 s

class   rate   ±95%  bandwidth   mean    p50    p99   p99.9  p99.99     max
read  280k/s ±0.19% 1.07 GiB/s 330 us 320 us 384 us 1.28 ms 1.28 ms 1.28 ms
write 120k/s ±0.19%  469 MiB/s 329 us 320 us 384 us 1.28 ms 1.28 ms 1.28 ms
total 400k/s ±0.19% 1.53 GiB/s 330 us 320 us 384 us 1.28 ms 1.28 ms 1.28 ms

precision 95 % CI 399k/s to 401k/s (40 intervals of 100 ms, effective sample
          size 40); steady from the start
cost      2.40 us CPU per operation, 0.96 CPUs used; strata itself 60 ns per
          operation
note      io_uring: buffers could not be registered: plain buffers are used
warning   other_load: other processes used 0.50 CPUs of this machine
          try: measure again
────────────────────────────────────────────────────────────────────────────────
strata    38.2 ns per operation on the null driver; 9.80 ns per clock read
          (time-stamp counter, drift 3 ppm); 24 MiB of memory
";
    assert_eq!(text, expected);
}

#[test]
fn lines_keep_to_the_width_and_end_in_no_space() {
    use workload::spec::Operation::{RandWrite, Read};
    let rows =
        [("null", Read, 1 << 20, 9e6), ("memory", RandWrite, 4096, 1e6), ("media", RandWrite, 4096, 1e4)];
    let records = [
        sample::record(vec![sample::phase(&DRIVE)]),
        sample::ladder(&[1, 8, 64], 8e4, 1e5),
        sample::stack(&rows),
    ];
    for record in &records {
        for width in [0, 40, 60, 80, 120, 300] {
            let text = render(record, width, false);
            for line in text.lines() {
                assert!(line.chars().count() <= width.max(50), "{width}: {line}");
                assert_eq!(line, line.trim_end(), "{width}");
            }
        }
    }
}

#[test]
fn colour_is_only_colour() {
    let record = sample::ladder(&[1, 8], 8e4, 1e5);
    let coloured = render(&record, 80, true);
    let mut plain = String::new();
    for (at, part) in coloured.split('\x1b').enumerate() {
        plain.push_str(if at == 0 { part } else { part.split_once('m').unwrap().1 });
    }
    assert!(coloured.len() > plain.len());
    assert_eq!(plain, render(&record, 80, false));
}

#[test]
fn a_ladder_is_one_table_with_its_knee() {
    let text = render(&sample::ladder(&[1, 4, 8, 16, 64], 80_000.0, 100_000.0), 80, false);
    let expected = "\
randread over depth
what      media, 4KiB random reads, 1 thread, io_uring, direct, 4.00 s each

depth    rate   ±95%  bandwidth    mean     p50     p99  CPU/op steady
    1 12.5k/s ±0.10% 48.8 MiB/s 79.9 us 77.7 us 93.2 us 2.40 us    yes
    4 50.0k/s ±0.10%  195 MiB/s 80.0 us 77.7 us 93.2 us 2.40 us    yes
    8  100k/s ±0.10%  391 MiB/s 80.0 us 77.7 us 93.2 us 2.40 us    yes knee
   16  100k/s ±0.10%  391 MiB/s  160 us  155 us  186 us 2.40 us    yes
   64  100k/s ±0.10%  391 MiB/s  640 us  621 us  746 us 2.40 us    yes

knee      depth 8: 100k/s, mean 80.0 us; beyond it, latency grows in proportion
          and the rate does not grow (N = X R: 64 in flight / 100k/s = 640 us,
          measured 640 us)
";
    assert!(text.contains(expected), "{text}");
}

#[test]
fn every_shape_of_a_ladder_has_its_sentence() {
    let knee = |record: &Record| field(&render(record, 200, false), "knee");
    let climbing = knee(&sample::ladder(&[1, 2, 4], 80_000.0, 1e6));
    assert!(
        climbing.starts_with("none yet: the rate still grows at the last rung (depth 4: 50.0k/s"),
        "{climbing}"
    );
    let flat = knee(&sample::ladder(&[8, 16, 32], 80_000.0, 100_000.0));
    assert!(flat.starts_with("depth 8: 100k/s, mean 80.0 us: the first rung already reaches 100%"), "{flat}");
    assert!(flat.ends_with("(N = X R: 32 in flight / 100k/s = 320 us, measured 320 us)"), "{flat}");
    let single = knee(&sample::ladder(&[8], 80_000.0, 100_000.0));
    assert!(single.ends_with("only one usable rung, so no knee can be found: climb further"), "{single}");
    let mut falling = sample::ladder(&[1, 8, 16], 80_000.0, 100_000.0);
    let knee_found = falling.ladder.as_mut().unwrap().knee.as_mut().unwrap();
    knee_found.shape = statistics::LadderShape::FallsAfterPeak;
    knee_found.last_share_of_max = 0.7;
    knee_found.little_worst.measured = 6.0;
    knee_found.little_worst.ratio = 0.75;
    let fallen = knee(&falling);
    assert!(
        fallen.contains("more load reduces the rate: the last rung reaches 70.0% of the highest rate"),
        "{fallen}"
    );
    assert!(fallen.contains("requested, 6.0 were in flight on average"), "{fallen}");
}

#[test]
fn ladders_of_sizes_and_rates_have_outcomes_of_their_own() {
    let rung = |block_bytes, rate| {
        sample::phase(&Shape { block_bytes, operations_per_second: rate, jitter: 0.0, ..DRIVE })
    };
    let mut record = sample::record(vec![rung(4096, 1e5), rung(65_536, 6e4), rung(1 << 20, 4000.0)]);
    let ladder = |dimension| crate::record::LadderRecord {
        dimension,
        phases: vec![0, 1, 2],
        refined: Vec::new(),
        knee: None,
    };
    record.ladder = Some(ladder(Some(LadderDimension::BlockSize)));
    let text = render(&record, 200, false);
    assert_eq!(
        field(&text, "sizes"),
        "the highest bandwidth is 3.91 GiB/s with 1 MiB; 1 MiB and more reach 100% of it"
    );
    assert!(text.contains("media, random reads, 4 threads x depth 32, io_uring, direct"), "{text}");
}

/// Outcome of a rate of which a target serves 100k/s.
fn started(asked: f64, started: f64) -> ArrivalOutcome {
    ArrivalOutcome {
        asked_per_second: asked,
        started_per_second: started,
        started_operations: started as u64,
        unserved_operations: (asked - started) as u64,
        completed_per_second: Some(asked.min(1e5)),
        backlog_growth_per_second: Some(0.0),
        backlog_grows: false,
    }
}

#[test]
fn rates_are_served_where_nothing_piles_up() {
    let rung = |rate| sample::phase(&Shape { operations_per_second: rate, jitter: 0.0, ..DRIVE });
    let mut record = sample::record(vec![rung(1e4), rung(6e4), rung(1e5)]);
    record.ladder = Some(crate::record::LadderRecord {
        dimension: Some(LadderDimension::Rate),
        phases: vec![0, 1, 2],
        refined: Vec::new(),
        knee: None,
    });
    let mut served = |outcome: fn(f64) -> ArrivalOutcome| {
        for (phase, asked) in record.phases.iter_mut().zip([1e4, 1e5, 2e5]) {
            let plan = ArrivalPlan { rate_per_second: asked, kind: Spacing::Poisson };
            phase.plan.load_mut().arrivals = Some(plan);
            phase.arrivals = Some(outcome(asked));
        }
        field(&render(&record, 200, false), "served")
    };
    assert_eq!(
        served(|asked| started(asked, asked.min(1e5))),
        "all rates up to 100k/s (p99 384 us); of 200k/s requested, only 100k/s completed (50.0%)"
    );
    // A deep queue starts everything.
    let piles_up = |asked: f64| ArrivalOutcome {
        backlog_growth_per_second: Some(asked - asked.min(1e5)),
        backlog_grows: asked > 1e5,
        ..started(asked, asked)
    };
    assert_eq!(
        served(piles_up),
        "all rates up to 100k/s (p99 384 us); of 200k/s requested, only 100k/s completed (50.0%), and the queue grows"
    );
    // Records of before do not know what waited: what completed decides.
    let unknown = |asked: f64| ArrivalOutcome {
        completed_per_second: None,
        backlog_growth_per_second: None,
        ..started(asked, asked)
    };
    assert!(
        served(unknown)
            .starts_with("all rates up to 10.0k/s (p99 384 us); of 100k/s requested, only 60.0k/s")
    );
}

#[test]
fn workers_that_end_apart_get_three_figures() {
    let mut phase = sample::phase(&DRIVE);
    phase.samples.workers[0].finished_ns = 3_000_000_000;
    phase.summary = summarise(&phase.samples, WarmUp::None);
    let text = field(&render(&sample::record(vec![phase]), 200, false), "workers");
    assert!(text.starts_with("first done at 3.00 s: 400k/s, 1.5"), "{text}");
    assert!(text.contains("; last done at 4.00 s: 4") && text.contains("; stonewall at 4.00 s: "), "{text}");
    let even = render(&sample::record(vec![sample::phase(&DRIVE)]), 200, false);
    assert!(!even.contains("first done"));
}

#[test]
fn errors_failures_and_arrivals_are_told() {
    let mut phase = sample::phase(&DRIVE);
    let error = |count, first_at_ns| ErrorCount {
        is_ignored: false,
        class: "read".to_owned(),
        cause: "Input/output error".to_owned(),
        errno: Some(5),
        count,
        first_at_ns,
    };
    phase.samples.workers[0].errors = vec![error(2, 2_000_000_000)];
    phase.samples.workers[1].errors = vec![error(1, 1_200_000_000)];
    phase.samples.workers[1].failure = Some("panicked".to_owned());
    phase.failure = Some("interrupted\x1b[31m".to_owned());
    phase.summary.concurrency = 64.0;
    let mut record = sample::record(vec![phase.clone()]);
    record.status = Status::Partial;
    let text = render(&record, 200, false);
    assert!(text.lines().next().unwrap().ends_with("2026-01-02T03:04:05Z, partial"));
    assert_eq!(field(&text, "errors"), "3 read: Input/output error (errno 5), first after 1.20 s");
    assert!(text.contains("failed    worker 1: panicked\n"));
    assert!(text.contains("failed    interrupted\\u{1b}[31m\n"), "{text}");
    assert_eq!(field(&text, "in flight"), "64.0 on average of 128 requested, from submission to completion");
    phase.plan.load_mut().arrivals = Some(ArrivalPlan { rate_per_second: 1e5, kind: Spacing::Poisson });
    phase.arrivals = Some(ArrivalOutcome {
        asked_per_second: 1e5,
        started_per_second: 9.8e4,
        started_operations: 980_000,
        unserved_operations: 12,
        ..ArrivalOutcome::default()
    });
    let text = render(&sample::record(vec![phase]), 200, false);
    assert_eq!(
        field(&text, "arrivals"),
        "100k/s requested, 98.0k/s started (98.0%), 12 were due but never issued; latency counts from the intended start"
    );
    assert!(text.contains("open loop 100k/s Poisson"));
}

#[test]
fn parts_of_the_latency_have_their_shares_of_the_time() {
    let mut phase = sample::phase(&DRIVE);
    assert!(!render(&sample::record(vec![phase.clone()]), 80, false).contains("part of the latency"));
    // Three of the four operations were handed over and taken later, one was complete at once.
    let part = |ns: u64, count| {
        let mut histogram = statistics::Histogram::new();
        (0..count).for_each(|_| histogram.record(ns));
        statistics::LatencySummary::of(&histogram)
    };
    let class = &mut phase.summary.classes[0];
    (class.submission, class.completion) = (part(1000, 3), part(2250, 4));
    let text = render(&sample::record(vec![phase]), 80, false);
    let line = |start: &str| {
        let found = text.lines().find(|line| line.starts_with(start)).unwrap_or_default();
        found.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    assert_eq!(line("part of"), "part of the latency share mean p50 p90 p99 p99.9 max");
    assert!(
        line("read submission").starts_with("read submission 25.0 % 1.00 us 1.00 us - - - 1.00 us"),
        "{text}"
    );
    assert!(line("read completion").starts_with("read completion 75.0 % 2.25 us"), "{text}");
}

#[test]
fn doubts_of_many_phases_are_told_once() {
    let mut record = sample::ladder(&[1, 2, 4], 80_000.0, 1e6);
    for (at, phase) in record.phases.iter_mut().enumerate() {
        phase.doubts.push(doubt("debug_build", "slow"));
        phase.doubts.extend((at > 0).then(|| doubt("too_short", &format!("{at} s"))));
    }
    let text = render(&record, 80, false);
    assert!(text.contains("warning   debug_build: slow (everywhere)\n"), "{text}");
    assert!(text.contains("warning   too_short: 1 s (shown: depth 2; also depth 4)\n"), "{text}");
    assert_eq!(text.matches("try: measure again").count(), 2);
    // Passes over the same load have one name.
    let same = |count| std::iter::repeat_n("a", count).chain(["b"]).collect::<Vec<_>>();
    assert_eq!(labels_of(same(3).into_iter()), ["a, 3 times", "b"]);
    assert_eq!(labels_of(["a", "b", "c", "d", "e"].into_iter()), ["a", "b", "c", "2 more"]);
}

#[test]
fn the_waterfall_lines_up() {
    use workload::spec::Operation::{RandRead, Read};
    let mut record = sample::stack(&[
        ("null", Read, 1 << 20, 9e6),
        ("memory", Read, 1 << 20, 9800.0),
        ("media", Read, 1 << 20, 2000.0),
        ("file", Read, 1 << 20, 1000.0),
        ("media", RandRead, 4096, 10_000.0),
        ("file", RandRead, 4096, 320_000.0),
    ]);
    let row = &mut record.stack.as_mut().unwrap().rows[1];
    (row.phase, row.missing) = (None, Some("no memory".to_owned()));
    let text = render(&record, 80, false);
    let expected = "\
layer   1 MiB sequential read  4 KiB random read
memory                      -
media              1.95 GiB/s            10.0k/s
file               1000 MiB/s            320k/s
";
    let squeezed = |text: &str| {
        text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect::<Vec<_>>()
    };
    let lines = squeezed(&text);
    for line in squeezed(expected) {
        assert!(lines.contains(&line), "{line}: {text}");
    }
    assert!(text.contains("\non        /data/file: 10 GiB, ext4 on nvme0n1p2"), "{text}");
    assert!(text.contains("missing   memory: no memory\n"), "{text}");
    assert!(
        text.contains("verdict   loss: file is the largest loss, at 1 MiB sequential read: 2.00x slower"),
        "{text}"
    );
}

#[test]
fn one_line_for_the_end_of_a_phase() {
    let mut phase = sample::phase(&DRIVE);
    assert_eq!(summary_line(&phase), "randread: 400k/s ±0.19%, 1.53 GiB/s, p50 320 us, p99 384 us");
    phase.summary.total.errors = 1;
    phase.doubts = vec![doubt("clock", ""), doubt("too_short", "")];
    phase.failure = Some("disk full".to_owned());
    assert_eq!(
        summary_line(&phase),
        "randread: 400k/s ±0.19%, 1.53 GiB/s, p50 320 us, p99 384 us, 1 error, 2 warnings, failed: disk full"
    );
}

#[test]
fn indexes_that_lead_nowhere_are_passed_over() {
    let mut record = sample::ladder(&[1, 2], 8e4, 1e6);
    record.ladder.as_mut().unwrap().phases = vec![7, 1];
    record.ladder.as_mut().unwrap().knee.as_mut().unwrap().index = 9;
    assert!(render(&record, 80, false).contains("randread over depth"));
    let mut record = sample::stack(&[("media", Operation::Read, 4096, 1e3)]);
    record.stack.as_mut().unwrap().rows[0].phase = Some(4);
    assert!(render(&record, 80, false).contains("nothing to compare"));
}

#[test]
fn phases_that_ran_at_the_same_time_say_so() {
    let named = |name: &str, stage: usize| {
        let mut phase = sample::phase(&DRIVE);
        (*phase.plan.name_mut(), phase.stage) = (name.to_owned(), stage);
        phase
    };
    let text = |phases| render(&sample::record(phases), 100, false);
    let found = text(vec![named("alone", 0), named("reads", 1), named("writes", 1)]);
    let lines: Vec<_> = found.lines().filter(|line| line.starts_with("beside")).collect();
    assert_eq!(lines, ["beside    writes, at the same time", "beside    reads, at the same time"]);
    let many = text(["a", "b", "c", "d", "e"].map(|name| named(name, 0)).to_vec());
    assert!(many.contains("beside    b, c, d and 1 more, at the same time"), "{many}");
    assert!(!text(vec![named("a", 0), named("b", 1)]).contains("beside"));
}

#[test]
fn percentiles_are_shown_where_there_are_operations_for_them() {
    let headers = |operations_per_second: f64, width: usize| {
        let phase = sample::phase(&Shape { operations_per_second, ..DRIVE });
        let text = render(&sample::record(vec![phase]), width, false);
        let line = text.lines().find(|line| line.starts_with("class")).unwrap().to_owned();
        line.split_whitespace().skip(5).map(str::to_owned).collect::<Vec<_>>()
    };
    // 4 s at 20k/s are 80,000 operations: fewer than ten of them are beyond p99.99.
    assert_eq!(headers(20_000.0, 120), ["p50", "p90", "p99", "p99.9", "max"]);
    assert_eq!(headers(50_000.0, 120), ["p50", "p90", "p99", "p99.9", "p99.99", "max"]);
    assert_eq!(headers(50_000.0, 80), ["p50", "p99", "p99.9", "p99.99", "max"]);
}
