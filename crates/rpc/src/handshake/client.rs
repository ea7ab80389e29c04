//! The client's side.

use std::io;
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::{Duration, Instant};

use driver::{Error, Secret};
use ring::rand::{SecureRandom, SystemRandom};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use super::frames::{
    Challenge, FABRIC_NAME_BYTES_MAX, HELLO_BYTES_MAX, Hello, Malformed, Proof, REPLY_HEAD_BYTES, Reply,
    Welcome, hello_bytes, parse_reply,
};
use super::{NO_PROOF, client_words, engine_words};
use crate::address::Address;
use crate::inbox::Role;
use crate::{EndpointPlan, SocketPlan, socket};

/// How long a wait may last before the interrupt is looked at again.
const SLICE: Duration = Duration::from_millis(20);

/// A connection that an engine has taken.
#[derive(Debug)]
pub struct Connected {
    /// The connection, non-blocking, with the options of its plan.
    pub stream: TcpStream,
    /// The endpoint's name on the fabric; empty on sockets.
    pub fabric_name: Vec<u8>,
    /// Rank of the engine.
    pub rank: u32,
}

/// Who answers at an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Probe {
    /// An engine: its rank and the label of its group.
    Engine {
        /// Its rank.
        rank: u32,
        /// Label of its group ([`super::group_label`]).
        group: u64,
    },
    /// Something that is no engine of this version.
    Stranger,
    /// Nobody.
    Nobody,
}

/// Connects to an endpoint and proves what is asked for. All of it together takes `timeout_ns` nanoseconds at most; `interrupt` ends it
/// earlier.
///
/// # Errors
/// With the error number that RPCs are failed by: `ECONNREFUSED`, `ETIMEDOUT`, `EHOSTUNREACH`, `ECONNRESET`, `EACCES` (the token is
/// missing or another one, on either side), `ENXIO` (no such tag, or another rank), `EUSERS` (too many connections),
/// `EPROTONOSUPPORT` (the role is not served), `EBUSY`, `EPROTO` (no engine of this version), `EINTR`.
#[allow(clippy::too_many_arguments)]
pub fn connect(
    endpoint: &EndpointPlan,
    role: Role,
    session: [u8; 16],
    fabric_name: &[u8],
    socket: &SocketPlan,
    secret: Option<&Secret>,
    timeout_ns: u64,
    interrupt: &AtomicBool,
) -> Result<Connected, Error> {
    let limit = Limit { end: deadline(timeout_ns), interrupt };
    let failed = |failure: Failure| failure.into_error(&endpoint.label, &endpoint.uri);
    if fabric_name.len() > FABRIC_NAME_BYTES_MAX {
        return Err(Error::usage("connect", "the fabric name is too long")
            .with("bytes", fabric_name.len())
            .remedy(format!("at most {FABRIC_NAME_BYTES_MAX} bytes are accepted")));
    }
    let address = Address::parse(&endpoint.uri)?;
    let stream = open(address, socket.clone(), &limit).map_err(|source| failed(source.into()))?;
    let hello = Hello {
        role,
        tag: endpoint.tag,
        rank: Some(endpoint.rank).filter(|&rank| rank != u32::MAX),
        session,
        nonce: random()?,
        fabric_name: fabric_name.to_vec(),
    };
    let mut talk = Talk { stream, limit };
    let welcome = talk.shake(&hello, secret).map_err(failed)?;
    Ok(Connected { stream: talk.stream, fabric_name: welcome.fabric_name, rank: welcome.rank })
}

/// Asks who answers at `uri`, and hangs up. Needs no token.
#[must_use]
pub fn probe(uri: &str, timeout: Duration) -> Probe {
    let never = AtomicBool::new(false);
    let limit = Limit { end: Instant::now() + timeout, interrupt: &never };
    let Ok(address) = Address::parse(uri) else { return Probe::Nobody };
    let Ok(stream) = open(address, SocketPlan::default(), &limit) else { return Probe::Nobody };
    let Ok(nonce) = random() else { return Probe::Stranger };
    let hello =
        Hello { role: Role::Messages, tag: 0, rank: None, session: [0; 16], nonce, fabric_name: Vec::new() };
    match (Talk { stream, limit }).challenge(&hello) {
        Ok((challenge, ..)) => Probe::Engine { rank: challenge.rank, group: challenge.group },
        Err(_) => Probe::Stranger,
    }
}

fn deadline(timeout_ns: u64) -> Instant {
    // A year is as good as never, and fits every clock.
    Instant::now() + Duration::from_nanos(timeout_ns).min(Duration::from_secs(365 * 86400))
}

/// Draws the name of a session: the connections that belong together share one.
///
/// # Errors
/// When the system has no random bytes.
pub fn new_session() -> Result<[u8; 16], Error> {
    random()
}

fn random<const N: usize>() -> Result<[u8; N], Error> {
    let mut bytes = [0; N];
    SystemRandom::new().fill(&mut bytes).map_err(|_| {
        Error::system("connect", "cannot generate random bytes", io::Error::from_raw_os_error(libc::EIO))
    })?;
    Ok(bytes)
}

/// Until when, and by what flag, to wait.
struct Limit<'a> {
    end: Instant,
    interrupt: &'a AtomicBool,
}

impl Limit<'_> {
    /// How long to wait until the next look.
    fn slice(&self) -> io::Result<Duration> {
        if self.interrupt.load(Ordering::Relaxed) {
            return Err(io::Error::from_raw_os_error(libc::EINTR));
        }
        let left = self.end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::Error::from_raw_os_error(libc::ETIMEDOUT));
        }
        Ok(left.min(SLICE))
    }
}

/// Resolves and connects on a thread of its own: neither the resolver nor a connection attempt can be interrupted. The thread is left behind
/// when it is too late; it ends by itself.
fn open(address: Address, plan: SocketPlan, limit: &Limit<'_>) -> io::Result<TcpStream> {
    let (sender, receiver) = sync_channel(1);
    let end = limit.end;
    let work = move || {
        // Nobody waits any more when this fails; the connection closes.
        let _ = sender.send(open_any(&address, &plan, end));
    };
    std::thread::Builder::new().name("connect".to_owned()).stack_size(256 << 10).spawn(work)?;
    loop {
        match receiver.recv_timeout(limit.slice()?) {
            Ok(result) => return result,
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Err(io::Error::from_raw_os_error(libc::EIO)),
        }
    }
}

/// Tries the addresses of a host in turn, each with its share of the time that is left.
fn open_any(address: &Address, plan: &SocketPlan, end: Instant) -> io::Result<TcpStream> {
    let found = address.resolve()?;
    let mut last = io::Error::from_raw_os_error(libc::EHOSTUNREACH);
    for (tried, &candidate) in found.iter().enumerate() {
        let left = end.saturating_duration_since(Instant::now());
        let share = left / (found.len() - tried) as u32;
        match open_one(candidate, plan, share) {
            Ok(stream) => return Ok(stream),
            Err(error) => last = error,
        }
    }
    Err(last)
}

fn open_one(address: SocketAddr, plan: &SocketPlan, share: Duration) -> io::Result<TcpStream> {
    if share.is_zero() {
        return Err(io::Error::from_raw_os_error(libc::ETIMEDOUT));
    }
    let stream = socket::open(address, plan, share)?;
    // Linux connects a socket to itself when the port is one of its own ephemeral ones and nobody listens.
    if stream.local_addr().ok() == stream.peer_addr().ok() {
        return Err(io::Error::from_raw_os_error(libc::ECONNREFUSED));
    }
    Ok(stream)
}

/// Why a connection did not come about.
enum Failure {
    System(io::Error),
    Malformed(Malformed),
    Unexpected,
    Refused(super::Refusal),
    /// The engine demands a token, and there is none.
    NoSecret,
    /// The engine did not prove that it knows the token.
    Unproven {
        demands_token: bool,
    },
}

impl From<io::Error> for Failure {
    fn from(source: io::Error) -> Self {
        Self::System(source)
    }
}

impl From<Malformed> for Failure {
    fn from(malformed: Malformed) -> Self {
        Self::Malformed(malformed)
    }
}

impl Failure {
    fn into_error(self, label: &str, uri: &str) -> Error {
        let error = |message: String, errno: i32| {
            Error::system("connect", message, io::Error::from_raw_os_error(errno))
        };
        let (error, remedy) = match self {
            Self::System(source) => (Error::system("connect", "cannot connect", source), None),
            Self::Malformed(malformed) => {
                let message = format!("no engine of this version answers: {malformed}");
                (error(message, libc::EPROTO), Some("use the address of a strata engine"))
            }
            Self::Unexpected => {
                (error("the engine's answers are out of order".to_owned(), libc::EPROTO), None)
            }
            Self::Refused(refusal) => (
                error(format!("the engine rejects the connection: {}", refusal.text), refusal.code.errno()),
                None,
            ),
            Self::NoSecret => (
                error("the engine requires a token".to_owned(), libc::EACCES),
                Some("use the token that the engine was started with"),
            ),
            Self::Unproven { demands_token: true } => (
                error("the engine did not prove that it knows the token".to_owned(), libc::EACCES),
                Some("use the token that the engine was started with"),
            ),
            Self::Unproven { demands_token: false } => (
                error("the engine has no token, so it cannot prove its identity".to_owned(), libc::EACCES),
                Some("start it with the same token, or connect without a token"),
            ),
        };
        let error = error.with("endpoint", label).with("address", uri);
        match remedy {
            Some(remedy) => error.remedy(remedy),
            None => error,
        }
    }
}

/// A connection in the middle of its handshake.
struct Talk<'a> {
    stream: TcpStream,
    limit: Limit<'a>,
}

impl Talk<'_> {
    fn shake(&mut self, hello: &Hello, secret: Option<&Secret>) -> Result<Welcome, Failure> {
        let (challenge, said, heard) = self.challenge(hello)?;
        match (challenge.demands_token, secret) {
            (true, None) => return Err(Failure::NoSecret),
            // Somebody in between could otherwise talk a client out of its token.
            (false, Some(_)) => return Err(Failure::Unproven { demands_token: false }),
            _ => {}
        }
        let proof = secret.map_or(NO_PROOF, |secret| secret.prove(&client_words(&said, &heard)));
        self.send(&Proof { has_token: secret.is_some(), proof }.bytes())?;
        let Reply::Welcome(welcome) = self.receive()?.0 else { return Err(Failure::Unexpected) };
        if let Some(secret) = secret {
            let rank = welcome.rank.to_le_bytes();
            let words = engine_words(&said, &heard, &rank, &welcome.fabric_name);
            if !secret.accepts(&words, &welcome.proof) {
                return Err(Failure::Unproven { demands_token: true });
            }
        }
        Ok(welcome)
    }

    /// The engine's challenge, with the bytes that were sent and received.
    fn challenge(&mut self, hello: &Hello) -> Result<(Challenge, Vec<u8>, Vec<u8>), Failure> {
        let said = hello_bytes(hello)?;
        self.send(&said)?;
        match self.receive()? {
            (Reply::Challenge(challenge), heard) => Ok((challenge, said, heard)),
            _ => Err(Failure::Unexpected),
        }
    }

    fn send(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            match rustix::net::send(&self.stream, bytes, rustix::net::SendFlags::NOSIGNAL) {
                Ok(sent) => bytes = &bytes[sent..],
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => self.wait(PollFlags::OUT)?,
                Err(errno) => return Err(errno.into()),
            }
        }
        Ok(())
    }

    /// Reads one frame and not a byte more: what follows is the caller's.
    fn receive(&mut self) -> Result<(Reply, Vec<u8>), Failure> {
        let mut bytes = Vec::with_capacity(HELLO_BYTES_MAX);
        self.receive_to(&mut bytes, REPLY_HEAD_BYTES)?;
        let parsed = match parse_reply(&bytes)? {
            None => {
                let body_bytes = usize::from(u16::from_le_bytes([bytes[6], bytes[7]]));
                self.receive_to(&mut bytes, REPLY_HEAD_BYTES + body_bytes)?;
                parse_reply(&bytes)?
            }
            whole => whole,
        };
        match parsed {
            Some((Reply::Refusal(refusal), _)) => Err(Failure::Refused(refusal)),
            Some((reply, _)) => Ok((reply, bytes)),
            None => Err(Failure::Unexpected),
        }
    }

    fn receive_to(&mut self, bytes: &mut Vec<u8>, length: usize) -> io::Result<()> {
        let mut there = bytes.len();
        bytes.resize(length, 0);
        while there < length {
            match rustix::io::read(&self.stream, &mut bytes[there..]) {
                Ok(0) => return Err(io::Error::from_raw_os_error(libc::ECONNRESET)),
                Ok(read) => there += read,
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => self.wait(PollFlags::IN)?,
                Err(errno) => return Err(errno.into()),
            }
        }
        Ok(())
    }

    fn wait(&self, flags: PollFlags) -> io::Result<()> {
        let slice = self.limit.slice()?;
        let span = Timespec { tv_sec: 0, tv_nsec: i64::from(slice.subsec_nanos()) };
        match poll(&mut [PollFd::new(&self.stream, flags)], Some(&span)) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(errno) => Err(errno.into()),
        }
    }
}
