//! Plan of a course, and how it is read from options.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::{ByteSize, ParseError, Percent};

use workload::class_sizes::CLASSES;

/// How a worker covers its range, if more than a pattern is requested.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct CoursePlan {
    /// Bytes skipped between the end of a sequential block and the next one; below 0 it moves back.
    pub gap_bytes: i64,
    /// Operations that follow each random position.
    pub run: Run,
    /// Percent of the operations that go to a random position, by class; the others follow the one before them.
    pub random_percent: Percents,
    /// Each class continues from its own last operation.
    pub own_positions: bool,
    /// Zones with operations, and skipped parts between them.
    pub zones: Option<Zones>,
    /// How several targets are visited.
    pub visit: Visit,
}

/// Operations from each random position on: `8` follow each other, `identical:8` repeat the position.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Run {
    /// How many, the first included.
    pub operations: u64,
    /// All of them at the same position.
    pub identical: bool,
}

impl Default for Run {
    fn default() -> Self {
        Self { operations: 1, identical: false }
    }
}

/// A percentage for each of reads, writes and discards.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Percents(pub [u8; 3]);

impl Default for Percents {
    fn default() -> Self {
        Self([100; 3])
    }
}

/// Of each `range_bytes` of a target, as many operations as move `size_bytes`; then `skip_bytes` are left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Zones {
    /// Bytes moved in a zone; more than the zone has goes over it again.
    pub size_bytes: u64,
    /// Length of a zone.
    pub range_bytes: u64,
    /// Bytes between two zones.
    pub skip_bytes: u64,
}

/// How several targets are visited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Visit {
    /// One after the other; random operations in turns.
    #[default]
    Sequential,
    /// In turns, so many operations each.
    RoundRobin(u64),
    /// One at random for so many operations.
    Random(u64),
}

/// Reads the bytes of a gap, which may be below 0.
///
/// # Errors
/// A text that is no size.
pub fn parse_gap(text: &str) -> Result<i64, ParseError> {
    let refused = || ParseError::new("gap", text, "a size such as 12k, or -8k to go back");
    let (negative, size) = match text.strip_prefix('-') {
        Some(size) => (true, size),
        None => (false, text),
    };
    let bytes = size.parse::<ByteSize>().map_err(|_| refused())?.bytes();
    let bytes = i64::try_from(bytes).map_err(|_| refused())?;
    Ok(if negative { -bytes } else { bytes })
}

fn number(text: &str) -> Option<u64> {
    let plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    plain.then(|| text.parse().ok()).flatten().filter(|number| *number > 0)
}

impl FromStr for Run {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let (identical, count) = match text.strip_prefix("identical:") {
            Some(count) => (true, count),
            None => (false, text),
        };
        let operations =
            number(count).ok_or_else(|| ParseError::new("run", text, "a count such as 8, or identical:8"))?;
        Ok(Self { operations, identical })
    }
}

impl FromStr for Percents {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let refused = || {
            ParseError::new("random-percent", text, "a percentage, or one by class such as read=70,write=100")
        };
        let percent = |text: &str| text.trim().parse::<Percent>().map(Percent::get).map_err(|_| refused());
        if !text.contains('=') {
            return Ok(Self([percent(text)?; 3]));
        }
        let mut all = Self::default();
        for part in text.split(',') {
            let (class, share) = part.split_once('=').ok_or_else(refused)?;
            let class = CLASSES.iter().position(|name| *name == class.trim()).ok_or_else(refused)?;
            all.0[class] = percent(share)?;
        }
        Ok(all)
    }
}

impl FromStr for Zones {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let refused = || {
            ParseError::new(
                "zones",
                text,
                "SIZE/RANGE or SIZE/RANGE/SKIP such as 8m/64m/192m, SIZE and RANGE above 0, or zbd for the zones of a zoned block device",
            )
        };
        let parts = text.split('/').map(|part| part.parse::<ByteSize>().map(ByteSize::bytes));
        let parts = parts.collect::<Result<Vec<_>, _>>().map_err(|_| refused())?;
        match parts[..] {
            [size_bytes, range_bytes, ref skip @ ..]
                if size_bytes > 0 && range_bytes > 0 && skip.len() < 2 =>
            {
                Ok(Self { size_bytes, range_bytes, skip_bytes: skip.first().copied().unwrap_or(0) })
            }
            _ => Err(refused()),
        }
    }
}

impl FromStr for Visit {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let refused =
            || ParseError::new("visit", text, "sequential, roundrobin, roundrobin:N, random or random:N");
        let (word, count) = match text.split_once(':') {
            Some((word, count)) => (word, number(count).ok_or_else(refused)?),
            None => (text, 1),
        };
        match word {
            "sequential" if !text.contains(':') => Ok(Self::Sequential),
            "roundrobin" => Ok(Self::RoundRobin(count)),
            "random" => Ok(Self::Random(count)),
            _ => Err(refused()),
        }
    }
}

impl fmt::Display for CoursePlan {
    /// Writes the plan in the words of the options, commas between.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut words: Vec<String> = Vec::new();
        if self.gap_bytes != 0 {
            let sign = if self.gap_bytes < 0 { "-" } else { "" };
            words.push(format!("gap {sign}{}", ByteSize(self.gap_bytes.unsigned_abs())));
        }
        if self.run.operations > 1 {
            let kind = if self.run.identical { "identical " } else { "" };
            words.push(format!("runs of {} {kind}operations", self.run.operations));
        }
        if let Percents([read, write, discard]) = self.random_percent
            && self.random_percent != Percents::default()
        {
            words.push(if read == write && write == discard {
                format!("{read}% at random")
            } else {
                format!("reads {read}%, writes {write}%, discards {discard}% at random")
            });
        }
        if let Some(zones) = self.zones {
            let [size, range, skip] = [zones.size_bytes, zones.range_bytes, zones.skip_bytes].map(ByteSize);
            words.push(format!("{size} in zones of {range}, {skip} between"));
        }
        match self.visit {
            Visit::Sequential => {}
            Visit::RoundRobin(1) => words.push("targets in turn".to_owned()),
            Visit::RoundRobin(count) => words.push(format!("targets in turn, {count} operations each")),
            Visit::Random(1) => words.push("targets at random".to_owned()),
            Visit::Random(count) => words.push(format!("targets at random, {count} operations each")),
        }
        if self.own_positions {
            words.push("each class separately".to_owned());
        }
        out.write_str(&words.join(", "))
    }
}
