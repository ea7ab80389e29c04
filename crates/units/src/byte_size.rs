use std::fmt;
use std::str::FromStr;

use crate::decimal::{Inexact, in_unit, split_number};
use crate::{ParseError, human};

/// A number of bytes.
///
/// Reads `512`, `512b`; `4k`, `4K`, `4KiB`, `1.5g`, `1T` as powers of 2; `4kB`, `4KB`, `1.5GB` as powers of 10: a
/// letter alone or with `iB` counts in steps of 1024, a letter with `B` in steps of 1000, in upper or lower case. The
/// letters are k, m, g, t, p, e. Arithmetic is exact: a size that is not a whole number of bytes is refused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ByteSize(pub u64);

/// The letters in ascending order; the n-th one stands for 1024^(n+1) or 1000^(n+1).
const LETTERS: &[u8] = b"kmgtpe";

const ACCEPTED: &str =
    "a number with k, m, g, t (powers of 2), kB, MB (powers of 10), such as 4k, 1.5g, 4KB, 1MiB";

impl ByteSize {
    /// The number of bytes.
    pub const fn bytes(self) -> u64 {
        self.0
    }

    /// Rounded to three or four digits, for tables: `1.46 GiB`, `512 B`.
    pub fn human(self) -> String {
        human::human_bytes(self.0 as f64)
    }
}

/// Bytes of one unit, or `None` for a suffix that is not a unit.
fn unit_bytes(suffix: &str) -> Option<u64> {
    let suffix = suffix.to_ascii_lowercase();
    if suffix.is_empty() || suffix == "b" {
        return Some(1);
    }
    let power = LETTERS.iter().position(|&letter| letter == suffix.as_bytes()[0])? as u32 + 1;
    match &suffix.as_bytes()[1..] {
        b"" | b"ib" => Some(1024u64.pow(power)),
        b"b" => Some(1000u64.pow(power)),
        _ => None,
    }
}

impl FromStr for ByteSize {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let refused = |accepted: &str| ParseError::new("a size", text, accepted);
        let (number, suffix) = split_number(text).ok_or_else(|| refused(ACCEPTED))?;
        let unit = unit_bytes(suffix).ok_or_else(|| refused(ACCEPTED))?;
        match number.and_then(|number| number.times(unit)) {
            Ok(bytes) => Ok(Self(bytes)),
            Err(Inexact::TooLarge) => Err(refused("at most 18446744073709551615 bytes (just under 16e)")),
            Err(Inexact::NotWhole) => Err(refused("a whole number of bytes")),
        }
    }
}

impl fmt::Display for ByteSize {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (power, letter) in LETTERS.iter().enumerate().rev() {
            let unit = 1024u64.pow(power as u32 + 1);
            if self.0 < unit {
                continue;
            }
            if let Some(number) = in_unit(self.0, unit) {
                let letter = char::from(letter.to_ascii_uppercase());
                return out.pad(&format!("{number}{letter}iB"));
            }
        }
        out.pad(&self.0.to_string())
    }
}

impl From<u64> for ByteSize {
    fn from(bytes: u64) -> Self {
        Self(bytes)
    }
}

impl From<ByteSize> for u64 {
    fn from(size: ByteSize) -> Self {
        size.0
    }
}
