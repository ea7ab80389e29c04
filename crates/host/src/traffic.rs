//! What block devices have moved, from their statistics in sysfs.

use std::iter::Sum;
use std::ops::Add;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use crate::block::DeviceNumber;
use crate::source;

/// Sectors of the statistics have this many bytes, whatever the device's own have (Documentation/block/stat.rst).
const SECTOR_BYTES: u64 = 512;

/// Bytes that a device moved since the machine started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Read, in bytes.
    pub read_bytes: u64,
    /// Written, in bytes.
    pub written_bytes: u64,
}

impl Traffic {
    /// The counters of a device now; `None` when it has none.
    #[must_use]
    pub fn read(device: DeviceNumber) -> Option<Self> {
        parse_stat(&source::text(format!("/sys/dev/block/{device}/stat"))?)
    }

    /// What was moved since an earlier reading.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            read_bytes: self.read_bytes.saturating_sub(earlier.read_bytes),
            written_bytes: self.written_bytes.saturating_sub(earlier.written_bytes),
        }
    }
}

impl Add for Traffic {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            read_bytes: self.read_bytes + other.read_bytes,
            written_bytes: self.written_bytes + other.written_bytes,
        }
    }
}

impl Sum for Traffic {
    fn sum<I: Iterator<Item = Self>>(parts: I) -> Self {
        parts.fold(Self::default(), Add::add)
    }
}

/// The block device under a path: the device itself, or the one that the file lies on.
#[must_use]
pub fn device_of(path: &Path) -> Option<DeviceNumber> {
    DeviceNumber::of_block_file(path)
        .or_else(|| std::fs::metadata(path).ok().map(|metadata| DeviceNumber::from_packed(metadata.dev())))
}

/// Parses the `stat` file of a block device: its third field counts sectors read, its seventh sectors written.
#[must_use]
pub fn parse_stat(text: &str) -> Option<Traffic> {
    let fields: Vec<u64> = text.split_ascii_whitespace().map_while(|field| field.parse().ok()).collect();
    let bytes = |at: usize| fields.get(at)?.checked_mul(SECTOR_BYTES);
    Some(Traffic { read_bytes: bytes(2)?, written_bytes: bytes(6)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_third_and_seventh_field() {
        let text = "    2530      941   199362      716     4201     3333   305224     5243        0     2484     5960\n";
        assert_eq!(
            parse_stat(text),
            Some(Traffic { read_bytes: 199_362 * 512, written_bytes: 305_224 * 512 })
        );
        assert_eq!(parse_stat("1 2 3"), None);
        assert_eq!(parse_stat(""), None);
    }
}
