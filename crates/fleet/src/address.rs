//! Where agents are: `name`, `name:port`, IPv4 with or without a port, `[IPv6]`, `[IPv6]:port`.

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};

use driver::Error;

/// Longest name of a host, by RFC 1035.
const NAME_BYTES_MAX: usize = 253;

/// Longest label of a name, by RFC 1035.
const LABEL_BYTES_MAX: usize = 63;

/// A host and the port of its agent. Equal addresses are written alike: names in lower case, IPv6 in its short form.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct HostAddress {
    host: String,
    port: u16,
}

impl HostAddress {
    /// Reads one address; `port_default` stands in where it has no port.
    ///
    /// # Errors
    ///
    /// A text that is no name, IPv4 or bracketed IPv6 address, and a port that is not 1 to 65535.
    pub fn parse(text: &str, port_default: u16) -> Result<Self, Error> {
        let text = text.trim();
        let (host, port) = if let Some(rest) = text.strip_prefix('[') {
            let (inside, after) =
                rest.split_once(']').ok_or_else(|| bad(text, "the bracket is not closed"))?;
            let port = match after {
                "" => None,
                _ => Some(
                    after
                        .strip_prefix(':')
                        .ok_or_else(|| bad(text, "the bracket must be followed by :port"))?,
                ),
            };
            (ipv6(inside).ok_or_else(|| bad(text, "the brackets must contain an IPv6 address"))?, port)
        } else {
            let (host, port) = match text.split_once(':') {
                Some((host, port)) => (host, Some(port)),
                None => (text, None),
            };
            if port.is_some_and(|port| port.contains(':')) {
                return Err(bad(text, "an IPv6 address requires brackets"));
            }
            (name(host).map_err(|why| bad(text, why))?, port)
        };
        let port = match port {
            None => port_default,
            Some(digits) => port_number(digits).ok_or_else(|| bad(text, "the port must be 1 to 65535"))?,
        };
        Ok(Self { host, port })
    }

    /// Name or address, without brackets.
    #[must_use]
    pub fn host(&self) -> &str {
        &self.host
    }

    /// Port of the agent's control channel.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }
}

impl fmt::Display for HostAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

impl From<std::net::SocketAddr> for HostAddress {
    fn from(address: std::net::SocketAddr) -> Self {
        Self { host: address.ip().to_string(), port: address.port() }
    }
}

/// Reads a list of hosts, parted by commas, blanks and line ends; `#` begins a comment that ends with its line.
///
/// # Errors
///
/// An address that [`HostAddress::parse`] refuses, an address that stands there twice, an empty list.
pub fn parse_hosts(text: &str, port_default: u16) -> Result<Vec<HostAddress>, Error> {
    let mut hosts: Vec<HostAddress> = Vec::new();
    let mut seen = std::collections::HashSet::new();
    let words = text
        .lines()
        .map(|line| line.split_once('#').map_or(line, |(before, _)| before))
        .flat_map(|line| line.split([',', ' ', '\t']))
        .map(str::trim)
        .filter(|word| !word.is_empty());
    for word in words {
        let host = HostAddress::parse(word, port_default)?;
        if !seen.insert(host.clone()) {
            return Err(Error::usage("hosts", format!("{host} is listed twice"))
                .remedy("list each host and port once"));
        }
        hosts.push(host);
    }
    if hosts.is_empty() {
        return Err(Error::usage("hosts", "the list of hosts is empty"));
    }
    Ok(hosts)
}

fn bad(text: &str, why: &str) -> Error {
    let shown: String = text.chars().take(80).flat_map(char::escape_debug).collect();
    Error::usage("hosts", format!("'{shown}' is not a host: {why}"))
        .remedy("accepted: name, name:port, 192.0.2.1:port, [2001:db8::1]:port")
}

fn port_number(digits: &str) -> Option<u16> {
    let is_number = (1..=5).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| digits.parse().ok()).flatten().filter(|port| *port != 0)
}

/// An IPv6 address, with a zone (`%eth0`) where it has one.
fn ipv6(text: &str) -> Option<String> {
    let (address, zone) = match text.split_once('%') {
        Some((address, zone)) => (address, Some(zone)),
        None => (text, None),
    };
    let address: Ipv6Addr = address.parse().ok()?;
    match zone {
        None => Some(address.to_string()),
        Some(zone) => {
            let is_name = (1..=15).contains(&zone.len())
                && zone.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte));
            is_name.then(|| format!("{address}%{zone}"))
        }
    }
}

fn name(text: &str) -> Result<String, &'static str> {
    if text.is_empty() {
        return Err("it has no name");
    }
    if text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') {
        return text.parse::<Ipv4Addr>().map(|it| it.to_string()).map_err(|_| "it is not an IPv4 address");
    }
    if text.len() > NAME_BYTES_MAX {
        return Err("the name is longer than 253 bytes");
    }
    let is_label = |label: &str| {
        (1..=LABEL_BYTES_MAX).contains(&label.len())
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
    };
    if !text.strip_suffix('.').unwrap_or(text).split('.').all(is_label) {
        return Err("a name consists of letters, digits, '-' and '_', in parts of at most 63 joined by '.'");
    }
    Ok(text.to_ascii_lowercase())
}
