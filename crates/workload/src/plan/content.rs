//! Data content of writes: as typed, and as planned.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::{ByteSize, ParseError};

use super::error::{PlanError, refuse};
use crate::content::fill::{CHUNK_SIZE_BYTES_DEFAULT, DEDUP_POOL_CHUNKS};
use crate::content::{ContentError, ContentSpec, Filler};
use crate::spec::{Refill, Spec};

/// Content of buffers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ContentChoice {
    /// Incompressible.
    Random,
    /// Zeros.
    Zero,
    /// These bytes, repeated.
    Bytes(Vec<u8>),
}

/// Reads `random`, `zero` or `0x...`.
///
/// # Errors
/// Anything else.
pub fn parse_content(text: &str) -> Result<ContentChoice, ParseError> {
    let refuse =
        || ParseError::new("a content", text, "random, zero or hexadecimal bytes such as 0xdeadbeef");
    match text {
        "random" => Ok(ContentChoice::Random),
        "zero" => Ok(ContentChoice::Zero),
        _ => {
            let is_hex = |digits: &&str| digits.bytes().all(|byte| byte.is_ascii_hexdigit());
            let is_whole = |digits: &&str| !digits.is_empty() && digits.len().is_multiple_of(2);
            let digits = text.strip_prefix("0x").filter(is_hex).filter(is_whole).ok_or_else(refuse)?;
            (0..digits.len())
                .step_by(2)
                .map(|at| u8::from_str_radix(&digits[at..at + 2], 16).map_err(|_| refuse()))
                .collect::<Result<Vec<_>, _>>()
                .map(ContentChoice::Bytes)
        }
    }
}

/// Data content of writes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ContentPlan {
    /// Content that is written.
    pub content: ContentChoice,
    /// Percent of each 4 KiB that is compressible.
    pub compress_percent: u8,
    /// Percent of 4 KiB chunks that are duplicates.
    pub dedupe_percent: u8,
    /// Number of distinct chunks that are duplicated; none: the default.
    #[serde(default)]
    pub dedupe_set_chunks: Option<u64>,
    /// Seed of these chunks, if several phases use the same ones.
    #[serde(default)]
    pub dedupe_set_seed: Option<u64>,
    /// When buffers are refilled.
    pub refill: Refill,
}

impl ContentPlan {
    /// Filler of the buffers of `stream` (a worker) in a phase of this seed.
    ///
    /// # Errors
    /// As [`Filler::new`].
    pub fn filler(&self, seed: u64, stream: u64) -> Result<Filler, ContentError> {
        let spec = match &self.content {
            ContentChoice::Zero => ContentSpec::Zero,
            ContentChoice::Bytes(bytes) => ContentSpec::Pattern { bytes: bytes.clone() },
            ContentChoice::Random if self.compress_percent == 0 && self.dedupe_percent == 0 => {
                ContentSpec::Random
            }
            ContentChoice::Random => ContentSpec::Reducible {
                compressible_percent: self.compress_percent,
                dedupable_percent: self.dedupe_percent,
                chunk_size_bytes: CHUNK_SIZE_BYTES_DEFAULT,
            },
        };
        let chunks = self.dedupe_set_chunks.unwrap_or(DEDUP_POOL_CHUNKS);
        Ok(Filler::new(&spec, self.refill, seed, stream)?.with_copies_of(chunks, self.dedupe_set_seed))
    }
}

/// Plan of the stored content; random content is made anew as `refill` says where nothing is said.
///
/// # Errors
/// Options of the content that do not go together.
pub fn content(spec: &Spec, refill: Refill) -> Result<ContentPlan, PlanError> {
    let content = parse_content(spec.content.as_deref().unwrap_or("random"))?;
    let (compress_percent, dedupe_percent) = (spec.compress.unwrap_or(0), spec.dedupe.unwrap_or(0));
    if content != ContentChoice::Random && (compress_percent > 0 || dedupe_percent > 0) {
        return refuse("--compress and --dedupe require random content: leave out --content".to_owned());
    }
    // Shares of compressible and repeated data hold only when every write is made anew.
    let shaped = compress_percent > 0 || dedupe_percent > 0;
    let refill = match spec.refill {
        Some(refill) if shaped && refill != Refill::Full => {
            return refuse("--compress and --dedupe require --refill full".to_owned());
        }
        Some(refill) => refill,
        None if shaped => Refill::Full,
        None if content == ContentChoice::Random => refill,
        None => Refill::Once,
    };
    if dedupe_percent == 0 && (spec.dedupe_set.is_some() || spec.dedupe_global) {
        return refuse("--dedupe-set and --dedupe-global require --dedupe: add it".to_owned());
    }
    let chunks = |set: ByteSize| set.0.div_ceil(CHUNK_SIZE_BYTES_DEFAULT.into());
    Ok(ContentPlan {
        content,
        compress_percent,
        dedupe_percent,
        dedupe_set_chunks: spec.dedupe_set.map(chunks),
        dedupe_set_seed: spec.dedupe_global.then(|| spec.seed.unwrap_or(0)),
        refill,
    })
}
