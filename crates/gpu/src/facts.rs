//! Facts about the devices of a load, for the record: from the driver, and from what the kernel says of their place.
#![allow(unsafe_code)]

use std::path::Path;

use driver::Error;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::cuda::Api;
use crate::device::{Device, can_access_peer};
use crate::topology::{Distance, PciePlace};

/// One device.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DeviceFacts {
    /// Its number.
    pub number: u32,
    /// Its name.
    pub name: String,
    /// Its memory, in bytes.
    pub memory_bytes: u64,
    /// Its place on PCIe.
    pub pci_address: String,
    /// The NUMA node that it is attached to, where the machine has several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub numa_node: Option<u32>,
    /// Speed of its link now, as the kernel says it: `32.0 GT/s PCIe` is generation 5.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link_speed: Option<String>,
    /// Lanes of its link now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link_width: Option<u32>,
    /// Most lanes of its link.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link_width_max: Option<u32>,
    /// Memory of the device that others on PCIe can reach at once (BAR1), in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bar1_bytes: Option<u64>,
}

/// Devices of this machine, and the software that drives them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GpuFacts {
    /// Version of CUDA that the driver offers: `13.0`.
    pub cuda_version: String,
    /// Version of the driver in the kernel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub driver_version: Option<String>,
    /// Version of the kernel module nvidia-fs, where it is loaded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nvidia_fs_version: Option<String>,
    /// The devices, by number.
    pub devices: Vec<DeviceFacts>,
    /// Pairs of them, where there are several.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pairs: Vec<DevicePair>,
}

/// Two devices.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DevicePair {
    /// Their numbers.
    pub devices: [u32; 2],
    /// Their distance on PCIe, where the kernel knows both.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub distance: Option<Distance>,
    /// Whether each reaches the memory of the other without the host (NVLink, or PCIe).
    pub peer_access: bool,
}

impl GpuFacts {
    /// Reads all that there is.
    ///
    /// # Errors
    /// When libcuda is missing, or the driver does not start.
    pub fn read() -> Result<Self, Error> {
        let api = Api::ready()?;
        let mut version = 0;
        // SAFETY: a place for the number.
        let code = unsafe { (api.cuDriverGetVersion)(&raw mut version) };
        api.check(code, "cannot read the version of the driver")?;
        let root = Path::new("/");
        let devices = Device::all()?;
        Ok(Self {
            cuda_version: format!("{}.{}", version / 1000, version % 1000 / 10),
            driver_version: first_line(root, "sys/module/nvidia/version"),
            nvidia_fs_version: first_line(root, "proc/driver/nvidia-fs/version")
                .map(|line| line.trim_start_matches("version:").trim().to_owned()),
            pairs: pairs(&devices)?,
            devices: devices.iter().map(|device| of_device(device, root)).collect(),
        })
    }
}

impl GpuFacts {
    /// Reads anew how the devices are attached: links that had nothing to do run slower.
    pub(crate) fn read_links(&mut self) {
        for facts in &mut self.devices {
            let place = format!("sys/bus/pci/devices/{}", facts.pci_address);
            let read = |name: &str| first_line(Path::new("/"), &format!("{place}/{name}"));
            facts.link_speed = read("current_link_speed");
            facts.link_width = read("current_link_width").and_then(|width| width.parse().ok());
        }
    }
}

fn pairs(devices: &[Device]) -> Result<Vec<DevicePair>, Error> {
    let places: Vec<_> = devices.iter().map(|device| PciePlace::of_address(&device.pci_address)).collect();
    let mut pairs = Vec::new();
    for (at, one) in devices.iter().enumerate() {
        for (other_at, other) in devices.iter().enumerate().skip(at + 1) {
            let places = places[at].as_ref().zip(places[other_at].as_ref());
            pairs.push(DevicePair {
                devices: [one.number, other.number],
                distance: places.map(|(one, other)| one.distance(other)),
                peer_access: can_access_peer(one.number, other.number)?
                    && can_access_peer(other.number, one.number)?,
            });
        }
    }
    Ok(pairs)
}

fn first_line(root: &Path, path: &str) -> Option<String> {
    let text = std::fs::read_to_string(root.join(path)).ok()?;
    Some(text.lines().next()?.trim().to_owned()).filter(|line| !line.is_empty())
}

fn of_device(device: &Device, root: &Path) -> DeviceFacts {
    let place = format!("sys/bus/pci/devices/{}", device.pci_address);
    let read = |name: &str| first_line(root, &format!("{place}/{name}"));
    let number = |name: &str| read(name)?.parse().ok();
    DeviceFacts {
        number: device.number,
        name: device.name.clone(),
        memory_bytes: device.memory_bytes,
        pci_address: device.pci_address.clone(),
        numa_node: device.numa_node,
        link_speed: read("current_link_speed"),
        link_width: number("current_link_width"),
        link_width_max: number("max_link_width"),
        bar1_bytes: std::fs::read_to_string(root.join(format!("{place}/resource")))
            .ok()
            .and_then(|text| bar1_bytes(&text)),
    }
}

/// Size of BAR1 by the kernel's table of regions: a 64-bit BAR takes two lines, so it is the second region that has a size.
fn bar1_bytes(table: &str) -> Option<u64> {
    let sizes = table.lines().filter_map(|line| {
        let mut words =
            line.split_whitespace().map(|word| u64::from_str_radix(word.trim_start_matches("0x"), 16));
        let (first, last) = (words.next()?.ok()?, words.next()?.ok()?);
        (last > first).then(|| last - first + 1)
    });
    sizes.into_iter().nth(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_of_a_device_come_from_the_kernel() {
        let root = std::env::temp_dir().join(format!("strata-gpu-facts-{}", std::process::id()));
        let place = root.join("sys/bus/pci/devices/0000:1a:00.0");
        std::fs::create_dir_all(&place).expect("a folder");
        let files = [
            ("current_link_speed", "32.0 GT/s PCIe\n"),
            ("current_link_width", "8\n"),
            ("max_link_width", "16\n"),
            (
                "resource",
                "0x00000000a0000000 0x00000000a0ffffff 0x0\n0x0000010000000000 0x000001ffffffffff 0x0\n0x0 0x0 0x0\n",
            ),
        ];
        files.iter().for_each(|(name, text)| std::fs::write(place.join(name), text).expect("a file"));
        let device = Device {
            number: 0,
            name: "G".into(),
            memory_bytes: 80 << 30,
            pci_address: "0000:1a:00.0".into(),
            numa_node: Some(1),
        };
        let facts = of_device(&device, &root);
        std::fs::remove_dir_all(&root).expect("removed");
        assert_eq!(
            (facts.link_speed.as_deref(), facts.link_width, facts.link_width_max),
            (Some("32.0 GT/s PCIe"), Some(8), Some(16))
        );
        assert_eq!(facts.bar1_bytes, Some(1 << 40));
    }
}
