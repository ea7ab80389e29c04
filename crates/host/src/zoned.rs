//! Attributes of the queue of a zoned block device, from sysfs.

use std::path::Path;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::source;

/// Sysfs counts `chunk_sectors` in sectors of this many bytes.
const SECTOR_BYTES: u64 = 512;
/// First kernel in which the block layer itself keeps the order of writes to a zone (zone write plugging).
const PLUGGING_SINCE: (u32, u32) = (6, 10);

/// The queue of a zoned block device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ZonedQueue {
    /// `host-managed`: writes at write pointers alone; `host-aware`: also elsewhere.
    pub model: String,
    /// Length of a zone in bytes.
    pub zone_size_bytes: Option<u64>,
    /// Zones of the disk.
    pub zones: Option<u64>,
    /// Zones that may be open at once; 0: no limit.
    pub open_zones_max: Option<u32>,
    /// Zones that may be open or closed, neither empty nor full, at once; 0: no limit.
    pub active_zones_max: Option<u32>,
    /// Largest zone append in bytes; 0: it has none.
    pub append_bytes_max: Option<u64>,
    /// Whether the order of writes that are in flight in one zone is kept: by the scheduler (mq-deadline, before Linux 6.10) or the block
    /// layer (since).
    pub keeps_write_order: bool,
}

impl ZonedQueue {
    /// Of the disk whose `queue` directory this is; none where it is not zoned.
    pub(crate) fn read(queue: &Path) -> Option<Self> {
        let model = source::text(queue.join("zoned")).filter(|model| model != "none")?;
        let scheduler = source::text(queue.join("scheduler")).unwrap_or_default();
        let release = source::text("/proc/sys/kernel/osrelease").unwrap_or_default();
        Some(Self {
            model,
            zone_size_bytes: source::value(queue.join("chunk_sectors"))
                .map(|count: u64| count * SECTOR_BYTES),
            zones: source::value(queue.join("nr_zones")),
            open_zones_max: source::value(queue.join("max_open_zones")),
            active_zones_max: source::value(queue.join("max_active_zones")),
            append_bytes_max: source::value(queue.join("zone_append_max_bytes")),
            keeps_write_order: source::chosen(&scheduler) == "mq-deadline" || plugs(&release),
        })
    }
}

/// Whether a kernel of this release has zone write plugging.
fn plugs(release: &str) -> bool {
    let mut numbers = release.split(|byte: char| !byte.is_ascii_digit()).map(str::parse::<u32>);
    match (numbers.next(), numbers.next()) {
        (Some(Ok(major)), Some(Ok(minor))) => (major, minor) >= PLUGGING_SINCE,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_zoned_queue_is_read() {
        let directory = tempfile::tempdir().expect("a directory");
        let put = |name: &str, text: &str| std::fs::write(directory.path().join(name), text).expect("a file");
        assert_eq!(ZonedQueue::read(directory.path()), None, "an old kernel");
        put("zoned", "none\n");
        assert_eq!(ZonedQueue::read(directory.path()), None);
        for (name, text) in [
            ("zoned", "host-managed\n"),
            ("chunk_sectors", "16384\n"),
            ("nr_zones", "64\n"),
            ("max_open_zones", "8\n"),
            ("max_active_zones", "12\n"),
            ("zone_append_max_bytes", "131072\n"),
            ("scheduler", "none [mq-deadline]\n"),
        ] {
            put(name, text);
        }
        let found = ZonedQueue::read(directory.path()).expect("zones");
        let expected = ZonedQueue {
            model: "host-managed".to_owned(),
            zone_size_bytes: Some(8 << 20),
            zones: Some(64),
            open_zones_max: Some(8),
            active_zones_max: Some(12),
            append_bytes_max: Some(128 << 10),
            keeps_write_order: true,
        };
        assert_eq!(found, expected);
    }

    #[test]
    fn write_plugging_is_known_by_the_release() {
        for (release, expected) in [
            ("6.1.0-18-amd64", false),
            ("6.9.12", false),
            ("6.10.0-rc1", true),
            ("6.18.44", true),
            ("7.0", true),
            ("x", false),
        ] {
            assert_eq!(plugs(release), expected, "{release}");
        }
    }
}
