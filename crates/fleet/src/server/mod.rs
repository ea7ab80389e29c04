//! The side of the agent: a server that lets proven callers run one job at a time.

mod accept;
mod agent;
mod calls;
mod gate;
mod handshake;
mod job;
mod log;
mod service;
mod session;

use std::net::{SocketAddr, TcpListener, ToSocketAddrs};
use std::sync::Arc;
use std::time::Duration;

use driver::{Error, Secret};
use tokio::runtime::Runtime;
use tokio::sync::{mpsc, oneshot};
use tokio_stream::wrappers::ReceiverStream;
use tonic::service::interceptor::InterceptedService;
use tonic::transport::Server;

pub use agent::{Agent, Prepared};
pub use gate::StartGate;
pub use log::LogSink;

use crate::audit::Audit;
use crate::certificate::Certificate;
use crate::limits::{
    CONNECTION_WINDOW_BYTES, ENVELOPE_BYTES, HANDSHAKE_BYTES_MAX, KEEPALIVE_INTERVAL, KEEPALIVE_TIMEOUT,
    PLAN_BYTES_MAX, RESULT_BYTES_MAX, STOP_TIMEOUT, STREAM_WINDOW_BYTES, STREAMS_MAX,
};
use crate::stream::Identity;
use crate::wire::control_server::ControlServer as ControlCalls;
use crate::wire::handshake_server::HandshakeServer as HandshakeCalls;
pub(crate) use accept::is_loopback;
use accept::{AcceptOptions, Accepted, Callers};
use calls::{Calls, Demand};
pub(crate) use handshake::STRATA_VERSION;
use handshake::{HandshakeService, demand_session};
use job::Slot;
pub(crate) use job::{Lease, panic_text};
use log::Log;
use service::ControlService;

/// Arguments of a control server.
pub struct ControlRequest {
    /// Where to listen: `host:port`, with a name, an IPv4 address or a bracketed IPv6 address; port 0 takes any.
    pub listen: String,
    /// The shared secret. Needed beyond loopback.
    pub secret: Option<Secret>,
    /// Whether callers on this machine need TLS as well; others always do.
    pub tls: bool,
    /// Agent that this process is.
    pub agent: Arc<dyn Agent>,
    /// Takes lines about callers: refused, gone, interrupting.
    pub log: LogSink,
}

/// Settings of a control server that most do not need.
#[derive(Clone, Default)]
pub struct ServerOptions {
    /// The certificate of its TLS; a new one at each start where there is none.
    pub certificate: Option<Certificate>,
    /// Where callers, and what they ask for, are noted.
    pub audit: Option<Arc<Audit>>,
}

/// A running control server. It stops when dropped.
pub struct ControlServer {
    address: SocketAddr,
    slot: Arc<Slot>,
    callers: Callers,
    shutdown: Option<oneshot::Sender<()>>,
    finished: std::sync::mpsc::Receiver<()>,
    threads: Option<Threads>,
}

/// Where a control server runs.
pub(crate) enum Threads {
    /// On threads of its own.
    Own(Runtime),
    /// On those of a runtime that others use as well.
    #[cfg(test)]
    Shared(tokio::runtime::Handle),
}

impl Threads {
    fn handle(&self) -> &tokio::runtime::Handle {
        match self {
            Self::Own(runtime) => runtime.handle(),
            #[cfg(test)]
            Self::Shared(handle) => handle,
        }
    }
}

impl ControlServer {
    /// Listens, and serves on a thread of its own.
    ///
    /// # Errors
    ///
    /// An address beyond loopback without a secret, TLS without a secret, an address that cannot be listened on.
    pub fn start(request: ControlRequest) -> Result<Self, Error> {
        Self::start_with(request, ServerOptions::default())
    }

    /// As [`ControlServer::start`], with a certificate that is kept and an audit log.
    ///
    /// # Errors
    ///
    /// As with [`ControlServer::start`].
    pub fn start_with(request: ControlRequest, options: ServerOptions) -> Result<Self, Error> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .max_blocking_threads(4)
            .thread_name("control")
            .enable_all()
            .build()
            .map_err(|error| {
                Error::system("control", "cannot start the thread of the control channel", error)
            })?;
        Self::start_on(Threads::Own(runtime), request, options)
    }

    /// Serves on threads that are there.
    pub(crate) fn start_on(
        threads: Threads,
        request: ControlRequest,
        options: ServerOptions,
    ) -> Result<Self, Error> {
        let ServerOptions { certificate, audit } = options;
        let listener = listen(&request)?;
        let address = listener
            .local_addr()
            .map_err(|error| Error::system("control", "cannot read the address of the listener", error))?;
        let log = Log::new(Arc::clone(&request.log)).with_audit(audit);
        let identity = request.secret.as_ref().map(|_| match certificate {
            Some(certificate) => Ok(certificate.identity),
            None => Identity::generate(),
        });
        let identity = identity.transpose()?;
        let runtime = threads.handle().clone();
        let slot = Arc::new(Slot::default());
        let (accepted_sender, accepted) = mpsc::channel(1);
        let (shutdown, shutdown_receiver) = oneshot::channel::<()>();
        let (finished_sender, finished) = std::sync::mpsc::channel();
        let callers = Callers::default();
        let options =
            AcceptOptions { identity, tls_required: request.tls, callers: callers.clone(), log: log.clone() };
        let handshake = HandshakeService { secret: request.secret, log: log.clone() };
        let control = ControlService { agent: request.agent, slot: Arc::clone(&slot), log: log.clone() };
        let listener = {
            let _context = runtime.enter();
            tokio::net::TcpListener::from_std(listener)
                .map_err(|error| Error::system("control", "cannot wait on the listener", error))?
        };
        runtime.spawn(options.serve(listener, accepted_sender));
        runtime.spawn(async move {
            if let Err(error) = serve(handshake, control, accepted, shutdown_receiver).await {
                log.say(&format!("control: the server ended: {error}"));
            }
            // Nobody may be waiting for the end.
            let _ = finished_sender.send(());
        });
        Ok(Self { address, slot, callers, shutdown: Some(shutdown), finished, threads: Some(threads) })
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Callers that have proven themselves and are still connected.
    #[must_use]
    pub fn callers(&self) -> usize {
        self.callers.proven()
    }

    /// Has the running job end after what is in flight; its result still leaves.
    pub fn interrupt(&self) {
        self.slot.interrupt(None);
    }

    /// Stops the running job, lets its result leave, and closes all connections; takes 10 s at most.
    pub fn stop(mut self) {
        self.end();
    }

    fn end(&mut self) {
        let Some(threads) = self.threads.take() else { return };
        self.slot.interrupt(None);
        self.slot.wait_free(STOP_TIMEOUT);
        if let Some(shutdown) = self.shutdown.take() {
            // It may have ended by itself.
            let _ = shutdown.send(());
        }
        let _ = self.finished.recv_timeout(STOP_TIMEOUT);
        match threads {
            Threads::Own(runtime) => runtime.shutdown_timeout(Duration::from_millis(100)),
            #[cfg(test)]
            Threads::Shared(_) => {}
        }
    }
}

impl Drop for ControlServer {
    fn drop(&mut self) {
        self.end();
    }
}

fn listen(request: &ControlRequest) -> Result<TcpListener, Error> {
    let named = |error| {
        Error::system("control", "cannot listen", error)
            .with("address", &request.listen)
            .remedy("use host:port, with an address of this machine and a free port, or 0")
    };
    let addresses: Vec<SocketAddr> = request.listen.to_socket_addrs().map_err(named)?.collect();
    let is_local = addresses.iter().all(|address| is_loopback(*address));
    if request.secret.is_none() && !is_local {
        return Err(Error::usage("control", "listening beyond loopback requires a shared token")
            .with("address", &request.listen)
            .remedy("use a token, the same on all hosts, or listen on 127.0.0.1"));
    }
    if request.secret.is_none() && request.tls {
        return Err(Error::usage(
            "control",
            "TLS requires a shared token: without one the other end cannot be authenticated",
        ));
    }
    let listener = TcpListener::bind(&addresses[..]).map_err(named)?;
    listener.set_nonblocking(true).map_err(named)?;
    Ok(listener)
}

async fn serve(
    handshake: HandshakeService,
    control: ControlService,
    accepted: mpsc::Receiver<std::io::Result<Accepted>>,
    shutdown: oneshot::Receiver<()>,
) -> Result<(), tonic::transport::Error> {
    let handshake = HandshakeCalls::new(handshake)
        .max_decoding_message_size(HANDSHAKE_BYTES_MAX)
        .max_encoding_message_size(HANDSHAKE_BYTES_MAX);
    let control = ControlCalls::new(control)
        .max_decoding_message_size(PLAN_BYTES_MAX + ENVELOPE_BYTES)
        .max_encoding_message_size(RESULT_BYTES_MAX + ENVELOPE_BYTES);
    let calls = Calls { handshake, control: InterceptedService::new(control, demand_session as Demand) };
    Server::builder()
        .http2_keepalive_interval(Some(KEEPALIVE_INTERVAL))
        .http2_keepalive_timeout(Some(KEEPALIVE_TIMEOUT))
        .max_concurrent_streams(STREAMS_MAX)
        .initial_stream_window_size(STREAM_WINDOW_BYTES)
        .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
        .http2_max_header_list_size(16 << 10)
        .serve_with_incoming_shutdown(calls, ReceiverStream::new(accepted), async {
            // A sender that is gone means the same as one that has sent.
            let _ = shutdown.await;
        })
        .await
}
