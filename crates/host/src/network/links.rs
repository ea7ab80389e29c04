//! Interfaces as the kernel lists them for the calling thread's network namespace.
#![allow(unsafe_code)]

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, UdpSocket};
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;

use nix::ifaddrs::getifaddrs;
use nix::sys::socket::SockaddrStorage;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Length of texts in `struct ethtool_drvinfo` (linux/ethtool.h).
const DRIVER_TEXT_BYTES: usize = 32;

/// One address of an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct InterfaceAddress {
    /// The address.
    pub address: IpAddr,
    /// Leading bits that its network shares.
    pub prefix_bits: u8,
}

impl InterfaceAddress {
    /// Whether `other` lies in its network: reached without a gateway.
    #[must_use]
    pub fn is_on_link(&self, other: IpAddr) -> bool {
        let (ours, theirs, width) = match (self.address, other) {
            (IpAddr::V4(ours), IpAddr::V4(theirs)) => {
                (u128::from(ours.to_bits()), u128::from(theirs.to_bits()), 32)
            }
            (IpAddr::V6(ours), IpAddr::V6(theirs)) => (ours.to_bits(), theirs.to_bits(), 128),
            _ => return false,
        };
        let host_bits = u32::saturating_sub(width, self.prefix_bits.into());
        (ours ^ theirs).checked_shr(host_bits).unwrap_or(0) == 0
    }

    /// Whether it is valid on its link only (169.254.0.0/16, fe80::/10).
    #[must_use]
    pub fn is_link_local(&self) -> bool {
        match self.address {
            IpAddr::V4(address) => address.is_link_local(),
            IpAddr::V6(address) => address.is_unicast_link_local(),
        }
    }
}

impl std::fmt::Display for InterfaceAddress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.address, self.prefix_bits)
    }
}

/// Facts of an interface that the kernel tells without sysfs. Cheap to read: a change of any of them means that facts kept from before no
/// longer hold.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Link {
    /// Its name.
    pub name: String,
    /// The kernel's number for it.
    pub index: u32,
    /// `IFF_*` (netdevice(7)); `IFF_RUNNING` stands for a carrier.
    pub flags: u32,
    /// Largest packet in bytes.
    pub mtu_bytes: Option<u32>,
    /// The kernel's driver.
    pub driver: Option<String>,
    /// Where its device is attached, such as `0000:00:03.0`.
    pub bus: Option<String>,
    /// Its addresses, IPv4 first.
    pub addresses: Vec<InterfaceAddress>,
}

/// Lists the interfaces of the calling thread's network namespace, by index.
///
/// # Errors
/// The kernel's.
pub fn links() -> io::Result<Vec<Link>> {
    let mut found: BTreeMap<String, Link> = BTreeMap::new();
    for entry in getifaddrs()? {
        // An alias (`eth0:1`) is another address of its interface.
        let name = entry.interface_name.split(':').next().unwrap_or_default().to_owned();
        let link = found.entry(name.clone()).or_insert_with(|| Link {
            name,
            index: 0,
            flags: entry.flags.bits() as u32,
            mtu_bytes: None,
            driver: None,
            bus: None,
            addresses: vec![],
        });
        let Some(address) = entry.address else { continue };
        if let Some(packet) = address.as_link_addr() {
            link.index = packet.ifindex() as u32;
        } else if let Some(address) = ip_of(&address) {
            let mask = entry.netmask.as_ref().and_then(ip_of);
            link.addresses.push(InterfaceAddress { address, prefix_bits: prefix_bits(address, mask) });
        }
    }
    let socket = UdpSocket::bind(("127.0.0.1", 0)).or_else(|_| UdpSocket::bind(("::", 0)));
    let mut links: Vec<Link> = found.into_values().collect();
    for link in &mut links {
        link.addresses.sort_unstable();
        link.addresses.dedup();
        if let Ok(socket) = &socket {
            link.mtu_bytes = mtu_bytes(socket, &link.name);
            (link.driver, link.bus) = driver(socket, &link.name);
        }
    }
    links.sort_by_key(|link| link.index);
    Ok(links)
}

/// Number of the calling thread's network namespace; 0 where the kernel does not tell.
#[must_use]
pub fn namespace() -> u64 {
    std::fs::metadata("/proc/thread-self/ns/net").map_or(0, |metadata| metadata.ino())
}

fn ip_of(address: &SockaddrStorage) -> Option<IpAddr> {
    let four = address.as_sockaddr_in().map(|address| IpAddr::V4(address.ip()));
    four.or_else(|| address.as_sockaddr_in6().map(|address| IpAddr::V6(address.ip())))
}

/// Bits of a netmask; of none, the whole address.
fn prefix_bits(address: IpAddr, mask: Option<IpAddr>) -> u8 {
    let bits = match (address, mask) {
        (IpAddr::V4(_), Some(IpAddr::V4(mask))) => mask.to_bits().leading_ones(),
        (IpAddr::V6(_), Some(IpAddr::V6(mask))) => mask.to_bits().leading_ones(),
        (IpAddr::V4(_), _) => 32,
        (IpAddr::V6(_), _) => 128,
    };
    bits as u8
}

/// A request about the interface `name`; none for names that no interface can have.
fn request(name: &str) -> Option<libc::ifreq> {
    if name.len() >= libc::IFNAMSIZ {
        return None;
    }
    // SAFETY: an ifreq is numbers and pointers in a union; all of them may be zero.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (slot, byte) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *slot = byte as libc::c_char;
    }
    Some(request)
}

fn mtu_bytes(socket: &UdpSocket, name: &str) -> Option<u32> {
    let mut request = request(name)?;
    // SAFETY: SIOCGIFMTU reads the name of the ifreq and writes its ifru_mtu; the ifreq outlives the call.
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCGIFMTU, &raw mut request) };
    // SAFETY: the call wrote this member; it is an integer, for which any bits are valid.
    let mtu = unsafe { request.ifr_ifru.ifru_mtu };
    (result == 0).then_some(mtu).and_then(|mtu| u32::try_from(mtu).ok())
}

/// `struct ethtool_drvinfo` of linux/ethtool.h.
#[repr(C)]
struct DriverRequest {
    command: u32,
    driver: [u8; DRIVER_TEXT_BYTES],
    version: [u8; DRIVER_TEXT_BYTES],
    firmware_version: [u8; DRIVER_TEXT_BYTES],
    bus: [u8; DRIVER_TEXT_BYTES],
    rom_version: [u8; DRIVER_TEXT_BYTES],
    reserved: [u8; 12],
    counts: [u32; 5],
}

/// The driver's name and where the device is attached; nothing for interfaces whose driver does not say.
fn driver(socket: &UdpSocket, name: &str) -> (Option<String>, Option<String>) {
    const ETHTOOL_GDRVINFO: u32 = 3;
    const SIOCETHTOOL: libc::c_ulong = 0x8946;
    let Some(mut request) = request(name) else { return (None, None) };
    let mut info = DriverRequest {
        command: ETHTOOL_GDRVINFO,
        driver: [0; DRIVER_TEXT_BYTES],
        version: [0; DRIVER_TEXT_BYTES],
        firmware_version: [0; DRIVER_TEXT_BYTES],
        bus: [0; DRIVER_TEXT_BYTES],
        rom_version: [0; DRIVER_TEXT_BYTES],
        reserved: [0; 12],
        counts: [0; 5],
    };
    request.ifr_ifru.ifru_data = (&raw mut info).cast();
    // SAFETY: ETHTOOL_GDRVINFO writes one ethtool_drvinfo to ifru_data; `info` has its layout and, like the ifreq,
    // outlives the call.
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), SIOCETHTOOL as _, &raw mut request) };
    if result != 0 {
        return (None, None);
    }
    (text(&info.driver), text(&info.bus))
}

/// The text before the first zero byte; none when it is empty or stands for nothing.
fn text(bytes: &[u8]) -> Option<String> {
    let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
    let text = String::from_utf8_lossy(&bytes[..end]).trim().to_owned();
    (!text.is_empty() && text != "N/A").then_some(text)
}
