//! The bytes below the channel: TCP, with TLS or without.
//!
//! The server makes its certificate itself, at each start or once ([`crate::Certificate`]), and a client takes any, unless it knows the server's
//! from before ([`crate::Trust`]): what tells friend from foe is the shared secret, proven over the binding of the very connection. The binding is the fingerprint of the server's
//! certificate (tls-server-end-point of RFC 5929) and keying material of the session (tls-exporter of RFC 9266). A man
//! in the middle has another certificate and other keys on each side of him, so no proof passes through him.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use driver::Error;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, ServerConfig, SignatureScheme};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::{TlsAcceptor, TlsConnector, TlsStream};

use crate::proof::fingerprint;

/// Label of exported keying material, by RFC 9266.
const EXPORTER_LABEL: &[u8] = b"EXPORTER-Channel-Binding";

/// The only application protocol spoken.
const PROTOCOL: &[u8] = b"h2";

/// One connection.
#[derive(Debug)]
pub(crate) enum Stream {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

/// TLS identity of a server: its acceptor, and the fingerprint of its certificate.
#[derive(Clone)]
pub(crate) struct Identity {
    acceptor: TlsAcceptor,
    fingerprint: Vec<u8>,
}

impl Identity {
    /// A new key and a certificate for it, DER.
    pub(crate) fn make() -> Result<(CertificateDer<'static>, Vec<u8>), Error> {
        let made = rcgen::generate_simple_self_signed(vec!["strata.invalid".to_owned()])
            .map_err(|error| failed("cannot create a certificate", error))?;
        Ok((made.cert.der().clone(), made.signing_key.serialize_der()))
    }

    /// A new key and a certificate for it.
    pub(crate) fn generate() -> Result<Self, Error> {
        let (certificate, key) = Self::make()?;
        let key = PrivateKeyDer::try_from(key)
            .map_err(|error| failed("cannot use the key of the certificate", error))?;
        Self::of(vec![certificate], key)
    }

    /// A certificate, with the chain behind it, and its key.
    pub(crate) fn of(
        chain: Vec<CertificateDer<'static>>,
        key: PrivateKeyDer<'static>,
    ) -> Result<Self, Error> {
        let fingerprint = chain.first().map(|leaf| fingerprint(leaf)).unwrap_or_default();
        let mut config = ServerConfig::builder_with_provider(provider())
            .with_protocol_versions(&[&rustls::version::TLS13])
            .map_err(|error| failed("cannot set up TLS", error))?
            .with_no_client_auth()
            .with_single_cert(chain, key)
            .map_err(|error| failed("cannot set up TLS", error))?;
        config.alpn_protocols = vec![PROTOCOL.to_vec()];
        // Every connection is a full handshake: nothing of an earlier one opens a later one.
        config.send_tls13_tickets = 0;
        config.max_early_data_size = 0;
        Ok(Self { acceptor: TlsAcceptor::from(Arc::new(config)), fingerprint })
    }

    /// A certificate with a key that is not its own.
    #[cfg(test)]
    pub(crate) fn stolen() -> Result<Self, Error> {
        #[derive(Debug)]
        struct Fixed(Arc<rustls::sign::CertifiedKey>);
        impl rustls::server::ResolvesServerCert for Fixed {
            fn resolve(&self, _: rustls::server::ClientHello<'_>) -> Option<Arc<rustls::sign::CertifiedKey>> {
                Some(Arc::clone(&self.0))
            }
        }
        let make = || {
            rcgen::generate_simple_self_signed(vec!["strata.invalid".to_owned()])
                .map_err(|error| failed("cannot create a certificate", error))
        };
        let (shown, held) = (make()?, make()?);
        let certificate = shown.cert.der().clone();
        let fingerprint = fingerprint(&certificate);
        let key = PrivateKeyDer::try_from(held.signing_key.serialize_der())
            .map_err(|error| failed("cannot use the key", error))?;
        let key = provider()
            .key_provider
            .load_private_key(key)
            .map_err(|error| failed("cannot use the key", error))?;
        let both = Fixed(Arc::new(rustls::sign::CertifiedKey::new(vec![certificate], key)));
        let config = ServerConfig::builder_with_provider(provider())
            .with_protocol_versions(&[&rustls::version::TLS13])
            .map_err(|error| failed("cannot set up TLS", error))?
            .with_no_client_auth()
            .with_cert_resolver(Arc::new(both));
        Ok(Self { acceptor: TlsAcceptor::from(Arc::new(config)), fingerprint })
    }

    /// The server's part of the handshake: the stream and its binding.
    pub(crate) async fn accept(&self, tcp: TcpStream) -> io::Result<(Stream, Vec<u8>)> {
        let stream = self.acceptor.accept(tcp).await?;
        let mut binding = self.fingerprint.clone();
        binding.extend(exported(|out| {
            stream.get_ref().1.export_keying_material(out, EXPORTER_LABEL, Some(b"")).map(|_| ())
        })?);
        Ok((Stream::Tls(Box::new(stream.into())), binding))
    }
}

/// The client's part of the handshake: the stream and its binding.
pub(crate) async fn connect_tls(tcp: TcpStream) -> io::Result<(Stream, Vec<u8>)> {
    let mut config = ClientConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&rustls::version::TLS13])
        .map_err(io::Error::other)?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(AnyCertificate(provider())))
        .with_no_client_auth();
    config.alpn_protocols = vec![PROTOCOL.to_vec()];
    config.resumption = rustls::client::Resumption::disabled();
    config.enable_sni = false;
    let name = ServerName::try_from("strata.invalid").map_err(io::Error::other)?;
    let stream = TlsConnector::from(Arc::new(config)).connect(name, tcp).await?;
    let session = stream.get_ref().1;
    let certificate = session
        .peer_certificates()
        .and_then(|chain| chain.first())
        .ok_or_else(|| io::Error::other("the server showed no certificate"))?;
    let mut binding = fingerprint(certificate);
    binding
        .extend(exported(|out| session.export_keying_material(out, EXPORTER_LABEL, Some(b"")).map(|_| ()))?);
    Ok((Stream::Tls(Box::new(stream.into())), binding))
}

fn exported(export: impl FnOnce(&mut [u8; 32]) -> Result<(), rustls::Error>) -> io::Result<[u8; 32]> {
    let mut material = [0; 32];
    export(&mut material).map_err(io::Error::other)?;
    Ok(material)
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

fn failed(what: &'static str, error: impl std::fmt::Display) -> Error {
    Error::system("control", what, io::Error::other(error.to_string()))
}

/// Takes any certificate whose key the server holds.
#[derive(Debug)]
struct AnyCertificate(Arc<CryptoProvider>);

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, certificate, signed, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signed, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

impl AsyncRead for Stream {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_read(context, buffer),
            Self::Tls(stream) => Pin::new(stream.as_mut()).poll_read(context, buffer),
        }
    }
}

impl AsyncWrite for Stream {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_write(context, bytes),
            Self::Tls(stream) => Pin::new(stream.as_mut()).poll_write(context, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_flush(context),
            Self::Tls(stream) => Pin::new(stream.as_mut()).poll_flush(context),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_shutdown(context),
            Self::Tls(stream) => Pin::new(stream.as_mut()).poll_shutdown(context),
        }
    }
}
