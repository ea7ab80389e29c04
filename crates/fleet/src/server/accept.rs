//! Connections as they come in: counted, told apart by their first byte, and closed when they do not prove themselves.

use std::collections::VecDeque;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};
use tokio::time::{Sleep, sleep, timeout};
use tonic::transport::server::Connected;

use crate::limits::{CONNECTIONS_MAX, HANDSHAKE_TIMEOUT};
use crate::proof::{Challenge, SessionCheck};
use crate::server::log::Log;
use crate::stream::{Identity, Stream};

/// First byte of a TLS handshake (RFC 8446, section 5.1: ContentType handshake).
const TLS_HANDSHAKE: u8 = 22;

/// How long a connection that is put out may take to leave its place.
const EVICTION_TIMEOUT: Duration = Duration::from_millis(100);

/// How far a caller has proven itself.
#[derive(Debug)]
pub(crate) enum Standing {
    Stranger,
    Challenged(Challenge),
    Proven(SessionCheck),
    /// Its one attempt failed.
    Refused,
}

/// State of a connection.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) peer: SocketAddr,
    pub(crate) binding: Vec<u8>,
    pub(crate) standing: Mutex<Standing>,
    /// Whether the time limit for strangers is off.
    pub(crate) is_proven: AtomicBool,
    /// Name that the caller gives itself, once it has said so.
    pub(crate) caller: OnceLock<String>,
}

/// Connections that are open.
#[derive(Clone, Debug, Default)]
pub(crate) struct Callers(Arc<Mutex<Vec<Weak<Connection>>>>);

impl Callers {
    fn add(&self, connection: &Arc<Connection>) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|known| known.strong_count() > 0);
        all.push(Arc::downgrade(connection));
    }

    /// Those that have proven themselves.
    pub(crate) fn proven(&self) -> usize {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let open = all.iter().filter_map(Weak::upgrade);
        open.filter(|connection| connection.is_proven.load(Ordering::Relaxed)).count()
    }
}

/// A connection as the server of calls sees it. While its caller has not proven itself, it ends at a deadline.
#[derive(Debug)]
pub(crate) struct Accepted {
    stream: Stream,
    connection: Arc<Connection>,
    deadline: Option<Pin<Box<Sleep>>>,
    /// Says that others need its place.
    evicted: oneshot::Receiver<()>,
    _permit: OwnedSemaphorePermit,
}

impl Connected for Accepted {
    type ConnectInfo = Arc<Connection>;

    fn connect_info(&self) -> Self::ConnectInfo {
        Arc::clone(&self.connection)
    }
}

impl AsyncRead for Accepted {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if this.connection.is_proven.load(Ordering::Relaxed) {
            // It is no stranger any more, and nobody can put it out.
            this.deadline = None;
            this.evicted.close();
        } else if this.deadline.is_some()
            && matches!(Pin::new(&mut this.evicted).poll(context), Poll::Ready(Ok(())))
        {
            return Poll::Ready(Err(crowded()));
        } else if let Some(deadline) = &mut this.deadline
            && deadline.as_mut().poll(context).is_ready()
        {
            return Poll::Ready(Err(io::Error::new(
                io::ErrorKind::TimedOut,
                "the caller did not prove itself",
            )));
        }
        Pin::new(&mut this.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for Accepted {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().stream).poll_write(context, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(context)
    }
}

/// How a server takes connections.
#[derive(Clone)]
pub(crate) struct AcceptOptions {
    /// TLS; none where the server has no secret.
    pub(crate) identity: Option<Identity>,
    /// Whether even callers on this machine need TLS.
    pub(crate) tls_required: bool,
    pub(crate) callers: Callers,
    pub(crate) log: Log,
}

impl AcceptOptions {
    /// Takes connections until nobody wants them any more.
    pub(crate) async fn serve(self, listener: TcpListener, ready: mpsc::Sender<io::Result<Accepted>>) {
        let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
        let mut strangers = VecDeque::new();
        loop {
            let (tcp, peer) = tokio::select! {
                () = ready.closed() => return,
                accepted = listener.accept() => match accepted {
                    Ok(accepted) => accepted,
                    Err(error) => {
                        self.log.say(&format!("control: cannot accept a connection: {error}"));
                        // Out of descriptors, most likely: others must close some first.
                        sleep(Duration::from_millis(100)).await;
                        continue;
                    }
                },
            };
            let Some(permit) = self.place(&places, &mut strangers).await else {
                self.log.refuse(peer, &format!("rejected: {CONNECTIONS_MAX} connections are open"));
                continue;
            };
            let (options, ready) = (self.clone(), ready.clone());
            let (evict, evicted) = oneshot::channel();
            strangers.push_back(evict);
            tokio::spawn(async move {
                match timeout(HANDSHAKE_TIMEOUT, options.admit(tcp, peer, permit, evicted)).await {
                    Ok(Ok(accepted)) => drop(ready.send(Ok(accepted)).await),
                    Ok(Err(error)) => options.log.refuse(peer, &format!("closed: {error}")),
                    Err(_) => {
                        options.log.refuse(peer, &format!("closed: silent for {HANDSHAKE_TIMEOUT:?}"));
                    }
                }
            });
        }
    }

    async fn admit(
        &self,
        tcp: TcpStream,
        peer: SocketAddr,
        permit: OwnedSemaphorePermit,
        mut evicted: oneshot::Receiver<()>,
    ) -> io::Result<Accepted> {
        tcp.set_nodelay(true)?;
        tokio::select! {
            accepted = self.greet(tcp, peer) => {
                let (stream, connection) = accepted?;
                let deadline = Some(Box::pin(sleep(HANDSHAKE_TIMEOUT)));
                Ok(Accepted { stream, connection, deadline, evicted, _permit: permit })
            }
            Ok(()) = &mut evicted => Err(crowded()),
        }
    }

    /// A place for a connection. Where there is none, the caller that has gone longest without proving itself loses its own.
    async fn place(
        &self,
        places: &Arc<Semaphore>,
        strangers: &mut VecDeque<oneshot::Sender<()>>,
    ) -> Option<OwnedSemaphorePermit> {
        // Those that are gone are at the front sooner or later.
        while strangers.front().is_some_and(oneshot::Sender::is_closed) {
            strangers.pop_front();
        }
        if let Ok(permit) = Arc::clone(places).try_acquire_owned() {
            return Some(permit);
        }
        while let Some(oldest) = strangers.pop_front() {
            if oldest.send(()).is_ok() {
                let freed = timeout(EVICTION_TIMEOUT, Arc::clone(places).acquire_owned()).await;
                return freed.ok()?.ok();
            }
        }
        None
    }

    /// Tells TLS from plain text and gets through the handshake.
    async fn greet(&self, tcp: TcpStream, peer: SocketAddr) -> io::Result<(Stream, Arc<Connection>)> {
        let mut first = [0];
        if tcp.peek(&mut first).await? == 0 {
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "it sent nothing"));
        }
        let is_local = is_loopback(peer) && is_loopback(tcp.local_addr()?);
        let (stream, binding) = match (&self.identity, first[0] == TLS_HANDSHAKE) {
            (Some(identity), true) => identity.accept(tcp).await?,
            (None, true) => return Err(io::Error::other("it requires TLS, which needs a shared token here")),
            (_, false) if is_local && !self.tls_required => (Stream::Plain(tcp), Vec::new()),
            (_, false) => return Err(io::Error::other("it does not use TLS")),
        };
        let connection = Arc::new(Connection {
            peer,
            binding,
            standing: Mutex::new(Standing::Stranger),
            is_proven: AtomicBool::new(false),
            caller: OnceLock::new(),
        });
        self.callers.add(&connection);
        Ok((stream, connection))
    }
}

/// The end of a connection whose place others need.
fn crowded() -> io::Error {
    io::Error::other("its place is needed by others, and it has not authenticated")
}

/// Whether it is an address of this machine only, `::ffff:127.0.0.1` among them.
pub(crate) fn is_loopback(address: SocketAddr) -> bool {
    address.ip().to_canonical().is_loopback()
}
