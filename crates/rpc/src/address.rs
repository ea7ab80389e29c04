//! Addresses of endpoints: `tcp://10.0.0.1:31416`, `ofi+tcp://node01:31416`, `tcp://[fe80::1]:31416`.

use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};

use driver::Error;

/// How an endpoint is reached.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Provider {
    /// Sockets.
    Tcp,
    /// libfabric, by the name of its provider: `tcp`, `shm`, `verbs`, `cxi`; layered ones as `tcp;ofi_rxm`.
    Ofi(String),
}

impl Provider {
    /// Reads `tcp` or `ofi+NAME`.
    ///
    /// # Errors
    /// When it is neither.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let name_is_good = |name: &str| {
            let good = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | ';' | '-' | '.');
            !name.is_empty() && name.len() <= 64 && name.chars().all(good)
        };
        match text.strip_prefix("ofi+") {
            Some(name) if name_is_good(name) => Ok(Self::Ofi(name.to_owned())),
            None if text == "tcp" => Ok(Self::Tcp),
            _ => Err(Error::usage("address", format!("{text:?} is not a provider"))
                .remedy("accepted: tcp and ofi+NAME, such as ofi+tcp, ofi+shm, ofi+verbs, ofi+cxi")),
        }
    }
}

impl fmt::Display for Provider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp => f.write_str("tcp"),
            Self::Ofi(name) => write!(f, "ofi+{name}"),
        }
    }
}

/// An address of a rank, taken apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    /// How its endpoints are reached.
    pub provider: Provider,
    /// Name or IP address; IPv6 without brackets.
    pub host: String,
    /// TCP port of its acceptor.
    pub port: u16,
}

impl Address {
    /// Reads `PROVIDER://HOST:PORT`; IPv6 addresses stand in brackets.
    ///
    /// # Errors
    /// When it is none.
    pub fn parse(uri: &str) -> Result<Self, Error> {
        let malformed = || {
            let shown = units::without_password(uri);
            Error::usage("address", format!("{shown:?} is not an endpoint address"))
                .remedy("accepted: tcp://HOST:PORT and ofi+PROVIDER://HOST:PORT, IPv6 as tcp://[::1]:PORT")
        };
        let (scheme, rest) = uri.split_once("://").ok_or_else(malformed)?;
        let provider = Provider::parse(scheme).map_err(|_| malformed())?;
        let (host, port) = rest.rsplit_once(':').ok_or_else(malformed)?;
        let host = match host.strip_prefix('[') {
            Some(inner) => {
                inner.strip_suffix(']').filter(|inner| inner.contains(':')).ok_or_else(malformed)?
            }
            None if host.contains(':') => return Err(malformed()),
            None => host,
        };
        let good = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | ':' | '%');
        if host.is_empty() || host.len() > 255 || !host.chars().all(good) {
            return Err(malformed());
        }
        if port.is_empty() || !port.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(malformed());
        }
        let port = port.parse::<u16>().ok().filter(|&port| port > 0).ok_or_else(malformed)?;
        Ok(Self { provider, host: host.to_owned(), port })
    }

    /// The socket addresses that its host has, in the resolver's order. Asks the resolver unless the host is an IP address; how long
    /// that may take is the resolver's to say (resolv.conf(5)).
    ///
    /// # Errors
    /// `EHOSTUNREACH` when there is none.
    pub fn resolve(&self) -> io::Result<Vec<SocketAddr>> {
        if let Ok(ip) = self.host.parse::<IpAddr>() {
            return Ok(vec![SocketAddr::new(ip, self.port)]);
        }
        let none = || io::Error::from_raw_os_error(libc::EHOSTUNREACH);
        let found: Vec<_> = (self.host.as_str(), self.port).to_socket_addrs().map_err(|_| none())?.collect();
        if found.is_empty() { Err(none()) } else { Ok(found) }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { provider, host, port } = self;
        if host.contains(':') {
            write!(f, "{provider}://[{host}]:{port}")
        } else {
            write!(f, "{provider}://{host}:{port}")
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn addresses_are_taken_apart() {
        let parse = |uri: &str| Address::parse(uri).map(|a| (a.provider.to_string(), a.host, a.port));
        let cases = [
            ("tcp://10.0.0.1:31416", "tcp", "10.0.0.1", 31416),
            ("tcp://[::1]:1", "tcp", "::1", 1),
            ("tcp://[fe80::1%eth0]:65535", "tcp", "fe80::1%eth0", 65535),
            ("ofi+tcp;ofi_rxm://node-01.example:80", "ofi+tcp;ofi_rxm", "node-01.example", 80),
        ];
        for (uri, provider, host, port) in cases {
            assert_eq!(parse(uri).expect(uri), (provider.to_owned(), host.to_owned(), port));
            assert_eq!(Address::parse(uri).expect(uri).to_string(), uri);
        }
    }

    #[test]
    fn others_are_refused_in_one_line() {
        for uri in [
            "",
            "tcp",
            "tcp://",
            "tcp://a",
            "tcp://a:",
            "tcp://a:0",
            "tcp://a:65536",
            "tcp://a:+1",
            "udp://a:1",
            "ofi+://a:1",
            "tcp://::1:80",
            "tcp://[::1:80",
            "tcp://[a]:80",
            "tcp://a b:80",
            "tcp://:80",
            "tcp://a/:80",
        ] {
            let error = Address::parse(uri).expect_err(uri).to_string();
            assert!(error.contains("accepted: ") && error.lines().count() == 1, "{error}");
        }
    }

    #[test]
    fn names_are_resolved() {
        let address = Address::parse("tcp://localhost:7").expect("an address");
        assert!(address.resolve().expect("localhost").iter().all(|a| a.ip().is_loopback() && a.port() == 7));
    }

    proptest! {
        #[test]
        fn any_text_is_an_address_that_prints_so_or_refused(text in "(tcp|ofi\\+[a-z;_]{1,5}|x)://[\\[\\]a-z0-9:.%]{0,12}:[0-9]{1,5}") {
            if let Ok(address) = Address::parse(&text) {
                prop_assert_eq!(Address::parse(&address.to_string()).expect("printed"), address);
            }
        }
    }
}
