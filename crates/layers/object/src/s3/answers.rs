//! Answers that were not what was asked for: which errno they become, and how often they came.

use std::io;

use super::scanner::Found;

/// Most kinds of answers that are told apart.
const KINDS_MAX: usize = 16;

/// Why an exchange came to no end: one line of findings each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    /// There was an answer: its status says why.
    Answered,
    /// The connection was lost, with this errno.
    Lost(i32),
    /// The answer cannot be understood.
    Malformed(&'static str),
    /// The value is longer than what was asked for.
    TooLong,
    /// No answer came in time.
    Silent,
}

/// A kind of answer of a server, or of its absence.
#[derive(Clone, Debug)]
struct Kind {
    status: u16,
    cause: Cause,
    /// Code of the error, or the endpoint that was lost.
    name: Vec<u8>,
    message: String,
    retried: u64,
    failed: u64,
}

/// Counts answers by status and code. Only the first of a kind costs memory.
#[derive(Debug)]
pub(crate) struct Answers {
    kinds: Vec<Kind>,
    other: u64,
    pub(crate) retries: u64,
    pub(crate) lost: u64,
}

impl Default for Answers {
    fn default() -> Self {
        Self { kinds: Vec::with_capacity(KINDS_MAX), other: 0, retries: 0, lost: 0 }
    }
}

impl Answers {
    /// An answer of a server that is no success.
    pub(crate) fn answered(&mut self, status: u16, found: &Found, is_retried: bool) {
        let name = if found.code.is_empty() { phrase(status).as_bytes() } else { &found.code };
        self.count((status, Cause::Answered), name, is_retried, || {
            String::from_utf8_lossy(&found.message).into_owned()
        });
    }

    /// An exchange that came to no end; `endpoint` names the server.
    pub(crate) fn failed(
        &mut self,
        endpoint: &str,
        cause: Cause,
        why: impl FnOnce() -> String,
        is_retried: bool,
    ) {
        self.count((0, cause), endpoint.as_bytes(), is_retried, why);
    }

    fn count(
        &mut self,
        (status, cause): (u16, Cause),
        name: &[u8],
        is_retried: bool,
        message: impl FnOnce() -> String,
    ) {
        self.retries += u64::from(is_retried);
        let is_this = |kind: &Kind| (kind.status, kind.cause) == (status, cause) && kind.name == name;
        let known = self.kinds.iter().position(is_this);
        let kind = match known {
            Some(index) => &mut self.kinds[index],
            None if self.kinds.len() == KINDS_MAX => {
                self.other += 1;
                return;
            }
            None => {
                let message = one_line(&message());
                self.kinds.push(Kind { status, cause, name: name.to_vec(), message, retried: 0, failed: 0 });
                let last = self.kinds.len() - 1;
                &mut self.kinds[last]
            }
        };
        if is_retried {
            kind.retried += 1;
        } else {
            kind.failed += 1;
        }
    }

    /// One line a kind: `503 SlowDown: 12 retried`.
    pub(crate) fn lines(&self) -> Vec<String> {
        let mut lines: Vec<_> = self.kinds.iter().map(Kind::line).collect();
        if self.other > 0 {
            lines.push(format!("{} more answers of other kinds", self.other));
        }
        lines.truncate(KINDS_MAX);
        lines
    }
}

impl Kind {
    fn line(&self) -> String {
        let name = String::from_utf8_lossy(&self.name);
        let counts = match (self.retried, self.failed) {
            (retried, 0) => format!("{retried} retried"),
            (0, failed) => format!("{failed} failed"),
            (retried, failed) => format!("{retried} retried, {failed} failed"),
        };
        let why = match (self.failed, self.status) {
            (0, 1..) => String::new(),
            _ if self.message.is_empty() => String::new(),
            _ => format!(" ({})", self.message),
        };
        if self.status == 0 {
            format!("{name}: {counts}{why}")
        } else {
            format!("{} {name}: {counts}{why}", self.status)
        }
    }
}

fn one_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(200).collect()
}

/// The reason of a status, for answers without a body (RFC 9110).
pub(crate) fn phrase(status: u16) -> &'static str {
    match status {
        301 => "Moved Permanently",
        307 => "Temporary Redirect",
        400 => "Bad Request",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        409 => "Conflict",
        412 => "Precondition Failed",
        416 => "Range Not Satisfiable",
        429 => "Too Many Requests",
        500 => "Internal Server Error",
        501 => "Not Implemented",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        504 => "Gateway Timeout",
        507 => "Insufficient Storage",
        _ => "answer",
    }
}

/// Whether a request is sent again after such an answer (API reference of Amazon S3, "Error Responses").
pub(crate) fn is_temporary(status: u16, found: &Found) -> bool {
    matches!(status, 429 | 500 | 502 | 503 | 504)
        || matches!(
            found.code.as_slice(),
            b"SlowDown" | b"InternalError" | b"RequestTimeout" | b"ServiceUnavailable"
        )
}

/// The errno of an answer.
pub(crate) fn errno_of(status: u16, found: &Found) -> i32 {
    match (status, found.code.as_slice()) {
        (_, b"QuotaExceeded") | (507, _) => libc::ENOSPC,
        (_, b"SlowDown" | b"ServiceUnavailable") | (503 | 429, _) => libc::EBUSY,
        (401 | 403, _) => libc::EACCES,
        (404, _) => libc::ENOENT,
        (409 | 412, _) => libc::EEXIST,
        (501, _) => libc::EOPNOTSUPP,
        (504, _) => libc::ETIMEDOUT,
        (400..=499, _) => libc::EINVAL,
        _ => libc::EIO,
    }
}

/// The errno of a lost connection.
pub(crate) fn errno_of_loss(error: &io::Error) -> i32 {
    error.raw_os_error().unwrap_or(match error.kind() {
        io::ErrorKind::InvalidData | io::ErrorKind::Other => libc::EPROTO,
        _ => libc::ECONNRESET,
    })
}

/// A lost connection in words.
pub(crate) fn words_of_loss(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => {
            "the server closed the connection before its answer was complete".to_owned()
        }
        io::ErrorKind::InvalidData if is_of_unknown_issuer(error) => {
            format!(
                "TLS: {error}: to trust its issuer, set AWS_CA_BUNDLE=FILE to the issuer's certificate in PEM"
            )
        }
        io::ErrorKind::InvalidData => format!("TLS: {error}"),
        _ => error.to_string(),
    }
}

/// Whether the server's certificate was signed by nobody that is known here.
fn is_of_unknown_issuer(error: &io::Error) -> bool {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
    matches!(inner, Some(rustls::Error::InvalidCertificate(rustls::CertificateError::UnknownIssuer)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(code: &str, message: &str) -> Found {
        Found { code: code.into(), message: message.into(), ..Found::default() }
    }

    #[test]
    fn kinds_are_counted_and_bounded() {
        let mut answers = Answers::default();
        let slow = found("SlowDown", "Please reduce your request rate.");
        (0..12).for_each(|_| answers.answered(503, &slow, true));
        answers.answered(403, &found("SignatureDoesNotMatch", "It\ndoes not match."), false);
        answers.answered(404, &Found::default(), false);
        answers.failed("http://a:1", Cause::Lost(111), || "Connection refused".to_owned(), true);
        answers.failed("http://a:1", Cause::TooLong, || "too long".to_owned(), false);
        assert_eq!(
            answers.lines(),
            [
                "503 SlowDown: 12 retried",
                "403 SignatureDoesNotMatch: 1 failed (It does not match.)",
                "404 Not Found: 1 failed",
                "http://a:1: 1 retried (Connection refused)",
                "http://a:1: 1 failed (too long)",
            ]
        );
        assert_eq!(answers.retries, 13);
        (0..50).for_each(|number| answers.answered(400, &found(&format!("E{number}"), ""), false));
        assert_eq!(answers.lines().len(), KINDS_MAX);
    }

    #[test]
    fn answers_become_errnos() {
        let none = Found::default();
        let known = [
            (403, libc::EACCES),
            (404, libc::ENOENT),
            (503, libc::EBUSY),
            (500, libc::EIO),
            (400, libc::EINVAL),
        ];
        for (status, errno) in known {
            assert_eq!(errno_of(status, &none), errno, "{status}");
        }
        assert_eq!(errno_of(403, &found("QuotaExceeded", "")), libc::ENOSPC);
        assert!(is_temporary(503, &none) && is_temporary(200, &found("InternalError", "")));
        assert!(!is_temporary(404, &none));
    }
}
