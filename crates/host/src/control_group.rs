//! Control groups of this process: what they allow of processors and devices, and how often they held it back.

use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::block::DeviceNumber;
use crate::source;

/// Where control groups are mounted.
const MOUNT: &str = "/sys/fs/cgroup";
/// Files of the first generation with limits of devices: what they limit, and the counters beside it.
const OLD_LIMITS: &[(&str, IoLimitKind)] = &[
    ("blkio.throttle.read_bps_device", IoLimitKind::ReadBytes),
    ("blkio.throttle.write_bps_device", IoLimitKind::WrittenBytes),
    ("blkio.throttle.read_iops_device", IoLimitKind::Reads),
    ("blkio.throttle.write_iops_device", IoLimitKind::Writes),
];

/// Quantity that a control group limits on a device, each in a second.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum IoLimitKind {
    /// Bytes read.
    ReadBytes,
    /// Bytes written.
    WrittenBytes,
    /// Reads.
    Reads,
    /// Writes.
    Writes,
}

impl IoLimitKind {
    /// Its name in `io.max`, and that of its counter in `io.stat` (Documentation/admin-guide/cgroup-v2.rst).
    fn words(self) -> (&'static str, &'static str) {
        match self {
            Self::ReadBytes => ("rbps", "rbytes"),
            Self::WrittenBytes => ("wbps", "wbytes"),
            Self::Reads => ("riops", "rios"),
            Self::Writes => ("wiops", "wios"),
        }
    }

    /// The file of its counter in the first generation, and the word in it.
    fn old_words(self) -> (&'static str, &'static str) {
        match self {
            Self::ReadBytes => ("blkio.throttle.io_service_bytes", "Read"),
            Self::WrittenBytes => ("blkio.throttle.io_service_bytes", "Write"),
            Self::Reads => ("blkio.throttle.io_serviced", "Read"),
            Self::Writes => ("blkio.throttle.io_serviced", "Write"),
        }
    }
}

/// A limit on a device, and what the group's processes have counted against it so far.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IoLimit {
    /// The group's directory.
    pub group: PathBuf,
    /// The device.
    pub device: DeviceNumber,
    /// Limited quantity.
    pub kind: IoLimitKind,
    /// The limit, each second.
    pub limit_per_second: u64,
    /// Counted since the group was made.
    pub counted: u64,
}

/// How often the quota of processor time stopped a group, since it was made or between two readings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CpuThrottling {
    /// Periods of the quota in which the group wanted to run.
    pub periods: u64,
    /// Of these, periods in which its quota was used up.
    pub throttled_periods: u64,
    /// Time for which its threads were stopped, over all processors, in nanoseconds.
    pub throttled_ns: u64,
}

impl CpuThrottling {
    fn since(self, earlier: Self) -> Self {
        Self {
            periods: self.periods.saturating_sub(earlier.periods),
            throttled_periods: self.throttled_periods.saturating_sub(earlier.throttled_periods),
            throttled_ns: self.throttled_ns.saturating_sub(earlier.throttled_ns),
        }
    }
}

/// The directories of this process's groups, from its own to the root; those that are mounted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ControlGroups {
    /// Those that may limit processor time.
    cpu: Vec<PathBuf>,
    /// Those that may limit devices.
    io: Vec<PathBuf>,
    /// Those that may limit memory.
    memory: Vec<PathBuf>,
}

/// Limits of the groups: the tightest on the way to the root.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Limits {
    /// Cores' worth of processor time.
    pub cores: Option<f64>,
    /// Memory in bytes.
    pub memory_bytes: Option<u64>,
}

impl ControlGroups {
    /// Those of this process.
    #[must_use]
    pub fn of_process() -> Self {
        Self::parse(&source::text("/proc/self/cgroup").unwrap_or_default(), Path::new(MOUNT))
    }

    /// From the text of `/proc/self/cgroup` (cgroups(7)) and the directory that they are mounted in.
    #[must_use]
    pub fn parse(text: &str, mount: &Path) -> Self {
        let mut found = Self::default();
        for line in text.lines() {
            let mut fields = line.splitn(3, ':').skip(1);
            let (Some(controllers), Some(path)) = (fields.next(), fields.next()) else { continue };
            // The second generation lies at the root or, in hybrid set-ups, under `unified`.
            let roots: Vec<&str> =
                if controllers.is_empty() { vec!["", "unified"] } else { roots_of(controllers) };
            let has = |name: &str| controllers.is_empty() || controllers.split(',').any(|word| word == name);
            for directory in Path::new(path.trim_start_matches('/')).ancestors() {
                for root in &roots {
                    let place = mount.join(root).join(directory);
                    let lists =
                        [("cpu", &mut found.cpu), ("blkio", &mut found.io), ("memory", &mut found.memory)];
                    for (name, list) in lists {
                        if has(name) && !list.contains(&place) && place.is_dir() {
                            list.push(place.clone());
                        }
                    }
                }
            }
        }
        found
    }

    /// Limits of these groups.
    #[must_use]
    pub fn limits(&self) -> Limits {
        let cores = self.cpu.iter().filter_map(|directory| {
            let quota = source::text(directory.join("cpu.max")).and_then(|text| parse_cpu_max(&text));
            let old_quota = || {
                let value = |file: &str| source::value::<i64>(directory.join(file));
                parse_cpu_max(&format!("{} {}", value("cpu.cfs_quota_us")?, value("cpu.cfs_period_us")?))
            };
            quota.or_else(old_quota)
        });
        // The first generation writes "no limit" as the largest multiple of a page.
        let memory = self.memory.iter().filter_map(|directory| {
            source::value::<u64>(directory.join("memory.max")).or_else(|| {
                let old = source::value(directory.join("memory.limit_in_bytes"));
                old.filter(|&bytes: &u64| bytes < 1 << 62)
            })
        });
        Limits { cores: cores.reduce(f64::min), memory_bytes: memory.min() }
    }

    /// How often each of the groups that count it was stopped, from this process's own to the root.
    #[must_use]
    pub fn cpu_throttling(&self) -> Vec<CpuThrottling> {
        let parse = |directory: &PathBuf| {
            source::text(directory.join("cpu.stat")).map(|text| parse_cpu_stat(&text)).unwrap_or_default()
        };
        self.cpu.iter().map(parse).collect()
    }

    /// How often they were stopped since an earlier reading: the group that lost most time. None where none has a quota.
    #[must_use]
    pub fn cpu_throttling_since(&self, earlier: &[CpuThrottling]) -> Option<CpuThrottling> {
        let now = self.cpu_throttling();
        let done = now.into_iter().zip(earlier).map(|(now, earlier)| now.since(*earlier));
        done.filter(|done| done.periods > 0).max_by_key(|done| done.throttled_ns)
    }

    /// Every limit on a device, with its counter.
    #[must_use]
    pub fn io_limits(&self) -> Vec<IoLimit> {
        self.io.iter().flat_map(|group| new_limits(group).into_iter().chain(old_limits(group))).collect()
    }
}

/// Names under which controllers of the first generation are mounted.
fn roots_of(controllers: &str) -> Vec<&str> {
    let mut roots: Vec<&str> = controllers.split(',').collect();
    roots.push(controllers);
    roots.push("cpu,cpuacct");
    roots
}

/// Parses `cpu.max`: quota and period in microseconds, quota `max` for no limit.
fn parse_cpu_max(text: &str) -> Option<f64> {
    let mut words = text.split_whitespace();
    let quota: u64 = words.next()?.parse().ok()?;
    let period: u64 = words.next().map_or(Some(100_000), |word| word.parse().ok())?;
    (quota > 0 && period > 0).then(|| quota as f64 / period as f64)
}

/// Parses `cpu.stat` of either generation; 0 for what it does not say.
fn parse_cpu_stat(text: &str) -> CpuThrottling {
    let value = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.and_then(|value| value.trim().parse::<u64>().ok())
    };
    CpuThrottling {
        periods: value("nr_periods").unwrap_or(0),
        throttled_periods: value("nr_throttled").unwrap_or(0),
        throttled_ns: value("throttled_usec")
            .map(|time| time.saturating_mul(1000))
            .or_else(|| value("throttled_time"))
            .unwrap_or(0),
    }
}

/// Limits of the second generation: `8:16 rbps=2097152 wbps=max riops=max wiops=120`.
fn new_limits(group: &Path) -> Vec<IoLimit> {
    let Some(text) = source::text(group.join("io.max")) else { return Vec::new() };
    let counters = source::text(group.join("io.stat")).unwrap_or_default();
    let kinds = [IoLimitKind::ReadBytes, IoLimitKind::WrittenBytes, IoLimitKind::Reads, IoLimitKind::Writes];
    let mut found = Vec::new();
    for line in text.lines() {
        let Some((device, values)) = line.split_once(' ') else { continue };
        let Ok(number) = device.parse() else { continue };
        let counted = counters.lines().find_map(|line| line.strip_prefix(device)?.strip_prefix(' '));
        for kind in kinds {
            let (limit, counter) = kind.words();
            if let Some(limit_per_second) = named(values, limit) {
                let counted = counted.and_then(|line| named(line, counter)).unwrap_or(0);
                found.push(IoLimit {
                    group: group.to_owned(),
                    device: number,
                    kind,
                    limit_per_second,
                    counted,
                });
            }
        }
    }
    found
}

/// The number in `name=number` of a line.
fn named(line: &str, name: &str) -> Option<u64> {
    line.split_whitespace().find_map(|word| word.strip_prefix(name)?.strip_prefix('=')?.parse().ok())
}

/// Limits of the first generation: `8:16 1048576` in a file for each kind.
fn old_limits(group: &Path) -> Vec<IoLimit> {
    let mut found = Vec::new();
    for &(file, kind) in OLD_LIMITS {
        let Some(text) = source::text(group.join(file)) else { continue };
        let (counters, word) = kind.old_words();
        let counters = source::text(group.join(counters)).unwrap_or_default();
        for line in text.lines() {
            let mut words = line.split_whitespace();
            let (Some(device), Some(limit)) = (words.next(), words.next()) else { continue };
            let (Ok(number), Ok(limit_per_second)) = (device.parse(), limit.parse()) else { continue };
            let start = format!("{device} {word} ");
            let counted = counters.lines().find_map(|line| line.strip_prefix(&start)?.trim().parse().ok());
            let counted = counted.unwrap_or(0);
            found.push(IoLimit { group: group.to_owned(), device: number, kind, limit_per_second, counted });
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn made_up(files: &[(&str, &str)]) -> tempfile::TempDir {
        let mount = tempfile::tempdir().unwrap();
        for (file, text) in files {
            let path = mount.path().join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        mount
    }

    #[test]
    fn second_generation() {
        let mount = made_up(&[
            ("a/b/cpu.max", "max 100000\n"),
            ("a/b/cpu.stat", "usage_usec 9\nnr_periods 0\nnr_throttled 0\nthrottled_usec 0\n"),
            ("a/cpu.max", "50000 100000\n"),
            ("a/cpu.stat", "usage_usec 9\nnr_periods 20\nnr_throttled 15\nthrottled_usec 700\n"),
            ("a/memory.max", "1048576\n"),
            ("a/io.max", "254:0 rbps=1048576 wbps=max riops=max wiops=120\n8:0 rbps=max\n"),
            ("a/io.stat", "7:0 rbytes=1\n254:0 rbytes=4096 wbytes=8192 rios=1 wios=2 dbytes=0 dios=0\n"),
        ]);
        let groups = ControlGroups::parse("0::/a/b\n", mount.path());
        assert_eq!(groups.limits(), Limits { cores: Some(0.5), memory_bytes: Some(1 << 20) });
        let done = groups.cpu_throttling_since(&[CpuThrottling::default(); 3]).unwrap();
        assert_eq!(done, CpuThrottling { periods: 20, throttled_periods: 15, throttled_ns: 700_000 });
        assert_eq!(groups.cpu_throttling_since(&groups.cpu_throttling()), None, "nothing went by");
        let limits: Vec<_> = groups
            .io_limits()
            .into_iter()
            .map(|limit| (limit.device.to_string(), limit.kind, limit.limit_per_second, limit.counted))
            .collect();
        let device = || "254:0".to_owned();
        let expected =
            [(device(), IoLimitKind::ReadBytes, 1 << 20, 4096), (device(), IoLimitKind::Writes, 120, 2)];
        assert_eq!(limits, expected);
    }

    #[test]
    fn first_generation_and_hybrid() {
        let mount = made_up(&[
            ("cpu,cpuacct/g/cpu.cfs_quota_us", "150000"),
            ("cpu,cpuacct/g/cpu.cfs_period_us", "100000"),
            ("cpu,cpuacct/g/cpu.stat", "nr_periods 4\nnr_throttled 3\nthrottled_time 5000\n"),
            ("memory/g/memory.limit_in_bytes", "9223372036854771712"),
            ("memory/memory.limit_in_bytes", "4096"),
            ("unified/g/cgroup.procs", "1"),
            ("blkio/g/blkio.throttle.write_bps_device", "8:16 1000\n"),
            ("blkio/g/blkio.throttle.io_service_bytes", "8:16 Read 7\n8:16 Write 9\n8:16 Total 16\n"),
        ]);
        let text = "4:memory:/g\n3:blkio:/g\n2:cpu,cpuacct:/g\n0::/g\n";
        let groups = ControlGroups::parse(text, mount.path());
        assert_eq!(groups.limits(), Limits { cores: Some(1.5), memory_bytes: Some(4096) });
        assert!(groups.cpu_throttling().contains(&CpuThrottling {
            periods: 4,
            throttled_periods: 3,
            throttled_ns: 5000
        }));
        let limits = groups.io_limits();
        let [limit] = &limits[..] else { panic!("{limits:?}") };
        assert_eq!((limit.kind, limit.limit_per_second, limit.counted), (IoLimitKind::WrittenBytes, 1000, 9));
        assert_eq!(ControlGroups::parse("", mount.path()), ControlGroups::default());
    }

    #[test]
    fn quotas() {
        assert_eq!(parse_cpu_max("150000 100000"), Some(1.5));
        assert_eq!(parse_cpu_max("max 100000"), None);
        assert_eq!(parse_cpu_max("-1 100000"), None);
        assert_eq!(parse_cpu_max("1 0"), None);
    }

    proptest! {
        #[test]
        fn any_text_is_survived(text in "\\PC{0,100}") {
            let _ = parse_cpu_max(&text);
            let _ = parse_cpu_stat(&text);
            let _ = ControlGroups::parse(&text, Path::new("/nonexistent"));
        }
    }
}
