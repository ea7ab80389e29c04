//! Which block comes next, as the user asks for it.

use std::fmt;
use std::str::FromStr;

use units::{ParseError, split_list};

/// Name of a pattern in errors.
pub(super) const WHAT: &str = "an access pattern";

/// Beyond this Zipf's law asks for hardly anything but the first block.
const THETA_MAX: f64 = 10.0;
/// Most blocks of a sequence, as in fio.
const SEQUENCE_MAX: usize = 64;

/// A part of the region and its share of the accesses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Zone {
    /// Share of the accesses, in percent.
    pub access_percent: u8,
    /// Share of the region, in percent.
    pub size_percent: u8,
}

/// Which block of a region comes next.
///
/// Reads and prints `sequential`, `backward`, `strided:8`, `permutation`, `fitted`, `uniform`, `zipf:0.99`, `pareto:0.2`,
/// `normal:10`, `zoned:60/10,30/20,10/70`, `sequence:2,0,1` and `groups:2,0,1`, and has the same text in JSON and TOML.
#[derive(Clone, Debug, PartialEq)]
pub enum Pattern {
    /// Ascending, from the first block on.
    Sequential,
    /// Descending, from the last block on.
    Backward,
    /// Every n-th block, then every n-th from the second block on, until all were visited.
    Strided {
        /// Distance in blocks, from 1 to the size of the region.
        stride_blocks: u64,
    },
    /// Random, every block exactly once per pass.
    Permutation,
    /// Random, every byte exactly once per pass: blocks of several sizes fit between each other. Of one size it is a permutation.
    Fitted,
    /// Random with repeats, every block equally likely each time.
    Uniform,
    /// Random by Zipf's law: the k-th most frequent block in proportion to 1 / k^theta.
    Zipf {
        /// Exponent, 0 (uniform) to 10.
        theta: f64,
    },
    /// Random and self-similar: the share h of the blocks gets the share 1 - h of the accesses.
    Pareto {
        /// Share, above 0 and below 1.
        h: f64,
    },
    /// Random by a bell curve around the middle of the region.
    Normal {
        /// Standard deviation in percent of the region, above 0 and up to 100.
        deviation_percent: f64,
    },
    /// Random within zones that have given shares of the accesses.
    Zoned {
        /// The zones in order; the access shares and the size shares each add up to 100.
        zones: Vec<Zone>,
    },
    /// Blocks by their numbers, in this order, over and over.
    Sequence {
        /// The numbers, 1 to 64 of them.
        blocks: Vec<u64>,
        /// Each time around they count from as many blocks further on as they are.
        moves_on: bool,
    },
}

impl Pattern {
    /// Whether one pass visits every block exactly once.
    pub fn is_full_coverage(&self) -> bool {
        matches!(
            self,
            Self::Sequential | Self::Backward | Self::Strided { .. } | Self::Permutation | Self::Fitted
        )
    }

    /// Whether a device sees blocks in an order that it cannot foresee.
    pub fn is_random(&self) -> bool {
        !matches!(self, Self::Sequential | Self::Backward | Self::Strided { .. })
    }

    /// Refuses parameters that no region can serve.
    ///
    /// # Errors
    /// Says which values the parameter takes.
    pub fn check(&self) -> Result<(), ParseError> {
        let refused = |accepted: String| Err(ParseError::new(WHAT, self, accepted));
        match self {
            Self::Strided { stride_blocks: 0 } => refused("a stride of at least 1 block".to_owned()),
            Self::Zipf { theta } if !(0.0..=THETA_MAX).contains(theta) => {
                refused(format!("a theta from 0 to {THETA_MAX}, such as zipf:0.99"))
            }
            Self::Pareto { h } if !(*h > 0.0 && *h < 1.0) => {
                refused("a share above 0 and below 1, such as pareto:0.2".to_owned())
            }
            Self::Normal { deviation_percent }
                if !(*deviation_percent > 0.0 && *deviation_percent <= 100.0) =>
            {
                refused("a deviation above 0 and up to 100 percent, such as normal:10".to_owned())
            }
            Self::Zoned { zones } => self.check_zones(zones),
            Self::Sequence { blocks, .. } if blocks.is_empty() || blocks.len() > SEQUENCE_MAX => {
                refused(format!("1 to {SEQUENCE_MAX} numbers of blocks, such as sequence:2,0,1"))
            }
            _ => Ok(()),
        }
    }

    fn check_zones(&self, zones: &[Zone]) -> Result<(), ParseError> {
        let total = |share: fn(&Zone) -> u8| zones.iter().map(|zone| u64::from(share(zone))).sum::<u64>();
        let totals =
            [("access", total(|zone| zone.access_percent)), ("size", total(|zone| zone.size_percent))];
        for (name, total) in totals {
            if total != 100 {
                let accepted = format!("{name} percentages that add up to 100 (these make {total})");
                return Err(ParseError::new(WHAT, self, accepted));
            }
        }
        if zones.iter().any(|zone| zone.access_percent == 0 && zone.size_percent == 0) {
            return Err(ParseError::new(WHAT, self, "zones with a size or with accesses"));
        }
        Ok(())
    }
}

const ACCEPTED: &str = "one of sequential, backward, strided:BLOCKS, permutation, fitted, uniform, zipf:THETA, pareto:H, \
                        normal:PERCENT, zoned:ACCESS%/SIZE%,..., sequence:BLOCK,..., groups:BLOCK,...";

/// A plain decimal number: the standard reader also takes `inf`, `nan`, signs and exponents.
fn decimal(text: &str) -> Option<f64> {
    let plain = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    plain.then(|| text.parse().ok()).flatten()
}

fn whole<T: FromStr>(text: &str) -> Option<T> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}

fn read_zones(text: &str) -> Option<Vec<Zone>> {
    let read = |part: &str| {
        let (access, size) = part.split_once('/')?;
        let share =
            |text: &str| whole(text.strip_suffix('%').unwrap_or(text)).filter(|&share: &u8| share <= 100);
        Some(Zone { access_percent: share(access)?, size_percent: share(size)? })
    };
    split_list("zones", text).ok()?.into_iter().map(read).collect()
}

fn read_pattern(text: &str) -> Option<Pattern> {
    let (name, parameter) = match text.split_once(':') {
        Some((name, parameter)) => (name, Some(parameter)),
        None => (text, None),
    };
    Some(match (name, parameter) {
        ("sequential", None) => Pattern::Sequential,
        ("backward", None) => Pattern::Backward,
        ("permutation", None) => Pattern::Permutation,
        ("fitted", None) => Pattern::Fitted,
        ("uniform", None) => Pattern::Uniform,
        ("strided", Some(text)) => Pattern::Strided { stride_blocks: whole(text)? },
        ("zipf", Some(text)) => Pattern::Zipf { theta: decimal(text)? },
        ("pareto", Some(text)) => Pattern::Pareto { h: decimal(text)? },
        ("normal", Some(text)) => Pattern::Normal { deviation_percent: decimal(text)? },
        ("zoned", Some(text)) => Pattern::Zoned { zones: read_zones(text)? },
        ("sequence" | "groups", Some(text)) => Pattern::Sequence {
            blocks: text.split(',').map(whole).collect::<Option<_>>()?,
            moves_on: name == "groups",
        },
        _ => return None,
    })
}

impl FromStr for Pattern {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let pattern = read_pattern(text).ok_or_else(|| ParseError::new(WHAT, text, ACCEPTED))?;
        pattern.check()?;
        Ok(pattern)
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sequential => out.write_str("sequential"),
            Self::Backward => out.write_str("backward"),
            Self::Strided { stride_blocks } => write!(out, "strided:{stride_blocks}"),
            Self::Permutation => out.write_str("permutation"),
            Self::Fitted => out.write_str("fitted"),
            Self::Uniform => out.write_str("uniform"),
            Self::Zipf { theta } => write!(out, "zipf:{theta}"),
            Self::Pareto { h } => write!(out, "pareto:{h}"),
            Self::Normal { deviation_percent } => write!(out, "normal:{deviation_percent}"),
            Self::Zoned { zones } => {
                out.write_str("zoned:")?;
                for (index, zone) in zones.iter().enumerate() {
                    let comma = if index == 0 { "" } else { "," };
                    write!(out, "{comma}{}/{}", zone.access_percent, zone.size_percent)?;
                }
                Ok(())
            }
            Self::Sequence { blocks, moves_on } => {
                let numbers: Vec<_> = blocks.iter().map(u64::to_string).collect();
                write!(out, "{}:{}", if *moves_on { "groups" } else { "sequence" }, numbers.join(","))
            }
        }
    }
}

impl serde::Serialize for Pattern {
    fn serialize<S: serde::Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        out.collect_str(self)
    }
}

impl<'de> serde::Deserialize<'de> for Pattern {
    fn deserialize<D: serde::Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        let text = String::deserialize(input)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

impl schemars::JsonSchema for Pattern {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Pattern".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({"type": "string", "description": "an access pattern such as permutation or zipf:0.99"})
    }
}
