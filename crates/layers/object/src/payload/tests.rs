use proptest::prelude::*;

use super::*;

const RUN: u64 = 0x1234_5678;

fn value(record: u64, sequence: u64, bytes: usize) -> Vec<u8> {
    let mut value = vec![0xaa; bytes];
    Payload::new(RUN, false).fill(&mut value, record, sequence);
    value
}

/// Cause, and the byte where it begins.
fn fault(value: &[u8], record: u64, at_least: Option<u64>) -> (&'static str, u64) {
    let fault =
        Payload::new(RUN, false).check(value, record, value.len() as u64, at_least).expect_err("a fault");
    let digits = fault.detail.strip_prefix("from byte ").and_then(|rest| rest.split(':').next());
    (fault.cause, digits.and_then(|digits| digits.parse().ok()).expect("a byte"))
}

const SIZES: [usize; 12] = [0, 1, 39, 40, 41, 64, 4095, 4096, 4097, 4136, 8192, 100_003];

#[test]
fn values_of_any_size_pass() {
    let mut payload = Payload::new(RUN, false);
    for bytes in SIZES {
        let made = value(7, 3, bytes);
        assert_eq!(payload.check(&made, 7, bytes as u64, None), Ok(()), "{bytes}");
        assert_eq!(payload.check(&made, 7, bytes as u64, Some(3)), Ok(()), "{bytes}");
    }
}

#[test]
fn each_cause_is_told_from_the_others() {
    let sound = value(7, 3, 10_000);
    assert_eq!(fault(&value(8, 3, 10_000), 7, None), ("misplaced", 0));
    assert_eq!(fault(&value(7, 2, 10_000), 7, Some(3)), ("stale", 0));
    assert_eq!(fault(&value(7, 3 | 1 << 40, 10_000), 7, Some(3)), ("stale", 0));
    assert_eq!(fault(&value(7, 3, 20_000)[..10_000], 7, None), ("other_size", 0));
    assert_eq!(fault(&[0; 10_000], 7, None), ("unwritten", 0));
    assert_eq!(fault(&[0; 5], 7, None), ("unwritten", 0));
    assert_eq!(fault(&[0x5a; 10_000], 7, None), ("corrupt", 0));
    let short = Payload::new(RUN, false).check(&sound[..9_999], 7, 10_000, None).expect_err("short");
    assert_eq!(short.cause, "short");
    // Blocks that changed places.
    let mut swapped = sound.clone();
    swapped.copy_within(4096..8192, 0);
    assert_eq!(fault(&swapped, 7, None), ("misplaced", 0));
}

#[test]
fn tears_are_found_where_they_are() {
    let (new, old) = (value(7, 9, 10_000), value(7, 8, 10_000));
    let far = value(7, 2, 10_000);
    for (at, other) in [(512, &old), (4096, &old), (5000, &old), (8192, &far), (9_000, &old)] {
        let torn = [&new[..at], &other[at..]].concat();
        let (cause, byte) = fault(&torn, 7, None);
        // Up to where the first byte differs: two writes may agree by chance.
        assert!(cause == "torn" && (at as u64..at as u64 + 4).contains(&byte), "{cause} {byte} for {at}");
        let cut = [&new[..at], &vec![0; 10_000 - at]].concat();
        let (cause, byte) = fault(&cut, 7, None);
        assert!(cause == "torn" && (at as u64..at as u64 + 4).contains(&byte), "{cause} {byte} for {at}");
    }
}

#[test]
fn other_runs_are_foreign_unless_accepted() {
    let made = value(7, 3, 9000);
    assert_eq!(Payload::new(1, false).check(&made, 7, 9000, None).expect_err("foreign").cause, "foreign_run");
    assert_eq!(Payload::new(1, true).check(&made, 7, 9000, None), Ok(()));
    // Of two runs: no more accepted than of two writes.
    let mut mixed = made;
    let mut other = vec![0; 9000];
    Payload::new(2, false).fill(&mut other, 7, 3);
    mixed[4096..].copy_from_slice(&other[4096..]);
    assert_eq!(
        Payload::new(1, true).check(&mixed, 7, 9000, None).expect_err("two runs").cause,
        "foreign_run"
    );
}

/// The layout is part of what lies in stores.
#[test]
fn at_a_snapshot_older_versions_are_good_and_own_ones_are_newer() {
    let old = value(7, 3, 5000);
    let mut later = Payload::new(RUN + 1, true).without(vec![0]).at_snapshot();
    assert_eq!(later.check(&old, 7, 5000, None), Ok(()));
    let mut own = vec![0; 5000];
    later.fill(&mut own, 7, 4);
    let fault = later.check(&own, 7, 5000, None).expect_err("it was not there then");
    assert_eq!(fault.cause, "newer", "{}", fault.detail);
}

#[test]
fn stamps_are_pinned() {
    let hex: String = value(7, 3, 4096)[..STAMP_BYTES].iter().map(|byte| format!("{byte:02x}")).collect();
    assert!(
        hex.starts_with("785634120000000007000000000000000300000000000000001000000000000000000000"),
        "{hex}"
    );
}

proptest! {
    #[test]
    fn one_wrong_bit_is_found(record: u64, bytes in 1usize..20_000, at: prop::sample::Index, bit in 0u8..8) {
        let mut made = value(record, 5, bytes);
        let at = at.index(bytes);
        made[at] ^= 1 << bit;
        prop_assert!(Payload::new(RUN, false).check(&made, record, bytes as u64, None).is_err());
    }

    #[test]
    fn no_content_panics(content in prop::collection::vec(any::<u8>(), 0..10_000), record: u64, bytes in 0u64..12_000) {
        let _ = Payload::new(RUN, true).check(&content, record, bytes, Some(1));
    }
}
