use workload::spec::Operation::{RandRead, RandWrite, Read, Write};

use super::*;
use crate::record::Doubt;
use crate::sample::{self, StackShape};

const MIB: u64 = 1 << 20;

fn doubt(kind: &str) -> Doubt {
    Doubt { kind: kind.to_owned(), detail: "seen".to_owned(), remedy: "do".to_owned() }
}

/// Memory, drive and file at one load, with these rates.
fn three(operation: workload::spec::Operation, block: u64, rates: [f64; 3]) -> Vec<StackShape> {
    let layers = ["memory", "media", "file"];
    layers.iter().zip(rates).map(|(layer, rate)| (*layer, operation, block, rate)).collect()
}

#[test]
fn the_layer_that_loses_most_holds_the_stack_back() {
    let rows = [
        three(Read, MIB, [9800.0, 2100.0, 1900.0]),
        three(RandWrite, 4096, [1.2e6, 20_000.0, 5000.0]),
        three(Write, MIB, [9800.0, 2000.0, 1000.0]),
    ];
    let verdict = verdict(&sample::stack(&rows.concat()));
    assert_eq!(verdict.holding_layer.as_deref(), Some("file"));
    assert_eq!(verdict.confidence, Confidence::Sure);
    assert!((verdict.factor - 4.0).abs() < 0.02, "{}", verdict.factor);
    assert_eq!(
        verdict.sentence,
        "file holds the stack back: at 4 KiB random write, file gives 25.0% of what media gives, 4.00 times less \
         (sure: 3.99 to 4.01 times with 95%)"
    );
    assert_eq!(verdict.try_lines.len(), 2);
    assert!(verdict.try_lines[0].contains("write-back"), "{:?}", verdict.try_lines);
    assert_eq!(
        verdict.loads,
        [
            "1 MiB sequential read: media gives 21.4% of what memory gives (4.67 times less, sure)",
            "4 KiB random write: file gives 25.0% of what media gives (4.00 times less, sure)",
            "1 MiB sequential write: file gives 50.0% of what media gives (2.00 times less, sure)",
        ]
    );
}

#[test]
fn the_drive_is_the_limit_when_the_layers_above_keep_up() {
    let rows = [three(Read, MIB, [9800.0, 2000.0, 1960.0]), three(RandRead, 4096, [1e6, 10_000.0, 9500.0])];
    let verdict = verdict(&sample::stack(&rows.concat()));
    assert_eq!(verdict.holding_layer.as_deref(), Some("media"));
    assert_eq!(verdict.confidence, Confidence::Sure);
    assert!((verdict.factor - 100.0).abs() < 0.5);
    assert!(
        verdict
            .sentence
            .starts_with("the drive is the limit: at 4 KiB random read, media gives 1.00% of what memory"),
        "{}",
        verdict.sentence
    );
    assert!(
        verdict.sentence.ends_with("; the layers above it give 95.0% or more of it"),
        "{}",
        verdict.sentence
    );
    assert!(verdict.try_lines[0].starts_with("a faster drive or more of them"));
    assert!(verdict.try_lines[1].contains("--saturate"));
}

#[test]
fn a_faster_layer_is_called_faster() {
    let rows =
        [three(RandRead, 4096, [1e6, 10_000.0, 320_000.0]), three(Write, MIB, [9800.0, 500.0, 2000.0])];
    let record = sample::stack(&rows.concat());
    let verdict = verdict(&record);
    assert_eq!(
        verdict.loads,
        [
            "4 KiB random read: file reads come from memory, not from the drive (32.0 times as fast)",
            "1 MiB sequential write: file writes end in memory, not on the drive (4.00 times as fast)",
        ]
    );
    assert_eq!(verdict.holding_layer.as_deref(), Some("media"));
    assert!(
        verdict
            .sentence
            .ends_with("; file answers from memory, which hides it only while the data fit there")
    );
}

#[test]
fn doubted_figures_make_it_likely_only() {
    let mut record = sample::stack(&three(Read, MIB, [9800.0, 2000.0, 1000.0]));
    record.phases[2].doubts.push(doubt("page_cache"));
    assert_eq!(verdict(&record).confidence, Confidence::Sure, "the page cache is what this layer is");
    record.phases[2].doubts.push(doubt("too_short"));
    let verdict = verdict(&record);
    assert_eq!((verdict.holding_layer.as_deref(), verdict.confidence), (Some("file"), Confidence::Likely));
    assert!(verdict.sentence.contains("(likely: 1.99 to 2.01 times with 95%, but the figures are in doubt)"));
}

#[test]
fn without_intervals_nothing_is_likely() {
    let mut record = sample::stack(&three(Read, MIB, [9800.0, 2000.0, 1000.0]));
    record.phases[2].summary.total.bandwidth = None;
    let found = verdict(&record);
    assert_eq!(steps(&record)[1].confidence, Confidence::CannotTell);
    assert_eq!(found.holding_layer.as_deref(), Some("media"), "a factor of 2, and nothing says how sure");
    assert!(!found.sentence.contains("likely"), "{}", found.sentence);
}

#[test]
fn overlapping_rates_cannot_be_told_apart() {
    let mut record = sample::stack(&[("media", Read, MIB, 1000.0), ("file", Read, MIB, 700.0)]);
    let bandwidth = record.phases[1].summary.total.bandwidth.as_mut().unwrap();
    (bandwidth.low, bandwidth.high) = (bandwidth.mean * 0.5, bandwidth.mean * 1.5);
    assert_eq!(steps(&record)[0].confidence, Confidence::CannotTell);
    let verdict = verdict(&record);
    assert_eq!((verdict.holding_layer, verdict.confidence), (None, Confidence::CannotTell));
    assert_eq!(verdict.sentence, "no layer is known to give less than the one below it");
}

#[test]
fn the_interval_of_a_ratio_adds_relative_errors_in_quadrature() {
    let mut record = sample::stack(&[("media", Read, MIB, 1000.0), ("file", Read, MIB, 500.0)]);
    for (at, half) in [(0, 0.03), (1, 0.04)] {
        let bandwidth = record.phases[at].summary.total.bandwidth.as_mut().unwrap();
        (bandwidth.low, bandwidth.high) = (bandwidth.mean * (1.0 - half), bandwidth.mean * (1.0 + half));
    }
    let step = &steps(&record)[0];
    let (low, high) = step.interval.unwrap();
    assert!(
        (low / step.ratio - (-0.05f64).exp()).abs() < 1e-9
            && (high / step.ratio - 0.05f64.exp()).abs() < 1e-9
    );
}

#[test]
fn the_floor_is_no_layer_and_missing_rows_are_bridged() {
    let mut rows = vec![("null", Read, MIB, 9e6)];
    rows.extend(three(Read, MIB, [9800.0, 2000.0, 1000.0]));
    let mut record = sample::stack(&rows);
    let row = &mut record.stack.as_mut().unwrap().rows[2];
    (row.phase, row.missing) = (None, Some("direct I/O is refused".to_owned()));
    let found: Vec<_> = steps(&record).into_iter().map(|step| (step.layer, step.below, step.place)).collect();
    assert_eq!(found, [("file".to_owned(), "memory".to_owned(), 3)]);
}

#[test]
fn layers_of_later_versions_are_software() {
    let rows =
        [("media", Read, MIB, 2000.0), ("archive", Read, MIB, 1500.0), ("application", Read, MIB, 300.0)];
    let verdict = verdict(&sample::stack(&rows));
    assert_eq!(verdict.holding_layer.as_deref(), Some("application"));
    assert!((verdict.factor - 5.0).abs() < 0.05);
    assert!(verdict.try_lines[0].starts_with("more in flight for this layer"), "{:?}", verdict.try_lines);
}

#[test]
fn a_busy_processor_changes_the_advice() {
    let mut record = sample::stack(&three(Read, MIB, [9800.0, 2000.0, 1000.0]));
    for worker in &mut record.phases[2].samples.workers {
        worker.cpu_system_ns = worker.finished_ns;
    }
    let verdict = verdict(&record);
    assert_eq!(
        verdict.try_lines,
        ["the copy out of the page cache takes the whole processor: more threads, or direct I/O (--direct)"]
    );
}

#[test]
fn nothing_to_compare_is_said() {
    for record in [sample::record(vec![]), sample::stack(&[("media", Read, MIB, 1000.0)])] {
        let verdict = verdict(&record);
        assert_eq!(verdict.holding_layer, None);
        assert_eq!(
            verdict.sentence,
            "nothing to compare: fewer than two layers were measured at the same load"
        );
    }
}

#[test]
fn what_is_so_already_is_not_to_be_tried() {
    let lines = |change: &dyn Fn(&mut host::block::BlockDevice)| {
        let rows =
            [three(Read, MIB, [9800.0, 2000.0, 1000.0]), three(RandRead, 4096, [1e6, 10_000.0, 9500.0])];
        let mut record = sample::stack(&rows.concat());
        change(record.environment.targets[0].device.as_mut().unwrap());
        verdict(&record).try_lines.join("; ")
    };
    assert!(lines(&|_| ()).contains("a larger read-ahead"));
    assert!(!lines(&|device| device.read_ahead_bytes = Some(8 << 20)).contains("read-ahead"));
    let drive = |change: &dyn Fn(&mut host::block::BlockDevice)| {
        let mut record = sample::stack(&three(Read, MIB, [9800.0, 2000.0, 1960.0]));
        change(record.environment.targets[0].device.as_mut().unwrap());
        verdict(&record).try_lines.join("; ")
    };
    assert!(
        drive(&|device| device.scheduler = Some("mq-deadline".to_owned())).contains("the scheduler `none`")
    );
    assert!(!drive(&|device| device.scheduler = Some("none".to_owned())).contains("scheduler"));
    let spins = |device: &mut host::block::BlockDevice| {
        device.scheduler = Some("mq-deadline".to_owned());
        device.rotational = Some(true);
    };
    assert!(!drive(&spins).contains("scheduler"), "it is for flash");
}
