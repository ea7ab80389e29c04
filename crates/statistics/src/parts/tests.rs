use super::*;
use crate::merge;
use crate::sample::{ClassTotals, ErrorCount};
use crate::series::Series;

const SECOND: u64 = 1_000_000_000;

fn latency(values: &[u64]) -> SparseHistogram {
    let mut histogram = Histogram::new();
    values.iter().for_each(|&ns| histogram.record(ns));
    SparseHistogram::from(&histogram)
}

fn part(part: usize, values: &[u64], causes: &[(&str, u64)]) -> PartTotals {
    PartTotals {
        part,
        operations: values.len() as u64,
        bytes: values.len() as u64 * 100,
        errors: causes.iter().map(|cause| cause.1).sum(),
        causes: causes.iter().map(|&(cause, count)| CauseCount { cause: cause.to_owned(), count }).collect(),
        latency: latency(values),
    }
}

/// A worker that was at work from 1 s to 3 s and did what its parts say.
fn worker(origin: Option<&str>, parts: Vec<PartTotals>) -> WorkerSamples {
    let sum = |of: fn(&PartTotals) -> u64| parts.iter().map(of).sum::<u64>();
    let mut all = Histogram::new();
    parts.iter().for_each(|part| all.merge_sparse(&part.latency));
    let causes = parts.iter().flat_map(|part| &part.causes);
    let error = |cause: &CauseCount| ErrorCount {
        is_ignored: false,
        class: "rpc".to_owned(),
        cause: cause.cause.clone(),
        errno: None,
        count: cause.count,
        first_at_ns: 0,
    };
    WorkerSamples {
        origin: origin.map(str::to_owned),
        started_ns: SECOND,
        finished_ns: 3 * SECOND,
        classes: vec![ClassTotals {
            class: "rpc".to_owned(),
            operations: sum(|part| part.operations),
            bytes: sum(|part| part.bytes),
            errors: sum(|part| part.errors),
            latency: SparseHistogram::from(&all),
            ..ClassTotals::default()
        }],
        errors: causes.map(error).collect(),
        tallies: vec![TallySample { part: parts[0].part, name: "tcp_retransmits".to_owned(), value: 3.0 }],
        parts,
        ..WorkerSamples::default()
    }
}

fn samples(workers: Vec<WorkerSamples>) -> PhaseSamples {
    let mut series = Series::new(SECOND, 16, 1);
    series.finish(4 * SECOND);
    PhaseSamples {
        classes: vec!["rpc".to_owned()],
        window_ns: None,
        started_ns: 0,
        elapsed_ns: 4 * SECOND,
        workers,
        series,
        interrupted: None,
        process_cpu_user_ns: 0,
        process_cpu_system_ns: 0,
    }
}

/// Rank 0 sends to both parts with two workers, rank 1 to part 0 alone.
fn two_masters() -> PhaseSamples {
    samples(vec![
        worker(Some("0:0"), vec![part(0, &[10, 30], &[("refused", 1)]), part(1, &[1000; 4], &[])]),
        worker(Some("0:0"), vec![part(1, &[2000; 4], &[("reset", 1), ("refused", 5)])]),
        worker(Some("1:0"), vec![part(0, &[20, 40], &[("refused", 2)])]),
    ])
}

#[test]
fn parts_are_added_up_over_workers() {
    let parts = by_part(&two_masters());
    let figures: Vec<_> = parts
        .iter()
        .map(|part| (part.part, part.figures.operations, part.figures.bytes, part.figures.errors))
        .collect();
    assert_eq!(figures, [(0, 4, 400, 3), (1, 8, 800, 6)]);
    let rates = |of: &PartSummary| (of.figures.operations_per_second, of.figures.bytes_per_second);
    assert_eq!((rates(&parts[0]), rates(&parts[1])), ((1.0, 100.0), (2.0, 200.0)));
    let latency = parts[0].figures.latency.as_ref().expect("some completed");
    assert_eq!((latency.min_ns, latency.p50_ns, latency.max_ns, latency.mean_ns), (10, 20, 40, 25.0));
    let histogram = &parts[0].figures.histogram;
    assert_eq!(
        [25.0, 75.0, 95.0].map(|percent| histogram.percentile(percent)),
        [Some(10), Some(30), Some(40)]
    );
    let causes: Vec<_> =
        parts[1].figures.causes.iter().map(|cause| (cause.cause.as_str(), cause.count)).collect();
    assert_eq!(causes, [("refused", 5), ("reset", 1)], "the most frequent first");
}

#[test]
fn a_matrix_has_a_row_for_each_master() {
    let rows = by_origin(&two_masters());
    let origins: Vec<_> = rows.iter().map(|row| row.origin.as_deref()).collect();
    assert_eq!(origins, [Some("0:0"), Some("1:0")]);
    assert_eq!((rows[0].elapsed_ns, rows[0].figures.operations, rows[0].figures.errors), (2 * SECOND, 10, 7));
    assert_eq!(rows[0].figures.operations_per_second, 5.0, "over its own time");
    let cells = |row: &OriginSummary| -> Vec<_> {
        row.parts
            .iter()
            .map(|cell| (cell.part, cell.figures.operations, cell.figures.latency.as_ref().map(|l| l.max_ns)))
            .collect()
    };
    assert_eq!(
        (cells(&rows[0]), cells(&rows[1])),
        (vec![(0, 2, Some(30)), (1, 8, Some(2000))], vec![(0, 2, Some(40))])
    );
    let of_parts: u64 = rows[0].parts.iter().map(|cell| cell.figures.operations).sum();
    assert_eq!(of_parts, rows[0].figures.operations);
}

#[test]
fn a_part_without_a_success_has_no_latency() {
    let samples = samples(vec![worker(None, vec![part(5, &[], &[("refused", 9)])])]);
    let parts = by_part(&samples);
    assert_eq!((parts[0].part, parts[0].figures.errors, &parts[0].figures.latency), (5, 9, &None));
    assert_eq!(by_origin(&samples)[0].origin, None);
    assert!(by_part(&super::tests::samples(vec![WorkerSamples::default()])).is_empty());
}

#[test]
fn phases_that_are_merged_keep_parts_and_origins() {
    let all = two_masters();
    let (first, second) = (samples(all.workers[..2].to_vec()), samples(all.workers[2..].to_vec()));
    let merged = merge(&[&first, &second]).expect("two phases");
    assert_eq!(by_part(&merged), by_part(&all));
    assert_eq!(by_origin(&merged), by_origin(&all));
    assert_eq!(tally(&merged, "tcp_retransmits", None), Some((9.0, 3.0)));
}

#[test]
fn tallies_are_added_up_by_part() {
    let samples = two_masters();
    assert_eq!(tally(&samples, "tcp_retransmits", Some(0)), Some((6.0, 3.0)));
    assert_eq!(tally(&samples, "tcp_retransmits", Some(1)), Some((3.0, 3.0)));
    assert_eq!((tally(&samples, "tcp_retransmits", Some(2)), tally(&samples, "other", None)), (None, None));
}
