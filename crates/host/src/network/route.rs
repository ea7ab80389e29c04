//! Which way the kernel would send something. Nothing is sent.
#![allow(unsafe_code)]

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd, AsRawFd};

use super::links::{self, Link};

/// A port for the look-up where the address has none: nothing is sent to it.
const DISCARD_PORT: u16 = 9;

/// The way to an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    /// Address that the kernel would send from.
    pub source: IpAddr,
    /// Interface that has it, loopback for the machine's own addresses; none when no interface has it.
    pub interface: Option<String>,
    /// Whether the address is the machine's own: nothing leaves it, whatever interface has the address.
    pub is_local: bool,
    /// Largest packet that is known to pass the whole way, in bytes.
    pub path_mtu_bytes: Option<u32>,
}

/// The way that the kernel would take to `target` from the calling thread's network namespace.
///
/// The interface is found by the source address, so of several with the same address it is the first.
///
/// # Errors
/// The kernel's: `ENETUNREACH` without a route.
pub fn route_to(target: SocketAddr) -> io::Result<Route> {
    let any = match target {
        SocketAddr::V4(_) => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        SocketAddr::V6(_) => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
    };
    let socket = UdpSocket::bind((any, 0))?;
    let mut remote = target;
    if remote.port() == 0 {
        remote.set_port(DISCARD_PORT);
    }
    socket.connect(remote)?;
    let source = socket.local_addr()?.ip();
    let links = links::links()?;
    let owner = |address: IpAddr| links.iter().find(|link| has(link, address));
    let is_local = target.ip().is_loopback() || owner(target.ip()).is_some();
    let loopback = || links.iter().find(|link| link.flags & libc::IFF_LOOPBACK as u32 != 0);
    let interface = if is_local { loopback() } else { owner(source) };
    Ok(Route {
        source,
        interface: interface.map(|link| link.name.clone()),
        is_local,
        path_mtu_bytes: path_mtu_bytes(&socket),
    })
}

fn has(link: &Link, address: IpAddr) -> bool {
    link.addresses.iter().any(|own| own.address == address)
}

/// Largest packet that is known to pass from a connected socket to its other end (`IP_MTU`, `IPV6_MTU`), in bytes.
#[must_use]
pub fn path_mtu_bytes(socket: &impl AsFd) -> Option<u32> {
    let levels = [(libc::IPPROTO_IP, libc::IP_MTU), (libc::IPPROTO_IPV6, libc::IPV6_MTU)];
    let ask = |(level, option)| {
        let mut mtu: libc::c_int = 0;
        let mut length = size_of_val(&mtu) as libc::socklen_t;
        // SAFETY: the kernel writes at most `length` bytes, an int's, to `mtu`; both outlive the call.
        let result = unsafe {
            libc::getsockopt(
                socket.as_fd().as_raw_fd(),
                level,
                option,
                (&raw mut mtu).cast(),
                &raw mut length,
            )
        };
        (result == 0).then_some(mtu).and_then(|mtu| u32::try_from(mtu).ok()).filter(|&mtu| mtu > 0)
    };
    // Sockets of IPv6 that are connected to a mapped address answer the first.
    levels.into_iter().find_map(ask)
}
