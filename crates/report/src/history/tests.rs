use workload::spec::Operation;

use super::*;
use crate::compare::{Operand, check, facts_by_name, load_key, load_words, points_of};
use crate::record::{Record, StackPass};
use crate::sample::{DRIVE, Shape, phase, record, stack};

/// A run of the drive at this rate, the `at`-th of a day each.
fn run(at: usize, rate: f64) -> HistoryRun {
    let mut made = record(vec![phase(&Shape { operations_per_second: rate, ..DRIVE })]);
    made.started_at = format!("2026-11-{:02}T03:00:00.000Z", at + 1);
    made.run_id = format!("{at:016x}");
    of(&made)
}

fn of(record: &Record) -> HistoryRun {
    HistoryRun {
        path: format!("{}.json", record.run_id),
        run_id: record.run_id.clone(),
        started_at: record.started_at.clone(),
        series: series_of(record),
        load_key: load_key(record),
        load: load_words(record),
        failure: None,
        facts: facts_by_name(record),
        phases: points_of(record),
    }
}

/// Rates that vary by 1 %.
fn steady(count: usize) -> Vec<HistoryRun> {
    let rates = [400_000.0, 404_000.0, 396_000.0, 402_000.0, 398_000.0];
    (0..count).map(|at| run(at, rates[at % rates.len()])).collect()
}

fn history(runs: &[HistoryRun]) -> History {
    History {
        schema_version: SCHEMA_VERSION,
        strata_version: "0.1.0".to_owned(),
        directory: "runs".to_owned(),
        last: 10,
        series: build(runs, None, 10),
        remarks: vec!["ignored x.json: not a record of strata".to_owned()],
    }
}

fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn a_value_is_held_against_those_before_it() {
    let mut runs = steady(8);
    runs.push(run(8, 340_000.0));
    let series = build(&runs, None, 10);
    let [one] = &series[..] else { panic!("one series: {series:?}") };
    assert_eq!((one.name.as_str(), one.runs.len(), one.phases.len()), ("store1, /data/file", 9, 1));
    let points = &one.phases[0].points;
    assert_eq!(one.phases[0].metric, FigureName::Rate);
    // Two values are needed for a range.
    assert!(points[..2].iter().all(|point| point.expected_low.is_none() && !point.is_outside()));
    assert!(
        points[2..8].iter().all(|point| point.expected_low.is_some() && !point.is_outside()),
        "{points:?}"
    );
    assert!(points[8].is_outside() && points[8].value < points[8].expected_low.unwrap());
    // The range of the last five alone.
    let of_five = build(&runs, None, 5);
    assert_ne!(of_five[0].phases[0].points[8].expected_low, points[8].expected_low);
}

#[test]
fn runs_come_in_their_order_and_partial_ones_are_no_measure() {
    let mut runs = steady(6);
    // A partial run that stood still for most of its time.
    let mut broken = run(6, 1000.0);
    broken.failure = Some("interrupted".to_owned());
    runs.push(broken);
    runs.push(run(7, 401_000.0));
    runs.reverse();
    let series = &build(&runs, None, 10)[0];
    assert!(series.runs.is_sorted_by_key(|run| run.started_at.clone()), "{:?}", series.runs);
    let last = series.phases[0].points.last().unwrap();
    assert!(!last.is_outside() && last.expected_low.unwrap() > 350_000.0, "{last:?}");
    let text = render(&history(&runs), 120, false);
    assert!(text.contains("interrupted"), "{text}");
}

#[test]
fn loads_hosts_and_targets_are_series_of_their_own() {
    let plain = record(vec![phase(&DRIVE)]);
    let key = |change: &dyn Fn(&mut Record)| {
        let mut made = plain.clone();
        change(&mut made);
        let run = of(&made);
        (run.series, run.load_key)
    };
    let own = key(&|_| {});
    // The same load of another length, seed and version is the same series.
    let same = key(&|made| {
        made.seed = 7;
        made.strata_version = "9.9.9".to_owned();
        made.phases[0].plan.load_mut().limit.time_ns = Some(5);
    });
    assert_eq!(own, same);
    let deeper = key(&|made| made.phases[0].plan.load_mut().depth = 64);
    assert!(own.0 == deeper.0 && own.1 != deeper.1);
    let elsewhere = key(&|made| made.environment.system.hostname = Some("node8".to_owned()));
    assert!(own.0 != elsewhere.0 && own.1 == elsewhere.1);
    let other = record(vec![phase(&Shape { operation: Operation::Write, ..DRIVE })]);
    assert_ne!(own.1, load_key(&other));
    assert_eq!(build(&[of(&plain), of(&other)], None, 10).len(), 2);
}

#[test]
fn rungs_of_a_climb_are_one_load_however_far_it_goes() {
    let short = crate::sample::ladder(&[1, 2, 4], 80_000.0, 100_000.0);
    let long = crate::sample::ladder(&[1, 2, 4, 8, 16], 80_000.0, 100_000.0);
    assert_eq!(load_key(&short), load_key(&long));
    let other = crate::sample::ladder(&[2, 4, 8], 80_000.0, 100_000.0);
    assert_ne!(load_key(&short), load_key(&other), "it begins elsewhere");
}

#[test]
fn what_changed_is_told() {
    let mut runs = steady(4);
    for run in &mut runs[2..] {
        run.facts.iter_mut().find(|(fact, _)| fact == "kernel").unwrap().1 = "6.99".to_owned();
    }
    let found = history(&runs);
    let [change] = &found.series[0].changes[..] else { panic!("{:?}", found.series[0].changes) };
    assert_eq!((change.run, change.fact.as_str(), change.after.as_str()), (2, "kernel", "6.99"));
    let text = words(&render(&found, 120, false));
    assert!(text.contains("changed 2026-11-03 03:00: kernel: ") && text.contains("→ 6.99"), "{text}");
    let page = to_html(&found);
    assert!(page.contains("Changes: 1: kernel 6.99"), "the graph has it too");
    assert!(page.contains("ignored x.json"), "{page}");
}

#[test]
fn texts_tables_and_json_say_the_same() {
    let mut runs = steady(8);
    runs.push(run(8, 340_000.0));
    let found = history(&runs);
    let text = words(&render(&found, 100, false));
    assert!(text.contains("history runs: 9 runs in 1 series"), "{text}");
    assert!(text.contains("runs 9 runs, 2026-11-01 to 2026-11-09"), "{text}");
    assert!(text.contains("randread 340k/s ") && text.contains(" slower 9 "), "{text}");
    assert!(text.contains("██▇█▇██▇▁"), "{text}");
    let csv = to_csv(&found);
    let rows: Vec<::csv::StringRecord> =
        ::csv::Reader::from_reader(csv.as_bytes()).records().map(Result::unwrap).collect();
    assert_eq!(rows.len(), 9);
    let last: Vec<&str> = rows[8].iter().collect();
    assert_eq!(
        (last[0], last[3], last[5], last[6]),
        ("store1, /data/file", "2026-11-09T03:00:00.000Z", "randread", "rate")
    );
    assert!(last[10] == "yes" && rows[7].get(10) == Some("no"), "{last:?}");
    let json: serde_json::Value = serde_json::from_str(&to_json(&found).unwrap()).unwrap();
    let validator = jsonschema::validator_for(&schema()).unwrap();
    assert!(validator.is_valid(&json));
    assert_eq!(
        json["series"][0]["phases"][0]["points"][8]["value"],
        found.series[0].phases[0].points[8].value
    );
    let page = to_html(&found);
    assert!(page.contains("<td>slower</td>") && page.contains("outside"), "{page}");
}

#[test]
fn hostile_names_stay_text() {
    let mut runs = steady(3);
    for run in &mut runs {
        run.series = "\u{1b}[31m<script>|x".to_owned();
        run.phases[0].name = "<b>\n\u{1b}]0;".to_owned();
    }
    let found = history(&runs);
    assert!(!render(&found, 80, false).contains('\u{1b}'));
    let page = to_html(&found);
    assert!(!page.contains("<script>") && !page.contains('\u{1b}') && !page.contains("<b>"), "{page}");
}

/// A stack of two rows with three passes each, at these rates of the second row.
fn of_stack(name: &str, rates: [f64; 3]) -> Record {
    let shapes: Vec<_> = rates
        .iter()
        .flat_map(|rate| {
            [("media", Operation::RandRead, 4096, 90_000.0), ("file", Operation::Write, 1 << 20, *rate)]
        })
        .collect();
    let mut made = stack(&shapes);
    made.run_id = name.to_owned();
    let rows = &mut made.stack.as_mut().unwrap().rows;
    rows.truncate(2);
    for (at, row) in rows.iter_mut().enumerate() {
        row.passes = (0..3).map(|pass| StackPass { pass: pass as u32, phase: 2 * pass + at }).collect();
    }
    made
}

#[test]
fn stacks_are_compared_by_their_rows() {
    let side = |label: &str, records: Vec<Record>| Operand {
        label: label.to_owned(),
        records: records.into_iter().map(|record| (record.run_id.clone(), record)).collect(),
    };
    let before = side("a", vec![of_stack("1", [2000.0, 2010.0, 1990.0])]);
    let slower = side("b", vec![of_stack("2", [1000.0, 1010.0, 990.0])]);
    let found = crate::compare::compare(&before, &slower, false, &["slower:5%".parse().unwrap()]).unwrap();
    let labels: Vec<_> = found.phases.iter().map(|phase| phase.name.as_str()).collect();
    assert_eq!(labels, ["media: 4 KiB random read", "file: 1 MiB sequential write"]);
    assert!(found.is_stack && found.fails());
    // Rows of large operations are compared by bandwidth, and each by the geometric mean of its passes.
    let figure = found.phases[1].total(FigureName::Bandwidth).unwrap();
    assert!((figure.difference.unwrap().percent + 50.0).abs() < 0.1, "{figure:?}");
    let text = words(&crate::compare::render(&found, 120, false));
    assert!(text.contains("2 rows: 1 slower, 1 without a detected difference"), "{text}");
    assert!(
        text.contains("file: 1 MiB sequential write: B is slower in one run each: bandwidth -50"),
        "{text}"
    );
    let markdown = crate::compare::to_markdown(std::slice::from_ref(&found));
    assert!(markdown.contains("| row | A | B |") && markdown.matches("\n| ").count() == 3, "{markdown}");
    let points = points_of(&before.records[0].1);
    assert_eq!(points.len(), 2);
    assert_eq!((points[0].headline, points[1].headline), (FigureName::Rate, FigureName::Bandwidth));
}

#[test]
fn the_newest_is_checked_by_the_spread_of_those_before() {
    let make = |at: usize, rate: f64| {
        let mut made = record(vec![phase(&Shape { operations_per_second: rate, ..DRIVE })]);
        made.run_id = format!("{at}");
        (format!("{at}.json"), made)
    };
    let rates = [400_000.0, 404_000.0, 396_000.0, 402_000.0, 398_000.0, 401_000.0];
    let before = Operand {
        label: "the 6 runs before".to_owned(),
        records: rates.iter().enumerate().map(|(at, rate)| make(at, *rate)).collect(),
    };
    let newest = |rate: f64| Operand { label: "node7".to_owned(), records: vec![make(99, rate)] };
    let limit = |text: &str| vec![text.parse().unwrap()];
    let checked = |rate: f64, text: &str| check(&before, &newest(rate), &limit(text)).unwrap();
    assert!(!checked(397_000.0, "slower:0%").fails(), "within the spread");
    assert!(checked(370_000.0, "slower:0%").fails());
    assert!(!checked(370_000.0, "slower:10%").fails(), "it is slower, by less than the limit");
    assert!(!checked(440_000.0, "slower:0%").fails(), "faster is no failure");
    let found = checked(370_000.0, "slower:0%");
    let text = words(&crate::compare::render(&found, 120, false));
    assert!(text.contains("randread: the newest run is slower: rate -7."), "{text}");
    assert!(text.contains("before newest difference"), "{text}");
    // The first run has nothing before it: it cannot fail, and JUnit does not let it pass.
    let first =
        check(&Operand { label: "nothing".to_owned(), records: vec![] }, &newest(1.0), &limit("slower:0%"));
    let first = first.unwrap();
    assert!(!first.fails() && first.differs.is_empty());
    assert!(crate::compare::render(&first, 120, false).contains("the first run of its series"));
    assert!(
        crate::compare::to_junit(std::slice::from_ref(&first))
            .contains("tests=\"1\" failures=\"0\" skipped=\"1\"")
    );
    // Of one run before nobody knows the spread.
    let alone = Operand { label: "the run before".to_owned(), records: vec![make(0, 400_000.0)] };
    let found = check(&alone, &newest(200_000.0), &limit("slower:0%")).unwrap();
    assert!(!found.fails());
    let text = words(&crate::compare::render(&found, 120, false));
    assert!(
        text.contains("cannot trigger: randread: rate: fewer than 2 runs before it have a value"),
        "{text}"
    );
    let check = HistoryCheck {
        schema_version: SCHEMA_VERSION,
        strata_version: "0.1.0".to_owned(),
        directory: "runs".to_owned(),
        comparisons: vec![found, first],
        remarks: vec![],
    };
    let json: serde_json::Value = serde_json::from_str(&to_json(&check).unwrap()).unwrap();
    assert!(jsonschema::validator_for(&check_schema()).unwrap().is_valid(&json));
    assert!(!check.fails());
}
