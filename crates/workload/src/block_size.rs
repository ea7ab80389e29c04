//! The sizes of the operations.

#[cfg(test)]
mod tests;

use std::fmt;
use std::str::FromStr;

use units::{ByteSize, ParseError, Percent, split_list};

use crate::random::{Random, mix64};

const WHAT: &str = "a block size";

const ACCEPTED: &str = "a size such as 4k, shares that add up to 100 such as 4k:70,64k:30, or a range such as 4k-64k \
                        or 4k-64k/4k";

/// One size or a distribution of sizes, in bytes.
///
/// Reads and prints `4k` (always that size), `4k:70,64k:30` (each size in that percentage of the operations, in random
/// order) and `4k-64k/4k` (every multiple of the step within, equally likely; without a step, the lower end is the
/// step). Has the same text in JSON and TOML, where a number of bytes is read too.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockSizes(Kind);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Kind {
    Fixed(u64),
    /// Bytes and percent.
    Split(Box<[(u64, u8)]>),
    Range {
        min: u64,
        max: u64,
        step: u64,
        sizes: u64,
    },
}

fn refused(given: impl fmt::Display, accepted: impl Into<String>) -> ParseError {
    ParseError::new(WHAT, given, accepted)
}

impl BlockSizes {
    /// Always `bytes`.
    ///
    /// # Errors
    /// Refuses 0.
    pub fn fixed(bytes: u64) -> Result<Self, ParseError> {
        if bytes == 0 {
            return Err(refused(bytes, "at least 1 byte"));
        }
        Ok(Self(Kind::Fixed(bytes)))
    }

    /// Each size, in bytes, in its percentage of the operations.
    ///
    /// # Errors
    /// Refuses percentages that do not add up to 100, a size or share of 0 and a size given twice.
    pub fn split(shares: &[(u64, u8)]) -> Result<Self, ParseError> {
        let given = || Self(Kind::Split(shares.into()));
        let sum: u64 = shares.iter().map(|&(_, percent)| u64::from(percent)).sum();
        if sum != 100 {
            return Err(refused(given(), format!("shares that add up to 100 (these make {sum})")));
        }
        if shares.iter().any(|&(bytes, percent)| bytes == 0 || percent == 0) {
            return Err(refused(given(), "sizes of at least 1 byte with shares of at least 1 percent"));
        }
        if (1..shares.len()).any(|place| shares[..place].iter().any(|&(bytes, _)| bytes == shares[place].0)) {
            return Err(refused(given(), "each size once"));
        }
        Ok(given())
    }

    /// `min`, `min + step` and so on up to `max`, in bytes, equally likely.
    ///
    /// # Errors
    /// Refuses 0, a range that runs backward and a step that does not lead from `min` to `max`.
    pub fn range(min: u64, max: u64, step: u64) -> Result<Self, ParseError> {
        let given = || Self(Kind::Range { min, max, step, sizes: 0 });
        if min == 0 || step == 0 {
            return Err(refused(given(), "sizes and steps of at least 1 byte"));
        }
        if min >= max {
            return Err(refused(given(), "a range from a smaller to a larger size, such as 4k-64k"));
        }
        if !(max - min).is_multiple_of(step) {
            return Err(refused(
                given(),
                "a step that leads from the smallest to the largest size, such as 4k-64k/4k",
            ));
        }
        // No overflow: the step is at least 1, and the smallest size at least 1.
        Ok(Self(Kind::Range { min, max, step, sizes: (max - min) / step + 1 }))
    }

    /// The size of the next operation, in bytes.
    #[inline]
    pub fn next(&self, random: &mut Random) -> u64 {
        match &self.0 {
            Kind::Fixed(bytes) => *bytes,
            Kind::Range { min, step, sizes, .. } => min + step * random.below(*sizes),
            Kind::Split(shares) => share_at(shares, random.below(100)),
        }
    }

    /// The size of the thing with this number, in bytes: the same whenever it is asked for, and over all numbers distributed as
    /// [`BlockSizes::next`] would draw them.
    #[inline]
    pub fn of(&self, number: u64) -> u64 {
        // A multiple of a hash below 2^64, so no size is favoured by more than 1 in 2^64 / sizes.
        let below = |bound: u64| {
            ((u128::from(mix64(number.wrapping_mul(2).wrapping_add(1))) * u128::from(bound)) >> 64) as u64
        };
        match &self.0 {
            Kind::Fixed(bytes) => *bytes,
            Kind::Range { min, step, sizes, .. } => min + step * below(*sizes),
            Kind::Split(shares) => share_at(shares, below(100)),
        }
    }

    /// The only size, where there is just one.
    pub fn single(&self) -> Option<u64> {
        let (min, max) = (self.min(), self.max());
        (min == max).then_some(min)
    }

    /// The largest size, in bytes.
    pub fn max(&self) -> u64 {
        match &self.0 {
            Kind::Fixed(bytes) => *bytes,
            Kind::Split(shares) => shares.iter().map(|&(bytes, _)| bytes).max().unwrap_or(0),
            Kind::Range { max, .. } => *max,
        }
    }

    /// The smallest size, in bytes.
    pub fn min(&self) -> u64 {
        match &self.0 {
            Kind::Fixed(bytes) => *bytes,
            Kind::Split(shares) => shares.iter().map(|&(bytes, _)| bytes).min().unwrap_or(0),
            Kind::Range { min, .. } => *min,
        }
    }

    /// The greatest number of bytes that divides every size.
    pub fn granularity(&self) -> u64 {
        match &self.0 {
            Kind::Fixed(bytes) => *bytes,
            Kind::Split(shares) => shares.iter().fold(0, |common, &(bytes, _)| common_divisor(common, bytes)),
            Kind::Range { min, step, .. } => common_divisor(*min, *step),
        }
    }

    /// The mean size over many operations, in bytes.
    pub fn mean(&self) -> f64 {
        match &self.0 {
            Kind::Fixed(bytes) => *bytes as f64,
            Kind::Split(shares) => {
                shares.iter().map(|&(bytes, percent)| bytes as f64 * f64::from(percent)).sum::<f64>() / 100.0
            }
            Kind::Range { min, max, .. } => *min as f64 / 2.0 + *max as f64 / 2.0,
        }
    }
}

/// The size that holds at `place` of 100.
#[inline]
fn share_at(shares: &[(u64, u8)], mut place: u64) -> u64 {
    for &(bytes, percent) in shares {
        match place.checked_sub(percent.into()) {
            None => return bytes,
            Some(rest) => place = rest,
        }
    }
    unreachable!("the percentages add up to 100")
}

/// The largest number that both are multiples of.
#[must_use]
pub fn common_divisor(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { common_divisor(b, a % b) }
}

fn read_split(text: &str) -> Option<Vec<(u64, u8)>> {
    let read = |part: &str| {
        let (size, percent) = part.split_once(':')?;
        let size: ByteSize = size.parse().ok()?;
        let percent: Percent = percent.parse().ok()?;
        Some((size.bytes(), percent.get()))
    };
    split_list("sizes", text).ok()?.into_iter().map(read).collect()
}

fn read_range(text: &str) -> Option<(u64, u64, u64)> {
    let size = |text: &str| text.parse().map(ByteSize::bytes).ok();
    let (range, step) = match text.split_once('/') {
        Some((range, step)) => (range, Some(size(step)?)),
        None => (text, None),
    };
    let (min, max) = range.split_once('-')?;
    let min = size(min)?;
    Some((min, size(max)?, step.unwrap_or(min)))
}

impl FromStr for BlockSizes {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        if text.contains(':') {
            let shares = read_split(text).ok_or_else(|| refused(text, ACCEPTED))?;
            return Self::split(&shares);
        }
        if text.contains('-') {
            let (min, max, step) = read_range(text).ok_or_else(|| refused(text, ACCEPTED))?;
            return Self::range(min, max, step);
        }
        // The reader of sizes knows what is wrong with a size; only the name of the thing is this one's.
        let size: ByteSize =
            text.parse().map_err(|error: ParseError| ParseError { what: WHAT.to_owned(), ..error })?;
        Self::fixed(size.bytes())
    }
}

impl fmt::Display for BlockSizes {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Kind::Fixed(bytes) => write!(out, "{}", ByteSize(*bytes)),
            Kind::Split(shares) => {
                for (place, &(bytes, percent)) in shares.iter().enumerate() {
                    let comma = if place == 0 { "" } else { "," };
                    write!(out, "{comma}{}:{percent}", ByteSize(bytes))?;
                }
                Ok(())
            }
            Kind::Range { min, max, step, .. } => {
                write!(out, "{}-{}", ByteSize(*min), ByteSize(*max))?;
                if step == min { Ok(()) } else { write!(out, "/{}", ByteSize(*step)) }
            }
        }
    }
}

impl serde::Serialize for BlockSizes {
    fn serialize<S: serde::Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        out.collect_str(self)
    }
}

impl<'de> serde::Deserialize<'de> for BlockSizes {
    fn deserialize<D: serde::Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        #[derive(serde::Deserialize)]
        #[serde(untagged)]
        enum Given {
            Bytes(u64),
            Text(String),
        }
        let sizes = match Given::deserialize(input)? {
            Given::Bytes(bytes) => Self::fixed(bytes),
            Given::Text(text) => text.parse(),
        };
        sizes.map_err(serde::de::Error::custom)
    }
}

impl schemars::JsonSchema for BlockSizes {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "BlockSizes".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({"type": "string", "description": "block sizes such as 4KiB or 4KiB:70,64KiB:30"})
    }
}
