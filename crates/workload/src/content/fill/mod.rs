//! Buffers filled as a [`ContentSpec`] asks.
//!
//! Reducible content is laid out by address, in chunks of the target's address space, so that what lies on the target
//! reduces as asked whatever sizes and offsets it was written with:
//!
//! - a chunk that compresses by N % is random for its first (100 - N) %, then repeats one random 16-byte lane. Not
//!   zeros: a chunk that compresses by 100 % must still differ from all others, or it would also be found by
//!   deduplication;
//! - N % of the chunks, chosen by a keyed hash of position and generation, are copies of one of
//!   [`DEDUP_POOL_CHUNKS`] chunks, or as many as asked for, that all streams of a seed share; the others are unique.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Recipe;
use super::stream::{LANE_BYTES, Purpose, Stream};

#[cfg(test)]
mod tests;

/// Chunk of reducible content unless the user asks for another, and the distance between stamps: what file systems and
/// arrays commonly compress and deduplicate.
pub const CHUNK_SIZE_BYTES_DEFAULT: u32 = 4096;

/// Different chunks that the copies of dedupable content are copies of.
pub const DEDUP_POOL_CHUNKS: u64 = 16;

/// Bytes that [`Filler::stamp`] overwrites in each chunk.
pub const STAMP_BYTES: usize = LANE_BYTES;

/// Content that is written, as a target that compresses or deduplicates sees it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum ContentSpec {
    /// Random bytes: neither compression nor deduplication finds anything.
    #[default]
    Random,
    /// All zero.
    Zero,
    /// These bytes over and over, in phase with the target's address space.
    Pattern {
        /// The bytes to repeat; at least one.
        bytes: Vec<u8>,
    },
    /// Random bytes of which a part can be compressed or deduplicated away.
    Reducible {
        /// Share of each unique chunk that compresses away, in percent (0 to 100).
        compressible_percent: u8,
        /// Share of the chunks that are copies, in percent (0 to 100).
        dedupable_percent: u8,
        /// Chunk that is compressed or deduplicated as one, in bytes (at least 64).
        chunk_size_bytes: u32,
    },
}

impl ContentSpec {
    /// Content of which `percent` of each 4 KiB compresses away.
    pub fn compressible(percent: u8) -> ContentSpec {
        ContentSpec::Reducible {
            compressible_percent: percent,
            dedupable_percent: 0,
            chunk_size_bytes: CHUNK_SIZE_BYTES_DEFAULT,
        }
    }

    /// Content of which `percent` of the 4 KiB blocks are copies.
    pub fn dedupable(percent: u8) -> ContentSpec {
        ContentSpec::Reducible {
            compressible_percent: 0,
            dedupable_percent: percent,
            chunk_size_bytes: CHUNK_SIZE_BYTES_DEFAULT,
        }
    }

    /// Checks the values, and that `refill` keeps what the content promises.
    ///
    /// # Errors
    /// The first [`ContentError`] found.
    pub fn check(&self, refill: Refill) -> Result<(), ContentError> {
        let stampable = match self {
            ContentSpec::Random => true,
            ContentSpec::Zero => false,
            ContentSpec::Pattern { bytes } if bytes.is_empty() => return Err(ContentError::EmptyPattern),
            ContentSpec::Pattern { .. } => false,
            ContentSpec::Reducible { compressible_percent, dedupable_percent, chunk_size_bytes } => {
                for (what, percent) in
                    [("compressible", *compressible_percent), ("dedupable", *dedupable_percent)]
                {
                    if percent > 100 {
                        return Err(ContentError::Percent { what, percent });
                    }
                }
                if *chunk_size_bytes < 64 {
                    return Err(ContentError::ChunkSize { chunk_size_bytes: *chunk_size_bytes });
                }
                *dedupable_percent == 0
            }
        };
        if refill == Refill::Stamp && !stampable {
            return Err(ContentError::StampRuins);
        }
        Ok(())
    }
}

/// Treatment of a buffer before it is written again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Refill {
    /// Filled anew: no byte is ever written twice.
    #[default]
    Full,
    /// Stamped: 16 new bytes in every 4 KiB, so that deduplication finds nothing, at the cost of a few nanoseconds.
    Stamp,
    /// Left as it was filled first: writes repeat, and deduplication finds them.
    Once,
}

/// Why a [`ContentSpec`] cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContentError {
    /// A share over 100 %.
    Percent {
        /// Which share.
        what: &'static str,
        /// The value given.
        percent: u8,
    },
    /// A pattern of no bytes.
    EmptyPattern,
    /// A chunk too small to hold a random part and a repeated one.
    ChunkSize {
        /// The value given.
        chunk_size_bytes: u32,
    },
    /// Stamps would overwrite zeros or a pattern, or make copies differ.
    StampRuins,
}

impl fmt::Display for ContentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ContentError::Percent { what, percent } => {
                write!(f, "{what} by {percent} %: expected 0 to 100 %")
            }
            ContentError::EmptyPattern => write!(f, "the data pattern is empty: expected at least one byte"),
            ContentError::ChunkSize { chunk_size_bytes } => {
                write!(f, "data chunk of {chunk_size_bytes} bytes: expected at least 64 bytes")
            }
            ContentError::StampRuins => write!(
                f,
                "refill 'stamp' would change zero, pattern or dedupable data: expected refill 'full' or 'once', \
                 or random or compressible data"
            ),
        }
    }
}

impl std::error::Error for ContentError {}

/// Streams and limits of [`ContentSpec::Reducible`].
#[derive(Clone, Debug)]
struct Reducible {
    chunk_size_bytes: u64,
    /// Bytes at the start of a chunk that are random; the rest repeats.
    random_bytes: usize,
    dedupable_percent: u8,
    unique: [Stream; 2],
    pool: [Stream; 2],
    pool_chunks: u64,
    choice: Stream,
}

#[derive(Clone, Debug)]
enum Kind {
    Random,
    Zero,
    Pattern(Box<[u8]>),
    Reducible(Box<Reducible>),
}

/// Fills the buffers of one worker. Holds no state that changes: equal arguments give equal bytes.
#[derive(Clone, Debug)]
pub struct Filler {
    kind: Kind,
    refill: Refill,
    data: Stream,
    stamps: Stream,
}

impl Filler {
    /// A filler of the run's `seed` for one worker's `stream`; two streams write different data.
    ///
    /// # Errors
    /// As [`ContentSpec::check`].
    pub fn new(spec: &ContentSpec, refill: Refill, seed: u64, stream: u64) -> Result<Filler, ContentError> {
        spec.check(refill)?;
        let kind = match spec {
            ContentSpec::Random => Kind::Random,
            ContentSpec::Zero => Kind::Zero,
            ContentSpec::Pattern { bytes } => Kind::Pattern(bytes.as_slice().into()),
            ContentSpec::Reducible { compressible_percent, dedupable_percent, chunk_size_bytes } => {
                let chunk = u64::from(*chunk_size_bytes);
                let kept_percent = u64::from(100 - compressible_percent);
                Kind::Reducible(Box::new(Reducible {
                    chunk_size_bytes: chunk,
                    random_bytes: ((chunk * kept_percent + 50) / 100) as usize,
                    dedupable_percent: *dedupable_percent,
                    unique: [Purpose::Data, Purpose::Repeat].map(|p| Stream::for_purpose(seed, stream, p)),
                    pool: [Purpose::DedupPool, Purpose::PoolRepeat].map(|p| Stream::for_purpose(seed, 0, p)),
                    pool_chunks: DEDUP_POOL_CHUNKS,
                    choice: Stream::for_purpose(seed, stream, Purpose::DedupChoice),
                }))
            }
        };
        let data = Stream::new(seed, stream);
        Ok(Filler { kind, refill, data, stamps: Stream::for_purpose(seed, stream, Purpose::Stamp) })
    }

    /// The same with copies of one of `chunks` different chunks (1 or more), which are those of `seed` where one is given: fillers of
    /// several phases then write copies of the same ones.
    #[must_use]
    pub fn with_copies_of(mut self, chunks: u64, seed: Option<u64>) -> Filler {
        if let Kind::Reducible(reducible) = &mut self.kind {
            reducible.pool_chunks = chunks.max(1);
            if let Some(seed) = seed {
                reducible.pool =
                    [Purpose::DedupPool, Purpose::PoolRepeat].map(|p| Stream::for_purpose(seed, 0, p));
            }
        }
        self
    }

    /// Fills `buf`, to be written at byte `position` of the target as write number `generation`. Writes of different
    /// generations differ everywhere (except zero, pattern and copied data).
    pub fn fill_block(&self, buf: &mut [u8], position: u64, generation: u64) {
        match &self.kind {
            Kind::Random => self.data.fill(buf, generation, position),
            Kind::Zero => buf.fill(0),
            Kind::Pattern(bytes) => fill_pattern(buf, bytes, position),
            Kind::Reducible(reducible) => reducible.fill(buf, position, generation),
        }
    }

    /// Terms of its blocks, where they are random bytes and renewed in full: a kernel of a device makes those.
    pub fn recipe(&self) -> Option<Recipe> {
        let is_random = matches!(self.kind, Kind::Random) && self.refill == Refill::Full;
        is_random.then(|| Recipe { keys: self.data.keys(), interval_bytes: 0, run: 0, target: 0 })
    }

    /// Makes a buffer that [`fill_block`](Filler::fill_block) filled earlier ready to be written again, as the
    /// filler's [`Refill`] says.
    #[inline]
    pub fn refill_block(&self, buf: &mut [u8], position: u64, generation: u64) {
        match self.refill {
            Refill::Full => self.fill_block(buf, position, generation),
            Refill::Stamp => self.stamp(buf, position, generation),
            Refill::Once => {}
        }
    }

    /// Overwrites 16 bytes at the start of `buf` and at each multiple of 4096 of the target's address space inside it
    /// with a value that no other (stream, position, generation) has.
    #[inline]
    pub fn stamp(&self, buf: &mut [u8], position: u64, generation: u64) {
        let chunk = u64::from(CHUNK_SIZE_BYTES_DEFAULT);
        let mut at = 0;
        while at < buf.len() {
            let place = position.wrapping_add(at as u64);
            let stamp = self.stamps.lane(generation, place);
            let end = (at + STAMP_BYTES).min(buf.len());
            buf[at..end].copy_from_slice(&stamp[..end - at]);
            at += (chunk - place % chunk) as usize;
        }
    }
}

impl Reducible {
    fn fill(&self, buf: &mut [u8], position: u64, generation: u64) {
        let mut place = position;
        let mut rest = buf;
        while !rest.is_empty() {
            let skip = place % self.chunk_size_bytes;
            let length = ((self.chunk_size_bytes - skip) as usize).min(rest.len());
            let (part, after) = rest.split_at_mut(length);
            self.fill_part(part, place / self.chunk_size_bytes, skip as usize, generation);
            place = place.wrapping_add(length as u64);
            rest = after;
        }
    }

    /// Fills the bytes of chunk number `chunk` from its byte `skip` on.
    fn fill_part(&self, part: &mut [u8], chunk: u64, skip: usize, generation: u64) {
        let ([data, repeat], chunk, generation) = match self.pool_chunk(chunk, generation) {
            Some(copy_of) => (&self.pool, copy_of, 0),
            None => (&self.unique, chunk, generation),
        };
        let random_here = self.random_bytes.saturating_sub(skip).min(part.len());
        let (random_part, repeated_part) = part.split_at_mut(random_here);
        data.fill(random_part, generation, chunk * self.chunk_size_bytes + skip as u64);
        if !repeated_part.is_empty() {
            let phase = skip.saturating_sub(self.random_bytes) % LANE_BYTES;
            let mut lane = repeat.lane(generation, chunk);
            lane.rotate_left(phase);
            repeat_lane(repeated_part, &lane);
        }
    }

    /// The pool chunk that this chunk is a copy of, if it is one.
    #[inline]
    fn pool_chunk(&self, chunk: u64, generation: u64) -> Option<u64> {
        if self.dedupable_percent == 0 {
            return None;
        }
        let choice = u128::from_le_bytes(self.choice.lane(generation, chunk));
        let percentile = (u128::from(choice as u64) * 100) >> 64;
        (percentile < u128::from(self.dedupable_percent)).then_some((choice >> 64) as u64 % self.pool_chunks)
    }
}

fn repeat_lane(buf: &mut [u8], lane: &[u8; LANE_BYTES]) {
    let mut chunks = buf.chunks_exact_mut(LANE_BYTES);
    for chunk in &mut chunks {
        chunk.copy_from_slice(lane);
    }
    let rest = chunks.into_remainder();
    let length = rest.len();
    rest.copy_from_slice(&lane[..length]);
}

/// One period byte by byte from the phase of `position`, then doubling copies.
fn fill_pattern(buf: &mut [u8], pattern: &[u8], position: u64) {
    let phase = (position % pattern.len() as u64) as usize;
    let period = pattern.len().min(buf.len());
    for (byte, value) in buf[..period].iter_mut().zip(pattern.iter().cycle().skip(phase)) {
        *byte = *value;
    }
    let mut filled = period;
    while filled < buf.len() {
        let count = filled.min(buf.len() - filled);
        buf.copy_within(..count, filled);
        filled += count;
    }
}
