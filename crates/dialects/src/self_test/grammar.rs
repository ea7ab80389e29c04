//! Message sizes and endpoints as self_test takes them, read for its results. The options of the load have the same grammars and have refused
//! what is none of them.

use std::ops::RangeInclusive;

use units::ByteSize;

/// How a payload travels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Empty,
    /// In the message.
    Iov,
    Bulk,
}

/// Payload of a request or a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Payload {
    pub(crate) kind: Kind,
    pub(crate) size_bytes: u64,
}

/// A payload without a letter is bulk from this size on, in bytes.
const BULK_BYTES_MIN: u64 = 1 << 20;

impl Payload {
    fn new(letter: Option<char>, size_bytes: u64) -> Self {
        let kind = match letter {
            _ if size_bytes == 0 => Kind::Empty,
            Some('b') => Kind::Bulk,
            None if size_bytes >= BULK_BYTES_MIN => Kind::Bulk,
            _ => Kind::Iov,
        };
        Self { kind, size_bytes }
    }

    /// As message sizes are typed: `0`, `i2KiB`, `b1MiB`.
    fn typed(self) -> String {
        let letter = match self.kind {
            Kind::Empty => return "0".to_owned(),
            Kind::Iov => 'i',
            Kind::Bulk => 'b',
        };
        format!("{letter}{}", ByteSize(self.size_bytes))
    }
}

/// Pair of a request and a reply as it is typed.
pub(crate) fn typed((request, reply): (Payload, Payload)) -> String {
    format!("({} {})", request.typed(), reply.typed())
}

/// Pairs of request and reply.
pub(crate) fn sizes(text: &str) -> Vec<(Payload, Payload)> {
    text.split(['(', ')', ',']).filter_map(pair).collect()
}

fn pair(text: &str) -> Option<(Payload, Payload)> {
    let mut payloads: Vec<Payload> = Vec::new();
    let (mut letter, mut rest) = (None, text);
    while let Some(first) = rest.chars().next() {
        let mut end = first.len_utf8();
        if first.is_ascii_digit() {
            let (size, length) = size(rest)?;
            payloads.push(Payload::new(letter.take(), size));
            end = length;
        } else if !first.is_whitespace() {
            letter = Some(first);
        }
        rest = &rest[end..];
    }
    Some((*payloads.first()?, *payloads.last()?))
}

/// The size that a text begins with, and its length: letters behind it are its unit, unless they are the type of the next one.
fn size(text: &str) -> Option<(u64, usize)> {
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let unit = &text[digits..];
    let letters = unit.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(unit.len());
    let is_type = unit[..letters].chars().all(|letter| matches!(letter, 'e' | 'i' | 'b'));
    let length = if is_type { digits } else { digits + letters };
    Some((text[..length].parse::<ByteSize>().ok()?.0, length))
}

/// Ranks and tags of `RANKS:TAGS`: each rank with all tags before the next.
pub(crate) fn endpoints(text: &str) -> Vec<(u32, u32)> {
    let (ranks, tags) = text.split_once(':').unwrap_or((text, ""));
    numbers(ranks).flat_map(|rank| numbers(tags).map(move |tag| (rank, tag))).collect()
}

/// Numbers of a list of them and of ranges, which may run either way.
pub(crate) fn numbers(list: &str) -> impl Iterator<Item = u32> + '_ {
    list.split(',').flat_map(|part| {
        let (from, to) = part.split_once('-').unwrap_or((part, part));
        match (from.parse::<u32>(), to.parse::<u32>()) {
            (Ok(from), Ok(to)) => from.min(to)..=from.max(to),
            _ => RangeInclusive::new(1, 0),
        }
    })
}
