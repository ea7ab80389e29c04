//! Recovery from the loss of a connection: memory that the kernel still refers to is waited for, and a connection lost by a time-out is
//! opened again, by a thread of its own, because that takes a handshake.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::time::Duration;

use super::connection::Connection;
use super::open::{Streams, streams};
use super::{Channel, ChannelRequest, FAILURE_NS};

/// How long the kernel may refer to the memory of requests that have failed before the socket is closed, nanoseconds.
const LINGER_NS_MAX: u64 = 1_000_000_000;
/// How long a request takes to fail while its connection is opened again, nanoseconds.
const REOPENING_NS: u64 = 10_000_000;
/// Longest sleep meanwhile, nanoseconds.
pub(super) const LOOK_NS: u64 = 2_000_000;
/// Wait before an engine is asked again that has no room for a connection.
const PAUSE: Duration = Duration::from_millis(50);

/// A connection that was lost.
struct Lost {
    connection: u32,
    /// Slots whose memory the kernel refers to, and until when that is waited for.
    referred: Vec<u32>,
    until_ns: u64,
    /// The new streams, or why there are none.
    reopened: Option<Receiver<Result<Streams, i32>>>,
}

/// See the module.
pub(super) struct Recovery {
    request: Arc<ChannelRequest>,
    lost: Vec<Lost>,
    /// Connections that were opened again, by endpoint.
    pub(super) reopened: Vec<u64>,
    /// Ends the threads that open connections.
    is_over: Arc<AtomicBool>,
}

impl Recovery {
    pub(super) fn new(request: &ChannelRequest) -> Self {
        Self {
            lost: Vec::new(),
            reopened: vec![0; request.endpoints.len()],
            request: Arc::new(request.clone()),
            is_over: Arc::default(),
        }
    }

    #[inline]
    pub(super) fn is_idle(&self) -> bool {
        self.lost.is_empty()
    }

    /// Ends what is under way.
    pub(super) fn stop(&self) {
        self.is_over.store(true, Ordering::Relaxed);
    }

    /// Notes a connection that was lost; `is_late`: by a time-out. Whether it is opened again.
    pub(super) fn note(
        &mut self,
        connection: u32,
        endpoint: usize,
        referred: Vec<u32>,
        is_late: bool,
        now_ns: u64,
    ) -> bool {
        let reopens = is_late && !self.is_over.load(Ordering::Relaxed);
        let reopened = reopens.then(|| self.reopen(endpoint));
        if reopens || !referred.is_empty() {
            let until_ns = now_ns.saturating_add(LINGER_NS_MAX);
            self.lost.push(Lost { connection, referred, until_ns, reopened });
        }
        reopens
    }

    fn reopen(&self, endpoint: usize) -> Receiver<Result<Streams, i32>> {
        let (sender, receiver) = channel();
        let (request, is_over) = (Arc::clone(&self.request), Arc::clone(&self.is_over));
        let work = move || {
            let place = &request.endpoints[endpoint];
            while !is_over.load(Ordering::Relaxed) {
                match streams(&request, place, &is_over) {
                    Ok(streams) => return drop(sender.send(Ok(streams))),
                    Err(error) => match error.errno() {
                        Some(libc::ETIMEDOUT) => {}
                        Some(libc::EBUSY | libc::EUSERS) => std::thread::sleep(PAUSE),
                        errno => return drop(sender.send(Err(errno.unwrap_or(libc::EHOSTUNREACH)))),
                    },
                }
            }
        };
        // Without a thread the receiver says at once that nothing comes.
        let _ = std::thread::Builder::new().name("reconnect".into()).spawn(work);
        receiver
    }
}

impl Drop for Recovery {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Channel {
    /// Looks after the connections that were lost.
    #[cold]
    pub(super) fn recover(&mut self, now_ns: u64) {
        let lost = std::mem::take(&mut self.recovery.lost);
        for mut lost in lost {
            if !self.is_settled(&mut lost, now_ns) {
                self.recovery.lost.push(lost);
            }
        }
    }

    /// Whether nothing more follows from a loss.
    fn is_settled(&mut self, lost: &mut Lost, now_ns: u64) -> bool {
        let connection = &mut self.connections[lost.connection as usize];
        if !lost.referred.is_empty() && connection.is_let_go(&mut self.common.slots) {
            lost.referred.clear();
        }
        if now_ns >= lost.until_ns && !lost.referred.is_empty() {
            connection.close_bulk();
            self.common.slots.give_up(&std::mem::take(&mut lost.referred));
        }
        let came = match lost.reopened.as_ref().map(Receiver::try_recv) {
            None => return lost.referred.is_empty(),
            Some(Err(TryRecvError::Empty)) => return false,
            Some(Err(TryRecvError::Disconnected)) => Err(libc::ETIMEDOUT),
            Some(Ok(came)) => came,
        };
        lost.reopened = None;
        let endpoint = connection.endpoint;
        self.endpoints[endpoint].wait_ns = FAILURE_NS;
        let tag = self.recovery.request.endpoints[endpoint].plan.tag;
        let opened = came.and_then(|streams| {
            let own = Connection::new(lost.connection, endpoint, tag, streams, &self.common.poller);
            own.map_err(|error| error.raw_os_error().unwrap_or(libc::EIO))
        });
        match opened {
            Ok(own) => {
                // The socket of the one before is closed with it.
                let before = std::mem::replace(&mut self.connections[lost.connection as usize], own);
                self.retired.push(before.into_retired());
                self.common.slots.give_up(&std::mem::take(&mut lost.referred));
                self.is_alive[lost.connection as usize] = true;
                self.endpoints[endpoint].alive.push(lost.connection);
                self.recovery.reopened[endpoint] += 1;
            }
            Err(errno) => self.endpoints[endpoint].errno = errno,
        }
        lost.referred.is_empty()
    }

    /// How long requests to an endpoint take to fail while a connection to it is opened.
    pub(super) fn wait_for(&mut self, endpoint: usize) {
        self.endpoints[endpoint].wait_ns = REOPENING_NS;
    }
}
