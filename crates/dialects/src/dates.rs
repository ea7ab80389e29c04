//! Dates as the C tools write them, in UTC.

use std::time::{Duration, UNIX_EPOCH};

/// A moment of the record (RFC 3339), some nanoseconds later, as the time since the epoch; the epoch itself where it
/// cannot be read.
pub(crate) fn moment(started_at: &str, later_ns: u64) -> Duration {
    let since = humantime::parse_rfc3339(started_at).ok().and_then(|at| at.duration_since(UNIX_EPOCH).ok());
    since.unwrap_or_default().saturating_add(Duration::from_nanos(later_ns))
}

/// Milliseconds since the epoch.
pub(crate) fn epoch_ms(moment: Duration) -> u64 {
    moment.as_millis() as u64
}

/// A moment as ctime(3) writes it: `Sat Nov 21 10:28:35 2026`.
pub(crate) fn ctime(moment: Duration) -> String {
    const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let text = humantime::format_rfc3339_seconds(UNIX_EPOCH + moment).to_string();
    let field = |range: std::ops::Range<usize>| text.get(range).unwrap_or_default();
    let number = |range| field(range).parse::<usize>().unwrap_or(1);
    let weekday = DAYS[(epoch_ms(moment) / 86_400_000 % 7) as usize];
    let month = MONTHS[(number(5..7).max(1) - 1) % 12];
    format!("{weekday} {month} {:>2} {} {}", number(8..10), field(11..19), field(0..4))
}

/// A moment with its date in numbers: `11/21/2026 10:28:35`.
pub(crate) fn numbers(moment: Duration) -> String {
    let text = humantime::format_rfc3339_seconds(UNIX_EPOCH + moment).to_string();
    let field = |range: std::ops::Range<usize>| text.get(range).unwrap_or_default();
    format!("{}/{}/{} {}", field(5..7), field(8..10), field(0..4), field(11..19))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_ctime() {
        let rows = [
            ("2026-11-21T10:28:35Z", "Sat Nov 21 10:28:35 2026"),
            ("2024-02-29T23:59:59.9Z", "Thu Feb 29 23:59:59 2024"),
            ("2026-01-02T03:04:06Z", "Fri Jan  2 03:04:06 2026"),
            ("not a date", "Thu Jan  1 00:00:00 1970"),
        ];
        for (text, expected) in rows {
            assert_eq!(ctime(moment(text, 0)), expected);
        }
        assert_eq!(epoch_ms(moment("2026-11-21T10:28:35Z", 1_500_000_000)), 1_795_256_916_500);
        assert_eq!(numbers(moment("2026-11-21T10:28:35Z", 0)), "11/21/2026 10:28:35");
    }
}
