//! Questions and answers over one connection, without waiting.

use std::io;
use std::net::TcpStream;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::net::{SendFlags, send};

use crate::inquiry::{self, ServerStatistics};
use crate::wire::HEADER_BYTES;

/// A connection to an endpoint.
#[derive(Debug)]
pub(super) struct Conversation {
    stream: TcpStream,
    tag: u32,
    /// When the question was asked that has no answer yet.
    asked: Option<Instant>,
    /// Bytes of the answer that have come.
    answer: Vec<u8>,
    /// Bytes of the answer, as far as is known.
    wanted_bytes: usize,
}

impl Conversation {
    /// Over a connection of the role `Messages`, non-blocking.
    pub(super) fn new(stream: TcpStream, tag: u32) -> Self {
        Self { stream, tag, asked: None, answer: Vec::new(), wanted_bytes: HEADER_BYTES }
    }

    /// The connection, to wait for.
    pub(super) fn stream(&self) -> &TcpStream {
        &self.stream
    }

    /// Asks, unless a question is open already.
    ///
    /// # Errors
    /// When that question has been open for longer than `timeout`, or when the connection is lost.
    pub(super) fn ask(&mut self, now: Instant, timeout: Duration) -> io::Result<()> {
        if let Some(asked) = self.asked {
            let is_late = now.saturating_duration_since(asked) > timeout;
            return if is_late { Err(io::Error::from_raw_os_error(libc::ETIMEDOUT)) } else { Ok(()) };
        }
        let question = inquiry::question(self.tag);
        // Nothing else is on the way, so that the socket has room for it.
        match send(&self.stream, &question, SendFlags::NOSIGNAL) {
            Ok(sent) if sent == question.len() => self.asked = Some(now),
            Ok(_) | Err(Errno::AGAIN) => return Err(io::Error::from_raw_os_error(libc::ENOBUFS)),
            Err(errno) => return Err(errno.into()),
        }
        Ok(())
    }

    /// Reads what is there; the answer when it is whole.
    ///
    /// # Errors
    /// When the connection is lost, or when what came is no answer to a question.
    pub(super) fn receive(&mut self) -> io::Result<Option<ServerStatistics>> {
        loop {
            let there = self.answer.len();
            if there == self.wanted_bytes {
                if there == HEADER_BYTES {
                    let mut header = [0; HEADER_BYTES];
                    header.copy_from_slice(&self.answer);
                    self.wanted_bytes += inquiry::answer_bytes(&header)?;
                }
                if there == self.wanted_bytes || there > HEADER_BYTES {
                    return self.finish().map(Some);
                }
            }
            self.answer.resize(self.wanted_bytes, 0);
            let read = rustix::io::read(&self.stream, &mut self.answer[there..]);
            self.answer.truncate(there + *read.as_ref().unwrap_or(&0));
            match read {
                Ok(0) => return Err(io::Error::from_raw_os_error(libc::ECONNRESET)),
                Ok(_) | Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return Ok(None),
                Err(errno) => return Err(errno.into()),
            }
        }
    }

    fn finish(&mut self) -> io::Result<ServerStatistics> {
        let is_asked = self.asked.take().is_some();
        self.wanted_bytes = HEADER_BYTES;
        let answer = std::mem::take(&mut self.answer);
        if !is_asked {
            return Err(io::Error::from_raw_os_error(libc::EPROTO));
        }
        Ok(serde_json::from_slice(&answer[HEADER_BYTES..])?)
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpListener;

    use super::*;
    use crate::wire::{Header, flag, opcode};

    const WAIT: Duration = Duration::from_secs(20);
    const BODY: &[u8] =
        br#"{"rpcs":7,"received_bytes":2,"sent_bytes":3,"errors":4,"connections":5,"closed_hostile":6,
        "cpu_user_ns":7,"cpu_system_ns":8,"poll":"spin"}"#;

    /// A conversation, and the endpoint's side of it.
    fn talk() -> (Conversation, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let near = TcpStream::connect(listener.local_addr().expect("its address")).expect("a connection");
        near.set_nonblocking(true).expect("non-blocking");
        let (far, _) = listener.accept().expect("accepted");
        far.set_read_timeout(Some(WAIT)).expect("a timeout");
        far.set_nodelay(true).expect("no delay");
        (Conversation::new(near, 2), far)
    }

    fn answer() -> Vec<u8> {
        let mut header = [0; HEADER_BYTES];
        let inline_bytes = BODY.len() as u64;
        Header { opcode: opcode::STATISTICS, flags: flag::REPLY, inline_bytes, ..Header::default() }
            .encode(&mut header);
        [&header[..], BODY].concat()
    }

    fn receive(conversation: &mut Conversation) -> io::Result<ServerStatistics> {
        let end = Instant::now() + WAIT;
        loop {
            match conversation.receive() {
                Ok(None) => assert!(Instant::now() < end, "no answer"),
                Ok(Some(statistics)) => return Ok(statistics),
                Err(error) => return Err(error),
            }
        }
    }

    #[test]
    fn an_answer_may_come_in_pieces_and_the_next_follows() {
        let (mut near, mut far) = talk();
        for pieces in [1, 63, 64, 65, 1000] {
            near.ask(Instant::now(), WAIT).expect("asked");
            let mut question = [0; HEADER_BYTES];
            far.read_exact(&mut question).expect("a question");
            let question = Header::decode(&question).expect("a header");
            assert_eq!((question.opcode, question.tag), (opcode::STATISTICS, 2));
            let answer = answer();
            let (last, first) = answer
                .chunks(pieces)
                .collect::<Vec<_>>()
                .split_last()
                .map(|(l, f)| (*l, f.to_vec()))
                .expect("pieces");
            for piece in first {
                far.write_all(piece).expect("written");
                assert!(near.receive().expect("sound").is_none());
            }
            far.write_all(last).expect("written");
            assert_eq!(receive(&mut near).expect("an answer").rpcs, 7);
        }
    }

    #[test]
    fn a_question_is_asked_once_and_not_waited_for_longer_than_allowed() {
        let (mut near, mut far) = talk();
        let start = Instant::now();
        near.ask(start, Duration::from_secs(2)).expect("asked");
        near.ask(start + Duration::from_secs(2), Duration::from_secs(2)).expect("still waiting");
        let late =
            near.ask(start + Duration::from_millis(2001), Duration::from_secs(2)).expect_err("too late");
        assert_eq!(late.raw_os_error(), Some(libc::ETIMEDOUT));
        drop(near);
        let mut all = Vec::new();
        far.read_to_end(&mut all).expect("until closed");
        assert_eq!(all.len(), HEADER_BYTES);
    }

    #[test]
    fn what_is_no_answer_ends_it() {
        let (mut near, mut far) = talk();
        far.write_all(&answer()).expect("written");
        assert_eq!(receive(&mut near).expect_err("nobody asked").raw_os_error(), Some(libc::EPROTO));
        let (mut near, mut far) = talk();
        near.ask(Instant::now(), WAIT).expect("asked");
        far.write_all(&[0x55; HEADER_BYTES]).expect("written");
        assert_eq!(receive(&mut near).expect_err("rubbish").kind(), io::ErrorKind::InvalidData);
        let (mut near, far) = talk();
        drop(far);
        assert_eq!(receive(&mut near).expect_err("closed").raw_os_error(), Some(libc::ECONNRESET));
    }
}
