use std::fmt;
use std::str::FromStr;

use crate::ParseError;

/// A number of operations per second, above 0 and at most 10^12.
///
/// Reads `300`, `300/s`, `1k`, `2.5k/s`, `300K`, `1M`; k, m, g are powers of 10, in upper or lower case.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Rate(f64);

/// Above this a rate is a slip of the keyboard: a thousand operations per nanosecond.
const PER_SECOND_MAX: f64 = 1e12;

const ACCEPTED: &str = "operations per second above 0 and up to 1000g, such as 500, 2.5k, 300k, 1M";

impl Rate {
    /// A rate of `per_second` operations.
    ///
    /// # Errors
    /// Refuses 0, negative, non-finite values and values above 10^12.
    pub fn new(per_second: f64) -> Result<Self, ParseError> {
        // Written so that NaN is refused too.
        if per_second > 0.0 && per_second <= PER_SECOND_MAX {
            return Ok(Self(per_second));
        }
        Err(ParseError::new("a rate", per_second, ACCEPTED))
    }

    /// Operations per second.
    pub const fn per_second(self) -> f64 {
        self.0
    }

    /// Rounded to three digits, for tables: `12.3k`.
    pub fn human(self) -> String {
        crate::human_rate(self.0)
    }
}

/// The power of ten that a suffix stands for.
fn exponent(suffix: &str) -> Option<u32> {
    match suffix {
        "" => Some(0),
        "k" | "K" => Some(3),
        "m" | "M" => Some(6),
        "g" | "G" => Some(9),
        _ => None,
    }
}

impl FromStr for Rate {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let refused = || ParseError::new("a rate", text, ACCEPTED);
        let body = text.strip_suffix("/s").unwrap_or(text);
        let (_, suffix) = crate::decimal::split_number(body).ok_or_else(refused)?;
        let exponent = exponent(suffix).ok_or_else(refused)?;
        // The standard reader rounds once, so that 2.3k is the number nearest to 2300.
        let number = &body[..body.len() - suffix.len()];
        let per_second: f64 = format!("{number}e{exponent}").parse().map_err(|_| refused())?;
        Self::new(per_second).map_err(|_| refused())
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.fract() == 0.0 {
            let whole = self.0 as u64;
            for (suffix, unit) in [("G", 1_000_000_000), ("M", 1_000_000), ("k", 1_000)] {
                if whole >= unit
                    && let Some(number) = crate::decimal::in_unit(whole, unit)
                {
                    return out.pad(&format!("{number}{suffix}"));
                }
            }
        }
        out.pad(&self.0.to_string())
    }
}
