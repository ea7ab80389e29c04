//! TCP sockets: opening them as planned, and what the kernel knows about them.
#![allow(unsafe_code)]

use std::io;
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, sockopt};

use crate::SocketPlan;

/// Kernel's state of one connection (`TCP_INFO`, tcp(7)).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpState {
    /// Segments sent again since the connection was made.
    pub retransmits: u64,
    /// Smoothed round-trip time in nanoseconds; the kernel keeps microseconds.
    pub round_trip_ns: u64,
    /// Shortest round trip that it saw; none where it saw none.
    pub round_trip_min_ns: Option<u64>,
    /// Mean deviation of the round-trip time in nanoseconds.
    pub round_trip_variance_ns: u64,
    /// Congestion window in packets.
    pub congestion_window_packets: u64,
    /// Congestion window in bytes: packets times the maximum segment size.
    pub congestion_window_bytes: u64,
}

/// Connects to `address` with the options of `plan`. The socket is non-blocking, then and afterwards.
///
/// # Errors
/// `ETIMEDOUT` after `timeout`, what the peer or the network answered, and what the kernel refused: a device that does not exist
/// (`ENODEV`), a source address that is none of this host (`EADDRNOTAVAIL`), or one that does not parse (`EINVAL`).
pub fn open(address: SocketAddr, plan: &SocketPlan, timeout: Duration) -> io::Result<TcpStream> {
    let begin = Instant::now();
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = rustix::net::socket_with(family, SocketType::STREAM, flags, None)?;
    // Buffers before connecting: the window scale is settled by the handshake.
    set_options(socket.as_fd(), plan)?;
    if let Some(device) = &plan.device {
        bind_to_device(socket.as_fd(), device)?;
    }
    if let Some(source) = &plan.source {
        rustix::net::bind(&socket, &source_address(source)?)?;
    }
    match rustix::net::connect(&socket, &address) {
        Ok(()) => {}
        // A connection attempt that a signal interrupts goes on by itself.
        Err(Errno::INPROGRESS | Errno::INTR) => await_connected(&socket, begin, timeout)?,
        Err(errno) => return Err(errno.into()),
    }
    Ok(TcpStream::from(socket))
}

/// Sets the options of `plan` on a connection that was accepted, and makes it non-blocking. Device and source are the
/// listener's, not the connection's.
///
/// # Errors
/// When the kernel refuses an option.
pub fn apply(stream: &TcpStream, plan: &SocketPlan) -> io::Result<()> {
    stream.set_nonblocking(true)?;
    set_options(stream.as_fd(), plan)
}

/// Whether the peer is this host itself, so that nothing leaves over a wire.
#[must_use]
pub fn is_local(stream: &TcpStream) -> bool {
    match (stream.peer_addr(), stream.local_addr()) {
        (Ok(peer), Ok(own)) => peer.ip().to_canonical().is_loopback() || peer.ip() == own.ip(),
        _ => false,
    }
}

/// Kernel's state of a connection.
///
/// # Errors
/// When it says nothing.
pub fn state(stream: &TcpStream) -> io::Result<TcpState> {
    // SAFETY: all-zero is a valid tcp_info.
    let mut info: libc::tcp_info = unsafe { std::mem::zeroed() };
    let mut length = size_of::<libc::tcp_info>() as libc::socklen_t;
    // SAFETY: the kernel writes at most `length` bytes.
    let result = unsafe {
        libc::getsockopt(
            stream.as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            (&raw mut info).cast(),
            &raw mut length,
        )
    };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    let packets = u64::from(info.tcpi_snd_cwnd);
    Ok(TcpState {
        retransmits: u64::from(info.tcpi_total_retrans),
        round_trip_ns: u64::from(info.tcpi_rtt) * 1000,
        // All bits set: it has not seen any.
        round_trip_min_ns: Some(u64::from(info.tcpi_min_rtt) * 1000)
            .filter(|_| !matches!(info.tcpi_min_rtt, 0 | u32::MAX)),
        round_trip_variance_ns: u64::from(info.tcpi_rttvar) * 1000,
        congestion_window_packets: packets,
        congestion_window_bytes: packets * u64::from(info.tcpi_snd_mss),
    })
}

/// Has the kernel say when it got what is read from a stream ([`receive_with_age`]).
///
/// # Errors
/// When the kernel does not.
pub(crate) fn tell_ages(stream: &TcpStream) -> io::Result<()> {
    let on: libc::c_int = 1;
    // SAFETY: the option is an int, which outlives the call.
    let result = unsafe {
        libc::setsockopt(
            stream.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_TIMESTAMPNS,
            (&raw const on).cast(),
            size_of::<libc::c_int>() as libc::socklen_t,
        )
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Memory for what the kernel says beside the bytes, aligned as it wants it.
#[repr(C, align(8))]
struct Beside([u8; 64]);

/// Reads what has come of a stream that [`tell_ages`] was asked of, without waiting: bytes, and for how long the kernel had the last of them, in
/// nanoseconds; 0 where it does not say.
///
/// # Errors
/// Those of `recvmsg`.
pub(crate) fn receive_with_age(stream: &TcpStream, room: &mut [u8]) -> Result<(usize, u64), Errno> {
    let mut part = libc::iovec { iov_base: room.as_mut_ptr().cast(), iov_len: room.len() };
    let mut beside = Beside([0; 64]);
    // SAFETY: all-zero is a valid msghdr.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    (message.msg_iov, message.msg_iovlen) = (&raw mut part, 1);
    (message.msg_control, message.msg_controllen) = (beside.0.as_mut_ptr().cast(), beside.0.len() as _);
    // SAFETY: the kernel writes into the room and beside it, no more than their lengths, which outlive the call.
    let bytes = unsafe { libc::recvmsg(stream.as_raw_fd(), &raw mut message, libc::MSG_DONTWAIT) };
    let Ok(bytes) = usize::try_from(bytes) else {
        return Err(Errno::from_io_error(&io::Error::last_os_error()).unwrap_or(Errno::IO));
    };
    // SAFETY: the kernel has written as many whole entries as it says; one of this type has a timespec as its data, which need not be aligned.
    let came = unsafe {
        let entry = libc::CMSG_FIRSTHDR(&raw const message);
        let is_time = !entry.is_null()
            && ((*entry).cmsg_level, (*entry).cmsg_type) == (libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS);
        is_time.then(|| libc::CMSG_DATA(entry).cast::<libc::timespec>().read_unaligned())
    };
    let age_ns = came.map_or(0, |came| {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::Realtime);
        let ns = |seconds: i64, ns: i64| i128::from(seconds) * 1_000_000_000 + i128::from(ns);
        let age_ns = ns(now.tv_sec, now.tv_nsec) - ns(came.tv_sec, came.tv_nsec);
        // The clock of the day may have been set meanwhile.
        u64::try_from(age_ns.max(0)).unwrap_or(u64::MAX)
    });
    Ok((bytes, age_ns))
}

/// Asks for `SO_ZEROCOPY`, without which `MSG_ZEROCOPY` is refused or ignored.
///
/// # Errors
/// When the kernel has none.
pub(crate) fn enable_zero_copy(stream: &TcpStream) -> io::Result<()> {
    set_int(stream.as_fd(), libc::SOL_SOCKET, libc::SO_ZEROCOPY, 1)
}

fn set_options(socket: BorrowedFd<'_>, plan: &SocketPlan) -> io::Result<()> {
    sockopt::set_tcp_nodelay(socket, plan.no_delay)?;
    let size = |bytes: u64| usize::try_from(bytes).map_err(|_| io::Error::from_raw_os_error(libc::EINVAL));
    if let Some(bytes) = plan.send_buffer_bytes {
        sockopt::set_socket_send_buffer_size(socket, size(bytes)?)?;
    }
    if let Some(bytes) = plan.receive_buffer_bytes {
        sockopt::set_socket_recv_buffer_size(socket, size(bytes)?)?;
    }
    Ok(())
}

/// Binds a socket to a device (`SO_BINDTODEVICE`, socket(7)).
pub(crate) fn bind_to_device(socket: BorrowedFd<'_>, device: &str) -> io::Result<()> {
    // SAFETY: the kernel reads as many bytes as are said.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_BINDTODEVICE,
            device.as_ptr().cast(),
            device.len() as libc::socklen_t,
        )
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

fn set_int(socket: BorrowedFd<'_>, level: i32, name: i32, value: libc::c_int) -> io::Result<()> {
    // SAFETY: the kernel reads one int.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            level,
            name,
            (&raw const value).cast(),
            size_of::<libc::c_int>() as libc::socklen_t,
        )
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// An address without a port, or one with; brackets around IPv6 are taken.
fn source_address(text: &str) -> io::Result<SocketAddr> {
    let bare = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(text);
    bare.parse::<IpAddr>()
        .map(|ip| SocketAddr::new(ip, 0))
        .or_else(|_| text.parse())
        .map_err(|_| io::Error::from_raw_os_error(libc::EINVAL))
}

fn await_connected(socket: &OwnedFd, begin: Instant, timeout: Duration) -> io::Result<()> {
    loop {
        let left = timeout.saturating_sub(begin.elapsed());
        if left.is_zero() {
            return Err(io::Error::from_raw_os_error(libc::ETIMEDOUT));
        }
        let mut fds = [PollFd::new(socket, PollFlags::OUT)];
        let span = Timespec { tv_sec: left.as_secs() as i64, tv_nsec: i64::from(left.subsec_nanos()) };
        match rustix::event::poll(&mut fds, Some(&span)) {
            Ok(0) | Err(Errno::INTR) => {}
            Ok(_) => return Ok(sockopt::socket_error(socket)??),
            Err(errno) => return Err(errno.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn connects_over_both_families_with_its_options() {
        for host in ["127.0.0.1:0", "[::1]:0"] {
            let listener = TcpListener::bind(host).expect("a listener");
            let address = listener.local_addr().expect("an address");
            let plan = SocketPlan {
                no_delay: true,
                send_buffer_bytes: Some(65_536),
                receive_buffer_bytes: Some(32_768),
                source: Some(address.ip().to_string()),
                ..SocketPlan::default()
            };
            let stream = open(address, &plan, SECOND).expect("a connection");
            assert!(sockopt::tcp_nodelay(&stream).expect("an option"));
            // The kernel doubles what is asked for (socket(7)).
            assert_eq!(sockopt::socket_send_buffer_size(&stream).expect("an option"), 131_072);
            assert_eq!(sockopt::socket_recv_buffer_size(&stream).expect("an option"), 65_536);
            assert!(is_local(&stream));
            let state = state(&stream).expect("its state");
            assert!(state.congestion_window_packets > 0, "{state:?}");
            assert!(state.congestion_window_bytes > state.congestion_window_packets, "{state:?}");
        }
    }

    #[test]
    fn what_cannot_be_is_refused_by_its_cause() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a listener");
        let address = listener.local_addr().expect("an address");
        let errno = |plan: &SocketPlan| open(address, plan, SECOND).expect_err("a refusal").raw_os_error();
        let source = |text: &str| SocketPlan { source: Some(text.to_owned()), ..SocketPlan::default() };
        assert_eq!(errno(&source("192.0.2.1")), Some(libc::EADDRNOTAVAIL));
        assert_eq!(errno(&source("nonsense")), Some(libc::EINVAL));
        let device = SocketPlan { device: Some("nosuchdevice0".to_owned()), ..SocketPlan::default() };
        assert!(matches!(errno(&device), Some(libc::ENODEV | libc::EPERM)));
        drop(listener);
        assert_eq!(errno(&SocketPlan::default()), Some(libc::ECONNREFUSED));
    }

    #[test]
    fn a_silent_network_ends_with_the_time() {
        // A backlog of one that nobody accepts from: further attempts get no answer.
        let flags = SocketFlags::CLOEXEC;
        let listener =
            rustix::net::socket_with(AddressFamily::INET, SocketType::STREAM, flags, None).expect("a socket");
        rustix::net::bind(&listener, &"127.0.0.1:0".parse::<SocketAddr>().expect("an address"))
            .expect("bind");
        rustix::net::listen(&listener, 0).expect("listen");
        let address = TcpListener::from(listener);
        let target = address.local_addr().expect("an address");
        let short = Duration::from_millis(50);
        let mut held = Vec::new();
        let refused = (0..8).find_map(|_| match open(target, &SocketPlan::default(), short) {
            Ok(stream) => {
                held.push(stream);
                None
            }
            Err(error) => Some(error),
        });
        assert_eq!(refused.expect("a full backlog").raw_os_error(), Some(libc::ETIMEDOUT));
    }
}
