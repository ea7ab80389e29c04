//! Parts of a request: bucket, key, query.

use hyper::body::Incoming;
use hyper::{HeaderMap, Method, Request};

/// Names that the server answers to; what stands before one is a bucket.
const HOSTS: [&str; 2] = ["127.0.0.1", "localhost"];

/// A request, taken apart. Names are not escaped any more.
pub(crate) struct Parts {
    pub(crate) method: Method,
    /// As it was sent.
    pub(crate) path: String,
    pub(crate) bucket: String,
    pub(crate) key: String,
    pub(crate) query: Vec<(String, String)>,
    pub(crate) headers: HeaderMap,
}

impl Parts {
    /// None where it has no host, or names that are no UTF-8.
    pub(crate) fn new(request: &Request<Incoming>) -> Option<Self> {
        let host = request.headers().get("host")?.to_str().ok()?;
        let name = host.rsplit_once(':').map_or(host, |(name, _)| name);
        let virtual_bucket =
            HOSTS.iter().find_map(|own| name.strip_suffix(own).and_then(|rest| rest.strip_suffix('.')));
        let path = request.uri().path();
        let plain = decode(path)?;
        let plain = plain.strip_prefix('/')?;
        let (bucket, key) = match virtual_bucket {
            Some(bucket) => (bucket, plain),
            None => plain.split_once('/').unwrap_or((plain, "")),
        };
        let query = request.uri().query().unwrap_or_default().split('&').filter(|pair| !pair.is_empty());
        let query = query
            .map(|pair| {
                let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
                Some((decode(name)?, decode(value)?))
            })
            .collect::<Option<Vec<_>>>()?;
        Some(Self {
            method: request.method().clone(),
            path: path.to_owned(),
            bucket: bucket.to_owned(),
            key: key.to_owned(),
            query,
            headers: request.headers().clone(),
        })
    }

    pub(crate) fn asked(&self, name: &str) -> Option<&str> {
        self.query.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }

    /// First and last byte of a range within an object of `length` bytes. `Err`: it lies beyond the end.
    pub(crate) fn range(&self, length: usize) -> Result<Option<(usize, usize)>, ()> {
        let Some(text) = self.header("range").and_then(|text| text.strip_prefix("bytes=")) else {
            return Ok(None);
        };
        let Some((first, last)) = text.split_once('-') else { return Ok(None) };
        let first: usize = first.parse().map_err(|_| ())?;
        let last = if last.is_empty() { usize::MAX } else { last.parse().map_err(|_| ())? };
        if first >= length || last < first { Err(()) } else { Ok(Some((first, last.min(length - 1)))) }
    }
}

/// Text without its escapes; none where they are broken or it is no UTF-8.
pub(crate) fn decode(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        if *first == b'%' {
            let digits = std::str::from_utf8(tail.get(..2)?).ok()?;
            bytes.push(u8::from_str_radix(digits, 16).ok()?);
            rest = &tail[2..];
        } else {
            bytes.push(*first);
            rest = tail;
        }
    }
    String::from_utf8(bytes).ok()
}

/// Text escaped as signatures want it.
pub(crate) fn encode(text: &str, keeps_slashes: bool) -> String {
    use std::fmt::Write as _;
    text.bytes().fold(String::with_capacity(text.len()), |mut out, byte| {
        let c = byte as char;
        if c.is_ascii_alphanumeric() || "-_.~".contains(c) || (keeps_slashes && c == '/') {
            out.push(c);
        } else {
            let _infallible = write!(out, "%{byte:02X}");
        }
        out
    })
}
