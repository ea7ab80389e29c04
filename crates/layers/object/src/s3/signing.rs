//! Signatures of requests: AWS Signature Version 4, in the `Authorization` header.
//!
//! The rules are those of "Signature Calculations for the Authorization Header" in the API reference of Amazon S3; their examples are
//! the known answers of the tests.

use ring::{digest, hmac};

use super::text;
use crate::plan::S3Key;

const ALGORITHM: &[u8] = b"AWS4-HMAC-SHA256";
/// SHA-256 of no bytes.
pub(crate) const EMPTY_PAYLOAD: &[u8; 64] =
    b"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
/// Stands where the hash of a payload would, where it is not signed.
pub(crate) const UNSIGNED_PAYLOAD: &[u8] = b"UNSIGNED-PAYLOAD";

/// Parts of a request that are signed.
#[derive(Clone, Copy, Debug)]
pub struct Canonical<'a> {
    /// `GET`, `PUT`, ...
    pub method: &'a str,
    /// Path, escaped.
    pub path: &'a [u8],
    /// Query, escaped and sorted by name; each name with an `=`.
    pub query: &'a [u8],
    /// Headers in lower case, sorted by name.
    pub headers: &'a [(&'a str, &'a [u8])],
    /// SHA-256 of the payload in hexadecimal, or `UNSIGNED-PAYLOAD`.
    pub payload: &'a [u8],
}

/// Signs requests. It keeps the key of the day and the text of the second.
pub struct Signer {
    credentials: S3Key,
    region: String,
    second: u64,
    stamp: [u8; 16],
    key: hmac::Key,
}

impl Signer {
    /// A signer for a region. [`Signer::set_time`] comes before the first signature.
    #[must_use]
    pub fn new(credentials: S3Key, region: &str) -> Self {
        let stamp = text::stamp(0);
        let key = day_key(&credentials, &stamp[..8], region);
        Self { credentials, region: region.to_owned(), second: 0, stamp, key }
    }

    /// Sets the time of the requests to come, in seconds since 1970.
    pub fn set_time(&mut self, unix_seconds: u64) {
        if unix_seconds == self.second {
            return;
        }
        let stamp = text::stamp(unix_seconds);
        if stamp[..8] != self.stamp[..8] {
            self.key = day_key(&self.credentials, &stamp[..8], &self.region);
        }
        (self.second, self.stamp) = (unix_seconds, stamp);
    }

    /// Value of the header `x-amz-date`.
    #[must_use]
    pub fn stamp(&self) -> &[u8; 16] {
        &self.stamp
    }

    /// The signature in hexadecimal.
    #[must_use]
    pub fn signature(&self, request: &Canonical<'_>) -> [u8; 64] {
        let hash = text::hex(canonical_hash(request).as_ref());
        let mut context = hmac::Context::with_key(&self.key);
        let day = &self.stamp[..8];
        let region = self.region.as_bytes();
        for part in
            [ALGORITHM, b"\n", &self.stamp, b"\n", day, b"/", region, b"/s3/aws4_request\n", hash.as_slice()]
        {
            context.update(part);
        }
        text::hex(context.sign().as_ref())
    }

    /// Appends the `Authorization` header with its line end.
    pub fn authorize(&self, out: &mut Vec<u8>, signature: &[u8; 64], headers: &[(&str, &[u8])]) {
        out.extend_from_slice(b"Authorization: ");
        out.extend_from_slice(ALGORITHM);
        out.extend_from_slice(b" Credential=");
        out.extend_from_slice(self.credentials.access.as_bytes());
        out.push(b'/');
        out.extend_from_slice(&self.stamp[..8]);
        out.push(b'/');
        out.extend_from_slice(self.region.as_bytes());
        out.extend_from_slice(b"/s3/aws4_request, SignedHeaders=");
        for (index, (name, _)) in headers.iter().enumerate() {
            if index > 0 {
                out.push(b';');
            }
            out.extend_from_slice(name.as_bytes());
        }
        out.extend_from_slice(b", Signature=");
        out.extend_from_slice(signature);
        out.extend_from_slice(b"\r\n");
    }
}

/// SHA-256 of a payload in hexadecimal.
pub(crate) fn payload_hash(payload: &[u8]) -> [u8; 64] {
    if payload.is_empty() {
        return *EMPTY_PAYLOAD;
    }
    text::hex(digest::digest(&digest::SHA256, payload).as_ref())
}

fn day_key(credentials: &S3Key, day: &[u8], region: &str) -> hmac::Key {
    let mut first = b"AWS4".to_vec();
    first.extend_from_slice(credentials.secret.as_bytes());
    let mut key = hmac::Key::new(hmac::HMAC_SHA256, &first);
    for part in [day, region.as_bytes(), b"s3", b"aws4_request"] {
        key = hmac::Key::new(hmac::HMAC_SHA256, hmac::sign(&key, part).as_ref());
    }
    key
}

fn canonical_hash(request: &Canonical<'_>) -> digest::Digest {
    // One buffer on the stack: the hash takes a piece of a block as slowly as a whole one.
    let mut hash = Pieces { context: digest::Context::new(&digest::SHA256), held: [0; 512], length: 0 };
    for part in [request.method.as_bytes(), b"\n", request.path, b"\n", request.query, b"\n"] {
        hash.add(part);
    }
    for (name, value) in request.headers {
        for part in [name.as_bytes(), b":", value, b"\n"] {
            hash.add(part);
        }
    }
    for (index, (name, _)) in request.headers.iter().enumerate() {
        hash.add(if index == 0 { b"\n" } else { b";" });
        hash.add(name.as_bytes());
    }
    hash.add(b"\n");
    hash.add(request.payload);
    hash.finish()
}

struct Pieces {
    context: digest::Context,
    held: [u8; 512],
    length: usize,
}

impl Pieces {
    fn add(&mut self, part: &[u8]) {
        if self.length + part.len() > self.held.len() {
            self.context.update(&self.held[..self.length]);
            self.length = 0;
        }
        match self.held.get_mut(self.length..self.length + part.len()) {
            Some(room) => {
                room.copy_from_slice(part);
                self.length += part.len();
            }
            None => self.context.update(part),
        }
    }

    fn finish(mut self) -> digest::Digest {
        self.context.update(&self.held[..self.length]);
        self.context.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 24 May 2013, 00:00 UTC: the time of the published examples.
    const EXAMPLE_SECONDS: u64 = 1_369_353_600;
    const HOST: (&str, &[u8]) = ("host", b"examplebucket.s3.amazonaws.com");
    const DATE: (&str, &[u8]) = ("x-amz-date", b"20130524T000000Z");
    const EMPTY: (&str, &[u8]) = ("x-amz-content-sha256", EMPTY_PAYLOAD);

    fn signer() -> Signer {
        let credentials = S3Key {
            access: "AKIAIOSFODNN7EXAMPLE".to_owned(),
            secret: "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY".to_owned(),
        };
        let mut signer = Signer::new(credentials, "us-east-1");
        signer.set_time(EXAMPLE_SECONDS);
        signer
    }

    fn signature(
        method: &str,
        path: &[u8],
        query: &[u8],
        headers: &[(&str, &[u8])],
        payload: &[u8],
    ) -> String {
        let request = Canonical { method, path, query, headers, payload };
        String::from_utf8(signer().signature(&request).to_vec()).expect("hexadecimal")
    }

    #[test]
    fn published_examples_come_out() {
        let range: (&str, &[u8]) = ("range", b"bytes=0-9");
        assert_eq!(
            signature("GET", b"/test.txt", b"", &[HOST, range, EMPTY, DATE], EMPTY_PAYLOAD),
            "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"
        );
        let hash = payload_hash(b"Welcome to Amazon S3.");
        assert_eq!(&hash, b"44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072");
        let headers: [(&str, &[u8]); 5] = [
            ("date", b"Fri, 24 May 2013 00:00:00 GMT"),
            HOST,
            ("x-amz-content-sha256", &hash),
            DATE,
            ("x-amz-storage-class", b"REDUCED_REDUNDANCY"),
        ];
        assert_eq!(
            signature("PUT", b"/test%24file.text", b"", &headers, &hash),
            "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd"
        );
        assert_eq!(
            signature("GET", b"/", b"lifecycle=", &[HOST, EMPTY, DATE], EMPTY_PAYLOAD),
            "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543"
        );
        assert_eq!(
            signature("GET", b"/", b"max-keys=2&prefix=J", &[HOST, EMPTY, DATE], EMPTY_PAYLOAD),
            "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"
        );
    }

    #[test]
    fn a_path_longer_than_the_buffer_is_hashed_whole() {
        let path = vec![b'x'; 1300];
        let mut whole = b"GET\n".to_vec();
        whole.extend_from_slice(&path);
        whole.extend_from_slice(b"\n\nhost:examplebucket.s3.amazonaws.com\n\nhost\nUNSIGNED-PAYLOAD");
        let request =
            Canonical { method: "GET", path: &path, query: b"", headers: &[HOST], payload: UNSIGNED_PAYLOAD };
        assert_eq!(canonical_hash(&request).as_ref(), digest::digest(&digest::SHA256, &whole).as_ref());
    }

    #[test]
    fn the_header_names_what_is_signed_and_not_the_secret() {
        let mut header = Vec::new();
        signer().authorize(&mut header, &[b'0'; 64], &[HOST, EMPTY, DATE]);
        let header = String::from_utf8(header).expect("text");
        assert!(header.starts_with(
            "Authorization: AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request, \
             SignedHeaders=host;x-amz-content-sha256;x-amz-date, Signature=0000"
        ));
        assert!(header.ends_with("\r\n") && !header.contains("wJalr"));
    }

    #[test]
    fn the_key_changes_with_the_day() {
        let mut signer = signer();
        let request =
            Canonical { method: "GET", path: b"/", query: b"", headers: &[HOST], payload: EMPTY_PAYLOAD };
        let before = signer.signature(&request);
        signer.set_time(EXAMPLE_SECONDS + 86_400);
        assert_ne!(before, signer.signature(&request));
        signer.set_time(EXAMPLE_SECONDS);
        assert_eq!(before, signer.signature(&request));
    }
}
