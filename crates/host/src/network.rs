//! Network interfaces: what they are, where they are attached, what they carry, and which one a route takes.

mod counters;
mod fabric;
mod links;
mod route;
mod tcp;
#[cfg(test)]
mod tests;
mod tree;

use std::path::Path;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use counters::{InterfaceCounters, counters, moved_bytes, parse_dev};
pub use fabric::{FabricClass, FabricDevice, FabricPort};
pub use links::{InterfaceAddress, Link, links, namespace};
pub use route::{Route, path_mtu_bytes, route_to};
pub use tcp::{TcpCounters, parse_tcp};
pub use tree::links_of_tree;

/// Where classes of devices lie in sysfs.
pub const SYS_CLASS: &str = "/sys/class";
/// Bridges over VLANs over bonds and more than that: deeper stacks are not followed.
const LAYERS_MAX: usize = 8;

/// Kind of an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum InterfaceKind {
    /// Has a device of its own; in a virtual machine that may be an emulated one.
    Physical,
    /// Several interfaces as one (bonding, team).
    Bond,
    /// A tagged part of another one (802.1Q), or a partition of an InfiniBand one.
    Vlan,
    /// A switch in the kernel.
    Bridge,
    /// The machine itself.
    Loopback,
    /// Any other without a device: veth, tun, dummy, ...
    Virtual,
}

/// Whether an interface can carry something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LinkState {
    /// Switched on, with a carrier.
    Up,
    /// Switched on, but nothing answers at the other end of the wire.
    NoCarrier,
    /// Switched off.
    Down,
}

/// Facts about one interface.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Interface {
    /// Its name, such as `eth0`.
    pub name: String,
    /// The kernel's number for it.
    pub index: u32,
    /// Its kind.
    pub kind: InterfaceKind,
    /// Whether it can carry something.
    pub state: LinkState,
    /// Nominal speed in bits a second; none where the driver tells none, as for most virtual ones.
    pub speed_bits_per_second: Option<u64>,
    /// Largest packet in bytes, without the link's own header.
    pub mtu_bytes: Option<u32>,
    /// NUMA node that its device is attached to; of stacked ones the node that all below have.
    pub numa_node: Option<u32>,
    /// The kernel's driver.
    pub driver: Option<String>,
    /// Whether there is a device at the bottom of it: its own, or one of an interface that it is made of.
    pub is_hardware_backed: bool,
    /// Its addresses, IPv4 first.
    pub addresses: Vec<InterfaceAddress>,
    /// Devices for RMA that belong to it.
    pub fabric_devices: Vec<FabricDevice>,
    /// Interfaces that it is made of, by name.
    pub lower: Vec<String>,
}

impl Interface {
    /// Whether it is up.
    #[must_use]
    pub fn is_up(&self) -> bool {
        self.state == LinkState::Up
    }

    /// Whether it is loopback.
    #[must_use]
    pub fn is_loopback(&self) -> bool {
        self.kind == InterfaceKind::Loopback
    }

    /// Whether a record of the machine names it: it has a device below, or an address that others can reach.
    #[must_use]
    pub fn is_notable(&self) -> bool {
        self.is_hardware_backed
            || (!self.is_loopback() && self.addresses.iter().any(|address| !address.is_link_local()))
    }

    /// Speed of the wire in bits a second: the interface's own, else that of its fastest active fabric port; none for
    /// interfaces without a device, whose drivers make up a figure (veth: 10 Gbit/s).
    #[must_use]
    pub fn nominal_bits_per_second(&self) -> Option<u64> {
        if !self.is_hardware_backed {
            return None;
        }
        let ports = self.fabric_devices.iter().flat_map(|device| &device.ports).filter(|port| port.is_active);
        self.speed_bits_per_second.or_else(|| ports.filter_map(|port| port.rate_bits_per_second).max())
    }
}

/// All interfaces of the calling thread's network namespace, by their index.
///
/// # Errors
/// The kernel's, when it does not list them.
pub fn interfaces() -> std::io::Result<Vec<Interface>> {
    Ok(interfaces_in(Path::new(SYS_CLASS), &links()?))
}

/// Facts about `links` with what the tree `sys_class` ([`SYS_CLASS`]) tells of them. An interface that the tree shows with another
/// index, or not at all, gets nothing from it: sysfs may show another network namespace than the thread's.
#[must_use]
pub fn interfaces_in(sys_class: &Path, links: &[Link]) -> Vec<Interface> {
    let devices = fabric::devices(sys_class);
    let mut found: Vec<Interface> =
        links.iter().map(|link| tree::interface(sys_class, link, &devices)).collect();
    for _ in 0..LAYERS_MAX {
        let below = found.clone();
        found.iter_mut().for_each(|interface| inherit(interface, &below));
    }
    found.sort_by_key(|interface| interface.index);
    found
}

/// Copies facts of the interfaces below a stacked interface to it.
fn inherit(interface: &mut Interface, all: &[Interface]) {
    let lower: Vec<&Interface> = all.iter().filter(|other| interface.lower.contains(&other.name)).collect();
    let Some(first) = lower.first() else { return };
    interface.is_hardware_backed |= lower.iter().any(|other| other.is_hardware_backed);
    if interface.numa_node.is_none() && lower.iter().all(|other| other.numa_node == first.numa_node) {
        interface.numa_node = first.numa_node;
    }
    if interface.kind == InterfaceKind::Vlan && interface.fabric_devices.is_empty() {
        interface.fabric_devices.clone_from(&first.fabric_devices);
    }
}
