//! Blocks that hold the same bytes over and over.

use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::ParseError;

use super::verify::{Fault, Mismatch};
use crate::plan::{ContentChoice, parse_content};

/// Length of a block's offset where it stands in a pattern, in bytes.
const OFFSET_BYTES: usize = 8;

/// Bytes that every block repeats from its beginning on.
///
/// Reads parts joined with `+`: hexadecimal bytes such as `0xdeadbeef`, and `%o` for the offset of the block in its target, in bytes
/// (8 bytes, little-endian).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RepeatedBytes {
    /// The bytes; zeros where an offset goes.
    pub bytes: Vec<u8>,
    /// Where in them offsets go.
    pub offsets_at: Vec<u32>,
}

impl FromStr for RepeatedBytes {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let refused = || {
            ParseError::new(
                "a verify pattern",
                text,
                "hexadecimal bytes such as 0xdeadbeef, and %o, joined with +",
            )
        };
        let mut made = Self { bytes: Vec::new(), offsets_at: Vec::new() };
        for part in text.split('+') {
            if part == "%o" {
                made.offsets_at.push(made.bytes.len() as u32);
                made.bytes.extend([0; OFFSET_BYTES]);
                continue;
            }
            match parse_content(part) {
                Ok(ContentChoice::Bytes(bytes)) => made.bytes.extend(bytes),
                _ => return Err(refused()),
            }
        }
        Ok(made)
    }
}

/// Fills and checks blocks of one pattern.
#[derive(Debug)]
pub struct Repeated(RepeatedBytes);

impl Repeated {
    /// Blocks of this pattern.
    #[must_use]
    pub fn new(pattern: &RepeatedBytes) -> Self {
        Self(pattern.clone())
    }

    /// Byte `at` of the pattern, in a block at `offset`.
    #[inline]
    fn byte(&self, at: usize, offset: &[u8; OFFSET_BYTES]) -> u8 {
        let into = |start: u32| at.checked_sub(start as usize).filter(|into| *into < OFFSET_BYTES);
        self.0.offsets_at.iter().find_map(|start| into(*start)).map_or(self.0.bytes[at], |into| offset[into])
    }

    /// Fills a block to be written at byte `offset` of the target.
    pub fn fill(&self, buf: &mut [u8], offset: u64) {
        let (offset, length) = (offset.to_le_bytes(), self.0.bytes.len());
        let period = length.min(buf.len());
        for (at, byte) in buf[..period].iter_mut().enumerate() {
            *byte = self.byte(at, &offset);
        }
        let mut filled = period;
        while filled < buf.len() {
            let count = filled.min(buf.len() - filled);
            buf.copy_within(..count, filled);
            filled += count;
        }
    }

    /// Checks a block that was read from byte `offset` of the target.
    ///
    /// # Errors
    /// The first byte that is not of the pattern, or that all are zero where they should not be.
    pub fn check(&self, buf: &[u8], offset: u64) -> Result<(), Mismatch> {
        let (place, length) = (offset.to_le_bytes(), self.0.bytes.len());
        let mut wrong = None;
        'block: for (number, part) in buf.chunks(length).enumerate() {
            let whole = self.0.offsets_at.is_empty() && *part == self.0.bytes[..part.len()];
            if whole {
                continue;
            }
            for (at, byte) in part.iter().enumerate() {
                if *byte != self.byte(at, &place) {
                    wrong = Some(number * length + at);
                    break 'block;
                }
            }
        }
        let Some(at) = wrong else { return Ok(()) };
        let is_unwritten = buf.iter().all(|byte| *byte == 0);
        let fault = if is_unwritten { Fault::Unwritten } else { Fault::Corrupt };
        Err(Mismatch { run: None, target: 0, offset, at_byte: at as u64, fault })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_repeats_its_pattern_and_says_where_it_belongs() {
        let pattern: RepeatedBytes = "0xdead+%o+0x01".parse().unwrap();
        assert_eq!((pattern.bytes.len(), &pattern.offsets_at[..]), (11, &[2][..]));
        let blocks = Repeated::new(&pattern);
        let mut block = vec![0; 4096];
        blocks.fill(&mut block, 0x1000);
        assert_eq!(block[..11], [0xde, 0xad, 0, 0x10, 0, 0, 0, 0, 0, 0, 1]);
        assert_eq!(block[11..22], block[..11]);
        blocks.check(&block, 0x1000).unwrap();
        assert_eq!(blocks.check(&block, 0x2000).unwrap_err().at_byte, 3);
        block[4095] ^= 1;
        assert_eq!(blocks.check(&block, 0x1000).unwrap_err().at_byte, 4095);
        assert_eq!(blocks.check(&[0; 512], 0x1000).unwrap_err().fault, Fault::Unwritten);
        for text in ["", "dead", "%p", "0x1", "zero", "0xde+"] {
            text.parse::<RepeatedBytes>().unwrap_err();
        }
    }
}
