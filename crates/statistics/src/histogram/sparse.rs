//! The stored form of a histogram: only the filled buckets, packed.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};

use super::{Bucket, Histogram, LEN, SATURATED, bounds_of, index_of, nearest_rank, value_at_rank};

/// The filled buckets of a [`Histogram`], for the record and for interval series. Lossless both ways.
///
/// In memory two to four bytes a filled bucket (index step and count as variable-length integers), so that hundreds
/// of intervals fit; in JSON a list of `[low_ns, count]` pairs with exact minimum, maximum and sum. Reading one
/// checks it, so that every value of this type can be turned back into a histogram.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Stored", into = "Stored")]
pub struct SparseHistogram {
    packed: Vec<u8>,
    count: u64,
    saturated: u64,
    min_ns: u64,
    max_ns: u64,
    sum_ns: u128,
}

/// Why a stored histogram cannot be one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidHistogram(String);

impl fmt::Display for InvalidHistogram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "invalid histogram: {}", self.0)
    }
}

impl std::error::Error for InvalidHistogram {}

/// Latency histogram: the filled buckets with exact minimum, maximum and sum. Values below 2048 ns have a bucket each;
/// above, every power of two is divided into 1024 buckets.
#[derive(Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "SparseHistogram")]
#[serde(deny_unknown_fields)]
struct Stored {
    /// Filled buckets as pairs of smallest value (nanoseconds) and count, ascending.
    buckets: Vec<(u64, u64)>,
    /// Smallest value, nanoseconds; null when nothing was recorded.
    min_ns: Option<u64>,
    /// Largest value, nanoseconds; null when nothing was recorded.
    max_ns: Option<u64>,
    /// Sum of all values modulo 2^64, nanoseconds.
    sum_ns: u64,
    /// How often the sum passed 2^64; left out when it never did.
    #[serde(default, skip_serializing_if = "is_zero")]
    sum_ns_wraps: u64,
    /// How many values lay above the range of the buckets (2^43 ns); not among the buckets.
    saturated: u64,
}

fn is_zero(value: &u64) -> bool {
    *value == 0
}

pub(crate) fn push_varint(packed: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        packed.push(value as u8 | 0x80);
        value >>= 7;
    }
    packed.push(value as u8);
}

fn take_varint(bytes: &mut std::slice::Iter<'_, u8>) -> Option<u64> {
    let mut value = 0;
    let mut shift = 0;
    for byte in bytes {
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(value);
        }
        shift += 7;
    }
    None
}

/// Packs ascending `(index, count)` entries.
#[derive(Default)]
pub(super) struct Packer {
    packed: Vec<u8>,
    next: usize,
    count: u64,
    saturated: u64,
}

impl Packer {
    pub(super) fn push(&mut self, index: usize, count: u64) {
        push_varint(&mut self.packed, (index - self.next) as u64);
        push_varint(&mut self.packed, count);
        self.next = index + 1;
        self.count += count;
        if index == SATURATED {
            self.saturated = count;
        }
    }

    pub(super) fn finish(mut self, min_ns: u64, max_ns: u64, sum_ns: u128) -> SparseHistogram {
        self.packed.shrink_to_fit();
        let (count, saturated) = (self.count, self.saturated);
        SparseHistogram { packed: self.packed, count, saturated, min_ns, max_ns, sum_ns }
    }
}

impl SparseHistogram {
    /// True when nothing was recorded.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// How many values were recorded, the saturated ones included.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// How many values lay above [`Histogram::RANGE_NS_MAX`].
    pub fn saturated(&self) -> u64 {
        self.saturated
    }

    /// Exact smallest value; none when empty.
    pub fn min_ns(&self) -> Option<u64> {
        (!self.is_empty()).then_some(self.min_ns)
    }

    /// Exact largest value; none when empty.
    pub fn max_ns(&self) -> Option<u64> {
        (!self.is_empty()).then_some(self.max_ns)
    }

    /// Exact sum of all values.
    pub fn sum_ns(&self) -> u128 {
        self.sum_ns
    }

    /// Exact mean; none when empty.
    pub fn mean_ns(&self) -> Option<f64> {
        (!self.is_empty()).then(|| self.sum_ns as f64 / self.count as f64)
    }

    /// As [`Histogram::percentile`].
    pub fn percentile(&self, percent: f64) -> Option<u64> {
        let rank = nearest_rank(percent, self.count)?;
        value_at_rank(self.buckets(), rank, self.count, self.min_ns, self.max_ns)
    }

    /// The filled buckets in ascending order; the saturated one, if filled, comes last.
    pub fn buckets(&self) -> impl Iterator<Item = Bucket> + '_ {
        self.entries().map(|(index, count)| Bucket::at(index, count))
    }

    /// Index and count of the filled buckets.
    pub(super) fn entries(&self) -> impl Iterator<Item = (usize, u64)> + '_ {
        let mut bytes = self.packed.iter();
        let mut next = 0;
        std::iter::from_fn(move || {
            let index = next + take_varint(&mut bytes)? as usize;
            let count = take_varint(&mut bytes)?;
            next = index + 1;
            Some((index, count))
        })
    }

    /// All of them as one, without loss: each is unpacked once. `scratch` is empty before and after.
    pub(crate) fn sum<'a>(parts: impl Iterator<Item = &'a Self>, scratch: &mut Histogram) -> Self {
        let mut filled = parts.filter(|part| !part.is_empty());
        let Some(first) = filled.next() else { return Self::default() };
        let Some(second) = filled.next() else { return first.clone() };
        [first, second].into_iter().chain(filled).for_each(|part| scratch.merge_sparse(part));
        let sum = Self::from(&*scratch);
        scratch.clear();
        sum
    }

    /// Adds everything that `other` holds; nothing is lost.
    pub fn merge(&mut self, other: &Self) {
        if other.is_empty() {
            return;
        }
        if self.is_empty() {
            self.clone_from(other);
            return;
        }
        let merged = {
            let mut packer = Packer::default();
            let (mut mine, mut theirs) = (self.entries().peekable(), other.entries().peekable());
            loop {
                let next = match (mine.peek(), theirs.peek()) {
                    (None, None) => break,
                    (Some(&(a, _)), Some(&(b, _))) => a.min(b),
                    (Some(&(index, _)), None) | (None, Some(&(index, _))) => index,
                };
                let here = mine.next_if(|entry| entry.0 == next).map_or(0, |entry| entry.1);
                let there = theirs.next_if(|entry| entry.0 == next).map_or(0, |entry| entry.1);
                packer.push(next, here + there);
            }
            let (min_ns, max_ns) = (self.min_ns.min(other.min_ns), self.max_ns.max(other.max_ns));
            packer.finish(min_ns, max_ns, self.sum_ns + other.sum_ns)
        };
        *self = merged;
    }

    /// The full histogram.
    pub fn to_histogram(&self) -> Histogram {
        Histogram::from(self)
    }
}

impl fmt::Debug for SparseHistogram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SparseHistogram")
            .field("count", &self.count)
            .field("min_ns", &self.min_ns())
            .field("max_ns", &self.max_ns())
            .field("sum_ns", &self.sum_ns)
            .field("saturated", &self.saturated)
            .field("buckets", &self.buckets().map(|bucket| (bucket.low_ns, bucket.count)).collect::<Vec<_>>())
            .finish()
    }
}

impl From<&Histogram> for SparseHistogram {
    fn from(full: &Histogram) -> Self {
        let mut packer = Packer::default();
        full.entries().for_each(|(index, count)| packer.push(index, count));
        packer.finish(full.min_ns().unwrap_or(0), full.max_ns().unwrap_or(0), full.sum_ns())
    }
}

impl From<&SparseHistogram> for Histogram {
    fn from(sparse: &SparseHistogram) -> Self {
        let mut full = Self::new();
        full.merge_sparse(sparse);
        full
    }
}

impl From<SparseHistogram> for Stored {
    fn from(sparse: SparseHistogram) -> Self {
        let regular = |bucket: &Bucket| bucket.low_ns <= Histogram::RANGE_NS_MAX;
        Self {
            buckets: sparse.buckets().filter(regular).map(|bucket| (bucket.low_ns, bucket.count)).collect(),
            min_ns: sparse.min_ns(),
            max_ns: sparse.max_ns(),
            sum_ns: sparse.sum_ns as u64,
            sum_ns_wraps: (sparse.sum_ns >> 64) as u64,
            saturated: sparse.saturated,
        }
    }
}

/// Builds a histogram of entries that came from elsewhere, which may be anything.
#[derive(Default)]
struct Checked {
    packer: Packer,
    ends: Option<(usize, usize)>,
}

impl Checked {
    /// Takes the next entry; why it cannot be the next.
    fn push(&mut self, index: usize, count: u64) -> Result<(), &'static str> {
        if index < self.packer.next {
            return Err("is not above the one before it");
        }
        if index >= LEN {
            return Err("is not a bucket of a histogram");
        }
        if count == 0 {
            return Err("is empty");
        }
        if self.packer.count.checked_add(count).is_none() {
            return Err("makes the count pass 2^64");
        }
        self.packer.push(index, count);
        self.ends = Some((self.ends.map_or(index, |(first, _)| first), index));
        Ok(())
    }

    fn finish(self, ends_ns: Option<(u64, u64)>, sum_ns: u128) -> Result<SparseHistogram, InvalidHistogram> {
        let total = u128::from(self.packer.count);
        let sum_fits = |min_ns: u64, max_ns: u64| {
            (u128::from(min_ns) * total..=u128::from(max_ns) * total).contains(&sum_ns)
        };
        match (self.ends, ends_ns) {
            (None, None) if sum_ns == 0 => Ok(SparseHistogram::default()),
            (Some((first, last)), Some((min_ns, max_ns)))
                if index_of(min_ns) == first && index_of(max_ns) == last && sum_fits(min_ns, max_ns) =>
            {
                Ok(self.packer.finish(min_ns, max_ns, sum_ns))
            }
            _ => Err(InvalidHistogram("min_ns, max_ns and sum_ns do not fit the buckets".to_owned())),
        }
    }
}

/// The next number of variable length; none where the bytes end within it, or where it passes 2^64.
pub(crate) fn read_varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0_u64;
    for shift in (0..u64::BITS).step_by(7) {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        let bits = u64::from(byte & 0x7f);
        if shift > 57 && bits >> (u64::BITS - shift) != 0 {
            return None;
        }
        value |= bits << shift;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

impl SparseHistogram {
    /// Appends it as bytes for another process: two to four bytes a filled bucket.
    pub(crate) fn write(&self, bytes: &mut Vec<u8>) {
        push_varint(bytes, self.packed.len() as u64);
        if self.is_empty() {
            return;
        }
        bytes.extend_from_slice(&self.packed);
        for number in [self.min_ns, self.max_ns, self.sum_ns as u64, (self.sum_ns >> 64) as u64] {
            push_varint(bytes, number);
        }
    }

    /// Reads what [`SparseHistogram::write`] wrote, and checks it.
    pub(crate) fn read(bytes: &mut &[u8]) -> Result<Self, InvalidHistogram> {
        let cut = || InvalidHistogram("its data are truncated".to_owned());
        let length = read_varint(bytes).and_then(|length| usize::try_from(length).ok()).ok_or_else(cut)?;
        let (mut packed, rest) = bytes.split_at_checked(length).ok_or_else(cut)?;
        *bytes = rest;
        let mut checked = Checked::default();
        checked.packer.packed.reserve(length);
        while !packed.is_empty() {
            let step = read_varint(&mut packed).ok_or_else(cut)?;
            let count = read_varint(&mut packed).ok_or_else(cut)?;
            let index = usize::try_from(step).ok().and_then(|step| checked.packer.next.checked_add(step));
            let fault = |what: &str| InvalidHistogram(format!("a bucket {what}"));
            checked.push(index.ok_or_else(cut)?, count).map_err(fault)?;
        }
        if length == 0 {
            return Ok(Self::default());
        }
        let mut number = || read_varint(bytes).ok_or_else(cut);
        let (min_ns, max_ns, low, high) = (number()?, number()?, number()?, number()?);
        checked.finish(Some((min_ns, max_ns)), u128::from(high) << 64 | u128::from(low))
    }
}

impl TryFrom<Stored> for SparseHistogram {
    type Error = InvalidHistogram;

    fn try_from(stored: Stored) -> Result<Self, InvalidHistogram> {
        let mut checked = Checked::default();
        let saturated = (stored.saturated > 0).then_some((Histogram::RANGE_NS_MAX + 1, stored.saturated));
        for (low_ns, count) in stored.buckets.into_iter().chain(saturated) {
            let index = index_of(low_ns);
            let fault = |what: &str| InvalidHistogram(format!("bucket [{low_ns}, {count}] {what}"));
            if bounds_of(index).0 != low_ns {
                return Err(fault("does not start at a bucket boundary"));
            }
            checked.push(index, count).map_err(fault)?;
        }
        let sum_ns = u128::from(stored.sum_ns_wraps) << 64 | u128::from(stored.sum_ns);
        if stored.min_ns.is_some() != stored.max_ns.is_some() {
            return Err(InvalidHistogram("min_ns, max_ns and sum_ns do not fit the buckets".to_owned()));
        }
        checked.finish(stored.min_ns.zip(stored.max_ns), sum_ns)
    }
}

impl JsonSchema for SparseHistogram {
    fn schema_name() -> Cow<'static, str> {
        Stored::schema_name()
    }

    fn schema_id() -> Cow<'static, str> {
        Stored::schema_id()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        Stored::json_schema(generator)
    }
}
