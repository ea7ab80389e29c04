use statistics::{ClassPoint, Series, spread};

/// Operations of 512 bytes in each interval of 100 ms; the last interval may be cut short.
fn series(done: &[u64], end_ms: u64) -> Series {
    let mut series = Series::new(100_000_000, 512, 2);
    for (at, &operations) in done.iter().enumerate() {
        let point = ClassPoint { operations, bytes: operations * 512, ..ClassPoint::default() };
        series.add(at as u64 * 100_000_000, 1, &point);
    }
    series.finish(end_ms * 1_000_000);
    series
}

const MS: u64 = 1_000_000;

#[test]
fn pieces_have_known_ranges() {
    // Three pieces of 200 ms: 30, 60 and 90 operations are 150, 300 and 450 a second.
    let found = spread(&[(&series(&[10, 20, 30, 30, 40, 50], 600), &[1])], 200 * MS).unwrap();
    assert_eq!(found.pieces, 3);
    let rate = found.operations;
    assert_eq!((rate.min, rate.max, rate.mean), (150.0, 450.0, 300.0));
    assert!((rate.stddev - 150.0).abs() < 1e-9, "{}", rate.stddev);
    assert_eq!((found.bytes.min, found.bytes.max), (150.0 * 512.0, 450.0 * 512.0));
}

#[test]
fn what_is_left_over_counts_from_half_a_piece_on() {
    let half = spread(&[(&series(&[10, 10, 20, 20, 5], 450), &[1])], 200 * MS).unwrap();
    assert_eq!(half.pieces, 2, "50 ms of 200 are too short");
    let more = spread(&[(&series(&[10, 10, 20, 20, 7], 500), &[1])], 200 * MS).unwrap();
    assert_eq!((more.pieces, more.operations.min), (3, 70.0));
}

#[test]
fn a_phase_shorter_than_a_piece_is_one_piece() {
    let found = spread(&[(&series(&[3, 1], 160), &[1])], 500 * MS).unwrap();
    assert_eq!((found.pieces, found.operations.min, found.operations.max), (1, 25.0, 25.0));
    assert_eq!(found.operations.stddev, 0.0);
}

#[test]
fn pieces_are_never_shorter_than_intervals() {
    let found = spread(&[(&series(&[1, 2, 3], 300), &[1])], 1).unwrap();
    assert_eq!((found.pieces, found.operations.mean), (3, 20.0));
}

#[test]
fn parts_are_pooled_and_an_unused_class_is_still() {
    let (first, second) = (series(&[10, 10], 200), series(&[30, 30], 200));
    let found = spread(&[(&first, &[1]), (&second, &[1])], 200 * MS).unwrap();
    assert_eq!((found.pieces, found.operations.min, found.operations.max), (2, 100.0, 300.0));
    let still = spread(&[(&first, &[0])], 200 * MS).unwrap();
    assert_eq!((still.pieces, still.operations.max), (1, 0.0));
}

#[test]
fn without_intervals_there_is_no_rate() {
    assert_eq!(spread(&[], 500 * MS), None);
    assert_eq!(spread(&[(&Series::new(100, 8, 1), &[0])], 500 * MS), None);
}
