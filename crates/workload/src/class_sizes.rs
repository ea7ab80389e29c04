//! Block sizes by class of operation.

use std::fmt;
use std::str::FromStr;

use units::ParseError;

use crate::block_size::BlockSizes;

/// Classes that have block sizes, in the order of their numbers: reads, writes, discards.
pub const CLASSES: [&str; 3] = ["read", "write", "discard"];

/// The block sizes of reads, writes and discards.
///
/// Reads and prints `4k` (or whatever [`BlockSizes`] reads) where all have the same, and `read=4k,write=16k` where they
/// differ; a class that is not named has the sizes of the first one that is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClassSizes([BlockSizes; 3]);

impl ClassSizes {
    /// The sizes of a class, by its number in [`CLASSES`].
    #[must_use]
    pub fn of(&self, class: usize) -> &BlockSizes {
        &self.0[class]
    }

    /// The sizes of all classes, where they are the same.
    #[must_use]
    pub fn common(&self) -> Option<&BlockSizes> {
        let [read, write, discard] = &self.0;
        (read == write && write == discard).then_some(read)
    }

    /// The only size of all classes, where there is just one, in bytes.
    #[must_use]
    pub fn single(&self) -> Option<u64> {
        (self.min() == self.max()).then(|| self.min())
    }

    /// The largest size in bytes.
    #[must_use]
    pub fn max(&self) -> u64 {
        self.0.iter().map(BlockSizes::max).max().unwrap_or(0)
    }

    /// The smallest size in bytes.
    #[must_use]
    pub fn min(&self) -> u64 {
        self.0.iter().map(BlockSizes::min).min().unwrap_or(0)
    }

    /// The largest number of bytes that divides every size.
    #[must_use]
    pub fn granularity(&self) -> u64 {
        self.0.iter().map(BlockSizes::granularity).fold(0, crate::block_size::common_divisor)
    }
}

impl FromStr for ClassSizes {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        if !text.contains('=') {
            let sizes: BlockSizes = text.parse()?;
            return Ok(Self([sizes.clone(), sizes.clone(), sizes]));
        }
        let accepted = "sizes by class such as read=4k,write=16k, each class once";
        let refused = || ParseError::new("a block size", text, accepted);
        let mut parts: Vec<(usize, String)> = Vec::new();
        for part in text.split(',') {
            match part.split_once('=') {
                Some((class, sizes)) => {
                    let class = CLASSES.iter().position(|name| *name == class.trim()).ok_or_else(refused)?;
                    if parts.iter().any(|(known, _)| *known == class) {
                        return Err(refused());
                    }
                    parts.push((class, sizes.trim().to_owned()));
                }
                // A share of the class before it: read=4k:70,64k:30.
                None => {
                    let (_, sizes) = parts.last_mut().ok_or_else(refused)?;
                    sizes.push(',');
                    sizes.push_str(part);
                }
            }
        }
        let read = |(class, sizes): (usize, String)| Ok((class, sizes.parse::<BlockSizes>()?));
        let parts = parts.into_iter().map(read).collect::<Result<Vec<_>, ParseError>>()?;
        let of = |class: usize| {
            let own = parts.iter().find(|(known, _)| *known == class).or(parts.first());
            own.map(|(_, sizes)| sizes.clone()).ok_or_else(refused)
        };
        Ok(Self([of(0)?, of(1)?, of(2)?]))
    }
}

impl fmt::Display for ClassSizes {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(sizes) = self.common() {
            return sizes.fmt(out);
        }
        for (place, (name, sizes)) in CLASSES.iter().zip(&self.0).enumerate() {
            // What is left out has the sizes of the first that is named.
            if place > 0 && *sizes == self.0[0] {
                continue;
            }
            let comma = if place == 0 { "" } else { "," };
            write!(out, "{comma}{name}={sizes}")?;
        }
        Ok(())
    }
}
