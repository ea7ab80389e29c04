//! Devices for RMA and the interfaces that they belong to (sysfs-class-infiniband, /sys/class/cxi).

use std::path::Path;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::source;

/// How a device is programmed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FabricClass {
    /// Verbs: InfiniBand, RoCE, iWARP.
    Rdma,
    /// HPE Slingshot.
    Cxi,
}

/// A port of a device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FabricPort {
    /// Its number, from 1.
    pub number: u32,
    /// `InfiniBand` or `Ethernet`.
    pub link_layer: Option<String>,
    /// Whether it carries something.
    pub is_active: bool,
    /// Its speed in bits a second.
    pub rate_bits_per_second: Option<u64>,
}

/// A device for RMA.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FabricDevice {
    /// Its name, such as `mlx5_0`: what libfabric calls the domain.
    pub name: String,
    /// How it is programmed.
    pub class: FabricClass,
    /// Its ports; of a device with one port for each interface, the interface's alone. None are told of Slingshot.
    pub ports: Vec<FabricPort>,
    /// Interfaces that belong to it.
    pub interfaces: Vec<String>,
}

impl FabricDevice {
    /// Whether a port is active; so is a device that tells of no ports.
    #[must_use]
    pub fn is_active(&self) -> bool {
        self.ports.is_empty() || self.ports.iter().any(|port| port.is_active)
    }
}

/// All devices of the tree.
pub(super) fn devices(sys_class: &Path) -> Vec<FabricDevice> {
    let classes = [("infiniband", FabricClass::Rdma), ("cxi", FabricClass::Cxi)];
    let mut found = Vec::new();
    for (class_name, class) in classes {
        let directory = sys_class.join(class_name);
        found.extend(
            source::names(&directory).into_iter().map(|name| device(&directory.join(&name), name, class)),
        );
    }
    found
}

fn device(directory: &Path, name: String, class: FabricClass) -> FabricDevice {
    let ports = directory.join("ports");
    let mut numbers: Vec<u32> = source::names(&ports).iter().filter_map(|name| name.parse().ok()).collect();
    numbers.sort_unstable();
    // The PCI function's interfaces; of one in software its parent; of a bond's device the bond, as the owner of the first
    // address of a port.
    let mut interfaces = source::names(directory.join("device/net"));
    interfaces.extend(source::text(directory.join("parent")));
    interfaces.extend(
        numbers.iter().filter_map(|number| source::text(ports.join(format!("{number}/gid_attrs/ndevs/0")))),
    );
    interfaces.sort();
    interfaces.dedup();
    FabricDevice {
        name,
        class,
        ports: numbers.into_iter().map(|number| port(&ports.join(number.to_string()), number)).collect(),
        interfaces,
    }
}

fn port(directory: &Path, number: u32) -> FabricPort {
    FabricPort {
        number,
        link_layer: source::text(directory.join("link_layer")),
        is_active: source::text(directory.join("state")).is_some_and(|state| state.starts_with("4:")),
        rate_bits_per_second: source::text(directory.join("rate")).and_then(|rate| parse_rate(&rate)),
    }
}

/// `100 Gb/sec (4X EDR)`, `2.5 Gb/sec (1X SDR)`.
pub(super) fn parse_rate(text: &str) -> Option<u64> {
    let (figure, unit) = text.trim().split_once(' ')?;
    let gigabits: f64 = figure.parse().ok().filter(|rate| *rate > 0.0 && *rate < 1e6)?;
    unit.starts_with("Gb/sec").then(|| (gigabits * 1e9).round() as u64)
}

/// The devices of interface `name`, which is its function's interface number `dev_port` from 0.
pub(super) fn of_interface(devices: &[FabricDevice], name: &str, dev_port: Option<u32>) -> Vec<FabricDevice> {
    let own = devices.iter().filter(|device| device.interfaces.iter().any(|interface| interface == name));
    own.map(|device| {
        let mut device = device.clone();
        let own_port = dev_port.map(|port| port.saturating_add(1));
        if device.interfaces.len() > 1 && device.ports.iter().any(|port| Some(port.number) == own_port) {
            device.ports.retain(|port| Some(port.number) == own_port);
        }
        device
    })
    .collect()
}
