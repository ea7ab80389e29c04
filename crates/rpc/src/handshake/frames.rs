//! The frames of the handshake. Little endian, each with a fixed largest size.

use std::fmt;

use crate::inbox::Role;

/// First bytes of every frame: the letters and the version.
pub const MAGIC: [u8; 4] = *b"SRH1";
/// Bytes of a [`Hello`] without its fabric name.
pub const HELLO_BYTES_MIN: usize = 64;
/// Longest name on a fabric, in bytes.
pub const FABRIC_NAME_BYTES_MAX: usize = 512;
/// Bytes of the longest [`Hello`].
pub const HELLO_BYTES_MAX: usize = HELLO_BYTES_MIN + FABRIC_NAME_BYTES_MAX;
/// Bytes of a [`Proof`].
pub const PROOF_BYTES: usize = 40;
/// Bytes of a [`Challenge`].
pub const CHALLENGE_BYTES: usize = REPLY_HEAD_BYTES + 48;
/// Longest text of a [`Refusal`], in bytes.
pub const REFUSAL_TEXT_BYTES_MAX: usize = 256;

pub(super) const REPLY_HEAD_BYTES: usize = 8;
const WELCOME_BODY_BYTES_MIN: usize = 40;
const ANY_RANK: u32 = u32::MAX;

/// First message of a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hello {
    /// Role of the connection.
    pub role: Role,
    /// Tag that it is for.
    pub tag: u32,
    /// Rank that the client means to reach; none when any will do. `u32::MAX` is no rank.
    pub rank: Option<u32>,
    /// The same for the connections that belong together.
    pub session: [u8; 16],
    /// Drawn by the client for this connection.
    pub nonce: [u8; 32],
    /// The client's name on the fabric; empty on sockets.
    pub fabric_name: Vec<u8>,
}

/// Last message of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Proof {
    /// Whether the client has a token, and so wants the engine's proof.
    pub has_token: bool,
    /// That it knows the token; zeros without one.
    pub proof: [u8; 32],
}

/// First message of the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Challenge {
    /// Drawn by the engine for this connection.
    pub nonce: [u8; 32],
    /// Rank of the engine.
    pub rank: u32,
    /// Label of its group ([`super::group_label`]).
    pub group: u64,
    /// Whether it demands a token.
    pub demands_token: bool,
}

/// Last message of the engine when it takes the connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Welcome {
    /// That the engine knows the token; zeros without one.
    pub proof: [u8; 32],
    /// Rank of the engine.
    pub rank: u32,
    /// The endpoint's name on the fabric; empty on sockets.
    pub fabric_name: Vec<u8>,
}

/// Why an engine refuses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefusalCode {
    /// The client's token is missing or another one.
    Token = 1,
    /// It has no such tag.
    Tag = 2,
    /// It is another rank.
    Rank = 3,
    /// It has as many connections as it bears.
    Connections = 4,
    /// It does not serve that role.
    Role = 5,
    /// It stops.
    Stopping = 6,
    /// It speaks another version.
    Version = 7,
    /// Too many others are in their handshake, or the client took too long.
    Busy = 8,
}

impl RefusalCode {
    const ALL: [Self; 8] = [
        Self::Token,
        Self::Tag,
        Self::Rank,
        Self::Connections,
        Self::Role,
        Self::Stopping,
        Self::Version,
        Self::Busy,
    ];

    /// The error number that a client counts it by.
    #[must_use]
    pub fn errno(self) -> i32 {
        match self {
            Self::Token => libc::EACCES,
            Self::Tag | Self::Rank => libc::ENXIO,
            Self::Connections => libc::EUSERS,
            Self::Role => libc::EPROTONOSUPPORT,
            Self::Stopping => libc::ECONNREFUSED,
            Self::Version => libc::EPROTO,
            Self::Busy => libc::EBUSY,
        }
    }
}

/// Last message of the engine when it does not take the connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Why.
    pub code: RefusalCode,
    /// Why, for people.
    pub text: String,
}

/// Message of an engine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// First.
    Challenge(Challenge),
    /// Last: come in.
    Welcome(Welcome),
    /// Last: no.
    Refusal(Refusal),
}

/// Why bytes are no frame of the handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Malformed {
    /// Another protocol.
    Magic,
    /// This protocol in another version.
    Version,
    /// A field that has a value it cannot have.
    Field,
    /// A name or text longer than may be.
    Length,
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Magic => "it uses another protocol",
            Self::Version => "it uses another version of the protocol",
            Self::Field => "a field of the handshake has an impossible value",
            Self::Length => "a name in the handshake is too long",
        })
    }
}

/// Reads a [`Hello`] from the front of `from`; none while it is not all there. The second value is its length.
///
/// # Errors
/// When the bytes are none, whatever may follow.
pub fn parse_hello(from: &[u8]) -> Result<Option<(Hello, usize)>, Malformed> {
    check_magic(from)?;
    let Some(head) = from.first_chunk::<HELLO_BYTES_MIN>() else { return Ok(None) };
    let role = role_of(head[4]).ok_or(Malformed::Field)?;
    if head[5] != 0 {
        return Err(Malformed::Field);
    }
    let name_bytes = usize::from(u16::from_le_bytes([head[6], head[7]]));
    if name_bytes > FABRIC_NAME_BYTES_MAX {
        return Err(Malformed::Length);
    }
    let rank = word(head, 12);
    let length = HELLO_BYTES_MIN + name_bytes;
    let Some(name) = from.get(HELLO_BYTES_MIN..length) else { return Ok(None) };
    let hello = Hello {
        role,
        tag: word(head, 8),
        rank: (rank != ANY_RANK).then_some(rank),
        session: array(head, 16),
        nonce: array(head, 32),
        fabric_name: name.to_vec(),
    };
    Ok(Some((hello, length)))
}

/// Writes a [`Hello`].
///
/// # Errors
/// When the fabric name is too long.
pub fn hello_bytes(hello: &Hello) -> Result<Vec<u8>, Malformed> {
    let mut to = Vec::with_capacity(HELLO_BYTES_MIN + hello.fabric_name.len());
    to.extend_from_slice(&MAGIC);
    to.extend_from_slice(&[role_code(hello.role), 0]);
    to.extend_from_slice(&length_word(hello.fabric_name.len(), FABRIC_NAME_BYTES_MAX)?);
    to.extend_from_slice(&hello.tag.to_le_bytes());
    to.extend_from_slice(&hello.rank.unwrap_or(ANY_RANK).to_le_bytes());
    to.extend_from_slice(&hello.session);
    to.extend_from_slice(&hello.nonce);
    to.extend_from_slice(&hello.fabric_name);
    Ok(to)
}

/// Reads a [`Proof`].
///
/// # Errors
/// When the bytes are none.
pub fn parse_proof(from: &[u8; PROOF_BYTES]) -> Result<Proof, Malformed> {
    check_magic(from)?;
    if from[5] > 1 || from[4] != 0 || from[6] != 0 || from[7] != 0 {
        return Err(Malformed::Field);
    }
    Ok(Proof { has_token: from[5] == 1, proof: array(from, 8) })
}

impl Proof {
    /// Writes it.
    #[must_use]
    pub fn bytes(&self) -> [u8; PROOF_BYTES] {
        let mut to = [0; PROOF_BYTES];
        to[..4].copy_from_slice(&MAGIC);
        to[5] = u8::from(self.has_token);
        to[8..].copy_from_slice(&self.proof);
        to
    }
}

/// Reads what an engine says from the front of `from`; none while it is not all there. The second value is its length.
///
/// # Errors
/// When the bytes are none, whatever may follow.
pub fn parse_reply(from: &[u8]) -> Result<Option<(Reply, usize)>, Malformed> {
    check_magic(from)?;
    let Some(head) = from.first_chunk::<REPLY_HEAD_BYTES>() else { return Ok(None) };
    let (kind, code) = (head[4], head[5]);
    let body_bytes = usize::from(u16::from_le_bytes([head[6], head[7]]));
    let fits = match kind {
        1 => body_bytes == CHALLENGE_BYTES - REPLY_HEAD_BYTES,
        2 => (WELCOME_BODY_BYTES_MIN..=WELCOME_BODY_BYTES_MIN + FABRIC_NAME_BYTES_MAX).contains(&body_bytes),
        3 => body_bytes <= REFUSAL_TEXT_BYTES_MAX,
        _ => return Err(Malformed::Field),
    };
    if !fits {
        return Err(Malformed::Length);
    }
    if kind != 3 && code != 0 {
        return Err(Malformed::Field);
    }
    let length = REPLY_HEAD_BYTES + body_bytes;
    let Some(body) = from.get(REPLY_HEAD_BYTES..length) else { return Ok(None) };
    let reply = match kind {
        1 => Reply::Challenge(parse_challenge(body)?),
        2 => Reply::Welcome(parse_welcome(body)?),
        _ => Reply::Refusal(parse_refusal(code, body)?),
    };
    Ok(Some((reply, length)))
}

fn parse_challenge(body: &[u8]) -> Result<Challenge, Malformed> {
    if body[44] > 1 || body[45..48] != [0; 3] {
        return Err(Malformed::Field);
    }
    let group = u64::from(word(body, 36)) | u64::from(word(body, 40)) << 32;
    Ok(Challenge { nonce: array(body, 0), rank: word(body, 32), group, demands_token: body[44] == 1 })
}

fn parse_welcome(body: &[u8]) -> Result<Welcome, Malformed> {
    let name = &body[WELCOME_BODY_BYTES_MIN..];
    if word(body, 36) as usize != name.len() {
        return Err(Malformed::Length);
    }
    Ok(Welcome { proof: array(body, 0), rank: word(body, 32), fabric_name: name.to_vec() })
}

fn parse_refusal(code: u8, body: &[u8]) -> Result<Refusal, Malformed> {
    let code = RefusalCode::ALL.into_iter().find(|&known| known as u8 == code).ok_or(Malformed::Field)?;
    let text = std::str::from_utf8(body).map_err(|_| Malformed::Field)?;
    // It ends up in somebody's terminal.
    if text.chars().any(char::is_control) {
        return Err(Malformed::Field);
    }
    Ok(Refusal { code, text: text.to_owned() })
}

/// Writes what an engine says. A refusal's text is cut at [`REFUSAL_TEXT_BYTES_MAX`], at the end of a character.
///
/// # Errors
/// When a fabric name is too long.
pub fn reply_bytes(reply: &Reply) -> Result<Vec<u8>, Malformed> {
    let (kind, code, body) = match reply {
        Reply::Challenge(challenge) => {
            let mut body = challenge.nonce.to_vec();
            body.extend_from_slice(&challenge.rank.to_le_bytes());
            body.extend_from_slice(&challenge.group.to_le_bytes());
            body.extend_from_slice(&[u8::from(challenge.demands_token), 0, 0, 0]);
            (1, 0, body)
        }
        Reply::Welcome(welcome) => {
            let mut body = welcome.proof.to_vec();
            body.extend_from_slice(&welcome.rank.to_le_bytes());
            body.extend_from_slice(&length_word(welcome.fabric_name.len(), FABRIC_NAME_BYTES_MAX)?);
            body.extend_from_slice(&[0, 0]);
            body.extend_from_slice(&welcome.fabric_name);
            (2, 0, body)
        }
        Reply::Refusal(refusal) => {
            let end = refusal.text.floor_char_boundary(REFUSAL_TEXT_BYTES_MAX);
            (3, refusal.code as u8, refusal.text.as_bytes()[..end].to_vec())
        }
    };
    let mut to = Vec::with_capacity(REPLY_HEAD_BYTES + body.len());
    to.extend_from_slice(&MAGIC);
    to.extend_from_slice(&[kind, code]);
    to.extend_from_slice(&length_word(body.len(), usize::from(u16::MAX))?);
    to.extend_from_slice(&body);
    Ok(to)
}

/// Judges as many of the first bytes as are there.
fn check_magic(from: &[u8]) -> Result<(), Malformed> {
    let there = from.len().min(MAGIC.len());
    if from[..there] == MAGIC[..there] {
        return Ok(());
    }
    let letters = there.min(MAGIC.len() - 1);
    let is_version = there == MAGIC.len() && from[..letters] == MAGIC[..letters];
    Err(if is_version { Malformed::Version } else { Malformed::Magic })
}

fn role_code(role: Role) -> u8 {
    match role {
        Role::Messages => 1,
        Role::Bulk => 2,
        Role::Fabric => 3,
    }
}

fn role_of(code: u8) -> Option<Role> {
    [Role::Messages, Role::Bulk, Role::Fabric].into_iter().find(|&role| role_code(role) == code)
}

fn length_word(length: usize, max: usize) -> Result<[u8; 2], Malformed> {
    let fits = u16::try_from(length).ok().filter(|_| length <= max);
    fits.map(u16::to_le_bytes).ok_or(Malformed::Length)
}

fn word(from: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(array(from, at))
}

fn array<const N: usize>(from: &[u8], at: usize) -> [u8; N] {
    let mut to = [0; N];
    to.copy_from_slice(&from[at..at + N]);
    to
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    fn role() -> impl Strategy<Value = Role> {
        prop_oneof![Just(Role::Messages), Just(Role::Bulk), Just(Role::Fabric)]
    }

    prop_compose! {
        fn hello()(
            role in role(), tag: u32, rank in prop::option::of(0..u32::MAX), session: [u8; 16], nonce: [u8; 32],
            fabric_name in vec(any::<u8>(), 0..=FABRIC_NAME_BYTES_MAX),
        ) -> Hello {
            Hello { role, tag, rank, session, nonce, fabric_name }
        }
    }

    fn reply() -> impl Strategy<Value = Reply> {
        let challenge = (any::<[u8; 32]>(), any::<u32>(), any::<u64>(), any::<bool>()).prop_map(
            |(nonce, rank, group, demands_token)| {
                Reply::Challenge(Challenge { nonce, rank, group, demands_token })
            },
        );
        let welcome = (any::<[u8; 32]>(), any::<u32>(), vec(any::<u8>(), 0..=FABRIC_NAME_BYTES_MAX))
            .prop_map(|(proof, rank, fabric_name)| Reply::Welcome(Welcome { proof, rank, fabric_name }));
        let refusal = (0..RefusalCode::ALL.len(), "[ -~é]{0,100}")
            .prop_map(|(code, text)| Reply::Refusal(Refusal { code: RefusalCode::ALL[code], text }));
        prop_oneof![challenge, welcome, refusal]
    }

    proptest! {
        #[test]
        fn hellos_are_read_as_written_and_never_early(hello in hello(), rest in vec(any::<u8>(), 0..9), cut: prop::sample::Index) {
            let mut bytes = hello_bytes(&hello).expect("its name fits");
            let length = bytes.len();
            prop_assert!(length <= HELLO_BYTES_MAX);
            prop_assert_eq!(parse_hello(&bytes[..cut.index(length)]), Ok(None));
            bytes.extend_from_slice(&rest);
            prop_assert_eq!(parse_hello(&bytes), Ok(Some((hello, length))));
        }

        #[test]
        fn replies_too(reply in reply(), rest in vec(any::<u8>(), 0..9), cut: prop::sample::Index) {
            let mut bytes = reply_bytes(&reply).expect("its name fits");
            let length = bytes.len();
            prop_assert_eq!(parse_reply(&bytes[..cut.index(length)]), Ok(None));
            bytes.extend_from_slice(&rest);
            prop_assert_eq!(parse_reply(&bytes), Ok(Some((reply, length))));
        }

        #[test]
        fn proofs_too(has_token: bool, proof: [u8; 32]) {
            let proof = Proof { has_token, proof };
            prop_assert_eq!(parse_proof(&proof.bytes()), Ok(proof));
        }

        #[test]
        fn any_bytes_are_survived(mut bytes in vec(any::<u8>(), 0..700), with_magic: bool) {
            if with_magic && bytes.len() >= 4 {
                bytes[..4].copy_from_slice(&MAGIC);
            }
            if let Ok(Some((hello, length))) = parse_hello(&bytes) {
                prop_assert_eq!(hello_bytes(&hello).expect("it was read"), &bytes[..length]);
            }
            if let Ok(Some((reply, length))) = parse_reply(&bytes) {
                prop_assert_eq!(reply_bytes(&reply).expect("it was read"), &bytes[..length]);
            }
            if let Some(proof) = bytes.first_chunk::<PROOF_BYTES>() && let Ok(read) = parse_proof(proof) {
                prop_assert_eq!(&read.bytes(), proof);
            }
        }
    }

    #[test]
    fn others_are_told_apart() {
        assert_eq!(parse_hello(b"GET / HTTP/1.1"), Err(Malformed::Magic));
        assert_eq!(parse_hello(b"X"), Err(Malformed::Magic));
        assert_eq!(parse_hello(b"SRH2"), Err(Malformed::Version));
        assert_eq!(parse_hello(b"SRH"), Ok(None));
        let mut oversized = [0; HELLO_BYTES_MIN];
        oversized[..8].copy_from_slice(b"SRH1\x01\x00\x01\x02");
        assert_eq!(parse_hello(&oversized), Err(Malformed::Length));
        let hello = Hello {
            role: Role::Fabric,
            tag: 0,
            rank: None,
            session: [0; 16],
            nonce: [0; 32],
            fabric_name: vec![0; FABRIC_NAME_BYTES_MAX + 1],
        };
        assert_eq!(hello_bytes(&hello), Err(Malformed::Length));
    }

    #[test]
    fn a_refusal_cannot_write_to_a_terminal() {
        let text = "\u{1b}[2J".to_owned();
        let bytes = reply_bytes(&Reply::Refusal(Refusal { code: RefusalCode::Busy, text })).expect("it fits");
        assert_eq!(parse_reply(&bytes), Err(Malformed::Field));
        let long = Refusal { code: RefusalCode::Busy, text: "é".repeat(REFUSAL_TEXT_BYTES_MAX) };
        let bytes = reply_bytes(&Reply::Refusal(long)).expect("it is cut");
        assert_eq!(bytes.len(), REPLY_HEAD_BYTES + REFUSAL_TEXT_BYTES_MAX);
        assert!(matches!(parse_reply(&bytes), Ok(Some(_))));
    }
}
