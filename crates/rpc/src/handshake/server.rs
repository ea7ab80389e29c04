//! The engine's side: a connection in its handshake is a small state that moves when bytes come, so a silent client holds up nobody.

use std::net::{SocketAddr, TcpStream};
use std::time::Instant;

use driver::Secret;
use ring::rand::{SecureRandom, SystemRandom};
use rustix::io::Errno;
use rustix::net::{SendFlags, send};

use super::frames::{
    Challenge, HELLO_BYTES_MIN, Hello, Malformed, PROOF_BYTES, Refusal, RefusalCode, Reply, Welcome,
    parse_hello, parse_proof, reply_bytes,
};
use super::{NO_PROOF, client_words, engine_words};
use crate::inbox::Role;

/// The engine as a handshake needs to know it.
pub(crate) struct ServedEngine<'a> {
    pub(crate) rank: u32,
    pub(crate) group: u64,
    pub(crate) secret: Option<&'a Secret>,
    pub(crate) tags: u32,
    /// Whether a role is served.
    pub(crate) serves: &'a dyn Fn(Role) -> bool,
    /// The endpoint's name on the fabric; none when the endpoint serves no more.
    pub(crate) fabric_name: &'a dyn Fn(u32) -> Option<Vec<u8>>,
    /// Whether one more connection is within the limits.
    pub(crate) has_room: &'a dyn Fn() -> bool,
}

/// State of a connection after a step of its handshake.
pub(crate) enum Step {
    /// More bytes must come.
    Wait,
    /// It may come in.
    Enter(Hello),
    /// It was closed; what is worth a line, if anything.
    Close(Option<String>),
}

enum State {
    Hello,
    Proof { hello: Hello, said: Vec<u8>, heard: Vec<u8> },
}

/// A connection in its handshake.
pub(crate) struct Pending {
    pub(crate) stream: TcpStream,
    pub(crate) peer: SocketAddr,
    pub(crate) deadline: Instant,
    state: State,
    bytes: Vec<u8>,
    wanted: usize,
}

impl Pending {
    /// A connection that was just accepted; the stream must be non-blocking.
    pub(crate) fn new(stream: TcpStream, peer: SocketAddr, deadline: Instant) -> Self {
        Self { stream, peer, deadline, state: State::Hello, bytes: Vec::new(), wanted: HELLO_BYTES_MIN }
    }

    /// Goes on as far as the bytes that are there allow.
    pub(crate) fn advance(&mut self, engine: &ServedEngine<'_>) -> Step {
        loop {
            match self.read() {
                Ok(true) => {}
                Ok(false) => return Step::Wait,
                Err(step) => return step,
            }
            let step = match std::mem::replace(&mut self.state, State::Hello) {
                State::Hello => self.take_hello(engine),
                State::Proof { hello, said, heard } => return self.take_proof(engine, hello, &said, &heard),
            };
            if let Some(step) = step {
                return step;
            }
        }
    }

    /// Tells the client why it is sent away, as far as it listens.
    pub(crate) fn refuse(&self, code: RefusalCode, text: &str) {
        let refusal = Reply::Refusal(Refusal { code, text: text.to_owned() });
        if let Ok(bytes) = reply_bytes(&refusal) {
            self.say(&bytes);
            // What stays unread when a socket is closed takes back what was just said (RFC 1122, 4.2.2.13).
            let _ = rustix::io::read(&self.stream, &mut [0; 4096]);
        }
    }

    /// Whether what is wanted is there. Not a byte more is taken: what follows the handshake is the endpoint's.
    fn read(&mut self) -> Result<bool, Step> {
        let mut there = self.bytes.len();
        self.bytes.resize(self.wanted, 0);
        let result = loop {
            if there == self.wanted {
                break Ok(true);
            }
            match rustix::io::read(&self.stream, &mut self.bytes[there..]) {
                // Who asks only whether somebody answers hangs up after the challenge.
                Ok(0) => break Err(Step::Close(self.end_of_stream(there))),
                Ok(read) => there += read,
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => break Ok(false),
                Err(errno) => break Err(Step::Close(Some(format!("the handshake failed: {errno}")))),
            }
        };
        self.bytes.truncate(there);
        // Strangers are told by their first bytes, before they have sent a whole frame.
        match (&result, &self.state) {
            (Ok(false), State::Hello) => match parse_hello(&self.bytes) {
                Err(malformed) => Err(self.malformed(malformed)),
                Ok(_) => result,
            },
            _ => result,
        }
    }

    fn end_of_stream(&self, there: usize) -> Option<String> {
        let in_a_frame = there > 0;
        in_a_frame.then(|| "the client disconnected during the handshake".to_owned())
    }

    fn malformed(&self, malformed: Malformed) -> Step {
        if malformed == Malformed::Version {
            self.refuse(RefusalCode::Version, "this engine uses version 1 of the handshake");
        }
        Step::Close(Some(format!("rejected: {malformed}")))
    }

    fn take_hello(&mut self, engine: &ServedEngine<'_>) -> Option<Step> {
        let hello = match parse_hello(&self.bytes) {
            Ok(Some((hello, _))) => hello,
            Ok(None) => {
                let name_bytes = usize::from(u16::from_le_bytes([self.bytes[6], self.bytes[7]]));
                self.wanted = HELLO_BYTES_MIN + name_bytes;
                return None;
            }
            Err(malformed) => return Some(self.malformed(malformed)),
        };
        let mut nonce = [0; 32];
        if SystemRandom::new().fill(&mut nonce).is_err() {
            return Some(Step::Close(Some("rejected: no random bytes are available".to_owned())));
        }
        let demands_token = engine.secret.is_some();
        let challenge = Challenge { nonce, rank: engine.rank, group: engine.group, demands_token };
        let Ok(heard) = reply_bytes(&Reply::Challenge(challenge)) else { return Some(Step::Close(None)) };
        if !self.say(&heard) {
            return Some(Step::Close(None));
        }
        self.state = State::Proof { hello, said: std::mem::take(&mut self.bytes), heard };
        self.wanted = PROOF_BYTES;
        None
    }

    fn take_proof(&mut self, engine: &ServedEngine<'_>, hello: Hello, said: &[u8], heard: &[u8]) -> Step {
        let Some(bytes) = self.bytes.first_chunk::<PROOF_BYTES>() else { return Step::Wait };
        let proof = match parse_proof(bytes) {
            Ok(proof) => proof,
            Err(malformed) => return self.malformed(malformed),
        };
        if let Some(secret) = engine.secret {
            let is_right = secret.accepts(&client_words(said, heard), &proof.proof);
            if !is_right || !proof.has_token {
                return self.send_away(RefusalCode::Token, "the token is missing or wrong");
            }
        }
        let fabric_name = match judge(engine, &hello) {
            Ok(fabric_name) => fabric_name,
            Err((code, text)) => return self.send_away(code, &text),
        };
        let rank = engine.rank.to_le_bytes();
        let words = engine_words(said, heard, &rank, &fabric_name);
        let own_proof = engine.secret.map_or(NO_PROOF, |secret| secret.prove(&words));
        let welcome = Welcome { proof: own_proof, rank: engine.rank, fabric_name };
        match reply_bytes(&Reply::Welcome(welcome)) {
            Ok(bytes) if self.say(&bytes) => Step::Enter(hello),
            Ok(_) => Step::Close(None),
            Err(_) => Step::Close(Some("rejected: the endpoint's fabric name is too long".to_owned())),
        }
    }

    fn send_away(&self, code: RefusalCode, text: &str) -> Step {
        self.refuse(code, text);
        Step::Close(Some(format!("rejected: {text}")))
    }

    /// Frames of the handshake fit any socket's buffer: a client that does not read gets nothing and is closed.
    fn say(&self, bytes: &[u8]) -> bool {
        matches!(send(&self.stream, bytes, SendFlags::NOSIGNAL | SendFlags::DONTWAIT), Ok(sent) if sent == bytes.len())
    }
}

/// The endpoint's name on the fabric, when the client may come in.
fn judge(engine: &ServedEngine<'_>, hello: &Hello) -> Result<Vec<u8>, (RefusalCode, String)> {
    if let Some(rank) = hello.rank.filter(|&rank| rank != engine.rank) {
        return Err((RefusalCode::Rank, format!("this is rank {}, not rank {rank}", engine.rank)));
    }
    if hello.tag >= engine.tags {
        return Err((
            RefusalCode::Tag,
            format!("tag {} does not exist, the last is {}", hello.tag, engine.tags - 1),
        ));
    }
    if !(engine.serves)(hello.role) {
        let text = match hello.role {
            Role::Fabric => "this engine serves sockets, not a fabric",
            Role::Messages | Role::Bulk => "this engine does not serve this over sockets",
        };
        return Err((RefusalCode::Role, text.to_owned()));
    }
    if !(engine.has_room)() {
        return Err((RefusalCode::Connections, "the engine has reached its limit of connections".to_owned()));
    }
    (engine.fabric_name)(hello.tag).ok_or((RefusalCode::Stopping, "the endpoint has stopped".to_owned()))
}
