//! The grammars of the network layer: message sizes and endpoints, as CaRT's self_test takes them.

use std::fmt;

use units::{ByteSize, ParseError};

use crate::plan::{Payload, PayloadKind};
use crate::spec::RankTag;

/// A payload without a type is bulk from this size on, in bytes (self_test's threshold).
pub const BULK_FROM_BYTES: u64 = 1 << 20;
/// Largest payload in bytes.
pub const PAYLOAD_BYTES_MAX: u64 = 1 << 30;
/// Pairs of sizes that one list may have.
pub const MESSAGE_SIZES_MAX: usize = 1000;
/// Endpoints that one text may stand for.
pub const ENDPOINTS_MAX: u64 = 65_536;

const SIZES_ACCEPTED: &str = "sizes of request and reply such as \"(0 0) (b1048576 0)\" or \"0 0,i2k i2k\", each with an optional prefix e (empty), i (in the message) or b (bulk)";
const ENDPOINTS_ACCEPTED: &str = "RANKS:TAGS with numbers and ranges of them, such as 0:2 or 0-3,7:2-17";

impl Payload {
    /// A payload whose type was not said: empty, in the message below [`BULK_FROM_BYTES`], else bulk.
    #[must_use]
    pub fn of_size(size_bytes: u64) -> Self {
        let kind = match size_bytes {
            0 => PayloadKind::Empty,
            _ if size_bytes < BULK_FROM_BYTES => PayloadKind::Iov,
            _ => PayloadKind::Bulk,
        };
        Self { kind, size_bytes }
    }

    fn typed(letter: Option<char>, size_bytes: u64) -> Option<Self> {
        let kind = match letter {
            _ if size_bytes == 0 => PayloadKind::Empty,
            None => return Some(Self::of_size(size_bytes)),
            Some('i') => PayloadKind::Iov,
            Some('b') => PayloadKind::Bulk,
            Some(_) => return None,
        };
        Some(Self { kind, size_bytes })
    }
}

/// Reads pairs of request and reply sizes.
///
/// Pairs are parted by `(`, `)` and `,`. Before each number the last of `e` (empty), `i` (in the message) and `b` (bulk) sets its
/// type; without one, 0 is empty, less than 1 MiB goes in the message, and the rest is bulk. One number means the same both ways.
/// 0 is empty whatever its letter. Where a unit follows a number and nothing but blanks or the end follows the unit, it is one
/// (`i2k`, `b1MiB`); letters e, i and b alone are always types.
///
/// # Errors
/// Anything else, a size above 1 GiB, `e` before another number than 0, no pair at all, or more than 1000.
pub fn parse_message_sizes(text: &str) -> Result<Vec<(Payload, Payload)>, ParseError> {
    let mut pairs = Vec::new();
    for pair in text.split(['(', ')', ',']).filter(|pair| !pair.trim().is_empty()) {
        if pairs.len() == MESSAGE_SIZES_MAX {
            let accepted = format!("at most {MESSAGE_SIZES_MAX} pairs of sizes");
            return Err(ParseError::new("a list of message sizes", text, accepted));
        }
        pairs.push(parse_pair(pair)?);
    }
    if pairs.is_empty() {
        return Err(ParseError::new("a list of message sizes", text, SIZES_ACCEPTED));
    }
    Ok(pairs)
}

fn parse_pair(pair: &str) -> Result<(Payload, Payload), ParseError> {
    let refused = |accepted: String| ParseError::new("a pair of message sizes", pair.trim(), accepted);
    let mut payloads: Vec<Payload> = Vec::with_capacity(2);
    let (mut letter, mut rest) = (None, pair);
    while let Some(first) = rest.chars().next() {
        if first.is_ascii_digit() {
            let (size, after) = split_size(rest).ok_or_else(|| refused(SIZES_ACCEPTED.to_owned()))?;
            if size > PAYLOAD_BYTES_MAX {
                return Err(refused(format!("sizes of at most {}", ByteSize(PAYLOAD_BYTES_MAX))));
            }
            let payload = Payload::typed(letter.take(), size)
                .ok_or_else(|| refused(format!("e0 for an empty payload, or i{size} or b{size}")))?;
            if payloads.len() == 2 {
                return Err(refused("one size, or two separated by a blank".to_owned()));
            }
            payloads.push(payload);
            rest = after;
            continue;
        }
        match first {
            'e' | 'i' | 'b' => letter = Some(first),
            _ if first.is_whitespace() => {}
            _ => return Err(refused(SIZES_ACCEPTED.to_owned())),
        }
        rest = &rest[first.len_utf8()..];
    }
    match (payloads[..].first(), payloads.last(), letter) {
        (Some(&request), Some(&reply), None) => Ok((request, reply)),
        _ => Err(refused(SIZES_ACCEPTED.to_owned())),
    }
}

/// The size that `text` begins with, and what follows it.
fn split_size(text: &str) -> Option<(u64, &str)> {
    let end_of = |from: usize, is_part: fn(char) -> bool| {
        text[from..].find(|c| !is_part(c)).map_or(text.len(), |length| from + length)
    };
    let digits = end_of(0, |c| c.is_ascii_digit() || c == '.');
    let letters = end_of(digits, |c| c.is_ascii_alphabetic());
    let is_type = text[digits..letters].chars().all(|c| matches!(c, 'e' | 'i' | 'b'));
    let end = if is_type { digits } else { letters };
    let is_whole = is_type || text[end..].chars().next().is_none_or(char::is_whitespace);
    let size = text[..end].parse::<ByteSize>().ok().filter(|_| is_whole)?;
    Some((size.0, &text[end..]))
}

/// Message sizes as [`parse_message_sizes`] reads them: `(0 0) (b1MiB 0)`.
#[must_use]
pub fn message_sizes_text(pairs: &[(Payload, Payload)]) -> String {
    let pairs: Vec<_> = pairs.iter().map(|(request, reply)| format!("({request} {reply})")).collect();
    pairs.join(" ")
}

impl fmt::Display for RankTag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.rank, self.tag)
    }
}

/// Reads `RANKS:TAGS`, both lists of numbers and ranges parted by commas; a range may run either way. Each rank comes with all tags
/// before the next rank; order and duplicates are kept.
///
/// # Errors
/// Anything else, and more than 65,536 endpoints.
pub fn parse_endpoints(text: &str) -> Result<Vec<RankTag>, ParseError> {
    let refused = || ParseError::new("an endpoint", text, ENDPOINTS_ACCEPTED);
    let (ranks, tags) = text.split_once(':').ok_or_else(refused)?;
    let ranks = parse_ranges(ranks).ok_or_else(refused)?;
    let tags = parse_ranges(tags).ok_or_else(refused)?;
    let length =
        |ranges: &[(u32, u32)]| -> u64 { ranges.iter().map(|(from, to)| u64::from(to - from) + 1).sum() };
    if length(&ranks).saturating_mul(length(&tags)) > ENDPOINTS_MAX {
        let accepted = format!("at most {ENDPOINTS_MAX} endpoints");
        return Err(ParseError::new("a list of endpoints", text, accepted));
    }
    let each =
        |ranges: &[(u32, u32)]| -> Vec<u32> { ranges.iter().flat_map(|&(from, to)| from..=to).collect() };
    let (ranks, tags) = (each(&ranks), each(&tags));
    Ok(ranks.iter().flat_map(|&rank| tags.iter().map(move |&tag| RankTag { rank, tag })).collect())
}

/// Ranges from the smaller number to the larger one.
fn parse_ranges(text: &str) -> Option<Vec<(u32, u32)>> {
    let number = |text: &str| -> Option<u32> {
        text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten()
    };
    let range = |part: &str| {
        let (from, to) = part.split_once('-').unwrap_or((part, part));
        let (from, to) = (number(from)?, number(to)?);
        Some((from.min(to), from.max(to)))
    };
    text.split(',').map(range).collect()
}

/// Adds masters as [`parse_endpoints`] reads them: sorted, each once.
///
/// # Errors
/// As there.
pub fn add_masters(masters: &mut Vec<RankTag>, text: &str) -> Result<(), ParseError> {
    masters.extend(parse_endpoints(text)?);
    masters.sort_unstable();
    masters.dedup();
    Ok(())
}

#[cfg(test)]
mod tests;
