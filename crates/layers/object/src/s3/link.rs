//! One connection: a request goes out, its answer comes in, and the next follows on the same connection.

use std::io;
use std::net::SocketAddr;

use rpc::tcp::poller::Interest;

use super::endpoint::Tls;
use super::response::{Chunked, Etag, Framing, HEAD_BYTES_MAX, Head, Malformed, parse_head};
use super::scanner::Scanner;
use super::stream::{Opening, Stream};

/// Why an exchange failed.
#[derive(Debug)]
pub(crate) enum Trouble {
    /// The connection was lost, or never made.
    Lost(io::Error),
    /// The bytes that came are no answer.
    Malformed(Malformed),
    /// The value is longer than what was asked for: so many bytes.
    TooLong(u64),
}

impl From<Malformed> for Trouble {
    fn from(why: Malformed) -> Self {
        Self::Malformed(why)
    }
}

impl From<io::Error> for Trouble {
    fn from(error: io::Error) -> Self {
        Self::Lost(error)
    }
}

/// How far an exchange is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    /// Done.
    Done,
    /// It waits for the socket.
    Blocked,
}

/// Parts of an answer that are told once it is whole.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    /// Content-Length of the head; of a value, the bytes that came.
    pub(crate) bytes: u64,
    pub(crate) range_begin: Option<u64>,
    pub(crate) etag: Etag,
    /// The run that the object carries the mark of.
    pub(crate) run: Option<u64>,
}

/// Expectations of an answer.
pub(crate) struct Expected<'a> {
    /// Where a value goes; all else is read as XML.
    pub(crate) value: Option<&'a mut [u8]>,
    /// A head without a body, whatever it says.
    pub(crate) is_head_only: bool,
}

#[derive(Clone, Copy, Debug)]
enum Stage {
    Head,
    Counted { left: u64 },
    Chunked(Chunked),
    Done,
}

/// A connection, and where it is in an exchange.
pub(crate) struct Link {
    stream: Stream,
    inbox: Box<[u8]>,
    filled: usize,
    sent: usize,
    stage: Stage,
    head: Option<Head>,
    /// Bytes of the value that are in their place.
    got: usize,
    /// The body goes to the value, and not to the scanner.
    is_value: bool,
    /// Length of the last answer's head: the next one's is mostly the same, and what follows lands where it belongs.
    guess: usize,
    /// Something of the present answer has come.
    has_begun: bool,
    /// It has carried an exchange before.
    is_used: bool,
    /// Events that the socket is watched for.
    pub(crate) interest: Interest,
}

impl Link {
    /// Begins to connect.
    pub(crate) fn connect(address: SocketAddr, tls: Option<&Tls>) -> io::Result<Self> {
        Ok(Self {
            stream: Stream::connect(address, tls)?,
            inbox: vec![0; HEAD_BYTES_MAX].into_boxed_slice(),
            filled: 0,
            sent: 0,
            stage: Stage::Done,
            head: None,
            got: 0,
            is_value: false,
            guess: 0,
            has_begun: false,
            is_used: false,
            interest: Interest::default(),
        })
    }

    pub(crate) fn socket(&self) -> &std::net::TcpStream {
        self.stream.socket()
    }

    /// Events that it waits for.
    pub(crate) fn wanted(&self, is_sending: bool) -> Interest {
        self.stream.interest(is_sending)
    }

    /// Whether a failure now may only mean that the server had closed a connection that was at rest.
    pub(crate) fn may_be_stale(&self) -> bool {
        self.is_used && !self.has_begun
    }

    /// Whether the server has closed it, or has spoken unasked, while it was at rest: nothing may be sent on it any more.
    pub(crate) fn is_over(&mut self) -> bool {
        !self.stream.read(&mut [0]).is_err_and(|error| is_wait(&error))
    }

    /// Whether it has carried an exchange, nothing of the present one was sent, and it is over.
    pub(crate) fn is_left_at_rest(&mut self) -> bool {
        self.is_used && self.sent == 0 && self.is_over()
    }

    /// How far the connection is from carrying a request.
    pub(crate) fn opening(&self) -> Opening {
        if self.sent > 0 || self.is_used { Opening::Open } else { self.stream.opening() }
    }

    /// Whether something waits to be read: the answer has begun to come, or the connection has ended.
    pub(crate) fn has_news(&self) -> bool {
        let flags = rustix::net::RecvFlags::PEEK | rustix::net::RecvFlags::DONTWAIT;
        !rustix::net::recv(self.stream.socket(), &mut [0; 1][..], flags)
            .is_err_and(|errno| errno == rustix::io::Errno::AGAIN)
    }

    /// Whether something of the present request was sent.
    pub(crate) fn has_sent(&self) -> bool {
        self.sent > 0
    }

    /// Whether another request may follow.
    pub(crate) fn can_go_on(&self) -> bool {
        matches!(self.stage, Stage::Done) && self.head.is_none_or(|head| !head.closes)
    }

    /// Begins an exchange.
    pub(crate) fn begin(&mut self) {
        self.is_used = self.head.is_some();
        (self.filled, self.sent, self.got) = (0, 0, 0);
        (self.stage, self.is_value, self.has_begun) = (Stage::Head, false, false);
    }

    /// Sends what is left of the request.
    pub(crate) fn send(&mut self, head: &[u8], body: &[u8]) -> Result<Progress, Trouble> {
        while self.sent < head.len() + body.len() {
            let (head, body) = match head.get(self.sent..) {
                Some(left) => (left, body),
                None => (&[][..], &body[self.sent - head.len()..]),
            };
            let parts = if head.is_empty() { (body, &[][..]) } else { (head, body) };
            match self.stream.send(parts.0, parts.1) {
                Ok(count) => self.sent += count,
                Err(error) if is_wait(&error) => return Ok(Progress::Blocked),
                Err(error) => return Err(error.into()),
            }
        }
        match self.stream.flush() {
            Ok(()) => Ok(Progress::Done),
            Err(error) if is_wait(&error) => Ok(Progress::Blocked),
            Err(error) => Err(error.into()),
        }
    }

    /// Takes in what has come of the answer.
    pub(crate) fn receive(
        &mut self,
        mut expected: Expected<'_>,
        scanner: &mut Scanner,
    ) -> Result<Progress, Trouble> {
        loop {
            let step = match self.stage {
                Stage::Head => self.receive_head(&mut expected, scanner),
                Stage::Counted { left: 0 } => {
                    self.stage = Stage::Done;
                    continue;
                }
                Stage::Counted { left } => self.receive_counted(left, expected.value.as_deref_mut(), scanner),
                Stage::Chunked(_) => self.receive_chunks(expected.value.as_deref_mut(), scanner),
                Stage::Done => return Ok(Progress::Done),
            };
            match step {
                Ok(()) => {}
                Err(Trouble::Lost(error)) if is_wait(&error) => return Ok(Progress::Blocked),
                Err(trouble) => return Err(trouble),
            }
        }
    }

    /// The answer, once it is whole.
    pub(crate) fn reply(&self) -> Option<Reply> {
        let head = self.head.as_ref().filter(|_| matches!(self.stage, Stage::Done))?;
        let bytes = match head.framing {
            _ if self.is_value => self.got as u64,
            Framing::Counted(length) => length,
            Framing::Chunked | Framing::UntilClosed => 0,
        };
        Some(Reply {
            status: head.status,
            bytes,
            range_begin: head.range_begin,
            etag: head.etag,
            run: head.run,
        })
    }

    fn receive_head(&mut self, expected: &mut Expected<'_>, scanner: &mut Scanner) -> Result<(), Trouble> {
        let guess = if self.filled == 0 { self.guess } else { 0 };
        // Bytes beyond the guessed head, which lie at the front of the value.
        let mut ahead = 0;
        match expected.value.as_deref_mut().filter(|value| guess > 0 && !value.is_empty()) {
            Some(value) => {
                let read = ended(self.stream.read_both(&mut self.inbox[..guess], value)?)?;
                self.filled = read.min(guess);
                ahead = read - self.filled;
            }
            None => self.filled += ended(self.stream.read(&mut self.inbox[self.filled..])?)?,
        }
        self.has_begun = true;
        let mut parked = self.filled;
        if ahead > 0 && !ends_head(&self.inbox[..self.filled]) {
            // The head is longer than the guess: its end landed in the value.
            if let Some(value) = expected.value.as_deref() {
                let moved = ahead.min(self.inbox.len() - self.filled);
                self.inbox[self.filled..self.filled + moved].copy_from_slice(&value[..moved]);
                self.filled += moved;
            }
        }
        let head = loop {
            match parse_head(&self.inbox[..self.filled])? {
                Some(head) if head.status >= 200 => break head,
                // Interim answers say nothing here.
                Some(interim) => {
                    let value = expected.value.as_deref_mut().unwrap_or_default();
                    ahead = self.pass_interim(interim.length, parked, ahead, value);
                    parked = self.filled;
                }
                None if ahead > self.filled - parked => {
                    return Err(Trouble::Malformed("its header is too long"));
                }
                None => return Ok(()),
            }
        };
        self.guess = head.length;
        self.head = Some(head);
        self.is_value = expected.value.is_some() && matches!(head.status, 200 | 206);
        self.stage = match head.framing {
            _ if expected.is_head_only => Stage::Done,
            Framing::Counted(left) => Stage::Counted { left },
            Framing::Chunked => Stage::Chunked(Chunked::default()),
            Framing::UntilClosed => {
                return Err(Trouble::Malformed("its end is unknown: it has no Content-Length and no chunks"));
            }
        };
        self.place_rest(head.length, parked, ahead, expected.value.as_deref_mut(), scanner)
    }

    /// Takes an interim answer out: what followed it moves to the front of the inbox, and what has no room there to the front of the value.
    /// Returns how many bytes lie in the value then.
    fn pass_interim(&mut self, length: usize, parked: usize, ahead: usize, value: &mut [u8]) -> usize {
        // Of the bytes in the value, the first may have been copied to the inbox already.
        let copied = self.filled - parked;
        self.inbox.copy_within(length..self.filled, 0);
        self.filled -= length;
        let left = ahead.saturating_sub(copied);
        let moved = left.min(self.inbox.len() - self.filled);
        self.inbox[self.filled..self.filled + moved].copy_from_slice(&value[copied..copied + moved]);
        self.filled += moved;
        value.copy_within(copied + moved..copied + left, 0);
        left - moved
    }

    /// Puts what came behind the head where it belongs. `parked`: bytes in the inbox that came there; `ahead`: bytes behind them, at the
    /// front of the value (of which some may have been copied to the inbox).
    fn place_rest(
        &mut self,
        head_length: usize,
        parked: usize,
        ahead: usize,
        value: Option<&mut [u8]>,
        scanner: &mut Scanner,
    ) -> Result<(), Trouble> {
        let rest = parked + ahead - head_length;
        if rest == 0 {
            return Ok(());
        }
        match (self.stage, value) {
            (Stage::Counted { left }, _) if rest as u64 > left => {
                Err(Trouble::Malformed("it is longer than announced"))
            }
            (Stage::Counted { left }, Some(value)) if self.is_value => {
                if left > value.len() as u64 {
                    return Err(Trouble::TooLong(left));
                }
                if head_length <= parked {
                    let behind = parked - head_length;
                    value.copy_within(..ahead, behind);
                    value[..behind].copy_from_slice(&self.inbox[head_length..parked]);
                } else {
                    value.copy_within(head_length - parked..ahead, 0);
                }
                self.got = rest;
                self.stage = Stage::Counted { left: left - rest as u64 };
                Ok(())
            }
            (Stage::Counted { left }, value) => {
                let in_inbox = parked.saturating_sub(head_length);
                scanner.feed(&self.inbox[parked - in_inbox..parked]);
                if let Some(value) = value {
                    scanner.feed(&value[ahead - (rest - in_inbox)..ahead]);
                }
                self.stage = Stage::Counted { left: left - rest as u64 };
                Ok(())
            }
            (Stage::Chunked(_), value) if ahead == 0 => self.take_chunks(head_length, parked, value, scanner),
            // Chunks were not guessed: the bytes are put in order once, and the guess is given up.
            (Stage::Chunked(_), Some(value)) => {
                self.guess = 0;
                let skipped = head_length.saturating_sub(parked);
                let bytes = [&self.inbox[head_length.min(parked)..parked], &value[skipped..ahead]].concat();
                self.chunk_bytes(&bytes, Some(value), scanner)
            }
            _ => Err(Trouble::Malformed("it is longer than announced")),
        }
    }

    fn receive_counted(
        &mut self,
        left: u64,
        value: Option<&mut [u8]>,
        scanner: &mut Scanner,
    ) -> Result<(), Trouble> {
        let read = match value.filter(|_| self.is_value) {
            Some(value) => {
                let room = value
                    .get_mut(self.got..)
                    .and_then(|room| room.get_mut(..left as usize))
                    .ok_or(Trouble::TooLong(self.got as u64 + left))?;
                let read = ended(self.stream.read(room)?)?;
                self.got += read;
                read
            }
            None => {
                let room = left.min(self.inbox.len() as u64) as usize;
                let read = ended(self.stream.read(&mut self.inbox[..room])?)?;
                scanner.feed(&self.inbox[..read]);
                read
            }
        };
        self.stage = Stage::Counted { left: left - read as u64 };
        Ok(())
    }

    fn receive_chunks(&mut self, value: Option<&mut [u8]>, scanner: &mut Scanner) -> Result<(), Trouble> {
        self.guess = 0;
        let read = ended(self.stream.read(&mut self.inbox)?)?;
        self.take_chunks(0, read, value, scanner)
    }

    fn take_chunks(
        &mut self,
        from: usize,
        to: usize,
        value: Option<&mut [u8]>,
        scanner: &mut Scanner,
    ) -> Result<(), Trouble> {
        let inbox = std::mem::take(&mut self.inbox);
        let taken = self.chunk_bytes(&inbox[from..to], value, scanner);
        self.inbox = inbox;
        taken
    }

    fn chunk_bytes(
        &mut self,
        bytes: &[u8],
        mut value: Option<&mut [u8]>,
        scanner: &mut Scanner,
    ) -> Result<(), Trouble> {
        let Stage::Chunked(mut chunked) = self.stage else { return Ok(()) };
        let taken = chunked.take(bytes, |data| {
            let Some(value) = value.as_deref_mut().filter(|_| self.is_value) else {
                scanner.feed(data);
                return Ok(());
            };
            let end = self.got + data.len();
            value.get_mut(self.got..end).ok_or(Trouble::TooLong(end as u64))?.copy_from_slice(data);
            self.got = end;
            Ok::<_, Trouble>(())
        })?;
        self.stage = if chunked.is_done() { Stage::Done } else { Stage::Chunked(chunked) };
        if taken < bytes.len() { Err(Trouble::Malformed("it is longer than announced")) } else { Ok(()) }
    }
}

/// Whether the head ends in these bytes, without reading it.
fn ends_head(bytes: &[u8]) -> bool {
    bytes.ends_with(b"\r\n\r\n") || bytes.windows(4).any(|four| four == b"\r\n\r\n")
}

fn ended(read: usize) -> Result<usize, Trouble> {
    if read == 0 { Err(Trouble::Lost(io::ErrorKind::UnexpectedEof.into())) } else { Ok(read) }
}

fn is_wait(error: &io::Error) -> bool {
    // A socket that is not connected yet says ENOTCONN to a reader, and EAGAIN to a writer.
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}
