//! Counters of block devices, from their statistics in sysfs (Documentation/block/stat.rst).

use std::path::Path;

use crate::block::{self, DeviceNumber};
use crate::source;

/// Sectors of the statistics have this many bytes, whatever the device's own have.
const SECTOR_BYTES: u64 = 512;
/// Times of the statistics are in milliseconds.
const TICK_NS: u64 = 1_000_000;

/// Counters of a device since the machine started, or between two readings; for all users of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Reads that completed.
    pub reads: u64,
    /// Reads merged with others in its queue.
    pub reads_merged: u64,
    /// Read, in bytes.
    pub read_bytes: u64,
    /// Time of all reads together, in nanoseconds, as all times here in steps of a millisecond.
    pub read_ns: u64,
    /// Writes that completed.
    pub writes: u64,
    /// Writes merged with others in its queue.
    pub writes_merged: u64,
    /// Written, in bytes.
    pub written_bytes: u64,
    /// Time of all writes together, in nanoseconds.
    pub write_ns: u64,
    /// Time in which something was in flight, in nanoseconds.
    pub busy_ns: u64,
    /// Time that requests spent in its queue, all together, in nanoseconds.
    pub queue_ns: u64,
}

impl Traffic {
    /// The counters of a device now, a partition's its own; `None` when it has none.
    #[must_use]
    pub fn read(device: DeviceNumber) -> Option<Self> {
        parse_stat(&source::text(format!("/sys/dev/block/{device}/stat"))?)
    }

    /// Difference from an earlier reading.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            reads: self.reads.saturating_sub(earlier.reads),
            reads_merged: self.reads_merged.saturating_sub(earlier.reads_merged),
            read_bytes: self.read_bytes.saturating_sub(earlier.read_bytes),
            read_ns: self.read_ns.saturating_sub(earlier.read_ns),
            writes: self.writes.saturating_sub(earlier.writes),
            writes_merged: self.writes_merged.saturating_sub(earlier.writes_merged),
            written_bytes: self.written_bytes.saturating_sub(earlier.written_bytes),
            write_ns: self.write_ns.saturating_sub(earlier.write_ns),
            busy_ns: self.busy_ns.saturating_sub(earlier.busy_ns),
            queue_ns: self.queue_ns.saturating_sub(earlier.queue_ns),
        }
    }
}

/// The block device under a path: the device itself, or the (first) one that the file lies on, through overlays.
#[must_use]
pub fn device_of(path: &Path) -> Option<DeviceNumber> {
    block::numbers_of(path).first().copied()
}

/// Counters of all drives of this machine since it started: disks that are made of no others here and are no memory.
#[must_use]
pub fn of_all_drives() -> Option<Traffic> {
    let drives = source::names("/sys/block").into_iter().filter(|name| {
        let directory = Path::new("/sys/block").join(name);
        let is_memory = ["loop", "ram", "zram", "nullb"].iter().any(|prefix| name.starts_with(prefix));
        !is_memory && source::names(directory.join("slaves")).is_empty()
    });
    let read = |name: String| parse_stat(&source::text(format!("/sys/block/{name}/stat"))?);
    drives.filter_map(read).reduce(|sum, drive| Traffic {
        read_bytes: sum.read_bytes + drive.read_bytes,
        written_bytes: sum.written_bytes + drive.written_bytes,
        ..sum
    })
}

/// The kernel's name of a block device, a partition's its own; `None` when sysfs has no such device.
#[must_use]
pub fn name_of(device: DeviceNumber) -> Option<String> {
    let directory = std::fs::canonicalize(format!("/sys/dev/block/{device}")).ok()?;
    Some(directory.file_name()?.to_string_lossy().into_owned())
}

/// Parses the `stat` file of a block device. Its first eleven fields are in every kernel that strata runs on.
#[must_use]
pub fn parse_stat(text: &str) -> Option<Traffic> {
    let mut fields = [0u64; 11];
    let mut words = text.split_ascii_whitespace();
    for field in &mut fields {
        *field = words.next()?.parse().ok()?;
    }
    let [
        reads,
        reads_merged,
        read_sectors,
        read_ms,
        writes,
        writes_merged,
        written_sectors,
        write_ms,
        _in_flight,
        busy_ms,
        queue_ms,
    ] = fields;
    Some(Traffic {
        reads,
        reads_merged,
        read_bytes: read_sectors.checked_mul(SECTOR_BYTES)?,
        read_ns: read_ms.checked_mul(TICK_NS)?,
        writes,
        writes_merged,
        written_bytes: written_sectors.checked_mul(SECTOR_BYTES)?,
        write_ns: write_ms.checked_mul(TICK_NS)?,
        busy_ns: busy_ms.checked_mul(TICK_NS)?,
        queue_ns: queue_ms.checked_mul(TICK_NS)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_every_field() {
        let text = "    2530      941   199362      716     4201     3333   305224     5243        7     2484     5960 12 0 1 2\n";
        let expected = Traffic {
            reads: 2530,
            reads_merged: 941,
            read_bytes: 199_362 * 512,
            read_ns: 716_000_000,
            writes: 4201,
            writes_merged: 3333,
            written_bytes: 305_224 * 512,
            write_ns: 5_243_000_000,
            busy_ns: 2_484_000_000,
            queue_ns: 5_960_000_000,
        };
        assert_eq!(parse_stat(text), Some(expected));
        assert_eq!(expected.since(&expected), Traffic::default());
        assert_eq!(expected.since(&Traffic { reads: 30, ..Traffic::default() }).reads, 2500);
        for text in ["", "1 2 3", "1 2 3 4 5 6 7 8 9 10", "1 2 3 4 5 6 7 8 9 10 x"] {
            assert_eq!(parse_stat(text), None, "{text}");
        }
        let overflowing = format!("1 2 {} 4 5 6 7 8 9 10 11", u64::MAX);
        assert_eq!(parse_stat(&overflowing), None);
    }
}
