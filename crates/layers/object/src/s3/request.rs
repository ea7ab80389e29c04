//! Requests, written into buffers that are kept.

use crate::plan::{S3Key, Signing};

use super::endpoint::Endpoint;
use super::response::MARK;
use super::signing::{Canonical, Signer, UNSIGNED_PAYLOAD, payload_hash};
use super::text;

/// Room that the head of a request needs at first, in bytes.
pub(crate) const HEAD_BYTES: usize = 1024;

/// When a request is to be carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Condition<'a> {
    /// In any case.
    Always,
    /// Where there is no such object.
    Absent,
    /// Where the object has this ETag.
    Matches(&'a [u8]),
}

/// Request to a server.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ask<'a> {
    /// `GET`, `PUT`, ...
    pub(crate) method: &'static str,
    /// The key, escaped; none: the bucket.
    pub(crate) key: Option<&'a [u8]>,
    /// The query, escaped and sorted by name.
    pub(crate) query: &'a [u8],
    /// First and last byte that a GET wants.
    pub(crate) range: Option<(u64, u64)>,
    /// Payload behind the head. Sent with PUT and POST.
    pub(crate) payload: &'a [u8],
    /// When it is to be carried out.
    pub(crate) condition: Condition<'a>,
    /// The mark of the run, for an object that is made.
    pub(crate) mark: Option<&'a [u8; 16]>,
}

impl Ask<'_> {
    /// An ask of the bucket or of a key, and nothing else.
    pub(crate) fn plain<'a>(method: &'static str, key: Option<&'a [u8]>, query: &'a [u8]) -> Ask<'a> {
        Ask { method, key, query, range: None, payload: &[], condition: Condition::Always, mark: None }
    }
}

/// Writes and signs the heads of requests.
pub(crate) struct Writer {
    signer: Option<Signer>,
    signing: Signing,
}

impl Writer {
    /// A writer; without credentials nothing is signed.
    pub(crate) fn new(credentials: Option<&S3Key>, region: &str, signing: Signing) -> Self {
        let credentials = credentials.filter(|_| signing != Signing::None);
        Self { signer: credentials.map(|credentials| Signer::new(credentials.clone(), region)), signing }
    }

    /// Sets the time of the requests to come, in seconds since 1970.
    pub(crate) fn set_time(&mut self, unix_seconds: u64) {
        if let Some(signer) = &mut self.signer {
            signer.set_time(unix_seconds);
        }
    }

    /// Writes the head of a request, in place of what `out` held.
    pub(crate) fn write(&self, out: &mut Vec<u8>, endpoint: &Endpoint, ask: &Ask<'_>) {
        out.clear();
        out.extend_from_slice(ask.method.as_bytes());
        out.push(b' ');
        let path_begin = out.len();
        out.extend_from_slice(&endpoint.base);
        if let Some(key) = ask.key {
            out.push(b'/');
            out.extend_from_slice(key);
        } else if endpoint.base.is_empty() {
            out.push(b'/');
        }
        let path_end = out.len();
        if !ask.query.is_empty() {
            out.push(b'?');
            out.extend_from_slice(ask.query);
        }
        out.extend_from_slice(b" HTTP/1.1\r\nHost: ");
        out.extend_from_slice(&endpoint.host);
        out.extend_from_slice(b"\r\n");
        if let Some(signer) = &self.signer {
            let hash;
            let payload = if self.signing == Signing::Payload {
                hash = payload_hash(ask.payload);
                hash.as_slice()
            } else {
                UNSIGNED_PAYLOAD
            };
            let headers: [(&str, &[u8]); 4] = [
                ("host", &endpoint.host),
                ("x-amz-content-sha256", payload),
                ("x-amz-date", signer.stamp()),
                (MARK, ask.mark.map_or(&[], |mark| mark.as_slice())),
            ];
            // Every header of the service's own that is sent is signed.
            let headers = if ask.mark.is_some() { &headers[..] } else { &headers[..3] };
            let signature = signer.signature(&Canonical {
                method: ask.method,
                path: &out[path_begin..path_end],
                query: ask.query,
                headers,
                payload,
            });
            out.extend_from_slice(b"x-amz-content-sha256: ");
            out.extend_from_slice(payload);
            out.extend_from_slice(b"\r\nx-amz-date: ");
            out.extend_from_slice(signer.stamp());
            out.extend_from_slice(b"\r\n");
            signer.authorize(out, &signature, headers);
        }
        write_options(out, ask);
        if matches!(ask.method, "PUT" | "POST") {
            out.extend_from_slice(b"Content-Length: ");
            text::decimal(out, ask.payload.len() as u64);
            out.extend_from_slice(b"\r\n");
        }
        out.extend_from_slice(b"\r\n");
    }
}

/// Writes what is sent with some requests: the mark of a run, a condition, a range.
fn write_options(out: &mut Vec<u8>, ask: &Ask<'_>) {
    if let Some(mark) = ask.mark {
        out.extend_from_slice(MARK.as_bytes());
        out.extend_from_slice(b": ");
        out.extend_from_slice(mark);
        out.extend_from_slice(b"\r\n");
    }
    match ask.condition {
        Condition::Always => {}
        Condition::Absent => out.extend_from_slice(b"If-None-Match: *\r\n"),
        Condition::Matches(etag) => {
            out.extend_from_slice(b"If-Match: ");
            out.extend_from_slice(etag);
            out.extend_from_slice(b"\r\n");
        }
    }
    if let Some((first, last)) = ask.range {
        out.extend_from_slice(b"Range: bytes=");
        text::decimal(out, first);
        out.push(b'-');
        text::decimal(out, last);
        out.extend_from_slice(b"\r\n");
    }
}

#[cfg(test)]
mod tests {
    use crate::plan::Addressing;

    use super::*;

    fn written(signing: Signing, ask: &Ask<'_>) -> String {
        let no_tls = || Err(driver::Error::usage("test", "no TLS here"));
        let endpoint = Endpoint::new("http://127.0.0.1:9", "b", Addressing::Path, no_tls).expect("good");
        let credentials = S3Key { access: "access".to_owned(), secret: "very-secret".to_owned() };
        let mut writer = Writer::new(Some(&credentials), "us-east-1", signing);
        writer.set_time(1_369_353_600);
        let mut out = b"before".to_vec();
        writer.write(&mut out, &endpoint, ask);
        String::from_utf8(out).expect("text")
    }

    #[test]
    fn a_put_carries_its_length_and_its_hash() {
        let ask = Ask {
            key: Some(b"k%20"),
            query: b"partNumber=1&uploadId=x",
            payload: b"Welcome to Amazon S3.",
            ..Ask::plain("PUT", None, b"")
        };
        let text = written(Signing::Payload, &ask);
        assert!(
            text.starts_with("PUT /b/k%20?partNumber=1&uploadId=x HTTP/1.1\r\nHost: 127.0.0.1:9\r\n"),
            "{text}"
        );
        assert!(text.contains(
            "x-amz-content-sha256: 44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072\r\n"
        ));
        assert!(text.ends_with("Content-Length: 21\r\n\r\n") && !text.contains("very-secret"));
        let text = written(Signing::Headers, &ask);
        assert!(text.contains("x-amz-content-sha256: UNSIGNED-PAYLOAD\r\n"), "{text}");
    }

    #[test]
    fn a_mark_is_signed_and_a_condition_is_not() {
        let ask = Ask {
            mark: Some(b"0123456789abcdef"),
            condition: Condition::Absent,
            ..Ask::plain("PUT", Some(b"k"), b"")
        };
        let text = written(Signing::Payload, &ask);
        assert!(
            text.contains("SignedHeaders=host;x-amz-content-sha256;x-amz-date;x-amz-meta-strata-run,"),
            "{text}"
        );
        assert!(
            text.contains("\r\nx-amz-meta-strata-run: 0123456789abcdef\r\nIf-None-Match: *\r\n"),
            "{text}"
        );
    }

    #[test]
    fn a_range_is_inclusive_and_nothing_is_signed_where_nobody_asks() {
        let ask = Ask { range: Some((4096, 8191)), ..Ask::plain("GET", Some(b"k"), b"") };
        assert_eq!(
            written(Signing::None, &ask),
            "GET /b/k HTTP/1.1\r\nHost: 127.0.0.1:9\r\nRange: bytes=4096-8191\r\n\r\n"
        );
        let bucket = Ask::plain("PUT", None, b"");
        assert!(written(Signing::None, &bucket).starts_with("PUT /b HTTP/1.1\r\n"));
    }
}
