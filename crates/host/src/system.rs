//! The operating system: release, clock, limits, containers.

use std::path::Path;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::control_group::ControlGroups;
use crate::source;

/// Numbers of the namespaces that the kernel makes when it starts (`PROC_*_INIT_INO` in linux/proc_ns.h).
const INITIAL_NAMESPACES: &[(&str, u32)] =
    &[("pid", 0xEFFF_FFFC), ("uts", 0xEFFF_FFFE), ("ipc", 0xEFFF_FFFF)];

/// Facts about the operating system and what it allows this process.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct System {
    /// Name of the host.
    pub hostname: Option<String>,
    /// Number of the boot, which tells machines apart.
    #[serde(default)]
    pub boot_id: Option<String>,
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
    let limits = ControlGroups::of_process().limits();
    System {
        hostname: uname.nodename().to_str().ok().map(str::to_owned),
        boot_id: source::text("/proc/sys/kernel/random/boot_id"),
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
    container_in(Path::new("/"))
}

/// Container managers leave marks in the root directory; a virtual machine that was started from a container's image
/// has them too, and is none.
fn container_in(root: &Path) -> Option<String> {
    if is_machine_itself(root) {
        return None;
    }
    if let Some(name) = source::text(root.join("run/systemd/container")) {
        return Some(name);
    }
    let marks = [
        (".dockerenv", "docker"),
        ("run/.containerenv", "podman"),
        ("var/run/secrets/kubernetes.io", "kubernetes"),
    ];
    marks.iter().find(|(path, _)| root.join(path).exists()).map(|(_, name)| (*name).to_owned())
}

/// Whether this process lives in the namespaces that the kernel itself made, and sees the files of the first process. A
/// container has namespaces of its own; one that shares the machine's processes still has a root directory of its own.
fn is_machine_itself(root: &Path) -> bool {
    let namespace = |process: &str, kind: &str| {
        std::fs::read_link(root.join("proc").join(process).join("ns").join(kind)).ok()
    };
    let is_first = INITIAL_NAMESPACES.iter().all(|(kind, number)| {
        namespace("self", kind).is_some_and(|found| found == Path::new(&format!("{kind}:[{number}]")))
    });
    // Only root may ask for those of the first process.
    let shares_files = namespace("1", "mnt").is_none_or(|first| namespace("self", "mnt") == Some(first));
    is_first && shares_files
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_answers() {
        let text = "NAME=x\nPRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\n";
        assert_eq!(parse_os_release(text).as_deref(), Some("Debian GNU/Linux 12 (bookworm)"));
        assert_eq!(parse_os_release("PRETTY_NAME=\"\""), None);
    }

    #[test]
    fn a_mark_alone_makes_no_container() {
        use std::os::unix::fs::symlink;
        let made = |pid: u32, first_mount: Option<&str>| {
            let root = tempfile::tempdir().unwrap();
            let own = root.path().join("proc/self/ns");
            std::fs::create_dir_all(&own).unwrap();
            std::fs::write(root.path().join(".dockerenv"), "").unwrap();
            for (kind, number) in [("pid", pid), ("uts", 0xEFFF_FFFE), ("ipc", 0xEFFF_FFFF), ("mnt", 7)] {
                symlink(format!("{kind}:[{number}]"), own.join(kind)).unwrap();
            }
            if let Some(mount) = first_mount {
                let first = root.path().join("proc/1/ns");
                std::fs::create_dir_all(&first).unwrap();
                symlink(mount, first.join("mnt")).unwrap();
            }
            container_in(root.path())
        };
        assert_eq!(made(0xEFFF_FFFC, Some("mnt:[7]")), None, "a machine started from an image");
        assert_eq!(made(0xEFFF_FFFC, None), None, "a user other than root on it");
        assert_eq!(made(4_026_532_500, Some("mnt:[7]")).as_deref(), Some("docker"));
        assert_eq!(
            made(0xEFFF_FFFC, Some("mnt:[8]")).as_deref(),
            Some("docker"),
            "with the machine's processes"
        );
        let unknown = tempfile::tempdir().unwrap();
        std::fs::write(unknown.path().join(".dockerenv"), "").unwrap();
        assert_eq!(container_in(unknown.path()).as_deref(), Some("docker"), "where namespaces are not told");
    }

    #[test]
    fn this_system_has_a_kernel() {
        let system = system();
        let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
        assert_eq!(system.kernel.as_deref(), Some(release.trim()));
        assert!(system.open_files_limit.is_none_or(|limit| limit > 0));
    }
}
