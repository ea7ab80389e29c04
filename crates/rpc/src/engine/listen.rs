//! Listening sockets.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::AsFd;

use driver::{Error, ErrorKind};
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, listen as start, socket_with, sockopt};

use crate::SocketPlan;
use crate::socket::bind_to_device;

/// Connections that the kernel keeps until they are accepted.
const BACKLOG: i32 = 1024;

/// Listens at all addresses, non-blocking; each with the address that it came to be. Port 0 is chosen once: the others with port 0 follow
/// the first.
///
/// # Errors
/// In one line what is wrong with which address.
pub(super) fn listen(
    addresses: &[SocketAddr],
    plan: &SocketPlan,
) -> Result<Vec<(TcpListener, SocketAddr)>, Error> {
    let mut listeners: Vec<(TcpListener, SocketAddr)> = Vec::new();
    for &wanted in addresses {
        let mut address = wanted;
        if let Some((_, first)) = listeners.first().filter(|_| wanted.port() == 0) {
            address.set_port(first.port());
        }
        let listener = open(address, plan).map_err(|error| explain(address, plan, error))?;
        let local = listener.local_addr().map_err(|error| explain(address, plan, error))?;
        listeners.push((listener, local));
    }
    Ok(listeners)
}

fn open(address: SocketAddr, plan: &SocketPlan) -> io::Result<TcpListener> {
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = socket_with(family, SocketType::STREAM, flags, None)?;
    // An engine that is started again does not wait for the old connections' last minutes.
    sockopt::set_socket_reuseaddr(&socket, true)?;
    if address.is_ipv6() {
        sockopt::set_ipv6_v6only(&socket, true)?;
    }
    // Connections inherit the sizes; set later they would not reach the window scale.
    let size = |bytes: u64| usize::try_from(bytes).map_err(|_| io::Error::from_raw_os_error(libc::EINVAL));
    if let Some(bytes) = plan.send_buffer_bytes {
        sockopt::set_socket_send_buffer_size(&socket, size(bytes)?)?;
    }
    if let Some(bytes) = plan.receive_buffer_bytes {
        sockopt::set_socket_recv_buffer_size(&socket, size(bytes)?)?;
    }
    if let Some(device) = &plan.device {
        bind_to_device(socket.as_fd(), device)?;
    }
    bind(&socket, &address)?;
    start(&socket, BACKLOG)?;
    Ok(TcpListener::from(socket))
}

fn explain(address: SocketAddr, plan: &SocketPlan, source: io::Error) -> Error {
    let (message, remedy) = match source.raw_os_error() {
        Some(libc::EADDRINUSE) => {
            ("another process listens on this address", "use another port, or port 0 for a free one")
        }
        Some(libc::EADDRNOTAVAIL) => {
            ("this host has no such address", "strata net scan shows the addresses of this host")
        }
        Some(libc::EACCES) => ("this port is reserved", "use a port of 1024 or more"),
        Some(libc::ENODEV) => {
            ("this host has no such device", "strata net scan shows the devices of this host")
        }
        Some(libc::EPERM) => {
            ("sockets may not be bound to a device", "leave the device out, or allow CAP_NET_RAW")
        }
        _ => ("cannot listen", "use another address"),
    };
    let mut error = Error::system("engine", message, source).with("address", address);
    if let Some(device) = &plan.device {
        error = error.with("device", device);
    }
    debug_assert_eq!(error.kind(), ErrorKind::System);
    error.remedy(remedy)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> SocketAddr {
        text.parse().expect("an address")
    }

    #[test]
    fn several_addresses_share_a_port() {
        let both = [address("127.0.0.1:0"), address("[::1]:0")];
        let listeners = listen(&both, &SocketPlan::default()).expect("both families");
        assert_eq!(listeners[0].1.port(), listeners[1].1.port());
        assert_ne!(listeners[0].1.port(), 0);
    }

    #[test]
    fn what_is_wrong_is_one_clear_line() {
        let plan = SocketPlan::default();
        let first = listen(&[address("127.0.0.1:0")], &plan).expect("a port");
        let taken = listen(&[first[0].1], &plan).expect_err("taken").to_string();
        assert!(
            taken.contains("another process listens") && taken.contains(&first[0].1.to_string()),
            "{taken}"
        );
        let foreign = listen(&[address("192.0.2.1:0")], &plan).expect_err("not here").to_string();
        assert!(foreign.contains("no such address"), "{foreign}");
        let device = SocketPlan { device: Some("nosuchdevice0".to_owned()), ..plan };
        let missing = listen(&[address("127.0.0.1:0")], &device).expect_err("no device").to_string();
        assert!(missing.contains("device=nosuchdevice0"), "{missing}");
        assert_eq!(format!("{taken}{foreign}{missing}").lines().count(), 1);
    }
}
