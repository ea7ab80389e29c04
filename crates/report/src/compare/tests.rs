mod forms;

use statistics::{Histogram, SparseHistogram, Verdict, WarmUp, summarise};
use workload::plan::ArrivalPlan;
use workload::spec::{Operation, Spacing};

use super::*;
use crate::sample::{DRIVE, Shape, ladder, phase as phase_of, record};

fn operand(label: &str, records: Vec<Record>) -> Operand {
    let number = |(at, record)| (format!("{label}-{}", at + 1), record);
    Operand { label: label.to_owned(), records: records.into_iter().enumerate().map(number).collect() }
}

/// One record a rate, each a run of its own.
fn at_rates(label: &str, rates: &[f64]) -> Operand {
    let one = |(at, rate): (usize, &f64)| {
        let mut made = record(vec![phase_of(&Shape { operations_per_second: *rate, ..DRIVE })]);
        made.run_id = format!("{label}{at}");
        made
    };
    operand(label, rates.iter().enumerate().map(one).collect())
}

fn limits(texts: &[&str]) -> Vec<Limit> {
    texts.iter().map(|text| text.parse().unwrap()).collect()
}

fn text(comparison: &Comparison) -> String {
    render(comparison, 120, false).split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn a_record_does_not_differ_from_itself() {
    let mixed = record(vec![phase_of(&Shape { operation: Operation::RandRw, ..DRIVE })]);
    let found = compare(&operand("a", vec![mixed.clone()]), &operand("b", vec![mixed]), false, &[]).unwrap();
    let phase = &found.phases[0];
    let classes: Vec<_> = phase.classes.iter().map(|class| class.class.as_str()).collect();
    assert_eq!(classes, ["total", "read", "write"]);
    for figure in phase.classes.iter().flat_map(|class| &class.figures) {
        let difference = figure.difference.map(|difference| difference.percent);
        let expected =
            if figure.figure == FigureName::Cpu { Verdict::TooLittle } else { Verdict::NoDifference };
        assert_eq!((figure.verdict, difference.unwrap_or(0.0)), (expected, 0.0), "{figure:?}");
    }
    assert_eq!((phase.differs.len(), found.differs.len(), found.unmatched.len()), (0, 0, 0));
    assert_eq!(phase.headline.verdict, Verdict::NoDifference);
    assert!(found.notes.iter().any(|note| note == "1 run is on both sides"), "{:?}", found.notes);
    assert!(text(&found).contains("no difference detected"));
}

#[test]
fn single_runs_show_what_they_can() {
    let (a, b) = (at_rates("a", &[400_000.0]), at_rates("b", &[380_000.0]));
    let found = compare(&a, &b, true, &[]).unwrap();
    assert_eq!(found.method, Method::SingleRuns);
    let total = |name| found.phases[0].total(name).unwrap();
    let rate = total(FigureName::Rate).difference.unwrap();
    assert!((rate.percent + 5.0).abs() < 0.05 && rate.percent_high < -4.0, "{rate:?}");
    assert_eq!(total(FigureName::Rate).verdict, Verdict::Slower);
    // The sample's latencies are the same in every interval.
    assert_eq!(total(FigureName::P50).verdict, Verdict::NoDifference);
    assert!(total(FigureName::Cpu).missing.as_ref().unwrap().contains("--repeat"));
    assert!(found.notes.iter().any(|note| note.contains("one run each")), "{:?}", found.notes);
    assert!(text(&found).contains("randread: B is slower in one run each: rate -5.0"), "{}", text(&found));
}

/// An open loop of 40 intervals of `operations` each, whose latencies are exponential with this mean.
fn open_loop(seed: u64, mean_ns: f64, operations: u64) -> Record {
    let mut made = phase_of(&Shape { operations_per_second: 10.0 * operations as f64, ..DRIVE });
    let load = made.plan.load_mut();
    load.arrivals = Some(ArrivalPlan { rate_per_second: 10.0 * operations as f64, kind: Spacing::Constant });
    let mut state = seed;
    let mut uniform = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((state >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
    };
    let samples = &mut made.samples;
    let mut all = SparseHistogram::default();
    for point in &mut samples.series.points {
        let mut latency = Histogram::new();
        (0..operations).for_each(|_| latency.record((-uniform().ln() * mean_ns) as u64));
        for class in point.classes.iter_mut().filter(|class| class.operations > 0) {
            (class.operations, class.latency) = (operations, SparseHistogram::from(&latency));
            all.merge(&class.latency);
        }
    }
    samples.workers.truncate(1);
    let totals = samples.workers.iter_mut().flat_map(|worker| &mut worker.classes);
    for class in totals.filter(|class| class.operations > 0) {
        (class.operations, class.latency) = (all.count(), all.clone());
    }
    made.summary = summarise(samples, WarmUp::None);
    let mut made = record(vec![made]);
    made.run_id = format!("{seed}");
    made
}

#[test]
fn the_verdict_on_single_open_loops_sees_what_the_mean_sees() {
    let mut seen = [0; 3];
    for seed in 0..30 {
        let a = operand("a", vec![open_loop(2 * seed, 1e6, 200)]);
        for (seen, ratio) in seen.iter_mut().zip([1.0, 1.1]) {
            let b = operand("b", vec![open_loop(2 * seed + 1, ratio * 1e6, 200)]);
            let found = compare(&a, &b, false, &[]).unwrap();
            let headline = &found.phases[0].headline;
            assert_eq!(headline.considered, [FigureName::P99, FigureName::Mean]);
            *seen += u32::from(headline.verdict != Verdict::NoDifference);
            if headline.figure == FigureName::Mean
                && found.phases[0].total(FigureName::P99).unwrap().difference.is_some()
            {
                assert!(text(&found).contains("; also considered: p99"), "{}", text(&found));
            }
        }
        let alone =
            compare(&a, &operand("b", vec![open_loop(2 * seed + 1, 1.1e6, 200)]), false, &[]).unwrap();
        seen[2] += u32::from(alone.phases[0].total(FigureName::P99).unwrap().verdict == Verdict::Slower);
    }
    assert!(
        seen[0] <= 3 && seen[1] >= 27 && seen[2] <= 20,
        "equal, 10 % by the verdict, 10 % by p99 alone: {seen:?}"
    );
}

#[test]
fn a_percentile_of_too_few_operations_is_in_no_verdict() {
    // 400 operations: 4 beyond p99.
    let side = |label: &str, seed, mean_ns| operand(label, vec![open_loop(seed, mean_ns, 10)]);
    let found = compare(&side("a", 1, 1e6), &side("b", 2, 2e6), false, &[]).unwrap();
    let headline = &found.phases[0].headline;
    assert_eq!((headline.figure, headline.verdict), (FigureName::Mean, Verdict::Slower));
    let p99 = found.phases[0].total(FigureName::P99).unwrap();
    assert_eq!((p99.a, p99.b, p99.difference), (None, None, None));
    assert!(p99.missing.as_ref().unwrap().contains("fewer than 10 operations beyond"), "{p99:?}");
}

#[test]
fn the_mean_stands_for_the_rate_only_at_the_same_load() {
    let at = |depth| operand("x", vec![record(vec![phase_of(&Shape { depth, ..DRIVE })])]);
    let considered =
        |b| compare(&at(DRIVE.depth), &b, false, &[]).unwrap().phases[0].headline.considered.clone();
    assert_eq!(considered(at(DRIVE.depth)), [FigureName::Rate, FigureName::Mean]);
    assert_eq!(
        considered(at(2 * DRIVE.depth)),
        [FigureName::Rate],
        "twice in flight take twice as long each"
    );
    let pairs = compare(&at_rates("a", &[4e5; 3]), &at_rates("b", &[4e5; 3]), true, &[]).unwrap();
    assert_eq!(pairs.phases[0].headline.considered, [FigureName::Rate]);
}

#[test]
fn repeats_are_compared_by_their_own_spread() {
    // Logarithms of the ratios: 0.02 with a standard error of 0.01 / sqrt(3).
    let rates_b = [0.01_f64, 0.02, 0.03].map(|log| 400_000.0 * log.exp());
    let (a, b) = (at_rates("a", &[400_000.0; 3]), at_rates("b", &rates_b));
    let pairs = compare(&a, &b, true, &[]).unwrap();
    let rate = pairs.phases[0].total(FigureName::Rate).unwrap();
    let difference = rate.difference.unwrap();
    assert_eq!((pairs.method, rate.verdict), (Method::Pairs, Verdict::NoDifference));
    assert!((difference.percent - 2.02).abs() < 0.01 && (difference.percent_high - 4.59).abs() < 0.02);
    assert_eq!(pairs.phases[0].total(FigureName::Cpu).unwrap().verdict, Verdict::NoDifference);
    let apart = compare(&a, &b, false, &[]).unwrap();
    assert_eq!(apart.method, Method::Repeats);
    assert!(apart.notes.iter().any(|note| note.contains("not run in turns")), "{:?}", apart.notes);
    // One left over has no partner.
    let odd = compare(&a, &at_rates("b", &rates_b[..2]), true, &[]).unwrap();
    assert_eq!((odd.a.records.len(), odd.b.records.len()), (2, 2));
    assert!(odd.notes.iter().any(|note| note.contains("without a counterpart")), "{:?}", odd.notes);
    // One record against three varies as they do.
    let one = compare(&at_rates("a", &[400_000.0]), &b, false, &[]).unwrap();
    let difference = one.phases[0].total(FigureName::Rate).unwrap().difference.unwrap();
    assert!(difference.detectable_percent(FigureName::Rate.direction()) > 4.0, "{difference:?}");
}

#[test]
fn phases_meet_by_name_and_order() {
    let named = |name: &str, rate: f64| {
        let mut made = phase_of(&Shape { operations_per_second: rate, ..DRIVE });
        *made.plan.name_mut() = name.to_owned();
        made
    };
    let a = record(vec![named("x", 1e5), named("x", 2e5), named("old", 1e5)]);
    let b = record(vec![named("new", 1e5), named("x", 1e5), named("x", 4e5)]);
    let found = compare(&operand("a", vec![a]), &operand("b", vec![b]), false, &[]).unwrap();
    let seen: Vec<_> = found
        .phases
        .iter()
        .map(|phase| (phase.name.as_str(), phase.occurrence, phase.headline.verdict))
        .collect();
    assert_eq!(seen, [("x", 0, Verdict::NoDifference), ("x", 1, Verdict::Faster)]);
    let alone: Vec<_> = found.unmatched.iter().map(|one| (one.side.as_str(), one.phase.as_str())).collect();
    assert_eq!(alone, [("a", "old"), ("b", "new")]);
    assert!(text(&found).contains("old has no counterpart: it exists only in A"), "{}", text(&found));
}

#[test]
fn nothing_to_compare_is_refused() {
    let a = at_rates("a", &[1e5]);
    let none = operand("b", vec![]);
    assert_eq!(compare(&a, &none, false, &[]).unwrap_err(), "b: no record to compare");
    let mut other = a.clone();
    *other.records[0].1.phases[0].plan.name_mut() = "another".to_owned();
    assert!(compare(&a, &other, false, &[]).unwrap_err().contains("no phase of A"));
    assert!(compare(&operand("a", vec![record(vec![])]), &a, false, &[]).is_err());
}

#[test]
fn what_was_done_otherwise_is_named() {
    let a = at_rates("a", &[1e5, 1e5]);
    let mut b = operand(
        "b",
        vec![record(vec![phase_of(&Shape {
            operations_per_second: 1e5,
            depth: 8,
            block_bytes: 65536,
            direct: false,
            ..DRIVE
        })])],
    );
    b.records[0].1.environment.system.kernel = Some("6.13.0".to_owned());
    b.records[0].1.environment.targets[0].device.as_mut().unwrap().model = None;
    b.records[0].1.phases[0].plan.load_mut().seed = 7;
    let found = compare(&a, &b, false, &[]).unwrap();
    let fields: Vec<_> = found.phases[0]
        .differs
        .iter()
        .map(|field| (field.field.as_str(), field.a.join("/"), field.b.join("/")))
        .collect();
    let field = |name: &str, a: &str, b: &str| {
        fields.iter().any(|field| *field == (name, a.to_owned(), b.to_owned()))
    };
    assert!(field("load.depth", "32", "8") && field("options.direct", "true", "false"), "{fields:?}");
    assert!(field("block_size", "4KiB", "64KiB"), "{fields:?}");
    assert!(fields.iter().all(|(name, ..)| !["load.seed", "name"].contains(name)), "{fields:?}");
    let facts: Vec<_> = found.differs.iter().map(|fact| (fact.field.as_str(), fact.b[0].as_str())).collect();
    assert_eq!(facts, [("kernel", "6.13.0"), ("drive", "unknown")]);
    // Operations of another size are compared by their bytes.
    assert_eq!(found.phases[0].headline.figure, FigureName::Bandwidth);
}

#[test]
fn doubts_are_carried_along() {
    let mut b = at_rates("b", &[1e5, 1e5]);
    let doubt = |kind: &str| crate::record::Doubt {
        kind: kind.to_owned(),
        detail: String::new(),
        remedy: String::new(),
    };
    b.records[1].1.phases[0].doubts = vec![doubt("not_steady")];
    b.records[1].1.failure = Some("a worker failed".to_owned());
    let found = compare(&at_rates("a", &[1e5, 1e5]), &b, false, &[]).unwrap();
    let words = text(&found);
    assert!(words.contains("warning B: not_steady (1 of 2)"), "{words}");
    assert!(words.contains("failed b-2: partial: a worker failed"), "{words}");
}

#[test]
fn an_open_loop_is_judged_by_its_tail() {
    let side = |label: &str, latency_ns: u64| {
        let mut made = phase_of(&Shape { latency_ns, ..DRIVE });
        made.plan.load_mut().arrivals = Some(ArrivalPlan { rate_per_second: 4e5, kind: Spacing::Poisson });
        operand(label, vec![record(vec![made])])
    };
    let found =
        compare(&side("a", 100_000), &side("b", 200_000), false, &limits(&["slower:50%", "rate-slower:0%"]))
            .unwrap();
    let headline = &found.phases[0].headline;
    assert_eq!((headline.figure, headline.verdict), (FigureName::P99, Verdict::Slower));
    assert_eq!((found.limits[0].exceeded_by.len(), found.limits[1].exceeded_by.len()), (1, 0));
}

#[test]
fn many_phases_are_held_to_a_stricter_level() {
    // Each phase alone is certain (p about 0.02); among ten, chance alone shows such a one.
    let phases = |odd: f64| -> Record {
        let one = |at: usize| {
            let rate = if at == 0 { odd } else { 1e5 };
            let mut made = phase_of(&Shape { operations_per_second: rate, ..DRIVE });
            *made.plan.name_mut() = format!("phase {at}");
            made
        };
        record((0..10).map(one).collect())
    };
    let side = |label: &str, odds: &[f64]| operand(label, odds.iter().map(|odd| phases(*odd)).collect());
    let b = [0.015_f64, 0.03, 0.045, 0.03].map(|log| 1e5 * (-log).exp());
    let found =
        compare(&side("a", &[1e5; 4]), &side("b", &b), true, &limits(&["slower:1%", "rate-slower:1%"]))
            .unwrap();
    let first = &found.phases[0];
    assert_eq!(first.total(FigureName::Rate).unwrap().verdict, Verdict::Slower);
    let adjusted = first.headline.p_value_adjusted.unwrap();
    assert!(first.headline.verdict == Verdict::NoDifference && adjusted > 0.05, "{adjusted}");
    assert_eq!((found.limits[0].exceeded_by.len(), found.limits[1].exceeded_by.len()), (0, 1));
}

#[test]
fn limits_are_read_or_refused() {
    for text in ["slower:5%", "p99.9-slower:0.5%", "cpu-slower:10%", "rate-slower:0%"] {
        assert_eq!(text.parse::<Limit>().unwrap().to_string(), text);
    }
    assert_eq!("mean-slower:3".parse::<Limit>().unwrap().to_string(), "mean-slower:3%");
    for text in [
        "",
        "slower",
        "slower:",
        "slower:%",
        "slower:-1",
        "slower:1e3",
        "slower:NaN",
        "faster:5%",
        "-slower:5%",
        "p95-slower:5%",
        "max-slower:5%",
        "p99slower:5%",
        "slower:5%%",
        "slower:1.2.3",
        "SLOWER:5%",
        " slower:5%",
    ] {
        let error = text.parse::<Limit>().unwrap_err().to_string();
        assert!(error.contains("p99-slower:10%") && error.lines().count() == 1, "{text}: {error}");
    }
}

#[test]
fn limits_count_certainty_and_size() {
    let judged = |rates: &[f64], limit: &str| {
        let found =
            compare(&at_rates("a", &[4e5; 4]), &at_rates("b", rates), true, &limits(&[limit])).unwrap();
        (found.fails(), found.limits[0].blind_to.len())
    };
    let steady = [3.8e5, 3.81e5, 3.79e5, 3.8e5];
    assert_eq!(judged(&steady, "slower:4%"), (true, 0));
    // Slower for certain, but by less.
    assert_eq!(judged(&steady, "slower:6%"), (false, 0));
    // Faster is never too slow.
    assert_eq!(judged(&[4.2e5, 4.21e5, 4.19e5, 4.2e5], "slower:0%"), (false, 0));
    // Slower by more, but not for certain: the data is blind to it.
    assert_eq!(judged(&[2e5, 6e5, 3e5, 4e5], "slower:1%"), (false, 1));
    // A single run has one value of this.
    let found =
        compare(&at_rates("a", &[4e5]), &at_rates("b", &[1e5]), false, &limits(&["cpu-slower:5%"])).unwrap();
    assert!(!found.fails() && found.limits[0].blind_to[0].contains("--repeat"), "{:?}", found.limits);
}

#[test]
fn json_holds_to_its_schema() {
    let a = at_rates("a", &[4e5, 4.1e5, 3.9e5]);
    let b = at_rates("b", &[3e5, 3.1e5, 2.9e5]);
    let found = compare(&a, &b, true, &limits(&["slower:5%"])).unwrap();
    let json = found.to_json().unwrap();
    let value: serde_json::Value = serde_json::from_str(&json).unwrap();
    let validator = jsonschema::validator_for(&schema()).unwrap();
    let wrong: Vec<_> = validator.iter_errors(&value).map(|error| error.to_string()).collect();
    assert!(wrong.is_empty(), "{wrong:?}");
    assert_eq!(serde_json::from_str::<Comparison>(&json).unwrap(), found);
    assert_eq!(value["phases"][0]["headline"]["verdict"], "slower");
}

#[test]
fn text_keeps_to_its_width_and_steers_no_terminal() {
    let mut a = at_rates("a\u{1b}[31m", &[4e5]);
    *a.records[0].1.phases[0].plan.name_mut() = "na\nme\u{1b}[2J".to_owned();
    let mut b = at_rates("b", &[3e5]);
    *b.records[0].1.phases[0].plan.name_mut() = "na\nme\u{1b}[2J".to_owned();
    b.records[0].1.environment.system.kernel = Some("\u{7}".to_owned());
    let found = compare(&a, &b, false, &limits(&["slower:1%"])).unwrap();
    for width in [40, 60, 80, 120] {
        let shown = render(&found, width, false);
        for line in shown.lines() {
            assert!(line.chars().count() <= width && !line.ends_with(' '), "{width}: {line:?}");
            assert!(!line.contains(char::is_control), "{line:?}");
        }
    }
    assert!(render(&found, 80, true).contains("\u{1b}[1;31mslower"));
}

#[test]
fn a_run_counts_once() {
    let (a, b) = (at_rates("a", &[4e5]), at_rates("b", &[3.9e5]));
    let thrice = |side: &Operand| operand("twice", vec![side.records[0].1.clone(); 3]);
    let found = compare(&thrice(&a), &thrice(&b), false, &[]).unwrap();
    assert_eq!((found.method, found.a.records.len()), (Method::SingleRuns, 1));
    assert!(text(&found).contains("twice: ignored 2 records of runs that this side already has"));
}

#[test]
fn a_side_that_completes_nothing_exceeds_every_limit() {
    let (a, mut b) = (at_rates("a", &[4e5; 3]), at_rates("b", &[4e5; 3]));
    for (_, record) in &mut b.records {
        let total = &mut record.phases[0].summary.total;
        (total.operations_per_second, total.latency) = (0.0, None);
    }
    let wanted = limits(&["slower:5%", "p99-slower:5%"]);
    let found = compare(&a, &b, true, &wanted).unwrap();
    assert!(found.limits.iter().all(|limit| limit.exceeded_by == ["randread: B completed nothing"]));
    assert!(text(&found).contains("verdict randread: B completed no operations, A did"), "{}", text(&found));
    // The other way round nothing is slower, and nothing can be said.
    let turned = compare(&b, &a, true, &wanted).unwrap();
    assert!(!turned.fails() && turned.limits[0].blind_to == ["randread: rate: a side has no value"]);
}

#[test]
fn a_limit_does_not_see_a_phase_that_is_missing() {
    let a = at_rates("a", &[4e5]);
    let mut both = at_rates("b", &[4e5]);
    let mut again = both.records[0].1.phases[0].clone();
    *again.plan.name_mut() = "randread".to_owned();
    both.records[0].1.phases.push(again);
    let found = compare(&both, &a, false, &limits(&["slower:50%"])).unwrap();
    assert_eq!(found.limits[0].blind_to, ["randread (2): this phase exists only in A"]);
    assert!(text(&found).contains("randread (2) has no counterpart: it exists only in A"));
}

#[test]
fn odd_values_stay_json() {
    let rates = [1e-300, 1e300, 5e-324, f64::MAX, 1.0, 3.0, f64::NAN, f64::INFINITY, -1.0];
    for (at, one) in rates.iter().enumerate() {
        for other in &rates[at..] {
            for repeats in [1, 2, 6] {
                let side = |label: &str, rate: f64| {
                    let mut made = at_rates(label, &vec![1e5; repeats]);
                    let phases = made.records.iter_mut().map(|(_, record)| &mut record.phases[0]);
                    phases.for_each(|phase| phase.summary.total.operations_per_second = rate);
                    made.records[0].1.phases[0].summary.total.operations_per_second = 1e5;
                    made
                };
                let (a, b) = (side("a", *one), side("b", *other));
                for (are_pairs, a, b) in [(true, &a, &b), (false, &b, &a)] {
                    let found = compare(a, b, are_pairs, &limits(&["slower:1%"])).unwrap();
                    let again: Comparison = serde_json::from_str(&found.to_json().unwrap()).unwrap();
                    assert_eq!(again.phases.len(), 1, "{one} {other} {repeats}");
                    let shown = render(&found, 80, false);
                    let percents = shown.split_whitespace().filter(|word| word.ends_with('%'));
                    let longest = percents.map(|word| word.chars().count()).max();
                    assert!(longest <= Some(12) && !shown.contains("NaN"), "{shown}");
                }
            }
        }
    }
}

#[test]
fn rungs_meet_by_what_is_climbed() {
    let (a, b) = (ladder(&[1, 2, 4], 1e5, 1e5), ladder(&[2, 4, 8], 1e5, 1e5));
    let found = compare(&operand("a", vec![a]), &operand("b", vec![b]), false, &[]).unwrap();
    let names: Vec<_> = found.phases.iter().map(|phase| phase.label()).collect();
    assert_eq!(names, ["randread, depth 2", "randread, depth 4"]);
    let alone: Vec<_> = found.unmatched.iter().map(Unmatched::label).collect();
    assert_eq!(alone, ["randread, depth 1", "randread, depth 8"]);
    assert!(found.phases.iter().all(|phase| phase.headline.verdict == Verdict::NoDifference));
}
