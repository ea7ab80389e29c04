use crate::preset::{finding_of, value_words};
use crate::record::{PresetFigure, PresetFinding, PresetRecord, PresetUnit};
use crate::{sample, text};
use statistics::RepeatsEstimate;

#[test]
fn a_finding_needs_its_whole_interval() {
    use PresetFinding::{Better, CannotTell, Meets, Worse};
    use PresetUnit::{Nanoseconds, OperationsPerSecond};
    let cases = [
        (OperationsPerSecond, 0.97, (0.96, 0.98), Meets),
        (OperationsPerSecond, 1.02, (0.99, 1.20), Meets),
        (OperationsPerSecond, 1.20, (1.10, 1.30), Better),
        (OperationsPerSecond, 0.50, (0.40, 0.60), Worse),
        (OperationsPerSecond, 0.90, (0.70, 1.10), CannotTell),
        (Nanoseconds, 0.50, (0.40, 0.60), Better),
        (Nanoseconds, 2.00, (1.50, 2.50), Worse),
        (Nanoseconds, 1.00, (0.98, 1.02), Meets),
        (Nanoseconds, 1.00, (0.00, 2.00), CannotTell),
    ];
    for (unit, ratio, interval, finding) in cases {
        assert_eq!(finding_of(unit, ratio, Some(interval)), finding, "{unit:?} {ratio}");
    }
    assert_eq!(finding_of(OperationsPerSecond, 0.9, None), Worse);
}

#[test]
fn values_are_in_the_units_of_data_sheets() {
    assert_eq!(value_words(PresetUnit::BytesPerSecond, 6.85e9), "6.85 GB/s");
    assert_eq!(value_words(PresetUnit::OperationsPerSecond, 1e6), "1.00M/s");
    assert_eq!(value_words(PresetUnit::Nanoseconds, 71_200.0), "71.2 us");
}

#[test]
fn the_table_has_measured_beside_stated() {
    let figure = |key: &str, value: f64, stated| {
        let unit = PresetUnit::OperationsPerSecond;
        let mut figure = PresetFigure::new(key, "4 KiB".to_owned(), unit, stated);
        let (low, high) = (Some(value * 0.99), Some(value * 1.01));
        figure.measured(&RepeatsEstimate { mean: value, low, high });
        figure
    };
    let mut record = sample::record(Vec::new());
    record.preset = Some(PresetRecord {
        name: "drive".to_owned(),
        target: "/dev/nvme0n1".to_owned(),
        against: "stated".to_owned(),
        method: vec!["SNIA".to_owned()],
        figures: vec![
            figure("rand_read", 1e6, Some(1e6)),
            figure("rand_write", 9e4, Some(2e5)),
            figure("write_latency", 9e4, None),
        ],
        verdict: vec!["1 of 2 stated figures is met".to_owned()],
        warnings: vec!["no preconditioning".to_owned()],
    });
    let text = text::render(&record, 120, false);
    for part in ["meets", "below (worse)", "0.45", "not stated", "verdict", "warning", "no preconditioning"] {
        assert!(text.contains(part), "{part}: {text}");
    }
}
