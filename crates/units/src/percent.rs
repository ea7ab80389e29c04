use std::fmt;
use std::str::FromStr;

use crate::ParseError;

/// A whole number of hundredths, from 0 to 100. Reads `70` and `70%`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Percent(u8);

const ACCEPTED: &str = "a whole number from 0 to 100, such as 70 or 70%";

impl Percent {
    /// A share of `value` percent.
    ///
    /// # Errors
    /// Refuses values above 100.
    pub fn new(value: u64) -> Result<Self, ParseError> {
        match u8::try_from(value) {
            Ok(percent @ 0..=100) => Ok(Self(percent)),
            _ => Err(ParseError::new("a percentage", value, ACCEPTED)),
        }
    }

    /// The share in percent, 0 to 100.
    pub const fn get(self) -> u8 {
        self.0
    }

    /// The share as a fraction, 0.0 to 1.0.
    pub fn fraction(self) -> f64 {
        f64::from(self.0) / 100.0
    }
}

impl FromStr for Percent {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let refused = || ParseError::new("a percentage", text, ACCEPTED);
        let digits = text.strip_suffix('%').unwrap_or(text);
        if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(refused());
        }
        digits.parse().map_err(|_| refused()).and_then(|value| Self::new(value).map_err(|_| refused()))
    }
}

impl fmt::Display for Percent {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.pad(&format!("{}%", self.0))
    }
}
