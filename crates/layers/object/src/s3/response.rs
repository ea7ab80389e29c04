//! Answers of a server: the head, and bodies in chunks (RFC 9112).

use std::mem::MaybeUninit;

/// Longest head of an answer, in bytes.
pub const HEAD_BYTES_MAX: usize = 8192;
/// Most headers of an answer.
const HEADERS_MAX: usize = 64;
/// Longest line between chunks (size and extensions, or a trailer), in bytes.
const LINE_BYTES_MAX: usize = 1024;
/// Longest ETag that is kept, in bytes.
pub const ETAG_BYTES_MAX: usize = 128;

/// Header that says which run has put an object.
pub const MARK: &str = "x-amz-meta-strata-run";

/// Fault of an answer that is no HTTP.
pub type Malformed = &'static str;

/// How the end of a body is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// So many bytes.
    Counted(u64),
    /// In chunks.
    Chunked,
    /// By the end of the connection: whether it is whole cannot be told.
    UntilClosed,
}

/// The ETag of an answer, as it was sent (with its quotes).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Etag {
    bytes: [u8; ETAG_BYTES_MAX],
    length: u8,
}

impl Default for Etag {
    fn default() -> Self {
        Self::NONE
    }
}

impl Etag {
    const NONE: Self = Self { bytes: [0; ETAG_BYTES_MAX], length: 0 };

    /// Its bytes; empty where there was none.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }
}

/// The head of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// Status: 200, 404, ...
    pub status: u16,
    /// How the end of the body is found.
    pub framing: Framing,
    /// The connection ends after this answer.
    pub closes: bool,
    /// Content-Range says that the answer begins here.
    pub range_begin: Option<u64>,
    /// ETag.
    pub etag: Etag,
    /// The run that the object carries the mark of.
    pub run: Option<u64>,
    /// Bytes of the head.
    pub length: usize,
}

/// The head that `bytes` begin with; none while it is not all there.
///
/// # Errors
/// A head that is too long, no HTTP/1.x, or has a length that is no number.
pub fn parse_head(bytes: &[u8]) -> Result<Option<Head>, Malformed> {
    let mut headers = [const { MaybeUninit::uninit() }; HEADERS_MAX];
    let mut response = httparse::Response::new(&mut []);
    let parser = httparse::ParserConfig::default();
    let length = match parser.parse_response_with_uninit_headers(&mut response, bytes, &mut headers) {
        Ok(httparse::Status::Complete(length)) => length,
        Ok(httparse::Status::Partial) if bytes.len() >= HEAD_BYTES_MAX => {
            return Err("its header is too long");
        }
        Ok(httparse::Status::Partial) => return Ok(None),
        Err(httparse::Error::TooManyHeaders) => return Err("it has more than 64 headers"),
        Err(_) => return Err("it is not HTTP/1.1"),
    };
    let mut head = Head {
        status: response.code.unwrap_or(0),
        framing: Framing::UntilClosed,
        closes: response.version == Some(0),
        range_begin: None,
        etag: Etag::NONE,
        run: None,
        length,
    };
    for header in response.headers.iter() {
        head.take(header.name, header.value)?;
    }
    if head.status < 200 || matches!(head.status, 204 | 304) {
        head.framing = Framing::Counted(0);
    }
    Ok(Some(head))
}

impl Head {
    fn take(&mut self, name: &str, value: &[u8]) -> Result<(), Malformed> {
        if name.eq_ignore_ascii_case("content-length") {
            let length = number(value).ok_or("its Content-Length is not a number")?;
            match self.framing {
                Framing::Counted(other) if other != length => return Err("it has two Content-Lengths"),
                // Chunks overrule a length (RFC 9112, 6.3).
                Framing::Chunked => {}
                _ => self.framing = Framing::Counted(length),
            }
        } else if name.eq_ignore_ascii_case("transfer-encoding") {
            if !value.eq_ignore_ascii_case(b"chunked") {
                return Err("its Transfer-Encoding is not chunked");
            }
            self.framing = Framing::Chunked;
        } else if name.eq_ignore_ascii_case("connection") {
            self.closes |= value.eq_ignore_ascii_case(b"close");
        } else if name.eq_ignore_ascii_case("etag") {
            if let Some(room) = self.etag.bytes.get_mut(..value.len()) {
                room.copy_from_slice(value);
                self.etag.length = value.len() as u8;
            }
        } else if name.eq_ignore_ascii_case(MARK) {
            self.run = std::str::from_utf8(value).ok().and_then(|text| u64::from_str_radix(text, 16).ok());
        } else if name.eq_ignore_ascii_case("content-range") {
            let begin =
                value.strip_prefix(b"bytes ").and_then(|rest| rest.split(|&byte| byte == b'-').next());
            self.range_begin = begin.and_then(number);
        }
        Ok(())
    }
}

fn number(digits: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(digits).ok()?;
    // Signs are no digits, though `parse` takes one.
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}

/// Where in a chunked body it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ChunkState {
    Size,
    Data,
    /// The line end after data.
    DataEnd,
    Trailer,
    Done,
}

/// Takes chunks apart, in whatever pieces they come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chunked {
    place: ChunkState,
    left: u64,
    digits: u8,
    line: usize,
    has_extension: bool,
}

impl Default for Chunked {
    fn default() -> Self {
        Self { place: ChunkState::Size, left: 0, digits: 0, line: 0, has_extension: false }
    }
}

impl Chunked {
    /// Whether the last chunk and the trailer are through.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.place == ChunkState::Done
    }

    /// Takes bytes in and hands data out. How many of them it took: all, or what belongs to this body.
    ///
    /// # Errors
    /// A fault of the chunks, or the answer of `data`.
    pub fn take<E: From<Malformed>>(
        &mut self,
        bytes: &[u8],
        mut data: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<usize, E> {
        let mut at = 0;
        while at < bytes.len() && !self.is_done() {
            if self.place == ChunkState::Data {
                let count = self.left.min((bytes.len() - at) as u64) as usize;
                data(&bytes[at..at + count])?;
                at += count;
                self.left -= count as u64;
                if self.left == 0 {
                    (self.place, self.line) = (ChunkState::DataEnd, 0);
                }
                continue;
            }
            self.line_byte(bytes[at])?;
            at += 1;
        }
        Ok(at)
    }

    fn line_byte(&mut self, byte: u8) -> Result<(), Malformed> {
        if byte == b'\n' {
            return self.line_end();
        }
        if byte == b'\r' {
            return Ok(());
        }
        self.line += 1;
        if self.line > LINE_BYTES_MAX {
            return Err("a line between its chunks is too long");
        }
        match self.place {
            ChunkState::Size if self.has_extension => {}
            ChunkState::Size if matches!(byte, b';' | b' ' | b'\t') => self.has_extension = true,
            ChunkState::Size => {
                let digit = (byte as char).to_digit(16).ok_or("the size of a chunk is not a number")?;
                if self.digits == 16 {
                    return Err("a chunk is too large");
                }
                self.digits += 1;
                self.left = self.left << 4 | u64::from(digit);
            }
            ChunkState::DataEnd => return Err("a chunk is longer than announced"),
            ChunkState::Data | ChunkState::Trailer | ChunkState::Done => {}
        }
        Ok(())
    }

    fn line_end(&mut self) -> Result<(), Malformed> {
        match self.place {
            ChunkState::Size if self.digits == 0 => return Err("the size of a chunk is not a number"),
            ChunkState::Size if self.left == 0 => self.place = ChunkState::Trailer,
            ChunkState::Size => self.place = ChunkState::Data,
            ChunkState::DataEnd => self.place = ChunkState::Size,
            ChunkState::Trailer if self.line == 0 => self.place = ChunkState::Done,
            ChunkState::Data | ChunkState::Trailer | ChunkState::Done => {}
        }
        (self.digits, self.line, self.has_extension) = (0, 0, false);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn head(text: &str) -> Result<Option<Head>, Malformed> {
        parse_head(text.as_bytes())
    }

    #[test]
    fn heads_are_read_once_they_are_whole() {
        let text = "HTTP/1.1 206 Partial Content\r\nContent-Length: 12\r\ncontent-range: bytes 4096-4107/9000\r\n\
                    ETag: \"abc\"\r\nConnection: close\r\n\r\nbody";
        let found = head(text).expect("good").expect("whole");
        assert_eq!((found.status, found.framing, found.closes), (206, Framing::Counted(12), true));
        assert_eq!((found.range_begin, found.etag.as_bytes()), (Some(4096), b"\"abc\"".as_slice()));
        assert_eq!(&text[found.length..], "body");
        for end in 0..found.length {
            assert_eq!(head(&text[..end]), Ok(None), "{end}");
        }
    }

    #[test]
    fn what_cannot_be_trusted_is_refused() {
        for text in [
            "HTTP/1.1 200 OK\r\nContent-Length: +5\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n",
            "SSH-2.0-OpenSSH\r\n\r\n",
        ] {
            assert!(head(text).is_err(), "{text}");
        }
        assert!(parse_head(&[b"HTTP/1.1 200 OK\r\nX: ".as_slice(), &[b'x'; 9000]].concat()).is_err());
        let none = head("HTTP/1.1 200 OK\r\n\r\n").expect("good").expect("whole");
        assert_eq!(none.framing, Framing::UntilClosed);
        let empty = head("HTTP/1.1 204 No Content\r\n\r\n").expect("good").expect("whole");
        assert_eq!(empty.framing, Framing::Counted(0));
    }

    fn dechunk(chunked: &mut Chunked, bytes: &[u8], into: &mut Vec<u8>) -> Result<usize, Malformed> {
        chunked.take(bytes, |data| {
            into.extend_from_slice(data);
            Ok(())
        })
    }

    #[test]
    fn chunks_that_lie_are_refused() {
        for bytes in ["x\r\n", "\r\n", "3\r\nabcd\r\n", "11111111111111111\r\n"] {
            let (mut chunked, mut data) = (Chunked::default(), Vec::new());
            assert!(dechunk(&mut chunked, bytes.as_bytes(), &mut data).is_err(), "{bytes:?}");
        }
    }

    proptest! {
        #[test]
        fn chunks_come_together_however_they_are_cut(
            pieces in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..40), 0..8),
            cuts in prop::collection::vec(1..20_usize, 1..8),
            has_extension: bool,
        ) {
            let mut wire = Vec::new();
            for piece in &pieces {
                let extension = if has_extension { ";a=1" } else { "" };
                wire.extend_from_slice(format!("{:X}{extension}\r\n", piece.len()).as_bytes());
                wire.extend_from_slice(piece);
                wire.extend_from_slice(b"\r\n");
            }
            wire.extend_from_slice(b"0\r\nTrailer: x\r\n\r\nnext");
            let (mut chunked, mut data, mut at) = (Chunked::default(), Vec::new(), 0);
            for cut in cuts.iter().cycle() {
                let end = (at + cut).min(wire.len());
                at += dechunk(&mut chunked, &wire[at..end], &mut data).expect("good");
                if chunked.is_done() {
                    break;
                }
            }
            prop_assert_eq!(data, pieces.concat());
            prop_assert_eq!(&wire[at..], b"next");
        }

        #[test]
        fn no_bytes_make_it_panic(bytes: Vec<u8>) {
            let _ = parse_head(&bytes);
            let mut data = Vec::new();
            let _ = dechunk(&mut Chunked::default(), &bytes, &mut data);
            prop_assert!(data.len() <= bytes.len());
        }
    }
}
