//! Numbers and dates as fio writes them.

pub(super) use crate::dates::{ctime, epoch_ms, moment};

const DECIMAL: [&str; 7] = ["", "k", "M", "G", "T", "P", "E"];
const BINARY: [&str; 7] = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];

/// A number in at most `digits` characters with the prefix that makes it fit: `1510Mi`, `16.0Mi`, `24137k`.
///
/// The number is divided by 1000 or 1024 until its whole part fits; decimals fill what is left of the width, and the
/// remainder of the last division alone decides them.
pub(super) fn short(number: u64, digits: usize, is_binary: bool, unit: &str) -> String {
    let (thousand, prefixes) = if is_binary { (1024, &BINARY) } else { (1000, &DECIMAL) };
    let (mut whole, mut rest, mut power) = (number, None, 0);
    while whole.to_string().len() > digits && power + 1 < prefixes.len() {
        rest = Some(whole % thousand);
        whole /= thousand;
        power += 1;
    }
    let prefix = prefixes[power];
    let Some(rest) = rest else { return format!("{whole}{prefix}{unit}") };
    let decimals = digits.saturating_sub(whole.to_string().len() + 1);
    if decimals == 0 {
        let rounded = whole + u64::from(rest >= thousand / 2);
        return format!("{rounded}{prefix}{unit}");
    }
    let part = format!("{:.decimals$}", rest as f64 / thousand as f64);
    let (carry, part) = part.split_once('.').unwrap_or(("0", &part));
    format!("{}.{part}{prefix}{unit}", whole + u64::from(carry == "1"))
}

/// A bandwidth in four digits; in bits where `unit_base` is 1.
pub(super) fn bandwidth(bytes_per_second: u64, is_binary: bool, unit_base: u32) -> String {
    if unit_base == 1 {
        return short(bytes_per_second.saturating_mul(8), 4, is_binary, "bit/s");
    }
    short(bytes_per_second, 4, is_binary, "B/s")
}

/// Percentages as shares of `total`; what is there is at least `least` percent, so that it shows.
pub(super) fn shares<const N: usize>(counts: [u64; N], total: u64, least: f64) -> [f64; N] {
    counts.map(|count| match (count, total) {
        (0, _) | (_, 0) => 0.0,
        _ => (100.0 * count as f64 / total as f64).max(least),
    })
}

/// An amount over a time as a rate a second; 0 for no time at all.
pub(super) fn per_second(amount: u64, elapsed_ns: u64) -> f64 {
    if elapsed_ns == 0 { 0.0 } else { amount as f64 * 1e9 / elapsed_ns as f64 }
}

/// Milliseconds of a time, rounded; at least 1 where there was any, so that nobody divides by zero.
pub(super) fn milliseconds(ns: u64) -> u64 {
    if ns == 0 { 0 } else { (ns.saturating_add(500_000) / 1_000_000).max(1) }
}

/// The share of `part` in `whole`, in percent, at most 100.
pub(super) fn percent_of(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { (100.0 * part / whole).clamp(0.0, 100.0) } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_fit_their_width() {
        let rows = [
            (4096, 4, true, "B", "4096B"),
            (131_072, 4, true, "B", "128KiB"),
            (16_777_216, 4, true, "B", "16.0MiB"),
            (16_777_216, 4, false, "B", "16.8MB"),
            (1_584_128_000, 4, true, "B", "1511MiB"),
            (1_584_128_000, 4, false, "B", "1584MB"),
            (932_067_555, 4, true, "B/s", "889MiB/s"),
            (932_067_555, 4, false, "B/s", "932MB/s"),
            (24_137_000, 6, false, "", "24137k"),
            (4_066_071, 6, false, "", "4066.1k"),
            (227_555, 4, false, "", "228k"),
            (1_999_999, 4, false, "", "2000k"),
            (9_999_999, 4, false, "", "10000k"),
            (0, 4, true, "B", "0B"),
            (u64::MAX, 4, false, "", "18.4E"),
        ];
        for (number, digits, is_binary, unit, expected) in rows {
            assert_eq!(short(number, digits, is_binary, unit), expected, "{number}");
        }
        assert_eq!(bandwidth(1_000_000, false, 1), "8000kbit/s");
        assert_eq!(bandwidth(1_000_000, false, 8), "1000kB/s");
    }

    #[test]
    fn small_shares_still_show() {
        assert_eq!(shares([0, 1, 9999], 10_000, 0.1), [0.0, 0.1, 99.99]);
        assert_eq!(shares([0, 1], 0, 0.1), [0.0, 0.0]);
    }

    #[test]
    fn no_time_is_no_rate_and_any_time_is_a_millisecond() {
        assert_eq!((per_second(5, 0), per_second(5, 500_000_000)), (0.0, 10.0));
        assert_eq!((milliseconds(0), milliseconds(20), milliseconds(1_600_000)), (0, 1, 2));
        assert_eq!((percent_of(1.0, 0.0), percent_of(3.0, 2.0)), (0.0, 100.0));
    }
}
