//! Answers, whole or broken on purpose.

use std::convert::Infallible;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use hyper::body::{Body, Bytes, Frame, SizeHint};
use hyper::header::{HeaderName, HeaderValue};
use hyper::{Response, StatusCode};

use super::faults::Fault;

/// Status, code and message of an error.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Refused(pub(crate) u16, pub(crate) &'static str, pub(crate) &'static str);

/// The body of an answer.
#[derive(Debug)]
pub(crate) struct Answer {
    data: Option<Bytes>,
    /// Bytes that are promised; none: it comes in chunks.
    promised: Option<u64>,
    /// The connection ends before all that was promised has come.
    is_cut: bool,
}

impl Answer {
    pub(crate) fn of(data: Bytes) -> Self {
        Self {
            promised: Some(data.len() as u64),
            data: Some(data).filter(|data| !data.is_empty()),
            is_cut: false,
        }
    }

    fn broken(mut self, fault: Fault) -> Self {
        match fault {
            Fault::Chunked => self.promised = None,
            Fault::CutBody => {
                self.data = self.data.map(|data| data.slice(..data.len() / 2));
                self.is_cut = true;
            }
            _ => {}
        }
        self
    }
}

impl Body for Answer {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        match self.data.take() {
            Some(data) => Poll::Ready(Some(Ok(Frame::data(data)))),
            None if std::mem::take(&mut self.is_cut) => {
                Poll::Ready(Some(Err(io::Error::other("cut on purpose"))))
            }
            None => Poll::Ready(None),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.data.is_none() && !self.is_cut && self.promised.is_some()
    }

    fn size_hint(&self) -> SizeHint {
        self.promised.map_or_else(SizeHint::new, SizeHint::with_exact)
    }
}

/// An answer that is being made.
pub(crate) struct Draft {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) data: Bytes,
}

impl Draft {
    pub(crate) fn empty(status: u16) -> Self {
        Self { status, headers: Vec::new(), data: Bytes::new() }
    }

    pub(crate) fn xml(body: &str) -> Self {
        let text = format!("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n{body}");
        Self { status: 200, headers: vec![("content-type", "application/xml".to_owned())], data: text.into() }
    }

    pub(crate) fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    /// The answer; `length`: what Content-Length says in place of the body (HEAD).
    pub(crate) fn finish(self, fault: Fault, length: Option<usize>) -> Result<Response<Answer>, Infallible> {
        let mut response = Response::new(Answer::of(self.data).broken(fault));
        *response.status_mut() =
            StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        for (name, value) in self.headers {
            if let Ok(value) = HeaderValue::from_str(&value) {
                response.headers_mut().insert(HeaderName::from_static(name), value);
            }
        }
        if let Some(length) = length {
            response.headers_mut().insert("content-length", HeaderValue::from(length));
        }
        if fault == Fault::Close {
            response.headers_mut().insert("connection", HeaderValue::from_static("close"));
        }
        Ok(response)
    }
}

impl From<Refused> for Draft {
    fn from(Refused(status, code, message): Refused) -> Self {
        let body = format!(
            "<Error><Code>{code}</Code><Message>{message}</Message><RequestId>4442587FB7D0A2F9</RequestId></Error>"
        );
        Self { status, ..Self::xml(&body) }
    }
}

/// Text that may stand in XML.
pub(crate) fn escaped(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    // Control characters as references, as S3 has them.
    text.chars().fold(String::with_capacity(text.len()), |mut out, c| {
        if c.is_control() {
            out += &format!("&#x{:x};", u32::from(c));
        } else {
            out.push(c);
        }
        out
    })
}
