//! From an address to a connection on which both sides have proven themselves.

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use driver::{Error, ErrorKind, Secret};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tonic::metadata::{Ascii, MetadataValue};
use tonic::service::Interceptor;
use tonic::service::interceptor::InterceptedService;
use tonic::transport::{Channel, Endpoint};
use tonic::{Request, Status};

use crate::address::HostAddress;
use crate::certificate::Fingerprint;
use crate::clock::{ClockEstimate, Exchange, unix_ns};
use crate::limits::{
    CALL_TIMEOUT, CONNECTION_WINDOW_BYTES, ENVELOPE_BYTES, HANDSHAKE_BYTES_MAX, KEEPALIVE_INTERVAL,
    KEEPALIVE_TIMEOUT, PLAN_BYTES_MAX, PROTOCOL_VERSION, RESULT_BYTES_MAX, STREAM_WINDOW_BYTES,
};
use crate::messages::line;
use crate::proof::{Challenge, NONCE_BYTES, random_bytes};
use crate::server::is_loopback;
use crate::stream::{Stream, connect_tls};
use crate::trust::Trust;
use crate::wire;
use crate::wire::control_client::ControlClient;
use crate::wire::handshake_client::HandshakeClient;

/// Questions for the time when a host is connected, and the most when it is looked at again.
pub(super) const PINGS: usize = 8;

/// Adds the session id to every call.
#[derive(Clone)]
pub(crate) struct Session(pub(crate) MetadataValue<Ascii>);

impl Interceptor for Session {
    fn call(&mut self, mut request: Request<()>) -> Result<Request<()>, Status> {
        request.metadata_mut().insert("authorization", self.0.clone());
        Ok(request)
    }
}

pub(crate) type Calls = ControlClient<InterceptedService<Channel, Session>>;

/// A host that can be called.
#[derive(Clone)]
pub(crate) struct Link {
    pub(crate) calls: Calls,
    pub(crate) clock: ClockEstimate,
}

/// How hosts are connected.
#[derive(Clone, Debug)]
pub(crate) struct Terms {
    pub(crate) secret: Option<Secret>,
    pub(crate) tls: bool,
    /// Certificates that are taken; any where there is none.
    pub(crate) trust: Option<Arc<Trust>>,
}

/// Connects and proves, within `limit`.
pub(crate) async fn connect(host: &HostAddress, terms: &Terms, limit: Duration) -> Result<Link, Error> {
    tokio::time::timeout(limit, attempt(host, terms)).await.unwrap_or_else(|_| {
        Err(Error::system(
            "connect",
            "the agent did not answer in time",
            io::Error::from(io::ErrorKind::TimedOut),
        )
        .with("host", host)
        .with("timeout_s", limit.as_secs_f64()))
    })
}

async fn attempt(host: &HostAddress, terms: &Terms) -> Result<Link, Error> {
    let (stream, binding) = open(host, terms).await?;
    let shown = Fingerprint::of_binding(&binding);
    if let (Some(trust), Some(shown)) = (&terms.trust, shown) {
        trust.check(host, shown)?;
    }
    let channel = channel(stream).await.map_err(|error| {
        Error::system(
            "connect",
            "the listener at this address does not use the control protocol",
            chain(&error),
        )
        .with("host", host)
    })?;
    let session = prove(host, channel.clone(), binding, terms.secret.as_ref()).await?;
    if let (Some(trust), Some(shown)) = (&terms.trust, shown) {
        trust.learn(host, shown);
    }
    let mut calls = ControlClient::with_interceptor(channel, session)
        .max_decoding_message_size(RESULT_BYTES_MAX + ENVELOPE_BYTES)
        .max_encoding_message_size(PLAN_BYTES_MAX + ENVELOPE_BYTES);
    let clock = read_clock(&mut calls, PINGS).await.map_err(|status| called(host, "connect", &status))?;
    Ok(Link { calls, clock })
}

/// The first address of the host that answers, with TLS where the connection leaves this machine or it is asked for.
pub(crate) async fn open(host: &HostAddress, terms: &Terms) -> Result<(Stream, Vec<u8>), Error> {
    let addresses: Vec<SocketAddr> = tokio::net::lookup_host((host.host(), host.port()))
        .await
        .map_err(|error| Error::system("connect", "the host's name is unknown", error).with("host", host))?
        .collect();
    let mut failure = io::Error::from(io::ErrorKind::NotFound);
    for address in addresses {
        let tcp = match TcpStream::connect(address).await {
            Ok(tcp) => tcp,
            Err(error) => {
                failure = error;
                continue;
            }
        };
        tcp.set_nodelay(true).map_err(|error| {
            Error::system("connect", "cannot set up the connection", error).with("host", host)
        })?;
        if is_loopback(address) && !terms.tls {
            return Ok((Stream::Plain(tcp), Vec::new()));
        }
        if terms.secret.is_none() {
            return Err(Error::usage(
                "connect",
                "an agent beyond loopback, or TLS, requires the shared token",
            )
            .with("host", host)
            .remedy("use the token that the agents were started with"));
        }
        return connect_tls(tcp).await.map_err(|error| {
            Error::system("connect", "cannot set up TLS with the agent", error)
                .with("host", host)
                .remedy("check that it was started with a token")
        });
    }
    Err(Error::system("connect", "cannot reach the agent", failure)
        .with("host", host)
        .remedy("check that it runs there and that no firewall blocks the connection"))
}

/// A channel over this one connection. It does not connect anew: another connection would have to prove itself again.
pub(crate) async fn channel(stream: Stream) -> Result<Channel, tonic::transport::Error> {
    let stream = Arc::new(Mutex::new(Some(stream)));
    let connector = tower::service_fn(move |_| {
        let stream = stream.lock().unwrap_or_else(PoisonError::into_inner).take();
        async move {
            stream.map(TokioIo::new).ok_or_else(|| {
                io::Error::new(io::ErrorKind::NotConnected, "the connection to the agent was lost")
            })
        }
    });
    Endpoint::from_static("http://agent")
        .http2_keep_alive_interval(KEEPALIVE_INTERVAL)
        .keep_alive_timeout(KEEPALIVE_TIMEOUT)
        .keep_alive_while_idle(true)
        .initial_stream_window_size(STREAM_WINDOW_BYTES)
        .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
        .connect_with_connector(connector)
        .await
}

async fn prove(
    host: &HostAddress,
    channel: Channel,
    binding: Vec<u8>,
    secret: Option<&Secret>,
) -> Result<Session, Error> {
    let mut handshake = HandshakeClient::new(channel)
        .max_decoding_message_size(HANDSHAKE_BYTES_MAX)
        .max_encoding_message_size(HANDSHAKE_BYTES_MAX);
    let client_nonce = random_bytes()?;
    let hello = wire::HelloRequest {
        protocol_version: PROTOCOL_VERSION,
        strata_version: env!("CARGO_PKG_VERSION").to_owned(),
        nonce: client_nonce.clone(),
        caller: caller(),
    };
    let hello = handshake.hello(hello).await.map_err(|status| called(host, "connect", &status))?.into_inner();
    let challenge = judge_hello(host, hello, client_nonce, binding, secret.is_some())?;
    let proof = secret.map(|secret| challenge.client_proof(secret)).unwrap_or_default();
    let proven = handshake.prove(wire::ProveRequest { proof }).await.map_err(|status| {
        let error = called(host, "connect", &status);
        if status.code() == tonic::Code::Unauthenticated {
            return error.remedy("use the token that the agent was started with");
        }
        error
    })?;
    let proven = proven.into_inner();
    if let Some(secret) = secret
        && !challenge.accepts_server(secret, &proven.proof)
    {
        return Err(Error::new(
            ErrorKind::Run,
            "connect",
            "the agent did not prove that it knows the shared token",
        )
        .with("host", host)
        .remedy("another program may be listening there, or intercepting the connection"));
    }
    let mut value = MetadataValue::try_from(proven.session).map_err(|_| {
        Error::new(ErrorKind::Run, "connect", "the agent sent no valid session").with("host", host)
    })?;
    value.set_sensitive(true);
    Ok(Session(value))
}

/// This process for the logs of others: `user@host`.
fn caller() -> String {
    let variable = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
    let user = variable("USER").or_else(|| variable("LOGNAME")).unwrap_or_else(|| "unknown".to_owned());
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    line(&format!("{user}@{}", host.trim()))
}

fn judge_hello(
    host: &HostAddress,
    hello: wire::HelloReply,
    client_nonce: Vec<u8>,
    binding: Vec<u8>,
    has_secret: bool,
) -> Result<Challenge, Error> {
    if hello.protocol_version != PROTOCOL_VERSION {
        return Err(Error::new(
            ErrorKind::Unsupported,
            "connect",
            format!(
                "the coordinator uses control protocol {PROTOCOL_VERSION} (strata {}), the agent {} (strata {})",
                env!("CARGO_PKG_VERSION"),
                hello.protocol_version,
                line(&hello.strata_version)
            ),
        )
        .with("host", host)
        .remedy("use the same version of strata on all hosts"));
    }
    match (hello.secret_required, has_secret) {
        (true, false) => Err(Error::usage("connect", "the agent requires the shared token")
            .with("host", host)
            .remedy("use the token that it was started with")),
        (false, true) => {
            Err(Error::usage("connect", "the agent has no shared token, so it cannot prove its identity")
                .with("host", host)
                .remedy("start it with the token, or connect without one"))
        }
        _ if hello.nonce.len() != NONCE_BYTES => {
            Err(Error::new(ErrorKind::Run, "connect", "the agent sent a nonce of a wrong length")
                .with("host", host))
        }
        _ => Ok(Challenge { client_nonce, server_nonce: hello.nonce, binding }),
    }
}

/// The clock at the other end, by so many questions.
pub(crate) async fn read_clock(calls: &mut Calls, questions: usize) -> Result<ClockEstimate, Status> {
    let mut exchanges = Vec::with_capacity(questions);
    for _ in 0..questions {
        // The monotonic clock spans the way, so that a step of the other clock in between does not count as time. It is
        // read first: a pause between the two then lengthens the way and never hides in the offset.
        let (since, sent) = (Instant::now(), unix_ns());
        let reply = calls.ping(wire::PingRequest {}).await?.into_inner();
        let spent = u64::try_from(since.elapsed().as_nanos()).unwrap_or(u64::MAX);
        exchanges.push(Exchange {
            sent,
            received_there: reply.received_unix_ns,
            sent_there: reply.sent_unix_ns,
            received: sent.saturating_add(spent),
        });
    }
    ClockEstimate::of(&exchanges).ok_or_else(|| Status::internal("no exchange"))
}

/// A short call, with its deadline and its error in the words of strata.
pub(crate) async fn call<T>(
    host: &HostAddress,
    operation: &'static str,
    answer: impl Future<Output = Result<tonic::Response<T>, Status>>,
) -> Result<T, Error> {
    match tokio::time::timeout(CALL_TIMEOUT, answer).await {
        Ok(Ok(response)) => Ok(response.into_inner()),
        Ok(Err(status)) => Err(called(host, operation, &status)),
        Err(_) => {
            let source = io::Error::from(io::ErrorKind::TimedOut);
            Err(Error::system(operation, "the agent did not answer in time", source).with("host", host))
        }
    }
}

/// The error of a call that failed.
pub(crate) fn called(host: &HostAddress, operation: &'static str, status: &Status) -> Error {
    let error = match std::error::Error::source(status) {
        Some(source) => Error::system(operation, "the connection to the agent was lost", chain(source)),
        None => {
            let kind = match status.code() {
                tonic::Code::PermissionDenied
                | tonic::Code::FailedPrecondition
                | tonic::Code::Unimplemented => ErrorKind::Unsupported,
                _ => ErrorKind::Run,
            };
            Error::new(kind, operation, line(status.message()))
        }
    };
    error.with("host", host)
}

/// The innermost cause, which is the one that tells.
pub(crate) fn chain(error: &(dyn std::error::Error + 'static)) -> io::Error {
    let mut cause = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    match cause.downcast_ref::<io::Error>().and_then(io::Error::raw_os_error) {
        Some(errno) => io::Error::from_raw_os_error(errno),
        None => {
            let text = cause.to_string();
            // The TLS library's words for a connection that ends without a farewell explain its own interface.
            let is_eof = text.contains("without sending TLS close_notify");
            io::Error::other(if is_eof {
                "it was closed without a final message".to_owned()
            } else {
                line(&text)
            })
        }
    }
}
