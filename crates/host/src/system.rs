//! The operating system: release, clock, limits, containers.

use std::path::Path;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::source;

/// Facts about the operating system and what it allows this process.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct System {
    /// Name of the host.
    pub hostname: Option<String>,
    /// Release of the kernel.
    pub kernel: Option<String>,
    /// The distribution's name and version.
    pub distribution: Option<String>,
    /// Architecture of the machine.
    pub architecture: Option<String>,
    /// The kernel's clock source.
    pub clock_source: Option<String>,
    /// Clock sources that the kernel could use.
    pub clock_sources_available: Vec<String>,
    /// Use of transparent huge pages: `always`, `madvise` or `never`.
    pub transparent_huge_pages: Option<String>,
    /// The kernel's switch `io_uring_disabled`: 0 open to all, 1 to a group, 2 to nobody.
    pub io_uring_disabled: Option<u32>,
    /// Memory that this process may lock, in bytes; `None` without a limit.
    pub memlock_limit_bytes: Option<u64>,
    /// Files that this process may have open; `None` without a limit.
    pub open_files_limit: Option<u64>,
    /// The container manager, where this runs in a container that says so.
    pub container: Option<String>,
    /// Cores' worth of processor time that the control group allows; `None` without a limit.
    pub cpu_limit_cores: Option<f64>,
    /// Memory that the control group allows, in bytes; `None` without a limit.
    pub memory_limit_bytes: Option<u64>,
}

/// The operating system of this machine.
#[must_use]
pub fn system() -> System {
    let uname = rustix::system::uname();
    let clock = "/sys/devices/system/clocksource/clocksource0";
    let limits = control_group_limits();
    System {
        hostname: uname.nodename().to_str().ok().map(str::to_owned),
        kernel: uname.release().to_str().ok().map(str::to_owned),
        distribution: source::text("/etc/os-release").and_then(|text| parse_os_release(&text)),
        architecture: uname.machine().to_str().ok().map(str::to_owned),
        clock_source: source::text(format!("{clock}/current_clocksource")),
        clock_sources_available: source::text(format!("{clock}/available_clocksource"))
            .map(|text| text.split_whitespace().map(str::to_owned).collect())
            .unwrap_or_default(),
        transparent_huge_pages: source::text("/sys/kernel/mm/transparent_hugepage/enabled")
            .map(|text| source::chosen(&text).to_owned()),
        io_uring_disabled: source::value("/proc/sys/kernel/io_uring_disabled"),
        memlock_limit_bytes: rustix::process::getrlimit(rustix::process::Resource::Memlock).current,
        open_files_limit: rustix::process::getrlimit(rustix::process::Resource::Nofile).current,
        container: container(),
        cpu_limit_cores: limits.cores,
        memory_limit_bytes: limits.memory_bytes,
    }
}

/// `PRETTY_NAME` of os-release(5), without its quotes.
fn parse_os_release(text: &str) -> Option<String> {
    let name = text.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="))?.trim();
    let name = name.trim_matches(['"', '\'']);
    (!name.is_empty()).then(|| name.to_owned())
}

fn container() -> Option<String> {
    if let Some(name) = source::text("/run/systemd/container") {
        return Some(name);
    }
    let marks = [
        ("/.dockerenv", "docker"),
        ("/run/.containerenv", "podman"),
        ("/var/run/secrets/kubernetes.io", "kubernetes"),
    ];
    marks.iter().find(|(path, _)| Path::new(path).exists()).map(|(_, name)| (*name).to_owned())
}

#[derive(Default)]
struct Limits {
    cores: Option<f64>,
    memory_bytes: Option<u64>,
}

/// The tightest limits on the way from this process's control groups to the root.
fn control_group_limits() -> Limits {
    let groups = source::text("/proc/self/cgroup").unwrap_or_default();
    let mut limits = Limits::default();
    for line in groups.lines() {
        let mut fields = line.splitn(3, ':');
        let (Some(_), Some(controllers), Some(path)) = (fields.next(), fields.next(), fields.next()) else {
            continue;
        };
        for directory in Path::new(path.trim_start_matches('/')).ancestors() {
            // The second generation lies at the root or, in hybrid set-ups, under `unified`.
            let roots: &[&str] = match controllers {
                "" => &["/sys/fs/cgroup", "/sys/fs/cgroup/unified"],
                "cpu" | "cpu,cpuacct" => &["/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpu,cpuacct"],
                "memory" => &["/sys/fs/cgroup/memory"],
                _ => &[],
            };
            for root in roots {
                limits.tighten(&Path::new(root).join(directory));
            }
        }
    }
    limits
}

impl Limits {
    fn tighten(&mut self, directory: &Path) {
        let quota = source::text(directory.join("cpu.max")).and_then(|text| parse_cpu_max(&text));
        let old_quota = source::value::<i64>(directory.join("cpu.cfs_quota_us"))
            .zip(source::value::<i64>(directory.join("cpu.cfs_period_us")))
            .and_then(|(quota, period)| parse_cpu_max(&format!("{quota} {period}")));
        for cores in [quota, old_quota].into_iter().flatten() {
            self.cores = Some(self.cores.map_or(cores, |known| known.min(cores)));
        }
        // The first generation writes "no limit" as the largest multiple of a page.
        let memory = source::value::<u64>(directory.join("memory.max")).or_else(|| {
            source::value(directory.join("memory.limit_in_bytes")).filter(|&bytes: &u64| bytes < 1 << 62)
        });
        if let Some(bytes) = memory {
            self.memory_bytes = Some(self.memory_bytes.map_or(bytes, |known| known.min(bytes)));
        }
    }
}

/// Parses `cpu.max`: quota and period in microseconds, quota `max` for no limit.
fn parse_cpu_max(text: &str) -> Option<f64> {
    let mut words = text.split_whitespace();
    let quota: u64 = words.next()?.parse().ok()?;
    let period: u64 = words.next().map_or(Some(100_000), |word| word.parse().ok())?;
    (quota > 0 && period > 0).then(|| quota as f64 / period as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_answers() {
        assert_eq!(parse_cpu_max("150000 100000"), Some(1.5));
        assert_eq!(parse_cpu_max("max 100000"), None);
        assert_eq!(parse_cpu_max("-1 100000"), None);
        assert_eq!(parse_cpu_max("1 0"), None);
        let text = "NAME=x\nPRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\n";
        assert_eq!(parse_os_release(text).as_deref(), Some("Debian GNU/Linux 12 (bookworm)"));
        assert_eq!(parse_os_release("PRETTY_NAME=\"\""), None);
    }

    #[test]
    fn this_system_has_a_kernel() {
        let system = system();
        let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
        assert_eq!(system.kernel.as_deref(), Some(release.trim()));
        assert!(system.open_files_limit.is_none_or(|limit| limit > 0));
    }
}
