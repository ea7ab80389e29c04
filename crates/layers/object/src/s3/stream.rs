//! Bytes to and from a server: a socket that never blocks, bare or under TLS.

use std::io::{self, IoSlice, IoSliceMut, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};

use rpc::tcp::poller::Interest;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SendAncillaryBuffer, SendFlags, SocketFlags, SocketType};
use rustls::ClientConnection;

use super::endpoint::Tls;

/// A connection to a server. `WouldBlock` says: wait for what [`Stream::interest`] names.
pub(crate) enum Stream {
    Plain(TcpStream),
    Tls(Box<TlsStream>),
}

/// How far a connection is from carrying bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Opening {
    /// The other side has not accepted it, or nothing was sent yet that would show it.
    Connecting,
    /// TLS shakes hands.
    ShakingHands,
    /// It carries bytes.
    Open,
}

pub(crate) struct TlsStream {
    socket: TcpStream,
    session: ClientConnection,
    /// Something was sent: it is connected.
    has_sent: bool,
}

impl Stream {
    /// Begins to connect; what comes of it shows when something is sent.
    pub(crate) fn connect(address: SocketAddr, tls: Option<&Tls>) -> io::Result<Self> {
        let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let socket = rustix::net::socket_with(family, SocketType::STREAM, flags, None)?;
        rustix::net::sockopt::set_tcp_nodelay(&socket, true)?;
        match rustix::net::connect(&socket, &address) {
            Ok(()) | Err(Errno::INPROGRESS | Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
        let socket = TcpStream::from(socket);
        let Some(tls) = tls else { return Ok(Self::Plain(socket)) };
        let session =
            ClientConnection::new(tls.config.clone(), tls.name.clone()).map_err(io::Error::other)?;
        Ok(Self::Tls(Box::new(TlsStream { socket, session, has_sent: false })))
    }

    pub(crate) fn socket(&self) -> &TcpStream {
        match self {
            Self::Plain(socket) => socket,
            Self::Tls(tls) => &tls.socket,
        }
    }

    /// How far it is, as far as what was sent shows it.
    pub(crate) fn opening(&self) -> Opening {
        match self {
            Self::Plain(_) => Opening::Connecting,
            Self::Tls(tls) if !tls.has_sent => Opening::Connecting,
            Self::Tls(tls) if tls.session.is_handshaking() => Opening::ShakingHands,
            Self::Tls(_) => Opening::Open,
        }
    }

    /// Events that it waits for after `WouldBlock`.
    pub(crate) fn interest(&self, is_sending: bool) -> Interest {
        match self {
            Self::Plain(_) => Interest { read: !is_sending, write: is_sending },
            Self::Tls(tls) => {
                let write = tls.session.wants_write() || (is_sending && !tls.session.is_handshaking());
                Interest { read: tls.session.wants_read() || !is_sending, write }
            }
        }
    }

    /// Sends of `head` and `body`. How many bytes it took; all of them have left its memory only after [`Stream::flush`].
    pub(crate) fn send(&mut self, head: &[u8], body: &[u8]) -> io::Result<usize> {
        match self {
            Self::Plain(socket) if body.is_empty() => {
                Ok(rustix::net::send(socket, head, SendFlags::NOSIGNAL)?)
            }
            Self::Plain(socket) => {
                let parts = [IoSlice::new(head), IoSlice::new(body)];
                let mut control = SendAncillaryBuffer::default();
                Ok(rustix::net::sendmsg(socket, &parts, &mut control, SendFlags::NOSIGNAL)?)
            }
            Self::Tls(tls) => {
                tls.shake_hands()?;
                tls.flush()?;
                let sent = tls.session.writer().write(head)?;
                if sent < head.len() {
                    return Ok(sent);
                }
                Ok(sent + tls.session.writer().write(body)?)
            }
        }
    }

    pub(crate) fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Plain(_) => Ok(()),
            Self::Tls(tls) => tls.flush(),
        }
    }

    /// Reads what there is; 0 at the end of the connection.
    pub(crate) fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(socket) => Ok(rustix::net::recv(socket, into, rustix::net::RecvFlags::empty())?.0),
            Self::Tls(tls) => tls.read(into),
        }
    }

    /// Reads what there is into `first`, then into `second`.
    pub(crate) fn read_both(&mut self, first: &mut [u8], second: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(socket) => {
                Ok(rustix::io::readv(socket, &mut [IoSliceMut::new(first), IoSliceMut::new(second)])?)
            }
            Self::Tls(tls) => tls.read(first),
        }
    }
}

impl TlsStream {
    /// Shakes hands. Once the first message is out it gives the caller a turn, however fast the answer is: connecting
    /// and shaking hands are timed apart.
    fn shake_hands(&mut self) -> io::Result<()> {
        while self.session.is_handshaking() {
            let had_sent = self.has_sent;
            self.flush()?;
            if !had_sent && self.has_sent {
                return Err(io::ErrorKind::WouldBlock.into());
            }
            if self.session.is_handshaking() {
                self.fill()?;
            }
        }
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        while self.session.wants_write() {
            self.session.write_tls(&mut self.socket)?;
            self.has_sent = true;
        }
        Ok(())
    }

    fn fill(&mut self) -> io::Result<()> {
        if self.session.read_tls(&mut self.socket)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.session
            .process_new_packets()
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
        Ok(())
    }

    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.session.reader().read(into) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                read => return read,
            }
            self.fill()?;
            self.flush()?;
        }
    }
}
