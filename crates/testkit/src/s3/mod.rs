//! An S3 server for tests and measurements: it keeps objects in memory, checks signatures, and fails on purpose where it is told to.
//!
//! It is written against the API reference of Amazon S3 and shares nothing with the client that it tests: HTTP is hyper's, and
//! signatures are computed here once more.

mod answer;
mod faults;
mod handler;
mod requests;
mod signature;
mod store;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use base64::Engine as _;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;

pub use faults::{Fault, Faults};
pub use store::Store;

/// Options of a server.
#[derive(Clone, Debug)]
pub struct S3Options {
    /// Access key that is accepted.
    pub access: String,
    /// Its secret.
    pub secret: String,
    /// Region that requests must be signed for.
    pub region: String,
    /// Requests without a signature are accepted too.
    pub is_anonymous: bool,
    /// Serve HTTPS, with a certificate of its own for `localhost` and 127.0.0.1.
    pub is_tls: bool,
    /// Threads.
    pub threads: usize,
    /// Port; 0: any that is free.
    pub port: u16,
}

impl Default for S3Options {
    fn default() -> Self {
        Self {
            access: "strata-access".to_owned(),
            secret: "strata-secret-of-tests".to_owned(),
            region: "us-east-1".to_owned(),
            is_anonymous: false,
            is_tls: false,
            threads: 2,
            port: 0,
        }
    }
}

/// State that all connections share.
pub(crate) struct Shared {
    pub(crate) options: S3Options,
    pub(crate) store: Store,
    pub(crate) faults: Faults,
    /// Connections that are served.
    connections: watch::Sender<usize>,
}

/// A server on loopback. It ends when it is dropped.
pub struct S3Server {
    address: SocketAddr,
    certificate: Option<String>,
    shared: Arc<Shared>,
    runtime: Option<Runtime>,
}

impl S3Server {
    /// Starts a server.
    ///
    /// # Errors
    /// When it cannot listen.
    pub fn start(options: S3Options) -> io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(options.threads)
            .enable_all()
            .build()?;
        let listener = runtime.block_on(TcpListener::bind(("127.0.0.1", options.port)))?;
        let address = listener.local_addr()?;
        let (acceptor, certificate) = if options.is_tls { acceptor()? } else { (None, None) };
        let shared = Arc::new(Shared {
            options,
            store: Store::default(),
            faults: Faults::default(),
            connections: watch::Sender::new(0),
        });
        runtime.spawn(accept(listener, acceptor, shared.clone()));
        Ok(Self { address, certificate, shared, runtime: Some(runtime) })
    }

    /// Where it is: `http://127.0.0.1:PORT`.
    #[must_use]
    pub fn endpoint(&self) -> String {
        let scheme = if self.shared.options.is_tls { "https" } else { "http" };
        format!("{scheme}://{}", self.address)
    }

    /// Its port.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// The certificate to trust (PEM), where it serves HTTPS.
    #[must_use]
    pub fn certificate(&self) -> Option<&str> {
        self.certificate.as_deref()
    }

    /// Objects that it keeps.
    #[must_use]
    pub fn store(&self) -> &Store {
        &self.shared.store
    }

    /// Waits until every client is gone, and what it had sent is stored.
    pub fn await_no_client(&self) {
        // Connections that wait to be accepted are clients too. They are accepted in turn: when this one is ended, all before it count.
        if let Ok(mut last) = std::net::TcpStream::connect(self.address) {
            let _ = last.shutdown(std::net::Shutdown::Write);
            let _ = std::io::copy(&mut last, &mut std::io::sink());
        }
        let mut connections = self.shared.connections.subscribe();
        if let Some(runtime) = &self.runtime {
            // Who counts lives as long as this.
            let _ = runtime.block_on(connections.wait_for(|count| *count == 0));
        }
    }

    /// Faults that it makes on purpose.
    #[must_use]
    pub fn faults(&self) -> &Faults {
        &self.shared.faults
    }
}

impl Drop for S3Server {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            // Its port is free afterwards; whoever waits for an answer learns that none comes.
            runtime.shutdown_timeout(std::time::Duration::from_secs(5));
        }
    }
}

fn acceptor() -> io::Result<(Option<TlsAcceptor>, Option<String>)> {
    let names = vec!["localhost".to_owned(), "127.0.0.1".to_owned(), "*.localhost".to_owned()];
    let made = rcgen::generate_simple_self_signed(names).map_err(io::Error::other)?;
    let key = rustls::pki_types::PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key.into())
        .map_err(io::Error::other)?;
    let pem = base64::engine::general_purpose::STANDARD.encode(made.cert.der());
    let pem = format!("-----BEGIN CERTIFICATE-----\n{pem}\n-----END CERTIFICATE-----\n");
    Ok((Some(Arc::new(config).into()), Some(pem)))
}

async fn accept(listener: TcpListener, acceptor: Option<TlsAcceptor>, shared: Arc<Shared>) {
    while let Ok((socket, _)) = listener.accept().await {
        let (acceptor, shared) = (acceptor.clone(), shared.clone());
        shared.connections.send_modify(|count| *count += 1);
        tokio::spawn(async move {
            serve(socket, acceptor, shared.clone()).await;
            shared.connections.send_modify(|count| *count -= 1);
        });
    }
}

async fn serve(socket: TcpStream, acceptor: Option<TlsAcceptor>, shared: Arc<Shared>) {
    if socket.set_nodelay(true).is_err() {
        return;
    }
    let service = service_fn(|request| handler::handle(&shared, request));
    // How a connection ends is the client's affair.
    let _ended = match acceptor {
        None => http1::Builder::new().serve_connection(TokioIo::new(socket), service).await,
        Some(acceptor) => match acceptor.accept(socket).await {
            Ok(stream) => http1::Builder::new().serve_connection(TokioIo::new(stream), service).await,
            Err(_) => Ok(()),
        },
    };
}
