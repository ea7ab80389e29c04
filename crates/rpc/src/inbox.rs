//! How connections reach the service thread of their endpoint.

use std::net::{SocketAddr, TcpStream};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};

use driver::Error;
use rustix::event::{EventfdFlags, eventfd};

use crate::service::Counters;

/// Role of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Messages.
    Messages,
    /// Bulk transfers of the session's messages.
    Bulk,
    /// It says that a client on a fabric lives; messages and bulk go over the fabric.
    Fabric,
}

/// A connection that was accepted and has proved what it must.
#[derive(Debug)]
pub struct Accepted {
    /// Its role.
    pub role: Role,
    /// The connection, non-blocking.
    pub stream: TcpStream,
    /// The same for the messages and the bulk of one client's connection; drawn by the client.
    pub session: [u8; 16],
    /// Who it is.
    pub peer: SocketAddr,
    /// The client's own name on the fabric, for [`Role::Fabric`].
    pub fabric_name: Vec<u8>,
}

/// How many connections are on their way to the service thread.
#[derive(Debug, Default)]
struct Line {
    waiting: AtomicU64,
    /// Odd from when a connection was taken until the thread has counted it, which it has when it asks for the next one.
    turns: AtomicU64,
}

/// How often a count is begun again because the service thread was just taking a connection.
const COUNT_TRIES: u32 = 1000;

/// The end that the acceptor holds.
#[derive(Clone, Debug)]
pub struct InboxSender {
    sender: Sender<Accepted>,
    bell: Arc<OwnedFd>,
    line: Arc<Line>,
}

/// The end that a service thread holds. Its descriptor is readable when something has come, or when the engine stops.
#[derive(Debug)]
pub struct Inbox {
    receiver: Receiver<Accepted>,
    bell: Arc<OwnedFd>,
    line: Arc<Line>,
}

/// A new pair.
///
/// # Errors
/// When the kernel gives no descriptor.
pub fn inbox() -> Result<(InboxSender, Inbox), Error> {
    let bell = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)
        .map_err(|error| Error::system("engine", "cannot create a descriptor", error))?;
    let bell = Arc::new(bell);
    let (sender, receiver) = channel();
    let line = Arc::new(Line::default());
    let end = InboxSender { sender, bell: Arc::clone(&bell), line: Arc::clone(&line) };
    Ok((end, Inbox { receiver, bell, line }))
}

impl InboxSender {
    /// Hands a connection over. A service thread that is gone drops it, and so closes it.
    pub fn send(&self, accepted: Accepted) {
        self.line.waiting.fetch_add(1, Ordering::SeqCst);
        if self.sender.send(accepted).is_ok() {
            self.ring();
        } else {
            self.line.waiting.fetch_sub(1, Ordering::SeqCst);
        }
    }

    /// Connections of the endpoint: those that its thread has counted, and those that are on their way. While the thread takes one, it is in
    /// neither number; then the count begins again, a bounded number of times.
    #[must_use]
    pub fn connections(&self, counters: &Counters) -> u64 {
        let mut count = 0;
        for _ in 0..COUNT_TRIES {
            let before = self.line.turns.load(Ordering::SeqCst);
            count = self.line.waiting.load(Ordering::SeqCst) + counters.connections.load(Ordering::SeqCst);
            let after = self.line.turns.load(Ordering::SeqCst);
            if before == after && before.is_multiple_of(2) {
                break;
            }
            std::thread::yield_now();
        }
        count
    }

    /// Wakes the service thread.
    pub fn ring(&self) {
        // The counter is full only when nobody has looked for a very long time, and then the bell rings anyway.
        let _ = rustix::io::write(&*self.bell, &1u64.to_ne_bytes());
    }
}

impl Inbox {
    /// The next connection, without waiting. Who calls has counted the one before; call until there is none.
    pub fn take(&self) -> Option<Accepted> {
        let line = &self.line;
        if !line.turns.load(Ordering::SeqCst).is_multiple_of(2) {
            line.turns.fetch_add(1, Ordering::SeqCst);
        }
        let accepted = self.receiver.try_recv().ok()?;
        line.turns.fetch_add(1, Ordering::SeqCst);
        line.waiting.fetch_sub(1, Ordering::SeqCst);
        Some(accepted)
    }

    /// Quiets the bell. Call before [`Inbox::take`], so that nothing is missed.
    pub fn quiet(&self) {
        let mut count = [0; 8];
        let _ = rustix::io::read(&*self.bell, &mut count);
    }
}

impl AsFd for Inbox {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }
}
