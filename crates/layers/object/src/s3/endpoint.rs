//! Servers: how they are named, and where they are.

use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::sync::Arc;

use driver::{Error, ErrorKind};
use rustls::ClientConfig;
use rustls::pki_types::ServerName;

use super::text::{self, Keep};
use crate::plan::Addressing;

const ACCEPTED: &str = "http://host:port or https://host:port, such as http://127.0.0.1:9000";

/// TLS to one server.
#[derive(Clone)]
pub(crate) struct Tls {
    pub(crate) config: Arc<ClientConfig>,
    pub(crate) name: ServerName<'static>,
}

/// One server, and the bucket on it.
#[derive(Clone)]
pub(crate) struct Endpoint {
    /// As the user named it.
    pub(crate) name: String,
    /// Its addresses; connections are dealt out to them.
    pub(crate) addresses: Vec<SocketAddr>,
    pub(crate) tls: Option<Tls>,
    /// Value of the header `Host`.
    pub(crate) host: Vec<u8>,
    /// Part of a path before the slash of a key: the bucket, or nothing.
    pub(crate) base: Vec<u8>,
}

/// The parts of `http://host:port`.
#[derive(Debug, PartialEq, Eq)]
struct Parts<'a> {
    is_tls: bool,
    /// Without brackets.
    host: &'a str,
    port: u16,
    /// As the header `Host` names it: without a port that goes without saying.
    header: String,
}

fn parse(name: &str) -> Option<Parts<'_>> {
    let (scheme, rest) = name.split_once("://")?;
    let is_tls = match scheme.to_ascii_lowercase().as_str() {
        "http" => false,
        "https" => true,
        _ => return None,
    };
    let authority = rest.strip_suffix('/').unwrap_or(rest);
    if authority.contains(['/', '@', '?', '#', ' ']) {
        return None;
    }
    let default = if is_tls { 443 } else { 80 };
    let (host, port) = match authority.strip_prefix('[') {
        Some(rest) => {
            let (host, after) = rest.split_once(']')?;
            host.parse::<std::net::Ipv6Addr>().ok()?;
            (host, if after.is_empty() { None } else { Some(after.strip_prefix(':')?) })
        }
        None => match authority.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (authority, None),
        },
    };
    let port = port.map_or(Some(default), |port| port.parse().ok().filter(|&port| port > 0))?;
    if host.is_empty() {
        return None;
    }
    let shown = if host.contains(':') { format!("[{host}]") } else { host.to_owned() };
    let header = if port == default { shown } else { format!("{shown}:{port}") };
    Some(Parts { is_tls, host, port, header })
}

impl Endpoint {
    /// The server of this name, resolved. `config` makes the settings of TLS when one is asked for.
    ///
    /// # Errors
    /// A name of another form, one that cannot be resolved, or virtual hosts below an address.
    pub(crate) fn new(
        name: &str,
        bucket: &str,
        addressing: Addressing,
        config: impl FnOnce() -> Result<Arc<ClientConfig>, Error>,
    ) -> Result<Self, Error> {
        let parts = parse(name).ok_or_else(|| {
            // What may be a password is shown to nobody.
            let shown = units::without_password(name);
            let remedy =
                if shown == name { "" } else { "; keys come from the environment, or --s3-key-file" };
            Error::usage("s3", format!("{shown:?} is not an endpoint"))
                .remedy(format!("accepted: {ACCEPTED}{remedy}"))
        })?;
        let is_virtual = addressing == Addressing::VirtualHost;
        let (host, header, base) = if is_virtual {
            (format!("{bucket}.{}", parts.host), format!("{bucket}.{}", parts.header), Vec::new())
        } else {
            let mut base = b"/".to_vec();
            text::escape(&mut base, bucket.as_bytes(), Keep::Slashes);
            (parts.host.to_owned(), parts.header, base)
        };
        let is_address = parts.host.parse::<IpAddr>().is_ok();
        if is_virtual && is_address && parts.is_tls {
            return Err(Error::usage(
                "s3",
                format!("the certificate of {name} cannot cover bucket names below an IP address"),
            )
            .remedy("use the server's host name, or --s3-addressing path"));
        }
        // A server's own name leads to its virtual hosts too, where nobody has told the name service of these.
        let own = (is_virtual && !is_address).then(|| resolve(&host, parts.port).ok()).flatten();
        let addresses = own.map_or_else(|| resolve(parts.host, parts.port), Ok).map_err(|error| {
            Error::system("s3", "the name of an endpoint cannot be resolved", error).with("endpoint", name)
        })?;
        let tls = if parts.is_tls {
            let name = ServerName::try_from(host.clone())
                .map_err(|_| Error::usage("s3", format!("{host:?} is not a valid server name")))?;
            Some(Tls { config: config()?, name })
        } else {
            None
        };
        Ok(Self { name: name.to_owned(), addresses, tls, host: header.into_bytes(), base })
    }
}

fn resolve(host: &str, port: u16) -> std::io::Result<Vec<SocketAddr>> {
    let addresses: Vec<_> = (host, port).to_socket_addrs()?.collect();
    if addresses.is_empty() {
        return Err(std::io::Error::new(std::io::ErrorKind::NotFound, "it has no address"));
    }
    Ok(addresses)
}

/// The settings of TLS: certificates of `bundle` (PEM) where it is given, else of the system.
///
/// # Errors
/// A bundle that cannot be read, or a system without certificates.
pub(crate) fn client_config(bundle: Option<&std::path::Path>) -> Result<Arc<ClientConfig>, Error> {
    use rustls::pki_types::{CertificateDer, pem::PemObject};
    let mut roots = rustls::RootCertStore::empty();
    match bundle {
        Some(path) => {
            let refuse = |why: String| {
                Error::new(ErrorKind::System, "s3", format!("the certificates cannot be read: {why}"))
                    .with("path", path.display())
                    .remedy("AWS_CA_BUNDLE must name a file with certificates in PEM")
            };
            for certificate in
                CertificateDer::pem_file_iter(path).map_err(|error| refuse(error.to_string()))?
            {
                let certificate = certificate.map_err(|error| refuse(error.to_string()))?;
                roots.add(certificate).map_err(|error| refuse(error.to_string()))?;
            }
            if roots.is_empty() {
                return Err(refuse("the file contains no certificates".to_owned()));
            }
        }
        None => {
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
            if roots.is_empty() {
                return Err(Error::new(ErrorKind::Unsupported, "s3", "this system has no certificates")
                    .remedy("install ca-certificates, or set AWS_CA_BUNDLE to a file with certificates"));
            }
        }
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| Error::new(ErrorKind::Run, "s3", format!("TLS: {error}")))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(Arc::new(config))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoints_are_taken_apart() {
        let header = |name: &str| parse(name).map(|parts| (parts.is_tls, parts.port, parts.header));
        let some = |is_tls, port, header: &str| Some((is_tls, port, header.to_owned()));
        assert_eq!(header("http://127.0.0.1:9000"), some(false, 9000, "127.0.0.1:9000"));
        assert_eq!(header("https://s3.example.org/"), some(true, 443, "s3.example.org"));
        assert_eq!(header("HTTP://host:80"), some(false, 80, "host"));
        assert_eq!(header("http://[::1]:81"), some(false, 81, "[::1]:81"));
        assert_eq!(parse("http://[::1]:81").expect("good").host, "::1");
        for bad in [
            "host:1",
            "ftp://host",
            "http://",
            "http://h:0",
            "http://h:x",
            "http://h/b",
            "http://u@h",
            "http://::1",
        ] {
            assert_eq!(header(bad), None, "{bad}");
        }
    }

    #[test]
    fn the_bucket_stands_in_the_path_or_in_the_host() {
        let no_tls = || Err(Error::usage("test", "no TLS here"));
        let path = Endpoint::new("http://127.0.0.1:9", "my_b", Addressing::Path, no_tls).expect("good");
        assert_eq!(
            (path.host.as_slice(), path.base.as_slice()),
            (b"127.0.0.1:9".as_slice(), b"/my_b".as_slice())
        );
        let host = Endpoint::new("http://127.0.0.1:9", "b", Addressing::VirtualHost, no_tls).expect("good");
        assert_eq!(
            (host.host.as_slice(), host.base.as_slice()),
            (b"b.127.0.0.1:9".as_slice(), b"".as_slice())
        );
        let refused =
            Endpoint::new("http://me:hunter2@h:9", "b", Addressing::Path, no_tls).err().expect("refused");
        let text = format!("{refused} {refused:?}");
        assert!(text.contains("http://***@h:9") && !text.contains("hunter2"), "{text}");
        let refused = Endpoint::new("127.0.0.1:9", "b", Addressing::Path, no_tls).err().expect("refused");
        assert!(refused.to_string().contains("http://host:port"), "{refused}");
        assert_eq!(refused.exit_code(), 2);
    }
}
