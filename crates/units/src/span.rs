use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use crate::ParseError;
use crate::decimal::{Inexact, in_unit, split_number};

/// A length of time, in whole nanoseconds (at most 584 years).
///
/// Reads `5ns`, `100us`, `500ms`, `30s`, `1.5s`, `2m`, `1h`; a bare number is seconds. A length that is not a whole
/// number of nanoseconds is refused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span(pub u64);

const SECOND_NS: u64 = 1_000_000_000;

const UNITS: &[(&str, u64)] = &[
    ("ns", 1),
    ("us", 1_000),
    ("ms", 1_000_000),
    ("s", SECOND_NS),
    ("", SECOND_NS),
    ("m", 60 * SECOND_NS),
    ("h", 3600 * SECOND_NS),
];

const ACCEPTED: &str = "a number with ns, us, ms, s, m or h (none means seconds), such as 500ms, 30s, 2m";

impl Span {
    /// A length of `seconds` whole seconds; `None` above 584 years.
    pub fn from_seconds(seconds: u64) -> Option<Self> {
        seconds.checked_mul(SECOND_NS).map(Self)
    }

    /// The length in nanoseconds.
    pub const fn ns(self) -> u64 {
        self.0
    }

    /// The length in seconds.
    pub fn seconds(self) -> f64 {
        self.0 as f64 / SECOND_NS as f64
    }

    /// Rounded to three digits, for tables: `12.4 us`.
    pub fn human(self) -> String {
        crate::human_ns(self.0 as f64)
    }
}

impl FromStr for Span {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let refused = |accepted: &str| ParseError::new("a duration", text, accepted);
        let (number, suffix) = split_number(text).ok_or_else(|| refused(ACCEPTED))?;
        let unit = UNITS.iter().find(|(name, _)| *name == suffix);
        let (_, unit_ns) = unit.ok_or_else(|| refused(ACCEPTED))?;
        match number.and_then(|number| number.times(*unit_ns)) {
            Ok(ns) => Ok(Self(ns)),
            Err(Inexact::TooLarge) => Err(refused("at most 18446744073709551615ns (584 years)")),
            Err(Inexact::NotWhole) => Err(refused("a whole number of nanoseconds")),
        }
    }
}

impl fmt::Display for Span {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ns = self.0;
        // Minutes and hours only where they are whole, since 90s reads better than 1.5m.
        for (name, unit) in [("h", 3600 * SECOND_NS), ("m", 60 * SECOND_NS)] {
            if ns > 0 && ns.is_multiple_of(unit) {
                return out.pad(&format!("{}{name}", ns / unit));
            }
        }
        for (name, unit) in [("s", SECOND_NS), ("ms", 1_000_000), ("us", 1_000)] {
            if ns >= unit
                && let Some(number) = in_unit(ns, unit)
            {
                return out.pad(&format!("{number}{name}"));
            }
        }
        out.pad(&if ns == 0 { "0s".to_owned() } else { format!("{ns}ns") })
    }
}

impl From<Span> for Duration {
    fn from(span: Span) -> Self {
        Self::from_nanos(span.0)
    }
}

impl TryFrom<Duration> for Span {
    type Error = ParseError;

    fn try_from(duration: Duration) -> Result<Self, ParseError> {
        let refused = |_| ParseError::new("a duration", format!("{duration:?}"), "at most 584 years");
        u64::try_from(duration.as_nanos()).map(Self).map_err(refused)
    }
}
