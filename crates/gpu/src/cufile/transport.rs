//! Whether GPUDirect Storage goes past the memory of the host: read from its driver, never assumed.

use std::path::Path;

/// Facts of the kernel module.
const MODULE: &str = "/proc/driver/nvidia-fs";

/// Way that requests of libcufile take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// The kernel module nvidia-fs is loaded, of this version: requests may go to the device directly. Its counters tell how many did.
    Module {
        /// Major version.
        major: u32,
        /// Minor version.
        minor: u32,
    },
    /// It is not: the library copies through memory of the host (compatibility mode).
    Compatibility,
}

impl Transport {
    pub(super) fn of(major: u32, minor: u32) -> Self {
        Self::read(Path::new(MODULE), major, minor)
    }

    fn read(module: &Path, major: u32, minor: u32) -> Self {
        // The library says 0.0 where it did not open the module.
        if (major, minor) != (0, 0) && module.join("version").exists() {
            return Self::Module { major, minor };
        }
        Self::Compatibility
    }
}

/// Requests that the kernel module has carried out, over all processes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Reads.
    pub reads: u64,
    /// Writes.
    pub writes: u64,
}

impl Counters {
    /// The counters now; none where the module is not loaded, or keeps none.
    #[must_use]
    pub fn now() -> Option<Self> {
        Self::parse(&std::fs::read_to_string(Path::new(MODULE).join("stats")).ok()?)
    }

    /// Reads lines such as `Reads : n=12 ok=12 err=0 ...`.
    fn parse(text: &str) -> Option<Self> {
        let count = |name: &str| {
            let line =
                text.lines().find(|line| line.trim_start().starts_with(name) && line.contains("n="))?;
            let number = line.split("n=").nth(1)?;
            number.split(|character: char| !character.is_ascii_digit()).next()?.parse().ok()
        };
        Some(Self { reads: count("Reads")?, writes: count("Writes")? })
    }

    /// Requests since `earlier`.
    #[must_use]
    pub fn since(self, earlier: Self) -> u64 {
        self.reads.saturating_sub(earlier.reads) + self.writes.saturating_sub(earlier.writes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_of_the_module_are_read() {
        let text = "GDS Version: 1.9\nNVFS statistics(ver: 4.0)\nActive Shadow-Buffer (MiB): 0\n\
                    Reads\t\t\t\t: n=128 ok=128 err=0 readMiB=12 io_state_err=0\nWrites\t\t\t\t: n=7 ok=7 err=0\n";
        let counters = Counters::parse(text).expect("it has both lines");
        assert_eq!(counters, Counters { reads: 128, writes: 7 });
        assert_eq!(counters.since(Counters { reads: 100, writes: 7 }), 28);
        assert_eq!(Counters::parse("Reads : none"), None);
    }

    #[test]
    fn without_the_module_it_is_compatibility_mode() {
        let none = Path::new("/nonexistent");
        assert_eq!(Transport::read(none, 2, 17), Transport::Compatibility);
        let folder = std::env::temp_dir().join(format!("strata-nvfs-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        std::fs::write(folder.join("version"), "version: 2.17\n").expect("a file");
        assert_eq!(Transport::read(&folder, 2, 17), Transport::Module { major: 2, minor: 17 });
        assert_eq!(Transport::read(&folder, 0, 0), Transport::Compatibility);
        std::fs::remove_dir_all(&folder).expect("removed");
    }
}
