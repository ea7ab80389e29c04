//! Distances on PCIe: between devices, and between devices and storage, from the kernel's tree of buses (sysfs).

use std::path::Path;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How far two devices are from each other, nearest first. `nvidia-smi topo` calls them PIX or PXB, PHB, NODE and SYS.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Distance {
    /// Under one PCIe switch: data need not pass the processor.
    PcieSwitch,
    /// Under one host bridge of the processor.
    HostBridge,
    /// On one NUMA node.
    NumaNode,
    /// On different NUMA nodes.
    System,
}

/// Place of a device in the tree of PCIe.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PciePlace {
    /// The host bridge and the bridges below it, down to the device's own.
    bridges: Vec<String>,
    numa_node: Option<u32>,
}

impl PciePlace {
    /// The place of the device at `address` (`0000:1a:00.0`); none where the kernel does not know it.
    #[must_use]
    pub fn of_address(address: &str) -> Option<Self> {
        Self::of_directory(&Path::new("/sys/bus/pci/devices").join(address))
    }

    /// The place of the PCIe device that a directory of sysfs belongs to, such as that of a block device; none where it is on no PCIe.
    #[must_use]
    pub fn of_directory(directory: &Path) -> Option<Self> {
        let directory = std::fs::canonicalize(directory).ok()?;
        let mut bridges = bridges_of(&directory)?;
        let function = bridges.pop()?;
        let own = directory.ancestors().find(|folder| folder.ends_with(&function))?;
        let numa_node = std::fs::read_to_string(own.join("numa_node")).ok();
        Some(Self { bridges, numa_node: numa_node.and_then(|text| text.trim().parse().ok()) })
    }

    /// The distance between two places.
    #[must_use]
    pub fn distance(&self, other: &Self) -> Distance {
        let shared = self.bridges.iter().zip(&other.bridges).take_while(|(one, two)| one == two).count();
        match shared {
            // The host bridge and the port of a switch.
            2.. => Distance::PcieSwitch,
            1 => Distance::HostBridge,
            _ if self.numa_node == other.numa_node => Distance::NumaNode,
            _ => Distance::System,
        }
    }
}

/// The host bridge (`pci0000:00`) and the addresses below it, of a directory under `/sys/devices`.
fn bridges_of(directory: &Path) -> Option<Vec<String>> {
    let names = directory.iter().map(|name| name.to_string_lossy());
    let below: Vec<_> = names.skip_while(|name| !is_host_bridge(name)).collect();
    let bridge = below.first()?.to_string();
    let addresses = below[1..].iter().take_while(|name| is_address(name)).map(ToString::to_string);
    let chain: Vec<_> = std::iter::once(bridge).chain(addresses).collect();
    (chain.len() > 1).then_some(chain)
}

fn is_host_bridge(name: &str) -> bool {
    name.strip_prefix("pci")
        .is_some_and(|rest| rest.split_once(':').is_some_and(|(domain, bus)| is_hex(domain) && is_hex(bus)))
}

fn is_address(name: &str) -> bool {
    let parts: Vec<_> = name.split([':', '.']).collect();
    parts.len() == 4 && parts.iter().all(|part| is_hex(part))
}

fn is_hex(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A tree of buses as the kernel shows it, in a folder of the test.
    fn tree(name: &str, devices: &[(&str, &str)]) -> std::path::PathBuf {
        let root = std::env::temp_dir().join(format!("strata-pcie-{name}-{}", std::process::id()));
        for (path, node) in devices {
            let folder = root.join("devices").join(path);
            std::fs::create_dir_all(&folder).expect("a folder");
            std::fs::write(folder.join("numa_node"), format!("{node}\n")).expect("a file");
        }
        root
    }

    #[test]
    fn distances_are_those_of_the_tree() {
        let gpu = "pci0000:15/0000:15:01.0/0000:16:00.0/0000:17:00.0/0000:18:00.0";
        let near = "pci0000:15/0000:15:01.0/0000:16:00.0/0000:17:01.0/0000:19:00.0";
        let port = "pci0000:15/0000:15:02.0/0000:1f:00.0";
        let node = "pci0000:37/0000:37:01.0/0000:38:00.0";
        let far = "pci0000:97/0000:97:01.0/0000:98:00.0";
        let root = tree("tree", &[(gpu, "0"), (near, "0"), (port, "0"), (node, "0"), (far, "1")]);
        let disk = root.join("devices").join(near).join("nvme/nvme0/nvme0n1");
        std::fs::create_dir_all(&disk).expect("a folder");
        let place = |path: &str| PciePlace::of_directory(&root.join("devices").join(path)).expect(path);
        let from = place(gpu);
        let found = [near, port, node, far].map(|path| from.distance(&place(path)));
        assert_eq!(found, [Distance::PcieSwitch, Distance::HostBridge, Distance::NumaNode, Distance::System]);
        let disk_place = PciePlace::of_directory(&disk).expect("the drive");
        std::fs::remove_dir_all(&root).expect("removed");
        assert_eq!(from.distance(&disk_place), Distance::PcieSwitch);
        assert!(Distance::PcieSwitch < Distance::System);
        assert_eq!(PciePlace::of_directory(Path::new("/proc/self")), None);
        assert_eq!(PciePlace::of_address("ffff:ff:ff.9"), None);
    }
}
