//! One request after the other, for control: nothing is measured here.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use driver::{Error, Secret};

use crate::inbox::Role;
use crate::wire::{HEADER_BYTES, Header, flag};
use crate::{EndpointPlan, SocketPlan, handshake};

/// A connection to one endpoint for one request at a time. After an error it is of no more use.
#[derive(Debug)]
pub struct Caller {
    stream: TcpStream,
    tag: u32,
    sequence: u64,
}

/// A reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replied {
    /// 0, or a negated errno.
    pub status: i32,
    /// Payload; with an error what the service says about it.
    pub body: Vec<u8>,
}

fn malformed(what: &str) -> std::io::Error {
    std::io::Error::new(std::io::ErrorKind::InvalidData, what.to_owned())
}

impl Caller {
    /// Connects to an endpoint. Takes `timeout` at most for the connection, and as much again for each part of a reply.
    ///
    /// # Errors
    /// When it cannot be reached ([`handshake::connect`]).
    pub fn connect(
        endpoint: &EndpointPlan,
        socket: &SocketPlan,
        secret: Option<&Secret>,
        timeout: Duration,
        interrupt: &AtomicBool,
    ) -> Result<Self, Error> {
        let timeout_ns = u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX);
        let session = handshake::new_session()?;
        let role = Role::Messages;
        let connected =
            handshake::connect(endpoint, role, session, &[], socket, secret, timeout_ns, interrupt)?;
        let stream = connected.stream;
        let set = || -> std::io::Result<()> {
            stream.set_nonblocking(false)?;
            stream.set_read_timeout(Some(timeout))?;
            stream.set_write_timeout(Some(timeout))
        };
        set().map_err(|source| {
            Error::system("connect", "cannot set the connection up", source).with("endpoint", &endpoint.label)
        })?;
        Ok(Self { stream, tag: endpoint.tag, sequence: 0 })
    }

    /// Sends a request and waits for its reply, whose payload may be `reply_bytes_max`.
    ///
    /// # Errors
    /// When the endpoint does not answer, or when what it answers is no reply to this request.
    pub fn call(&mut self, opcode: u16, body: &[u8], reply_bytes_max: u64) -> std::io::Result<Replied> {
        self.sequence += 1;
        let request = Header {
            opcode,
            tag: self.tag,
            sequence: self.sequence,
            inline_bytes: body.len() as u64,
            reply_inline_bytes: reply_bytes_max,
            ..Header::default()
        };
        let mut message = vec![0; HEADER_BYTES];
        let mut head = [0; HEADER_BYTES];
        request.encode(&mut head);
        message.copy_from_slice(&head);
        message.extend_from_slice(body);
        self.stream.write_all(&message)?;
        self.stream.read_exact(&mut head)?;
        let reply = Header::decode(&head).map_err(|error| malformed(&error.to_string()))?;
        if reply.flags & flag::REPLY == 0
            || (reply.opcode, reply.sequence) != (opcode, self.sequence)
            || reply.inline_bytes > reply_bytes_max
            || reply.bulk_bytes > 0
            || reply.status > 0
        {
            return Err(malformed("the reply belongs to another request"));
        }
        let mut body = vec![0; reply.inline_bytes as usize];
        self.stream.read_exact(&mut body)?;
        Ok(Replied { status: reply.status, body })
    }
}
