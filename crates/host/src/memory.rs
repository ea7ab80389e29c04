//! Memory of the machine and of this process.

use std::path::Path;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::source;

/// Memory of the machine, or of one NUMA node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MemoryFacts {
    /// Memory that the kernel manages, in bytes.
    pub total_bytes: Option<u64>,
    /// Memory that a new program could take without swapping, in bytes.
    pub available_bytes: Option<u64>,
    /// Page cache and buffers, in bytes.
    pub cached_bytes: Option<u64>,
    /// Pages waiting to be written back, in bytes.
    pub dirty_bytes: Option<u64>,
    /// Swap space in use, in bytes.
    pub swap_used_bytes: Option<u64>,
    /// Huge pages of the default size set aside.
    pub huge_pages: Option<u64>,
    /// Default size of huge pages, in bytes.
    pub huge_page_size_bytes: Option<u64>,
    /// Whether the hypervisor takes free memory back while the machine runs (free page reporting of the virtio balloon): the first use of a page waits
    /// for the hypervisor then, microseconds for 4 KiB. `None` where there is no such device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub free_page_reporting: Option<bool>,
}

/// Memory of the machine now.
#[must_use]
pub fn memory() -> MemoryFacts {
    let facts = source::text("/proc/meminfo").map_or_else(MemoryFacts::default, |text| parse_meminfo(&text));
    MemoryFacts { free_page_reporting: free_page_reporting(Path::new("/sys/bus/virtio/devices")), ..facts }
}

/// Whether a balloon among these virtio devices reports free pages (Virtual I/O Device specification 1.2, 5.5: device 5, feature 5).
fn free_page_reporting(devices: &Path) -> Option<bool> {
    const BALLOON: &str = "0x0005";
    const PAGE_REPORTING: usize = 5;
    let directories = source::names(devices).into_iter().map(|name| devices.join(name));
    let balloons =
        directories.filter(|directory| source::text(directory.join("device")).as_deref() == Some(BALLOON));
    // One digit a feature, the first being feature 0.
    let reports = balloons.filter_map(|directory| {
        Some(source::text(directory.join("features"))?.as_bytes().get(PAGE_REPORTING) == Some(&b'1'))
    });
    reports.reduce(|one, other| one || other)
}

/// Parses `/proc/meminfo`, or the `meminfo` of a NUMA node.
#[must_use]
pub fn parse_meminfo(text: &str) -> MemoryFacts {
    let mut facts = MemoryFacts::default();
    let (mut swap_total, mut swap_free) = (None, None);
    let (mut cached, mut buffers) = (None, None);
    for line in text.lines() {
        let Some((key, rest)) = line.split_once(':') else { continue };
        // A node's lines begin with `Node 0 `.
        let key = key.rsplit(' ').next().unwrap_or(key);
        let value = parse_amount(rest);
        match key {
            "MemTotal" => facts.total_bytes = value,
            "MemAvailable" => facts.available_bytes = value,
            "Cached" => cached = value,
            "Buffers" => buffers = value,
            "Dirty" => facts.dirty_bytes = value,
            "SwapTotal" => swap_total = value,
            "SwapFree" => swap_free = value,
            "HugePages_Total" => facts.huge_pages = value,
            "Hugepagesize" => facts.huge_page_size_bytes = value,
            _ => {}
        }
    }
    facts.cached_bytes = cached.map(|cached| cached.saturating_add(buffers.unwrap_or(0)));
    facts.swap_used_bytes = swap_total.zip(swap_free).and_then(|(total, free)| total.checked_sub(free));
    facts
}

fn parse_amount(text: &str) -> Option<u64> {
    let mut words = text.split_whitespace();
    let number: u64 = words.next()?.parse().ok()?;
    match words.next() {
        Some("kB") => number.checked_mul(1024),
        None => Some(number),
        Some(_) => None,
    }
}

/// The most memory that this process has had resident, in bytes.
///
/// Read from `VmHWM`: `getrusage` would count what the shell held before it started this program.
#[must_use]
pub fn peak_rss_bytes() -> Option<u64> {
    status_bytes(&source::text("/proc/self/status")?, "VmHWM")
}

/// The memory that this process has resident now, in bytes.
#[must_use]
pub fn rss_bytes() -> Option<u64> {
    status_bytes(&source::text("/proc/self/status")?, "VmRSS")
}

fn status_bytes(text: &str, key: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'))?;
    parse_amount(line)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn meminfo_known_answers() {
        let text = "MemTotal:       24684092 kB\nMemAvailable:   100 kB\nBuffers: 2 kB\nCached: 3 kB\nSwapCached: 9 kB\n\
                    Dirty: 7 kB\nSwapTotal: 10 kB\nSwapFree: 4 kB\nHugePages_Total:       5\nHugepagesize:  2048 kB\n";
        let facts = parse_meminfo(text);
        assert_eq!(facts.total_bytes, Some(24_684_092 * 1024));
        assert_eq!((facts.available_bytes, facts.cached_bytes), (Some(102_400), Some(5 * 1024)));
        assert_eq!((facts.dirty_bytes, facts.swap_used_bytes), (Some(7168), Some(6 * 1024)));
        assert_eq!((facts.huge_pages, facts.huge_page_size_bytes), (Some(5), Some(2 << 20)));
        assert_eq!(parse_meminfo("Node 0 MemTotal:        4548820 kB").total_bytes, Some(4_548_820 * 1024));
        assert_eq!(parse_meminfo("MemTotal: x kB\nMemAvailable: 1 MB"), MemoryFacts::default());
    }

    #[test]
    fn a_balloon_says_whether_it_reports_free_pages() {
        let devices = tempfile::tempdir().unwrap();
        let device = |name: &str, kind: &str, features: &str| {
            let directory = devices.path().join(name);
            std::fs::create_dir_all(&directory).unwrap();
            std::fs::write(directory.join("device"), kind).unwrap();
            std::fs::write(directory.join("features"), features).unwrap();
            free_page_reporting(devices.path())
        };
        assert_eq!(free_page_reporting(&devices.path().join("none")), None);
        assert_eq!(device("virtio0", "0x0002\n", "0000010000\n"), None, "a drive");
        assert_eq!(device("virtio1", "0x0005\n", "0110\n"), Some(false), "cut short");
        assert_eq!(device("virtio1", "0x0005\n", "0110101100\n"), Some(false));
        assert_eq!(device("virtio1", "0x0005\n", "0110010000\n"), Some(true));
    }

    #[test]
    fn peak_is_at_least_what_was_touched() {
        let before = rss_bytes().unwrap();
        let block = std::hint::black_box(vec![1u8; 32 << 20]);
        let peak = peak_rss_bytes().unwrap();
        assert!(peak >= before.max(32 << 20), "{peak} {before}");
        drop(block);
        assert!(peak_rss_bytes().unwrap() >= 32 << 20);
        assert_eq!(status_bytes("VmHWMx: 3 kB\nVmHWM:\t 4 kB", "VmHWM"), Some(4096));
    }

    proptest! {
        #[test]
        fn any_text_is_survived(text in "\\PC{0,200}", lines in "((MemTotal|Cached|SwapFree|SwapTotal|Buffers): {0,2}[0-9]{0,22} ?(kB)?\n){0,8}") {
            let _ = parse_meminfo(&text);
            let _ = parse_meminfo(&lines);
        }
    }
}
