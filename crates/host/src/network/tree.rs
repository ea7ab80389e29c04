//! Facts of an interface from sysfs (Documentation/ABI/testing/sysfs-class-net).

use std::path::{Path, PathBuf};

use super::fabric::{self, FabricDevice};
use super::links::Link;
use super::{Interface, InterfaceKind, LinkState};
use crate::source;

/// Speeds are in megabits a second there.
const MEGABIT: u64 = 1_000_000;
/// "Unknown" of drivers that print their -1 without a sign.
const SPEED_UNKNOWN: i64 = u32::MAX as i64;
/// Device directories are not followed further up than this.
const ANCESTORS_MAX: usize = 16;

/// The interfaces of a tree as links without addresses: a tree of another machine, or a made-up one.
#[must_use]
pub fn links_of_tree(sys_class: &Path) -> Vec<Link> {
    let net = sys_class.join("net");
    let link = |name: String| {
        let directory = net.join(&name);
        let flags = source::text(directory.join("flags"))?;
        Some(Link {
            index: source::value(directory.join("ifindex"))?,
            flags: flags_of(u32::from_str_radix(flags.trim_start_matches("0x"), 16).ok()?, &directory),
            mtu_bytes: source::value(directory.join("mtu")),
            driver: None,
            bus: None,
            addresses: vec![],
            name,
        })
    };
    let mut links: Vec<Link> = source::names(&net).into_iter().filter_map(link).collect();
    links.sort_by_key(|link| link.index);
    links
}

/// The file `flags` lacks the bits of the carrier that system calls add.
fn flags_of(flags: u32, directory: &Path) -> u32 {
    let operational = source::text(directory.join("operstate"));
    let runs = match operational.as_deref() {
        Some("up") => true,
        Some("unknown") => source::switch(directory.join("carrier")).unwrap_or(false),
        _ => false,
    };
    let running = libc::IFF_RUNNING as u32;
    if runs { flags | running } else { flags & !running }
}

/// The facts about one link.
pub(super) fn interface(sys_class: &Path, link: &Link, devices: &[FabricDevice]) -> Interface {
    let directory = sys_class.join("net").join(&link.name);
    let known = source::value(directory.join("ifindex")) == Some(link.index);
    let directory = known.then_some(directory);
    let device =
        directory.as_ref().and_then(|directory| std::fs::canonicalize(directory.join("device")).ok());
    let kind = kind(link, directory.as_deref(), device.is_some());
    let own_driver =
        device.as_ref().and_then(|device| std::fs::read_link(device.join("driver")).ok()).and_then(file_name);
    let speed = directory.as_ref().and_then(|directory| source::value(directory.join("speed")));
    Interface {
        name: link.name.clone(),
        index: link.index,
        kind,
        state: state(link.flags),
        speed_bits_per_second: speed.filter(|_| kind != InterfaceKind::Loopback).and_then(bits_per_second),
        mtu_bytes: link.mtu_bytes,
        numa_node: device.as_deref().and_then(numa_node),
        driver: own_driver.or_else(|| link.driver.clone()),
        is_hardware_backed: kind == InterfaceKind::Physical,
        addresses: link.addresses.clone(),
        fabric_devices: directory
            .as_ref()
            .map(|directory| {
                fabric::of_interface(devices, &link.name, source::value(directory.join("dev_port")))
            })
            .unwrap_or_default(),
        lower: directory.as_deref().map(lower).unwrap_or_default(),
    }
}

fn file_name(path: PathBuf) -> Option<String> {
    path.file_name().map(|name| name.to_string_lossy().into_owned())
}

fn state(flags: u32) -> LinkState {
    if flags & libc::IFF_UP as u32 == 0 {
        LinkState::Down
    } else if flags & libc::IFF_RUNNING as u32 == 0 {
        LinkState::NoCarrier
    } else {
        LinkState::Up
    }
}

fn kind(link: &Link, directory: Option<&Path>, has_device: bool) -> InterfaceKind {
    if link.flags & libc::IFF_LOOPBACK as u32 != 0 {
        return InterfaceKind::Loopback;
    }
    let uevent = directory.and_then(|directory| source::text(directory.join("uevent"))).unwrap_or_default();
    let device_type = uevent.lines().find_map(|line| line.strip_prefix("DEVTYPE="));
    let has = |entry: &str| directory.is_some_and(|directory| directory.join(entry).exists());
    match (device_type, link.driver.as_deref()) {
        (Some("bond"), _) | (_, Some("bonding" | "team")) => InterfaceKind::Bond,
        (Some("vlan"), _) | (_, Some("802.1Q VLAN Support")) => InterfaceKind::Vlan,
        (Some("bridge"), _) | (_, Some("bridge")) => InterfaceKind::Bridge,
        _ if has("bonding") => InterfaceKind::Bond,
        _ if has("bridge") => InterfaceKind::Bridge,
        _ if has("parent") => InterfaceKind::Vlan,
        _ if has_device => InterfaceKind::Physical,
        _ if directory.is_none() && link.bus.as_deref().is_some_and(is_device_bus) => InterfaceKind::Physical,
        _ => InterfaceKind::Virtual,
    }
}

/// Whether it is a place on a bus, such as `0000:00:03.0`; tun and others put words of their own there.
fn is_device_bus(bus: &str) -> bool {
    bus.contains(':') && bus.contains('.')
}

fn bits_per_second(megabits: i64) -> Option<u64> {
    let known = megabits > 0 && megabits != SPEED_UNKNOWN;
    u64::try_from(megabits).ok().filter(|_| known)?.checked_mul(MEGABIT)
}

/// The nearest node number up the tree of devices; -1 stands for none.
fn numa_node(device: &Path) -> Option<u32> {
    device
        .ancestors()
        .take(ANCESTORS_MAX)
        .take_while(|directory| directory.file_name().is_some_and(|name| name != "devices"))
        .find_map(|directory| source::value::<i64>(directory.join("numa_node")))
        .and_then(|node| u32::try_from(node).ok())
}

/// Interfaces that it is made of: links `lower_NAME`, and the parent of a partition of InfiniBand.
fn lower(directory: &Path) -> Vec<String> {
    let names = source::names(directory).into_iter();
    let links = names.filter_map(|name| name.strip_prefix("lower_").map(str::to_owned));
    links.chain(source::text(directory.join("parent"))).collect()
}
