//! Whether GPUDirect Storage goes past the memory of the host: read from its driver, never assumed.

use std::path::Path;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Facts of the kernel module.
const MODULE: &str = "/proc/driver/nvidia-fs";
/// `CU_FILE_P2P_SUPPORTED` of the library's feature flags.
const PEER_TO_PEER: u32 = 1 << 4;

/// Way that requests of libcufile take.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Transport {
    /// The kernel module nvidia-fs is loaded: requests may go to the device directly. Where it counts, its counters tell how many did.
    Module,
    /// Without the module, by the kernel's own transfers between devices (PCI P2PDMA): requests may go to the device directly, and nothing counts them.
    PeerToPeer,
    /// Neither: the library copies through memory of the host (compatibility mode).
    Compatibility,
}

impl Transport {
    pub(super) fn of(module_version: (u32, u32), features: u32) -> Self {
        Self::read(Path::new(MODULE), module_version, features)
    }

    fn read(module: &Path, module_version: (u32, u32), features: u32) -> Self {
        // The library says 0.0 where it did not open the module.
        if module_version != (0, 0) && module.join("version").exists() {
            return Self::Module;
        }
        if features & PEER_TO_PEER != 0 { Self::PeerToPeer } else { Self::Compatibility }
    }

    /// The way in a sentence, for the record.
    #[must_use]
    pub fn note(self) -> &'static str {
        match self {
            Self::Module if Counters::now().is_none() => {
                "GPUDirect Storage with nvidia-fs, whose request counters are off: whether requests went directly is unknown \
                 (echo 1 > /sys/module/nvidia_fs/parameters/rw_stats_enabled)"
            }
            Self::Module => "GPUDirect Storage with nvidia-fs",
            Self::PeerToPeer => {
                "GPUDirect Storage without nvidia-fs, by PCI P2PDMA: whether requests went directly is unknown"
            }
            Self::Compatibility => {
                "GPUDirect Storage is in compatibility mode (nvidia-fs is not loaded): data goes through host memory"
            }
        }
    }
}

/// Data that the kernel module has moved, over all processes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Read, in MiB.
    reads_mib: u64,
    /// Written, in MiB.
    writes_mib: u64,
}

impl Counters {
    /// The counters now; none where the module is not loaded, or keeps none (`rw_stats_enabled`).
    #[must_use]
    pub fn now() -> Option<Self> {
        Self::parse(&std::fs::read_to_string(Path::new(MODULE).join("stats")).ok()?)
    }

    /// Reads lines such as `Reads : n=12 ok=12 err=0 readMiB=3 ...`.
    fn parse(text: &str) -> Option<Self> {
        let count = |name: &str, key: &str| {
            let line = text.lines().find(|line| line.trim_start().starts_with(name) && line.contains(key))?;
            let number = line.split(key).nth(1)?;
            number.split(|character: char| !character.is_ascii_digit()).next()?.parse().ok()
        };
        Some(Self { reads_mib: count("Reads", "readMiB=")?, writes_mib: count("Writes", "writeMiB=")? })
    }

    /// Bytes since `earlier`.
    #[must_use]
    pub fn bytes_since(self, earlier: Self) -> u64 {
        let mib = self.reads_mib.saturating_sub(earlier.reads_mib)
            + self.writes_mib.saturating_sub(earlier.writes_mib);
        mib << 20
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_of_the_module_are_read() {
        let text = "GDS Version: 1.9\nNVFS statistics(ver: 4.0)\nActive Shadow-Buffer (MiB): 0\n\
                    Reads\t\t\t\t: n=128 ok=128 err=0 readMiB=12 io_state_err=0\n\
                    Reads\t\t\t\t: Bandwidth(MiB/s)=0 Avg-Latency(usec)=0\n\
                    Sparse Reads\t\t\t: n=0 io=0 holes=0 pages=0\n\
                    Writes\t\t\t\t: n=7 ok=7 err=0 writeMiB=3 io_state_err=0 pg-cache=0\n";
        let counters = Counters::parse(text).expect("it has both lines");
        assert_eq!(counters, Counters { reads_mib: 12, writes_mib: 3 });
        assert_eq!(counters.bytes_since(Counters { reads_mib: 10, writes_mib: 3 }), 2 << 20);
        // As it is unless rw_stats_enabled is set.
        assert_eq!(Counters::parse("Reads : err=0 io_state_err=0\nWrites : err=0 io_state_err=0\n"), None);
    }

    #[test]
    fn without_the_module_it_may_still_be_direct() {
        let none = Path::new("/nonexistent");
        assert_eq!(Transport::read(none, (2, 17), 0xf), Transport::Compatibility);
        assert_eq!(Transport::read(none, (0, 0), 0x1f), Transport::PeerToPeer);
        let folder = std::env::temp_dir().join(format!("strata-nvfs-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        std::fs::write(folder.join("version"), "version: 2.17\n").expect("a file");
        assert_eq!(Transport::read(&folder, (2, 17), 0xf), Transport::Module);
        assert_eq!(Transport::read(&folder, (0, 0), 0xf), Transport::Compatibility);
        std::fs::remove_dir_all(&folder).expect("removed");
    }
}
